"""What happens when mblint itself fails: one line for the user, a file for the report."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from mblint.findings import Finding
from mblint.read.span import Span

RULE = ("MB900", "internal-error")
KEPT = 20
"""Reports that are kept; older ones go."""


def write_report(error: BaseException, about: Mapping[str, str] | None = None) -> Path | None:
    """Write a file that a user can attach to a bug report; None when nothing can be written.

    `about` says what was worked on (`{"file": ..., "rule": ...}`). The file names versions, the command
    line and the traceback, and holds nothing of the user's sources or environment variables. It lies in the
    folder for caches, under a name made of its traceback: the same failure is written once.
    """
    import platform
    import traceback

    from mblint import __version__
    from mblint.upstream.cache import cache_folder

    trace = [line.rstrip("\n") for line in traceback.format_exception(error)]
    lines = [
        f"mblint {__version__}",
        f"Python {platform.python_version()} ({platform.python_implementation()}) on {platform.platform()}",
        f"command: {' '.join(sys.argv)}",
        *(f"{key}: {value}" for key, value in (about or {}).items()),
        "",
        *trace,
    ]
    digest = hashlib.sha256("\n".join(trace).encode("utf-8", "backslashreplace")).hexdigest()[:12]
    folder = cache_folder() / "crashes"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"mblint-crash-{digest}.txt"
        path.unlink(missing_ok=True)  # never through a link that stands there
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as handle:
            handle.write("\n".join(lines) + "\n")
        _forget_old(folder)
    except OSError:
        return None
    return path


def _forget_old(folder: Path) -> None:
    found = sorted(folder.glob("mblint-crash-*.txt"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in found[KEPT:]:
        path.unlink(missing_ok=True)


def internal_finding(
    error: BaseException, doing: str, span: Span | None = None, launch: str | None = None, about: Mapping[str, str] | None = None
) -> Finding:
    """The finding that stands for a failure of mblint's own; `doing` completes "mblint failed while it ..."."""
    report = write_report(error, {"while it": doing, **(about or {})})
    where = f"; please report it with {report}" if report is not None else ""
    return Finding(
        rule=RULE[0],
        name=RULE[1],
        severity="error",
        outcome="note",
        message=f"mblint failed while it {doing}: {one_line(error)}{where}",
        span=span,
        launch=launch,
    )


def one_line(error: BaseException) -> str:
    """`KeyError: 'x' (mblint/judge.py:41)`: kind, words and the innermost place in mblint, on one line."""
    text = " ".join(str(error).split())
    if len(text) > 200:
        text = text[:197] + "..."
    place = ""
    package = os.path.dirname(os.path.abspath(__file__))
    trace = error.__traceback__
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        if filename.startswith(package):
            place = f" ({os.path.relpath(filename, os.path.dirname(package))}:{trace.tb_lineno})"
        trace = trace.tb_next
    return f"{type(error).__name__}{': ' + text if text else ''}{place}"
