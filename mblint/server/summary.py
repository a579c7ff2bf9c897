"""What stands above a recipe: its parallel sizes, its GPUs, and its estimate against what a GPU holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mblint.evaluate.unknown import Unknown
from mblint.facts.memory.capacity import GIB
from mblint.facts.memory.launch_memory import LaunchMemory, own_memory
from mblint.launch.resolved import ResolvedLaunch

SIZES = (
    ("TP", "model.tensor_model_parallel_size"),
    ("PP", "model.pipeline_model_parallel_size"),
    ("VPP", "model.virtual_pipeline_model_parallel_size"),
    ("CP", "model.context_parallel_size"),
    ("EP", "model.expert_model_parallel_size"),
    ("ETP", "model.expert_tensor_parallel_size"),
)
OPTIONAL = frozenset({"VPP", "ETP"})
"""Sizes that are left out where they say nothing: no virtual stages, experts that are not cut or not there."""
UNKNOWN = "?"


@dataclass(frozen=True, slots=True)
class Summary:
    """One recipe in short. Texts are ready to be shown; "?" stands for what is not known."""

    recipe: str
    line: int
    sizes: tuple[tuple[str, str], ...]
    gpus: str
    batch: str
    memory: str
    verdict: str
    groups: Mapping[str, float] = field(default_factory=dict)
    """Bytes on the worst GPU by kind."""
    components: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def layout(self) -> str:
        """`TP 4 · PP 2 · CP 1 · EP 1 · DP 8 on 64 h100`."""
        return " · ".join(f"{name} {value}" for name, value in self.sizes) + f" on {self.gpus}"


def summary_of(resolved: ResolvedLaunch) -> Summary:
    """The summary of a launch behind its launch path."""
    values: dict[str, object] = {name: resolved.get(key) for name, key in SIZES}
    sizes: list[tuple[str, str]] = []
    for name, value in values.items():
        if name in OPTIONAL and not (isinstance(value, int) and value > 1 and not isinstance(value, bool)):
            continue
        if name == "ETP" and resolved.get("model.num_moe_experts") is None:
            continue
        sizes.append((name, _shown(value)))
    world = resolved.world_size
    sizes.append(("DP", _data_parallel(world, values)))
    gpu = resolved.gpu if isinstance(resolved.gpu, str) else ""
    count = str(world) if isinstance(world, int) else UNKNOWN
    micro, whole = resolved.get("train.micro_batch_size"), resolved.get("train.global_batch_size")
    memory = own_memory(resolved, resolved.name)
    return Summary(
        resolved.name,
        resolved.span.line if resolved.span is not None else 1,
        tuple(sizes),
        f"{count} {gpu or 'GPUs'}",
        f"MBS {_shown(micro)} · GBS {_shown(whole)}",
        _memory(memory),
        memory.judgement.verdict if memory.judgement is not None else "unknown",
        memory.groups if memory.total_bytes is not None else {},
        memory.components if memory.total_bytes is not None else {},
        memory.missing,
    )


def _shown(value: object) -> str:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else "–" if value is None else UNKNOWN  # noqa: RUF001


def _data_parallel(world: int | Unknown, values: Mapping[str, object]) -> str:
    product = 1
    for name in ("TP", "PP", "CP"):
        size = values[name]
        if not isinstance(size, int) or size < 1:
            return UNKNOWN
        product *= size
    if not isinstance(world, int):
        return UNKNOWN
    return str(world // product) if world % product == 0 else UNKNOWN


def _memory(memory: LaunchMemory) -> str:
    if memory.total_bytes is None:
        return "memory: not known"
    needed = f"{memory.total_bytes / GIB:.1f}"
    if memory.capacity is None:
        return f"memory: {needed} GiB"
    verdict = memory.judgement.verdict if memory.judgement is not None else "unknown"
    said = f" ({verdict})" if verdict != "unknown" else " (at least)"
    return f"memory: {needed} of {memory.capacity.low_gib:.1f} GiB{said}"
