"""The names that people type and copy from reports lead to the recipe, wherever its file is."""

from __future__ import annotations

from pathlib import Path

import pytest

from mblint.cli.main import main

RECIPE = """\
from megatron.bridge.recipes.llama.h100.llama3 import llama3_8b_pretrain_2gpu_h100_bf16_config


def mine_config():
    cfg = llama3_8b_pretrain_2gpu_h100_bf16_config()
    cfg.train.global_batch_size = 64
    return cfg
"""


@pytest.fixture
def project(bare_environment: Path) -> Path:
    (bare_environment / "recipes").mkdir()
    (bare_environment / "recipes" / "mine.py").write_text(RECIPE)
    (bare_environment / "mblint.toml").write_text('upstream = "none"\n')
    return bare_environment


@pytest.mark.parametrize(
    "name", ["mine_config", "mine:mine_config", "recipes.mine:mine_config", "recipes/mine.py", "recipes/mine.py:mine_config"]
)
def test_every_spelling_of_a_recipe_of_the_project(name: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", name, "--key", "train.*"]) == 0
    assert "mine:mine_config" in capsys.readouterr().out


def test_a_slip_names_the_nearest_recipe(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "mine_confg"]) == 2
    assert capsys.readouterr().err == "mblint: error: no recipe is called mine_confg; did you mean mine_config?\n"
    assert main(["explain", "another:mine_config"]) == 2
    assert "module another was not found" in capsys.readouterr().err


def test_two_of_one_name_are_not_guessed_between(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "old").mkdir()
    (project / "old" / "other.py").write_text(RECIPE)
    assert main(["explain", "mine_config"]) == 2
    error = capsys.readouterr().err
    assert "2 recipes are called mine_config" in error
    assert "old/other.py:mine_config" in error and "recipes/mine.py:mine_config" in error
    assert main(["explain", "other:mine_config", "--key", "train.*"]) == 0
