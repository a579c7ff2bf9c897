"""Recipes under another name: which one of the base became which one of now."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

SAME_NAME = 0.3
"""Similarity of bodies from which a function of the same name in another file is taken for the same one."""
OTHER_NAME = 0.6
"""The same for another name in the same file; in another file the bodies must be equal."""


@dataclass(frozen=True, slots=True)
class Body:
    """A recipe's source for comparison: its file and its lines, without layout and comments."""

    path: str
    lines: tuple[str, ...]


def body_of(path: str, node: ast.AST) -> Body:
    """The body of a function; its name and docstring do not count."""
    statements = list(getattr(node, "body", []))
    if statements and isinstance(statements[0], ast.Expr) and isinstance(statements[0].value, ast.Constant):
        statements = statements[1:]
    lines = [line.strip() for statement in statements for line in ast.unparse(statement).splitlines()]
    return Body(path, tuple(line for line in lines if line))


def renamed(new: Mapping[str, Body], gone: Mapping[str, Body], moved: Mapping[str, str]) -> dict[str, str]:
    """Name now -> name at the base for recipes (`module:function`) that got another name. `moved` maps files now to their
    path at the base. The best pairs are taken first; what is not alike enough has no base."""
    pairs: list[tuple[float, str, str]] = []
    for name, body in new.items():
        for old, other in gone.items():
            same_file = body.path == other.path or moved.get(body.path) == other.path
            same_function = name.partition(":")[2] == old.partition(":")[2]
            ratio = SequenceMatcher(None, body.lines, other.lines, autojunk=False).ratio()
            needed = _needed(same_function, same_file)
            if ratio >= needed:
                pairs.append((ratio + same_function + 0.5 * same_file, name, old))
    found: dict[str, str] = {}
    taken: set[str] = set()
    for _, name, old in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2])):
        if name not in found and old not in taken:
            found[name] = old
            taken.add(old)
    return found


def _needed(same_function: bool, same_file: bool) -> float:
    if same_function:
        return 0.0 if same_file else SAME_NAME
    return OTHER_NAME if same_file else 1.0
