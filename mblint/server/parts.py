"""A module's top-level statements as parts that are compared between two texts: which of them a recipe depends on.

A part is a statement with the comments above it. A recipe depends on its own part, on those that bind a name it mentions,
directly or through others, and on those that do something when the module is run. That is more than it may read, never less;
where code looks names up by their text, everything counts.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from mblint.evaluate.ordering import bound_names
from mblint.evaluate.source import split_lines

BY_TEXT = frozenset({"globals", "locals", "vars", "eval", "exec", "sys", "importlib", "inspect", "__import__"})
"""Names through which code reaches other names that it does not spell out."""
HARMLESS = frozenset(
    {"dataclass", "dataclasses", "staticmethod", "classmethod", "property", "functools", "lru_cache", "cache", "override",
     "typing", "contextmanager", "contextlib", "typing_extensions"}
)  # fmt: skip
"""Decorators that store what they decorate nowhere."""


@dataclass(frozen=True, slots=True)
class Part:
    """One top-level statement: its lines (from 1, both included), a hash of their text, the names it mentions."""

    first: int
    last: int
    digest: bytes
    names: frozenset[str]
    bound: frozenset[str]
    acts: bool
    """Whether running the module does something with it beyond binding names."""


@dataclass(slots=True)
class Parts:
    """All parts of a module."""

    parts: list[Part] = field(default_factory=list)
    binders: dict[str, list[int]] = field(default_factory=dict)
    acting: list[int] = field(default_factory=list)

    def reached(self, name: str) -> tuple[int, ...]:
        """Indices of the parts that a function depends on, in order."""
        found: set[int] = set()
        pending = [*self.binders.get(name, ()), *self.acting]
        while pending:
            index = pending.pop()
            if index in found:
                continue
            found.add(index)
            part = self.parts[index]
            if part.names & BY_TEXT:
                return tuple(range(len(self.parts)))
            for mentioned in part.names:
                pending.extend(other for other in self.binders.get(mentioned, ()) if other not in found)
        return tuple(sorted(found))

    def digest(self, indices: Iterable[int]) -> bytes:
        """One hash for several parts."""
        return b"".join(self.parts[index].digest for index in indices)


def parts_of(text: str, tree: ast.Module) -> Parts:
    """The parts of a module's text."""
    lines = split_lines(text)
    result = Parts()
    previous = 0
    for statement in tree.body:
        start = min([statement.lineno, *(item.lineno for item in getattr(statement, "decorator_list", []))])
        last = statement.end_lineno or statement.lineno
        first = min(previous + 1, start)
        index = len(result.parts)
        content = "\n".join(lines[first - 1 : last])
        names, bound, acts = _facts(content, statement)
        digest = hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=12).digest()
        result.parts.append(Part(first, last, digest, names, bound, acts))
        for name in bound:
            result.binders.setdefault(name, []).append(index)
        if acts:
            result.acting.append(index)
        previous = max(previous, last)
    return result


_KNOWN: dict[tuple[str, int], tuple[frozenset[str], frozenset[str], bool]] = {}


def _facts(content: str, statement: ast.stmt) -> tuple[frozenset[str], frozenset[str], bool]:
    """Names that are mentioned and bound, and whether the statement acts; remembered by its text."""
    key = (content, statement.col_offset)  # two statements may share a line
    held = _KNOWN.get(key)
    if held is None:
        if len(_KNOWN) > 4000:
            _KNOWN.clear()
        names = frozenset(node.id for node in ast.walk(statement) if isinstance(node, ast.Name))
        held = _KNOWN[key] = (names, frozenset(bound_names(statement)), _acts(statement))
    return held


def _acts(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return not all(_root(item) in HARMLESS for item in statement.decorator_list)
    if isinstance(statement, ast.Import):
        return False
    if isinstance(statement, ast.ImportFrom):
        return statement.names[0].name == "*"
    if isinstance(statement, ast.Assign):
        return not all(isinstance(target, ast.Name) for target in statement.targets)
    if isinstance(statement, ast.AnnAssign):
        return not isinstance(statement.target, ast.Name)
    return not (isinstance(statement, ast.Pass) or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)))


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
