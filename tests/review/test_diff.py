"""`mblint diff`, end to end and format by format."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mblint.cli.main import main
from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.report.diff import render_markdown, render_text
from mblint.review.compare import DiffReport, KeyChange, LaunchDiff, Note, shown
from tests.review.history import commit, git, swap

RECIPES = """\
from megatron.bridge.recipes.llama.h100.llama3 import llama3_8b_pretrain_2gpu_h100_bf16_config as shipped


def first_config():
    cfg = shipped()
    cfg.model.tensor_model_parallel_size = 2
    cfg.train.train_iters = 100
    return cfg


def second_config():
    cfg = shipped()
    cfg.logger.log_interval = 7
    return cfg
"""


@pytest.fixture
def repo(workplace: Path) -> Path:
    folder = workplace
    (folder / "recipes.py").write_text(RECIPES)
    (folder / "other.py").write_text(RECIPES.replace("first", "third").replace("second", "fourth"))
    (folder / "mblint.toml").write_text("world-size = 64\n")
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "First")
    return folder


def _by_name(data: Any) -> dict[str, Any]:
    return {entry["launch"].partition(":")[2]: entry for entry in data["launches"]}


def test_keys_derived_values_and_verdict(repo: Path, check: Callable[..., Any]) -> None:
    swap("recipes.py", ("parallel_size = 2", "parallel_size = 3"))(repo)
    code, data, said = check(repo, "HEAD", command="diff")
    assert code == 0, said
    entry = _by_name(data)["first_config"]
    assert set(_by_name(data)) == {"first_config"}
    assert data["compared"] == 4
    assert entry["keys"]["model.tensor_model_parallel_size"] == {"before": 2, "after": 3}
    assert entry["verdict"] == {"before": "ok", "after": "fails"}
    assert entry["derived"]["parallel.data_parallel_size"] == {"before": 16, "after": {"absent": True}}
    assert any(note["severity"] == "error" for note in entry["appeared"])


def test_what_the_change_costs_is_said(repo: Path, check: Callable[..., Any]) -> None:
    swap("recipes.py", ("parallel_size = 2", "parallel_size = 4"))(repo)
    _, text, _ = check(repo, "HEAD", command="diff", parse=False)
    assert "model.tensor_model_parallel_size   2 -> 4" in text
    assert "DP: 16 -> 8" in text and "estimated GiB" in text
    assert "+ warning MB150" in text
    _, text, _ = check(repo, "HEAD", "--format", "markdown", command="diff", parse=False)
    assert "| `model.tensor_model_parallel_size` | `2` | `4` |" in text and "**MB150" in text


def test_new_deleted_renamed_and_moved_recipes(repo: Path, check: Callable[..., Any]) -> None:
    swap("recipes.py", ("def second_config", "def renamed_config"))(repo)
    text = (repo / "recipes.py").read_text()
    (repo / "recipes.py").write_text(text + "\n\ndef new_config():\n    cfg = shipped()\n    return cfg\n")
    (repo / "other.py").unlink()
    _, data, _ = check(repo, "HEAD", command="diff")
    found = {name: (entry["status"], entry["was"]) for name, entry in _by_name(data).items()}
    assert found == {
        "renamed_config": ("renamed", "recipes:second_config"),
        "new_config": ("new", None),
        "third_config": ("deleted", "other:third_config"),
        "fourth_config": ("deleted", "other:fourth_config"),
    }


def test_between_two_commits_the_work_tree_does_not_count(repo: Path, check: Callable[..., Any]) -> None:
    swap("recipes.py", ("log_interval = 7", "log_interval = 8"))(repo)
    (repo / "extra.py").write_text(RECIPES.replace("first", "fifth").replace("second", "sixth"))
    commit(repo, "Second")
    (repo / "extra.py").unlink()
    swap("recipes.py", ("parallel_size = 2", "parallel_size = 4"))(repo)
    _, data, said = check(repo, "HEAD~1", "HEAD", command="diff")
    found = _by_name(data)
    assert {name: entry["status"] for name, entry in found.items()} == {
        "second_config": "changed",
        "fifth_config": "new",
        "sixth_config": "new",
    }, said
    assert found["second_config"]["keys"] == {"logger.log_interval": {"before": 7, "after": 8}}
    assert _by_name(check(repo, "HEAD~1..HEAD", command="diff")[1]).keys() == found.keys()


def test_refactorings_show_nothing(repo: Path, check: Callable[..., Any]) -> None:
    (repo / "recipes.py").write_text(
        "# moved down\n\n\n" + RECIPES.replace("cfg.train.train_iters = 100", "cfg.train.train_iters = 10 * 10")
    )
    _, text, _ = check(repo, "HEAD", command="diff", parse=False)
    assert text == f"nothing changed; 4 launches compared, HEAD ({git(repo, 'rev-parse', 'HEAD')[:10]}) -> the work tree.\n"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ([], "name one revision or two"),
        (["a", "b", "c"], "name one revision or two"),
        (["HEAD", "--upstream", "0.5.1..0.6.2"], "either revisions or upstream releases"),
        (["--upstream", "..0.6.2"], "name two releases"),
        (["nonsense"], "there is no revision nonsense"),
        (["--path", "nowhere", "HEAD"], "no such file"),
    ],
)
def test_wrong_use_is_one_line(repo: Path, check: Callable[..., Any], words: list[str], hint: str) -> None:
    code, _, said = check(repo, *words, command="diff", parse=False)
    assert code == 2 and said.count("\n") == 1 and hint in said


def test_two_upstream_releases(
    repo: Path, fetched: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fetched("0.5.1")
    fetched("0.6.2")
    (repo / "other.py").unlink()
    (repo / "recipes.py").write_text(
        "from megatron.bridge.recipes.llama import llama3_8b_pretrain_config as shipped\n\n\n"
        "def ours_config():\n    cfg = shipped()\n    cfg.logger.log_interval = 3\n    return cfg\n"
    )
    monkeypatch.chdir(repo)
    assert main(["diff", "--upstream", "0.5.1..0.6.2"]) == 0
    text = capsys.readouterr().out
    assert "megatron-bridge 0.5.1" in text and "-> megatron-bridge 0.6.2" in text
    assert "recipes:ours_config" in text and "log_interval" not in text


# Formats


def _report(**given: Any) -> DiffReport:
    diffs = tuple(LaunchDiff(name=f"m:{name}", status="changed", **given) for name in ("a", "b"))
    return DiffReport("old", "new", diffs, 5, counts={"changed": 2})


def test_launches_that_change_alike_are_shown_once() -> None:
    out = io.StringIO()
    render_text(_report(keys=(KeyChange("model.x", 1, 2),)), out)
    assert out.getvalue() == "m:a\nm:b\n  model.x  1 -> 2\n\n2 changed; 5 launches compared, old -> new.\n"


def test_markdown_shows_hostile_text_as_text() -> None:
    out = io.StringIO()
    note = Note("MB1", "x-y", "error", "a | <b> `c` @team\n# d", ("/r/x.py", 3))
    render_markdown(_report(keys=(KeyChange("k", "a|b`", "<script>"),), appeared=(note,)), out)
    text = out.getvalue()
    assert "| `k` | `` a\\|b` `` | `<script>` |" in text
    assert "a \\| \\<b\\> \\`c\\` \\@team # d" in text


def test_a_comment_is_never_too_long() -> None:
    diffs = tuple(LaunchDiff(f"m:{n}", "changed", keys=(KeyChange(f"k{n}", "x" * 150, "y" * 150),)) for n in range(2000))
    out = io.StringIO()
    render_markdown(DiffReport("a", "b", diffs, 2000, counts={"changed": 2000}), out)
    assert len(out.getvalue()) < 65_000 and "more launches do not fit here" in out.getvalue()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        ([20, 20, 20, 20], "4 x 20"),
        ([1, 2], "[1, 2]"),
        (ABSENT, "-"),
        (Unknown("why"), "unknown"),
        (0.5, "0.5"),
    ],
)
def test_values_as_they_are_shown(value: object, text: str) -> None:
    assert shown(value) == text
