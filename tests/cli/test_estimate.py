"""The command that estimates memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mblint.cli.main import main

RECIPE = """from megatron.bridge.recipes.llama.h100.llama3 import llama3_8b_pretrain_2gpu_h100_bf16_config


def ours_config():
    cfg = llama3_8b_pretrain_2gpu_h100_bf16_config()
    cfg.model.tensor_model_parallel_size = {tensor}
    return cfg
"""


@pytest.mark.parametrize(("tensor", "starts"), [(2, True), (3, False)])
def test_what_does_not_start_is_said(tmp_path: Path, upstream: Path, capsys: pytest.CaptureFixture[str], tensor: int, starts: bool) -> None:
    (tmp_path / "ours.py").write_text(RECIPE.format(tensor=tensor))
    words = ["estimate", str(tmp_path / "ours.py"), "--upstream", str(upstream), "--isolated", "--world-size", "8", "--gpu", "h100"]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert ("it does not start: " in text) is not starts
    assert main([*words, "--format", "json"]) == 0
    refused = json.loads(capsys.readouterr().out)["launches"][0]["refused"]
    assert refused is None if starts else "8" in refused and "3" in refused
