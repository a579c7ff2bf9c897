"""Runs the real command line over hostile projects, with every report format, and measures what it took."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECONDS = 10.0
"""Processor time that one hostile file may take, start-up of the interpreter and of the snapshot left out."""
BYTES = 2**30
FORMATS = ("json", "sarif", "github", "gitlab", "junit", "rdjson", "concise", "full", "markdown")

GOOD = """from megatron.bridge.recipes.llama.llama3 import llama3_8b_pretrain_config


def good_config():
    cfg = llama3_8b_pretrain_config()
    cfg.model.tensor_model_parallel_size = 3
    return cfg
"""
"""A recipe with a finding that must be reported whatever lies beside it."""
GOOD_RULE = "MB114"

HEAD = "from megatron.bridge.recipes.llama.llama3 import llama3_8b_pretrain_config\n\n\n"


@dataclass
class Outcome:
    """What one run printed, wrote and took."""

    code: int
    out: str
    err: str
    cpu: float
    wall: float
    rss: int
    reports: dict[str, bytes] = field(default_factory=dict)

    @property
    def findings(self) -> list[dict[str, Any]]:
        """Entries of the JSON report."""
        found: list[dict[str, Any]] = json.loads(self.reports["json"])["findings"]
        return found

    def rules(self, path: str | None = None) -> set[str]:
        """Rules of the findings, of one file if it is named."""
        return {finding["rule"] for finding in self.findings if path is None or path_of(finding) == path}

    def messages(self, path: str) -> list[str]:
        """Rules and messages of one file's findings."""
        return [f"{finding['rule']} {finding['message']}" for finding in self.findings if path_of(finding) == path]


def path_of(finding: dict[str, Any]) -> str:
    """The file of a finding of the JSON report, or "" for one without."""
    span = (finding.get("spans") or [finding.get("span")])[0]
    return str((span or {}).get("path", "")) if isinstance(span, dict) else ""


def environment(cache: Path, **more: str) -> dict[str, str]:
    """An environment in which nothing of this machine is found."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "LC_ALL", "SYSTEMROOT", "PYTHONPATH") if name in os.environ}
    return {**kept, "MBLINT_CACHE_DIR": str(cache), "MBLINT_CRASH_DIR": str(cache / "crashes"), **more}


def run(words: Sequence[str], folder: Path, cache: Path, stdin: bytes | None = None, timeout: float = 400, **env: str) -> Outcome:
    """`mblint WORDS` in a folder."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "mblint", *words],
            cwd=folder, env=environment(cache, **env), stdout=out, stderr=err,
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL, preexec_fn=_bounds,
        )  # fmt: skip
        if stdin is not None:
            assert process.stdin is not None
            process.stdin.write(stdin)
            process.stdin.close()
        code, usage = _wait(process, timeout)
        wall = time.monotonic() - begin
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "backslashreplace"))
    return Outcome(code, texts[0], texts[1], usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * 1024)


def _bounds() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _wait(process: subprocess.Popen[bytes], timeout: float) -> tuple[int, Any]:
    end = time.monotonic() + timeout
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage
        if time.monotonic() > end:
            process.kill()
        time.sleep(0.02)


def check(folder: Path, cache: Path, *words: str, paths: Sequence[str] = (".",), **env: str) -> Outcome:
    """`mblint check`, with a report in every format."""
    reports = folder.parent / f"{folder.name}-reports"
    reports.mkdir(exist_ok=True)
    options = [word for name in FORMATS for word in ("--output", f"{name}={reports / name}")]
    outcome = run(["check", "--upstream", "none", "-j1", *options, *words, "--", *paths], folder, cache, **env)
    outcome.reports = {name: (reports / name).read_bytes() for name in FORMATS if (reports / name).exists()}
    return outcome


CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
GITHUB = re.compile(r"^::(error|warning|notice|debug)( [a-zA-Z]+=[^,:\r\n]*(,[a-zA-Z]+=[^,:\r\n]*)*)?::[^\r\n]*$")


def assert_sound(outcome: Outcome, codes: Sequence[int] = (1,), seconds: float = SECONDS, crash: bool = False) -> None:
    """What holds of every run: the exit code, the bounds, no traceback, and reports that their readers understand."""
    told = f"exit {outcome.code}, {outcome.cpu:.1f} s, {outcome.rss >> 20} MB\n{outcome.out[-1500:]}\n{outcome.err[-1500:]}"
    assert outcome.code in codes, told
    assert outcome.cpu < seconds + 2, told
    assert outcome.rss < BYTES, told
    for text in (outcome.out, outcome.err):
        assert "Traceback" not in text, told
        assert not CONTROL.search(text), told
    assert all(line.startswith("mblint: ") for line in outcome.err.splitlines()), told
    if not crash:
        assert "MB900" not in outcome.out, told
    assert_reports(outcome.reports)


def assert_reports(reports: dict[str, bytes]) -> None:
    """Every report can be read back, and none carries what its reader would obey."""
    for name, data in reports.items():
        text = data.decode("utf-8")
        assert not CONTROL.search(text), f"{name}: {CONTROL.findall(text)}"
        if name in ("json", "sarif", "gitlab", "rdjson"):
            json.loads(text)
        elif name == "junit":
            ElementTree.fromstring(text)
        elif name == "github":
            for line in text.splitlines():
                assert GITHUB.match(line) or not line.startswith("::"), line


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    """A project with these files, and the good recipe beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".git").mkdir(exist_ok=True)
    for name, data in {"good.py": GOOD, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    return folder


def recipe(body: str, top: str = "", name: str = "hostile_config", arguments: str = "") -> str:
    """A module with a recipe whose body holds these lines."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{HEAD}{top}\n\ndef {name}({arguments}):\n    cfg = llama3_8b_pretrain_config()\n{lines}    return cfg\n"
