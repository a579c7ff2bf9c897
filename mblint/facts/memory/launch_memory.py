"""One estimated launch with everything that a report shows of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mblint.facts.memory.capacity import CAPACITIES, GIB, Capacity, Judgement, judge
from mblint.facts.memory.estimate import Estimate, StageEstimate, estimate
from mblint.facts.memory.groups import grouped
from mblint.facts.memory.reading import Overlay, Source
from mblint.facts.memory.upstream_formula import UpstreamEstimate, upstream_estimate
from mblint.shown import by_reason

OWN: Final = "mblint"
UPSTREAM: Final = "megatron-bridge's formula"


@dataclass(frozen=True, slots=True)
class OtherFigure:
    """What somebody else says about the same launch, in bytes; `because` where that is nothing."""

    name: str
    components: Mapping[str, float] = field(default_factory=dict)
    because: str = ""

    @property
    def total_bytes(self) -> int | None:
        return round(sum(self.components.values())) if self.components else None


@dataclass(frozen=True, slots=True)
class LaunchMemory:
    """A launch, or a variant of one (`changes`: key -> value).

    Bytes are those of the worst stage, None where no estimate is possible: then `missing` says which keys
    have no value, and why. `components` add up to `total_bytes`, their `groups` too; `allocated_bytes` is
    the part that PyTorch's allocator holds, `static_bytes` the part that stays between steps. `stages` is
    empty and `judgement` None for figures of upstream's formula, which has neither stages nor an allowance.
    """

    id: str
    changes: Mapping[str, object]
    world_size: int | None
    gpu: str
    formula: str
    total_bytes: int | None
    allocated_bytes: int | None
    static_bytes: int | None
    components: Mapping[str, int]
    groups: Mapping[str, float]
    stages: tuple[StageEstimate, ...]
    capacity: Capacity | None
    head_room_bytes: int | None
    judgement: Judgement | None
    estimate: Estimate | None
    others: tuple[OtherFigure, ...]
    missing: Mapping[str, str]
    architecture: Mapping[str, str] = field(default_factory=dict)
    """The published model, the confidence of what is known of it, and `doubt` in words where that is not all."""
    refused: str = ""
    """The first of upstream's checks that the launch fails: what it would need if it started."""


def own_memory(
    source: Source,
    name: str,
    *,
    changes: Mapping[str, object] | None = None,
    others: tuple[OtherFigure, ...] = (),
) -> LaunchMemory:
    """mblint's own estimate of a launch. `changes` are put over it, as in `Overlay`; `others` are shown
    beside it."""
    changed = Overlay(source, changes) if changes else source
    found = estimate(changed)
    gpu = _gpu(changed)
    judgement = judge(found, gpu)
    known = found.total_bytes is not None and judgement.capacity is not None
    return LaunchMemory(
        id=name,
        changes=changes or {},
        world_size=_world_size(changed),
        gpu=gpu,
        formula=OWN,
        total_bytes=found.total_bytes,
        allocated_bytes=found.allocated_bytes,
        static_bytes=found.static_bytes,
        components=found.components,
        groups=grouped(found.components),
        stages=found.stages,
        capacity=judgement.capacity,
        head_room_bytes=judgement.head_room_bytes if known else None,
        judgement=judgement,
        estimate=found,
        others=others,
        missing=found.missing,
    )


def upstream_memory(
    source: Source,
    name: str,
    *,
    changes: Mapping[str, object] | None = None,
    others: tuple[OtherFigure, ...] = (),
) -> LaunchMemory:
    """The numbers of megatron-bridge's formula in the place of our own."""
    changed = Overlay(source, changes) if changes else source
    found = upstream_estimate(changed)
    gpu = _gpu(changed)
    capacity = CAPACITIES.get(gpu)
    total = None if found.missing else round(found.total_bytes)
    return LaunchMemory(
        id=name,
        changes=changes or {},
        world_size=_world_size(changed),
        gpu=gpu,
        formula=UPSTREAM,
        total_bytes=total,
        allocated_bytes=None,
        static_bytes=None if found.missing else round(found.static_bytes),
        components={key: round(size) for key, size in found.components.items()},
        groups={},
        stages=(),
        capacity=capacity,
        head_room_bytes=None if total is None or capacity is None else round(capacity.low_gib * GIB) - total,
        judgement=None,
        estimate=None,
        others=others,
        missing=found.missing,
    )


def upstream_figure(source: Source, *, changes: Mapping[str, object] | None = None) -> OtherFigure:
    """megatron-bridge's formula, to be shown beside our own numbers."""
    return as_figure(upstream_estimate(Overlay(source, changes) if changes else source))


def as_figure(found: UpstreamEstimate) -> OtherFigure:
    """An estimate of upstream's as a figure beside another."""
    if found.missing:
        return OtherFigure(UPSTREAM, because="; ".join(by_reason(found.missing)))
    return OtherFigure(UPSTREAM, found.components)


def _world_size(source: Source) -> int | None:
    return source.world_size if isinstance(source.world_size, int) else None


def _gpu(source: Source) -> str:
    return source.gpu.lower() if isinstance(source.gpu, str) else ""
