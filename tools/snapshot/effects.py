"""What a function may change on its arguments, read off its source without running it.

Paths are attribute names from a parameter: `train.train_iters` of `cfg`. A path that ends in CHANGED is not
assigned: what it leads to is changed where it is (a list that grows). ALL says that anything may change.
"""

from __future__ import annotations

import ast
from collections.abc import Container
from typing import Any

from mblint.evaluate.objects import find_in_class
from mblint.evaluate.values import (
    MISSING,
    Builtin,
    BuiltinClass,
    ClassMethod,
    ClassValue,
    External,
    FunctionValue,
    StaticMethod,
)

ALL = "*"
CHANGED = "!"
DEEPEST = 6

READING = frozenset(
    [
        "get",
        "keys",
        "values",
        "items",
        "copy",
        "lower",
        "upper",
        "strip",
        "split",
        "startswith",
        "endswith",
        "format",
        "join",
        "index",
        "count",
        "replace",
        "removeprefix",
        "removesuffix",
        "isdigit",
        "rsplit",
        "partition",
        "rpartition",
        "title",
        "encode",
        "union",
        "intersection",
        "difference",
        "issubset",
    ]
)
"""Methods of containers and strings that change nothing."""

KEEPING = frozenset(
    [
        "add",
        "append",
        "extend",
        "insert",
        "update",
        "setdefault",
        "pop",
        "clear",
        "discard",
        "remove",
        "popitem",
        "difference_update",
    ]
)
"""Methods that change their own container, not what is put into it."""

Effects = dict[str, Any]
Place = tuple[str, str]
"""(parameter, path)"""
Given = tuple[int, str | None, list[Place], ast.AST | None]
"""An argument of a call: its index, its name, what of the caller's own arguments it may be, its source."""

COMPUTED_NAMES: dict[str, tuple[str, ...]] = {
    # The names are the first entries of CUDA_GRAPH_MODULES_DEPRECATIONS, in cuda_graph_config beside it.
    "megatron.core.transformer.transformer_config.TransformerConfig.__post_init__": (
        "cuda_graph_impl",
        "inference_cuda_graph_scope",
    ),
}
"""Functions that set attributes by names which they take from a table: the names that can be meant."""


class EffectReader:
    """Reads effects, once a function. `harmless`: full names of functions that change no argument."""

    def __init__(self, harmless: Container[str] = ()) -> None:
        self.harmless = harmless
        self.held: dict[Any, Effects] = {}
        self.running: set[Any] = set()
        self.cut = False

    def of(self, function: FunctionValue, cls: ClassValue | None = None, depth: int = 0) -> Effects:
        """Parameter -> sorted paths, or ALL. `cls`: the receiver's class, for calls of its own methods."""
        key = (function.node, cls)
        if key in self.held:
            return self.held[key]
        if key in self.running:
            self.cut = True
            return {}
        if depth > DEEPEST:
            self.cut = True
            return {name: ALL for name in parameters(function)}
        self.running.add(key)
        outer, self.cut = self.cut, False
        try:
            found = _Walk(self, function, cls, depth).run()
        finally:
            self.running.discard(key)
        if not self.cut or not self.running:
            self.held[key] = found
        self.cut = (outer or self.cut) and bool(self.running)
        return found


def cannot_change(annotation: ast.expr | None) -> bool:
    """Whether an annotation names only values that nobody can change."""
    if annotation is None:
        return False
    names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    return bool(names) and names <= {"str", "int", "float", "bool", "Optional", "Union", "Literal", "dtype"}


def parameters(function: FunctionValue) -> list[str]:
    """All parameter names."""
    a = function.node.args
    return [p.arg for p in [*a.posonlyargs, *a.args, *a.kwonlyargs, *(x for x in (a.vararg, a.kwarg) if x)]]


