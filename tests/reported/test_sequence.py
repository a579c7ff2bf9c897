"""Reported failures of sequence lengths, context parallelism, packing and the alignment that FP8 needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reported.kit import Case, Check, cases, holds, recipe, script, silent

pytestmark = pytest.mark.upstream

LLAMA = ("recipes.llama", "llama3_8b_pretrain_config")
SFT = ("recipes.llama", "llama3_8b_sft_config", 'checkpoint.pretrained_checkpoint = "/ckpt"')
FP8 = 'mixed_precision = "bf16_with_fp8_current_scaling_mixed"'


def program(*lines: str) -> dict[str, str]:
    """A training program that hands a shipped recipe to pretrain() itself, without a runner between."""
    changes = "".join(f"    cfg.{line}\n" for line in lines)
    return {
        "train.py": "from megatron.bridge.recipes.llama import llama3_8b_pretrain_config\n"
        "from megatron.bridge.training.gpt_step import forward_step\n"
        "from megatron.bridge.training.pretrain import pretrain\n\n\n"
        f"def main():\n    cfg = llama3_8b_pretrain_config()\n{changes}    pretrain(cfg, forward_step)\n\n\n"
        'if __name__ == "__main__":\n    main()\n'
    }


@cases(
    Case(
        "the model's length is that of the architecture",
        "NVIDIA-NeMo/Megatron-Bridge#768",
        program("model.context_parallel_size = 8", "model.seq_length = 131072"),
        wrong="    cfg.model.seq_length = 131072\n",
        right="    cfg.model.seq_length = 131072\n    cfg.dataset.seq_length = 131072\n",
        rule="MB703",
        outcome="fails",
        world_size=8,
        gpu="gb300",
        message="model.seq_length = 131072, but dataset.seq_length = 8192",
    ),
    Case(
        "packed samples of any length under context parallelism",
        "NVIDIA-NeMo/Megatron-Bridge#1292",
        recipe(
            *SFT,
            "model.context_parallel_size = 2",
            "model.calculate_per_token_loss = True",
            "ddp.average_in_collective = False",
            "dataset.offline_packing_specs.pad_seq_to_mult = 1",
        ),
        wrong="pad_seq_to_mult = 1",
        right="pad_seq_to_mult = 4",
        rule="MB716",
        outcome="wrong",
        world_size=8,
        gpu="gb300",
    ),
    Case(
        "FP8 with 1023 tokens a rank",
        "NVIDIA-NeMo/RL#1551",
        recipe(
            *LLAMA,
            FP8,
            "model.tensor_model_parallel_size = 4",
            "model.sequence_parallel = True",
            "model.context_parallel_size = 1",
            "model.seq_length = cfg.dataset.seq_length = 4092",
        ),
        wrong="cfg.model.seq_length = cfg.dataset.seq_length = 4092",
        right="cfg.model.seq_length = cfg.dataset.seq_length = 4096",
        rule="MB715",
        outcome="fails",
        world_size=8,
        gpu="gb300",
        message="1023 tokens",
    ),
    Case(
        "FP8 with 1026 tokens in a part of context parallelism",
        "NVIDIA-NeMo/Speech#8869",
        recipe(*LLAMA, FP8, "model.context_parallel_size = 4", "model.seq_length = cfg.dataset.seq_length = 4104"),
        wrong="cfg.model.seq_length = cfg.dataset.seq_length = 4104",
        right="cfg.model.seq_length = cfg.dataset.seq_length = 4096",
        rule="MB715",
        outcome="fails",
        world_size=8,
        gpu="gb300",
        message="1026 tokens",
    ),
    Case(
        "two packed sequences in a micro batch",
        "alibaba/Pai-Megatron-Patch#413",
        script("llama3_8b_sft_config", "checkpoint.pretrained_checkpoint=/ckpt", "train.micro_batch_size=2"),
        wrong="train.micro_batch_size=2",
        right="train.micro_batch_size=1",
        rule="MB708",
        outcome="fails",
        gpu="gb300",
    ),
)
def test_reported(case: Case, check: Check, upstream: Path) -> None:
    holds(case, check, upstream)


def test_a_runner_copies_the_length_of_the_dataset(check: Check, upstream: Path) -> None:
    """NVIDIA-NeMo/Megatron-Bridge#768 again: the same two lengths are no failure where megatron-bridge's runner starts the launch."""
    files = script("llama3_8b_pretrain_config", "model.context_parallel_size=8", "model.seq_length=131072", "dataset.seq_length=8192")
    assert check(files, upstream, gpu="gb300").errors() == []


