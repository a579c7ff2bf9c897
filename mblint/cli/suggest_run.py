"""The work of `mblint suggest`."""

from __future__ import annotations

import argparse
import json
import sys

from mblint.cli.check_run import checker_of
from mblint.cli.common_run import open_session, with_arguments
from mblint.cli.explain_run import recipe_name
from mblint.errors import UserError
from mblint.launch.lines import read_launches
from mblint.launch.run import CannotEvaluate, Launch
from mblint.launch.session import with_deep_stack
from mblint.report.wayout import wayout_entry, wayout_text
from mblint.wayout.goal import Goal
from mblint.wayout.search import Result, search


def run(args: argparse.Namespace, goal: Goal) -> int:
    """Search for each launch and show what was found; 1 where a launch has no way out, else 0."""
    return with_deep_stack(lambda: _run(args, goal))


def _run(args: argparse.Namespace, goal: Goal) -> int:
    loaded, session = open_session(args, [])
    checker = checker_of(args, loaded, session)
    launches = read_launches(args.launches) if args.launches else [Launch(recipe_name(session, args.recipe))]
    if not launches:
        raise UserError(f"--launches {args.launches}: no launch in it", "one JSON object a line", exit_code=4)
    entries: list[tuple[str, Launch, Result]] = []
    for given in launches:
        launch = with_arguments(args, loaded, given)
        try:
            result = search(checker, launch, goal, answers=args.limit)
        except CannotEvaluate as problem:
            place = f"{problem.span.path}:{problem.span.line}: " if problem.span is not None else ""
            result = Result(because=f"{place}{problem.message}")
        entries.append((launch.id or launch.recipe or "plain", launch, result))
    if args.format == "json":
        report = {
            "goal": goal.text,
            "launches": [wayout_entry(name, launch, result) for name, launch, result in entries],
        }
        sys.stdout.write(json.dumps(report) + "\n")
    else:
        sys.stdout.write("\n".join(wayout_text(name, launch, goal, result, verbose=args.verbose > 0) for name, launch, result in entries))
    return 0 if all(result.reached or result.answers for _, _, result in entries) else 1
