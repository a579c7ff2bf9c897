"""Weights, gradients, optimizer states by their real number formats and sharding."""

from __future__ import annotations

import pytest

from mblint.facts.memory.estimate import estimate
from mblint.facts.memory.parts import REQUANTIZED
from mblint.facts.memory.state import (
    ADAPTERS,
    COPIES,
    FROZEN,
    GRADIENTS,
    MAIN,
    STATE_COMPONENTS,
    STATES,
    WEIGHTS,
)


def per_parameter(made) -> dict[str, float]:
    """Bytes a parameter of a one-stage launch."""
    stage = estimate(made).stages[0]
    return {name: stage.components.get(name, 0) / stage.parameters for name in STATE_COMPONENTS}


def whole(made) -> float:
    return sum(per_parameter(made).values())


UNSHARDED = {"optimizer.use_distributed_optimizer": False, "ddp.use_distributed_optimizer": False}
AWARE = {"optimizer.use_precision_aware_optimizer": True}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # bf16 weights, fp32 gradients, fp32 main parameters, two fp32 moments.
        ({}, {WEIGHTS: 2, GRADIENTS: 4, MAIN: 4, STATES: 8}),
        ({"ddp.grad_reduce_in_fp32": False}, {WEIGHTS: 2, GRADIENTS: 2, MAIN: 4, STATES: 8}),
        # The bf16 weight and 16 bits more make the fp32 main parameter.
        (AWARE, {WEIGHTS: 2, GRADIENTS: 4, MAIN: 2, STATES: 8}),
        (
            {
                **AWARE,
                "optimizer.exp_avg_dtype": "torch.bfloat16",
                "optimizer.exp_avg_sq_dtype": "torch.bfloat16",
            },
            {WEIGHTS: 2, GRADIENTS: 4, MAIN: 2, STATES: 4},
        ),
        # Without the precision-aware optimizer these dtypes do nothing.
        ({"optimizer.exp_avg_dtype": "torch.bfloat16"}, {WEIGHTS: 2, GRADIENTS: 4, MAIN: 4, STATES: 8}),
        (
            {**AWARE, "optimizer.store_param_remainders": False},
            {WEIGHTS: 2, GRADIENTS: 4, MAIN: 4, STATES: 8},
        ),
        ({"optimizer.optimizer": "sgd"}, {WEIGHTS: 2, GRADIENTS: 4, MAIN: 4, STATES: 4}),
        (
            {"optimizer.optimizer": "sgd", "optimizer.sgd_momentum": 0.0},
            {WEIGHTS: 2, GRADIENTS: 4, MAIN: 4, STATES: 0},
        ),
        ({"model.bf16": False}, {WEIGHTS: 4, GRADIENTS: 4, MAIN: 0, STATES: 8}),
    ],
)
def test_bytes_a_parameter(plain, changes, expected) -> None:
    found = per_parameter(plain(set={**UNSHARDED, **changes}))
    assert found == pytest.approx({name: expected.get(name, 0) for name in STATE_COMPONENTS}, rel=1e-6)


def test_the_distributed_optimizer_shards_main_parameters_and_states(plain) -> None:
    found = per_parameter(plain(8))
    assert found[WEIGHTS] == pytest.approx(2) and found[GRADIENTS] == pytest.approx(4)
    assert found[MAIN] + found[STATES] == pytest.approx(12 / 8)
    assert whole(plain(8, set=UNSHARDED)) == pytest.approx(18)
    # Context parallel ranks hold the same weights, so they share the states too.
    assert whole(plain(8, context_parallel_size=4)) == pytest.approx(6 + 12 / 8)
    two = {"ddp.num_distributed_optimizer_instances": 2}
    assert whole(plain(8, set=two)) == pytest.approx(6 + 12 / 4)


def test_offloaded_states_are_not_on_the_gpu(plain) -> None:
    half = {"optimizer.optimizer_cpu_offload": True, "optimizer.optimizer_offload_fraction": 0.5}
    assert per_parameter(plain(set={**UNSHARDED, **half}))[STATES] == pytest.approx(4)
    unused = {"optimizer.optimizer_cpu_offload": False, "optimizer.optimizer_offload_fraction": 1.0}
    assert per_parameter(plain(set={**UNSHARDED, **unused}))[STATES] == pytest.approx(8)


