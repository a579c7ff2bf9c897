"""Finds ways out: estimates many candidates quickly, then has the promising ones judged in full.

The quick estimate puts the changes over the evaluated launch and derives nothing from them. A candidate that
looks right is evaluated from its recipe again: overrides as printed, the launch path, all rules, and the
estimate of the configuration that results. Only that decides.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mblint.checker import Checker
from mblint.facts.memory.capacity import GIB, Judgement, judge
from mblint.facts.memory.estimate import Estimate, estimate
from mblint.facts.memory.reading import Overlay
from mblint.findings import Finding
from mblint.launch import path as launch_path
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.run import Launch, on_heap
from mblint.shown import by_reason, with_remedy
from mblint.verdict import Verdict
from mblint.wayout.candidates import LIMIT, Candidate, candidates
from mblint.wayout.changed import changed_launch
from mblint.wayout.goal import Goal
from mblint.wayout.held import Held
from mblint.wayout.remedies import remedies

ANSWERS = 5
JUDGED = 30
"""Candidates that are evaluated in full, at most."""
SECONDS = 10.0
"""After which no further candidate is begun."""

_A_FAMILY = 2
_MORE_GPUS = 2
"""Answers that need more GPUs than there are, at most: not everybody has some to spare."""
_CAPACITY_RULES = ("MB390", "MB391")


@dataclass(frozen=True, slots=True)
class Sized:
    """An estimate with its judgement."""

    estimate: Estimate
    judgement: Judgement

    @property
    def total_bytes(self) -> int:
        return self.estimate.total_bytes or 0


@dataclass(frozen=True, slots=True)
class Answer:
    """A way out that starts, reaches the goal and brings no new error."""

    candidate: Candidate
    sized: Sized
    saved_bytes: int
    warnings: tuple[str, ...] = ()
    undecided: bool = False


@dataclass(slots=True)
class Result:
    """What a search found. `because` says why there is no answer, or why there was nothing to do;
    `stands_in_the_way` lists checks that refuse the launch as it is, for reasons that are not memory."""

    base: Sized | None = None
    verdict: Verdict | None = None
    answers: list[Answer] = field(default_factory=list)
    because: str = ""
    reached: bool = False
    tried: int = 0
    judged: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    stands_in_the_way: tuple[str, ...] = ()
    stopped: str = ""
    shorter: int = 0
    quick_seconds: float = 0.0
    seconds: float = 0.0


def sized(source: object) -> Sized:
    """A launch's estimate, held against its GPU."""
    found = estimate(source)  # type: ignore[arg-type]
    gpu = source.gpu  # type: ignore[attr-defined]
    return Sized(found, judge(found, gpu if isinstance(gpu, str) else ""))


