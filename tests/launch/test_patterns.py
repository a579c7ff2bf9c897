"""The ways in which launches are written in public repositories, one minimal input of our own for each.

Numbers are those of the survey of public files that the readers were built after; shapes are theirs, contents are
made up. Patterns that are Python files are evaluated with the real upstream source.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mblint.evaluate.unknown import Unknown
from mblint.launch.omega import raw
from mblint.launch.overrides import CliOverride, evaluate_overrides, write
from mblint.launch.script import read_script
from mblint.launch.shell_findings import shell_findings
from mblint.launch.spec import LaunchSpec
from mblint.launch.symbols import Construct, Symbol
from mblint.launch.yaml_files import YamlReading, read_yaml_file
from tests.launch.flat_config import FlatNode


def script(text: str, files: dict[str, str] | None = None, path: str = "/repo/scripts/launch.sh") -> list[LaunchSpec]:
    known = files or {}
    return read_script(text, path, source_of=known.get).launches


def one(text: str, files: dict[str, str] | None = None) -> LaunchSpec:
    (spec,) = script(text, files)
    return spec


def findings(text: str) -> list[str]:
    return [finding.rule for finding in shell_findings(read_script(text, "/repo/launch.sh"))]


def yaml(
    text: str,
    files: dict[str, str] | None = None,
    path: str = "/repo/conf/x.yaml",
    env: dict[str, Any] | None = None,
) -> YamlReading:
    known = files or {}
    reading = read_yaml_file(text, path, read_file=known.get, env=env)
    assert reading.error is None
    return reading


def overrides(spec: LaunchSpec) -> dict[str, Any]:
    """Keys and values of the overrides, by Hydra's own reading."""
    from mblint.read.hydra import parse_override

    values: dict[str, Any] = {}
    for override in spec.overrides:
        if override.unknown is not None:
            values[override.text.rstrip("=").lstrip("+")] = Unknown
        else:
            parsed = parse_override(override.text)
            values[parsed.key] = parsed.value
    return values


def env(spec: LaunchSpec) -> dict[str, Any]:
    return {name: given.value for name, given in spec.env.items()}


def assigns(spec: LaunchSpec) -> dict[str, Any]:
    return {assign.key: assign.value for assign in spec.assigns}


def section(**values: Any) -> FlatNode:
    node = FlatNode("Section")
    node.values.update(values)
    return node


def config(**sections: FlatNode) -> FlatNode:
    root = FlatNode("ConfigContainer")
    root.values.update(sections)
    return root


# ------------------------------------------------------------------ 4, 5, 12, 13, 40: scripts of Bridge's runners


def test_04_sbatch_header_environment_and_overrides() -> None:
    spec = one(
        """#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
RECIPE="qwen35_vl_35b_a3b_fsdp_sft_config"
WORKSPACE=${WORKSPACE:-/workspace}
SEQ=4096
export NCCL_NVLS_ENABLE=1
CLI_OVERRIDES="\\
    checkpoint.pretrained_checkpoint=${WORKSPACE}/models/q \\
    model.seq_length=$SEQ \\
    checkpoint.ckpt_format=fsdp_dtensor"
CMD="cd /opt/Megatron-Bridge && uv run --no-sync python scripts/training/run_recipe.py \\
    --recipe $RECIPE --step_func qwen3_vl_step $CLI_OVERRIDES"
SRUN_CMD="srun --mpi=pmix --container-image=$CONTAINER_IMAGE"
$SRUN_CMD bash -c "$CMD"
"""
    )
    assert (spec.launcher, spec.recipe, spec.world_size) == (
        "unified",
        "qwen35_vl_35b_a3b_fsdp_sft_config",
        16,
    )
    assert overrides(spec) == {
        "checkpoint.pretrained_checkpoint": "/workspace/models/q",
        "model.seq_length": 4096,
        "checkpoint.ckpt_format": "fsdp_dtensor",
    }
    assert env(spec) == {"NCCL_NVLS_ENABLE": "1"}
    assert spec.assumed == {"WORKSPACE": "/workspace"}
    assert [o.span.line for o in spec.overrides if o.span] == [10, 11, 12]


def test_05_lora_loop_over_parallelism_tuples() -> None:
    first, second = script(
        """#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
MODEL_NAME=nemotron_3_nano
CONFIGS=("4,1,8,1,True" "2,2,8,1,True")
for CONFIG in "${CONFIGS[@]}"; do
    IFS=',' read -r TP PP EP CP SP <<< "$CONFIG"
    OVERRIDES="model.tensor_model_parallel_size=$TP model.pipeline_model_parallel_size=$PP"
    OVERRIDES="$OVERRIDES model.sequence_parallel=$SP dataset.packed.pad=$((CP * 2))"
    CMD="uv run python scripts/training/run_recipe.py --recipe ${MODEL_NAME}_peft_config --mode lora $OVERRIDES"
    srun bash -c "$CMD"
    RC=$?
    if [ $RC -ne 0 ]; then exit $RC; fi
done
"""
    )
    assert overrides(first) == {
        "model.tensor_model_parallel_size": 4,
        "model.pipeline_model_parallel_size": 1,
        "model.sequence_parallel": True,
        "dataset.packed.pad": 2,
    }
    assert overrides(second)["model.pipeline_model_parallel_size"] == 2
    assert first.recipe == "nemotron_3_nano_peft_config" and first.recipe_kwargs["peft_scheme"].value == "lora"
    assert first.world_size == 16 and first.conditions == () and first.name.endswith("#1")


