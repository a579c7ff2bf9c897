"""Override keys that upstream skips without a word that anybody reads."""

from __future__ import annotations

from mblint.findings import Finding
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
                launch=launch.name,
                condition=launch.condition,
            )
        )
    return findings
