"""Modules: where their source is, and their global names, evaluated one by one when somebody asks.

Nothing is imported. A module's top-level statements are indexed by the names that they bind; looking a name up
runs just the statements that bind it, in order, and each at most once.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, External

if TYPE_CHECKING:
    from mblint.evaluate.machine import Machine

MAX_SOURCE_BYTES = 5_000_000


class SourceError(Exception):
    """A file that cannot be read or parsed; `line` counts from 1."""

    def __init__(self, path: str, line: int, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.line = line
        self.message = message


def parse_source(path: str, data: bytes | str | None = None) -> tuple[str, ast.Module]:
    """The text and tree of a Python file; `data` replaces the file's content. Raises SourceError."""
    try:
        if data is None:
            if not os.path.isfile(path):
                raise SourceError(path, 1, "not a regular file")
            if os.path.getsize(path) > MAX_SOURCE_BYTES:
                raise SourceError(path, 1, f"larger than {MAX_SOURCE_BYTES // 1_000_000} MB, not read")
            with open(path, "rb") as handle:
                data = handle.read()
    except OSError as error:
        raise SourceError(path, 1, f"cannot be read: {error.strerror or error}") from None
    if isinstance(data, str):
        # Decoded already: a coding line in it says nothing any more.
        return data, _parsed(path, data)
    if len(data) > MAX_SOURCE_BYTES:
        raise SourceError(path, 1, f"larger than {MAX_SOURCE_BYTES // 1_000_000} MB, not read")
    if b"\0" in data:
        raise SourceError(path, data[: data.index(b"\0")].count(b"\n") + 1, "holds a NUL byte, so it is not Python source")
    tree = _parsed(path, data)
    encoding = "utf-8-sig"
    if b"coding" in data[:200]:
        import io
        import tokenize

        try:
            encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        except SyntaxError:
            encoding = "utf-8"
    return data.decode(encoding, "replace"), tree


def _parsed(path: str, data: bytes | str) -> ast.Module:
    try:
        return ast.parse(data, filename=path)
    except SyntaxError as error:
        raise SourceError(path, error.lineno or 1, f"syntax error: {error.msg}") from None
    except (ValueError, UnicodeDecodeError, LookupError) as error:
        raise SourceError(path, 1, f"cannot be decoded: {error}") from None
    except (RecursionError, MemoryError):
        raise SourceError(path, 1, "nested too deeply to be parsed") from None


def _bound_names(statement: ast.stmt, into: set[str]) -> None:
    """Names that a top-level statement can bind, including those inside if/try/with/for."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        into.add(statement.name)
    elif isinstance(statement, ast.Import):
        for alias in statement.names:
            into.add(alias.asname or alias.name.partition(".")[0])
    elif isinstance(statement, ast.ImportFrom):
        for alias in statement.names:
            into.add(alias.asname or alias.name)
    elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete)):
        targets = statement.targets if isinstance(statement, (ast.Assign, ast.Delete)) else [statement.target]
        for target in targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name):
                    into.add(node.id)
    elif isinstance(statement, (ast.If, ast.While, ast.For, ast.AsyncFor)):
        if not isinstance(statement, (ast.If, ast.While)):
            for node in ast.walk(statement.target):
                if isinstance(node, ast.Name):
                    into.add(node.id)
        for part in [*statement.body, *statement.orelse]:
            _bound_names(part, into)
    elif isinstance(statement, ast.Try):
        for part in [*statement.body, *(s for h in statement.handlers for s in h.body), *statement.orelse, *statement.finalbody]:
            _bound_names(part, into)
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        for part in statement.body:
            _bound_names(part, into)


def _has_effect(statement: ast.stmt, local_functions: set[str]) -> bool:
    """Whether a top-level statement may change a container that another statement made."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call)
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        for decorator in statement.decorator_list:
            callee = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(callee, ast.Name) and callee.id in local_functions:
                return True
        return False
    if isinstance(statement, ast.AugAssign):
        return True
    if isinstance(statement, ast.Assign):
        return any(isinstance(target, (ast.Subscript, ast.Attribute)) for target in statement.targets)
    return isinstance(statement, (ast.For, ast.While, ast.With))


