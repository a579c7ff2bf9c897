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
import operator
from collections.abc import Callable
from typing import Any, Final

from mblint.evaluate.unknown import ABSENT, Absent, Unknown
from mblint.facts.view import View, is_name
from mblint.ruleset.functions import FUNCTIONS, Function
from mblint.ruleset.logic import AND, FALSE, NOT, NOT_APPLICABLE, OR, TRUE, UNKNOWN

MAX_TEXT: Final = 4_000
MAX_NODES: Final = 500
MAX_DEPTH: Final = 40
MAX_ITEMS: Final = 2_000
MAX_STEPS: Final = 20_000
MAX_CHARACTERS: Final = 10_000
MAX_BITS: Final = 256
MAX_EXPONENT: Final = 64

Frame = dict[str, object]
_Value = Callable[[Any, Frame], object]
_Test = Callable[[Any, Frame], int]


class ExpressionError(ValueError):
    """An expression that rule files may not hold; the message says what and why."""


class Expression:
    """A compiled expression. `names` are the keys and facts that its text mentions."""

    __slots__ = ("_body", "_extra", "_test", "_value", "names", "text")

    def __init__(self, text: str, body: ast.expr, extra: frozenset[str]) -> None:
        compiler = _Compiler(extra)
        self.text = text
        self._body = body
        self._extra = extra
        self._test = compiler.test(body)
        self._value: _Value | None = None
        self.names = tuple(dict.fromkeys(compiler.names))

    def test(self, view: Any, frame: Frame | None = None) -> int:
        """The possible outcomes as a condition. `view` is a `View` or a `Trace` of one."""
        return self._test(view, {} if frame is None else frame)

    def value(self, view: Any, frame: Frame | None = None) -> object:
        """The value: plain, None, ABSENT (does not apply) or Unknown."""
        compiled = self._value
        if compiled is None:
            # Conditions never need it, so it is made on first use; what could be refused was refused before.
            compiled = self._value = _Compiler(self._extra).value(self._body)
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


def outcome(value: object) -> int:
    """The truth of a value, as a set of possible outcomes."""
    if value is True:
        return TRUE
    if value is False or value is None:
        return FALSE
    if isinstance(value, Unknown):
        return UNKNOWN
    if value is ABSENT:
        return NOT_APPLICABLE
    return TRUE if value else FALSE


def _plain(possible: int, values: tuple[object, ...] = ()) -> object:
    if possible == TRUE:
        return True
    if possible == FALSE:
        return False
    if possible == NOT_APPLICABLE:
        return ABSENT
    for value in values:
        if isinstance(value, Unknown):
            return value
    return Unknown("a part of the condition is not known")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _bounded(value: object) -> object:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return ABSENT
    if isinstance(value, str | list) and len(value) > (MAX_ITEMS if isinstance(value, list) else MAX_CHARACTERS):
        return ABSENT
    if isinstance(value, complex):
        return ABSENT
    return value


def _add(left: Any, right: Any) -> object:
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        return left + right
    return left + right if _is_number(left) and _is_number(right) else ABSENT


def _numeric(apply: Callable[[Any, Any], object]) -> Callable[[Any, Any], object]:
    def run(left: Any, right: Any) -> object:
        return apply(left, right) if _is_number(left) and _is_number(right) else ABSENT

    return run


def _power(left: Any, right: Any) -> object:
    if not (_is_number(left) and _is_number(right)) or abs(right) > MAX_EXPONENT or abs(left) > 2**64:
        return ABSENT
    result: object = left**right
    return result


_BINARY: dict[type[ast.operator], Callable[[Any, Any], object]] = {
    ast.Add: _add,
    ast.Sub: _numeric(operator.sub),
    ast.Mult: _numeric(operator.mul),
    ast.Div: _numeric(operator.truediv),
    ast.FloorDiv: _numeric(operator.floordiv),
    ast.Mod: _numeric(operator.mod),
    ast.Pow: _power,
}


def _ordered(apply: Callable[[Any, Any], bool]) -> Callable[[Any, Any], int]:
    def run(left: Any, right: Any) -> int:
        if (_is_number(left) and _is_number(right)) or (isinstance(left, str) and isinstance(right, str)):
            return TRUE if apply(left, right) else FALSE
        return NOT_APPLICABLE

    return run


