"""The work of `mblint report`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from mblint.checker import Checker
from mblint.cli.adopt_run import known_findings
from mblint.cli.check_run import checker_of, collect
from mblint.cli.common_run import existing, nothing_found, open_session
from mblint.cli.options import wants_color
from mblint.errors import UserError
from mblint.launch.run import Launch
from mblint.launch.session import with_deep_stack
from mblint.overview.gather import entry_of, reported
from mblint.overview.model import Entry, Overview
from mblint.reporting import build_report
from mblint.verdict import Checked, Verdict
from mblint.workers import spread

if TYPE_CHECKING:
    from mblint.settings_file import Loaded


def run(args: argparse.Namespace) -> int:
    """Judge everything below the paths, and write the report."""
    paths = existing(args.paths or ["."])
    loaded, session = open_session(args, paths)
    checker = checker_of(args, loaded, session, "by-value")
    overview = overview_of(args, loaded, checker, paths)
    if not overview.entries and not overview.report.findings:
        raise nothing_found(paths)
    if args.output is None:
        _write(args, overview, sys.stdout)
        return 0
    try:
        with open(args.output, "w", encoding="utf-8", newline="\n") as handle:
            _write(args, overview, handle)
    except OSError as error:
        raise UserError(f"--output {args.output}: {error.strerror or error}", "name a file in a folder that exists") from None
    if not args.quiet:
        from mblint.report.model import count_of

        print(f"{args.output}: {count_of(len(overview.entries), 'launch')}")
    return 0


def overview_of(args: argparse.Namespace, loaded: Loaded, checker: Checker, paths: Sequence[Path]) -> Overview:
    """Every launch below the paths, judged, with what the report keeps of its findings."""
    found = with_deep_stack(lambda: collect(args, loaded, checker, list(paths)))
    shown_root = _shown_root(loaded.root, paths)
    root = str(shown_root)

    def work(part: Sequence[Launch]) -> list[tuple[Verdict, Entry] | None]:
        return [entry_of(checker, launch, root) for launch in part]

    pairs = [pair for pair in spread(found.launches, work, args.jobs) if pair is not None]
    checked = Checked(verdicts=[verdict for verdict, _ in pairs], file_findings=found.problems, files=len(found.files))
    report = build_report(
        checked,
        checker.all_rules,
        checker.session,
        loaded.root,
        active=checker.select,
        per_file_ignores=loaded.settings.per_file_ignores,
        known=known_findings(_adoption(args), loaded, checker),
        files=found.files,
        edits=False,
        docs_url=loaded.settings.docs_url,
    )
    entries = tuple(replace(entry, findings=reported(entry.findings, report.findings)) for _, entry in pairs)
    return Overview(args.title or shown_root.name or "mblint", revision(shown_root), root, checker.session.upstream_roots, entries, report)


def _shown_root(root: Path, paths: Sequence[Path]) -> Path:
    """The project's root, or the folder that holds all paths where they lie outside of it."""
    here = root.resolve()
    folders = [path.resolve() if path.is_dir() else path.resolve().parent for path in paths]
    if all(folder.is_relative_to(here) for folder in folders):
        return here
    try:
        return Path(os.path.commonpath(folders))
    except ValueError:  # on several drives
        return here


def _adoption(args: argparse.Namespace) -> argparse.Namespace:
    """The options on adoption that `check` has and a report has not."""
    return argparse.Namespace(**{**vars(args), "write_baseline": None, "launches": None})


def revision(root: Path) -> str:
    """The commit that the folder is at, with "and local changes" where there are any; nothing where git knows none."""
    from mblint.review.git import GitError, Repository

    try:
        repository = Repository(root)
        head = repository.commit("HEAD")[:10]
        changed = repository.output("status", "--porcelain", "--untracked-files=no").strip()
    except GitError:
        return ""
    return f"{head} and local changes" if changed else head


def _write(args: argparse.Namespace, overview: Overview, out: TextIO) -> None:
    if args.format == "html":
        from mblint.report.overview_html import overview_html

        out.write(overview_html(overview))
    elif args.format == "json":
        from mblint.report.overview_json import overview_report

        json.dump(overview_report(overview), out, indent=1)
        out.write("\n")
    else:
        from mblint.report.overview_text import render

        render(overview, out, color=args.output is None and wants_color(args.color, out))
