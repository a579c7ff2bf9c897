"""Parts of the launch path that look at a config and leave it as it is: done again without evaluating.

What such a part does follows from the values that it reads. These are noted in the order of reading, once; a later
launch whose config holds the same values at the same places would go the same way, so what the first one did is done
again. A launch differs from its neighbours in a handful of values, most of which the set-up of process groups never
asks for.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

from mblint.evaluate.machine import Machine
from mblint.evaluate.modules import Module
from mblint.evaluate.unknown import Unknown, count_unknown, unknowns_made
from mblint.evaluate.values import (
    MISSING,
    BuiltinClass,
    ClassValue,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    VersionValue,
)

PLAIN: Final = (int, float, str, bool, type(None), bytes)
SHARED: Final = (External, BuiltinClass, ClassValue, EnumMember, VersionValue)
NAMES: Final = object()
"""Stands for all names of an object at once."""
MOST: Final = 4096
"""How many ways through one part are remembered."""
DEEPEST: Final = 20


class NotComparable(Exception):
    """A value of which nobody can tell whether another launch has the same."""


class Objects:
    """The objects that were met, each known by the order in which it was."""

    def __init__(self) -> None:
        self.met: list[Instance] = []
        self.numbers: dict[int, int] = {}
        self.containers: dict[int, Any] = {}
        """Lists, dicts and sets that were met, by id."""

    def number(self, instance: Instance) -> int:
        found = self.numbers.get(id(instance))
        if found is None:
            found = self.numbers[id(instance)] = len(self.met)
            self.met.append(instance)
        return found

    def mark(self, value: Any, depth: int = 0) -> Any:
        """What makes a value the same as another launch's, to be compared by ==. Raises NotComparable."""
        kind = type(value)
        if kind in PLAIN:
            return (kind, value)
        if kind is Instance:
            return (value.cls, self.number(value))
        if depth > DEEPEST:
            raise NotComparable
        if isinstance(value, (list, dict, set)):
            self.containers[id(value)] = value
        if kind in (tuple, list):
            return (kind, *[self.mark(inner, depth + 1) for inner in value])
        if kind in (set, frozenset):
            if not all(type(inner) in PLAIN for inner in value):
                raise NotComparable
            return (kind, frozenset((type(inner), inner) for inner in value))
        if isinstance(value, dict):
            return (kind, *[(self.mark(key, depth + 1), self.mark(inner, depth + 1)) for key, inner in value.items()])
        if kind is EnumMember:
            return (value.cls, value.name)
        if kind in (External, BuiltinClass, ClassValue, FunctionValue, VersionValue) or value is MISSING:
            return value
        raise NotComparable


class Watched(dict[str, Any]):
    """The attributes of an object that is being read by a part that is evaluated for the first time."""

    __slots__ = ("number", "reads")

    number: int
    reads: Reads

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        self.reads.note(self.number, name, value)
        return value

    def get(self, name: str, default: Any = None) -> Any:
        value = super().get(name, MISSING)
        self.reads.note(self.number, name, value)
        return default if value is MISSING else value

    def __contains__(self, name: object) -> bool:
        self.reads.note(self.number, cast(str, name), super().get(cast(str, name), MISSING))
        return super().__contains__(name)

    def _all(self) -> None:
        self.reads.note(self.number, NAMES, tuple(super().keys()))
        for name, value in super().items():
            self.reads.note(self.number, name, value)

    def __iter__(self) -> Iterator[str]:
        self._all()
        return super().__iter__()

    def __len__(self) -> int:
        self._all()
        return super().__len__()

    def keys(self) -> Any:
        self._all()
        return super().keys()

    def values(self) -> Any:
        self._all()
        return super().values()

    def items(self) -> Any:
        self._all()
        return super().items()

    def copy(self) -> dict[str, Any]:
        self._all()
        return dict(super().items())

    def __eq__(self, other: object) -> bool:
        self._all()
        return super().__eq__(other)

    __hash__ = None


