"""No fix that goes by a wrong value is applied unasked, and none changes what the launch does unsaid."""

from __future__ import annotations

from pathlib import Path

import pytest

from mblint.cli.main import main

HEAD = "from megatron.bridge.perf_recipes.llama.h100.llama3 import llama3_8b_pretrain_8gpu_h100_bf16_config as start\n\n\n"
EVALUATION = (
    HEAD + "def ours_config():\n    cfg = start()\n    cfg.train.eval_iters = 7\n    cfg.train.eval_interval = 100\n    return cfg\n"
)
SWITCH = HEAD + "def ours_config():\n    cfg = start()\n    cfg.model.sequence_parallel = True\n    return cfg\n"
EXPERTS = """from megatron.bridge.perf_recipes.qwen.h100.qwen3_moe import qwen3_30b_a3b_pretrain_16gpu_h100_bf16_config as start


def ours_config():
    cfg = start()
    cfg.model.expert_model_parallel_size = 12
    return cfg
"""
LAYOUT = """from megatron.bridge.perf_recipes.kimi.gb300.kimi_k2 import kimi_k2_pretrain_256gpu_gb300_bf16_config as start


def ours_config():
    cfg = start()
    cfg.model.pipeline_model_parallel_size = 3
    return cfg
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def fixed(folder: Path, source: str, *options: str) -> str:
    file = folder / "ours.py"
    file.write_text(source)
    main(["check", str(file), "--upstream", "none", "--isolated", "--fix-only", "--gpu", "h100", *options])
    return file.read_text()


def test_evaluation_moves_with_its_values(tmp_path: Path) -> None:
    text = fixed(tmp_path, EVALUATION, "--world-size", "8", "--select", "MB810")
    assert "cfg.validation.eval_iters = 7\n" in text and "cfg.validation.eval_interval = 100\n" in text
    assert "eval_iters = None" in text


def test_a_switch_that_the_launch_turns_off_is_turned_off(tmp_path: Path) -> None:
    text = fixed(tmp_path, SWITCH, "--world-size", "8", "--select", "MB124")
    assert "cfg.model.sequence_parallel = False\n" in text


def test_a_fix_by_a_wrong_value_waits(tmp_path: Path) -> None:
    assert "env_vars" not in fixed(tmp_path, EXPERTS, "--world-size", "16")
    assert "NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN" in fixed(tmp_path, EXPERTS, "--world-size", "16", "--select", "MB516")


def test_another_error_of_the_recipe_as_a_whole_holds_no_fix_back(tmp_path: Path, upstream: Path) -> None:
    words = ("--world-size", "256", "--select", "MB001,MB205,MB810", "--upstream", str(upstream))
    assert "cfg.validation.eval_iters = 0\n" in fixed(tmp_path, LAYOUT, *words)
