"""What one part of a layer holds between forward and backward."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

INPUTS = "layer inputs"
NORMED = "normalized inputs"
ATTENTION = "attention"
MIXER = "linear attention and state space"
MLP = "feed-forward"
EXPERTS = "routed experts"
SHARED = "shared experts"
LORA = "adapter activations"
MASKS = "dropout masks"
REQUANTIZED = "weights quantized for each micro batch"


class Tensor(NamedTuple):
    """A tensor kept for backward: its component, its size, and how it can be moved to the host.

    `offload` is the name of the fine-grained offload group that moves it, "layer" where only layer-wise
    offloading does, and "" where nothing does (too small, or not marked by Transformer Engine).
    """

    component: str
    size: float
    offload: str


@dataclass(slots=True)
class Part:
    """Attention or feed-forward part of one layer.

    `saved`: tensors kept until backward. `replayed`: bytes that recomputation inside this part brings back
    at the start of its backward. `working`: gradients and temporaries on top of both at the part's worst
    moment.
    """

    saved: list[Tensor] = field(default_factory=list)
    replayed: float = 0.0
    working: float = 0.0

    def keep(self, component: str, size: float, offload: str = "layer") -> None:
        if size > 0:
            self.saved.append(Tensor(component, size, offload))

    @property
    def size(self) -> float:
        return sum(tensor.size for tensor in self.saved)


def by_component(tensors: Iterable[Tensor]) -> dict[str, float]:
    """Sizes summed up by component."""
    out: dict[str, float] = {}
    for tensor in tensors:
        out[tensor.component] = out.get(tensor.component, 0.0) + tensor.size
    return out
