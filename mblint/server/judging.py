"""Judges an open file again after a change: only the launches that the change reaches, the edited ones first."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mblint.checker import unreadable
from mblint.evaluate.modules import Module, SourceError
from mblint.findings import Finding
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.run import Launch
from mblint.read.span import Span
from mblint.report.model import Report
from mblint.server.importers import users_of
from mblint.server.parts import Parts, parts_of
from mblint.server.project import Project
from mblint.server.summary import Summary, summary_of
from mblint.verdict import Checked, Verdict

MAX_OF_USERS = 40
"""Recipes of other files that are judged for what they find in a helper."""

LAUNCH_NAMES = (".sh", ".bash", ".sbatch", ".slurm", ".sub", ".yaml", ".yml")
PARTIAL_AFTER, PARTIAL_AGAIN = 0.1, 0.7
"""Seconds after which what is known so far is shown, where a change reaches many launches."""


@dataclass(slots=True)
class Judged:
    """What was said of one launch, and of what: it holds as long as `own` and `reads` stay the same."""

    launch: Launch
    verdict: Verdict | None
    own: bytes
    reads: Any
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    """First and last lines of the parts that it depends on, in the text that was judged."""
    summary: Summary | None
    shown: bool = True
    """False for what only looked like a recipe."""


@dataclass
class FileState:
    """The last state of one file: verdicts by launch, and what is to be shown."""

    path: str
    named: dict[str, Launch] = field(default_factory=dict)
    """The launches of the text, in order, whether they are judged or not."""
    judged: dict[str, Judged] = field(default_factory=dict)
    report: Report | None = None
    text: str = ""
    """The text that `judged` and `report` are about: the last one that could be read."""
    current: str = ""
    """The text that was last asked about."""
    broken: Finding | None = None
    module: Module | None = None
    parts: Parts | None = None

    def verdicts(self) -> list[Verdict]:
        """Of all launches, in the file's order."""
        return [entry.verdict for entry in self.entries() if entry.verdict is not None and entry.shown]

    def entries(self) -> list[Judged]:
        """What was said of each launch that is judged, in the file's order."""
        return [self.judged[name] for name in self.named if name in self.judged]

    def copy(self) -> FileState:
        """A state to try other texts on: it knows what was judged, and tells nobody what it learns."""
        return replace(self, named=dict(self.named), judged=dict(self.judged))


@dataclass(frozen=True, slots=True)
class Round:
    """What a round of judging was asked for: `touched` is the line that changed, `stop` says that a newer change waits."""

    touched: int | None = None
    stop: Callable[[], bool] = lambda: False
    partial: Callable[[], None] = lambda: None
    """Called when some launches are judged and many are not yet."""


class Stopped(Exception):
    """A newer change waits; what was judged so far is kept."""


def outline(project: Project, state: FileState, text: str) -> None:
    """Learn the launches of a recipe file's text, which the session's overlay already holds. Raises SourceError."""
    recipes = project.checker.recipes_of(Path(state.path))
    module = project.session.module_of(Path(state.path))
    if module is state.module:
        return
    launches = [project.complete(Launch(name)) for name, _ in recipes]
    launches += rows_of(project, [name for name, _ in recipes])
    state.named = {_name(launch): launch for launch in launches}
    state.text, state.module, state.parts, state.broken = text, module, parts_of(module.text, module.tree), None


def judge_python(project: Project, state: FileState, text: str, work: Round) -> None:
    """Bring a recipe file's state up to date with its text. Raises SourceError for a text that is not Python, and Stopped."""
    outline(project, state, text)
    module, parts, before = state.module, state.parts, state.judged
    assert module is not None and parts is not None
    reads = project.warm.reads(module)
    fresh: dict[str, Judged] = {}
    stale: list[tuple[int, str]] = []
    for name, launch in state.named.items():
        indices = parts.reached(_function(launch))
        held = before.get(name)
        if held is not None and held.own == parts.digest(indices) and held.launch == launch and held.reads == reads:
            moved = _moved(held, parts, indices, state.path)
            if moved is not None:
                fresh[name] = moved
                continue
        stale.append((_distance(parts, _function(launch), work.touched), name))
    state.judged = {**{name: entry for name, entry in before.items() if name in state.named}, **fresh}
    stale.sort()
    due = time.monotonic() + PARTIAL_AFTER
    for number, (_, name) in enumerate(stale):
        if number and work.stop():
            raise Stopped
        if number and len(stale) - number > 3 and time.monotonic() > due:
            work.partial()
            due = time.monotonic() + PARTIAL_AGAIN
        state.judged[name] = _judge(project, state.named[name], parts, parts.reached(_function(state.named[name])), reads)
    if stale:
        # What was read while judging counts as read from now on, for all.
        project.warm.remember()
        after = project.warm.reads(module)
        state.judged = {name: replace(entry, reads=after) for name, entry in state.judged.items()}


