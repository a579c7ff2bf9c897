"""The clients in editors/: Neovim with the shipped configuration, the VS Code extension built, Helix's table read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from .kit import RECIPE, line_of, project

EDITORS = Path(__file__).resolve().parents[2] / "editors"
BROKEN_LAYERS = RECIPE.replace("num_layers=24", "num_layers=22")


def neovim() -> str:
    """A Neovim that knows `vim.lsp.config`; skips the test where there is none."""
    beside = Path(sys.executable).with_name("nvim")
    found = str(beside) if beside.exists() else shutil.which("nvim")
    if found is None:
        pytest.skip("no Neovim on this machine")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    if tuple(int(part) for part in version.lstrip("v").split("-")[0].split(".")[:2]) < (0, 11):
        pytest.skip(f"Neovim {version} is older than the configuration")
    return found


def mblint(folder: Path) -> Path:
    """An executable `mblint` of this interpreter."""
    program = folder / "mblint"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mblint "$@"\n')
    program.chmod(0o755)
    return program


def test_neovim_shows_all_that_the_server_has(tmp_path: Path, upstream: Path) -> None:
    nvim = neovim()
    root = project(tmp_path / "project", upstream)
    (root / "recipe.py").write_text(BROKEN_LAYERS)
    environment = {
        **os.environ, "MBLINT": str(mblint(tmp_path)), "MBLINT_FROM": "num_layers=22", "MBLINT_TO": "num_layers=24",
        "XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_STATE_HOME": str(tmp_path / "state"), "XDG_DATA_HOME": str(tmp_path / "data"),
    }  # fmt: skip
    line = line_of(BROKEN_LAYERS, "pipeline_model") + 1
    command = [nvim, "--headless", "-u", "NONE", "-l", str(EDITORS / "neovim" / "check.lua"), "recipe.py", str(line), "20"]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=240, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert f"diagnostic MB201 {line}:5" in said
    assert "hover **model.pipeline_model_parallel_size**" in said
    assert "lens TP 1 · PP 4 · CP 1 · EP 1 · DP 2 on 8 h100" in said
    assert "action Use 2 pipeline stages" in said and "action Ignore MB201 here" in said
    assert "mended MB201" in said
    assert (root / "recipe.py").read_text() == BROKEN_LAYERS


@pytest.mark.network
def test_the_vscode_extension_is_sound_and_builds(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("no npm on this machine")
    folder = tmp_path / "vscode"
    shutil.copytree(EDITORS / "vscode", folder, ignore=shutil.ignore_patterns("node_modules", "dist", "*.vsix"))
    quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    installed = subprocess.run(["npm", "ci", *quiet], cwd=folder, capture_output=True, text=True, timeout=400, check=False)
    if installed.returncode:
        pytest.skip(f"npm could not install: {installed.stderr.strip().splitlines()[-1:]}")
    done = subprocess.run(["npm", "test"], cwd=folder, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the extension loads, and finds its command" in done.stdout


def test_helix_starts_the_command_that_there_is() -> None:
    from mblint.cli.main import COMMANDS

    table = tomllib.loads((EDITORS / "helix" / "languages.toml").read_text())
    server = table["language-server"]["mblint"]
    assert server["command"] == "mblint" and server["args"] == ["server"] and "server" in COMMANDS
    assert {language["name"] for language in table["language"]} == {"python", "yaml", "bash"}
    assert all("mblint" in language["language-servers"] for language in table["language"])
