"""What the editor may do about findings: proven fixes, and comments that hold findings back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher

from mblint.evaluate.source import split_lines
from mblint.findings import Finding, TextEdit
from mblint.fix.prove import Judged, fix_all
from mblint.ignores import NOT_FOR_COMMENTS, add_ignores
from mblint.read.comments import language_of
from mblint.read.span import Span
from mblint.server.documents import Document
from mblint.server.judging import FileState
from mblint.server.project import Project
from mblint.server.proofs import Prover
from mblint.server.service import Answer


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that can be done. `kind`: fix, suppress or all."""

    title: str
    kind: str
    edits: tuple[TextEdit, ...]
    finding: Finding | None = None
    preferred: bool = False


TextOf = Callable[[str], str | None]


def actions_for(
    project: Project, state: FileState, document: Document, answer: Answer, first: int, last: int,
    rules: frozenset[str], buffers: Callable[[], dict[str, str]], wanted: Callable[[str], bool],
    stop: Callable[[], bool] = lambda: False,
) -> list[Action]:  # fmt: skip
    """Actions for the findings that touch the lines from `first` to `last`; with `rules` given, for those of them alone."""
    launch_file = document.kind == "launch"
    touching = [group for group in answer.groups if _touches(answer.place(group.finding, launch_file), first, last)]
    touching = [group for group in touching if not rules or group.finding.rule in rules]
    found: list[Action] = []
    if wanted("fix") and state.broken is None:
        prover = Prover(project, state, document.kind == "python", buffers)
        for offered in prover.offered([group.finding for group in touching], stop):
            fix, finding = offered.fix, offered.finding
            grade = fix.safety + (f": {fix.cost}" if fix.cost else "")
            preferred = len(finding.fixes) == 1 and fix.safety == "safe"
            found.append(Action(f"{fix.title} ({finding.rule}, {grade})", "fix", fix.edits, finding, preferred))
    if wanted("suppress"):
        for finding in {(group.finding.rule, group.finding.span): group.finding for group in touching}.values():
            found += _suppressions(project, finding)
    return list({(action.title, action.edits): action for action in found}.values())


def fix_everything(
    project: Project, state: FileState, document: Document, text_of: TextOf, buffers: Callable[[], dict[str, str]]
) -> Action | None:
    """All safe fixes of a file at once, each proven, to a fixpoint."""
    if state.broken is not None:
        return None
    text = text_of(state.path)
    fixes = (fix for verdict in state.verdicts() for finding in verdict.findings for fix in finding.fixes)
    if text is None or not any(fix.safety == "safe" for fix in fixes):
        return None
    prover = Prover(project, state, document.kind == "python", buffers)

    def judge(sources: dict[str, str]) -> Judged:
        return prover.judge_with_edits(sources)

    run = fix_all({state.path: text}, judge)
    changed = run.sources[state.path]
    if not run.applied or changed == text:
        return None
    count = len(run.applied)
    return Action(f"Apply {count} safe fix{'' if count == 1 else 'es'}", "all", edits_by_line(state.path, text, changed))


def _suppressions(project: Project, finding: Finding) -> list[Action]:
    """A comment at the finding's place, and one for the whole file; where they go is found when one is chosen."""
    if finding.rule in NOT_FOR_COMMENTS or finding.span is None or not project.session.in_project(finding.span.path):
        return []
    return [
        Action(f"Ignore {finding.rule} here", "suppress", (), finding),
        Action(f"Ignore {finding.rule} in this file", "suppress", (), finding),
    ]


def comment_edit(project: Project, finding: Finding, whole: bool, text_of: TextOf) -> TextEdit | None:
    """The comment that holds a finding back, at its place or in the whole file; None where none can stand."""
    assert finding.span is not None
    path = finding.span.path
    text = text_of(path)
    if text is None:
        return None
    if whole:
        at = _top(text, path)
        return edit_between(path, text, f"{text[:at]}# mblint: ignore-file[{finding.rule}]{_ending(text)}{text[at:]}")
    names = {rule.id: rule.name for rule in project.checker.all_rules}
    done = add_ignores([finding], lambda name: text if name == path else None, names)
    return edit_between(path, text, done.texts[path]) if done.done and path in done.texts else None


def _top(text: str, path: str) -> int:
    """Where a comment may stand as the first line: behind a byte order mark, a `#!` line and a coding line."""
    at = 1 if text.startswith("\ufeff") else 0
    for _ in range(2):
        end = text.find("\n", at)
        line = text[at : end if end >= 0 else len(text)]
        if end >= 0 and line.startswith("#") and (line.startswith("#!") or "coding" in line or "yaml-language-server" in line):
            at = end + 1
    if language_of(path) == "yaml" and text.startswith("%"):
        return text.find("\n---") + 1 if "\n---" in text else at
    return at


def _touches(span: Span | None, first: int, last: int) -> bool:
    return span is not None and span.line <= last and max(span.end_line, span.line) >= first


def _ending(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def edits_by_line(path: str, old: str, new: str) -> tuple[TextEdit, ...]:
    """Replacements of whole lines that make a text the other."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if len(split_lines(old)) - 1 != sum(1 for line in before if line[-1] in "\r\n"):
        return (edit_between(path, old, new),)  # lines that end at something else than the protocol's line ends
    edits = []
    for word, first, last, begin, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if word != "equal":
            edits.append(TextEdit(_lines_span(path, before, first, last), "".join(after[begin:end])))
    return tuple(edits)


def _lines_span(path: str, lines: list[str], first: int, last: int) -> Span:
    """From the begin of one line to the begin of another; the end of a text that ends without a line end is behind its last line."""
    if last == len(lines) and lines and lines[-1][-1] not in "\r\n":
        if first == last:
            return Span(path, last, len(lines[-1]) + 1, last, len(lines[-1]) + 1)
        return Span(path, first + 1, 1, last, len(lines[-1]) + 1)
    return Span(path, first + 1, 1, last + 1, 1)


def edit_between(path: str, old: str, new: str) -> TextEdit:
    """The one replacement that makes a text the other; it never cuts a line end in two."""
    begin, limit = 0, min(len(old), len(new))
    while begin < limit and old[begin] == new[begin]:
        begin += 1
    tail = 0
    while tail < limit - begin and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    if begin and old[begin - 1] == "\r":
        begin -= 1
    if tail and old[len(old) - tail] == "\n":
        tail -= 1
    end = len(old) - tail
    first, column = _place(old, begin)
    last, end_column = _place(old, end)
    return TextEdit(Span(path, first, column, last, end_column), new[begin : len(new) - tail])


def _place(text: str, offset: int) -> tuple[int, int]:
    """Line and column, from 1, of an index into a text."""
    lines = split_lines(text[:offset])
    return len(lines), len(lines[-1]) + 1