def judge_users(project: Project, states: dict[str, FileState], path: str, work: Round) -> list[Verdict]:
    """Verdicts of the recipes of other files that import this one: what is found there may be written here."""
    found: list[Verdict] = []
    if any(entry.shown for entry in states[path].entries()):
        return found  # it has recipes of its own to be judged by
    for user in users_of(project, path):
        if len(found) >= MAX_OF_USERS:
            break
        if work.stop():
            raise Stopped
        work.partial()
        state = states.setdefault(user, FileState(user))
        try:
            module = project.session.module_of(Path(user))
            judge_python(project, state, module.text, work)
        except SourceError:
            continue
        found += state.verdicts()
    return found


def judge_launch_file(project: Project, state: FileState, text: str, work: Round) -> None:
    """Bring the state of a script or YAML file up to date. Raises Stopped."""
    from mblint.launch.from_files import launches_of_file

    state.text, state.broken = text, None
    found = launches_of_file(project.session, Path(state.path), project.loaded.root)
    before, state.judged, state.named = state.judged, {}, {}
    findings: list[Finding] = []
    stale: list[tuple[str, bytes, Any, tuple[int, ...]]] = []
    if found is not None:
        findings = [finding for finding in found.findings if project.checker.select(finding.rule, finding.name)]
        for number, launch in enumerate(found.launches):
            complete = project.complete(launch)
            name = f"{number}:{launch.id}"
            state.named[name] = complete
            own, reads, starts = _inputs(project, complete)
            held = before.get(name)
            if held is not None:
                state.judged[name] = held
            if held is None or held.launch != complete or (held.own, held.reads, held.starts) != (own, reads, starts) or reads is None:
                stale.append((name, own, reads, starts))
    for number, (name, own, _, starts) in enumerate(stale):
        if number and work.stop():
            raise Stopped
        made = _judge(project, state.named[name], None, (), None)
        # Its recipe was read while it was judged.
        reads = _inputs(project, state.named[name])[1]
        state.judged[name] = replace(made, own=own, reads=reads, starts=starts)
    if stale:
        project.warm.remember()
    finish(project, state, [], findings)


def _inputs(project: Project, launch: Launch) -> tuple[bytes, Any, tuple[int, ...]]:
    """What a launch of a script or file is made of besides itself: its files, its recipe's parts and where they stand, and what the
    recipe's module imports; None for the last where that is not known."""
    own = hashlib.blake2b(digest_size=12)
    for name in launch.files:
        try:
            own.update(project.session.data_of(name))
        except OSError:
            own.update(b"?")
    module = project.session.modules.loaded.get((launch.recipe or "").partition(":")[0])
    if not isinstance(module, Module) or not project.session.in_project(module.path):
        return own.digest(), () if launch.recipe is None or isinstance(module, Module) else None, ()
    parts = parts_of(module.text, module.tree)
    indices = parts.reached(_function(launch))
    own.update(parts.digest(indices))
    return own.digest(), project.warm.reads(module), tuple(parts.parts[index].first for index in indices)


def finish(project: Project, state: FileState, others: Sequence[Verdict], findings: Sequence[Finding] = (), partial: bool = False) -> None:
    """Make the report: suppressions, ignores and the baseline applied, as `mblint check` does. `partial`: not all is judged yet."""
    from mblint.reporting import build_report

    checker = project.checker
    verdicts = [*state.verdicts(), *others]
    checked = Checked(verdicts=verdicts, file_findings=list(findings), files=1)
    report = build_report(
        checked,
        checker.all_rules,
        project.session,
        project.loaded.root,
        active=checker.select,
        per_file_ignores=project.loaded.settings.per_file_ignores,
        known=_baseline(project),
        files=[Path(state.path)],
        edits=False,
        docs_url=project.loaded.settings.docs_url,
    )
    # A comment in a helper may serve recipes that are not judged here: it is only called idle where all are seen.
    idle = not partial and (bool(verdicts) or state.path.endswith(LAUNCH_NAMES))
    state.report = replace(report, findings=tuple(f for f in report.findings if idle or f.rule != "MB903"))


