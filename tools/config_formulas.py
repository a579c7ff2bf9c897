"""Put how a configuration class derives values into steps and formulas, for tools/transformers_table.py.

Formulas are expressions over `c` (the configuration), `kw` (keys that are no fields) and local names. Steps:

    ["s", attribute, formula]            an attribute of the configuration gets a value
    ["t", [names]]                       attributes get the parameters of the same names
    ["l", name, formula]                 a local name
    ["i", condition, steps, steps]       if, else
    ["f", [names], formula, steps]       for each
    ["k", object, key, formula]          an entry of a dict or list
    ["a", object, attribute, formula]    an attribute of another object
    ["x", formula]                       only its effect on a dict counts
    ["b", {name: formula}]               the base class's constructor, with these keys added to kw
    ["?", [attributes], [locals]]        these have a value that the table cannot tell

Checks and log messages are left out: a file that fails them is no configuration at all.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

Step = list[Any]

FUNCTIONS = frozenset(
    [
        "len",
        "int",
        "float",
        "bool",
        "str",
        "list",
        "tuple",
        "dict",
        "set",
        "range",
        "min",
        "max",
        "sum",
        "any",
        "all",
        "sorted",
        "reversed",
        "zip",
        "enumerate",
        "isinstance",
        "hasattr",
        "getattr",
        "abs",
        "round",
    ]
)
METHODS = frozenset(
    [
        "get",
        "pop",
        "items",
        "keys",
        "values",
        "copy",
        "split",
        "strip",
        "lower",
        "upper",
        "update",
        "setdefault",
        "startswith",
        "endswith",
        "join",
        "append",
        "extend",
        "index",
        "count",
        "issubset",
        "get_text_config",
    ]
)
NODES = (
    ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.BinOp, ast.UnaryOp, ast.BoolOp,
    ast.Compare, ast.IfExp, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp,
    ast.SetComp, ast.GeneratorExp, ast.comprehension, ast.Call, ast.keyword, ast.JoinedStr,
    ast.FormattedValue, ast.Starred, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip
SILENT = ("logger", "warnings", "logging")
CHECK_CALLS = frozenset(
    {
        "rope_config_validation",
        "layer_type_validation",
        "validate_rope",
        "validate_layer_type",
        "validate_architecture",
    }
)


class UnknownStep(Exception):
    """A statement or expression that cannot be put into these terms."""


def literal(node: ast.AST) -> Any:
    """The value of constants, containers of them and arithmetic on them. Raises ValueError."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Add, ast.Sub, ast.Div, ast.FloorDiv, ast.Pow)):
        left, right = literal(node.left), literal(node.right)
        if not all(isinstance(v, (int, float)) for v in (left, right)):
            raise ValueError("not a number")
        operation: dict[type, Callable[[Any, Any], Any]] = {
            ast.Mult: lambda a, b: a * b, ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b,
            ast.Div: lambda a, b: a / b, ast.FloorDiv: lambda a, b: a // b, ast.Pow: lambda a, b: a**b,
        }  # fmt: skip
        return operation[type(node.op)](left, right)
    if isinstance(node, (ast.Tuple, ast.List)):
        return [literal(element) for element in node.elts]
    if isinstance(node, ast.Call) and ast.unparse(node) in ("float('inf')", "float('-inf')"):
        return float(node.args[0].value)  # type: ignore[attr-defined]
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError) as error:
        raise ValueError(str(error)) from None
    return _plain(value)


