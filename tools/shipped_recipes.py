"""Writes docs/shipped-recipes.md: which shipped recipes of a release cannot start or do not fit, and why.

    python tools/shipped_recipes.py 0.6.2 docs/shipped-recipes.md

Every recipe whose name states its GPUs is judged as it is, with the paths that any launch supplies taken to exist and an
environment that holds nothing but the recipe's own variables. The release has to be fetched (`mblint upstream fetch`).
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from mblint.checker import Checker, Verdict
from mblint.findings import Finding
from mblint.launch.discover import recipe_functions
from mblint.launch.naming import gpu_of, world_size_of
from mblint.launch.run import Launch
from mblint.launch.session import Session
from mblint.ruleset.load import load_rules
from mblint.upstream.locate import Upstream, locate
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


def judged(checker: Checker, name: str) -> Verdict:
    """The verdict with the inputs supplied that the recipe leaves to the launch."""
    launch = Launch(name, env={})
    verdict = checker.judge_launch(launch, name)
    missing = {key for finding in verdict.findings if finding.rule == "MB002" for key in finding.keys}
    if missing:
        verdict = checker.judge_launch(replace(launch, set={key: "/existing" for key in missing}), name)
    return verdict


def table(rows: list[tuple[str, Finding]]) -> list[str]:
    """Rows of a Markdown table: recipe, rule, reason, place of the check."""
    lines = ["| recipe | rule | reason | check |", "|---|---|---|---|"]
    for name, finding in rows:
        module, _, function = name.partition(":")
        family = ".".join(module.split(".")[2:4])
        message = finding.message.replace("|", "\\|").replace("\n", " ")
        place = finding.enforced_by[0] if finding.enforced_by else ""
        lines.append(f"| {family} `{function}` | {finding.rule} | {message[:220]} | {f'`{place}`' if place else ''} |")
    return lines


def main(release: str, target: str) -> None:
    """Judge and write."""
    upstream = locate(release)
    session = Session(upstream)
    checker = Checker(session, load_rules())
    names = recipe_names(session, upstream)
    verdicts = spread(names, lambda part: [judged(checker, name) for name in part], None)
    fails = [(v.recipe, next(f for f in v.findings if f.outcome == "fails")) for v in verdicts if v.verdict == "fails"]
    oom = [(v.recipe, f) for v in verdicts if v.verdict != "fails" for f in v.findings if f.rule in ("MB390", "MB391")]
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
        f"## Start, and need more memory than the GPU has, or nearly all of it ({len(oom)})",
        "",
        "By mblint's own estimate for the GPU type and count that the name states; `mblint estimate NAME` shows each part. Mostly this is",
        "arithmetic: 18 bytes a parameter without sharding, as for 8 billion parameters on two GPUs.",
        "",
        *table(sorted(oom, key=lambda row: row[0])),
        "",
    ]
    Path(target).write_text("\n".join(lines), encoding="utf-8")
    print(f"{len(names)} recipes, {len(fails)} cannot start, {len(oom)} do not fit or nearly; written to {target}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
