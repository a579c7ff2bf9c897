"""Writes docs/shipped-recipes.md: which shipped recipes of a release cannot start or do not fit, and why.

    python tools/shipped_recipes.py 0.6.2 docs/shipped-recipes.md

Every recipe whose name states its GPUs is judged as it is, with the paths that any launch supplies taken to exist and an
environment that holds nothing but the recipe's own variables. The release has to be fetched (`mblint upstream fetch`).
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from mblint.checker import Checker
from mblint.facts.memory.capacity import GIB, Judgement, judge
from mblint.facts.memory.estimate import Estimate, estimate
from mblint.facts.memory.groups import ACTIVATION_GROUP, TEMPORARY_GROUP, grouped
from mblint.findings import Finding
from mblint.launch.discover import recipe_functions
from mblint.launch.naming import gpu_of, world_size_of
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.run import Launch
from mblint.launch.session import Session
from mblint.ruleset.load import load_rules
from mblint.upstream.locate import Upstream, locate
from mblint.verdict import Verdict
from mblint.workers import spread

PACKAGES = ("megatron/bridge/recipes", "megatron/bridge/perf_recipes")


def recipe_names(session: Session, upstream: Upstream) -> list[str]:
    """`module:function` of all recipes whose name states the number of GPUs and their type."""
    names: list[str] = []
    for package in PACKAGES:
        for path in sorted((upstream.bridge_root or Path()).joinpath(package).rglob("*.py")):
            module = session.module_of(path)
            found = [node.name for node in recipe_functions(module.tree)]
            names += [f"{module.name}:{name}" for name in found if world_size_of(name) and gpu_of(name)]
    return names


Sized = tuple[Estimate, Judgement, int]
"""An estimate, how it stands to the GPU, and the number of GPUs."""


def judged(checker: Checker, name: str) -> tuple[Verdict, Sized | None]:
    """The verdict and the estimate with the inputs supplied that the recipe leaves to the launch."""
    seen: list[Sized] = []

    def observe(resolved: ResolvedLaunch) -> None:
        gpu, world = resolved.gpu, resolved.world_size
        found = estimate(resolved)
        seen.append((found, judge(found, gpu if isinstance(gpu, str) else ""), world if isinstance(world, int) else 0))

    launch = Launch(name, env={})
    verdict = checker.judge_launch(launch, name, observe)
    missing = {key for finding in verdict.findings if finding.rule == "MB002" for key in finding.keys}
    if missing:
        verdict = checker.judge_launch(replace(launch, set={key: "/existing" for key in missing}), name, observe)
    return verdict, seen[-1] if seen else None


def table(rows: list[tuple[str, Finding]]) -> list[str]:
    """Rows of a Markdown table: recipe, rule, reason with the place of the check."""
    lines = ["| recipe | rule | reason, and where it is checked |", "|---|---|---|"]
    for name, finding in rows:
        module, _, function = name.partition(":")
        family = ".".join(module.split(".")[2:4])
        message = finding.message.replace("|", "\\|").replace("\n", " ")
        place = finding.enforced_by[0] if finding.enforced_by else ""
        checked = f"<br>`{place}`" if place else ""
        lines.append(f"| {family} `{function}` | [{finding.rule}](rules/{finding.rule}.md) | {message[:220]}{checked} |")
    return lines


def arithmetic(sized: Sized) -> str:
    """The sum for the worst pipeline stage, GiB: state as parameters times bytes, then what the peak's moment adds."""
    found, _, _ = sized
    stage = found.worst
    assert stage is not None
    groups = grouped({name: float(size) for name, size in stage.components.items()})
    passing = groups[ACTIVATION_GROUP] + groups[TEMPORARY_GROUP]
    state = stage.allocated_bytes - passing
    text = f"{stage.parameters / 1e9:.2f}e9 parameters x {state / max(1, stage.parameters):.1f} B = {state / GIB:.1f} state"
    moving = sorted(((size, name) for name, size in stage.components.items() if name in _moving(stage.components)), reverse=True)
    flight = f", {stage.microbatches_in_flight} passes in flight" if stage.microbatches_in_flight > 1 else ""
    return (
        text
        + f" + {passing / GIB:.1f} at the {stage.moment}{flight} ("
        + ", ".join(f"{n} {size / GIB:.1f}" for size, n in moving[:3])
        + ")"
    )


