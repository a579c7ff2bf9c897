"""The format for people: message, source frame, related places, why, the ways out, and a summary."""

from __future__ import annotations

from typing import TextIO

from mblint.findings import Finding, Fix
from mblint.fix.text import Text
from mblint.report.frame import Line, Mark, frame
from mblint.report.model import Doubt, Group, Report, count_of, groups, is_fixable, started_lines, summary_lines
from mblint.report.stream import emit, linked, use_color, use_links
from mblint.shown import neutral

STYLES = {
    "bold": "bold",
    "frame": "bold blue",
    "primary": "bold red",
    "related": "bold blue",
    "dim": "dim",
    "error": "bold red",
    "warning": "bold yellow",
    "advice": "bold cyan",
    "good": "green",
}
SHOWN_LAUNCHES = 3


def render(report: Report, out: TextIO, *, color: bool | None = None, verbose: bool = False) -> None:
    """Write the report; `verbose` lists what could not be decided. Rich is loaded only for colour."""
    lines: list[Line] = []
    texts: dict[str, Text | None] = {}
    colored = use_color(out) if color is None else color
    links = colored and use_links(out)
    for group in groups(report):
        lines += _finding(report, group, texts, links)
        lines.append([])
    if verbose:
        lines += [[(neutral(line), "")] for line in started_lines(report)]
        lines += _doubts(report)
    lines += [[(line, "bold" if index == 0 else "")] for index, line in enumerate(summary_lines(report))]
    write_lines(out, lines, colored)


def write_lines(out: TextIO, lines: list[Line], color: bool) -> None:
    """Write lines of styled segments, plain or in colour."""
    if not color:
        emit(out, "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines))
        return
    from rich.color import ColorSystem
    from rich.style import Style

    # A console's print measures and wraps, which nobody wants here and takes 50 times as long.
    styles = {name: Style.parse(style) for name, style in STYLES.items()}
    for line in lines:
        parts = [styles[style].render(text, color_system=ColorSystem.STANDARD) if style else text for text, style in line if text]
        emit(out, "".join(parts) + "\n")


def _finding(report: Report, group: Group, texts: dict[str, Text | None], links: bool) -> list[Line]:
    finding = group.finding
    head: Line = [
        (finding.severity, finding.severity),
        (f"[{label(finding, links)}]", finding.severity),
        (f": {neutral(finding.message)}", "bold"),
    ]
    lines: list[Line] = [head]
    lines += _frames(report, finding, texts)
    lines += [_note("in", _launches(group))] if group.launches else []
    if finding.condition:
        lines.append(_note("when", finding.condition))
    if finding.why:
        lines.append(_note("why", " ".join(finding.why.split())))
    lines += [_fix(fix, finding) for fix in finding.fixes]
    if finding.no_fix and not finding.fixes:
        lines.append(_note("no fix", " ".join(finding.no_fix.split())))
    lines.append(_note("help", f"mblint rule {finding.rule}" + (f" ({finding.help_url})" if finding.help_url else "")))
    return lines


def label(finding: Finding, links: bool) -> str:
    """Id and name of the rule, leading to its page where the terminal can."""
    text = neutral(f"{finding.rule} {finding.name}")
    return linked(text, finding.help_url) if links else text


def _note(word: str, text: str) -> Line:
    return [("  = ", "frame"), (f"{word}: ", "bold"), (neutral(text), "")]


def _launches(group: Group) -> str:
    names = list(group.launches[:SHOWN_LAUNCHES])
    more = len(group.launches) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _fix(fix: Fix, finding: Finding) -> Line:
    grade = "by hand" if fix.by_hand else fix.safety if is_fixable(finding) and not fix.alternative else f"{fix.safety}, choose"
    text = f"{fix.title} [{grade}{f': {fix.hindrance}' if fix.by_hand and fix.hindrance else ''}]" + (
        f"; cost: {fix.cost}" if fix.cost else ""
    )
    return [("  = ", "frame"), ("fix: ", "bold"), (neutral(text), "good")]


def _frames(report: Report, finding: Finding, texts: dict[str, Text | None]) -> list[Line]:
    """One frame for each file, the primary place's first; a place whose text is not at hand is only named."""
    marks: list[Mark] = []
    if finding.span is not None:
        marks.append(Mark(finding.span, "", True))
    marks += [Mark(related.span, related.message, False) for related in finding.related]
    if not marks:
        return []
    gutter = max(len(str(mark.span.line)) for mark in marks)
    files = list(dict.fromkeys(mark.span.path for mark in marks))
    lines: list[Line] = []
    for path in files:
        here = [mark for mark in marks if mark.span.path == path]
        first = here[0].span
        place = f"{report.shown(path)}:{first.line}:{first.column}"
        lines.append([(f"{' ' * gutter}--> ", "frame"), (place, "")])
        if path not in texts:
            source = report.source(path)
            texts[path] = Text(path, source) if source is not None else None
        rows = frame(texts[path], here, gutter)
        if not rows:  # the text is not at hand: the words alone
            rows = [[(" " * gutter + " = ", "frame"), (f"line {mark.span.line}: {neutral(mark.label)}", "")] for mark in here if mark.label]
        lines += rows
    return lines


def _doubts(report: Report) -> list[Line]:
    """What could not be decided: one line a rule, or, where the same values left many rules open, one line for all of them."""
    by_launch: dict[str, dict[tuple[str, ...], list[Doubt]]] = {}
    for doubt in report.undecided:
        causes = tuple(dict.fromkeys(_cause(part) for part in doubt.because.split("; ")))
        by_launch.setdefault(doubt.launch, {}).setdefault(causes, []).append(doubt)
    texts: dict[str, set[str]] = {}
    for launch, groups_ in by_launch.items():
        for causes, doubts in groups_.items():
            if len(doubts) < FEW_DOUBTS:
                for doubt in doubts:
                    texts.setdefault(f"{doubt.rule} {doubt.name}: {doubt.because}", set()).add(launch)
                continue
            rules = sorted({doubt.rule for doubt in doubts})
            texts.setdefault(f"{count_of(len(rules), 'rule')}: {'; '.join(causes)} ({', '.join(rules)})", set()).add(launch)
    lines: list[Line] = []
    for text, launches in sorted(texts.items()):
        more = f" and {len(launches) - 1} more" if len(launches) > 1 else ""
        lines.append([("not decided", "dim"), (f" {neutral(text)}", ""), (f" [{neutral(min(launches))}{more}]", "dim")])
    return [*lines, []] if lines else lines


FEW_DOUBTS = 4


def _cause(part: str) -> str:
    """Why a value is not known, without the key that it is the value of."""
    key, colon, reason = part.partition(": ")
    return reason if colon and "." in key and " " not in key else part
