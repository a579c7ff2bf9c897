"""A second run says the same from memory, and never says what no longer holds."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mblint.cache.codec import NotPlain, decode, encode
from mblint.cache.states import States
from mblint.cache.store import KEPT_SECONDS, MAGIC, Store
from mblint.cli.main import main
from mblint.evaluate.budget import Limits

HELPER = """
from megatron.bridge.recipes.llama import llama32_1b_pretrain_config


def started(stages):
    cfg = llama32_1b_pretrain_config()
    cfg.model.pipeline_model_parallel_size = stages
    return cfg
"""

MODEL = """
from megatron.bridge import AutoBridge
from megatron.bridge.recipes.llama import llama32_1b_pretrain_config


def started(stages):
    cfg = llama32_1b_pretrain_config()
    cfg.model = AutoBridge.from_hf_pretrained("./tiny").to_megatron_provider()
    cfg.model.pipeline_model_parallel_size = stages
    return cfg
"""

RECIPE = """
from megatron.bridge.training.config import ConfigContainer

from sizes import started


def ours_config() -> ConfigContainer:
    cfg = started(4)
    cfg.model.virtual_pipeline_model_parallel_size = 3
    return cfg
"""


@pytest.fixture
def project(empty_project: Path) -> Path:
    """Two files, for eight GPUs."""
    with (empty_project / "mblint.toml").open("a") as settings:
        settings.write("world-size = 8\n")
    (empty_project / "sizes.py").write_text(HELPER)
    (empty_project / "ours.py").write_text(RECIPE)
    return empty_project


def check(folder: Path, *options: str) -> tuple[int, str]:
    """The exit code and what a run prints, standard error included."""
    done = subprocess.run(
        [sys.executable, "-m", "mblint", "check", "--format", "concise", *options], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def entries(folder: Path) -> list[Path]:
    return sorted(path for path in (folder.parent / "cache" / "results").rglob("*") if path.is_file() and path.name != "swept")


def test_a_warm_run_says_the_same_and_follows_every_change(project: Path) -> None:
    cold = check(project)
    assert cold[0] == 1 and "MB203" in cold[1]
    kept = entries(project)
    assert kept
    stamps = [path.stat().st_mtime_ns for path in kept]
    assert check(project) == cold
    assert check(project, "--no-cache") == cold
    assert [path.stat().st_mtime_ns for path in entries(project)] == stamps, "a warm run judged again"

    (project / "sizes.py").write_text(HELPER.replace("= stages", "= 1"))  # a helper that another file imports
    assert "MB203" not in check(project)[1]
    (project / "sizes.py").write_text(HELPER)
    assert check(project) == cold

    (project / "sizes").mkdir()  # a package is found before the module of that name
    (project / "sizes" / "__init__.py").write_text(HELPER.replace("= stages", "= 1"))
    assert "MB203" not in check(project)[1]
    shutil.rmtree(project / "sizes")
    assert check(project) == cold

    assert check(project, "--ignore", "MB203")[1] != cold[1]
    settings = project / "mblint.toml"
    settings.write_text(settings.read_text() + 'ignore = ["MB203"]\n')
    assert "MB203" not in check(project)[1]


def test_a_config_of_a_model_is_an_input(project: Path) -> None:
    (project / "tiny").mkdir()
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 12, "hidden_size": 64}
    config |= {"num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 1000, "rms_norm_eps": 1e-5}
    config |= {"max_position_embeddings": 4096, "rope_theta": 10000.0, "torch_dtype": "bfloat16", "tie_word_embeddings": False}
    (project / "tiny" / "config.json").write_text(json.dumps(config))
    (project / "sizes.py").write_text(MODEL)
    _, text = check(project)  # 12 layers, 4 stages, 3 chunks
    assert "checked 2 launches" in text and "MB203" not in text
    (project / "tiny" / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 16}))
    assert "MB203" in check(project)[1]


def test_damaged_and_forged_entries_are_as_good_as_none(project: Path, tmp_path: Path) -> None:
    cold = check(project)
    for path in entries(project):
        path.write_bytes(path.read_bytes()[:-7] + b"garbage")
    assert check(project) == cold

    class Forged:
        def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
            return os.system, (f"touch {tmp_path / 'ran'}",)

    store = Store(project.parent / "cache" / "results")
    for path in entries(project):
        store.put(path.parent.name + path.name, pickle.dumps(Forged()))
    assert check(project) == cold
    assert not (tmp_path / "ran").exists()
    assert decode(pickle.dumps(Forged())) is None
    with pytest.raises(NotPlain):
        encode(Forged())


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written(project: Path) -> None:
    cache = project.parent / "cache"
    cache.mkdir()
    cache.chmod(stat.S_IRUSR | stat.S_IXUSR)
    first = check(project)
    cache.chmod(stat.S_IRWXU)
    assert first == check(project, "--no-cache")


def test_a_file_where_the_folder_should_be(project: Path) -> None:
    (project.parent / "cache").mkdir()
    (project.parent / "cache" / "results").write_text("not a folder")
    assert check(project) == check(project, "--no-cache")


def test_two_runs_at_once(project: Path) -> None:
    command = [sys.executable, "-m", "mblint", "check", "--format", "concise"]
    runs = [subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = (run.communicate()[0] for run in runs)
    assert first == second and "MB203" in first
    assert not list((project.parent / "cache" / "results").rglob(".new-*"))


def test_old_entries_go(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("ab" + "0" * 62, b"old")
    path = next(path for path in tmp_path.rglob("*") if path.is_file())
    os.utime(path, (1_000.0, 1_000.0))
    store.sweep(1_000.0 + KEPT_SECONDS - 1)
    assert store.get("ab" + "0" * 62) == b"old"
    os.utime(path, (1_000.0, 1_000.0))
    store.sweep(1_000.0 + 2 * KEPT_SECONDS)
    assert store.get("ab" + "0" * 62) is None
    assert path.parent.is_dir() and MAGIC


def test_states_are_of_content_and_never_wait(tmp_path: Path) -> None:
    file, pipe = tmp_path / "a", tmp_path / "pipe"
    file.write_text("x")
    os.mkfifo(pipe)
    paths = [str(file), str(pipe), str(tmp_path), str(tmp_path / "none")]
    before = States().record(paths)
    assert States().same(before)
    file.touch()
    assert States().same(before)
    file.write_text("y")
    assert not States().same(before)
    file.write_text("x")
    (tmp_path / "none").write_text("")
    assert not States().same(before)


def test_what_a_budget_of_time_ended_is_not_kept(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setattr(Limits, "seconds", 0.0)
    monkeypatch.setattr(Limits, "usual", 0.0)
    (project / "ours.py").write_text(
        RECIPE.replace("    return cfg", "    for number in range(9_000):\n        number += 1\n    return cfg")
    )
    main(["check", "-j", "1", "--format", "concise", "ours.py"])
    assert "seconds of computing" in capsys.readouterr().out
    assert not entries(project)
