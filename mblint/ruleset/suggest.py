"""The nearest name to a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like `name`, or None when none is close."""
    matches = get_close_matches(name, list(candidates), n=1, cutoff=0.7)
    return matches[0] if matches else None