def test_fsdp_strategies_shard_more_and_more(plain) -> None:
    def with_strategy(name: str) -> dict[str, float]:
        return per_parameter(plain(8, set={"ddp.use_megatron_fsdp": True, "ddp.data_parallel_sharding_strategy": name}))

    none, optim, grads, params = (with_strategy(name) for name in ("no_shard", "optim", "optim_grads", "optim_grads_params"))
    assert none[STATES] == pytest.approx(8) and optim[STATES] == pytest.approx(1)
    assert optim[GRADIENTS] == pytest.approx(4) and grads[GRADIENTS] == pytest.approx(0.5)
    assert grads[WEIGHTS] == pytest.approx(2) and params[WEIGHTS] == pytest.approx(0.25)


def test_quantized_copies(plain) -> None:
    """Hopper keeps a transpose beside each FP8 weight; the last inputs to matrices are one byte."""

    def copies(gpu: str, **changes) -> float:
        stage = estimate(plain(gpu=gpu, **changes)).stages[0]
        matrices = 16 * (2048 * (2048 + 2 * 512) + 2048 * 2048 + 3 * 2048 * 8192)
        return stage.components.get(COPIES, 0) / matrices

    assert copies("h100") == 0
    assert copies("h100", fp8="e4m3", fp8_recipe="delayed") == pytest.approx(2)
    assert copies("b200", fp8="e4m3", fp8_recipe="delayed") == pytest.approx(1)
    assert copies("b200", fp8="e4m3", fp8_recipe="mxfp8") == pytest.approx(2 * 33 / 32)
    # Weights that are FP8 themselves are no copies.
    assert copies("h100", fp8="e4m3", fp8_recipe="tensorwise", fp8_param=True) == 0
    bf16_ends = {
        "first_last_layers_bf16": True,
        "num_layers_at_start_in_bf16": 4,
        "num_layers_at_end_in_bf16": 4,
    }
    assert copies("h100", fp8="e4m3", fp8_recipe="delayed", **bf16_ends) == pytest.approx(1)


def test_primary_fp8_weights_keep_their_transpose(plain) -> None:
    """On Hopper it is made after every gather, whatever disable_parameter_transpose_cache says; FSDP throws it away."""
    matrices = 16 * (2048 * (2048 + 2 * 512) + 2048 * 2048 + 3 * 2048 * 8192)

    def saved(gpu: str, set: dict[str, object] | None = None, **changes: object) -> float:
        """Bytes a matrix element less than the two of bfloat16."""
        fp8 = {"fp8": "e4m3", "fp8_recipe": "tensorwise", "fp8_param": True}
        whole, half = (estimate(plain(gpu=gpu, set=set, **more)).stages[0] for more in ({}, {**fp8, **changes}))
        return (whole.components[WEIGHTS] - half.components[WEIGHTS]) / matrices

    for disabled in (False, True):
        assert saved("h100", disable_parameter_transpose_cache=disabled) == pytest.approx(0)
        assert saved("b200", disable_parameter_transpose_cache=disabled) == pytest.approx(1)
    fsdp = {"ddp.use_megatron_fsdp": True, "ddp.data_parallel_sharding_strategy": "optim"}
    assert saved("h100", fsdp) == pytest.approx(1)
    assert saved("h100", {**fsdp, "ddp.keep_fp8_transpose_cache": True}) == pytest.approx(0)


def test_weights_quantized_anew_are_kept_until_backward(plain) -> None:
    """A copy for each micro batch in flight, unless the layers are recomputed."""
    attention, mlp = 4 * (2048 * (2048 + 2 * 512) + 2048 * 2048), 4 * 3 * 2048 * 8192
    both = 2 * (1 + 4 / 128 / 128)

    def copies(name: str, **changes: object) -> float:
        made = plain(4, pipeline_model_parallel_size=4, fp8="e4m3", fp8_recipe="blockwise", **changes)
        return estimate(made).stages[0].components.get(name, 0)

    assert copies(COPIES) == pytest.approx((attention + mlp) * both)
    anew = {"disable_parameter_transpose_cache": True}
    assert copies(COPIES, **anew) == copies(REQUANTIZED) == 0
    assert copies(REQUANTIZED, **anew) == pytest.approx(4 * (attention + mlp) * both)
    assert copies(REQUANTIZED, **anew, recompute_granularity="full", recompute_method="uniform", recompute_num_layers=1) == 0
    selective = {"recompute_granularity": "selective", "recompute_modules": ["mlp"]}
    assert copies(REQUANTIZED, **anew, **selective) == pytest.approx(4 * attention * both)


