"""Applies text edits in memory, finds the ones that cannot go together, and shows a change as a diff."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mblint.findings import TextEdit
from mblint.fix.text import Text, text_of
from mblint.shown import shown_path


class EditConflict(ValueError):
    """Two edits of one set change the same characters."""


@dataclass(frozen=True, slots=True)
class Merged:
    """Which of several edit sets can be applied together: `accepted` by index, in order.

    `conflicts` pairs each set left out with the accepted one that it collides with.
    """

    accepted: tuple[int, ...]
    conflicts: tuple[tuple[int, int], ...]


def _range(text: Text, edit: TextEdit) -> tuple[int, int]:
    return text.bounds(edit.span)


def _collide(first: tuple[int, int, str], second: tuple[int, int, str]) -> bool:
    """Whether two different edits touch the same characters.

    Two insertions at one place follow each other; an insertion at the edge of a replaced range is fine too.
    """
    (a, b, _), (c, d, _) = sorted((first, second))
    if a == b and c == d:
        return False
    if a == b:
        return c < a < d
    if c == d:
        return a < c < b
    return c < b


def apply_edits(path: str, source: str, edits: Iterable[TextEdit]) -> str:
    """The source after all edits of this path; the same edit given twice is applied once.

    Raises EditConflict when two of them touch the same characters.
    """
    text = text_of(path, source)
    ranges = list(dict.fromkeys((*_range(text, edit), edit.text) for edit in edits if edit.span.path == path))
    ordered = sorted(ranges, key=lambda item: (item[0], item[1]))
    for before, after in itertools.pairwise(ordered):
        if _collide(before, after):
            line, column = text.position(after[0])
            raise EditConflict(f"two edits change the same place, {path}:{line}:{column}")
    return spliced(source, ordered, 0, len(source))


def spliced(source: str, pieces: Iterable[tuple[int, int, str]], start: int, end: int) -> str:
    """The characters from `start` to `end` with these pieces (start, end, new text), which follow each other, put in."""
    parts: list[str] = []
    for begin, stop, new in pieces:
        parts += (source[start:begin], new)
        start = stop
    return "".join((*parts, source[start:end]))


def apply_all(sources: Mapping[str, str], edits: Sequence[TextEdit]) -> dict[str, str]:
    """New texts of the files that the edits change (files that stay equal are left out).

    Raises EditConflict for colliding edits and KeyError for a file that is not among the sources.
    """
    changed: dict[str, str] = {}
    for path in dict.fromkeys(edit.span.path for edit in edits):
        new = apply_edits(path, sources[path], edits)
        if new != sources[path]:
            changed[path] = new
    return changed


def merge(sources: Mapping[str, str], sets: Sequence[Sequence[TextEdit]]) -> Merged:
    """Take edit sets in order, each as a whole, as long as they do not collide with one taken before."""
    texts: dict[str, Text] = {}
    taken: dict[str, list[tuple[int, tuple[int, int, str]]]] = {}
    accepted: list[int] = []
    conflicts: list[tuple[int, int]] = []
    for index, edits in enumerate(sets):
        mine: list[tuple[str, tuple[int, int, str]]] = []
        for edit in edits:
            path = edit.span.path
            text = texts.setdefault(path, Text(path, sources[path]))
            mine.append((path, (*_range(text, edit), edit.text)))
        rival = next(
            (other for path, new in mine for other, old in taken.get(path, ()) if new != old and _collide(new, old)),
            None,
        )
        if rival is not None:
            conflicts.append((index, rival))
            continue
        accepted.append(index)
        for path, new in mine:
            taken.setdefault(path, []).append((index, new))
    return Merged(tuple(accepted), tuple(conflicts))


def _lines(source: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", source)


def unified_diff(path: str, before: str, after: str, *, root: str = "", color: bool = False) -> str:
    """A unified diff that `git apply` takes; empty when nothing changed. `path` is shown relative to
    `root`.
    """
    name = shown_path(path, root).lstrip("/")
    lines = difflib.unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}")
    out = [line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines]
    if color:
        out = [_colored(line, head=index < 2) for index, line in enumerate(out)]
    return "".join(out)


def _colored(line: str, *, head: bool) -> str:
    code = "1" if head else {"+": "32", "-": "31", "@": "36"}.get(line[:1], "")
    body, end = (line[:-1], "\n") if line.endswith("\n") else (line, "")
    return f"\x1b[{code}m{body}\x1b[0m{end}" if code else line
