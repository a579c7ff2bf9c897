"""Which modules of a project import which, among those that a session has loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from mblint.evaluate.modules import Module, ModuleTable
from mblint.evaluate.source import split_lines


def imported_names(module: Module) -> frozenset[str]:
    """Dotted names that a module imports anywhere; those that may be submodules or values are among them."""
    return module.derive("imported names", lambda: _imported_names(module))


def importers(table: ModuleTable, modules: Iterable[Module], paths: Iterable[str]) -> set[str]:
    """The paths, and those of all of these modules that import one of them, directly or through others."""
    users: dict[str, set[str]] = {}
    for module in modules:
        for name in imported_names(module):
            held = table.loaded.get(name)
            if isinstance(held, Module):
                users.setdefault(held.path, set()).add(module.path)
    return closure(users, paths)


def closure(edges: Mapping[str, Iterable[str]], starts: Iterable[str]) -> set[str]:
    """The starts, and all that the edges lead to from them."""
    reached = set(starts)
    pending = list(reached)
    while pending:
        for end in edges.get(pending.pop(), ()):
            if end not in reached:
                reached.add(end)
                pending.append(end)
    return reached


def imported_files(modules: Iterable[Module], path: str) -> set[str]:
    """The files of these modules that one of them imports, directly or through others; itself only where they come back to it."""
    by_path = {module.path: module for module in modules}
    found: set[str] = set()
    pending = [path]
    while pending:
        module = by_path.get(pending.pop())
        for name in imported_names(module) if module is not None else ():
            held = module.table.loaded.get(name) if module is not None else None
            if isinstance(held, Module) and held.path in by_path and held.path not in found:
                found.add(held.path)
                pending.append(held.path)
    return found


def _imported_names(module: Module) -> frozenset[str]:
    found: set[str] = set()
    for node in _import_nodes(module):
        if isinstance(node, ast.ImportFrom):
            source = module.table.resolve_relative(module, node)
            found.add(source)
            found.update(f"{source}.{alias.name}" for alias in node.names)
        else:
            for alias in node.names:
                parts = alias.name.split(".")
                found.update(".".join(parts[: count + 1]) for count in range(len(parts)))
    return frozenset(found)


def _import_nodes(module: Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Import statements anywhere in a module; functions that hold none are not looked through."""
    lines = split_lines(module.text)
    for statement in module.tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield statement
        elif any("import" in line for line in lines[statement.lineno - 1 : statement.end_lineno]):
            for node in ast.walk(statement):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    yield node
