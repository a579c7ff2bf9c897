"""The commands that work on rules, settings and upstream, and what options amount to."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from mblint.cli import check, explain
from mblint.cli.main import main
from mblint.cli.options import settings_of, upstream_of, wants_color
from mblint.cli.parser import Parser
from mblint.upstream.cache import upstream_folder
from tests.helpers_upstream import put_copy, write_package


def _args(*words: str, command: object = check) -> argparse.Namespace:
    parser = Parser(prog="mblint x")
    command.configure(parser)  # type: ignore[attr-defined]
    return parser.parse_intermixed_args(list(words))


def test_paths_and_options_in_any_order() -> None:
    args = _args(
        "a",
        "--gpu",
        "H100",
        "b",
        "--set",
        "model.x=1=2",
        "-vv",
        "c",
        "--set",
        "y=",
        "--output",
        "json=o.json",
    )
    assert args.paths == ["a", "b", "c"]
    assert (args.gpu, args.set, args.verbose) == ("h100", [("model.x", "1=2"), ("y", "")], 2)
    assert args.output == [("json", Path("o.json"))]


def test_lists_of_rules_add_up() -> None:
    assert _args("--select", "MB1,MB2", "--select", "MB3").select == ["MB1", "MB2", "MB3"]
    assert _args().select is None


def test_estimate_has_three_states() -> None:
    assert [_args(*words).estimate for words in ((), ("--estimate",), ("--no-estimate",))] == [
        None,
        True,
        False,
    ]


def test_the_command_line_goes_over_the_settings(bare_environment: Path) -> None:
    (bare_environment / "mblint.toml").write_text(
        'select = ["MB1"]\nignore = ["MB204"]\nexclude = ["x"]\nfail-on = "error"\nworld-size = 8\ngpu = "h100"\n'
    )
    got = settings_of(_args("--select", "MB2", "--ignore", "MB3", "--exclude", "y", "--world-size", "16")).settings
    assert (got.select, got.ignore, got.exclude) == (("MB2",), ("MB204", "MB3"), ("x", "y"))
    assert (got.fail_on, got.world_size, got.gpu) == ("error", 16, "h100")
    assert settings_of(_args("--isolated")).settings.gpu is None
    assert settings_of(_args("r", command=explain)).settings.world_size == 8


def test_the_settings_name_the_upstream_and_the_command_line_another(bare_environment: Path) -> None:
    one, other = put_copy("0.6.0", "0.19.0"), put_copy("0.6.2", "0.19.2")
    write_package(bare_environment / "vendor", "bridge", "0.7.0")
    (bare_environment / "mblint.toml").write_text('upstream = "0.6.0"')
    assert upstream_of(_args(), settings_of(_args())).bridge_root == one
    assert upstream_of(_args("--upstream", "0.6.2"), settings_of(_args())).bridge_root == other
    (bare_environment / "mblint.toml").write_text('upstream = "vendor"')
    found = upstream_of(_args(), settings_of(_args()))
    assert (found.bridge, found.kind) == ("0.7.0", "given")


@pytest.mark.parametrize(
    ("choice", "environment", "terminal", "colour"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colour(monkeypatch: pytest.MonkeyPatch, choice: str, environment: dict[str, str], terminal: bool, colour: bool) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = argparse.Namespace(isatty=lambda: terminal)
    assert wants_color(choice, stream) is colour


def test_rules_and_rule_agree(bare_environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)["rules"]
    assert [rule["id"] for rule in listed] == sorted(rule["id"] for rule in listed)
    assert main(["rules"]) == 0
    table = capsys.readouterr().out
    for rule in listed:
        assert f"{rule['id']} " in table
        assert rule["title"] in table
        for label in (rule["id"], rule["id"].lower(), rule["name"]):
            assert main(["rule", label]) == 0
            text = capsys.readouterr().out
            assert text.startswith(f"{rule['id']} {rule['name']}\n{rule['title']}\n")
        assert "Reported for\n" in text
        assert "Not reported for\n" in text
    rule = listed[0]
    assert main(["rule", rule["name"], "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {key: data[key] for key in ("id", "name", "title", "area")} == {key: rule[key] for key in ("id", "name", "title", "area")}
    assert main(["rule", f"{rule['name']}x"]) == 2
    assert f"did you mean {rule['name']}?" in capsys.readouterr().err


def test_rules_can_be_chosen_by_area_and_prefix(bare_environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--select", "MB3", "--format", "json"]) == 0
    by_prefix = json.loads(capsys.readouterr().out)["rules"]
    assert by_prefix
    assert all(rule["id"].startswith("MB3") for rule in by_prefix)
    assert main(["rules", "--select", "memory", "--format", "json"]) == 0
    assert {rule["area"] for rule in json.loads(capsys.readouterr().out)["rules"]} == {"memory"}


def test_a_broken_rule_pack_is_named_with_its_line(bare_environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bare_environment / "mblint.toml").write_text('extend-rules = ["mine"]')
    assert main(["rules"]) == 2
    assert "no such file or folder" in capsys.readouterr().err
    (bare_environment / "mine").mkdir()
    (bare_environment / "mine" / "a.yaml").write_text("id: MB1\nnam: x\n")
    assert main(["rules"]) == 2
    err = capsys.readouterr().err
    assert "a.yaml:" in err
    assert all(line.startswith("mblint: error: ") for line in err.splitlines())


RULE_OF_ONE_S_OWN = """\
id: ACME001
name: too-many-stages
title: More pipeline stages than our cluster has racks
severity: warning
outcome: slow
when: parallel.pp > 4
message: pipeline_model_parallel_size = {parallel.pp}, and there are 4 racks
blame: [model.pipeline_model_parallel_size]
fixes:
  - {title: "Use {new}", set: {model.pipeline_model_parallel_size: 4}, safety: unsafe}
