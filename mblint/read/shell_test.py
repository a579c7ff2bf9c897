"""Shell tests, `[ ... ]` and `[[ ... ]]`: what they say about texts, in three values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from mblint.read.patterns import too_costly
from mblint.read.shell import HOLE, Slice
from mblint.read.shell_text import Text


@dataclass(frozen=True, slots=True)
class Word:
    at: Slice


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str
    operand: Slice


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Slice
    right: Slice


@dataclass(frozen=True, slots=True)
class Negation:
    inner: Test


@dataclass(frozen=True, slots=True)
class Both:
    operator: Literal["&&", "||"]
    left: Test
    right: Test


Test = Word | Unary | Binary | Negation | Both

_BINARY = {
    "=", "==", "!=", "=~", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-ef", "-nt", "-ot",
}  # fmt: skip


def tokens(text: str, place: Slice, double: bool) -> list[Slice]:
    """The words of a test. In `[[ ]]` parentheses and `&&` `||` stand alone, except right of `=~`."""
    found: list[Slice] = []
    at = place.start
    while at < place.end:
        if text[at].isspace() or text.startswith("\\\n", at):
            at += 2 if text[at] == "\\" else 1
            continue
        regex = bool(found) and text[found[-1].start : found[-1].end] == "=~"
        if double and not regex and (text.startswith("&&", at) or text.startswith("||", at)):
            found.append(Slice(at, at + 2))
            at += 2
            continue
        if double and not regex and text[at] in "()":
            found.append(Slice(at, at + 1))
            at += 1
            continue
        start = at
        at = _word_end(text, at, place.end, stops="()" if double and not regex else "")
        found.append(Slice(start, max(at, start + 1)))
        at = max(at, start + 1)
    return found


def _word_end(text: str, at: int, end: int, stops: str) -> int:
    depth = 0
    while at < end:
        char = text[at]
        if char == "\\":
            at += 2
        elif char == "'":
            close = text.find("'", at + 1, end)
            at = end if close < 0 else close + 1
        elif char == '"':
            at += 1
            while at < end and text[at] != '"':
                at += 2 if text[at] == "\\" else 1
            at += 1
        elif text.startswith(("${", "$("), at):
            depth += 1
            at += 2
        elif depth and char in "})":
            depth -= 1
            at += 1
        elif not depth and (char.isspace() or char in stops):
            return at
        else:
            at += 1
    return end


def parse(text: str, words: Sequence[Slice]) -> Test | None:
    """The tree of a test, None when it is not understood."""
    parser = _Parser(text, words)
    tree = parser.either()
    return tree if parser.at == len(words) else None


class _Parser:
    def __init__(self, text: str, words: Sequence[Slice]) -> None:
        self.text, self.words, self.at, self.depth = text, words, 0, 0

    def peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.text[self.words[place].start : self.words[place].end] if place < len(self.words) else ""

    def either(self) -> Test | None:
        self.depth += 1
        if self.depth > 60:
            return None
        left = self.each()
        while left is not None and self.peek() in ("||", "-o"):
            self.at += 1
            right = self.each()
            left = Both("||", left, right) if right is not None else None
        self.depth -= 1
        return left

    def each(self) -> Test | None:
        left = self.primary()
        while left is not None and self.peek() in ("&&", "-a"):
            self.at += 1
            right = self.primary()
            left = Both("&&", left, right) if right is not None else None
        return left

    def primary(self) -> Test | None:
        word = self.peek()
        if not word:
            return None
        if self.peek(1) in _BINARY and self.at + 2 < len(self.words):
            self.at += 3
            return Binary(self.peek(-2), self.words[self.at - 3], self.words[self.at - 1])
        if word == "!":
            self.at += 1
            self.depth += 1
            inner = self.primary() if self.depth < 60 else None
            return Negation(inner) if inner is not None else None
        if word in ("(", "\\("):
            self.at += 1
            inner = self.either()
            if self.peek() not in (")", "\\)"):
                return None
            self.at += 1
            return inner
        if re.fullmatch(r"-[a-zA-Z]", word) and self.at + 1 < len(self.words) and self.peek(1) not in ("&&", "||", ")"):
            self.at += 2
            return Unary(word, self.words[self.at - 1])
        self.at += 1
        return Word(self.words[self.at - 1])


# ------------------------------------------------------------------ truth


@dataclass(frozen=True, slots=True)
class Reader:
    """How a test reads its words."""

    text: Callable[[Slice], Text]
    pattern: Callable[[Slice], tuple[re.Pattern[str] | None, Text]]
    number: Callable[[Slice], int | None]
    is_set: Callable[[str], bool | None]
    differs: Callable[[Slice, str], bool]
    """Whether an unknown left side is known not to be this text."""


def truth(test: Test, reader: Reader, double: bool) -> bool | None:
    """True, False, or None when it cannot be said."""
    match test:
        case Both(operator, left, right):
            first = truth(left, reader, double)
            if first is (operator == "||"):
                return first
            second = truth(right, reader, double)
            if second is (operator == "||"):
                return second
            return None if first is None or second is None else operator == "&&"
        case Negation(inner):
            value = truth(inner, reader, double)
            return None if value is None else not value
        case Word(at):
            return _filled(reader.text(at))
        case Unary(operator, operand):
            if operator in ("-n", "-z"):
                filled = _filled(reader.text(operand))
                return filled if operator == "-n" or filled is None else not filled
            if operator == "-v":
                name = reader.text(operand)
                return reader.is_set(name.chars) if name.known else None
            return None
    assert isinstance(test, Binary)
    return _compare(test, reader, double)


def _filled(text: Text) -> bool | None:
    if text.chars.replace(HOLE, ""):
        return True
    return None if text.why else False


def _compare(test: Binary, reader: Reader, double: bool) -> bool | None:
    operator = test.operator
    if operator in ("-eq", "-ne", "-lt", "-le", "-gt", "-ge"):
        left, right = reader.number(test.left), reader.number(test.right)
        if left is None or right is None:
            return None
        outcome = {
            "-eq": left == right, "-ne": left != right, "-lt": left < right,
            "-le": left <= right, "-gt": left > right, "-ge": left >= right,
        }  # fmt: skip
        return outcome[operator]
    text = reader.text(test.left)
    if operator in ("=", "==", "!="):
        if double:
            pattern, shown = reader.pattern(test.right)
        else:
            shown = reader.text(test.right)
            pattern = re.compile(re.escape(shown.chars), re.S) if shown.known else None
        if pattern is None:
            return None
        if not text.known:
            same = False if reader.differs(test.left, shown.chars) else None
        else:
            same = None if too_costly(pattern.pattern, text.chars) else pattern.fullmatch(text.chars) is not None
        return same if operator != "!=" or same is None else not same
    if operator == "=~" and text.known:
        regex = reader.text(test.right)
        if not regex.known or too_costly(regex.chars, text.chars, tries=len(text.chars) + 1):
            return None
        try:
            return re.search(regex.chars, text.chars) is not None
        except re.error:
            return None
    return None


_PLAIN_VARIABLE = re.compile(r'"?\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))"?')


def variable_of(text: str, at: Slice) -> str | None:
    """The name, when a word is nothing but one variable."""
    match = _PLAIN_VARIABLE.fullmatch(text[at.start : at.end])
    return (match[1] or match[2]) if match else None


Fact = tuple[str, bool, Text]
"""A variable, whether it equals (True) or differs from (False) the text, the text."""


def facts(test: Test, source: str, reader: Reader, double: bool, outcome: bool) -> list[Fact]:
    """What is known about variables once the test had this outcome."""
    match test:
        case Negation(inner):
            return facts(inner, source, reader, double, not outcome)
        case Both(operator, left, right):
            if (operator == "&&") == outcome:
                return facts(left, source, reader, double, outcome) + facts(right, source, reader, double, outcome)
            # One side decided already: then the outcome is the other side's.
            for decided, other in ((left, right), (right, left)):
                if truth(decided, reader, double) is (operator == "&&"):
                    return facts(other, source, reader, double, outcome)
            return []
        case Unary(operator, operand) if operator in ("-z", "-n"):
            name = variable_of(source, operand)
            return [(name, (operator == "-z") == outcome, Text())] if name else []
        case Binary(operator, left_at, right_at) if operator in ("=", "==", "!=", "-eq", "-ne"):
            name, value = variable_of(source, left_at), reader.text(right_at)
            raw = source[right_at.start : right_at.end]
            if not name or not value.known or (double and operator[0] != "-" and set(raw) & set("*?[")):
                return []
            return [(name, (operator not in ("!=", "-ne")) == outcome, value)]
    return []
