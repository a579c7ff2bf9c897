"""The source frame of a finding: the lines that it points at, with marks under the places."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mblint.fix.text import Text
from mblint.read.span import Span
from mblint.shown import neutral

TAB = 4
WIDTH = 140
NEAR = 2
"""Lines between two places of one frame that are shown rather than left out."""

Segment = tuple[str, str]
"""Text and the style that it has in colour: ``, `bold`, `frame`, `primary`, `related`, `dim`."""
Line = list[Segment]


@dataclass(frozen=True, slots=True)
class Mark:
    """A place with the words beside its mark."""

    span: Span
    label: str
    primary: bool


def char_width(char: str) -> int:
    """Columns that a character takes in a terminal."""
    if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _cells(line: str) -> tuple[str, list[int]]:
    """A line as it is shown (tabs expanded, control characters written out) and the column of each character,
    with one more for the end.
    """
    shown: list[str] = []
    columns: list[int] = []
    column = 0
    for char in line:
        columns.append(column)
        piece = " " * (TAB - column % TAB) if char == "\t" else neutral(char)
        shown.append(piece)
        column += sum(char_width(item) for item in piece)
    return "".join(shown), [*columns, column]


def _crop(text: str, start: int, end: int) -> tuple[str, int]:
    """The part of a long line around columns start..end, and how many columns were cut off in front."""
    if sum(char_width(char) for char in text) <= WIDTH:
        return text, 0
    first = max(0, min(start - 20, end - WIDTH + 20) if end - start < WIDTH - 40 else start - 20)
    column, kept, cut = 0, [], None
    for char in text:
        if column >= first and column < first + WIDTH:
            cut = column if cut is None else cut
            kept.append(char)
        column += char_width(char)
    front = "…" if cut else ""
    back = "…" if column > first + WIDTH else ""
    return front + "".join(kept) + back, (cut or 0) - len(front)


def frame(document: Text | None, marks: Sequence[Mark], gutter: int) -> list[Line]:
    """The lines of one file's frame; a file whose text is not at hand has none.

    `gutter` is the width of the line numbers, the same for all frames of a finding.
    """
    if document is None:
        return []
    rows: list[Line] = [[(" " * gutter + " |", "frame")]]
    previous = 0
    by_line: dict[int, list[Mark]] = {}
    for mark in marks:
        if 1 <= mark.span.line <= document.line_count:
            by_line.setdefault(mark.span.line, []).append(mark)
    for number in sorted(by_line):
        if previous and number > previous + NEAR + 1:
            rows.append([("." * max(3, gutter), "frame")])
        elif previous:
            for between in range(previous + 1, number):
                rows.append(_source_row(between, _cells(document.line(between))[0][:WIDTH], gutter))
        rows += _marked(document, number, by_line[number], gutter)
        previous = number
    return rows if previous else []


def _source_row(number: int, content: str, gutter: int) -> Line:
    return [(f"{number:>{gutter}} |", "frame"), (f" {content.rstrip()}" if content.strip() else "", "")]


def _marked(document: Text, number: int, marks: Iterable[Mark], gutter: int) -> list[Line]:
    shown, columns = _cells(document.line(number))
    places: list[tuple[int, int, Mark, bool]] = []
    for mark in marks:
        span = mark.span
        start = columns[min(max(span.column - 1, 0), len(columns) - 1)]
        goes_on = span.end_line > number
        stop = len(columns) - 1 if goes_on or span.end_line < 1 else min(span.end_column - 1, len(columns) - 1)
        end = max(columns[stop], start + 1)
        places.append((start, end, mark, goes_on))
    places.sort(key=lambda place: (not place[2].primary, place[0]))
    content, cut = _crop(shown, places[0][0], places[0][1])
    rows = [_source_row(number, content, gutter)]
    limit = max(sum(char_width(char) for char in content), 1)
    for start, end, mark, goes_on in places:
        first = max(start - cut, 0)
        if first > limit:
            continue
        length = max(1, min(end - cut, limit) - first)
        sign, style = ("^", "primary") if mark.primary else ("-", "related")
        tail = "..." if goes_on else ""
        label = f" {neutral(mark.label)}" if mark.label else ""
        rows.append([(" " * gutter + " |", "frame"), (" " * (first + 1), ""), (sign * length + tail + label, style)])
    return rows
