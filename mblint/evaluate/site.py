"""Where a piece of evaluated source stands; cheap to create, turned into a Span when somebody asks."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from mblint.read.span import Span

if TYPE_CHECKING:
    from mblint.evaluate.modules import Module


class Site:
    """A node of a module's source."""

    __slots__ = ("module", "node", "where")

    def __init__(self, module: Module, node: ast.AST, where: str = "") -> None:
        self.module = module
        self.node = node
        self.where = where
        """Qualified name of the function that holds the node."""

    @property
    def line(self) -> int:
        return getattr(self.node, "lineno", 1)

    def span(self) -> Span:
        """The node's region, in characters (the ast counts bytes)."""
        node = self.node
        line = getattr(node, "lineno", 1)
        end_line = getattr(node, "end_lineno", None) or line
        start = self.module.character_column(line, getattr(node, "col_offset", 0))
        end = self.module.character_column(end_line, getattr(node, "end_col_offset", None) or 0)
        return Span(self.module.path, line, start + 1, end_line, end + 1)

    def anchor(self) -> str:
        """`path/inside/the/tree.py:function`, the name under which upstream's checks are known."""
        return f"{self.module.relative_path}:{self.where.rpartition('.')[2]}"

    def __repr__(self) -> str:
        return f"Site({self.module.name}:{self.line})"


class SourceSite:
    """A place that is not a Python node: a line of YAML, a command-line word, an environment entry."""

    __slots__ = ("by", "place")

    def __init__(self, place: Span | None, by: str) -> None:
        self.place = place
        self.by = by

    def span(self) -> Span | None:
        return self.place