why: |
  Every stage of a pipeline stands in a rack of its own here, and what goes between more than four of them goes over a slow link.
references: ["our cluster handbook, chapter 4"]
examples:
  fails:
    - {set: {model.pipeline_model_parallel_size: 8}}
  passes:
    - {set: {model.pipeline_model_parallel_size: 4}}
  undecided:
    - {set: {}, unknown: [model.pipeline_model_parallel_size]}
"""


@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [
        ("", "", ""),
        ("parallel.pp > 4", "parallel.pp > 8", "fails 1: the rule is silent"),
        ("parallel.pp > 4", "parallel.pp > 3", "passes 1: it is reported: pipeline_model_parallel_size = 4"),
        ("parallel.pp > 4", "parallel.pp > 3", "fails 1: the fix 'Use 4' leaves the finding there"),
        ("size: 8}}", "size: 8}, severity: error}", "fails 1: it is reported as warning, not as error"),
        ("size: 8}}", "size: 8}, message: nine}", "fails 1: the message does not have 'nine'"),
        ("size: 8}}", "size: 8}, also: [MB301]}", "fails 1: `also` names MB301, which is not reported"),
        ("size: 8}}", "size: 8, model.cpu_offloading: true, model.cpu_offloading_num_layers: 2}}", "fails 1: it has other errors too: MB301;"),
        ("set: {model.pipeline_model_parallel_size: 4}, safety", "set: {model.pipeline_model_parallel_size: 7}, safety", "leaves the finding there"),
        ("size: 4}}\n", "size: 4}, unknown: [model.pipeline_model_parallel_size]}\n", "passes 1: it cannot be decided"),
        ("set: {}, unknown: [model.pipeline_model_parallel_size]", "set: {}", "undecided 1: nothing of it is undecided"),
        ("set: {}, unknown", "base: nix, set: {}, unknown", "undecided 1: no base is named nix; there are: none, dense"),
    ],
)  # fmt: skip
def test_examples_of_ones_own_rules_are_run(
    bare_environment: Path, capsys: pytest.CaptureFixture[str], wrong: str, right: str, said: str
) -> None:
    text = RULE_OF_ONE_S_OWN.replace(wrong, right, 1) if wrong else RULE_OF_ONE_S_OWN
    assert (text != RULE_OF_ONE_S_OWN) is bool(wrong)
    (bare_environment / "lint").mkdir()
    (bare_environment / "lint" / "racks.yaml").write_text(text)
    assert main(["rules", "--test", "lint"]) == (1 if said else 0)
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith("1 rule, 3 examples; " + ("" if said else "all hold"))
    assert said in out and out.startswith(f"{Path('lint/racks.yaml')}: ACME001 too-many-stages, " if said else "1 rule")
    (bare_environment / "mblint.toml").write_text('extend-rules = ["lint"]')
    assert main(["rules", "--test"]) == (1 if said else 0)
    assert capsys.readouterr().out == out
    assert main(["rules", "--test", "lint/racks.yaml"]) == (1 if said else 0)
    assert capsys.readouterr().out == out


def test_no_rule_file_to_test_is_said_in_a_line(bare_environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (([], "there is no rule file to test; name one, or set extend-rules"), (["nix.yaml"], "no such file or folder")):
        assert main(["rules", "--test", *words]) == 2
        err = capsys.readouterr().err
        assert said in err and len(err.splitlines()) == 1


def test_upstream_list_path_and_remove(bare_environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["upstream", "list"]) == 0
    assert "nothing fetched in" in capsys.readouterr().out
    assert main(["upstream", "path"]) == 2
    assert "run `mblint upstream fetch`" in capsys.readouterr().err

    old, new = put_copy("0.5.1", "0.18.0"), put_copy("0.6.2", "0.19.2")
    assert main(["upstream", "list"]) == 0
    out = capsys.readouterr().out
    assert out.index(str(new)) < out.index(str(old))
    assert "used here: megatron-bridge 0.6.2 + megatron-core 0.19.2 (fetched copy)" in out
    assert main(["upstream", "list", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [copy["path"] for copy in data["copies"]] == [str(new), str(old)]
    assert data["known"]["0.6.2"] == "0.19.2"

    for words, path in (((), new), (("0.5.1",), old), (("0.6.2", "--core", "0.19.2"), new)):
        assert main(["upstream", "path", *words]) == 0
        assert capsys.readouterr().out == f"{path}\n"
    assert main(["upstream", "path", "0.6.2", "--core", "0.1.0"]) == 2

    assert main(["upstream", "remove", "0.5.1"]) == 0
    assert (old.exists(), new.exists()) == (False, True)
    assert main(["upstream", "remove", "--all"]) == 0
    assert list(upstream_folder().iterdir()) == []


def test_settings_are_shown_with_their_file(bare_environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bare_environment / "mblint.toml").write_text('gpu = "h100"')
    assert main(["settings"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "# mblint.toml"
    assert 'gpu = "h100"  # set' in lines
    assert 'fail-on = "warning"' in lines
    assert main(["settings", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["properties"]["fail-on"]["enum"] == [
        "error",
        "warning",
        "advice",
        "never",
    ]
