"""Launches that look wrong by their values and are right by those that remain after Megatron-Bridge's own changes: no error, and mostly
no word. Each has a neighbour that is wrong, so that silence is no accident."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reported.kit import Check, recipe, script, silent

pytestmark = pytest.mark.upstream

LLAMA = ("recipes.llama", "llama3_8b_pretrain_config")
FSDP = ("model.gradient_accumulation_fusion = False", "ddp.use_megatron_fsdp = True", 'checkpoint.ckpt_format = "fsdp_dtensor"')
PEFT = ("recipes.llama", "llama3_8b_peft_config", 'checkpoint.pretrained_checkpoint = "/ckpt"')
SPLIT = ("model.tensor_model_parallel_size = 2", "model.sequence_parallel = True")
EXPERTS = ("recipes.olmoe", "olmoe_7b_pretrain_config", "model.recompute_modules = []")


def test_sequence_parallel_on_one_rank_is_reset(check: Check, upstream: Path) -> None:
    """Eight shipped recipes have it; only Megatron-LM itself refuses."""
    lines = ("model.tensor_model_parallel_size = 1", "model.sequence_parallel = True")
    assert "MB124" in silent(check, recipe(*LLAMA, *lines), upstream, 8, "gb300").rules()


@pytest.mark.parametrize("etp", ["None", "1"])
def test_expert_tensor_parallel_size_becomes_one(etp: str, check: Check, upstream: Path) -> None:
    grid = (*SPLIT, "model.expert_model_parallel_size = 4", f"model.expert_tensor_parallel_size = {etp}")
    silent(check, recipe(*EXPERTS, *grid), upstream, 4, "gb300")
    two = recipe(*EXPERTS, *(line.replace(etp, "2") for line in grid[:-1]), "model.expert_tensor_parallel_size = 2")
    assert check(two, upstream, 4, "gb300").errors() == [("MB111", "fails")]


@pytest.mark.parametrize("owner", ["ddp", "optimizer"])
def test_either_switch_shards_the_optimizer(owner: str, check: Check, upstream: Path) -> None:
    """The two copies are joined by `or`: what needs the distributed optimizer has it."""
    lines = ("ddp.overlap_grad_reduce = cfg.ddp.overlap_param_gather = True", f"{owner}.use_distributed_optimizer = False")
    found = check(recipe(*LLAMA, *lines), upstream, 8, "gb300")
    assert found.errors() == [] and not {"MB401", "MB422", "MB447"} & found.rules()
    both = recipe(*LLAMA, *lines, "ddp.use_distributed_optimizer = cfg.optimizer.use_distributed_optimizer = False")
    assert {"MB401", "MB447"} & check(both, upstream, 8, "gb300").rules()


def test_fsdp_switches_on_what_it_needs(check: Check, upstream: Path) -> None:
    """The distributed optimizer, and with user buffers their manual registration."""
    environment = 'env_vars = {"NCCL_NVLS_ENABLE": 1, "NCCL_CTA_POLICY": 1, "CUDA_DEVICE_MAX_CONNECTIONS": 8}'
    lines = (*FSDP, "ddp.use_distributed_optimizer = cfg.optimizer.use_distributed_optimizer = False", "ddp.nccl_ub = True", environment)
    found = check(recipe(*LLAMA, *lines), upstream, 8, "gb300")
    assert found.errors() == [] and not {"MB401", "MB416", "MB447"} & found.rules()
    alone = (*FSDP, "ddp.fsdp_manual_registration = True", environment)
    assert ("MB416", "fails") in check(recipe(*LLAMA, *alone), upstream, 8, "gb300").errors()


@pytest.mark.parametrize("name", ["deepseek_v3_pretrain_1024gpu_h100_bf16_config", "deepseek_v3_pretrain_256gpu_h100_bf16_32nodes_config"])
def test_parameters_gathered_ahead_while_gradients_are_not_reduced_ahead(name: str, check: Check, upstream: Path) -> None:
    """An assertion of Megatron-LM's own command line that Megatron-Bridge does not go through."""
    lines = ("ddp.overlap_grad_reduce = False", "ddp.overlap_param_gather = True", "comm_overlap.overlap_grad_reduce = False")
    found = check(
        recipe("recipes.deepseek.h100.deepseek_v3", name, *lines, "comm_overlap.overlap_param_gather = True"), upstream, None, "gb300"
    )
    assert found.errors() == []


