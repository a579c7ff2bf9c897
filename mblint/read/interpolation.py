"""OmegaConf's interpolation grammar: `${a.b}`, `${..b}`, `a-${b}`, `${oc.env:X,default}`, `${mul:${a},2}`.

A small reader of the grammar of OmegaConf 2.1 to 2.3 without the ANTLR runtime. It gives a tree; what a
reference means is decided where the values are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

MAX_DEPTH = 60


class InterpolationError(Exception):
    """The text holds `${` and is not a valid interpolation; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class NodeRef:
    """`${..a.b[c]}`: `dots` leading dots, then keys; a key may itself be an interpolation."""

    dots: int
    keys: tuple[str | Interpolation, ...]


@dataclass(frozen=True, slots=True)
class ResolverCall:
    """`${name:arg,arg}`; the pieces of the dotted name may be interpolations."""

    name: tuple[str | Interpolation, ...]
    args: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """Text with interpolations in it; the parts are joined as strings unless there is only one."""

    parts: tuple[str | Interpolation, ...]


@dataclass(frozen=True, slots=True)
class Literal:
    value: Any


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class DictOf:
    items: tuple[tuple[Any, Element], ...]


Interpolation = NodeRef | ResolverCall
Element = NodeRef | ResolverCall | Joined | Literal | ListOf | DictOf


def is_interpolation(value: object) -> bool:
    """Whether OmegaConf takes this value for an interpolation (an escaped one included)."""
    return isinstance(value, str) and "${" in value


_UINT = r"(?:0|[1-9](?:_?[0-9])*)"
_POINT = rf"(?:{_UINT}?\.[0-9](?:_?[0-9])*|{_UINT}\.)"
_EXPONENT = rf"(?:(?:{_POINT}|{_UINT})[eE][+-]?[0-9](?:_?[0-9])*)"
_ID = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]*")
_KEY = re.compile(r"""[^\\{}()\[\]:. \t'"]+""")
_WS = re.compile(r"[ \t]*")