def _moving(components: dict[str, int]) -> set[str]:
    """Components that are not state."""
    kinds = {name: grouped({name: 1.0}) for name in components}
    return {name for name, kind in kinds.items() if kind[ACTIVATION_GROUP] or kind[TEMPORARY_GROUP]}


def capacity_table(rows: list[tuple[str, Finding, Sized]]) -> list[str]:
    """Rows of a Markdown table: recipe, GPU, what it holds, what is needed, the sum, and what proves it."""
    lines = ["| recipe | GPUs | holds | at least | expected | sum for the worst stage | proof |", "|---|---|---|---|---|---|---|"]
    for name, finding, sized in rows:
        found, standing, world = sized
        module, _, function = name.partition(":")
        family = ".".join(module.split(".")[2:4])
        held = standing.capacity.low_gib if standing.capacity is not None else 0.0
        proof = "within the error" if finding.rule == "MB391" else "the sum"
        if (found.static_bytes or 0) > held * GIB:
            proof = "state alone"
        sizes = [f"{size:.1f}" for size in (held, standing.low_bytes / GIB, (found.total_bytes or 0) / GIB)]
        lines.append("| " + " | ".join([f"{family} `{function}`", f"{world} {standing.gpu}", *sizes, arithmetic(sized), proof]) + " |")
    return lines


def main(release: str, target: str) -> None:
    """Judge and write."""
    upstream = locate(release)
    session = Session(upstream)
    checker = Checker(session, load_rules())
    names = recipe_names(session, upstream)
    verdicts = spread(names, lambda part: [judged(checker, name) for name in part], None)
    fails = [(v.recipe, next(f for f in v.findings if f.outcome == "fails")) for v, _ in verdicts if v.verdict == "fails"]
    oom = [
        (v.recipe, finding, sized)
        for v, sized in verdicts
        if v.verdict != "fails" and sized is not None
        for finding in v.findings
        if finding.rule in ("MB390", "MB391")
    ]
    starting = len(names) - len(fails)
    errors = [row for row in oom if row[1].rule == "MB390"]
    state = [row for row in errors if row[2][1].capacity is not None and (row[2][0].static_bytes or 0) > row[2][1].capacity.low_gib * GIB]
    lines = [
        "# Shipped recipes that do not run as they are",
        "",
        f"Judged by mblint against {upstream.pair.rpartition(' (')[0]}: {len(names)} recipes whose name states the number of GPUs and",
        "their type, with nothing in the environment but the recipe's own variables. With another megatron-core some of these start: the",
        "bridge does not pin the core. The file is written by `tools/shipped_recipes.py`.",
        "",
        f"## Cannot start ({len(fails)})",
        "",
        *table(sorted(fails, key=lambda row: row[0])),
        "",
        f"## Start, and need more memory than the GPU has, or nearly all of it ({len(oom)} of {starting})",
        "",
        "By mblint's own estimate for the GPU type and count that the name states, in GiB; `mblint estimate NAME` shows each part.",
        f"{len(errors)} are errors (MB390): for {len(state)} of them weights, gradients and optimizer states alone are more than the GPU",
        "holds, for the others the lower end of the estimate is more than 1.1 times that. The name states the fewest GPUs that the",
        f"parallel sizes allow; that is not always enough memory. {len(oom) - len(errors)} are warnings (MB391): what is expected leaves",
        "nothing free, and the difference is within the error of the estimate.",
        "",
        *capacity_table(sorted(oom, key=lambda row: row[0])),
        "",
    ]
    Path(target).write_text("\n".join(lines), encoding="utf-8")
    print(f"{len(names)} recipes, {len(fails)} cannot start, {len(oom)} do not fit or nearly; written to {target}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
