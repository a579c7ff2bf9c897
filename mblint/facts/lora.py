"""Which LoRA adapters can re-gather their sequence parallel input, and what prevents the others.

`sequence_parallel_input_regather` keeps only the local shard of the LayerNorm output for LoRA-A's weight
gradient. It applies to adapters of `linear_qkv` and of `linear_fc1` outside routed experts, and falls back
without a word everywhere else. Source: megatron.bridge.peft.utils.ParallelLinearAdapter,
get_adapter_attributes_from_linear; ModuleMatcher.match.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

from mblint.facts.view import View, fact

SURFACES: Final = ("linear_qkv", "linear_fc1")
"""Base layers whose adapters are column parallel and eligible."""


@fact("lora.active")
def active(view: View) -> bool:
    """Whether the launch trains LoRA adapters (LoRA or derived from it; not DoRA or CanonicalLoRA)."""
    if view.value("peft") is None:
        return False
    return "LoRA" in view.class_names("peft")


@fact("lora.surfaces")
def surfaces(view: View) -> list[object]:
    """The column parallel layers that the targets reach and that the model has outside routed experts."""
    if not view.flag("lora.active"):
        view.stop()
    return [surface for surface in SURFACES if _targeted(view, surface) and _exists(view, surface)]


@fact("lora.obstacle")
def obstacle(view: View) -> str | None:
    """What keeps every adapter from re-gathering its input, in words; None if nothing does."""
    if not view.flag("lora.active"):
        view.stop()
    if view.integer("parallel.tp") <= 1:
        return "the tensor parallel size is 1"
    if not view.flag("model.sequence_parallel"):
        return "sequence parallelism is off"
    if view.flag("peft.a2a_experimental"):
        return "all-to-all adapters take a path of their own"
    if view.flag("model.cpu_offloading") and view.value("model.cpu_offloading_activations", True):
        return "activations are offloaded to the CPU"
    if view.flag("graphs.active"):
        return "CUDA graphs are on"
    if view.flag("recompute.full"):
        return "full activation recomputation covers the adapters already"
    return None


@fact("lora.regather_targets")
def regather_targets(view: View) -> list[object]:
    """The targets whose adapters re-gather their input once it is switched on."""
    if view.known("lora.obstacle") is not None:
        return []
    found = view.items("lora.surfaces")
    if "mlp" in view.items("recompute.modules"):
        found = [surface for surface in found if surface != "linear_fc1"]
    return found


@fact("lora.regather_fallback")
def regather_fallback(view: View) -> str | None:
    """Why no adapter would re-gather its input, in words; None if one would."""
    reason = view.known("lora.obstacle")
    if isinstance(reason, str):
        return reason
    if view.items("lora.regather_targets"):
        return None
    if view.items("lora.surfaces"):
        return "selective recomputation of mlp covers linear_fc1, the only target that would qualify"
    return "no target is a linear_qkv, or a linear_fc1 outside routed experts"


def _targeted(view: View, surface: str) -> bool:
    targets = [str(target) for target in view.items("peft.target_modules")]
    if not targets:
        excluded = [str(name) for name in view.items("peft.exclude_modules")]
        return not any(name == surface or fnmatchcase(surface, name.rpartition(".")[2]) for name in excluded)
    return any(
        fnmatchcase(surface, target.rpartition(".")[2])
        for target in targets
        if "experts." not in target or "shared_experts." in target
    )


def _exists(view: View, surface: str) -> bool:
    pattern = view.value("model.hybrid_layer_pattern", view.value("model.hybrid_override_pattern"))
    if isinstance(pattern, str):
        if ("*" if surface == "linear_qkv" else "-") in pattern:
            return True
        return surface == "linear_fc1" and "E" in pattern and _shared_expert(view)
    if surface == "linear_qkv":
        return not view.flag("model.multi_latent_attention")
    if not view.flag("moe.active"):
        return True
    return not view.flag("moe.all_layers") or _shared_expert(view)


def _shared_expert(view: View) -> bool:
    """Whether there is a shared expert whose linear_fc1 keeps its tensor parallel communication."""
    return view.value("model.moe_shared_expert_intermediate_size") is not None and not view.flag(
        "model.moe_shared_expert_overlap"
    )
