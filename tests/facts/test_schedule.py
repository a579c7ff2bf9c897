"""Length of training and of the learning rate's run, padding of sequences, adapter targets."""

from __future__ import annotations

from typing import Any

import pytest

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.facts.view import View
from mblint.ruleset.examples import launch_of


def read(name: str, base: str = "dense", **example: Any) -> object:
    return View(launch_of({"base": base, **example})).read(name)


def test_lengths_in_iterations() -> None:
    keys: dict[str, Any] = {"train.train_iters": 1000, "scheduler.lr_warmup_iters": 50}
    assert read("schedule.train_length", set=keys) == 1000
    assert read("schedule.decay_length", set=keys) == 1000
    assert read("schedule.decay_length", set={**keys, "scheduler.lr_decay_iters": 800}) == 800
    assert (
        read(
            "schedule.decay_length",
            set={**keys, "scheduler.lr_decay_iters": 800, "scheduler.max_steps": 2000},
        )
        == 2000
    )
    assert read("schedule.warmup_length", set=keys) == 50
    assert read("schedule.warmup_length", set={**keys, "scheduler.lr_warmup_fraction": 0.1}) == 100
    assert read("schedule.lengths_given", set={**keys, "train.num_epochs": 2}) == [
        "train_iters",
        "num_epochs",
    ]


def test_lengths_in_samples() -> None:
    keys = {"train.train_iters": None, "train.train_samples": 5000, "scheduler.lr_warmup_samples": 70}
    assert read("schedule.counts_samples", set=keys) is True
    assert read("schedule.train_length", set=keys) == 5000
    assert read("schedule.decay_length", set={**keys, "scheduler.lr_decay_samples": 4000}) == 4000
    assert read("schedule.warmup_length", set=keys) == 70


def test_lengths_that_are_not_known() -> None:
    assert read("schedule.train_length", set={"train.train_iters": None, "train.num_epochs": 2}) is ABSENT
    assert isinstance(read("schedule.decay_length", set={}, unknown=["train.train_iters"]), Unknown)


def test_pipeline_bubble() -> None:
    keys = {
        "model.pipeline_model_parallel_size": 4,
        "train.global_batch_size": 8,
        "train.micro_batch_size": 1,
    }
    assert read("pipeline.bubble", set=keys, world_size=4) == pytest.approx(3 / 11)
    keys["model.virtual_pipeline_model_parallel_size"] = 2
    assert read("pipeline.bubble", set=keys, world_size=4) == pytest.approx(3 / 19)
    assert read("pipeline.bubble", set=keys, world_size=12) is ABSENT


def test_own_evaluation_batch() -> None:
    assert read("batch.eval_own", set={}) is False
    assert read("batch.eval_own", set={"validation.eval_micro_batch_size": 2}) is True
    assert read("batch.eval_own", set={"dist.eval_context_parallel_size": 2}) is True
    filled_in = {
        "set": {"validation.eval_global_batch_size": 128, "validation.eval_micro_batch_size": 1},
        "written": {"validation.eval_global_batch_size": None, "validation.eval_micro_batch_size": None},
    }
    assert read("batch.eval_own", **filled_in) is False
    keys = {"validation.eval_micro_batch_size": 3, "dist.eval_context_parallel_size": 2}
    assert read("batch.eval_multiple", set=keys, world_size=8) == 12


def test_padding_multiple() -> None:
    keys: dict[str, Any] = {"model.tensor_model_parallel_size": 4, "model.context_parallel_size": 2}
    assert read("data.collate_multiple", set=keys) == 4
    assert read("data.collate_multiple", set={**keys, "model.sequence_parallel": True}) == 8
    assert read("data.collate_multiple", set={**keys, "dist.eval_context_parallel_size": 3}) == 12
    assert read("data.collate_multiple", set={}) == 1
    assert read("data.tokens_per_rank", set={**keys, "model.seq_length": 4096, "model.sequence_parallel": True}) == 512
    assert read("data.tokens_per_rank", set={**keys, "model.seq_length": 4095}) is ABSENT


def test_mock_data() -> None:
    assert read("data.mock", set={}) is False
    assert read("data.mock", set={"dataset.blend": None}) is True
    assert read("data.mock", set={"dataset.blend": None, "dataset.data_path": "data/a"}) is False
    other = {"dataset.__class__": "megatron.bridge.data.builders.gpt_sft.GPTSFTDatasetConfig"}
    assert read("data.mock", set=other) is ABSENT


def test_targets_that_match_nothing() -> None:
    targets = ["linear_qkv", "q_proj", "*.layers.0.*.linear_fc1", "*"]
    assert read("lora.unmatched", base="lora", set={"peft.target_modules": targets}) == ["q_proj"]
    assert read("lora.unmatched", base="mla+lora", set={"peft.target_modules": ["linear_qkv", "linear_q_up_proj"]}) == ["linear_qkv"]
    assert read("lora.unmatched", base="hybrid+lora", set={"peft.target_modules": ["in_proj"]}) == []
    canonical = {
        "peft.__class__": "megatron.bridge.peft.canonical_lora.CanonicalLoRA",
        "peft.target_modules": ["linear_q", "linear_x"],
    }
    assert read("lora.unmatched", base="lora", set=canonical) == ["linear_x"]
    own = {
        "model.__class__": "megatron.bridge.models.gemma_vl.gemma3_vl_provider.Gemma3VLModelProvider",
        "peft.target_modules": ["q_proj"],
    }
    assert read("lora.unmatched", base="lora", set=own) is ABSENT
    assert read("lora.unmatched", set={}) is ABSENT


