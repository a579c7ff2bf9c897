"""Statements to closures: each takes a Frame and returns None, or a signal that control leaves."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate import assignment, definitions, matching, trying
from mblint.evaluate.budget import Limits
from mblint.evaluate.compiler import Context
from mblint.evaluate.control import (
    BREAK,
    CONTINUE,
    RETURN,
    branch_on_unknown,
    fail,
    run_sides,
    settle,
)
from mblint.evaluate.errors import Raised
from mblint.evaluate.expressions import compile_condition, compile_expression
from mblint.evaluate.frames import Exec, Frame
from mblint.evaluate.imports import import_from, import_module
from mblint.evaluate.instances import make_exception
from mblint.evaluate.iteration import walk
from mblint.evaluate.loops import apart_from_outer, end_loop, repeat_unknown, run_round
from mblint.evaluate.names import compile_name
from mblint.evaluate.unknown import Unknown, like
from mblint.evaluate.values import ExceptionValue


def compile_block(context: Context, body: list[ast.stmt]) -> Exec:
    """A sequence of statements."""
    steps = [compile_statement(context, statement) for statement in body if not is_inert(statement)]
    machine = context.machine
    count = len(steps)
    if count == 1:
        only = steps[0]

        def run_one(frame: Frame) -> Any:
            machine.steps += 1
            return only(frame)

        return run_one

    def run(frame: Frame) -> Any:
        machine.steps += count
        if machine.steps > machine.checkpoint:
            machine.check()
        for step in steps:
            signal = step(frame)
            if signal is not None:
                return signal
        return None

    return run


def is_inert(statement: ast.stmt) -> bool:
    """Statements that do nothing when they run."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, (ast.Pass, ast.Global, ast.Nonlocal))


def compile_statement(context: Context, node: ast.stmt) -> Exec:
    maker = _MAKERS.get(type(node))
    if maker is None:
        return _unsupported(context, node)
    try:
        made: Exec = maker(context, node)
    except RecursionError:
        return _unsupported(context, node)
    return made


