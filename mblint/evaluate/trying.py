"""try and with: handlers, what may have been raised, and code that runs on every way out."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.compiler import Context
from mblint.evaluate.control import combine, current, dismiss
from mblint.evaluate.errors import Raised
from mblint.evaluate.expressions import compile_expression
from mblint.evaluate.frames import Exec, Frame
from mblint.evaluate.heap import collect
from mblint.evaluate.joining import Outcome, apply_join, switch, weaken
from mblint.evaluate.machine import Guard, Machine, exception_matches
from mblint.evaluate.names import compile_name, compile_unbind
from mblint.evaluate.unknown import Unknown, unknowns_made
from mblint.evaluate.values import BoundMethod, BuiltinClass, ExceptionValue, Instance, KnownIterator


class Clause:
    """One `except`."""

    __slots__ = ("bind", "body", "type_of", "unbind")

    def __init__(self, context: Context, node: ast.ExceptHandler, compile_block: Any) -> None:
        self.type_of = compile_expression(context, node.type) if node.type is not None else None
        self.bind = compile_name(context, node.name) if node.name else None
        self.unbind = compile_unbind(context, node.name, context.site(node), quiet=True) if node.name else None
        self.body = compile_block(context, node.body)

    def types(self, frame: Frame) -> tuple[Any, ...] | None:
        if self.type_of is None:
            return None
        held = self.type_of(frame)
        return held if isinstance(held, tuple) else (held,)

    def takes(self, frame: Frame, value: Any) -> bool:
        types = self.types(frame)
        return types is None or any(exception_matches(value, type_) is not False for type_ in types)

    def run(self, machine: Machine, frame: Frame, value: Any) -> Any:
        if self.bind is not None:
            self.bind(frame, value)
        before, frame.exception = frame.exception, value
        try:
            signal = self.body(frame)
        finally:
            frame.exception = before
        if self.unbind is not None:
            self.unbind(frame)
        return signal


def compile_try(context: Context, node: ast.Try | ast.TryStar) -> Exec:
    from mblint.evaluate.statements import compile_block

    machine = context.machine
    body = compile_block(context, node.body)
    clauses = [Clause(context, handler, compile_block) for handler in node.handlers]
    orelse = compile_block(context, node.orelse) if node.orelse else None
    guarded = _guarded(machine, body, clauses, orelse) if clauses else body
    if not node.finalbody:
        return guarded
    final = compile_block(context, node.finalbody)

    def leave(frame: Frame, error: Raised | None) -> Any:
        return final(frame)

    return lambda frame: with_exit(machine, frame, guarded, leave)


def _guarded(machine: Machine, body: Exec, clauses: list[Clause], orelse: Exec | None) -> Exec:
    def handle(frame: Frame, error: Raised) -> Any:
        for clause in clauses:
            if clause.takes(frame, error.value):
                return clause.run(machine, frame, error.value)
        raise error

    def after(frame: Frame, error: Raised | None, signal: Any) -> Any:
        if error is not None:
            return handle(frame, error)
        return orelse(frame) if signal is None and orelse is not None else signal

    def run(frame: Frame) -> Any:
        guard = Guard(types_of_clauses(clauses, frame), machine.mark())
        made = unknowns_made()
        error: Raised | None = None
        signal: Any = None
        machine.handlers.append(guard)
        try:
            signal = body(frame)
        except Raised as raised:
            error = raised
        except BaseException:
            if guard.raises:
                machine.speculation -= 1
            raise
        finally:
            machine.handlers.pop()
        doubtful = _doubtful_clauses(frame, clauses) if unknowns_made() != made else []
        if not guard.raises and not doubtful:
            return after(frame, error, signal)
        if not guard.raises:
            machine.speculation += 1
        try:
            return _several(machine, frame, guard, error, signal, after, doubtful)
        finally:
            machine.speculation -= 1

    return run


def types_of_clauses(clauses: list[Clause], frame: Frame) -> tuple[Any, ...] | None:
    """All types that a `try` takes; None when it takes everything."""
    types: list[Any] = []
    for clause in clauses:
        held = clause.types(frame)
        if held is None:
            return None
        types.extend(held)
    return tuple(types)


def _doubtful_clauses(frame: Frame, clauses: list[Clause]) -> list[Clause]:
    """Clauses whose exceptions an operation on an unknown value may raise. Imports are decided by what is installed."""
    found = []
    for clause in clauses:
        types = clause.types(frame)
        if types is None or not all(isinstance(t, BuiltinClass) and issubclass(t.type, ImportError) for t in types):
            found.append(clause)
    return found


def _several(machine: Machine, frame: Frame, guard: Guard, error: Raised | None, signal: Any, after: Any, doubtful: list[Clause]) -> Any:
    """The end of a `try` that some ways through its body leave by an exception."""
    ways: list[Outcome] = []
    failed: list[tuple[Raised, Outcome]] = []
    entered = machine.mark()

    def follow(run: Any) -> None:
        try:
            ended = run()
        except Raised as raised:
            failed.append((raised, Outcome(collect(machine.trail, frame.mark))))
        else:
            ways.append(current(machine, frame, ended))
        machine.undo(entered)

    result = frame.result
    follow(lambda: after(frame, error, signal))
    for raised, seen in guard.raises:
        switch(machine, guard.mark, seen.changes)
        frame.result = result
        follow(lambda raised=raised: after(frame, raised, None))
    for clause in doubtful:
        weaken(machine, guard.mark)
        frame.result = result
        value = Unknown("an exception that is not certain")
        follow(lambda clause=clause, value=value: clause.run(machine, frame, value))
    if not ways:
        raised, state = failed[-1]
        failed.pop()
        apply_join(machine, frame.mark, [state], "")
        _dismiss_all(machine, frame, failed)
        raise raised
    _dismiss_all(machine, frame, failed)
    return combine(machine, frame, ways)


def _dismiss_all(machine: Machine, frame: Frame, failed: list[tuple[Raised, Outcome]]) -> None:
    for raised, state in failed:
        mark = machine.mark()
        switch(machine, frame.mark, state.changes)
        dismiss(machine, raised)
        machine.undo(mark)


# --- code that runs on every way out ---------------------------------------------------------------------------------


def with_exit(machine: Machine, frame: Frame, body: Exec, leave: Any, once: bool = False) -> Any:
    """Run `body`, then `leave(frame, error)` on every way out of it.

    A signal that `leave` gives replaces how the way ended; True, when there is an error, takes the error away.
    """
    before = {id(way) for way in frame.pending or ()}
    outer = [(guard, len(guard.raises)) for guard in machine.handlers]
    error: Raised | None = None
    signal: Any = None
    # A manager may take away what is raised on some ways only; while checks are collected nothing is to be caught.
    guard = Guard((BuiltinClass(BaseException),), machine.mark()) if not machine.go_on else None
    if guard is not None:
        machine.handlers.append(guard)
    try:
        signal = body(frame)
    except Raised as raised:
        error = raised
    finally:
        if guard is not None:
            machine.handlers.remove(guard)
    for way in list(frame.pending or ()):
        if id(way) not in before:
            _replay_way(machine, frame, way, leave)
    if guard is not None and guard.raises:
        return _left_on_some_ways(machine, frame, guard, error, signal, leave, once)
    rescued: list[Outcome] = []
    for guard, count in outer:
        for index in range(count, len(guard.raises)):
            rescued += _replay_raise(machine, frame, guard, index, leave)
    result = frame.result
    answer = leave(frame, error)
    if answer is True and error is not None:
        signal, error = None, None
    elif answer is not None and answer is not True:
        signal, error, result = answer, None, frame.result
    frame.result = result
    if rescued:
        if error is not None:
            dismiss(machine, error)
            return combine(machine, frame, rescued)
        return combine(machine, frame, [current(machine, frame, signal), *rescued])
    if error is not None:
        raise error
    return signal


def _left_on_some_ways(machine: Machine, frame: Frame, guard: Guard, error: Raised | None, signal: Any, leave: Any, once: bool) -> Any:
    """Leave a block in which some ways raise: each way goes on, or its exception travels on. What can leave `once` only,
    as a generator does, may have gone on after any of them."""

    def after(inner: Frame, raised: Raised | None, ended: Any) -> Any:
        answer = leave(inner, raised)
        if answer is not None and answer is not True:
            return answer
        if raised is None:
            return ended
        if answer is True:
            return None
        raise raised

    machine.speculation += 1
    try:
        return _several(machine, frame, guard, error, signal, after, [_Pass()] if once else [])  # type: ignore[list-item]
    finally:
        machine.speculation -= 1


def _replay_way(machine: Machine, frame: Frame, way: Outcome, leave: Any) -> None:
    """What runs on the way out, for a way that left before."""
    mark = machine.mark()
    held = frame.result
    switch(machine, frame.mark, way.changes)
    frame.result = way.result
    try:
        answer = leave(frame, None)
    except Raised as raised:
        dismiss(machine, raised)
        assert frame.pending is not None
        frame.pending.remove(way)
        if not frame.pending:
            frame.pending = None
            machine.speculation -= 1
    else:
        if answer is not None and answer is not True:
            way.signal, way.result = answer, frame.result
        way.changes = collect(machine.trail, frame.mark)
    machine.undo(mark)
    frame.result = held


def _replay_raise(machine: Machine, frame: Frame, guard: Guard, index: int, leave: Any) -> list[Outcome]:
    """What runs on the way out, for an exception that some ways raised; ways on which it goes no further."""
    mark = machine.mark()
    raised, seen = guard.raises[index]
    switch(machine, guard.mark, seen.changes)
    held = frame.result
    found: list[Outcome] = []
    try:
        answer = leave(frame, raised)
    except Raised as other:
        raised = other
    else:
        if answer is not None:
            found = [Outcome(collect(machine.trail, frame.mark), frame.result, None if answer is True else answer)]
    guard.raises[index] = (raised, Outcome(collect(machine.trail, guard.mark)))
    machine.undo(mark)
    frame.result = held
    return found


# --- with ------------------------------------------------------------------------------------------------------------


def compile_with(context: Context, node: ast.With | ast.AsyncWith) -> Exec:
    from mblint.evaluate.assignment import compile_target
    from mblint.evaluate.statements import compile_block

    machine = context.machine
    items = [
        (
            compile_expression(context, item.context_expr),
            compile_target(context, item.optional_vars) if item.optional_vars else None,
            context.site(item.context_expr),
        )
        for item in node.items
    ]
    block = compile_block(context, node.body)

    def enter(frame: Frame, index: int) -> Any:
        if index == len(items):
            return block(frame)
        manager_of, assign, site = items[index]
        manager = manager_of(frame)

        def inside(inner: Frame, entered: Any) -> Any:
            if assign is not None:
                assign(inner, entered)
            return enter(inner, index + 1)

        return _managed(machine, frame, manager, inside, site)

    return lambda frame: enter(frame, 0)


def _managed(machine: Machine, frame: Frame, manager: Any, inside: Any, site: Any) -> Any:
    if isinstance(manager, Instance) and manager.cls is not None:
        from mblint.evaluate.builtins import type_of
        from mblint.evaluate.objects import class_lookup
        from mblint.evaluate.operators import truth

        enter, leave = class_lookup(manager.cls, "__enter__"), class_lookup(manager.cls, "__exit__")
        if enter is not None and leave is not None:
            entered = call(machine, BoundMethod(enter, manager), [], {}, site, frame)

            def out(inner: Frame, error: Raised | None) -> Any:
                args = [None, None, None] if error is None else [type_of(error.value), error.value, None]
                answer = truth(machine, call(machine, BoundMethod(leave, manager), args, {}, site, inner))
                if error is not None and type(answer) is Unknown:
                    dismiss(machine, error, answer.reason)
                return True if error is not None and answer is not False else None

            return with_exit(machine, frame, lambda inner: inside(inner, entered), out)
    if isinstance(manager, KnownIterator):
        return _generator_manager(machine, frame, manager, inside, site)
    if type(manager) is tuple and manager and manager[0] == "suppress":
        clause_types = tuple(manager[1])
        return _suppressed(machine, frame, clause_types, lambda inner: inside(inner, None))
    if hasattr(manager, "unwind"):

        def unwind(inner: Frame, error: Raised | None) -> Any:
            answer = manager.unwind(machine, error, site, inner)
            if error is not None and type(answer) is Unknown:
                dismiss(machine, error, answer.reason)
            return True if error is not None and answer is not False else None

        return with_exit(machine, frame, lambda inner: inside(inner, manager), unwind)
    entered = getattr(manager, "entered", Unknown("the value of a context manager"))
    return inside(frame, entered)


def _generator_manager(machine: Machine, frame: Frame, manager: KnownIterator, inside: Any, site: Any) -> Any:
    """@contextmanager: what comes before `yield`, the body, what comes after it."""
    from mblint.evaluate.iteration import advance, throw

    entered = advance(machine, manager)
    if entered is None:
        return machine.implicit(RuntimeError, "generator didn't yield", site, frame)

    def out(inner: Frame, error: Raised | None) -> Any:
        if error is None:
            advance(machine, manager)
            return None
        return True if throw(machine, manager, error) else None

    return with_exit(machine, frame, lambda inner: inside(inner, entered[0]), out, once=True)


def _suppressed(machine: Machine, frame: Frame, types: tuple[Any, ...], body: Exec) -> Any:
    """contextlib.suppress(...)"""

    def after(inner: Frame, error: Raised | None, signal: Any) -> Any:
        if error is None:
            return signal
        if any(exception_matches(error.value, type_) is not False for type_ in types):
            return None
        raise error

    guard = Guard(types, machine.mark())
    made = unknowns_made()
    error: Raised | None = None
    signal: Any = None
    machine.handlers.append(guard)
    try:
        signal = body(frame)
    except Raised as raised:
        error = raised
    finally:
        machine.handlers.pop()
    doubtful = unknowns_made() != made
    if not guard.raises and not doubtful:
        return after(frame, error, signal)
    if not guard.raises:
        machine.speculation += 1
    try:
        ended = _several(machine, frame, guard, error, signal, after, [_Pass()] if doubtful else [])  # type: ignore[list-item]
    finally:
        machine.speculation -= 1
    return ended


class _Pass:
    """A clause that does nothing."""

    def run(self, machine: Machine, frame: Frame, value: Any) -> Any:
        return None


__all__ = ["ExceptionValue", "compile_try", "compile_with", "with_exit"]
