"""The text on standard input, checked as if it were a file's."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mblint.errors import UserError
from mblint.evaluate.source import MAX_SOURCE_BYTES
from mblint.launch.session import Session


def named_file(given: Path | None) -> Path:
    """The file whose text it is; nothing has to be there. Raises UserError."""
    path = given or Path("stdin.py")
    if path.is_dir():
        raise UserError(f"--stdin-filename {path}: is a folder", "name the file whose text is on standard input")
    return path


def put_in_place(session: Session, path: Path) -> None:
    """Evaluate with the text on standard input in place of the file. Raises UserError."""
    from mblint.fix.write import decode

    real = os.path.realpath(path)
    data = sys.stdin.buffer.read(MAX_SOURCE_BYTES + 1)
    if len(data) > MAX_SOURCE_BYTES:
        raise UserError(f"standard input: more than {MAX_SOURCE_BYTES >> 20} MiB", "no recipe is that large")
    try:
        text: str | bytes = decode(real, data).text
    except (ValueError, LookupError, SyntaxError):
        text = data  # what is wrong with it is found, with its line, when it is read
    session.replace_sources({real: text})
