"""Fixes of one file: proves their edits by judging the edited file again, and applies them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mblint.checker import Checker, FixInputs, Verdict
from mblint.evaluate.modules import SourceError
from mblint.findings import Finding, Fix
from mblint.fingerprint import Identity, identity
from mblint.fix.edits import TextOf, plans, written_down
from mblint.fix.prove import FixRun, Judged, fix_all, offer
from mblint.fix.scope import Scope
from mblint.fix.write import decode
from mblint.launch.from_files import launches_of_file
from mblint.launch.run import Launch
from mblint.launch.session import Session

Complete = Callable[[Launch], Launch]
"""Adds to a launch what the command line and the settings say of every one."""

Shown = Callable[[Sequence[Finding], TextOf], Sequence[Finding]]
"""Those of the findings that nothing holds back: no comment, no setting, no baseline."""


class FileFixer:
    """Fixes one file, judging every launch that it reaches: recipes, rows of the settings, scripts and YAML files."""

    def __init__(
        self,
        checker: Checker,
        complete: Complete,
        root: Path,
        path: str,
        scope: Scope,
        shown: Shown = lambda findings, text_of: findings,
        held: Mapping[str, str] | None = None,
        recipe: str | None = None,
    ) -> None:
        """`scope` is what can see the file (itself included), `held` are texts that stand in place of other files, `recipe` is
        what files of overrides belong to."""
        self.recipe = recipe
        self.checker = checker
        self.session: Session = checker.session
        self.complete, self.root, self.path, self.scope, self.shown = complete, root, path, scope, shown
        self.held = dict(held or {})
        self.session.replace_sources(self.held)
        try:
            self.original = self._text(path) or ""
        finally:
            self.session.replace_sources({})
        self.plans: dict[tuple[Identity, str, str | None], Iterator[Fix]] = {}

    def _text(self, path: str) -> str | None:
        try:
            return self.session.text_of(path) or decode(path, self.session.data_of(path)).text
        except (OSError, ValueError, LookupError, SyntaxError):
            return None

    def judge(self, sources: dict[str, str]) -> Judged:
        """Judge all launches with these texts in place of the files."""
        changed = {path: text for path, text in sources.items() if path != self.path or text != self.original}
        self.session.replace_sources({**self.held, **changed})
        self.checker.lone_proven = False
        try:
            return self._judged(sources)
        finally:
            self.checker.lone_proven = True
            self.session.replace_sources({})

    def _judged(self, sources: Mapping[str, str]) -> Judged:
        findings: list[Finding] = []
        doubts: set[tuple[str, str]] = set()
        launches: set[str] = set()
        inputs: dict[int, FixInputs] = {}

        def text_of(path: str) -> str | None:
            return sources.get(path) or self._text(path)

        for verdict in self._verdicts(findings):
            label = verdict.label or verdict.recipe
            launches.add(label)
            doubts |= {(label, doubt.rule) for doubt in verdict.undecided if doubt.could_fail}
            findings += verdict.findings
            if verdict.fix_inputs is not None:
                inputs.update((id(finding), verdict.fix_inputs) for finding in verdict.findings)
        shown = {id(finding) for finding in self.shown(findings, text_of)}
        written = [
            self._planned(finding, inputs.get(id(finding)), text_of) if id(finding) in shown else replace(finding, fixes=())
            for finding in findings
        ]
        return Judged(tuple(written), frozenset(doubts), frozenset(launches))

    def _verdicts(self, findings: list[Finding]) -> Iterator[Verdict]:
        """The verdicts on all launches in reach; what is found in the text of scripts goes to `findings`."""
        checker = self.checker
        for path in self.scope.recipes:
            try:
                found = checker.recipes_of(Path(path))
            except SourceError:
                continue
            for name, _ in found:
                verdict = checker.judge_recipe(name, self.complete(Launch(name)))
                if verdict is not None:
                    yield verdict
        for row in self.scope.rows:
            yield checker.judge_launch(row, row.id)
        for path in self.scope.described:
            file = launches_of_file(self.session, Path(path), self.root, self.recipe)
            if file is not None:
                findings += [finding for finding in file.findings if checker.select(finding.rule, finding.name)]
                for launch in file.launches:
                    yield checker.judge_launch(self.complete(launch), launch.id)

    def _planned(self, finding: Finding, inputs: FixInputs | None, text_of: TextOf) -> Finding:
        if not finding.fixes or inputs is None:
            return finding
        fixes = []
        for fix in finding.fixes:
            ways = plans(fix, inputs, text_of)
            fixes.append(written_down(fix, ways))
            if fixes[-1].edits:
                self.plans[identity(finding), fix.title, text_of(self.path)] = ways
        return replace(finding, fixes=tuple(fixes))

    def _others(self, finding: Finding, fix: Fix, sources: Mapping[str, str]) -> Iterator[Fix]:
        """Other ways to write the same fix down, for when the first is refused."""
        ways = self.plans.get((identity(finding), fix.title, sources.get(self.path)), iter(()))
        return (other for other in ways if self._own_edits(other))

    def offered(self) -> list[Finding]:
        """The file's findings with the edits of their proven fixes."""
        return offer({self.path: self.original}, self.judge, others=self._others)

    def fixed(self, unsafe: bool, wanted: Callable[[Finding], bool]) -> FixRun:
        """The file's text after every fix that may be applied."""
        return fix_all(
            {self.path: self.original}, self.judge,
            unsafe=unsafe, wanted=lambda finding: wanted(finding) and self._own(finding), others=self._others,
        )  # fmt: skip

    def _own(self, finding: Finding) -> bool:
        return all(self._own_edits(fix) for fix in finding.fixes)

    def _own_edits(self, fix: Fix) -> bool:
        return all(edit.span.path == self.path for edit in fix.edits)


__all__ = ["FileFixer"]
