"""Offsets and positions of one source text, and the two answers that an edit can have."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

from mblint.findings import TextEdit
from mblint.read.span import Span

_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True)
class Refusal:
    """No edit is offered, and why, in one plain sentence; `span` is the place that stands in the way."""

    reason: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Edits:
    """Text edits of one change; `unsafe` holds the reasons why it may not be applied without being asked."""

    edits: tuple[TextEdit, ...]
    unsafe: tuple[str, ...] = ()


class Text:
    """A source text with its path; converts between character offsets and (line, column) that count from 1.

    Lines end at CR LF, LF or CR only, as Python's tokenizer sees them: a form feed or U+2028 ends no line.
    A byte order mark is not part of the text.
    """

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]

    @property
    def line_count(self) -> int:
        return len(self._starts)

    def offset(self, line: int, column: int = 1) -> int:
        """The offset of a position; one past the end of its line is cut to the line's end."""
        if line < 1:
            return 0
        if line > len(self._starts):
            return len(self.text)
        return min(self._starts[line - 1] + max(column, 1) - 1, self.line_end(line))

    def position(self, offset: int) -> tuple[int, int]:
        """(line, column), both from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line_start(self, line: int) -> int:
        return self._starts[line - 1]

    def line_end(self, line: int) -> int:
        """The offset of the line's end, before its line ending."""
        end = self._starts[line] if line < len(self._starts) else len(self.text)
        start = self._starts[line - 1]
        while end > start and self.text[end - 1] in "\r\n":
            end -= 1
        return end

    def next_line_start(self, line: int) -> int:
        """The offset after the line's own line ending."""
        return self._starts[line] if line < len(self._starts) else len(self.text)

    def line(self, line: int) -> str:
        """The line without its ending."""
        return self.text[self.line_start(line) : self.line_end(line)]

    def indent(self, line: int) -> str:
        """The white space that the line starts with."""
        content = self.line(line)
        return content[: len(content) - len(content.lstrip(" \t\f"))]

    def bounds(self, span: Span) -> tuple[int, int]:
        """(start, end) offsets of a span; without an end it is the rest of its line."""
        start = self.offset(span.line, span.column)
        if span.end_line < 1:
            return start, self.line_end(min(span.line, self.line_count))
        return start, max(start, self.offset(span.end_line, span.end_column))

    def span(self, start: int, end: int) -> Span:
        line, column = self.position(start)
        end_line, end_column = self.position(end)
        return Span(self.path, line, column, end_line, end_column)

    def edit(self, start: int, end: int, text: str) -> TextEdit:
        return TextEdit(self.span(start, end), text)

    @property
    def newline(self) -> str:
        """The line ending that the text uses most; LF where it has none."""
        found: dict[str, int] = {}
        for match in _LINE_END.finditer(self.text):
            found[match.group()] = found.get(match.group(), 0) + 1
        return max(found, key=lambda ending: (found[ending], ending == "\n")) if found else "\n"


@lru_cache(maxsize=8)
def text_of(path: str, source: str) -> Text:
    """The text of a file; the fixes of its findings are planned one after the other."""
    return Text(path, source)
