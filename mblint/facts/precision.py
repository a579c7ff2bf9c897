"""Number formats after the mixed precision recipe has had its say.

`mixed_precision` is a recipe's name or an object; the launch writes its fields over same-named ones of model,
optimizer and ddp before anything is checked. So facts here ask it first. Source:
megatron.bridge.training.mixed_precision.
"""

from __future__ import annotations

from typing import Final

from mblint.facts.view import View, fact

_BF16: Final[dict[str, object]] = {"bf16": True, "fp16": False, "grad_reduce_in_fp32": True}
_FP16: Final[dict[str, object]] = {"bf16": False, "fp16": True, "grad_reduce_in_fp32": False}


def _fp8(recipe: str, gather: bool, **more: object) -> dict[str, object]:
    return {"fp8": "hybrid", "fp8_recipe": recipe, "fp8_param_gather": gather, **more}


_MX: Final = {
    "fp8": "e4m3",
    "fp8_recipe": "mxfp8",
    "fp8_param_gather": True,
    "reuse_grad_buf_for_mxfp8_param_ag": True,
}
_NVFP4: Final[dict[str, object]] = {"fp4": "e2m1", "fp4_recipe": "nvfp4", "fp4_param_gather": True}
_DEFAULTS: Final[dict[str, object]] = {
    "bf16": False,
    "fp16": False,
    "grad_reduce_in_fp32": True,
    "fp8": None,
    "fp8_recipe": "tensorwise",
    "fp8_param_gather": False,
    "reuse_grad_buf_for_mxfp8_param_ag": False,
    "fp4": None,
    "fp4_recipe": "nvfp4",
    "fp4_param_gather": False,
    "first_last_layers_bf16": False,
    "num_layers_at_start_in_bf16": 0,
    "num_layers_at_end_in_bf16": 0,
    "loss_scale": None,
}


def _ends(start: int, end: int) -> dict[str, object]:
    return {
        "first_last_layers_bf16": True,
        "num_layers_at_start_in_bf16": start,
        "num_layers_at_end_in_bf16": end,
    }


RECIPES: Final[dict[str, dict[str, object]]] = {
    "bf16_mixed": _BF16,
    "fp16_mixed": _FP16,
    "bf16_with_fp8_delayed_scaling_mixed": {**_BF16, **_fp8("delayed", True)},
    "fp16_with_fp8_delayed_scaling_mixed": {**_FP16, **_fp8("delayed", True)},
    "bf16_with_mxfp8_mixed": {**_BF16, **_MX},
    "fp16_with_mxfp8_mixed": {**_FP16, **_MX},
    "bf16_with_fp8_current_scaling_mixed": {**_BF16, **_fp8("tensorwise", True), **_ends(1, 1)},
    "fp16_with_fp8_current_scaling_mixed": {**_FP16, **_fp8("tensorwise", True), **_ends(1, 1)},
    "nemotron_h_bf16_with_fp8_current_scaling_mixed": {**_BF16, **_fp8("tensorwise", True), **_ends(2, 2)},
    "nanov2_bf16_with_fp8_current_scaling_mixed": {**_BF16, **_fp8("blockwise", True), **_ends(2, 2)},
    "bf16_with_fp8_subchannel_scaling_mixed": {**_BF16, **_fp8("blockwise", False)},
    "fp16_with_fp8_subchannel_scaling_mixed": {**_FP16, **_fp8("blockwise", False)},
    "bf16_with_nvfp4_mixed": {**_BF16, **_NVFP4},
    "nemotron_3_super_bf16_with_nvfp4_mixed": {**_BF16, **_NVFP4, **_ends(0, 14)},
    "nemotron_3_ultra_bf16_with_nvfp4_mixed": {**_BF16, **_NVFP4, **_ends(0, 16)},
}


def _field(view: View, name: str, *own: str) -> object:
    """A field of the mixed precision object, or of the recipe of that name, or else of the sections it
    overwrites.
    """
    recipe = view.value("mixed_precision")
    if isinstance(recipe, str):
        named = RECIPES.get(recipe.replace("-", "_"))
        if named is not None:
            return named.get(name, _DEFAULTS[name])
        return view.known(f"mixed_precision.{name}")
    for key in own:
        value = view.value(key)
        if value is not None:
            return value
    return None