def broken(state: FileState, error: SourceError, text: str) -> None:
    """Note a text that cannot be read; what was found in the last good one stays, at the lines where it stands now."""
    state.broken = unreadable(error)
    state.current = text


def rows_of(project: Project, names: Sequence[str]) -> list[Launch]:
    """The settings' rows for recipes of this file."""
    from mblint.cli.matrix import settings_launches
    from mblint.errors import SettingsError

    settings = project.loaded.settings
    if not settings.launches or not names:
        return []
    found: list[Launch] = []
    for number in range(len(settings.launches)):
        try:
            only = replace(project.loaded, settings=replace(settings, launches=settings.launches[number : number + 1]))
            found += [project.complete(row) for row in settings_launches(only, project.session, names) if row.recipe in names]
        except SettingsError:
            continue  # it names a recipe of another file
    return found


def _judge(project: Project, launch: Launch, parts: Parts | None, indices: tuple[int, ...], reads: Any) -> Judged:
    checker = project.checker
    seen: list[Summary] = []

    def observe(resolved: ResolvedLaunch) -> None:
        if not seen:
            seen.append(summary_of(resolved))

    verdict: Verdict | None
    if launch.spec is None and launch.recipe is not None:
        verdict = checker.judge_recipe(launch.recipe, launch, observe)
    else:
        verdict = checker.judge_launch(launch, launch.id, observe)
    own = parts.digest(indices) if parts is not None else b""
    starts = tuple(parts.parts[index].first for index in indices) if parts is not None else ()
    ends = tuple(parts.parts[index].last for index in indices) if parts is not None else ()
    return Judged(launch, verdict, own, reads, starts, ends, seen[0] if seen else None, verdict is not None)


def _name(launch: Launch) -> str:
    added = launch.id or launch.set or launch.overrides or launch.files
    return f"{launch.recipe} {launch.id} {launch.set_by}" if added else launch.recipe or ""


def _function(launch: Launch) -> str:
    return (launch.recipe or "").rpartition(":")[2]


def _distance(parts: Parts, function: str, line: int | None) -> int:
    """0 where the changed line belongs to the function itself, else how far it is away."""
    own = parts.binders.get(function)
    if line is None or not own:
        return 0
    part = parts.parts[own[-1]]
    return 0 if part.first <= line <= part.last else min(abs(part.first - line), abs(part.last - line))


def _moved(held: Judged, parts: Parts, indices: tuple[int, ...], path: str) -> Judged | None:
    """The entry with its places where the same statements stand now; None where a place belongs to none of them."""
    starts = tuple(parts.parts[index].first for index in indices)
    if starts == held.starts:
        return held
    if len(starts) != len(held.starts):
        return None

    def line_of(line: int) -> int:
        for old, end, new in zip(held.starts, held.ends, starts, strict=True):
            if old <= line <= end:
                return line - old + new
        raise LookupError

    def span_of(span: Span) -> Span:
        if span.path != path:
            return span
        line = line_of(span.line)
        return replace(span, line=line, end_line=span.end_line + line - span.line if span.end_line else span.end_line)

    try:
        verdict = held.verdict and replace(
            held.verdict,
            span=held.verdict.span and span_of(held.verdict.span),
            findings=tuple(moved_finding(finding, span_of) for finding in held.verdict.findings),
        )
        summary = held.summary and replace(held.summary, line=line_of(held.summary.line))
    except LookupError:
        return None
    ends = tuple(parts.parts[index].last for index in indices)
    return replace(held, verdict=verdict, starts=starts, ends=ends, summary=summary)


def moved_finding(finding: Finding, span_of: Callable[[Span], Span]) -> Finding:
    """The finding with its places changed."""
    related = tuple(replace(entry, span=span_of(entry.span)) for entry in finding.related)
    fixes = tuple(
        replace(fix, edits=tuple(replace(edit, span=span_of(edit.span)) for edit in fix.edits)) if fix.edits else fix
        for fix in finding.fixes
    )
    return replace(finding, span=finding.span and span_of(finding.span), related=related, fixes=fixes)


def _baseline(project: Project) -> Any:
    """What is accepted, if the project has a baseline; one that cannot be read accepts nothing."""
    from argparse import Namespace

    from mblint.cli.adopt_run import known_findings
    from mblint.errors import UserError

    args = Namespace(write_baseline=None, baseline=None, launches=None, paths=["?"])
    try:
        return known_findings(args, project.loaded, project.checker)
    except UserError:
        return None
