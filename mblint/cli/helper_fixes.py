"""Fixes in the functions of the project that several recipes get a value from: shown beside those in the recipe, or in their place.

Every recipe of the project that can see the function counts, also one that the run was not asked about. Where all that change have
the finding, the function is the place to mend it; where some do not, that is for people to choose, who are told the names.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mblint.checker import Checked, Checker
from mblint.evaluate.modules import SourceError
from mblint.files import may_concern, source_files
from mblint.findings import Finding, Fix
from mblint.fix.helper import in_helper, is_own
from mblint.fix.prove import Proof, prove
from mblint.fix.scope import Scope, dependents, reached
from mblint.fix.shared import differing, with_recipes
from mblint.launch.import_graph import ImportGraph
from mblint.report.model import group_of
from mblint.reporting import Sources

if TYPE_CHECKING:
    from mblint.settings_file import Loaded

MOST_LAUNCHES = 60
"""Launches that may hang on a file whose functions are edited: all of them are judged again for each edit."""
MOST_JUDGED = 300
"""Launches that a report judges again for this, all edits together."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A fix of one finding of the run, by index, as an edit of a helper."""

    verdict: int
    finding: int
    original: Fix
    fix: Fix
    own: bool
    """Whether the helper is the recipe itself, which others start from."""

    @property
    def path(self) -> str:
        """The helper's file."""
        return self.fix.edits[0].span.path


def planned_in_helpers(checked: Checked, checker: Checker, sources: Sources) -> Iterator[Planned]:
    """The fixes that can be written in a function of the project that several launches get the value from."""
    groups = Counter(group_of(finding) for verdict in checked.verdicts for finding in verdict.findings)
    for index, verdict in enumerate(checked.verdicts):
        inputs = verdict.fix_inputs
        if inputs is None:
            continue
        for position, finding in enumerate(verdict.findings):
            for fix in finding.fixes if not finding.older else ():
                done = in_helper(fix, inputs, sources)
                if done is None or not checker.session.in_project(done.edits[0].span.path):
                    continue
                # Of what a recipe writes itself others know where the same is found in them.
                own = is_own(inputs, done.edits[0].span)
                if not own or groups[group_of(finding)] > 1:
                    yield Planned(index, position, fix, done, own)


def is_named(args: argparse.Namespace, path: str) -> bool:
    """Whether a file (real path) lies below the paths of the command line: no other one is edited."""
    tops = [os.path.realpath(given) for given in args.paths or ["."]]
    return any(path == top or path.startswith(os.path.join(top, "")) for top in tops)


class Users:
    """The recipes of the whole project, also those that the run was not asked about."""

    def __init__(self, loaded: Loaded, checker: Checker) -> None:
        self.checker = checker
        overlay = checker.session.modules.overlay
        found = source_files([loaded.root], loaded.settings.exclude, loaded.root, overlay)
        self.files = {os.path.realpath(file): file for file, _ in found if may_concern(file, overlay)}
        self.graph = ImportGraph(checker.session)

    def added(self, path: str, part: Scope) -> Scope:
        """What a change of a file reaches: `part`, and what else can see the file."""
        recipes = {file: list(names) for file, names in part.recipes.items()}
        for real, file in self.files.items():
            if real in recipes or path not in self.graph.closure(real)[0]:
                continue
            try:
                names = [name for name, _ in self.checker.recipes_of(file)]
            except SourceError:
                continue
            if names:
                recipes[real] = names
        return Scope(recipes, part.rows, part.described)


def with_helper_fixes(args: argparse.Namespace, loaded: Loaded, checker: Checker, checked: Checked) -> Checked:
    """The same findings, with the fixes that can be made in a helper, each proven on every launch that it reaches."""
    from mblint.cli.fix_run import fixer_of, scope_of
    from mblint.launch.session import with_deep_stack

    sources = Sources(checker.session)
    files: dict[str, list[Planned]] = {}
    for planned in planned_in_helpers(checked, checker, sources):
        files.setdefault(planned.path, []).append(planned)
    if not files:
        return checked
    proven: list[tuple[Planned, Fix]] = []

    def run() -> None:
        scope = scope_of(args, loaded, checker, checked)
        users = dependents(checker.session, [*scope.recipes, *files])
        everyone = Users(loaded, checker)
        left = MOST_JUDGED
        checker.later = True  # the text is what is proven here
        for path, wanted in files.items():
            part = everyone.added(path, reached(scope, checker.session, path, users, sources))
            edits = list(dict.fromkeys(planned.fix.edits for planned in wanted))
            size = part.size * (1 + len(edits))
            if part.size > MOST_LAUNCHES or size > left:
                continue
            left -= size
            fixer = fixer_of(args, loaded, checker, path, part, {}, helpers=True)
            source = {path: fixer.original}
            before = fixer.judge(source)
            for edit in edits:
                targets = [(finding, fix) for finding in before.findings for fix in finding.fixes if fix.helper and fix.edits == edit]
                done = prove(targets, source, before, fixer.judge) if targets else None
                if not isinstance(done, Proof):
                    continue
                affected = {finding.launch for finding, _ in targets if finding.launch}
                changed = affected | differing(before.configs, done.judged.configs)  # what no field holds is in no config
                for each in wanted:
                    if each.fix.edits == edit and len(changed) > 1:
                        fix = with_recipes(each.fix, changed, affected)
                        beside = not each.own and not (changed <= affected and is_named(args, path))
                        proven.append((each, replace(fix, safety="unsafe", alternative=True) if beside else fix))
        checker.later = False
        checker.session.replace_sources({})

    with_deep_stack(run)
    return _attached(checked, proven)


def _attached(checked: Checked, proven: Sequence[tuple[Planned, Fix]]) -> Checked:
    verdicts = list(checked.verdicts)
    for planned, fix in proven:
        verdict = verdicts[planned.verdict]
        findings = list(verdict.findings)
        findings[planned.finding] = _offered(findings[planned.finding], planned.original, fix)
        verdicts[planned.verdict] = replace(verdict, findings=tuple(findings))
    return replace(checked, verdicts=verdicts)


def _offered(finding: Finding, original: Fix, fix: Fix) -> Finding:
    """The finding with a fix in a helper: in place of that in the recipe, or after it, if that is its only way out."""
    at = next((index for index, other in enumerate(finding.fixes) if other.title == original.title), None)
    if at is None:
        return finding
    if not fix.alternative:
        return replace(finding, fixes=(*finding.fixes[:at], fix, *finding.fixes[at + 1 :]))
    return replace(finding, fixes=(*finding.fixes, fix)) if len(finding.ways) == 1 else finding
