"""What must hold for every launch."""

from __future__ import annotations

import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mblint.facts.memory.activations import Activations
from mblint.facts.memory.estimate import estimate, estimate_many
from mblint.facts.memory.inputs import read_inputs
from mblint.facts.memory.layout import LayoutError, stage_chunks
from mblint.facts.memory.parameters import Counter
from mblint.facts.memory.state import ADAPTERS, GRADIENTS, MAIN, STATE_COMPONENTS, STATES, stage_state

SIZES = st.fixed_dictionaries(
    {
        "num_layers": st.sampled_from([8, 16, 24, 48]),
        "hidden_size": st.sampled_from([512, 2048, 8192]),
        "ffn_hidden_size": st.sampled_from([1024, 14336]),
        "num_attention_heads": st.sampled_from([16, 64]),
        "num_query_groups": st.sampled_from([1, 8, None]),
        "vocab_size": st.sampled_from([1000, 262144]),
        "seq_length": st.sampled_from([128, 4096, 131072]),
        "share_embeddings_and_output_weights": st.booleans(),
        "add_bias_linear": st.booleans(),
        "bias_activation_fusion": st.booleans(),
        "qk_layernorm": st.booleans(),
        "hidden_dropout": st.sampled_from([0.0, 0.1]),
        "num_moe_experts": st.sampled_from([None, 16]),
        "moe_shared_expert_intermediate_size": st.sampled_from([None, 1024]),
        "mtp_num_layers": st.sampled_from([None, 1]),
        "fp8": st.sampled_from([None, "e4m3"]),
        "fp8_recipe": st.sampled_from(["delayed", "tensorwise", "blockwise", "mxfp8"]),
        "cross_entropy_loss_fusion": st.booleans(),
        "multi_latent_attention": st.booleans(),
        "q_lora_rank": st.sampled_from([None, 256]),
        "activation_func_clamp_value": st.sampled_from([None, 7.0]),
    }
)
OPTIMIZERS = st.fixed_dictionaries(
    {
        "optimizer.use_distributed_optimizer": st.booleans(),
        "optimizer.use_precision_aware_optimizer": st.booleans(),
        "optimizer.exp_avg_dtype": st.sampled_from(["torch.float32", "torch.bfloat16"]),
        "optimizer.exp_avg_sq_dtype": st.sampled_from(["torch.float32", "torch.uint8"]),
        "optimizer.main_params_dtype": st.sampled_from(["torch.float32", "torch.float16"]),
        "optimizer.fp8_recipe": st.sampled_from([None, "tensorwise"]),
        "optimizer.optimizer_cpu_offload": st.booleans(),
        "optimizer.optimizer_offload_fraction": st.sampled_from([0.0, 0.5, 1.0]),
        "model.fp8_param": st.booleans(),
        "ddp.grad_reduce_in_fp32": st.booleans(),
        "ddp.use_megatron_fsdp": st.booleans(),
        "ddp.data_parallel_sharding_strategy": st.sampled_from(["no_shard", "optim", "optim_grads", "optim_grads_params"]),
    }
)
LORA = {"peft.__class__": "megatron.bridge.peft.lora.LoRA", "peft.sequence_parallel_input_regather": True}
PEFT = st.sampled_from([{}, LORA, {**LORA, "peft.share_expert_adapters": False}])
PARALLEL = st.fixed_dictionaries(
    {
        "tensor_model_parallel_size": st.sampled_from([1, 2, 4]),
        "pipeline_model_parallel_size": st.sampled_from([1, 2, 4]),
        "virtual_pipeline_model_parallel_size": st.sampled_from([None, 2]),
        "context_parallel_size": st.sampled_from([1, 2]),
        "expert_model_parallel_size": st.sampled_from([1, 2]),
        "sequence_parallel": st.just(True),
        "expert_tensor_parallel_size": st.just(1),
    }
)


def ranks(parallel: dict[str, object], dp: int) -> int:
    sizes = [parallel[f"{name}_parallel_size"] for name in ("tensor_model", "pipeline_model", "context")]
    total = dp
    for size in sizes:
        total *= int(str(size))
    return total


def state(found, *, gathered: bool = True) -> int:
    """Weights, gradients and optimizer states of the stage that has most of them."""
    names = [name for name in STATE_COMPONENTS if gathered or not name.startswith("gathered")]
    return max(sum(stage.components.get(name, 0) for name in names) for stage in found.stages)


def adapters_state(stage) -> int:
    """Adapters with their gradients and optimizer states: all that trains under LoRA."""
    return sum(stage.components.get(name, 0) for name in (ADAPTERS, GRADIENTS, MAIN, STATES))


@settings(max_examples=150, deadline=None)
@given(SIZES, PARALLEL, OPTIMIZERS, PEFT, st.sampled_from([1, 4]))
def test_components_add_up(plain, sizes, parallel, optimizer, peft, dp) -> None:
    found = estimate(plain(ranks(parallel, dp), set={**optimizer, **peft}, **sizes, **parallel))
    assert not found.missing
    for stage in found.stages:
        assert sum(stage.components.values()) == stage.allocated_bytes
        assert all(size > 0 for size in stage.components.values())
        assert stage.allocated_bytes > 0
    assert sum(found.components.values()) == found.total_bytes
    assert found.allowance.low_bytes <= found.allowance.typical_bytes <= found.allowance.high_bytes
    assert found.allocated_bytes == max(stage.allocated_bytes for stage in found.stages)
    assert sum(stage.layers for stage in found.stages) == sizes["num_layers"] + (sizes["mtp_num_layers"] or 0)