LORA = {"peft.__class__": "megatron.bridge.peft.lora.LoRA", "peft.dim": 16}


def test_frozen_weights_have_no_gradient(plain) -> None:
    stage = estimate(plain(set={**LORA, **UNSHARDED})).stages[0]
    assert WEIGHTS not in stage.components
    parameters = stage.components[ADAPTERS] // 2
    # Per layer 16 x (in + out) of qkv, proj, fc1 and fc2.
    a_layer = 16 * ((2048 + 3072) + (2048 + 2048) + (2048 + 16384) + (8192 + 2048))
    assert parameters == 16 * a_layer
    assert stage.components[FROZEN] == 2 * (stage.parameters - parameters)
    assert stage.components[GRADIENTS] == 4 * parameters
    assert stage.components[MAIN] + stage.components[STATES] == 12 * parameters


@pytest.mark.parametrize(
    ("targets", "layers", "surface"),
    [
        (["linear_qkv"], 16, 2048 + 3072),
        (["linear_proj"], 16, 2048 + 2048),
        (["*.layers.0.*.linear_qkv"], 1, 2048 + 3072),
        (["*.layers.1*.linear_fc2"], 7, 8192 + 2048),
        (["decoder.layers.0.mlp.linear_fc1", "linear_none"], 0, 0),
    ],
)
def test_target_modules(plain, targets, layers, surface) -> None:
    stage = estimate(plain(set={**LORA, "peft.target_modules": targets})).stages[0]
    assert stage.components.get(ADAPTERS, 0) == 2 * 16 * layers * surface


def test_other_adapters_are_said_not_to_be_counted(plain) -> None:
    kind = {"peft.__class__": "megatron.bridge.peft.canonical_lora.CanonicalLoRA"}
    assert estimate(plain(set=kind)).not_modelled == ("peft CanonicalLoRA",)
    dora = {"peft.__class__": "megatron.bridge.peft.dora.DoRA"}
    assert any("DoRA" in note for note in estimate(plain(set=dora)).not_modelled)


def test_experts_are_shared_out_over_their_own_ranks(plain) -> None:
    def experts(world: int, **changes) -> float:
        stage = estimate(plain(world, num_moe_experts=8, moe_ffn_hidden_size=1024, **changes)).stages[0]
        return stage.components[WEIGHTS]

    routed = 16 * 8 * 3 * 2048 * 1024 * 2
    assert experts(2) - experts(2, expert_model_parallel_size=2) == routed / 2
    # With TP = 4 and each expert whole, four tensor parallel ranks share the experts out.
    whole = experts(4, tensor_model_parallel_size=4, expert_tensor_parallel_size=1, sequence_parallel=True)
    parts = experts(
        4,
        tensor_model_parallel_size=4,
        expert_tensor_parallel_size=1,
        expert_model_parallel_size=4,
        sequence_parallel=True,
    )
    assert whole - parts == routed * 3 / 4


def test_full_sharding_splits_frozen_experts_over_their_own_ranks(plain) -> None:
    """However few of the trained parameters are experts': the shards of frozen weights do not depend on what trains."""

    def frozen(ep: int, **peft: object) -> float:
        fsdp = {"ddp.use_megatron_fsdp": True, "ddp.data_parallel_sharding_strategy": "optim_grads_params"}
        stage = estimate(
            plain(8, set={**LORA, **fsdp, **peft}, num_moe_experts=16, moe_ffn_hidden_size=1024, expert_model_parallel_size=ep)
        ).stages[0]
        return stage.components[FROZEN]

    routed = 16 * 16 * 3 * 2048 * 1024
    others = 16 * (2048 * (3072 + 2048) + 2 * 2048 + 2048 * 16) + 2 * 32000 * 2048 + 2048
    assert frozen(1) == pytest.approx(2 * (routed + others) / 8, abs=1)
    # Eight ranks hold an eighth of everything, whether a rank has all experts' shards or some experts whole.
    assert frozen(8) == frozen(2) == frozen(1)
    assert frozen(8, **{"peft.target_modules": ["linear_qkv"]}) == frozen(1)
    assert frozen(8, **{"peft.target_modules": ["nothing"]}) == frozen(1)
