"""Findings counted by rule."""

from __future__ import annotations

from collections import Counter
from typing import TextIO

from mblint.report.model import Report, summary_lines
from mblint.report.stream import emit


def render_statistics(report: Report, out: TextIO) -> None:
    """One line a rule, most frequent first, then the summary."""
    counts = Counter((finding.rule, finding.name, finding.severity) for finding in report.findings)
    width = len(str(max(counts.values(), default=0)))
    for (rule, name, severity), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        emit(out, f"{count:>{width}}  {rule}  {severity:<7}  {name}\n")
    for line in summary_lines(report):
        emit(out, f"{line}\n")
