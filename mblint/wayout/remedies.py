"""Single changes that lower memory, in the tuning guide's order.

Each is offered only where it can apply to this launch; whether the result starts, fits and brings no new
error is for the search to find out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.facts.memory.reading import Source
from mblint.wayout import cost as costs
from mblint.wayout.cost import Cost

TP, PP, VP = (
    "model.tensor_model_parallel_size",
    "model.pipeline_model_parallel_size",
    "model.virtual_pipeline_model_parallel_size",
)
CP, EP, MBS = "model.context_parallel_size", "model.expert_model_parallel_size", "train.micro_batch_size"
LAYOUT = "model.pipeline_model_parallel_layout"
GRANULARITY, MODULES = "model.recompute_granularity", "model.recompute_modules"
ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF"

FAMILIES = (
    "expandable segments", "LoRA re-gather", "selective recompute", "optimizer", "FSDP", "PP, DP kept",
    "more recompute", "CPU offload",
    "micro batch", "EP", "CP", "PP", "TP",
)  # fmt: skip
"""From cheapest to dearest. The guide names no place for the micro batch, EP and CP: the first costs what
halving DP costs, without its other losses; the other two change the parallel layout without touching TP."""

# Two families that set the same keys cannot be combined.
_EXCLUSIVE = (
    {"selective recompute", "more recompute", "CPU offload"},
    {"PP, DP kept", "PP"},
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


def remedies(source: Source) -> list[Remedy]:
    """All that can apply, in the guide's order."""
    found = [
        *_segments(source), *_regather(source), *_selective(source), *_optimizer(source), *_fsdp(source),
        *_pipeline(source, kept=True), *_recompute(source), *_offload(source), *_micro_batch(source),
        *_experts(source), *_context(source), *_pipeline(source, kept=False), *_tensor(source),
    ]  # fmt: skip
    return [remedy for one in found if (remedy := _only_changes(source, one)).changes]


def _only_changes(source: Source, remedy: Remedy) -> Remedy:
    """The remedy without keys that have their new value already."""
    kept = {key: value for key, value in remedy.changes.items() if source.get(key) != value or key == "world_size"}
    return replace(remedy, changes=kept)


def _value(source: Source, key: str) -> object:
    value = source.get(key)
    return None if value is ABSENT or isinstance(value, Unknown) else value


