"""What Megatron-Bridge's runners do to a config around the overrides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.launch.overrides import CliOverride
from mblint.launch.runner_flags import performance_fallback
from mblint.launch.runner_steps import Section, run_steps
from mblint.launch.script import read_script
from mblint.launch.spec import LaunchSpec
from mblint.launch.symbols import Construct
from mblint.read.hydra import parse_override
from mblint.read.span import Span

UNKNOWN = Unknown("who knows")


class Flat:
    """A config as a flat dict, and the calls that the steps make."""

    def __init__(self, **values: Any) -> None:
        self.values: dict[str, Any] = {key.replace("__", "."): value for key, value in values.items()}
        self.calls: list[tuple[str, tuple[Any, ...], str | None]] = []
        self.by: dict[str, str] = {}
        self.events: list[str] = []

    def get(self, key: str) -> Any:
        return self.values.get(key, ABSENT)

    def set(self, key: str, value: Any, span: Span | None, by: str) -> None:
        self.values[key] = value
        self.by[key] = by
        self.events.append(key)

    def call(self, function: str, arguments: Sequence[Any], into: str | None, by: str) -> None:
        self.calls.append((function.rpartition(":")[2], tuple(arguments), into))
        self.events.append(function.rpartition(":")[2])

    def override(self, cli: Sequence[CliOverride]) -> None:
        self.events.append("overrides")
        for item in cli:
            parsed = parse_override(item.text)
            self.values[parsed.key] = parsed.value if item.unknown is None else item.unknown


def launch(command: str) -> LaunchSpec:
    (spec,) = read_script(command, "/repo/launch.sh").launches
    return spec


def unified(command: str, target: Flat, benchmark: bool = False) -> Flat:
    run_steps(
        launch(f"torchrun --nproc_per_node=8 scripts/training/run_recipe.py --recipe {command}"),
        target,
        benchmark,
    )
    return target


def performance(flags: str, target: Flat) -> Flat:
    command = "python scripts/performance/run_script.py --model_family_name llama --model_recipe_name llama3_8b --gpu h100 --num_gpus 8 "
    run_steps(launch(command + flags), target)
    return target


# ------------------------------------------------------------------ unified


def test_a_plain_script_has_the_overrides_and_nothing_else() -> None:
    target = Flat(model__seq_length=1, dataset__seq_length=2)
    run_steps(launch("torchrun --nproc_per_node=8 my_train.py model.seq_length=3 train.train_iters=1"), target)
    assert target.events == ["overrides"] and target.values["model.seq_length"] == 3


def test_the_sequence_length_of_the_dataset_wins_after_the_overrides() -> None:
    target = unified("a_pretrain_config model.seq_length=4096", Flat(model__seq_length=8192, dataset__seq_length=2048))
    assert target.values["model.seq_length"] == 2048
    assert target.by["model.seq_length"] == "sequence length of the dataset"
    target = unified("a_pretrain_config", Flat(model__seq_length=8192, dataset__seq_length=UNKNOWN))
    assert isinstance(target.values["model.seq_length"], Unknown)
    target = unified("a_pretrain_config", Flat(model__seq_length=8192, dataset__sequence_length=8192))
    assert "model.seq_length" not in target.by


def test_a_dataset_is_built_before_the_overrides() -> None:
    target = unified("a_pretrain_config --dataset mock dataset.seq_length=5", Flat())
    assert target.calls == [("build_dataset_config", (Section(""), "mock"), "dataset")]
    assert target.events.index("build_dataset_config") < target.events.index("overrides")
    assert unified("a_pretrain_config", Flat()).calls == []


def test_stage_counts_that_no_longer_fit_are_dropped() -> None:
    sizes = {
        "model__num_layers": 32,
        "model__pipeline_model_parallel_size": 4,
        "model__pipeline_model_parallel_layout": None,
    }
    counts = {
        "model__num_layers_in_first_pipeline_stage": 7,
        "model__num_layers_in_last_pipeline_stage": None,
    }
    first = "model.num_layers_in_first_pipeline_stage"
    target = unified("a_pretrain_config model.pipeline_model_parallel_size=3", Flat(**sizes, **counts))
    assert target.values[first] is None and target.by[first] == "pipeline layout"
    target = unified("a_pretrain_config model.pipeline_model_parallel_size=6", Flat(**sizes, **counts))
    assert target.values[first] == 7
    target = unified("a_pretrain_config", Flat(**sizes, **counts))
    assert target.values[first] == 7
    unknown = Flat(**{**sizes, **counts, "model__num_layers": UNKNOWN})
    assert isinstance(unified("a_pretrain_config model.pipeline_model_parallel_size=3", unknown).values[first], Unknown)


def test_finetuning_under_context_parallelism() -> None:
    values = {
        "dataset__enable_offline_packing": False,
        "model__context_parallel_size": 2,
        "model__calculate_per_token_loss": False,
        "ddp__average_in_collective": True,
    }
    target = unified("a_sft_config", Flat(**values))
    assert target.values["model.calculate_per_token_loss"] is True
    assert target.values["ddp.average_in_collective"] is False
    target = unified("a_sft_config model.context_parallel_size=1", Flat(**values))
    assert target.values["ddp.average_in_collective"] is True
    target = unified("a_pretrain_config", Flat(**values))
    assert target.values["ddp.average_in_collective"] is True
    target = unified("a_sft_config", Flat(**{**values, "model__context_parallel_size": UNKNOWN}))
    assert isinstance(target.values["ddp.average_in_collective"], Unknown)


@pytest.mark.parametrize(
    ("cp", "tp", "sp", "start", "expected"),
    [(1, 1, False, 1, 1), (2, 1, False, 1, 4), (2, 4, True, 1, 8), (4, 2, True, 3, 24), (2, 4, False, None, 4), (UNKNOWN, 1, False, 1, Unknown)],
)  # fmt: skip
def test_offline_packing_pads_to_what_parallelism_needs(cp: Any, tp: int, sp: bool, start: Any, expected: Any) -> None:
    specs = "dataset.offline_packing_specs"
    target = Flat(dataset__enable_offline_packing=True, dataset__seq_length=64)
    target.values.update(
        {
            f"{specs}.packed_sequence_size": -1,
            f"{specs}.pad_seq_to_mult": start,
            "model.context_parallel_size": cp,
            "model.tensor_model_parallel_size": tp,
            "model.sequence_parallel": sp,
        }
    )
    found = unified("a_pretrain_config", target).values
    assert found[f"{specs}.packed_sequence_size"] == 64
    padded = found[f"{specs}.pad_seq_to_mult"]
    assert isinstance(padded, Unknown) if expected is Unknown else padded == expected


# ------------------------------------------------------------------ benchmark recipes of the unified runner

BENCHMARK = "llama3_8b_pretrain_8gpu_h100_bf16_config"


def sizes(**more: Any) -> Flat:
    values = {
        "model__tensor_model_parallel_size": 1,
        "model__pipeline_model_parallel_size": 1,
        "model__context_parallel_size": 1,
        "train__global_batch_size": 128,
        "optimizer__optimizer": "adam",
    }
    return Flat(**{**values, **more})


def test_the_global_batch_grows_with_data_parallel_ranks() -> None:
    command = f"torchrun --nproc_per_node=8 --nnodes=2 scripts/training/run_recipe.py --recipe {BENCHMARK}"
    target = sizes()
    run_steps(launch(command), target, benchmark=True)
    assert target.values["train.global_batch_size"] == 256
    target = sizes()
    run_steps(launch(command + " model.tensor_model_parallel_size=2"), target, benchmark=True)
    assert target.values["train.global_batch_size"] == 128
    target = sizes()
    run_steps(launch(command + " train.global_batch_size=8"), target, benchmark=True)
    assert target.values["train.global_batch_size"] == 8
    target = sizes()
    run_steps(launch(command), target, benchmark=False)
    assert target.values["train.global_batch_size"] == 128
    target = sizes()
    run_steps(launch(command.replace("--nnodes=2", "--nnodes=$N")), target, benchmark=True)
    assert isinstance(target.values["train.global_batch_size"], Unknown)


def test_bf16_benchmarks_use_the_precision_aware_optimizer() -> None:
    key = "optimizer.use_precision_aware_optimizer"
    assert unified(BENCHMARK, sizes(), benchmark=True).values[key] is True
    assert key not in unified(BENCHMARK.replace("bf16", "fp8mx"), sizes(), benchmark=True).values
    assert key not in unified(BENCHMARK, sizes(optimizer__optimizer="muon"), benchmark=True).values


# ------------------------------------------------------------------ performance


def test_options_of_the_performance_runner_win_over_overrides() -> None:
    target = performance("-tp 4 -mb 2 model.tensor_model_parallel_size=8 train.micro_batch_size=1", sizes())
    assert target.values["model.tensor_model_parallel_size"] == 4 and target.values["train.micro_batch_size"] == 2
    assert target.values["model.sequence_parallel"] is True
    assert target.by["model.tensor_model_parallel_size"] == "--tensor_model_parallel_size"


def test_the_performance_runner_replaces_the_dataset_by_mock_data() -> None:
    target = performance("", sizes(model__seq_length=512, dataset__num_workers=3))
    built = target.values["dataset"]
    assert isinstance(built, Construct) and built.target.endswith("MockGPTDatasetConfig")
    assert built.kwargs["seq_length"] == 512 and built.kwargs["num_workers"] == 3
    assert isinstance(performance("--data squad", sizes()).values["dataset"], Unknown)


def test_megatron_fsdp_sets_what_it_needs() -> None:
    target = performance("--use_megatron_fsdp true --nccl_ub true", sizes())
    assert target.values["ddp.data_parallel_sharding_strategy"] == "optim_grads_params"
    assert target.values["ddp.fsdp_manual_registration"] is True
    assert "ddp.use_megatron_fsdp" not in performance("--use_megatron_fsdp false", sizes()).values


def test_recompute_and_graph_options() -> None:
    target = performance("--recompute_modules mlp,moe_act --cuda_graph_impl local", sizes(model__cuda_graph_impl="none"))
    assert target.values["model.recompute_modules"] == ["mlp", "moe_act"]
    assert target.values["model.recompute_granularity"] == "selective"
    assert target.values["rng.te_rng_tracker"] is True
    target = performance("", sizes(model__cuda_graph_impl="none", rng__te_rng_tracker=True))
    assert target.values["rng.te_rng_tracker"] is False


def test_expert_overlap_makes_the_section_that_is_missing() -> None:
    target = performance("--moe_a2a_overlap true -tp 2", sizes(comm_overlap=None))
    built = target.values["comm_overlap"]
    assert isinstance(built, Construct) and target.values["comm_overlap.delay_wgrad_compute"] is True


def test_the_benchmark_that_is_taken_when_none_has_this_size() -> None:
    spec = launch(
        "python scripts/performance/run_script.py --model_family_name llama --model_recipe_name llama3_70b --gpu h100 --num_gpus 48 --compute_dtype bf16"
    )
    names = [f"llama3_70b_pretrain_{n}gpu_h100_bf16_config" for n in (16, 64)] + ["llama3_70b_pretrain_512gpu_b200_bf16_config"]
    assert performance_fallback(spec, names) == "llama3_70b_pretrain_64gpu_h100_bf16_config"
    assert performance_fallback(spec, names[2:]) is None
