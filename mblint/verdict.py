"""What is said of launches: the verdict on one, on all ways through one, and on all of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mblint.findings import Finding, MemoryLine
from mblint.fix.layers import Layer, layers_of
from mblint.judge import Undecided
from mblint.launch.branches import Way, once
from mblint.launch.resolved import ResolvedLaunch, Write
from mblint.launch.run import Launch
from mblint.launch.spec import LaunchSpec
from mblint.read.span import Span


@dataclass(frozen=True)
class FixInputs:
    """What the edits of a launch's fixes are planned from: the writes of the keys that change, the recipe's function, the
    annotations of the fields, the YAML files and the command that override it. `described`: by a script or YAML file."""

    writes: dict[str, tuple[Write, ...]]
    function: Span | None
    hints: dict[str, str]
    env_missing: bool
    layers: tuple[Layer, ...] = ()
    described: bool = False


@dataclass(frozen=True)
class Verdict:
    """What is said of one launch: `ok`, `fails` or `undecided`."""

    id: str
    recipe: str
    verdict: str
    findings: tuple[Finding, ...]
    undecided: tuple[Undecided, ...]
    span: Span | None = None
    fix_inputs: FixInputs | None = None
    label: str = ""
    """What reports call it, where that is not the recipe's name."""
    spec: LaunchSpec | None = None
    """The script or YAML file's description of it."""
    memory: MemoryLine | None = None
    """What the fullest GPU needs, where it was estimated on the way and the GPU's capacity is known."""
    way: Way = ()
    """The branches on unknown values that it was judged with, until those of a launch are joined."""
    unproven: frozenset[int] = frozenset()
    """Which of the findings have fixes that are still to be proven."""

    @property
    def name(self) -> str:
        """What reports call the launch."""
        return self.label or self.recipe

    @property
    def doubts(self) -> frozenset[tuple[str, str]]:
        """The launch with each rule that could not be decided and may say that it fails."""
        return frozenset((self.name, doubt.rule) for doubt in self.undecided if doubt.could_fail)


@dataclass
class Checked:
    """The result of a run."""

    verdicts: list[Verdict] = field(default_factory=list)
    file_findings: list[Finding] = field(default_factory=list)
    files: int = 0
    crashed: bool = False

    @property
    def findings(self) -> list[Finding]:
        """All findings, in a fixed order, without repetition."""
        every = [*self.file_findings, *(finding for verdict in self.verdicts for finding in verdict.findings)]
        return sorted(unique(every), key=in_order)


def unique(findings: Iterable[Finding]) -> list[Finding]:
    seen: dict[Any, Finding] = {}
    for finding in findings:
        seen.setdefault((finding.rule, finding.message, finding.span, finding.launch, finding.condition), finding)
    return list(seen.values())


def in_order(finding: Finding) -> tuple[Any, ...]:
    span = finding.span
    place = (span.path, span.line, span.column) if span is not None else ("", 0, 0)
    return (*place, finding.rule, finding.launch or "", finding.message)


def kind_of(findings: Iterable[Finding], undecided: Iterable[Undecided], decided: bool) -> str:
    if any(finding.outcome == "fails" for finding in findings):
        return "fails"
    if not decided or any(doubt.could_fail for doubt in undecided):
        return "undecided"
    return "ok"


def joined(verdicts: list[Verdict], complete: bool) -> Verdict:
    """One verdict over the ways through a recipe: what holds on every way is said without condition, if all were gone."""
    findings = once([(verdict.way, verdict.findings) for verdict in verdicts], complete)
    kinds = [verdict.verdict for verdict in verdicts]
    kind = "fails" if complete and all(k == "fails" for k in kinds) else "ok" if complete and all(k == "ok" for k in kinds) else "undecided"
    first = verdicts[0]
    undecided = list(dict.fromkeys(doubt for verdict in verdicts for doubt in verdict.undecided))
    ordered = tuple(sorted(findings, key=in_order))
    return replace(first, verdict=kind, findings=ordered, undecided=tuple(undecided), fix_inputs=_all_inputs(verdicts), way=())


def _all_inputs(verdicts: Sequence[Verdict]) -> FixInputs | None:
    """What fixes of all ways through a recipe are planned from."""
    given = [verdict.fix_inputs for verdict in verdicts if verdict.fix_inputs is not None]
    if not given:
        return None
    writes = {key: found for inputs in reversed(given) for key, found in inputs.writes.items()}
    hints = {key: hint for inputs in reversed(given) for key, hint in inputs.hints.items()}
    return replace(given[0], writes=writes, hints=hints)


def fix_inputs(launch: ResolvedLaunch, findings: Iterable[Finding], described: Launch) -> FixInputs:
    """Writes and annotations of every key that a fix would change."""
    keys = {key for finding in findings for fix in finding.fixes for key in fix.changes}
    writes = {key: launch.origins(key) or launch.skipped_writes(key) for key in keys}
    hints = {key: hint for key in keys if (hint := launch.spelled(key))}
    body = launch.body
    own = body is not None and launch.session.in_project(body.path)
    missing = not isinstance(launch.cfg.attrs.get("env_vars"), dict)
    layers = tuple(layer for layer in layers_of(described) if launch.session.in_project(layer.span.path))
    return FixInputs(writes, body if own else None, hints, missing, layers, described.spec is not None)
