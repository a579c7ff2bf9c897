"""One line a finding, as compilers print them."""

from __future__ import annotations

from typing import TextIO

from mblint.report.full import label, write_lines
from mblint.report.model import Group, Report, groups, is_fixable, started_lines, summary_lines
from mblint.report.stream import use_color, use_links
from mblint.shown import neutral


def render(report: Report, out: TextIO, *, color: bool | None = None, verbose: bool = False) -> None:
    """`path:line:column: severity ID name: message [launch]`, `[*]` where a safe fix exists, then the
    summary.
    """
    colored = use_color(out) if color is None else color
    links = colored and use_links(out)
    lines = [
        [
            (place_of(report, group), "bold"),
            (": ", ""),
            (group.finding.severity, group.finding.severity),
            (f" {text_of(group, links)}", ""),
        ]
        for group in groups(report)
    ]
    if verbose:
        lines += [[(neutral(line), "")] for line in started_lines(report)]
        lines += [
            [("not decided", "dim"), (neutral(f" {d.rule} {d.name}: {d.because} [{d.launch}]"), "")]
            for d in sorted(report.undecided, key=lambda d: (d.launch, d.rule, d.because))
        ]
    lines += [[(line, "")] for line in summary_lines(report)]
    write_lines(out, lines, colored)


def place_of(report: Report, group: Group) -> str:
    """Where a group stands; a launch without a place in a file stands for itself."""
    span = group.finding.span
    if span is None:
        return neutral(group.launches[0] if group.launches else "mblint")
    return f"{report.shown(span.path)}:{span.line}:{span.column}"


def text_of(group: Group, links: bool = False) -> str:
    """Rule, message, condition, launches and the mark of a fix, in one line."""
    finding = group.finding
    text = f": {' '.join(finding.message.split())}"
    if finding.condition:
        text += f" (when {finding.condition})"
    if is_fixable(finding):
        text += " [*]" if finding.fixes[0].safety == "safe" else " [unsafe fix]"
    if group.launches and finding.span is not None:
        more = len(group.launches) - 1
        text += f" [{group.launches[0]}{f' and {more} more' if more else ''}]"
    return label(finding, links) + neutral(text)
