"""The work of `mblint diagnose`."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace

from mblint.checker import Checker
from mblint.cli.check_run import checker_of
from mblint.cli.common_run import open_session, placed, refuse_unknown_keys, with_arguments
from mblint.cli.named_launch import named_launch
from mblint.diagnose.causes import Cause, LaunchFacts, causes
from mblint.diagnose.checks import failed_checks
from mblint.diagnose.events import Events, events_of
from mblint.diagnose.facts import facts_of_launch
from mblint.diagnose.log import Log, read_log
from mblint.errors import UserError
from mblint.launch.run import CannotEvaluate, Launch
from mblint.launch.session import with_deep_stack
from mblint.report.diagnosis import diagnosis_text
from mblint.verdict import Verdict
from mblint.wayout.goal import Goal
from mblint.wayout.search import Result, search

_MEMORY = {"capacity", "estimate-above-capacity", "fragmentation", "more-than-estimated", "lora-inputs-kept"}


def run(args: argparse.Namespace) -> int:
    """Read the log, explain it, and show that; 1 where nothing in it is known."""
    log = read_log(args.log)
    if not any(line.strip() for line in log.lines):
        raise UserError(f"{log.name}: nothing in it", "give the output of the run, errors included", exit_code=4)
    return with_deep_stack(lambda: _run(args, log))


def _run(args: argparse.Namespace, log: Log) -> int:
    events = events_of(log.lines)
    loaded, session = open_session(args, [])
    checker = checker_of(args, loaded, session)
    facts: LaunchFacts | None = None
    verdict: Verdict | None = None
    launch: Launch | None = None
    if args.recipe:
        # The size of the run, where its log says it, comes before the one in the recipe's name.
        launch = with_arguments(args, loaded, named_launch(loaded, session, args.recipe))
        if events.world_size and not args.world_size:
            launch = replace(launch, world_size=events.world_size)
        refuse_unknown_keys(session, launch)
        verdict, facts = facts_of_launch(checker, launch)
    found = [*causes(events, facts)]
    known = {cause.id for cause in found}
    found += [cause for cause in failed_checks(checker, events, verdict) if cause.id not in known]
    order = {"certain": 0, "likely": 1, "possible": 2}
    found.sort(key=lambda cause: order[cause.certainty])
    ways = _ways_out(checker, launch, found)
    _write(args, log, events, found, launch, ways)
    return 0 if found else 1


def _ways_out(checker: Checker, launch: Launch | None, found: list[Cause]) -> Result | None:
    """Ways out where memory ran out and the launch is known. An estimate that fits proves nothing after that: ask for room."""
    if launch is None or not any(cause.id in _MEMORY for cause in found):
        return None
    try:
        result = search(checker, launch, Goal())
        if result.reached and result.base is not None:
            room = max(0, result.base.judgement.head_room_bytes)
            result = search(checker, launch, Goal(room + 1))
    except CannotEvaluate as problem:
        return Result(because=placed(problem))
    return result


def _write(
    args: argparse.Namespace,
    log: Log,
    events: Events,
    found: list[Cause],
    launch: Launch | None,
    ways: Result | None,
) -> None:
    if args.format == "text":
        sys.stdout.write(diagnosis_text(log, events, found, launch, ways))
        return
    from mblint.report.wayout import wayout_entry

    report = {
        "log": {
            "name": log.name,
            "bytes": log.size,
            "bytes_left_out": log.left_out,
            "lines_read": len(log.lines),
        },
        "out_of_memory": [asdict(one) for one in events.out_of_memory[:100]],
        "causes": [asdict(cause) for cause in found],
        "ways_out": wayout_entry(launch.recipe or "", launch, ways) if launch is not None and ways is not None else None,
    }
    sys.stdout.write(json.dumps(report) + "\n")
