"""The same bytes, whatever does not matter: processes, hash seeds, the order of paths, the cache, the version of Python."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

RECIPE = """from megatron.bridge.recipes.llama.llama3 import llama3_8b_pretrain_config, llama3_70b_pretrain_config


def r{number}_config(flag, size={size}):
    cfg = llama3_{model}_pretrain_config()
    cfg.model.tensor_model_parallel_size = {tp}
    cfg.model.pipeline_model_parallel_size = {pp}
    cfg.model.recompute_modules = {{"mlp", "core_attn", "moe", "layernorm"}}
    cfg.dataset.path_to_cache = str({{"a", "b", "c"}})
    if flag:
        cfg.model.context_parallel_size = 3
    for name in {{"x", "y", "z"}}:
        setattr(cfg.model, name + "_unknown", size)
    cfg.logger.log_dir = f"{{sorted({{'q', 'p'}})}}"
    return cfg


def other{number}_config():
    cfg = r{number}_config(False)
    cfg.train.global_batch_size = {batch}
    cfg.model.sequnce_parallel = True
    return cfg
"""
YAML = "# mblint: recipe=llama3_8b_pretrain_config\nmodel:\n  seq_length: {number}\n  hidden_sise: 3\ntrain:\n  global_batch_size: ${{model.seq_length}}\n"
SCRIPT = (
    "export NCCL_IB_TIMEOUT={number}\nfor tp in 1 3; do\n  torchrun --nproc_per_node=8 scripts/training/run_recipe.py "
    "--recipe llama3_8b_pretrain_config model.tensor_model_parallel_size=$tp\ndone\n"
)
FORMATS = ("full", "json", "sarif", "gitlab", "junit", "markdown")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty launches with findings, conditions, unknown values and sets."""
    folder = tmp_path_factory.mktemp("project")
    (folder / ".git").mkdir()
    (folder / "mblint.toml").write_text('exclude = ["none/*"]\n')
    random.seed(7)
    for number in range(8):
        values = {
            "number": number,
            "size": number,
            "model": ("8b", "70b")[number % 2],
            "tp": number + 1,
            "pp": (1, 2, 3)[number % 3],
            "batch": 100 + number,
        }
        (folder / f"r{number}.py").write_text(RECIPE.format(**values))
    for number in range(3):
        (folder / f"o{number}.yaml").write_text(YAML.format(number=number + 5))
        (folder / f"s{number}.sh").write_text(SCRIPT.format(number=number))
    (folder / "broken_config.py").write_text("def broken_config(:\n")
    return folder


def output(
    project: Path, folder: Path, words: Sequence[str] = ("-j1",), paths: Sequence[str] = (".",), python: str = sys.executable, cache: Path | None = None,
    **env: str,
) -> dict[str, bytes]:  # fmt: skip
    """Standard output and every report of a run."""
    folder.mkdir(exist_ok=True)
    options = [word for name in FORMATS for word in ("--output", f"{name}={folder / name}")]
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    done = subprocess.run(
        [python, "-m", "mblint", "check", "--upstream", "none", "--format", "concise", *options, *words, *paths],
        cwd=project, capture_output=True, check=False, env={**kept, "MBLINT_CACHE_DIR": str(cache or folder / "cache"), **env},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, b""), done.stderr[-2000:]
    return {"out": done.stdout, **{name: (folder / name).read_bytes() for name in FORMATS}}


@pytest.fixture(scope="module")
def expected(project: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one process with an empty cache and the hash seed 0 prints."""
    found = output(project, tmp_path_factory.mktemp("expected"), PYTHONHASHSEED="0")
    assert found["out"].count(b"\n") > 40
    return found


@pytest.mark.parametrize("seed", ["1", "4242"])
def test_hash_seeds(project: Path, expected: dict[str, bytes], tmp_path: Path, seed: str) -> None:
    assert output(project, tmp_path / "run", PYTHONHASHSEED=seed) == expected


@pytest.mark.parametrize("jobs", ["2", "5"])
def test_processes(project: Path, expected: dict[str, bytes], tmp_path: Path, jobs: str) -> None:
    assert output(project, tmp_path / "run", ["-j", jobs]) == expected


def test_a_warm_cache(project: Path, expected: dict[str, bytes], tmp_path: Path) -> None:
    for _ in range(3):
        assert output(project, tmp_path / "run", cache=tmp_path / "cache") == expected


def test_a_damaged_cache(project: Path, expected: dict[str, bytes], tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    output(project, tmp_path / "run", cache=cache)
    for number, path in enumerate(sorted(path for path in cache.rglob("*") if path.is_file())):
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2] if number % 2 else data[::-1])
    assert output(project, tmp_path / "run", cache=cache) == expected


def test_the_order_of_paths(project: Path, expected: dict[str, bytes], tmp_path: Path) -> None:
    """Named in any order, files give the same findings in the same places."""
    names = sorted(path.name for path in project.iterdir() if path.suffix in (".py", ".yaml", ".sh"))
    first = output(project, tmp_path / "a", paths=names)
    assert output(project, tmp_path / "b", paths=names[::-1]) == first
    shuffled = random.Random(3).sample(names, len(names))
    assert output(project, tmp_path / "c", paths=[*shuffled, *names]) == first


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_versions_of_python(project: Path, expected: dict[str, bytes], tmp_path: Path, version: str) -> None:
    """Held against the interpreters that are named: MBLINT_PYTHONS="/x/bin/python3.12 /y/bin/python3.13", with mblint in each."""
    named = [word for word in os.environ.get("MBLINT_PYTHONS", "").split() if word]
    python = next((word for word in named if shutil.which(word) and _version(word) == version), None)
    if python is None:
        pytest.skip(f"MBLINT_PYTHONS names no Python {version}")
    found = output(project, tmp_path / "run", python=python)
    assert found == expected


def _version(python: str) -> str:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=False).stdout.strip()
