"""Whether a regular expression of somebody else's may run long. Python's engine goes back and forth without a bound."""

from __future__ import annotations

import re
from typing import Final

LONGEST_PATTERN: Final = 300
MOST_WORK: Final = 20_000_000
_REPEATED_GROUP: Final = re.compile(r"\)[*+{]|[*+}][*+{]")
_UNBOUNDED: Final = re.compile(r"(?<!\\)[*+]|\{\d*,\}")


def too_costly(pattern: str, text: str, tries: int = 1) -> bool:
    """A repeated group can need exponential time, n repetitions len(text)**n; that as often as the match is tried."""
    repeats = len(_UNBOUNDED.findall(pattern))
    if _REPEATED_GROUP.search(pattern) or (repeats and len(pattern) > LONGEST_PATTERN):
        return True
    work: int = max(len(text), 2) ** repeats * tries
    return work > MOST_WORK
