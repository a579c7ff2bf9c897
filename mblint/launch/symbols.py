"""Things in a config that are no plain data, and the short names that override files use for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from mblint.read.span import Span

SymbolKind = Literal["function", "class", "dtype", "enum", "object"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function, class, dtype, enum member or other object, by its dotted name.

    Names are `torch.nn.functional.silu`, `torch.bfloat16`, `Class.MEMBER`, and `module.Class` for other
    objects.
    """

    kind: SymbolKind
    name: str


@dataclass(frozen=True, slots=True)
class Construct:
    """An object that upstream builds from a mapping with `_target_`.

    `call` is False where `_call_: false` only names the target (an enum class, a dtype, a function);
    values inside may be `Construct` again. `spans` has the places of the keyword arguments.
    """

    target: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    call: bool = True
    partial: bool = False
    span: Span | None = None
    spans: dict[str, Span] = field(default_factory=dict, compare=False)


ACTIVATIONS: dict[str, str] = {
    "gelu": "torch.nn.functional.gelu",
    "relu": "torch.nn.functional.relu",
    "silu": "torch.nn.functional.silu",
    "sigmoid": "torch.nn.functional.sigmoid",
    "tanh": "torch.tanh",
    "relu2": "megatron.core.activations.squared_relu",
    "squared_relu": "megatron.core.activations.squared_relu",
    "gelu_pytorch_tanh": "megatron.core.activations.fast_gelu",
    "fast_gelu": "megatron.core.activations.fast_gelu",
    "quick_gelu": "megatron.core.fusions.fused_bias_geglu.quick_gelu",
}
"""Short name of an activation function to its dotted name (megatron/bridge/utils/activation_map.py)."""

ACTIVATION_FIELDS = frozenset({"activation_func"})
"""Fields whose function overrides may name; every other function in a config is out of their reach."""

_GELU = "torch._C._nn.gelu"

DTYPES: dict[str, str] = {
    "fp32": "float32",
    "float32": "float32",
    "32": "float32",
    "32-true": "float32",
    "fp16": "float16",
    "float16": "float16",
    "16": "float16",
    "16-mixed": "float16",
    "bf16": "bfloat16",
    "bfloat16": "bfloat16",
    "bf16-mixed": "bfloat16",
    "fp8": "float8_e4m3fn",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2",
}


def activation(name: str) -> Symbol | None:
    """The function that an override's name for an activation stands for."""
    dotted = ACTIVATIONS.get(name)
    if dotted is None and name.startswith("torch.") and name in ACTIVATIONS.values():
        dotted = name
    return Symbol("function", dotted) if dotted else None


def activation_name(dotted: str) -> str | None:
    """The short name under which upstream writes a function, None for a function it does not write."""
    if dotted == _GELU:
        dotted = "torch.nn.functional.gelu"
    names = [name for name, target in ACTIVATIONS.items() if target == dotted]
    return names[-1] if names else None


def dtype(name: str) -> Symbol | None:
    """The dtype that an override's name for one stands for."""
    short = name.removeprefix("torch.")
    if short != name and (short[:1].isdigit() or "-" in short):
        return None
    found = DTYPES.get(short)
    return Symbol("dtype", f"torch.{found}") if found else None
