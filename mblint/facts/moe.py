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
