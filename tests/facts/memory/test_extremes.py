"""Sizes of nothing, sizes that nothing has, and values that are no sizes: an estimate or the key to blame, never an error."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mblint.facts.memory.capacity import judge
from mblint.facts.memory.estimate import estimate, estimate_many
from mblint.facts.memory.upstream_formula import upstream_estimate


@pytest.mark.parametrize(
    "changes",
    [
        {"num_layers": 0},
        {"seq_length": 0},
        {"vocab_size": 0, "hidden_size": 0, "ffn_hidden_size": 0},
        {"num_moe_experts": 0},
        {"num_layers": 1, "seq_length": 1, "vocab_size": 1, "hidden_size": 1, "ffn_hidden_size": 1},
    ],
)
def test_empty_sizes_work(plain, changes) -> None:
    found = estimate(plain(**changes))
    assert not found.missing
    assert found.allocated_bytes >= 0
    assert found.total_bytes > found.allocated_bytes


def test_huge_sizes_work(plain) -> None:
    found = estimate(
        plain(
            world_size=10**9,
            num_layers=1000,
            hidden_size=10**7,
            ffn_hidden_size=10**9,
            vocab_size=10**9,
            seq_length=10**9,
            num_moe_experts=10**6,
            pipeline_model_parallel_size=1000,
            set={"train.global_batch_size": 10**9},
        )
    )
    assert not found.missing
    assert len(found.stages) == 1000
    assert found.allocated_bytes > 10**20
    assert sum(found.components.values()) == found.total_bytes


@pytest.mark.slow
def test_two_thousand_variants_in_ten_seconds(plain) -> None:
    base = plain(
        1024,
        num_layers=80,
        tensor_model_parallel_size=4,
        pipeline_model_parallel_size=8,
        virtual_pipeline_model_parallel_size=5,
        sequence_parallel=True,
        set={"train.global_batch_size": 2048},
    )
    variants = [{"model.seq_length": 1024 + 8 * i, "model.pipeline_model_parallel_size": 2 ** (i % 4)} for i in range(2000)]
    started = time.perf_counter()
    found = list(estimate_many(base, variants))
    assert time.perf_counter() - started < 10
    assert len(found) == 2000 and not any(each.missing for each in found)


SIZE_KEYS = [
    "model.num_layers",
    "model.hidden_size",
    "model.ffn_hidden_size",
    "model.num_attention_heads",
    "model.num_query_groups",
    "model.kv_channels",
    "model.vocab_size",
    "model.seq_length",
    "model.num_moe_experts",
    "model.moe_router_topk",
    "model.moe_ffn_hidden_size",
    "model.moe_shared_expert_intermediate_size",
    "model.moe_latent_size",
    "model.mtp_num_layers",
    "model.q_lora_rank",
    "model.kv_lora_rank",
    "model.tensor_model_parallel_size",
    "model.pipeline_model_parallel_size",
    "model.virtual_pipeline_model_parallel_size",
    "model.context_parallel_size",
    "model.expert_model_parallel_size",
    "model.expert_tensor_parallel_size",
    "model.microbatch_group_size_per_vp_stage",
    "model.recompute_num_layers",
    "train.micro_batch_size",
    "train.global_batch_size",
    "peft.dim",
]
OTHER_KEYS = [
    "model.moe_expert_capacity_factor",
    "model.moe_expert_rank_capacity_factor",
    "model.rotary_percent",
    "model.hidden_dropout",
    "optimizer.optimizer_offload_fraction",
    "model.moe_layer_freq",
    "model.hybrid_layer_pattern",
    "model.pipeline_model_parallel_layout",
    "model.recompute_modules",
]
NO_SIZES = st.sampled_from([-1, 10**16, 10**400, 1.5, float("inf"), float("nan"), "", "many", [], [1, 2], {}, True, "M*-E", "E|t|L"])


@settings(max_examples=300, deadline=2000)
@given(
    st.dictionaries(st.sampled_from(SIZE_KEYS), st.one_of(st.integers(0, 3), st.sampled_from([100, 10**9, 2**53]), NO_SIZES), max_size=6),
    st.dictionaries(st.sampled_from(OTHER_KEYS), st.one_of(st.integers(0, 3), NO_SIZES), max_size=2),
    st.sampled_from([{}, {"peft.__class__": "megatron.bridge.peft.lora.LoRA"}, {"model.multi_latent_attention": True}]),
    st.sampled_from([0, 1, 8, 10**9]),
)
def test_any_value_gives_an_estimate_or_the_key_to_blame(plain, sizes, others, kind, world) -> None:
    made = plain(world, set={**kind, **sizes, **others})
    found, upstream = estimate(made), upstream_estimate(made)
    assert judge(found, "h100").verdict in ("fits", "close", "does not fit", "unknown")
    assert all("\n" not in why and len(why) < 120 for why in (*found.missing.values(), *upstream.missing.values()))
    if not found.missing:
        assert found.total_bytes == sum(found.components.values())
        assert all(size >= 0 for size in found.components.values())
        assert all(stage.parameters >= 0 for stage in found.stages)


@pytest.mark.parametrize(
    ("changes", "key", "why"),
    [
        ({"model.hidden_size": -4096}, "model.hidden_size", "-4096 is negative"),
        ({"model.num_layers": 10**9}, "model.num_layers", "1000000000 is too large"),
        ({"model.vocab_size": 10**400}, "model.vocab_size", "it is too large"),
        ({"model.rotary_percent": float("nan")}, "model.rotary_percent", "nan is not finite"),
        ({"model.hybrid_layer_pattern": "M*-E"}, "model.num_moe_experts", "the layer pattern has layers of experts, and it says of none"),
        (
            {
                "model.pipeline_model_parallel_size": 4,
                "model.virtual_pipeline_model_parallel_size": 2,
                "model.microbatch_group_size_per_vp_stage": 10**9,
                "train.global_batch_size": 10**9,
            },
            "model.microbatch_group_size_per_vp_stage",
            "a round of the schedule has 8000000000 passes, too many to follow",
        ),
    ],
)
def test_a_value_that_no_launch_has_is_named(plain, changes, key, why) -> None:
    assert estimate(plain(4, set=changes)).missing == {key: why}
