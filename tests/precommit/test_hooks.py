"""The hooks as people run them: the real pre-commit, real git repositories, installed from a clone of this repository.

Installing may use the package index; running must not, and a guard in every Python process sees to it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

RECIPE = """\
from megatron.bridge.models import GPTModelProvider
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.training.config import ConfigContainer


def tiny_config() -> ConfigContainer:
    cfg = _pretrain_common()
    cfg.model = GPTModelProvider(num_layers=8, hidden_size=1024, num_attention_heads=16, seq_length=4096)
    cfg.model.pipeline_model_parallel_size = 2
    cfg.model.cpu_offloading = True  # more room
    cfg.model.cpu_offloading_num_layers = 4
    cfg.dataset.seq_length = 4096
    cfg.train.global_batch_size = 32
    cfg.train.micro_batch_size = 1
    return cfg
"""

OFFLOADED = """\
from megatron.bridge.models import GPTModelProvider
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.training.config import ConfigContainer


def tiny_config() -> ConfigContainer:
    cfg = _pretrain_common()
    cfg.model = GPTModelProvider(num_layers=8, hidden_size=1024, num_attention_heads=16, seq_length=4096)
    cfg.model.fine_grained_activation_offloading = True
    cfg.model.offload_modules = ['attn_proj', "qkv_linear"]  # the largest
    cfg.dataset.seq_length = 4096
    cfg.train.global_batch_size = 32
    cfg.train.micro_batch_size = 1
    return cfg
"""

SCRIPT = """\
#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus-per-node=8
torchrun --nproc_per_node=8 scripts/training/run_recipe.py --recipe llama32_1b_pretrain_config \\
    model.no_such_key=3
"""

GUARD = """\
import os, sys

def refuse(event, args):
    outside = event == "socket.connect" and getattr(args[0], "family", 0) != 1 or event == "socket.getaddrinfo"
    if outside:
        with open(os.environ["NETWORK_SEEN"], "a") as seen:
            seen.write(f"{sys.argv} {event} {args[1:]}\\n")
        raise OSError("no network in this test")

sys.addaudithook(refuse)
"""

pytestmark = pytest.mark.slow


def git(folder: Path, *words: str, check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
    """Git with a fixed author and none of the user's settings."""
    settings = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always"]
    return subprocess.run(
        ["git", *settings, *words], cwd=folder, capture_output=True, text=True, check=check,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **env},
    )  # fmt: skip


