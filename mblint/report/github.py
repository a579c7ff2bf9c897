"""Workflow commands for GitHub Actions: annotations on the lines of a pull request.

GitHub shows ten annotations of each level in a step; the worst come first, the rest follow as plain lines in
the log and are counted in one notice. All text is escaped: a file name or message cannot add a command.
"""

from __future__ import annotations

from typing import TextIO

from mblint.findings import SEVERITY_ORDER
from mblint.report.concise import place_of, text_of
from mblint.report.model import Group, Report, count_of, groups, summary_lines
from mblint.report.stream import emit
from mblint.shown import neutral, relative

LEVELS = {"error": "error", "warning": "warning", "advice": "notice"}
SHOWN = 10


def escape(text: str) -> str:
    """Text of a command; line ends are kept as such, other control characters written out."""
    text = neutral(text, keep="\r\n")
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """A property of a command, which also ends at `,` and `:`."""
    return escape(text).replace(":", "%3A").replace(",", "%2C")


def render(report: Report, out: TextIO) -> None:
    """Write one command for each group of findings, the rest as log lines, then the summary."""
    ranked = sorted(groups(report), key=lambda group: -SEVERITY_ORDER[group.finding.severity])
    left: list[Group] = []
    for level in ("error", "warning", "advice"):
        same = [group for group in ranked if group.finding.severity == level]
        # The notice about the rest is one of the ten notices.
        room = SHOWN if level != "advice" or not (left or len(same) > SHOWN) else SHOWN - 1
        for group in same[:room]:
            emit(out, _command(report, group) + "\n")
        left += same[room:]
    for group in left:
        line = f"{place_of(report, group)}: {group.finding.severity} {text_of(group)}"
        emit(out, (" " + line if line.startswith(("::", "##[")) else line) + "\n")
    if left:
        text = f"{count_of(len(left), 'finding')} more in the log: GitHub shows {SHOWN} of each level."
        emit(out, f"::notice title=mblint::{escape(text)}\n")
    for line in summary_lines(report):
        emit(out, neutral(line) + "\n")


def _command(report: Report, group: Group) -> str:
    finding, span = group.finding, group.finding.span
    properties: dict[str, str] = {}
    if span is not None:
        properties["file"] = relative(span.path, report.top_folder)
        properties["line"] = str(span.line)
        if span.end_line <= span.line:
            # Columns count only for a place within one line.
            properties["col"] = str(span.column)
            if span.end_line == span.line:
                properties["endColumn"] = str(max(span.end_column - 1, span.column))
        else:
            properties["endLine"] = str(span.end_line)
    properties["title"] = f"{finding.rule} {finding.name}"
    text = finding.message
    if finding.condition:
        text += f"\nWhen: {finding.condition}"
    if group.launches:
        more = len(group.launches) - 3
        text += "\nIn: " + ", ".join(group.launches[:3]) + (f" and {more} more" if more > 0 else "")
    text += "".join(f"\nFix: {fix.title} [{fix.safety}]" for fix in finding.fixes)
    text += f"\nmblint rule {finding.rule}" + (f" {finding.help_url}" if finding.help_url else "")
    options = ",".join(f"{name}={escape_property(value)}" for name, value in properties.items())
    return f"::{LEVELS[finding.severity]} {options}::{escape(text)}"
