"""Override keys that upstream skips without a word that anybody reads."""

from __future__ import annotations

from mblint.evaluate.machine import PHASE_OVERRIDE
from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.findings import Finding, Fix
from mblint.judging.places import show
from mblint.launch.overrides import Skipped
from mblint.launch.resolved import ResolvedLaunch
from mblint.ruleset.suggest import closest

SKIPPED = ("MB803", "override-without-field")


def skipped_findings(launch: ResolvedLaunch) -> list[Finding]:
    """One finding for each skipped key, at its line, with the nearest field."""
    findings = []
    for skipped in launch.skipped:
        name = skipped.key.rpartition(".")[2]
        owner = skipped.owner.rpartition(".")[2]
        near = closest(name, [field for field in skipped.known if not field.startswith("_")])
        if skipped.restored:
            message = f"the override of {skipped.key} has no effect: upstream puts the object that was there back"
        else:
            message = f"{skipped.key} is skipped: {owner} has no field {name}" + (f"; did you mean {near}?" if near else "")
        findings.append(
            Finding(
                rule=SKIPPED[0],
                name=SKIPPED[1],
                severity="error",
                outcome="dead",
                message=message,
                span=skipped.span or launch.span,
                why="Upstream merges overrides without checking names, and only logs a warning for a key that no field has.",
                keys={skipped.key: None},
                fixes=_renaming(launch, skipped, near),
                launch=launch.name,
                condition=launch.condition,
            )
        )
    return findings


def _renaming(launch: ResolvedLaunch, skipped: Skipped, near: str | None) -> tuple[Fix, ...]:
    """The override with the name that was probably meant, where no override sets that one too. What the launch trains with changes:
    the value takes effect."""
    if near is None or skipped.restored or skipped.span is None or isinstance(skipped.value, Unknown | dict | list):
        return ()
    section, dot, _ = skipped.key.rpartition(".")
    meant = f"{section}{dot}{near}"
    if any(write.phase == PHASE_OVERRIDE for write in launch.origins(meant)):
        return ()
    cost = f"{meant} becomes {show(skipped.value)}"
    return (Fix(f"Rename it to {near}", "unsafe", {skipped.key: ABSENT, meant: skipped.value}, cost=cost),)
