"""Fixes as text: plans the edits of a verdict's fixes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from mblint.findings import Finding, Fix
from mblint.fix.layers import weaker

if TYPE_CHECKING:
    from mblint.verdict import FixInputs, Verdict

TextOf = Callable[[str], str | None]


def with_edits(verdict: Verdict, text_of: TextOf, safe_only: bool = False) -> tuple[Finding, ...]:
    """The findings of a verdict, their proven fixes as text edits. With `safe_only` those alone that `--fix` would apply unasked."""
    inputs = verdict.fix_inputs
    if inputs is None:
        return verdict.findings
    found = []
    for index, finding in enumerate(verdict.findings):
        if index in verdict.unproven:
            found.append(finding)
            continue
        wanted = not safe_only or (len(finding.ways) == 1 and finding.ways[0].safety == "safe")
        if finding.fixes and wanted:
            finding = replace(finding, fixes=tuple(_with_reason(fix, inputs, text_of) for fix in finding.fixes))
        found.append(finding)
    return tuple(found)


def _with_reason(fix: Fix, inputs: FixInputs, text_of: TextOf) -> Fix:
    done = written_down(fix, plans(fix, inputs, text_of))
    return replace(done, hindrance=hindrance(fix, inputs, text_of)) if done.by_hand and not done.hindrance else done


def hindrance(fix: Fix, inputs: FixInputs, text_of: TextOf) -> str:
    """Why a fix cannot be written down at the place that comes first."""
    from mblint.fix.plan import plan_fix
    from mblint.fix.text import Refusal

    done = plan_fix(
        fix, inputs.writes, text_of, inputs.function, hints=inputs.hints, layers=inputs.layers, env_missing=inputs.env_missing
    )  # fmt: skip
    return done.reason if isinstance(done, Refusal) else ""


def written_down(fix: Fix, ways: Iterator[Fix]) -> Fix:
    """The fix with the first of the edits that were planned for it; without any it is left to the reader's hand."""
    return fix if fix.edits or fix.by_hand else next(ways, replace(fix, by_hand=True))


def plans(fix: Fix, inputs: FixInputs, text_of: TextOf) -> Iterator[Fix]:
    """The ways to write a fix down, best first: what a launch of its own sets is changed there, all else in its recipe."""
    from mblint.fix.plan import plan_fix  # what edits texts, where there is something to edit

    def plan(function: bool, count: int, at_end: bool) -> Fix | None:
        layers = ways[count] if count >= 0 else ()
        done = plan_fix(
            fix, inputs.writes, text_of, inputs.function if function else None,
            hints=inputs.hints, layers=layers, at_end=at_end, env_missing=inputs.env_missing,
        )  # fmt: skip
        return done if isinstance(done, Fix) else None

    ways = list(weaker(inputs.layers))
    beside = [(False, index, at_end) for index in range(len(ways)) for at_end in (False, True)]
    inside = [(True, 0 if ways else -1, at_end) for at_end in (False, True)] if inputs.function is not None else []
    seen = []
    for way in [*beside, *inside] if inputs.described else [*inside, *beside]:
        planned = plan(*way)
        if planned is not None and planned.edits not in seen:
            seen.append(planned.edits)
            yield planned
