"""The work of `mblint suggest`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from mblint.checker import Checker
from mblint.cli.check_run import checker_of
from mblint.cli.common_run import open_session, placed, refuse_unknown_keys, with_arguments
from mblint.cli.named_launch import named_launch
from mblint.cli.options import wants_color
from mblint.errors import UserError
from mblint.launch.lines import read_launches
from mblint.launch.run import CannotEvaluate, Launch
from mblint.launch.session import with_deep_stack
from mblint.report.wayout import wayout_entry, wayout_text
from mblint.wayout.goal import Goal
from mblint.wayout.search import SECONDS, Result, search

if TYPE_CHECKING:
    from mblint.settings_file import Loaded


def run(args: argparse.Namespace, goal: Goal) -> int:
    """Search for each launch and show what was found; 1 where a launch has no way out, else 0."""
    return with_deep_stack(lambda: _run(args, goal))


def _run(args: argparse.Namespace, goal: Goal) -> int:
    loaded, session = open_session(args, [])
    checker = checker_of(args, loaded, session)
    launches = read_launches(args.launches) if args.launches else [named_launch(loaded, session, args.recipe)]
    if not launches:
        raise UserError(f"--launches {args.launches}: no launch in it", "one JSON object a line", exit_code=4)
    entries: list[tuple[str, Launch, Result]] = []
    for given in launches:
        launch = with_arguments(args, loaded, given)
        if args.recipe is not None:
            refuse_unknown_keys(session, launch)
        try:
            # What is to be written must be what was shown: a busy machine must not end the search elsewhere.
            result = search(checker, launch, goal, answers=args.limit, seconds=SECONDS if args.fix is None else 6 * SECONDS)
        except CannotEvaluate as problem:
            result = Result(because=placed(problem))
        entries.append((launch.id or launch.recipe or "plain", launch, result))
    if args.format == "json":
        report = {
            "goal": goal.text,
            "launches": [wayout_entry(name, launch, result) for name, launch, result in entries],
        }
        sys.stdout.write(json.dumps(report) + "\n")
    elif args.fix is None or not args.diff:
        sys.stdout.write("\n".join(wayout_text(name, launch, goal, result, verbose=args.verbose > 0) for name, launch, result in entries))
    if args.fix is not None:
        _, launch, result = entries[0]
        return _fix(args, loaded, checker, launch, goal, result)
    return 0 if all(result.reached or result.answers for _, _, result in entries) else 1


def _counted(result: Result) -> str:
    """In words, how many ways out there are."""
    if result.reached:
        return "the launch reaches the goal as it is"
    return {0: "there is no way out", 1: "there is one way out"}.get(len(result.answers), f"there are {len(result.answers)} ways out")


def _fix(args: argparse.Namespace, loaded: Loaded, checker: Checker, launch: Launch, goal: Goal, result: Result) -> int:
    """Show or write the chosen way out; 1 where it cannot be written."""
    if args.fix > len(result.answers):
        raise UserError(f"--fix {args.fix}: {_counted(result)}", result.because or ("" if result.reached else "choose one of them"))
    from mblint.fix.apply import unified_diff
    from mblint.fix.write import NewText, decode, digest_of, write_files
    from mblint.wayout.patch import patch

    data: dict[str, bytes] = {}

    def text_of(path: str) -> str | None:
        try:
            data[path] = checker.session.data_of(path)
            return decode(path, data[path]).text
        except (OSError, ValueError, LookupError, SyntaxError):
            return None

    answer = result.answers[args.fix - 1]
    made = patch(checker, launch, goal, answer.candidate, text_of)
    if made.because:
        sys.stderr.write(f"mblint: not written: {made.because}\n")
        return 1
    world = answer.candidate.changes.get("world_size")
    if world is not None and args.quiet < 1:
        sys.stderr.write(f"it needs {world} GPUs: start it on as many\n")
    if args.diff:
        for path, text in made.after.items():
            sys.stdout.write(unified_diff(path, made.before[path], text, root=str(loaded.root), color=wants_color(args.color, sys.stdout)))
        return 1
    written = write_files([NewText(path, text, digest_of(data[path])) for path, text in made.after.items()], str(loaded.root))
    for entry in written:
        sys.stderr.write(f"mblint: not written: {entry.refused}\n" if entry.refused else f"written: {entry.path}\n")
    return 1 if any(entry.refused for entry in written) else 0