@settings(max_examples=150, deadline=None)
@given(SIZES, PARALLEL, OPTIMIZERS, PEFT, st.sampled_from(["TP", "PP", "EP", "DP"]))
def test_more_sharding_never_raises_model_state(plain, sizes, parallel, optimizer, peft, which) -> None:
    wider, dp = dict(parallel), 2
    if which == "DP":
        dp = 4
    else:
        key = {
            "TP": "tensor_model_parallel_size",
            "PP": "pipeline_model_parallel_size",
            "EP": "expert_model_parallel_size",
        }[which]
        wider[key] = wider[key] * 2
        if which == "EP":
            # Every expert parallel rank needs a data or tensor parallel rank to sit on.
            dp = max(dp, wider[key])
    base = 2 if which != "EP" else dp
    before = estimate(plain(ranks(parallel, base), set={**optimizer, **peft}, **sizes, **parallel))
    after = estimate(plain(ranks(wider, dp), set={**optimizer, **peft}, **sizes, **wider))
    assert not before.missing
    # Twice the stages may be more chunks than layers to share out.
    assume(not after.missing)
    allowed = state(before, gathered=False)
    if which == "EP" and sizes["num_moe_experts"] and peft and peft.get("peft.share_expert_adapters", True):
        # The experts of a rank share one adapter: twice the expert parallel ranks are twice the adapters, for as many GPUs.
        allowed += max(adapters_state(stage) for stage in before.stages)
    # What FSDP gathers for a moment depends on the largest layer, not on how far the rest is sharded.
    # Each component is rounded to a byte.
    assert state(after, gathered=False) <= allowed * (1 + 1e-9) + len(STATE_COMPONENTS)


@settings(max_examples=150, deadline=None)
@given(
    SIZES,
    PARALLEL,
    PEFT,
    st.sampled_from(["mlp", "moe", "moe_act", "shared_experts", "layernorm", "mla_up_proj"]),
    st.sampled_from(["uniform", "block"]),
    st.sampled_from([1, 2, 4]),
)
def test_recomputation_never_raises_what_is_saved(plain, sizes, parallel, peft, module, method, layers) -> None:
    """The attention core alone is left out: with flash attention it keeps more than it saves, as measured."""

    # Re-gathering LoRA inputs is given up under full recomputation, which then keeps more: left out here.
    peft = {key: value for key, value in peft.items() if not key.endswith("regather")}

    def saved(**changes) -> list[float]:
        """Bytes a micro batch keeps until its backward, by pipeline stage."""
        inputs, missing = read_inputs(plain(ranks(parallel, 2), set=peft, **{**sizes, **parallel, **changes}))
        assert inputs is not None, missing
        activations = Activations(inputs)
        return [sum(activations.chunk(chunk).size for chunk in chunks) for chunks in stage_chunks(inputs)]

    without = saved()
    selective = saved(recompute_granularity="selective", recompute_modules=[module])
    full = saved(recompute_granularity="full", recompute_method=method, recompute_num_layers=layers)
    assert all(after <= before for before, after in zip(without, selective, strict=True))
    assert all(after <= before for before, after in zip(without, full, strict=True))


@settings(max_examples=60, deadline=None)
@given(SIZES, PARALLEL, OPTIMIZERS, st.sampled_from(["TP", "PP", "EP", "DP"]))
def test_more_sharding_never_raises_what_the_optimizer_step_copies(plain, sizes, parallel, optimizer, which) -> None:
    """With the distributed optimizer; without it every data parallel rank steps all that it holds."""
    optimizer = {**optimizer, "optimizer.use_distributed_optimizer": True, "ddp.use_distributed_optimizer": True}
    wider, dp = dict(parallel), 2
    if which == "DP":
        dp = 4
    else:
        key = {"TP": "tensor", "PP": "pipeline", "EP": "expert"}[which]
        name = f"{key}_model_parallel_size"
        wider[name] = wider[name] * 2
        dp = max(dp, wider[name]) if which == "EP" else dp
    base = 2 if which != "EP" else dp

    def copied(world: int, shape: dict[str, object]) -> float:
        """Cast gradients and other copies, bytes on the stage that has most of them."""
        inputs, missing = read_inputs(plain(world, set=optimizer, **sizes, **shape))
        assert inputs is not None, missing
        try:
            layout = stage_chunks(inputs)
        except LayoutError:
            assume(False)
        found = [stage_state(Counter(inputs), chunks) for chunks in layout]
        return max(state.cast + state.step for state in found)

    assert copied(ranks(wider, dp), wider) <= copied(ranks(parallel, base), parallel) * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(SIZES, PARALLEL)
def test_recomputation_of_everything_never_raises_the_peak(plain, sizes, parallel) -> None:
    def peak(**changes) -> int:
        return estimate(plain(ranks(parallel, 2), **{**sizes, **parallel, **changes})).allocated_bytes

    full = peak(recompute_granularity="full", recompute_method="uniform", recompute_num_layers=1)
    # A stage of few layers may replay about as much as it kept: its input and output are then alive twice.
    slack = 2 * sizes["seq_length"] * sizes["hidden_size"] * 4
    assert full <= peak() + slack


def test_core_attention_recompute_costs_memory_with_flash_attention(plain) -> None:
    alone = estimate(plain(recompute_granularity="selective", recompute_modules=["core_attn"]))
    assert alone.allocated_bytes > estimate(plain()).allocated_bytes
    unset = estimate(plain(recompute_granularity="selective", recompute_modules=None))
    assert unset.allocated_bytes == alone.allocated_bytes
    empty = estimate(plain(recompute_granularity="selective", recompute_modules=[]))
    assert empty.allocated_bytes == estimate(plain()).allocated_bytes


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
