"""Where the value of a word is written: the expansions that stand in it, and the assignments that they take it from."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_ASSIGNED = re.compile(r"(?<![\w$])([A-Za-z_]\w*)\+?=([\"']?)$")
_DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*):?[-=][\"']?$")
_QUOTES = "\"'"
_CLOSERS = {"{": "}", "(": ")"}

MAX_LOOK = 1_000
"""Characters that are looked at, back for a name and on for the end of an expansion: each word of a script asks."""
MAX_VALUE = 60
"""Characters of a value that a sentence shows."""


def after_expansions(text: str, at: int, closing: bool = True) -> int:
    """The offset after the expansions (`$x`, `${x:-y}`, `$(...)`, backticks) quotes and backslashes that stand at an offset of a
    script; without `closing`, quotes after the last expansion are not counted."""
    kept, limit = at, min(len(text), at + MAX_LOOK)
    while at < limit:
        if text[at] in _QUOTES or text[at] == "\\":
            at += 2 if text.startswith("\\\n", at) else 1
            continue
        end = _expansion_end(text, at)
        if end == at:
            break
        kept = at = end
    return at if closing else kept


def _expansion_end(text: str, at: int) -> int:
    """The offset after one expansion; `at` itself where none stands there, or none that ends soon."""
    if text[at] == "`":
        end = text.find("`", at + 1, at + MAX_LOOK)
        return at if end < 0 else end + 1
    if text[at] != "$" or at + 1 >= len(text):
        return at
    closer = _CLOSERS.get(text[at + 1])
    if closer is None:
        name = _NAME.match(text, at + 1)
        return name.end() if name is not None else at
    depth = 0
    for end in range(at + 1, min(len(text), at + MAX_LOOK)):
        depth += (text[end] == text[at + 1]) - (text[end] == closer)
        if depth == 0:
            return end + 1
    return at


def assignment(text: str, start: int, end: int) -> int | None:
    """The offset of the name that a value, from `start` to `end`, is assigned to as a whole and alone; None for any other text,
    and for a value that names a key itself."""
    found = _assigned(text, start)
    if found is None or "=" in text[start:end]:
        return None
    quote = found[2]
    follows = text[end : end + 1]
    complete = follows == quote if quote else follows == "" or follows in " \t\r\n;&|)"
    return found.start() if complete else None


def _assigned(text: str, start: int) -> re.Match[str] | None:
    return _ASSIGNED.search(text, _back(text, start), start)


def _back(text: str, start: int) -> int:
    """Where the line of an offset begins, or a little before the offset."""
    near = max(start - MAX_LOOK, 0)
    return max(text.rfind("\n", near, start), near)


def saying(text: str, start: int, end: int) -> tuple[int, str]:
    """Where what is said of a value begins, and the sentence: `TP=4 is set here`."""
    value = text[start:end]
    value = value if len(value) <= MAX_VALUE else f"{value[: MAX_VALUE - 3]}..."
    found = _assigned(text, start)
    if found is not None:
        return found.start(), f"{found[1]}={value} is set here"
    default = _DEFAULT.search(text, _back(text, start), start)
    if default is not None:
        return start, f"{value} is the default of {default[1]}"
    return start, f"{value} comes from here"