@fact("precision.recipe")
def recipe(view: View) -> str | None:
    """The name of the mixed precision recipe, "object" where it is spelled out, or None."""
    # The launch puts the recipe's object in the place of its name; what was written tells the two apart.
    value = view.resolved.written("mixed_precision")
    if isinstance(value, str) and "." not in value:
        return value.replace("-", "_")
    value = view.value("mixed_precision")
    if value is None:
        return None
    return value.replace("-", "_") if isinstance(value, str) and "." not in value else "object"


@fact("precision.bf16")
def bf16(view: View) -> bool:
    """Whether training runs in bf16."""
    return bool(_field(view, "bf16", "model.bf16"))


@fact("precision.fp16")
def fp16(view: View) -> bool:
    """Whether training runs in fp16."""
    return bool(_field(view, "fp16", "model.fp16"))


@fact("precision.fp8")
def fp8(view: View) -> object:
    """The FP8 format ("hybrid", "e4m3") or None."""
    return _field(view, "fp8", "model.fp8")


@fact("precision.fp8_recipe")
def fp8_recipe(view: View) -> object:
    """The FP8 scaling recipe ("delayed", "tensorwise", "mxfp8", "blockwise"); absent without FP8."""
    if not view.value("precision.fp8"):
        view.stop()
    name = _field(view, "fp8_recipe", "model.fp8_recipe")
    return name.rpartition(".")[2] if isinstance(name, str) else name


@fact("precision.fp8_param_gather")
def fp8_param_gather(view: View) -> bool:
    """Whether parameters are kept and gathered in FP8."""
    return bool(_field(view, "fp8_param_gather", "ddp.fp8_param_gather", "model.fp8_param"))


@fact("precision.fp4")
def fp4(view: View) -> object:
    """The FP4 format ("e2m1") or None."""
    return _field(view, "fp4", "model.fp4")


@fact("precision.grad_reduce_in_fp32")
def grad_reduce_in_fp32(view: View) -> bool:
    """Whether gradients are reduced in fp32."""
    return bool(_field(view, "grad_reduce_in_fp32", "ddp.grad_reduce_in_fp32"))


@fact("precision.recipe_names")
def recipe_names(view: View) -> list[str]:
    """Names of the mixed precision recipes that megatron-bridge up to 0.6 knows."""
    return sorted(RECIPES)


@fact("precision.optimizer_bf16")
def optimizer_bf16(view: View) -> bool:
    """Whether the optimizer takes the model's weights for bf16."""
    return bool(_field(view, "bf16", "optimizer.bf16"))


@fact("precision.optimizer_fp16")
def optimizer_fp16(view: View) -> bool:
    """Whether the optimizer takes the model's weights for fp16."""
    return bool(_field(view, "fp16", "optimizer.fp16"))


@fact("precision.buffer_reuse")
def buffer_reuse(view: View) -> bool:
    """Whether MXFP8 parameters are gathered into the gradient buffer. Megatron-FSDP switches it off."""
    if view.flag("fsdp.megatron"):
        return False
    return view.flag("precision.buffer_reuse_asked")


@fact("precision.buffer_reuse_asked")
def buffer_reuse_asked(view: View) -> bool:
    """As `precision.buffer_reuse` before Megatron-FSDP switches it off, which is after the sections were checked."""
    name = "reuse_grad_buf_for_mxfp8_param_ag"
    return bool(_field(view, name, f"ddp.{name}", f"optimizer.{name}"))


@fact("precision.ends_in_bf16")
def ends_in_bf16(view: View) -> bool:
    """Whether the first and last layers stay in bf16 under FP8 or FP4."""
    return bool(_field(view, "first_last_layers_bf16", "model.first_last_layers_bf16"))


def _count(view: View, name: str) -> int:
    value = _field(view, name, f"model.{name}")
    return value if isinstance(value, int) else view.stop()


@fact("precision.layers_at_start")
def layers_at_start(view: View) -> int:
    """Layers at the start that stay in bf16 where first and last layers do."""
    return _count(view, "num_layers_at_start_in_bf16")


@fact("precision.layers_at_end")
def layers_at_end(view: View) -> int:
    """Layers at the end that stay in bf16 where first and last layers do."""
    return _count(view, "num_layers_at_end_in_bf16")


@fact("precision.loss_scale")
def loss_scale(view: View) -> object:
    """A constant loss scale, or None (dynamic under fp16)."""
    return _field(view, "loss_scale", "optimizer.loss_scale")
