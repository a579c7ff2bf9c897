"""Fixtures that several folders of tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

os.environ["MBLINT_NO_CACHE"] = "1"  # what one test found is no answer to another; the tests of the cache switch it on

NO_UPSTREAM = "no upstream source: "
"""How the reason of each test begins that was skipped for want of it; the summary counts them."""


@pytest.fixture(scope="session")
def user_cache() -> str | None:
    """MBLINT_CACHE_DIR as it was before any test changed it."""
    return os.environ.get("MBLINT_CACHE_DIR")


@pytest.fixture(scope="session")
def fetched(user_cache: str | None):  # type: ignore[no-untyped-def]
    """Gives the folder of a fetched pair by version, fetching it first; skips the test, loudly, when it cannot."""
    failures: dict[tuple[str, ...], str] = {}

    def get(bridge: str = "0.6.2", core: str | None = None) -> Path:
        words = (bridge, *(("--core", core) if core else ()))
        if words not in failures:
            environment = {key: value for key, value in os.environ.items() if key != "MBLINT_CACHE_DIR"}
            if user_cache is not None:
                environment["MBLINT_CACHE_DIR"] = user_cache
            for action in ("fetch", "path"):
                done = subprocess.run(
                    [sys.executable, "-m", "mblint", "upstream", action, *words],
                    capture_output=True, text=True, env=environment, check=False,
                )  # fmt: skip
                if done.returncode == 2:
                    failures[words] = done.stderr.strip().splitlines()[-1]
                    break
                assert done.returncode == 0, done.stderr
            else:
                return Path(done.stdout.strip())
        pytest.skip(NO_UPSTREAM + failures[words])

    return get


@pytest.fixture(scope="session")
def upstream(fetched) -> Path:  # type: ignore[no-untyped-def]
    """Folder with the real source of megatron-bridge 0.6.2 and megatron-core 0.19.2."""
    path: Path = fetched("0.6.2")
    return path


def pytest_terminal_summary(terminalreporter) -> None:  # type: ignore[no-untyped-def]
    """Say loudly what was not tested."""
    skipped = [
        report
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple) and NO_UPSTREAM in str(report.longrepr[2])
    ]
    if skipped:
        reason = str(skipped[0].longrepr[2]).partition(NO_UPSTREAM)[2]
        terminalreporter.write_sep("!", f"{len(skipped)} tests were SKIPPED: the real upstream is missing", red=True)
        terminalreporter.write_line(f"They judge megatron-bridge itself, and it could not be fetched: {reason}")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder for this test alone."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("MBLINT_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def bare_environment(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder in which nothing of this machine is found: no environment, no copy. Gives the folder."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("mblint.upstream.environments.own_folders", list)
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    project = tmp_path / "project"
    project.mkdir()
    (project / ".git").mkdir()
    monkeypatch.chdir(project)
    return project
