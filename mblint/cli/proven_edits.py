"""Edits for other programs: only those that were proven by judging the edited text again."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from mblint.checker import Checked, Checker
from mblint.cli.fix_run import fixable_files, fixer_of, scope_of
from mblint.findings import Finding, Fix
from mblint.fingerprint import Identity, identity
from mblint.fix.edits import with_edits
from mblint.fix.scope import Scope, dependents, reached
from mblint.launch.session import with_deep_stack
from mblint.reporting import Sources

if TYPE_CHECKING:
    from mblint.settings_file import Loaded

MOST_LAUNCHES = 60
"""Launches that the edits of one file are judged with. Where more hang on a file, the proof by value has to do: the same
changes were made to the launch itself, and its checks run again."""

Proven = Mapping[tuple[Identity, str], Fix]


def with_proven_edits(args: argparse.Namespace, loaded: Loaded, checker: Checker, checked: Checked) -> Checked:
    """The same findings; a fix whose edits turn out wrong stays as one to be made by hand."""
    tried: set[str] = set()
    proven: dict[tuple[Identity, str], Fix] = {}

    def prove() -> None:
        session, sources = checker.session, Sources(checker.session)
        scope = scope_of(args, loaded, checker, checked)
        users = dependents(session, scope.recipes)
        reach = {path: reached(scope, session, path, users, sources) for path in fixable_files(checker, checked, sources)}
        for path, part in reach.items():
            if _size(part) > MOST_LAUNCHES:
                continue
            tried.add(path)
            for finding in fixer_of(args, loaded, checker, path, part, {}).offered():
                proven.update({(identity(finding), fix.title): fix for fix in finding.fixes if _is_in(fix, path)})
        session.replace_sources({})

    with_deep_stack(prove)
    if not tried:
        return checked
    source = Sources(checker.session)
    verdicts = [
        replace(verdict, findings=tuple(_kept(finding, proven, tried) for finding in with_edits(verdict, source)))
        for verdict in checked.verdicts
    ]
    return replace(checked, verdicts=verdicts)


def _size(scope: Scope) -> int:
    return sum(len(names) for names in scope.recipes.values()) + len(scope.rows) + sum(len(found) for found in scope.described.values())


def _is_in(fix: Fix, path: str) -> bool:
    return bool(fix.edits) and all(edit.span.path == path for edit in fix.edits)


def _kept(finding: Finding, proven: Proven, tried: set[str]) -> Finding:
    fixes = []
    for fix in finding.fixes:
        asked = {edit.span.path for edit in fix.edits} & tried
        if asked:
            fix = proven.get((identity(finding), fix.title), replace(fix, edits=(), by_hand=True))
        fixes.append(fix)
    return replace(finding, fixes=tuple(fixes)) if finding.fixes else finding
