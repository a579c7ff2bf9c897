"""The formats of `mblint diff`: text, Markdown for a comment on a pull request, JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TextIO

from mblint.report.markdown import code_cell, text_cell
from mblint.report.model import count_of
from mblint.report.stream import emit
from mblint.review.compare import DiffReport, LaunchDiff, Note, plain_value, shown
from mblint.shown import neutral, relative

MANY = 40
"""Keys of one launch that are listed; more are counted."""
COMMENT_BYTES = 60_000
"""GitHub refuses comments of more than 65,536 characters."""


def grouped(report: DiffReport) -> list[tuple[LaunchDiff, list[str]]]:
    """Launches that a change does the same to, shown once with all their names."""
    found: dict[str, tuple[LaunchDiff, list[str]]] = {}
    for diff in report.launches:
        before = diff.before_name if diff.status == "renamed" else None
        names = found.setdefault(repr(replace(diff, name="", before_name=before)), (diff, []))[1]
        if diff.name not in names:
            names.append(diff.name)
    return list(found.values())


def summary(report: DiffReport) -> str:
    """One line: how many recipes differ, and how."""
    parts = [f"{report.counts[kind]} {kind}" for kind in ("changed", "renamed", "new", "deleted") if report.counts.get(kind)]
    what = ", ".join(parts) if parts else "nothing changed"
    return f"{what}; {count_of(report.compared, 'launch')} compared, {report.before} -> {report.after}"


def render_text(report: DiffReport, out: TextIO, verbose: bool = False) -> None:
    """Plain text for a terminal."""
    for diff, names in grouped(report):
        for name in names:
            emit(out, neutral(name) + _tail(diff) + "\n")
        if diff.condition:
            emit(out, f"  if {neutral(diff.condition)}\n")
        _text_body(report, diff, out, verbose)
        emit(out, "\n")
    emit(out, summary(report) + ".\n")


def _tail(diff: LaunchDiff) -> str:
    if diff.status == "renamed":
        return f"  (was {neutral(diff.before_name or '')})"
    return f"  ({diff.status})" if diff.status in ("new", "deleted") else ""


def _text_body(report: DiffReport, diff: LaunchDiff, out: TextIO, verbose: bool) -> None:
    limit = len(diff.keys) if verbose else MANY
    width = max((len(change.key) for change in diff.keys[:limit]), default=0)
    for change in diff.keys[:limit]:
        line = f"  {change.key:<{width}}  {_arrow(change.before, change.after)}"
        if change.written is not None:
            line += f"  (written: {_arrow(*change.written)})"
        emit(out, neutral(line) + "\n")
    if len(diff.keys) > limit:
        emit(out, f"  ... and {len(diff.keys) - limit} more keys; -v lists them\n")
    for word, pairs in (("+", diff.added), ("-", diff.removed)):
        if report.between_releases and not verbose and pairs:
            emit(out, f"  {word} {len(pairs)} keys that only one release has; -v lists them\n")
            continue
        for key, value in pairs:
            emit(out, neutral(f"  {word} {key} = {shown(value)}") + "\n")
    for _, label, before, after in _moved(diff):
        emit(out, f"  {label}: {_arrow(before, after)}\n")
    if diff.verdict[0] != diff.verdict[1] and diff.status != "deleted":
        emit(out, f"  verdict: {diff.verdict[0] or '-'} -> {diff.verdict[1] or '-'}\n")
    for sign, notes in (("+", diff.appeared), ("-", diff.gone)):
        for note in notes:
            emit(out, neutral(f"  {sign} {note.severity} {note.rule} {note.name}: {note.message}") + "\n")


def _arrow(before: object, after: object) -> str:
    one, other = shown(before), shown(after)
    return one if one == other else f"{one} -> {other}"


def _moved(diff: LaunchDiff) -> list[tuple[str, str, object, object]]:
    """Derived values that are known on one side at least and differ."""
    return [entry for entry in diff.derived if shown(entry[2]) != shown(entry[3])]


def render_markdown(report: DiffReport, out: TextIO) -> None:
    """A comment for a pull request; what does not fit is counted."""
    title = (
        "mblint: what the new release changes in these recipes"
        if report.between_releases
        else "mblint: what this change does to the recipes"
    )
    text = f"### {title}\n\n{text_cell(summary(report))}.\n"
    left = 0
    for diff, names in grouped(report):
        block = _markdown_block(report, diff, names)
        if len(text) + len(block) > COMMENT_BYTES:
            left += len(names)
        else:
            text += block
    if left:
        text += f"\n{left} more launches do not fit here; `mblint diff` lists them.\n"
    emit(out, text)


def _markdown_block(report: DiffReport, diff: LaunchDiff, names: Sequence[str]) -> str:
    first = ", ".join(code_cell(name) for name in names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    if diff.status == "renamed":
        first += f" (was {code_cell(diff.before_name or '')})"
    elif diff.status in ("new", "deleted"):
        first += f" ({diff.status})"
    verdict = ""
    if diff.verdict[0] != diff.verdict[1] and diff.status not in ("new", "deleted"):
        verdict = f": **{diff.verdict[0] or '-'} → {diff.verdict[1] or '-'}**"
    lines = [f"\n#### {first}{verdict}\n"]
    if diff.condition:
        lines.append(f"if {code_cell(diff.condition)}\n")
    rows = [f"| {code_cell(c.key)} | {_cell(c.before)} | {_cell(c.after)} |" for c in diff.keys[:MANY]]
    if not report.between_releases:
        rows += [f"| {code_cell(key)} |  | {_cell(value)} |" for key, value in diff.added[:MANY]]
        rows += [f"| {code_cell(key)} | {_cell(value)} |  |" for key, value in diff.removed[:MANY]]
    rows += [f"| {text_cell(label)} | {_cell(before)} | {_cell(after)} |" for _, label, before, after in _moved(diff)]
    if rows:
        lines += ["| | before | after |", "|---|---|---|", *rows]
    cut = max(len(diff.keys) - MANY, 0)
    if cut:
        lines.append(f"\n{cut} more keys differ.")
    if report.between_releases and (diff.added or diff.removed):
        lines.append(f"\n{len(diff.added)} keys are new in the release, {len(diff.removed)} are gone.")
    lines += [
        f"- ❗ **{note.rule} {note.name}** ({note.severity}): {text_cell(note.message)}{_place(note, report.root)}"
        for note in diff.appeared
    ]
    lines += [f"- ✅ gone: {note.rule} {note.name}" for note in diff.gone]
    text = "\n".join(lines) + "\n"
    return text.replace("|\n- ", "|\n\n- ")


def _cell(value: object) -> str:
    return code_cell(shown(value)[:200])


def _place(note: Note, root: str) -> str:
    return "" if note.place is None else f" ({code_cell(f'{relative(note.place[0], root)}:{note.place[1]}')})"


def render_json(report: DiffReport, out: TextIO) -> None:
    """Everything, for programs; see docs/review.md."""
    data = {
        "version": 1,
        "before": report.before,
        "after": report.after,
        "compared": report.compared,
        "launches": [_entry(report, diff) for diff in report.launches],
    }
    json.dump(data, out, ensure_ascii=False, indent=1, sort_keys=False)
    out.write("\n")


def _entry(report: DiffReport, diff: LaunchDiff) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for change in diff.keys:
        entry: dict[str, Any] = {"before": plain_value(change.before), "after": plain_value(change.after)}
        if change.written is not None:
            entry["written"] = [plain_value(value) for value in change.written]
        keys[change.key] = entry
    return {
        "launch": diff.name,
        "status": diff.status,
        "was": diff.before_name,
        "condition": diff.condition,
        "keys": keys,
        "added": {key: plain_value(value) for key, value in diff.added},
        "removed": {key: plain_value(value) for key, value in diff.removed},
        "derived": {fact: {"before": plain_value(before), "after": plain_value(after)} for fact, _, before, after in diff.derived},
        "verdict": {"before": diff.verdict[0], "after": diff.verdict[1]},
        "appeared": [_note(note, report.root) for note in diff.appeared],
        "gone": [_note(note, report.root) for note in diff.gone],
    }


def _note(note: Note, root: str) -> dict[str, Any]:
    place = None if note.place is None else {"path": relative(note.place[0], root), "line": note.place[1]}
    return {"rule": note.rule, "name": note.name, "severity": note.severity, "message": note.message, "place": place}


__all__ = ["grouped", "render_json", "render_markdown", "render_text", "summary"]
