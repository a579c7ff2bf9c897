"""The words of one command with their places, and the pieces that launches are read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mblint.evaluate.unknown import Unknown
from mblint.launch.overrides import CliOverride
from mblint.launch.spec import Given
from mblint.read.shell import HOLE
from mblint.read.shell_text import Text
from mblint.read.span import Span


@dataclass(slots=True)
class Line:
    """A command line: its words, their places, and which of them may stand for any number of words."""

    words: list[Text]
    spans: list[Span | None]
    open: list[bool]

    def texts(self) -> list[str]:
        return [word.chars for word in self.words]

    def after(self, index: int) -> Line:
        return Line(self.words[index:], self.spans[index:], self.open[index:])

    def only(self, indexes: Sequence[int]) -> Line:
        return Line(
            [self.words[i] for i in indexes],
            [self.spans[i] for i in indexes],
            [self.open[i] for i in indexes],
        )


def value_of(line: Line, at: int, inline: str | None, values: Sequence[int]) -> tuple[Text | None, Span | None]:
    """The text of an option's (first) value and its place; None for an option without one."""
    if inline is not None:
        word = line.words[at]
        return word.part(len(word.chars) - len(inline)), line.spans[at]
    if values:
        return line.words[values[0]], line.spans[values[0]]
    return None, line.spans[at]


def plain(text: Text) -> str | Unknown:
    return text.chars if text.known else text.reason


def given_text(text: Text, span: Span | None) -> Given:
    return Given(text.chars if text.known else Unknown(text.reason.reason, span), span)


def overrides_of(line: Line, indexes: Sequence[int]) -> tuple[tuple[CliOverride, ...], tuple[tuple[str, Span | None], ...]]:
    """The words that are Hydra overrides, and those that are not understood."""
    overrides: list[CliOverride] = []
    unread: list[tuple[str, Span | None]] = []
    for index in indexes:
        word, span = line.words[index], line.spans[index]
        if line.open[index]:
            continue
        key, equals, _ = word.chars.partition("=")
        if HOLE in key or not (equals or key.startswith("~")):
            unread.append((word.chars.replace(HOLE, "?"), span))
        elif word.known:
            overrides.append(CliOverride(word.chars, span))
        else:
            overrides.append(CliOverride(key + "=", span, Unknown(word.reason.reason, span)))
    return tuple(overrides), tuple(unread)


def more_of(line: Line, indexes: Sequence[int] | None = None) -> Unknown | None:
    """Why further arguments may follow that cannot be seen: a word that may stand for any number of words."""
    for index in range(len(line.words)) if indexes is None else indexes:
        if line.open[index]:
            reason = line.words[index].reason.reason
            return Unknown(f"further arguments may come from outside the script: {reason}", line.spans[index])
    return None


def words_of(line: Line) -> tuple[tuple[str | Unknown, CliOverride], ...]:
    """All words of a program's command line, those that may stand for any number of words left out."""
    found: list[tuple[str | Unknown, CliOverride]] = []
    for word, span, many in zip(line.words, line.spans, line.open, strict=True):
        if many:
            continue
        if word.known:
            found.append((word.chars, CliOverride(word.chars, span)))
        else:
            reason = Unknown(word.reason.reason, span)
            key, equals, _ = word.chars.partition("=")
            found.append((reason, CliOverride(key + equals, span, reason)))
    return tuple(found)
