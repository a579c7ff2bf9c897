"""The launches of a project as they were at the base of a change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mblint.checker import Checker, Verdict
from mblint.evaluate.modules import Module, SourceError
from mblint.findings import Finding
from mblint.fingerprint import identity, subject
from mblint.launch.discover import recipe_functions
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.run import CannotEvaluate, Launch
from mblint.launch.session import Session
from mblint.review.frozen import FrozenLaunch, freeze
from mblint.review.git import Change, Repository, overlay_at

LaunchOf = Callable[[str], Launch]


@dataclass
class Base:
    """The base of a change: its launches by name, what was found in them, and what the change says of itself."""

    commit: str
    launches: dict[str, FrozenLaunch] = field(default_factory=dict)
    findings: dict[str, list[Finding]] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    """Name now -> name at the base, for recipes that moved or got another name."""
    words: str = ""

    def of(self, name: str) -> FrozenLaunch | None:
        """The launch at the base that became `name`."""
        return self.launches.get(self.renamed.get(name, name))

    def is_new(self, finding: Finding) -> bool:
        """Whether the base did not have this finding already (for the same launch, about the same keys with the same values)."""
        name = finding.launch or ""
        older = self.findings.get(self.renamed.get(name, name), [])
        return not any(_same(finding, other) for other in older)


def _same(one: Finding, other: Finding) -> bool:
    if one.rule != other.rule:
        return False
    return {**subject(one), "launch": ""} == {**subject(other), "launch": ""} or (
        identity(one)[4] == identity(other)[4] and one.message == other.message
    )


def affected(session: Session, changes: Sequence[Change], top: Path, recipes: Mapping[str, Iterable[str]]) -> set[str]:
    """Names of the recipes whose file changed or imports, however far, a file that did."""
    from mblint.fixing import dependents

    changed = {str(top / name) for change in changes for name in (change.path, change.before) if name is not None}
    modules = [m.path for m in session.modules.loaded.values() if isinstance(m, Module) and session.in_project(m.path)]
    reached = dependents(session, set(modules) | set(recipes))
    hit = {path for source, users in reached.items() if source in changed for path in users}
    return {name for path, names in recipes.items() if path in hit or path in changed for name in names}


def resolve_base(
    checker: Checker,
    repo: Repository,
    commit: str,
    changes: Sequence[Change],
    names: Iterable[str],
    launch_of: LaunchOf,
) -> Base:
    """Resolve and judge at the base every launch of `names` (and what they were called there).

    The work tree is not touched: the changed files are overlaid by their content at the commit.
    """
    session = checker.session
    base = Base(commit, words=repo.words(commit))
    overlay = overlay_at(repo, commit, changes)
    wanted = list(names)
    session.replace_sources(overlay)
    try:
        there = _recipes_at(checker, repo, changes, overlay)
        base.renamed = _matches(wanted, there, session)
        for name in wanted:
            old = base.renamed.get(name, name)
            if old in base.verdicts:
                continue
            _judge_at(checker, base, old, launch_of(name))
    finally:
        session.replace_sources({})
    return base


def _judge_at(checker: Checker, base: Base, name: str, launch: Launch) -> None:
    from dataclasses import replace

    from mblint.launch.naming import gpu_of, world_size_of

    function = name.rpartition(":")[2]
    own = replace(launch, recipe=name, world_size=world_size_of(function) or launch.world_size, gpu=gpu_of(function) or launch.gpu)

    def keep(resolved: ResolvedLaunch) -> None:
        base.launches[name] = freeze(resolved)

    try:
        verdict = checker.judge_launch(own, name, keep)
    except CannotEvaluate:
        return
    base.verdicts[name] = verdict
    base.findings[name] = list(verdict.findings)


def _recipes_at(checker: Checker, repo: Repository, changes: Sequence[Change], overlay: Mapping[str, object]) -> dict[str, str]:
    """Recipe name -> file, for the changed files as they were at the base."""
    found: dict[str, str] = {}
    for change in changes:
        if change.before is None or not change.before.endswith(".py"):
            continue
        path = repo.top / change.before
        data = overlay.get(str(path))
        try:
            module = checker.session.module_of(path, data if isinstance(data, (bytes, str)) else None)
        except SourceError:
            continue
        for node in recipe_functions(module.tree):
            found[f"{module.name}:{node.name}"] = str(path)
    return found


def _matches(names: Sequence[str], there: Mapping[str, str], session: Session) -> dict[str, str]:
    """For names that the base did not have: the only recipe of the same function name that is gone now, or the only one that is
    gone from the same module."""
    gone = [name for name in there if name not in names]
    matched: dict[str, str] = {}
    for name in names:
        if name in there or _exists(session, name):
            continue
        module, _, function = name.partition(":")
        same_function = [old for old in gone if old.partition(":")[2] == function]
        same_module = [old for old in gone if old.partition(":")[0] == module]
        choice = same_function if len(same_function) == 1 else same_module if len(same_module) == 1 else []
        if choice and choice[0] not in matched.values():
            matched[name] = choice[0]
    return matched


def _exists(session: Session, name: str) -> bool:
    module, _, function = name.partition(":")
    found = session.modules.find(module)
    return isinstance(found, Module) and function in found.binders
