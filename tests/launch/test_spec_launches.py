"""Launches of scripts as they are put together: what is missing, what falls back, what has to be filled in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mblint.cli.main import main
from mblint.evaluate.unknown import Unknown
from mblint.launch.script import read_script

pytestmark = pytest.mark.upstream


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


RUN = "python scripts/training/run_recipe.py --recipe"


def report(folder: Path, upstream: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    main(["check", str(folder), "--isolated", "--upstream", str(upstream), "--format", "json", "-j1"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_file_that_is_not_at_hand_leaves_the_launch_open(tmp_path: Path, upstream: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.sh").write_text(f"{RUN} llama32_1b_pretrain_config --config-file /mnt/conf.yaml model.cpu_offloading=true\n")
    (finding,) = report(tmp_path, upstream, capsys)["findings"]
    assert (finding["rule"], finding["severity"]) == ("MB904", "advice") and "/mnt/conf.yaml" in finding["message"]


def test_a_program_that_cannot_be_followed_is_no_warning(tmp_path: Path, upstream: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.sh").write_text(
        "torchrun --nproc_per_node=8 /opt/theirs/train.py model.tensor_model_parallel_size=2 train.train_iters=1\n"
    )
    (finding,) = report(tmp_path, upstream, capsys)["findings"]
    assert (finding["rule"], finding["severity"]) == ("MB904", "advice")


def test_the_scheme_of_adapters_goes_to_recipes_that_take_one(tmp_path: Path, upstream: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = "--mode lora checkpoint.pretrained_checkpoint=/data"
    lines = [f"{RUN} {name} {more}" for name in ("llama3_8b_peft_config", "qwen35_vl_27b_peft_config")]
    (tmp_path / "run.sh").write_text("\n".join(lines) + "\n")
    assert not [f for f in report(tmp_path, upstream, capsys)["findings"] if f["rule"] == "MB904"]


def test_the_performance_runner_falls_back_to_a_size_that_is_there(
    tmp_path: Path, upstream: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "--model_family_name llama --model_recipe_name llama31_405b --gpu h100 --num_gpus 64 --compute_dtype fp8_cs -gn 8 -gb 256 -mb 3"
    (tmp_path / "run.sh").write_text(f"python scripts/performance/run_script.py {words} -tp 4 -pp 8\n")
    found = report(tmp_path, upstream, capsys)
    assert "MB904" not in {f["rule"] for f in found["findings"]}
    assert "MB701" in {f["rule"] for f in found["findings"]}


def test_launches_of_one_recipe_in_one_script_have_names_of_their_own(
    tmp_path: Path, upstream: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loop = f"for size in 2 3; do {RUN} llama32_1b_pretrain_config model.tensor_model_parallel_size=$size; done\n"
    (tmp_path / "run.sh").write_text(loop)
    names = [launch["recipe"] for launch in report(tmp_path, upstream, capsys)["launches"]]
    assert names == ["run.sh: llama32_1b_pretrain_config", "run.sh: llama32_1b_pretrain_config #2"]


def test_a_lost_option_gets_its_backslash_when_asked(tmp_path: Path, upstream: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"{RUN} llama32_1b_pretrain_config \\\n  train.global_batch_size=64\n  train.train_iters=50\n")
    options = ["--isolated", "--upstream", str(upstream), "-j1", "--exit-zero"]
    main(["check", str(tmp_path), *options, "--fix"])
    assert "global_batch_size=64\n" in script.read_text(), "what an option does changes training"
    main(["check", str(tmp_path), *options, "--fix", "--unsafe-fixes", "--select", "MB850"])
    assert "  train.global_batch_size=64 \\\n  train.train_iters=50\n" in script.read_text(), capsys.readouterr()


def test_a_variable_that_a_guard_wants_is_not_its_empty_default() -> None:
    script = 'DATA=${DATA:-}\nif [[ -z "${DATA}" ]]; then\n  echo "give DATA" >&2\n  exit 1\nfi\n'
    script += f'{RUN} llama32_1b_pretrain_config "dataset.path={{train:${{DATA}}}}"\n'
    (launch,) = read_script(script, "/repo/run.sh").launches
    (override,) = launch.overrides
    assert isinstance(override.unknown, Unknown) and "wants DATA" in override.unknown.reason
    assert "DATA" not in launch.assumed


def test_showing_a_config_changes_nothing(tmp_path: Path, upstream: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "train.py"
    program.write_text(
        "from megatron.bridge.recipes.llama import llama32_1b_pretrain_config\n"
        "from megatron.bridge.training.pretrain import pretrain\n\n\n"
        "def main():\n    cfg = llama32_1b_pretrain_config()\n    cfg.print_yaml()\n    cfg.to_yaml('/tmp/x.yaml')\n"
        "    cfg.model.cpu_offloading = 3\n    pretrain(cfg, None)\n"
    )
    assert not [f for f in report(tmp_path, upstream, capsys)["findings"] if f["rule"] == "MB904"]


def test_what_works_on_a_config_is_no_recipe(tmp_path: Path, upstream: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tools.py").write_text(
        "from megatron.bridge.training.config import ConfigContainer\n\n\n"
        "def tuned(cfg: ConfigContainer, more=1) -> ConfigContainer:\n    cfg.train.train_iters = more\n    return cfg\n"
    )
    assert main(["check", str(tmp_path), "--isolated", "--upstream", str(upstream)]) == 4
    capsys.readouterr()


def test_a_script_for_several_recipes_has_no_size_of_its_own() -> None:
    cases = "\n".join(f"  {size}) RECIPE=llama3_{size}_pretrain_config ;;" for size in ("8b", "70b"))
    script = (
        f'#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=8\ncase "$1" in\n{cases}\n  *) exit 1 ;;\nesac\nsrun {RUN} $RECIPE\n'
    )
    launches = read_script(script, "/repo/run.sh").launches
    assert {launch.recipe for launch in launches} == {"llama3_8b_pretrain_config", "llama3_70b_pretrain_config"}
    assert all(isinstance(launch.world_size, Unknown) for launch in launches)
    (alone,) = read_script(script.replace("$RECIPE", "llama3_8b_pretrain_config"), "/repo/run.sh").launches
    assert alone.world_size == 8


def test_preparing_data_is_no_training() -> None:
    script = "python scripts/training/prepare_gpt_sft_packed_data.py --recipe llama32_1b_sft_config dataset.seed=1\n"
    assert read_script(script, "/repo/pack.sh").launches == []


def test_what_another_launcher_fills_in_is_not_missing(tmp_path: Path, upstream: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "grpo.yaml").write_text(
        "policy:\n  model_name: meta-llama/Meta-Llama-3-8B\n  train_global_batch_size: 64\n  train_micro_batch_size: 1\n"
        "  megatron_cfg:\n    enabled: true\n    tensor_model_parallel_size: 2\n    pipeline_model_parallel_size: 1\n"
        "    context_parallel_size: 1\n    sequence_parallel: true\ncluster: {num_nodes: 1, gpus_per_node: 8}\n"
    )
    found = report(tmp_path, upstream, capsys)["findings"]
    assert [one["rule"] for one in found if one["severity"] == "error"] == []


def test_a_program_that_wants_arguments_is_no_failure(tmp_path: Path, upstream: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").write_text(
        "import argparse\nfrom megatron.bridge.training.pretrain import pretrain\n\n\n"
        "def main():\n    parser = argparse.ArgumentParser()\n    parser.add_argument('--recipe', default=None)\n"
        "    args = parser.parse_args()\n    if args.recipe is None:\n        raise ValueError('give --recipe')\n    pretrain(args.recipe, None)\n"
    )
    (finding,) = report(tmp_path, upstream, capsys)["findings"]
    assert (finding["rule"], finding["severity"]) == ("MB904", "advice") and "started without arguments" in finding["message"]


def test_a_branch_on_a_value_that_two_branches_assign_is_dead() -> None:
    from mblint.launch.shell_findings import shell_findings

    script = 'DTYPE=${DTYPE:-fp8}\nif [[ "${DTYPE}" == "fp8" ]]; then KIND=fp8_mx; else KIND=bf16; fi\nMORE=""\n'
    script += f'if [[ $KIND == fp8 ]]; then\n  MORE+=" model.context_parallel_size=2"\nfi\n{RUN} llama32_1b_pretrain_config $MORE logger.wandb_exp_name=$KIND\n'
    assert [one.rule for one in shell_findings(read_script(script, "/repo/run.sh"))] == ["MB853"]
    live = script.replace("== fp8 ]]; then\n", "== bf16 ]]; then\n")
    assert shell_findings(read_script(live, "/repo/run.sh")) == []
    setting = f'KIND=bf16  # or fp8\n# KIND=fp8 is faster\nif [[ $KIND == fp8 ]]; then\n  MORE=" a=1"\nfi\n{RUN} llama32_1b_pretrain_config $MORE\n'
    assert shell_findings(read_script(setting, "/repo/run.sh")) == [], "somebody edits it"


def test_the_assignment_of_a_value_is_shown_beside_its_use(tmp_path: Path, upstream: Path, capsys: pytest.CaptureFixture[str]) -> None:
    word = "model.pipeline_model_parallel_size=$PP"
    (tmp_path / "run.sh").write_text(f"PP=6\n{RUN} llama32_1b_pretrain_config {word}\n")
    (finding,) = [one for one in report(tmp_path, upstream, capsys)["findings"] if one["rule"] == "MB201"]
    first, *others = finding["spans"]
    assert (first["line"], first["end_column"] - first["column"]) == (2, len(word))
    assert [(one["line"], one["column"], one["end_column"]) for one in others if one["message"] == "PP=6 is set here"] == [(1, 1, 5)]
