"""Ways out as text and as data. Sizes are GiB, 2**30 bytes, in text and bytes in data."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mblint.facts.memory.capacity import GIB
from mblint.shown import neutral
from mblint.wayout.changed import assignment_lines, environment, override_lines

if TYPE_CHECKING:
    from mblint.launch.run import Launch
    from mblint.wayout.cost import Cost
    from mblint.wayout.goal import Goal
    from mblint.wayout.search import Answer, Result, Sized


ORDER = "cheapest first, in the tuning guide's order of remedies; several together stand where the dearest of them does"


def _gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"


def wayout_text(name: str, launch: Launch, goal: Goal, result: Result, verbose: bool = False) -> str:
    """One launch: where it stands, then each way out with lines to copy."""
    lines = [neutral(name) + (f"  {launch.world_size} GPUs" if launch.world_size else "") + (f"  {launch.gpu}" if launch.gpu else "")]
    if result.base is not None and result.base.estimate.total_bytes is not None:
        lines.append(f"  now: {_state(result.base)}")
    if result.reached:
        lines.append(f"  the goal ({goal.text}) is reached already")
    if result.because:
        lines.append(f"  no way out: {neutral(result.because)}")
    for check in result.stands_in_the_way:
        lines.append(f"  it does not start for another reason, mend that too: {neutral(check)}")
    if len(result.answers) > 1:
        lines.append(f"  {ORDER}")
    for number, answer in enumerate(result.answers, 1):
        lines += ["", *_answer_lines(number, answer, launch.world_size)]
    if result.stopped:
        lines += ["", f"  {result.stopped}"]
    if verbose or not (result.answers or result.reached):
        for title, why in list(result.refused.items())[: None if verbose else 3]:
            lines.append(f"  not {neutral(title)}: {neutral(why)}")
    if result.tried:
        lines.append(f"\n  {result.tried} combinations estimated, {result.judged} evaluated in full, {result.seconds:.1f} s")
    return "\n".join(lines) + "\n"


def _state(sized: Sized) -> str:
    judged = sized.judgement
    text = f"about {_gib(sized.total_bytes)} on the worst GPU"
    if judged.capacity is not None:
        text += f" of {judged.capacity.low_gib:.1f} GiB"
        text += f", between {_gib(judged.low_bytes)} and {_gib(judged.high_bytes)}"
    if judged.largest:
        worst = sized.estimate.worst
        size = f" with {_gib(worst.components[judged.largest])}" if worst is not None else ""
        text += f"; the largest part is {judged.largest}{size}"
    return text


def _answer_lines(number: int, answer: Answer, gpus: int | None) -> list[str]:
    changes = answer.candidate.changes
    lines = [
        f"  {number}. {' + '.join(step.title for step in answer.candidate.steps)}",
        f"     saves {_gib(answer.saved_bytes)}, then {_state(answer.sized)}",
    ]
    if "world_size" in changes:
        lines.append(f"       needs {changes['world_size']} GPUs" + (f" in place of {gpus}" if gpus else ""))
    lines += [f"       export {key}={shlex.quote(value)}" for key, value in environment(changes).items()]
    lines += [f"       {shlex.quote(line) if '[' in line else line}" for line in override_lines(changes)]
    lines += [f"       in the recipe: {line}" for line in assignment_lines(changes)]
    lines += [f"     costs ({step.family}): {step.cost.line}" for step in answer.candidate.steps]
    lines += [f"     also: {neutral(note)}" for note in answer.warnings]
    if answer.undecided:
        lines.append("     that it starts is not certain, with this or without")
    return lines


def wayout_entry(name: str, launch: Launch, result: Result) -> dict[str, Any]:
    """One launch as JSON."""
    return {
        "id": name,
        "recipe": launch.recipe,
        "world_size": launch.world_size,
        "gpu": launch.gpu,
        "now": _sized_entry(result.base),
        "goal_reached": result.reached,
        "because": result.because or None,
        "stands_in_the_way": list(result.stands_in_the_way),
        "answers": [_answer_entry(answer) for answer in result.answers],
        "refused": [{"title": title, "because": why} for title, why in result.refused.items()],
        "combinations_estimated": result.tried,
        "combinations_evaluated": result.judged,
        "stopped": result.stopped or None,
        "seconds": round(result.seconds, 3),
    }


def _sized_entry(sized: Sized | None) -> dict[str, Any] | None:
    if sized is None or sized.estimate.total_bytes is None:
        return None
    judged = sized.judgement
    return {
        "total_bytes": sized.total_bytes,
        "allocated_bytes": sized.estimate.allocated_bytes,
        "low_bytes": judged.low_bytes,
        "high_bytes": judged.high_bytes,
        "capacity_bytes": round(judged.capacity.low_gib * GIB) if judged.capacity is not None else None,
        "head_room_bytes": judged.head_room_bytes if judged.capacity is not None else None,
        "verdict": judged.verdict,
        "largest": judged.largest,
    }


def _answer_entry(answer: Answer) -> dict[str, Any]:
    changes: Mapping[str, object] = answer.candidate.changes
    return {
        "title": " + ".join(step.title for step in answer.candidate.steps),
        "families": [step.family for step in answer.candidate.steps],
        "overrides": override_lines(changes),
        "assignments": assignment_lines(changes),
        "changes": {key: value for key, value in changes.items() if not key.startswith("env.") and key != "world_size"},
        "environment": environment(changes),
        "world_size": changes.get("world_size"),
        "saved_bytes": answer.saved_bytes,
        "after": _sized_entry(answer.sized),
        "costs": [{"remedy": step.title, **_cost_entry(step.cost)} for step in answer.candidate.steps],
        "new_warnings": list(answer.warnings),
        "start_decided": not answer.undecided,
    }


def _cost_entry(cost: Cost) -> dict[str, Any]:
    return {
        "text": cost.text,
        "measured": cost.measured or "not measured",
        "source": cost.source or None,
        "throughput": list(cost.throughput) if cost.throughput is not None else None,
    }
