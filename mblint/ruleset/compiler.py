"""Compiles the syntax trees of rule expressions to closures; see expression.py for what is accepted."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from mblint.evaluate.unknown import ABSENT, Absent, Unknown
from mblint.facts.view import is_name
from mblint.ruleset.functions import FUNCTIONS, Function
from mblint.ruleset.logic import AND, FALSE, NOT, NOT_APPLICABLE, OR, TRUE, UNKNOWN
from mblint.ruleset.operations import BINARY, COMPARE, MAX_ITEMS, bounded, outcome, plain

MAX_STEPS: Final = 20_000

Frame = dict[str, object]
"""The values of plain names: of comprehensions, and those that a template gives."""
Value = Callable[[Any, Frame], object]
Test = Callable[[Any, Frame], int]


class ExpressionError(ValueError):
    """An expression that rule files may not hold; the message says what and why."""


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` of a chain of attributes on a name, else None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


class Compiler:
    """Turns nodes into closures; `names` collects the keys and facts that are read."""

    def __init__(self, extra: frozenset[str]) -> None:
        self.bound: set[str] = set(extra)
        self.names: list[str] = []

    # Conditions

    def test(self, node: ast.expr) -> Test:
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

    def _bool_test(self, node: ast.BoolOp) -> Test:
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

    def _compare_test(self, node: ast.Compare) -> Test:
        operands = [node.left, *node.comparators]
        for op, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, ast.Is | ast.IsNot) and not (
                isinstance(right, ast.Constant) and (right.value is None or isinstance(right.value, bool))
            ):
                raise ExpressionError("`is` compares with None, True or False only")
        values = [self.value(operand) for operand in operands]
        pairs = tuple((values[i], COMPARE[type(op)], values[i + 1]) for i, op in enumerate(node.ops))

        def one(view: Any, frame: Frame, pair: tuple[Value, Callable[[Any, Any], int], Value]) -> int:
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

    def _quantified(self, node: ast.Call) -> Test | None:
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

    def value(self, node: ast.expr) -> Value:
        method = getattr(self, f"_value_{type(node).__name__}", None)
        if method is None:
            raise ExpressionError(f"{_describe(node)} is not allowed in a rule's expression")
        compiled: Value = method(node)
        return compiled

    def _value_Constant(self, node: ast.Constant) -> Value:
        constant = node.value
        if not (constant is None or isinstance(constant, bool | int | float | str)):
            raise ExpressionError(f"{type(constant).__name__} constants are not allowed in a rule's expression")
        if isinstance(constant, int) and constant.bit_length() > 64:
            raise ExpressionError("a number is too large")
        return lambda view, frame: constant

    def _value_Name(self, node: ast.Name) -> Value:
        name = node.id
        if name in self.bound:
            return lambda view, frame: frame.get(name, ABSENT)
        return self._read(name)

    def _value_Attribute(self, node: ast.Attribute) -> Value:
        name = dotted(node)
        if name is None:
            raise ExpressionError("attributes of values are not allowed; only dotted names of keys and facts")
        if name.partition(".")[0] in self.bound:
            raise ExpressionError(f"{name}: a loop variable has no attributes")
        return self._read(name)

    def _read(self, name: str) -> Value:
        if not is_name(name):
            raise ExpressionError(f"{name} is neither a key of a known section nor a fact")
        self.names.append(name)
        return lambda view, frame: view.read(name)

    def _value_BoolOp(self, node: ast.BoolOp) -> Value:
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

    def _value_UnaryOp(self, node: ast.UnaryOp) -> Value:
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

    def _value_Compare(self, node: ast.Compare) -> Value:
        return self._tested(node)

    def _tested(self, node: ast.expr) -> Value:
        test = self.test(node)
        return lambda view, frame: plain(test(view, frame))

    def _value_BinOp(self, node: ast.BinOp) -> Value:
        apply = BINARY.get(type(node.op))
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
                return bounded(apply(a, b))
            except (ArithmeticError, TypeError, ValueError):
                return ABSENT

        return run

    def _value_IfExp(self, node: ast.IfExp) -> Value:
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

    def _value_Subscript(self, node: ast.Subscript) -> Value:
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

    def _literal(self, node: ast.List | ast.Tuple | ast.Set) -> Value:
        if any(isinstance(element, ast.Starred) for element in node.elts):
            raise ExpressionError("* is not allowed in a rule's expression")
        parts = tuple(self.value(element) for element in node.elts)

        def run(view: Any, frame: Frame) -> object:
            return [part(view, frame) for part in parts]

        return run

    _value_List = _literal
    _value_Tuple = _literal
    _value_Set = _literal

    def _value_ListComp(self, node: ast.ListComp) -> Value:
        loop = self._loop(node.generators, node.elt, self.value)

        def run(view: Any, frame: Frame) -> object:
            items = loop(view, frame)
            if isinstance(items, Unknown | Absent):
                return items
            if any(kept != TRUE for kept, _ in items):
                return Unknown("which elements are meant depends on something that is not known")
            return [item for _, item in items]

        return run

    def _value_GeneratorExp(self, node: ast.GeneratorExp) -> Value:
        return self._value_ListComp(ast.ListComp(elt=node.elt, generators=node.generators))

    _value_SetComp = _value_GeneratorExp

    # Calls

    def _value_Call(self, node: ast.Call) -> Value:
        if not isinstance(node.func, ast.Name):
            raise ExpressionError("only the listed functions can be called, by their plain names")
        name = node.func.id
        quantified = self._quantified(node)
        if quantified is not None:
            return lambda view, frame: plain(quantified(view, frame))
        function = FUNCTIONS.get(name)
        if function is None:
            from mblint.ruleset.suggest import closest

            near = closest(name, FUNCTIONS)
            raise ExpressionError(f"there is no function {name}()" + (f"; did you mean {near}()?" if near else ""))
        if any(isinstance(argument, ast.Starred) for argument in node.args) or any(keyword.arg is None for keyword in node.keywords):
            raise ExpressionError("* and ** are not allowed in a rule's expression")
        function.check_arguments(name, len(node.args), [keyword.arg or "" for keyword in node.keywords])
        return self._name_call(function, node) if function.takes_names else self._plain_call(function, node)

    def _plain_call(self, function: Function, node: ast.Call) -> Value:
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
                    return bounded(run_function(view, *values, **named))
                return bounded(run_function(*values, **named))
            except (ArithmeticError, TypeError, ValueError):
                return ABSENT

        return run

    def _name_call(self, function: Function, node: ast.Call) -> Value:
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
                return bounded(run_function(view, *names, *values, **named))
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