def search(
    checker: Checker,
    launch: Launch,
    goal: Goal,
    *,
    answers: int = ANSWERS,
    limit: int = LIMIT,
    judged: int = JUDGED,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Result:
    """The first few ways to the goal, in the guide's order. Raises CannotEvaluate."""
    begin = clock()
    result = Result()
    promising = _quick(checker, launch, goal, result, limit, lambda: clock() - begin > seconds * 0.7)
    result.quick_seconds = clock() - begin
    if promising and not result.because:
        result.verdict = checker.judge_launch(launch, launch.id)
        _full(checker, launch, goal, result, promising, answers, judged, lambda: clock() - begin > seconds)
    result.seconds = clock() - begin
    if not result.answers and not result.because and not result.reached:
        result.because = _why_none(result, promising)
    return result


def _quick(checker: Checker, launch: Launch, goal: Goal, result: Result, limit: int, late: Callable[[], bool]) -> list[Candidate]:
    """Candidates whose quick estimate reaches the goal, in order."""
    session = checker.session
    with on_heap(session, launch) as resolved:
        resolved.remember_written()
        launch_path.run_path(session, resolved.cfg)
        source = Held(resolved)
        result.base = base = sized(source)
        if base.estimate.missing:
            result.because = "no estimate: " + "; ".join(by_reason(base.estimate.missing))
            return []
        if base.judgement.capacity is None:
            result.because = with_remedy(base.judgement.because)
            return []
        result.reached = goal.met(base.judgement)
        if result.reached:
            return []
        promising: list[Candidate] = []
        for candidate in candidates(remedies(source), limit):
            if late():
                result.stopped = "not every combination was estimated: time ran out"
                break
            result.tried += 1
            # Without any saving there is nothing to say for a change.
            found = sized(Overlay(source, candidate.changes))
            if goal.met(found.judgement) and found.total_bytes < base.total_bytes:
                promising.append(candidate)
        if not promising:
            result.shorter = _shorter(source, goal)
        return promising


def _shorter(source: Held, goal: Goal) -> int:
    """The longest half, quarter and so on of the sequence with which the launch as it is would reach the goal; else 0."""
    length = source.get("model.seq_length")
    while isinstance(length, int) and length >= 1024:
        length //= 2
        if goal.met(sized(Overlay(source, {"model.seq_length": length})).judgement):
            return length
    return 0


def _full(
    checker: Checker,
    launch: Launch,
    goal: Goal,
    result: Result,
    promising: Sequence[Candidate],
    answers: int,
    judged: int,
    late: Callable[[], bool],
) -> None:
    assert result.base is not None and result.verdict is not None
    before = _Before(result.verdict)
    result.stands_in_the_way = before.failing
    families: dict[str, int] = {}
    barred: list[frozenset[tuple[str, str]]] = []
    for candidate in promising:
        if len(result.answers) >= answers:
            break
        last = candidate.steps[-1].family if candidate.steps else ""
        if families.get(last, 0) >= _A_FAMILY or any(candidate.costs_more_than(other.candidate) for other in result.answers):
            continue
        if _barred(candidate, barred):
            continue
        more = "world_size" in candidate.changes
        if more and sum("world_size" in answer.candidate.changes for answer in result.answers) >= _MORE_GPUS:
            continue
        if result.judged >= judged or late():
            result.stopped = "not every promising combination was judged: " + ("time ran out" if late() else f"{judged} were")
            break
        result.judged += 1
        answer, why, keys = _judge(checker, launch, goal, result.base, before, candidate)
        if answer is None:
            if keys:
                barred.append(_refused_part(candidate, keys))
            result.refused.setdefault(" + ".join(step.title for step in candidate.steps), why)
            continue
        families[last] = families.get(last, 0) + 1
        result.answers.append(answer)


def _refused_part(candidate: Candidate, keys: frozenset[str]) -> frozenset[tuple[str, str]]:
    """What of a refused candidate will be refused in any company: (key, value), or (key, "") for any value.

    Those steps that set keys of the refusal. Of one step alone only these values are; of several it is that they come
    together.
    """
    steps = [step for step in candidate.steps if keys & set(step.changes)]
    if len(steps) == 1:
        return frozenset((key, repr(value)) for key, value in steps[0].changes.items() if key in keys)
    return frozenset((key, "") for step in steps for key in step.changes if key in keys)


def _barred(candidate: Candidate, barred: Sequence[frozenset[tuple[str, str]]]) -> bool:
    changes = candidate.changes
    return any(part and all(key in changes and value in ("", repr(changes[key])) for key, value in part) for part in barred)


class _Before:
    """What was said of the launch as it is: candidates must bring nothing worse."""

    def __init__(self, verdict: Verdict) -> None:
        self.said = {(finding.rule, finding.severity) for finding in verdict.findings}
        self.failing = tuple(f"{finding.rule} {finding.message}" for finding in verdict.findings if finding.outcome == "fails")
        self.decided = verdict.verdict == "ok"


def _judge(
    checker: Checker,
    launch: Launch,
    goal: Goal,
    base: Sized,
    before: _Before,
    candidate: Candidate,
) -> tuple[Answer | None, str, frozenset[str]]:
    """The answer, or why it is none, and which keys of the candidate a finding names for that."""
    seen: list[Sized] = []

    def observe(resolved: ResolvedLaunch) -> None:
        seen.append(sized(resolved))

    verdict = checker.judge_launch(changed_launch(launch, candidate.changes), launch.id, observe)
    for finding in verdict.findings:
        failing = f"{finding.rule} {finding.message}"
        if finding.outcome == "fails" and failing not in before.failing:
            return None, f"it does not start: {failing}", _named(finding, candidate)
        if finding.severity == "error" and (finding.rule, "error") not in before.said:
            return None, f"it brings {finding.rule}: {finding.message}", _named(finding, candidate)
    nothing: frozenset[str] = frozenset()
    if verdict.verdict == "undecided" and before.decided:
        return None, "whether it starts could not be decided", nothing
    if not seen:
        return None, "it could not be evaluated", nothing
    worst = max(seen, key=lambda sized: sized.total_bytes)
    if worst.estimate.missing or not goal.met(worst.judgement):
        return (
            None,
            f"with all that follows it needs {worst.total_bytes / GIB:.1f} GiB, more than the goal leaves",
            nothing,
        )
    notes = [
        f"{finding.rule} {finding.name}: {finding.message}"
        for finding in verdict.findings
        if finding.severity == "warning" and (finding.rule, "warning") not in before.said and finding.rule not in _CAPACITY_RULES
    ]
    return Answer(candidate, worst, base.total_bytes - worst.total_bytes, tuple(notes), verdict.verdict != "ok"), "", nothing


def _named(finding: Finding, candidate: Candidate) -> frozenset[str]:
    """Keys that the candidate changes and the finding is about."""
    text = finding.message
    words = set(re.findall(r"[A-Za-z_][\w.]*", text)) | set(finding.keys)
    return frozenset(key for key in candidate.changes if key in words or key.rpartition(".")[2] in words)


def _why_none(result: Result, promising: Sequence[Candidate]) -> str:
    if not promising:
        text = f"no combination of {result.tried} reaches the goal; a larger GPU, more of them or a shorter sequence would have to"
        return text + (f" (sequence length {result.shorter} would, with all else as it is)" if result.shorter else "")
    return f"{len(promising)} of {result.tried} combinations are small enough, and each of the {result.judged} that were judged is refused"
