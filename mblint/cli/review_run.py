"""What `--base` adds to a check: the change under review, and which findings it made."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mblint.cli.common_run import with_arguments
from mblint.errors import SettingsError
from mblint.findings import Finding
from mblint.launch.run import Launch
from mblint.read.comments import read_directives
from mblint.review.base import Review
from mblint.review.base import same as says_the_same

if TYPE_CHECKING:
    from mblint.checker import Checker
    from mblint.launch.session import Session
    from mblint.settings_file import Loaded

ABOUT_COMMENTS = frozenset({"MB902", "MB903"})


def open_review(args: argparse.Namespace, loaded: Loaded, checker: Checker, paths: list[Path]) -> Review | None:
    """The change since `--base`, None without it. Raises GitError."""
    if not args.base:
        return None
    review = Review.open(paths[0] if paths else loaded.root, args.base)
    review.judged = bool(args.new_only)
    complete_with(review, args, loaded, checker, paths)
    return review


def complete_with(review: Review, args: argparse.Namespace, loaded: Loaded, checker: Checker, paths: list[Path]) -> None:
    """Tell a review what the command line adds to a launch, and which launches settings and files listed at the base."""
    review.complete = lambda launch: with_arguments(args, loaded, launch)

    def described() -> tuple[list[tuple[str, Launch]], list[Finding]]:
        from mblint.cli.check_run import Collected, described_launches

        found = Collected()
        described_launches(args, loaded, checker, paths, found)
        return found.described, found.problems

    review.described_before = described
    path = str(loaded.path.resolve()) if loaded.path is not None else None
    before = next((change.content for change in review.changes if path is not None and change.path == path), None)
    if path is None or loaded.path is None or path not in review.overlay:
        return
    if before is None:
        review.rows_before = lambda session, names: []
        return
    from mblint.settings_file import read_text

    try:
        old = read_text(before.decode("utf-8-sig", "replace").replace("\r\n", "\n"), loaded.path, loaded.root)
    except SettingsError:
        return
    if old.settings.launches == loaded.settings.launches:
        return

    def rows(session: Session, names: Sequence[str]) -> list[Launch]:
        from mblint.cli.matrix import settings_launches

        try:
            return settings_launches(old, session, names)
        except SettingsError:
            return []

    review.rows_before = rows


def prepare(
    review: Review,
    checker: Checker,
    launches: Sequence[Launch],
    rows: Sequence[Launch] = (),
    described: Sequence[tuple[str, Launch]] = (),
) -> None:
    """Find what the change reaches, and let the checker judge against it."""
    review.prepare(checker, launches, rows, described)
    checker.review = review


def mark_older(review: Review, finding: Finding, of_file: bool = False) -> Finding:
    """A finding about a file alone, marked where the base had it too: the file did not change, or the comment stood there.

    `of_file`: it is about the file's own text, although it names a launch.
    """
    if (finding.launch is not None and not of_file) or finding.older or finding.span is None:
        return finding
    if not review.changed(finding.span.path) or any(says_the_same(finding, other) for other in review.file_findings):
        return replace(finding, older=True)
    if finding.rule not in ABOUT_COMMENTS:
        return finding
    before = review.text_before(finding.span.path)
    if before is None:
        return finding
    now = review.text_now(finding.span.path)
    line = finding.span.line
    here = [d for d in read_directives(now, finding.span.path) if d.span.line == line]
    known = {(d.word, tuple(name for name, _ in d.ids)) for d in read_directives(before, finding.span.path)}
    return replace(finding, older=True) if here and all((d.word, tuple(n for n, _ in d.ids)) in known for d in here) else finding
