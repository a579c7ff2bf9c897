"""Which recipes a changed file can reach: through imports, however far, and through files that they name."""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterable

from mblint.evaluate.modules import Module, SourceError, parse_source
from mblint.launch.session import Session, module_name


class Reach:
    """The import graph of a project, read as far as it is asked for. Files are absolute real paths."""

    def __init__(self, session: Session, changed: Collection[str]) -> None:
        """`changed` are the files that the change touched, those that are gone included."""
        self.session = session
        self.changed = {os.path.realpath(path) for path in changed}
        self.data_names = {os.path.basename(path) for path in self.changed if not path.endswith(".py")}
        self.roots = [root for root in session.modules.roots if session.in_project(f"{root}/x")]
        self._trees = {m.path: m for m in session.modules.loaded.values() if isinstance(m, Module)}
        self._files: dict[str, tuple[str, ...]] = {}
        self._imports: dict[str, tuple[set[str], bool]] = {}
        self._hit: dict[str, bool] = {}

    def touches(self, path: str) -> bool:
        """Whether the file, one that it imports, or a data file that one of these names, was changed."""
        start = os.path.realpath(path)
        if start not in self._hit:
            self._hit[start] = self._search(start)
        return self._hit[start]

    def _search(self, start: str) -> bool:
        seen = {start}
        pending = [start]
        while pending:
            current = pending.pop()
            if current in self.changed or self._hit.get(current):
                return True
            found, names_data = self._of(current)
            if names_data:
                return True
            pending += [path for path in found if path not in seen]
            seen |= found
        return False

    def _of(self, path: str) -> tuple[set[str], bool]:
        if path not in self._imports:
            self._imports[path] = self._read(path)
        return self._imports[path]

    def _read(self, path: str) -> tuple[set[str], bool]:
        session = self.session
        module = self._trees.get(path)
        try:
            text, tree = (module.text, module.tree) if module is not None else parse_source(path, session.modules.overlay.get(path))
        except SourceError:
            return set(), False
        found: set[str] = set()
        own, _ = module_name(path, session.exists)
        package = own if path.endswith("/__init__.py") else own.rpartition(".")[0]
        for name in imported_names(tree, package):
            found.update(self._located(name, os.path.dirname(path)))
        return found, any(name in text for name in self.data_names)

    def _located(self, name: str, folder: str) -> Iterable[str]:
        """Files of the project that a dotted name may stand for, the packages above it included."""
        key = name if name else folder
        if key not in self._files:
            files: list[str] = []
            parts = name.split(".")
            for cut in range(1, len(parts) + 1):
                relative = "/".join(parts[:cut])
                for root in self.roots:
                    for candidate in (f"{root}/{relative}.py", f"{root}/{relative}/__init__.py"):
                        if candidate in self.changed or self.session.exists(candidate):
                            files.append(os.path.realpath(candidate))
            self._files[key] = tuple(files)
        return self._files[key]


def imported_names(tree: ast.Module, package: str) -> set[str]:
    """Dotted names that a module imports, and those that may be submodules of them."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                parts = package.split(".") if package else []
                parts = parts[: len(parts) - (node.level - 1)] if node.level > 1 else parts
                source = ".".join([*parts, *([source] if source else [])])
            if source:
                names.add(source)
            names.update(f"{source}.{alias.name}" if source else alias.name for alias in node.names if alias.name != "*")
    return names
