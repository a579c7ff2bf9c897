"""The work of `mblint estimate`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mblint.cli.common_run import literal, open_session, refuse_unknown_keys, with_arguments
from mblint.cli.named_launch import named_launch
from mblint.cli.options import wants_color
from mblint.errors import UserError
from mblint.evaluate.modules import SourceError
from mblint.facts.memory.launch_memory import LaunchMemory, own_memory, upstream_figure, upstream_memory
from mblint.files import is_launch_file, may_concern, python_files
from mblint.launch import path as launch_path
from mblint.launch.discover import recipe_functions
from mblint.launch.lines import read_launches
from mblint.launch.run import CannotEvaluate, Launch, on_heap
from mblint.launch.session import Session, with_deep_stack
from mblint.settings_file import shown_path
from mblint.shown import neutral
from mblint.upstream.architecture import architecture_of
from mblint.workers import spread

if TYPE_CHECKING:
    from mblint.settings_file import Loaded

Estimated = tuple[LaunchMemory, dict[str, Any] | None]
"""An estimate, and what the installed estimator is to be asked of the same launch."""


def run(args: argparse.Namespace) -> int:
    """Estimate what the arguments name and show it."""
    paths = [Path(name.partition(":")[0]) for name in args.recipes]
    loaded, session = open_session(args, [path for path in paths if path.exists()])
    launch_path.install(session)
    launches = _named(args, loaded, session)
    if not launches:
        raise UserError("no recipe found", "name a recipe, or a file or folder that holds some", exit_code=4)
    if len(launches) == 1:
        with_deep_stack(lambda: _refuse_unknown(args, session, launches[0]))

    def work(part: Sequence[int]) -> list[Estimated]:
        return [found for index in part for found in estimates(args, session, launches[index])]

    order = sorted(range(len(launches)), key=lambda index: (launches[index].recipe or "", index))
    found = spread(order, work, None)
    positions = {launch.id or launch.recipe or "": number for number, launch in enumerate(launches)}
    found.sort(key=lambda pair: positions.get(pair[0].id, len(positions)))
    _write(args, _with_engine(args, found))
    return 0


def _refuse_unknown(args: argparse.Namespace, session: Session, launch: Launch) -> None:
    """Raise UserError where --set or --what-if names a key that no field has."""
    refuse_unknown_keys(session, launch)
    for key, text in args.what_if:
        refuse_unknown_keys(session, replace(launch, set={**launch.set, key: literal(text)}, set_by="--what-if"))


def _with_engine(args: argparse.Namespace, found: Sequence[Estimated]) -> list[LaunchMemory]:
    """The estimates, with the installed estimator's beside them where it is asked for: one process for all."""
    if not args.engine:
        return [memory for memory, _ in found]
    from mblint.engine.run import ask

    figures = ask(args.python, [request for _, request in found])
    return [replace(memory, others=(*memory.others, figure)) for (memory, _), figure in zip(found, figures, strict=True)]


def _named(args: argparse.Namespace, loaded: Loaded, session: Session) -> list[Launch]:
    if args.launches:
        return [with_arguments(args, loaded, launch) for launch in read_launches(args.launches)]

    def collect() -> list[Launch]:
        found: list[Launch] = []
        for name in args.recipes:
            path = Path(name)
            if is_launch_file(Path(name.partition(":")[0])) or not path.exists() or ":" in name:
                found.append(named_launch(loaded, session, name))
                continue
            for file, named in python_files([path], loaded.settings.exclude, loaded.root):
                if not named and not may_concern(file):
                    continue
                try:
                    module = session.module_of(file)
                except SourceError as error:
                    said = f"{shown_path(Path(error.path))}:{error.line}:{error.column}: {error.message}"
                    if named:
                        raise UserError(said) from None
                    print(f"mblint: left out: {neutral(said)}", file=sys.stderr)
                    continue
                found += [Launch(f"{module.name}:{node.name}") for node in recipe_functions(module.tree)]
        return found

    return [with_arguments(args, loaded, launch) for launch in with_deep_stack(collect)]


def estimates(args: argparse.Namespace, session: Session, launch: Launch) -> list[Estimated]:
    """The launch, and each what-if of it, evaluated again with the change."""
    name = launch.id or launch.recipe or "plain"
    found = [estimate_one(args, session, launch, name, {})]
    for key, text in args.what_if:
        value = literal(text)
        changed = replace(launch, set={**launch.set, key: value}, set_by="--what-if")
        found.append(estimate_one(args, session, changed, name, {key: value}))
    return found


def estimate_one(args: argparse.Namespace, session: Session, launch: Launch, name: str, changes: dict[str, object]) -> Estimated:
    """One launch, after its launch path; a recipe that cannot be evaluated is an estimate that misses everything."""
    request: dict[str, Any] | None = None
    try:
        with on_heap(session, launch) as resolved:
            resolved.remember_written()
            failures = launch_path.run_path(session, resolved.cfg).failures
            refused = f"{failures[0].exception}: {failures[0].message}" if failures else ""
            if args.formula == "upstream":
                memory = upstream_memory(resolved, name)
            else:
                memory = own_memory(resolved, name, others=(upstream_figure(resolved),))
            if args.engine:
                from mblint.engine.run import request_of

                request = request_of(resolved)
            known = architecture_of(resolved.get("model.hf_model_id"), session.project)
            told = {} if known is None else {**asdict(known), "doubt": known.doubt}
            return replace(memory, changes=changes, architecture=told, refused=refused), request
    except CannotEvaluate as problem:
        memory = LaunchMemory(
            name, changes, launch.world_size, launch.gpu or "", args.formula, None, None, None, {}, {}, (), None, None, None, None, (),
            {"recipe": problem.message},
        )  # fmt: skip
        return memory, None


def _write(args: argparse.Namespace, found: Sequence[LaunchMemory]) -> None:
    if args.format == "json":
        from mblint.report.estimate_json import estimate_report

        text = json.dumps(estimate_report(found), default=str) + "\n"
    elif args.format == "html":
        from mblint.report.estimate_html import estimate_html

        text = estimate_html(found)
    else:
        from mblint.report.estimate_text import estimate_text

        text = estimate_text(found, color=not args.output and wants_color(args.color, sys.stdout))
    if args.output:
        try:
            Path(args.output).write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"--output {args.output}: {error.strerror or error}", "name a file in a folder that exists") from None
    else:
        sys.stdout.write(text)
