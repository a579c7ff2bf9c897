"""Which launches a place in a file speaks of: those of the recipe that it is in, or of the recipes that use it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from mblint.launch import path as launch_path
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.run import CannotEvaluate, Launch, on_heap
from mblint.server.importers import users_of
from mblint.server.judging import FileState
from mblint.server.keys import function_at
from mblint.server.project import Project

MAX_LAUNCHES = 3


def launches_at(project: Project, states: dict[str, FileState], state: FileState, tree: ast.Module | None, line: int) -> list[Launch]:
    """The launches that a line of a recipe file takes part in, at most three: of its own recipe, else of those that use its function."""
    function = function_at(tree, line) if tree is not None else None
    launches = shown_launches(state)
    own = [launch for launch in launches if function is not None and _function(launch) == function.name]
    if own:
        return own[:MAX_LAUNCHES]
    if function is not None and state.parts is not None:
        index = state.parts.binders.get(function.name, [-1])[-1]
        using = [launch for launch in launches if index in state.parts.reached(_function(launch))]
        if using:
            return using[:MAX_LAUNCHES]
    if launches:
        return launches[:1]
    found: list[Launch] = []
    for user in users_of(project, state.path):
        other = states.get(user)
        if other is not None:
            found += shown_launches(other)
    return found[:MAX_LAUNCHES]


def shown_launches(state: FileState) -> list[Launch]:
    """The launches of a file, in its order, without those that only look like recipes."""
    return [launch for name, launch in state.named.items() if (entry := state.judged.get(name)) is None or entry.shown]


@contextmanager
def evaluated(project: Project, launch: Launch) -> Iterator[ResolvedLaunch | None]:
    """The launch on the heap behind its launch path; None where it cannot be evaluated."""
    try:
        context = on_heap(project.session, launch)
        resolved = context.__enter__()
    except CannotEvaluate:
        yield None
        return
    try:
        resolved.remember_written()
        resolved.path = launch_path.run_path(project.session, resolved.cfg)
        yield resolved
    finally:
        context.__exit__(None, None, None)


def _function(launch: Launch) -> str:
    return (launch.recipe or "").rpartition(":")[2]
