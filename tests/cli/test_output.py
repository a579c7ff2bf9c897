"""Reports in files: the format is that of the ending, and one that no format has is refused before any work."""

from __future__ import annotations

from pathlib import Path

import pytest

from mblint.cli.main import main
from mblint.cli.options import ENDINGS

COMMANDS = {
    "estimate": (["estimate", "mine_config"], {"text", "html", "json"}),
    "report": (["report", "."], {"text", "html", "json"}),
    "diff": (["diff", "HEAD"], {"text", "markdown", "json"}),
}
RECIPE = """\
from megatron.bridge.recipes.llama.h100.llama3 import llama3_8b_pretrain_2gpu_h100_bf16_config


def mine_config():
    return llama3_8b_pretrain_2gpu_h100_bf16_config()
"""


@pytest.fixture
def project(bare_environment: Path) -> Path:
    (bare_environment / "mine.py").write_text(RECIPE)
    (bare_environment / "mblint.toml").write_text('upstream = "none"\n')
    return bare_environment


@pytest.mark.parametrize("name", COMMANDS)
def test_an_ending_that_no_format_has(name: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, formats = COMMANDS[name]
    assert main([*words, "--output", "r.pdf"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("mblint: error: --output r.pdf: no report is written as .pdf; the endings are .txt, ")
    assert error.endswith("; or give --format\n") and all(ENDINGS[one][0] in error for one in formats)
    assert not (project / "r.pdf").exists()


@pytest.mark.parametrize("name", ["estimate", "report"])
def test_the_format_of_an_ending(name: str, project: Path) -> None:
    words, _ = COMMANDS[name]
    for file, start in (("r.html", "<!doctype html>"), ("r.JSON", "{"), ("r.txt", ""), ("r", "")):
        assert main([*words, "--output", file]) == 0
        text = (project / file).read_text()
        assert text.lower().startswith(start) if start else "mine" in text and "<html" not in text
    assert main([*words, "--output", "r.pdf", "--format", "json"]) == 0  # as it is told
    assert (project / "r.pdf").read_text().startswith("{")


def test_a_further_report_of_check_names_its_format(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("r.pdf", "pdf=r.pdf", "sarif="):
        assert main(["check", "--output", text]) == 2
        assert f"{text!r} is not FORMAT=FILE with a format of full, concise, json, " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["estimate", "open_config"], "not known: world_size: the number of GPUs is not known; --world-size N gives it\n"),
        (["estimate", "open_config", "--world-size", "8"], "the GPU type is not known; --gpu TYPE gives it\n"),
        (["suggest", "open_config"], "the number of GPUs is not known; --world-size N gives it\n"),
        (["suggest", "open_config", "--world-size", "8"], "no way out: the GPU type is not known; --gpu TYPE gives it\n"),
    ],
    ids=str,
)
def test_what_is_not_known_names_the_option(words: list[str], said: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "open.py").write_text(RECIPE.replace("mine_config", "open_config"))
    main(words)
    assert said in capsys.readouterr().out


SCRIPT = "torchrun --nproc_per_node 8 scripts/training/run_recipe.py --recipe llama3_8b_pretrain_config train.micro_batch_size=1\n"


@pytest.mark.parametrize("command", ["estimate", "suggest"])
def test_the_launch_of_a_script(command: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "run.sh").write_text(SCRIPT)
    assert main([command, "run.sh", "--gpu", "h100"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("run.sh: llama3_8b_pretrain_config  8 GPUs  h100\n") and "GiB" in shown


def test_a_broken_file_in_a_folder_does_not_end_an_estimate(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "torn.py").write_text("from megatron.bridge import x\nx = (1,\n")
    assert main(["estimate", "."]) == 0
    shown = capsys.readouterr()
    assert shown.err == "mblint: left out: torn.py:2:5: syntax error: '(' was never closed\n" and "mine_config" in shown.out
    assert main(["estimate", "torn.py"]) == 2
    assert capsys.readouterr().err == "mblint: error: torn.py:2:5: syntax error: '(' was never closed\n"


def test_a_model_that_nobody_knows_is_told_once(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = RECIPE.replace("    return ", "    cfg = ").replace("mine_config", "hub_config")
    text += '    cfg.model = AutoBridge.from_hf_pretrained("acme/secret").to_megatron_provider(load_weights=False)\n    return cfg\n'
    (project / "hub.py").write_text("from megatron.bridge import AutoBridge\n" + text)
    reason = "the architecture of acme/secret is not known"
    for command in ("estimate", "suggest"):
        main([command, "hub_config", "--world-size", "8", "--gpu", "h100"])
        shown = capsys.readouterr().out
        assert f"more: {reason}; its config.json gives it, in a folder acme/secret of this project" in shown
        assert shown.count(reason) <= 2  # once for each formula
    main(["check", "hub.py"])
    assert f"could not be decided in 1 launch, most because {reason}; -v says more." in capsys.readouterr().out
