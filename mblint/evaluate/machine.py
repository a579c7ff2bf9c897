"""The state of an evaluation, and the operations that change it.

Every change of the heap is written to a trail, so that a branch that turned out to be only possible, or a whole
launch, can be taken back.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from typing import Any

from mblint.evaluate import errors
from mblint.evaluate.budget import Budget, Limits
from mblint.evaluate.errors import Failure, Raised
from mblint.evaluate.heap import LENGTH, snapshot, take_back
from mblint.evaluate.modules import ModuleTable
from mblint.evaluate.unknown import Unknown, rest
from mblint.evaluate.values import (
    MISSING,
    REST,
    BoundMethod,
    BuiltinClass,
    ClassValue,
    ExceptionValue,
    FunctionValue,
    Instance,
    KnownIterator,
    Partial,
    Write,
)

PHASE_RECIPE, PHASE_OVERRIDE, PHASE_LAUNCH = 0, 1, 2


class Guard:
    """A `try` whose body is running: the exception types that it takes (None: all), where its trail begins, and the
    exceptions that only some of the ways through the body raise."""

    __slots__ = ("mark", "raises", "types")

    def __init__(self, types: tuple[Any, ...] | None, mark: int) -> None:
        self.types = types
        self.mark = mark
        self.raises: list[tuple[Raised, Any]] = []

    def takes(self, value: object) -> bool:
        return self.types is None or any(exception_matches(value, type_) is not False for type_ in self.types)


class Machine(Budget):
    """One evaluator: modules, heap trail, budget, and what was found on the way."""

    def __init__(self, modules: ModuleTable, facts: Any) -> None:
        super().__init__()
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
        self.handlers: list[Guard] = []
        self.asides = 0
        """How many exceptions of only some ways have been kept for a `try` further out."""
        self.clock = 1
        """Counts objects; those that modules made themselves have negative births."""
        self.module_clock = -(1 << 60)
        self.module_depth = 0
        """How many top-level statements of modules are running inside each other."""
        self.oldest_touched = sys.maxsize
        """Birth of the oldest object that was changed: tells whether a call changed only what it made itself."""
        self.container_birth: dict[int, int] = {}
        self.unknown_loops = 0
        """How many loops are being run of which nobody knows how often they run."""
        self.summaries: dict[int, Instance] = {}
        """Instances that stand for several objects, made in the rounds of a loop: a write to one is a possible one."""
        self.shared_changed: dict[str, bool] = {}
        """Not empty while something that functions can reach without arguments differs from what modules made it."""
        self.namespaces: dict[int, tuple[Any, dict[Any, Any]]] = {}
        """The module, class or function, and the names that it holds, of every one that evaluated code has changed, by the
        id of the names."""
        self.noting = False
        """Whether what is changed now is going to be told apart by when it was made: the variables of calls too, then."""
        self.escaped: list[Any] = []
        """Mutable objects that were stored in objects that are not known."""
        self.memo: dict[Any, Any] = {}
        self.compiled: dict[Any, Any] = {}
        self.special_functions: dict[str, Any] = {}
        """Full name of an upstream function -> what is evaluated in its place."""
        self.env_reads: dict[str, Any] = {}
        self.env_read_count = 0
        """How often evaluated code asked for an environment variable: a call that did is not remembered."""
        self.argument_reads = 0
        """How often evaluated code parsed a command line, whose defaults were taken then."""
        self.notes: list[Any] = []
        self.path_decisions: list[bool] | None = None
        """Decisions for unknown branches while a recipe's alternatives are enumerated."""
        self.path_taken: list[tuple[Any, bool, str]] = []
        self.strict = False
        """Let errors of the evaluator's own models of library functions through (tests)."""

    # --- trail -------------------------------------------------------------------------------------------------

    def mark(self) -> int:
        return len(self.trail)

    def undo(self, mark: int) -> None:
        """Take back every change since `mark`."""
        trail = self.trail
        while len(trail) > mark:
            take_back(trail.pop())

    def forget(self, mark: int) -> None:
        """Keep the changes since `mark` for good."""
        del self.trail[mark:]

    def _touched(self, birth: int) -> None:
        if birth < self.oldest_touched:
            self.oldest_touched = birth
        if birth < 0 and not self.module_depth and not self.shared_changed:
            self.store_shared()

    def store_shared(self) -> None:
        """Module-level state is about to change: results of earlier calls may not hold any more."""
        self.oldest_touched = 0
        if not self.module_depth and not self.shared_changed:
            self.trail.append((self.shared_changed, "changed", MISSING))
            self.shared_changed["changed"] = True

    def touch(self, container: Any) -> None:
        """Announce that a dict, list, set or iterator is about to change."""
        self._touched(self.container_birth.get(id(container), 0))
        held = snapshot(container)
        self.trail.append((container, held))
        if type(held) is not int and len(held) > 256:
            self.step(len(held) >> 5)

    def touch_entry(self, container: dict[Any, Any], key: Any) -> None:
        """Announce that one entry of a dict is about to be set."""
        self._touched(self.container_birth.get(id(container), 0))
        self.trail.append((container, key, container.get(key, MISSING)))

    def touch_end(self, container: list[Any]) -> None:
        """Announce that elements are about to be appended."""
        self._touched(self.container_birth.get(id(container), 0))
        self.trail.append((container, LENGTH, len(container)))

    def born(self, container: Any) -> Any:
        """Announce a container that was just made by evaluated code."""
        self.container_birth[id(container)] = self.clock
        return container

    def store(self, target: dict[Any, Any], key: Any, value: object) -> None:
        """target[key] = value with an undo entry."""
        self.trail.append((target, key, target.get(key, MISSING)))
        target[key] = value

    def store_global(self, owner: Any, names: dict[Any, Any], key: Any, value: object) -> None:
        """names[key] = value for what a module, a class or a function (`owner`) holds and every function can reach."""
        self.store_shared()
        self.namespaces[id(names)] = (owner, names)
        self.store(names, key, value)

    # --- objects -----------------------------------------------------------------------------------------------

    def new_instance(self, cls: ClassValue | None, reason: str = "") -> Instance:
        self.clock += 1
        return Instance(cls, self.clock, reason)

    def write(self, instance: Instance, name: str, value: object, site: Any, trace: Any) -> None:
        """Set an attribute without hooks, remembering who did."""
        birth = instance.birth
        if birth < self.oldest_touched or birth < 0:
            self._touched(birth)
        attrs, origin = instance.attrs, instance.origin
        if self.summaries and id(instance) in self.summaries and name in attrs:
            from mblint.evaluate.joining import join_values

            value = join_values([attrs[name], value], "one of several objects that a loop made")
        before = origin.get(name)
        self.trail.append((instance, name, attrs.get(name, MISSING), before))
        attrs[name] = value
        origin[name] = Write(site, value, before, trace, self.phase)

    def remove(self, instance: Instance, name: str) -> None:
        """del instance.name, without hooks."""
        self._touched(instance.birth)
        self.trail.append((instance, name, instance.attrs[name], instance.origin.get(name)))
        del instance.attrs[name]
        instance.origin.pop(name, None)

    def havoc(self, value: object, reason: str) -> None:
        """Unknown code got hold of `value`: forget everything it could have changed."""
        seen: set[int] = set()
        pending = [value]
        while pending:
            held = pending.pop()
            if id(held) in seen:
                continue
            seen.add(id(held))
            if isinstance(held, Instance):
                for name, inner in list(held.attrs.items()):
                    pending.append(inner)
                    if not isinstance(inner, (Instance, Unknown)):
                        self.write(held, name, Unknown(reason), None, None)
            elif isinstance(held, dict):
                pending.extend(held.values())
                self.touch(held)
                for key, inner in held.items():
                    if not isinstance(inner, Instance):
                        held[key] = Unknown(reason)
                held[REST] = rest(reason)
            elif isinstance(held, list):
                pending.extend(held)
                self.touch(held)
                held[:] = [rest(reason, reach=tuple(e for e in held if isinstance(e, (Instance, list, dict, set))))]
            elif isinstance(held, set):
                self.touch(held)
                held.clear()
                held.add(rest(reason))
            elif isinstance(held, tuple):
                pending.extend(held)
            elif isinstance(held, Unknown):
                pending.extend(held.reach if held.options is None else held.options)
            elif isinstance(held, BoundMethod):
                pending.extend([held.receiver, held.function])
            elif isinstance(held, FunctionValue):
                self._havoc_closure(held, reason, pending)
            elif isinstance(held, Partial):
                pending.extend([held.function, *held.args, *held.kwargs.values()])
            elif isinstance(held, KnownIterator):
                self.touch(held)
                held.index = len(held.items)

    def _havoc_closure(self, function: FunctionValue, reason: str, pending: list[Any]) -> None:
        """What a function can reach through the variables around it, and the variables that it rebinds."""
        rebinds = {n for node in ast.walk(function.node) if isinstance(node, ast.Nonlocal) for n in node.names} if function.closure else ()
        frame = function.closure
        while frame is not None:
            for name, value in list(frame.vars.items()):
                pending.append(value)
                if name in rebinds and type(value) is not Unknown:
                    self.store(frame.vars, name, Unknown(reason))
            frame = frame.parent

    # --- failures ----------------------------------------------------------------------------------------------

    def missing_key(self, key: object, site: Any, frame: Any) -> object:
        """Python would raise KeyError here."""
        return self.implicit(KeyError, key.partial or "?" if type(key) is Unknown else repr(key), site, frame, (key,))

    def implicit(self, type_: type[BaseException], message: str, site: Any, frame: Any, args: tuple[Any, ...] | None = None) -> object:
        """Python itself would raise here. Returns the value to go on with when that is wanted."""
        value = ExceptionValue(type_, ((message,) if message else ()) if args is None else args)
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

    def guard_for(self, value: object) -> Guard | None:
        """The innermost `try` that is being executed and has a handler for this exception."""
        for guard in reversed(self.handlers):
            if guard.takes(value):
                return guard
        return None

    def catches(self, value: object) -> bool:
        """True when a `try` that is being executed has a handler for this exception."""
        return bool(self.handlers) and self.guard_for(value) is not None


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


__all__ = ["Guard", "Limits", "Machine", "errors", "exception_matches", "exception_name", "exception_text"]
