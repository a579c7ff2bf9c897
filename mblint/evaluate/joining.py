"""Joining the effects of branches of which only one will be taken."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.errors import Raised
from mblint.evaluate.machine import Machine
from mblint.evaluate.operators import PLAIN
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING


class Outcome:
    """What one branch did: changed places with their new values, its result, or the exception that left it."""

    __slots__ = ("changes", "raised", "result")

    def __init__(self, changes: dict[Any, Any], result: Any, raised: Raised | None) -> None:
        self.changes = changes
        self.result = result
        self.raised = raised


def collect(machine: Machine, mark: int) -> dict[Any, Any]:
    """Places changed since `mark`: (id of the target, key) -> (target, key, new value); whole containers have key None."""
    changes: dict[Any, Any] = {}
    for entry in machine.trail[mark:]:
        target = entry[0]
        if len(entry) == 3:
            changes[(id(target), entry[1])] = (target, entry[1], target.get(entry[1], MISSING))
        elif isinstance(target, dict):
            changes[(id(target), None)] = (target, None, dict(target))
        elif isinstance(target, (list, set)):
            changes[(id(target), None)] = (target, None, type(target)(target))
        else:
            changes[(id(target), None)] = (target, None, target.index)
    return changes


def same(left: Any, right: Any) -> bool:
    if left is right:
        return True
    return type(left) is type(right) and type(left) in PLAIN and left == right


def join_values(values: list[Any], reason: str) -> Any:
    first = values[0]
    if all(same(first, other) for other in values[1:]):
        return first
    return Unknown(reason)


def apply_join(machine: Machine, outcomes: list[Outcome], reason: str, known: tuple[int, Any, Any] | None = None) -> Any:
    """Write what all outcomes agree on, Unknown where they differ; returns the joined result.

    `known` (index of an outcome, an Unknown, its value): in that outcome the Unknown is known to have that value.
    """
    if len(outcomes) == 1:
        for target, key, value in outcomes[0].changes.values():
            _put(machine, target, key, value)
        return outcomes[0].result
    places: dict[Any, tuple[Any, Any]] = {}
    for outcome in outcomes:
        for place, (target, key, _) in outcome.changes.items():
            places[place] = (target, key)
    for place, (target, key) in places.items():
        values = []
        for index, outcome in enumerate(outcomes):
            if place in outcome.changes:
                values.append(outcome.changes[place][2])
            elif key is None:
                values.append(_snapshot(target))
            else:
                held = target.get(key, MISSING)
                values.append(known[2] if known is not None and index == known[0] and held is known[1] else held)
        if key is None:
            _put(machine, target, None, _join_containers(values, reason))
            continue
        joined = join_values(values, reason)
        if type(joined) is Unknown:
            from mblint.evaluate.values import Write

            writes = [value for value in values if isinstance(value, Write)]
            if writes:
                # This is an origin table: keep the last write, its value is no longer certain.
                last = writes[0]
                joined = last if known is not None else Write(last.site, Unknown(reason), last.previous, last.trace, last.phase)
        _put(machine, target, key, joined)
    return join_values([outcome.result for outcome in outcomes], reason)


def _snapshot(target: Any) -> Any:
    if isinstance(target, dict):
        return dict(target)
    if isinstance(target, (list, set)):
        return type(target)(target)
    return target.index


def _join_containers(values: list[Any], reason: str) -> Any:
    first = values[0]
    if all(other == first for other in values[1:]):
        return first
    if isinstance(first, dict):
        keys = {key: None for value in values for key in value}
        return {key: _join_entries([value.get(key, MISSING) for value in values], reason) for key in keys}
    if isinstance(first, list):
        if all(len(other) == len(first) for other in values):
            return [join_values(list(column), reason) for column in zip(*values, strict=True)]
        shortest = min(values, key=len)
        return [*shortest, Unknown(f"rest: {reason}")]
    if isinstance(first, set):
        return {*set.intersection(*values), Unknown(f"rest: {reason}")}
    return first


def _join_entries(values: list[Any], reason: str) -> Any:
    optional = any(value is MISSING or (type(value) is Unknown and value.optional) for value in values)
    return Unknown(reason, optional=True) if optional else join_values(values, reason)


def _put(machine: Machine, target: Any, key: Any, value: Any) -> None:
    if key is not None:
        machine.trail.append((target, key, target.get(key, MISSING)))
        if value is MISSING:
            target.pop(key, None)
        else:
            target[key] = value
        return
    machine.touch(target)
    if isinstance(target, (dict, set)):
        target.clear()
        target.update(value)
    elif isinstance(target, list):
        target[:] = value
    else:
        target.index = value
