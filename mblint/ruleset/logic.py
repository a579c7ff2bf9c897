"""Three-valued logic, with a fourth outcome for what does not apply.

A condition's outcome is a set of the outcomes that are still possible, as bits: `TRUE`, `FALSE` and
`NOT_APPLICABLE` (an operand does not exist in this configuration, or has no meaning there, such as arithmetic
on None). An unknown value may be any of them. Operators work on the sets element by element; single outcomes
combine by strong Kleene logic with "not applicable" as the third value. A rule speaks only when `TRUE` alone
is left.
"""

from __future__ import annotations

from typing import Final

TRUE: Final = 1
FALSE: Final = 2
NOT_APPLICABLE: Final = 4
UNKNOWN: Final = TRUE | FALSE | NOT_APPLICABLE


def _and_one(left: int, right: int) -> int:
    if FALSE in (left, right):
        return FALSE
    return NOT_APPLICABLE if NOT_APPLICABLE in (left, right) else TRUE


def _or_one(left: int, right: int) -> int:
    if TRUE in (left, right):
        return TRUE
    return NOT_APPLICABLE if NOT_APPLICABLE in (left, right) else FALSE


_SINGLE = (TRUE, FALSE, NOT_APPLICABLE)
_SETS = range(8)


def _lift(operator: object, left: int, right: int) -> int:
    result = 0
    for a in _SINGLE:
        for b in _SINGLE:
            if left & a and right & b:
                result |= operator(a, b)  # type: ignore[operator]
    return result


AND: Final = tuple(tuple(_lift(_and_one, a, b) for b in _SETS) for a in _SETS)
"""`AND[a][b]`: the possible outcomes of `a and b`."""

OR: Final = tuple(tuple(_lift(_or_one, a, b) for b in _SETS) for a in _SETS)
"""`OR[a][b]`: the possible outcomes of `a or b`."""

NOT: Final = tuple((a & NOT_APPLICABLE) | (FALSE if a & TRUE else 0) | (TRUE if a & FALSE else 0) for a in _SETS)
"""`NOT[a]`: the possible outcomes of `not a`."""
