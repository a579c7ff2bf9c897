"""What is remembered of one checked file: the recipes that it defines, and the result of each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mblint.cache.codec import NotPlain, decode, encode
from mblint.cache.identity import digest, tool_stamp, upstream_stamp
from mblint.cache.states import States
from mblint.cache.store import Store
from mblint.evaluate.modules import Module
from mblint.launch.import_graph import ImportGraph
from mblint.launch.session import Session
from mblint.workers import FEW, spread

T = TypeVar("T")
R = TypeVar("R")

VERSION = 1


@dataclass(frozen=True, slots=True)
class Remembered:
    """`recipes` are the names that the file defines, `results` what was found by name (None: it was no recipe)."""

    recipes: tuple[str, ...]
    results: Mapping[str, Any]
    paths: frozenset[str] = frozenset()
    """What an earlier run found that they depend on."""


class Results:
    """The memory of one run. `parts` names everything that results depend on beside the tool, the release and the files."""

    def __init__(self, session: Session, parts: Iterable[Any], store: Store | None = None) -> None:
        self.session = session
        self.store = store or Store()
        self.states = States()
        self.consulted: set[str] = set()
        """Paths that any evaluation of this run looked at beside modules: data files, architectures of models."""
        self.loaded: set[str] = set()
        """Files of the project that any evaluation of this run loaded as modules."""
        facts = session.facts
        self.key = digest(
            (
                VERSION, tool_stamp(), upstream_stamp(session.upstream), sorted(session.versions.items()), sorted(facts.missing_packages),
                session.project, session.modules.roots, session.models_folder, *parts,
            )
        )  # fmt: skip

    def _name(self, path: str) -> str:
        return digest((self.key, path))

    def find(self, path: Path) -> Remembered | None:
        """What is known of a file, if nothing that it depends on has changed."""
        data = self.store.get(self._name(os.path.realpath(path)))
        held = decode(data) if data is not None else None
        if not isinstance(held, tuple) or len(held) != 3:
            return None
        states, recipes, results = held
        if not isinstance(states, dict) or not self.states.same(states):
            return None
        return Remembered(recipes, results, frozenset(states))

    def named(self, names: Iterable[str]) -> dict[str, Any]:
        """What is known of recipes by `module:function`, where the module's file is found at once."""
        held: dict[str, Any] = {}
        files: dict[str, Remembered | None] = {}
        for name in names:
            path = self._file_of(name)
            if path is not None:
                if path not in files:
                    files[path] = self.find(Path(path))
                remembered = files[path]
                if remembered is not None and name in remembered.results:
                    held[name] = remembered.results[name]
        return held

    def keep_named(self, fresh: Mapping[str, Any]) -> None:
        """Remember results by `module:function`, beside those of the same files that still hold."""
        by_file: dict[str, dict[str, Any]] = {}
        for name, result in fresh.items():
            path = self._file_of(name)
            if path is not None:
                by_file.setdefault(path, {})[name] = result
        kept = []
        for path, results in by_file.items():
            before = self.find(Path(path))
            together = {**before.results, **results} if before is not None else results
            kept.append((path, Remembered(tuple(together), together, before.paths if before is not None else frozenset())))
        self.keep(kept)

    def _file_of(self, name: str) -> str | None:
        """The file of the module in `module:function`, if one of the roots has it."""
        relative = name.partition(":")[0].replace(".", "/")
        for root in self.session.modules.roots:
            for candidate in (f"{root}/{relative}/__init__.py", f"{root}/{relative}.py"):
                if os.path.isfile(candidate):
                    return os.path.realpath(candidate)
        return None

    def keep(self, found: Sequence[tuple[str, Remembered]]) -> None:
        """Remember the results of files (real paths), with all that the run's evaluations looked at."""
        graph = ImportGraph(self.session)
        reached = {path: graph.closure(path) for path, _ in found}
        # What no import statement names was found by evaluating: any of the files may have done that.
        hidden = self.loaded - {file for files, _ in reached.values() for file in files}
        for path, remembered in found:
            files, absent = reached[path]
            states = self.states.record(files | absent | hidden | self.consulted | remembered.paths)
            try:
                self.store.put(self._name(path), encode((states, remembered.recipes, dict(remembered.results))))
            except NotPlain:
                continue
        self.store.sweep()

    # --- what hangs on several files ---

    def find_about(self, about: object) -> Any:
        """What was kept about something, if nothing that it depends on has changed; None else."""
        data = self.store.get(digest((self.key, "about", about)))
        held = decode(data) if data is not None else None
        if not isinstance(held, tuple) or len(held) != 2 or not isinstance(held[0], dict) or not self.states.same(held[0]):
            return None
        return held[1]

    def keep_about(self, about: object, paths: Iterable[str], value: object) -> None:
        """Remember a value that depends on files and folders (real paths; of a folder its names count)."""
        found = {*paths, *self.session.consulted}
        with suppress(NotPlain):
            self.store.put(digest((self.key, "about", about)), encode((self.states.record(found), value)))

    # --- what is judged now --------------------------------------------------------------------------------------

    def spread(self, items: Sequence[T], work: Callable[[T], R], jobs: int | None, few: int = FEW) -> list[tuple[R, bool]]:
        """work() of each item, as workers.spread does, and whether the result lasts: what a budget of time ended does not.

        What the processes looked at is noted, for `keep`.
        """
        machine = self.session.machine

        def part(items: Sequence[T]) -> list[tuple[Any, bool | None]]:
            done: list[tuple[Any, bool | None]] = []
            for item in items:
                late = machine.late
                result = work(item)
                done.append((result, machine.late == late))
            return [*done, (self._seen(), None)]

        results = []
        for result, lasts in spread(items, part, jobs, few):
            if lasts is None:
                self.consulted |= result[0]
                self.loaded |= result[1]
            else:
                results.append((result, lasts))
        return results

    def _seen(self) -> tuple[set[str], set[str]]:
        """(paths that this process consulted, project modules that it loaded)."""
        session = self.session
        loaded = {m.path for m in session.modules.loaded.values() if isinstance(m, Module) and session.in_project(m.path)}
        return set(session.consulted), loaded
