"""Reported failures of CUDA graphs, NCCL and the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reported.kit import Case, Check, cases, holds, recipe, script, silent

pytestmark = pytest.mark.upstream

SEGMENTS = "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"
BUFFERS = "export NCCL_NVLS_ENABLE=1 NCCL_CTA_POLICY=1\n"
TRACKER = ("model.use_te_rng_tracker=true", "rng.te_rng_tracker=true")
SPLIT = ("model.tensor_model_parallel_size=4", "model.context_parallel_size=1", "model.sequence_parallel=true")
OVERLAP = (
    "model.expert_model_parallel_size=8",
    "model.recompute_granularity=null",
    "model.moe_shared_expert_overlap=false",
    "model.moe_token_dispatcher_type=alltoall",
    "model.moe_expert_capacity_factor=1.25",
    "model.moe_pad_expert_input_to_capacity=true",
    "comm_overlap.overlap_moe_expert_parallel_comm=true",
    "model.cuda_graph_impl=transformer_engine",
    *TRACKER,
)


@cases(
    Case(
        "user buffers without what makes them pay",
        "NVIDIA-NeMo/Megatron-Bridge#3283",
        script("llama3_8b_pretrain_config", "ddp.nccl_ub=true", before="export PYTORCH_CUDA_ALLOC_CONF=\nexport NCCL_NVLS_ENABLE=0\n"),
        wrong="export NCCL_NVLS_ENABLE=0\n",
        right=BUFFERS,
        rule="MB632",
        outcome="slow",
        severity="warning",
        gpu="gb200",
    ),
    Case(
        "tensor parallelism with 32 connections before Blackwell",
        "NVIDIA/Megatron-LM#533",
        script("llama3_8b_pretrain_config", *SPLIT, before="export CUDA_DEVICE_MAX_CONNECTIONS=32\n"),
        wrong="export CUDA_DEVICE_MAX_CONNECTIONS=32",
        right="export CUDA_DEVICE_MAX_CONNECTIONS=1",
        rule="MB612",
        outcome="slow",
        severity="advice",
        gpu="h100",
    ),
    Case(
        "experts in a graph while their communication is overlapped",
        "NVIDIA/Megatron-LM#2184",
        script("olmoe_7b_pretrain_config", *OVERLAP, "model.cuda_graph_scope=[attn,moe]"),
        wrong="model.cuda_graph_scope=[attn,moe]",
        right="model.cuda_graph_scope=[attn,moe_router,moe_preprocess]",
        rule="MB631",
        outcome="fails",
        gpu="gb300",
    ),
)
def test_reported(case: Case, check: Check, upstream: Path) -> None:
    holds(case, check, upstream)


@pytest.mark.parametrize(
    ("release", "torch", "severity"),
    [
        ("0.4.2", None, "error"),  # this core does not ask for the version of PyTorch
        ("0.5.1", "2.10.0", "error"),
        ("0.5.1", "2.11.0", "warning"),
        ("0.6.2", "2.10.0", "error"),
        ("0.6.2", None, "warning"),
    ],
)
def test_user_buffers_beside_expandable_segments(release: str, torch: str | None, severity: str, check: Check, fetched) -> None:  # type: ignore[no-untyped-def]
    """NVIDIA/Megatron-LM#1656: registering the buffers fails. Refused before PyTorch 2.11, and by cores before 0.18 altogether."""
    files = script("llama3_8b_pretrain_config", "ddp.nccl_ub=true", before=SEGMENTS + BUFFERS)
    found = check(files, fetched(release), gpu="gb300", torch=torch)
    assert [(f.rule, f.severity) for f in found.findings if f.severity != "advice"] == [("MB602", severity)]
    without = script("llama3_8b_pretrain_config", "ddp.nccl_ub=false", before=SEGMENTS)
    assert check(without, fetched(release), gpu="gb300", torch=torch).loud() == []


LAYERS = ("model.cuda_graph_impl=transformer_engine", "model.cuda_graph_scope=[attn]", *TRACKER)
ITERATION = (
    "model.cuda_graph_impl=local",
    "model.cuda_graph_scope=[full_iteration]",
    *TRACKER,
    "rerun_state_machine.check_for_nan_in_loss=false",
    "ddp.check_for_nan_in_grad=false",
)


@pytest.mark.parametrize(
    ("graphs", "gpu", "severity"),
    [(LAYERS, "h200", "error"), (LAYERS, "gb300", "error"), (ITERATION, "h200", "advice"), (ITERATION, "gb300", "advice")],
)
def test_graph_registration_beside_expandable_segments(
    graphs: tuple[str, ...], gpu: str, severity: str, check: Check, upstream: Path
) -> None:
    """NVIDIA/Megatron-LM#2572: a guard for Transformer Engine's graphs refused the others as well."""
    before = SEGMENTS + "export NCCL_GRAPH_REGISTER=1\n"
    found = check(script("llama3_8b_pretrain_config", *graphs, before=before), upstream, gpu=gpu)
    assert [finding.severity for finding in found.findings if finding.rule == "MB603"] == [severity]
    silent(check, script("llama3_8b_pretrain_config", *graphs, before=before.replace("=1", "=0")), upstream, gpu=gpu)


@pytest.mark.parametrize(("gpu", "connections"), [("gb300", "32"), ("gb300", "1"), ("h100", "1")])
def test_connections_that_suit_tensor_parallelism(gpu: str, connections: str, check: Check, upstream: Path) -> None:
    """NVIDIA/Megatron-LM#5105: from Blackwell on the order of kernels is kept whatever the number of connections."""
    before = f"export CUDA_DEVICE_MAX_CONNECTIONS={connections}\n"
    assert "MB612" not in silent(check, script("llama3_8b_pretrain_config", *SPLIT, before=before), upstream, gpu=gpu).rules()


def test_expandable_segments_beside_a_transport_of_others(check: Check, upstream: Path) -> None:
    """uccl-project/uccl#839: a replacement of DeepEP could not register such memory. No part of the launch says which library is
    installed under that name, and the usual one works."""
    files = recipe(
        "recipes.qwen.h100.qwen3_moe",
        "qwen3_30b_a3b_pretrain_8gpu_h100_bf16_config",
        'model.moe_token_dispatcher_type = "flex"',
        'model.moe_flex_dispatcher_backend = "deepep"',
        'env_vars = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}',
    )
    assert check(files, upstream, 8, "h200").errors() == []
