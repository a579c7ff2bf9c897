"""Version numbers of upstream packages, compared by their release part.

A pre-release, development or local build counts as its release: 0.7.0rc1 and 2.11.0a0+git are at least 0.7
and 2.11, as in upstream's own checks, which compare with the first development version.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_RELEASE: Final = re.compile(r"\s*v?(\d{1,9}(?:\.\d{1,9})*)")
_CLAUSE: Final = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(\d{1,9}(?:\.\d{1,9})*)(\.\*)?\s*")


@lru_cache(maxsize=256)
def release(version: str) -> tuple[int, ...]:
    """(2, 14, 1) of "2.14.1+cu130"; trailing zeros are dropped. Raises ValueError."""
    match = _RELEASE.match(version)
    if match is None:
        raise ValueError(f"not a version number: {version!r}")
    numbers = [int(part) for part in match[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def at_least(have: str, want: str) -> bool:
    """Whether version `have` is `want` or later."""
    return release(have) >= release(want)


@lru_cache(maxsize=256)
def clauses(specifier: str) -> tuple[tuple[str, tuple[int, ...], bool], ...]:
    """The clauses of ">=0.3,<0.7" as (operator, release, prefix match). Raises ValueError."""
    result = []
    for part in specifier.split(","):
        match = _CLAUSE.fullmatch(part)
        if match is None or (match[3] and match[1] not in ("==", "!=")):
            raise ValueError(f"not a version specifier: {specifier!r} (as in '>=0.3,<0.7')")
        result.append((match[1], release(match[2]), bool(match[3])))
    return tuple(result)


def matches(specifier: str, version: str) -> bool:
    """Whether `version` lies in the range that `specifier` names."""
    have = release(version)
    for operator, want, prefix in clauses(specifier):
        if prefix:
            same = have[: len(want)] == want or (len(have) < len(want) and have + (0,) * (len(want) - len(have)) == want)
            if same != (operator == "=="):
                return False
            continue
        holds = {
            ">=": have >= want,
            "<=": have <= want,
            ">": have > want,
            "<": have < want,
            "==": have == want,
            "!=": have != want,
        }[operator]
        if not holds:
            return False
    return True
