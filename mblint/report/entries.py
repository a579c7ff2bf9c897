"""The JSON shape of findings, places and fixes, shared by the JSON format and the answers to `--launches`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mblint.findings import Finding, Fix, TextEdit
from mblint.fingerprint import fingerprint
from mblint.read.span import Span
from mblint.report.stream import json_value


def _same(path: str) -> str:
    return path


def finding_entry(finding: Finding, root: str = "", path_of: Callable[[str], str] = _same) -> dict[str, Any]:
    """One finding; `path_of` says how a path is written."""
    spans = [(finding.span, finding.message)] if finding.span is not None else []
    spans += [(related.span, related.message) for related in finding.related]
    return {
        "rule": finding.rule,
        "name": finding.name,
        "severity": finding.severity,
        "outcome": finding.outcome,
        "message": finding.message,
        "why": finding.why,
        "launch": finding.launch,
        "condition": finding.condition,
        "enforced_by": list(finding.enforced_by),
        "keys": json_value(finding.keys),
        "spans": [
            {**span_entry(span, path_of), "message": text, "primary": index == 0 and finding.span is not None}
            for index, (span, text) in enumerate(spans)
        ],
        "fixes": [fix_entry(fix, path_of) for fix in finding.fixes],
        "no_fix": finding.no_fix or None,
        "fingerprint": fingerprint(finding, root),
        "help_url": finding.help_url,
    }


def span_entry(span: Span, path_of: Callable[[str], str] = _same) -> dict[str, Any]:
    """A place: lines and columns count from 1 in characters; the end column is one past the last
    character.
    """
    return {
        "path": path_of(span.path),
        "line": span.line,
        "column": span.column,
        "end_line": max(span.line, span.end_line),
        "end_column": span.end_column if span.end_line >= 1 else span.column,
    }


def edit_entry(edit: TextEdit, path_of: Callable[[str], str] = _same) -> dict[str, Any]:
    return {**span_entry(edit.span, path_of), "text": edit.text}


def fix_entry(fix: Fix, path_of: Callable[[str], str] = _same) -> dict[str, Any]:
    """A fix; in `changes` null stands for a key that is taken out or set to None (`edits` are exact). `recipes` are the launches that an
    edit of a function changes which they share."""
    return {
        "title": fix.title,
        "safety": fix.safety,
        "cost": fix.cost,
        "changes": json_value(fix.changes),
        "edits": [edit_entry(edit, path_of) for edit in fix.edits],
        "recipes": list(fix.recipes),
    }
