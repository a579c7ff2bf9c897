"""The import graph of a project, read as far as it is asked for. Files are absolute real paths."""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass

from mblint.evaluate.modules import Module, SourceError, parse_source
from mblint.launch.session import Session, module_name


@dataclass(frozen=True, slots=True)
class Imports:
    """What one file names. `names` are dotted and may be of submodules, `files` those of the project that they stand for,
    `absent` the places where such a file would be found and is not, as far as there are folders."""

    text: str = ""
    names: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()


class ImportGraph:
    """Imports by file, in the sources that the session has now."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.roots = [root for root in session.modules.roots if session.in_project(f"{root}/x")]
        self._loaded = {m.path: m for m in session.modules.loaded.values() if isinstance(m, Module)}
        self._imports: dict[str, Imports] = {}
        self._places: dict[str, tuple[frozenset[str], frozenset[str]]] = {}

    def of(self, path: str) -> Imports:
        """What a file imports itself; nothing where it cannot be read."""
        if path not in self._imports:
            self._imports[path] = self._read(path)
        return self._imports[path]

    def closure(self, path: str) -> tuple[set[str], set[str]]:
        """(files that a file reaches, itself included; places where one of them would be found first, and is not)."""
        seen = {path}
        absent: set[str] = set()
        pending = [path]
        while pending:
            imports = self.of(pending.pop())
            absent |= imports.absent
            pending += imports.files - seen
            seen |= imports.files
        return seen, absent

    def _read(self, path: str) -> Imports:
        session = self.session
        module = self._loaded.get(path)
        try:
            text, tree = (module.text, module.tree) if module is not None else parse_source(path, session.modules.overlay.get(path))
        except SourceError:
            return Imports()
        own, _ = module_name(path, session.exists)
        package = own if path.endswith("/__init__.py") else own.rpartition(".")[0]
        names = frozenset(_imported_names(tree, package))
        places = [self._places_of(name) for name in names]
        return Imports(text, names, frozenset().union(*(files for files, _ in places)), frozenset().union(*(gaps for _, gaps in places)))

    def _places_of(self, name: str) -> tuple[frozenset[str], frozenset[str]]:
        """Files that a dotted name may stand for, the packages above it included, and the places that are empty."""
        if name not in self._places:
            files: set[str] = set()
            absent: set[str] = set()
            parts = name.split(".")
            for root in self.roots:
                for cut in range(1, len(parts) + 1):
                    base = "/".join([root, *parts[:cut]])
                    for candidate in (f"{base}.py", f"{base}/__init__.py"):
                        if self.session.exists(candidate):
                            files.add(os.path.realpath(candidate))
                        else:
                            absent.add(candidate)
                    if not os.path.isdir(base) and base not in self.session.modules.overlay_folders:
                        break
            self._places[name] = (frozenset(files), frozenset(absent))
        return self._places[name]


def _imported_names(tree: ast.Module, package: str) -> set[str]:
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
