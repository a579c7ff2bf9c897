"""Records the recipes: every field of the config that each one returns, and the model provider of each id."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

from . import machine, upstream
from .encode import flatten

_NAME = re.compile(r"_(\d+)gpu_([a-z]+\d+)_")


def named_size(recipe: str) -> tuple[int, str] | None:
    """GPU count and GPU type that a recipe's name gives: `..._64gpu_gb200_...` is `(64, "gb200")`."""
    match = _NAME.search(recipe.rpartition(":")[2])
    return (int(match[1]), match[2]) if match else None


def size_of(recipe: str, config: Any) -> tuple[int, str]:
    """What the name says; else the fewest GPUs that hold the recipe's parallel sizes, of type h100.

    The dense and the expert grid must both fill the world, so it is their least common multiple.
    """
    named = named_size(recipe)
    if named:
        return named
    model = config.model
    sizes = {
        name: getattr(model, name, None) or 1
        for name in (
            "tensor_model_parallel_size",
            "pipeline_model_parallel_size",
            "context_parallel_size",
            "expert_model_parallel_size",
        )
    }
    tensor, pipeline, context, expert = sizes.values()
    expert_tensor = getattr(model, "expert_tensor_parallel_size", None) or tensor
    return math.lcm(tensor * pipeline * context, expert_tensor * expert * pipeline), "h100"


def record_recipes(loaded: upstream.Upstream, package: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Flat values of every recipe of a package as constructed, and the error of each that cannot be."""
    functions, failed = upstream.recipes(package)
    recorded: dict[str, Any] = {}
    for name, function in functions.items():
        size, gpu = named_size(name) or (8, "h100")
        try:
            with machine.launch_on(gpu, size, loaded.folder), upstream.quiet():
                value = function()
            if dataclasses.is_dataclass(value):
                recorded[name] = flatten(value, loaded.folder)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
    return recorded, failed


def record_providers(loaded: upstream.Upstream) -> tuple[dict[str, Any], dict[str, str]]:
    """Flat values of the provider that AutoBridge makes of every model of the local hub, and the errors."""
    from megatron.bridge import AutoBridge

    recorded: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for name in loaded.models:
        try:
            with machine.launch_on("h100", 8, loaded.folder), upstream.quiet():
                provider = AutoBridge.from_hf_pretrained(name).to_megatron_provider(load_weights=False)
            recorded[name] = flatten(provider, loaded.folder)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
    return recorded, failed
