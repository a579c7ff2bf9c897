"""Launches of all kinds, as strategies: what distinguishes them for the estimate, without the sizes that no formula reads."""

from __future__ import annotations

from hypothesis import strategies as st

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
        "moe_router_topk": st.sampled_from([1, 8]),
        "moe_ffn_hidden_size": st.sampled_from([None, 768]),
        "moe_shared_expert_intermediate_size": st.sampled_from([None, 1024]),
        "moe_latent_size": st.sampled_from([None, 256]),
        "mtp_num_layers": st.sampled_from([None, 1]),
        "fp8": st.sampled_from([None, "e4m3"]),
        "fp8_recipe": st.sampled_from(["delayed", "tensorwise", "blockwise", "mxfp8"]),
        "disable_parameter_transpose_cache": st.booleans(),
        "cross_entropy_loss_fusion": st.booleans(),
        "multi_latent_attention": st.booleans(),
        "q_lora_rank": st.sampled_from([None, 256]),
        "activation_func_clamp_value": st.sampled_from([None, 7.0]),
    }
)
MIXERS = st.sampled_from(
    [
        {},
        {"experimental_attention_variant": "gated_delta_net", "linear_attention_freq": 4, "attention_output_gate": True},
        {"hybrid_layer_pattern": "MM*-" * 4, "num_layers": 16, "mtp_num_layers": None},
    ]
)
"""Linear attention and state space layers among the others, put over `SIZES`."""
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
        "ddp.num_distributed_optimizer_instances": st.sampled_from([1, 2]),
        "ddp.use_megatron_fsdp": st.booleans(),
        "ddp.data_parallel_sharding_strategy": st.sampled_from(["no_shard", "optim", "optim_grads", "optim_grads_params"]),
    }
)
_LORA = {"peft.__class__": "megatron.bridge.peft.lora.LoRA"}
PEFT = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {
            "peft.__class__": st.just(_LORA["peft.__class__"]),
            "peft.dim": st.sampled_from([8, 128]),
            "peft.dropout": st.sampled_from([0.0, 0.1]),
            "peft.target_modules": st.sampled_from(
                [["linear_qkv"], ["linear_fc1", "linear_fc2"], ["linear_qkv", "linear_proj", "linear_fc1", "linear_fc2", "in_proj"]]
            ),
            "peft.sequence_parallel_input_regather": st.booleans(),
            "peft.share_expert_adapters": st.booleans(),
            "peft.lora_dtype": st.sampled_from([None, "torch.float32"]),
        }
    ),
)
PARALLEL = st.fixed_dictionaries(
    {
        "tensor_model_parallel_size": st.sampled_from([1, 2, 4]),
        "pipeline_model_parallel_size": st.sampled_from([1, 2, 4]),
        "virtual_pipeline_model_parallel_size": st.sampled_from([None, 2]),
        "context_parallel_size": st.sampled_from([1, 2]),
        "expert_model_parallel_size": st.sampled_from([1, 2, 4]),
        "sequence_parallel": st.booleans(),
        "expert_tensor_parallel_size": st.sampled_from([None, 1]),
    }
)


def ranks(parallel: dict[str, object], dp: int) -> int:
    """GPUs of a launch with `dp` data parallel ranks."""
    sizes = [parallel[f"{name}_parallel_size"] for name in ("tensor_model", "pipeline_model", "context")]
    total = dp
    for size in sizes:
        total *= int(str(size))
    return total


WIDENED = {
    "TP": "tensor_model_parallel_size",
    "PP": "pipeline_model_parallel_size",
    "EP": "expert_model_parallel_size",
    "CP": "context_parallel_size",
}


def widened(parallel: dict[str, object], which: str) -> tuple[dict[str, object], int, int]:
    """(the sizes with one of them doubled, data parallel ranks before, after): "DP", or a key of `WIDENED`.

    Twice the data, tensor, pipeline or context parallel size are twice the GPUs. Expert parallelism spreads over what there
    is, so there are as many GPUs before as after, enough for both.
    """
    least = int(str(parallel["expert_model_parallel_size"]))
    if which == "DP":
        return parallel, max(2, least), 2 * max(2, least)
    key = WIDENED[which]
    wider = {**parallel, key: 2 * int(str(parallel[key]))}
    dp = max(2, int(str(wider["expert_model_parallel_size"])))
    return wider, dp, dp
