"""The work of `mblint check`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mblint.checker import Checked, Checker, Verdict, unreadable
from mblint.cli.common_run import existing, open_session, with_arguments
from mblint.errors import UserError
from mblint.evaluate.modules import SourceError
from mblint.files import may_concern, python_files
from mblint.findings import SEVERITY_ORDER, Finding
from mblint.launch.lines import read_launches
from mblint.launch.run import Launch
from mblint.launch.session import Session
from mblint.ruleset.load import load_rules
from mblint.selection import Selection
from mblint.workers import spread

if TYPE_CHECKING:
    from mblint.settings_file import Loaded


def run(args: argparse.Namespace) -> int:
    """Judge what the arguments name, report, and return the exit code."""
    if args.launches:
        return _check_launches(args)
    paths = existing(args.paths or ["."])
    loaded, session = open_session(args, paths)
    checked = check_paths(args, loaded, session, paths)
    if not checked.verdicts and not checked.file_findings:
        if args.allow_empty:
            return 0
        raise UserError(
            f"no recipe found in {', '.join(str(path) for path in paths)}",
            "a recipe is a function that returns a ConfigContainer; name the folder or file that holds it",
            exit_code=4,
        )
    return report(args, loaded, session, checked)


def checker_of(args: argparse.Namespace, loaded: Loaded, session: Session) -> Checker:
    """A checker with the selected rules."""
    settings = loaded.settings
    rules = load_rules([loaded.root / path for path in settings.extend_rules])
    select = Selection(rules, settings.profile, settings.select, settings.extend_select, settings.ignore)
    return Checker(session, rules, select)


def _check_launches(args: argparse.Namespace) -> int:
    launches = read_launches(args.launches)
    if not launches:
        raise UserError(f"--launches {args.launches}: no launch in it", "one JSON object a line", exit_code=4)
    paths = existing(args.paths) if args.paths else []
    loaded, session = open_session(args, paths)
    checker = checker_of(args, loaded, session)
    complete = [with_arguments(args, loaded, launch) for launch in launches]
    # Launches of one recipe are judged by one process, so that the recipe is evaluated once.
    order = sorted(range(len(complete)), key=lambda index: (complete[index].recipe or "", index))

    def work(part: Sequence[int]) -> list[tuple[int, Verdict]]:
        return [(index, checker.judge_launch(complete[index], complete[index].id)) for index in part]

    judged = dict(spread(order, work, args.jobs))
    verdicts = [judged[index] for index in range(len(complete))]
    if args.format == "json":
        from mblint.report.launches import launches_report

        json.dump(launches_report(verdicts), sys.stdout, default=str)
        sys.stdout.write("\n")
        return exit_code(args, loaded, [finding for verdict in verdicts for finding in verdict.findings])
    return report(args, loaded, session, Checked(verdicts=verdicts))


def check_paths(args: argparse.Namespace, loaded: Loaded, session: Session, paths: list[Path]) -> Checked:
    """Judge every recipe below the paths."""
    checker = checker_of(args, loaded, session)
    checked = Checked()
    work_items: list[tuple[Path, str]] = []

    def collect() -> None:
        for path, named in python_files(paths, loaded.settings.exclude, loaded.root):
            if not named and not may_concern(path):
                continue
            checked.files += 1
            try:
                recipes = checker.recipes_of(path)
            except SourceError as error:
                checked.file_findings.append(unreadable(error))
                continue
            work_items.extend((path, name) for name, _ in recipes)

    from mblint.launch.session import with_deep_stack

    with_deep_stack(collect)

    def work(part: Sequence[tuple[Path, str]]) -> list[Verdict | None]:
        return [checker.judge_recipe(name, with_arguments(args, loaded, Launch(name))) for _, name in part]

    checked.verdicts = [verdict for verdict in spread(work_items, work, args.jobs) if verdict is not None]
    return checked


def exit_code(args: argparse.Namespace, loaded: Loaded, findings: Sequence[Finding]) -> int:
    """0 or 1 by severity, 3 when a rule or file failed inside mblint."""
    if any(finding.rule == "MB900" for finding in findings):
        return 3
    fail_on = loaded.settings.fail_on
    if args.exit_zero or fail_on == "never":
        return 0
    bar = SEVERITY_ORDER[fail_on]
    return int(any(SEVERITY_ORDER[finding.severity] >= bar for finding in findings))


def report(args: argparse.Namespace, loaded: Loaded, session: Session, checked: Checked) -> int:
    """Write the report in the wanted format and return the exit code."""
    findings = checked.findings
    for finding in findings:
        place = f"{finding.span.path}:{finding.span.line}:{finding.span.column}: " if finding.span else ""
        sys.stdout.write(f"{place}{finding.rule} {finding.severity} [{finding.launch}] {finding.message}\n")
    sys.stdout.write(
        f"{len(findings)} findings in {len(checked.verdicts)} launches; {session.upstream.pair}\n"
    )
    return exit_code(args, loaded, findings)


__all__: list[Any] = ["check_paths", "run"]
