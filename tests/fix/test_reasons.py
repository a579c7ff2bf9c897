"""Why a fix is not offered, and the renaming of keys that no field has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mblint.cli.main import main

pytestmark = pytest.mark.upstream

RECIPE = """from megatron.bridge.recipes.llama.h100.llama3 import llama3_70b_pretrain_32gpu_h100_bf16_config as start
from megatron.bridge.training.config import ConfigContainer


def my_config() -> ConfigContainer:
    cfg = start()
{lines}
    return cfg
"""
SCRIPT = """#!/bin/bash
srun python scripts/training/run_recipe.py --recipe llama3_70b_pretrain_32gpu_h100_bf16_config \\
    --config-file ours.yaml \\
    ++train.micro_batchsize=1 \\
    +model.context_paralel_size=2
"""
YAML = """# ours
train:
  train_itters: 400000  # a month
"""


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, upstream: Path) -> Path:
    (tmp_path / "mblint.toml").write_text(f'upstream = "{upstream}"\ngpu = "h100"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def findings(capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    main(["check", ".", "--format", "json", "-j1", "--no-cache", *options])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["findings"]
    return found


def test_a_fix_that_would_bring_another_error_says_which(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The format is wrong for Megatron-FSDP, and 70 billion parameters need more than 8 GPUs: that is judged of launches that start.
    sizes = (
        "tensor_model_parallel_size = 1",
        "pipeline_model_parallel_size = 1",
        "virtual_pipeline_model_parallel_size = None",
        "context_parallel_size = 1",
    )
    lines = ["cfg.ddp.use_megatron_fsdp = True", "cfg.checkpoint.ckpt_format = 'torch_dist'", *(f"cfg.model.{size}" for size in sizes)]
    (repo / "r.py").write_text(RECIPE.format(lines="\n".join(f"    {line}" for line in lines)))
    options = ["--select", "MB411,MB390", "--world-size", "8"]
    (one,) = findings(capsys, *options)
    assert one["rule"] == "MB411" and one["fixes"] == [] and len(one["no_fix"]) < 200
    assert one["no_fix"].startswith("tried on this launch, Use the format fsdp_dtensor: it brings MB390: at least ")
    main(["check", ".", "-j1", "--no-cache", *options])
    assert f"  = no fix: {one['no_fix']}\n" in capsys.readouterr().out


def test_a_fix_for_the_hand_says_why(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repo / "common.py").write_text(
        "def ours(cfg):\n    for section in [cfg.ddp]:\n        section.data_parallel_sharding_strategy = 'optim_grads'\n"
    )
    (repo / "r.py").write_text("from common import ours\n" + RECIPE.format(lines="    ours(cfg)\n    cfg.dist.use_tp_pp_dp_mapping = True"))
    main(["check", ".", "-j1", "--no-cache", "--select", "MB418"])
    text = capsys.readouterr().out
    assert (
        "fix: Take the setting out [by hand: `ddp.data_parallel_sharding_strategy` is set outside of this recipe, in common:ours]" in text
    )


def test_keys_that_no_field_has_are_renamed_in_yaml_and_on_command_lines(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repo / "ours.yaml").write_text(YAML)
    (repo / "run.sh").write_text(SCRIPT)
    found = [one for one in findings(capsys, "--select", "MB803") if one["rule"] == "MB803"]
    fixes = {next(iter(one["keys"])): one["fixes"] for one in found}
    assert sorted(fixes) == ["model.context_paralel_size", "train.micro_batchsize", "train.train_itters"]
    ((fix,),) = (fixes["train.train_itters"],)
    assert (fix["title"], fix["safety"]) == ("Rename it to train_iters", "unsafe") and fix["changes"]["train.train_iters"] == 400000
    before = main(["check", ".", "--fix", "-j1", "--select", "MB803"])
    assert before == 1 and (repo / "run.sh").read_text() == SCRIPT and (repo / "ours.yaml").read_text() == YAML
    assert main(["check", ".", "--fix", "--unsafe-fixes", "-j1", "--select", "MB803"]) == 0
    script = SCRIPT.replace("micro_batchsize", "micro_batch_size").replace("+model.context_paralel_size", "model.context_parallel_size")
    assert (repo / "run.sh").read_text() == script
    assert (repo / "ours.yaml").read_text() == YAML.replace("train_itters", "train_iters")


def test_a_key_is_not_renamed_to_one_that_is_overridden_too(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repo / "ours.yaml").write_text(YAML + "  train_iters: 5\n")
    (repo / "run.sh").write_text(SCRIPT.partition("    ++")[0].rstrip(" \\\n") + "\n")
    (one,) = findings(capsys, "--select", "MB803")
    assert one["fixes"] == []


def test_a_renaming_that_would_break_the_launch_is_not_offered(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repo / "ours.yaml").write_text("model:\n  tensor_model_paralel_size: 3\n")
    (repo / "run.sh").write_text(SCRIPT.partition("    ++")[0].rstrip(" \\\n") + "\n")
    (one,) = (one for one in findings(capsys) if one["rule"] == "MB803")
    assert one["fixes"] == [] and "Rename it to tensor_model_parallel_size: it brings MB" in one["no_fix"]


def test_an_enum_that_the_file_does_not_import_is_imported(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = RECIPE.format(lines='    cfg.model.attention_backend = "flash"')
    (repo / "r.py").write_text(text)
    main(["check", ".", "--fix", "--unsafe-fixes", "-j1", "--select", "attention-backend-as-text"])
    now = (repo / "r.py").read_text()
    assert "    cfg.model.attention_backend = AttnBackend.flash\n" in now
    assert "\nfrom megatron.core.transformer.enums import AttnBackend\n" in now
    capsys.readouterr()
    assert findings(capsys, "--select", "attention-backend-as-text") == []
