"""The launch that people name on a command line: a recipe, a file with launches, a row of the settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mblint.errors import UserError
from mblint.evaluate.modules import SourceError
from mblint.files import OTHER_TEXT, YAML, is_launch_file
from mblint.launch.from_files import launches_of_file
from mblint.launch.run import Launch
from mblint.launch.session import Session
from mblint.read.span import Span

if TYPE_CHECKING:
    from mblint.settings_file import Loaded

OF_OVERRIDES = "a YAML file of overrides belongs to a recipe: give --recipe NAME, or write a line `# mblint: recipe=NAME` into it"


def overridden_recipe(session: Session, text: str | None) -> str | None:
    """The recipe of `--recipe`, as a launch names it: a shipped one by the name that is given, since that says its GPUs; one of the
    project by its module. Raises UserError."""
    from mblint.cli.explain_run import recipe_name, shipped_recipe

    if text is None or (":" not in text and "." not in text and shipped_recipe(session, text) is not None):
        return text
    return recipe_name(session, text)


def no_launch(path: Path) -> str:
    """What is said of a script or YAML file without a launch, with the remedy for its kind."""
    return f"{path}: no launch in it" + (f"; {OF_OVERRIDES}" if path.name.endswith((*YAML, *OTHER_TEXT)) else "")


def named_launch(loaded: Loaded, session: Session, text: str, recipe: str | None = None) -> Launch:
    """The launch behind what people write: a recipe in all its spellings, FILE or FILE:LINE of a script or YAML file, the name of
    a row in the settings. `recipe` is what a file of overrides belongs to. Raises UserError."""
    from mblint.cli.explain_run import recipe_name

    file, _, line = text.rpartition(":")
    for name, number in ((text, ""), (file, line)):
        if name and is_launch_file(Path(name)) and Path(name).exists():
            return _described(loaded, session, Path(name), number, recipe)
    rows = [row for row in loaded.settings.launches if row.name == text]
    if rows:
        return _row(loaded, session, text)
    return Launch(recipe_name(session, text))


def _row(loaded: Loaded, session: Session, name: str) -> Launch:
    from mblint.cli.matrix import settings_launches

    found = [launch for launch in settings_launches(loaded, session, recipes_of_project(loaded, session)) if launch.id == name]
    if len(found) > 1:
        names = ", ".join(launch.recipe or "" for launch in found[:5])
        raise UserError(f"the row {name!r} stands for {len(found)} launches: {names}", "name one of these recipes")
    return found[0]


def recipes_of_project(loaded: Loaded, session: Session) -> list[str]:
    """The recipes of the files below the settings' folder."""
    from mblint.files import may_concern, source_files
    from mblint.launch.discover import recipe_functions

    names: list[str] = []
    for path, _ in source_files([loaded.root], loaded.settings.exclude, loaded.root, session.modules.overlay):
        if not may_concern(path, session.modules.overlay):
            continue
        try:
            module = session.module_of(path)
        except SourceError:
            continue
        names += [f"{module.name}:{node.name}" for node in recipe_functions(module.tree)]
    return names


def _described(loaded: Loaded, session: Session, path: Path, number: str, recipe: str | None) -> Launch:
    file = launches_of_file(session, path, loaded.root, overridden_recipe(session, recipe), named=True)
    launches = file.launches if file is not None else []
    if not launches:
        if file is not None and file.findings:
            raise UserError(f"{path}: {file.findings[0].message}")
        raise UserError(no_launch(path), exit_code=4)
    chosen = [launch for launch in launches if number.isdigit() and _line(launch) == int(number)] if number else launches
    if len(chosen) == 1:
        return chosen[0]
    lines = ", ".join(f"{path}:{_line(launch)}" for launch in launches[:5])
    if number and not chosen:
        raise UserError(f"{path} has no launch on line {number}", f"there are {lines}")
    if len({_line(launch) for launch in chosen}) == 1 and chosen:
        return chosen[0]
    raise UserError(f"{path} holds {len(launches)} launches", f"name one by its line: {lines}")


def _line(launch: Launch) -> int:
    place: Span | None = launch.spec.span or launch.spec.recipe_span if launch.spec is not None else None
    return place.line if place is not None else 1
