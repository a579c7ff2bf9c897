"""Runs one launch two ways: upstream's evaluated launch path, and the rules that stand for its checks.

The rules are asked twice: with the values as they were written, which is all that there is without upstream's source, and with
those that the launch path left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import lcm
from typing import Any

from mblint.evaluate.site import Site
from mblint.evaluate.unknown import ABSENT, Absent, Unknown
from mblint.facts.view import View
from mblint.findings import Finding
from mblint.judge import judge, merge
from mblint.judging.path import path_findings
from mblint.judging.reach import is_reached
from mblint.launch import path as launch_path
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.run import CannotEvaluate, Launch, on_heap
from mblint.launch.session import Facts, Session, with_deep_stack
from mblint.ruleset.examples import VERSIONS, base, launch_of
from mblint.ruleset.expression import Trace
from mblint.ruleset.rule import Rule
from mblint.upstream.locate import locate

NO_FIELD = re.compile(r"--set (\S+): \w+ has no field ")
MOST_ABSENT = 8
"""Fields of other releases that a base may set."""
STAND_INS = {"dataset.blend": None}
"""Nothing but the shape of a launch is judged: files are taken to exist."""

RENAMED = {"dataset.seq_length": "dataset.sequence_length"}
"""Names that keys had before the release that examples are written for."""


@dataclass(frozen=True)
class Check:
    """A check of upstream that failed: where, and what it says or asks for."""

    anchor: str
    line: int
    message: str


@dataclass
class Outcome:
    """What both judges say of one launch."""

    checks: list[Check] = field(default_factory=list)
    """Checks that the launch path fails at; empty where it starts."""
    inputs: bool = False
    """It fails only for want of what a launch has to supply, such as a path."""
    undecided: str | None = None
    """Why the launch path cannot be judged, if so."""
    written: dict[str, Finding] = field(default_factory=dict)
    """Findings with outcome `fails` of rules that stand for a check on the path, by id, from the values as they were written."""
    effective: dict[str, Finding] = field(default_factory=dict)
    """The same from the values that the path left."""
    replaced: dict[str, list[Check]] = field(default_factory=dict)
    """For each rule that fired, the checks that its finding replaces."""
    refused: str | None = None
    """Why the launch cannot be built at all."""
    doubts: dict[str, str] = field(default_factory=dict)
    """Rules that could not be decided, with the values they lacked."""


def on_path(rule: Rule) -> bool:
    """Whether a rule, or a case of it, stands for a check that the evaluated launch path goes through."""
    places = [*rule.enforced_by, *(place for case in rule.cases for place in case.enforced_by or ())]
    return rule.judged_by == "expression" and "fails" in rule.outcomes and any(is_reached(place) for place in places)


class Machine:
    """One release's launch path, ready to be run on many launches."""

    def __init__(self, upstream: str, rules: Sequence[Rule], versions: Mapping[str, str] | None = None) -> None:
        self.rules = [rule for rule in rules if on_path(rule)]
        self.session = Session(locate(upstream), facts=Facts(dict(versions or {})))
        launch_path.install(self.session)
        self.plain = self._plain()
        self.memory: dict[str, Outcome] = {}

    def _plain(self) -> dict[str, Any]:
        with on_heap(self.session, Launch(None, env={})) as resolved:
            keys = list(resolved.keys())
            self.annotations = {key: text for key in keys if (text := resolved.annotation(key)) is not None}
            return {key: resolved.get(key) for key in keys}

    def launch(self, example: Mapping[str, Any]) -> Launch:
        """The launch that a rule's example describes, for the real classes of this release."""
        flat = launch_of(example).values
        given: dict[str, Any] = {}
        layers = str(example.get("base", "dense"))
        for key, value in flat.items():
            if key in STAND_INS or isinstance(value, Unknown) or self.plain.get(key, ABSENT) == value:
                continue
            chosen = key in (example.get("set") or {})
            if key in RENAMED.values() and not chosen:
                continue
            # What another release does not have is left out, unless the example is about it.
            if not chosen and key in base("dense") and key not in self.plain and key not in RENAMED:
                continue
            if key in RENAMED and key not in self.plain:
                key = RENAMED[key]
            is_function = isinstance(value, str) and value.startswith("torch.nn.functional.")
            given[key] = {"ref": value} if is_function else value
        if "lora" in layers or flat.get("checkpoint.pretrained_checkpoint") is not None:
            given["checkpoint.pretrained_checkpoint"] = "/existing/checkpoint"
        env = {str(name): str(text) for name, text in (example.get("env") or {}).items()}
        world = example.get("world_size") or smallest_world(flat)
        return Launch(None, set=given, world_size=world, gpu=example.get("gpu") or "h100", env=env)

    def run(self, launch: Launch) -> Outcome:
        """Judge a launch both ways."""
        outcome = Outcome()
        try:
            with on_heap(self.session, launch) as resolved:
                resolved.remember_written()
                outcome.written = self._fired(resolved, outcome)
                path = launch_path.run_path(self.session, resolved.cfg)
                resolved.path = path
                raw = path_findings(resolved, path)
                outcome.effective = self._fired(resolved, outcome)
                outcome.inputs = any(finding.rule == "MB002" for finding in raw)
                if not path.failures:
                    outcome.undecided = path.stopped or next((because for _, because in path.undecided), None)
                self._assign(outcome, path, raw)
        except CannotEvaluate as problem:
            outcome.refused = problem.message
        return outcome

    def read(self, launch: Launch, rule: Rule) -> tuple[tuple[str, ...], dict[str, Any]]:
        """The keys that a rule's conditions read on a launch, and the values of those that are plain there."""
        with on_heap(self.session, launch) as resolved:
            trace = Trace(View(resolved))
            rule.when.test(trace)
            for case in rule.cases:
                case.when.test(trace)
            keys = trace.keys()
            values = {key: resolved.get(key) for key in keys}
            return keys, {key: value for key, value in values.items() if not isinstance(value, Unknown | Absent)}

    def example(self, example: Mapping[str, Any]) -> Outcome:
        """As `run`, for a rule's example, without what its base sets and this release does not have; remembered."""
        key = repr(sorted(example.items(), key=lambda item: item[0]))
        if key not in self.memory:
            launch, outcome = self.launch(example), Outcome()
            for _ in range(MOST_ABSENT):
                outcome = self.run(launch)
                absent = NO_FIELD.match(outcome.refused or "")
                if absent is None or absent[1] in (example.get("set") or {}):
                    break
                # A base's value for a field of another release.
                launch = replace(launch, set={name: value for name, value in launch.set.items() if name != absent[1]})
            self.memory[key] = outcome
        return self.memory[key]

    def checks_of(self) -> dict[tuple[str, int], set[str]]:
        """Which rules stand for which check (place and line), as their own failing examples show."""
        found: dict[tuple[str, int], set[str]] = {}
        for rule in self.rules:
            for _, example in examples_of(rule, ("fails",)):
                if not example.get("versions"):
                    for check in self.example(example).replaced.get(rule.id, ()):
                        found.setdefault((check.anchor, check.line), set()).add(rule.id)
        return found

    def _fired(self, resolved: ResolvedLaunch, outcome: Outcome) -> dict[str, Finding]:
        judgement = judge(resolved, self.rules)
        outcome.doubts.update({doubt.rule: doubt.because for doubt in judgement.undecided if doubt.could_fail})
        crashed = [finding.message for finding in judgement.findings if finding.rule == "MB900"]
        assert not crashed, crashed
        return {f.rule: f for f in judgement.findings if f.outcome == "fails" and any(map(is_reached, f.enforced_by))}

    def _assign(self, outcome: Outcome, path: Any, raw: Sequence[Finding]) -> None:
        """Which rule's finding stands for which failed check."""
        checks = [_check(failure) for failure in path.failures if isinstance(failure.site, Site)]
        outcome.checks = list(dict.fromkeys(checks))
        failed = [one for one in raw if one.rule == "MB001"]
        for finding in {**outcome.written, **outcome.effective}.values():
            left = merge(failed, [finding])
            places = {place for one in failed if one not in left for place in one.enforced_by}
            outcome.replaced[finding.rule] = [check for check in outcome.checks if check.anchor in places]


