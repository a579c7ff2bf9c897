"""Which attributes the condition of a check read: the keys that explain a failure."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.errors import Raised
from mblint.evaluate.frames import Eval, Frame
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
    key = ("guards", site.node)
    codes = site.module.codes
    candidates = codes.get(key)
    if candidates is None:
        candidates = codes[key] = _candidates(machine, site, frame, function.node)
    reads: dict[tuple[int, str], tuple[Instance, str]] = {}
    machine.speculation += 1
    mark, steps = machine.mark(), machine.steps
    try:
        for owner_of, name in candidates:
            try:
                owner = owner_of(frame)
            except Raised:
                continue
            if isinstance(owner, Instance) and name in owner.attrs:
                reads.setdefault((id(owner), name), (owner, name))
    finally:
        machine.undo(mark)
        machine.speculation -= 1
        machine.steps = steps
    return tuple(reads.values())[:MAX_READS]


def _candidates(machine: Any, site: Site, frame: Frame, function: ast.AST) -> list[tuple[Eval, str]]:
    """Compiled owners and names of the attributes that the conditions read, in order."""
    from mblint.evaluate.compiler import Context
    from mblint.evaluate.expressions import compile_expression

    sources = _assignments(function, site.line)
    scope = frame.function.code.scope if frame.function is not None and frame.function.code is not None else None
    context = Context(machine, site.module, scope, site.where)
    found: dict[tuple[str, str], tuple[Eval, str]] = {}
    seen: set[str] = set()
    pending = [(condition, 0) for condition in _conditions(function, site.node)]
    while pending and len(found) < MAX_READS:
        expression, depth = pending.pop(0)
        for node in ast.walk(expression):
            pair = _attribute(node)
            if pair is not None:
                owner, name = pair
                if all(isinstance(part, (ast.Attribute, ast.Name, ast.expr_context)) for part in ast.walk(owner)):
                    text = ast.unparse(owner)
                    if (text, name) not in found:
                        found[text, name] = (compile_expression(context, owner), name)
            elif isinstance(node, ast.Name) and node.id not in seen and depth < MAX_DEPTH:
                seen.add(node.id)
                pending += [(source, depth + 1) for source in sources.get(node.id, ())[-4:]]
    return list(found.values())


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


def _attribute(node: ast.AST) -> tuple[ast.expr, str] | None:
    """Owner and name of an attribute read: `a.b`, getattr(a, "b", ...), hasattr(a, "b")."""
    if isinstance(node, ast.Attribute):
        return node.value, node.attr
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "hasattr")
        and len(node.args) >= 2
        and isinstance(node.args[1], ast.Constant)
        and isinstance(node.args[1].value, str)
    ):
        return node.args[0], node.args[1].value
    return None


def _assignments(function: ast.AST, before_line: int) -> dict[str, list[ast.expr]]:
    """Local name -> right-hand sides of its assignments above a line."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if getattr(node, "lineno", before_line) >= before_line:
            continue
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and isinstance(node.target, ast.Name) and node.value is not None:
            found.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).append(node.iter)
    return found
