"""Override values of a type that their field cannot hold: upstream assigns them unchecked, and something breaks later."""

from __future__ import annotations

import re

from mblint.findings import Finding
from mblint.launch.resolved import ResolvedLaunch, Write

MISTYPED = ("MB804", "override-of-wrong-type")

WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false"}


def mistyped_findings(launch: ResolvedLaunch) -> list[Finding]:
    """One finding for each value from a YAML file or a command line that is no value of its field's type."""
    findings = []
    for key in launch.overridden():
        write = _override(launch, key)
        wanted = _plain_types(launch.annotation(key))
        if write is None or not wanted or _fits(write.value, wanted):
            continue
        words = " or ".join(WORDS[kind] for kind in WORDS if kind in wanted)
        findings.append(
            Finding(
                rule=MISTYPED[0],
                name=MISTYPED[1],
                severity="error",
                outcome="wrong",
                message=f"{key} takes {words}, not {write.value!r}",
                span=write.span,
                why="Upstream assigns overrides without checking types: what another type breaks is found late, or never.",
                keys={key: write.value},
                launch=launch.name,
                condition=launch.condition,
            )
        )
    return findings


def _override(launch: ResolvedLaunch, key: str) -> Write | None:
    writes = launch.origins(key)
    return writes[-1] if writes and writes[-1].kind == "override" and writes[-1].by == "override" else None


def _plain_types(annotation: str | None) -> set[str]:
    """The types of an annotation, if all of them are numbers, truth values or None; else nothing."""
    if annotation is None:
        return set()
    text = annotation.strip("'\"")
    while (found := re.fullmatch(r"(?:typing\.)?(?:Optional|Union)\[(.*)\]", text)) is not None:
        text = found[1]
    parts = {part.strip() for part in re.split(r"[|,]", text)}
    return parts & set(WORDS) if parts <= {*WORDS, "None"} else set()


def _fits(value: object, wanted: set[str]) -> bool:
    if isinstance(value, str):
        return value == "None"  # upstream has its own opinion of that word; rules speak of it
    if isinstance(value, list):
        return False
    if isinstance(value, float):
        return "float" in wanted or value.is_integer()
    return True
