"""Copies of value graphs: results of remembered calls, copy.deepcopy."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.machine import Machine
from mblint.evaluate.values import Instance, KnownIterator, Partial, TrackedDict


def copy_value(machine: Machine, value: Any, seen: dict[int, Any] | None = None) -> Any:
    """A deep copy of instances and containers; classes, functions and constants are shared."""
    kind = type(value)
    if kind is Instance:
        seen = {} if seen is None else seen
        held = seen.get(id(value))
        if held is not None:
            return held
        copy = machine.new_instance(value.cls, value.reason)
        seen[id(value)] = copy
        copy.origin = dict(value.origin)
        attrs = copy.attrs
        for name, inner in value.attrs.items():
            if type(inner) in _COPIED:
                inner = copy_value(machine, inner, seen)
            attrs[name] = inner
        return copy
    if kind is dict or kind is list or kind is set or kind is TrackedDict or kind is tuple or kind is KnownIterator or kind is Partial:
        seen = {} if seen is None else seen
        held = seen.get(id(value))
        if held is not None:
            return held
        if kind is list:
            made: Any = []
            seen[id(value)] = made
            made.extend(copy_value(machine, inner, seen) if type(inner) in _COPIED else inner for inner in value)
        elif kind is tuple:
            if not any(type(inner) in _COPIED for inner in value):
                return value
            made = tuple(copy_value(machine, inner, seen) for inner in value)
        elif kind is set:
            made = set(value)
        elif kind is KnownIterator:
            made = KnownIterator([copy_value(machine, inner, seen) for inner in value.items])
            made.index = value.index
        elif kind is Partial:
            made = Partial(value.function, copy_value(machine, value.args, seen), copy_value(machine, value.kwargs, seen))
        else:
            made = kind()
            seen[id(value)] = made
            for key, inner in value.items():
                made[key] = copy_value(machine, inner, seen) if type(inner) in _COPIED else inner
            if kind is TrackedDict:
                made.sites = value.sites
        seen[id(value)] = made
        return machine.born(made)
    return value


_COPIED = frozenset({Instance, dict, list, set, TrackedDict, tuple, KnownIterator, Partial})
