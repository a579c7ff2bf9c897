"""A project whose runs remember."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def empty_project(tmp_path: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with settings for H100 GPUs, a cache of its own, and the real release."""
    monkeypatch.setenv("MBLINT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("MBLINT_NO_CACHE", raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "mblint.toml").write_text(f'upstream = "{upstream}"\ngpu = "h100"\n')
    return folder
