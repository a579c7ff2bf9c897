"""The diagnostic format of reviewdog (rdjson)."""

from __future__ import annotations

from typing import Any, TextIO

from mblint.fix.text import Text
from mblint.read.span import Span
from mblint.report.concise import text_of
from mblint.report.model import Group, Report, groups, is_fixable
from mblint.report.stream import emit_json
from mblint.shown import neutral, relative

SEVERITIES = {"error": "ERROR", "warning": "WARNING", "advice": "INFO"}


def render(report: Report, out: TextIO) -> None:
    """Write one document; columns count bytes of UTF-8, as the format wants it, and keys are the names in its definition."""
    texts: dict[str, Text | None] = {}
    emit_json(
        out,
        {
            "source": {"name": "mblint"},
            "diagnostics": [_diagnostic(report, group, texts) for group in groups(report)],
        },
    )


def _diagnostic(report: Report, group: Group, texts: dict[str, Text | None]) -> dict[str, Any]:
    finding = group.finding
    entry: dict[str, Any] = {
        "message": text_of(group),
        "severity": SEVERITIES[finding.severity],
        "code": {"value": finding.rule, **({"url": finding.help_url} if finding.help_url else {})},
        "location": {"path": "."},
    }
    place = report.place_of(finding)
    if place is not None:
        entry["location"] = _location(report, place, texts)
    if finding.related:
        entry["related_locations"] = [
            {"message": neutral(related.message), "location": _location(report, related.span, texts)} for related in finding.related
        ]
    if is_fixable(finding):
        own = finding.span.path if finding.span is not None else None
        edits = [edit for edit in finding.fixes[0].edits if edit.span.path == own]
        if len(edits) == len(finding.fixes[0].edits):  # suggestions are for the diagnostic's own file
            entry["suggestions"] = [{"range": _range(report, edit.span, texts), "text": edit.text} for edit in edits]
    return entry


def _location(report: Report, span: Span, texts: dict[str, Text | None]) -> dict[str, Any]:
    return {"path": relative(span.path, report.top_folder), "range": _range(report, span, texts)}


def _range(report: Report, span: Span, texts: dict[str, Text | None]) -> dict[str, Any]:
    if span.path not in texts:
        source = report.source(span.path)
        texts[span.path] = Text(span.path, source) if source is not None else None
    text = texts[span.path]
    found: dict[str, Any] = {"start": {"line": span.line, "column": _bytes(text, span.line, span.column)}}
    if span.end_line >= span.line:
        found["end"] = {"line": span.end_line, "column": _bytes(text, span.end_line, span.end_column)}
    return found


def _bytes(text: Text | None, line: int, column: int) -> int:
    if text is None or not 1 <= line <= text.line_count:
        return max(column, 1)
    return len(text.line(line)[: max(column, 1) - 1].encode("utf-8", "surrogatepass")) + 1
