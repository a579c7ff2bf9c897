"""Reported settings that never reached what they were meant for: names, overrides, runners, scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reported.kit import Case, Check, cases, holds, line_of, recipe, script, silent

pytestmark = pytest.mark.upstream

RUNNER = "import argparse_of_the_runner\n\nargs, overrides = argparse_of_the_runner.parse_cli_args().parse_known_args()\n"
PARSER = (
    "import argparse\n\n\ndef parse_cli_args():\n    parser = argparse.ArgumentParser()\n"
    + "".join(
        f'    parser.add_argument("--{name}", type={kind})\n'
        for name, kind in (
            ("model_family_name", "str"),
            ("model_recipe_name", "str"),
            ("gpu", "str"),
            ("num_gpus", "int"),
            ("compute_dtype", "str"),
            ("max_steps", "int"),
        )
    )
    + "    return parser\n"
)
BENCHMARK = (
    "python scripts/performance/{program}.py --model_family_name llama --model_recipe_name llama3_8b \\\n"
    "  --gpu gb300 --num_gpus 8 --compute_dtype bf16 \\\n  {option} 10\n"
)


def benchmark(program: str, option: str) -> dict[str, str]:
    """A checkout with the performance runner, and a launch by it."""
    return {
        "scripts/performance/run_script.py": RUNNER,
        "scripts/performance/setup_experiment.py": RUNNER,
        "scripts/performance/argument_parser.py": PARSER,
        "bench.sh": BENCHMARK.format(program=program, option=option),
    }


@cases(
    Case(
        "an option that the performance runner does not have",
        "NVIDIA-NeMo/Megatron-Bridge#2957",
        benchmark("run_script", "--max_step_count"),
        wrong="--max_step_count",
        right="--max_steps",
        rule="MB854",
        outcome="fails",
        message="no option '--max_step_count'",
    ),
    Case(
        "the same, submitted by the experiment's script",
        "NVIDIA-NeMo/Megatron-Bridge#2957",
        benchmark("setup_experiment", "--max_step_count"),
        wrong="--max_step_count",
        right="--max_steps",
        rule="MB854",
        outcome="fails",
        message="no option '--max_step_count'",
    ),
    Case(
        "arguments of the recipe at the top of a file of overrides",
        "NVIDIA-NeMo/Megatron-Bridge#1424",
        {
            "conf.yaml": "hf_path: /models/llama\nmodel:\n  recompute_granularity: null\ntrain:\n  train_iters: 20000\n",
            **script("llama3_8b_pretrain_config", "--config-file conf.yaml"),
        },
        wrong="hf_path: /models/llama\n",
        right="",
        rule="MB803",
        outcome="dead",
        gpu="gb300",
        message="ConfigContainer has no field hf_path",
    ),
    Case(
        "evaluation set where it was before",
        "NVIDIA-NeMo/Megatron-Bridge#5341",
        script("llama3_8b_pretrain_config", "train.eval_interval=500"),
        wrong="train.eval_interval=500",
        right="validation.eval_interval=500",
        rule="MB810",
        outcome="note",
        severity="advice",
        gpu="gb300",
    ),
    Case(
        "a line without its backslash",
        "AI-Hypercomputer/gpu-recipes",
        {
            "run.sh": "torchrun --nproc_per_node=8 scripts/training/run_recipe.py --recipe llama3_8b_pretrain_config \\\n"
            "  dataset.num_workers=8\n  model.recompute_granularity=full \\\n"
            "  model.recompute_method=uniform model.recompute_num_layers=1\n"
        },
        wrong="dataset.num_workers=8\n  model.recompute_granularity=full",
        right="dataset.num_workers=8 \\\n  model.recompute_granularity=full",
        rule="MB850",
        outcome="wrong",
    ),
)
def test_reported(case: Case, check: Check, upstream: Path) -> None:
    holds(case, check, upstream)


def test_options_of_a_runner_that_is_not_at_hand_stay_open(check: Check, upstream: Path) -> None:
    """Without the runner's parser an option may be one of another release: it is counted as not understood."""
    found = silent(check, {"bench.sh": BENCHMARK.format(program="run_script", option="--max_step_count")}, upstream)
    (verdict,) = found.verdicts
    assert verdict.spec is not None and [text for text, _ in verdict.spec.unread] == ["--max_step_count", "10"]


def test_a_program_that_adds_options_of_its_own_refuses_none(check: Check, upstream: Path) -> None:
    files = benchmark("run_script", "--max_step_count")
    files["scripts/performance/run_script.py"] = RUNNER.replace(
        "args, overrides = argparse_of_the_runner.parse_cli_args()",
        'parser = argparse_of_the_runner.parse_cli_args()\nparser.add_argument("--max_step_count")\nargs, overrides = parser',
    )
    silent(check, files, upstream)


def test_performance_recipes_of_releases_before_they_were_a_package(check: Check, fetched) -> None:  # type: ignore[no-untyped-def]
    """They stood beside their runner: no name of one is a mistake."""
    found = check({"bench.sh": BENCHMARK.format(program="run_script", option="--max_steps")}, fetched("0.5.1"))
    assert [(finding.rule, finding.severity) for finding in found.findings] == [("MB904", "advice")]


def test_arguments_of_the_recipe_in_a_program_that_merges_a_file(check: Check, upstream: Path) -> None:
    """NVIDIA-NeMo/Megatron-Bridge#1424 again, where the program of a project merges the file itself."""
    train = (
        "from omegaconf import OmegaConf\n\nfrom megatron.bridge.recipes.llama import llama3_8b_pretrain_config\n"
        "from megatron.bridge.training.gpt_step import forward_step\nfrom megatron.bridge.training.pretrain import pretrain\n"
        "from megatron.bridge.training.utils.omegaconf_utils import apply_overrides, create_omegaconf_dict_config\n\n\n"
        "def main():\n    cfg = llama3_8b_pretrain_config()\n    merged, excluded = create_omegaconf_dict_config(cfg)\n"
        '    merged = OmegaConf.merge(merged, OmegaConf.load("conf.yaml"))\n'
        "    apply_overrides(cfg, OmegaConf.to_container(merged, resolve=True), excluded)\n    pretrain(cfg, forward_step)\n"
    )
    good = "model:\n  recompute_granularity: null\ntrain:\n  train_iters: 20000\n"
    found = check({"conf.yaml": f"data_paths: [/data/a]\n{good}", "train.py": train}, upstream, 8, "gb300")
    (finding,) = [one for one in found.findings if one.severity == "error"]
    assert (finding.rule, line_of(finding)) == ("MB803", "data_paths: [/data/a]")
    silent(check, {"conf.yaml": good, "train.py": train}, upstream, 8, "gb300")


def test_an_expert_tensor_size_that_is_not_said(check: Check, upstream: Path) -> None:
    """NVIDIA-NeMo/Megatron-Bridge#5754: reported as a wrong grid, and harmless: the size is 1 where it is not said."""
    base = ("recipes.qwen_vl.h100.qwen3_vl", "qwen3_vl_30b_a3b_pretrain_8gpu_h100_bf16_mock_config")
    for size in ("None", "1"):
        silent(check, recipe(*base, f"model.expert_tensor_parallel_size = {size}"), upstream, 8, "gb300")
