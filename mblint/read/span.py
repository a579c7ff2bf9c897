"""Places in text files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Source(NamedTuple):
    """Where a part of a value comes from that is not written at the value's own place."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open region of a text file.

    `path` is the file's absolute path; reports shorten it. Lines and columns count from 1, in characters;
    `end_column` points one past the last character.
    """

    path: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    sources: tuple[Source, ...] = field(default=(), compare=False, repr=False)
    """What else gave the value that stands here: `TP=4`, of a word with `$TP` in it. No part of the place itself."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"
