"""Which top-level statements of a module depend on the order in which they run.

Most statements of a module only bind names, and may be evaluated when somebody asks for one. A name that is bound more
than once, or whose value other statements change (`TABLE["x"] = 1`, `NAMES.append(...)`, `@register`), has several
values in the course of the module; statements that touch such names are run together, in their order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
CHANGING = frozenset(
    "append extend insert pop remove clear sort reverse update setdefault popitem add discard register "
    "__setitem__ __delitem__ difference_update intersection_update".split()
)
"""Methods that change what they are called on."""


def inner_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when a statement runs: not the bodies of functions."""
    pending: list[ast.AST] = [node]
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, FUNCTIONS):
            pending.extend(part.args.defaults)
            pending.extend(default for default in part.args.kw_defaults if default is not None)
            if not isinstance(part, ast.Lambda):
                pending.extend(part.decorator_list)
            continue
        pending.extend(ast.iter_child_nodes(part))


def bound_names(statement: ast.stmt) -> set[str]:
    """Names that a top-level statement can bind, including those inside if, try, with, for and match."""
    if isinstance(statement, DEFINITIONS):
        return {statement.name}
    if isinstance(statement, ast.Import):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.ImportFrom):
        return {alias.asname or alias.name for alias in statement.names}
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return set()
    found: set[str] = set()
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                found.add(node.id)
            continue
        if isinstance(node, (*DEFINITIONS, ast.Import, ast.ImportFrom)):
            found |= bound_names(node)
            continue
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            found |= {part.target.id for part in ast.walk(node) if isinstance(part, ast.NamedExpr)}
            continue
        if isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
        pending.extend(ast.iter_child_nodes(node))
    return found


class Order:
    """The statements of one module that must run together, and the names that they bind."""

    def __init__(self, body: list[ast.stmt], binders: dict[str, list[ast.stmt]]) -> None:
        self.started = False
        self.statements: list[ast.stmt] = []
        self.names: set[str] = set()
        self._binders = binders
        self._functions = {s.name: s for s in body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))}
        self._classes = {s.name: s for s in body if isinstance(s, ast.ClassDef)}
        self._inside: dict[str, tuple[set[str], set[str]]] = {}
        effects = [s for s in body if self._may_have_effect(s)]
        is_import = {name for name in binders if self._is_import(name)}
        several = {
            name
            for name, statements in binders.items()
            if len(statements) > 1 and not all(isinstance(s, (*DEFINITIONS, ast.Import, ast.ImportFrom)) for s in statements)
        }
        if not effects and not several:
            return
        changed = {name for statement in effects for name in self._changed(statement)}
        tangled = (changed | several) & (binders.keys() - is_import)
        if not tangled:
            return
        # What a changed value was made from may be changed with it.
        pending = list(tangled)
        while pending:
            for statement in binders[pending.pop()]:
                if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
                    sources = {node.id for node in inner_nodes(statement.value) if isinstance(node, ast.Name)}
                    more = {
                        name for name in sources & binders.keys() if name not in tangled and name not in is_import and self._is_value(name)
                    }
                    tangled |= more
                    pending.extend(more)
        for statement in body:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                continue
            plain = isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and not statement.decorator_list
            bound = bound_names(statement)
            if (
                (bound & tangled)
                or (not plain and self._mentioned(statement) & tangled)
                or (statement in effects and self._changed(statement) & tangled)
            ):
                self.statements.append(statement)
                self.names |= bound

    def _is_value(self, name: str) -> bool:
        return not any(isinstance(s, DEFINITIONS) for s in self._binders[name])

    def _is_import(self, name: str) -> bool:
        return all(isinstance(s, (ast.Import, ast.ImportFrom)) for s in self._binders[name])

    def _may_have_effect(self, statement: ast.stmt) -> bool:
        """A first look: whether a statement may change what another one made."""
        if isinstance(statement, ast.Expr):
            return not isinstance(statement.value, ast.Constant)
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return any(self._is_local(decorator) for decorator in statement.decorator_list)
        if isinstance(statement, ast.ClassDef):
            return any(self._is_local(part) for part in [*statement.decorator_list, *statement.bases])
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            return not all(isinstance(target, ast.Name) for target in targets) or isinstance(statement.value, ast.Call)
        return not isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass))

    def _is_local(self, node: ast.expr) -> bool:
        """Whether a decorator or base is a function or class of this module."""
        if isinstance(node, ast.Call):
            node = node.func
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and (node.id in self._functions or node.id in self._classes)

    def _changed(self, statement: ast.stmt) -> set[str]:
        """Names whose value a statement changes, itself or through functions of the module that it calls."""
        found: set[str] = set()
        called: set[str] = set()
        _collect_changes(inner_nodes(statement), found, called)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and isinstance(statement.value.func, ast.Attribute):
            # A method that is called for nothing but its effect.
            found |= {root for root in [_root(statement.value.func)] if root is not None}
        for node in inner_nodes(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self._functions:
                # A function may change what it is given.
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                found |= {root for argument in given if (root := _root(argument)) is not None}
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            called |= {name for decorator in statement.decorator_list if (name := _root(decorator)) is not None}
        if isinstance(statement, ast.ClassDef):
            called |= {name for base in statement.bases if (name := _root(base)) is not None}
        return found | self._changed_by(called)

    def _changed_by(self, called: set[str]) -> set[str]:
        """Globals that functions and classes of the module change when they are called."""
        found: set[str] = set()
        seen: set[str] = set()
        pending = list(called)
        while pending:
            name = pending.pop()
            node: ast.AST | None = self._functions.get(name) or self._classes.get(name)
            if node is None or name in seen:
                continue
            seen.add(name)
            if name not in self._inside:
                self._inside[name] = _inside(node)
            inside, more = self._inside[name]
            found |= inside
            pending.extend(more)
        return found

    def _mentioned(self, statement: ast.stmt) -> set[str]:
        """Names that a statement reads, itself or through functions of the module that it uses."""
        found = {node.id for node in inner_nodes(statement) if isinstance(node, ast.Name)}
        pending = [name for name in found if name in self._functions]
        seen: set[str] = set()
        while pending:
            name = pending.pop()
            if name in seen:
                continue
            seen.add(name)
            inside = {node.id for node in ast.walk(self._functions[name]) if isinstance(node, ast.Name)}
            found |= inside
            pending.extend(held for held in inside if held in self._functions)
        return found


def _inside(node: ast.AST) -> tuple[set[str], set[str]]:
    """(globals that a definition's own code may change, what it calls)."""
    changed: set[str] = set()
    called: set[str] = set()
    parts = list(ast.walk(node))
    _collect_changes(parts, changed, called)
    for part in parts:
        if isinstance(part, ast.Global):
            changed.update(part.names)
    return changed, called


def _root(node: ast.expr) -> str | None:
    """The name at the beginning of `a.b[0].c(...)`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call, ast.Starred)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _collect_changes(nodes: Iterable[ast.AST], changed: set[str], called: set[str]) -> None:
    """Roots of what is assigned to, deleted from, or told to change; names of what is called, and its arguments."""
    for node in nodes:
        if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            root = _root(node)
            if root is not None:
                changed.add(root)
        elif isinstance(node, ast.AugAssign):
            root = _root(node.target)
            if root is not None:
                changed.add(root)
        elif isinstance(node, ast.Call):
            root = _root(node.func)
            if root is not None:
                if isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
                    changed.add(root)
                if isinstance(node.func, ast.Name):
                    called.add(root)
                    if root in ("setattr", "delattr") and node.args:
                        changed.update(name for name in [_root(node.args[0])] if name is not None)