class _Walk(ast.NodeVisitor):
    def __init__(self, reader: EffectReader, function: FunctionValue, cls: ClassValue | None, depth: int) -> None:
        self.reader = reader
        self.function = function
        self.cls = cls
        self.depth = depth
        names = parameters(function)
        self.alias: dict[str, list[Place]] = {name: [(name, "")] for name in names}
        self.first = names[0] if names else ""
        self.changed: dict[str, set[str]] = {}

    def run(self) -> Effects:
        body = self.function.node.body
        nodes = body if isinstance(body, list) else [body]
        for _ in range(2):  # an alias may be bound below its use in a loop
            for node in nodes:
                self.visit(node)
        a = self.function.node.args
        for p in [*a.posonlyargs, *a.args, *a.kwonlyargs]:
            if cannot_change(p.annotation):
                self.changed.pop(p.arg, None)
        return {name: ALL if ALL in paths else sorted(paths) for name, paths in sorted(self.changed.items())}

    # --- places -------------------------------------------------------------------------------------------

    def places(self, node: ast.AST) -> list[Place]:
        """Where an expression may lead to."""
        if isinstance(node, ast.Name):
            return self.alias.get(node.id, [])
        if isinstance(node, ast.Attribute):
            return [_below(place, node.attr) for place in self.places(node.value)]
        if isinstance(node, (ast.Subscript, ast.Starred, ast.Await, ast.NamedExpr)):
            return self.places(node.value)
        if isinstance(node, ast.IfExp):
            return [*self.places(node.body), *self.places(node.orelse)]
        if isinstance(node, ast.BoolOp):
            return [place for value in node.values for place in self.places(value)]
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return [place for value in node.elts for place in self.places(value)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr" and node.args:
            inner = self.places(node.args[0])
            if len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
                return [_below(place, str(node.args[1].value)) for place in inner]
            return inner
        return []

    def change(self, places: list[Place], path: str = "", assigned: bool = False) -> None:
        for parameter, start in places:
            whole = ".".join(part for part in (start, path) if part)
            if "__dict__" in whole:
                whole = ""
            if whole and not assigned and not whole.endswith(CHANGED):
                whole += CHANGED
            self.changed.setdefault(parameter, set()).add(whole or ALL)

    # --- statements ---------------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._assign(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self._assign(node.target, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if not isinstance(node.target, ast.Name):
            self.change(self.places(node.target))

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        self._assign(node.target, node.iter)
        for part in [*node.body, *node.orelse]:
            self.visit(part)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Name):
                self.change(self.places(target))

    def visit_withitem(self, node: ast.withitem) -> None:
        self.visit(node.context_expr)
        if node.optional_vars is not None:
            self._assign(node.optional_vars, node.context_expr)

    def _assign(self, target: ast.AST, value: ast.AST) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            sources = value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) else None
            for index, part in enumerate(target.elts):
                self._assign(part, sources[index] if sources is not None else value)
            return
        if isinstance(target, ast.Name):
            held = self.alias.setdefault(target.id, [])
            held += [place for place in self.places(value) if place not in held]
            return
        self.change(self.places(target), assigned=isinstance(target, ast.Attribute))

    # --- calls --------------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        given: list[Given] = [(index, None, self.places(a), a) for index, a in enumerate(node.args)]
        given += [(0, k.arg, self.places(k.value), k.value) for k in node.keywords]
        callee = node.func
        if isinstance(callee, ast.Name) and callee.id in ("setattr", "delattr"):
            name = node.args[1] if len(node.args) > 1 else None
            places = self.places(node.args[0]) if node.args else []
            for word in self._words(name):
                self.change(places, word, assigned=True)
            return
        if isinstance(callee, ast.Attribute) and isinstance(callee.value, ast.Call):
            inner = callee.value.func
            if isinstance(inner, ast.Name) and inner.id == "super":
                self._super(callee.attr, given)
                return
        receiver = self.places(callee.value) if isinstance(callee, ast.Attribute) else []
        if receiver and isinstance(callee, ast.Attribute):
            self._method(receiver, callee.attr, given)
            return
        self._function(callee, given)

    def _words(self, name: ast.AST | None) -> list[str]:
        """What the name of an attribute may be; "<parameter>" for an argument, [""] when nothing is known."""
        if isinstance(name, ast.Constant):
            return [str(name.value)]
        if not isinstance(name, ast.Name):
            return [""]
        if self.function.full_name in COMPUTED_NAMES:
            return list(COMPUTED_NAMES[self.function.full_name])
        found: list[str] = []
        for node in ast.walk(self.function.node):
            sources: list[ast.AST] = []
            if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and node.target.id == name.id:
                if not isinstance(node.iter, (ast.Tuple, ast.List)):
                    return [""]
                sources = list(node.iter.elts)
            elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name.id for t in node.targets):
                value = node.value
                sources = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            elif isinstance(node, ast.Name) and node.id == name.id and not isinstance(node.ctx, ast.Load) and not found:
                continue
            if any(not isinstance(source, ast.Constant) for source in sources):
                return [""]
            found += [str(source.value) for source in sources if isinstance(source, ast.Constant)]
        if not found and name.id in parameters(self.function):
            return [f"<{name.id}>"]
        return found or [""]

    def _super(self, name: str, given: list[Given]) -> None:
        cls, own = self.cls, self.function.defining_class
        if cls is None or own is None:
            self.change([(self.first, "")])
            return
        found = find_in_class(cls, name, own)
        if isinstance(found, FunctionValue) and name != "__setattr__":
            receiver: Given = (0, None, [(self.first, "")], None)
            self._apply(found, [receiver, *[(i + 1, n, p, s) for i, n, p, s in given]], cls)

    def _method(self, receiver: list[Place], name: str, given: list[Given]) -> None:
        if receiver == [(self.first, "")] and self.cls is not None:
            found = find_in_class(self.cls, name)
            found = found.function if isinstance(found, (StaticMethod, ClassMethod)) else found
            if isinstance(found, FunctionValue):
                self._apply(found, [(0, None, receiver, None), *[(i + 1, n, p, s) for i, n, p, s in given]], self.cls)
                return
        if name not in READING:
            self.change(receiver)
            for _, _, places, _ in given if name not in KEEPING else ():
                self.change(places)

    def _function(self, callee: ast.AST, given: list[Given]) -> None:
        if not any(places for _, _, places, _ in given):
            return
        value: Any = None
        receiver: ClassValue | None = None
        if isinstance(callee, ast.Name) and callee.id not in self.alias:
            value = self.function.module.lookup(callee.id)
            if value is MISSING:
                return  # Python's own functions change nothing that they are given
        elif isinstance(callee, ast.Attribute) and isinstance(callee.value, ast.Name):
            owner = self.function.module.lookup(callee.value.id)
            if isinstance(owner, ClassValue):
                value = find_in_class(owner, callee.attr)
                # Class.method(self): what it calls on itself is looked up from the object's own class.
                own = bool(given) and given[0][2] == [(self.first, "")]
                receiver = (self.cls if own and self.cls is not None else owner) if isinstance(value, FunctionValue) else None
            elif hasattr(owner, "lookup"):
                value = owner.lookup(callee.attr)
            elif isinstance(owner, External):
                value = owner
        value = value.function if isinstance(value, (StaticMethod, ClassMethod)) else value
        if isinstance(value, FunctionValue):
            self._apply(value, given, receiver)
        elif isinstance(value, ClassValue) and value.dataclass:
            return  # an object is kept, not changed
        elif isinstance(value, ClassValue) and isinstance(find_in_class(value, "__init__"), FunctionValue):
            self._apply(
                find_in_class(value, "__init__"),
                [(i + 1 if n is None else 0, n, p, s) for i, n, p, s in given],
                value,
            )
        elif not isinstance(value, (External, Builtin, BuiltinClass)):
            for _, _, places, _ in given:
                self.change(places)

    def _apply(self, function: FunctionValue, given: list[Given], cls: ClassValue | None) -> None:
        if function.full_name in self.reader.harmless:
            return
        inner = self.reader.of(function, cls, self.depth + 1)
        names = parameters(function)
        positional = [p.arg for p in [*function.node.args.posonlyargs, *function.node.args.args]]
        sources = {n if n is not None else (positional[i] if i < len(positional) else ""): s for i, n, _, s in given}
        for index, name, places, _ in given:
            if not places:
                continue
            parameter = name if name in names else (positional[index] if name is None and index < len(positional) else None)
            paths = inner.get(parameter, ()) if parameter is not None else ALL
            if paths == ALL:
                self.change(places)
                continue
            for path in paths:
                head, mark, word = path.partition("<")
                if not mark:
                    self.change(places, path, assigned=True)
                    continue
                for known in self._words(sources.get(word.rstrip(">!"))):
                    self.change(places, f"{head}{known}" if known else head.rstrip("."), assigned=bool(known))


def _below(place: Place, name: str) -> Place:
    return place[0], f"{place[1]}.{name}".lstrip(".")
