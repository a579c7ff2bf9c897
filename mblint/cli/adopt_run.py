"""The work of `mblint check --write-baseline` and `--add-ignores`, and what a baseline does to a check."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from mblint.adopt import CHANGE_RULES, Known, load
from mblint.baseline import FILE_NAME
from mblint.shown import shown_path

if TYPE_CHECKING:
    from mblint.checker import Checker
    from mblint.report.model import Report
    from mblint.settings_file import Loaded


def known_findings(args: argparse.Namespace, loaded: Loaded, checker: Checker) -> Known | None:
    """The baseline of this run, None where there is none. Raises UserError for one that cannot be read."""
    writes = args.write_baseline is not None
    named = args.write_baseline or args.baseline or loaded.settings.baseline
    if args.baseline == "none" and not args.write_baseline:
        if not writes:
            return None
        named = loaded.settings.baseline
    given = args.write_baseline or args.baseline
    path = Path(given) if named and named == given else loaded.root / (named or FILE_NAME)
    if not writes and not named and not path.exists():
        return None
    areas = {rule.id: rule.area for rule in checker.all_rules}
    names = {rule.id: rule.name for rule in checker.all_rules}
    return Known(
        path=path,
        root=str(loaded.root),
        whole=not args.launches and any(Path(item).resolve() == loaded.root.resolve() for item in args.paths or ["."]),
        active=lambda rule: checker.select(rule, names.get(rule, "")),
        lasting=lambda finding: areas.get(finding.rule) != CHANGE_RULES,
        entries=load(path, must_exist=not writes),
    )


def settle(args: argparse.Namespace, known: Known) -> int:
    """Write the baseline, or take out what matches nothing any more; says so in one line. Returns the exit code."""
    shown = shown_path(str(known.path.absolute()), known.root)
    if args.write_baseline is not None:
        total, added = known.write()
        if args.quiet < 2:
            sys.stderr.write(f"{shown}: {total} findings are accepted, {added} of them new, {len(known.stale)} that are gone taken out\n")
        return 0
    if not known.stale:
        return 0
    if _is_plain_run(args):
        count = known.shrink()
        note = f"{count} entries match nothing any more and were taken out"
    else:
        note = f"{len(known.stale)} entries match nothing any more; --write-baseline takes them out"
    if args.quiet < 1:
        sys.stderr.write(f"{shown}: {note}\n")
    return 0


def _is_plain_run(args: argparse.Namespace) -> bool:
    """Whether the run judges launches as they are, and by somebody who can commit the file."""
    changed = args.set or args.world_size or args.gpu or args.launches or args.upstream or args.python or args.new_only or args.exclude
    return not changed and not os.environ.get("CI") and not os.environ.get("PRE_COMMIT")


def add_ignores(args: argparse.Namespace, loaded: Loaded, checker: Checker, report: Report) -> int:
    """Write the comments, and say how many findings are left. Returns the exit code."""
    from mblint.fix.write import NewText, SourceFile, read_source, write_files
    from mblint.ignores import add_ignores as insert

    sources: dict[str, SourceFile] = {}

    def text_of(path: str) -> str | None:
        if not checker.session.in_project(path):
            return None
        try:
            sources[path] = read_source(path)
        except (OSError, ValueError, LookupError, SyntaxError):
            return None
        return sources[path].text

    names = {rule.id: rule.name for rule in checker.all_rules}
    result = insert(report.findings, text_of, names, args.reason or "")
    new = [NewText(path, text, sources[path].digest) for path, text in result.texts.items() if text != sources[path].text]
    written = write_files(new, str(loaded.root))
    refused = {entry.path for entry in written if entry.refused}
    for entry in written:
        if entry.refused:
            sys.stderr.write(f"mblint: not written: {entry.refused}\n")
    done = sum(finding.span is not None and finding.span.path not in refused for finding in result.done)
    if args.quiet < 2:
        sys.stderr.write(f"{done} findings are ignored by comments now, in {len(new) - len(refused)} files\n")
        for why, count in sorted(Counter(why for _, why in result.left).items()):
            sys.stderr.write(f"{count} findings are left: {'it' if count == 1 else 'each'} {why}\n")
    return 1 if refused or result.left else 0
