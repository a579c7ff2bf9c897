"""Whose fixes a report shows: those are proven, and no others.

A finding that is the same for many launches, of a value in a helper that all of them use, is shown once, with the fixes of the
first of them. To prove those of the others would take most of a run.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mblint.checker import Checker
from mblint.cli.adopt_run import known_findings
from mblint.report.model import group_of
from mblint.verdict import Verdict

if TYPE_CHECKING:
    from mblint.settings_file import Loaded

WITH_EDITS = frozenset({"json", "sarif", "rdjson"})
"""Formats that spell fixes out as text edits."""
ONE_BY_ONE = WITH_EDITS | {"junit"}
"""Formats that show the fixes of every launch."""


def sees_every_fix(args: argparse.Namespace, loaded: Loaded, checker: Checker) -> bool:
    """Whether the fixes of every launch are seen, not only those of one among the launches that a finding is the same for."""
    formats = {args.format, *(name for name, _ in args.output)}
    applies = args.fix or args.fix_only or args.diff
    return bool(formats & ONE_BY_ONE or applies or known_findings(args, loaded, checker) is not None)


def seen_fixes(judged: Mapping[int, Verdict | None], every: bool) -> dict[int, set[int]]:
    """The findings, by launch, whose fixes are seen: `every` one, else those of the first launch of each group."""
    first: dict[Any, tuple[str, int, int]] = {}
    for index, verdict in judged.items():
        for position, finding in enumerate(verdict.findings if verdict is not None else ()):
            place = (finding.launch or "", index, position)
            group = place if every else (group_of(finding), finding.older)  # reports may leave out what is older
            first[group] = min(place, first.get(group, place))
    seen: dict[int, set[int]] = {index: set() for index in judged}
    for _, index, position in first.values():
        seen[index].add(position)
    return seen


def without_other_fixes(verdict: Verdict | None, seen: Collection[int]) -> Verdict | None:
    """The verdict as reports show it: with no fixes but those that are seen, which are proven."""
    if verdict is None or not any(finding.fixes for finding in verdict.findings):
        return verdict
    findings = (finding if index in seen else replace(finding, fixes=()) for index, finding in enumerate(verdict.findings))
    return replace(verdict, findings=tuple(findings), unproven=frozenset())
