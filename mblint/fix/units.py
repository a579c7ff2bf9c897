"""What a change of a Python file can reach inside that file: its top-level statements, and the names by which they use each other."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache

from mblint.evaluate.source import split_lines
from mblint.fix.tree import parse_ast

DYNAMIC = frozenset({"globals", "locals", "vars", "eval", "exec", "__import__", "import_module", "modules", "__dict__"})
"""Names by which code reaches others that it does not write down."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One top-level statement: its text, the names that it binds, and every name or text in it that may stand for another."""

    text: str
    binds: frozenset[str]
    uses: frozenset[str]
    imports: bool


def reached_names(before: str, after: str) -> frozenset[str] | None:
    """Names of top-level functions and classes that may do something else in the text `after`, new names included.

    None where that cannot be told: then everything may.
    """
    old, new = _units(before), _units(after)
    if old is None or new is None:
        return None
    old_texts, new_texts = {unit.text for unit in old}, {unit.text for unit in new}
    used = frozenset().union(*(unit.uses | unit.binds for unit in old))
    changed: set[str] = set()
    for unit in [*(unit for unit in old if unit.text not in new_texts), *(unit for unit in new if unit.text not in old_texts)]:
        if unit.imports and not unit.binds & used:
            continue  # a name that nothing here had: only what changes too uses it
        if not unit.binds:
            return None
        changed |= unit.binds
    pending = True
    while pending:
        pending = False
        for unit in (*old, *new):
            if unit.imports or (unit.binds <= changed and unit.binds):
                continue
            if unit.uses & changed or unit.uses & DYNAMIC:
                if not unit.binds:
                    return None
                changed |= unit.binds
                pending = True
    return frozenset(changed)


@lru_cache(maxsize=8)
def _units(text: str) -> tuple[Unit, ...] | None:
    tree = parse_ast(text)
    if tree is None:
        return None
    lines = split_lines(text)
    return tuple(_unit(node, lines) for node in tree.body if not _is_text(node))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _unit(node: ast.stmt, lines: list[str]) -> Unit:
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    text = "\n".join(lines[first - 1 : node.end_lineno])
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        if any(alias.name == "*" for alias in node.names):
            return Unit(text, frozenset(), frozenset(), False)
        names = frozenset((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        return Unit(text, names, frozenset(), True)
    binds: set[str] = set()
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        binds.add(node.name)
        # A decorator may hand the function to anybody.
        if any(not isinstance(decorator, ast.Name) or decorator.id != "dataclass" for decorator in node.decorator_list):
            return Unit(text, frozenset(binds), frozenset(DYNAMIC), False)
    uses: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            (uses if isinstance(inner.ctx, ast.Load) else binds if not _defines(node) else uses).add(inner.id)
        elif isinstance(inner, ast.Attribute):
            uses.add(inner.attr)
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str) and inner.value.isidentifier():
            uses.add(inner.value)
        elif isinstance(inner, ast.Global):
            binds.update(inner.names)
    return Unit(text, frozenset(binds), frozenset(uses), False)


def _defines(node: ast.stmt) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
