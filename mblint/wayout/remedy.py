"""What a remedy is, where it stands in the order, and how the values are read that it depends on."""

from __future__ import annotations

from dataclasses import dataclass

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.facts.memory.reading import Source
from mblint.wayout.cost import Cost

TP, PP, VP = (
    "model.tensor_model_parallel_size",
    "model.pipeline_model_parallel_size",
    "model.virtual_pipeline_model_parallel_size",
)
CP, EP, MBS = "model.context_parallel_size", "model.expert_model_parallel_size", "train.micro_batch_size"
LAYOUT = "model.pipeline_model_parallel_layout"
FIRST, LAST = "model.num_layers_in_first_pipeline_stage", "model.num_layers_in_last_pipeline_stage"
GRANULARITY, MODULES = "model.recompute_granularity", "model.recompute_modules"
ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF"

FAMILIES = (
    "expandable segments", "sequence parallel", "fusion", "LoRA re-gather", "selective recompute", "optimizer", "FSDP",
    "more DP", "PP, DP kept", "layers per stage", "more recompute", "CPU offload",
    "micro batch", "EP", "CP", "PP", "TP",
)  # fmt: skip
"""From cheapest to dearest. The guide names no place for some: sequence parallel and fusions save memory without a known
loss, so they come first; more data parallel ranks and uneven stages stand with the pipeline; the micro batch costs what
halving DP costs, without its other losses; EP and CP change the parallel layout without touching TP."""

# Two families that set the same keys cannot be combined.
_EXCLUSIVE = (
    {"selective recompute", "more recompute", "CPU offload"},
    {"PP, DP kept", "PP", "layers per stage"},
    {"PP, DP kept", "more DP"},
    {"optimizer", "FSDP"},
    {"FSDP", "PP, DP kept"},
    {"FSDP", "PP"},
)


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change. `changes` maps keys to values, `env.NAME` to environment variables, `world_size` to GPUs.

    `strength` orders the remedies of one family: a stronger one costs more.
    """

    family: str
    title: str
    changes: dict[str, object]
    cost: Cost
    strength: int = 0

    @property
    def rank(self) -> int:
        """Place in the guide's order."""
        return FAMILIES.index(self.family)


def exclude(one: str, other: str) -> bool:
    """Whether remedies of two families cannot be combined."""
    return one == other or any({one, other} <= pair for pair in _EXCLUSIVE)


def value_of(source: Source, key: str) -> object:
    """The value of a key; None where it has none or it is not known."""
    value = source.get(key)
    return None if value is ABSENT or isinstance(value, Unknown) else value


def number(source: Source, key: str, default: int = 1) -> int:
    """A whole number, or the default."""
    value = value_of(source, key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def has(source: Source, key: str) -> bool:
    """Whether the configuration has such a key at all."""
    return source.get(key) is not ABSENT
