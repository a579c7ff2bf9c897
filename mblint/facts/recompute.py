"""What activation recomputation does in the end. Source: TransformerConfig.__post_init__."""

from __future__ import annotations

from mblint.facts.view import View, fact


@fact("recompute.granularity")
def granularity(view: View) -> str | None:
    """ "full", "selective" or None."""
    value = view.value("model.recompute_granularity")
    return value if isinstance(value, str) else None


@fact("recompute.full")
def full(view: View) -> bool:
    """Whether whole layers are recomputed."""
    return view.value("recompute.granularity") == "full"


@fact("recompute.modules")
def modules(view: View) -> list[object]:
    """Modules that selective recompute covers; empty without it. A list that is not given means core_attn."""
    if view.value("recompute.granularity") != "selective":
        return []
    if view.value("model.recompute_modules") is None:
        return ["core_attn"]
    return view.items("model.recompute_modules")


_EXPERT_MODULES = ("moe", "moe_act", "shared_experts")


@fact("recompute.idle_modules")
def idle_modules(view: View) -> list[object]:
    """Modules that selective recompute covers and that no layer of the model has, so that nothing happens.

    Layers of a hybrid model are in its pattern: `*` attention, `-` dense MLP, `E` experts; elsewhere the MLP
    of a layer is either dense or experts, and only the dense one is the module "mlp".
    """
    chosen = view.items("recompute.modules")
    if not chosen:
        return []
    pattern = view.value("model.hybrid_layer_pattern")
    if isinstance(pattern, str):
        missing = [name for name, symbol in (("core_attn", "*"), ("mlp", "-")) if symbol not in pattern]
        has_experts = "E" in pattern
    else:
        has_experts = view.flag("moe.active")
        missing = ["mlp"] if has_experts and view.flag("moe.all_layers") else []
    if not has_experts:
        missing.extend(_EXPERT_MODULES)
    elif "shared_experts" in chosen and view.value("model.moe_shared_expert_intermediate_size") is None:
        missing.append("shared_experts")
    return [name for name in chosen if name in missing]
