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


# Targets


_PLAIN_MODELS: Final = frozenset({"GPTModelProvider", "MLAModelProvider", "HybridModelProvider", "MambaModelProvider"})
_CANONICAL: Final = {
    "linear_q": "linear_qkv",
    "linear_k": "linear_qkv",
    "linear_v": "linear_qkv",
    "linear_fc1_up": "linear_fc1",
    "linear_fc1_gate": "linear_fc1",
}


@fact("lora.modules")
def modules(view: View) -> list[object]:
    """Names of the linear layers of the model that adapters can reach.

    Absent for models with parts of their own (vision towers, custom layers) and for attention variants whose
    layers are not known here.
    """
    if view.class_names("model")[0] not in _PLAIN_MODELS:
        view.stop()
    variant = view.value("model.experimental_attention_variant")
    if variant not in (None, "gated_delta_net") or view.flag("model.mla_down_proj_fusion"):
        view.stop()
    names = ["linear_proj", "linear_fc1", "linear_fc2", "router", "output_layer", "eh_proj"]
    if not view.flag("model.multi_latent_attention"):
        names.append("linear_qkv")
    else:
        names += ["linear_kv_down_proj", "linear_kv_up_proj"]
        low_rank = view.value("model.q_lora_rank") is not None
        names += ["linear_q_down_proj", "linear_q_up_proj"] if low_rank else ["linear_q_proj"]
    pattern = view.value("model.hybrid_layer_pattern", view.value("model.hybrid_override_pattern"))
    if pattern is not None or variant == "gated_delta_net":
        names += ["in_proj", "out_proj"]
    if view.value("model.moe_latent_size") is not None:
        names += ["fc1_latent_proj", "fc2_latent_proj"]
    return list(names)


@fact("lora.unmatched")
def unmatched(view: View) -> list[object]:
    """The targets whose last part names no layer of the model; a wildcard there is matched as one."""
    if view.value("peft") is None:
        view.stop()
    kind = view.class_names("peft")
    if not {"LoRA", "DoRA", "CanonicalLoRA"} & set(kind):
        view.stop()
    there = view.known("lora.modules")
    if not isinstance(there, list):
        view.stop()
    found: list[object] = []
    for target in view.items("peft.target_modules"):
        name = str(target).rpartition(".")[2]
        if "CanonicalLoRA" in kind:
            name = _CANONICAL.get(name, name)
        if not any(fnmatchcase(str(module), name) for module in there):
            found.append(target)
    return found


@fact("lora.on_experts")
def on_experts(view: View) -> bool:
    """Whether LoRA targets reach linear_fc1 or linear_fc2 of routed experts."""
    if not view.flag("lora.active") or not view.flag("moe.active"):
        return False
    targets = [str(target) for target in view.items("peft.target_modules")]
    if not targets:
        excluded = [str(name).rpartition(".")[2] for name in view.items("peft.exclude_modules")]
        return not {"linear_fc1", "linear_fc2"} <= set(excluded)
    layers = ("linear_fc1", "linear_fc2")
    return any(
        any(fnmatchcase(layer, target.rpartition(".")[2]) for layer in layers) for target in targets if "shared_experts" not in target
    )


@fact("lora.on_shared_expert")
def on_shared_expert(view: View) -> bool:
    """Whether LoRA targets reach linear_fc1 or linear_fc2 of the shared expert."""
    if not view.flag("lora.active") or not _has_shared_expert(view):
        return False
    targets = [str(target) for target in view.items("peft.target_modules")]
    layers = ("linear_fc1", "linear_fc2")
    if not targets:
        excluded = [str(name).rpartition(".")[2] for name in view.items("peft.exclude_modules")]
        return not set(layers) <= set(excluded)
    return any(
        any(fnmatchcase(layer, target.rpartition(".")[2]) for layer in layers)
        for target in targets
        if "experts." not in target or "shared_experts." in target
    )


def _has_shared_expert(view: View) -> bool:
    return view.flag("moe.active") and view.value("model.moe_shared_expert_intermediate_size") is not None


def _targeted(view: View, surface: str) -> bool:
    targets = [str(target) for target in view.items("peft.target_modules")]
    if not targets:
        excluded = [str(name) for name in view.items("peft.exclude_modules")]
        return not any(name == surface or fnmatchcase(surface, name.rpartition(".")[2]) for name in excluded)
    return any(
        fnmatchcase(surface, target.rpartition(".")[2]) for target in targets if "experts." not in target or "shared_experts." in target
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
    return view.value("model.moe_shared_expert_intermediate_size") is not None and not view.flag("model.moe_shared_expert_overlap")
