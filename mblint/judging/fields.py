"""Attributes set on config objects that have no such field."""

from __future__ import annotations

from functools import lru_cache

from mblint.evaluate.machine import PHASE_LAUNCH
from mblint.evaluate.site import Site
from mblint.evaluate.unknown import ABSENT
from mblint.evaluate.values import ClassValue, Instance
from mblint.findings import Finding, Fix, Related
from mblint.judging.places import section_paths
from mblint.launch.changes import is_undeclared
from mblint.launch.release_text import reads
from mblint.launch.resolved import ResolvedLaunch
from mblint.ruleset.suggest import closest

UNKNOWN = ("MB801", "unknown-config-field")
UNREAD = ("MB802", "unread-config-field")


def field_findings(launch: ResolvedLaunch) -> list[Finding]:
    """Attributes that the recipe set, that no class of the object declares, and that nothing in the upstream source reads."""
    findings: list[Finding] = []
    paths = section_paths(launch.cfg)
    objects: dict[int, Instance] = {id(launch.cfg): launch.cfg}
    pending = [launch.cfg]
    while pending:
        owner = pending.pop()
        for value in owner.attrs.values():
            if isinstance(value, Instance) and id(value) not in objects:
                objects[id(value)] = value
                pending.append(value)
    for identity, owner in objects.items():
        cls = owner.cls
        if cls is None or identity not in paths:
            continue
        for name, write in owner.origin.items():
            if name.startswith("_") or name not in owner.attrs or not is_undeclared(owner, name):
                continue
            first = write
            while first.previous is not None:
                first = first.previous
            if first.phase == PHASE_LAUNCH or not isinstance(first.site, Site):
                continue
            if _written_by_class(first.site):
                continue
            path = paths[identity]
            finding = _judge(launch, f"{path}.{name}" if path else name, name, cls)
            if finding is not None:
                findings.append(finding)
    return sorted(findings, key=lambda finding: finding.message)


def _written_by_class(site: Site) -> bool:
    """Whether upstream's own methods made the attribute (a cache, a derived value)."""
    return "." in site.where.partition(".<locals>.")[0]


def _judge(launch: ResolvedLaunch, key: str, name: str, cls: ClassValue) -> Finding | None:
    if reads(launch.session, name) is not False:
        return None
    writes = launch.origins(key)
    own = next((write for write in reversed(writes) if write.in_project), None)
    span = own.span if own is not None else launch.span
    near = _near(name, tuple(cls.field_map))
    pair = f"megatron-bridge {launch.versions.get('bridge', '?')}"
    related = (Related(cls.site.span(), f"{cls.name} is defined here"),) if isinstance(cls.site, Site) else ()
    if near is not None:
        return Finding(
            rule=UNKNOWN[0],
            name=UNKNOWN[1],
            severity="error",
            outcome="dead",
            message=f"{cls.name} has no field {name}; did you mean {near}?",
            span=span,
            related=related,
            why="Python stores any attribute on a config object, so this one is kept and never read.",
            keys={key: launch.get(key)},
            fixes=(Fix(f"Rename it to {near}", "unsafe", {key: ABSENT, f"{key.rpartition('.')[0]}.{near}".lstrip("."): launch.get(key)}),),
            launch=launch.name,
            condition=launch.condition,
        )
    return Finding(
        rule=UNREAD[0],
        name=UNREAD[1],
        severity="warning",
        outcome="dead",
        message=f"{cls.name} has no field {name}, and nothing in {pair} reads it",
        span=span,
        related=related,
        why="The setting is stored on the object and has no effect in this release.",
        keys={key: launch.get(key)},
        launch=launch.name,
        condition=launch.condition,
    )


@lru_cache(maxsize=4096)
def _near(name: str, fields: tuple[str, ...]) -> str | None:
    return closest(name, [field for field in fields if not field.startswith("_")])
