"""Going through values."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.machine import Limits, Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import BoundMethod, BuiltinClass, ClassValue, External, Instance, KnownIterator


def iterate(machine: Machine, value: Any, site: Any, frame: Any) -> list[Any] | tuple[Any, ...] | range | Unknown:
    """The elements of `value`, in order; Unknown when they are not known.

    Sets have no order of their own: their elements come sorted by text, so that a run repeats itself.
    """
    kind = type(value)
    if kind is list:
        return list(value)
    if kind is tuple:
        return value  # type: ignore[no-any-return]
    if kind is Unknown:
        return Unknown(value.reason, value.span)
    if isinstance(value, dict):
        if None in value and type(value[None]) is Unknown:
            return [key if key is not None else Unknown(f"rest: {value[None].reason}") for key in value]
        return list(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=lambda element: (type(element).__name__, repr(element)))
    if isinstance(value, range):
        if value and abs((value[-1] - value[0]) // value.step) >= Limits.loop:  # len() has an upper bound itself
            return Unknown(f"a range of more than {Limits.loop:,} numbers", site.span() if site else None)
        return value
    if isinstance(value, str):
        return list(value)
    if kind is KnownIterator:
        machine.touch(value)
        items = value.items[value.index :]
        value.index = len(value.items)
        return items
    if kind is ClassValue and value.is_enum:
        seen: list[Any] = []
        for member in value.enum_members.values():
            if member not in seen:
                seen.append(member)
        return seen
    if kind is Instance:
        from mblint.evaluate.calls import call
        from mblint.evaluate.objects import class_lookup

        method = class_lookup(value.cls, "__iter__")
        if method is not None:
            return iterate(machine, call(machine, BoundMethod(method, value), [], {}, site, frame), site, frame)
        return Unknown(value.reason or "iteration over an object", site.span() if site else None)
    if kind is External or kind is BuiltinClass:
        return Unknown(f"iteration over {value.name}", site.span() if site else None)
    from mblint.evaluate.operators import describe

    if value is None or isinstance(value, (int, float)):
        answer = machine.implicit(TypeError, f"'{describe(value)}' object is not iterable", site, frame)
        return answer if type(answer) is Unknown else Unknown("not iterable")
    return Unknown(f"iteration over a {describe(value)}", site.span() if site else None)
