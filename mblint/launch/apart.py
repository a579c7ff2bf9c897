"""Evaluations apart from any launch: their results depend on nothing but their key and the environment."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mblint.evaluate.errors import BudgetExceeded, Raised
from mblint.evaluate.machine import Machine, exception_name, exception_text
from mblint.evaluate.unknown import Unknown, count_unknown, unknowns_made
from mblint.evaluate.values import MISSING, External, Instance

PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True, slots=True)
class Entry:
    """A result, and what it depends on."""

    result: Instance
    watched: dict[str, Any]
    """Environment variables that were asked for, with what was set."""
    known: bool
    """Whether the environment was known as a whole."""
    met_unknown: bool


class Memory:
    """Results by key. One that asked for environment variables holds while these are the same."""

    def __init__(self, machine: Machine, most: int | None = None) -> None:
        """`most`: how many keys are kept, the newest (None: all)."""
        self.machine = machine
        self.most = most
        self.held: dict[Any, list[Entry]] = {}

    def results(self, key: Any) -> list[Instance]:
        """What was computed for a key, in whatever environment."""
        return [entry.result for entry in self.held.get(key, ())]

    def get(self, key: Any, compute: Callable[[], Any]) -> Instance:
        """The result of `compute`, run in a machine that knows of no launch.

        An exception inside, or no object as the result, gives an object of which nothing but the reason is
        known.
        """
        machine, facts = self.machine, self.machine.facts
        # While something that every call can reach is not as its module made it, nothing is remembered.
        shared = bool(machine.shared_changed)
        for entry in () if shared else self.held.get(key, ()):
            if entry.known == facts.env_known and all(_same(facts.env, *i) for i in entry.watched.items()):
                machine.env_read_count += len(entry.watched)
                if entry.met_unknown:
                    count_unknown()
                return entry.result
        watching, facts.watched = facts.watched, {}
        made = unknowns_made()
        try:
            result, pure = self._apart(compute)
        finally:
            watched, facts.watched = facts.watched, watching
        if watching is not None:
            watching.update(watched)
        if not isinstance(result, Instance):
            result = machine.new_instance(None, getattr(result, "reason", "") or "no object")
        if pure and not shared:
            entry = Entry(result, watched, facts.env_known, unknowns_made() != made)
            self.held.setdefault(key, []).append(entry)
            if self.most is not None and len(self.held) > self.most:
                del self.held[next(iter(self.held))]
        return result

    def drop(self, unwanted: Callable[[Any], bool]) -> None:
        """Forget the results of these keys."""
        for key in [key for key in self.held if unwanted(key)]:
            del self.held[key]

    def _apart(self, compute: Callable[[], Any]) -> tuple[Any, bool]:
        """(result, whether only new objects were changed) of `compute`, run outside phases and handlers."""
        machine = self.machine
        started = machine.clock
        machine.clock += 1
        state = {name: getattr(machine, name) for name in _STATE}
        for name, value in _APART.items():
            setattr(machine, name, value)
        machine.handlers, machine.trail, machine.oldest_touched = [], [], sys.maxsize
        failures, undecided = len(machine.failures), len(machine.undecided)
        try:
            result = compute()
        except Raised as raised:
            result = Unknown(f"{exception_name(raised.value)}: {exception_text(raised.value)}"[:300])
        except BudgetExceeded as error:
            result = Unknown(f"not evaluated: {error}")
        finally:
            touched, changes = machine.oldest_touched, machine.trail
            for name, value in state.items():
                setattr(machine, name, value)
            del machine.failures[failures:]
            del machine.undecided[undecided:]
            pure = touched > started
            if not pure:
                # What was there before has changed: that is taken back together with the launch.
                machine.trail.extend(changes)
                machine.oldest_touched = min(machine.oldest_touched, touched)
        return result, pure


_APART = {"phase": 0, "go_on": False, "speculation": 0, "path_decisions": None}
_STATE = (*_APART, "handlers", "trail", "oldest_touched", "steps")


def _same(environment: dict[str, Any], name: str, value: Any) -> bool:
    now = environment.get(name, MISSING)
    return now is value or bool(now == value)


def same_graph(left: Any, right: Any, depth: int = 0) -> bool:
    """Whether two values, one made as a copy of the other, still hold the same."""
    if left is right:
        return True
    kind = type(left)
    if kind is not type(right) or depth > 30:
        return False
    if kind is Instance:
        return left.cls is right.cls and _same_entries(left.attrs, right.attrs, depth)
    if isinstance(left, dict):
        return _same_entries(left, right, depth)
    if isinstance(left, (list, tuple)):
        pairs = zip(left, right, strict=False)
        return len(left) == len(right) and all(same_graph(a, b, depth + 1) for a, b in pairs)
    if kind is Unknown:
        return bool(left.reason == right.reason)
    return bool(left == right) if isinstance(left, (*PLAIN, External, set)) else False


def _same_entries(left: dict[Any, Any], right: dict[Any, Any], depth: int) -> bool:
    if len(left) != len(right):
        return False
    return all(name in right and same_graph(value, right[name], depth + 1) for name, value in left.items())
