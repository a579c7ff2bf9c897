"""GitLab's code quality report. Each entry is a whole issue as Code Climate defines it, of which GitLab reads a part."""

from __future__ import annotations

from typing import Any, TextIO

from mblint.report.concise import text_of
from mblint.report.model import Group, Report, groups
from mblint.report.stream import emit_json
from mblint.shown import neutral, relative

CATEGORIES = {"oom": "Performance", "slow": "Performance", "dead": "Clarity", "note": "Clarity"}
"""By outcome, among those that Code Climate has; all others are bugs."""

SEVERITIES = {"error": "critical", "warning": "major", "advice": "minor"}


def render(report: Report, out: TextIO) -> None:
    """Write the list of issues."""
    emit_json(out, [_issue(report, group) for group in groups(report)])


def _issue(report: Report, group: Group) -> dict[str, Any]:
    finding, span = group.finding, report.place_of(group.finding)
    # An issue needs a file; a launch from elsewhere has none in the project.
    path = relative(span.path, report.top_folder) if span is not None else "."
    begin = max(1, span.line if span is not None else 1)
    lines = {"begin": begin, "end": max(begin, span.end_line if span is not None else 1)}
    return {
        "type": "issue",
        "categories": [CATEGORIES.get(finding.outcome, "Bug Risk")],
        "description": text_of(group),
        "check_name": f"{finding.rule} {finding.name}",
        "fingerprint": group.key,
        "severity": "blocker" if finding.outcome == "fails" and finding.severity == "error" else SEVERITIES[finding.severity],
        "location": {"path": neutral(path), "lines": lines},
    }
