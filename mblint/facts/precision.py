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
    "fp8": "hybrid",
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
}
RECIPES: Final[dict[str, dict[str, object]]] = {
    "bf16_mixed": _BF16,
    "fp16_mixed": _FP16,
    "bf16_with_fp8_delayed_scaling_mixed": {**_BF16, **_fp8("delayed", True)},
    "fp16_with_fp8_delayed_scaling_mixed": {**_FP16, **_fp8("delayed", True)},
    "bf16_with_mxfp8_mixed": {**_BF16, **_MX},
    "fp16_with_mxfp8_mixed": {**_FP16, **_MX},
    "bf16_with_fp8_current_scaling_mixed": {**_BF16, **_fp8("tensorwise", True)},
    "fp16_with_fp8_current_scaling_mixed": {**_FP16, **_fp8("tensorwise", True)},
    "nemotron_h_bf16_with_fp8_current_scaling_mixed": {**_BF16, **_fp8("tensorwise", True)},
    "nanov2_bf16_with_fp8_current_scaling_mixed": {**_BF16, **_fp8("blockwise", True)},
    "bf16_with_fp8_subchannel_scaling_mixed": {**_BF16, **_fp8("blockwise", False)},
    "fp16_with_fp8_subchannel_scaling_mixed": {**_FP16, **_fp8("blockwise", False)},
    "bf16_with_nvfp4_mixed": {**_BF16, **_NVFP4},
    "nemotron_3_super_bf16_with_nvfp4_mixed": {**_BF16, **_NVFP4},
    "nemotron_3_ultra_bf16_with_nvfp4_mixed": {**_BF16, **_NVFP4},
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
    return _field(view, "fp8_recipe", "model.fp8_recipe")


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