def _unsupported(context: Context, node: ast.stmt) -> Exec:
    """A statement that is not evaluated: the names that it binds are unknown."""
    bound = [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
    targets = [compile_name(context, name) for name in bound]
    site = context.site(node)
    reason = f"{type(node).__name__} is not evaluated"

    def run(frame: Frame) -> None:
        for target in targets:
            target(frame, Unknown(reason, site.span()))

    return run


def _expression(context: Context, node: ast.Expr) -> Exec:
    value = compile_expression(context, node.value)

    def run(frame: Frame) -> None:
        value(frame)

    return run


def _return(context: Context, node: ast.Return) -> Exec:
    value = compile_expression(context, node.value) if node.value is not None else None

    def run(frame: Frame) -> int:
        frame.result = value(frame) if value is not None else None
        return RETURN

    return run


def _if(context: Context, node: ast.If) -> Exec:
    machine = context.machine
    test = compile_condition(context, node.test)
    body = compile_block(context, node.body)
    orelse = compile_block(context, node.orelse) if node.orelse else None
    site = context.site(node.test)

    def run(frame: Frame) -> Any:
        answer = test(frame)
        if answer is True:
            return body(frame)
        if answer is False:
            return orelse(frame) if orelse is not None else None
        return branch_on_unknown(machine, frame, answer, body, orelse, site)

    return run


def _for(context: Context, node: ast.For | ast.AsyncFor) -> Exec:
    machine = context.machine
    source = compile_expression(context, node.iter)
    assign = assignment.compile_target(context, node.target)
    body = compile_block(context, node.body)
    orelse = compile_block(context, node.orelse) if node.orelse else None
    site = context.site(node.iter)

    def repeat(frame: Frame, reason: Unknown) -> int | None:
        def once(inner: Frame) -> Any:
            assign(inner, Unknown(reason.reason, reason.span, reach=reason.reach))
            return body(inner)

        return repeat_unknown(machine, frame, None, once, reason.reason)

    def perhaps(item: Unknown) -> Exec:
        """A round for an element that is there or not."""
        options = item.options or ()
        value = options[0] if len(options) == 1 else Unknown(item.reason, item.span, options=options)

        def once(inner: Frame) -> Any:
            assign(inner, value)
            return body(inner)

        sides = [(once, True), (_skip, True)]
        return lambda frame: run_sides(machine, frame, sides, item.reason, site)[0]

    def run(frame: Frame) -> Any:
        items = walk(machine, source(frame), site, frame)
        if type(items) is Unknown:
            return end_loop(machine, frame, repeat(frame, items), orelse)
        count = 0
        signal: int | None = None
        for item in items:
            count += 1
            if count > Limits.loop:
                machine.check_rounds(Limits.loop + 1)
            machine.steps += 1
            if machine.steps > machine.checkpoint:
                machine.check()
            if type(item) is Unknown and item.many:
                signal = repeat(frame, item) if item.options is None else run_round(machine, frame, perhaps(item))
            else:
                assign(frame, item)
                signal = run_round(machine, frame, body)
            if signal is not None:
                break
        return end_loop(machine, frame, signal, orelse)

    return apart_from_outer(run)


def _skip(frame: Frame) -> None:
    return None


LOOKS = frozenset({"len", "isinstance", "hasattr", "getattr", "any", "all", "min", "max", "sum", "int", "bool"})


def _asks(node: ast.Call) -> bool:
    """Whether a call only looks: len(x), isinstance(x, y)."""
    return isinstance(node.func, ast.Name) and node.func.id in LOOKS


def _while(context: Context, node: ast.While) -> Exec:
    machine = context.machine
    test = compile_condition(context, node.test)
    body = compile_block(context, node.body)
    orelse = compile_block(context, node.orelse) if node.orelse else None
    changes = any(isinstance(part, ast.NamedExpr) or (isinstance(part, ast.Call) and not _asks(part)) for part in ast.walk(node.test))

    def body_and_test(frame: Frame) -> Any:
        """A further round, when the test that begins it was asked already and would do something again."""
        signal = body(frame)
        if frame.pending is not None:
            signal = settle(machine, frame, signal, CONTINUE)
        if signal is None or signal == CONTINUE:
            test(frame)
            return None
        return signal

    def run(frame: Frame) -> Any:
        count = 0
        signal: int | None = None
        while signal is None:
            answer = test(frame)
            if answer is False:
                break
            if answer is not True:
                asked, again = (None, body_and_test) if changes else (test, body)
                signal = repeat_unknown(machine, frame, asked, again, answer.reason)
                break
            count += 1
            machine.step()
            if count > Limits.loop:
                machine.check_rounds(Limits.loop + 1)
            signal = run_round(machine, frame, body)
        return end_loop(machine, frame, signal, orelse)

    return apart_from_outer(run)


def _raise(context: Context, node: ast.Raise) -> Exec:
    machine = context.machine
    value = compile_expression(context, node.exc) if node.exc is not None else None
    cause = compile_expression(context, node.cause) if node.cause is not None else None
    site = context.site(node)

    def run(frame: Frame) -> None:
        if value is None:
            current = frame.exception
            if current is None:
                current = ExceptionValue(RuntimeError, ("No active exception to reraise",))
            raise Raised(current, site, frame.trace)
        exception = make_exception(machine, value(frame), site, frame)
        if cause is not None:
            cause(frame)
        fail(machine, exception, site, frame)

    return run


def _assert(context: Context, node: ast.Assert) -> Exec:
    machine = context.machine
    test = compile_condition(context, node.test)
    message = compile_expression(context, node.msg) if node.msg is not None else None
    site = context.site(node)

    def break_off(frame: Frame) -> None:
        text = (message(frame),) if message is not None else ()
        fail(machine, ExceptionValue(AssertionError, text), site, frame)

    def run(frame: Frame) -> None:
        answer = test(frame)
        if answer is True:
            return
        if answer is False:
            break_off(frame)
        elif machine.handlers and machine.catches(ExceptionValue(AssertionError, ())):
            branch_on_unknown(machine, frame, like(answer), break_off, None, site)
        elif not machine.speculation:
            machine.undecided.append((site, answer.reason))

    return run


def _break(context: Context, node: ast.Break) -> Exec:
    return lambda frame: BREAK


def _continue(context: Context, node: ast.Continue) -> Exec:
    return lambda frame: CONTINUE


def _nothing(context: Context, node: ast.stmt) -> Exec:
    return lambda frame: None


_MAKERS: dict[type[ast.stmt], Any] = {
    ast.Assign: assignment.assign,
    ast.AnnAssign: assignment.annotated,
    ast.AugAssign: assignment.augmented,
    ast.Delete: assignment.delete,
    ast.Expr: _expression,
    ast.Return: _return,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Try: trying.compile_try,
    ast.TryStar: trying.compile_try,
    ast.With: trying.compile_with,
    ast.AsyncWith: trying.compile_with,
    ast.Match: matching.compile_match,
    ast.FunctionDef: definitions.compile_def,
    ast.AsyncFunctionDef: definitions.compile_def,
    ast.ClassDef: definitions.compile_class,
    ast.Import: import_module,
    ast.ImportFrom: import_from,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Pass: _nothing,
    ast.Global: _nothing,
    ast.Nonlocal: _nothing,
}

__all__ = ["compile_block", "compile_statement", "fail", "is_inert"]
