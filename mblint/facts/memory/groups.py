"""Which kind of memory a component of an estimate is: bars are drawn by kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mblint.facts.memory.activations import OUTPUT
from mblint.facts.memory.allowance import CONTEXT, FRAGMENTATION, GRAPHS, NCCL, WORKSPACES
from mblint.facts.memory.estimate import (
    BACKWARD,
    BUFFER,
    COPIED,
    DEFERRED,
    EMBEDDING_GRADIENT,
    HELD,
    LOSS,
    OUTPUTS,
    STEP,
)
from mblint.facts.memory.state import ADAPTERS, COPIES, FROZEN, FSDP, GRADIENTS, MAIN, STATES, WEIGHTS

WEIGHT_GROUP: Final = "weights"
GRADIENT_GROUP: Final = "gradients"
OPTIMIZER_GROUP: Final = "optimizer"
ACTIVATION_GROUP: Final = "activations"
TEMPORARY_GROUP: Final = "temporary"
ALLOWANCE_GROUP: Final = "allowance"

GROUPS: Final = (
    WEIGHT_GROUP,
    GRADIENT_GROUP,
    OPTIMIZER_GROUP,
    ACTIVATION_GROUP,
    TEMPORARY_GROUP,
    ALLOWANCE_GROUP,
)
"""In the order of a stacked bar: what stays, what micro batches keep, what the moment adds, the rest."""

_GROUP_OF: Final[dict[str, str]] = {
    **dict.fromkeys((WEIGHTS, FROZEN, ADAPTERS, COPIES, FSDP), WEIGHT_GROUP),
    GRADIENTS: GRADIENT_GROUP,
    **dict.fromkeys((MAIN, STATES), OPTIMIZER_GROUP),
    **dict.fromkeys((OUTPUT, LOSS, BACKWARD, DEFERRED, EMBEDDING_GRADIENT, STEP, COPIED), TEMPORARY_GROUP),
    **dict.fromkeys((HELD, BUFFER, OUTPUTS), ACTIVATION_GROUP),
    **dict.fromkeys((CONTEXT, NCCL, WORKSPACES, GRAPHS, FRAGMENTATION), ALLOWANCE_GROUP),
}


def group_of(component: str) -> str:
    """The group of a component; what the layers keep for backward are activations."""
    return _GROUP_OF.get(component, ACTIVATION_GROUP)


def grouped(components: Mapping[str, float]) -> dict[str, float]:
    """Bytes by group, all groups, in order."""
    out = dict.fromkeys(GROUPS, 0.0)
    for name, size in components.items():
        out[group_of(name)] += size
    return out
