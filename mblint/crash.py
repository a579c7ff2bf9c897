"""What happens when mblint itself fails: one line for the user, a file for the report."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path


def write_report(error: BaseException, about: Mapping[str, str] | None = None) -> Path | None:
    """Write a file that a user can attach to a bug report; None when nothing can be written.

    `about` says what was worked on (`{"file": ..., "rule": ...}`). The file names versions, the command
    line and the traceback, and holds nothing of the user's sources or environment variables.
    """
    import platform
    import traceback

    from mblint import __version__

    lines = [
        f"mblint {__version__}",
        f"Python {platform.python_version()} ({platform.python_implementation()}) on {platform.platform()}",
        f"command: {' '.join(sys.argv)}",
        *(f"{key}: {value}" for key, value in (about or {}).items()),
        "",
        *(line.rstrip("\n") for line in traceback.format_exception(error)),
    ]
    try:
        descriptor, name = tempfile.mkstemp(prefix="mblint-crash-", suffix=".txt")
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as handle:
            handle.write("\n".join(lines) + "\n")
    except OSError:
        return None
    return Path(name)


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