def test_adapters_on_experts() -> None:
    assert read("lora.on_experts", base="moe+lora", set={}) is True
    assert read("lora.on_experts", base="moe+lora", set={"peft.target_modules": ["linear_qkv"]}) is False
    assert read("lora.on_experts", base="moe+lora", set={"peft.target_modules": ["*.shared_experts.linear_fc1"]}) is False
    assert read("lora.on_experts", base="lora", set={}) is False


def test_layers_with_experts() -> None:
    assert read("moe.layers_exist", base="moe", set={}) is True
    assert read("moe.layers_exist", set={}) is False
    keys: dict[str, Any] = {"model.num_moe_experts": 8}
    assert read("moe.layers_exist", base="hybrid", set=keys) is False
    assert read("moe.layers_exist", base="hybrid", set={**keys, "model.hybrid_layer_pattern": "M-ME*E"}) is True
    assert read("moe.layer_freq_length", base="moe", set={"model.moe_layer_freq": [0, 1, 1]}) == 3
    assert read("moe.layer_freq_length", base="moe", set={"model.moe_layer_freq": 2}) is ABSENT
    assert read("moe.mixed_layers", base="moe", set={"model.moe_layer_freq": 2}) is True
    assert read("moe.mixed_layers", base="moe", set={"model.moe_layer_freq": [1, 1]}) is False


def test_balance_of_experts() -> None:
    assert read("moe.balanced", base="moe", set={}) is True
    assert read("moe.balanced", base="moe", set={"model.moe_aux_loss_coeff": 0.0}) is False
    assert read("moe.balanced", base="moe", set={"model.moe_router_load_balancing_type": "none"}) is False
    assert read("moe.balanced", base="moe", set={"model.moe_router_load_balancing_type": "sinkhorn"}) is True
    lists = {
        "model.moe_router_load_balancing_type": ["aux_loss", "seq_aux_loss"],
        "model.moe_aux_loss_coeff": [0.0, 0.01],
    }
    assert read("moe.balanced", base="moe", set=lists) is True
    assert read("moe.aux_loss_terms", base="moe", set=lists) == 2
    assert read("data.made_up", set={"dataset.blend": None}) is True
    assert read("data.made_up", set={}) is False


def test_layers_of_a_pattern() -> None:
    keys: dict[str, Any] = {"model.hybrid_layer_pattern": "M-|*-|M-/MM"}
    assert read("pipeline.pattern_layers", base="hybrid", set=keys) == 6
    assert read("pipeline.pattern_segments", base="hybrid", set=keys) == 3
    assert read("pipeline.pattern_layers", set={}) is ABSENT
    assert read("pipeline.pattern_layers", base="hybrid", set={"model.hybrid_layer_pattern": "MXM"}) is ABSENT
    counts: dict[str, Any] = {
        "model.hybrid_layer_pattern": "M-M-*-M-",
        "model.pipeline_model_parallel_size": 3,
        "model.num_layers_in_first_pipeline_stage": 2,
    }
    assert read("pipeline.pattern_splits", base="hybrid", set=counts) is True
    counts["model.num_layers_in_last_pipeline_stage"] = 6
    assert read("pipeline.pattern_splits", base="hybrid", set=counts) is False
    assert read("pipeline.pattern_splits", base="hybrid", set={}) is ABSENT


def test_lengths_that_vary() -> None:
    packed = {"dataset.enable_in_batch_packing": True, "train.micro_batch_size": 2}
    assert read("pipeline.lengths_vary", set=packed) is False
    assert read("pipeline.lengths_vary", set={**packed, "model.pipeline_model_parallel_size": 2}) is True
    assert read("pipeline.lengths_vary", set={"model.variable_seq_lengths": True}) is True


def test_paths_with_suffix() -> None:
    keys = {
        "dataset.blend": [["data/a_text_document", "data/b.bin"], [0.5, 0.5]],
        "dataset.data_path": "c.idx d",
    }
    assert read("data.suffixed_paths", set=keys) == ["c.idx", "data/b.bin"]
    assert read("data.suffixed_paths", set={}) == []


def test_share_of_validation() -> None:
    assert read("data.validation_share", set={"dataset.split": "9999,8,2"}) == 8.0
    assert read("data.validation_share", set={"dataset.split": "0.9, .05, .05"}) == 0.05
    assert read("data.validation_share", set={"dataset.split": "1"}) == 0.0
    assert read("data.validation_share", set={"dataset.split": None}) is ABSENT


def test_padding_to_the_full_length() -> None:
    assert read("data.padded_to_max", set={}) is False
    assert read("data.padded_to_max", set={"dataset.pad_to_max_length": True}) is True
    assert read("data.padded_to_max", set={"dataset.dataset_kwargs": {"pad_to_max_length": True}}) is True


def test_adapters_on_the_shared_expert() -> None:
    keys: dict[str, Any] = {"model.moe_shared_expert_intermediate_size": 1536}
    assert read("lora.on_shared_expert", base="moe+lora", set=keys) is True
    assert read("lora.on_shared_expert", base="moe+lora", set={}) is False
    assert read("lora.on_shared_expert", base="moe+lora", set={**keys, "peft.target_modules": ["linear_qkv"]}) is False


def test_layers_without_rotary_positions() -> None:
    assert read("pipeline.no_rope_entries", set={"model.no_rope_freq": [0, 1]}) == 2
    assert read("pipeline.no_rope_entries", set={"model.no_rope_freq": 4}) == 0
    expanded = {"set": {"model.no_rope_freq": [0, 1, 0, 1]}, "written": {"model.no_rope_freq": 2}}
    assert read("pipeline.no_rope_entries", **expanded) == 0