def _equal(left: Any, right: Any) -> int:
    if isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            return FALSE
        result = TRUE
        for a, b in zip(left, right, strict=True):
            result = AND[result][UNKNOWN if isinstance(a, Unknown) or isinstance(b, Unknown) else _equal(a, b)]
        return result
    return TRUE if left == right else FALSE


def _same(left: Any, right: Any) -> int:
    if left is ABSENT or right is ABSENT:
        return NOT_APPLICABLE
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return UNKNOWN
    return _equal(left, right)


def _not_equal(left: Any, right: Any) -> int:
    return NOT[_equal(left, right)]


def _in(left: Any, right: Any) -> int:
    if right is None:
        return FALSE
    if isinstance(right, str):
        return (TRUE if left in right else FALSE) if isinstance(left, str) else NOT_APPLICABLE
    if isinstance(right, dict):
        return TRUE if isinstance(left, str | int) and left in right else FALSE
    if not isinstance(right, list | tuple | set | frozenset):
        return NOT_APPLICABLE
    result = FALSE
    for item in right:
        if isinstance(item, Unknown):
            result = OR[result][UNKNOWN]
        elif item is ABSENT:
            result = OR[result][NOT_APPLICABLE]
        elif item == left:
            return TRUE
    return result


def _not_in(left: Any, right: Any) -> int:
    return NOT[_in(left, right)]


