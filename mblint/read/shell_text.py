"""Text whose characters know where they were written, and which may have unknown parts."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from mblint.evaluate.unknown import Unknown
from mblint.read.shell import HOLE
from mblint.read.shell_sources import after_expansions, assignment, saying
from mblint.read.span import Source, Span

NOWHERE = -1

MAX_TEXT = 100_000


@dataclass(frozen=True, slots=True)
class Text:
    """A string with unknown parts. `at` has a place number (see `Places`) for each character, `why` one
    reason for each `HOLE` character; a hole stands for any text, also none."""

    chars: str = ""
    at: tuple[int, ...] = ()
    why: tuple[Unknown, ...] = ()

    @property
    def known(self) -> bool:
        return not self.why

    @property
    def reason(self) -> Unknown:
        return self.why[0] if self.why else Unknown("nothing")

    def __add__(self, other: Text) -> Text:
        if len(self.chars) + len(other.chars) > MAX_TEXT:
            return hole("the text grows too long to follow")
        return Text(self.chars + other.chars, self.at + other.at, self.why + other.why)

    def part(self, start: int, end: int | None = None) -> Text:
        """Characters `start` to `end`."""
        end = len(self.chars) if end is None else min(end, len(self.chars))
        start = min(start, end)
        if not self.why:
            return Text(self.chars[start:end], self.at[start:end])
        first = self.chars.count(HOLE, 0, start)
        count = self.chars.count(HOLE, start, end)
        return Text(self.chars[start:end], self.at[start:end], self.why[first : first + count])

    def strip(self) -> Text:
        left = len(self.chars) - len(self.chars.lstrip())
        return self.part(left, len(self.chars.rstrip()))

    def split(self, separators: str | None = None) -> list[Text]:
        """Parts between separators: at runs of blanks, or at each of the given characters."""
        parts: list[Text] = []
        start = 0
        for index, char in enumerate(self.chars):
            if char.isspace() if separators is None else char in separators:
                if separators is not None or index > start:
                    parts.append(self.part(start, index))
                start = index + 1
        if separators is not None or start < len(self.chars):
            parts.append(self.part(start))
        return parts


EMPTY = Text()

UNSET = Text()
"""The value of a variable that the script has unset. It reads as empty; only `${x-word}` and the like tell it
apart."""


def hole(reason: str, at: int = NOWHERE, span: Span | None = None) -> Text:
    """A text that is wholly unknown."""
    return Text(HOLE, (at,), (Unknown(reason, span),))


def made(chars: str, at: int = NOWHERE) -> Text:
    """A known text that was computed, all of it placed at one point."""
    return Text(chars, (at,) * len(chars))


def joined(parts: Iterable[Text], separator: str = " ") -> Text:
    total = EMPTY
    for index, part in enumerate(parts):
        total = total + (made(separator) if index else EMPTY) + part
    return total


@dataclass(slots=True)
class Places:
    """Numbers for the characters of several files: one file's characters have consecutive numbers."""

    bases: list[int] = field(default_factory=list)
    files: list[tuple[str, str, list[int]]] = field(default_factory=list)
    end: int = 0

    def add(self, path: str, text: str) -> range:
        """The numbers of the characters of a file."""
        base = self.end
        lines = [0]
        for index, char in enumerate(text):
            if char == "\n":
                lines.append(index + 1)
        self.bases.append(base)
        self.files.append((path, text, lines))
        self.end = base + len(text) + 1
        return range(base, base + len(text))

    def where(self, place: int) -> tuple[str, int, int] | None:
        """Path, line and column of a character."""
        if place < 0 or not self.bases:
            return None
        index = bisect.bisect_right(self.bases, place) - 1
        path, _, lines = self.files[index]
        offset = place - self.bases[index]
        line = bisect.bisect_right(lines, offset) - 1
        return path, line + 1, offset - lines[line] + 1

    def span(self, numbers: Sequence[int]) -> Span | None:
        """The smallest region that covers the first and the last known place, when both are in one file."""
        known = [number for number in (numbers[:1] and numbers) if number >= 0]
        if not known:
            return None
        first, last = self.where(known[0]), self.where(known[-1])
        if first is None or last is None:
            return None
        if first[0] != last[0] or last[1:] < first[1:]:
            last = first
        return Span(first[0], first[1], first[2], last[1], last[2] + 1)

    def word(self, numbers: Sequence[int]) -> Span | None:
        """The region of a word whose characters have these places, expansions in it included, and where those got their
        values from. A word that a variable gives as a whole has its place in the assignment."""
        known = [number for number in numbers if number >= 0]
        if not known:
            return None
        base, text = self._file(known[0])
        last = known[0]
        elsewhere: list[list[int]] = []
        for number in known[1:]:
            if number == last + 1:
                last = number
                continue
            following = base + after_expansions(text, self._behind(text, last - base))
            if number == following:
                last = number
            elif not last <= number < following:  # what lies between is written in an expansion: a default, a sum
                if elsewhere and number == elsewhere[-1][-1] + 1:
                    elsewhere[-1].append(number)
                else:
                    elsewhere.append([number])
        end = base + after_expansions(text, self._behind(text, last - base), closing=False)
        whole = assignment(text, known[0] - base, end - base) if not elsewhere else None
        first = known[0] if whole is None else base + whole
        sources = tuple(source for run in elsewhere if (source := self._source(run)) is not None)
        found = self.span([first, max(end - 1, last)])
        return replace(found, sources=sources) if found is not None and sources else found

    @staticmethod
    def _behind(text: str, offset: int) -> int:
        """Where what follows a character starts: what an expansion computes has its place at the `$`."""
        return offset if text[offset] in "$`" else offset + 1

    def _file(self, place: int) -> tuple[int, str]:
        index = bisect.bisect_right(self.bases, place) - 1
        return self.bases[index], self.files[index][1]

    def _source(self, numbers: Sequence[int]) -> Source | None:
        """The place of a value that an expansion put into a word, and a sentence about it."""
        base, text = self._file(numbers[0])
        first, message = saying(text, numbers[0] - base, numbers[-1] + 1 - base)
        span = self.span([base + first, numbers[-1]])
        return Source(span, message) if span is not None else None
