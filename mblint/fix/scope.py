"""What a run judges, and which of it a change of one file reaches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mblint.evaluate.modules import Module
from mblint.fix.check import is_python
from mblint.launch.importers import importers
from mblint.launch.run import Launch
from mblint.launch.session import Session

TextOf = Callable[[str], str | None]


@dataclass(frozen=True)
class Scope:
    """Launches by the file that they stand in: recipes by name, scripts and YAML files with what they describe, and rows of
    the settings. All paths are real and absolute."""

    recipes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rows: Sequence[Launch] = ()
    described: Mapping[str, Sequence[Launch]] = field(default_factory=dict)

    @property
    def files(self) -> set[str]:
        return {*self.recipes, *self.described}

    @property
    def size(self) -> int:
        """How many launches these are."""
        return sum(map(len, self.recipes.values())) + len(self.rows) + sum(map(len, self.described.values()))


def reached(scope: Scope, session: Session, path: str, users: Mapping[str, set[str]], text_of: TextOf) -> Scope:
    """The launches that a change of `path` could change. `users` says which files import which."""
    files = set(users.get(path, {path})) if is_python(path) else _mentioning(scope, path, text_of)
    modules = {module.name for module in session.modules.loaded.values() if isinstance(module, Module) and module.path in files}

    def touches(launch: Launch) -> bool:
        return (launch.recipe or "").partition(":")[0] in modules or any(os.path.realpath(name) in files for name in launch.files)

    return Scope(
        {file: names for file, names in sorted(scope.recipes.items()) if file in files},
        [row for row in scope.rows if touches(row)],
        {
            file: launches
            for file, launches in sorted(scope.described.items())
            if file in files or any(touches(launch) for launch in launches)
        },
    )


def _mentioning(scope: Scope, path: str, text_of: TextOf) -> set[str]:
    """The file, and those that name it or one that names it: parents of YAML files, sourced scripts, configs of commands."""
    texts = {file: text_of(file) or "" for file in scope.files if file != path}
    found, pending = {path}, [path]
    while pending:
        name = os.path.basename(pending.pop())
        names = {name, os.path.splitext(name)[0]} if name.endswith((".yaml", ".yml")) else {name}
        for file, text in texts.items():
            if file not in found and any(name in text for name in names):
                found.add(file)
                pending.append(file)
    return found


def dependents(session: Session, paths: Iterable[str]) -> dict[str, set[str]]:
    """File -> the files of the project that import it, directly or through others, itself included."""
    modules = session.own_modules()
    return {path: importers(session.modules, modules, [path]) for path in paths}