@pytest.mark.parametrize("multiple", [1, 8, 64])
def test_how_far_packed_samples_are_padded_is_free_without_context_parallelism(multiple: int, check: Check, upstream: Path) -> None:
    """NVIDIA-NeMo/Megatron-Bridge#2039: attention got slower where samples were not padded. Which kernels are slow then is a matter
    of their release, and shipped recipes pad to 1."""
    silent(check, recipe(*SFT, f"dataset.offline_packing_specs.pad_seq_to_mult = {multiple}"), upstream, 8, "gb300")


def test_more_padding_than_is_needed_is_no_mistake(check: Check, upstream: Path) -> None:
    """NVIDIA-NeMo/RL#3563: 2 x CP x TP where CP x lcm(2, TP) would do. What is lost is a few tokens a sample, as the lengths
    of the samples have it."""
    lines = (
        "model.tensor_model_parallel_size = 2",
        "model.sequence_parallel = True",
        "model.context_parallel_size = 2",
        "model.calculate_per_token_loss = True",
        "ddp.average_in_collective = False",
    )
    for multiple in (4, 8):
        silent(check, recipe(*SFT, *lines, f"dataset.offline_packing_specs.pad_seq_to_mult = {multiple}"), upstream, 8, "gb300")
    less = recipe(*SFT, *lines, "dataset.offline_packing_specs.pad_seq_to_mult = 2")
    assert check(less, upstream, 8, "gb300").errors() == [("MB716", "wrong")]


@pytest.mark.parametrize("multiple", ["1", "2", "8"])
def test_padding_that_nemo_rl_computes_stays_open(multiple: str, check: Check, upstream: Path) -> None:
    """NVIDIA-NeMo/RL#2110: packing with tensor and pipeline parallelism had the wrong multiple. With packing NeMo-RL works it out
    from the parallel sizes, and how is a matter of its release: the file's own value decides nothing."""
    text = (
        "policy:\n  model_name: meta-llama/Llama-3.2-1B\n  train_global_batch_size: 64\n  train_micro_batch_size: 1\n"
        f"  max_total_sequence_length: 4096\n  make_sequence_length_divisible_by: {multiple}\n"
        "  sequence_packing: {enabled: true, train_mb_tokens: 4096}\n"
        "  megatron_cfg:\n    enabled: true\n    tensor_model_parallel_size: 2\n    pipeline_model_parallel_size: 2\n"
        "    context_parallel_size: 1\n    sequence_parallel: true\ncluster: {gpus_per_node: 8, num_nodes: 1}\n"
    )
    found = silent(check, {"sft.yaml": text}, upstream)
    assert [verdict.verdict for verdict in found.verdicts] == ["undecided"]


def test_dynamic_padding_of_pictures_stays_open(check: Check, upstream: Path) -> None:
    """NVIDIA-NeMo/Megatron-Bridge#4143: stages disagreed by a token. The lengths come from the batch: how many tokens a picture makes."""
    files = recipe(
        "recipes.qwen_vl.h100.qwen3_vl",
        "qwen3_vl_8b_sft_2gpu_h100_bf16_config",
        'checkpoint.pretrained_checkpoint = "/ckpt"',
        "model.seq_length = cfg.dataset.seq_length = 131072",
        "model.tensor_model_parallel_size = 4",
        "model.context_parallel_size = 4",
        "model.pipeline_model_parallel_size = 2",
        "model.sequence_parallel = True",
        "ddp.average_in_collective = False",
    )
    silent(check, files, upstream, 32, "gb300")


@pytest.mark.parametrize(("release", "refused"), [("0.3.1", True), ("0.4.2", True), ("0.5.1", False), ("0.6.2", False)])
def test_gated_delta_net_under_context_parallelism(release: str, refused: bool, check: Check, fetched) -> None:  # type: ignore[no-untyped-def]
    """NVIDIA/Megatron-LM#3883: refused by cores before 0.18."""
    files = recipe("recipes.qwen", "qwen3_next_80b_a3b_pretrain_config", "model.context_parallel_size = 2")
    found = check(files, fetched(release), 64, "gb300")
    assert found.errors() == ([("MB123", "fails")] if refused else [])
    one = {name: text.replace("context_parallel_size = 2", "context_parallel_size = 1") for name, text in files.items()}
    silent(check, one, fetched(release), 64, "gb300")


def test_samples_shorter_than_the_ranks_stay_open(check: Check, upstream: Path) -> None:
    """verl-project/verl#4656: samples of fewer than CP x TP tokens. Only the data say so."""
    command = (
        "python3 -m verl.trainer.main_ppo data.max_response_length=64 actor_rollout_ref.model.path=Qwen/Qwen3-8B "
        "actor_rollout_ref.actor.megatron.vanilla_mbridge=False actor_rollout_ref.actor.megatron.context_parallel_size=8 "
        "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 trainer.n_gpus_per_node=8 trainer.nnodes=2\n"
    )
    silent(check, {"run.sh": command}, upstream)
