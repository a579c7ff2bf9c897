"""The state of what a result depends on."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

from mblint.evaluate.source import MAX_SOURCE_BYTES

ABSENT_STATE: Final = ""
UNREADABLE_STATE: Final = "?"
"""Equal to nothing, itself included: what could not be read is read again."""


class States:
    """The state of paths, looked at once in a run: a digest of a file's bytes or of a folder's names, "" for nothing."""

    def __init__(self) -> None:
        self._held: dict[str, str] = {}

    def of(self, path: str) -> str:
        state = self._held.get(path)
        if state is None:
            state = self._held[path] = _state(path)
        return state

    def same(self, states: Mapping[str, str]) -> bool:
        """Whether all of these are as they were."""
        return all(state != UNREADABLE_STATE and self.of(path) == state for path, state in states.items())

    def record(self, paths: Iterable[str]) -> dict[str, str]:
        """The states of these now."""
        return {path: self.of(path) for path in sorted(set(paths))}


def _state(path: str) -> str:
    try:
        held = os.stat(path)
        if stat.S_ISDIR(held.st_mode):
            return "folder " + sha256("\0".join(sorted(os.listdir(path))).encode("utf-8", "surrogateescape")).hexdigest()
        if not stat.S_ISREG(held.st_mode) or held.st_size > MAX_SOURCE_BYTES:
            return f"{held.st_mode} {held.st_size} {held.st_mtime_ns}"  # nothing that anybody reads as a whole
        with open(path, "rb") as handle:
            return sha256(handle.read()).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT_STATE
    except (OSError, ValueError):
        return UNREADABLE_STATE
