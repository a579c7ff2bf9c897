"""Conditions and computed values of rule files: a small part of Python's expressions, compiled to closures.

What is accepted: dotted names of keys and facts, numbers, strings, True/False/None, `and or not`, comparisons
(chained, `in`, `is None`), `+ - * / // % **`, `a if c else b`, subscripts, list/tuple/set literals, one-`for`
comprehensions, and calls of the listed functions. Nothing else: no attributes of values, no lambdas, no other
calls, so that a rule file is data. Size, depth, steps and the size of results are bounded.

An expression is evaluated over a `View`. `Expression.test` gives a set of possible outcomes (see `logic`);
`Expression.value` gives a plain value, ABSENT or Unknown.
"""

from __future__ import annotations

import ast
from typing import Any, Final

from mblint.evaluate.unknown import Unknown
from mblint.facts.view import View
from mblint.ruleset.compiler import Compiler, ExpressionError, Frame, Value

MAX_TEXT: Final = 4_000
MAX_NODES: Final = 500
MAX_DEPTH: Final = 40


class Expression:
    """A compiled expression. `names` are the keys and facts that its text mentions."""

    __slots__ = ("_body", "_extra", "_test", "_value", "names", "text")

    def __init__(self, text: str, body: ast.expr, extra: frozenset[str]) -> None:
        compiler = Compiler(extra)
        self.text = text
        self._body = body
        self._extra = extra
        self._test = compiler.test(body)
        self._value: Value | None = None
        self.names = tuple(dict.fromkeys(compiler.names))

    def test(self, view: Any, frame: Frame | None = None) -> int:
        """The possible outcomes as a condition. `view` is a `View` or a `Trace` of one."""
        return self._test(view, {} if frame is None else frame)

    def value(self, view: Any, frame: Frame | None = None) -> object:
        """The value: plain, None, ABSENT (does not apply) or Unknown."""
        compiled = self._value
        if compiled is None:
            # Conditions never need it, so it is made on first use; what could be refused was refused before.
            compiled = self._value = Compiler(self._extra).value(self._body)
        return compiled(view, {} if frame is None else frame)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


class Trace:
    """A view that remembers which names were read, and so can say why an outcome is not known."""

    __slots__ = ("read_names", "view")

    def __init__(self, view: View) -> None:
        self.view = view
        self.read_names: dict[str, object] = {}

    def read(self, name: str) -> object:
        value = self.read_names[name] = self.view.read(name)
        return value

    def __getattr__(self, name: str) -> Any:
        return getattr(self.view, name)

    def unknowns(self) -> dict[str, Unknown]:
        """The names that were read and are unknown."""
        return {name: value for name, value in self.read_names.items() if isinstance(value, Unknown)}

    def keys(self) -> tuple[str, ...]:
        """The configuration keys behind all that was read."""
        return tuple(dict.fromkeys(key for name in self.read_names for key in self.view.keys_of(name)))


def compile_expression(text: str, extra: frozenset[str] = frozenset()) -> Expression:
    """Compile `text`; `extra` are further plain names that a frame will supply. Raises ExpressionError."""
    if len(text) > MAX_TEXT:
        raise ExpressionError(f"expression is longer than {MAX_TEXT} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise ExpressionError(f"not an expression: {error.msg}: {text.strip()[:80]!r}") from None
    except (RecursionError, MemoryError, ValueError):
        raise ExpressionError("expression is nested too deeply") from None
    _check_size(tree)
    return Expression(text, tree.body, extra)


def _check_size(tree: ast.AST) -> None:
    count = 0
    level = [tree]
    for _depth in range(MAX_DEPTH):
        count += len(level)
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            break
    else:
        raise ExpressionError(f"expression is nested deeper than {MAX_DEPTH} levels")
    if count > MAX_NODES:
        raise ExpressionError(f"expression has more than {MAX_NODES} parts")


__all__ = ["Expression", "ExpressionError", "Frame", "Trace", "compile_expression"]
