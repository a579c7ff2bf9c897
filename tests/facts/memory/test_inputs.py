"""What is not known is said, not guessed."""

from __future__ import annotations

import pytest

from mblint.evaluate.unknown import Unknown
from mblint.facts.memory.estimate import estimate
from mblint.facts.memory.inputs import read_inputs
from mblint.facts.memory.loss import loss_bytes_a_logit
from mblint.facts.memory.reading import Overlay

UNREAD = Unknown("it is read from the network")


@pytest.mark.parametrize(
    "key",
    [
        "model.num_layers",
        "model.hidden_size",
        "model.ffn_hidden_size",
        "model.num_attention_heads",
        "model.vocab_size",
        "model.seq_length",
        "model.tensor_model_parallel_size",
        "model.recompute_granularity",
        "model.num_moe_experts",
        "model.fp8",
        "model.cross_entropy_loss_fusion",
        "train.micro_batch_size",
        "train.global_batch_size",
        "optimizer.use_distributed_optimizer",
        "ddp.grad_reduce_in_fp32",
        "peft.__class__",
        "model.pipeline_model_parallel_layout",
    ],
)
def test_unknown_keys_are_named_with_their_reason(plain, key) -> None:
    found = estimate(plain(set={key: UNREAD}))
    assert found.missing == {key: "it is read from the network"}
    assert found.stages == () and found.worst is None
    assert found.allocated_bytes is found.static_bytes is found.total_bytes is None
    assert found.components == {}


def test_all_missing_keys_are_named_at_once(launch) -> None:
    found = estimate(launch({}))
    assert {"model.num_layers", "model.hidden_size", "model.vocab_size", "train.micro_batch_size"} <= set(found.missing)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"model.num_layers": "many"}, "model.num_layers"),
        ({"model.num_layers": -1}, "model.num_layers"),
        ({"model.pipeline_model_parallel_size": 0}, "model.pipeline_model_parallel_size"),
        ({"model.hidden_size": float("inf")}, "model.hidden_size"),
        ({"model.seq_length": None}, "model.seq_length"),
        (
            {"model.recompute_granularity": "selective", "model.recompute_modules": 3},
            "model.recompute_modules",
        ),
        (
            {"model.recompute_granularity": "selective", "model.recompute_modules": ["mlp", UNREAD]},
            "model.recompute_modules",
        ),
    ],
)
def test_values_of_no_use(plain, changes, key) -> None:
    assert key in estimate(plain(set=changes)).missing


def test_unknown_world_size(launch, plain) -> None:
    assert "world_size" in estimate(launch(plain().flat, Unknown("the cluster says"))).missing
    assert "world_size" in estimate(launch(plain().flat, 0)).missing


def test_an_unknown_gpu_is_no_obstacle(launch, plain) -> None:
    """The GPU type only says which copies FP8 needs: without it the larger case is taken."""
    unknown = estimate(launch(plain().flat, 1, Unknown("not given")))
    assert unknown.allocated_bytes == estimate(plain()).allocated_bytes


def test_overlay_is_the_same_as_the_changed_launch(plain) -> None:
    base = plain(8)
    changes = {
        "model.tensor_model_parallel_size": 2,
        "model.sequence_parallel": True,
        "world_size": 16,
        "gpu": "b200",
        "env.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "peft.__class__": "megatron.bridge.peft.lora.LoRA",
    }
    overlaid = Overlay(base, changes)
    direct = plain(16, gpu="b200", set={k: v for k, v in changes.items() if "." in k and not k.startswith("env.")})
    direct.env = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    assert estimate(overlaid) == estimate(direct)
    assert (overlaid.world_size, overlaid.gpu) == (16, "b200")
    assert overlaid.classes("peft") == ("megatron.bridge.peft.lora.LoRA",)
    assert base.get("model.sequence_parallel") != overlaid.get("model.sequence_parallel")
    assert overlaid.written("model.sequence_parallel") is True


@pytest.mark.parametrize(
    ("value", "known"),
    [
        ("expandable_segments:True", True),
        ("max_split_size_mb:512, expandable_segments : true", True),
        ("max_split_size_mb:512", False),
        (UNREAD, None),
        (None, None),
    ],
)
def test_expandable_segments(launch, plain, value, known) -> None:
    env = {} if value is None else {"PYTORCH_CUDA_ALLOC_CONF": value}
    inputs, _ = read_inputs(launch(plain().flat, env=env))
    assert inputs is not None and inputs.expandable_segments is known


@pytest.mark.parametrize(
    ("config", "version", "expected"),
    [
        ({}, "", 6),
        ({"cross_entropy_loss_fusion": True}, "", 10),
        ({"cross_entropy_loss_fusion": True, "cross_entropy_fusion_impl": "te"}, "2.14.0", 2),
        ({"cross_entropy_loss_fusion": True, "cross_entropy_fusion_impl": "te"}, "2.18.0", 6),
        ({"cross_entropy_loss_fusion": True, "cross_entropy_fusion_impl": "te"}, "2.20.2+cu13", 4),
        ({"cross_entropy_loss_fusion": True, "cross_entropy_fusion_impl": "te"}, "", 4),
        ({"bf16": False}, "", 4),
    ],
)
def test_bytes_a_logit(launch, plain, config, version, expected) -> None:
    made = launch(plain(**config).flat, versions={"te": version} if version else {})
    inputs, _ = read_inputs(made)
    assert inputs is not None and loss_bytes_a_logit(inputs) == expected


def test_what_no_formula_counts_is_named(plain) -> None:
    assert estimate(plain()).not_modelled == ()
    found = estimate(plain(cpu_offloading_weights=True))
    assert found.not_modelled == ("model.cpu_offloading_weights",)
    assert found.allocated_bytes
    vision = estimate(plain(set={"model.__class__": "megatron.bridge.models.qwen_vl.qwen25_vl_provider.Qwen25VLModelProvider"}))
    assert vision.not_modelled and vision.allocated_bytes


def test_vocabulary_of_a_published_tokenizer_stands_in_for_its_own(plain) -> None:
    named = {"tokenizer.tokenizer_type": "HuggingFaceTokenizer", "tokenizer.tokenizer_model": "google/gemma-3-1b-pt"}
    for unset in (None, Unknown("the tokenizer is not known")):
        inputs, missing = read_inputs(plain(vocab_size=unset, set=named))
        assert inputs is not None, missing
        assert inputs.model.vocabulary == 262144
    other = {**named, "tokenizer.tokenizer_model": "somebody/unheard-of"}
    assert "model.vocab_size" in read_inputs(plain(vocab_size=None, set=other))[1]
    assert "model.vocab_size" in read_inputs(plain(vocab_size=Unknown("it depends"), set=other))[1]
    null = {**named, "tokenizer.tokenizer_type": "NullTokenizer"}
    assert "model.vocab_size" in read_inputs(plain(vocab_size=None, set=null))[1]
    own = read_inputs(plain(vocab_size=1000, set=named))[0]
    assert own is not None and own.model.vocabulary == 1000
