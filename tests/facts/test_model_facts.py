"""Facts of graphs, FSDP, recomputation, precision, experts, attention, optimizer and the launch itself."""

from __future__ import annotations

from typing import Any

import pytest

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.facts.view import View, all_facts
from mblint.ruleset.examples import launch_of


def read(fact: str, base: str = "dense", **example: Any) -> object:
    return View(launch_of({"base": base, "set": {}, **example})).read(fact)


@pytest.mark.parametrize(
    ("name", "base", "values", "expected"),
    [
        ("graphs.impl", "dense", {}, "none"),
        ("graphs.active", "dense", {"model.cuda_graph_impl": "local"}, True),
        ("graphs.impl", "dense", {"model.enable_cuda_graph": True}, "local"),
        ("graphs.impl", "dense", {"model.external_cuda_graph": True}, "transformer_engine"),
        (
            "graphs.impl",
            "dense",
            {"model.cuda_graph_impl": "local", "model.cuda_graph_scope": "full_iteration"},
            "full_iteration",
        ),
        ("graphs.per_layer", "dense", {"model.cuda_graph_impl": "full_iteration"}, False),
        (
            "graphs.modules",
            "dense",
            {"model.cuda_graph_impl": "local", "model.cuda_graph_modules": ["attn", "CudaGraphModule.moe_router"]},
            ["attn", "moe_router"],
        ),
        ("graphs.modules", "dense", {"model.cuda_graph_impl": "local", "model.cuda_graph_scope": "attn,mlp"}, ["attn", "mlp"]),
        ("graphs.modules", "dense", {"model.cuda_graph_impl": "none", "model.cuda_graph_scope": "attn,mlp"}, []),
        ("graphs.modules", "dense", {"model.cuda_graph_modules": "full"}, []),
        ("fsdp.active", "dense", {}, False),
        ("fsdp.megatron", "dense", {"dist.use_megatron_fsdp": True}, True),
        ("fsdp.megatron", "dense", {"ddp.use_megatron_fsdp": True}, True),
        ("fsdp.torch", "dense", {"dist.use_torch_fsdp2": True}, True),
        ("fsdp.strategy", "dense", {"ddp.use_megatron_fsdp": True}, "no_shard"),
        ("fsdp.strategy", "dense", {}, ABSENT),
        ("recompute.modules", "dense", {}, []),
        ("recompute.modules", "dense", {"model.recompute_granularity": "selective"}, ["core_attn"]),
        (
            "recompute.modules",
            "dense",
            {"model.recompute_granularity": "selective", "model.recompute_modules": ["mlp"]},
            ["mlp"],
        ),
        ("recompute.modules", "dense", {"model.recompute_modules": ["mlp"]}, []),
        ("recompute.full", "dense", {"model.recompute_granularity": "full"}, True),
        ("precision.recipe", "dense", {}, "bf16_mixed"),
        ("precision.recipe", "dense", {"mixed_precision": "bf16-mixed"}, "bf16_mixed"),
        ("precision.recipe", "dense", {"mixed_precision": None}, None),
        ("precision.recipe", "precision", {}, "object"),
        ("precision.bf16", "dense", {"model.bf16": False}, True),
        ("precision.bf16", "dense", {"mixed_precision": None, "model.bf16": False}, False),
        ("precision.fp16", "dense", {"mixed_precision": "fp16_mixed"}, True),
        ("precision.fp8", "dense", {"mixed_precision": "bf16_with_mxfp8_mixed"}, "e4m3"),
        ("precision.fp8_recipe", "dense", {"mixed_precision": "bf16_with_mxfp8_mixed"}, "mxfp8"),
        ("precision.fp8_recipe", "dense", {}, ABSENT),
        ("precision.fp8", "precision", {"mixed_precision.fp8": "e4m3"}, "e4m3"),
        ("precision.fp4", "dense", {"mixed_precision": "bf16_with_nvfp4_mixed"}, "e2m1"),
        ("precision.grad_reduce_in_fp32", "dense", {"ddp.grad_reduce_in_fp32": False}, True),
        (
            "precision.grad_reduce_in_fp32",
            "dense",
            {"mixed_precision": None, "ddp.grad_reduce_in_fp32": False},
            False,
        ),
        ("moe.active", "dense", {}, False),
        ("moe.active", "moe", {}, True),
        ("moe.experts", "dense", {}, ABSENT),
        ("moe.dispatcher", "moe", {}, "alltoall"),
        (
            "moe.dispatcher",
            "moe",
            {"model.moe_token_dispatcher_type": "flex", "model.moe_flex_dispatcher_backend": "hybridep"},
            "hybridep",
        ),
        ("moe.all_layers", "moe", {}, True),
        ("moe.all_layers", "moe", {"model.moe_layer_freq": [0, 1]}, False),
        ("attention.backend", "dense", {}, "auto"),
        ("attention.backend", "dense", {"model.attention_backend": "AttnBackend.fused"}, "fused"),
        ("attention.backend", "dense", {"model.attention_backend": "fused"}, "auto"),
        ("attention.backend_is_text", "dense", {"model.attention_backend": "fused"}, True),
        ("attention.backend_is_text", "dense", {"model.attention_backend": "AttnBackend.fused"}, False),
        ("attention.backend_is_text", "hybrid", {"model.attention_backend": "local"}, False),
        ("attention.backend", "hybrid", {"model.attention_backend": "local"}, "local"),
        ("attention.unfused", "dense", {"model.attention_backend": "AttnBackend.unfused"}, True),
        ("attention.unfused", "dense", {"model.attention_backend": "unfused"}, False),
        ("attention.unfused", "dense", {"model.transformer_impl": "local"}, True),
        ("attention.unfused", "dense", {"env_vars": {"NVTE_FLASH_ATTN": 0, "NVTE_FUSED_ATTN": 0}}, True),
        ("attention.unfused", "dense", {"env_vars": {"NVTE_FLASH_ATTN": 0}}, False),
        ("optim.distributed", "dense", {"ddp.use_distributed_optimizer": False}, True),
        (
            "optim.distributed",
            "dense",
            {"ddp.use_distributed_optimizer": False, "optimizer.use_distributed_optimizer": False},
            False,
        ),
        ("overlap.section", "dense", {}, False),
        (
            "overlap.tp",
            "overlap",
            {
                "comm_overlap.tp_comm_overlap": True,
                "model.tensor_model_parallel_size": 2,
                "model.sequence_parallel": True,
            },
            True,
        ),
        (
            "overlap.tp",
            "overlap",
            {"comm_overlap.tp_comm_overlap": True, "model.tensor_model_parallel_size": 2},
            False,
        ),
        ("overlap.tp", "overlap", {"comm_overlap.tp_comm_overlap": True}, False),
        ("overlap.expert", "dense", {"model.overlap_moe_expert_parallel_comm": True}, True),
        ("data.packed", "dense", {}, False),
        ("data.packed", "dense", {"dataset.enable_in_batch_packing": True}, True),
        ("launch.is_finetuning", "lora", {}, True),
        ("versions.core", "dense", {}, "0.19.2"),
    ],
)
def test_value(name: str, base: str, values: dict[str, Any], expected: object) -> None:
    assert read(name, base, set=values) == expected


