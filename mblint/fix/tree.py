"""The concrete syntax tree around one place of a Python file, with the offset of every node.

Only the top-level statement that holds the place is parsed by libcst: one recipe of a 3,000-line file costs
45 ms that way, the whole file more than a second.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from mblint.findings import TextEdit
from mblint.fix.apply import apply_edits, spliced
from mblint.fix.text import Refusal, Text
from mblint.read.span import Span

if TYPE_CHECKING:
    import libcst as cst

# libcst recurses in native code: deeper text than anybody writes would end the process, not raise.
MAX_DEPTH = 150
MAX_UNIT = 60_000


class Tree:
    """The libcst module of one unit of a file; `range` gives offsets in the whole file's text."""

    def __init__(self, text: Text, module: cst.Module, first_line: int) -> None:
        import libcst as cst
        from libcst.metadata import MetadataWrapper, PositionProvider

        self.text = text
        self.module = module
        positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
        self._inner: dict[cst.CSTNode, tuple[int, int]] = {}
        shift = first_line - 1
        for node, place in positions.items():
            start = text.offset(place.start.line + shift, place.start.column + 1)
            self._inner[node] = (start, text.offset(place.end.line + shift, place.end.column + 1))
        self._parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self._children: dict[cst.CSTNode, list[cst.CSTNode]] = {}
        # libcst collects the children of a node by visiting it, which is slow: once is enough.
        blank = cst.BaseParenthesizableWhitespace | cst.TrailingWhitespace | cst.EmptyLine
        stack: list[cst.CSTNode] = [module]
        while stack:
            node = stack.pop()
            below = [child for child in node.children if not isinstance(child, blank)]
            self._children[node] = below
            self._parents.update(dict.fromkeys(below, node))
            stack += below

    def children(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """The parts of a node in source order, white space and comments left out."""
        return self._children.get(node, [])

    def range(self, node: cst.CSTNode) -> tuple[int, int]:
        """(start, end) offsets of the node's code, its own parentheses included."""
        left: Sequence[cst.CSTNode] = getattr(node, "lpar", None) or ()
        right: Sequence[cst.CSTNode] = getattr(node, "rpar", None) or ()
        if left and right:
            return self._inner[left[0]][0], self._inner[right[-1]][1]
        return self._inner[node]

    def inner(self, node: cst.CSTNode) -> tuple[int, int]:
        """(start, end) offsets without the parentheses around the node."""
        return self._inner[node]

    def code(self, node: cst.CSTNode) -> str:
        start, end = self.range(node)
        return self.text.text[start:end]

    def span(self, node: cst.CSTNode) -> Span:
        return self.text.span(*self.range(node))

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self._parents.get(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes around this one, innermost first."""
        current = self._parents.get(node)
        while current is not None:
            yield current
            current = self._parents.get(current)

    def walk(self, root: cst.CSTNode | None = None) -> Iterator[cst.CSTNode]:
        """Every node below `root` (itself included) in source order."""
        stack: list[cst.CSTNode] = [root if root is not None else self.module]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(self.children(node)))


def _depth(tree: ast.AST) -> int:
    deepest = 0
    stack: list[tuple[ast.AST, int]] = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((child, depth + 1) for child in ast.iter_child_nodes(node))
    return deepest


@lru_cache(maxsize=4)
def parse_ast(source: str) -> ast.Module | None:
    """The file's syntax tree, which nobody changes, or None when Python cannot read it."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _units(module: ast.Module) -> list[tuple[int, int, list[ast.stmt]]]:
    """(first line, last line, statements) of the top level, in order; statements that share a line stay together."""
    units: list[tuple[int, int, list[ast.stmt]]] = []
    for node in module.body:
        first, last = _first_line(node), node.end_lineno or node.lineno
        if units and first <= units[-1][1]:
            units[-1] = (units[-1][0], last, [*units[-1][2], node])
        else:
            units.append((first, last, [node]))
    return units


def still_parses(text: Text, module: ast.Module | None, edits: Sequence[TextEdit]) -> bool:
    """Whether Python can read the text with these edits: only the top-level statements that they are in are parsed again."""
    pieces = sorted({(*text.bounds(edit.span), edit.text) for edit in edits})
    parts: list[str] = []
    for first, last, _ in _units(module) if module is not None else ():
        start, end = text.line_start(first), text.next_line_start(last)
        own = [piece for piece in pieces if start <= piece[0] and piece[1] <= end and (piece[0] < end or piece[1] == len(text.text))]
        if own:
            pieces = [piece for piece in pieces if piece not in own]
            parts += (spliced(text.text, own, start, end), text.newline)
    if pieces or not parts:  # between statements, or over several of them
        return parse_ast(apply_edits(text.path, text.text, edits)) is not None
    return parse_ast("".join(parts)) is not None


def parse_around(text: Text, span: Span, module: ast.Module | None = None) -> Tree | Refusal:
    """The concrete tree of the top-level statement(s) on the lines of `span`."""
    module = module or parse_ast(text.text)
    if module is None:
        return Refusal("the file cannot be parsed", span)
    last_line = max(span.line, span.end_line)
    units = _units(module)
    found = [unit for unit in units if unit[0] <= last_line and unit[1] >= span.line]
    if not found:
        return Refusal("there is no statement at this place", span)
    first, last = found[0][0], found[-1][1]
    source = text.text[text.line_start(first) : text.next_line_start(last)]
    if len(source) > MAX_UNIT or max(_depth(node) for unit in found for node in unit[2]) > MAX_DEPTH:
        return Refusal("the statement is too large to be edited", span)
    import libcst as cst

    try:
        parsed = cst.parse_module(source)
    except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError) as error:
        return Refusal(f"the statement cannot be parsed for editing ({type(error).__name__})", span)
    if parsed.code != source:
        return Refusal("the statement does not survive parsing unchanged", span)
    return Tree(text, parsed, first)
