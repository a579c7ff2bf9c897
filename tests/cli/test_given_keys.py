"""Keys that the command line gives: one that no field has is told, whichever command it is given to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mblint.cli.main import main

RECIPE = """\
from megatron.bridge.recipes.llama.h100.llama3 import llama3_8b_pretrain_2gpu_h100_bf16_config


def {name}_config():
    cfg = llama3_8b_pretrain_2gpu_h100_bf16_config()
    cfg.model.made_here = 1
    return cfg
"""
MEANT = "GPTModelProvider has no field tensor_parallel_size; did you mean model.tensor_model_parallel_size?"


@pytest.fixture
def project(bare_environment: Path) -> Path:
    (bare_environment / "recipes").mkdir()
    for name in ("mine", "other"):
        (bare_environment / "recipes" / f"{name}.py").write_text(RECIPE.format(name=name))
    (bare_environment / "run.log").write_text("CUDA out of memory. Tried to allocate 2.00 GiB\n")
    (bare_environment / "mblint.toml").write_text('upstream = "none"\ngpu = "h100"\n')
    return bare_environment


@pytest.mark.parametrize(
    "words",
    [
        ["estimate", "mine_config", "--set"],
        ["estimate", "mine_config", "--what-if"],
        ["suggest", "mine_config", "--set"],
        ["explain", "mine_config", "--set"],
        ["diagnose", "run.log", "--recipe", "mine_config", "--set"],
    ],
    ids=lambda words: f"{words[0]} {words[-1]}",
)
def test_a_question_about_one_launch_is_not_answered_for_another(
    words: list[str], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "model.tensor_parallel_size=2"]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", f"mblint: error: {words[-1]} model.tensor_parallel_size: {MEANT}\n")


def test_check_says_it_of_each_launch_and_goes_on(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "recipes", "--set", "model.tensor_parallel_size=2", "--format", "json", "-j1"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {(one["rule"], one["severity"], one["message"]) for one in found} == {
        ("MB803", "error", f"--set model.tensor_parallel_size: {MEANT}")
    }
    assert {Path(one["spans"][0]["path"]).name for one in found} == {"mine.py", "other.py"}


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("modle.num_layers", "modle: ConfigContainer has no field modle; did you mean model?"),
        ("train.lr", "train.lr: TrainingConfig has no field lr; did you mean optimizer.lr?"),
        ("train.zzyzx", "train.zzyzx: TrainingConfig has no field zzyzx; `mblint explain RECIPE` lists the keys"),
        ("peft.dim", "peft.dim: peft is null in this config"),
    ],
)
def test_other_keys_that_lead_nowhere(key: str, said: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "mine_config", "--set", f"{key}=2"]) == 2
    assert capsys.readouterr().err.strip().endswith(f"--set {said}")


@pytest.mark.parametrize(
    "key", ["env_vars.NEW_NAME", "model.made_here", "model.num_layers", "dataset.seq_length", "dataset.enable_in_batch_packing"]
)
def test_keys_that_something_holds_pass(key: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "recipes/mine.py", "--set", f"{key}=2", "--format", "json", "--no-estimate"])
    assert "--set" not in capsys.readouterr().out


def test_a_launch_that_cannot_be_evaluated_is_no_fault_of_a_diagnosis(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "run.log", "--recipe", "mine_config", "--set", "peft.dim=4"]) == 0
    assert "no way out: recipes/mine.py:4: --set peft.dim: peft is null in this config" in capsys.readouterr().out


@pytest.mark.upstream
def test_a_name_that_the_release_asks_objects_for_passes(project: Path, upstream: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "recipes/mine.py", "--upstream", str(upstream), "--format", "json", "--no-estimate", "--no-cache"]
    main([*words, "--set", "dataset.enable_in_batch_packing=true"])  # getattr(config.dataset, "enable_in_batch_packing", False)
    assert "--set" not in capsys.readouterr().out
    main([*words, "--set", "dataset.enable_in_batch_paking=true"])
    assert "MB803" in capsys.readouterr().out