class Reads:
    """What is read of the objects that can be reached from some, in the order of reading."""

    def __init__(self) -> None:
        self.objects = Objects()
        self.seen: dict[tuple[int, Any], Any] = {}
        self.own: list[dict[str, Any]] = []
        """The attributes of each object, as they were before it was watched."""
        self.comparable = True

    def mark(self, value: Any) -> Any:
        """The mark of a value; the objects in it are watched from now on."""
        try:
            mark = self.objects.mark(value)
        except NotComparable:
            self.comparable = False
            mark = None
        for instance in self.objects.met[len(self.own) :]:
            self.own.append(instance.attrs)
            watched = Watched(instance.attrs)
            watched.number, watched.reads = len(self.own) - 1, self
            instance.attrs = watched
        return mark

    def note(self, number: int, name: Any, value: Any) -> None:
        place = (number, name)
        if place not in self.seen and len(self.own) > number:
            self.seen[place] = None  # its own mark may read what is watched
            self.seen[place] = self.mark(value)

    def end(self) -> None:
        """Let the objects have their attributes back."""
        for instance, own in zip(self.objects.met, self.own, strict=True):
            watched = instance.attrs
            changed = dict.items(watched)
            if len(own) != dict.__len__(watched) or any(own.get(name, MISSING) is not value for name, value in changed):
                own.clear()
                own.update(changed)
            instance.attrs = own


@dataclass(frozen=True, slots=True)
class Done:
    """What a part did: the names of modules and of the world that it set."""

    stores: tuple[tuple[Module | str, dict[Any, Any] | None, Any, Any], ...]
    """(module, its names, name, value), or ("env" or "flags", None, name, value)."""
    met_unknown: bool


@dataclass(slots=True)
class Branch:
    """What is read next on a way, and where each value leads."""

    place: tuple[int, Any]
    ways: dict[Any, Branch | Done]


