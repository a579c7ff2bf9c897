"""A way out written into the files of the launch: planned as every fix is, and proven by judging the edited files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mblint.checker import Checker
from mblint.findings import Finding, Fix
from mblint.fix.apply import EditConflict, apply_all
from mblint.fix.edits import plans
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.run import Launch
from mblint.verdict import FixInputs, fix_inputs
from mblint.wayout.candidates import Candidate
from mblint.wayout.changed import environment, is_key
from mblint.wayout.goal import Goal
from mblint.wayout.search import Sized, sized

TextOf = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Patch:
    """New texts by absolute path, with the old ones; or `because` there are none."""

    before: dict[str, str]
    after: dict[str, str]
    because: str = ""


def patch(checker: Checker, launch: Launch, goal: Goal, candidate: Candidate, text_of: TextOf) -> Patch:
    """The edits of a way out. A number of GPUs is no part of them: the launch is judged with it."""
    changes = {key: value for key, value in candidate.changes.items() if is_key(key)}
    changes |= {f"env_vars.{name}": value for name, value in environment(candidate.changes).items()}
    fix = Fix("way out", "unsafe", changes)
    inputs = _inputs(checker, launch, fix)
    if inputs is None:
        return Patch({}, {}, "the launch could not be evaluated")
    if inputs.function is None and not inputs.layers:
        return Patch({}, {}, "the recipe is not a file of this project; give the overrides as they are printed")
    world = candidate.changes.get("world_size")
    proven = replace(launch, world_size=world) if isinstance(world, int) else launch
    failing = _failing(checker, proven)
    because = "there is no place in its files where this could be written"
    for planned in plans(fix, inputs, text_of):
        before = {path: text for edit in planned.edits if (text := text_of(path := edit.span.path)) is not None}
        try:
            after = apply_all(before, planned.edits)
        except (EditConflict, KeyError) as problem:
            because = f"its edits collide: {problem}"
            continue
        because = _objection(checker, proven, goal, after, failing)
        if not because:
            return Patch({path: before[path] for path in after}, after)
    return Patch({}, {}, because)


def _inputs(checker: Checker, launch: Launch, fix: Fix) -> FixInputs | None:
    found: list[FixInputs] = []
    asking = Finding(rule="", name="", severity="advice", outcome="note", message="", fixes=(fix,))

    def observe(resolved: ResolvedLaunch) -> None:
        found.append(fix_inputs(resolved, [asking], launch))

    checker.judge_launch(launch, launch.id, observe)
    return found[-1] if found else None


def _failing(checker: Checker, launch: Launch) -> set[str]:
    return {
        f"{finding.rule} {finding.message}" for finding in checker.judge_launch(launch, launch.id).findings if finding.outcome == "fails"
    }


def _objection(checker: Checker, launch: Launch, goal: Goal, texts: dict[str, str], failing: set[str]) -> str:
    """Why these texts are no way out; "" where they are one."""
    seen: list[Sized] = []
    session = checker.session
    session.replace_sources(texts)
    try:
        verdict = checker.judge_launch(launch, launch.id, lambda resolved: seen.append(sized(resolved)))
    finally:
        session.replace_sources({})
    for finding in verdict.findings:
        if finding.outcome == "fails" and f"{finding.rule} {finding.message}" not in failing:
            return f"with the edited files it does not start: {finding.rule} {finding.message}"
    if not seen or not all(goal.met(one.judgement) for one in seen):
        return "with the edited files it does not reach the goal: something sets these keys later"
    return ""
