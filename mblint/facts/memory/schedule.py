"""How many micro batches a pipeline stage holds at once, and what the schedule itself keeps.

Source: megatron-core 0.19 `pipeline_parallel/schedules.py`: without interleaving a stage of rank r runs
PP - r - 1 forward passes ahead, with interleaving 2*(PP - r - 1) + (VP - 1)*group passes of single chunks
(`get_pp_rank_microbatches`), and then one forward and one backward in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mblint.facts.memory.inputs import Inputs

# After the warm-up one round through all chunks repeats; a second one shows the steady state.
_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Flight:
    """One moment of a stage just after a forward pass.

    `passes[c]`: micro batches of chunk c between forward and backward, the newest included. `newest`: the
    chunk that has just run. `idle`: chunks whose latest micro batch is done: the module still holds its
    input tensor and that tensor's gradient.
    """

    passes: tuple[int, ...]
    newest: int
    idle: tuple[bool, ...]


def flights(inputs: Inputs, rank: int) -> tuple[Flight, ...]:
    """The distinct moments of a stage that can be its peak."""
    parallel, training = inputs.parallel, inputs.training
    return _flights(parallel.pp, parallel.vp, rank, training.microbatches, training.group, training.overlap_expert_comm)


@lru_cache(maxsize=4096)
def _flights(pp: int, vp: int, rank: int, microbatches: int, group: int, ahead: bool) -> tuple[Flight, ...]:
    if pp == 1:
        return (Flight((1,), 0, (False,)),)
    if vp == 1:
        held = min(microbatches, pp - rank)
        return (Flight((held,), 0, (False,)),)
    warmup = 2 * (pp - rank - 1) + (vp - 1) * group + (1 if ahead else 0)
    total = microbatches * vp
    steps = min(total, warmup + _ROUNDS * vp * group)
    order = _order(min(microbatches, steps // vp + group + 1), vp, group)[:steps]
    found: dict[Flight, None] = {}
    passes = [0] * vp
    seen: set[int] = set()
    backward = 0
    for done, (chunk, _) in enumerate(order):
        passes[chunk] += 1
        # Before forward pass number `done`, all but `warmup` of the earlier ones have run backward.
        while backward < done - warmup:
            passes[vp - 1 - order[backward][0]] -= 1
            backward += 1
        # Inside a group, passes only move from one chunk to another, evenly: its ends are the extremes.
        edge = done + 1 == steps or order[done + 1][0] != chunk or order[done - 1][0] != chunk
        if done == warmup or (done >= min(warmup, steps - 1) and edge):
            idle = tuple(done > 0 and passes[c] == 0 and c in seen for c in range(vp))
            found[Flight(tuple(passes), chunk, idle)] = None
        seen.add(chunk)
    return tuple(found)


def _order(microbatches: int, vp: int, group: int) -> list[tuple[int, int]]:
    """(chunk, micro batch) of the forward passes: a group of micro batches through one chunk, then through
    the next."""
    out: list[tuple[int, int]] = []
    for start in range(0, microbatches, group):
        stop = min(start + group, microbatches)
        out += [(chunk, micro) for chunk in range(vp) for micro in range(start, stop)]
    return out


def held_inputs(inputs: Inputs, first_chunk: Sequence[bool]) -> float:
    """Bytes that a stage keeps between steps: each chunk that receives its input holds the last one and its
    gradient.

    `decoder.input_tensor` stays referenced by the module until the next forward pass sets another
    (`transformer_block.py:set_input_tensor`). `first_chunk` marks the chunk with the embedding.
    """
    return sum(2.0 * boundary_bytes(inputs) for first in first_chunk if not first)


def boundary_bytes(inputs: Inputs) -> float:
    """Size of the tensor that travels between stages."""
    if inputs.parallel.pp == 1:
        return 0.0
    return float(inputs.local_tokens * inputs.model.hidden * inputs.precision.activation_bytes)
