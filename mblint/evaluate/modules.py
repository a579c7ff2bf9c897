"""Modules: where their source is, and their global names, evaluated one by one when somebody asks.

Nothing is imported. A module's top-level statements are indexed by the names that they bind; looking a name up
runs just the statements that bind it, in order, and each at most once. Where the order of statements matters, because
they change what others made, they are run together as they stand (see ordering.py).
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

from mblint.evaluate.ordering import Order, bound_names
from mblint.evaluate.source import MAX_SOURCE_BYTES, SourceError, parse_source, split_lines
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, External

if TYPE_CHECKING:
    from mblint.evaluate.machine import Machine


T = TypeVar("T")


class Module:
    """One module of evaluated source."""

    __slots__ = (
        "_columns", "_derived", "_order", "binders", "codes", "done", "is_package", "name", "path", "positions", "relative_path", "running",
        "stars", "table", "text", "tree", "vars",
    )  # fmt: skip

    def __init__(self, table: ModuleTable, name: str, path: str, is_package: bool, data: bytes | str | None = None) -> None:
        self.table = table
        self.name = name
        self.path = path
        self.is_package = is_package
        self.relative_path = name.replace(".", "/") + ("/__init__.py" if is_package else ".py")
        self.text, self.tree = parse_source(path, data)
        self._columns: list[str] | None = None
        self._order: Order | None = None
        self._derived: dict[Any, Any] = {}
        self.codes: dict[Any, Any] = {}
        """What was compiled of it, by node: it goes when the module goes."""
        self.vars: dict[str, Any] = {"__name__": name, "__file__": path}
        self.done: set[int] = set()
        self.running: set[int] = set()
        self.binders: dict[str, list[ast.stmt]] = {}
        self.positions: dict[int, int] = {}
        self.stars: list[ast.ImportFrom] = []
        for position, statement in enumerate(self.tree.body):
            self.positions[id(statement)] = position
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
                self.stars.append(statement)
                continue
            for bound in bound_names(statement):
                self.binders.setdefault(bound, []).append(statement)

    def character_column(self, line: int, byte_column: int) -> int:
        """The ast counts columns in UTF-8 bytes; people count characters."""
        if self._columns is None:
            self._columns = split_lines(self.text)
        if not 0 < line <= len(self._columns):
            return byte_column
        content = self._columns[line - 1]
        if content.isascii():
            return byte_column
        return len(content.encode("utf-8")[:byte_column].decode("utf-8", "ignore"))

    def derive(self, what: Hashable, compute: Callable[[], T]) -> T:
        """What the text alone decides, computed once for as long as the module lives."""
        if what not in self._derived:
            self._derived[what] = compute()
        return self._derived[what]  # type: ignore[no-any-return]

    def lookup(self, name: str) -> Any:
        """The value of a global name, or MISSING."""
        statements = self.binders.get(name)
        if statements is None:
            found = self.vars.get(name, MISSING)
            return found if found is not MISSING else self._elsewhere(name)
        last = statements[-1]
        if id(last) not in self.done:
            order = self._order
            if order is None:
                order = self._order = Order(self.tree.body, self.binders)
            if name in order.names:
                self._run_in_order(order, name)
            else:
                for statement in statements:
                    self.run(statement)
        found = self.vars.get(name, MISSING)
        if self.stars and (found is MISSING or self.positions[id(self.stars[-1])] > self.positions[id(last)]):
            later = self._elsewhere(name, (found is not MISSING and self.positions[id(last)]) or -1)
            return later if later is not MISSING else found
        return found

    def _run_in_order(self, order: Order, name: str) -> None:
        """Run the statements that depend on each other's order; inside that, what comes later is run when it is asked for
        and has no value yet."""
        if order.started:
            if name not in self.vars:
                for statement in self.binders[name]:
                    self.run(statement)
                    if name in self.vars:
                        break
            return
        order.started = True
        for statement in order.statements:
            self.run(statement)

    def run(self, statement: ast.stmt) -> None:
        """Execute one top-level statement, once."""
        key = id(statement)
        if key in self.running or key in self.done:
            return
        self.running.add(key)
        try:
            self.table.execute(self, statement)
            self.done.add(key)
        finally:
            self.running.discard(key)

    def _elsewhere(self, name: str, after: int = -1) -> Any:
        """Names from `import *` that stands after a position, submodules of a package."""
        for star in reversed(self.stars):
            if self.positions[id(star)] < after:
                break
            other = self.table.find(self.table.resolve_relative(self, star))
            if isinstance(other, Module):
                if not other.exports(name):
                    continue
            elif not getattr(other, "is_data", False) or name.startswith("_"):
                continue
            value = other.lookup(name)
            if value is not MISSING:
                return value
        if self.is_package and after < 0:
            submodule = self.table.find(f"{self.name}.{name}")
            if submodule is not None:
                return submodule
        return MISSING

    def exports(self, name: str) -> bool:
        """Whether `import *` brings a name: what __all__ lists, else what does not begin with an underscore."""
        if "__all__" not in self.binders:
            return not name.startswith("_")
        listed = self.lookup("__all__")
        if isinstance(listed, (list, tuple)) and all(isinstance(held, str) for held in listed):
            return name in listed
        return True

    def star_is_open(self) -> bool:
        """True when a star import comes from a library that is not evaluated: any name may exist."""
        return any(self.table.find(self.table.resolve_relative(self, star)) is None for star in self.stars)

    def __repr__(self) -> str:
        return f"Module({self.name})"


class DataModule:
    """A module of which there are facts and no text: it answers for places as one that has none."""

    text = ""
    tree = ast.Module([], [])
    stars: tuple[Any, ...] = ()

    def derive(self, what: Hashable, compute: Callable[[], T]) -> T:
        """As Module.derive; without text there is little to compute."""
        return compute()

    def star_is_open(self) -> bool:
        return False

    def character_column(self, line: int, byte_column: int) -> int:
        return byte_column


class ModuleTable:
    """Finds modules by name below a list of root folders; later a snapshot may serve names that no folder has."""

    def __init__(self, roots: list[str], overlay: dict[str, bytes | str | None] | None = None, snapshot: Any = None) -> None:
        self.roots = roots
        self.overlay = overlay or {}
        """Absolute path -> content that replaces the file's (unsaved buffers, edits under proof, another revision); None for a
        file that is taken not to exist."""
        self.overlay_folders: set[str] = set()
        """Folders that hold files of the overlay; they need not exist."""
        self.snapshot = snapshot
        if snapshot is not None:
            snapshot.table = self
        self.loaded: dict[str, Any] = {}
        self.errors: list[SourceError] = []
        self.machine: Machine | None = None
        self.stand_ins: dict[str, Callable[[str], Any]] = {}
        """Top-level package -> what makes its modules, for libraries of which more is known than names."""
        self.execute: Any = None
        self._listing: dict[str, frozenset[str]] = {}

    def _has(self, path: str) -> bool:
        if path in self.overlay:
            return self.overlay[path] is not None
        folder, _, name = path.rpartition("/")
        names = self._listing.get(folder)
        if names is None:
            try:
                names = frozenset(os.listdir(folder))
            except OSError:
                names = frozenset()
            self._listing[folder] = names
        return name in names

    def forget_missing(self) -> None:
        """A root was added: names that were not found may be there now."""
        for name in [name for name, found in self.loaded.items() if found is None]:
            del self.loaded[name]

    def drop(self, wanted: Callable[[str], bool]) -> None:
        """Forget the modules whose path is `wanted`, and every name that was not found: their source has changed."""
        for name, found in list(self.loaded.items()):
            if found is None or (isinstance(found, Module) and wanted(found.path)):
                del self.loaded[name]
        self._listing.clear()

    def submodules(self, name: str) -> list[str]:
        """Dotted names of the packages right below a package, sorted."""
        found: set[str] = set()
        for root in self.roots:
            base = f"{root}/{name.replace('.', '/')}"
            if os.path.isdir(base):
                for entry in os.listdir(base):
                    if os.path.isfile(f"{base}/{entry}/__init__.py"):
                        found.add(f"{name}.{entry}")
        if self.snapshot is not None:
            found.update(self.snapshot.submodules(name))
        return sorted(found)

    def find(self, name: str) -> Any:
        """The module of that dotted name: a Module, a snapshot's stand-in, or None when no source is known."""
        if name in self.loaded:
            return self.loaded[name]
        stand_in = self.stand_ins.get(name.partition(".")[0])
        if stand_in is not None:
            self.loaded[name] = stand_in(name)
            return self.loaded[name]
        self.loaded[name] = None
        found: Any = None
        relative = name.replace(".", "/")
        for root in self.roots:
            base = f"{root}/{relative}"
            for path, is_package in ((f"{base}/__init__.py", True), (f"{base}.py", False)):
                if self._has(path):
                    found = self._load(name, path, is_package)
                    break
            if found is None and not base.endswith("/__pycache__"):
                if base in self.overlay_folders or (self._has(base) and os.path.isdir(base)):
                    found = Namespace(self, name)
            if found is not None:
                break
        if found is None and self.snapshot is not None:
            found = self.snapshot.module(name)
        self.loaded[name] = found
        return found

    def _load(self, name: str, path: str, is_package: bool) -> Any:
        try:
            return Module(self, name, path, is_package, self.overlay.get(path))
        except SourceError as error:
            self.errors.append(error)
            return None

    def load_file(self, name: str, path: str, data: bytes | str | None = None) -> Module:
        """The module of a file under check. Raises SourceError."""
        held = self.loaded.get(name)
        if isinstance(held, Module) and held.path == path:
            return held
        module = Module(self, name, path, path.endswith("/__init__.py"), data if data is not None else self.overlay.get(path))
        self.loaded[name] = module
        return module

    def resolve_relative(self, module: Module, statement: ast.ImportFrom) -> str:
        """The absolute dotted name that `from ... import` means inside `module`."""
        if not statement.level:
            return statement.module or ""
        parts = module.name.split(".")
        if not module.is_package:
            parts = parts[:-1]
        if statement.level > 1:
            parts = parts[: len(parts) - (statement.level - 1)]
        return ".".join([*parts, *((statement.module or "").split(".") if statement.module else [])])

    def import_name(self, dotted: str) -> Any:
        """What `import dotted` finds: a module, or an External for libraries."""
        found = self.find(dotted)
        return found if found is not None else External(dotted)

    def import_from(self, source: str, name: str) -> Any:
        """What `from source import name` finds; Unknown when the source is there but the name is not."""
        module = self.find(source)
        if module is None:
            if self.machine is None:
                return External(f"{source}.{name}")
            from mblint.evaluate.library import library_attribute

            return library_attribute(self.machine, External(source), name)
        value = module.lookup(name)
        if value is MISSING:
            submodule = self.find(f"{source}.{name}")
            if submodule is not None:
                return submodule
            if isinstance(module, Module) and (module.star_is_open() or "__getattr__" in module.binders):
                return External(f"{source}.{name}")
            return MISSING
        return value


class Namespace:
    """A folder without __init__.py."""

    __slots__ = ("name", "path", "table")

    def __init__(self, table: ModuleTable, name: str) -> None:
        self.table = table
        self.name = name
        self.path = ""

    def lookup(self, name: str) -> Any:
        found = self.table.find(f"{self.name}.{name}")
        return found if found is not None else MISSING


def unresolved(name: str) -> Unknown:
    return Unknown(f"{name} was not found")


__all__ = ["MAX_SOURCE_BYTES", "Module", "ModuleTable", "Namespace", "SourceError", "parse_source", "unresolved"]