def smallest_world(flat: Mapping[str, Any]) -> int:
    """The smallest multiple of 8 GPUs that both grids of parallel sizes divide; 8 where a size is no number."""

    def size(name: str) -> int:
        value = flat.get(f"model.{name}")
        return value if isinstance(value, int) and value > 0 else 1

    tensor, stages = size("tensor_model_parallel_size"), size("pipeline_model_parallel_size")
    expert_tensor = size("expert_tensor_parallel_size") if flat.get("model.expert_tensor_parallel_size") else tensor
    experts = expert_tensor * size("expert_model_parallel_size") * stages
    return lcm(8, tensor * stages * size("context_parallel_size"), experts if flat.get("model.num_moe_experts") else 1)


def _check(failure: Any) -> Check:
    site = failure.site
    return Check(site.anchor(), site.line, " ".join(failure.message.split()))


def examples_of(rule: Rule, kinds: Sequence[str] = ("fails", "passes")) -> Iterator[tuple[str, dict[str, Any]]]:
    """The examples of a rule that describe a launch by its values, with their kind."""
    for kind in kinds:
        for example in rule.examples.get(kind, ()):
            if example.get("set") is not None and not example.get("parent") and not example.get("before") and not example.get("written"):
                yield kind, example


def has_text_for_member(machine: Machine, example: Mapping[str, Any]) -> bool:
    """Whether an example gives a text where the field holds an enum's member; a launch's `set` makes that the member."""
    given = example.get("set") or {}
    return any(isinstance(value, str) and "." not in value and "." in str(machine.plain.get(key, "")) for key, value in given.items())


def expects_failure(rule: Rule, example: Mapping[str, Any]) -> bool:
    """Whether a rule says of its example that a check on the path fails there."""
    found = judge(launch_of(example), [rule]).findings
    return any(finding.outcome == "fails" and any(map(is_reached, finding.enforced_by)) for finding in found)


def version_facts(example: Mapping[str, Any]) -> dict[str, str]:
    """Versions of torch and Transformer Engine that an example is about."""
    given = {**VERSIONS, **example.get("versions", {})}
    return {name: text for name, text in given.items() if name in ("torch", "te")}


__all__ = [
    "Check",
    "Machine",
    "Outcome",
    "examples_of",
    "expects_failure",
    "has_text_for_member",
    "on_path",
    "version_facts",
    "with_deep_stack",
]
