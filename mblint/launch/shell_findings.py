"""What only the text of a launch script shows: options that never reach the program, or contradict each
other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from mblint.findings import Finding, Fix, Outcome, Related, Severity, with_sources
from mblint.launch.commands import SECTIONS, is_interesting, is_relevant_variable
from mblint.launch.script import INTEREST, ScriptReading
from mblint.launch.spec import LaunchSpec
from mblint.read import shell
from mblint.read.shell import Slice
from mblint.read.shell_run import Run, follow
from mblint.read.shell_text import Places
from mblint.read.shell_words import Document
from mblint.read.span import Span


def shell_findings(reading: ScriptReading) -> list[Finding]:
    """Findings about the script itself. A script that launches nothing of interest has none."""
    if not reading.launches or reading.run is None or reading.context is None:
        return []
    found = [
        *_lost_options(reading),
        *_given_twice(reading.launches),
        *_set_after_use(reading),
        *_never_taken(reading),
    ]
    return sorted(map(with_sources, set_once(found)), key=lambda f: (f.span.line if f.span else 0, f.rule, f.message))


def set_once(findings: Sequence[Finding]) -> list[Finding]:
    """The same thing said of several launches of one line is said once."""
    seen: dict[tuple[Any, ...], Finding] = {}
    for finding in findings:
        seen.setdefault((finding.rule, finding.span, finding.message), finding)
    return list(seen.values())


def _finding(
    rule: str,
    name: str,
    severity: Severity,
    outcome: Outcome,
    message: str,
    span: Span | None,
    related: tuple[Related, ...] = (),
    launch: str | None = None,
) -> Finding:
    return Finding(rule, name, severity, outcome, message, span, related, launch=launch)


# ------------------------------------------------------------------ lost options

_OPTION = re.compile(rf"(?:--?[A-Za-z][\w-]*(?:[= ]|$)|(?:\+\+?|~)?(?:{'|'.join(SECTIONS)})\.[\w.]+=|\+\+?[\w.]+=)")


def _lost_options(reading: ScriptReading) -> Iterator[Finding]:
    """A command line ends without a backslash, and the next line starts with an option."""
    assert reading.run is not None and reading.context is not None
    for document in reading.run.documents:
        for statements in _blocks(document.script.statements):
            for first, second in pairwise(statements):
                yield from _lost(document, first, second, reading.context.places, reading.text)


def _lost(document: Document, first: shell.Statement, second: shell.Statement, places: Places, whole_text: str) -> Iterator[Finding]:
    text = document.script.text
    command = _last_command(first)
    lost = _first_command(second)
    if command is None or lost is None or not lost.words:
        return
    between = text[command.at.end : lost.at.start]
    if "\n" not in between or re.sub(r"#[^\n]*", "", between).strip("\n \t\\") or ";" in between or "&" in between:
        return
    whole = text[command.at.start : command.at.end]
    start = text[lost.words[0].start : lost.words[-1].end]
    if not is_interesting(whole) or not _OPTION.match(start):
        return
    if lost.assigns or not _ends_open(whole):
        return
    options = [text[w.start : w.end] for w in lost.words if _OPTION.match(text[w.start : w.end] + " ")]
    span = places.span(document.at[lost.at.start : lost.at.end])
    end = places.span(document.at[command.at.end - 1 : command.at.end])
    comment = "#" in between
    reason = "a comment between them ends the command" if comment else "the line before it has no backslash at its end"
    if re.search(r"\\[ \t]+\n?$", text[: lost.at.start].rstrip(" \t") if not comment else ""):
        reason = "a blank follows the backslash of the line before it"
    names = ", ".join(options) or start.split()[0]
    verb = "never reaches" if len(options) < 2 else "never reach"
    related = (Related(end, "the command ends here"),) if end is not None else ()
    fixes = () if comment or end is None else _continued(whole_text, end)
    found = _finding(
        "MB850",
        "option-lost-after-line-end",
        "error",
        "wrong",
        f"{names} {verb} the program: {reason}",
        span,
        related,
    )
    yield replace(found, fixes=fixes)


def _continued(text: str, end: Span) -> tuple[Fix, ...]:
    """The backslash that the last line of the command lacks."""
    from mblint.fix.check import is_script
    from mblint.fix.shell import mend_continuation
    from mblint.fix.text import Edits
    from mblint.fix.text import Text as Source

    if not is_script(end.path):
        return ()
    edits = mend_continuation(Source(end.path, text), end.end_line or end.line)
    if not isinstance(edits, Edits):
        return ()
    title = "Continue the command on the next line"
    return (Fix(title, "unsafe", edits=edits.edits, cost="the options take effect for the first time"),)


def _ends_open(command: str) -> bool:
    """Whether a command looks as if it went on: it has options or overrides on lines of their own."""
    return "\\\n" in command or _OPTION.search(command) is not None


def _last_command(statement: shell.Statement) -> shell.Command | None:
    match statement:
        case shell.Command():
            return statement
        case shell.AndOr(_, _, _, right):
            return _last_command(right)
        case shell.Pipeline(_, parts) if parts:
            return _last_command(parts[-1])
    return None


def _first_command(statement: shell.Statement) -> shell.Command | None:
    match statement:
        case shell.Command():
            return statement
        case shell.AndOr(_, left, _, _):
            return _first_command(left)
        case shell.Pipeline(_, parts) if parts:
            return _first_command(parts[0])
    return None


def _blocks(statements: Sequence[shell.Statement]) -> Iterator[Sequence[shell.Statement]]:
    """Every sequence of statements of a script."""
    yield statements
    for statement in statements:
        match statement:
            case shell.If(_, branches, otherwise):
                for branch in branches:
                    yield from _blocks(branch.body)
                yield from _blocks(otherwise)
            case shell.For() | shell.CFor() | shell.While() | shell.Function() | shell.Group():
                yield from _blocks(statement.body)
            case shell.Case(_, _, items):
                for item in items:
                    yield from _blocks(item.body)
            case shell.AndOr(_, left, _, right):
                yield from _blocks([left])
                yield from _blocks([right])


# ------------------------------------------------------------------ given twice


def _given_twice(launches: Sequence[LaunchSpec]) -> Iterator[Finding]:
    """One key is overridden twice with different values in one command; the last one counts."""
    for spec in launches:
        seen: dict[str, Any] = {}
        for override in spec.overrides:
            if override.unknown is not None or override.text.startswith("~"):
                continue
            key, _, value = override.text.lstrip("+").partition("=")
            earlier = seen.get(key)
            seen[key] = override
            if earlier is None:
                continue
            before = earlier.text.partition("=")[2]
            if before == value or earlier.span == override.span:
                continue
            related = (Related(override.span, f"{value} is given here, later"),) if override.span else ()
            yield _finding(
                "MB851",
                "option-given-twice",
                "warning",
                "dead",
                f"{key} is given twice, as {before} and as {value}: the first has no effect",
                earlier.span,
                related,
                spec.name,
            )


# ------------------------------------------------------------------ set after use


def _set_after_use(reading: ScriptReading) -> Iterator[Finding]:
    """A variable has its first value only after the command that uses it, or an export follows the launch."""
    assert reading.run is not None
    run = reading.run
    first_set: dict[str, Any] = {}
    for use in run.assigned:
        first_set.setdefault(use.name, use)
    launched = [i for i in run.invocations if i.span and any(s.span == i.span for s in reading.launches)]
    reported: set[str] = set()
    for use in run.missing:
        later = first_set.get(use.name)
        if later is None or later.order <= use.order or use.looped or later.looped or use.name in reported:
            continue
        if not later.definite or use.span is None or later.span is None:
            continue
        if _mentions_itself(reading, use.name, later.span) or use.span.line >= later.span.line:
            continue  # `X=${X:?}`: the environment is meant to give it
        if not any(_reaches(use.name, spec) for spec in reading.launches):
            continue
        reported.add(use.name)
        yield _finding(
            "MB852",
            "variable-set-after-use",
            "error",
            "wrong",
            f"{use.name} is used here before the script sets it on line {later.span.line}",
            use.span,
            (Related(later.span, "it is set here"),),
        )
    if not launched:
        return
    last = max(i.order for i in launched)
    names = {name for i in launched for name in i.env}
    exported = {u.name: u for u in run.assigned if u.order > last and not u.looped and u.definite}
    for name, use in exported.items():
        if is_relevant_variable(name) and name not in names and use.span is not None and _is_export(reading, use.span):
            yield _finding(
                "MB852",
                "variable-set-after-use",
                "warning",
                "dead",
                f"{name} is exported after the last launch of the script, which does not see it",
                use.span,
                tuple(Related(i.span, "the launch") for i in launched[-1:] if i.span is not None),
            )


def _reaches(name: str, spec: LaunchSpec) -> bool:
    """Whether a launch has a part that is unknown because this variable is."""
    text = f"environment variable {name} is not known"
    parts = [o.unknown for o in spec.overrides] + [f.value for f in spec.flags.values()]
    parts += [spec.world_size, spec.more]
    return any(text in getattr(part, "reason", "") for part in parts if part is not None)


def _mentions_itself(reading: ScriptReading, name: str, span: Span) -> bool:
    lines = reading.text.splitlines()[span.line - 1 : span.end_line]
    return re.search(rf"\$\{{?{name}\b", "\n".join(lines)) is not None


def _is_export(reading: ScriptReading, span: Span) -> bool:
    lines = reading.text.splitlines()
    return 0 < span.line <= len(lines) and lines[span.line - 1].lstrip().startswith("export ")


# ------------------------------------------------------------------ never taken


def _never_taken(reading: ScriptReading) -> Iterator[Finding]:
    """A branch whose test is false whatever the environment holds, and which would change a launch.

    A test of a setting that the script itself fixes (`MOUNTS=""` at its top) is no mistake: somebody edits
    it.
    """
    assert reading.run is not None
    if reading.run.exhausted or not any(_candidate(reading.run, key) for key in reading.run.outcomes):
        return
    places = Places()
    run = follow(reading.text, reading.path, places, INTEREST, assume_defaults=False)
    if run.exhausted:
        return
    for key, outcomes in run.outcomes.items():
        if outcomes != {False} or not _candidate(run, key):
            continue
        document, _, condition = run.branches[key]
        test = " ".join(document.script.text[condition.start : condition.end].split())
        span = places.span(document.at[condition.start : condition.end])
        if span is None:
            continue
        yield _finding(
            "MB853",
            "branch-never-taken",
            "warning",
            "dead",
            f"this branch is never taken: {test} does not hold for any value that can arrive here",
            span,
        )


_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")


def _candidate(run: Run, key: tuple[int, int]) -> bool:
    """Whether a branch that was only ever skipped compares a value that the script computes or is handed."""
    if run.outcomes[key] != {False}:
        return False
    document, branch, condition = run.branches[key]
    text = document.script.text
    tested = _tested(document, branch, condition)
    if re.search(r"(?:^|\s)-[nz]\s", tested) or not _matters(text[max(condition.end, branch.start) : branch.end]):
        return False
    names = set(_VARIABLE.findall(tested))
    settings = 0
    for name in names:
        # Counted in the text: of two branches that assign it only one may have been followed.
        assigned = rf"(?m)(?:^|[;&|{{(]|\b(?:then|else|do))[ \t]*(?:export[ \t]+|local[ \t]+|readonly[ \t]+)?{name}\+?="
        settings += len(re.findall(assigned, text)) == 1
    return bool(names) and settings < len(names)


def _tested(document: Document, branch: Slice, condition: Slice) -> str:
    """The text of the test; for an arm of a `case`, of the word it compares with too."""
    text = document.script.text
    start = text.rfind("case", 0, branch.start)
    word = text[start : branch.start].split("\n")[0] if start >= 0 and text[condition.start] not in "[(" else ""
    return text[condition.start : condition.end] + word


def _matters(body: str) -> bool:
    """Whether a branch does something to a launch, and does not only print or leave."""
    lines = [re.sub(r"^(?:then|do|\)|\])+\s*", "", line.strip(" \t])")) for line in re.split(r"[\n;]", body)]
    return any(re.match(r"(?:export\s+)?[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=", line) or is_interesting(line) for line in lines)
