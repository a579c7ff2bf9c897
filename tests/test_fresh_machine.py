"""A fresh machine: a new virtual environment, the built wheel alone, and README's commands as they stand there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RECIPE = """\
from megatron.bridge.recipes.llama.h100.llama3 import llama3_70b_pretrain_32gpu_h100_bf16_config
from megatron.bridge.training.config import ConfigContainer


def my_config() -> ConfigContainer:
    cfg = llama3_70b_pretrain_32gpu_h100_bf16_config()
    cfg.dataset.blend = (["/data/text"], [1.0])
    return cfg
"""
LOG = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.11 GiB of which 1.2 GiB is free.\n"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a new environment in which the wheel was installed."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("fresh")
    source = folder / "source"
    for name in ("mblint", "rules"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore"):
        shutil.copy(ROOT / name, source)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)],
        capture_output=True, check=True,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    done = subprocess.run([str(programs / "python"), "-m", "pip", "install", "-q", str(wheel)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"NO PACKAGE INDEX: the wheel's dependencies could not be installed: {done.stderr.strip().splitlines()[-1:]}")
    return programs


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    (folder / "my_recipe.py").write_text(RECIPE)
    (folder / "run.log").write_text(LOG)
    own_rule = re.search(r"```yaml\n(.*?)```", (ROOT / "docs" / "writing-rules.md").read_text(encoding="utf-8"), re.DOTALL)
    assert own_rule is not None
    (folder / "lint" / "rules").mkdir(parents=True)
    (folder / "lint" / "rules" / "own.yaml").write_text(own_rule[1])
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"], ["update-ref", "refs/remotes/origin/main", "HEAD"]):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=a@example.org", *words], cwd=folder, check=True, capture_output=True)
    return folder


def commands(heading: str) -> list[str]:
    """The lines of the first shell block below a heading of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    block = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert block is not None, heading
    return [line.partition("  #")[0].strip() for line in block[1].splitlines() if line.strip()]


def line_of(command: str) -> str:
    """The README's line with its comment."""
    return next(line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith(command))


@pytest.mark.slow
@pytest.mark.network
def test_the_commands_of_the_readme(environment: Path, repository: Path, upstream: Path, user_cache: str | None) -> None:
    """Each runs as it stands there, says something, and ends with a code that the README names."""
    variables = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH", "MBLINT_CACHE_DIR")}
    variables["PATH"] = f"{environment}{os.pathsep}{os.environ['PATH']}"
    if user_cache is not None:
        variables["MBLINT_CACHE_DIR"] = user_cache
    lines = commands("Use it")
    assert len(lines) >= 8
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "mblint"
        done = subprocess.run(
            [str(environment / words[0]), *words[1:]], cwd=repository, capture_output=True, text=True, check=False, env=variables,
        )  # fmt: skip
        if words[1] == "server":  # needs an extra, and says so
            assert (done.returncode, "pip install '.[lsp]'" in done.stderr, "pip install '.[lsp]'" in line_of(line)) == (2, True, True)
            continue
        assert done.returncode in (0, 1), f"{line}\n{done.stdout}{done.stderr}"
        assert "error:" not in done.stderr and "Traceback" not in done.stderr, done.stderr
        assert done.stdout.strip(), line
    assert (repository / "report.html").stat().st_size > 10_000
    for answer in ("--version", "--help", "completion bash", "init --yes --dry-run"):
        done = subprocess.run(
            [str(environment / "mblint"), *answer.split()], cwd=repository, capture_output=True, text=True, check=False, env=variables,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), answer
