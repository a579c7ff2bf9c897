"""Hostile names, links, devices, permissions and endings of the process."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .kit import GOOD, GOOD_RULE, assert_sound, check, environment, run, write
from .texts import NAMES

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="names and files of POSIX systems")


def test_names(tmp_path: Path) -> None:
    """Every file is checked, and no report passes on what a terminal, a workflow or a page would obey."""
    project = write(tmp_path / "project", {})
    made = 0
    for name in NAMES:
        try:
            with open(os.fsencode(project) + b"/" + os.fsencode(name), "wb") as handle:
                handle.write(GOOD.encode())
            made += 1
        except OSError:  # names that this file system refuses
            continue
    outcome = check(project, tmp_path / "cache")
    assert_sound(outcome, seconds=20)
    found = [finding for finding in outcome.findings if finding["rule"] == GOOD_RULE]
    assert len(found) == made + 1
    annotations = outcome.reports["github"].decode().splitlines()
    assert all(line.startswith("::") or not line.startswith(":") for line in annotations)
    assert not any(line.startswith("::error::x") for line in annotations)
    for line in annotations:
        if line.startswith("::") and "file=" in line:
            properties = line[2:].partition("::")[0].partition(" ")[2]
            assert all(
                part.partition("=")[0] in ("file", "line", "endLine", "col", "endColumn", "title") for part in properties.split(",")
            ), line


@pytest.mark.parametrize("name", ["-a.py", "--fix.py", "a\nb.py", "a%0Ab.py"])
def test_named_files(name: str, tmp_path: Path) -> None:
    project = write(tmp_path / "project", {name: GOOD})
    outcome = check(project, tmp_path / "cache", paths=(name,))
    assert_sound(outcome)
    assert GOOD_RULE in outcome.rules()


def _loop(folder: Path) -> None:
    os.symlink("loop.py", folder / "loop.py")
    os.symlink("there.py", folder / "here.py")
    os.symlink("here.py", folder / "there.py")
    (folder / "deep").mkdir()
    os.symlink("..", folder / "deep" / "up")
    os.symlink(".", folder / "deep" / "same")
    os.symlink("/", folder / "deep" / "root")
    os.symlink("missing_config.py", folder / "dangling.py")


def _pipes(folder: Path) -> None:
    for ending in ("py", "yaml", "sh"):
        os.mkfifo(folder / f"pipe.{ending}")
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(folder)
        server.bind("socket.py")


def _devices(folder: Path) -> None:
    for name in ("zero", "random", "stdin", "tty"):
        for ending in ("py", "yaml", "sh"):
            os.symlink(f"/dev/{name}", folder / f"{name}.{ending}")
    os.symlink("/proc/self/mem", folder / "memory.py")
    os.symlink("/dev/zero", folder / "mblint-baseline.json")


def _folders(folder: Path) -> None:
    for name in ("folder.py", "folder.yaml", "folder.sh"):
        (folder / name).mkdir()


@pytest.mark.parametrize("make", [_loop, _pipes, _folders], ids=lambda make: make.__name__.strip("_"))
def test_odd_files_of_a_folder_are_passed_over(make: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    project = write(tmp_path / "project", {})
    make(project)
    outcome = check(project, tmp_path / "cache")
    assert_sound(outcome)
    assert GOOD_RULE in outcome.rules("good.py")
    assert all("loop" not in str(finding) for finding in outcome.findings)


def test_devices_are_passed_over_or_refused(tmp_path: Path) -> None:
    project = write(tmp_path / "project", {})
    _devices(project)
    outcome = check(project, tmp_path / "cache")
    assert_sound(outcome, (1, 2))
    if outcome.code == 2:  # the baseline is one that cannot be read
        assert "mblint-baseline.json" in outcome.err
        (project / "mblint-baseline.json").unlink()
        outcome = check(project, tmp_path / "cache")
        assert_sound(outcome)
    assert GOOD_RULE in outcome.rules("good.py")


@pytest.mark.parametrize("kind", ["loop", "pipe", "device", "missing", "folder without recipes"])
def test_odd_files_that_are_named_are_said(kind: str, tmp_path: Path) -> None:
    project = write(tmp_path / "project", {})
    path = project / "odd.py"
    if kind == "loop":
        os.symlink("odd.py", path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        os.symlink("/dev/zero", path)
    elif kind == "folder without recipes":
        path.mkdir()
    outcome = run(["check", "--upstream", "none", "odd.py"], project, tmp_path / "cache")
    assert_sound(outcome, (1, 2, 4))
    assert "odd.py" in outcome.out + outcome.err or (kind == "device" and "/dev/zero" in outcome.out)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_unreadable_files_are_said(tmp_path: Path) -> None:
    project = write(tmp_path / "project", {"closed_config.py": GOOD, "closed/inner.py": GOOD})
    (project / "closed_config.py").chmod(0)
    (project / "closed").chmod(0)
    cache = tmp_path / "cache"
    cache.mkdir()
    words = [sys.executable, "-m", "mblint", "check", "--upstream", "none", "--format", "json", "."]

    def as_nobody() -> None:
        if os.geteuid() == 0:  # root reads everything
            os.setgid(65534)
            os.setuid(65534)

    for folder in (tmp_path, *tmp_path.parents):
        if os.geteuid() == 0 and folder.stat().st_uid == 0 and folder.is_relative_to("/tmp/pytest-of-root"):
            folder.chmod(0o755)
    cache.chmod(0o777)
    try:
        done = subprocess.run(words, cwd=project, env=environment(cache), preexec_fn=as_nobody, capture_output=True, text=True, check=False)
        if done.returncode == 1 and "No module named" in done.stderr:
            pytest.skip("another user cannot read this interpreter's packages")
        findings = json.loads(done.stdout)["findings"]
    except (PermissionError, subprocess.SubprocessError):
        pytest.skip("another user cannot run this interpreter")
    finally:
        (project / "closed").chmod(0o755)
        (project / "closed_config.py").chmod(0o644)
    assert done.returncode == 1, done.stderr
    assert any(finding["rule"] == "MB901" and "closed_config.py" in str(finding) for finding in findings)
    assert any(finding["rule"] == GOOD_RULE for finding in findings)


# --- the process ------------------------------------------------------------------------------------------------------


def start(folder: Path, cache: Path, *words: str, **options: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "mblint", "check", "--upstream", "none", *words],
        cwd=folder, env=environment(cache), stderr=subprocess.PIPE, **options,  # type: ignore[call-overload]
    )  # fmt: skip


@pytest.mark.parametrize("form", ["full", "concise", "json", "sarif", "github", "junit"])
def test_a_closed_pipe_is_quiet(form: str, tmp_path: Path) -> None:
    project = write(tmp_path / "project", {})
    process = start(project, tmp_path / "cache", "--format", form, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    assert process.wait() in (0, 1, 141) and said == b"", said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("form", ["full", "concise", "json", "sarif", "github", "junit"])
def test_a_full_disk_is_one_line(form: str, tmp_path: Path) -> None:
    project = write(tmp_path / "project", {})
    with open("/dev/full", "wb") as full:
        process = start(project, tmp_path / "cache", "--format", form, stdout=full)
        assert process.stderr is not None
        said = process.stderr.read().decode()
    assert process.wait() == 3
    assert len(said.splitlines()) == 1 and "No space left" in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_report_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    project = write(tmp_path / "project", {})
    for target in ("/dev/full", "missing/report.json", "."):
        outcome = run(["check", "--upstream", "none", "--output", f"json={target}"], project, tmp_path / "cache")
        assert outcome.code in (2, 3), outcome.err
        assert len(outcome.err.splitlines()) == 1 and "internal error" not in outcome.err, outcome.err


@pytest.mark.parametrize("kind", ["a file", "read-only", "full of damaged files"])
def test_a_cache_that_cannot_be_used_changes_nothing(kind: str, tmp_path: Path) -> None:
    project = write(tmp_path / "project", {})
    cache = tmp_path / "cache"
    expected = check(project, tmp_path / "other-cache")
    if kind == "a file":
        cache.write_text("x")
    elif kind == "read-only":
        cache = Path("/proc/mblint-cache") if Path("/proc").exists() else Path("/dev/null/cache")
    else:
        check(project, cache)
        for path in [path for path in cache.rglob("*") if path.is_file()]:
            path.write_bytes(os.urandom(100) if len(path.name) % 2 else b"")
    outcome = check(project, cache)
    assert_sound(outcome)
    assert (outcome.code, outcome.out) == (expected.code, expected.out)
    assert outcome.findings == expected.findings


def test_two_runs_on_one_cache(tmp_path: Path) -> None:
    project = write(tmp_path / "project", {f"r{number}.py": GOOD for number in range(6)})
    cache = tmp_path / "cache"
    both = [start(project, cache, "--format", "json", stdout=subprocess.PIPE) for _ in range(2)]
    outs = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [1, 1]
    assert outs[0][0] == outs[1][0] and [err for _, err in outs] == [b"", b""]
    assert run(["check", "--upstream", "none", "--format", "json"], project, cache).out == outs[0][0].decode()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_ends_the_run(jobs: str, tmp_path: Path) -> None:
    hostile = GOOD.replace(
        "return cfg", "n = 0\n    for a in range(300):\n        for b in range(300):\n            n += len(str(a * b))\n    return cfg"
    )
    project = write(tmp_path / "project", {f"r{number}.py": hostile for number in range(40)})
    process = start(
        project, tmp_path / "cache", "-j", jobs, stdout=subprocess.PIPE, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # shells start background jobs without it
    )  # fmt: skip
    time.sleep(2.5)
    begin = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - begin < 20
    assert process.returncode in (1, 130, -2), (process.returncode, err)
    assert b"Traceback" not in err + out


def test_memory_that_runs_out_is_no_traceback(tmp_path: Path) -> None:
    project = write(tmp_path / "project", {})

    def little() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (180 * 2**20, 180 * 2**20))

    process = start(project, tmp_path / "cache", stdout=subprocess.PIPE, preexec_fn=little)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (1, 3), err
    if process.returncode == 3:
        assert b"Traceback" not in out and len(err.splitlines()) <= 2, err
