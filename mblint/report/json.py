"""The versioned JSON format; its schema is `report.schema.json` beside this file."""

from __future__ import annotations

from importlib import resources
from typing import Any, TextIO

from mblint.report.entries import finding_entry, span_entry
from mblint.report.model import SCHEMA_VERSION, Report, ordered, summary_lines
from mblint.report.stream import emit_json
from mblint.shown import relative


def render(report: Report, out: TextIO) -> None:
    """Write the whole report as one JSON object; paths are relative to the root, with forward slashes."""
    emit_json(out, document(report))


def document(report: Report) -> dict[str, Any]:
    """The report as plain data."""

    def path_of(path: str) -> str:
        return relative(path, report.root)

    return {
        "version": SCHEMA_VERSION,
        "tool": {"name": "mblint", "version": report.tool_version},
        "upstream": {key: report.versions[key] for key in sorted(report.versions)},
        "summary": {
            "files": report.files,
            "launches": len(report.launches),
            "findings": report.counts,
            "fixable": report.fixable,
            "suppressed": len(report.suppressed),
            "baselined": report.baselined,
            "text": " ".join(summary_lines(report)),
        },
        "findings": [finding_entry(finding, report.root, path_of) for finding in ordered(report)],
        "suppressed": [
            {
                **finding_entry(entry.finding, report.root, path_of),
                "suppression": {**span_entry(entry.span, path_of), "reason": entry.reason},
            }
            for entry in sorted(report.suppressed, key=lambda entry: (entry.span, entry.finding.rule))
        ],
        "launches": [
            {"id": launch.id, "recipe": launch.recipe, "verdict": launch.verdict}
            for launch in sorted(report.launches, key=lambda launch: (launch.recipe, launch.id))
        ],
        "undecided": [
            {"launch": doubt.launch, "rule": doubt.rule, "name": doubt.name, "because": doubt.because}
            for doubt in sorted(report.undecided, key=lambda d: (d.launch, d.rule, d.because))
        ],
    }


def schema_text() -> str:
    """The JSON schema of the format."""
    return resources.files("mblint.report").joinpath("report.schema.json").read_text(encoding="utf-8")
