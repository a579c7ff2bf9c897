"""The launches that the settings list, spelled out."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mblint.errors import SettingsError
from mblint.launch.overrides import CliOverride
from mblint.launch.run import Launch
from mblint.launch.session import Session
from mblint.read.span import Span

if TYPE_CHECKING:
    from mblint.settings_file import Loaded


def settings_launches(loaded: Loaded, session: Session, found: Sequence[str]) -> list[Launch]:
    """One launch for each row of `[[tool.mblint.launches]]` and each recipe that it matches.

    `found` are the recipes of the checked files; a name without module is also looked up among the shipped ones.
    Raises SettingsError for a row that matches nothing.
    """
    launches: list[Launch] = []
    for number, row in enumerate(loaded.settings.launches):
        place = loaded.place("launches", number)
        for pattern in row.recipe:
            names = _matching(session, pattern, found)
            if not names:
                raise SettingsError(f"{place}: no recipe matches {pattern!r}", "give package.module:function, or a function name")
            for name in names:
                launches.append(
                    Launch(
                        recipe=name,
                        id=row.name or "",
                        set=row.set,
                        overrides=tuple(CliOverride(text, _span(place)) for text in row.overrides),
                        files=tuple(str(loaded.root / file) for file in row.files),
                        world_size=row.world_size,
                        gpu=row.gpu,
                        env=row.env,
                        set_by=f"{place} set",
                        title=row.name or _shown(place),
                        place=_span(place),
                    )
                )
    return launches


def _shown(place: str) -> str:
    """`mblint.toml:12`: what a row without a name is called."""
    return place.rpartition("/")[2]


def _span(place: str) -> Span:
    """The line of the settings file that a row stands on, from `file:line`."""
    path, _, line = place.rpartition(":")
    return Span(os.path.abspath(path), int(line)) if line.isdigit() else Span(os.path.abspath(place), 1)


def _matching(session: Session, pattern: str, found: Sequence[str]) -> list[str]:
    own = [name for name in found if fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name.rpartition(":")[2], pattern)]
    if own or any(mark in pattern for mark in "*?["):
        return own
    if ":" in pattern:
        return [pattern]
    from mblint.cli.explain_run import shipped_recipe

    shipped = shipped_recipe(session, pattern)
    return [shipped] if shipped is not None else []
