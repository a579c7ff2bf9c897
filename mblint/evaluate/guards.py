"""Which attributes the condition of a check read: the keys that explain a failure."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.errors import Raised
from mblint.evaluate.frames import Frame
from mblint.evaluate.site import Site
from mblint.evaluate.values import Instance

Reads = tuple[tuple[Instance, str], ...]
MAX_READS = 24
MAX_DEPTH = 3


def guard_reads(machine: Any, site: Site, frame: Frame) -> Reads:
    """(object, attribute) pairs read by the conditions that lead to `site` within its function, nearest first.

    Local variables are followed to what they were computed from. Nothing is changed by asking.
    """
    function = frame.function
    if function is None or isinstance(function.node, ast.Lambda):
        return ()
    conditions = _conditions(function.node, site.node)
    reads: dict[tuple[int, str], tuple[Instance, str]] = {}
    seen: set[str] = set()
    machine.speculation += 1
    mark, steps = machine.mark(), machine.steps
    try:
        pending = [(condition, 0) for condition in conditions]
        while pending and len(reads) < MAX_READS:
            expression, depth = pending.pop(0)
            for node in ast.walk(expression):
                pair = _attribute_read(machine, node, site, frame)
                if pair is not None:
                    reads.setdefault((id(pair[0]), pair[1]), pair)
                elif isinstance(node, ast.Name) and node.id not in seen and depth < MAX_DEPTH:
                    seen.add(node.id)
                    pending += [(source, depth + 1) for source in _sources(function.node, node.id, site.line)]
    finally:
        machine.undo(mark)
        machine.speculation -= 1
        machine.steps = steps
    return tuple(reads.values())


def _conditions(function: ast.AST, target: ast.AST) -> list[ast.expr]:
    """Tests of the statements around `target`, innermost first; an assertion's own test before them."""
    found: list[ast.expr] = []

    def descend(node: ast.AST, around: list[ast.expr]) -> bool:
        if node is target:
            found.extend(reversed(around))
            return True
        for child in ast.iter_child_nodes(node):
            inner = around
            if isinstance(node, (ast.If, ast.While)) and isinstance(child, ast.stmt):
                inner = [*around, node.test]
            elif isinstance(node, (ast.For,)) and isinstance(child, ast.stmt):
                inner = [*around, node.iter]
            if descend(child, inner):
                return True
        return False

    descend(function, [])
    if isinstance(target, ast.Assert):
        return [target.test, *found]
    if isinstance(target, ast.expr):
        return [target, *found]
    return found


def _attribute_read(machine: Any, node: ast.AST, site: Site, frame: Frame) -> tuple[Instance, str] | None:
    if isinstance(node, ast.Attribute):
        owner, name = node.value, node.attr
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "hasattr")
        and len(node.args) >= 2
        and isinstance(node.args[1], ast.Constant)
        and isinstance(node.args[1].value, str)
    ):
        owner, name = node.args[0], node.args[1].value
    else:
        return None
    value = _evaluate(machine, owner, site, frame)
    return (value, name) if isinstance(value, Instance) and name in value.attrs else None


def _evaluate(machine: Any, node: ast.expr, site: Site, frame: Frame) -> Any:
    """The value of a plain chain of names and attributes; None for anything that could do more than read."""
    if not all(isinstance(part, (ast.Attribute, ast.Name, ast.expr_context)) for part in ast.walk(node)):
        return None
    from mblint.evaluate.compiler import Context
    from mblint.evaluate.expressions import compile_expression

    function = frame.function
    scope = function.code.scope if function is not None and function.code is not None else None
    try:
        return compile_expression(Context(machine, site.module, scope, site.where), node)(frame)
    except Raised:
        return None


def _sources(function: ast.AST, name: str, before_line: int) -> list[ast.expr]:
    """Right-hand sides of assignments to a local name above a line."""
    found: list[ast.expr] = []
    for node in ast.walk(function):
        if getattr(node, "lineno", 0) >= before_line:
            continue
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            found.append(node.value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and isinstance(node.target, ast.Name) and node.target.id == name:
            if node.value is not None:
                found.append(node.value)
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Name) and node.target.id == name:
            found.append(node.iter)
    return found[-4:]
