"""The state of an evaluation, and the operations that change it.

Every change of the heap is written to a trail, so that a branch that turned out to be only possible, or a whole
launch, can be taken back.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from mblint.evaluate import errors
from mblint.evaluate.errors import BudgetExceeded, Failure, Raised
from mblint.evaluate.modules import ModuleTable
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    BuiltinClass,
    ClassValue,
    ExceptionValue,
    Instance,
    KnownIterator,
    Write,
)

PHASE_RECIPE, PHASE_OVERRIDE, PHASE_LAUNCH = 0, 1, 2


class Limits:
    """Bounds of one evaluation."""

    steps = 3_000_000
    depth = 90
    container = 200_000
    """Most elements of one list, dict, set or string piece that evaluation may build."""
    forks = 4
    """Unknown branches with an early exit that one call may split on (2**forks runs)."""
    loop = 100_000


class Machine:
    """One evaluator: modules, heap trail, budget, and what was found on the way."""

    def __init__(self, modules: ModuleTable, facts: Any) -> None:
        self.modules = modules
        modules.machine = self
        self.facts = facts
        """Declared environment: see mblint.evaluate.world.World."""
        self.trail: list[tuple[Any, ...]] = []
        self.speculation = 0
        """How many enclosing branches are only possible; nothing reached inside is certain."""
        self.phase = PHASE_RECIPE
        self.go_on = False
        """Record failed checks and continue, in place of stopping at the first."""
        self.failures: list[Failure] = []
        self.undecided: list[tuple[Any, str]] = []
        """Branches on unknown values that guard a check: (site, reason)."""
        self.handlers: list[Any] = []
        self.steps = 0
        self.depth = 0
        self.clock = 1
        self.oldest_touched = sys.maxsize
        self.container_birth: dict[int, int] = {}
        self.memo: dict[Any, Any] = {}
        self.compiled: dict[Any, Any] = {}
        self.special_functions: dict[str, Any] = {}
        """Full name of an upstream function -> what is evaluated in its place."""
        self.env_reads: dict[str, Any] = {}
        self.env_read_count = 0
        """How often evaluated code asked for an environment variable: a call that did is not remembered."""
        self.notes: list[Any] = []
        self.path_decisions: list[bool] | None = None
        """Decisions for unknown branches while a recipe's alternatives are enumerated."""
        self.path_taken: list[tuple[Any, bool, str]] = []

    # --- trail -------------------------------------------------------------------------------------------------

    def mark(self) -> int:
        return len(self.trail)

    def undo(self, mark: int) -> None:
        """Take back every change since `mark`."""
        trail = self.trail
        while len(trail) > mark:
            entry = trail.pop()
            if len(entry) == 3:
                target, key, old = entry
                if old is MISSING:
                    target.pop(key, None)
                else:
                    target[key] = old
            else:
                target, old = entry
                if isinstance(target, dict):
                    target.clear()
                    target.update(old)
                elif isinstance(target, set):
                    target.clear()
                    target.update(old)
                elif isinstance(target, list):
                    target[:] = old
                else:
                    target.index = old

    def forget(self, mark: int) -> None:
        """Keep the changes since `mark` for good."""
        del self.trail[mark:]

    def touch(self, container: Any) -> None:
        """Announce that a dict, list, set or iterator is about to change."""
        if type(container) is not KnownIterator:
            # An iterator is used up where it was made; only shared containers make a call impure.
            birth = self.container_birth.get(id(container), 0)
            if birth < self.oldest_touched:
                self.oldest_touched = birth
        if isinstance(container, dict):
            self.trail.append((container, dict(container)))
        elif isinstance(container, set):
            self.trail.append((container, set(container)))
        elif isinstance(container, list):
            self.trail.append((container, list(container)))
        else:
            self.trail.append((container, container.index))

    def born(self, container: Any) -> Any:
        """Announce a container that was just made by evaluated code."""
        self.container_birth[id(container)] = self.clock
        return container

    def store(self, target: dict[Any, Any], key: Any, value: object) -> None:
        """target[key] = value with an undo entry."""
        self.trail.append((target, key, target.get(key, MISSING)))
        target[key] = value

    # --- objects -----------------------------------------------------------------------------------------------

    def new_instance(self, cls: ClassValue | None, reason: str = "") -> Instance:
        self.clock += 1
        return Instance(cls, self.clock, reason)

    def write(self, instance: Instance, name: str, value: object, site: Any, trace: Any) -> None:
        """Set an attribute without hooks, remembering who did."""
        attrs, origin, trail = instance.attrs, instance.origin, self.trail
        if instance.birth < self.oldest_touched:
            self.oldest_touched = instance.birth
        before = origin.get(name)
        trail.append((attrs, name, attrs.get(name, MISSING)))
        trail.append((origin, name, before if before is not None else MISSING))
        attrs[name] = value
        origin[name] = Write(site, value, before, trace, self.phase)

    def havoc(self, value: object, reason: str, seen: set[int] | None = None) -> None:
        """Unknown code got hold of `value`: forget everything it could have changed."""
        seen = seen if seen is not None else set()
        if id(value) in seen:
            return
        seen.add(id(value))
        if isinstance(value, Instance):
            for name, held in list(value.attrs.items()):
                if isinstance(held, Instance):
                    self.havoc(held, reason, seen)
                elif not isinstance(held, Unknown):
                    self.write(value, name, Unknown(reason), None, None)
        elif isinstance(value, dict) and value:
            self.touch(value)
            for key, held in list(value.items()):
                if isinstance(held, Instance):
                    self.havoc(held, reason, seen)
                else:
                    value[key] = Unknown(reason)
        elif isinstance(value, list):
            for held in value:
                if isinstance(held, Instance):
                    self.havoc(held, reason, seen)
        elif isinstance(value, tuple):
            for held in value:
                self.havoc(held, reason, seen)

    # --- failures ----------------------------------------------------------------------------------------------

    def step(self, count: int = 1) -> None:
        self.steps += count
        if self.steps > Limits.steps:
            raise BudgetExceeded(f"more than {Limits.steps:,} steps")

    def implicit(self, type_: type[BaseException], message: str, site: Any, frame: Any) -> object:
        """Python itself would raise here. Returns the value to go on with when that is wanted."""
        value = ExceptionValue(type_, (message,))
        if self.catches(value):
            raise Raised(value, site, frame.trace)
        if self.speculation or frame.blamed:
            return Unknown(f"{type_.__name__}: {message}", site.span() if site else None)
        if not self.go_on:
            raise Raised(value, site, frame.trace, ("implicit",))
        frame.blamed = True
        if self.failures:
            # After a check has failed the values it guarded are what breaks: that says nothing new.
            return Unknown(f"{type_.__name__}: {message}", site.span() if site else None)
        from mblint.evaluate.guards import guard_reads

        reads = guard_reads(self, site, frame) if site is not None else ()
        self.failures.append(Failure(type_.__name__, message, site, frame.trace, reads, True, self.phase))
        return Unknown(f"{type_.__name__}: {message}", site.span() if site else None)

    def catches(self, value: object) -> bool:
        """True when a `try` that is being executed has a handler for this exception."""
        for types in reversed(self.handlers):
            if types is None:
                return True
            for type_ in types:
                if exception_matches(value, type_) is not False:
                    return True
        return False

    def check_size(self, count: int) -> None:
        if count > Limits.container:
            raise BudgetExceeded(f"a value of more than {Limits.container:,} elements")


