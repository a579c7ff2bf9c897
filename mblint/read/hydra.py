"""Hydra's override grammar: `key=value`, `+key=value`, `++key=value`, `~key`.

A small reader of the grammar that Hydra 1.2 and 1.3 share (their lexer's longest match included), without the
ANTLR runtime. It says what was written; what an override does to a config is not known here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, final

Kind = Literal["change", "add", "force_add", "delete"]

MAX_DEPTH = 60


class HydraError(Exception):
    """The text is not a Hydra override, or a function in it cannot be evaluated; the message is one
    sentence."""


@final
class Sweep:
    """A value that stands for several (`1,2`, `range(3)`, `choice(a,b)`): legal to write, not to launch
    with."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Sweep({self.text!r})"


@final
class Shuffled:
    """The result of `shuffle(...)`: it differs from run to run."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Override:
    """One parsed override. `key` is a dot path (or `group/sub` path); `value_at` is where the value's text
    starts.

    `value` is None, bool, int, float, str, list, dict, or a `Sweep` or `Shuffled`.
    """

    kind: Kind
    key: str
    package: str | None
    value: Any
    value_at: int


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


_UINT = r"(?:0|[1-9](?:_?[0-9])*)"
_POINT = rf"(?:{_UINT}?\.[0-9](?:_?[0-9])*|{_UINT}\.)"
_EXPONENT = rf"(?:(?:{_POINT}|{_UINT})[eE][+-]?[0-9](?:_?[0-9])*)"
_FLOAT = rf"[+-]?(?:{_EXPONENT}|{_POINT}|[Ii][Nn][Ff]|[Nn][Aa][Nn])"
_ID = r"[a-zA-Z_][a-zA-Z0-9_-]*"
_SPECIAL = r"[a-zA-Z_$][a-zA-Z0-9_$-]*"

_KEY_TOKENS = [
    ("EQUAL", re.compile(r"=[ \t]*")),
    ("TILDE", re.compile(r"~")),
    ("PLUS", re.compile(r"\+")),
    ("AT", re.compile(r"@")),
    ("COLON", re.compile(r":")),
    ("SLASH", re.compile(r"/")),
    ("ID", re.compile(_ID)),
    ("KEY_SPECIAL", re.compile(_SPECIAL)),
    ("DOT_PATH", re.compile(rf"(?:{_SPECIAL}|{_UINT})(?:\.(?:{_SPECIAL}|{_UINT}))+")),
]

# In the order of the grammar: of equally long matches the first one wins.
_VALUE_TOKENS = [
    ("POPEN", re.compile(r"[ \t]*\([ \t]*")),
    ("COMMA", re.compile(r"[ \t]*,[ \t]*")),
    ("PCLOSE", re.compile(r"[ \t]*\)")),
    ("BRACKET_OPEN", re.compile(r"\[[ \t]*")),
    ("BRACKET_CLOSE", re.compile(r"[ \t]*\]")),
    ("BRACE_OPEN", re.compile(r"\{[ \t]*")),
    ("BRACE_CLOSE", re.compile(r"[ \t]*\}")),
    ("COLON", re.compile(r"[ \t]*:[ \t]*")),
    ("EQUAL", re.compile(r"[ \t]*=[ \t]*")),
    ("FLOAT", re.compile(_FLOAT)),
    ("INT", re.compile(rf"[+-]?{_UINT}")),
    ("BOOL", re.compile(r"[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]")),
    ("NULL", re.compile(r"[Nn][Uu][Ll][Ll]")),
    ("UNQUOTED_CHAR", re.compile(r"[/\-\\+.$%*@?|]")),
    ("ID", re.compile(_ID)),
    ("ESC", re.compile(r"(?:\\\\|\\[()\[\]{}:=, \t])+")),
    ("WS", re.compile(r"[ \t]+")),
    (
        "QUOTED",
        re.compile(r'"(?:(?:\\\\)*|.*?[^\\](?:\\\\)*)"' + r"|'(?:(?:\\\\)*|.*?[^\\](?:\\\\)*)'", re.S),
    ),
    ("INTERPOLATION", re.compile(r"\$\{[^}]+\}")),
]

_PRIMITIVE = {"ID", "NULL", "INT", "FLOAT", "BOOL", "INTERPOLATION", "UNQUOTED_CHAR", "COLON", "ESC", "WS"}
_DICT_KEY = _PRIMITIVE - {"COLON", "INTERPOLATION"}


def _tokens(text: str) -> list[_Token]:
    table, at, found = _KEY_TOKENS, 0, []
    while at < len(text):
        kind, best = "", 0
        for name, pattern in table:
            match = pattern.match(text, at)
            if match and match.end() - at > best:
                kind, best = name, match.end() - at
        if not best:
            raise HydraError(f"{text!r}: the character {text[at]!r} cannot stand here (column {at + 1})")
        found.append(_Token(kind, text[at : at + best], at))
        at += best
        if kind == "EQUAL" and table is _KEY_TOKENS:
            table = _VALUE_TOKENS
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place].kind if place < len(self.tokens) else "EOF"

    def take(self, kind: str) -> _Token:
        if self.peek() != kind:
            raise self.unexpected()
        self.at += 1
        return self.tokens[self.at - 1]

    def unexpected(self) -> HydraError:
        if self.at >= len(self.tokens):
            return HydraError(f"{self.text!r} ends too early")
        token = self.tokens[self.at]
        return HydraError(f"{self.text!r}: {token.text.strip() or token.text!r} is not expected at column {token.at + 1}")

    # -------------------------------------------------------------- key

    def override(self) -> Override:
        kind: Kind = "change"
        if self.peek() == "TILDE":
            self.at += 1
            kind = "delete"
        elif self.peek() == "PLUS":
            self.at += 1
            kind = "add"
            if self.peek() == "PLUS":
                self.at += 1
                kind = "force_add"
        key, package = self.key()
        if kind == "delete" and self.peek() == "EOF":
            return Override(kind, key, package, None, len(self.text))
        equal = self.take("EQUAL")
        value_at = equal.at + len(equal.text)
        value: Any = ""
        if self.peek() != "EOF":
            value = self.value()
        if self.peek() != "EOF":
            raise self.unexpected()
        return Override(kind, key, package, value, value_at)

    def key(self) -> tuple[str, str | None]:
        key = self.package()
        if self.peek() == "SLASH" and self.at and self.tokens[self.at - 1].kind == "ID":
            while self.peek() == "SLASH":
                self.at += 1
                key += "/" + self.take("ID").text
        package = None
        if self.peek() == "AT":
            self.at += 1
            package = self.package()
        return key, package

    def package(self) -> str:
        if self.peek() in ("ID", "KEY_SPECIAL", "DOT_PATH"):
            self.at += 1
            return self.tokens[self.at - 1].text
        return ""

    # -------------------------------------------------------------- value

    def value(self) -> Any:
        start = self.at
        elements = [self.element(0)]
        while self.peek() == "COMMA":
            self.at += 1
            elements.append(self.element(0))
        return elements[0] if len(elements) == 1 else Sweep(self.text[self.tokens[start].at :])

    def element(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise HydraError(f"{self.text[:40]!r}...: nested deeper than {MAX_DEPTH} levels")
        kind = self.peek()
        if kind == "BRACKET_OPEN":
            return self.list_container(depth)
        if kind == "BRACE_OPEN":
            return self.dict_container(depth)
        if kind == "ID" and self.peek(1) == "POPEN":
            return self.function(depth)
        if kind == "QUOTED":
            self.at += 1
            return _Quoted(_unquote(self.tokens[self.at - 1].text))
        return self.primitive(_PRIMITIVE)

    def list_container(self, depth: int) -> list[Any]:
        self.take("BRACKET_OPEN")
        items = []
        if self.peek() != "BRACKET_CLOSE":
            items.append(self.element(depth + 1))
            while self.peek() == "COMMA":
                self.at += 1
                items.append(self.element(depth + 1))
        self.take("BRACKET_CLOSE")
        return items

    def dict_container(self, depth: int) -> dict[Any, Any]:
        self.take("BRACE_OPEN")
        items: dict[Any, Any] = {}
        if self.peek() != "BRACE_CLOSE":
            while True:
                key = self.primitive(_DICT_KEY)
                self.take("COLON")
                items[key] = self.element(depth + 1)
                if self.peek() != "COMMA":
                    break
                self.at += 1
        self.take("BRACE_CLOSE")
        return items

    def primitive(self, allowed: set[str]) -> Any:
        start = self.at
        while self.peek() in allowed:
            self.at += 1
        tokens = self.tokens[start : self.at]
        if not tokens:
            raise self.unexpected()
        if tokens[0].kind == "WS":
            if len(tokens) == 1:
                raise HydraError(f"{self.text!r}: a value cannot be blanks only")
            tokens = tokens[1:]
        if tokens[-1].kind == "WS":
            tokens = tokens[:-1]
        if len(tokens) > 1:
            return "".join(t.text[1::2] if t.kind == "ESC" else t.text for t in tokens)
        return _primitive_value(tokens[0])

    def function(self, depth: int) -> Any:
        start = self.at
        name = self.take("ID").text
        self.take("POPEN")
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        if self.peek() != "PCLOSE":
            while True:
                if self.peek() == "ID" and self.peek(1) == "EQUAL":
                    argument = self.take("ID").text
                    self.take("EQUAL")
                    kwargs[argument] = self.element(depth + 1)
                elif kwargs:
                    raise HydraError(f"{self.text!r}: a positional argument follows a keyword argument")
                else:
                    args.append(self.element(depth + 1))
                if self.peek() != "COMMA":
                    break
                self.at += 1
        end = self.take("PCLOSE")
        return _call(name, args, kwargs, self.text[self.tokens[start].at : end.at + len(end.text)])


class _Quoted(str):
    """A string that was quoted: casts read its text, everything else sees a plain string."""


def _primitive_value(token: _Token) -> Any:
    match token.kind:
        case "INT":
            return int(token.text) if len(token.text) < 4_000 else float(token.text.replace("_", ""))
        case "FLOAT":
            return float(token.text)
        case "NULL":
            return None
        case "BOOL":
            return token.text.lower() == "true"
        case "ESC":
            return token.text[1::2]
    return token.text


def _unquote(text: str) -> str:
    """Without its quotes; backslashes count as escapes only right before a quote (the closing one
    included)."""
    quote, rest = text[0], text[1:]
    pattern = re.compile(r"(?:\\)+" + quote)
    parts = []
    while match := pattern.search(rest):
        parts.append(rest[: match.start()])
        parts.append(rest[match.start() + 1 : match.end() : 2])
        rest = rest[match.end() :]
    if not parts:
        return rest[:-1]
    if len(rest) > 1:
        parts.append(rest[:-1])
    return "".join(parts)


# ------------------------------------------------------------------ functions

_SWEEPS = {"choice", "range", "interval", "glob", "tag"}


def _call(name: str, args: list[Any], kwargs: dict[str, Any], text: str) -> Any:
    if name in ("int", "float", "str", "bool"):
        if args and "value" in kwargs:
            raise HydraError(f"{text}: takes a positional or a named argument, not both")
        if set(kwargs) - {"value"} or not (args or kwargs):
            raise HydraError(f"{text}: takes one value")
        if len(args) > 1:
            return Sweep(text)
        return _cast(name, args[0] if args else kwargs["value"], text)
    if name in ("sort", "shuffle"):
        values = args[0] if len(args) == 1 else kwargs.get("list")
        if not isinstance(values, list):
            return Sweep(text)
        if name == "shuffle":
            return Shuffled()
        try:
            return sorted(values, reverse=bool(kwargs.get("reverse", False)))
        except TypeError:
            raise HydraError(f"{text}: the values cannot be compared") from None
    if name in _SWEEPS:
        return Sweep(text)
    raise HydraError(f"{text}: Hydra has no function {name!r}")


def _cast(name: str, value: Any, text: str) -> Any:
    if isinstance(value, list):
        return [_cast(name, item, text) for item in value]
    if isinstance(value, dict):
        return {key: _cast(name, item, text) for key, item in value.items()}
    if isinstance(value, Sweep):
        return Sweep(text)
    try:
        if isinstance(value, (bool, int, float, str)):
            if name == "int":
                return int(value)
            if name == "float":
                return float(value)
            if name == "str":
                return str(value).lower() if isinstance(value, bool) else str(value)
            if not isinstance(value, str):
                return bool(value)
            if value.lower() in ("true", "false"):
                return value.lower() == "true"
    except (ValueError, OverflowError):
        pass
    raise HydraError(f"{text}: {value!r} cannot be cast to {name}")


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return str(value) if isinstance(value, _Quoted) else value


def parse_override(text: str) -> Override:
    """Parse one override argument. Raises HydraError."""
    parsed = _Parser(text).override()
    return Override(parsed.kind, parsed.key, parsed.package, _plain(parsed.value), parsed.value_at)
