"""The JSON that other programs read after `check --launches`: one object a launch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mblint.checker import Verdict
from mblint.findings import Finding, Fix
from mblint.read.span import Span


def launches_report(verdicts: Iterable[Verdict]) -> dict[str, Any]:
    """`{"launches": [...]}` as README describes it."""
    return {"launches": [launch_entry(verdict) for verdict in verdicts]}


def launch_entry(verdict: Verdict) -> dict[str, Any]:
    """One launch: verdict, findings, and what could not be decided."""
    return {
        "id": verdict.id,
        "recipe": verdict.recipe,
        "verdict": verdict.verdict,
        "findings": [finding_entry(finding) for finding in verdict.findings],
        "undecided": [{"rule": doubt.rule, "name": doubt.name, "because": doubt.because} for doubt in verdict.undecided],
    }


def finding_entry(finding: Finding) -> dict[str, Any]:
    """One finding with its places and fixes."""
    entry: dict[str, Any] = {
        "rule": finding.rule,
        "name": finding.name,
        "severity": finding.severity,
        "outcome": finding.outcome,
        "message": finding.message,
        "why": finding.why,
        "enforced_by": list(finding.enforced_by),
        "keys": finding.keys,
        "spans": [span_entry(place, text) for place, text in _places(finding)],
        "fixes": [fix_entry(fix) for fix in finding.fixes],
    }
    if finding.condition is not None:
        entry["condition"] = finding.condition
    return entry


def _places(finding: Finding) -> Iterable[tuple[Span, str]]:
    if finding.span is not None:
        yield finding.span, finding.message
    for related in finding.related:
        yield related.span, related.message


def span_entry(span: Span, text: str) -> dict[str, Any]:
    """A place: lines and columns count from 1, the end is exclusive."""
    return {
        "path": span.path,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line or span.line,
        "end_column": span.end_column or span.column,
        "message": text,
    }


def fix_entry(fix: Fix) -> dict[str, Any]:
    """A fix: changes are keys with their new values, null where the key is deleted."""
    from mblint.evaluate.unknown import Absent

    changes = {key: None if isinstance(value, Absent) else value for key, value in fix.changes.items()}
    return {"title": fix.title, "safety": fix.safety, "changes": changes, "cost": fix.cost}
