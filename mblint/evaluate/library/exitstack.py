"""contextlib.ExitStack: what was entered and noted is left and called in reverse order."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.classes import class_lookup
from mblint.evaluate.errors import Raised
from mblint.evaluate.iteration import advance, throw
from mblint.evaluate.library.registry import Args, Kwargs, library
from mblint.evaluate.machine import Machine, exception_matches
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, BoundMethod, Builtin, Instance, KnownIterator


class ExitStack:
    """The stack; `pending` holds what is to be done, first to last."""

    def __init__(self, machine: Machine) -> None:
        self.pending: list[Any] = machine.born([])

    def attribute(self, machine: Machine, name: str, site: Any, frame: Any, default: Any = MISSING) -> Any:
        """stack.name"""
        methods = {"enter_context": self._enter, "callback": self._callback, "close": self._close}
        if name in methods:
            return Builtin(f"ExitStack.{name}", methods[name])
        for held in self.pending:
            machine.havoc(held, f"ExitStack.{name} is not evaluated")
        return Unknown(f"ExitStack.{name} is not evaluated", site.span() if site else None)

    def _add(self, machine: Machine, entry: Any) -> None:
        machine.touch_end(self.pending)
        self.pending.append(entry)

    def _callback(self, machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
        self._add(machine, ("call", args[0], tuple(args[1:]), tuple(kwargs.items())))
        return args[0]

    def _close(self, machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
        self.unwind(machine, None, site, frame)

    def _enter(self, machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
        manager = args[0]
        if isinstance(manager, Instance):
            enter, leave = class_lookup(manager.cls, "__enter__"), class_lookup(manager.cls, "__exit__")
            if enter is not None and leave is not None:
                entered = call(machine, BoundMethod(enter, manager), [], {}, site, frame)
                self._add(machine, ("leave", BoundMethod(leave, manager)))
                return entered
        if isinstance(manager, KnownIterator):
            first = advance(machine, manager)
            self._add(machine, ("generator", manager))
            return first[0] if first is not None else Unknown("a generator that yields nothing")
        if type(manager) is tuple and manager and manager[0] == "suppress":
            self._add(machine, ("suppress", manager[1]))
            return None
        if isinstance(manager, ExitStack):
            self._add(machine, ("stack", manager))
            return manager
        return getattr(manager, "entered", Unknown("the value of a context manager"))

    def unwind(self, machine: Machine, error: Raised | None, site: Any, frame: Any) -> bool | Unknown:
        """Do what is pending, last first; whether the error is taken away."""
        machine.touch(self.pending)
        entries, taken = list(self.pending), False
        self.pending.clear()
        doubt: Unknown | None = None
        for kind, held, *rest in reversed(entries):
            now = None if taken else error
            if kind == "call":
                call(machine, held, list(rest[0]), dict(rest[1]), site, frame)
                continue
            answer = self._left(machine, kind, held, now, site, frame)
            if type(answer) is Unknown:
                doubt = answer
            elif now is not None and answer:
                taken = True
        return doubt if doubt is not None and not taken else taken

    def _left(self, machine: Machine, kind: str, held: Any, error: Raised | None, site: Any, frame: Any) -> Any:
        from mblint.evaluate.builtins import type_of
        from mblint.evaluate.predicates import truth

        if kind == "leave":
            args = [None, None, None] if error is None else [type_of(error.value), error.value, None]
            return truth(machine, call(machine, held, args, {}, site, frame))
        if kind == "stack":
            return held.unwind(machine, error, site, frame)
        if kind == "generator":
            if error is not None:
                return bool(throw(machine, held, error))
            advance(machine, held)
            return False
        if error is None:
            return False
        answers = [exception_matches(error.value, type_) for type_ in held]
        return True if True in answers else Unknown("an exception that is not known") if None in answers else False


@library("contextlib.ExitStack")
def _exit_stack(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return ExitStack(machine)
