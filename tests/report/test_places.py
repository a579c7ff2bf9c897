"""Paths in reports: services count them from the repository's root, terminals from the working folder, wherever the settings are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mblint.cli.main import main

RECIPE = """\
from megatron.bridge.training.config import ConfigContainer


def broken_config() -> ConfigContainer:
    raise ValueError("never")
"""


@pytest.fixture
def training(bare_environment: Path) -> Path:
    """A folder of a larger repository, with settings of its own."""
    folder = bare_environment / "training"
    (folder / "recipes").mkdir(parents=True)
    (folder / "recipes" / "own.py").write_text(RECIPE)
    (folder / "mblint.toml").write_text('upstream = "none"\n')
    return folder


def paths(text: str) -> set[str]:
    return set(re.findall(r"[\w./-]*own\.py", text))


@pytest.mark.parametrize("name", ["github", "sarif", "gitlab", "rdjson", "junit", "markdown"])
def test_services_find_the_file_below_the_repository(
    name: str, training: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--config", "training/mblint.toml", "--format", name, "training"]) == 1
    assert paths(capsys.readouterr().out) == {"training/recipes/own.py"}
    monkeypatch.chdir(training / "recipes")
    assert main(["check", "--format", name, "."]) == 1
    assert paths(capsys.readouterr().out) == {"training/recipes/own.py"}


@pytest.mark.parametrize("name", ["full", "concise"])
@pytest.mark.parametrize(("folder", "shown"), [(".", "recipes/own.py"), ("recipes", "own.py"), ("..", "training/recipes/own.py")])
def test_terminals_find_the_file_from_the_working_folder(
    name: str, folder: str, shown: str, training: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(training / folder)
    config = ["--config", str(training / "mblint.toml")]
    assert main(["check", *config, "--format", name, str(training)]) == 1
    assert paths(capsys.readouterr().out) == {shown}
    assert (Path.cwd() / shown).is_file()
