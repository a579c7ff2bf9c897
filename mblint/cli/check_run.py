"""The work of `mblint check`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mblint.checker import Checker, unreadable
from mblint.cli.common_run import existing, nothing_found, open_session, uses_cache, with_arguments
from mblint.cli.review_run import mark_older, open_review, prepare
from mblint.cli.seen_fixes import WITH_EDITS, seen_fixes, sees_every_fix, without_other_fixes
from mblint.cli.stdin import named_file, put_in_place
from mblint.errors import UserError
from mblint.evaluate.modules import SourceError
from mblint.files import launch_files, may_concern, source_files
from mblint.findings import SEVERITY_ORDER, Finding
from mblint.fix.edits import with_edits
from mblint.launch.lines import read_launches
from mblint.launch.run import Launch
from mblint.launch.session import Session
from mblint.read.span import Span
from mblint.reporting import Sources
from mblint.ruleset.load import load_rules
from mblint.selection import Selection
from mblint.shown import neutral
from mblint.verdict import Checked, Verdict
from mblint.workers import spread

if TYPE_CHECKING:
    from mblint.cache.results import Remembered, Results
    from mblint.review.base import Review
    from mblint.settings_file import Loaded


def run(args: argparse.Namespace) -> int:
    """Judge what the arguments name, report, and return the exit code."""
    if args.launches:
        return _check_launches(args)
    from_stdin = args.paths == ["-"]
    paths = [named_file(args.stdin_filename)] if from_stdin else existing(args.paths or ["."])
    loaded, session = open_session(args, paths)
    if from_stdin:
        put_in_place(session, paths[0])
    checker = checker_of(args, loaded, session, "plan")
    review = open_review(args, loaded, checker, paths)
    checked, files = check_paths(args, loaded, checker, paths, review)
    if not checked.verdicts and not checked.file_findings:
        if args.allow_empty:
            return 0
        raise nothing_found(paths)
    if args.fix or args.fix_only or args.diff:
        from mblint.cli.fix_run import run_fixes

        return run_fixes(args, loaded, checker, checked, files)
    if wants_edits(args) and not session.modules.overlay and any(finding.fixes for finding in checked.findings):
        from mblint.cli.proven_edits import with_proven_edits

        checked = with_proven_edits(args, loaded, checker, checked)
    if not session.modules.overlay and any(finding.fixes for finding in checked.findings):
        from mblint.cli.helper_fixes import with_helper_fixes

        checked = with_helper_fixes(args, loaded, checker, checked, files)
    return report(args, loaded, session, checked, checker, files)


def wants_edits(args: argparse.Namespace) -> bool:
    """Whether somebody will see the edits of all fixes."""
    formats = {args.format, *(name for name, _ in args.output)}
    return bool(formats & WITH_EDITS)


def checker_of(args: argparse.Namespace, loaded: Loaded, session: Session, fixes: Literal["none", "by-value", "plan"] = "none") -> Checker:
    """A checker with the selected rules."""
    settings = loaded.settings
    rules = load_rules([loaded.root / path for path in settings.extend_rules])
    select = Selection(rules, settings.profile, settings.select, settings.extend_select, settings.ignore)
    return Checker(session, rules, select, fixes, estimate=settings.estimate is not False)


def _check_launches(args: argparse.Namespace) -> int:
    launches = read_launches(args.launches)
    if not launches:
        raise UserError(f"--launches {args.launches}: no launch in it", "one JSON object a line", exit_code=4)
    paths = existing(args.paths) if args.paths else []
    loaded, session = open_session(args, paths)
    checker = checker_of(args, loaded, session)
    complete = [with_arguments(args, loaded, launch) for launch in launches]
    review = open_review(args, loaded, checker, paths)
    if review is not None:
        from mblint.launch.session import with_deep_stack

        change = review
        with_deep_stack(lambda: prepare(change, checker, complete))
    # Launches of one recipe are judged by one process, so that the recipe is evaluated once.
    order = sorted(range(len(complete)), key=lambda index: (complete[index].recipe or "", index))

    def work(part: Sequence[int]) -> list[tuple[int, Verdict]]:
        if review is not None:
            review.ensure(checker, [complete[index] for index in part])
        return [(index, checker.judge_launch(complete[index], complete[index].id)) for index in part]

    judged = dict(spread(order, work, args.jobs))
    verdicts = [judged[index] for index in range(len(complete))]
    if args.format == "json":
        from mblint.report.launches import launches_report

        json.dump(launches_report(verdicts), sys.stdout, default=str)
        sys.stdout.write("\n")
        return exit_code(args, loaded, [finding for verdict in verdicts for finding in verdict.findings])
    return report(args, loaded, session, Checked(verdicts=verdicts), checker)


@dataclass
class Collected:
    """The launches below some paths, complete: every recipe as it is, then the `rows` that the settings list."""

    launches: list[Launch] = field(default_factory=list)
    rows: list[Launch] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    problems: list[Finding] = field(default_factory=list)
    known: list[tuple[str, Remembered]] = field(default_factory=list)
    """Files (real paths) whose verdicts of an earlier run still hold."""
    fresh: list[tuple[str, list[str]]] = field(default_factory=list)
    """Files (real paths) without such, and their recipes."""
    described: list[tuple[str, Launch]] = field(default_factory=list)
    """Those of the launches that a script or YAML file describes, with its real path."""
    without: list[Path] = field(default_factory=list)
    """Scripts and YAML files that were named themselves, and hold no launch."""

    @property
    def plain(self) -> int:
        """How many of the launches, the first ones, are recipes as they are."""
        return len(self.launches) - len(self.rows) - len(self.described)


def collect(args: argparse.Namespace, loaded: Loaded, checker: Checker, paths: list[Path], results: Results | None = None) -> Collected:
    """Find all launches below the paths, in the sources that the session has now."""
    from mblint.cli.matrix import settings_launches
    from mblint.crash import internal_finding

    found = Collected()
    names: list[str] = []
    session = checker.session
    for path, named in source_files(paths, loaded.settings.exclude, loaded.root, session.modules.overlay):
        # Hooks name every file that changed; those that cannot hold a recipe are not theirs to complain about.
        if (not named or getattr(args, "allow_empty", False)) and not may_concern(path, session.modules.overlay):
            continue
        found.files.append(path)
        held = results.find(path) if results is not None else None
        if held is not None:
            real = os.path.realpath(path)
            session.place(real)
            found.known.append((real, held))
            names += held.recipes
            continue
        try:
            recipes = [name for name, _ in checker.recipes_of(path)]
        except SourceError as error:
            found.problems.append(unreadable(error))
            continue
        except UserError:
            raise
        except Exception as failure:  # a fault of ours costs one file, not the run
            found.problems.append(internal_finding(failure, "read this file", whole_file(path)))
            continue
        found.fresh.append((os.path.realpath(path), recipes))
        names += recipes
    found.launches = [with_arguments(args, loaded, Launch(name)) for name in names]
    if any(path.is_dir() for path in paths):
        # Single files, as a hook names them, are judged by themselves.
        found.rows = [with_arguments(args, loaded, row) for row in settings_launches(loaded, session, names)]
        found.launches += found.rows
    described_launches(args, loaded, checker, paths, found)
    return found


def check_paths(
    args: argparse.Namespace, loaded: Loaded, checker: Checker, paths: list[Path], review: Review | None = None
) -> tuple[Checked, list[Path]]:
    """Judge every recipe below the paths, against the base of a change if one is under review; the files that were looked at."""
    from mblint.launch.session import with_deep_stack

    results = None if review is not None else results_of(args, loaded, checker)
    found = with_deep_stack(lambda: collect(args, loaded, checker, paths, results))
    if found.launches or found.problems:
        note_without(args, found.without)
    checked = Checked(file_findings=found.problems)
    launches = found.launches
    if review is not None:
        with_deep_stack(lambda: prepare(review, checker, launches, found.rows, found.described))
        if review.judged:
            checked.file_findings = [mark_older(review, finding, of_file=True) for finding in checked.file_findings]
    remembered = {name: verdict for _, held in found.known for name, verdict in held.results.items()}
    judged: dict[int, Verdict | None] = {
        index: remembered[launch.recipe or ""] for index, launch in enumerate(launches[: found.plain]) if launch.recipe in remembered
    }
    missing = [index for index in range(len(launches)) if index not in judged]

    checker.later = True  # who sees which fixes is known when all launches are judged
    sources = Sources(checker.session)
    every = sees_every_fix(args, loaded, checker)

    def judge(index: int) -> Verdict | None:
        return written(judged_one(checker, launches[index]), sources, every)

    late: set[int] = set()

    def spread_over(indexes: Sequence[int], work: Callable[[int], Verdict | None]) -> None:
        if results is not None:
            made = dict(zip(indexes, results.spread(indexes, work, args.jobs), strict=True))
            judged.update({index: verdict for index, (verdict, _) in made.items()})
            late.update(index for index, (_, lasts) in made.items() if not lasts)
            return

        def part(indexes: Sequence[int]) -> list[Verdict | None]:
            if review is not None:
                review.ensure(checker, [launches[index] for index in indexes])
            return [work(index) for index in indexes]

        judged.update(zip(indexes, spread(indexes, part, args.jobs), strict=True))

    spread_over(missing, judge)
    seen = seen_fixes(judged, every)
    unproven = {index: verdict.unproven & seen[index] for index, verdict in judged.items() if verdict is not None}
    wanted = {index: positions for index, positions in unproven.items() if positions}

    def prove(index: int) -> Verdict | None:
        verdict = judged[index]
        assert verdict is not None
        return written(checker.prove(launches[index], verdict, wanted[index]), sources, every)

    if wanted:
        spread_over(sorted(wanted), prove)
    checker.later = False
    if results is not None:
        remember(results, found, late, judged, {launches[index].recipe for index in wanted})
    judged = {index: without_other_fixes(verdict, seen[index]) for index, verdict in judged.items()}
    checked.verdicts = [verdict for index in range(len(launches)) if (verdict := judged[index]) is not None]
    checked.files = len(found.files)
    return checked, found.files


def note_without(args: argparse.Namespace, files: Sequence[Path]) -> None:
    """Say of files that were named beside others that they were not judged; hooks name whatever changed."""
    if not files or args.quiet or getattr(args, "allow_empty", False):
        return
    from mblint.cli.named_launch import no_launch

    for path in files:
        print(f"mblint: {neutral(no_launch(path))}", file=sys.stderr)


def judged_one(checker: Checker, launch: Launch) -> Verdict | None:
    """The verdict of a launch; None for a function that only looked like a recipe."""
    return checker.judge_launch(launch, launch.id) if launch.spec is not None else checker.judge_recipe(launch.recipe or "", launch)


def written(verdict: Verdict | None, sources: Sources, every: bool) -> Verdict | None:
    """The verdict with the edits of those fixes that `--fix` would apply: whether there are any is told in every report. Of
    `every` fix, where all of them are seen."""
    return None if verdict is None else replace(verdict, findings=with_edits(verdict, sources, safe_only=not every))


def results_of(args: argparse.Namespace, loaded: Loaded, checker: Checker) -> Results | None:
    """The memory of earlier runs, where this run may use it: files as they are on disk, and nothing under review."""
    if not uses_cache(args, loaded) or checker.session.modules.overlay or args.fix or args.fix_only or args.diff:
        return None
    from mblint.cache.results import Results

    settings = loaded.settings
    packs = [(rule.id, rule.path, sorted(rule.data.items(), key=str)) for rule in checker.all_rules if settings.extend_rules]
    given = (sorted(args.set), args.world_size, args.gpu, checker.fixes, checker.lone_proven, str(loaded.root), Path.cwd())
    return Results(checker.session, (replace(settings, cache=True), given, packs))


def remember(
    results: Results, found: Collected, late: Collection[int], judged: Mapping[int, Verdict | None], changed: Collection[str | None]
) -> None:
    """Keep the verdicts of the files that were judged now, and of those in which something was proven now: the recipes in
    `changed`; `late` are the launches that a budget of time ended."""
    from mblint.cache.results import Remembered

    kept = []
    index_of = {launch.recipe: index for index, launch in enumerate(found.launches[: found.plain])}
    files = [(path, Remembered(tuple(recipes), {})) for path, recipes in found.fresh]
    files += [(path, held) for path, held in found.known if not set(changed).isdisjoint(held.recipes)]
    for path, held in files:
        own = {name: index_of[name] for name in held.recipes}
        if all(index not in late and not _failed_inside(judged[index]) for index in own.values()):
            kept.append((path, Remembered(held.recipes, {name: judged[index] for name, index in own.items()}, held.paths)))
    if kept:
        results.keep(kept)


def _failed_inside(verdict: Verdict | None) -> bool:
    return verdict is not None and any(finding.rule == "MB900" for finding in verdict.findings)


def described_launches(args: argparse.Namespace, loaded: Loaded, checker: Checker, paths: Sequence[Path], found: Collected) -> None:
    """Add the launches of scripts and YAML files below the paths, and what is found in their own text."""
    from mblint.cli.named_launch import overridden_recipe
    from mblint.crash import internal_finding

    named = {str(path) for path in paths if not path.is_dir()}
    recipe = overridden_recipe(checker.session, getattr(args, "of", None))
    for path in launch_files(paths, loaded.settings.exclude, loaded.root, checker.session.modules.overlay):
        from mblint.launch.from_files import launches_of_file  # the readers of shell and YAML, where there is such a file

        try:
            file = launches_of_file(checker.session, path, loaded.root, recipe, named=str(path) in named)
        except UserError:
            raise
        except Exception as failure:
            found.problems.append(internal_finding(failure, "read this file", whole_file(path)))
            continue
        if file is None and str(path) in named:
            found.without.append(path)
        if file is not None:
            found.files.append(path)
            found.problems += [finding for finding in file.findings if checker.select(finding.rule, finding.name)]
            complete = [with_arguments(args, loaded, launch) for launch in file.launches]
            found.launches += complete
            found.described += [(file.path, launch) for launch in complete]


def whole_file(path: Path) -> Span:
    """The place of what concerns a file as a whole."""
    return Span(os.path.realpath(path), 1, 1, 1, 1)


def exit_code(args: argparse.Namespace, loaded: Loaded, findings: Sequence[Finding]) -> int:
    """0 or 1 by severity, 3 when a rule or file failed inside mblint."""
    if any(finding.rule == "MB900" for finding in findings):
        return 3
    fail_on = loaded.settings.fail_on
    if args.exit_zero or fail_on == "never":
        return 0
    bar = SEVERITY_ORDER[fail_on]
    return int(any(SEVERITY_ORDER[finding.severity] >= bar for finding in findings))


def report(
    args: argparse.Namespace, loaded: Loaded, session: Session, checked: Checked, checker: Checker, files: Sequence[Path] = ()
) -> int:
    """Write the reports in the wanted formats and return the exit code."""
    from mblint.cli.adopt_run import add_ignores, known_findings, settle
    from mblint.reporting import build_report

    settings = loaded.settings
    review = checker.review if args.new_only else None
    known = known_findings(args, loaded, checker)
    result = build_report(
        checked,
        checker.all_rules,
        session,
        loaded.root,
        active=checker.select,
        per_file_ignores=settings.per_file_ignores,
        keep=lambda finding: review is None or not mark_older(review, finding).older,
        known=known,
        files=files,
        edits=wants_edits(args),
        docs_url=settings.docs_url,
    )
    if args.write_baseline is not None and known is not None:
        return settle(args, known)
    if args.add_ignores:
        return add_ignores(args, loaded, checker, result)
    if not args.fix_only:
        _write(args, result)
    if known is not None:
        settle(args, known)
    return exit_code(args, loaded, result.findings)


def _write(args: argparse.Namespace, result: Any) -> None:
    from mblint.cli.options import wants_color
    from mblint.report.formats import FOR_PEOPLE, renderer

    for name, path in args.output:
        try:
            with open(path, "w", encoding="utf-8", newline="\n") as handle:
                renderer(name)(result, handle)
        except OSError as error:
            raise UserError(f"--output {name}={path}: cannot be written: {error.strerror or error}", "name another file") from None
    if args.quiet > 1:
        return
    if args.statistics:
        from mblint.report.statistics import render_statistics

        render_statistics(result, sys.stdout)
        return
    name = args.format or ("github" if os.environ.get("GITHUB_ACTIONS") == "true" else "full")
    if name in FOR_PEOPLE:
        renderer(name)(result, sys.stdout, color=wants_color(args.color, sys.stdout), verbose=bool(args.verbose))  # type: ignore[call-arg]
    else:
        renderer(name)(result, sys.stdout)


__all__: list[Any] = ["check_paths", "run"]
