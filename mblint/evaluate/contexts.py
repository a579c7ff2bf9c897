"""Context managers written as generators: what stands before the `yield` runs on entry, the rest on exit."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.frames import Frame
from mblint.evaluate.machine import Machine
from mblint.evaluate.values import FunctionValue

MARK = "__mblint_context_manager__"


class Suspended:
    """A call of a function decorated with contextlib.contextmanager, before or inside its `with` block."""

    __slots__ = ("frame", "parts")

    def __init__(self, frame: Frame, parts: Parts) -> None:
        self.frame = frame
        self.parts = parts

    def enter(self) -> Any:
        """Run what stands before the `yield`; gives the value that is yielded."""
        self.parts.before(self.frame)
        return self.parts.value(self.frame) if self.parts.value is not None else None

    def leave(self, raised: bool) -> None:
        """Run what stands behind the `yield`; after an exception only what `finally` blocks hold."""
        (self.parts.final if raised else self.parts.after)(self.frame)


class Parts:
    """The compiled parts of a generator with one `yield`."""

    __slots__ = ("after", "before", "final", "value")

    def __init__(self, before: Any, value: Any, after: Any, final: Any) -> None:
        self.before = before
        self.value = value
        self.after = after
        self.final = final


Split = tuple[list[ast.stmt], "ast.expr | None", list[ast.stmt], list[ast.stmt]]


def split_at_yield(body: list[ast.stmt]) -> Split | None:
    """(before, what is yielded, behind, behind after an exception).

    None unless there is one `yield`, at the top or in a `try`.
    """
    if (
        sum(
            isinstance(inner, (ast.Yield, ast.YieldFrom))
            for statement in body
            for inner in ast.walk(statement)
        )
        != 1
    ):
        return None
    for index, statement in enumerate(body):
        before, behind = body[:index], body[index + 1 :]
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield):
            return before, statement.value.value, behind, []
        if isinstance(statement, ast.Try) and (inside := split_at_yield(statement.body)) is not None:
            first, value, rest, final = inside
            ending = statement.finalbody
            return [*before, *first], value, [*rest, *statement.orelse, *ending, *behind], [*final, *ending]
    return None


def suspend(machine: Machine, function: FunctionValue, frame: Frame) -> Suspended | None:
    """The context manager that a call gives; `frame` holds its arguments. None when it cannot be split."""
    if MARK not in function.attrs or isinstance(function.node, ast.Lambda):
        return None
    key = ("context manager", function.node)
    if key not in machine.compiled:
        machine.compiled[key] = _compile(machine, function)
    parts = machine.compiled[key]
    return Suspended(frame, parts) if parts is not None else None


def _compile(machine: Machine, function: FunctionValue) -> Parts | None:
    from mblint.evaluate.compiler import Context
    from mblint.evaluate.expressions import compile_expression
    from mblint.evaluate.statements import compile_block

    assert not isinstance(function.node, ast.Lambda) and function.code is not None
    split = split_at_yield(function.node.body)
    if split is None:
        return None
    before, value, after, final = split
    context = Context(machine, function.module, function.code.scope, function.qualname)
    yielded = compile_expression(context, value) if value is not None else None
    return Parts(
        compile_block(context, before), yielded, compile_block(context, after), compile_block(context, final)
    )
