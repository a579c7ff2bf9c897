"""What operators do to values that may be unknown or absent: the result as a value, or as a set of possible outcomes."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, Final

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.ruleset.logic import AND, FALSE, NOT, NOT_APPLICABLE, OR, TRUE, UNKNOWN

MAX_ITEMS: Final = 2_000
MAX_CHARACTERS: Final = 10_000
MAX_BITS: Final = 256
MAX_EXPONENT: Final = 64


def outcome(value: object) -> int:
    """The truth of a value, as a set of possible outcomes."""
    if value is True:
        return TRUE
    if value is False or value is None:
        return FALSE
    if isinstance(value, Unknown):
        return UNKNOWN
    if value is ABSENT:
        return NOT_APPLICABLE
    return TRUE if value else FALSE


def plain(possible: int, values: tuple[object, ...] = ()) -> object:
    if possible == TRUE:
        return True
    if possible == FALSE:
        return False
    if possible == NOT_APPLICABLE:
        return ABSENT
    for value in values:
        if isinstance(value, Unknown):
            return value
    return Unknown("a part of the condition is not known")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def bounded(value: object) -> object:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return ABSENT
    if isinstance(value, str | list) and len(value) > (MAX_ITEMS if isinstance(value, list) else MAX_CHARACTERS):
        return ABSENT
    if isinstance(value, complex):
        return ABSENT
    return value


def _add(left: Any, right: Any) -> object:
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        return left + right
    return left + right if _is_number(left) and _is_number(right) else ABSENT


def _numeric(apply: Callable[[Any, Any], object]) -> Callable[[Any, Any], object]:
    def run(left: Any, right: Any) -> object:
        return apply(left, right) if _is_number(left) and _is_number(right) else ABSENT

    return run


def _power(left: Any, right: Any) -> object:
    if not (_is_number(left) and _is_number(right)) or abs(right) > MAX_EXPONENT or abs(left) > 2**64:
        return ABSENT
    result: object = left**right
    return result


BINARY: dict[type[ast.operator], Callable[[Any, Any], object]] = {
    ast.Add: _add,
    ast.Sub: _numeric(operator.sub),
    ast.Mult: _numeric(operator.mul),
    ast.Div: _numeric(operator.truediv),
    ast.FloorDiv: _numeric(operator.floordiv),
    ast.Mod: _numeric(operator.mod),
    ast.Pow: _power,
}


def _ordered(apply: Callable[[Any, Any], bool]) -> Callable[[Any, Any], int]:
    def run(left: Any, right: Any) -> int:
        if (_is_number(left) and _is_number(right)) or (isinstance(left, str) and isinstance(right, str)):
            return TRUE if apply(left, right) else FALSE
        return NOT_APPLICABLE

    return run


def _equal(left: Any, right: Any) -> int:
    if isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            return FALSE
        result = TRUE
        for a, b in zip(left, right, strict=True):
            result = AND[result][UNKNOWN if isinstance(a, Unknown) or isinstance(b, Unknown) else _equal(a, b)]
        return result
    return TRUE if left == right else FALSE


def _same(left: Any, right: Any) -> int:
    if left is ABSENT or right is ABSENT:
        return NOT_APPLICABLE
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return UNKNOWN
    return _equal(left, right)


def _not_equal(left: Any, right: Any) -> int:
    return NOT[_equal(left, right)]


def _in(left: Any, right: Any) -> int:
    if right is None:
        return FALSE
    if isinstance(right, str):
        return (TRUE if left in right else FALSE) if isinstance(left, str) else NOT_APPLICABLE
    if isinstance(right, dict):
        return TRUE if isinstance(left, str | int) and left in right else FALSE
    if not isinstance(right, list | tuple | set | frozenset):
        return NOT_APPLICABLE
    result = FALSE
    for item in right:
        if isinstance(item, Unknown):
            result = OR[result][UNKNOWN]
        elif item is ABSENT:
            result = OR[result][NOT_APPLICABLE]
        elif item == left:
            return TRUE
    return result


def _not_in(left: Any, right: Any) -> int:
    return NOT[_in(left, right)]


COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], int]] = {
    ast.Eq: _equal,
    ast.NotEq: _not_equal,
    ast.Lt: _ordered(operator.lt),
    ast.LtE: _ordered(operator.le),
    ast.Gt: _ordered(operator.gt),
    ast.GtE: _ordered(operator.ge),
    ast.In: _in,
    ast.NotIn: _not_in,
    ast.Is: lambda left, right: TRUE if left is right else FALSE,
    ast.IsNot: lambda left, right: FALSE if left is right else TRUE,
}
