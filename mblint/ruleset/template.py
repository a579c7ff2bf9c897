"""Message templates: text with `{expression}` or `{expression:format}`; `{{` and `}}` are braces.

Formats: `gb` (bytes as GB, one decimal), `gib`, `pct` (0.28 as 28 %), `list` (items joined by commas),
`repr`, or a format of Python's own for numbers (`,` `.1f`).
"""

from __future__ import annotations

import re
from typing import Any, Final

from mblint.evaluate.unknown import Absent, Unknown
from mblint.ruleset.expression import Expression, ExpressionError, Frame, compile_expression

_NUMBER_FORMAT: Final = re.compile(r"[+]?[,]?(\.\d{1,2})?[dfg%]?")
_NAMED: Final = frozenset({"gb", "gib", "pct", "list", "repr"})


class Template:
    """A compiled message."""

    __slots__ = ("_parts", "text")

    def __init__(self, text: str, parts: tuple[str | tuple[Expression, str], ...]) -> None:
        self.text = text
        self._parts = parts

    def render(self, view: Any, frame: Frame | None = None) -> str:
        """The text with every expression replaced by its value; what is not known reads as "unknown"."""
        out = []
        for part in self._parts:
            if isinstance(part, str):
                out.append(part)
            else:
                expression, spec = part
                out.append(show(expression.value(view, frame), spec))
        return "".join(out)

    def expressions(self) -> tuple[Expression, ...]:
        """The expressions in it, in order."""
        return tuple(part[0] for part in self._parts if not isinstance(part, str))


def compile_template(text: str, extra: frozenset[str] = frozenset()) -> Template:
    """Compile a template; `extra` are names that the frame supplies. Raises ExpressionError."""
    parts: list[str | tuple[Expression, str]] = []
    plain: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char in "{}" and text[at : at + 2] == char * 2:
            plain.append(char)
            at += 2
        elif char == "{":
            end, colon = _closing(text, at)
            body = text[at + 1 : colon if colon is not None else end]
            spec = text[colon + 1 : end].strip() if colon is not None else ""
            if spec not in _NAMED and not _NUMBER_FORMAT.fullmatch(spec):
                raise ExpressionError(f"unknown format {spec!r} in a message")
            if plain:
                parts.append("".join(plain))
                plain = []
            parts.append((compile_expression(body, extra), spec))
            at = end + 1
        elif char == "}":
            raise ExpressionError("a single } in a message; write }} for a brace")
        else:
            plain.append(char)
            at += 1
    if plain:
        parts.append("".join(plain))
    return Template(text, tuple(parts))


def _closing(text: str, start: int) -> tuple[int, int | None]:
    """Places of the brace that closes the one at `start`, and of the colon before its format."""
    depth, quote, colon = 0, "", None
    for at in range(start + 1, len(text)):
        char = text[at]
        if quote:
            if char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]" or (char == "}" and depth):
            depth -= 1
        elif char == "}":
            return at, colon
        elif char == ":" and depth == 0:
            colon = at
    raise ExpressionError("a { in a message is not closed; write {{ for a brace")


def _percent(share: float) -> str:
    """A share in whole percents; what is nearly all is not called all, nor what is nearly nothing nothing."""
    text = f"{share * 100:.0f}"
    if text == "100" and share < 1:
        return "more than 99 %"
    return "less than 1 %" if text == "0" and share > 0 else f"{text} %"


def show(value: object, spec: str = "") -> str:
    """A plain value as people read it."""
    if isinstance(value, Unknown):
        return "unknown"
    if isinstance(value, Absent):
        return "absent"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if spec == "repr":
        return repr(value)
    if spec == "list" and isinstance(value, list):
        return ", ".join(show(item) for item in value)
    if number and spec:
        assert isinstance(value, int | float)
        if spec == "gb":
            return f"{value / 1e9:.1f} GB"
        if spec == "gib":
            return f"{value / 2**30:.1f} GiB"
        if spec == "pct":
            return _percent(value)
        if spec not in _NAMED and not (spec.endswith("d") and isinstance(value, float)):
            return format(value, spec)
    if isinstance(value, float):
        return f"{value:g}" if abs(value) < 1e16 else repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(show(item) for item in value) + "]"
    return str(value)
