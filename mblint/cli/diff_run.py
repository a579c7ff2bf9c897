"""The work of `mblint diff`."""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mblint.cli.check_run import Collected, checker_of, collect
from mblint.cli.common_run import existing, open_session
from mblint.cli.review_run import complete_with
from mblint.errors import UserError
from mblint.launch.session import with_deep_stack
from mblint.review.compare import DiffReport, LaunchDiff, compare
from mblint.workers import spread

if TYPE_CHECKING:
    from mblint.checker import Checker
    from mblint.launch.run import Launch
    from mblint.settings_file import Loaded


def between_revisions(args: argparse.Namespace, first: str, second: str | None) -> int:
    """Compare every recipe that changed between a revision and another one, or the work tree."""
    from mblint.review.base import Review, key_of, resolve
    from mblint.review.git import Repository, overlay_of

    paths = existing(args.path or ["."])
    loaded, session = open_session(args, paths)
    checker = checker_of(args, loaded, session)
    repo = Repository(paths[0])
    old = repo.base(first)
    new = repo.commit(second) if second is not None else None
    to_old = repo.changes(old)
    changes = to_old if new is None else repo.changes(old, new)
    review = Review(repo, old, changes, judged=True, overlay=overlay_of(to_old))
    complete_with(review, args, loaded, checker, paths)
    here = session.at(overlay_of(repo.changes(new))) if new is not None else contextlib.nullcontext()
    with here:
        found = with_deep_stack(lambda: _launches(args, loaded, checker, paths))
        launches = found.launches
        with_deep_stack(lambda: review.prepare(checker, launches, found.rows, found.described))
        reached = [launch for launch in launches if key_of(launch) in review.affected]
        checker.review = review

        def work(part: Sequence[Launch]) -> list[LaunchDiff]:
            review.ensure(checker, part)
            diffs: list[LaunchDiff] = []
            for launch in part:
                before = review.affected[key_of(launch)]
                past = None if before is None else review.past[key_of(launch)]
                diffs += compare(_name(launch), _name(before) if before is not None else None, past, resolve(checker, launch, True))
            return diffs

        diffs = spread(reached, work, args.jobs)
        gone = [name for name in sorted(review.deleted) if _inside(review.deleted_files.get(name, ""), paths)]
    diffs += [LaunchDiff(name, "deleted", name) for name in gone]
    total = len(launches) + len(gone)
    names = (_label(first, old), "the work tree" if second is None or new is None else _label(second, new))
    return _report(args, loaded, DiffReport(*names, tuple(diffs), total, str(loaded.root)))


def between_releases(args: argparse.Namespace, first: str, second: str) -> int:
    """Compare every recipe as two upstream releases would run it."""
    from mblint.review.base import resolve

    paths = existing(args.path or ["."])
    sides: list[tuple[Loaded, Checker]] = []
    for version in (first, second):
        own = argparse.Namespace(**{**vars(args), "upstream": version})
        loaded, session = open_session(own, paths)
        sides.append((loaded, checker_of(own, loaded, session)))
    (loaded, before), (_, after) = sides
    launches = with_deep_stack(lambda: _launches(args, loaded, after, paths)).launches

    def work(part: Sequence[Launch]) -> list[LaunchDiff]:
        found: list[LaunchDiff] = []
        for launch in part:
            found += compare(_name(launch), _name(launch), resolve(before, launch, True), resolve(after, launch, True))
        return found

    diffs = spread(launches, work, args.jobs)
    names = (before.session.upstream.pair, after.session.upstream.pair)
    return _report(args, loaded, DiffReport(*names, tuple(diffs), len(launches), str(loaded.root), between_releases=True))


def _launches(args: argparse.Namespace, loaded: Loaded, checker: Checker, paths: list[Path]) -> Collected:
    found = collect(args, loaded, checker, paths)
    if not found.launches:
        raise UserError(f"no recipe found in {', '.join(map(str, paths))}", "name the folder or file with --path", exit_code=4)
    return found


def _name(launch: Launch) -> str:
    return f"{launch.recipe} ({launch.id})" if launch.id and launch.id != launch.recipe else launch.recipe or launch.id


def _label(given: str, commit: str) -> str:
    return commit[:10] if commit.startswith(given) else f"{given} ({commit[:10]})"


def _inside(file: str, paths: Sequence[Path]) -> bool:
    real = os.path.realpath(file)
    return any(real == (top := os.path.realpath(path)) or real.startswith(top + os.sep) for path in paths)


def _report(args: argparse.Namespace, loaded: Loaded, report: DiffReport) -> int:
    shown = tuple(diff for diff in (_only(diff, args.key) for diff in report.launches) if diff.differs)
    counts = Counter(diff.status for diff in shown)
    report = replace(
        report,
        launches=tuple(sorted(shown, key=lambda d: (d.name, d.condition or ""))),
        counts={str(kind): number for kind, number in counts.items()},
    )
    writer = _writer(args)
    if args.output:
        try:
            with open(args.output, "w", encoding="utf-8", newline="\n") as handle:
                writer(report, handle)
        except OSError as error:
            raise UserError(f"{args.output}: cannot be written: {error.strerror or error}", "name another file") from None
    else:
        writer(report, sys.stdout)
    return 0


def _only(diff: LaunchDiff, globs: Sequence[str]) -> LaunchDiff:
    if not globs:
        return diff

    def wanted(key: str) -> bool:
        return any(fnmatch.fnmatchcase(key, glob) for glob in globs)

    return replace(
        diff,
        keys=tuple(change for change in diff.keys if wanted(change.key)),
        added=tuple(pair for pair in diff.added if wanted(pair[0])),
        removed=tuple(pair for pair in diff.removed if wanted(pair[0])),
    )


def _writer(args: argparse.Namespace) -> Callable[[DiffReport, Any], None]:
    from mblint.report import diff

    if args.format == "json":
        return diff.render_json
    if args.format == "markdown":
        return diff.render_markdown
    return lambda report, out: diff.render_text(report, out, verbose=bool(args.verbose))
