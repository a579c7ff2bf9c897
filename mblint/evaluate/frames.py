"""Activation records and compiled function bodies."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mblint.evaluate.modules import Module
    from mblint.evaluate.values import ClassValue, FunctionValue

Eval = Callable[["Frame"], Any]
"""A compiled expression."""

Exec = Callable[["Frame"], Any]
"""A compiled statement: returns None, or a control signal."""


class Frame:
    """The variables of one call. `parent` is the frame of the enclosing function (not of the caller)."""

    __slots__ = ("blamed", "cls", "exception", "function", "mark", "module", "parent", "pending", "result", "scope", "trace", "vars")

    def __init__(self, module: Module, parent: Frame | None, function: FunctionValue | None, trace: Any, mark: int = 0) -> None:
        self.module = module
        self.parent = parent
        self.function = function
        self.trace = trace
        self.vars: dict[str, Any] = {}
        self.result: Any = None
        self.mark = mark
        """Length of the trail when the call began."""
        self.pending: list[Any] | None = None
        """Ways that have left a loop or the function where a condition was not known (Outcome); see control.py."""
        self.cls: ClassValue | None = None
        self.scope: Scope | None = None
        self.exception: Any = None
        """The exception that a handler of this call is dealing with."""
        self.blamed = False
        """A check of this call has failed already: what breaks after it is its consequence."""

    def scope_for_children(self) -> Scope | None:
        """The compile-time scope that functions defined in this frame are nested in."""
        if self.scope is not None:
            return self.scope
        if self.function is not None and self.function.code is not None:
            return self.function.code.scope
        return self.parent.scope_for_children() if self.parent is not None else None


class Scope:
    """Which names a function binds, found before it is compiled."""

    __slots__ = ("globals", "is_class", "is_comprehension", "locals", "nonlocals", "parent")

    def __init__(self, parent: Scope | None, is_class: bool = False, is_comprehension: bool = False) -> None:
        self.parent = parent
        self.is_class = is_class
        self.is_comprehension = is_comprehension
        self.locals: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()


class Code:
    """A function body ready to run."""

    __slots__ = (
        "body",
        "generate",
        "is_generator",
        "kwarg",
        "kwonly",
        "node",
        "positional",
        "posonly_count",
        "scope",
        "simple",
        "special",
        "vararg",
    )

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        arguments = node.args
        self.node = node
        self.positional = [a.arg for a in [*arguments.posonlyargs, *arguments.args]]
        self.posonly_count = len(arguments.posonlyargs)
        self.kwonly = [a.arg for a in arguments.kwonlyargs]
        self.vararg = arguments.vararg.arg if arguments.vararg else None
        self.kwarg = arguments.kwarg.arg if arguments.kwarg else None
        self.simple = not self.kwonly and self.vararg is None and self.kwarg is None
        """Nothing but parameters that are given by place or by name."""
        self.body: Exec | None = None
        self.generate: Callable[[Frame], Any] | None = None
        """The body of a generator function."""
        self.is_generator = False
        self.scope: Scope | None = None
        self.special: Callable[..., Any] | None = None
        """What stands in for this function, where its source asks for what a linter does not have (the network)."""


class _Binder(ast.NodeVisitor):
    """Collects the names bound directly in one scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.has_yield = False

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self.scope.locals.add(node.id)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.scope.locals.add(node.name)
        for part in [*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d)]:
            self.visit(part)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.locals.add(node.name)
        for part in [*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)]:
            self.visit(part)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        # Targets of a comprehension are its own; a walrus inside binds here.
        for inner in ast.walk(node):
            if isinstance(inner, ast.NamedExpr):
                self.scope.locals.add(inner.target.id)

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.scope.locals.add(alias.asname or alias.name.partition(".")[0])

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self.scope.locals.add(alias.asname or alias.name)

    def visit_Global(self, node: ast.Global) -> None:
        self.scope.globals.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.scope.nonlocals.update(node.names)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.scope.locals.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self.scope.locals.add(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self.scope.locals.add(node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.scope.locals.add(node.rest)
        self.generic_visit(node)

    def visit_Yield(self, node: ast.Yield) -> None:
        self.has_yield = True
        self.generic_visit(node)

    def visit_YieldFrom(self, node: ast.YieldFrom) -> None:
        self.has_yield = True
        self.generic_visit(node)


def scope_of(arguments: ast.arguments | None, body: list[ast.stmt], parent: Scope | None) -> tuple[Scope, bool]:
    """The scope of a function body, and whether it is a generator."""
    scope = Scope(parent)
    if arguments is not None:
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            scope.locals.add(argument.arg)
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                scope.locals.add(extra.arg)
    binder = _Binder(scope)
    for statement in body:
        binder.visit(statement)
    scope.locals -= scope.globals
    scope.locals -= scope.nonlocals
    return scope, binder.has_yield
