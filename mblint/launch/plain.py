"""Evaluated values as judges see them."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    BuiltinClass,
    ClassValue,
    EnumMember,
    External,
    Foreign,
    FunctionValue,
    Instance,
    Partial,
)

PRIMITIVE = frozenset({bool, int, float, str, type(None), Unknown})


MOST = 250_000
"""Elements of one value with all that is in it. Lists that hold one another several times unfold to any number."""


def plain(value: Any, depth: int = 0, room: list[int] | None = None) -> Any:
    """Lists for lists, tuples and sets; dotted names for functions, classes, dtypes; "Class.MEMBER" for enum members;
    "<module.Class>" for other objects. `room` holds how many elements may still follow."""
    if type(value) in PRIMITIVE:
        return value
    if depth > 20:
        return Unknown("nested too deeply")
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        room = [MOST] if room is None else room
        room[0] -= len(value)
        if room[0] < 0:
            return Unknown(f"a value of more than {MOST:,} elements")
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [plain(element, depth + 1, room) for element in value]
        return sorted(items, key=repr) if isinstance(value, (set, frozenset)) else items
    if isinstance(value, dict):
        return {
            plain(key, depth + 1, room) if not isinstance(key, str) else key: plain(held, depth + 1, room) for key, held in value.items()
        }
    if isinstance(value, EnumMember):
        return f"{value.cls.name}.{value.name}"
    if isinstance(value, External):
        return value.name
    if isinstance(value, (FunctionValue, ClassValue)):
        return value.full_name
    if isinstance(value, BuiltinClass):
        return value.name
    if isinstance(value, Instance):
        return f"<{value.cls.full_name}>" if value.cls is not None else Unknown(value.reason or "an object that is not known")
    if isinstance(value, Partial):
        return "<functools.partial>"
    if isinstance(value, Foreign):
        return f"<{value.class_name}>"
    return f"<{type(value).__name__}>"
