"""Launches from shell scripts: sizes, environment, GPU types, programs, and what must stay unknown."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mblint.evaluate.unknown import Unknown
from mblint.launch.script import may_launch, read_script
from mblint.launch.slurm import gpu_of
from mblint.launch.spec import LaunchSpec

RUN = "scripts/training/run_recipe.py --recipe r_pretrain_config"


def launches(text: str, files: dict[str, str] | None = None) -> list[LaunchSpec]:
    return read_script(text, "/repo/launch.sh", source_of=(files or {}).get).launches


def one(text: str, files: dict[str, str] | None = None) -> LaunchSpec:
    (spec,) = launches(text, files)
    return spec


def texts(spec: LaunchSpec) -> list[str]:
    return [o.text for o in spec.overrides]


def env(spec: LaunchSpec) -> dict[str, Any]:
    return {name: given.value for name, given in spec.env.items()}


# ------------------------------------------------------------------ world size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (f"torchrun --nproc_per_node=8 {RUN}", 8),
        (f"torchrun --nproc-per-node 4 --nnodes 2 {RUN}", 8),
        (f"torchrun --nnodes=1:4 --nproc_per_node=8 {RUN}", 32),
        (f"python -m torch.distributed.run --nproc_per_node=2 {RUN}", 2),
        (f"python -m torch.distributed.launch --nproc_per_node=2 {RUN}", 2),
        (f"srun -N 4 --ntasks-per-node=8 python {RUN}", 32),
        (f"srun -N4 -n16 python {RUN}", 16),
        (f"#SBATCH -N 2\n#SBATCH --ntasks-per-node 4\nsrun python {RUN}", 8),
        (f"#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8\nsrun torchrun --nproc_per_node=8 --nnodes=$SLURM_NNODES {RUN}", 16),
        (f"#SBATCH --nodes=4\nsrun --ntasks-per-node=1 torchrun --nproc_per_node=8 --nnodes=$SLURM_JOB_NUM_NODES {RUN}", 32),
        (f"N=$((2 * 4)); torchrun --nproc_per_node=$N {RUN}", 8),
        (f"GPUS_PER_NODE=${{GPUS_PER_NODE:-8}}\ntorchrun --nproc_per_node $GPUS_PER_NODE {RUN}", 8),
    ],
)  # fmt: skip
def test_the_number_of_processes(text: str, size: int) -> None:
    spec = one(text)
    assert spec.world_size == size and spec.recipe == "r_pretrain_config"


@pytest.mark.parametrize(
    "text",
    [
        f"torchrun --nproc_per_node=$(nvidia-smi -L | wc -l) {RUN}",
        f"torchrun --nproc_per_node=gpu {RUN}",
        f"torchrun --nproc_per_node=$UNSET --nnodes=2 {RUN}",
        f"srun python {RUN}",
        f"python {RUN}",
        f"#SBATCH --nodes=lots\nsrun --ntasks-per-node=2 python {RUN}",
    ],
)
def test_a_number_that_is_not_said_is_unknown(text: str) -> None:
    spec = one(text)
    assert isinstance(spec.world_size, Unknown) and spec.world_size.reason


def test_sbatch_lines_after_the_first_command_do_not_count() -> None:
    spec = one(f"#!/bin/bash\n#SBATCH -N 2\necho\n#SBATCH -N 64\nsrun --ntasks-per-node=8 python {RUN}")
    assert spec.world_size == 16


# ------------------------------------------------------------------ environment


@pytest.mark.parametrize(
    "text",
    [
        f"export NCCL_IB_DISABLE=1\ntorchrun {RUN}",
        f"NCCL_IB_DISABLE=1 torchrun {RUN}",
        f"env NCCL_IB_DISABLE=1 torchrun {RUN}",
        f"set -a; NCCL_IB_DISABLE=1; set +a\ntorchrun {RUN}",
        f"declare -x NCCL_IB_DISABLE=1\ntorchrun {RUN}",
        f"NCCL_IB_DISABLE=1\nexport NCCL_IB_DISABLE\ntorchrun {RUN}",
        f"f() {{ export NCCL_IB_DISABLE=$1; }}\nf 1\ntorchrun {RUN}",
        f"srun --export=ALL,NCCL_IB_DISABLE=1 python {RUN}",
        f"srun bash -c 'export NCCL_IB_DISABLE=1; python {RUN}'",
        f"eval 'export NCCL_IB_DISABLE=1'\ntorchrun {RUN}",
        f'export "NCCL_IB_DISABLE=1"\ntorchrun {RUN}',
        f"for v in NCCL_IB_DISABLE; do export $v=1; done\ntorchrun {RUN}",
    ],
)
def test_the_environment_of_a_launch(text: str) -> None:
    assert env(one(text))["NCCL_IB_DISABLE"] == "1"


def test_variables_that_do_not_reach_the_program() -> None:
    spec = one(f"NCCL_IB_DISABLE=1\n(export NCCL_DEBUG=INFO)\nexport A_X=1; unset A_X\ntorchrun {RUN}\nexport NCCL_P2P_DISABLE=1\n")
    assert env(spec) == {}


def test_a_sourced_file_gives_its_variables() -> None:
    spec = one(
        f"source env.sh\ntorchrun {RUN} model.seq_length=$SEQ",
        {"env.sh": "export NCCL_IB_DISABLE=1\nSEQ=512\n"},
    )
    assert env(spec) == {"NCCL_IB_DISABLE": "1"} and texts(spec) == ["model.seq_length=512"]


def test_a_sourced_file_that_is_not_there_leaves_its_variables_unknown() -> None:
    spec = one(f"source /etc/cluster.sh\ntorchrun {RUN} model.seq_length=$SEQ")
    (override,) = spec.overrides
    assert override.unknown is not None and override.text == "model.seq_length="


# ------------------------------------------------------------------ GPU types


@pytest.mark.parametrize(
    ("text", "gpu"),
    [
        ("H100", "h100"), ("nvidia-h200-141gb", "h200"), ("NVIDIA_GB200", "gb200"), ("gb300", "gb300"), ("p5.48xlarge", "h100"),
        ("a4x-highgpu-4g", "gb200"), ("Standard_ND96amsr_A100_v4", "a100"), ("a100-sxm4-80gb", "a100"), ("tesla", None),
        ("b2000", None), ("", None),
    ],
)  # fmt: skip
def test_names_of_gpus(text: str, gpu: str | None) -> None:
    assert gpu_of(text) == gpu


def test_a_slurm_gpu_type() -> None:
    assert one(f"#SBATCH --gres=gpu:h100:8\nsrun -N1 --ntasks-per-node=8 python {RUN}").gpu == "h100"


# ------------------------------------------------------------------ arguments


def test_arguments_arrive_as_the_program_gets_them() -> None:
    spec = one(
        "ARGS=(--recipe r_pretrain_config 'model.note=a b')\n"
        'ARGS+=("train.train_iters=10")\n'
        'EXTRA="model.x=1 model.y=2"\n'
        "LIST='[1,2]'\n"
        'python scripts/training/run_recipe.py "${ARGS[@]}" $EXTRA model.list=$LIST \\\n  optimizer.lr=3e-4 # end\n'
    )
    assert texts(spec) == [
        "model.note=a b",
        "train.train_iters=10",
        "model.x=1",
        "model.y=2",
        "model.list=[1,2]",
        "optimizer.lr=3e-4",
    ]
    places = [(o.span.line, o.span.column) for o in spec.overrides if o.span]
    assert places == [(1, 35), (2, 9), (3, 8), (3, 18), (5, 59), (6, 3)]


def test_an_unknown_part_of_the_command_line_is_said_to_be_there() -> None:
    spec = one(f"torchrun {RUN} model.seq_length=1 $MORE")
    assert texts(spec) == ["model.seq_length=1"] and spec.more is not None
    assert one(f"torchrun {RUN} model.seq_length=1").more is None


def test_branches_of_an_unknown_test_are_launches_of_their_own() -> None:
    found = launches(f"if [ $X = a ]; then O=model.a=1; else O=model.a=2; fi\ntorchrun {RUN} $O\n")
    assert sorted(texts(spec)[0] for spec in found) == ["model.a=1", "model.a=2"]
    assert all(spec.conditions for spec in found) and len({spec.name for spec in found}) == 2


def test_a_default_is_taken_and_named() -> None:
    spec = one(f"torchrun {RUN} model.seq_length=${{SEQ:-4096}}")
    assert texts(spec) == ["model.seq_length=4096"] and spec.assumed == {"SEQ": "4096"}


def test_a_script_is_taken_to_run_without_arguments_of_its_own() -> None:
    spec = one(f'torchrun {RUN} model.seq_length=1 "$@"')
    assert spec.more is None and spec.assumed == {"@": None}


def test_a_launch_in_a_function_that_is_called_is_seen_and_in_one_that_is_not_called_too_or_not_at_all() -> None:
    called = f"go() {{ torchrun {RUN} model.seq_length=$1; }}\ngo 5\n"
    assert texts(one(called)) == ["model.seq_length=5"]
    uncalled = f"go() {{ torchrun {RUN} model.seq_length=$1; }}\n"
    assert all(override.unknown is not None for spec in launches(uncalled) for override in spec.overrides)


@pytest.mark.parametrize(
    ("text", "launcher"),
    [
        (f"torchrun {RUN}", "unified"),
        ("python scripts/performance/run_script.py --model_family_name llama --model_recipe_name llama3_8b --num_gpus 8 --gpu h100", "performance"),
        ("torchrun pretrain_mine.py --config-file conf/x.yaml model.seq_length=1", "script"),
        ("python -m mypackage.train model.seq_length=1 train.train_iters=1", "module"),
        ("python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.megatron.use_mbridge=True", "verl"),
    ],
)  # fmt: skip
def test_who_launches(text: str, launcher: str) -> None:
    assert one(text).launcher == launcher


# ------------------------------------------------------------------ nothing, quickly


@pytest.mark.parametrize(
    "text",
    [
        "",
        "echo hello",
        "pip install megatron-bridge",
        f"# torchrun {RUN}",
        f"echo torchrun {RUN}",
        f"cat <<'E'\ntorchrun {RUN}\nE",
        f"exit 0\ntorchrun {RUN}",
        "python train.py --lr 1",
    ],
)
def test_no_launch(text: str) -> None:
    assert launches(text) == []


HOSTILE = [
    "x=$(" * 400,
    "if true; then " * 300,
    "f() { f; f; }\nf\n" + f"torchrun {RUN}",
    "while true; do A+=x; done\n" + f"torchrun {RUN} model.x=$A",
    "A=1; " + "A=$A$A$A$A;" * 60 + f"torchrun {RUN} model.x=$A",
    "for a in {1..100000}; do for b in {1..100000}; do :; done; done\n" + f"torchrun {RUN}",
    "".join(f"if [ $X{i} = a ]; then O{i}=1; fi\n" for i in range(40)) + f"torchrun {RUN}",
    "cat <<E\n" * 200,
    "source launch.sh\n" + f"torchrun {RUN}",
    "eval \"$(cat launch.sh)\"\n" * 50 + f"torchrun {RUN}",
    "echo $((2**99999999)); " + f"torchrun {RUN} model.x=$((9999999999*9999999999))",
    "\x00\x01\x02 megatron.py \xff\ufeff torchrun",
    "'" + f"torchrun {RUN}",
    "A=" + "x" * 300_000 + f"\ntorchrun {RUN}",
    "case $X in " + "a) ;; " * 3000 + f"esac\ntorchrun {RUN}",
    "A=${A:-${B:-${C:-" * 200 + f"\ntorchrun {RUN}",
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_scripts_end_soon_and_raise_nothing(number: int) -> None:
    text = HOSTILE[number]
    begin = time.process_time()
    read_script(text, "/repo/launch.sh", source_of={"launch.sh": text}.get)
    assert time.process_time() - begin < 20


def test_unrelated_scripts_are_turned_down_at_once() -> None:
    text = "#!/bin/bash\nset -e\nfor f in *.txt; do\n  python convert.py --in $f --out ${f%.txt}.json\ndone\n" * 20
    begin = time.process_time()
    assert not any(may_launch(text) for _ in range(500))
    assert time.process_time() - begin < 1
