"""What the editor asks, answered in the worker's thread: brings files up to date and keeps their last good state.

Nothing here knows the protocol; answers are plain values.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from mblint import files
from mblint.errors import UserError
from mblint.evaluate.modules import SourceError
from mblint.findings import Finding
from mblint.launch import script, yaml_files
from mblint.read.span import Span
from mblint.report.model import Group, Report
from mblint.server.documents import Document
from mblint.server.judging import FileState, Judged, Round, broken, finish, judge_launch_file, judge_python, judge_users, outline
from mblint.server.project import Options, Project, Projects
from mblint.server.shift import shifted
from mblint.server.summary import Summary
from mblint.settings import DEFAULT_EXCLUDE
from mblint.upstream.cache import cache_folder


@dataclass(slots=True)
class Answer:
    """What is to be shown for one file: groups of findings by the path that they stand in, and the lenses."""

    path: str
    groups: list[Group] = field(default_factory=list)
    lenses: list[Summary] = field(default_factory=list)
    problem: str = ""
    """Why nothing is judged: wrong settings, or an upstream that is not there."""
    partial: bool = False
    heads: dict[str, int] = field(default_factory=dict)
    """Launch -> the line that it is described on."""

    def place(self, finding: Finding, is_launch_file: bool) -> Span | None:
        """Where a finding is shown in this file; None where it is shown in the file that it stands in.

        What is found in the launch that a script or YAML file describes is shown in that file, wherever the last word was written.
        """
        span = finding.span
        if span is not None and span.path == self.path:
            return span
        if span is not None and is_launch_file:
            own = next((entry.span for entry in finding.related if entry.span.path == self.path), None)
            if own is not None:
                return own
        elif span is not None:
            return None
        head = self.heads.get(finding.launch or "", 1)
        return Span(self.path, head)


class Service:
    """Holds the open documents, the projects and the state of each file. Only `documents` is touched by other threads."""

    def __init__(self, options: Options) -> None:
        self.projects = Projects(options)
        self.documents: dict[str, Document] = {}
        """Open documents by URI."""
        self._states: dict[int, tuple[Project, dict[str, FileState]]] = {}
        self.actions: dict[Any, Any] = {}
        """What was offered for the texts of now; see questions.actions_at."""
        self.reread: set[str] = set()
        """Paths of modules that changes made to be read again, until somebody takes them."""

    # --- judging -------------------------------------------------------------------------------------------------

    def answer(self, document: Document, work: Round, publish: Callable[[Answer], None] | None = None) -> Answer:
        """Judge a document as it is now. Raises Stopped when a newer change waits."""
        assert document.path is not None
        try:
            project = self.projects.of(document.path)
        except UserError as error:
            return Answer(document.path, problem=str(error) if concerns(document) else "")
        state = self.state(project, document.path)
        if self._is_excluded(project, document.path):
            return Answer(document.path)

        def partly() -> None:
            if publish is not None and document.kind == "python":
                finish(project, state, [], partial=True)
                publish(self._answer(project, state, partial=True))

        self._judge(project, state, document, Round(work.touched, work.stop, partly))
        return self._answer(project, state)

    def _is_excluded(self, project: Project, path: str) -> bool:
        """Whether a file is not for us to judge: excluded by the settings, installed, or part of the upstream that is judged against."""
        if not project.session.in_project(path):
            return True
        relative = Path(os.path.relpath(path, project.root))
        patterns = [*DEFAULT_EXCLUDE, *project.loaded.settings.exclude]
        return any(
            fnmatch(part.name, pattern) or fnmatch(part.as_posix(), pattern)
            for part in (relative, *relative.parents)
            for pattern in patterns
        ) or path.startswith(f"{cache_folder()}{os.sep}")

    def state(self, project: Project, path: str) -> FileState:
        """The state of a file in a project."""
        return self.states(project).setdefault(path, FileState(path))

    def states(self, project: Project) -> dict[str, FileState]:
        """All states of a project, by path."""
        held = self._states.get(id(project))
        if held is None or held[0] is not project:
            live = {id(entry) for entry in self.projects.all()}
            self._states = {key: value for key, value in self._states.items() if key in live}
            held = self._states[id(project)] = (project, {})
        return held[1]

    def refresh(self, project: Project) -> frozenset[str]:
        """Let the project's session see all open documents; the paths of modules that are read again."""
        dropped = project.warm.refresh(self.buffers(project))
        self.reread |= dropped
        if dropped:
            self.actions.clear()
        return dropped

    def buffers(self, project: Project) -> dict[str, str]:
        """The texts of open documents by path; of one that cannot be read, the last that could."""
        texts: dict[str, str] = {}
        states = self.states(project)
        for document in list(self.documents.values()):
            if document.path is None or document.kind not in ("python", "launch"):
                continue
            state = states.get(document.path)
            text = document.text
            if state is not None and state.broken is not None and state.current == text:
                if state.module is None and not state.text:
                    continue
                text = state.text
            texts[document.path] = text
        return texts

    def _judge(self, project: Project, state: FileState, document: Document, work: Round) -> None:
        text = document.text
        if state.broken is not None and state.current != text:
            state.broken = None
        state.current = text
        self.refresh(project)
        if document.kind == "launch":
            judge_launch_file(project, state, text, work)
            return
        try:
            if state.broken is not None:
                return
            judge_python(project, state, text, work)
        except SourceError as error:
            broken(state, error, text)
            self.refresh(project)
            return
        others = judge_users(project, self.states(project), state.path, work)
        finish(project, state, others)

    def _answer(self, project: Project, state: FileState, partial: bool = False) -> Answer:
        found = grouped(state.report) if state.report is not None else []
        shown = [entry for entry in state.entries() if entry.shown and _is_in(entry, state.path)]
        lenses = [entry.summary for entry in shown if entry.summary is not None]
        if state.broken is not None:
            found, lenses = shifted(found, lenses, state.path, state.text, state.current)
            found.insert(0, Group(state.broken, (), "syntax"))
        heads: dict[str, int] = {}
        for verdict in state.verdicts():
            if verdict.span is not None and verdict.span.path == state.path:
                heads.update((finding.launch or "", verdict.span.line) for finding in verdict.findings)
        return Answer(state.path, found, lenses, partial=partial, heads=heads)

    # --- questions -----------------------------------------------------------------------------------------------

    @contextmanager
    def judged(self, document: Document) -> Iterator[tuple[Project, FileState]]:
        """The project of a document and its state, judged as the text is now. Raises UserError."""
        assert document.path is not None
        project = self.projects.of(document.path)
        state = self.state(project, document.path)
        self._judge(project, state, document, Round())
        yield project, state

    @contextmanager
    def seen(self, document: Document) -> Iterator[tuple[Project, FileState]]:
        """As `judged`, but nothing is judged for it: the session sees the text, the state knows its launches. Raises UserError."""
        assert document.path is not None
        project = self.projects.of(document.path)
        state = self.state(project, document.path)
        if document.kind == "python" and (state.broken is None or state.current != document.text):
            state.broken, state.current = None, document.text
            self.refresh(project)
            try:
                outline(project, state, document.text)
            except SourceError as error:
                broken(state, error, document.text)
        elif document.kind == "launch" and state.text != document.text:
            self._judge(project, state, document, Round())
        self.refresh(project)
        yield project, state

    def shown(self, project: Project, state: FileState) -> Answer:
        """What is to be shown of a file as it was judged last."""
        return self._answer(project, state)

    def is_own(self, path: str, other: str) -> bool:
        """Whether a second file belongs to the project of the first."""
        try:
            project = self.projects.of(path)
        except UserError:
            return False
        return project.session.in_project(other) and other.startswith(str(project.root))

    def generations(self) -> tuple[tuple[str, int], ...]:
        """Which texts the open documents have."""
        return tuple(sorted((document.uri, document.generation) for document in list(self.documents.values())))

    def forget_missing(self) -> None:
        """Files came or went."""
        self.actions.clear()
        for project in self.projects.all():
            project.warm.forget_missing()


def concerns(document: Document) -> bool:
    """Whether a document may hold recipes or launches at all."""
    assert document.path is not None
    if document.kind == "python":
        return files.may_concern(Path(document.path), {document.path: document.text})
    return script.may_launch(document.text) or yaml_files.may_concern(document.text)


def _is_in(entry: Judged, path: str) -> bool:
    return entry.verdict is not None and entry.verdict.span is not None and entry.verdict.span.path == path


def grouped(report: Report) -> list[Group]:
    """Findings that say the same of several launches at one place as one; as reports group them, without names for machines."""
    together: dict[tuple[object, ...], list[Finding]] = {}
    for finding in report.findings:
        alone = finding.launch if finding.span is None else None
        together.setdefault((finding.rule, finding.severity, finding.message, finding.span, finding.condition, alone), []).append(finding)
    return [
        Group(members[0], tuple(dict.fromkeys(member.launch for member in members if member.launch is not None)), "")
        for members in together.values()
    ]
