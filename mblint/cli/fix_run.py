"""The work of `mblint check --fix` and `--diff`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mblint.checker import Checker
from mblint.cli.check_run import exit_code, report
from mblint.cli.common_run import with_arguments
from mblint.cli.helper_fixes import MOST_LAUNCHES, Users, is_named, planned_in_helpers
from mblint.cli.options import wants_color
from mblint.evaluate.modules import Module
from mblint.files import is_launch_file
from mblint.findings import Finding, TextEdit
from mblint.fix.apply import apply_edits, unified_diff
from mblint.fix.edits import with_edits
from mblint.fix.prove import FixRun
from mblint.fix.scope import Scope, dependents, reached
from mblint.fix.write import NewText, read_source, write_files
from mblint.fixing import FileFixer
from mblint.launch.run import Launch
from mblint.launch.session import with_deep_stack
from mblint.report.model import count_of
from mblint.reporting import Sources
from mblint.shown import shown_path
from mblint.verdict import Checked

if TYPE_CHECKING:
    from mblint.settings_file import Loaded

IDLE_COMMENT = "MB903"


def run_fixes(args: argparse.Namespace, loaded: Loaded, checker: Checker, checked: Checked, files: Sequence[Path]) -> int:
    """Fix file by file, show or write the result, then report what remains."""
    session = checker.session
    removed = _remove_idle_comments(args, loaded, checker, checked, files)
    runs: dict[str, FixRun] = {}
    digests: dict[str, str] = {}
    originals: dict[str, str] = {}

    def fix() -> None:
        scope = scope_of(args, loaded, checker, checked)
        sources = Sources(session)
        helpers = {planned.path for planned in planned_in_helpers(checked, checker, sources) if is_named(args, planned.path)}
        users = dependents(session, [*scope.recipes, *helpers])
        reach = {path: reached(scope, session, path, users, sources) for path in {*fixable_files(checker, checked, sources), *helpers}}
        everyone = Users(loaded, checker) if helpers else None
        reach.update({path: everyone.added(path, reach[path]) for path in helpers} if everyone is not None else {})
        held: dict[str, str] = {}
        # Helpers first, then recipes: what is mended there need not be mended in each recipe or script that uses them.
        for path in sorted(reach, key=lambda path: (not path.endswith(".py"), path not in helpers, path)):
            digests[path] = read_source(path).digest
            shared = path in helpers and reach[path].size <= MOST_LAUNCHES
            fixer = fixer_of(args, loaded, checker, path, reach[path], held, helpers=shared)
            originals[path] = fixer.original
            runs[path] = fixer.fixed(args.unsafe_fixes, lambda finding: _selected(checker, finding))
            if runs[path].applied:
                held[path] = runs[path].sources[path]

    with_deep_stack(fix)
    open_choices = _choices(runs, checked)
    changed = {path: run for path, run in runs.items() if run.applied}
    if args.diff:
        color = wants_color(args.color, sys.stdout)
        for path, run in changed.items():
            sys.stdout.write(unified_diff(path, originals[path], run.sources[path], root=str(loaded.root), color=color))
        count = sum(len(run.applied) for run in changed.values()) + sum(removed.values())
        sys.stderr.write(f"{count_of(count, 'fix')} would be applied in {count_of(len({*changed, *removed}), 'file')}\n")
        _explain(args, loaded, runs)
        _say_choices(args, open_choices)
        return 1 if changed or removed else 0
    written = write_files([NewText(path, run.sources[path], digests[path]) for path, run in changed.items()], str(loaded.root))
    refused = [entry for entry in written if entry.refused]
    for entry in refused:
        sys.stderr.write(f"mblint: not written: {entry.refused}\n")
    failed = {entry.path for entry in refused}
    count = sum(len(run.applied) for path, run in changed.items() if path not in failed)
    if args.show_fixes:
        for path, run in changed.items():
            for applied in run.applied:
                sys.stderr.write(f"{shown_path(path, str(loaded.root))}: {applied.finding.rule} {applied.fix.title}\n")
    count += sum(removed.values())
    if count and args.quiet < 1:
        sys.stderr.write(f"{count_of(count, 'fix')} applied in {count_of(len({*changed, *removed} - failed), 'file')}\n")
    _explain(args, loaded, runs)
    _say_choices(args, open_choices)
    session.reread()
    from mblint.cli.check_run import check_paths
    from mblint.cli.common_run import existing

    again, files = check_paths(args, loaded, checker, existing(args.paths or ["."]))
    if args.fix_only:
        return exit_code(args, loaded, []) if not refused else 1
    return report(args, loaded, session, again, checker, files)


def _explain(args: argparse.Namespace, loaded: Loaded, runs: Mapping[str, FixRun]) -> None:
    """Say which fixes stayed out, and why."""
    if not args.show_fixes and not args.verbose:
        return
    for path, run in runs.items():
        for left in run.left:
            line = f"{shown_path(path, str(loaded.root))}: {left.finding.rule} {left.fix.title}: not applied: {left.reason}"
            sys.stderr.write(f"{line}\n")


def _choices(runs: Mapping[str, FixRun], checked: Checked) -> int:
    """How many findings have several ways out: of the fixed files after fixing, of all others as they were."""
    seen = [finding for run in runs.values() for finding in run.findings]
    launches = {finding.launch for finding in seen}
    seen += [finding for verdict in checked.verdicts for finding in verdict.findings if finding.launch not in launches]
    return len({(finding.rule, finding.launch, finding.span) for finding in seen if len(finding.ways) > 1})


def _say_choices(args: argparse.Namespace, count: int) -> None:
    if count and args.quiet < 1:
        verb = "has" if count == 1 else "have"
        sys.stderr.write(f"{count_of(count, 'finding')} {verb} several ways out: the choice is yours\n")


def fixer_of(
    args: argparse.Namespace, loaded: Loaded, checker: Checker, path: str, scope: Scope, held: Mapping[str, str], helpers: bool = False
) -> FileFixer:
    """A fixer of one file, with what the arguments and settings say of every launch."""
    return FileFixer(
        checker,
        lambda launch: with_arguments(args, loaded, launch),
        loaded.root,
        path,
        scope,
        shown=lambda findings, text_of: _shown(args, loaded, checker, findings, text_of),
        held=held,
        recipe=args.of,
        helpers=helpers,
    )


def scope_of(args: argparse.Namespace, loaded: Loaded, checker: Checker, checked: Checked) -> Scope:
    """Everything that the run judges, by its file."""
    from mblint.cli.check_run import collect
    from mblint.cli.common_run import existing

    found = collect(args, loaded, checker, existing(args.paths or ["."]))
    recipes: dict[str, list[str]] = {}
    for verdict in checked.verdicts:
        module = checker.session.modules.loaded.get(verdict.recipe.partition(":")[0])
        if isinstance(module, Module) and verdict.recipe not in recipes.get(module.path, ()):
            recipes.setdefault(module.path, []).append(verdict.recipe)
    described: dict[str, list[Launch]] = {}
    for path, launch in found.described:
        described.setdefault(path, []).append(launch)
    for finding in checked.file_findings:
        if finding.span is not None and is_launch_file(Path(finding.span.path)):
            described.setdefault(finding.span.path, [])
    return Scope(recipes, found.rows, described)


def fixable_files(checker: Checker, checked: Checked, sources: Sources) -> list[str]:
    """The files that edits of the findings' fixes change."""
    findings = [*checked.file_findings, *(finding for verdict in checked.verdicts for finding in with_edits(verdict, sources))]
    paths = {edit.span.path for finding in findings for fix in finding.fixes for edit in fix.edits if finding.rule != IDLE_COMMENT}
    return sorted(path for path in paths if checker.session.in_project(path))


