"""Launches that scripts and YAML files describe, as people name, explain and fix them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mblint.cli.main import main

RECIPE = "llama3_70b_pretrain_32gpu_h100_bf16_config"
SCRIPT = f"""#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
export CUDA_DEVICE_MAX_CONNECTIONS=8  # measured

# with our file
srun python scripts/training/run_recipe.py --recipe {RECIPE} \\
    --config-file conf/ours.yaml \\
    --surprise 3 \\
    model.cpu_offloading=True \\
    model.cpu_offloading_num_layers=20
"""
YAML = """# ours
model:
  recompute_granularity: selective  # why not
  recompute_modules: [core_attn]
train:
  train_iters: 400000
optimizer:
  finetune_lr: 0.1
"""

pytestmark = pytest.mark.upstream


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, upstream: Path) -> Path:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "ours.yaml").write_text(YAML)
    (tmp_path / "run.sh").write_text(SCRIPT)
    (tmp_path / "mblint.toml").write_text(
        f'upstream = "{upstream}"\ngpu = "h100"\n\n[[launches]]\nname = "on 64"\nrecipe = "{RECIPE}"\nworld-size = 64\n'
        f'overrides = ["train.global_batch_size=100"]\n'
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_explain_shows_the_layer_that_set_each_value(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = ["--key", "model.cpu_offloading", "--key", "train.train_iters", "--key", "env_vars.CUDA*"]
    assert main(["explain", "run.sh", *keys]) == 0
    text = capsys.readouterr().out
    assert "config by the unified runner" in text and "32 GPUs" in text
    assert "not understood: --surprise (run.sh:10)" in text
    assert "cpu_offloading = True\n      set run.sh:11  by the command line" in text
    assert "train_iters = 400000\n      set conf/ours.yaml:6  by the YAML file" in text
    assert "CUDA_DEVICE_MAX_CONNECTIONS = '8'\n      set run.sh:5" in text


def test_explain_takes_overrides_with_their_recipe_and_rows_by_name(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "conf/ours.yaml", "--recipe", RECIPE, "--key", "train.train_iters"]) == 0
    assert "set conf/ours.yaml:6" in capsys.readouterr().out
    assert main(["explain", "conf/ours.yaml"]) == 4
    assert "--recipe NAME" in capsys.readouterr().err
    assert main(["explain", "on 64", "--key", "train.global_batch_size"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("on 64 (") and "64 GPUs" in text and "global_batch_size = 100" in text
    assert main(["explain", "run.sh:3"]) == 2
    assert "no launch on line 3; there are run.sh:8" in capsys.readouterr().err


def test_findings_call_a_row_by_its_name(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", ".", "--format", "json", "-j1"])
    report = json.loads(capsys.readouterr().out)
    names = {finding["launch"] for finding in report["findings"] if finding["rule"] in ("MB701", "MB703", "MB216")}
    assert any(name.startswith("on 64 (") for name in names), names


def test_what_is_not_understood_is_counted_and_named(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", ".", "--format", "concise", "-j1"])
    assert "2 arguments of 1 launch not understood; -v says which." in capsys.readouterr().out
    main(["check", "run.sh", "--format", "concise", "-j1", "-v"])
    assert re.search(r"\d keys understood, 2 unknown: --surprise \(line 10\), 3 \(line 10\)", capsys.readouterr().out)


def test_fixes_go_where_the_launch_is_described(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", ".", "--fix", "-j1", "--exit-zero"]) == 0
    output = capsys.readouterr()
    script = (repo / "run.sh").read_text()
    assert "model.cpu_offloading=False \\\n" in script, output.out + output.err
    assert "export CUDA_DEVICE_MAX_CONNECTIONS=1  # measured\n" in script
    assert "--surprise 3" in script
    assert "MB301" not in output.out and "MB612" not in output.out
    assert (repo / "conf" / "ours.yaml").read_text().startswith("# ours\nmodel:\n")
    assert main(["check", ".", "--diff", "-j1"]) == 0, "nothing is left to fix"


def test_a_comment_that_holds_a_finding_back_holds_its_fix_back(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repo / "run.sh").write_text(SCRIPT.replace("# measured", "# mblint: ignore[MB612] measured"))
    main(["check", ".", "--fix", "-j1", "--exit-zero"])
    assert "export CUDA_DEVICE_MAX_CONNECTIONS=8" in (repo / "run.sh").read_text()


def test_the_overrides_of_a_yaml_file_are_fixed_in_it(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    yaml = repo / "conf" / "ours.yaml"
    yaml.write_text(YAML.replace("selective  # why not", "selective  # why not\n  cpu_offloading: true\n  cpu_offloading_num_layers: 20"))
    main(["check", "conf/ours.yaml", "--recipe", RECIPE, "--fix", "--unsafe-fixes", "-j1", "--exit-zero"])
    text = yaml.read_text()
    assert "  cpu_offloading: false\n" in text and "# why not" in text, text
    assert "MB301" not in capsys.readouterr().out


def test_edits_for_other_programs_are_proven_as_text(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The recipe's own variable loses against the script's export: only the edit that works is handed out."""
    from mblint.findings import TextEdit
    from mblint.fix.apply import apply_all
    from mblint.read.span import Span

    main(["check", "run.sh", "--format", "json", "-j1"])
    report = json.loads(capsys.readouterr().out)
    fixes = [fix for finding in report["findings"] for fix in finding["fixes"] if fix["edits"]]
    assert {fix["title"] for fix in fixes} >= {"Set CUDA_DEVICE_MAX_CONNECTIONS=1", "Switch CPU offloading off"}
    for fix in fixes:
        sources = {str(repo / name): (repo / name).read_text() for name in ("run.sh", "conf/ours.yaml")}
        edits = [
            TextEdit(Span(str(repo / e["path"]), e["line"], e["column"], e["end_line"], e["end_column"]), e["text"]) for e in fix["edits"]
        ]
        assert apply_all(sources, edits)


def test_a_list_of_launches_may_name_shipped_recipes_alone(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        {"id": "a", "recipe": RECIPE, "set": {"model.cpu_offloading": True}, "world_size": 32, "gpu": "h100"},
        {"id": "b", "recipe": "no_such_config"},
    ]
    (repo / "list.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    main(["check", "--launches", "list.jsonl", "--format", "json", "-j1"])
    first, second = json.loads(capsys.readouterr().out)["launches"]
    assert first["verdict"] == "fails" and "MB301" in {finding["rule"] for finding in first["findings"]}
    assert "no recipe is called no_such_config" in second["findings"][0]["message"]
