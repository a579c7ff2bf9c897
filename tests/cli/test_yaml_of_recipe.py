"""YAML files of overrides: how people say which recipe they belong to, and what is said where they do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mblint.cli.main import main

RECIPE = """\
from megatron.bridge.recipes.llama.h100.llama3 import llama3_8b_pretrain_2gpu_h100_bf16_config


def mine_config():
    return llama3_8b_pretrain_2gpu_h100_bf16_config()
"""
REMEDY = "a YAML file of overrides belongs to a recipe: give --recipe NAME, or write a line `# mblint: recipe=NAME` into it"


@pytest.fixture
def project(bare_environment: Path) -> Path:
    (bare_environment / "recipes").mkdir()
    (bare_environment / "recipes" / "mine.py").write_text(RECIPE)
    (bare_environment / "small.yaml").write_text("model:\n  num_layer: 16\n")
    (bare_environment / "broken.yaml").write_text("model:\n  a: [1, 2\n  b: 3\n")
    (bare_environment / "mblint.toml").write_text('upstream = "none"\n')
    return bare_environment


@pytest.mark.parametrize("command", ["check", "report", "explain"])
def test_the_remedy_names_both_ways(command: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "small.yaml"]) == 4
    assert capsys.readouterr().err.endswith(f"small.yaml{': no launch in it' if command == 'explain' else ''}; {REMEDY}\n")


def test_a_file_named_beside_others_is_not_left_out_in_silence(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "small.yaml", "recipes/mine.py"])
    assert capsys.readouterr().err == f"mblint: small.yaml: no launch in it; {REMEDY}\n"
    for quiet in (["--allow-empty"], ["-q"]):
        main(["check", "small.yaml", "recipes/mine.py", *quiet])
        assert capsys.readouterr().err == ""
    main(["check", "."])
    assert capsys.readouterr().err == ""


NAMES = ["mine_config", "mine:mine_config", "recipes.mine:mine_config", "recipes/mine.py:mine_config"]


@pytest.mark.parametrize("name", [*NAMES, "recipes/mine.py"])
def test_every_spelling_of_a_recipe(name: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "small.yaml", "--recipe", name, "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [(one["rule"], one["spans"][0]["line"]) for one in found if one["severity"] == "error"] == [("MB803", 2)]
    assert main(["explain", "small.yaml", "--recipe", name, "--key", "model.num_layers"]) == 0


@pytest.mark.parametrize("name", NAMES)
def test_every_spelling_in_a_comment(name: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "small.yaml").write_text(f"# mblint: recipe={name}\nmodel:\n  num_layer: 16\n")
    assert main(["check", "small.yaml", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [(one["rule"], one["spans"][0]["line"]) for one in found if one["severity"] == "error"] == [("MB803", 3)]


def test_a_name_that_no_recipe_has(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "small.yaml", "--recipe", "mine_confg"]) == 2
    assert capsys.readouterr().err == "mblint: error: no recipe is called mine_confg; did you mean mine_config?\n"


def test_a_broken_file_with_a_recipe_is_told_with_its_place(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "broken.yaml", "--recipe", "mine_config", "--format", "json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["rule"], found["spans"][0]["line"], found["spans"][0]["column"]) == ("MB901", 3, 4)
