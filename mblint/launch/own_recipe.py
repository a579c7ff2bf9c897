"""Recipes of the project by the names that people and reports use: a function's name, or `module:function`."""

from __future__ import annotations

from pathlib import Path

from mblint.errors import UserError
from mblint.evaluate.modules import SourceError
from mblint.files import may_concern, python_files
from mblint.launch.discover import recipe_functions
from mblint.launch.session import Session


def own_recipe(session: Session, text: str) -> str | None:
    """`module:function` of the one recipe below the project's folders that is called so; None where there is none.

    The module may be the short one that reports show. Raises UserError where several match.
    """
    module_name, _, function = text.rpartition(":")
    found = matching(session, module_name, function)
    if len(found) > 1:
        names = ", ".join(f"{path}:{function}" for path in found.values())
        raise UserError(f"{len(found)} recipes are called {text}", f"name one: {names}")
    return next(iter(found), None)


def matching(session: Session, module_name: str, function: str) -> dict[str, str]:
    """`module:function` -> file as it can be named here, of all recipes of that name."""
    wanted = function.encode()
    found: dict[str, str] = {}
    for root in map(Path, session.project):
        for path, _ in python_files([root], (), root):
            if not may_concern(path) or wanted not in _content(path):
                continue
            try:
                module = session.module_of(path)
            except SourceError:
                continue
            if module_name and module.name != module_name:
                continue
            if any(node.name == function for node in recipe_functions(module.tree)):
                found[f"{module.name}:{function}"] = _shown(path)
    return found


def names(session: Session) -> list[str]:
    """The names of all recipes of the project."""
    found: list[str] = []
    for root in map(Path, session.project):
        for path, _ in python_files([root], (), root):
            if may_concern(path):
                try:
                    found += [node.name for node in recipe_functions(session.module_of(path).tree)]
                except SourceError:
                    continue
    return found


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _shown(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
