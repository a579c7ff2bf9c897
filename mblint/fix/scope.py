"""What a run judges, and which of it a change of one file reaches."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mblint.evaluate.modules import Module
from mblint.fix.check import is_python
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
    """File -> the files among `paths` that import it, directly or through others, itself included."""
    modules = {module.path: module for module in session.modules.loaded.values() if isinstance(module, Module)}
    by_name = {module.name: module.path for module in modules.values()}
    wanted = set(paths)
    imports: dict[str, set[str]] = {}
    for path, module in modules.items():
        if not session.in_project(path):
            continue
        found: set[str] = set()
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom):
                source = session.modules.resolve_relative(module, node)
                names = [source, *(f"{source}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            found.update(by_name[name] for name in names if name in by_name)
        imports[path] = found
    reached: dict[str, set[str]] = {path: {path} for path in wanted}
    for path in wanted:
        pending = [path]
        while pending:
            current = pending.pop()
            for user, used in imports.items():
                if current in used and user not in reached[path]:
                    reached[path].add(user)
                    pending.append(user)
        reached[path] &= wanted | {path}
    return reached
