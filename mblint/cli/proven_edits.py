"""Edits for other programs: only those that were proven by judging the edited text again."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mblint.checker import Checker
from mblint.cli.fix_run import fixable_files, fixer_of, scope_of
from mblint.findings import Finding, Fix
from mblint.fingerprint import Identity, identity
from mblint.fix.edits import with_edits
from mblint.fix.scope import Scope, dependents, reached
from mblint.fixing import FileFixer
from mblint.launch.session import with_deep_stack
from mblint.reporting import Sources
from mblint.verdict import Checked, Verdict
from mblint.workers import spread

if TYPE_CHECKING:
    from mblint.settings_file import Loaded

MOST_LAUNCHES = 60
"""Launches that the edits of one file are judged with. Where more hang on a file, the proof by value has to do: the same
changes were made to the launch itself, and its checks run again."""

Proven = Mapping[tuple[Identity, str], Fix]


def with_proven_edits(args: argparse.Namespace, loaded: Loaded, checker: Checker, checked: Checked) -> Checked:
    """The same findings; a fix whose edits turn out wrong stays as one to be made by hand."""
    session = checker.session
    source = Sources(session)
    verdicts = [replace(verdict, findings=with_edits(verdict, source)) for verdict in checked.verdicts]
    checked = replace(checked, verdicts=verdicts)
    reach = with_deep_stack(lambda: _reach(args, loaded, checker, checked))
    tried = [path for path, part in reach.items() if part.size <= MOST_LAUNCHES]
    if not tried:
        return checked

    def work(paths: Sequence[str]) -> list[dict[tuple[Identity, str], Fix]]:
        return [_proven(fixer_of(args, loaded, checker, path, reach[path], {})) for path in paths]

    proven: dict[tuple[Identity, str], Fix] = {}
    for found in spread(tried, work, args.jobs, few=2):
        proven.update(found)
    session.replace_sources({})

    def kept(verdict: Verdict) -> Verdict:
        return replace(verdict, findings=tuple(_kept(finding, proven, set(tried)) for finding in verdict.findings))

    return replace(checked, verdicts=[kept(verdict) for verdict in verdicts])


def _reach(args: argparse.Namespace, loaded: Loaded, checker: Checker, checked: Checked) -> dict[str, Scope]:
    """The files that edits change, with the launches that each of them reaches."""
    session, sources = checker.session, Sources(checker.session)
    scope = scope_of(args, loaded, checker, checked)
    users = dependents(session, scope.recipes)
    return {path: reached(scope, session, path, users, sources) for path in fixable_files(checker, checked, sources)}


def _proven(fixer: FileFixer) -> dict[tuple[Identity, str], Fix]:
    return {(identity(finding), fix.title): fix for finding in fixer.offered() for fix in finding.fixes if _is_in(fix, fixer.path)}


def _is_in(fix: Fix, path: str) -> bool:
    return bool(fix.edits) and all(edit.span.path == path for edit in fix.edits)


def _kept(finding: Finding, proven: Proven, tried: set[str]) -> Finding:
    fixes = []
    for fix in finding.fixes:
        asked = {edit.span.path for edit in fix.edits} & tried
        if asked:
            fix = proven.get((identity(finding), fix.title), replace(fix, edits=(), by_hand=True, hindrance="no edit of it was proven"))
        fixes.append(fix)
    return replace(finding, fixes=tuple(fixes)) if finding.fixes else finding