# In the order of the grammar: of equally long matches the first one wins.
_VALUE_TOKENS = [
    ("OPEN", re.compile(r"\$\{[ \t]*")),
    ("BRACE_OPEN", re.compile(r"\{[ \t]*")),
    ("BRACE_CLOSE", re.compile(r"[ \t]*\}")),
    ("QUOTE", re.compile(r"""['"]""")),
    ("COMMA", re.compile(r"[ \t]*,[ \t]*")),
    ("BRACKET_OPEN", re.compile(r"\[[ \t]*")),
    ("BRACKET_CLOSE", re.compile(r"[ \t]*\]")),
    ("COLON", re.compile(r"[ \t]*:[ \t]*")),
    ("FLOAT", re.compile(rf"[+-]?(?:{_EXPONENT}|{_POINT}|[Ii][Nn][Ff]|[Nn][Aa][Nn])")),
    ("INT", re.compile(rf"[+-]?{_UINT}")),
    ("BOOL", re.compile(r"[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]")),
    ("NULL", re.compile(r"[Nn][Uu][Ll][Ll]")),
    ("UNQUOTED_CHAR", re.compile(r"[/\-\\+.$%*@?|]")),
    ("ID", _ID),
    ("ESC", re.compile(r"(?:\\\\|\\[()\[\]{}:=, \t])+")),
    ("WS", re.compile(r"[ \t]+")),
]
_PRIMITIVE = {"ID", "NULL", "INT", "FLOAT", "BOOL", "UNQUOTED_CHAR", "COLON", "ESC", "WS", "OPEN"}
_DICT_KEY = _PRIMITIVE - {"COLON", "OPEN"}


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, what: str = "cannot be read") -> InterpolationError:
        return InterpolationError(f"the interpolation in {self.text[:80]!r} {what} at column {self.at + 1}")

    # -------------------------------------------------------------- text, outside or inside quotes

    def joined(self, quote: str | None, depth: int) -> Joined:
        """Text up to the end (or to the closing quote), with its escapes undone as the grammar does it."""
        parts: list[str | Interpolation] = []

        def add(text: str) -> None:
            if parts and isinstance(parts[-1], str):
                parts[-1] += text
            elif text:
                parts.append(text)

        while True:
            if self.at >= len(self.text):
                if quote:
                    raise self.fail("has an unclosed quote")
                return Joined(tuple(parts))
            char = self.text[self.at]
            if quote and char == quote:
                self.at += 1
                return Joined(tuple(parts))
            if self.text.startswith("${", self.at):
                parts.append(self.interpolation(depth + 1))
                continue
            if char != "\\":
                add(char)
                self.at += 1
                continue
            run = self.at
            while run < len(self.text) and self.text[run] == "\\":
                run += 1
            count, after = run - self.at, self.text[run : run + 2]
            self.at = run
            if after == "${":
                add("\\" * (count // 2))
                if count % 2:  # an escaped `${`: plain text
                    add("${")
                    self.at += 2
            elif quote and after[:1] == quote:
                add("\\" * (count // 2))
                if count % 2:
                    add(quote)
                    self.at += 1
            else:
                add("\\" * count)

    # -------------------------------------------------------------- ${...}

    def interpolation(self, depth: int) -> Interpolation:
        if depth > MAX_DEPTH:
            raise InterpolationError(f"an interpolation is nested deeper than {MAX_DEPTH} levels")
        self.at += 2
        self.blanks()
        first = self.at
        name = self.resolver_name(depth)
        if name is not None:
            return ResolverCall(name, self.arguments(depth))
        self.at = first
        return self.node(depth)

    def blanks(self) -> None:
        match = _WS.match(self.text, self.at)
        assert match
        self.at = match.end()

    def close_if(self, char: str, blanks_before: bool = True) -> bool:
        """Take `char` (with blanks before it), or leave the place as it is."""
        match = _WS.match(self.text, self.at) if blanks_before else None
        place = match.end() if match else self.at
        if not self.text.startswith(char, place):
            return False
        self.at = place + len(char)
        return True

    def key_piece(self, depth: int, identifier_only: bool) -> str | Interpolation | None:
        if self.text.startswith("${", self.at):
            return self.interpolation(depth + 1)
        longest = _KEY.match(self.text, self.at)
        if not longest:
            return None
        if identifier_only:
            identifier = _ID.match(self.text, self.at)
            if not identifier or identifier.end() != longest.end():
                return None
        self.at = longest.end()
        return longest.group()

    def resolver_name(self, depth: int) -> tuple[str | Interpolation, ...] | None:
        pieces: list[str | Interpolation] = []
        while True:
            piece = self.key_piece(depth, identifier_only=True)
            if piece is None:
                return None
            pieces.append(piece)
            if self.close_if(":"):
                self.blanks()
                return tuple(pieces)
            if not self.close_if(".", blanks_before=False):
                return None

    def node(self, depth: int) -> NodeRef:
        dots = 0
        while self.close_if(".", blanks_before=False):
            dots += 1
        keys: list[str | Interpolation] = []
        while True:
            bracket = self.close_if("[", blanks_before=False)
            if keys and not bracket:
                if self.close_if("}"):
                    return NodeRef(dots, tuple(keys))
                if not self.close_if(".", blanks_before=False):
                    raise self.fail()
            piece = self.key_piece(depth, identifier_only=False)
            if piece is None or (bracket and not self.close_if("]", blanks_before=False)):
                raise self.fail()
            keys.append(piece)

    def arguments(self, depth: int) -> tuple[Element, ...]:
        if self.close_if("}"):
            return ()
        args, _ = self.sequence(depth, "}")
        return args

    def sequence(self, depth: int, closer: str) -> tuple[tuple[Element, ...], bool]:
        items: list[Element] = []
        after_comma = True
        while True:
            if self.close_if(closer):
                if after_comma:
                    items.append(Literal(""))
                return tuple(items), True
            if self.close_if(","):
                self.blanks()
                if after_comma:
                    items.append(Literal(""))
                after_comma = True
                continue
            if not after_comma:
                raise self.fail()
            items.append(self.element(depth + 1))
            after_comma = False

    # -------------------------------------------------------------- elements

    def token(self) -> tuple[str, str]:
        kind, best = "", ""
        for name, pattern in _VALUE_TOKENS:
            match = pattern.match(self.text, self.at)
            if match and len(match.group()) > len(best):
                kind, best = name, match.group()
        if not kind:
            raise self.fail()
        return kind, best

    def element(self, depth: int) -> Element:
        if depth > MAX_DEPTH:
            raise InterpolationError(f"an interpolation is nested deeper than {MAX_DEPTH} levels")
        kind, text = self.token()
        if kind == "QUOTE":
            self.at += 1
            inner = self.joined(text, depth)
            if not inner.parts:
                return Literal("")
            # A quoted single interpolation is still a string.
            return inner if len(inner.parts) > 1 or isinstance(inner.parts[0], str) else Joined((*inner.parts, ""))
        if kind == "BRACKET_OPEN":
            self.at += len(text)
            if self.close_if("]"):
                return ListOf(())
            return ListOf(self.sequence(depth, "]")[0])
        if kind == "BRACE_OPEN":
            self.at += len(text)
            return self.mapping(depth)
        return self.primitive(_PRIMITIVE, depth)

    def mapping(self, depth: int) -> DictOf:
        items: list[tuple[Any, Element]] = []
        if self.close_if("}"):
            return DictOf(())
        while True:
            key = self.primitive(_DICT_KEY, depth)
            assert isinstance(key, (Literal, Joined))
            kind, text = self.token()
            if kind != "COLON":
                raise self.fail()
            self.at += len(text)
            items.append(
                (
                    key.value if isinstance(key, Literal) else "".join(map(str, key.parts)),
                    self.element(depth + 1),
                )
            )
            if self.close_if("}"):
                return DictOf(tuple(items))
            if not self.close_if(","):
                raise self.fail()
            self.blanks()

    def primitive(self, allowed: set[str], depth: int) -> Element:
        parts: list[tuple[str, str | Interpolation]] = []
        while self.at < len(self.text):
            kind, text = self.token()
            if kind not in allowed:
                break
            if kind == "OPEN":
                parts.append((kind, self.interpolation(depth + 1)))
                continue
            self.at += len(text)
            parts.append((kind, text[1::2] if kind == "ESC" else text))
        if not parts:
            raise self.fail()
        if len(parts) > 1:
            return Joined(tuple(part for _, part in parts))
        kind, only = parts[0]
        if not isinstance(only, str):
            return only
        match kind:
            case "INT":
                return Literal(int(only))
            case "FLOAT":
                return Literal(float(only))
            case "NULL":
                return Literal(None)
            case "BOOL":
                return Literal(only.lower() == "true")
            case "WS":
                raise self.fail("has a blank where a value is expected")
        return Literal(only)


@lru_cache(maxsize=2048)
def parse_interpolation(text: str) -> Joined:
    """The parts of a string value. Raises InterpolationError."""
    return _Reader(text).joined(None, 0)


def parse_element(text: str) -> Element:
    """A single element, as `oc.decode` reads it. Raises InterpolationError."""
    reader = _Reader(text)
    element = reader.element(0)
    if reader.at != len(text):
        raise reader.fail()
    return element
