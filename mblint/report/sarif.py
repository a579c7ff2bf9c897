"""SARIF 2.1.0, as code scanning services take it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO
from urllib.parse import quote

from mblint.findings import Finding, Fix
from mblint.fingerprint import fingerprint
from mblint.fix.text import Text
from mblint.read.span import Span
from mblint.report.model import Group, Report, groups
from mblint.report.stream import emit_json, json_value
from mblint.shown import relative

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "advice": "note"}
FINGERPRINT = "mblint/v1"
SOURCE_ROOT = "%SRCROOT%"
ABOUT = "https://github.com/mblint/mblint"
MAX_SNIPPET = 1000
"""Characters of the source that a result shows of its place."""

# What failed inside mblint is told as a notification of the run, not as a result about the code.
_NOTIFIED = {"MB900"}


def render(report: Report, out: TextIO, *, suppressed: bool = False) -> None:
    """Write the log. Suppressed findings are left out unless asked for: services open alerts for them."""
    emit_json(out, document(report, suppressed=suppressed))


def document(report: Report, *, suppressed: bool = False) -> dict[str, Any]:
    """The log as plain data."""
    shown = [group for group in groups(report) if group.finding.rule not in _NOTIFIED]
    failures = [finding for finding in report.findings if finding.rule in _NOTIFIED]
    held = sorted(report.suppressed, key=lambda e: (e.span, e.finding.rule)) if suppressed else []
    ids = sorted({group.finding.rule for group in shown} | {entry.finding.rule for entry in held})
    index = {rule: number for number, rule in enumerate(ids)}
    examples = {finding.rule: finding for finding in (*(g.finding for g in shown), *(e.finding for e in held))}
    texts: dict[str, Text | None] = {}
    results = [_result(report, group, index, texts) for group in shown]
    for entry in held:
        launches = (entry.finding.launch,) if entry.finding.launch else ()
        group = Group(entry.finding, launches, fingerprint(entry.finding, report.root))
        results.append(
            {
                **_result(report, group, index, texts),
                "suppressions": [
                    {
                        "kind": "inSource",
                        "justification": entry.reason or "no reason given",
                        "location": _location(report, entry.span),
                    }
                ],
            }
        )
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "mblint",
                "informationUri": ABOUT,
                **({"version": report.tool_version, "semanticVersion": report.tool_version} if report.tool_version else {}),
                "rules": [_rule(report, rule, examples[rule]) for rule in ids],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {SOURCE_ROOT: {"description": {"text": "The root of the checked project."}}},
        "invocations": [
            {
                "executionSuccessful": not failures,
                "toolExecutionNotifications": [_notification(report, finding) for finding in failures],
            }
        ],
        "results": results,
        "properties": {"upstream": dict(sorted(report.versions.items())), "launches": len(report.launches)},
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(report: Report, rule: str, example: Finding) -> dict[str, Any]:
    known = report.rules.get(rule)
    title = known.title if known else example.name.replace("-", " ")
    text = known.help if known and known.help else example.why or title
    entry: dict[str, Any] = {
        "id": rule,
        "name": "".join(part.capitalize() for part in example.name.split("-")),
        "shortDescription": {"text": title},
        "fullDescription": {"text": example.why or title},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": LEVELS[known.severity if known else example.severity]},
        "properties": {"tags": [example.outcome], "alias": example.name},
    }
    url = (known.help_url if known else None) or example.help_url
    if url:
        entry["helpUri"] = url
    return entry


def _result(report: Report, group: Group, index: dict[str, int], texts: dict[str, Text | None]) -> dict[str, Any]:
    finding = group.finding
    logical = [{"fullyQualifiedName": launch, "name": launch.rpartition(":")[2], "kind": "function"} for launch in group.launches]
    text = finding.message + (f" (when {finding.condition})" if finding.condition else "")
    entry: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index[finding.rule],
        "level": LEVELS[finding.severity],
        "message": {"text": text},
        "partialFingerprints": {FINGERPRINT: group.key},
        "properties": {
            "outcome": finding.outcome,
            "keys": json_value(finding.keys),
            "enforcedBy": list(finding.enforced_by),
        },
    }
    location = _own_location(report, finding, texts)
    if logical:
        location["logicalLocations"] = logical
    entry["locations"] = [location]
    if finding.related:
        entry["relatedLocations"] = [
            {"id": number, **_location(report, related.span, related.message)} for number, related in enumerate(finding.related)
        ]
    flow = _flow(report, finding)
    if flow:
        entry["codeFlows"] = flow
    fixes = [_fix(report, fix) for fix in finding.fixes if fix.edits]
    if fixes:
        entry["fixes"] = fixes
    return entry


def _own_location(report: Report, finding: Finding, texts: dict[str, Text | None]) -> dict[str, Any]:
    """Where the result is shown. One without a place stands at its launch, else at the root: code scanning refuses the whole
    log for one result that has no file.
    """
    span = report.place_of(finding)
    if span is None:
        return {"physicalLocation": {"artifactLocation": {"uri": ".", "uriBaseId": SOURCE_ROOT}, "region": {"startLine": 1}}}
    location = _location(report, span)
    if finding.span is not None:
        if span.path not in texts:
            source = report.source(span.path)
            texts[span.path] = Text(span.path, source) if source is not None else None
        text = texts[span.path]
        start, end = text.bounds(span) if text is not None else (0, 0)
        if text is not None and start < end <= start + MAX_SNIPPET:
            location["physicalLocation"]["region"]["snippet"] = {"text": text.text[start:end]}
    return location


def _flow(report: Report, finding: Finding) -> list[dict[str, Any]]:
    """How the values came about: the related writes in their order, then the place that is blamed."""
    if finding.span is None or not finding.related:
        return []
    steps = [(related.span, related.message) for related in finding.related]
    steps.append((finding.span, finding.message))
    locations = [{"location": _location(report, span, text)} for span, text in steps]
    return [{"threadFlows": [{"locations": locations}]}]


def _location(report: Report, span: Span, message: str | None = None) -> dict[str, Any]:
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": _artifact(report, span.path), "region": _region(span)}}
    if message:
        location["message"] = {"text": message}
    return location


def _artifact(report: Report, path: str) -> dict[str, Any]:
    short = relative(path, report.top_folder)
    if short.startswith("/") or (len(short) > 1 and short[1] == ":"):
        return {"uri": "file://" + ("" if short.startswith("/") else "/") + quote(short, safe="/:", errors="replace")}
    return {"uri": quote(short, safe="/", errors="replace"), "uriBaseId": SOURCE_ROOT}


def _region(span: Span) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": span.line, "startColumn": span.column}
    if span.end_line >= span.line:
        region["endLine"] = span.end_line
        region["endColumn"] = max(span.end_column, 1)
    return region


def _fix(report: Report, fix: Fix) -> dict[str, Any]:
    files: dict[str, list[dict[str, Any]]] = {}
    for edit in fix.edits:
        replacement = {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.text}}
        files.setdefault(edit.span.path, []).append(replacement)
    grade = f"{fix.title} [{fix.safety}]"
    return {
        "description": {"text": grade},
        "artifactChanges": [
            {"artifactLocation": _artifact(report, path), "replacements": replacements} for path, replacements in files.items()
        ],
    }


def _notification(report: Report, finding: Finding) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "level": "error",
        "message": {"text": finding.message},
        "descriptor": {"id": finding.rule},
    }
    if finding.span is not None:
        entry["locations"] = [_location(report, finding.span)]
    return entry


def levels() -> Iterable[str]:
    """The SARIF levels in use."""
    return LEVELS.values()
