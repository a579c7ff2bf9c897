"""Fixes of findings as text edits, each proven by evaluating the edited buffers: only the launches that an edit reaches are judged
again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from mblint.checker import judged
from mblint.evaluate.modules import SourceError
from mblint.findings import Finding, Fix
from mblint.fix.edits import plans
from mblint.fix.prove import Judged, Proof, prove
from mblint.launch.run import Launch
from mblint.reporting import Sources
from mblint.server.judging import FileState, Round, judge_launch_file, judge_python
from mblint.server.launches import evaluated
from mblint.server.project import Project
from mblint.verdict import FixInputs, fix_inputs

MAX_FIXES = 12
"""Proofs for one question of the editor."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A proven way out, with its edits."""

    finding: Finding
    fix: Fix


class Prover:
    """Proves fixes for one file as it is now."""

    def __init__(self, project: Project, state: FileState, python: bool, buffers: Callable[[], dict[str, str]]) -> None:
        self.project, self.state, self.python, self.buffers = project, state, python, buffers
        self.sources = Sources(project.session)
        self.before = self._said(state)
        self._planned_from: dict[str, FixInputs | None] = {}

    def offered(self, findings: Iterable[Finding], stop: Callable[[], bool] = lambda: False) -> list[Offered]:
        """The proven fixes of some findings of the file's launches."""
        found: list[Offered] = []
        tried = 0
        wanted = [finding for finding in findings if finding.fixes]
        for finding in wanted:
            inputs = self._inputs(finding, wanted)
            for fix in finding.fixes:
                if tried >= MAX_FIXES or stop():
                    return found
                tried += 1
                proven = self._proven(finding, fix, inputs)
                if proven is not None:
                    found.append(Offered(finding, proven))
        return found

    def _proven(self, finding: Finding, fix: Fix, inputs: FixInputs | None) -> Fix | None:
        """The fix with the first of its ways to be written down that stands the proof."""
        if not fix.changes and fix.edits:
            return fix  # a comment that does nothing: nothing depends on it
        ways = [fix] if fix.edits else plans(fix, inputs, self.sources) if inputs is not None else ()
        for way in ways:
            if not way.edits:
                continue
            sources = {path: text for path in {edit.span.path for edit in way.edits} if (text := self.sources(path)) is not None}
            if isinstance(prove([(finding, way)], sources, self.before, self.judge), Proof):
                return way
        return None

    def judge(self, sources: dict[str, str]) -> Judged:
        """Judge the file's launches with these texts in place of the buffers."""
        return self._judged(sources, with_edits=False)

    def judge_with_edits(self, sources: dict[str, str]) -> Judged:
        """As `judge`, the safe fixes of each finding with the first way to write them down."""
        return self._judged(sources, with_edits=True)

    def _judged(self, sources: dict[str, str], with_edits: bool) -> Judged:
        project = self.project
        buffers = self.buffers()
        project.warm.refresh({**buffers, **sources})
        trial = self.state.copy()
        try:
            if self.python:
                judge_python(project, trial, sources.get(self.state.path, self.state.text), Round())
            else:
                judge_launch_file(project, trial, sources.get(self.state.path, self.state.text), Round())
            said = self._said(trial)
            return replace(said, findings=self._planned(trial, said.findings, sources)) if with_edits else said
        except SourceError:
            return Judged(())
        finally:
            project.warm.refresh(buffers)

    def _planned(self, trial: FileState, findings: Iterable[Finding], sources: dict[str, str]) -> tuple[Finding, ...]:
        """The findings with those of their safe fixes that can be written down, and with no others."""
        found = []
        for finding in findings:
            safe = [fix for fix in finding.fixes if fix.safety == "safe"]
            if safe and len(finding.fixes) == 1:
                inputs = None
                launch = self._launch_of(finding, trial)
                if launch is not None:
                    with evaluated(self.project, launch) as resolved:
                        inputs = fix_inputs(resolved, [finding], launch) if resolved is not None else None
                ways = plans(safe[0], inputs, lambda path: sources.get(path, self.sources(path))) if inputs is not None else ()
                way = next((way for way in ways if way.edits), None)
                found.append(replace(finding, fixes=(way,) if way is not None else ()))
            else:
                found.append(replace(finding, fixes=()))
        return tuple(found)

    def _said(self, state: FileState) -> Judged:
        parts = [judged(verdict) for verdict in state.verdicts()]
        return Judged(
            tuple(finding for part in parts for finding in part.findings),
            frozenset(pair for part in parts for pair in part.undecided),
            frozenset(name for part in parts for name in part.launches or ()),
        )

    def _launch_of(self, finding: Finding, state: FileState) -> Launch | None:
        """The launch that a finding was found in: the very one, else the first that says the same."""
        about = (finding.rule, finding.message, finding.span)
        same: list[Launch] = []
        for entry in state.entries():
            for other in entry.verdict.findings if entry.verdict is not None else ():
                if (other.rule, other.message, other.span) == about:
                    if other.launch == finding.launch:
                        return entry.launch
                    same.append(entry.launch)
        return same[0] if same else None

    def _inputs(self, finding: Finding, wanted: Iterable[Finding]) -> FixInputs | None:
        """What the edits of a finding's fixes are planned from: its launch is evaluated once more, once for all findings."""
        launch = self._launch_of(finding, self.state)
        if launch is None:
            return None
        name = f"{launch.recipe} {launch.id}"
        if name not in self._planned_from:
            with evaluated(self.project, launch) as resolved:
                self._planned_from[name] = fix_inputs(resolved, wanted, launch) if resolved is not None else None
        return self._planned_from[name]
