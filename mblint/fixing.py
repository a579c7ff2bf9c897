"""Fixes of one file: proves their edits by judging the edited file again, and applies them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mblint.checker import Checker
from mblint.evaluate.modules import SourceError
from mblint.findings import Finding, Fix
from mblint.fingerprint import Identity, identity
from mblint.fix.check import is_python
from mblint.fix.edits import TextOf, plans, written_down
from mblint.fix.helper import in_helper
from mblint.fix.prove import FixRun, Judged, fix_all, offer
from mblint.fix.scope import Scope
from mblint.fix.units import reached_names
from mblint.fix.write import decode
from mblint.launch.from_files import launches_of_file
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.run import Launch
from mblint.launch.session import Session
from mblint.verdict import FixInputs, Verdict

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
        helpers: bool = False,
    ) -> None:
        """`scope` is what can see the file (itself included), `held` are texts that stand in place of other files, `recipe` is
        what files of overrides belong to. `helpers`: functions of the file that recipes get values from are edited too, where every
        launch in `scope` that this changes has the finding."""
        self.recipe, self.helpers = recipe, helpers
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
        self.first: dict[str, Verdict] = {}
        """The verdicts on the recipes of the file as it was found, by their names."""
        self.configs: dict[str, list[object]] = {}
        """What tells the launches' configs apart, as the file was found, where `helpers` are edited."""
        self.seen: list[object] = []

    def _text(self, path: str) -> str | None:
        try:
            return self.session.text_of(path) or decode(path, self.session.data_of(path)).text
        except (OSError, ValueError, LookupError, SyntaxError):
            return None

    def judge(self, sources: dict[str, str]) -> Judged:
        """Judge all launches with these texts in place of the files."""
        self._replace(sources)
        self.checker.lone_proven = False
        try:
            return self._judged(sources)
        finally:
            self.checker.lone_proven = True

    def judge_again(self, sources: dict[str, str]) -> Judged:
        """Judge what an edit of the file reaches, for a proof: what it does not reach is as it was, and nothing is planned."""
        names = reached_names(self.original, sources[self.path]) if self._goes_by_names() else None
        known = {} if names is None else {name: held for name, held in self.first.items() if name.rpartition(":")[2] not in names}
        self._replace(sources)
        fixes, self.checker.fixes = self.checker.fixes, "none"
        findings: list[Finding] = []
        verdicts: list[Verdict] = []
        configs: dict[str, list[object]] = {}
        as_before = {id(verdict) for verdict in known.values()}
        try:
            for verdict in self._verdicts(findings, known, look=self._look):
                verdicts.append(verdict)
                label = verdict.name
                configs.setdefault(label, []).extend(self.configs.get(label, []) if id(verdict) in as_before else self.seen)
                self.seen.clear()
        finally:
            self.checker.fixes = fixes
        findings += [finding for verdict in verdicts for finding in verdict.findings]
        return _judged(findings, verdicts, configs)

    def _look(self, resolved: ResolvedLaunch) -> None:
        if self.helpers:
            self.seen.append(resolved.fingerprint())

    def _replace(self, sources: Mapping[str, str]) -> None:
        changed = {path: text for path, text in sources.items() if path != self.path or text != self.original}
        self.session.replace_sources({**self.held, **changed})

    def _goes_by_names(self) -> bool:
        """Whether a recipe of the file uses the file's other functions by the names that it writes down, and in no other way."""
        return is_python(self.path) and not self.session.comes_back(self.path)

    def _judged(self, sources: Mapping[str, str]) -> Judged:
        findings: list[Finding] = []
        inputs: dict[int, FixInputs] = {}
        configs: dict[str, list[object]] = {}

        def text_of(path: str) -> str | None:
            return sources.get(path) or self._text(path)

        seen: dict[str, Verdict] = {}
        verdicts: list[Verdict] = []

        for verdict in self._verdicts(findings, {}, seen, self._look):
            verdicts.append(verdict)
            configs.setdefault(verdict.name, []).extend(self.seen)
            self.seen.clear()
            findings += verdict.findings
            if verdict.fix_inputs is not None:
                inputs.update((id(finding), verdict.fix_inputs) for finding in verdict.findings)
        shown = {id(finding) for finding in self.shown(findings, text_of)}
        written = [
            self._planned(finding, inputs.get(id(finding)), text_of) if id(finding) in shown else replace(finding, fixes=())
            for finding in findings
        ]
        if sources.get(self.path) == self.original:
            self.first, self.configs = seen, configs
        return _judged(written, verdicts, configs)

    def _verdicts(
        self,
        findings: list[Finding],
        known: Mapping[str, Verdict],
        seen: dict[str, Verdict] | None = None,
        look: Callable[[ResolvedLaunch], None] | None = None,
    ) -> Iterator[Verdict]:
        """The verdicts on all launches in reach, those of some recipes `known`; what is found in the text of scripts goes to
        `findings`, the verdicts on the file's own recipes go to `seen`. `look` is shown each launch."""
        checker = self.checker
        for path in self.scope.recipes:
            try:
                found = checker.recipes_of(Path(path))
            except SourceError:
                continue
            for name, _ in found:
                verdict = known[name] if name in known else checker.judge_recipe(name, self.complete(Launch(name)), look)
                if verdict is not None:
                    if seen is not None and path == self.path:
                        seen[name] = verdict
                    yield verdict
        for row in self.scope.rows:
            yield checker.judge_launch(row, row.id, look)
        for path in self.scope.described:
            file = launches_of_file(self.session, Path(path), self.root, self.recipe)
            if file is not None:
                findings += [finding for finding in file.findings if checker.select(finding.rule, finding.name)]
                for launch in file.launches:
                    yield checker.judge_launch(self.complete(launch), launch.id, look)

    def _planned(self, finding: Finding, inputs: FixInputs | None, text_of: TextOf) -> Finding:
        if not finding.fixes or inputs is None:
            return finding
        fixes = []
        for fix in finding.fixes:
            ways = self._ways(fix, inputs, text_of)
            fixes.append(written_down(fix, ways))
            if fixes[-1].edits:
                self.plans[identity(finding), fixes[-1].title, text_of(self.path)] = ways
        return replace(finding, fixes=tuple(fixes))

    def _ways(self, fix: Fix, inputs: FixInputs, text_of: TextOf) -> Iterator[Fix]:
        """The ways to write a fix down, best first: in the function that several recipes get the value from, if that is here."""
        shared = in_helper(fix, inputs, text_of) if self.helpers else None
        if shared is not None and self._own_edits(shared):
            yield shared
        yield from plans(fix, inputs, text_of)

    def _others(self, finding: Finding, fix: Fix, sources: Mapping[str, str]) -> Iterator[Fix]:
        """Other ways to write the same fix down, for when the first is refused."""
        ways = self.plans.get((identity(finding), fix.title, sources.get(self.path)), iter(()))
        return (other for other in ways if self._own_edits(other))

    def offered(self) -> list[Finding]:
        """The file's findings with the edits of their proven fixes."""
        try:
            return offer({self.path: self.original}, self.judge, others=self._others, again=self.judge_again)
        finally:
            self.session.replace_sources({})

    def fixed(self, unsafe: bool, wanted: Callable[[Finding], bool]) -> FixRun:
        """The file's text after every fix that may be applied."""
        try:
            return fix_all(
                {self.path: self.original}, self.judge,
                unsafe=unsafe, wanted=lambda finding: wanted(finding) and self._own(finding), others=self._others,
                again=self.judge_again,
            )  # fmt: skip
        finally:
            self.session.replace_sources({})

    def _own(self, finding: Finding) -> bool:
        return all(self._own_edits(fix) for fix in finding.fixes)

    def _own_edits(self, fix: Fix) -> bool:
        return all(edit.span.path == self.path for edit in fix.edits)


def _judged(findings: Sequence[Finding], verdicts: Sequence[Verdict], configs: Mapping[str, object]) -> Judged:
    doubts = frozenset(doubt for verdict in verdicts for doubt in verdict.doubts)
    return Judged(tuple(findings), doubts, frozenset(verdict.name for verdict in verdicts), configs)


__all__ = ["FileFixer"]
