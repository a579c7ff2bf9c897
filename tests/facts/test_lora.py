"""Which adapters re-gather their input."""

from __future__ import annotations

from typing import Any

import pytest

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.facts.view import View
from mblint.ruleset.examples import launch_of

SHARDED = {"model.tensor_model_parallel_size": 2, "model.sequence_parallel": True}


def read(name: str, base: str = "lora", **values: Any) -> object:
    keys = {key if "." in key else key.replace("__", "."): value for key, value in values.items()}
    return View(launch_of({"base": base, "set": {**SHARDED, **keys}})).read(name)


@pytest.mark.parametrize(
    ("base", "values", "expected"),
    [
        ("lora", {}, ["linear_qkv", "linear_fc1"]),
        ("lora", {"peft__target_modules": ["linear_qkv"]}, ["linear_qkv"]),
        ("lora", {"peft__target_modules": ["linear_proj", "linear_fc2"]}, []),
        ("lora", {"peft__target_modules": ["*.layers.0.*.linear_qkv"]}, ["linear_qkv"]),
        ("lora", {"peft__target_modules": ["*linear_fc*"]}, ["linear_fc1"]),
        ("lora", {"peft__target_modules": ["*.experts.*.linear_fc1"]}, []),
        ("lora", {"peft__target_modules": [], "peft__exclude_modules": ["linear_qkv"]}, ["linear_fc1"]),
        ("moe+lora", {}, ["linear_qkv"]),
        ("moe+lora", {"model__moe_layer_freq": [0, 1, 1]}, ["linear_qkv", "linear_fc1"]),
        ("moe+lora", {"model__moe_shared_expert_intermediate_size": 512}, ["linear_qkv", "linear_fc1"]),
        (
            "moe+lora",
            {"model__moe_shared_expert_intermediate_size": 512, "model__moe_shared_expert_overlap": True},
            ["linear_qkv"],
        ),
        ("mla+lora", {}, ["linear_fc1"]),
        ("hybrid+lora", {"model__hybrid_layer_pattern": "MMM*"}, ["linear_qkv"]),
        ("hybrid+lora", {"model__hybrid_layer_pattern": "MM-"}, ["linear_fc1"]),
        (
            "lora",
            {"model__recompute_granularity": "selective", "model__recompute_modules": ["mlp"]},
            ["linear_qkv"],
        ),
        ("lora", {"model__recompute_modules": ["mlp"]}, ["linear_qkv", "linear_fc1"]),
        ("lora", {"model__recompute_granularity": "full"}, []),
        ("lora", {"model__tensor_model_parallel_size": 1}, []),
        ("lora", {"model__sequence_parallel": False}, []),
        ("lora", {"peft__a2a_experimental": True}, []),
        ("lora", {"model__cuda_graph_impl": "local"}, []),
        ("lora", {"model__cpu_offloading": True}, []),
        (
            "lora",
            {"model__cpu_offloading": True, "model__cpu_offloading_activations": False},
            ["linear_qkv", "linear_fc1"],
        ),
    ],
)
def test_targets(base: str, values: dict[str, Any], expected: list[str]) -> None:
    assert read("lora.regather_targets", base, **values) == expected
    reason = read("lora.regather_fallback", base, **values)
    assert (reason is None) == bool(expected)


def test_other_kinds_of_peft() -> None:
    assert read("lora.active", peft=None) is False
    assert read("lora.active", **{"peft.__class__": "megatron.bridge.peft.dora.DoRA"}) is False
    assert read("lora.active", **{"peft.__class__": "megatron.bridge.peft.lora.VLMLoRA"}) is True
    assert read("lora.regather_targets", peft=None) is ABSENT


def test_an_unknown_target_list() -> None:
    view = View(launch_of({"base": "lora", "set": SHARDED, "unknown": ["peft.target_modules"]}))
    assert isinstance(view.read("lora.regather_targets"), Unknown)