def _plain(value: Any) -> Any:
    """JSON has no sets and tuples."""
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted(_plain(v) for v in value)
    if isinstance(value, dict):
        if not all(isinstance(k, str) for k in value):
            raise ValueError("keys that are no strings")
        return {k: _plain(v) for k, v in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError("not a plain value")


class Rewriter(ast.NodeTransformer):
    """self -> c, **kwargs -> kw, class lookups -> names, module constants -> their values."""

    def __init__(self, owner: Translator) -> None:
        self.owner = owner

    def visit_Name(self, node: ast.Name) -> ast.AST:
        owner = self.owner
        if node.id == owner.self_name:
            return ast.Name("c", node.ctx)
        if node.id == owner.kwargs_name:
            return ast.Name("kw", node.ctx)
        if node.id in owner.locals or node.id in owner.bound or owner.is_config(node.id) or node.id in FUNCTIONS:
            return node
        if node.id in owner.constants:
            return ast.parse(repr(owner.constants[node.id]), mode="eval").body
        if node.id == "Sequence":
            return ast.parse("(list, tuple, str)", mode="eval").body
        if node.id in ("PreTrainedConfig", "PretrainedConfig", "math", "config_of", "field_names"):
            return node
        raise UnknownStep(node.id)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        text = ast.unparse(node.func)
        if text.startswith("CONFIG_MAPPING[") and isinstance(node.func, ast.Subscript):
            node = ast.Call(ast.Name("config_of", ast.Load()), [node.func.slice, *node.args], node.keywords)
        elif text.startswith("inspect.signature(") and text.endswith(".parameters.keys"):
            node = ast.Call(ast.Name("field_names", ast.Load()), [self.signature_of(node)], [])
        elif text == "AutoConfig.for_model":
            node = ast.Call(ast.Name("config_of", ast.Load()), node.args, node.keywords)
        elif text.startswith("self.sub_configs[") and isinstance(node.func, ast.Subscript):
            node = ast.Call(self.sub_config(node.func), node.args, node.keywords)
        function = node.func
        if isinstance(function, ast.Attribute):
            of_self = isinstance(function.value, ast.Name) and function.value.id == self.owner.self_name
            if not of_self and function.attr not in METHODS and not (isinstance(function.value, ast.Name) and function.value.id == "math"):
                raise UnknownStep(function.attr)
        elif not isinstance(function, ast.Name):
            raise UnknownStep(text)
        return self.generic_visit(node)

    def sub_config(self, node: ast.expr) -> ast.Name:
        """The class that `self.sub_configs["..."]` means."""
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and ast.unparse(node.value) == "self.sub_configs":
            name = self.owner.subs.get(str(node.slice.value), "")
            if self.owner.is_config(name):
                return ast.Name(name, ast.Load())
        raise UnknownStep(ast.unparse(node))

    def signature_of(self, node: ast.Call) -> ast.Name:
        """The class in inspect.signature(self.sub_configs["..."].__init__).parameters.keys()."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Subscript):
                return self.sub_config(inner)
        raise UnknownStep(ast.unparse(node))


class Translator:
    """Translates the methods of one class."""

    def __init__(self, is_config: Callable[[str], bool], constants: dict[str, Any], subs: dict[str, str]) -> None:
        self.is_config = is_config
        self.constants = constants
        self.subs = subs
        self.self_name = "self"
        self.kwargs_name = "kwargs"
        self.locals: set[str] = set()
        self.bound: set[str] = set()

    # --- methods --------------------------------------------------------------------------------------

    def _enter(self, method: ast.FunctionDef, static: bool = False) -> list[ast.arg]:
        arguments = [*method.args.posonlyargs, *method.args.args]
        self.self_name = "" if static or not arguments else arguments[0].arg
        self.kwargs_name = method.args.kwarg.arg if method.args.kwarg else ""
        given = [*(arguments if static else arguments[1:]), *method.args.kwonlyargs]
        self.locals = {a.arg for a in given}
        if "c" in self.locals or "kw" in self.locals:
            raise UnknownStep("names that formulas use themselves")
        return given

    def constructor(self, method: ast.FunctionDef) -> list[Any]:
        """[parameters with defaults, steps]."""
        given = self._enter(method)
        positional = [*method.args.posonlyargs, *method.args.args]
        defaults: dict[str, ast.expr | None] = dict(
            zip(
                [a.arg for a in positional[len(positional) - len(method.args.defaults) :]],
                method.args.defaults,
                strict=True,
            )
        )
        defaults.update(zip([a.arg for a in method.args.kwonlyargs], method.args.kw_defaults, strict=True))
        parameters: list[list[Any]] = []
        for argument in given:
            default = defaults.get(argument.arg)
            try:
                parameters.append([argument.arg, literal(default)] if default is not None else [argument.arg])
            except ValueError:
                parameters.append([argument.arg, None, "?"])
        return [parameters, self.steps(method.body)]

    def body(self, method: ast.FunctionDef) -> list[Step]:
        """The steps of a method whose result does not count."""
        self._enter(method)
        positional = [*method.args.posonlyargs, *method.args.args]
        defaults = zip(positional[len(positional) - len(method.args.defaults) :], method.args.defaults, strict=True)
        given = [["l", argument.arg, self.formula(default)] for argument, default in defaults]
        return [*given, *self.steps([s for s in method.body if not isinstance(s, ast.Return)])]

    def function(self, method: ast.FunctionDef, static: bool) -> list[Any]:
        """[parameters, steps, formula of the result]. Raises UnknownStep."""
        given = self._enter(method, static)
        if method.args.vararg or (method.args.kwarg and not static and not _ignores(method)):
            raise UnknownStep("variable arguments")
        last = method.body[-1]
        if not isinstance(last, ast.Return) or last.value is None:
            raise UnknownStep("no result")
        steps = self.steps(method.body[:-1])
        if any(step[0] == "?" for step in walk(steps)) or any(isinstance(n, ast.Return) for s in method.body[:-1] for n in ast.walk(s)):
            raise UnknownStep("a result that depends on what is not known")
        return [[a.arg for a in given], steps, self.formula(last.value)]

    # --- statements -----------------------------------------------------------------------------------

    def steps(self, body: list[ast.stmt]) -> list[Step]:
        found: list[Step] = []
        for statement in body:
            try:
                found.extend(self.step(statement))
            except UnknownStep:
                found.extend(self.unknown(statement))
        return merge(found)

    def step(self, statement: ast.stmt) -> list[Step]:
        if isinstance(statement, (ast.Pass, ast.Raise, ast.Import, ast.ImportFrom, ast.Assert)):
            return []
        if isinstance(statement, ast.Return):
            if statement.value is None:
                raise UnknownStep("an early return")
            return self.step(ast.Expr(statement.value))
        if isinstance(statement, ast.Expr):
            return self.effect(statement.value)
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            return self.assign(statement.target, statement.value)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            return self.assign(statement.targets[0], statement.value)
        if isinstance(statement, ast.If):
            before: list[Step] = []
            test = self.hoist(statement.test, before)
            then, otherwise = self.steps(statement.body), self.steps(statement.orelse)
            return [*before, ["i", self.formula(test), then, otherwise]] if then or otherwise else []
        if isinstance(statement, ast.For) and not statement.orelse:
            names = [n.id for n in ast.walk(statement.target) if isinstance(n, ast.Name)]
            iterated = self.formula(statement.iter)
            self.locals.update(names)
            inner = self.steps(statement.body)
            return [["f", names, iterated, inner]] if inner else []
        raise UnknownStep(type(statement).__name__)

    def hoist(self, test: ast.expr, before: list[Step]) -> ast.expr:
        """Take `name := value` out of a condition."""
        owner = self

        class Hoist(ast.NodeTransformer):
            def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
                before.append(["l", node.target.id, owner.formula(node.value)])
                owner.locals.add(node.target.id)
                return ast.Name(node.target.id, ast.Load())

        changed: ast.expr = Hoist().visit(test)
        return changed

    def effect(self, value: ast.expr) -> list[Step]:
        if isinstance(value, ast.Constant):
            return []
        if not isinstance(value, ast.Call):
            raise UnknownStep("an expression")
        text = ast.unparse(value.func)
        if text.partition(".")[0] in SILENT or text.rpartition(".")[2] in CHECK_CALLS:
            return []
        if text.rpartition(".")[2] in ("__init__", "__post_init__") and (
            text.startswith("super()") or text.endswith("Config.__post_init__")
        ):
            extra = {k.arg: self.formula(k.value) for k in value.keywords if k.arg is not None}
            whole = [ast.unparse(k.value) for k in value.keywords if k.arg is None]
            if any(w != self.kwargs_name for w in whole):
                raise UnknownStep("other keys for the base class")
            return [["b", extra]]
        if text == "setattr" and len(value.args) == 3:
            return [["a", self.formula(value.args[0]), self.formula(value.args[1]), self.formula(value.args[2])]]
        if text == "self.standardize_rope_params":
            return [["r"]]
        return [["x", self.formula(value)]]

    def assign(self, target: ast.expr, value: ast.expr) -> list[Step]:
        before: list[Step] = []
        value = self.hoist(value, before)
        if isinstance(target, ast.Name):
            formula = self.formula(value)
            self.locals.add(target.id)
            return [*before, ["l", target.id, formula]]
        if isinstance(target, ast.Attribute):
            if isinstance(target.value, ast.Name) and target.value.id == self.self_name:
                if isinstance(value, ast.Name) and value.id == target.attr and value.id in self.locals:
                    return [*before, ["t", [target.attr]]]
                return [*before, ["s", target.attr, self.formula(value)]]
            return [*before, ["a", self.formula(target.value), repr(target.attr), self.formula(value)]]
        if isinstance(target, ast.Subscript):
            return [
                *before,
                ["k", self.formula(target.value), self.formula(target.slice), self.formula(value)],
            ]
        raise UnknownStep("an assignment")

    def unknown(self, statement: ast.stmt) -> list[Step]:
        """What a statement may change, when it cannot be translated."""
        attributes: set[str] = set()
        names: set[str] = set()
        calls_base = False
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self.self_name:
                attributes.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                attributes.add(node.value)
            calls_base = calls_base or (isinstance(node, ast.Call) and ast.unparse(node.func).startswith("super()."))
        self.locals.update(names)
        return [["?", sorted(attributes), sorted(names)], *([["b", {}]] if calls_base else [])]

    # --- expressions ----------------------------------------------------------------------------------

    def formula(self, node: ast.expr) -> str:
        """The text of an expression in terms of c, kw and local names. Raises UnknownStep."""
        for inner in ast.walk(node):
            if not isinstance(inner, NODES):
                raise UnknownStep(type(inner).__name__)
        outer = self.bound
        self.bound = outer | {
            n.id
            for inner in ast.walk(node)
            if isinstance(inner, ast.comprehension)
            for n in ast.walk(inner.target)
            if isinstance(n, ast.Name)
        }
        try:
            copy = ast.parse(ast.unparse(node), mode="eval").body
            return ast.unparse(ast.fix_missing_locations(Rewriter(self).visit(copy)))
        finally:
            self.bound = outer


def _ignores(method: ast.FunctionDef) -> bool:
    """Whether **kwargs is only there to be ignored."""
    name = method.args.kwarg.arg if method.args.kwarg else ""
    return not any(isinstance(n, ast.Name) and n.id == name for s in method.body for n in ast.walk(s))


def walk(steps: list[Step]) -> list[Step]:
    """All steps, those of branches included."""
    found: list[Step] = []
    for step in steps:
        found.append(step)
        for part in step[1:]:
            if isinstance(part, list) and part and isinstance(part[0], list):
                found.extend(walk(part))
    return found


def merge(steps: list[Step]) -> list[Step]:
    """Neighbouring ["t", ...] steps as one."""
    merged: list[Step] = []
    for step in steps:
        if merged and step[0] == merged[-1][0] == "t":
            merged[-1][1].extend(step[1])
        else:
            merged.append(step)
    return merged
