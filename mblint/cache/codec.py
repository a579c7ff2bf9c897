"""Verdicts as bytes. Reading makes nothing but the listed plain records, whatever the bytes hold."""

from __future__ import annotations

import io
import pickle
from typing import Any, Final

ALLOWED: Final = {
    "mblint.verdict": ("FixInputs", "Verdict"),
    "mblint.evaluate.unknown": ("ABSENT", "Unknown"),
    "mblint.findings": ("Finding", "Fix", "MemoryLine", "Related", "TextEdit"),
    "mblint.fix.layers": ("Layer",),
    "mblint.judge": ("Undecided",),
    "mblint.launch.resolved": ("Write",),
    "mblint.read.span": ("Source", "Span"),
    "builtins": ("frozenset", "set"),
}
"""What an entry may be made of, by module."""


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name not in ALLOWED.get(module, ()):
            raise pickle.UnpicklingError(f"{module}.{name} has no place in the cache")
        return super().find_class(module, name)


class NotPlain(Exception):
    """The value holds something that reading would not make."""


def encode(value: object) -> bytes:
    """Raises NotPlain for what `decode` would refuse."""
    try:
        data = pickle.dumps(value, protocol=5)
        _Reader(io.BytesIO(data)).load()
    except Exception as error:  # whatever the objects inside raise: it is not kept, and the run goes on
        raise NotPlain(str(error)) from None
    return data


def decode(data: bytes) -> Any:
    """The value, or None for bytes that are no entry of this cache."""
    try:
        return _Reader(io.BytesIO(data)).load()
    except Exception:  # damaged or of another version: as good as none
        return None
