"""Reported failures of the number of GPUs, the grid of experts and batch sizes: what needs the launch beside the recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reported.kit import Case, Check, cases, holds, line_of, recipe, script, silent

pytestmark = pytest.mark.upstream


def sbatch(nodes: int, per_node: int, name: str, *overrides: str) -> dict[str, str]:
    """A Slurm job that starts megatron-bridge's own runner on all its GPUs."""
    words = "".join(f" \\\n  {override}" for override in overrides)
    header = f"#!/bin/bash\n#SBATCH --nodes={nodes}\n#SBATCH --ntasks-per-node={per_node}\n"
    return {"job.sh": f"{header}srun python scripts/training/run_recipe.py --recipe {name}{words}\n"}


NEMO_RL = """policy:
  model_name: meta-llama/Llama-3.2-1B
  train_global_batch_size: 64
  train_micro_batch_size: 1
  max_total_sequence_length: 4096
  sequence_packing: {enabled: true}
  megatron_cfg:
    enabled: true
    tensor_model_parallel_size: 2
    pipeline_model_parallel_size: 2
    context_parallel_size: 4
    sequence_parallel: true
cluster:
  gpus_per_node: 8
  num_nodes: 2
"""

QWEN235 = (
    "model.tensor_model_parallel_size = 1",
    "model.sequence_parallel = False",
    "model.context_parallel_size = 1",
    "model.account_for_embedding_in_pipeline_split = False",
    "model.account_for_loss_in_pipeline_split = False",
)


@cases(
    Case(
        "experts of 128 ranks on 64 GPUs",
        "NVIDIA-NeMo/Megatron-Bridge#6054",
        recipe(
            "recipes.qwen.h100.qwen3_moe",
            "qwen3_235b_a22b_pretrain_256gpu_h100_bf16_config",
            *QWEN235,
            "model.pipeline_model_parallel_size = 4",
            "model.num_layers_in_last_pipeline_stage = 22",
            "model.expert_model_parallel_size = 32",
        ),
        wrong="expert_model_parallel_size = 32",
        right="expert_model_parallel_size = 16",
        rule="MB111",
        outcome="fails",
        world_size=64,
        gpu="gb300",
        message="1 x 32 x 4 = 128",
    ),
    Case(
        "experts of 256 ranks on 128 GPUs",
        "NVIDIA-NeMo/Megatron-Bridge#6083",
        sbatch(
            32,
            4,
            "deepseek_v3_pretrain_256gpu_h100_bf16_32nodes_config",
            "model.pipeline_model_parallel_size=4",
            "model.num_layers_in_last_pipeline_stage=13",
            "model.pipeline_model_parallel_layout=null",
            "model.expert_model_parallel_size=64",
        ),
        wrong="expert_model_parallel_size=64",
        right="expert_model_parallel_size=32",
        rule="MB111",
        outcome="fails",
        gpu="gb300",
        message="1 x 64 x 4 = 256",
    ),
    Case(
        "a global batch of 192 on 128 data parallel ranks",
        "NVIDIA-NeMo/Megatron-Bridge#6024",
        sbatch(32, 8, "nemotronh_56b_pretrain_config", "model.tensor_model_parallel_size=2", "train.global_batch_size=192"),
        wrong="train.global_batch_size=192",
        right="train.global_batch_size=768",
        rule="MB701",
        outcome="fails",
        gpu="b300",
    ),
    Case(
        "micro batches of 4 in a global batch of 36",
        "NVIDIA-NeMo/Megatron-Bridge#5832",
        script(
            "qwen35_vl_122b_a10b_peft_8gpu_h100_bf16_config",
            "--step_func qwen3_vl_step",
            "checkpoint.pretrained_checkpoint=/ckpt",
            "model.tensor_model_parallel_size=1",
            "model.sequence_parallel=false",
            "train.global_batch_size=40",
            "train.micro_batch_size=4",
        ),
        wrong="train.micro_batch_size=4",
        right="train.micro_batch_size=1",
        rule="MB701",
        outcome="fails",
        gpu="gb300",
        at="train.global_batch_size=40",
    ),
    Case(
        "six micro batches on four interleaved stages",
        "verl-project/verl#1004",
        script(
            "llama3_8b_pretrain_config",
            "model.context_parallel_size=1",
            "model.pipeline_model_parallel_size=4",
            "model.virtual_pipeline_model_parallel_size=2",
            "train.micro_batch_size=1",
            "train.global_batch_size=12",
        ),
        wrong="train.global_batch_size=12",
        right="train.global_batch_size=16",
        rule="MB216",
        outcome="fails",
        gpu="gb300",
        message="6 micro batches",
    ),
    Case(
        "a benchmark of 32 GPUs on 8",
        "NVIDIA-NeMo/Megatron-Bridge#4759",
        {
            "bench.sh": "python scripts/performance/run_script.py --model_family_name llama --model_recipe_name llama3_70b \\\n"
            "  --gpu h100 --compute_dtype bf16 \\\n  --num_gpus 8\n"
        },
        wrong="--num_gpus 8",
        right="--num_gpus 64",
        rule="MB110",
        outcome="fails",
        at="--model_recipe_name llama3_70b",
        message="needs 32 GPUs, the launch has 8",
    ),
    Case(
        "514 tokens shared by 4 tensor parallel ranks",
        "verl-project/verl#3296",
        script(
            "llama3_8b_pretrain_config",
            "model.context_parallel_size=1",
            "model.tensor_model_parallel_size=4",
            "model.sequence_parallel=true",
            "dataset.sequence_length=514",
            "dataset.seq_length=514",
        ),
        wrong="514",
        right="516",
        rule="MB714",
        outcome="fails",
        gpu="gb300",
        at="=514",
    ),
)
def test_reported(case: Case, check: Check, upstream: Path) -> None:
    holds(case, check, upstream)


