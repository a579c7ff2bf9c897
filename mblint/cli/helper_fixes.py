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
from pathlib import Path
from typing import TYPE_CHECKING

from mblint.checker import Checker
from mblint.evaluate.modules import SourceError
from mblint.files import may_concern, source_files
from mblint.findings import SEVERITY_ORDER, Finding, Fix
from mblint.fingerprint import identity
from mblint.fix.helper import in_helper, is_own, writer_of
from mblint.fix.prove import Proof, prove
from mblint.fix.scope import Scope, dependents, reached
from mblint.fix.shared import differing, with_recipes
from mblint.launch.import_graph import ImportGraph
from mblint.launch.importers import closure
from mblint.report.model import group_of
from mblint.reporting import Sources
from mblint.upstream.cache import upstream_folder
from mblint.verdict import Checked

if TYPE_CHECKING:
    from mblint.settings_file import Loaded

MOST_LAUNCHES = 60
"""Launches that may hang on a file whose functions are edited: all of them are judged again for each edit."""
MOST_JUDGED, MOST_JUDGED_TO_SHOW = 200, 60
"""Launches that are judged again for this, all edits together, errors first: for programs, and for people, who wait."""


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


def planned_in_helpers(checked: Checked, checker: Checker, sources: Sources, advice: bool = True) -> Iterator[Planned]:
    """The fixes that can be written in a function of the project that several launches get the value from."""
    groups = Counter(group_of(finding) for verdict in checked.verdicts for finding in verdict.findings)
    for index, verdict in enumerate(checked.verdicts):
        inputs = verdict.fix_inputs
        if inputs is None:
            continue
        for position, finding in enumerate(verdict.findings):
            wanted = not finding.older and (advice or finding.severity != "advice")
            for fix in finding.fixes if wanted else ():
                place = writer_of(fix, inputs)
                if place is None or not _is_ours(checker, place.path):
                    continue
                # Of what a recipe writes itself others know where the same is found in them.
                own = is_own(inputs, place)
                if own and groups[group_of(finding)] < 2:
                    continue
                done = in_helper(fix, inputs, sources)
                if done is not None:
                    yield Planned(index, position, fix, done, own)


def _is_ours(checker: Checker, path: str) -> bool:
    """Whether a file is one of the project that people edit: copies that mblint fetched are only looked at."""
    fetched = os.path.join(os.path.realpath(upstream_folder()), "")
    return checker.session.in_project(path) and not path.startswith(fetched)


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
        self.users: dict[str, set[str]] | None = None
        """File -> the files that import it themselves."""

    def seeing(self, path: str) -> set[str]:
        """The files that a change of one reaches through imports, itself included."""
        if self.users is None:
            self.users = {}
            pending, seen = list(self.files), set(self.files)
            while pending:
                user = pending.pop()
                for used in self.graph.of(user).files:
                    self.users.setdefault(used, set()).add(user)
                    if used not in seen:
                        seen.add(used)
                        pending.append(used)
        return closure(self.users, [path])

    def added(self, path: str, part: Scope) -> Scope:
        """What a change of a file reaches: `part`, and what else can see the file."""
        recipes = {file: list(names) for file, names in part.recipes.items()}
        reached = self.seeing(path)
        for real, file in self.files.items():
            if real in recipes or real not in reached:
                continue
            try:
                names = [name for name, _ in self.checker.recipes_of(file)]
            except SourceError:
                continue
            if names:
                recipes[real] = names
        return Scope(recipes, part.rows, part.described)


def with_helper_fixes(args: argparse.Namespace, loaded: Loaded, checker: Checker, checked: Checked, looked_at: Sequence[Path]) -> Checked:
    """The same findings, with the fixes that can be made in a helper, each proven on every launch that it reaches. `looked_at` are
    the files of the run."""
    from mblint.cli.check_run import results_of, wants_edits
    from mblint.launch.session import with_deep_stack

    sources = Sources(checker.session)
    # People are told of errors and warnings: every edit is judged on all launches that it reaches, which takes time.
    found = list(planned_in_helpers(checked, checker, sources, advice=wants_edits(args)))
    if not found:
        return checked
    results = results_of(args, loaded, checker)
    about = (
        [(checked.verdicts[each.verdict].id, identity(_finding(checked, each)), each.fix) for each in found],
        wants_edits(args),
        args.paths,
    )
    known = results.find_about(about) if results is not None else None
    if known is None:
        known = with_deep_stack(lambda: _prove(args, loaded, checker, checked, found, sources))
        if results is not None:
            files = [path for path, _ in source_files([loaded.root], loaded.settings.exclude, loaded.root, {})]
            seen = {os.path.realpath(path) for path in [*files, *looked_at]}
            results.keep_about(about, {*seen, *map(os.path.dirname, seen)}, known)
    return _attached(checked, [(found[index], fix) for index, fix in known])


def _finding(checked: Checked, planned: Planned) -> Finding:
    return checked.verdicts[planned.verdict].findings[planned.finding]


def _prove(
    args: argparse.Namespace, loaded: Loaded, checker: Checker, checked: Checked, found: Sequence[Planned], sources: Sources
) -> list[tuple[int, Fix]]:
    """Those of the planned fixes that are proven, by index, with the names of the launches that they change."""
    from mblint.cli.check_run import wants_edits
    from mblint.cli.fix_run import fixer_of, scope_of

    files: dict[str, list[tuple[int, Planned]]] = {}
    for index, planned in sorted(enumerate(found), key=lambda item: -SEVERITY_ORDER[_finding(checked, item[1]).severity]):
        files.setdefault(planned.path, []).append((index, planned))
    scope = scope_of(args, loaded, checker, checked)
    users = dependents(checker.session, [*scope.recipes, *files])
    everyone = Users(loaded, checker)
    proven: list[tuple[int, Fix]] = []
    left = MOST_JUDGED if wants_edits(args) else MOST_JUDGED_TO_SHOW
    checker.later = True  # the text is what is proven here
    try:
        for path, wanted in files.items():
            part = everyone.added(path, reached(scope, checker.session, path, users, sources))
            edits = list(dict.fromkeys(planned.fix.edits for _, planned in wanted))
            size = part.size * (1 + len(edits))
            if part.size > MOST_LAUNCHES or size > left:
                continue
            left -= size
            fixer = fixer_of(args, loaded, checker, path, part, {}, helpers=True)
            source = {path: fixer.original}
            before = fixer.judge(source)
            for edit in edits:
                targets = [(finding, fix) for finding in before.findings for fix in finding.fixes if fix.helper and fix.edits == edit]
                done = prove(targets, source, before, fixer.judge_again) if targets else None
                if not isinstance(done, Proof):
                    continue
                affected = {finding.launch for finding, _ in targets if finding.launch}
                changed = affected | differing(before.configs, done.judged.configs)  # what no field holds is in no config
                for index, each in wanted:
                    if each.fix.edits == edit and len(changed) > 1:
                        fix = with_recipes(each.fix, changed, affected)
                        beside = not each.own and not (changed <= affected and is_named(args, path))
                        proven.append((index, replace(fix, safety="unsafe", alternative=True) if beside else fix))
    finally:
        checker.later = False
        checker.session.replace_sources({})
    return proven


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
