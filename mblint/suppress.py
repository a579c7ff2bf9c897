"""Applies `# mblint: ignore[...]` comments to findings, and reports the ones that name nothing or do
nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from mblint.findings import Finding, Fix, TextEdit
from mblint.read.comments import Comment, Directive, directives, language_of, read_comments
from mblint.read.span import Span

UNKNOWN = ("MB902", "unknown-suppressed-rule")
UNUSED = ("MB903", "unused-suppression")


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding that a comment holds back, with the comment's reason and place."""

    finding: Finding
    reason: str
    span: Span


@dataclass(slots=True)
class Outcome:
    """`findings` are those left, in their order; `extra` the findings about the comments themselves."""

    findings: list[Finding] = field(default_factory=list)
    suppressed: list[Suppressed] = field(default_factory=list)
    extra: list[Finding] = field(default_factory=list)


@dataclass(slots=True)
class _File:
    """The directives of one file, the lines each of them covers, and which of their ids did something."""

    text: str
    comments: list[Comment]
    found: list[Directive]
    units: list[tuple[int, int]]
    used: set[tuple[int, int]] = field(default_factory=set)

    def lines(self, span: Span) -> range:
        """The lines on which a comment counts for a finding at `span`: its own, those of the statement,
        keyword or entry that holds it, and the comment lines directly above.
        """
        first, last = span.line, max(span.line, span.end_line)
        inside = [unit for unit in self.units if unit[0] <= first and unit[1] >= last]
        if inside:
            first, last = max(inside, key=lambda unit: (unit[0], -unit[1]))
        alone = {comment.span.line for comment in self.comments if comment.alone}
        while first - 1 in alone:
            first -= 1
        return range(first, last + 1)


def units_of(text: str, path: str) -> list[tuple[int, int]]:
    """(first line, last line) of what a comment may stand for: statements (of a compound
    one its header), keyword arguments and dict entries; for shell, lines joined by backslashes.
    """
    language = language_of(path)
    if language == "shell":
        return _joined_lines(text)
    if language != "python":
        return []
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: list[tuple[int, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body: list[ast.stmt] = getattr(node, "body", None) or []
            decorators: list[ast.expr] = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(item.lineno for item in decorators)])
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
            found.append((first, last))
        elif isinstance(node, ast.keyword):
            found.append((node.lineno, node.end_lineno or node.lineno))
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                start = key or value
                found.append((start.lineno, value.end_lineno or value.lineno))
    return found


