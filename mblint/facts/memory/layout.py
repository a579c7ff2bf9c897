"""Which layers each pipeline stage holds, chunk by chunk.

Source: megatron-core 0.19, `transformer/transformer_block.py:get_num_layers_to_build`,
`transformer/pipeline_parallel_layer_layout.py`,
`models/hybrid/hybrid_layer_allocation.py:select_pipeline_segment`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from mblint.facts.memory.inputs import Inputs
from mblint.facts.memory.model_shape import LayerKind, Split

# A schedule is followed pass by pass; 64 stages of 16 chunks have 65,536 in a round.
_MOST_PASSES = 1_000_000


@dataclass(frozen=True, slots=True)
class Chunk:
    """One model chunk of a stage. `layers` pairs each decoder layer's index with its kind, in order."""

    layers: tuple[tuple[int, LayerKind], ...]
    embedding: bool
    output: bool
    predicted: int
    final_norm: bool


class LayoutError(ValueError):
    """The layers cannot be spread over the stages as configured. `key` is to blame."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key = key


def stage_chunks(inputs: Inputs) -> tuple[tuple[Chunk, ...], ...]:
    """For each pipeline stage its chunks in order of execution. Raises LayoutError."""
    model, parallel, training = inputs.model, inputs.parallel, inputs.training
    passes = parallel.pp * parallel.vp * min(training.group, training.microbatches)
    if parallel.vp > 1 and passes > _MOST_PASSES:
        own = training.group != parallel.pp
        key = "microbatch_group_size_per_vp_stage" if own else "virtual_pipeline_model_parallel_size"
        raise LayoutError(f"model.{key}", f"a round of the schedule has {passes} passes, too many to follow")
    return _stage_chunks(model.layers, model.predicted, model.split, parallel.pp, parallel.vp)


@lru_cache(maxsize=1024)
def _stage_chunks(kinds: tuple[LayerKind, ...], depths: int, split: Split, pp: int, vp: int) -> tuple[tuple[Chunk, ...], ...]:
    total = pp * vp
    counts, predicted = _chunk_sizes(len(kinds), depths, split, pp, vp)
    if len(counts) != total:
        raise LayoutError("model.pipeline_model_parallel_layout", f"{len(counts)} parts for {total} model chunks")
    if sum(counts) != len(kinds):
        raise LayoutError("model.num_layers", f"{sum(counts)} layers are placed, {len(kinds)} exist")
    chunks: list[Chunk] = []
    offset = 0
    for number, count in enumerate(counts):
        layers = tuple((i, kinds[i]) for i in range(offset, offset + count))
        offset += count
        last = number == total - 1
        # With prediction layers the final norm sits behind the last decoder layer, else in the last chunk.
        holds_end = bool(layers) and offset == len(kinds)
        chunks.append(
            Chunk(
                layers=layers,
                embedding=number == 0,
                output=last,
                predicted=predicted[number],
                final_norm=holds_end if sum(predicted) else last,
            )
        )
    return tuple(tuple(chunks[rank::pp]) for rank in range(pp))


def _chunk_sizes(layers: int, depths: int, split: Split, pp: int, vp: int) -> tuple[list[int], list[int]]:
    """Decoder layers and prediction depths of each chunk, in order of execution (stage varies fastest)."""
    total = pp * vp
    if split.layout is not None and pp > 1:
        return (
            [chunk.count("decoder") for chunk in split.layout],
            [chunk.count("mtp") for chunk in split.layout],
        )
    predicted = [0] * (total - 1) + [depths]
    if split.segments is not None and pp > 1:
        return list(split.segments), predicted
    stages = _stage_sizes(layers, split, pp)
    counts = []
    for chunk in range(vp):
        for rank, count in enumerate(stages):
            if count % vp:
                raise LayoutError(
                    "model.virtual_pipeline_model_parallel_size",
                    f"{count} layers of stage {rank} cannot be cut into {vp} equal chunks",
                )
            size = count // vp
            if split.embedding_counts and chunk == 0 and rank == 0:
                size -= 1
            if split.loss_counts and chunk == vp - 1 and rank == pp - 1:
                size -= 1
            counts.append(max(0, size))
    return counts, predicted


def _stage_sizes(layers: int, split: Split, pp: int) -> list[int]:
    """Slots of each stage; the embedding and the loss may count as one each."""
    given = [count for count in (split.first, split.last) if count is not None]
    if given and pp > 1:
        left, stages = layers - sum(given), pp - len(given)
        if left < 0 or (stages == 0 and left) or (stages and left % stages):
            raise LayoutError("model.num_layers", f"{left} layers cannot be spread over the other {stages} stages")
        sizes = [left // stages if stages else 0] * pp
        if split.first is not None:
            sizes[0] = split.first
        if split.last is not None:
            sizes[-1] = split.last
        return sizes
    slots = layers + split.embedding_counts + split.loss_counts
    if slots % pp:
        raise LayoutError("model.num_layers", f"{slots} layers cannot be spread over {pp} stages")
    return [slots // pp] * pp
