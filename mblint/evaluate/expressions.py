"""Expressions to closures: each takes a Frame and returns a value."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate import operators as ops
from mblint.evaluate.budget import Limits
from mblint.evaluate.compiler import Context
from mblint.evaluate.frames import Eval, Frame
from mblint.evaluate.names import compile_name, read_name
from mblint.evaluate.objects import get_attribute
from mblint.evaluate.subscripts import get_item
from mblint.evaluate.unknown import Unknown, like
from mblint.evaluate.values import MISSING, External, Instance


def compile_expression(context: Context, node: ast.expr) -> Eval:
    """The closure of an expression; constructs that are not supported give Unknown with their place."""
    if not _MAKERS:
        _MAKERS.update(_makers())
    maker = _MAKERS.get(type(node))
    if maker is None:
        site = context.site(node)
        kind = type(node).__name__
        return lambda frame: Unknown(f"{kind} is not evaluated", site.span())
    try:
        made: Eval = maker(context, node)
    except RecursionError:
        site = context.site(node)
        return lambda frame: Unknown("an expression nested too deeply", site.span())
    return made


def compile_condition(context: Context, node: ast.expr) -> Eval:
    """The closure of an expression of which only the truth counts: answers True, False or Unknown."""
    from mblint.evaluate.logic import condition

    return condition(context, node)


def _constant(context: Context, node: ast.Constant) -> Eval:
    value: Any = node.value
    if value is Ellipsis:
        value = External("Ellipsis")
    if isinstance(value, int) and value.bit_length() > Limits.bits:
        return lambda frame: Unknown("a number too large to compute")
    return lambda frame: value


def _attribute(context: Context, node: ast.Attribute) -> Eval:
    target = compile_expression(context, node.value)
    name = node.attr
    machine = context.machine
    site = context.site(node)

    def read(frame: Frame) -> Any:
        owner = target(frame)
        if type(owner) is Instance:
            cls = owner.cls
            if cls is None or cls.plan is None or name not in cls.plan:
                value = owner.attrs.get(name, MISSING)
                if value is not MISSING:
                    return value
        return get_attribute(machine, owner, name, site, frame)

    return read


def _subscript(context: Context, node: ast.Subscript) -> Eval:
    target = compile_expression(context, node.value)
    index = compile_expression(context, node.slice)
    machine = context.machine
    site = context.site(node)
    return lambda frame: get_item(machine, target(frame), index(frame), site, frame)


def _slice(context: Context, node: ast.Slice) -> Eval:
    parts = [compile_expression(context, part) if part is not None else None for part in (node.lower, node.upper, node.step)]

    def read(frame: Frame) -> Any:
        values = [part(frame) if part is not None else None for part in parts]
        for value in values:
            if type(value) is Unknown:
                return like(value)
        return slice(*values)

    return read


def _binary(context: Context, node: ast.BinOp) -> Eval:
    # Chains such as a + b + c + ... nest to the left; walk them down iteratively so that long ones do not overflow.
    chain: list[tuple[ast.BinOp, ast.expr]] = []
    left: ast.expr = node
    while isinstance(left, ast.BinOp):
        chain.append((left, left.right))
        left = left.left
    machine = context.machine
    first = compile_expression(context, left)
    steps = [(type(part.op), compile_expression(context, right), context.site(part)) for part, right in reversed(chain)]
    if len(steps) == 1:
        kind, second, site = steps[0]
        return lambda frame: ops.binary(machine, kind, first(frame), second(frame), site, frame)

    def evaluate(frame: Frame) -> Any:
        value = first(frame)
        for kind, right, site in steps:
            value = ops.binary(machine, kind, value, right(frame), site, frame)
        return value

    return evaluate


def _unary(context: Context, node: ast.UnaryOp) -> Eval:
    operand = compile_expression(context, node.operand)
    kind = type(node.op)
    machine = context.machine
    site = context.site(node)
    return lambda frame: ops.unary(machine, kind, operand(frame), site, frame)


def _joined(context: Context, node: ast.JoinedStr) -> Eval:
    """An f-string, as text or as an Unknown that shows the pieces that are known."""
    machine = context.machine
    parts: list[tuple[str, Eval | None, int, Eval | None]] = []
    for value in node.values:
        if isinstance(value, ast.FormattedValue):
            spec = compile_expression(context, value.format_spec) if value.format_spec is not None else None
            parts.append(("", compile_expression(context, value.value), value.conversion, spec))
        elif isinstance(value, ast.Constant):
            parts.append((str(value.value), None, -1, None))
    site = context.site(node)

    def evaluate(frame: Frame) -> Any:
        from mblint.evaluate.texts import format_value, text_of

        pieces: list[str] = []
        unknown: Unknown | None = None
        for text, part, conversion, spec in parts:
            if part is None:
                pieces.append(text)
                continue
            rendered: Any = part(frame)
            if conversion != -1:
                rendered = text_of(machine, rendered, {115: "s", 114: "r"}.get(conversion, "a"))
            rendered = format_value(machine, rendered, spec(frame) if spec is not None else "", site, frame)
            if isinstance(rendered, str):
                pieces.append(rendered)
            else:
                unknown = unknown if unknown is not None else rendered
                pieces.append(rendered.partial or "?")
        whole = "".join(pieces)
        machine.check_size(len(whole))
        return whole if unknown is None else Unknown(unknown.reason, unknown.span, whole)

    return evaluate


def _starred(context: Context, node: ast.Starred) -> Eval:
    return compile_expression(context, node.value)


def _await(context: Context, node: ast.Await) -> Eval:
    return compile_expression(context, node.value)


def _named(context: Context, node: ast.NamedExpr) -> Eval:
    value = compile_expression(context, node.value)
    assign = compile_name(context, node.target.id)

    def evaluate(frame: Frame) -> Any:
        held = value(frame)
        assign(frame, held)
        return held

    return evaluate


def _yield(context: Context, node: ast.Yield | ast.YieldFrom) -> Eval:
    """A yield in the middle of an expression; those that stand alone are in generators.py."""
    site = context.site(node)
    return lambda frame: Unknown("a yield inside an expression is not evaluated", site.span())


def _makers() -> dict[type[ast.expr], Any]:
    from mblint.evaluate import calling, displays, logic

    return {
        ast.Constant: _constant,
        ast.Name: read_name,
        ast.Attribute: _attribute,
        ast.Subscript: _subscript,
        ast.Slice: _slice,
        ast.List: displays.sequence(list),
        ast.Tuple: displays.sequence(tuple),
        ast.Set: displays.sequence(set),
        ast.Dict: displays.dictionary,
        ast.BinOp: _binary,
        ast.UnaryOp: _unary,
        ast.BoolOp: logic.boolean,
        ast.Compare: logic.comparison,
        ast.IfExp: logic.conditional,
        ast.Call: calling.call_expression,
        ast.JoinedStr: _joined,
        ast.Lambda: calling.lambda_expression,
        ast.ListComp: displays.comprehension("list"),
        ast.SetComp: displays.comprehension("set"),
        ast.DictComp: displays.comprehension("dict"),
        ast.GeneratorExp: displays.comprehension("generator"),
        ast.NamedExpr: _named,
        ast.Yield: _yield,
        ast.YieldFrom: _yield,
        ast.Starred: _starred,
        ast.Await: _await,
    }


_MAKERS: dict[type[ast.expr], Any] = {}

__all__ = ["compile_condition", "compile_expression"]
