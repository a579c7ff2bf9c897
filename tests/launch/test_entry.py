"""Programs that hand a config to a trainer, with the words that scripts start them with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mblint.cli.main import main

PROGRAM = """
import argparse
import os
from pathlib import Path

from omegaconf import OmegaConf

from megatron.bridge.recipes.llama.h100.llama3 import llama3_8b_pretrain_2gpu_h100_bf16_config as base
from megatron.bridge.training.gpt_step import forward_step
from megatron.bridge.training.pretrain import pretrain
from megatron.bridge.training.utils.omegaconf_utils import (
    apply_overrides, create_omegaconf_dict_config, parse_hydra_overrides,
)

FILE = Path(__file__).parent.resolve() / "conf" / "small.yaml"


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config-file", type=str, default=str(FILE))
    parser.add_argument("--tp", type=int, default=2)
    parser.add_argument("--sp", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1])
    return parser.parse_known_args()


def main():
    args, words = arguments()
    cfg = base()
    cfg.model.tensor_model_parallel_size = args.tp
    cfg.model.sequence_parallel = args.sp
    cfg.train.global_batch_size = int(os.environ.get("GBS", "96"))
    cfg.train.micro_batch_size = args.sizes[-1]
    tree, excluded = create_omegaconf_dict_config(cfg)
    if args.config_file:
        tree = OmegaConf.merge(tree, OmegaConf.load(args.config_file))
    if words:
        tree = parse_hydra_overrides(tree, words)
    apply_overrides(cfg, OmegaConf.to_container(tree, resolve=True), excluded)
    pretrain(config=cfg, forward_step_func=forward_step)


if __name__ == "__main__":
    main()
"""
YAML = "model:\n  seq_length: 4096\n  sequence_paralell: true\ndataset:\n  seq_length: 4096\n"
SCRIPT = """#!/bin/bash
export GBS=256
torchrun --nnodes=2 --nproc_per_node=8 train.py --tp 4 --sizes 1 2 --no-sp \\
    model.pipeline_model_parallel_size=3
"""


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "small.yaml").write_text(YAML)
    (tmp_path / "run.sh").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def findings(capsys: pytest.CaptureFixture[str], upstream: Path, *words: str) -> list[dict[str, Any]]:
    main(["check", *words, "--isolated", "--upstream", str(upstream), "--gpu", "h100", "--format", "json", "-j1"])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["findings"]
    return found


@pytest.mark.upstream
def test_a_program_that_nobody_starts_has_its_defaults(repo: Path, upstream: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["explain", "train.py:main", "--flat", "--format", "json", "--isolated", "--upstream", str(upstream)])
    config = json.loads(capsys.readouterr().out)["config"]
    assert config["model.tensor_model_parallel_size"] == 2 and config["model.sequence_parallel"] is True
    assert config["train.global_batch_size"] == 96 and config["model.seq_length"] == 4096
    found = findings(capsys, upstream, "train.py")
    (typo,) = [one for one in found if one["rule"] == "MB803"]
    place = typo["spans"][0]
    assert (Path(place["path"]).name, place["line"]) == ("small.yaml", 3)


@pytest.mark.upstream
def test_a_script_gives_a_program_its_words(repo: Path, upstream: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = findings(capsys, upstream, ".")
    (grid,) = [one for one in found if one["rule"] == "MB110"]
    assert grid["launch"] == "run.sh: run.sh:3"
    assert "4 x 3 x 2 needs 24 GPUs, the launch has 16" in grid["message"]
    assert (Path(grid["spans"][0]["path"]).name, grid["spans"][0]["line"]) == ("run.sh", 4)


@pytest.mark.upstream
def test_a_fix_stands_before_the_trainer_gets_the_config(repo: Path, upstream: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = repo / "alone.py"
    program.write_text(
        "from megatron.bridge.recipes.llama.h100.llama3 import llama3_70b_pretrain_32gpu_h100_bf16_config as base\n"
        "from megatron.bridge.training.pretrain import pretrain\n\n\n"
        "def main():\n    cfg = base()\n    print(cfg)\n    part = cfg.model\n"
        "    part.cpu_offloading = bool(1)\n    part.cpu_offloading_num_layers = 20\n    pretrain(cfg, None)\n"
    )
    code = main(
        [
            "check",
            "alone.py",
            "--isolated",
            "--upstream",
            str(upstream),
            "--gpu",
            "h100",
            "--world-size",
            "32",
            "--fix",
            "--unsafe-fixes",
            "-j1",
        ]
    )
    text = program.read_text()
    assert "cpu_offloading = False" in text, capsys.readouterr().out
    assert text.index("cpu_offloading = False") < text.index("pretrain(cfg")
    assert "MB301" not in capsys.readouterr().out and code in (0, 1)


@pytest.mark.upstream
def test_a_config_that_is_not_known_is_said(tmp_path: Path, upstream: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "odd.py"
    program.write_text(
        "from megatron.bridge.training.pretrain import pretrain\nimport other\n\ndef main():\n    pretrain(other.made(), None)\n"
    )
    (found,) = findings(capsys, upstream, str(program))
    assert found["rule"] == "MB904" and "the config that it trains with is not known" in found["message"]
