"""Reads logs of any size within fixed bounds.

The head and the tail are kept whole; of what lies between only the surroundings of lines that look like a
failure are, since the first failure of many ranks is often buried under the teardown of the others.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from mblint.errors import UserError

MIB: Final = 2**20
HEAD: Final = 2 * MIB
TAIL: Final = 8 * MIB
SCANNED: Final = 1024 * MIB
"""Of a longer log, what follows this and is not the tail is not looked at."""

_CHUNK: Final = MIB
_BEFORE, _AFTER = 16_384, 16_384
_WINDOWS: Final = 64
_LINE: Final = 4_000
_MARKS: Final = (b"out of memory", b"OutOfMemoryError", b"Traceback (most recent", b"Watchdog caught")
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(frozen=True, slots=True)
class Log:
    """The lines that were kept, without terminal codes; `left_out` bytes were passed over."""

    name: str
    lines: tuple[str, ...]
    size: int
    left_out: int


def read_log(name: str) -> Log:
    """Read a file, or standard input for `-`. Raises UserError."""
    if name == "-":
        return _read(sys.stdin.buffer, "standard input")
    try:
        with open(name, "rb") as stream:
            return _read(stream, name)
    except OSError as error:
        raise UserError(f"{name}: {error.strerror or error}", "name a log file, or - for standard input") from None


def log_of(data: bytes, name: str = "log") -> Log:
    """A log that is in memory already."""
    import io

    return _read(io.BytesIO(data), name)


def _read(stream: BinaryIO, name: str) -> Log:
    head = stream.read(HEAD)
    size = len(head)
    tail = bytearray()
    middle: list[bytes] = []
    before = b""
    for chunk in _chunks(stream):
        size += len(chunk)
        tail += chunk
        if len(tail) > TAIL + 4 * _CHUNK:
            gone = bytes(tail[: len(tail) - TAIL])
            del tail[: len(tail) - TAIL]
            if size <= SCANNED and len(middle) < _WINDOWS:
                # What was just before belongs to the surroundings; what comes after the end is in the next.
                middle += list(_windows(before + gone, len(before)))[: _WINDOWS - len(middle)]
            before = gone[-_BEFORE:]
    kept = [head, *middle, bytes(tail)]
    lines: list[str] = []
    for part in kept:
        lines += _lines(part)
    return Log(name, tuple(lines), size, max(0, size - sum(map(len, kept))))


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk


def _windows(data: bytes, start: int) -> Iterator[bytes]:
    """Surroundings of the marks behind `start`; overlapping ones once."""
    at = max(0, start - 64)
    while at < len(data):
        hits = [hit for mark in _MARKS if (hit := data.find(mark, at)) >= 0]
        if not hits:
            return
        hit = min(hits)
        yield data[max(0, hit - _BEFORE) : hit + _AFTER]
        at = hit + _AFTER


def _lines(data: bytes) -> list[str]:
    text = data.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return [line[:_LINE] for line in text.split("\n")]
