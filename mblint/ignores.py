"""Writes `# mblint: ignore[ID] reason` comments for findings, by minimal edits.

A comment goes to the end of the finding's line where one may stand there, else on a line of its own above the
statement. Every file is checked afterwards: the same meaning, and the findings held back.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mblint.findings import Finding
from mblint.read.comments import Language, language_of, read_directives
from mblint.suppress import suppress, units_of

MAX_WIDTH = 110
NOT_FOR_COMMENTS = frozenset({"MB900", "MB901", "MB902", "MB903"})


@dataclass
class Ignored:
    """The new text of each file, the findings that are held back now, and those that are not, each with the reason."""

    texts: dict[str, str] = field(default_factory=dict)
    done: list[Finding] = field(default_factory=list)
    left: list[tuple[Finding, str]] = field(default_factory=list)


def add_ignores(findings: Iterable[Finding], text_of: Callable[[str], str | None], known: Mapping[str, str], reason: str = "") -> Ignored:
    """Comments for all findings that have a place in a file of the project. `text_of` gives a file's text, None for files that
    may not be changed; `known` the rules' names by id."""
    result = Ignored()
    reason = " ".join(reason.replace("#", " ").split())
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.rule in NOT_FOR_COMMENTS:
            result.left.append((finding, "cannot be suppressed by a comment"))
        elif finding.span is None:
            result.left.append((finding, "has no place in a file"))
        else:
            by_file.setdefault(finding.span.path, []).append(finding)
    for path, group in sorted(by_file.items()):
        text = text_of(path)
        if text is None:
            result.left += [(finding, "stands in a file that is not part of the project") for finding in group]
            continue
        changed = _commented(text, path, group, reason)
        if not _same_meaning(text, changed, path):
            result.left += [(finding, "a comment there would change the file's meaning") for finding in group]
            continue
        shifted = _shifted(text, changed, group)
        held = {id(entry.finding) for entry in suppress(shifted, {path: changed}.get, known).suppressed}
        result.texts[path] = changed
        for finding, moved in zip(group, shifted, strict=True):
            if id(moved) in held:
                result.done.append(finding)
            else:
                result.left.append((finding, "no comment can stand there"))
    return result


def _commented(text: str, path: str, findings: Sequence[Finding], reason: str) -> str:
    lines = text.splitlines(keepends=True)
    language = language_of(path)
    units = units_of(text, path)
    closed = _closed_lines(text, language)
    wanted: dict[int, dict[str, None]] = {}
    for finding in findings:
        assert finding.span is not None
        wanted.setdefault(finding.span.line, {})[finding.rule] = None
    directives = {d.span.line: d for d in read_directives(text, path) if d.word == "ignore" and d.problem is None}
    above: dict[int, dict[str, None]] = {}
    for number, rules in sorted(wanted.items()):
        if not 0 < number <= len(lines):
            continue
        line = lines[number - 1]
        held = directives.get(number)
        if held is not None:
            last = held.ids[-1][1]
            content = line[: last.end_column - 1] + "".join(f", {rule}" for rule in rules if rule not in [i for i, _ in held.ids])
            lines[number - 1] = content + line[last.end_column - 1 :]
            continue
        body = line.rstrip("\r\n")
        comment = _comment(rules, reason)
        if number in closed and len(body) + 2 + len(comment) <= MAX_WIDTH:
            lines[number - 1] = f"{body.rstrip()}  {comment}{line[len(body) :]}"
            continue
        inside = [unit for unit in units if unit[0] <= number <= unit[1]]
        first = max(inside, key=lambda unit: (unit[0], -unit[1]))[0] if inside else number
        above.setdefault(first, {}).update(rules)
    for number, rules in sorted(above.items(), reverse=True):
        line = lines[number - 1]
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        ending = re.search(r"\r?\n$|\r$", line)
        lines.insert(number - 1, f"{indent}{_comment(rules, reason)}{ending.group() if ending else chr(10)}")
    return "".join(lines)


def _comment(rules: Iterable[str], reason: str) -> str:
    return f"# mblint: ignore[{', '.join(sorted(rules))}]{' ' + reason if reason else ''}"


def _closed_lines(text: str, language: Language) -> frozenset[int]:
    """Lines at whose end a comment may be added: no string goes on there, and no backslash joins the next line.

    In YAML and shell a line of its own is always taken: whether a text goes on cannot be told from one line.
    """
    if language != "python":
        return frozenset()
    ends: set[int] = set()
    inside: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type in (tokenize.NEWLINE, tokenize.NL):
                ends.add(token.start[0])
            elif token.end[0] > token.start[0]:
                inside.update(range(token.start[0], token.end[0]))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return frozenset()
    return frozenset(ends - inside)


def _same_meaning(before: str, after: str, path: str) -> bool:
    language = language_of(path)
    if language == "python":
        try:
            return ast.dump(ast.parse(before)) == ast.dump(ast.parse(after))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    if language == "yaml":
        return _yaml_events(before) == _yaml_events(after)
    return True


def _yaml_events(text: str) -> list[tuple[str, str, str]] | None:
    import yaml

    try:
        return [
            (type(event).__name__, str(getattr(event, "value", "")), str(getattr(event, "tag", "")))
            for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        ]
    except yaml.YAMLError:
        return None


def _shifted(before: str, after: str, findings: Sequence[Finding]) -> list[Finding]:
    """The findings at their lines in the new text, which has whole lines more than the old."""
    from dataclasses import replace

    old, new = before.splitlines(), after.splitlines()
    places: dict[int, int] = {}
    at = 0
    for number, line in enumerate(old, start=1):
        while at < len(new) and not new[at].startswith(line.rstrip()) and not _extended(new[at], line):
            at += 1
        at += 1
        places[number] = at
    moved = []
    for finding in findings:
        assert finding.span is not None
        shift = places.get(finding.span.line, finding.span.line) - finding.span.line
        span = finding.span
        moved.append(replace(finding, span=replace(span, line=span.line + shift, end_line=span.end_line + shift)))
    return moved


def _extended(new: str, old: str) -> bool:
    """Whether ids were added to the directive of a line."""
    return "mblint:" in old and re.sub(r"\[[^\]]*\]", "[]", new) == re.sub(r"\[[^\]]*\]", "[]", old)
