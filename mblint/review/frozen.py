"""A launch as it was at another revision: values without the heap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mblint.evaluate.codec import flatten
from mblint.evaluate.errors import Raised, StopEvaluation
from mblint.evaluate.unknown import ABSENT, Absent, Unknown
from mblint.evaluate.values import ClassValue, Field, FunctionValue, Instance, Property
from mblint.judging.places import MAX_SECTIONS
from mblint.launch.plain import plain
from mblint.launch.resolved import ResolvedLaunch, Write


@dataclass(frozen=True)
class FrozenLaunch:
    """See mblint.facts.protocol.Resolved. `values` are effective; `before` holds what the recipe wrote where the launch path
    replaced it (ABSENT: it added the key). Both are plain, by key."""

    name: str
    world_size: int | Unknown
    gpu: str | Unknown
    versions: Mapping[str, str]
    env: Mapping[str, Any]
    env_known: bool
    values: Mapping[str, Any] = field(repr=False)
    extra: Mapping[str, Any] = field(repr=False)
    before: Mapping[str, Any] = field(repr=False)
    class_order: Mapping[str, tuple[str, ...]] = field(repr=False)
    unknown_sections: Mapping[str, str] = field(repr=False)
    condition: str | None = None

    def get(self, key: str) -> object:
        return self._find(self.values, key)

    def written(self, key: str) -> object:
        return self.before[key] if key in self.before else self._find(self.values, key)

    def _find(self, values: Mapping[str, Any], key: str) -> object:
        if key in values:
            return values[key]
        if key in self.extra:
            return self.extra[key]
        section = key.rpartition(".")[0]
        while section:
            if section in self.unknown_sections:
                return Unknown(self.unknown_sections[section])
            held = values.get(section, ABSENT)
            if isinstance(held, Unknown):
                return held
            if isinstance(held, dict):
                return held.get(key[len(section) + 1 :], ABSENT)
            section = section.rpartition(".")[0]
        return ABSENT

    def classes(self, section: str) -> tuple[str, ...] | Unknown | Absent:
        if section in self.unknown_sections:
            return Unknown(self.unknown_sections[section])
        return self.class_order.get(section, ABSENT)

    def keys(self) -> Iterable[str]:
        return self.values.keys()

    def origins(self, key: str) -> tuple[Write, ...]:
        return ()


def freeze(launch: ResolvedLaunch) -> FrozenLaunch:
    """Copy what judges may ask of a launch that is on the heap, before it is taken back."""
    flat: dict[str, Any] = {}
    flatten(launch.cfg, "", flat)
    values = {key: plain(value) for key, value in flat.items()}
    raw = launch._before if launch._before is not None else flat
    before: dict[str, Any] = {}
    for key, value in raw.items():
        if key not in flat or flat[key] is not value:
            was = plain(value)
            if key not in values or was != values[key] or type(was) is not type(values[key]):
                before[key] = was
    before.update((key, ABSENT) for key in flat if key not in raw)
    classes: dict[str, tuple[str, ...]] = {}
    unknown: dict[str, str] = {}
    extra: dict[str, Any] = {}
    pending: list[tuple[str, Instance]] = [("", launch.cfg)]
    seen = {id(launch.cfg)}
    while pending:
        section, owner = pending.pop()
        order = launch.classes(section)
        if isinstance(order, tuple):
            classes[section] = order
        elif isinstance(order, Unknown):
            unknown[section] = order.reason
        for name in _class_level(owner):
            key = f"{section}.{name}" if section else name
            if key not in values:
                extra[key] = _read(launch, key)
        for name, value in owner.attrs.items():
            if isinstance(value, Instance) and id(value) not in seen and section.count(".") < MAX_SECTIONS:
                seen.add(id(value))
                pending.append((f"{section}.{name}" if section else name, value))
    return FrozenLaunch(
        launch.name, launch.world_size, launch.gpu, dict(launch.versions), dict(launch.env), launch.env_known,
        values, extra, before, classes, unknown, launch.condition,
    )  # fmt: skip


def _class_level(owner: Instance) -> list[str]:
    """Names that are read from the class: properties and constants."""
    if owner.cls is None:
        return []
    names: dict[str, None] = {}
    for base in owner.cls.cached_mro:
        if isinstance(base, ClassValue):
            for name, held in base.namespace.items():
                if name.startswith("_") or name in owner.attrs or isinstance(held, FunctionValue | Field):
                    continue
                if isinstance(held, Property) or held is None or isinstance(held, bool | int | float | str):
                    names[name] = None
    return list(names)


def _read(launch: ResolvedLaunch, key: str) -> object:
    try:
        return launch.get(key)
    except (Raised, StopEvaluation, RecursionError):
        return Unknown(f"{key} could not be evaluated")
