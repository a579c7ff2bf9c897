"""Runs `mblint check` in this process with one session, so that upstream is read once."""

from __future__ import annotations

import argparse
import io
import json
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from mblint.cli import check_run, common_run, diff_run
from mblint.cli.main import main
from mblint.launch.session import Session

SESSIONS: dict[str, Session] = {}
PLACE: dict[str, Path] = {}


@pytest.fixture
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder, the same one for every test: what was read of upstream for it is still known."""
    if "workplace" not in PLACE:
        PLACE["workplace"] = tmp_path_factory.mktemp("place") / "my recipes"
    folder = PLACE["workplace"]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


@pytest.fixture
def check(upstream: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """check(folder, *options) -> (exit code, the JSON report or the text, standard error)."""
    for name in ("CI", "GITHUB_ACTIONS", "GITHUB_BASE_REF", "PRE_COMMIT", "PRE_COMMIT_FROM_REF", "GITHUB_HEAD_REF"):
        monkeypatch.delenv(name, raising=False)

    def open_session(args: Any, paths: list[Path]) -> tuple[Any, Session]:
        loaded = common_run.settings_of(args)
        roots = common_run.project_roots(loaded, paths)
        key = str(loaded.root)
        if key not in SESSIONS:
            located = common_run.upstream_of(argparse.Namespace(**{**vars(args), "upstream": str(upstream)}), loaded, paths)
            for other in [root for root in SESSIONS if root != str(PLACE.get("workplace"))]:
                del SESSIONS[other]
            SESSIONS[key] = Session(located, roots, common_run.facts_of(loaded, located))
        SESSIONS[key].reread()
        return loaded, SESSIONS[key]

    for module in (check_run, diff_run):
        monkeypatch.setattr(module, "open_session", open_session)

    def run(folder: Path, *options: str, command: str = "check", parse: bool = True) -> tuple[int, Any, str]:
        monkeypatch.chdir(folder)
        out, err = io.StringIO(), io.StringIO()
        shape = ["--format", "json"] if parse else []
        with redirect_stdout(out), redirect_stderr(err):
            code = main([command, *options, "-j", "1", *shape])
        text = out.getvalue()
        return code, json.loads(text) if parse and text.startswith("{") else text, err.getvalue()

    return run
