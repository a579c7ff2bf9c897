"""The fixes of a finding that many launches share are proven for the first of them, whatever was remembered before."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SHARED = """
from megatron.bridge.recipes.llama import llama32_1b_pretrain_config


def started():
    cfg = llama32_1b_pretrain_config()
    cfg.model.tensor_model_parallel_size = 2
    cfg.train.global_batch_size = 100
    return cfg
"""
RECIPE = """
from megatron.bridge.training.config import ConfigContainer

from shared import started


def {name}_config() -> ConfigContainer:
    return started()
"""


@pytest.fixture
def project(empty_project: Path) -> Path:
    """Three recipes of one helper, whose batch does not divide; the helper is a recipe too."""
    with (empty_project / "mblint.toml").open("a") as settings:
        settings.write('world-size = 48\nselect = ["MB701"]\n')
    (empty_project / "shared.py").write_text(SHARED)
    for name in ("alpha", "beta", "gamma"):
        (empty_project / f"{name}.py").write_text(RECIPE.format(name=name))
    return empty_project


def check(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "mblint", "check", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def fixes(folder: Path, *options: str) -> dict[str, int]:
    found = json.loads(check(folder, "--format", "json", *options))["findings"]
    return {finding["launch"].partition(":")[0]: len(finding["fixes"]) for finding in found if finding["rule"] == "MB701"}


def test_one_fix_is_shown_of_what_three_launches_share(project: Path) -> None:
    cold = check(project, ".", "--no-cache")
    assert cold.count("MB701 ") == 1 and "alpha_config" in cold
    assert cold.count("= fix: ") == 1 and "1 fixable" in cold
    assert check(project, ".") == check(project, ".") == cold


def test_each_file_alone_has_its_fixes_in_any_order(project: Path) -> None:
    cold = {name: check(project, name, "--no-cache") for name in ("gamma.py", "beta.py", ".")}
    assert all("= fix: " in text for text in cold.values())
    for name in (".", "gamma.py", "beta.py", ".", "beta.py", "gamma.py"):
        assert check(project, name) == cold[name], name


def test_reports_for_programs_have_the_fixes_of_every_launch(project: Path) -> None:
    check(project, ".")  # leaves those of beta and gamma unproven in memory
    every = fixes(project, ".", "--no-cache")
    assert every == {"alpha": 1, "beta": 1, "gamma": 1, "shared": 1}
    assert fixes(project, ".") == every
    assert check(project, ".") == check(project, ".", "--no-cache")
