"""and, or, not, comparisons and conditional expressions, in three-valued logic."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate import operators as ops
from mblint.evaluate.compiler import Context
from mblint.evaluate.control import choose_value
from mblint.evaluate.expressions import compile_expression
from mblint.evaluate.frames import Eval, Frame
from mblint.evaluate.unknown import Unknown, like
from mblint.evaluate.values import Instance


def condition(context: Context, node: ast.expr) -> Eval:
    """The closure of an expression of which only the truth counts: answers True, False or Unknown."""
    machine = context.machine
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = condition(context, node.operand)

        def negate(frame: Frame) -> Any:
            answer = inner(frame)
            return like(answer) if type(answer) is Unknown else not answer

        return negate
    if isinstance(node, ast.BoolOp):
        return _combined(context, node)
    value = compile_expression(context, node)

    def evaluate(frame: Frame) -> Any:
        held = value(frame)
        return held if held is True or held is False else ops.truth(machine, held)

    return evaluate


def _combined(context: Context, node: ast.BoolOp) -> Eval:
    machine = context.machine
    parts = [condition(context, part) for part in node.values]
    stop = isinstance(node.op, ast.Or)
    site = context.site(node)

    def combine(frame: Frame) -> Any:
        unknown: Unknown | None = None
        for part in parts:
            if unknown is None:
                answer = part(frame)
            else:
                # An earlier operand is not known: this one may not be evaluated at all.
                answer = maybe(machine, part, frame, unknown.reason, site)
            if answer is stop:
                return stop
            if type(answer) is Unknown and unknown is None:
                unknown = answer
        return like(unknown) if unknown is not None else not stop

    return combine


def maybe(machine: Any, part: Eval, frame: Frame, reason: str, site: Any) -> Any:
    """The value that an expression has if it is evaluated; what it changes is only possible."""
    made: list[Any] = []

    def once(inner: Frame) -> None:
        made.append(part(inner))

    choose_value(machine, frame, [once, lambda inner: None], reason, site)
    return made[-1] if made else Unknown("raises if it is evaluated")


def boolean(context: Context, node: ast.BoolOp) -> Eval:
    """x or y, x and y, as values."""
    parts = [compile_expression(context, part) for part in node.values]
    stop = isinstance(node.op, ast.Or)
    machine = context.machine
    site = context.site(node)
    last = len(parts) - 1

    def constant(known: Any) -> Eval:
        return lambda inner: known

    def from_part(start: int, frame: Frame) -> Any:
        for index in range(start, last):
            value = parts[index](frame)
            answer = ops.truth(machine, value)
            if type(answer) is Unknown:

                def further(inner: Frame, index: int = index) -> Any:
                    return from_part(index + 1, inner)

                held = ops.when_true(machine, value) if stop else ops.when_false(machine, value)
                return choose_value(machine, frame, [constant(held), further], answer.reason, site)
            if answer is stop:
                return value
        return parts[last](frame)

    return lambda frame: from_part(0, frame)


def comparison(context: Context, node: ast.Compare) -> Eval:
    machine = context.machine
    first = compile_expression(context, node.left)
    steps = [(type(op), compile_expression(context, right)) for op, right in zip(node.ops, node.comparators, strict=True)]
    site = context.site(node)
    if len(steps) == 1:
        kind, second = steps[0]
        if kind is ast.Is and isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None:

            def is_none(frame: Frame) -> Any:
                value = first(frame)
                if value is None:
                    return True
                if type(value) is Unknown or type(value) is Instance:
                    return ops.identical(value, None)
                return False

            return is_none
        return lambda frame: ops.compare(machine, kind, first(frame), second(frame), site, frame)

    def from_step(index: int, left: Any, frame: Frame) -> Any:
        kind, right_of = steps[index]
        right = right_of(frame)
        value = ops.compare(machine, kind, left, right, site, frame)
        if index + 1 == len(steps):
            return value
        answer = ops.truth(machine, value)
        if answer is True:
            return from_step(index + 1, right, frame)
        if answer is False:
            return value
        after = maybe(machine, lambda inner: from_step(index + 1, right, inner), frame, answer.reason, site)
        return False if after is False else like(answer)

    return lambda frame: from_step(0, first(frame), frame)


def conditional(context: Context, node: ast.IfExp) -> Eval:
    machine = context.machine
    test = condition(context, node.test)
    body, orelse = compile_expression(context, node.body), compile_expression(context, node.orelse)
    site = context.site(node.test)

    def evaluate(frame: Frame) -> Any:
        answer = test(frame)
        if answer is True:
            return body(frame)
        if answer is False:
            return orelse(frame)
        return choose_value(machine, frame, [body, orelse], answer.reason, site)

    return evaluate
