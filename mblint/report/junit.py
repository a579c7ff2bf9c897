"""JUnit XML: a launch is a test case that passes or fails, a file that cannot be judged too."""

from __future__ import annotations

from typing import TextIO
from xml.sax.saxutils import escape, quoteattr

from mblint.findings import Finding
from mblint.report.model import Report, ordered
from mblint.shown import neutral, shown_path


def render(report: Report, out: TextIO) -> None:
    """Write one suite; findings of a launch are the failures of its test case. Advice does not fail a
    case.
    """
    cases: dict[tuple[str, str], list[Finding]] = {}
    for launch in sorted(report.launches, key=lambda launch: (launch.recipe, launch.id)):
        cases[("launch", launch.recipe)] = []
    undecided = {launch.recipe for launch in report.launches if launch.verdict == "undecided"}
    for finding in ordered(report):
        if finding.launch is not None:
            cases.setdefault(("launch", finding.launch), []).append(finding)
        else:
            path = shown_path(finding.span.path, report.top_folder) if finding.span is not None else "mblint"
            cases.setdefault(("file", path), []).append(finding)
    failing = sum(any(f.severity != "advice" for f in found) for found in cases.values())
    skipped = sum(not found and name in undecided for (_, name), found in cases.items())
    out.write('<?xml version="1.0" encoding="utf-8"?>\n')
    counts = f'tests="{len(cases)}" failures="{failing}" errors="0"'
    _put(out, f'<testsuites name="mblint" {counts}>\n')
    _put(out, f'  <testsuite name="mblint" {counts} skipped="{skipped}">\n')
    for (kind, name), found in cases.items():
        _case(report, out, kind, name, found, name in undecided)
    _put(out, "  </testsuite>\n</testsuites>\n")


def _put(out: TextIO, text: str) -> None:
    """Write XML in ASCII, which is right whatever the stream's encoding is."""
    out.write(text.encode("ascii", "xmlcharrefreplace").decode("ascii"))


def _case(report: Report, out: TextIO, kind: str, name: str, found: list[Finding], undecided: bool) -> None:
    attributes = f"classname={_attribute(f'mblint.{kind}')} name={_attribute(name)}"
    failures = [finding for finding in found if finding.severity != "advice"]
    advice = [finding for finding in found if finding.severity == "advice"]
    if not found and not undecided:
        _put(out, f"    <testcase {attributes}/>\n")
        return
    _put(out, f"    <testcase {attributes}>\n")
    for finding in failures:
        title = f"{finding.rule} {finding.name}: {finding.message}"
        _put(
            out,
            f"      <failure type={_attribute(finding.severity)} message={_attribute(title)}>{escape(_text(report, finding))}</failure>\n",
        )
    if not found:
        _put(out, '      <skipped message="could not be decided"/>\n')
    if advice:
        lines = "\n".join(_text(report, finding) for finding in advice)
        _put(out, f"      <system-out>{escape(lines)}</system-out>\n")
    _put(out, "    </testcase>\n")


def _text(report: Report, finding: Finding) -> str:
    place = ""
    if finding.span is not None:
        place = f"{shown_path(finding.span.path, report.top_folder)}:{finding.span.line}:{finding.span.column}: "
    lines = [f"{place}{finding.severity} {finding.rule} {finding.name}: {finding.message}"]
    if finding.condition:
        lines.append(f"when: {finding.condition}")
    lines += [f"fix [{fix.safety}]: {fix.title}" for fix in finding.fixes]
    return "\n".join(neutral(" ".join(line.split())) for line in lines)


def _attribute(text: str) -> str:
    return quoteattr(neutral(text))
