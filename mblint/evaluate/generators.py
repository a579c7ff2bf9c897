"""Bodies of generator functions: each statement that holds a `yield` becomes a Python generator.

So a generator of evaluated source runs as its consumer asks, as Python's does. Where an unknown condition decides
about a `yield`, or about leaving, the rest of the generator is given up: its elements are not known, and neither is
what it could have changed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator
from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.compiler import Context
from mblint.evaluate.control import BREAK, CONTINUE, RETURN, abandon
from mblint.evaluate.errors import Raised
from mblint.evaluate.expressions import compile_condition, compile_expression
from mblint.evaluate.frames import Frame
from mblint.evaluate.iteration import advance, throw, walk
from mblint.evaluate.machine import Guard, Machine
from mblint.evaluate.unknown import Unknown, rest
from mblint.evaluate.values import BoundMethod, Instance, KnownIterator

Run = Callable[[Frame], Generator[Any, Any, Any]]
"""Yields the elements; its return value is the signal that control leaves with."""


class _GiveUp(Exception):
    """The rest of a generator depends on what is not known."""


def compile_generator(context: Context, body: list[ast.stmt]) -> Run:
    """The body of a generator function."""
    run = _block(context, body)
    machine = context.machine

    def generate(frame: Frame) -> Generator[Any, Any, Any]:
        try:
            yield from run(frame)
        except _GiveUp as stop:
            abandon(machine, frame)
            for value in frame.vars.values():
                machine.havoc(value, str(stop))
            yield rest(str(stop))

    return generate


def holds_yield(node: ast.AST) -> bool:
    """Whether a statement yields for the function that it stands in."""
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, (ast.Yield, ast.YieldFrom)):
            return True
        for child in ast.iter_child_nodes(part):
            if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
                pending.append(child)
    return False


def _block(context: Context, body: list[ast.stmt]) -> Run:
    steps = [_statement(context, statement) for statement in body]

    def run(frame: Frame) -> Generator[Any, Any, Any]:
        for step in steps:
            signal = yield from step(frame)
            if signal is not None:
                return signal
        return None

    return run


def _statement(context: Context, node: ast.stmt) -> Run:
    if not holds_yield(node):
        return _plain(context, node)
    maker = _MAKERS.get(type(node))
    if maker is not None:
        made: Run | None = maker(context, node)
        if made is not None:
            return made
    reason = f"a yield inside {type(node).__name__} is not evaluated"

    def unsupported(frame: Frame) -> Generator[Any, Any, Any]:
        yield from ()
        raise _GiveUp(reason)

    return unsupported


def _plain(context: Context, node: ast.stmt) -> Run:
    from mblint.evaluate.statements import compile_statement, is_inert

    machine = context.machine
    execute = compile_statement(context, node) if not is_inert(node) else None

    def run(frame: Frame) -> Generator[Any, Any, Any]:
        yield from ()
        if execute is None:
            return None
        frame.mark = machine.mark()
        signal = execute(frame)
        if frame.pending is not None:
            raise _GiveUp("a generator that may have ended")
        return signal

    return run


def _yielding(context: Context, node: ast.expr) -> Run | None:
    """`yield value` or `yield from values`."""
    machine = context.machine
    if isinstance(node, ast.Yield):
        value = compile_expression(context, node.value) if node.value is not None else None

        def run(frame: Frame) -> Generator[Any, Any, Any]:
            yield value(frame) if value is not None else None

        return run
    if isinstance(node, ast.YieldFrom):
        source = compile_expression(context, node.value)
        site = context.site(node)

        def run_from(frame: Frame) -> Generator[Any, Any, Any]:
            items = walk(machine, source(frame), site, frame)
            if type(items) is Unknown:
                yield rest(items.reason)
                return
            yield from items

        return run_from
    return None


def _expression(context: Context, node: ast.Expr) -> Run | None:
    return _yielding(context, node.value)


def _assign(context: Context, node: ast.Assign) -> Run | None:
    from mblint.evaluate.assignment import compile_target

    run = _yielding(context, node.value)
    if run is None:
        return None
    targets = [compile_target(context, target) for target in node.targets]
    result = None if isinstance(node.value, ast.Yield) else Unknown("what a generator returns")

    def assign(frame: Frame) -> Generator[Any, Any, Any]:
        yield from run(frame)
        for target in targets:
            target(frame, result)

    return assign


def _if(context: Context, node: ast.If) -> Run | None:
    if holds_yield(node.test):
        return None
    test = compile_condition(context, node.test)
    body, orelse = _block(context, node.body), _block(context, node.orelse)

    def run(frame: Frame) -> Generator[Any, Any, Any]:
        answer = test(frame)
        if type(answer) is Unknown:
            raise _GiveUp(answer.reason)
        return (yield from (body if answer else orelse)(frame))

    return run


def _loop(body: Run, frame: Frame) -> Generator[Any, Any, Any]:
    signal = yield from body(frame)
    return None if signal == CONTINUE else signal


def _for(context: Context, node: ast.For) -> Run | None:
    from mblint.evaluate.assignment import compile_target

    if holds_yield(node.iter):
        return None
    machine = context.machine
    source = compile_expression(context, node.iter)
    assign = compile_target(context, node.target)
    body, orelse = _block(context, node.body), _block(context, node.orelse)
    site = context.site(node.iter)

    def run(frame: Frame) -> Generator[Any, Any, Any]:
        items = walk(machine, source(frame), site, frame)
        if type(items) is Unknown:
            raise _GiveUp(items.reason)
        for item in items:
            machine.step()
            if type(item) is Unknown and item.many:
                raise _GiveUp(item.reason)
            assign(frame, item)
            signal = yield from _loop(body, frame)
            if signal == BREAK:
                return None
            if signal is not None:
                return signal
        return (yield from orelse(frame))

    return run


def _while(context: Context, node: ast.While) -> Run | None:
    if holds_yield(node.test):
        return None
    machine = context.machine
    test = compile_condition(context, node.test)
    body, orelse = _block(context, node.body), _block(context, node.orelse)

    def run(frame: Frame) -> Generator[Any, Any, Any]:
        while True:
            machine.step()
            answer = test(frame)
            if type(answer) is Unknown:
                raise _GiveUp(answer.reason)
            if not answer:
                return (yield from orelse(frame))
            signal = yield from _loop(body, frame)
            if signal == BREAK:
                return None
            if signal is not None:
                return signal

    return run


def _guarded(machine: Machine, guard: Guard, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Run `inner` under a guard that is not there while the consumer runs."""
    thrown: Raised | None = None
    while True:
        guard.mark = machine.mark()
        machine.handlers.append(guard)
        try:
            value = inner.throw(thrown) if thrown is not None else next(inner)
        except StopIteration as end:
            return end.value
        finally:
            machine.handlers.pop()
            if guard.raises:
                guard.raises.clear()
                machine.speculation -= 1
                raise _GiveUp("an exception that is not certain")
        thrown = None
        try:
            yield value
        except Raised as error:
            thrown = error