def _shown(
    args: argparse.Namespace, loaded: Loaded, checker: Checker, findings: Sequence[Finding], text_of: Callable[[str], str | None]
) -> Sequence[Finding]:
    """What is not held back by a comment, a setting or the baseline: nothing else is fixed."""
    from mblint.cli.adopt_run import known_findings
    from mblint.reporting import not_held_back

    kept = not_held_back(findings, text_of, checker.all_rules, loaded.root, checker.select, loaded.settings.per_file_ignores)
    kept = [finding for finding in kept if not finding.older]
    known = known_findings(args, loaded, checker)
    return kept if known is None else known(kept, set(), set())[0]


def _remove_idle_comments(
    args: argparse.Namespace, loaded: Loaded, checker: Checker, checked: Checked, files: Sequence[Path]
) -> dict[str, int]:
    """Take out the ignore comments that suppress nothing, or show that as a diff; how many in which file."""
    from mblint.reporting import build_report

    result = build_report(
        checked, checker.all_rules, checker.session, loaded.root,
        active=checker.select, per_file_ignores=loaded.settings.per_file_ignores, files=files,
    )  # fmt: skip
    edits: dict[str, list[TextEdit]] = {}
    for finding in result.findings:
        if finding.rule == IDLE_COMMENT and finding.fixes and finding.span is not None and checker.session.in_project(finding.span.path):
            edits.setdefault(finding.span.path, []).extend(finding.fixes[0].edits)
    if not edits:
        return {}
    new: list[NewText] = []
    for path, wanted in sorted(edits.items()):
        source = read_source(path)
        text = apply_edits(path, source.text, wanted)
        new.append(NewText(path, text, source.digest))
        if args.diff:
            color = wants_color(args.color, sys.stdout)
            sys.stdout.write(unified_diff(path, source.text, text, root=str(loaded.root), color=color))
    if not args.diff:
        for entry in write_files(new, str(loaded.root)):
            if entry.refused:
                sys.stderr.write(f"mblint: not written: {entry.refused}\n")
                edits.pop(entry.path, None)
        checker.session.reread()
    return {path: len(wanted) for path, wanted in edits.items()}


def _selected(checker: Checker, finding: Finding) -> bool:
    return checker.select(finding.rule, finding.name)
