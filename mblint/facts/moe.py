"""Mixture of experts. Source: TransformerConfig.__post_init__ and megatron.core.transformer.moe."""

from __future__ import annotations

from mblint.facts.view import View, fact


@fact("moe.active")
def active(view: View) -> bool:
    """Whether the model has experts."""
    return view.value("model.num_moe_experts") is not None


@fact("moe.experts")
def experts(view: View) -> int:
    """Number of routed experts; absent in a dense model."""
    return view.integer("model.num_moe_experts")


@fact("moe.dispatcher")
def dispatcher(view: View) -> str:
    """Token dispatcher: "allgather", "alltoall", or a flex backend such as "deepep"; absent if dense."""
    if not view.flag("moe.active"):
        view.stop()
    kind = view.text("model.moe_token_dispatcher_type", "allgather")
    if kind != "flex":
        return kind
    return view.text("model.moe_flex_dispatcher_backend", "deepep")


@fact("moe.all_layers")
def all_layers(view: View) -> bool:
    """Whether every layer is a MoE layer, so that no dense MLP is left; absent in a dense model."""
    if not view.flag("moe.active"):
        view.stop()
    frequency = view.value("model.moe_layer_freq", 1)
    if isinstance(frequency, int):
        return frequency == 1
    if isinstance(frequency, list):
        return all(item == 1 for item in frequency)
    return view.stop()


@fact("moe.layers_exist")
def layers_exist(view: View) -> bool:
    """Whether the model has experts and a layer that uses them (hybrid models name it in their pattern)."""
    if not view.flag("moe.active"):
        return False
    pattern = view.value("model.hybrid_layer_pattern", view.value("model.hybrid_override_pattern"))
    return "E" in pattern if isinstance(pattern, str) else True


@fact("moe.layer_freq_length")
def layer_freq_length(view: View) -> int:
    """Number of layers that moe_layer_freq lists; absent where it is a number."""
    frequency = view.value("model.moe_layer_freq")
    return len(frequency) if isinstance(frequency, list) else view.stop()


@fact("moe.mixed_layers")
def mixed_layers(view: View) -> bool:
    """Whether moe_layer_freq leaves some layers dense."""
    frequency = view.value("model.moe_layer_freq", 1)
    if isinstance(frequency, list):
        return 0 in frequency
    return isinstance(frequency, int) and frequency > 1


@fact("moe.aux_loss_terms")
def aux_loss_terms(view: View) -> int:
    """Number of auxiliary loss coefficients that are listed; 0 where a single number is given."""
    coefficients = view.value("model.moe_aux_loss_coeff")
    return len(coefficients) if isinstance(coefficients, list) else 0


@fact("moe.balanced")
def balanced(view: View) -> bool:
    """Whether an auxiliary loss, an expert bias, sinkhorn or quantiles balance the load of experts."""
    if view.flag("model.moe_router_enable_expert_bias"):
        return True
    kinds = view.value("model.moe_router_load_balancing_type", [])
    names = [str(kind) for kind in kinds] if isinstance(kinds, list) else [str(kinds)]
    if any(name not in ("aux_loss", "seq_aux_loss", "global_aux_loss", "none") for name in names):
        return True  # sinkhorn, quantile balancing, or one that is not known here
    coefficients = view.value("model.moe_aux_loss_coeff", 0)
    numbers = coefficients if isinstance(coefficients, list) else [coefficients] * len(names)
    return any(name != "none" and number != 0 for name, number in zip(names, numbers, strict=False))
