"""Fixes as text: plans their edits, proves them by judging the edited files again, and applies them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from mblint.checker import Checker, Verdict
from mblint.evaluate.modules import Module, SourceError
from mblint.evaluate.unknown import Absent
from mblint.findings import Finding
from mblint.fix.plan import plan_fixes
from mblint.fix.prove import FixRun, Judged, fix_all, offer
from mblint.launch.run import Launch
from mblint.launch.session import Session

LaunchOf = Callable[[str], Launch]


def with_edits(verdict: Verdict, text_of: Callable[[str], str | None]) -> tuple[Finding, ...]:
    """The findings of a verdict, their fixes as text edits; fixes that cannot be written are left out."""
    inputs = verdict.fix_inputs
    if inputs is None:
        return verdict.findings
    found = []
    for finding in verdict.findings:
        if finding.fixes:
            fixes = plan_fixes(finding.fixes, inputs.writes, text_of, inputs.function, hints=inputs.hints)
            finding = replace(finding, fixes=fixes)
        found.append(finding)
    return tuple(found)


class FileFixer:
    """Fixes the recipes of one file, judging every launch that the file reaches."""

    def __init__(self, checker: Checker, launch_of: LaunchOf, path: str, recipes: Mapping[str, Sequence[str]]) -> None:
        """`recipes` maps each file that can see this one (itself included) to the names of its recipes."""
        self.checker = checker
        self.session: Session = checker.session
        self.launch_of = launch_of
        self.path = path
        self.recipes = recipes
        self.original = self.session.text_of(path) or ""

    def judge(self, sources: dict[str, str]) -> Judged:
        """Judge all launches with these texts in place of the files."""
        changed = {path: text for path, text in sources.items() if path != self.path or text != self.original}
        self.session.replace_sources(changed)
        try:
            return self._judged(sources)
        finally:
            self.session.replace_sources({})

    def _judged(self, sources: Mapping[str, str]) -> Judged:
        findings: list[Finding] = []
        doubts: set[tuple[str, str]] = set()
        launches: set[str] = set()
        for path in self.recipes:
            try:
                found = self.checker.recipes_of(_as_path(path))
            except SourceError:
                continue
            for name, _ in found:
                verdict = self.checker.judge_recipe(name, self.launch_of(name))
                if verdict is None:
                    continue
                launches.add(verdict.recipe)
                findings += with_edits(verdict, lambda p: sources.get(p, self.session.text_of(p)))
                doubts |= {(verdict.recipe, doubt.rule) for doubt in verdict.undecided if doubt.could_fail}
        return Judged(tuple(findings), frozenset(doubts), frozenset(launches))

    def offered(self) -> list[Finding]:
        """The file's findings with the edits of their proven fixes."""
        return offer({self.path: self.original}, self.judge)

    def fixed(self, unsafe: bool, wanted: Callable[[Finding], bool]) -> FixRun:
        """The file's text after every fix that may be applied."""
        return fix_all({self.path: self.original}, self.judge, unsafe=unsafe, wanted=lambda f: wanted(f) and self._own(f))

    def _own(self, finding: Finding) -> bool:
        return all(edit.span.path == self.path for fix in finding.fixes for edit in fix.edits)


def _as_path(path: str):  # type: ignore[no-untyped-def]
    from pathlib import Path

    return Path(path)


def dependents(session: Session, paths: Iterable[str]) -> dict[str, set[str]]:
    """File -> the files among `paths` that import it, directly or through others, itself included."""
    modules = {module.path: module for module in session.modules.loaded.values() if isinstance(module, Module)}
    by_name = {module.name: module.path for module in modules.values()}
    wanted = set(paths)
    imports: dict[str, set[str]] = {}
    for path, module in modules.items():
        if not session.in_project(path):
            continue
        found: set[str] = set()
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom):
                source = session.modules.resolve_relative(module, node)
                names = [source, *(f"{source}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            found.update(by_name[name] for name in names if name in by_name)
        imports[path] = found
    reached: dict[str, set[str]] = {path: {path} for path in wanted}
    for path in wanted:
        pending = [path]
        while pending:
            current = pending.pop()
            for user, used in imports.items():
                if current in used and user not in reached[path]:
                    reached[path].add(user)
                    pending.append(user)
        reached[path] &= wanted | {path}
    return reached


__all__ = ["Absent", "FileFixer", "dependents", "with_edits"]
