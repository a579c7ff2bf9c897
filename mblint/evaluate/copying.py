"""Copies of value graphs: results of remembered calls, copy.deepcopy."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import Instance, KnownIterator, Partial, TrackedDict

DEEPEST = 60


def copy_value(machine: Machine, value: Any) -> Any:
    """A deep copy of instances and containers; classes, functions and constants are shared."""
    if type(value) not in COPIED and not isinstance(value, (dict, list)):
        return value
    seen: dict[int, Any] = {}
    loose: list[tuple[Unknown, Unknown]] = []
    made = _copy(machine, value, seen, loose, 0)
    for copy, original in loose:
        # What only an unknown value leads to is copied with it, and nobody else has the copy.
        copy.reach = tuple([seen[id(held)] for held in original.reach if id(held) in seen])
    return made


def _copy(machine: Machine, value: Any, seen: dict[int, Any], loose: list[tuple[Unknown, Unknown]], depth: int) -> Any:
    kind = type(value)
    if kind not in COPIED and not isinstance(value, (dict, list)):
        return value
    held = seen.get(id(value))
    if held is not None:
        return held
    if depth > DEEPEST:
        return Unknown("a value nested too deeply to be copied")
    made: Any
    if kind is Instance:
        made = machine.new_instance(value.cls, value.reason)
        seen[id(value)] = made
        made.origin = dict(value.origin)
        attrs = made.attrs
        for name, inner in value.attrs.items():
            if type(inner) in COPIED:
                inner = _copy(machine, inner, seen, loose, depth + 1)
            attrs[name] = inner
        return made
    if isinstance(value, list):
        made = kind()
        seen[id(value)] = made
        made.extend([_copy(machine, inner, seen, loose, depth + 1) if type(inner) in COPIED else inner for inner in value])
    elif kind is tuple:
        if not any(type(inner) in COPIED for inner in value):
            return value
        made = tuple([_copy(machine, inner, seen, loose, depth + 1) for inner in value])
    elif kind is set:
        made = set(value)
    elif kind is KnownIterator:
        made = KnownIterator([], iter(()))
        if value.source is not None:
            return Unknown("a copy of a generator")
        made = KnownIterator([_copy(machine, inner, seen, loose, depth + 1) for inner in value.items])
        made.index = value.index
    elif kind is Partial:
        args, kwargs = _copy(machine, value.args, seen, loose, depth + 1), _copy(machine, value.kwargs, seen, loose, depth + 1)
        made = Partial(value.function, args, kwargs)
    elif kind is Unknown:
        return _copy_unknown(machine, value, seen, loose, depth)
    else:
        made = value.empty() if isinstance(value, TrackedDict) else kind()
        seen[id(value)] = made
        for key, inner in value.items():
            made[key] = _copy(machine, inner, seen, loose, depth + 1) if type(inner) in COPIED else inner
        if isinstance(value, TrackedDict):
            made.sites.update(value.sites)
    seen[id(value)] = made
    return machine.born(made)


def _copy_unknown(machine: Machine, value: Unknown, seen: dict[int, Any], loose: list[tuple[Unknown, Unknown]], depth: int) -> Unknown:
    """The copy of one of several objects is one of their copies."""
    if value.options is None and not value.reach:
        return value
    options = value.options
    if options is not None:
        options = tuple([_copy(machine, option, seen, loose, depth + 1) for option in options])
    made = Unknown(value.reason, value.span, value.partial, value.optional, many=value.many, options=options, apart=value.apart)
    loose.append((made, value))
    return made


COPIED = frozenset({Instance, dict, list, set, TrackedDict, tuple, KnownIterator, Partial, Unknown})


def oldest(machine: Machine, value: Any) -> int:
    """The birth of the oldest mutable object in a value: a call that gives back one that was there before cannot be
    remembered, because its callers share it."""
    least = machine.clock
    births = machine.container_birth
    pending = [value]
    seen: set[int] = set()
    while pending:
        held = pending.pop()
        kind = type(held)
        if kind is Instance:
            if id(held) not in seen:
                seen.add(id(held))
                least = min(least, held.birth)
                pending.extend(held.attrs.values())
        elif kind is tuple:
            if id(held) not in seen:
                seen.add(id(held))
                pending.extend(held)
        elif kind is Unknown:
            pending.extend(held.reach if held.options is None else held.options)
        elif isinstance(held, (list, dict, set, KnownIterator)) and id(held) not in seen:
            seen.add(id(held))
            least = min(least, births.get(id(held), 0))
            if isinstance(held, dict):
                pending.extend(held.values())
            elif isinstance(held, KnownIterator):
                return 0
            else:
                pending.extend(held)
        elif kind is Partial:
            pending.extend([*held.args, *held.kwargs.values(), held.function])
        elif kind not in _SHARED and (hasattr(held, "closure") or hasattr(held, "receiver")):
            # A function that holds on to the variables of a call, or to an object.
            if getattr(held, "closure", None) is not None or hasattr(held, "receiver"):
                return 0
    return least


_SHARED = frozenset({int, float, str, bool, type(None)})
