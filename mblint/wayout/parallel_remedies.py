"""Remedies of the parallel layout: more ranks for the same thing, or the same ranks arranged otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from mblint.facts.memory.reading import Source
from mblint.wayout import cost as costs
from mblint.wayout.remedy import CP, EP, FIRST, LAST, LAYOUT, PP, TP, VP, Remedy, number, value_of


def sequence_parallel(source: Source) -> Iterator[Remedy]:
    key = "model.sequence_parallel"
    if number(source, TP) > 1 and source.get(key) is False:
        yield Remedy("sequence parallel", "Split norms and residual stream over the sequence", {key: True}, costs.SEQUENCE_PARALLEL)


def data_parallel(source: Source) -> Iterator[Remedy]:
    """More ranks share the optimizer's states."""
    world = source.world_size
    shared = value_of(source, "optimizer.use_distributed_optimizer") or value_of(source, "ddp.use_distributed_optimizer")
    if not isinstance(world, int) or not shared:
        return
    for strength, factor in enumerate((2, 4)):
        size = world * factor
        yield Remedy("more DP", f"More data parallel ranks: {size} GPUs", {"world_size": size}, costs.MORE_DATA_PARALLEL, strength)


def pipeline(source: Source, kept: bool) -> Iterator[Remedy]:
    pp, layers, world = number(source, PP), number(source, "model.num_layers", 0), source.world_size
    if not layers or not isinstance(world, int):
        return
    outer = pp * number(source, TP) * number(source, CP)
    for strength, factor in enumerate((2, 4, 8)):
        size = pp * factor
        if layers % size or (not kept and world % (outer * factor)):
            continue
        family = "PP, DP kept" if kept else "PP"
        changes: dict[str, object] = {PP: size}
        if kept:
            changes["world_size"] = world * factor
        if value_of(source, LAYOUT) is not None:
            changes[LAYOUT] = None
        on = f" on {world * factor} GPUs" if kept else ""
        for step, chunks in enumerate(_chunks(layers // size, number(source, VP))):
            more = {VP: chunks} if chunks != value_of(source, VP) else {}
            title = f"{size} pipeline stages{on}"
            yield Remedy(
                family,
                title,
                {**changes, **more},
                costs.PIPELINE_KEPT if kept else costs.PIPELINE,
                2 * strength + step,
            )


def _chunks(layers: int, before: int) -> list[int | None]:
    """Model chunks a stage: as many as before, or the next fewer that divide the layers."""
    if before <= 1:
        return [None]
    fitting = [count for count in range(before, 1, -1) if layers % count == 0]
    return [fitting[0] if fitting else None]


def uneven(source: Source) -> Iterator[Remedy]:
    """Layers moved away from the first stage, the last, or both: these hold the embedding, most micro batches, the loss."""
    pp, layers = number(source, PP), number(source, "model.num_layers", 0)
    fixed = (LAYOUT, FIRST, LAST, "model.account_for_embedding_in_pipeline_split", "model.account_for_loss_in_pipeline_split")
    if pp < 2 or not layers or layers % pp or number(source, VP) > 1 or any(value_of(source, key) for key in fixed):
        return
    even = layers // pp
    strength = 0
    for moved in range(1, max(2, even // 2)):
        for first, last in ((even - moved, even), (even, even - moved), (even - moved, even - moved)):
            if pp == 2:
                first, last = (first, layers - first) if first < even else (layers - last, last)
            rest = layers - first - last
            if min(first, last) < 1 or (pp > 2 and (rest % (pp - 2) or rest // (pp - 2) < 1)):
                continue
            if strength < 6:
                title = f"{first} layers in the first stage, {last} in the last"
                yield Remedy("layers per stage", title, {FIRST: first, LAST: last}, costs.UNEVEN, strength)
                strength += 1


def experts(source: Source) -> Iterator[Remedy]:
    experts, ep, world = number(source, "model.num_moe_experts", 0), number(source, EP), source.world_size
    if not experts or not isinstance(world, int):
        return
    tensor = number(source, "model.expert_tensor_parallel_size", 0) or number(source, TP)
    for strength, factor in enumerate((2, 4)):
        size = ep * factor
        if experts % size == 0 and world % (size * tensor * number(source, PP)) == 0:
            yield Remedy("EP", f"Experts over {size} GPUs", {EP: size}, costs.EXPERT, strength)


def context(source: Source) -> Iterator[Remedy]:
    cp, world = number(source, CP), source.world_size
    outer = number(source, TP) * number(source, PP) * cp
    for strength, factor in enumerate((2, 4)):
        if isinstance(world, int) and world % (outer * factor) == 0 and number(source, "model.seq_length", 0) % (2 * cp * factor) == 0:
            yield Remedy("CP", f"Context over {cp * factor} GPUs", {CP: cp * factor}, costs.CONTEXT, strength)


def tensor(source: Source) -> Iterator[Remedy]:
    tp, world = number(source, TP), source.world_size
    outer = tp * number(source, PP) * number(source, CP)
    for strength, factor in enumerate((2, 4)):
        size = tp * factor
        if size > 8 or not isinstance(world, int) or world % (outer * factor) or number(source, "model.num_attention_heads") % size:
            continue
        changes: dict[str, object] = {TP: size}
        if not value_of(source, "model.sequence_parallel"):
            changes["model.sequence_parallel"] = True
        yield Remedy("TP", f"Tensor parallel over {size} GPUs", changes, costs.TENSOR, strength)
