"""The JSON of `mblint estimate`: one object a launch; all sizes in bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mblint.facts.memory.estimate import StageEstimate
    from mblint.facts.memory.launch_memory import LaunchMemory


def estimate_report(launches: Iterable[LaunchMemory]) -> dict[str, Any]:
    """`{"launches": [...]}`, in the order given."""
    return {"launches": [estimate_entry(launch) for launch in launches]}


def estimate_entry(launch: LaunchMemory) -> dict[str, Any]:
    """One launch: byte figures are null where `missing` names what is not known."""
    entry: dict[str, Any] = {
        "id": launch.id,
        "what_if": dict(launch.changes),
        "world_size": launch.world_size,
        "gpu": launch.gpu or None,
        "formula": launch.formula,
        "total_bytes": launch.total_bytes,
        "allocated_bytes": launch.allocated_bytes,
        "static_bytes": launch.static_bytes,
        "components": dict(launch.components),
        "per_stage": [_stage(stage) for stage in launch.stages],
        "missing": dict(launch.missing),
        "refused": launch.refused or None,
        "architecture": dict(launch.architecture) or None,
        "others": [
            {
                "name": other.name,
                "total_bytes": other.total_bytes,
                "components": {name: round(size) for name, size in other.components.items()},
                "because": other.because or None,
            }
            for other in launch.others
        ],
    }
    if launch.estimate is not None:
        margin = launch.estimate.allowance
        entry["allowance"] = margin and {
            "components": margin.components,
            "low_bytes": margin.low_bytes,
            "typical_bytes": margin.typical_bytes,
            "high_bytes": margin.high_bytes,
        }
        entry["relative_error"] = launch.estimate.error
        entry["not_modelled"] = list(launch.estimate.not_modelled)
        entry["approximated"] = list(launch.estimate.approximated)
        entry["shorter_batches"] = launch.estimate.shorter or None
    entry["capacity"] = launch.capacity and {
        "low_gib": launch.capacity.low_gib,
        "high_gib": launch.capacity.high_gib,
        "source": launch.capacity.source,
    }
    entry["head_room_bytes"] = launch.head_room_bytes
    if launch.judgement is not None:
        entry["verdict"] = launch.judgement.verdict
        entry["low_bytes"] = launch.judgement.low_bytes or None
        entry["high_bytes"] = launch.judgement.high_bytes or None
        entry["largest"] = launch.judgement.largest or None
        entry["because"] = launch.judgement.because or None
    return entry


def _stage(stage: StageEstimate) -> dict[str, Any]:
    return {
        "stage": stage.stage,
        "layers": stage.layers,
        "parameters": stage.parameters,
        "allocated_bytes": stage.allocated_bytes,
        "static_bytes": stage.static_bytes,
        "moment": stage.moment,
        "microbatches_in_flight": stage.microbatches_in_flight,
        "components": dict(stage.components),
    }
