"""What routed experts keep: budgets of a rank, the paged stash, clamped and fused activations."""

from __future__ import annotations

import pytest

from mblint.facts.memory.activations import Activations
from mblint.facts.memory.inputs import read_inputs
from mblint.facts.memory.layout import stage_chunks
from mblint.facts.memory.parts import EXPERTS

MOE = {"num_moe_experts": 16, "moe_router_topk": 4, "moe_ffn_hidden_size": 1024, "expert_model_parallel_size": 4}


@pytest.fixture
def experts(plain):
    """Bytes that the experts of all layers keep for a micro batch, and what the worst backward adds."""

    def sizes(**model: object) -> tuple[float, float]:
        inputs, missing = read_inputs(plain(4, **{**MOE, **model}))
        assert inputs is not None, missing
        (chunks,) = stage_chunks(inputs)
        (memory,) = [Activations(inputs).chunk(chunk) for chunk in chunks]
        return memory.saved[EXPERTS], memory.backward

    return sizes


# 4096 tokens, 4 copies each, in 16 layers.
COPIES = 4096 * 4 * 16


def test_a_budget_of_a_rank_sizes_its_buffers(experts) -> None:
    kept, _ = experts()
    budget, _ = experts(moe_expert_rank_capacity_factor=1.5)
    router = experts(moe_expert_rank_capacity_factor=1e-9)[0]
    assert budget - router == pytest.approx(1.5 * (kept - router), rel=1e-6)


def test_a_paged_stash_keeps_tokens_without_padding(experts) -> None:
    plain_size, plain_backward = experts()
    padded, _ = experts(moe_expert_rank_capacity_factor=1.5)
    stashed, backward = experts(moe_expert_rank_capacity_factor=1.5, moe_paged_stash=True, moe_paged_stash_buffer_size_factor_cuda=1.2)
    assert plain_size < stashed < padded
    # One layer at a time comes back as long as the budget.
    assert backward > plain_backward + padded / 16 * 0.9
    actual, _ = experts(moe_expert_rank_capacity_factor=1.5, moe_paged_stash=True, moe_paged_stash_buffer_size_factor_cuda=-1.2)
    assert actual == stashed


def test_clamping_keeps_the_clamped_copy_too(experts) -> None:
    kept, clamped = experts()[0], experts(activation_func_clamp_value=7.0)[0]
    assert clamped - kept == COPIES * 2 * 1024 * 2
    by_hand = {"bias_activation_fusion": False}
    assert experts(**by_hand, activation_func_clamp_value=7.0)[0] - experts(**by_hand)[0] == COPIES * 1024 * 2
    assert experts(activation_func_clamp_value=7.0, use_transformer_engine_op_fuser=True)[0] == kept


def test_a_fused_squared_relu_keeps_no_product(experts) -> None:
    squared = {
        "gated_linear_unit": False,
        "bias_activation_fusion": False,
        "activation_func": "megatron.core.activations.squared_relu",
    }
    by_hand, fused = experts(**squared)[0], experts(**squared, use_fused_weighted_squared_relu=True)[0]
    assert by_hand - fused == COPIES * 1024 * 2