def _joined_lines(text: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    first = 1
    for number, line in enumerate(text.split("\n"), start=1):
        if line.rstrip("\r").endswith("\\"):
            continue
        if number > first:
            found.append((first, number))
        first = number + 1
    return found


def suppress(
    findings: Iterable[Finding],
    text_of: Callable[[str], str | None],
    known: Mapping[str, str],
    *,
    files: Collection[str] = (),
    active: Collection[str] | None = None,
    undecided: Collection[tuple[str, str]] = (),
) -> Outcome:
    """Hold back the findings that a comment names.

    `known` maps the id of each rule to its name; either is accepted. `text_of` gives the decoded text of
    a file (None = not at hand). The comments of `files` are checked for unknown and for unused ids; a
    rule that is not among the `active` ids of this run, or that is `undecided` in that file ((rule, file)
    pairs), is never called unused.
    """
    by_name = {name: rule for rule, name in known.items()}
    cache: dict[str, _File | None] = {}

    def load(path: str) -> _File | None:
        if path not in cache:
            cache[path] = _read(path, text_of(path))
        return cache[path]

    outcome = Outcome()
    for finding in findings:
        hit = _covering(finding, load(finding.span.path), by_name) if finding.span is not None else None
        if hit is None:
            outcome.findings.append(finding)
        else:
            outcome.suppressed.append(Suppressed(finding, hit.reason, hit.span))
    for path in sorted(set(files)):
        file = load(path)
        if file is not None:
            outcome.extra += _report(path, file, known, by_name, active, undecided)
    # A comment may hold back what is said about a comment; whether it was needed for that is not asked.
    kept: list[Finding] = []
    for finding in outcome.extra:
        assert finding.span is not None
        hit = _covering(finding, load(finding.span.path), by_name)
        if hit is None:
            kept.append(finding)
        else:
            outcome.suppressed.append(Suppressed(finding, hit.reason, hit.span))
    outcome.extra = kept
    return outcome


def _read(path: str, text: str | None) -> _File | None:
    if text is None or "mblint:" not in text:
        return None
    comments = read_comments(text, path)
    found = directives(comments)
    return _File(text, comments, found, units_of(text, path)) if found else None


def _covering(finding: Finding, file: _File | None, by_name: Mapping[str, str]) -> Directive | None:
    if file is None or finding.span is None:
        return None
    lines = file.lines(finding.span)
    first: Directive | None = None
    for number, directive in enumerate(file.found):
        if directive.problem is not None or (directive.word == "ignore" and directive.span.line not in lines):
            continue
        for position, (name, _) in enumerate(directive.ids):
            if by_name.get(name, name) == finding.rule:
                file.used.add((number, position))
                first = first or directive
    return first


def _report(
    path: str,
    file: _File,
    known: Mapping[str, str],
    by_name: Mapping[str, str],
    active: Collection[str] | None,
    undecided: Collection[tuple[str, str]],
) -> list[Finding]:
    found: list[Finding] = []
    for number, directive in enumerate(file.found):
        if directive.problem is not None:
            found.append(_unknown(f"This comment suppresses nothing: {directive.problem}", directive.span))
            continue
        unused: list[int] = []
        for position, (name, span) in enumerate(directive.ids):
            rule = by_name.get(name, name)
            if rule not in known:
                near = get_close_matches(name, [*known, *by_name], 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                found.append(_unknown(f"There is no rule {name}{hint}", span))
                continue
            asked = (active is None or rule in active) and (rule, path) not in undecided
            if asked and rule not in {UNKNOWN[0], UNUSED[0]} and (number, position) not in file.used:
                unused.append(position)
        if unused:
            found.append(_unused(file, directive, unused, known, by_name))
    return found


def _unknown(message: str, span: Span) -> Finding:
    return Finding(*UNKNOWN, "warning", "dead", message, span)


def _unused(
    file: _File,
    directive: Directive,
    unused: Sequence[int],
    known: Mapping[str, str],
    by_name: Mapping[str, str],
) -> Finding:
    rules = [by_name.get(directive.ids[position][0], directive.ids[position][0]) for position in unused]
    named = ", ".join(f"{rule} {known[rule]}" for rule in rules)
    where = "in this file" if directive.word == "ignore-file" else "here"
    message = f"Nothing is suppressed {where}: {named} {'finds' if len(rules) == 1 else 'find'} nothing"
    if len(unused) == len(directive.ids):
        title, edit, span = "Remove the comment", _without_comment(file, directive), directive.span
    else:
        title, edit = f"Remove {', '.join(rules)} from the comment", _without_ids(file, directive, unused)
        span = directive.ids[unused[0]][1]
    return Finding(*UNUSED, "warning", "dead", message, span, fixes=(Fix(title, "safe", edits=(edit,)),))


def _without_comment(file: _File, directive: Directive) -> TextEdit:
    """Take the directive out; its line goes too where nothing else stands on it."""
    span = directive.span
    comment = next(c for c in file.comments if c.span.line == span.line and c.span.column <= span.column)
    lines = file.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    line = lines[span.line - 1]
    whole = span.end_column >= comment.span.end_column - (len(comment.text) - len(comment.text.rstrip()))
    if directive.alone and whole:
        if span.line < len(lines):
            return TextEdit(Span(span.path, span.line, 1, span.line + 1, 1), "")
        start = Span(span.path, max(span.line - 1, 1), len(lines[span.line - 2]) + 1 if span.line > 1 else 1)
        return TextEdit(Span(span.path, start.line, start.column, span.line, len(line) + 1), "")
    if not whole and span.column == comment.span.column:
        end = span.end_column  # another comment follows: it takes the place
        while line[end - 1 : end] in (" ", "\t"):
            end += 1
        return TextEdit(Span(span.path, span.line, span.column, span.line, end), "")
    column = span.column
    while column > 1 and line[column - 2] in " \t":
        column -= 1
    return TextEdit(Span(span.path, span.line, column, span.line, len(line) + 1 if whole else span.end_column), "")


def _without_ids(file: _File, directive: Directive, unused: Sequence[int]) -> TextEdit:
    kept = [name for position, (name, _) in enumerate(directive.ids) if position not in unused]
    first, last = directive.ids[0][1], directive.ids[-1][1]
    return TextEdit(Span(first.path, first.line, first.column, last.end_line, last.end_column), ", ".join(kept))
