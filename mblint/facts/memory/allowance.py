"""What a GPU holds beside PyTorch's allocations: a stated range, not a model.

Measured on H200 with one or two GPUs (torch 2.11, CUDA 13, NCCL 2.28): device memory minus the allocator's
reservation was 2.4 GiB in a fresh process with one GPU; the allocator's reservation exceeded its peak
allocation by 0.4 % to 6 %, median about 1 %, without expandable segments. Library workspaces (cuBLAS and
Transformer Engine, 32 MiB a handle on Hopper and later, four more for grouped matrix products) come from
the allocator and are counted here.
"""

from __future__ import annotations

from dataclasses import dataclass

from mblint.facts.memory.inputs import Inputs

_GIB = 2**30
_MIB = 2**20

CONTEXT = "CUDA context and kernels"
NCCL = "NCCL communicators"
WORKSPACES = "library workspaces"
GRAPHS = "CUDA graph pools"
FRAGMENTATION = "allocator fragmentation"


@dataclass(frozen=True, slots=True)
class Allowance:
    """`components` are the typical values; `low_bytes` and `high_bytes` bound their sum."""

    components: dict[str, int]
    low_bytes: int
    high_bytes: int

    @property
    def typical_bytes(self) -> int:
        return sum(self.components.values())


def allowance(inputs: Inputs, allocated: int) -> Allowance:
    """The allowance of a launch whose allocator peak is `allocated`.

    Each line gives (low, typical, high): context 0.5/1/2 GiB; NCCL, a few tens of MiB a communicator and
    channel buffer, by the number of parallel dimensions in use; workspaces; graph pools as a share of what
    is allocated while graphs are captured; fragmentation 0/0.5/2 % with expandable segments, 0.5/1.5/6 %
    without.
    """
    parallel = inputs.parallel
    groups = 1 + sum(size > 1 for size in (parallel.tp, parallel.pp, parallel.cp, parallel.ep, parallel.dp))
    alone = parallel.world == 1
    lines: dict[str, tuple[float, float, float]] = {
        CONTEXT: (0.5 * _GIB, 1.0 * _GIB, 2.0 * _GIB),
        NCCL: (0.0, 0.1 * _GIB, 0.5 * _GIB) if alone else (0.1 * _GIB * groups, 0.25 * _GIB * groups, 0.6 * _GIB * groups),
        WORKSPACES: (64 * _MIB, 96 * _MIB, 128 * _MIB),
    }
    if inputs.model.moe is not None:
        lines[WORKSPACES] = (128 * _MIB, 224 * _MIB, 384 * _MIB)
    if inputs.cuda_graphs:
        lines[GRAPHS] = (0.01 * allocated, 0.04 * allocated, 0.12 * allocated)
    if inputs.expandable_segments:
        lines[FRAGMENTATION] = (0.0, 0.005 * allocated, 0.02 * allocated)
    else:
        lines[FRAGMENTATION] = (0.005 * allocated, 0.015 * allocated, 0.06 * allocated)
    return Allowance(
        components={name: round(typical) for name, (_, typical, _) in lines.items()},
        low_bytes=round(sum(low for low, _, _ in lines.values())),
        high_bytes=round(sum(high for _, _, high in lines.values())),
    )