def _try(context: Context, node: ast.Try) -> Run | None:
    from mblint.evaluate.trying import Clause, types_of_clauses

    machine = context.machine
    body, orelse, final = _block(context, node.body), _block(context, node.orelse), _block(context, node.finalbody)
    clauses = [Clause(context, handler, _block) for handler in node.handlers]

    def handled(frame: Frame) -> Generator[Any, Any, Any]:
        try:
            inner = body(frame)
            signal = yield from (_guarded(machine, Guard(types_of_clauses(clauses, frame), 0), inner) if clauses else inner)
        except Raised as error:
            for clause in clauses:
                if clause.takes(frame, error.value):
                    if clause.bind is not None:
                        clause.bind(frame, error.value)
                    before, frame.exception = frame.exception, error.value
                    try:
                        return (yield from clause.body(frame))
                    finally:
                        frame.exception = before
            raise
        return signal if signal is not None else (yield from orelse(frame))

    def run(frame: Frame) -> Generator[Any, Any, Any]:
        try:
            signal = yield from handled(frame)
        except Raised:
            left = yield from final(frame)
            if left is not None:
                return left
            raise
        result = frame.result
        left = yield from final(frame)
        if left is not None:
            return left
        frame.result = result
        return signal

    return run


def _with(context: Context, node: ast.With) -> Run | None:
    from mblint.evaluate.assignment import compile_target

    if len(node.items) != 1 or holds_yield(node.items[0].context_expr):
        return None
    machine = context.machine
    manager_of = compile_expression(context, node.items[0].context_expr)
    target = node.items[0].optional_vars
    assign = compile_target(context, target) if target is not None else None
    body = _block(context, node.body)
    site = context.site(node.items[0].context_expr)

    def run(frame: Frame) -> Generator[Any, Any, Any]:
        from mblint.evaluate.objects import class_lookup

        manager = manager_of(frame)
        entered: Any = Unknown("the value of a context manager")
        if isinstance(manager, KnownIterator):
            first = advance(machine, manager)
            entered = first[0] if first is not None else entered
        elif isinstance(manager, Instance) and manager.cls is not None:
            enter = class_lookup(manager.cls, "__enter__")
            if enter is not None:
                entered = call(machine, BoundMethod(enter, manager), [], {}, site, frame)
        if assign is not None:
            assign(frame, entered)
        try:
            signal = yield from body(frame)
        except Raised as error:
            if isinstance(manager, KnownIterator):
                throw(machine, manager, error)
                return None
            if isinstance(manager, Instance) and manager.cls is not None and class_lookup(manager.cls, "__exit__") is not None:
                raise _GiveUp("an exception inside a context manager") from None
            raise
        if isinstance(manager, KnownIterator):
            advance(machine, manager)
        elif isinstance(manager, Instance) and manager.cls is not None:
            leave = class_lookup(manager.cls, "__exit__")
            if leave is not None:
                call(machine, BoundMethod(leave, manager), [None, None, None], {}, site, frame)
        return signal

    return run


_MAKERS: dict[type[ast.stmt], Callable[[Context, Any], Run | None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.If: _if,
    ast.For: _for,
    ast.While: _while,
    ast.Try: _try,
    ast.With: _with,
}

__all__ = ["RETURN", "compile_generator", "holds_yield"]