def test_a_mixed_precision_that_is_not_known() -> None:
    assert isinstance(read("precision.bf16", unknown=["mixed_precision"]), Unknown)


def test_the_launch_and_its_parent() -> None:
    assert read("launch.function", name="my.recipes:llama_config") == "llama_config"
    assert read("launch.same_world_as_parent") is ABSENT
    parent = {"set": {}, "world_size": 32}
    assert read("launch.same_world_as_parent", parent=parent) is True
    assert read("launch.same_world_as_parent", parent=parent, world_size=64) is False
    assert isinstance(read("launch.same_world_as_parent", parent={"set": {}}, world_size=64), Unknown)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("m:llama3_oom_fix_config", True),
        ("m:llama3_low_memory_config", True),
        ("m:memory_transformer", True),
        ("m:llama3_8b_config", False),
        ("m:zoom_config", False),
    ],
)
def test_names_that_speak_of_memory(name: str, expected: bool) -> None:
    assert read("motive.name_speaks_of_memory", name=name) is expected


def test_every_fact_says_what_it_is_and_runs_on_every_base() -> None:
    bases = ["dense", "moe", "mla", "lora", "overlap", "precision", "hybrid", "moe+lora", "none"]
    launches = [launch_of({"base": base, "set": {}, "world_size": 8, "gpu": "h100", "env": {}}) for base in bases]
    bare = launch_of({"base": "none", "set": {}})
    for name, function in all_facts().items():
        assert (function.__doc__ or "").strip(), name
        for launch in [*launches, bare]:
            View(launch).read(name)
