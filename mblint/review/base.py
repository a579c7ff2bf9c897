"""The change under review: its launches as they were at the base, and what it says of itself."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mblint.evaluate.modules import Module, SourceError
from mblint.findings import SEVERITY_ORDER, Finding
from mblint.launch.discover import recipe_functions
from mblint.launch.run import CannotEvaluate, Launch
from mblint.review.frozen import FrozenLaunch, freeze
from mblint.review.git import Change, Message, Repository, overlay_of
from mblint.review.match import Body, body_of, renamed
from mblint.review.reach import Reach

if TYPE_CHECKING:
    from mblint.checker import Checker
    from mblint.launch.resolved import ResolvedLaunch
    from mblint.launch.session import Session
    from mblint.verdict import Verdict

Rows = Callable[["Session", Sequence[str]], list[Launch]]


def key_of(launch: Launch) -> str:
    """What tells the launches of a run apart."""
    overrides = [getattr(item, "text", str(item)) for item in launch.overrides]
    spec = None if launch.spec is None else (launch.spec.name, launch.spec.span)
    return repr(
        (spec, launch.recipe, launch.id, sorted(launch.set.items(), key=repr), overrides, list(launch.files), launch.world_size, launch.gpu)
    )


@dataclass
class Past:
    """A launch at the base: the ways through it, and what was found in it, if it was judged."""

    ways: dict[str | None, FrozenLaunch] = field(default_factory=dict)
    verdict: Verdict | None = None

    def way(self, condition: str | None) -> FrozenLaunch | None:
        """The way through the recipe under the same condition; its only way, if there is but one."""
        if condition in self.ways:
            return self.ways[condition]
        return next(iter(self.ways.values())) if len(self.ways) == 1 else None


@dataclass
class Review:
    """A change: from a commit to the work tree. `judged`: what was found at the base is wanted too."""

    repo: Repository
    commit: str
    changes: Sequence[Change]
    judged: bool = False
    complete: Callable[[Launch], Launch] = lambda launch: launch
    """Adds to a launch at the base what the command line and the settings say."""
    rows_before: Rows | None = None
    """The launches that the settings listed at the base; None where they are the same."""
    described_before: Callable[[], tuple[list[tuple[str, Launch]], list[Finding]]] | None = None
    """Launches that scripts and YAML files describe, with their files, and findings about these files; asked at the base."""
    file_findings: list[Finding] = field(default_factory=list)
    """Those findings, once asked for."""
    overlay: dict[str, bytes | None] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    branch: str = ""
    renamed: dict[str, str] = field(default_factory=dict)
    """Recipe now -> its name at the base, where that is another one."""
    new: set[str] = field(default_factory=set)
    """Recipes that the base does not have."""
    deleted: set[str] = field(default_factory=set)
    deleted_files: dict[str, str] = field(default_factory=dict)
    """Where a deleted recipe stood."""
    affected: dict[str, Launch | None] = field(default_factory=dict)
    """Key of a launch that the change reaches -> the launch at the base, None where it had none."""
    past: dict[str, Past] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path, wanted: str) -> Review:
        """The change since the revision `wanted` ("auto" finds it). Raises GitError."""
        repo = Repository(folder)
        commit = repo.base(wanted)
        changes = repo.changes(commit)
        return cls(repo, commit, changes, overlay=overlay_of(changes), messages=repo.messages(commit), branch=repo.branch())

    @property
    def files(self) -> set[str]:
        """Real paths of all files that changed, those that are gone included."""
        return {os.path.realpath(path) for change in self.changes for path in (change.path, change.before) if path is not None}

    # --- which launches --------------------------------------------------------------------------------------------

    def prepare(
        self,
        checker: Checker,
        launches: Sequence[Launch],
        rows: Sequence[Launch] = (),
        described: Sequence[tuple[str, Launch]] = (),
    ) -> None:
        """Find the launches that the change reaches, and what each was at the base.

        `launches` are complete; `rows` those of them that the settings list, `described` those that a script or YAML file
        describes, with its real path.
        """
        session = checker.session
        self._match_names(session)
        reach = Reach(session, self.files)
        before = self._rows(session, launches) if self.rows_before is not None else None
        from_settings = {id(row) for row in rows}
        from_files = {id(launch) for _, launch in described}
        for launch in launches:
            name = launch.recipe or ""
            old = self.renamed.get(name, name)
            if id(launch) in from_files:
                continue
            if name in self.new:
                self.affected[key_of(launch)] = None
            elif before is not None and id(launch) in from_settings:
                self.affected[key_of(launch)] = _row_before(launch, old, before)
            elif old != name or self._reached(session, reach, launch):
                self.affected[key_of(launch)] = self._at_base(launch, old)
        self._prepare_described(session, reach, described)

    def _prepare_described(self, session: Session, reach: Reach, described: Sequence[tuple[str, Launch]]) -> None:
        """A launch that a file describes is paired with that of the same name in the file as it was."""
        data = any(not path.endswith(".py") for path in self.overlay)
        earlier: dict[tuple[str, str], list[Launch]] = {}
        if data and self.described_before is not None:
            with session.at(self.overlay):
                there, self.file_findings = self.described_before()
            for path, launch in there:
                earlier.setdefault((path, _own_id(launch)), []).append(launch)
        moved = {os.path.realpath(c.path): c.before for c in self.changes if c.path is not None and c.before is not None}
        for path, launch in described:
            if not data:
                if self._reached(session, reach, launch):
                    self.affected[key_of(launch)] = launch
                continue
            old = earlier.get((moved.get(path) or path, _own_id(launch)))
            if not old:
                self.affected[key_of(launch)] = None
                continue
            before = old.pop(0)
            if path in reach.changed or before.spec != launch.spec or self._reached(session, reach, launch):
                self.affected[key_of(launch)] = before
        for (path, _), left in earlier.items():
            for launch in left:
                self.deleted.add(launch.id)
                self.deleted_files[launch.id] = path

    def _at_base(self, launch: Launch, old: str) -> Launch:
        if old == launch.recipe:
            return launch
        # Another name may state other GPUs.
        from mblint.launch.naming import gpu_of, world_size_of

        was, now = old.rpartition(":")[2], (launch.recipe or "").rpartition(":")[2]
        size = world_size_of(was) or (None if launch.world_size == world_size_of(now) else launch.world_size)
        gpu = gpu_of(was) or (None if launch.gpu == gpu_of(now) else launch.gpu)
        return self.complete(replace(launch, recipe=old, world_size=size, gpu=gpu))

    def _rows(self, session: Session, launches: Sequence[Launch]) -> list[Launch]:
        assert self.rows_before is not None
        names = sorted({self.renamed.get(launch.recipe or "", launch.recipe or "") for launch in launches} | self.deleted)
        with session.at(self.overlay):
            return [self.complete(row) for row in self.rows_before(session, names)]

    def _reached(self, session: Session, reach: Reach, launch: Launch) -> bool:
        if any(os.path.realpath(name) in reach.changed for name in launch.files):
            return True
        found = session.modules.find((launch.recipe or "").partition(":")[0])
        return isinstance(found, Module) and session.in_project(found.path) and reach.touches(found.path)

    def _match_names(self, session: Session) -> None:
        now = _recipes(session, [change.path for change in self.changes])
        with session.at(self.overlay):
            then = _recipes(session, [change.before for change in self.changes])
        moved = {change.path: change.before for change in self.changes if change.path is not None and change.before is not None}
        gone = {name: body for name, body in then.items() if name not in now}
        new = {name: body for name, body in now.items() if name not in then}
        self.renamed = renamed(new, gone, moved)
        self.new = set(new) - set(self.renamed)
        self.deleted = set(gone) - set(self.renamed.values())
        self.deleted_files = {name: gone[name].path for name in self.deleted}

    # --- as they were ----------------------------------------------------------------------------------------------

    def ensure(self, checker: Checker, launches: Iterable[Launch]) -> None:
        """Resolve at the base those of the launches that the change reaches. The work tree is not touched."""
        wanted = {key_of(launch): launch for launch in launches}
        missing = [key for key in wanted if key in self.affected and key not in self.past]
        if not missing:
            return
        known: dict[str, Past] = {}
        before, fixes = checker.review, checker.fixes
        checker.review, checker.fixes = None, "none"
        try:
            with checker.session.at(self.overlay):
                for key in missing:
                    launch = self.affected[key]
                    past = Past() if launch is None else known.get(key_of(launch))
                    if past is None:
                        assert launch is not None
                        try:
                            past = resolve(checker, launch, self.judged)
                        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
                            past = Past()  # what fails inside is told of the launch as it is now
                        known[key_of(launch)] = past
                    self.past[key] = past
        finally:
            checker.review, checker.fixes = before, fixes

    def attach(self, launch: Launch, resolved: ResolvedLaunch) -> None:
        """Give a launch that is on the heap its base, and the words of the change."""
        past = self.past.get(key_of(launch))
        if past is not None:
            resolved.base = past.way(resolved.condition)
            resolved.words = self.words

    def words(self, path: str) -> str:
        """Messages of the commits that touched a file, and the branch's name with its marks as spaces."""
        try:
            name = os.path.relpath(os.path.realpath(path), self.repo.top).replace(os.sep, "/")
        except ValueError:
            name = path
        texts = [message.text for message in self.messages if name in message.files]
        return "\n".join([self.branch.replace("_", " ").replace("-", " ").replace("/", " "), *texts])

    # --- what is new -----------------------------------------------------------------------------------------------

    def marked(self, launch: Launch, verdict: Verdict) -> Verdict:
        """The verdict with those findings marked that the base had too: all of them where the change does not reach the launch."""
        past = self.past.get(key_of(launch))
        if past is None:
            # Not reached by the change; a launch that is new has an empty past.
            old: Sequence[Finding] | None = None
        else:
            old = past.verdict.findings if past.verdict is not None else ()
        findings = tuple(
            replace(finding, older=True) if old is None or any(same(finding, other) for other in old) else finding
            for finding in verdict.findings
        )
        return replace(verdict, findings=findings)

    def changed(self, path: str) -> bool:
        """Whether a file that is there now is new or changed."""
        real = os.path.realpath(path)
        return any(change.path is not None and os.path.realpath(change.path) == real for change in self.changes)

    def text_now(self, path: str) -> str:
        """The text of a file of the work tree; "" where it cannot be read."""
        try:
            with open(path, encoding="utf-8-sig", errors="replace", newline="") as handle:
                return handle.read()
        except OSError:
            return ""

    def text_before(self, path: str) -> str | None:
        """The text of a file at the base, None where it had none or did not change."""
        real = os.path.realpath(path)
        for change in self.changes:
            if change.path is not None and os.path.realpath(change.path) == real and change.content is not None:
                return change.content.decode("utf-8-sig", "replace")
        return None