def exception_matches(value: object, type_: object) -> bool | None:
    """Whether an `except type_` clause takes `value`; None when that is not known."""
    if isinstance(value, ExceptionValue):
        if isinstance(type_, BuiltinClass):
            return issubclass(value.type, type_.type)
        return False if isinstance(type_, ClassValue) else None
    if isinstance(value, Instance) and value.cls is not None:
        if type_ in value.cls.cached_mro:
            return True
        if isinstance(type_, BuiltinClass):
            return any(isinstance(base, BuiltinClass) and issubclass(base.type, type_.type) for base in value.cls.cached_mro)
        return False
    return None


def exception_name(value: object) -> str:
    """The class name of an exception."""
    if isinstance(value, ExceptionValue):
        return value.type.__name__
    if isinstance(value, Instance) and value.cls is not None:
        return value.cls.name
    return "Exception"


def exception_text(value: object) -> str:
    """The message of an exception, as far as it is known."""
    args: Iterable[object] = ()
    if isinstance(value, ExceptionValue):
        args = value.args
    elif isinstance(value, Instance):
        held = value.attrs.get("args", ())
        args = held if isinstance(held, (tuple, list)) else ()
    parts = [text if isinstance(text, str) else (text.partial or "?") if isinstance(text, Unknown) else repr(text) for text in args]
    return " ".join(" ".join(part.split()) for part in parts)


__all__ = ["Limits", "Machine", "errors", "exception_matches", "exception_name", "exception_text"]