class Module:
    """One module of evaluated source."""

    __slots__ = (
        "_columns", "binders", "done", "effects", "is_package", "name", "path", "ready", "relative_path", "running", "stars", "table",
        "text", "tree", "vars",
    )  # fmt: skip

    def __init__(self, table: ModuleTable, name: str, path: str, is_package: bool, data: bytes | str | None = None) -> None:
        self.table = table
        self.name = name
        self.path = path
        self.is_package = is_package
        self.relative_path = name.replace(".", "/") + ("/__init__.py" if is_package else ".py")
        self.text, self.tree = parse_source(path, data)
        self._columns: list[str] | None = None
        self.vars: dict[str, Any] = {"__name__": name, "__file__": path}
        self.done: set[int] = set()
        self.running: set[int] = set()
        self.ready = False
        self.binders: dict[str, list[ast.stmt]] = {}
        self.stars: list[ast.ImportFrom] = []
        self.effects: list[ast.stmt] = []
        functions = {s.name for s in self.tree.body if isinstance(s, ast.FunctionDef)}
        for statement in self.tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
                self.stars.append(statement)
                continue
            names: set[str] = set()
            _bound_names(statement, names)
            for bound in names:
                self.binders.setdefault(bound, []).append(statement)
            if _has_effect(statement, functions):
                self.effects.append(statement)

    def character_column(self, line: int, byte_column: int) -> int:
        """The ast counts columns in UTF-8 bytes; people count characters."""
        if self._columns is None:
            self._columns = self.text.splitlines()
        if not 0 < line <= len(self._columns):
            return byte_column
        content = self._columns[line - 1]
        if content.isascii():
            return byte_column
        return len(content.encode("utf-8")[:byte_column].decode("utf-8", "ignore"))

    def lookup(self, name: str) -> Any:
        """The value of a global name, or MISSING."""
        found = self.vars.get(name, MISSING)
        if found is not MISSING and name not in self.binders:
            return found
        statements = self.binders.get(name)
        if statements is None:
            return self._elsewhere(name)
        for statement in statements:
            if id(statement) not in self.done:
                self.run(statement)
        found = self.vars.get(name, MISSING)
        if not self.ready and self.effects and isinstance(found, (dict, list, set)):
            self.ready = True
            for statement in self.effects:
                if id(statement) not in self.done:
                    self.run(statement)
            found = self.vars.get(name, MISSING)
        if found is MISSING and self.stars:
            return self._elsewhere(name)
        return found

    def run(self, statement: ast.stmt) -> None:
        """Execute one top-level statement, once."""
        key = id(statement)
        if key in self.running:
            return
        self.running.add(key)
        try:
            self.table.execute(self, statement)
            self.done.add(key)
        finally:
            self.running.discard(key)

    def _elsewhere(self, name: str) -> Any:
        """Names from `import *`, submodules of a package, module attributes."""
        for star in reversed(self.stars):
            source = self.table.resolve_relative(self, star)
            other = self.table.find(source)
            if isinstance(other, Module):
                if name.startswith("_") and "__all__" not in other.binders:
                    continue
                value = other.lookup(name)
                if value is not MISSING:
                    return value
            elif other is None or isinstance(other, External):
                continue
            elif getattr(other, "is_data", False) and not name.startswith("_"):
                value = other.lookup(name)
                if value is not MISSING:
                    return value
        if self.is_package:
            submodule = self.table.find(f"{self.name}.{name}")
            if submodule is not None:
                return submodule
        return MISSING

    def star_is_open(self) -> bool:
        """True when a star import comes from a library that is not evaluated: any name may exist."""
        return any(self.table.find(self.table.resolve_relative(self, star)) is None for star in self.stars)

    def __repr__(self) -> str:
        return f"Module({self.name})"


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