_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], int]] = {
    ast.Eq: _equal,
    ast.NotEq: _not_equal,
    ast.Lt: _ordered(operator.lt),
    ast.LtE: _ordered(operator.le),
    ast.Gt: _ordered(operator.gt),
    ast.GtE: _ordered(operator.ge),
    ast.In: _in,
    ast.NotIn: _not_in,
    ast.Is: lambda left, right: TRUE if left is right else FALSE,
    ast.IsNot: lambda left, right: FALSE if left is right else TRUE,
}


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` of a chain of attributes on a name, else None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


class _Compiler:
    """Turns nodes into closures; `names` collects the keys and facts that are read."""

    def __init__(self, extra: frozenset[str]) -> None:
        self.bound: set[str] = set(extra)
        self.names: list[str] = []

    # Conditions

    def test(self, node: ast.expr) -> _Test:
        if isinstance(node, ast.BoolOp):
            return self._bool_test(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.test(node.operand)
            return lambda view, frame: NOT[inner(view, frame)]
        if isinstance(node, ast.Compare):
            return self._compare_test(node)
        if isinstance(node, ast.Call):
            quantified = self._quantified(node)
            if quantified is not None:
                return quantified
        value = self.value(node)
        return lambda view, frame: outcome(value(view, frame))

    def _bool_test(self, node: ast.BoolOp) -> _Test:
        parts = tuple(self.test(value) for value in node.values)
        conjunction = isinstance(node.op, ast.And)
        table, end = (AND, FALSE) if conjunction else (OR, TRUE)
        start = TRUE if conjunction else FALSE

        def run(view: Any, frame: Frame) -> int:
            result = start
            for part in parts:
                result = table[result][part(view, frame)]
                if result == end:
                    break
            return result

        return run

    def _compare_test(self, node: ast.Compare) -> _Test:
        operands = [node.left, *node.comparators]
        for op, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, ast.Is | ast.IsNot) and not (
                isinstance(right, ast.Constant) and (right.value is None or isinstance(right.value, bool))
            ):
                raise ExpressionError("`is` compares with None, True or False only")
        values = [self.value(operand) for operand in operands]
        pairs = tuple((values[i], _COMPARE[type(op)], values[i + 1]) for i, op in enumerate(node.ops))

        def one(view: Any, frame: Frame, pair: tuple[_Value, Callable[[Any, Any], int], _Value]) -> int:
            left, compare, right = pair
            a, b = left(view, frame), right(view, frame)
            if a is ABSENT or b is ABSENT:
                return NOT_APPLICABLE
            if isinstance(a, Unknown) or isinstance(b, Unknown):
                return UNKNOWN
            return compare(a, b)

        if len(pairs) == 1:
            only = pairs[0]
            return lambda view, frame: one(view, frame, only)

        def run(view: Any, frame: Frame) -> int:
            result = TRUE
            for pair in pairs:
                result = AND[result][one(view, frame, pair)]
                if result == FALSE:
                    break
            return result

        return run

    def _quantified(self, node: ast.Call) -> _Test | None:
        """`any(... for x in xs)` and `all(...)`, element by element in three-valued logic."""
        if not (isinstance(node.func, ast.Name) and node.func.id in ("any", "all") and len(node.args) == 1 and not node.keywords):
            return None
        argument = node.args[0]
        conjunction = node.func.id == "all"
        table, start = (AND, TRUE) if conjunction else (OR, FALSE)
        if isinstance(argument, ast.GeneratorExp):
            loop = self._loop(argument.generators, argument.elt, self.test)

            def over_loop(view: Any, frame: Frame) -> int:
                items = loop(view, frame)
                if isinstance(items, Unknown):
                    return UNKNOWN
                if isinstance(items, Absent):
                    return NOT_APPLICABLE
                result = start
                for kept, item in items:
                    one = NOT[kept] if conjunction else kept
                    # Kept or not is a condition too: `any` needs kept and true, `all` not kept or true.
                    one = OR[one][item] if conjunction else AND[one][item]
                    result = table[result][one]
                return result

            return over_loop
        inner = self.value(argument)

        def over_list(view: Any, frame: Frame) -> int:
            items = inner(view, frame)
            if isinstance(items, Unknown):
                return UNKNOWN
            if items is ABSENT:
                return NOT_APPLICABLE
            if items is None:
                return start
            if not isinstance(items, list):
                return NOT_APPLICABLE
            result = start
            for item in items:
                result = table[result][outcome(item)]
            return result

        return over_list

    def _loop(
        self,
        generators: list[ast.comprehension],
        element: ast.expr,
        compile_element: Callable[[ast.expr], Any],
    ) -> Callable[[Any, Frame], list[tuple[int, Any]] | Unknown | Absent]:
        """A comprehension's loop: pairs of (outcome of its `if`s, element)."""
        if len(generators) != 1 or generators[0].is_async:
            raise ExpressionError("a comprehension has one `for`")
        generator = generators[0]
        if not isinstance(generator.target, ast.Name):
            raise ExpressionError("a comprehension binds one plain name")
        name = generator.target.id
        if name in self.bound or is_name(name) or name in FUNCTIONS:
            raise ExpressionError(f"the loop variable {name} already means something")
        source = self.value(generator.iter)
        self.bound.add(name)
        conditions = [self.test(condition) for condition in generator.ifs]
        body = compile_element(element)
        self.bound.discard(name)

        def run(view: Any, frame: Frame) -> list[tuple[int, Any]] | Unknown | Absent:
            items = source(view, frame)
            if isinstance(items, Unknown | Absent):
                return items
            if items is None:
                return []
            if isinstance(items, dict):
                items = list(items)
            if not isinstance(items, list) or len(items) > MAX_ITEMS:
                return ABSENT
            result: list[tuple[int, Any]] = []
            inner = dict(frame)
            # Loops in loops share one budget of steps, kept under a name that no expression can have.
            steps: Any = inner.setdefault("", [MAX_STEPS])
            for item in items:
                steps[0] -= 1
                if steps[0] < 0:
                    return Unknown("the rule takes too many steps")
                inner[name] = item
                kept = TRUE
                for condition in conditions:
                    kept = AND[kept][condition(view, inner)]
                if kept & TRUE:
                    result.append((kept, body(view, inner)))
            return result

        return run

    # Values

    def value(self, node: ast.expr) -> _Value:
        method = getattr(self, f"_value_{type(node).__name__}", None)
        if method is None:
            raise ExpressionError(f"{_describe(node)} is not allowed in a rule's expression")
        compiled: _Value = method(node)
        return compiled

    def _value_Constant(self, node: ast.Constant) -> _Value:
        constant = node.value
        if not (constant is None or isinstance(constant, bool | int | float | str)):
            raise ExpressionError(f"{type(constant).__name__} constants are not allowed in a rule's expression")
        if isinstance(constant, int) and constant.bit_length() > 64:
            raise ExpressionError("a number is too large")
        return lambda view, frame: constant

    def _value_Name(self, node: ast.Name) -> _Value:
        name = node.id
        if name in self.bound:
            return lambda view, frame: frame.get(name, ABSENT)
        return self._read(name)

    def _value_Attribute(self, node: ast.Attribute) -> _Value:
        name = dotted(node)
        if name is None:
            raise ExpressionError("attributes of values are not allowed; only dotted names of keys and facts")
        if name.partition(".")[0] in self.bound:
            raise ExpressionError(f"{name}: a loop variable has no attributes")
        return self._read(name)

    def _read(self, name: str) -> _Value:
        if not is_name(name):
            raise ExpressionError(f"{name} is neither a key of a known section nor a fact")
        self.names.append(name)
        return lambda view, frame: view.read(name)

    def _value_BoolOp(self, node: ast.BoolOp) -> _Value:
        """`a or b` and `a and b` as values: the operand that decides, as in Python."""
        parts = tuple(self.value(value) for value in node.values)
        stop_at = FALSE if isinstance(node.op, ast.And) else TRUE

        def run(view: Any, frame: Frame) -> object:
            pending: Unknown | Absent | None = None
            last: object = ABSENT
            for part in parts:
                last = part(view, frame)
                possible = outcome(last)
                if possible == stop_at:
                    return last if pending is None else pending
                if possible in (UNKNOWN, NOT_APPLICABLE) and not isinstance(pending, Unknown):
                    pending = last  # type: ignore[assignment]
            return last if pending is None else pending

        return run

    def _value_UnaryOp(self, node: ast.UnaryOp) -> _Value:
        if isinstance(node.op, ast.Not):
            return self._tested(node)
        if isinstance(node.op, ast.Invert):
            raise ExpressionError("~ is not allowed in a rule's expression")
        inner = self.value(node.operand)
        negative = isinstance(node.op, ast.USub)

        def run(view: Any, frame: Frame) -> object:
            value = inner(view, frame)
            if isinstance(value, Unknown):
                return value
            if not isinstance(value, int | float):
                return ABSENT
            return -value if negative else +value

        return run

    def _value_Compare(self, node: ast.Compare) -> _Value:
        return self._tested(node)

    def _tested(self, node: ast.expr) -> _Value:
        test = self.test(node)
        return lambda view, frame: _plain(test(view, frame))

    def _value_BinOp(self, node: ast.BinOp) -> _Value:
        apply = _BINARY.get(type(node.op))
        if apply is None:
            raise ExpressionError(f"operator {type(node.op).__name__} is not allowed in a rule's expression")
        left, right = self.value(node.left), self.value(node.right)

        def run(view: Any, frame: Frame) -> object:
            a, b = left(view, frame), right(view, frame)
            if a is ABSENT or b is ABSENT or a is None or b is None:
                return ABSENT
            if isinstance(a, Unknown):
                return a
            if isinstance(b, Unknown):
                return b
            try:
                return _bounded(apply(a, b))
            except (ArithmeticError, TypeError, ValueError):
                return ABSENT

        return run

    def _value_IfExp(self, node: ast.IfExp) -> _Value:
        test, then, other = self.test(node.test), self.value(node.body), self.value(node.orelse)

        def run(view: Any, frame: Frame) -> object:
            possible = test(view, frame)
            if possible == TRUE:
                return then(view, frame)
            if possible == FALSE:
                return other(view, frame)
            if possible == NOT_APPLICABLE:
                return ABSENT
            return Unknown("which value holds depends on something that is not known")

        return run

    def _value_Subscript(self, node: ast.Subscript) -> _Value:
        if isinstance(node.slice, ast.Slice):
            raise ExpressionError("slices are not allowed in a rule's expression")
        source, index = self.value(node.value), self.value(node.slice)

        def run(view: Any, frame: Frame) -> object:
            container, key = source(view, frame), index(view, frame)
            if isinstance(container, Unknown):
                return container
            if isinstance(key, Unknown):
                return key
            if isinstance(container, list | str) and isinstance(key, int):
                return container[key] if -len(container) <= key < len(container) else ABSENT
            if isinstance(container, dict) and isinstance(key, str | int):
                return container.get(key, ABSENT)
            return ABSENT

        return run

    def _literal(self, node: ast.List | ast.Tuple | ast.Set) -> _Value:
        if any(isinstance(element, ast.Starred) for element in node.elts):
            raise ExpressionError("* is not allowed in a rule's expression")
        parts = tuple(self.value(element) for element in node.elts)

        def run(view: Any, frame: Frame) -> object:
            return [part(view, frame) for part in parts]

        return run

    _value_List = _literal
    _value_Tuple = _literal
    _value_Set = _literal

    def _value_ListComp(self, node: ast.ListComp) -> _Value:
        loop = self._loop(node.generators, node.elt, self.value)

        def run(view: Any, frame: Frame) -> object:
            items = loop(view, frame)
            if isinstance(items, Unknown | Absent):
                return items
            if any(kept != TRUE for kept, _ in items):
                return Unknown("which elements are meant depends on something that is not known")
            return [item for _, item in items]

        return run

    def _value_GeneratorExp(self, node: ast.GeneratorExp) -> _Value:
        return self._value_ListComp(ast.ListComp(elt=node.elt, generators=node.generators))

    _value_SetComp = _value_GeneratorExp

    # Calls

    def _value_Call(self, node: ast.Call) -> _Value:
        if not isinstance(node.func, ast.Name):
            raise ExpressionError("only the listed functions can be called, by their plain names")
        name = node.func.id
        quantified = self._quantified(node)
        if quantified is not None:
            return lambda view, frame: _plain(quantified(view, frame))
        function = FUNCTIONS.get(name)
        if function is None:
            from mblint.ruleset.suggest import closest

            near = closest(name, FUNCTIONS)
            raise ExpressionError(f"there is no function {name}()" + (f"; did you mean {near}()?" if near else ""))
        if any(isinstance(argument, ast.Starred) for argument in node.args) or any(keyword.arg is None for keyword in node.keywords):
            raise ExpressionError("* and ** are not allowed in a rule's expression")
        function.check_arguments(name, len(node.args), [keyword.arg or "" for keyword in node.keywords])
        return self._name_call(function, node) if function.takes_names else self._plain_call(function, node)

    def _plain_call(self, function: Function, node: ast.Call) -> _Value:
        arguments = tuple(self.value(argument) for argument in node.args)
        keywords = tuple((keyword.arg or "", self.value(keyword.value)) for keyword in node.keywords)
        run_function, lenient, needs_view = function.run, function.lenient, function.needs_view

        def run(view: Any, frame: Frame) -> object:
            values = [argument(view, frame) for argument in arguments]
            named = {name: value(view, frame) for name, value in keywords}
            if not lenient:
                everything = [*values, *named.values()]
                for value in [*everything]:
                    if isinstance(value, list):
                        everything.extend(value)
                if any(value is ABSENT for value in everything):
                    return ABSENT
                for value in everything:
                    if isinstance(value, Unknown):
                        return value
            try:
                if needs_view:
                    return _bounded(run_function(view, *values, **named))
                return _bounded(run_function(*values, **named))
            except (ArithmeticError, TypeError, ValueError):
                return ABSENT

        return run

    def _name_call(self, function: Function, node: ast.Call) -> _Value:
        """A call whose first arguments are names of keys, not their values."""
        names: list[str] = []
        for argument in node.args[: function.takes_names]:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                name: str | None = argument.value
            else:
                name = dotted(argument)
            if name is None or (name and not is_name(name)):
                raise ExpressionError(f"{ast.unparse(argument)} is neither a key of a known section nor a fact")
            names.append(name)
            self.names.append(name)
        rest = tuple(self.value(argument) for argument in node.args[function.takes_names :])
        keywords = tuple((keyword.arg or "", self.value(keyword.value)) for keyword in node.keywords)
        run_function = function.run

        def run(view: Any, frame: Frame) -> object:
            values = [value(view, frame) for value in rest]
            named = {name: value(view, frame) for name, value in keywords}
            try:
                return _bounded(run_function(view, *names, *values, **named))
            except (ArithmeticError, TypeError, ValueError):
                return ABSENT

        return run


_WORDS = {
    "Lambda": "lambda",
    "NamedExpr": ":=",
    "Await": "await",
    "Yield": "yield",
    "JoinedStr": "an f-string",
    "Dict": "a dict literal",
    "DictComp": "a dict comprehension",
    "Starred": "*",
    "Slice": "a slice",
}


def _describe(node: ast.AST) -> str:
    return _WORDS.get(type(node).__name__, type(node).__name__)