def test_mixed_precision_has_the_last_word(check: Check, upstream: Path) -> None:
    """Both half precisions are written, and one remains."""
    both = check(recipe(*LLAMA, "model.fp16 = True"), upstream, 8, "gb300")
    assert both.errors() == [] and "MB424" not in both.rules()
    without = check(recipe(*LLAMA, "model.fp16 = cfg.model.bf16 = True", "mixed_precision = None"), upstream, 8, "gb300")
    assert ("MB424", "fails") in without.errors()


def test_whether_lengths_may_differ_hangs_on_the_launcher(check: Check, upstream: Path) -> None:
    """The runner copies the dataset's length into the model; a recipe that is handed to pretrain() has to agree."""
    words = ("model.context_parallel_size=1", "model.seq_length=4096")
    silent(check, script("llama3_8b_pretrain_config", *words, "model.recompute_granularity=null"), upstream, gpu="gb300")
    plain = recipe(*LLAMA, "model.context_parallel_size = 1", "model.seq_length = 4096")
    assert check(plain, upstream, 8, "gb300").errors() == [("MB703", "fails")]


@pytest.mark.parametrize("release", ["0.3.1", "0.4.2", "0.5.1", "0.6.2"])
def test_experts_beside_tensor_parallelism_without_sequence_parallelism(release: str, check: Check, fetched) -> None:  # type: ignore[no-untyped-def]
    """The configuration only warns, and the first step of training raises in every release: no trap, but an error."""
    lines = ("model.tensor_model_parallel_size = 2", "model.expert_model_parallel_size = 4", "model.sequence_parallel = False")
    assert ("MB502", "fails") in check(recipe(*EXPERTS, *lines), fetched(release), 8, "gb300").errors()


def test_gathered_inputs_of_adapters_are_no_error(check: Check, upstream: Path) -> None:
    """No shipped recipe re-gathers them, and 14 could."""
    found = check(recipe(*PEFT, *SPLIT), upstream, 8, "gb300")
    assert found.errors() == [] and "MB302" in found.rules()
    silent(check, recipe(*PEFT, *SPLIT, "peft.sequence_parallel_input_regather = True"), upstream, 8, "gb300")


@pytest.mark.parametrize(
    "lines",
    [
        ("model.recompute_granularity = None",),
        ('model.recompute_granularity = "full"', 'model.recompute_method = "uniform"', "model.recompute_num_layers = 1"),
    ],
)
def test_what_is_recomputed_by_default_acts_only_on_selective_recompute(lines: tuple[str, ...], check: Check, upstream: Path) -> None:
    found = silent(check, recipe(*LLAMA, "model.recompute_modules = None", *lines), upstream, 8, "gb300")
    assert "MB326" not in found.rules()
    selective = recipe(*LLAMA, "model.recompute_modules = None", 'model.recompute_granularity = "selective"')
    assert "MB326" in check(selective, upstream, 8, "gb300").rules()


@pytest.mark.parametrize(("connections", "gpu"), [("32", "gb300"), ("32", "h200"), ("1", "gb300"), ("8", "h200")])
def test_any_number_of_connections_without_tensor_parallelism(connections: str, gpu: str, check: Check, upstream: Path) -> None:
    """404 benchmark environments set 32, 24 set 1."""
    before = f"export CUDA_DEVICE_MAX_CONNECTIONS={connections}\n"
    silent(check, script("llama3_8b_pretrain_config", before=before), upstream, gpu=gpu)


def test_a_path_that_only_the_launch_can_give(check: Check, upstream: Path) -> None:
    """Adapters need the checkpoint of their base model, which no recipe names: said as what is still to be given."""
    found = silent(check, recipe(*PEFT[:2]), upstream, 8, "gb300")
    (finding,) = [one for one in found.findings if one.rule == "MB002"]
    assert "checkpoint.pretrained_checkpoint" in finding.message
    assert "MB002" not in silent(check, recipe(*PEFT), upstream, 8, "gb300").rules()


def test_a_restored_quantized_model_without_accumulation_fusion(check: Check, upstream: Path) -> None:
    restored = (*PEFT, "model.restore_modelopt_state = True")
    assert check(recipe(*restored, "model.gradient_accumulation_fusion = True"), upstream, 8, "gb300").errors() == [("MB001", "fails")]
    silent(check, recipe(*restored, "model.gradient_accumulation_fusion = False"), upstream, 8, "gb300")
