"""Open documents: their text as the client has it, and positions in the client's units.

Lines end at \\n, \\r\\n and \\r, as the protocol says, and at nothing else. Columns of the client count UTF-16 units (or UTF-8
bytes or characters, whatever was agreed on); mblint's spans count characters from 1.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote, unquote, urlsplit

from mblint.evaluate.source import split_lines
from mblint.files import is_launch_file
from mblint.read.span import Span

Encoding = Literal["utf-8", "utf-16", "utf-32"]
Kind = Literal["python", "launch", "settings", "other"]

_LINE_END = re.compile(r"\r\n|\r|\n")
_LONE = re.compile("[\ud800-\udfff]")
SETTINGS_FILES = frozenset({"mblint.toml", ".mblint.toml", "pyproject.toml"})
_LANGUAGES: dict[str, str] = {"python": ".py", "yaml": ".yaml", "shellscript": ".sh"}


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the client's units, both parts from 0."""

    line: int
    character: int


def units(text: str, encoding: Encoding) -> int:
    """How long a text is for the client."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(1 for char in text if ord(char) > 0xFFFF)


def characters(text: str, count: int, encoding: Encoding) -> int:
    """How many characters of `text` the first `count` units are; a position inside a character is taken as its begin."""
    if encoding == "utf-32" or text.isascii():
        return min(count, len(text))
    for index, char in enumerate(text):
        width = units(char, encoding)
        if count < width:
            return index
        count -= width
    return len(text)


class Lines:
    """A text by lines, for places in it."""

    def __init__(self, text: str, encoding: Encoding) -> None:
        self.lines = split_lines(text)
        self.encoding = encoding

    def position(self, line: int, column: int) -> Position:
        """The client's position of a line and column from 1; what lies outside goes to the nearest place inside."""
        if line < 1:
            return Position(0, 0)
        if line > len(self.lines):
            return Position(len(self.lines) - 1, units(self.lines[-1], self.encoding))
        content = self.lines[line - 1]
        return Position(line - 1, units(content[: max(column - 1, 0)], self.encoding))

    def range(self, span: Span) -> tuple[Position, Position]:
        """Begin and end of a span. One without an end covers the rest of its line."""
        start = self.position(span.line, span.column)
        if span.end_line <= 0:
            return start, self.position(span.line, len(self._content(span.line)) + 1)
        end = self.position(span.end_line, span.end_column)
        return start, end if (end.line, end.character) >= (start.line, start.character) else start

    def place(self, position: Position) -> tuple[int, int]:
        """Line and column, from 1 and in characters, of the client's position."""
        number = min(max(position.line, 0), len(self.lines) - 1)
        if position.line > number:
            return number + 1, len(self.lines[number]) + 1
        return number + 1, characters(self.lines[number], max(position.character, 0), self.encoding) + 1

    def _content(self, line: int) -> str:
        return self.lines[line - 1] if 0 < line <= len(self.lines) else ""


@dataclass(slots=True)
class Document:
    """One open document. `path` is the real path that it is evaluated under, made up for a buffer that was never saved, and None where it
    is none of our business."""

    uri: str
    version: int | None
    text: str
    path: str | None
    kind: Kind
    generation: int = 0
    """Counts changes, so that answers to old texts are known as such."""
    touched: int | None = None
    """The first line, from 1, of the last change; what stands there is judged first."""
    _lines: dict[str, Lines] = field(default_factory=dict)

    def lines(self, encoding: Encoding) -> Lines:
        """The text by lines, split once."""
        held = self._lines.get(encoding)
        if held is None:
            held = self._lines[encoding] = Lines(self.text, encoding)
        return held

    def replace(self, text: str, version: int | None) -> None:
        """Take a whole new text."""
        self.text, self.version = clean(text), version
        self.generation += 1
        self._lines.clear()

    def edit(self, start: Position, end: Position, text: str, version: int | None, encoding: Encoding) -> None:
        """Take one incremental change."""
        begin, stop = self._offset(start, encoding), self._offset(end, encoding)
        self.touched = start.line + 1
        self.replace(self.text[:begin] + text + self.text[max(begin, stop) :], version)

    def _offset(self, position: Position, encoding: Encoding) -> int:
        """The index into the text of a client's position."""
        line, column = self.lines(encoding).place(position)
        at = 0
        for _ in range(line - 1):
            match = _LINE_END.search(self.text, at)
            if match is None:
                break
            at = match.end()
        return at + column - 1


def clean(text: str) -> str:
    """The text without halves of surrogate pairs, which no file can hold; everything keeps its place."""
    return _LONE.sub("\ufffd", text)


def path_of(uri: str) -> str | None:
    """The path of a file URI; None for other schemes and for what is no URI."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme.lower() != "file":
        return None
    path = unquote(parts.path)
    if parts.netloc and parts.netloc != "localhost":
        path = f"//{unquote(parts.netloc)}{path}"
    if re.match(r"^/[A-Za-z]:", path):
        path = path[1:]
    return os.path.normpath(path) if path and "\0" not in path else None


def uri_of(path: str) -> str:
    """The URI of an absolute path."""
    slashed = path.replace(os.sep, "/")
    if re.match(r"^[A-Za-z]:", slashed):
        return "file:///" + slashed[:2] + quote(slashed[2:])
    return "file://" + quote(slashed)


def kind_of(path: str) -> Kind:
    """What is done with a file of that name."""
    from pathlib import Path

    name = os.path.basename(path)
    if name in SETTINGS_FILES:
        return "settings"
    if name.endswith(".py"):
        return "python"
    return "launch" if is_launch_file(Path(path)) else "other"


def open_document(uri: str, language: str, version: int | None, text: str, folder: str) -> Document:
    """A document from what the client says of it. `folder` is where buffers without a file are put in thought."""
    path = path_of(uri)
    if path is not None:
        real = os.path.realpath(path)
        return Document(uri, version, clean(text), real, kind_of(real))
    suffix = _LANGUAGES.get(language)
    scheme, _, rest = uri.partition(":")
    if scheme.lower() != "untitled" or suffix is None:
        return Document(uri, version, clean(text), None, "other")
    name = re.sub(r"\W+", "_", unquote(rest)).strip("_") or "buffer"
    made = os.path.join(os.path.realpath(folder), f"{name}{suffix}")
    while os.path.exists(made):
        name += "_"
        made = os.path.join(os.path.realpath(folder), f"{name}{suffix}")
    return Document(uri, version, clean(text), made, kind_of(made))
