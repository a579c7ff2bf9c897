"""Shell arithmetic: integers, C operators, variables by name."""

from __future__ import annotations

import re
from collections.abc import Callable


class ArithmeticError_(Exception):
    """The expression cannot be evaluated; the message says why."""


_TOKEN = re.compile(
    r"\s*(?:(\d+#\w+|0[xX][0-9a-fA-F]+|\d+)|([A-Za-z_]\w*)(?:\[([^\]]*)\])?"
    r"|(\*\*|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%<>!~&|^?:=(),]))"
)
_BINARY = [
    ["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", ">", "<=", ">="], ["<<", ">>"], ["+", "-"],
    ["*", "/", "%"],
]  # fmt: skip

Lookup = Callable[[str, str | None], str]
Store = Callable[[str, int], None]


def evaluate(text: str, lookup: Lookup, store: Store, depth: int = 0) -> int:
    """The value of an expression. `lookup(name, index)` gives a variable's text. Raises ArithmeticError_."""
    if depth > 20:
        raise ArithmeticError_("variables refer to each other in arithmetic")
    parser = _Parser(text, lookup, store, depth)
    value = parser.sequence()
    if parser.at < len(parser.tokens):
        raise ArithmeticError_(f"the arithmetic {text.strip()[:40]!r} is not understood")
    return value


class _Parser:
    def __init__(self, text: str, lookup: Lookup, store: Store, depth: int) -> None:
        self.text, self.lookup, self.store, self.depth = text, lookup, store, depth
        self.tokens: list[tuple[str, str, str | None]] = []
        self.at = 0
        self.nesting = 0
        place = 0
        while place < len(text.rstrip()):
            match = _TOKEN.match(text, place)
            if not match:
                raise ArithmeticError_(f"the arithmetic {text.strip()[:40]!r} is not understood")
            number, name, index, operator = match.groups()
            self.tokens.append(("number", number, None) if number else ("name", name, index) if name else ("op", operator, None))
            place = match.end()

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) and self.tokens[self.at][0] == "op" else ""

    def take(self, operator: str) -> bool:
        if self.peek() == operator:
            self.at += 1
            return True
        return False

    def sequence(self) -> int:
        if not self.tokens:
            return 0
        value = self.assignment()
        while self.take(","):
            value = self.assignment()
        return value

    def assignment(self) -> int:
        self.nesting += 1
        if self.nesting > 100:
            raise ArithmeticError_("the arithmetic is nested too deeply")
        try:
            if self.at + 1 < len(self.tokens) and self.tokens[self.at][0] == "name":
                kind, operator, _ = self.tokens[self.at + 1]
                if kind == "op" and (
                    operator == "=" or (operator.endswith("=") and operator[:-1] in "+-*/%&|^" and operator not in ("==",))
                ):
                    _, name, index = self.tokens[self.at]
                    self.at += 2
                    value = self.assignment()
                    if operator != "=":
                        value = self.apply(operator[:-1], self.variable(name, index), lambda: value)
                    self.store(name, value)
                    return value
            return self.ternary()
        finally:
            self.nesting -= 1

    def ternary(self) -> int:
        condition = self.binary(0)
        if not self.take("?"):
            return condition
        first = self.assignment()
        if not self.take(":"):
            raise ArithmeticError_("a `?` without its `:`")
        second = self.assignment()
        return first if condition else second

    def binary(self, level: int) -> int:
        if level == len(_BINARY):
            return self.power()
        value = self.binary(level + 1)
        while self.peek() in _BINARY[level] and self.peek():
            operator = self.peek()
            self.at += 1
            right = self.binary(level + 1)
            value = self.apply(operator, value, lambda right=right: right)  # type: ignore[misc]
        return value

    def power(self) -> int:
        base = self.unary()
        if self.take("**"):
            exponent = self.power()
            if not 0 <= exponent <= 64:
                raise ArithmeticError_("an exponent out of range")
            return int(base**exponent)
        return base

    def unary(self) -> int:
        self.nesting += 1
        if self.nesting > 100:
            raise ArithmeticError_("the arithmetic is nested too deeply")
        try:
            if self.take("-"):
                return -self.unary()
            if self.take("+"):
                return self.unary()
            if self.take("!"):
                return int(not self.unary())
            if self.take("~"):
                return ~self.unary()
            for operator, step in (("++", 1), ("--", -1)):
                if self.take(operator):
                    kind, name, index = self.next_token()
                    if kind != "name":
                        raise ArithmeticError_(f"{operator} without a variable")
                    value = self.variable(name, index) + step
                    self.store(name, value)
                    return value
            return self.primary()
        finally:
            self.nesting -= 1

    def next_token(self) -> tuple[str, str, str | None]:
        if self.at >= len(self.tokens):
            raise ArithmeticError_(f"the arithmetic {self.text.strip()[:40]!r} ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def primary(self) -> int:
        if self.take("("):
            value = self.sequence()
            if not self.take(")"):
                raise ArithmeticError_("a parenthesis is not closed")
            return value
        kind, text, index = self.next_token()
        if kind == "number":
            return _number(text)
        if kind != "name":
            raise ArithmeticError_(f"the arithmetic {self.text.strip()[:40]!r} is not understood")
        value = self.variable(text, index)
        for operator, step in (("++", 1), ("--", -1)):
            if self.take(operator):
                self.store(text, value + step)
        return value

    def variable(self, name: str, index: str | None) -> int:
        text = self.lookup(name, index).strip()
        if re.fullmatch(r"[-+]?\d{1,100}", text):
            return int(text, 8) if re.fullmatch(r"[-+]?0[0-7]+", text) else int(text)
        return evaluate(text, self.lookup, self.store, self.depth + 1) if text else 0

    @staticmethod
    def apply(operator: str, left: int, right_of: Callable[[], int]) -> int:
        right = right_of()
        match operator:
            case "||":
                return int(bool(left) or bool(right))
            case "&&":
                return int(bool(left) and bool(right))
            case "==" | "!=" | "<" | ">" | "<=" | ">=":
                return int(
                    {"==": left == right, "!=": left != right, "<": left < right, ">": left > right,
                     "<=": left <= right, ">=": left >= right}[operator]
                )  # fmt: skip
            case "|":
                return left | right
            case "^":
                return left ^ right
            case "&":
                return left & right
            case "<<" | ">>":
                if not 0 <= right < 64:
                    raise ArithmeticError_("a shift out of range")
                return left << right if operator == "<<" else left >> right
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
        if right == 0:
            raise ArithmeticError_("a division by zero")
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - quotient * right


def _number(text: str) -> int:
    if len(text) > 100:
        raise ArithmeticError_("a number of more than 100 digits")
    if "#" in text:
        base, _, digits = text.partition("#")
        try:
            return int(digits, int(base))
        except ValueError:
            raise ArithmeticError_(f"{text} is no number") from None
    if text[:2] in ("0x", "0X"):
        return int(text, 16)
    if text[0] == "0" and len(text) > 1:
        try:
            return int(text, 8)
        except ValueError:
            raise ArithmeticError_(f"{text} is no number") from None
    return int(text)
