"""Places of an old text in a newer one that cannot be read: lines before the first and after the last difference stay known."""

from __future__ import annotations

from dataclasses import replace

from mblint.evaluate.source import split_lines
from mblint.read.span import Span
from mblint.report.model import Group
from mblint.server.judging import moved_finding
from mblint.server.summary import Summary


class Shift:
    """Where the lines of `old` stand in `new`; what lies in the part that differs goes to the nearest line of it."""

    def __init__(self, old: str, new: str) -> None:
        before, after = split_lines(old), split_lines(new)
        same = 0
        while same < min(len(before), len(after)) and before[same] == after[same]:
            same += 1
        tail = 0
        while tail < min(len(before), len(after)) - same and before[-1 - tail] == after[-1 - tail]:
            tail += 1
        self.same, self.tail_from, self.by, self.last = same, len(before) - tail, len(after) - len(before), len(after)

    def line(self, line: int) -> int:
        """The new number of an old line, both from 1."""
        if line <= self.same:
            return line
        if line > self.tail_from:
            return line + self.by
        return max(min(line, self.tail_from + self.by), min(self.same + 1, self.last))

    def back(self, line: int) -> int:
        """The old number of a new line."""
        if line <= self.same:
            return line
        if line > self.tail_from + self.by:
            return line - self.by
        return max(min(line, self.tail_from), 1)


def shifted(found: list[Group], lenses: list[Summary], path: str, old: str, new: str) -> tuple[list[Group], list[Summary]]:
    """Findings and lenses of the old text at their lines in the new one."""
    shift = Shift(old, new)

    def span_of(span: Span) -> Span:
        if span.path != path:
            return span
        line = shift.line(span.line)
        return replace(span, line=line, end_line=max(shift.line(span.end_line), line) if span.end_line else span.end_line)

    return (
        [replace(group, finding=moved_finding(group.finding, span_of)) for group in found],
        [replace(summary, line=shift.line(summary.line)) for summary in lenses],
    )
