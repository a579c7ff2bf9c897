"""Judges launches and keeps of each what a report over a repository shows."""

from __future__ import annotations

from collections.abc import Sequence

from mblint.checker import Checker
from mblint.evaluate.machine import PHASE_LAUNCH
from mblint.facts.memory.launch_memory import LaunchMemory, own_memory
from mblint.facts.view import View
from mblint.findings import Finding
from mblint.launch.resolved import ResolvedLaunch, Write
from mblint.launch.run import Launch
from mblint.overview.model import Entry, Origin, Shape, Value, place
from mblint.overview.shape import shape_of
from mblint.verdict import Verdict


def entry_of(checker: Checker, launch: Launch, root: str) -> tuple[Verdict, Entry] | None:
    """Judge a launch; None for a function that only looked like a recipe.

    Where branches on unknown values lead to several configurations, the first is shown, with its condition.
    """
    seen: list[tuple[int | None, str, Shape, LaunchMemory, tuple[Value, ...], str | None]] = []

    def observe(resolved: ResolvedLaunch) -> None:
        if seen:
            return
        memory = own_memory(resolved, launch.id or resolved.name)
        size = resolved.world_size if isinstance(resolved.world_size, int) else None
        gpu = resolved.gpu if isinstance(resolved.gpu, str) else ""
        seen.append((size, gpu, shape_of(View(resolved)), memory, values_of(resolved, root), resolved.condition))

    recipe = launch.recipe or ""
    verdict = (
        checker.judge_launch(launch, launch.id, observe)
        if launch.spec is not None or not recipe
        else checker.judge_recipe(recipe, launch, observe)
    )
    if verdict is None:
        return None
    size, gpu, shape, memory, values, condition = (
        seen[0] if seen else (launch.world_size, launch.gpu or "", Shape(), None, (), None)
    )  # fmt: skip
    span = verdict.span
    entry = Entry(
        name=launch.id or verdict.recipe,
        recipe=verdict.recipe,
        file=place(span.path, root, checker.session.upstream_roots) if span is not None else "",
        line=span.line if span is not None else 0,
        verdict=verdict.verdict,
        world_size=size,
        gpu=gpu,
        shape=shape,
        memory=memory,
        values=values,
        findings=verdict.findings,
        undecided=len({doubt.rule for doubt in verdict.undecided}),
        condition=condition,
    )
    return verdict, entry


def values_of(resolved: ResolvedLaunch, root: str) -> tuple[Value, ...]:
    """Every key with its value and who set it, as the launch path left it."""
    config, unknown = resolved.flat()
    libraries = resolved.session.upstream_roots

    def origin(write: Write) -> Origin:
        span = write.span
        return Origin(place(span.path, root, libraries), span.line, write.value, write.by, write.phase >= PHASE_LAUNCH)

    return tuple(
        Value(key, config.get(key), unknown.get(key), tuple(origin(write) for write in resolved.all_writes(key)))
        for key in [*config, *unknown]
    )


def reported(findings: Sequence[Finding], kept: Sequence[Finding]) -> tuple[Finding, ...]:
    """Those of a launch's findings that the report kept: neither suppressed nor ignored nor in the baseline."""
    keys = {_key(finding) for finding in kept}
    return tuple(finding for finding in findings if _key(finding) in keys)


def _key(finding: Finding) -> tuple[object, ...]:
    return finding.rule, finding.message, finding.span, finding.launch, finding.condition