def _number(source: Source, key: str, default: int = 1) -> int:
    value = _value(source, key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _has(source: Source, key: str) -> bool:
    return source.get(key) is not ABSENT


def _segments(source: Source) -> Iterator[Remedy]:
    before = source.env.get(ALLOCATOR)
    if isinstance(before, Unknown) or (isinstance(before, str) and "expandable_segments:true" in before.lower()):
        return
    if _value(source, "ddp.nccl_ub"):  # the two exclude each other
        return
    kept = [part for part in (before or "").split(",") if part.strip() and not part.strip().startswith("expandable_segments")]
    changes: dict[str, object] = {f"env.{ALLOCATOR}": ",".join([*kept, "expandable_segments:True"])}
    graphs = _value(source, "model.cuda_graph_impl")
    if graphs not in (None, "none"):
        changes["env.NCCL_GRAPH_REGISTER"] = "0"
    yield Remedy("expandable segments", "Let the allocator grow its segments", changes, costs.SEGMENTS)


def _regather(source: Source) -> Iterator[Remedy]:
    key = "peft.sequence_parallel_input_regather"
    if _has(source, key) and not _value(source, key) and _value(source, "model.sequence_parallel") and _number(source, TP) > 1:
        yield Remedy("LoRA re-gather", "Gather LoRA inputs again in backward", {key: True}, costs.REGATHER)


def _modules(source: Source) -> tuple[str, list[str]]:
    granularity = _value(source, GRANULARITY)
    held = _value(source, MODULES)
    names = [str(name) for name in held] if isinstance(held, list | tuple) else ["core_attn"]
    return (str(granularity or ""), names if granularity == "selective" else [])


def _set_modules(names: list[str]) -> dict[str, object]:
    return {
        GRANULARITY: "selective",
        "model.recompute_method": None,
        "model.recompute_num_layers": None,
        MODULES: names,
    }


def _selective(source: Source) -> Iterator[Remedy]:
    granularity, before = _modules(source)
    if granularity == "full":
        return
    family = "selective recompute"
    cheap = ["layernorm"]
    if _number(source, "model.num_moe_experts", 0):
        cheap += ["moe_act"]
        if _number(source, "model.moe_shared_expert_intermediate_size", 0):
            cheap += ["shared_experts"]
    if _value(source, "model.multi_latent_attention"):
        cheap += ["mla_up_proj"]
    cheap = [name for name in cheap if name not in before]
    backend = str(_value(source, "model.attention_backend") or "")
    strength = 0
    if "core_attn" not in before:
        # Worth it where scores are kept; elsewhere the estimate says that it saves nothing.
        cost = costs.CORE_ATTENTION
        names = [*before, "core_attn"]
        if backend.endswith(("unfused", "local")):
            yield Remedy(family, "Recompute core attention", _set_modules(names), cost, strength)
    for name in cheap:
        strength += 1
        yield Remedy(family, f"Recompute {name}", _set_modules([*before, name]), costs.CHEAP_MODULES, strength)
    if len(cheap) > 1:
        yield Remedy(
            family,
            f"Recompute {', '.join(cheap)}",
            _set_modules([*before, *cheap]),
            costs.CHEAP_MODULES,
            strength + 1,
        )


def _optimizer(source: Source) -> Iterator[Remedy]:
    distributed = _value(source, "optimizer.use_distributed_optimizer") or _value(source, "ddp.use_distributed_optimizer")
    on: dict[str, object] = {
        "optimizer.use_distributed_optimizer": True,
        "ddp.use_distributed_optimizer": True,
    }
    kind = _optimizer_kind(source)
    if kind not in ("adam", "adamw", "sgd"):  # Muon and others have no shared states of this kind
        return
    if not distributed:
        yield Remedy("optimizer", "Share optimizer states among data parallel ranks", on, costs.DISTRIBUTED)
    if kind != "sgd" and not _value(source, "optimizer.use_precision_aware_optimizer") and _has(source, "optimizer.exp_avg_dtype"):
        changes = {
            **({} if distributed else on),
            "optimizer.use_precision_aware_optimizer": True,
            "optimizer.exp_avg_dtype": "torch.bfloat16",
            "optimizer.exp_avg_sq_dtype": "torch.bfloat16",
        }
        yield Remedy("optimizer", "Keep optimizer moments in bf16", changes, costs.PRECISION_AWARE, 1)


def _optimizer_kind(source: Source) -> str:
    return str(_value(source, "optimizer.optimizer") or "adam").lower()


def _fsdp(source: Source) -> Iterator[Remedy]:
    if _optimizer_kind(source) not in ("adam", "adamw", "sgd"):
        return
    if _value(source, "ddp.use_megatron_fsdp") or _value(source, "dist.use_torch_fsdp2") or not _has(source, "ddp.use_megatron_fsdp"):
        return
    if _number(source, PP) > 1:  # the pipeline's schedule would gather everything for each micro batch
        return
    changes: dict[str, object] = {
        "ddp.use_megatron_fsdp": True,
        "dist.use_megatron_fsdp": True,
        "ddp.data_parallel_sharding_strategy": "optim_grads_params",
        "ddp.use_distributed_optimizer": True,
        "optimizer.use_distributed_optimizer": True,
        "ddp.average_in_collective": False,
        "checkpoint.ckpt_format": "fsdp_dtensor",
        "model.gradient_accumulation_fusion": False,
    }
    yield Remedy("FSDP", "Shard parameters, gradients and optimizer (Megatron-FSDP)", changes, costs.FSDP)


def _pipeline(source: Source, kept: bool) -> Iterator[Remedy]:
    pp, layers, world = _number(source, PP), _number(source, "model.num_layers", 0), source.world_size
    if not layers or not isinstance(world, int):
        return
    outer = pp * _number(source, TP) * _number(source, CP)
    for strength, factor in enumerate((2, 4, 8)):
        size = pp * factor
        if layers % size or (not kept and world % (outer * factor)):
            continue
        family = "PP, DP kept" if kept else "PP"
        changes: dict[str, object] = {PP: size}
        if kept:
            changes["world_size"] = world * factor
        if _value(source, LAYOUT) is not None:
            changes[LAYOUT] = None
        on = f" on {world * factor} GPUs" if kept else ""
        for number, chunks in enumerate(_chunks(layers // size, _number(source, VP))):
            more = {VP: chunks} if chunks != _value(source, VP) else {}
            title = f"{size} pipeline stages{on}"
            yield Remedy(
                family,
                title,
                {**changes, **more},
                costs.PIPELINE_KEPT if kept else costs.PIPELINE,
                2 * strength + number,
            )


def _chunks(layers: int, before: int) -> list[int | None]:
    """Model chunks a stage: as many as before, or the next fewer that divide the layers."""
    if before <= 1:
        return [None]
    fitting = [count for count in range(before, 1, -1) if layers % count == 0]
    return [fitting[0] if fitting else None]


def _recompute(source: Source) -> Iterator[Remedy]:
    granularity, before = _modules(source)
    if granularity == "full":
        return
    family = "more recompute"
    dense = not _number(source, "model.num_moe_experts", 0)
    if dense and "mlp" not in before:
        yield Remedy(family, "Recompute the feed-forward", _set_modules([*before, "mlp"]), costs.MLP, 0)
        if "layernorm" not in before:
            yield Remedy(
                family,
                "Recompute feed-forward and norms",
                _set_modules([*before, "layernorm", "mlp"]),
                costs.MLP,
                1,
            )
    if not dense and "moe" not in before:
        names = [name for name in before if name not in ("moe_act", "shared_experts")]
        yield Remedy(family, "Recompute the experts", _set_modules([*names, "moe"]), costs.MOE, 0)
    layers = _number(source, "model.num_layers", 0) // max(1, _number(source, PP) * _number(source, VP))
    for strength, share in enumerate((4, 2), 2):
        count = layers // share
        if count >= 1 and _number(source, PP) >= 1:
            yield Remedy(
                family,
                f"Recompute {count} whole layers a stage's chunk",
                _full("block", count),
                costs.FULL,
                strength,
            )
    yield Remedy(family, "Recompute all layers", _full("uniform", 1), costs.FULL, 4)


def _full(method: str, layers: int) -> dict[str, object]:
    return {
        GRANULARITY: "full",
        "model.recompute_method": method,
        "model.recompute_num_layers": layers,
        MODULES: None,
    }


def _offload(source: Source) -> Iterator[Remedy]:
    layers = _number(source, "model.num_layers", 0)
    # Refused with pipeline stages, and with experts it moves too little to be worth it.
    if _number(source, PP) == 1 and layers > 1 and not _value(source, "model.cpu_offloading") and _has(source, "model.cpu_offloading"):
        for strength, count in enumerate(sorted({max(1, layers // 4), max(1, layers // 2), layers - 1})):
            changes: dict[str, object] = {
                "model.cpu_offloading": True,
                "model.cpu_offloading_num_layers": count,
                "model.cpu_offloading_activations": True,
                "model.cpu_offloading_weights": False,
                GRANULARITY: None,
            }
            yield Remedy(
                "CPU offload",
                f"Move activations of {count} layers to the host",
                changes,
                costs.CPU_OFFLOAD,
                strength,
            )
    adam = _optimizer_kind(source) in ("adam", "adamw")
    if adam and _has(source, "optimizer.optimizer_cpu_offload") and not _value(source, "optimizer.optimizer_cpu_offload"):
        for strength, fraction in enumerate((0.25, 0.5, 1.0), 3):
            more: dict[str, object] = {
                "optimizer.optimizer_cpu_offload": True,
                "optimizer.optimizer_offload_fraction": fraction,
                "optimizer.use_precision_aware_optimizer": True,
                "optimizer.overlap_cpu_optimizer_d2h_h2d": True,
            }
            yield Remedy(
                "CPU offload",
                f"Keep {fraction:.0%} of the optimizer on the host",
                more,
                costs.OPTIMIZER_OFFLOAD,
                strength,
            )


def _micro_batch(source: Source) -> Iterator[Remedy]:
    size, strength = _number(source, MBS), 0
    while size > 1 and strength < 4 and size % 2 == 0:
        size //= 2
        yield Remedy("micro batch", f"Micro batches of {size}", {MBS: size}, costs.MICRO_BATCH, strength)
        strength += 1


def _experts(source: Source) -> Iterator[Remedy]:
    experts, ep, world = _number(source, "model.num_moe_experts", 0), _number(source, EP), source.world_size
    if not experts or not isinstance(world, int):
        return
    tensor = _number(source, "model.expert_tensor_parallel_size", 0) or _number(source, TP)
    for strength, factor in enumerate((2, 4)):
        size = ep * factor
        if experts % size == 0 and world % (size * tensor * _number(source, PP)) == 0:
            yield Remedy("EP", f"Experts over {size} GPUs", {EP: size}, costs.EXPERT, strength)


def _context(source: Source) -> Iterator[Remedy]:
    cp, world = _number(source, CP), source.world_size
    outer = _number(source, TP) * _number(source, PP) * cp
    for strength, factor in enumerate((2, 4)):
        if isinstance(world, int) and world % (outer * factor) == 0 and _number(source, "model.seq_length", 0) % (2 * cp * factor) == 0:
            yield Remedy("CP", f"Context over {cp * factor} GPUs", {CP: cp * factor}, costs.CONTEXT, strength)


def _tensor(source: Source) -> Iterator[Remedy]:
    tp, world = _number(source, TP), source.world_size
    outer = tp * _number(source, PP) * _number(source, CP)
    for strength, factor in enumerate((2, 4)):
        size = tp * factor
        if size > 8 or not isinstance(world, int) or world % (outer * factor) or _number(source, "model.num_attention_heads") % size:
            continue
        changes: dict[str, object] = {TP: size}
        if not _value(source, "model.sequence_parallel"):
            changes["model.sequence_parallel"] = True
        yield Remedy("TP", f"Tensor parallel over {size} GPUs", changes, costs.TENSOR, strength)