def program(name: str) -> str | None:
    """A tool of this environment, else one on the path."""
    own = Path(sys.executable).parent / name
    return str(own) if own.exists() else shutil.which(name)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all workers, so that the hooks are installed once."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def hooks(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with what this checkout holds now, saved or not."""
    final = shared / "mblint-clone"
    if not final.exists():
        made = tmp_path_factory.mktemp("clone") / "mblint"
        made.mkdir()
        for name in ("mblint", "rules"):
            shutil.copytree(ROOT / name, made / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", ".pre-commit-hooks.yaml"):
            shutil.copy(ROOT / name, made)
        git(made, "init", "-q", "-b", "main")
        git(made, "add", "-A")
        git(made, "commit", "-q", "-m", "all")
        try:
            made.rename(final)
        except OSError:  # another worker was faster
            assert final.exists()
    return final


@pytest.fixture
def project(hooks: Path, shared: Path, upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Makes a repository whose commits run the named hooks; everything is installed, and the network is closed."""
    pytest.importorskip("pre_commit")
    monkeypatch.setenv("PRE_COMMIT_HOME", str(shared / "pre-commit"))
    monkeypatch.setenv("PIP_NO_COMPILE", "1")  # what is used is compiled when it is used
    for name in ("GITHUB_ACTIONS", "SKIP", "NO_COLOR", "FORCE_COLOR", "GIT_DIR", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)

    def make(*ids: str, files: dict[str, str] | None = None) -> Path:
        repo = tmp_path / "project"
        repo.mkdir()
        git(repo, "init", "-q", "-b", "main")
        rev = git(hooks, "rev-parse", "HEAD").stdout.strip()
        wanted = "".join(f"      - id: {name}\n" for name in ids)
        (repo / ".pre-commit-config.yaml").write_text(f"repos:\n  - repo: {hooks.as_uri()}\n    rev: {rev}\n    hooks:\n{wanted}")
        (repo / "mblint.toml").write_text(f'upstream = "{upstream}"\n')
        for name, text in (files or {}).items():
            (repo / name).write_text(text)
        git(repo, "add", "-A")
        git(repo, "commit", "-q", "--no-verify", "-m", "start")
        installed = subprocess.run(
            [sys.executable, "-m", "pre_commit", "install", "--install-hooks"],
            cwd=repo, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert installed.returncode == 0, installed.stdout + installed.stderr
        close_network()
        return repo

    def close_network() -> None:
        guard = tmp_path / "guard"
        guard.mkdir()
        (guard / "sitecustomize.py").write_text(GUARD)
        monkeypatch.setenv("PYTHONPATH", str(guard))
        monkeypatch.setenv("NETWORK_SEEN", str(tmp_path / "network"))
        tried = subprocess.run(
            [sys.executable, "-c", "import socket; socket.create_connection(('127.0.0.1', 9))"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "no network in this test" in tried.stderr, "the guard does not hold"
        (tmp_path / "network").unlink()

    yield make
    seen = tmp_path / "network"
    assert not seen.exists(), seen.read_text()


def commit(repo: Path, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Write files and commit them, with hooks."""
    for name, text in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)
    git(repo, "add", "-A")
    return git(repo, "commit", "-m", "change", check=False)


def subjects(repo: Path) -> list[str]:
    return git(repo, "log", "--format=%s").stdout.split()


def test_a_commit_that_breaks_a_recipe_is_stopped_with_its_place(project) -> None:  # type: ignore[no-untyped-def]
    repo = project("mblint")
    done = commit(repo, {"recipes/tiny.py": RECIPE})
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert "error[MB301 cpu-offload-with-pipeline]" in said
    assert "recipes/tiny.py:10:5" in said
    assert subjects(repo) == ["start"]


def test_hooks_are_silent_about_files_that_hold_no_recipe(project) -> None:  # type: ignore[no-untyped-def]
    repo = project("mblint", "mblint-all", "mblint-fix", "mblint-launch-scripts")
    done = commit(repo, {"README.md": "# Words\n", "notes.txt": "cfg.model.cpu_offloading = True\n"})
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).count("(no files to check)Skipped") == 4
    done = commit(
        repo,
        {
            "tool.py": "print('hello')\n",
            "old.py": "print 'hello'\n",
            "ci.yaml": "on: push\njobs: {}\n",
            "build.sh": "#!/bin/sh\nmake all\n",
        },
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert said.count("Passed") == 4, said
    assert "MB" not in said and "checked" not in said


def test_fix_repairs_the_file_and_leaves_the_rest_of_it_alone(project) -> None:  # type: ignore[no-untyped-def]
    repo = project("mblint-fix")
    done = commit(repo, {"recipes/tiny.py": OFFLOADED})
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert "files were modified by this hook" in said
    fixed = (repo / "recipes/tiny.py").read_text()
    before, after = OFFLOADED.splitlines(), fixed.splitlines()
    assert [line for line in before if line not in after] == [
        "    cfg.model.offload_modules = ['attn_proj', \"qkv_linear\"]  # the largest"
    ]
    assert [line for line in after if line not in before] == [
        '    cfg.model.offload_modules = [\'attn_proj\', "qkv_linear", "core_attn"]  # the largest'
    ]
    done = commit(repo, {})
    assert done.returncode == 0, done.stdout + done.stderr
    assert subjects(repo) == ["change", "start"]


def test_the_whole_repository_is_judged_whatever_file_changed(project) -> None:  # type: ignore[no-untyped-def]
    repo = project("mblint-all", files={"tiny.py": RECIPE})
    done = commit(repo, {"other.py": "SIZE = 3\n"})
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert "tiny.py:10:5" in said


def test_launch_scripts_are_judged_and_recipes_are_left_to_the_other_hooks(project) -> None:  # type: ignore[no-untyped-def]
    repo = project("mblint-launch-scripts")
    done = commit(repo, {"tiny.py": RECIPE})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "(no files to check)Skipped" in done.stdout + done.stderr
    done = commit(repo, {"train.sbatch": SCRIPT})
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert "train.sbatch:5" in said and "no_such_key" in said


def test_prek_runs_the_same_hooks(project, shared: Path) -> None:  # type: ignore[no-untyped-def]
    prek = program("prek")
    if prek is None:
        pytest.skip("prek is not installed")
    repo = project("mblint")
    for name, text in {"tiny.py": RECIPE, "README.md": "words\n"}.items():
        (repo / name).write_text(text)
    git(repo, "add", "-A")
    environment = {**os.environ, "PREK_HOME": str(shared / "prek")}
    unguarded = {key: value for key, value in environment.items() if key != "PYTHONPATH"}
    ready = subprocess.run([prek, "prepare-hooks"], cwd=repo, capture_output=True, text=True, env=unguarded, check=False)
    if ready.returncode:
        pytest.skip(f"prek cannot install hooks here: {(ready.stdout + ready.stderr).strip()[-200:]}")
    done = subprocess.run(
        [prek, "run", "--files", "README.md"],
        cwd=repo,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Skipped" in done.stdout
    done = subprocess.run([prek, "run"], cwd=repo, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "MB301" in done.stdout