class Replay:
    """Remembers what parts of the launch path did, by what they read."""

    def __init__(self, machine: Machine, in_project: Callable[[str], bool]) -> None:
        self.machine = machine
        self.in_project = in_project
        self.known: dict[Any, Branch | Done] = {}
        self.count = 0

    def run(self, part: str, roots: list[Any], evaluate: Callable[[], str | None]) -> str | None:
        """Evaluate a part that starts from these objects, or do again what it did for the same values."""
        machine = self.machine
        start = self._start(part, roots)
        if start is None:
            return evaluate()
        done = self._find(start, roots)
        if done is not None:
            self._again(done)
            return None
        reads = Reads()
        for root in roots:
            reads.mark(root)
        mark, made, began = machine.mark(), unknowns_made(), machine.clock
        machine.clock += 1
        before = (len(machine.failures), len(machine.undecided), len(machine.notes), machine.asides, machine.argument_reads)
        machine.noting = True
        try:
            stopped = evaluate()
        finally:
            machine.noting = False
            reads.end()
        after = (len(machine.failures), len(machine.undecided), len(machine.notes), machine.asides, machine.argument_reads)
        if stopped is None and before == after and reads.comparable and self.count < MOST:
            stores = self._stores(mark, began, reads)
            if stores is not None:
                self._keep(start, reads, Done(stores, unknowns_made() != made))
        return stopped

    def _start(self, part: str, roots: list[Any]) -> Any:
        """What a part depends on beside its objects; None where that cannot be compared."""
        machine, world = self.machine, self.machine.facts
        if machine.shared_changed or machine.speculation or not all(type(value) is str for value in world.env.values()):
            return None
        argv = None if world.argv is None else tuple(world.argv)
        if argv is not None and not all(type(word) is str for word in argv):
            return None
        try:
            marks = Objects()
            first = tuple(marks.mark(root) for root in roots)
        except NotComparable:
            return None
        return (
            part, first, world.world_size, world.gpu, world.env_known, frozenset(world.env.items()), frozenset(world.flags.items()), argv,
        )  # fmt: skip

    def _find(self, start: Any, roots: list[Any]) -> Done | None:
        at = self.known.get(start)
        objects = Objects()
        try:
            for root in roots:
                objects.mark(root)
            while type(at) is Branch:
                number, name = at.place
                attrs = objects.met[number].attrs
                at = at.ways.get(objects.mark(tuple(attrs) if name is NAMES else attrs.get(name, MISSING)))
        except NotComparable:
            return None
        return at if type(at) is Done else None

    def _again(self, done: Done) -> None:
        machine = self.machine
        if done.met_unknown:
            count_unknown()
        for owner, names, name, value in done.stores:
            if isinstance(owner, str):
                machine.oldest_touched = 0
                machine.store(machine.facts.env if owner == "env" else machine.facts.flags, name, value)
            else:
                assert names is not None
                machine.store_global(owner, names, name, value)

    def _stores(self, mark: int, began: int, reads: Reads) -> tuple[tuple[Any, Any, Any, Any], ...] | None:
        """What was set since the mark beside what was made since; None if anything else was changed.

        Objects that were made keep what they hold when the launch is taken back, since what was set may lead to them.
        """
        machine, world = self.machine, self.machine.facts
        kept: list[tuple[Any, ...]] = []
        stores: dict[tuple[int, Any], tuple[Any, Any, Any, Any]] = {}
        for entry in machine.trail[mark:]:
            target = entry[0]
            if type(target) is Instance:
                if target.birth <= began:
                    return None
                continue
            held = machine.namespaces.get(id(target))
            owner: Any = "env" if target is world.env else "flags" if target is world.flags else held[0] if held is not None else None
            if owner is not None:
                if len(entry) != 3 or target.get(entry[1], MISSING) is MISSING:
                    return None
                if not isinstance(owner, str) and (not isinstance(owner, Module) or self.in_project(owner.path)):
                    return None
                if not self._is_new(target[entry[1]], began, reads):
                    return None
                kept.append(entry)
                stores[id(target), entry[1]] = (owner, None if isinstance(owner, str) else target, entry[1], target[entry[1]])
            elif target is machine.shared_changed:
                kept.append(entry)
            elif machine.container_birth.get(id(target), began + 1) <= began or type(target) is Watched or target is machine.escaped:
                return None
        machine.trail[mark:] = kept
        return tuple(stores.values())

    def _is_new(self, value: Any, began: int, reads: Reads) -> bool:
        """Whether a value leads to none of the launch's own objects: another launch must not get them."""
        pending, seen = [value], set()
        while pending:
            held = pending.pop()
            kind = type(held)
            if kind in PLAIN or kind in SHARED or id(held) in seen:
                continue
            seen.add(id(held))
            if kind is Instance and (held.birth > began or held.birth < 0):
                pending.extend(held.attrs.values())
            elif kind is Unknown:
                pending.extend(held.reach if held.options is None else held.options)
            elif kind is FunctionValue:
                pending.extend(_captured(held))
            elif isinstance(held, (list, tuple, set, dict)) and id(held) not in reads.objects.containers:
                pending.extend(held.values() if isinstance(held, dict) else held)
            else:
                return False
        return True

    def _keep(self, start: Any, reads: Reads, done: Done) -> None:
        way: Any = start
        ways: dict[Any, Any] = self.known
        for place, mark in reads.seen.items():
            branch = ways.get(way)
            if branch is None:
                branch = ways[way] = Branch(place, {})
            if type(branch) is not Branch or branch.place != place:
                return  # not what the same values led to before: nothing to go by
            ways, way = branch.ways, mark
        if way not in ways:
            ways[way] = done
            self.count += 1


def _captured(function: FunctionValue) -> Iterator[Any]:
    """What a function can reach through the variables of the calls around it, its defaults and its attributes."""
    yield from (*function.defaults, *function.kw_defaults.values(), *function.attrs.values())
    names = {node.id for node in ast.walk(function.node) if isinstance(node, ast.Name)} if function.closure is not None else set()
    frame = function.closure
    while frame is not None:
        yield from (frame.vars[name] for name in names if name in frame.vars)
        frame = frame.parent