def test_sizes_inherited_from_a_larger_job(check: Check, upstream: Path) -> None:
    """NVIDIA-NeMo/RL#3150: a file that only lowers the nodes keeps the 16 ranks of the file that it builds on."""
    child = "defaults: base.yaml\ncluster:\n  num_nodes: 1\n"
    found = check({"base.yaml": NEMO_RL, "one_node.yaml": child}, upstream)
    assert found.errors() == [("MB110", "fails")]
    (finding,) = [one for one in found.findings if one.severity == "error"]
    assert "one_node.yaml" in (finding.launch or "") and "context_parallel_size: 4" in line_of(finding)
    smaller = child + "policy:\n  megatron_cfg: {pipeline_model_parallel_size: 1}\n"
    silent(check, {"base.yaml": NEMO_RL, "one_node.yaml": smaller}, upstream)


def test_gpus_that_generation_takes_do_not_train(check: Check, upstream: Path) -> None:
    """The same, where the cluster is large enough but half of it generates."""
    apart = "  generation:\n    colocated: {enabled: false, resources: {num_nodes: 1, gpus_per_node: 8}}\n"
    assert check({"grpo.yaml": NEMO_RL.replace("cluster:", f"{apart}cluster:")}, upstream).errors() == [("MB110", "fails")]
    silent(check, {"grpo.yaml": NEMO_RL}, upstream)


def test_an_expert_tensor_size_left_open_is_one(check: Check, upstream: Path) -> None:
    """NVIDIA-NeMo/Speech#14838: another framework made the expert tensor parallel size that of the rest, so TP 2, EP 2 and PP 2 did
    not fit 4 GPUs. Megatron-Bridge makes it 1."""
    words = ("model.pipeline_model_parallel_size=2", "model.expert_model_parallel_size=2", "model.recompute_modules=[]")
    files = script("olmoe_7b_pretrain_config", "model.tensor_model_parallel_size=2", "model.sequence_parallel=true", *words, gpus=4)
    silent(check, files, upstream, gpu="gb300")
    given = {"run.sh": files["run.sh"].rstrip() + " \\\n  model.expert_tensor_parallel_size=2\n"}
    assert check(given, upstream, gpu="gb300").errors() == [("MB111", "fails")]


VERL = """python3 -m verl.trainer.main_ppo --config-path=config --config-name=ppo_megatron_trainer \\
  data.train_batch_size=48 \\
  actor_rollout_ref.model.path=Qwen/Qwen3-8B \\
  actor_rollout_ref.actor.ppo_mini_batch_size=48 \\
  actor_rollout_ref.actor.megatron.use_mbridge=True \\
  actor_rollout_ref.actor.megatron.vanilla_mbridge=False \\
  actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2 \\
  {more} \\
  trainer.n_gpus_per_node=8 trainer.nnodes=1
"""


@pytest.mark.parametrize(
    "more",
    [
        # verl-project/verl#1004: its trainer makes the micro batches, from lengths too where batches are dynamic.
        "actor_rollout_ref.actor.megatron.virtual_pipeline_model_parallel_size=2 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4",
        # verl-project/verl#7259: of two fields for the micro batch, the one that is not in use says nothing.
        "actor_rollout_ref.actor.ppo_micro_batch_size=5 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2",
    ],
)
def test_micro_batches_that_another_trainer_makes_stay_open(more: str, check: Check, upstream: Path) -> None:
    found = silent(check, {"run.sh": VERL.format(more=more)}, upstream)
    assert [verdict.verdict for verdict in found.verdicts] == ["undecided"]


@pytest.mark.parametrize(
    "command",
    [
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen3-30B-A3B "
        "actor_rollout_ref.actor.megatron.vanilla_mbridge=False actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 "
        "actor_rollout_ref.actor.megatron.expert_model_parallel_size=4 trainer.n_gpus_per_node=8 trainer.nnodes=1\n",
        "python3 -m skyrl_train.entrypoints.main_base trainer.strategy=megatron trainer.policy.model.path=Qwen/Qwen3-30B-A3B "
        "trainer.policy.megatron_config.tensor_model_parallel_size=2 trainer.policy.megatron_config.expert_model_parallel_size=4 "
        "trainer.placement.policy_num_gpus_per_node=8\n",
    ],
)
def test_sequence_parallel_that_another_launcher_switches_on(command: str, check: Check, upstream: Path) -> None:
    """Experts need it beside tensor parallelism; verl has it on where the command does not say, SkyRL derives it."""
    found = silent(check, {"run.sh": command}, upstream)
    assert "MB134" not in found.rules() and "MB502" in found.undecided()
    (size,) = [word for word in command.split() if "tensor_model_parallel_size" in word]
    off = size.replace("tensor_model_parallel_size=2", "sequence_parallel=False")
    assert check({"run.sh": command.replace(size, f"{size} {off}")}, upstream).errors() == [("MB502", "fails")]


def test_padded_lengths_of_fine_tuning_stay_open(check: Check, upstream: Path) -> None:
    """verl-project/verl#3296 again: fine-tuning pads its batches to what the ranks divide, so 514 tokens are no mistake there."""
    words = ("model.tensor_model_parallel_size=4", "model.sequence_parallel=true", "model.seq_length=514", "dataset.seq_length=514")
    silent(check, script("llama3_8b_sft_config", "checkpoint.pretrained_checkpoint=/ckpt", *words), upstream, gpu="gb300")