def resolve(checker: Checker, launch: Launch, judged: bool) -> Past:
    """A launch as it is with the sources that the session has now."""
    past = Past()

    def keep(resolved: ResolvedLaunch) -> None:
        past.ways[resolved.condition] = freeze(resolved)

    with contextlib.suppress(CannotEvaluate):
        past.verdict = checker.survey(launch, judged, keep)
    return past


def same(finding: Finding, other: Finding) -> bool:
    """Whether two findings about a launch at two revisions say the same.

    The rule, its condition and the keys have to be the same and the severity no higher; of an error the value to blame too: who
    put one wrong value for another is told.
    """
    if finding.rule != other.rule or (finding.condition or "") != (other.condition or ""):
        return False
    if SEVERITY_ORDER[finding.severity] > SEVERITY_ORDER[other.severity]:
        return False
    if finding.message == other.message:
        return True
    if not finding.keys or set(finding.keys) != set(other.keys):
        return False
    if finding.severity != "error":
        return True
    blamed = next(iter(finding.keys))
    return bool(finding.keys[blamed] == other.keys[blamed])


def _own_id(launch: Launch) -> str:
    """The id of a described launch without the name of its file."""
    return launch.id.partition(": ")[2]


def _row_before(launch: Launch, old: str, rows: Sequence[Launch]) -> Launch | None:
    """The settings' row that a row was: the equal one, else that of the same name, else the only one for the recipe."""
    own = [row for row in rows if row.recipe == old]
    wanted = replace(launch, recipe=old)
    for row in own:
        if key_of(row) == key_of(wanted):
            return row
    named = [row for row in own if row.id and row.id == launch.id]
    if named:
        return named[0]
    return own[0] if len(own) == 1 else None


def _recipes(session: Session, paths: Iterable[str | None]) -> Mapping[str, Body]:
    """The recipes of these files with their bodies, by name."""
    found: dict[str, Body] = {}
    for path in paths:
        if path is None or not path.endswith(".py") or not session.exists(path):
            continue
        try:
            module = session.module_of(Path(path))
        except SourceError:
            continue
        for node in recipe_functions(module.tree):
            found[f"{module.name}:{node.name}"] = body_of(path, node)
    return found
