"""Single changes that lower memory, in the tuning guide's order.

Each is offered only where it can apply to this launch; whether the result starts, fits and brings no new
error is for the search to find out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mblint.evaluate.unknown import Unknown
from mblint.facts.memory.reading import Source
from mblint.wayout import cost as costs
from mblint.wayout import parallel_remedies as parallel
from mblint.wayout.remedy import ALLOCATOR, FAMILIES, GRANULARITY, MBS, MODULES, PP, TP, VP, Remedy, exclude, has, number, value_of

__all__ = ["FAMILIES", "Remedy", "exclude", "remedies"]


def remedies(source: Source) -> list[Remedy]:
    """All that can apply, in the guide's order."""
    found = [
        *_segments(source), *parallel.sequence_parallel(source), *_fusions(source), *_regather(source), *_selective(source),
        *_optimizer(source), *_fsdp(source), *parallel.data_parallel(source), *parallel.pipeline(source, kept=True),
        *parallel.uneven(source),
        *_recompute(source), *_offload(source), *_micro_batch(source),
        *parallel.experts(source), *parallel.context(source), *parallel.pipeline(source, kept=False), *parallel.tensor(source),
    ]  # fmt: skip
    return [remedy for one in found if (remedy := _only_changes(source, one)).changes]


def _only_changes(source: Source, remedy: Remedy) -> Remedy:
    """The remedy without keys that have their new value already."""
    kept = {key: value for key, value in remedy.changes.items() if source.get(key) != value or key == "world_size"}
    return replace(remedy, changes=kept)


def _segments(source: Source) -> Iterator[Remedy]:
    before = source.env.get(ALLOCATOR)
    if isinstance(before, Unknown) or (isinstance(before, str) and "expandable_segments:true" in before.lower()):
        return
    if value_of(source, "ddp.nccl_ub"):  # the two exclude each other
        return
    kept = [part for part in (before or "").split(",") if part.strip() and not part.strip().startswith("expandable_segments")]
    changes: dict[str, object] = {f"env.{ALLOCATOR}": ",".join([*kept, "expandable_segments:True"])}
    graphs = value_of(source, "model.cuda_graph_impl")
    if graphs not in (None, "none"):
        changes["env.NCCL_GRAPH_REGISTER"] = "0"
    yield Remedy("expandable segments", "Let the allocator grow its segments", changes, costs.SEGMENTS)


def _fusions(source: Source) -> Iterator[Remedy]:
    """Kernels that keep less: the loss first, then the gated activation."""
    found: list[tuple[str, dict[str, object]]] = []
    implementation = value_of(source, "model.cross_entropy_fusion_impl")
    fused = value_of(source, "model.cross_entropy_loss_fusion") and implementation == "te"
    if has(source, "model.cross_entropy_fusion_impl") and not fused:
        changes = {"model.cross_entropy_loss_fusion": True, "model.cross_entropy_fusion_impl": "te"}
        found.append(("Compute the loss in Transformer Engine's kernel", changes))
    silu = str(value_of(source, "model.activation_func")).endswith(".silu") and value_of(source, "model.gated_linear_unit")
    if silu and source.get("model.bias_activation_fusion") is False and not value_of(source, "model.use_te_activation_func"):
        found.append(("Fuse the gated activation", {"model.bias_activation_fusion": True}))
    for strength, (title, changes) in enumerate(found):
        yield Remedy("fusion", title, changes, costs.FUSION, strength)
    if len(found) > 1:
        title = "Compute the loss in Transformer Engine's kernel and fuse the gated activation"
        yield Remedy("fusion", title, {**found[0][1], **found[1][1]}, costs.FUSION, len(found))


def _regather(source: Source) -> Iterator[Remedy]:
    key = "peft.sequence_parallel_input_regather"
    if has(source, key) and not value_of(source, key) and value_of(source, "model.sequence_parallel") and number(source, TP) > 1:
        yield Remedy("LoRA re-gather", "Gather LoRA inputs again in backward", {key: True}, costs.REGATHER)


def _modules(source: Source) -> tuple[str, list[str]]:
    granularity = value_of(source, GRANULARITY)
    held = value_of(source, MODULES)
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
    if number(source, "model.num_moe_experts", 0):
        cheap += ["moe_act"]
        if number(source, "model.moe_shared_expert_intermediate_size", 0):
            cheap += ["shared_experts"]
    if value_of(source, "model.multi_latent_attention"):
        cheap += ["mla_up_proj"]
    cheap = [name for name in cheap if name not in before]
    backend = str(value_of(source, "model.attention_backend") or "")
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
    distributed = value_of(source, "optimizer.use_distributed_optimizer") or value_of(source, "ddp.use_distributed_optimizer")
    on: dict[str, object] = {
        "optimizer.use_distributed_optimizer": True,
        "ddp.use_distributed_optimizer": True,
    }
    kind = _optimizer_kind(source)
    if kind not in ("adam", "adamw", "sgd"):  # Muon and others have no shared states of this kind
        return
    if not distributed:
        yield Remedy("optimizer", "Share optimizer states among data parallel ranks", on, costs.DISTRIBUTED)
    if kind != "sgd" and not value_of(source, "optimizer.use_precision_aware_optimizer") and has(source, "optimizer.exp_avg_dtype"):
        changes = {
            **({} if distributed else on),
            "optimizer.use_precision_aware_optimizer": True,
            "optimizer.exp_avg_dtype": "torch.bfloat16",
            "optimizer.exp_avg_sq_dtype": "torch.bfloat16",
        }
        yield Remedy("optimizer", "Keep optimizer moments in bf16", changes, costs.PRECISION_AWARE, 1)


def _optimizer_kind(source: Source) -> str:
    return str(value_of(source, "optimizer.optimizer") or "adam").lower()


def _fsdp(source: Source) -> Iterator[Remedy]:
    if _optimizer_kind(source) not in ("adam", "adamw", "sgd"):
        return
    if value_of(source, "ddp.use_megatron_fsdp") or value_of(source, "dist.use_torch_fsdp2") or not has(source, "ddp.use_megatron_fsdp"):
        return
    if number(source, PP) > 1:  # the pipeline's schedule would gather everything for each micro batch
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


def _recompute(source: Source) -> Iterator[Remedy]:
    granularity, before = _modules(source)
    if granularity == "full":
        return
    family = "more recompute"
    dense = not number(source, "model.num_moe_experts", 0)
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
    layers = number(source, "model.num_layers", 0) // max(1, number(source, PP) * number(source, VP))
    for strength, share in enumerate((4, 2), 2):
        count = layers // share
        if count >= 1 and number(source, PP) >= 1:
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
    layers = number(source, "model.num_layers", 0)
    # Refused with pipeline stages, and with experts it moves too little to be worth it.
    if number(source, PP) == 1 and layers > 1 and not value_of(source, "model.cpu_offloading") and has(source, "model.cpu_offloading"):
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
    if adam and has(source, "optimizer.optimizer_cpu_offload") and not value_of(source, "optimizer.optimizer_cpu_offload"):
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
    size, strength = number(source, MBS), 0
    while size > 1 and strength < 4 and size % 2 == 0:
        size //= 2
        yield Remedy("micro batch", f"Micro batches of {size}", {MBS: size}, costs.MICRO_BATCH, strength)
        strength += 1