def test_12_old_performance_flags_and_config_file_in_sbatch() -> None:
    spec = one(
        """#!/bin/bash
#SBATCH --nodes=16
#SBATCH --ntasks-per-node=8
export PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True'
RUN_SCRIPT="${BASE_DIR}/Megatron-Bridge/scripts/performance/run_script.py"
TOTAL_GPUS=$(( SLURM_JOB_NUM_NODES * 8 ))
srun --container-image "${C}" --gres=gpu:8 -l bash -c "
    unset NCCL_SOCKET_IFNAME
    export WORLD_SIZE=\\${SLURM_NTASKS}
    python ${RUN_SCRIPT} \\
    --config_file configs/llama31.yaml --model_name llama31 --model_size 405b \\
    --compute_dtype fp8 --fp8_recipe cs --gpu b200 --use_tokendrop True -a dummy -p dummy \\
    -ng ${TOTAL_GPUS} \\
    train.manual_gc=true"
"""
    )
    assert (spec.launcher, spec.world_size, spec.gpu) == ("performance", 128, "b200")
    assert spec.recipe == "llama31_405b_pretrain_128gpu_b200_fp8cs_config"
    assert overrides(spec) == {"train.manual_gc": True}
    assert [f.path for f in spec.files] == ["configs/llama31.yaml"]
    assert env(spec)["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"
    assert spec.flags["use_tokendrop"].value is True


_HEREDOC = """export PYTORCH_CUDA_ALLOC_CONF=graph_capture_record_stream_reuse:True
export HF_TOKEN=<YOUR_HF_TOKEN>
worker_command=$(cat <<- EOM
  if [ "\\$RANK" -eq "0" ]; then
    echo "It's worker 0" ;
  fi ;
  cd /opt/Megatron-Bridge ;
  numactl --cpunodebind=\\$((LOCAL_RANK/2)) \\
  nice -10 \\
  python scripts/performance/run_script.py \\
    --model_family_name deepseek --model_recipe_name deepseek_v3 --config_variant v2 \\
    --gpu gb300 --num_gpus 256 --compute_dtype fp8_mx --pipeline_model_parallel_layout 'Et*4|(t*4|)*14tmL' \\
    --virtual_pipeline_model_parallel_size 8 --max_step 50{gap}
    logger.log_throughput=True \\
    ++model.sequence_parallel=true
EOM
)
echo "$worker_command" > worker_command.sh
torchrun --nproc-per-node="4" --nnodes="64" --node_rank="${{JOB_COMPLETION_INDEX}}" --no-python bash worker_command.sh
"""


def test_09_a_command_in_a_heredoc_with_exports() -> None:
    spec = one(_HEREDOC.replace("{gap}", " \\").replace("{{", "{").replace("}}", "}"))
    assert (spec.launcher, spec.world_size, spec.gpu) == ("performance", 256, "gb300")
    assert spec.recipe == "deepseek_v3_pretrain_256gpu_gb300_fp8mx_config"
    assert spec.flags["pipeline_model_parallel_layout"].value == "Et*4|(t*4|)*14tmL"
    assert spec.flags["max_steps"].value == 50
    assert overrides(spec) == {"logger.log_throughput": True, "model.sequence_parallel": True}
    assert env(spec)["PYTORCH_CUDA_ALLOC_CONF"] == "graph_capture_record_stream_reuse:True"
    assert isinstance(env(spec)["HF_TOKEN"], Unknown)
    assert findings(_HEREDOC.replace("{gap}", " \\").replace("{{", "{").replace("}}", "}")) == []


@pytest.mark.parametrize("number", [10, 11])
def test_10_11_broken_continuations_lose_options(number: int) -> None:
    text = _HEREDOC.replace("{gap}", "").replace("{{", "{").replace("}}", "}")
    assert overrides(one(text)) == {}
    (finding,) = shell_findings(read_script(text, "/repo/launch.sh"))
    assert finding.rule == "MB850" and finding.span is not None and finding.span.line == 14
    assert "++model.sequence_parallel=true" in finding.message and "never reach the program" in finding.message


def test_13_a_checkout_and_runner_flags() -> None:
    spec = one(
        """cd /opt && git clone https://example.invalid/Megatron-Bridge.git
cd Megatron-Bridge && git checkout 7695d4acbfac19353d20e456509117efe4733d6b
torchrun --nproc-per-node=8 --nnodes=4 scripts/performance/run_script.py \\
  --gpu h100 --model_family_name llama --model_recipe_name llama3_70b --num_gpus 32 --compute_dtype fp8_cs \\
  --global_batch_size 1024 -tp 2 -vp None --use_megatron_fsdp true
"""
    )
    assert spec.recipe == "llama3_70b_pretrain_32gpu_h100_fp8cs_config"
    assert spec.flags["virtual_pipeline_model_parallel_size"].value is None
    assert spec.flags["use_megatron_fsdp"].value is True and spec.world_size == 32


_LADDER = """GPU_TYPE=${GPU_TYPE:?GPU_TYPE is required.}
GPU_TYPE=${GPU_TYPE,,}
DTYPE=${DTYPE:-fp8}
DTYPE=${DTYPE,,}
if [[ $DTYPE == "fp8" ]]; then
    if [[ $GPU_TYPE == "h100" ]]; then DTYPE=fp8_cs; else DTYPE=fp8_mx; fi
fi
CONFIG_OVERRIDES=""
if [[ $GPU_TYPE == "gb300" ]] && [[ $JOB_TOTAL_GPUS -eq 128 ]]; then
    CONFIG_OVERRIDES+=" -pp 4 "
    CONFIG_OVERRIDES+=" --recompute_modules=mla_up_proj "
elif [[ $GPU_TYPE == "h100" ]]; then
    CONFIG_OVERRIDES+=" -pp 8 "
fi
if [[ $DTYPE == "fp8" ]]; then
    CONFIG_OVERRIDES+=" --fp8_recipe cs "
fi
python3 scripts/performance/setup_experiment.py --compute_dtype $DTYPE --gpu $GPU_TYPE \\
    --num_gpus $JOB_TOTAL_GPUS --model_family_name deepseek --model_recipe_name deepseek_v3 ${CONFIG_OVERRIDES}
"""


def test_14_ladders_fork_and_a_dead_branch_is_found() -> None:
    launches = script(_LADDER)
    named = [s for s in launches if "pipeline_model_parallel_size" in s.flags]
    gb300, h100 = sorted(named, key=lambda s: str(s.flags["gpu"].value))
    assert gb300.flags["pipeline_model_parallel_size"].value == 4 and gb300.world_size == 128
    assert gb300.flags["recompute_modules"].value == ["mla_up_proj"]
    assert gb300.recipe == "deepseek_v3_pretrain_128gpu_gb300_fp8mx_config"
    assert h100.flags["pipeline_model_parallel_size"].value == 8 and h100.flags["compute_dtype"].value == "fp8_cs"
    assert any("h100" in c for c in h100.conditions)
    dead = [f for f in shell_findings(read_script(_LADDER, "/repo/launch.sh")) if f.rule == "MB853"]
    assert [f.span.line for f in dead if f.span] == [15]


def test_15_a_metadata_file_is_no_launch() -> None:
    text = "general:\n  workload: deepseek_v3\nrun:\n  gpu_configs:\n    h100:\n      scales: [512, 1024]\n      dtypes: [fp8]\n"
    assert yaml(text).shape == "none"


@pytest.mark.parametrize(
    ("number", "family", "model", "task"),
    [
        (16, "llama", "llama3_70b", "peft"),
        (17, "nemotronh", "nemotronh_56b", "pretrain"),
        (18, "kimi", "kimi_k2", "pretrain"),
    ],
)
def test_16_17_18_benchmark_launchers(number: int, family: str, model: str, task: str) -> None:
    spec = one(
        f"""JOB_TOTAL_GPUS=${{JOB_TOTAL_GPUS:-64}}
CONFIG_OVERRIDES=" --task {task} "
CONFIG_OVERRIDES+=" -tp 2 "
if [[ ${{ENABLE_VBOOST:-false}} == true ]]; then CONFIG_OVERRIDES+=" --enable_vboost true "; fi
python3 scripts/performance/setup_experiment.py --gpu gb200 --num_gpus $JOB_TOTAL_GPUS --compute_dtype fp8_mx \\
    --model_family_name {family} --model_recipe_name {model} $CONFIG_OVERRIDES
"""
    )
    assert spec.recipe == f"{model}_{task}_64gpu_gb200_fp8mx_config" and spec.world_size == 64
    assert spec.flags["tensor_model_parallel_size"].value == 2 and "enable_vboost" not in spec.flags


def test_39_an_override_string_with_bash_checks_and_a_branch() -> None:
    launches = script(
        """set -euo pipefail
NPROC="${NPROC:-4}"; TP="${TP:-2}"
if [[ "$TP" -gt 1 ]]; then SP=true; else SP=false; fi
NNODES=2
WORLD=$(( NPROC * NNODES ))
(( WORLD % TP == 0 )) || { echo "FATAL" >&2; exit 1; }
export CUDA_DEVICE_MAX_CONNECTIONS="${CUDA_DEVICE_MAX_CONNECTIONS:-1}"
OVERRIDES="dataset.path=$DATA_PATH"
OVERRIDES="$OVERRIDES model.tensor_model_parallel_size=$TP model.sequence_parallel=$SP"
if [[ "${OV2_FSDP:-0}" == "1" ]]; then
  unset CUDA_DEVICE_MAX_CONNECTIONS
  OVERRIDES="$OVERRIDES ddp.use_megatron_fsdp=true"
fi
RDZV="--nnodes=$NNODES --node_rank=0"
python -m torch.distributed.run $RDZV --nproc_per_node="$NPROC" scripts/training/run_recipe.py \\
  --recipe "ov2_qwen35_35b_a3b_midtrain_config" --dataset vlm-energon --step_func ov2_step \\
  $OVERRIDES ${EXTRA_ARGS:-} 2>&1 | tee -a log
"""
    )
    (spec,) = launches
    assert spec.world_size == 8 and env(spec)["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"
    values = overrides(spec)
    assert values["model.sequence_parallel"] is True and values["dataset.path"] is Unknown
    assert "ddp.use_megatron_fsdp" not in values and spec.flags["dataset"].value == "vlm-energon"


def test_40_plain_torchrun_with_overrides() -> None:
    spec = one(
        "NCCL_IB_DISABLE=1 torchrun --standalone --nproc_per_node=8 /repo/scripts/training/run_recipe.py "
        "--recipe qwen3_vl_4b_sft_config train.micro_batch_size=1 'model.recompute_modules=[core_attn,mlp]'\n"
    )
    assert spec.world_size == 8 and env(spec) == {"NCCL_IB_DISABLE": "1"}
    assert overrides(spec) == {"train.micro_batch_size": 1, "model.recompute_modules": ["core_attn", "mlp"]}


# ------------------------------------------------------------------ 6, 7, 8, 41, 42, 45: YAML of Bridge


def apply(reading: YamlReading, root: FlatNode) -> tuple[FlatNode, list[str]]:
    assert reading.layer is not None
    result = evaluate_overrides(root, [reading.layer])
    assert result.failed is None
    write(root, result)
    return root, [f"{skip.key}:{skip.span.line}" for skip in result.skipped if skip.span]


def test_06_a_key_that_no_field_has_is_skipped_with_its_line() -> None:
    reading = yaml("model:\n  seq_length: 2048\ntrain:\n  train_iters: 600\noptimizer:\n  finetune_lr: 5e-6\n  min_lr: 5e-6\n")
    assert reading.shape == "overrides" and reading.launches == []
    root, skipped = apply(
        reading,
        config(
            model=section(seq_length=4096),
            train=section(train_iters=1),
            optimizer=section(lr=1.0, min_lr=0.0),
        ),
    )
    assert root.values["optimizer"].values == {"lr": 1.0, "min_lr": 5e-6}
    assert skipped == ["optimizer.finetune_lr:6"]


def test_07_override_sections_with_a_recipe_comment() -> None:
    reading = yaml(
        "# mblint: recipe=llama3_8b_pretrain_config world_size=8 gpu=H100\nmodel:\n  seq_length: 4096\ntrain:\n  train_iters: 20\n"
    )
    (spec,) = reading.launches
    assert (spec.recipe, spec.world_size, spec.gpu) == ("llama3_8b_pretrain_config", 8, "h100")
    assert spec.recipe_span is not None and spec.recipe_span.line == 1
    assert raw(spec.layers[0]) == {"model": {"seq_length": 4096}, "train": {"train_iters": 20}}


def test_08_teacher_beside_student() -> None:
    reading = yaml(
        "model:\n  seq_length: 4096\n  teacher:\n    seq_length: 4096\n    tensor_model_parallel_size: 2\n"
        "  kd_config:\n    logit_layers: [a, b]\ntrain:\n  train_iters: 10\noptimizer:\n  lr: 1e-4\n"
    )
    student = section(
        seq_length=1,
        teacher=section(seq_length=1, tensor_model_parallel_size=1),
        kd_config=section(logit_layers=[]),
    )
    root, skipped = apply(reading, config(model=student, train=section(train_iters=1), optimizer=section(lr=1.0)))
    assert root.values["model"].values["teacher"].values == {
        "seq_length": 4096,
        "tensor_model_parallel_size": 2,
    }
    assert root.values["optimizer"].values["lr"] == 1e-4 and skipped == []


def test_41_fsdp_yaml_with_an_old_dataset_key() -> None:
    reading = yaml(
        "model:\n  gradient_accumulation_fusion: false\ntrain:\n  train_iters: 20\n  global_batch_size: 8\ndist:\n"
        "  use_megatron_fsdp: true\ndataset:\n  sequence_length: 4096\nddp:\n  use_megatron_fsdp: true\n"
    )
    root, skipped = apply(
        reading,
        config(
            model=section(gradient_accumulation_fusion=True), train=section(train_iters=0, global_batch_size=0),
            dist=section(use_megatron_fsdp=False), dataset=section(seq_length=8192), ddp=section(use_megatron_fsdp=False),
        ),
    )  # fmt: skip
    assert root.values["dist"].values["use_megatron_fsdp"] is True
    assert skipped == ["dataset.sequence_length:9"]


def test_42_a_matrix_of_benchmark_sizes() -> None:
    reading = yaml(
        "ConfigContainer:\n  model:\n    seq_length: 4096\nperf_matrix:\n  gb200:\n    num_gpus_256:\n      common:\n"
        "        tp: 1\n        pp: 4\n        gbs: 2048\n      bf16:\n        mbs: 1\n      fp8_cs:\n        mbs: 2\n        pp: 8\n"
    )
    assert reading.shape == "perf-matrix"
    bf16, fp8 = reading.launches
    assert (bf16.world_size, bf16.gpu) == (256, "gb200")
    assert assigns(bf16)["model.pipeline_model_parallel_size"] == 4
    assert assigns(fp8) == {
        "model.tensor_model_parallel_size": 1, "model.pipeline_model_parallel_size": 8,
        "train.global_batch_size": 2048, "train.micro_batch_size": 2,
    }  # fmt: skip


def test_45_a_serialized_run_config() -> None:
    reading = yaml(
        "_target_: megatron.bridge.training.config.ConfigContainer\nmodel:\n"
        "  _target_: megatron.bridge.models.qwen.qwen3_provider.Qwen3ModelProvider8B\n  num_layers: 36\n"
        "  params_dtype: {_call_: false, _target_: torch.bfloat16}\n"
        "  activation_func: {_call_: false, _target_: torch.nn.functional.silu}\n"
        "  attention_backend:\n    _args_: [5]\n    _call_: true\n    _target_: megatron.core.transformer.enums.AttnBackend\n"
        "  init_method: {_partial_: true, _target_: torch.nn.init.normal_, mean: 0.0, std: 0.02}\ntrain:\n"
        "  _target_: megatron.bridge.training.config.TrainingConfig\n  micro_batch_size: 1\n  lr: 3e-4\n"
    )
    assert reading.shape == "serialized"
    (spec,) = reading.launches
    built = spec.construct
    assert built is not None and built.target.endswith("ConfigContainer")
    model = built.kwargs["model"]
    assert isinstance(model, Construct) and model.kwargs["num_layers"] == 36
    assert model.kwargs["params_dtype"] == Symbol("dtype", "torch.bfloat16")
    assert model.kwargs["activation_func"] == Symbol("function", "torch.nn.functional.silu")
    assert model.kwargs["attention_backend"].args == (5,)
    assert model.kwargs["init_method"].partial and model.kwargs["init_method"].kwargs == {
        "mean": 0.0,
        "std": 0.02,
    }
    assert built.kwargs["train"].kwargs["lr"] == "3e-4"
    assert model.spans["num_layers"].line == 4


# ------------------------------------------------------------------ 19-22, 24: Primus

_PRESETS = {
    "/repo/primus/configs/models/megatron_bridge/q.yaml": "recipe: qwen.qwen3\nflavor: qwen3_8b_finetune_config\nhf_path: Qwen/Qwen3-8B\n",
    "/repo/primus/configs/modules/megatron_bridge/sft_trainer.yaml": "extends:\n  - ../module_base.yaml\nstage: sft\nuse_turbo_attention: false\n",
    "/repo/primus/configs/modules/module_base.yaml": "trainable: false\nsink_level: null\n",
}
_PRIMUS = """work_group: ${TEAM:amd}
exp_name: ${NAME:x}
modules:
  post_trainer:
    framework: megatron_bridge
    config: sft_trainer.yaml
    model: q.yaml
    overrides:
      tensor_model_parallel_size: ${TP:8}
      peft: lora
      packed_sequence: true
      seq_length: ${SEQ:2048}
      finetune_lr: 1.0e-4
      precision_config: bf16_mixed
      min_lr: ${MIN_LR}
"""


@pytest.mark.parametrize("number", [19, 20, 22])
def test_19_20_22_primus_overrides_presets_and_environment(number: int) -> None:
    path = "/repo/examples/megatron_bridge/configs/MI355X/q.yaml"
    reading = yaml(_PRIMUS, _PRESETS, path, env={"SEQ": "4096"})
    assert reading.shape == "primus"
    (spec,) = reading.launches
    assert (spec.recipe, spec.gpu, spec.lenient_kwargs) == (
        "megatron.bridge.recipes.qwen.qwen3:qwen3_8b_finetune_config",
        "mi355x",
        True,
    )
    kwargs = {name: given.value for name, given in spec.recipe_kwargs.items()}
    assert kwargs["tensor_model_parallel_size"] == 8 and kwargs["seq_length"] == 4096 and kwargs["peft"] == "lora"
    assert kwargs["hf_path"] == "Qwen/Qwen3-8B" and kwargs["use_turbo_attention"] is False and kwargs["sink_level"] is None
    assert isinstance(kwargs["min_lr"], Unknown)
    assert spec.assumed["TP"] == "8" and "SEQ" not in spec.assumed
    span = spec.recipe_kwargs["tensor_model_parallel_size"].span
    assert span is not None and (span.path, span.line) == (path, 9)


def test_21_primus_with_a_provider_class_as_a_value_and_no_preset_at_hand() -> None:
    reading = yaml(
        "modules:\n  pre_trainer:\n    framework: megatron_bridge\n    model: mamba_130M.yaml\n    overrides:\n"
        "      model_provider: megatron.bridge.models.mamba.MambaProvider130M\n      train:\n        train_iters: 10\n"
    )
    (spec,) = reading.launches
    assert spec.recipe is None and spec.more is not None and "mamba_130M.yaml" in spec.more.reason
    assert spec.recipe_kwargs["model_provider"].value == "megatron.bridge.models.mamba.MambaProvider130M"
    assert raw(spec.layers[0]) == {"train": {"train_iters": 10}}


def test_24_configuration_as_exports_only() -> None:
    settings = "export TP=1\nexport LR=0.0006\nexport NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0}\nexport MBS=$TP\n"
    spec = one(
        "source config.sh\ntorchrun --nproc_per_node 8 scripts/training/run_recipe.py --recipe llama3_8b_sft_config "
        "model.tensor_model_parallel_size=$TP optimizer.lr=$LR train.micro_batch_size=$MBS\n",
        {"config.sh": settings},
    )
    assert overrides(spec) == {
        "model.tensor_model_parallel_size": 1,
        "optimizer.lr": 0.0006,
        "train.micro_batch_size": 1,
    }
    assert env(spec)["NCCL_NVLS_ENABLE"] == "0"
    assert spec.env["LR"].span is not None and spec.env["LR"].span.path.endswith("config.sh")


# ------------------------------------------------------------------ 25-29: NeMo-RL

_RL_BASE = """policy:
  model_name: Qwen/Qwen2.5-1.5B
  train_global_batch_size: 512
  precision: bfloat16
  max_total_sequence_length: 512
  train_mb_tokens: ${mul:${policy.max_total_sequence_length}, 4}
  make_sequence_length_divisible_by: ${policy.megatron_cfg.tensor_model_parallel_size}
  max_grad_norm: 1.0
  sequence_packing: {enabled: true}
  megatron_cfg:
    enabled: true
    activation_checkpointing: false
    tensor_model_parallel_size: 1
    pipeline_model_parallel_size: 1
    context_parallel_size: 1
    pipeline_dtype: ${policy.precision}
    optimizer: {lr: 5.0e-6, weight_decay: 0.01, clip_grad: "${policy.max_grad_norm}", use_distributed_optimizer: true}
    scheduler: {start_weight_decay: "${policy.megatron_cfg.optimizer.weight_decay}", lr_warmup_iters: 13}
    distributed_data_parallel_config: {grad_reduce_in_fp32: false, overlap_grad_reduce: true}
    env_vars: {PYTORCH_CUDA_ALLOC_CONF: "expandable_segments:False"}
  generation:
    backend: vllm
    colocated: {enabled: true}
    vllm_cfg: {tensor_parallel_size: 2}
cluster: {num_nodes: 1, gpus_per_node: 8}
"""


def test_25_a_base_file_with_nested_megatron_settings() -> None:
    reading = yaml(_RL_BASE)
    assert reading.shape == "nemo-rl"
    (spec,) = reading.launches
    values = assigns(spec)
    assert spec.model is not None and spec.model.value == "Qwen/Qwen2.5-1.5B" and spec.world_size == 8
    assert values["optimizer.clip_grad"] == 1.0 and values["scheduler.start_weight_decay"] == 0.01
    assert values["model.pipeline_dtype"] == Symbol("dtype", "torch.bfloat16") and values["model.bf16"] is True
    assert values["ddp.use_distributed_optimizer"] is True and values["ddp.average_in_collective"] is False
    assert "model.recompute_granularity" not in values
    assert env(spec) == {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False"}
    assert spec.flags["generation_tensor_parallel_size"].value == 2


def test_26_inheritance_by_defaults() -> None:
    child = (
        "defaults: ../base.yaml\npolicy:\n  model_name: Qwen/Qwen3-30B-A3B\n  megatron_cfg:\n    tensor_model_parallel_size: 4\n"
        "    activation_checkpointing: true\ncluster: {_override_: true, num_nodes: 8, gpus_per_node: 4}\n"
    )
    reading = yaml(child, {"/repo/base.yaml": _RL_BASE}, "/repo/conf/grpo-8n8g.yaml")
    (spec,) = reading.launches
    values = assigns(spec)
    assert spec.world_size == 32 and values["model.tensor_model_parallel_size"] == 4
    assert values["model.recompute_granularity"] == "full" and values["model.recompute_num_layers"] == 1
    assert values["scheduler.lr_warmup_iters"] == 13
    where = {a.key: a.span.path for a in spec.assigns if a.span}
    assert where["model.tensor_model_parallel_size"] == "/repo/conf/grpo-8n8g.yaml"
    assert where["model.context_parallel_size"] == "/repo/base.yaml"
    (orphan,) = yaml(child).launches
    assert orphan.more is not None and "base.yaml" in orphan.more.reason


def test_27_generation_beside_training() -> None:
    child = (
        "defaults: base.yaml\npolicy:\n  megatron_cfg: {context_parallel_size: 2}\n  generation:\n    backend: megatron\n"
        "    colocated: {enabled: false, resources: {gpus_per_node: 8, num_nodes: 1}}\ncluster: {num_nodes: 3}\n"
    )
    (spec,) = yaml(child, {"/repo/conf/base.yaml": _RL_BASE}).launches
    assert spec.world_size == 16 and spec.flags["generation_backend"].value == "megatron"
    assert assigns(spec)["model.context_parallel_size"] == 2 and spec.refused is None


def test_28_packing_switched_off_under_context_parallelism_is_refused() -> None:
    child = "defaults: base.yaml\npolicy:\n  sequence_packing: {enabled: false}\n  megatron_cfg: {context_parallel_size: 2}\n"
    (spec,) = yaml(child, {"/repo/conf/base.yaml": _RL_BASE}).launches
    assert spec.refused is not None and "sequence_packing" in spec.refused[0]
    assert spec.refused[1] is not None and spec.refused[1].line == 4


def test_29_lora_of_nemo_rl() -> None:
    child = (
        "defaults: base.yaml\npolicy:\n  megatron_cfg:\n    peft:\n      enabled: true\n      dim: 32\n      alpha: 64\n"
        "      target_modules: [linear_qkv]\n      lora_dtype: null\n"
    )
    (spec,) = yaml(child, {"/repo/conf/base.yaml": _RL_BASE}).launches
    peft = assigns(spec)["peft"]
    assert isinstance(peft, Construct) and peft.target == "megatron.bridge.peft.lora.LoRA"
    assert peft.kwargs == {"dim": 32, "alpha": 64, "target_modules": ["linear_qkv"], "lora_dtype": None}


# ------------------------------------------------------------------ 30: Nemotron


def test_30_a_recipe_target_beside_sections() -> None:
    reading = yaml(
        "run:\n  data: d:latest\n  wandb: {project: p}\n  env: {nodes: 4, gpus_per_node: 8}\nrecipe:\n"
        "  _target_: megatron.bridge.recipes.nemotronh.nemotron_3_super.nemotron_3_super_pretrain_config\n  seq_length: 8192\n"
        "data:\n  path: ${art:data,path}/blend.json\ntrain:\n  train_iters: 10\nlogger:\n  wandb_project: ${run.wandb.project}\n"
    )
    assert reading.shape == "nemotron"
    (spec,) = reading.launches
    assert spec.recipe == "megatron.bridge.recipes.nemotronh.nemotron_3_super:nemotron_3_super_pretrain_config"
    assert spec.recipe_kwargs["seq_length"].value == 8192 and spec.world_size == 32
    root = config(train=section(train_iters=1), logger=section(wandb_project=None))
    result = evaluate_overrides(root, spec.layers, foreign_resolvers=spec.foreign_resolvers)
    assert result.failed is None
    write(root, result)
    assert root.values["logger"].values["wandb_project"] == "p" and root.values["train"].values["train_iters"] == 10
    assert {skip.key for skip in result.skipped} <= set(spec.quiet_keys)


# ------------------------------------------------------------------ 38, 47: manifests and pipelines


def test_38_a_manifest_with_environment_and_torchrun() -> None:
    text = """apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 32
      template:
        spec:
          nodeSelector:
            node.kubernetes.io/instance-type: p6-b300.48xlarge
          containers:
            - name: pytorch
              image: img
              resources: {limits: {nvidia.com/gpu: 8}}
              env:
                - name: CUDA_DEVICE_MAX_CONNECTIONS
                  value: "1"
                - name: PYTORCH_CUDA_ALLOC_CONF
                  value: "expandable_segments:True"
                - {name: TENSOR_PARALLEL, value: "${TENSOR_PARALLEL}"}
              command: [torchrun, "--nproc_per_node=8", "--nnodes=${NUM_NODES}", scripts/training/run_recipe.py,
                        --recipe, deepseek_v3_sft_config, model.tensor_model_parallel_size=8]
"""
    reading = yaml(text)
    assert reading.shape == "commands"
    (spec,) = reading.launches
    assert (spec.recipe, spec.gpu) == ("deepseek_v3_sft_config", "b300")
    assert isinstance(spec.world_size, Unknown) and "NUM_NODES" in spec.world_size.reason
    values = env(spec)
    assert values["CUDA_DEVICE_MAX_CONNECTIONS"] == "1" and isinstance(values["TENSOR_PARALLEL"], Unknown)
    assert overrides(spec) == {"model.tensor_model_parallel_size": 8}
    (fixed,) = yaml(text.replace('torchrun, "--nproc_per_node=8", "--nnodes=${NUM_NODES}", ', "python, ")).launches
    assert fixed.world_size == 256


def test_47_command_lines_inside_a_pipeline() -> None:
    reading = yaml(
        """pipeline:
  global_vars:
    recipe: llama3_8b_sft_config
  task_0:
    environment:
      - LAUNCH: torchrun --nproc_per_node 4
      - NCCL_NVLS_ENABLE: 1
    inline: >-
      $LAUNCH scripts/training/run_recipe.py
      --recipe <<global_vars.recipe>>
      model.context_parallel_size=4 checkpoint.save=<<global_vars.out>>
    slurm_config: &sc
      nodes: 1
      ntasks_per_node: 4
  task_1:
    inline: python scripts/training/run_recipe.py --recipe llama3_8b_sft_config train.micro_batch_size=1
    slurm_config:
      <<: *sc
      nodes: 8
"""
    )
    first, second = reading.launches
    assert first.recipe == "llama3_8b_sft_config" and env(first)["NCCL_NVLS_ENABLE"] == "1"
    assert overrides(first)["model.context_parallel_size"] == 4 and overrides(first)["checkpoint.save"] is Unknown
    assert second.world_size == 32
    span = first.overrides[0].span
    assert span is not None and (span.line, span.column) == (11, 7)


# ------------------------------------------------------------------ 48-54: other frameworks


def test_48_skyrl_variables_and_hydra_keys() -> None:
    spec = one(
        """TP=4; EP=8
uv run --isolated --extra megatron -m examples.train.main_dapo \\
  trainer.strategy=megatron trainer.policy.model.path="Qwen/Qwen3.5-35B-A3B" \\
  trainer.placement.policy_num_nodes=2 trainer.placement.policy_num_gpus_per_node=8 \\
  trainer.policy.megatron_config.tensor_model_parallel_size=$TP \\
  trainer.policy.megatron_config.expert_model_parallel_size=$EP \\
  trainer.policy.megatron_config.transformer_config_kwargs.recompute_granularity=full \\
  trainer.policy.megatron_config.optimizer_config_kwargs.optimizer_cpu_offload=true $@
"""
    )
    assert spec.launcher == "skyrl" and spec.world_size == 16
    assert assigns(spec) == {
        "model.tensor_model_parallel_size": 4, "model.expert_model_parallel_size": 8,
        "model.recompute_granularity": "full", "optimizer.optimizer_cpu_offload": True,
    }  # fmt: skip


def test_49_verl_uses_bridge_by_one_key() -> None:
    text = """TP=2
python3 -m verl.trainer.main_ppo --config-name='ppo_megatron_trainer.yaml' \\
    actor_rollout_ref.model.path=Qwen/Qwen3-30B-A3B actor_rollout_ref.model.lora.rank=16 \\
    actor_rollout_ref.actor.megatron.vanilla_mbridge={switch} \\
    actor_rollout_ref.actor.megatron.tensor_model_parallel_size=$TP \\
    actor_rollout_ref.rollout.tensor_model_parallel_size=8 \\
    +actor_rollout_ref.actor.megatron.override_transformer_config.recompute_num_layers=1 \\
    trainer.n_gpus_per_node=8 trainer.nnodes=1 $@
"""
    spec = one(text.replace("{switch}", "False"))
    assert spec.launcher == "verl" and spec.world_size == 8 and spec.model is not None
    assert assigns(spec) == {
        "peft.dim": 16, "model.tensor_model_parallel_size": 2, "model.recompute_num_layers": 1,
    }  # fmt: skip
    assert script(text.replace("{switch}", "True")) == []


def test_50_broken_continuations_in_other_frameworks() -> None:
    text = (
        'params=(a.b=1 \\\n  c.d=2)\npython3 -m verl.main \\\n  "${params[@]}" \\\n'
        "  actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2\n  ++trainer.nnodes=1\n"
    )
    assert findings(text) == ["MB850"]


def test_52_bash_arrays_of_flags() -> None:
    spec = one(
        """PERF_ARGS=(
   --tensor-model-parallel-size 4
   --sequence-parallel
   --recompute-granularity full
   # --micro-batch-size 1
)
OPT=(--lr 1e-6 --optimizer-cpu-offload)
ray job submit --address=x -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 \\
   --hf-checkpoint /models/Qwen3-30B-A3B ${PERF_ARGS[@]} ${OPT[@]}
"""
    )
    assert spec.launcher == "megatron-lm" and spec.world_size == 8
    assert assigns(spec) == {
        "model.tensor_model_parallel_size": 4, "model.sequence_parallel": True, "model.recompute_granularity": "full",
        "optimizer.lr": 1e-6, "optimizer.optimizer_cpu_offload": True,
    }  # fmt: skip


def test_53_a_mini_language_of_sizes() -> None:
    reading = yaml(
        'cluster: {n_nodes: 1}\nactor:\n  backend: "megatron:(attn:d1p6t2c1|ffn:d1p6t1e2)"\n  path: Qwen/Qwen3-30B-A3B\n'
        "  megatron: {bridge_type: megatron-bridge}\n  use_lora: true\n  lora_rank: 32\n  optimizer: {lr: 3e-6}\n"
    )
    assert reading.shape == "areal"
    (spec,) = reading.launches
    assert spec.world_size == 12
    assert assigns(spec) == {
        "model.tensor_model_parallel_size": 2, "model.pipeline_model_parallel_size": 6, "model.context_parallel_size": 1,
        "model.expert_model_parallel_size": 2, "model.expert_tensor_parallel_size": 1, "optimizer.lr": 3e-6, "peft.dim": 32,
    }  # fmt: skip


def test_54_environment_prefix_and_flags() -> None:
    spec = one(
        "PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True' \\\nNPROC_PER_NODE=2 \\\nCUDA_VISIBLE_DEVICES=0,1 \\\n"
        "megatron sft --model Qwen/Qwen3-30B-A3B --expert_model_parallel_size 2 --sequence_parallel true --lr 1e-4 \\\n"
        "  --dataset 'a#1' 'b#2' --micro_batch_size 8\n"
    )
    assert spec.world_size == 2 and env(spec)["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"
    assert assigns(spec) == {
        "model.expert_model_parallel_size": 2, "model.sequence_parallel": True, "optimizer.lr": 1e-4,
        "train.micro_batch_size": 8,
    }  # fmt: skip


# ------------------------------------------------------------------ Python files

PYTHON: dict[str, tuple[str, dict[str, Any]]] = {
    "01 recipe calls recipe, layout helper, env dict with **": (
        """
from megatron.bridge.recipes.deepseek import deepseek_v3_pretrain_config
BASE = {"NCCL_NVLS_ENABLE": 0}
def my_config():
    cfg = deepseek_v3_pretrain_config()
    cfg.model.pipeline_model_parallel_size = cfg.model.context_parallel_size = 4
    cfg.env_vars = {**BASE, "CUDA_DEVICE_MAX_CONNECTIONS": 32}
    return cfg
""",
        {
            "model.context_parallel_size": 4,
            "env_vars": {"dict": {"NCCL_NVLS_ENABLE": 0, "CUDA_DEVICE_MAX_CONNECTIONS": 32}},
        },
    ),
    "02 a peft_scheme parameter": (
        """
from megatron.bridge.recipes.llama import llama3_8b_peft_config
def my_config():
    cfg = llama3_8b_peft_config(peft_scheme="dora")
    cfg.peft.dim = 4
    return cfg
""",
        {"peft.__class__": "megatron.bridge.peft.dora.DoRA", "peft.dim": 4},
    ),
    "03 helpers with hasattr, getattr, isinstance": (
        """
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
from megatron.bridge.training.comm_overlap import CommOverlapConfig
def tune(cfg):
    if hasattr(cfg.model, "apply_rope_fusion"):
        cfg.model.apply_rope_fusion = True
    if hasattr(cfg.model, "no_such_field"):
        cfg.model.num_layers = 1
    if isinstance(getattr(cfg, "comm_overlap", None), CommOverlapConfig):
        cfg.comm_overlap.tp_comm_overlap = False
def my_config():
    cfg = llama3_8b_pretrain_config()
    cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=True)
    tune(cfg)
    return cfg
""",
        {"model.apply_rope_fusion": True, "model.num_layers": 32, "comm_overlap.tp_comm_overlap": False},
    ),
    "23 keywords from a typed dict": (
        """
from typing import TypedDict, Unpack
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
class Options(TypedDict, total=False):
    tp: int
    seq: int
def build(tp=1, seq=8192):
    cfg = llama3_8b_pretrain_config()
    cfg.model.tensor_model_parallel_size = tp
    cfg.model.seq_length = seq
    return cfg
def make(**user: Unpack[Options]):
    recommended: Options = {"tp": 2, "seq": 4096}
    return build(**{**recommended, **user})
def my_config():
    return make(tp=8)
""",
        {"model.tensor_model_parallel_size": 8, "model.seq_length": 4096},
    ),
    "31 a setattr loop over overrides": (
        """
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
MODEL_OVERRIDES = {"seq_length": 2048, "tensor_model_parallel_size": 2}
def my_config():
    cfg = llama3_8b_pretrain_config()
    for key, value in MODEL_OVERRIDES.items():
        setattr(cfg.model, key, value)
    return cfg
""",
        {"model.seq_length": 2048, "model.tensor_model_parallel_size": 2},
    ),
    "32 a dataclass subclass of a provider": (
        """
from dataclasses import dataclass
from megatron.bridge.models.gpt_provider import GPTModelProvider
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
@dataclass
class Tiny(GPTModelProvider):
    num_layers: int = 2
    hidden_size: int = 256
    num_attention_heads: int = 4
def my_config():
    cfg = llama3_8b_pretrain_config()
    cfg.model = Tiny(seq_length=128)
    return cfg
""",
        {"model.num_layers": 2, "model.hidden_size": 256, "model.seq_length": 128},
    ),
    "33 a data section merged into recipe arguments": (
        """
from megatron.bridge.recipes.llama import llama3_8b_peft_config
CONFIG = {"recipe": {"peft_scheme": "lora"}, "data": {"extra": 1}, "train": {"train_iters": 7}}
def my_config():
    arguments = dict(CONFIG["recipe"])
    cfg = llama3_8b_peft_config(**arguments)
    for name, values in CONFIG.items():
        if name in ("train", "model") and hasattr(cfg, name):
            for key, value in values.items():
                setattr(getattr(cfg, name), key, value)
    return cfg
""",
        {"train.train_iters": 7, "peft.__class__": "megatron.bridge.peft.lora.LoRA"},
    ),
    "34 environment constants with a cast": (
        """
import os
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
def _env(name, default, cast=str):
    return cast(os.environ.get(name, default))
TRAIN_TP = _env("TRAIN_TP", "2", int)
def my_config():
    cfg = llama3_8b_pretrain_config()
    cfg.model.tensor_model_parallel_size = TRAIN_TP
    return cfg
""",
        {"model.tensor_model_parallel_size": 2},
    ),
    "35 an alias and hasattr": (
        """
import os
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
def my_config():
    cfg = llama3_8b_pretrain_config()
    m = cfg.model
    m.expert_model_parallel_size = int(os.environ.get("EXPERT_PARALLEL", "4"))
    if hasattr(m, "sequence_parallel"):
        m.sequence_parallel = True
    return cfg
""",
        {"model.expert_model_parallel_size": 4, "model.sequence_parallel": True},
    ),
    "36 a loop over two objects": (
        """
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
def my_config():
    cfg = llama3_8b_pretrain_config()
    for part in (cfg.ddp, cfg.optimizer):
        part.use_distributed_optimizer = False
    return cfg
""",
        {"ddp.use_distributed_optimizer": False, "optimizer.use_distributed_optimizer": False},
    ),
    "37 a recipe by name": (
        """
import megatron.bridge.recipes.llama as llama
NAMES = {"8b": "llama3_8b_pretrain_config"}
def my_config():
    cfg = getattr(llama, NAMES["8b"])()
    cfg.train.global_batch_size = 64
    if cfg.train.global_batch_size % cfg.train.micro_batch_size:
        raise ValueError("no")
    return cfg
""",
        {"train.global_batch_size": 64, "model.num_layers": 32},
    ),
    "43 OmegaConf over a recipe": (
        """
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
from megatron.bridge.training.utils.omegaconf_utils import process_config_with_overrides
def my_config():
    cfg = llama3_8b_pretrain_config()
    return process_config_with_overrides(cfg, cli_overrides=["model.seq_length=1024", "optimizer.lr=1e-5"])
""",
        {"model.seq_length": 1024, "optimizer.lr": 1e-5},
    ),
    "44 workload tables with dataclasses.replace": (
        """
from dataclasses import dataclass, replace
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
@dataclass(frozen=True)
class Workload:
    tp: int = 1
    pp: int = 1
BASE = Workload(tp=2)
H100 = replace(BASE, pp=4)
TABLE = {"h100": H100, "gb200": replace(BASE, tp=1)}
def my_config():
    cfg = llama3_8b_pretrain_config()
    work = TABLE["h100"]
    cfg.model.tensor_model_parallel_size = work.tp
    cfg.model.pipeline_model_parallel_size = work.pp
    return cfg
""",
        {"model.tensor_model_parallel_size": 2, "model.pipeline_model_parallel_size": 4},
    ),
    "46 argparse to provider to container": (
        """
import argparse
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tp_size", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-4)
    return parser.parse_args([])
def my_config():
    args = arguments()
    cfg = llama3_8b_pretrain_config()
    cfg.model.tensor_model_parallel_size = args.tp_size
    cfg.optimizer.lr = args.lr
    return cfg
""",
        {"model.tensor_model_parallel_size": 2, "optimizer.lr": 1e-4},
    ),
    "51 a dataclass table to sizes": (
        """
from dataclasses import asdict, dataclass
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config
@dataclass(frozen=True)
class Setup:
    tensor_model_parallel_size: int
    context_parallel_size: int = 1
SETUPS = {"small": Setup(2), "large": Setup(4, 2)}
def my_config():
    cfg = llama3_8b_pretrain_config()
    for name, value in asdict(SETUPS["large"]).items():
        setattr(cfg.model, name, value)
    return cfg
""",
        {"model.tensor_model_parallel_size": 4, "model.context_parallel_size": 2},
    ),
}


@pytest.mark.upstream
@pytest.mark.parametrize("name", sorted(PYTHON))
def test_python_patterns_resolve(
    name: str,
    upstream: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mblint.cli.main import main

    source, expected = PYTHON[name]
    (tmp_path / "my.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    code = main(
        [
            "explain",
            "my.py:my_config",
            "--format",
            "json",
            "--flat",
            "--isolated",
            "--upstream",
            str(upstream),
        ]
    )
    output = capsys.readouterr()
    assert code == 0, output.err
    shown = json.loads(output.out)
    found = {key: shown["config"][key] for key in expected if key in shown["config"]}
    assert found == expected


def test_every_pattern_has_an_input() -> None:
    here = Path(__file__).read_text()
    numbers = {int(n) for line in re.findall(r"def test_([\d_]+)_", here) for n in line.split("_") if n}
    numbers |= {int(n) for line in re.findall(r'^    "([\d ]+) ', here, re.M) for n in line.split()}
    assert numbers == set(range(1, 55))


def test_a_value_override_is_never_guessed() -> None:
    root = config(model=section(seq_length=1))
    result = evaluate_overrides(root, cli=[CliOverride("model.seq_length=", None, Unknown("why"))])
    (assignment,) = result.assignments
    assert isinstance(assignment.value, Unknown)
