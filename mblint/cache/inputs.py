"""What the result of a file depends on: the files of the project that it reaches, and their state."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

from mblint.evaluate.modules import MAX_SOURCE_BYTES, Module, SourceError, parse_source
from mblint.launch.session import Session, module_name
from mblint.review.reach import imported_names

ABSENT_STATE: Final = ""
UNREADABLE_STATE: Final = "?"
"""Equal to nothing, itself included: what could not be read is read again."""


class States:
    """The state of paths, looked at once in a run: a digest of a file's bytes or of a folder's names, "" for nothing."""

    def __init__(self) -> None:
        self._held: dict[str, str] = {}

    def of(self, path: str) -> str:
        state = self._held.get(path)
        if state is None:
            state = self._held[path] = _state(path)
        return state

    def same(self, states: Mapping[str, str]) -> bool:
        """Whether all of these are as they were."""
        return all(state != UNREADABLE_STATE and self.of(path) == state for path, state in states.items())

    def record(self, paths: Iterable[str]) -> dict[str, str]:
        """The states of these now."""
        return {path: self.of(path) for path in sorted(set(paths))}


def _state(path: str) -> str:
    try:
        held = os.stat(path)
        if stat.S_ISDIR(held.st_mode):
            return "folder " + sha256("\0".join(sorted(os.listdir(path))).encode("utf-8", "surrogateescape")).hexdigest()
        if not stat.S_ISREG(held.st_mode) or held.st_size > MAX_SOURCE_BYTES:
            return f"{held.st_mode} {held.st_size} {held.st_mtime_ns}"  # nothing that anybody reads as a whole
        with open(path, "rb") as handle:
            return sha256(handle.read()).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT_STATE
    except (OSError, ValueError):
        return UNREADABLE_STATE


class Closure:
    """The import graph of a project, with the places where a module would be found that is not there."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.roots = [root for root in session.modules.roots if session.in_project(f"{root}/x")]
        self._trees = {m.path: m for m in session.modules.loaded.values() if isinstance(m, Module)}
        self._direct: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        self._located: dict[str, tuple[frozenset[str], frozenset[str]]] = {}

    def of(self, path: str) -> tuple[set[str], set[str]]:
        """(files that a file reaches through imports, itself included; places that would be asked before or beside them)."""
        seen = {path}
        absent: set[str] = set()
        pending = [path]
        while pending:
            files, missing = self._imports(pending.pop())
            absent |= missing
            pending += [file for file in files if file not in seen]
            seen |= files
        return seen, absent

    def _imports(self, path: str) -> tuple[frozenset[str], frozenset[str]]:
        if path not in self._direct:
            self._direct[path] = self._read(path)
        return self._direct[path]

    def _read(self, path: str) -> tuple[frozenset[str], frozenset[str]]:
        module = self._trees.get(path)
        try:
            tree = module.tree if module is not None else parse_source(path)[1]
        except SourceError:
            return frozenset(), frozenset()
        own, _ = module_name(path, self.session.exists)
        package = own if path.endswith("/__init__.py") else own.rpartition(".")[0]
        files: set[str] = set()
        missing: set[str] = set()
        for name in imported_names(tree, package):
            found, absent = self._places(name)
            files |= found
            missing |= absent
        return frozenset(files), frozenset(missing)

    def _places(self, name: str) -> tuple[frozenset[str], frozenset[str]]:
        """Where a dotted name is looked for: files that are there, and places that are empty as far as folders go."""
        if name not in self._located:
            files: set[str] = set()
            missing: set[str] = set()
            parts = name.split(".")
            for root in self.roots:
                for cut in range(1, len(parts) + 1):
                    base = "/".join([root, *parts[:cut]])
                    for candidate in (f"{base}.py", f"{base}/__init__.py"):
                        if os.path.isfile(candidate):
                            files.add(os.path.realpath(candidate))
                        else:
                            missing.add(candidate)
                    if not os.path.isdir(base):
                        break
            self._located[name] = (frozenset(files), frozenset(missing))
        return self._located[name]
