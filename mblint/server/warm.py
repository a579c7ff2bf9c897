"""Keeps an evaluator warm over changes: forgets the modules whose text is another now, and those that import them, and no more."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping

from mblint.evaluate.modules import Module
from mblint.launch.importers import imported_names, importers
from mblint.launch.session import Session

Stamp = tuple[int, int]
"""Size and time of change of a file; (-1, 0) where there is none."""


class Warm:
    """The sources that a session has evaluated, and how they looked then."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._stamps: dict[str, Stamp] = {}
        self._counted: dict[int, tuple[Module, int]] = {}
        self._numbers = itertools.count(1)
        self.epoch = 0
        """Counts changes of what is there at all: files that came or went."""

    def refresh(self, buffers: Mapping[str, str]) -> frozenset[str]:
        """Evaluate with these texts in place of files from now on, and with what is on disk elsewhere.

        Returns the paths of the project's modules that were forgotten.
        """
        table = self.session.modules
        # A server evaluates a file again and again: what that took so far says nothing about the file.
        self.session.machine.spent.clear()
        before = table.overlay
        changed = {module.path for module in self.session.own_modules() if self._differs(module.path, module, buffers)}
        came_or_went = set(before) ^ set(buffers)
        others = {path for path in set(before) & set(buffers) if before[path] != buffers[path]}
        table.overlay = dict(buffers)
        if came_or_went or changed or others:
            folders: set[str] = set()
            for path in buffers:
                folder = os.path.dirname(path)
                while folder not in folders:
                    folders.add(folder)
                    folder = os.path.dirname(folder)
            table.overlay_folders = folders
        if came_or_went:
            changed |= self._lacking()
            self.forget_missing()
        if not changed:
            return frozenset()
        dropped = self.dependents(changed)
        self._forget(dropped)
        return frozenset(dropped)

    def forget_missing(self) -> None:
        """Files came or went: names that were not found may be there now, and who asked for them is to be read again."""
        lacking = self._lacking()
        if lacking:
            self._forget(self.dependents(lacking))
        self.epoch += 1
        self.session.modules.drop(lambda path: False)

    def _lacking(self) -> set[str]:
        """Modules of the project that import a name which was not found among its folders."""
        loaded = self.session.modules.loaded
        missing = {name for name, held in loaded.items() if held is None}
        return {module.path for module in self.session.own_modules() if imported_names(module) & missing} if missing else set()

    def remember(self) -> None:
        """Note how the files of the modules looked that were read since."""
        overlay = self.session.modules.overlay
        for path in (module.path for module in self.session.own_modules()):
            if path not in self._stamps and path not in overlay:
                self._stamps[path] = stamp(path)

    def reads(self, module: Module) -> list[tuple[str, int]]:
        """The modules of the project that a module imports, directly or through others, each as its path and a number.

        Two lists are equal as long as none of those modules was read again. Names that were not found count with their name.
        """
        loaded = self.session.modules.loaded
        found: dict[str, int] = {}
        pending = [module]
        while pending:
            for name in imported_names(pending.pop()):
                held = loaded.get(name)
                if isinstance(held, Module):
                    if held.path not in found and held is not module and self.session.in_project(held.path):
                        found[held.path] = self._number(held)
                        pending.append(held)
                elif held is None and name in loaded:
                    found[f"?{name}"] = self.epoch
        return sorted(found.items())

    def dependents(self, paths: Iterable[str]) -> set[str]:
        """The paths, and those of all modules of the project that import one of them, directly or through others."""
        return importers(self.session.modules, self.session.own_modules(), paths)

    def _differs(self, path: str, module: Module, buffers: Mapping[str, str]) -> bool:
        held = buffers.get(path)
        if held is not None:
            return held != module.text
        if path in self.session.modules.overlay:
            return True  # closed: what was saved counts again
        seen = self._stamps.get(path)
        return seen is not None and seen != stamp(path)

    def _forget(self, paths: set[str]) -> None:
        table, machine = self.session.modules, self.session.machine
        self.session.recipes.release()
        for held in list(table.loaded.values()):
            if isinstance(held, Module) and held.path in paths:
                self._counted.pop(id(held), None)
        table.drop(lambda path: path in paths)
        for path in paths:
            self._stamps.pop(path, None)
        for key in [key for key in machine.memo if getattr(key[0].module, "path", "") in paths]:
            del machine.memo[key]

    def _number(self, module: Module) -> int:
        """A number that no other module had or will have."""
        held = self._counted.get(id(module))
        if held is None or held[0] is not module:
            held = self._counted[id(module)] = (module, next(self._numbers))
        return held[1]


def stamp(path: str) -> Stamp:
    """How a file looks now."""
    try:
        state = os.stat(path)
    except OSError:
        return (-1, 0)
    return (state.st_size, state.st_mtime_ns)
