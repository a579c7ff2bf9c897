"""A job summary in Markdown: findings as a table, the ways out, the memory of the launches."""

from __future__ import annotations

import re
from typing import TextIO
from urllib.parse import quote

from mblint.findings import SEVERITY_ORDER
from mblint.report.model import Group, Report, groups, summary_lines
from mblint.report.stream import emit
from mblint.shown import neutral, relative

ROWS = 200
"""GitHub cuts a summary at 1 MiB; what is left out is said."""

SIGNS = {"error": "❌", "warning": "⚠️", "advice": "💡"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>|~&$@])")


def text_cell(text: str) -> str:
    """Text that Markdown shows as it is, in one table cell."""
    return _SPECIAL.sub(r"\\\1", neutral(" ".join(text.split())))


def code_cell(text: str) -> str:
    """Text as code in one table cell."""
    text = neutral(" ".join(text.split())).replace("|", "\\|")
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}" if text else ""


def render(report: Report, out: TextIO) -> None:
    """Write the summary."""
    found = sorted(groups(report), key=lambda group: -SEVERITY_ORDER[group.finding.severity])
    emit(out, "## mblint\n\n")
    emit(out, "\n".join(text_cell(line).replace("\\`", "`") for line in summary_lines(report)) + "\n")
    if found:
        emit(out, "\n| | Rule | Place | Finding | Way out |\n|---|---|---|---|---|\n")
        for group in found[:ROWS]:
            emit(out, _row(report, group) + "\n")
        if len(found) > ROWS:
            emit(out, f"\n{len(found) - ROWS} more findings are left out here.\n")
    if report.memory:
        emit(out, "\n### Estimated memory of the fullest GPU\n\n")
        emit(out, "| Launch | GPU | Estimate | Capacity | |\n|---|---|---:|---:|---|\n")
        for line in sorted(report.memory, key=lambda line: line.launch):
            share = line.estimated / line.capacity if line.capacity else 0.0
            bar = "█" * min(10, round(share * 10)) + "░" * (10 - min(10, round(share * 10)))
            emit(
                out,
                f"| {code_cell(line.launch)} | {text_cell(line.gpu)} | {line.estimated / 2**30:.1f} GiB "
                f"| {line.capacity / 2**30:.1f} GiB | {bar} {share:.0%} |\n",
            )


def _row(report: Report, group: Group) -> str:
    finding, span = group.finding, group.finding.span
    rule = code_cell(f"{finding.rule} {finding.name}")
    if finding.help_url:
        rule = f"[{rule}](<{quote(finding.help_url, safe=':/#?=&%')}>)"
    place = code_cell(f"{relative(span.path, report.top_folder)}:{span.line}") if span is not None else ""
    text = text_cell(finding.message)
    if finding.condition:
        text += f"<br>when {text_cell(finding.condition)}"
    if group.launches:
        more = f" and {len(group.launches) - 1} more" if len(group.launches) > 1 else ""
        text += f"<br>in {code_cell(group.launches[0])}{more}"
    ways = "<br>".join(f"{text_cell(fix.title)} ({fix.safety}{'; ' + text_cell(fix.cost) if fix.cost else ''})" for fix in finding.fixes)
    return f"| {SIGNS[finding.severity]} | {rule} | {place} | {text} | {ways} |"
