"""`mblint init`: finds what is there, asks, writes what is missing, and keeps every byte of what stands in a file already."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from mblint.cli.main import main
from mblint.init.detect import common_folders, detect
from mblint.settings_file import load_settings

RECIPE = """\
from megatron.bridge.training.config import ConfigContainer


def llama_8b_pretrain_64gpu_h100_config() -> ConfigContainer:
    return ConfigContainer()


def llama_70b_pretrain_64gpu_h100_config() -> ConfigContainer:
    return ConfigContainer()
"""


@pytest.fixture
def repository(bare_environment: Path) -> Path:
    (bare_environment / "src" / "acme" / "recipes").mkdir(parents=True)
    (bare_environment / "src" / "acme" / "recipes" / "llama.py").write_text(RECIPE)
    (bare_environment / "src" / "acme" / "load.py").write_text("def load_config():\n    return {}\n")
    (bare_environment / "launch").mkdir()
    (bare_environment / "launch" / "run.sh").write_text(
        "torchrun --nproc-per-node 8 scripts/run_recipe.py --recipe llama_8b_pretrain_64gpu_h100_config\n"
    )
    return bare_environment


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_it_says_what_it_found_and_writes_all_that_fits(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / ".github").mkdir()
    (repository / "requirements.txt").write_text("torch\nmegatron-bridge[te]==0.5.1\n")
    assert main(["init", "--yes"]) == 0
    said = capsys.readouterr().out
    assert "2 recipes in 1 file\n" in said and "1 launch script, all below launch/, src/acme/recipes/\n" in said
    assert "megatron-bridge 0.5.1, by requirements.txt" in said
    assert "mblint upstream fetch 0.5.1" in said and "mblint check launch src/acme/recipes" in said
    loaded = load_settings(start=repository)
    assert (loaded.path, loaded.settings.upstream, loaded.settings.gpu) == (repository / "mblint.toml", "0.5.1", "h100")
    hooks = yaml.safe_load((repository / ".pre-commit-config.yaml").read_text())
    assert [hook["id"] for entry in hooks["repos"] for hook in entry["hooks"]] == ["mblint"]
    workflow = yaml.safe_load((repository / ".github/workflows/mblint.yml").read_text())
    step = workflow["jobs"]["mblint"]["steps"][1]
    assert step["with"]["paths"].split() == ["launch", "src/acme/recipes"] and step["with"]["upstream"] == "0.5.1"


def test_a_second_run_changes_nothing(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--yes", "--workflow"]) == 0
    before = files(repository)
    assert main(["init", "--yes", "--workflow", "--gpu", "b200"]) == 0
    assert files(repository) == before
    said = capsys.readouterr().out
    assert said.count("left as it is") == 3 and said.endswith("Nothing was written.\n")


def test_what_yes_leaves_out_is_said_with_the_way_to_it(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left_out = "workflow: not written, nothing here says that this repository is on GitHub; `mblint init --workflow` writes it\n"
    assert main(["init", "--yes", "--dry-run"]) == 0
    assert left_out in capsys.readouterr().out
    assert main(["init", "--yes"]) == 0
    assert left_out in capsys.readouterr().out and not (repository / ".github").exists()
    assert main(["init", "--workflow"]) == 0
    assert "wrote .github/workflows/mblint.yml" in capsys.readouterr().out
    for chosen in (["--yes", "--no-workflow"], ["--settings"]):
        assert main(["init", *chosen]) == 0
        assert "not written" not in capsys.readouterr().out


@pytest.mark.parametrize("remote", ["git@github.com:acme/x.git", "https://github.com/acme/x"])
def test_a_remote_on_github_is_enough_for_the_workflow(remote: str, repository: Path) -> None:
    (repository / ".git").mkdir(exist_ok=True)
    (repository / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {remote}\n')
    assert main(["init", "--yes"]) == 0
    assert (repository / ".github" / "workflows" / "mblint.yml").is_file()


def test_a_dry_run_shows_all_and_writes_nothing(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(repository)
    assert main(["init", "--yes", "--dry-run", "--workflow", "--world-size", "64"]) == 0
    said = capsys.readouterr().out
    assert files(repository) == before
    for text in ("mblint.toml (new)", "  world-size = 64", ".pre-commit-config.yaml (new)", ".github/workflows/mblint.yml (new)"):
        assert text in said


def test_only_what_is_chosen(repository: Path) -> None:
    assert main(["init", "--hook"]) == 0
    assert {".pre-commit-config.yaml"} == set(files(repository)) - {"src/acme/recipes/llama.py", "src/acme/load.py", "launch/run.sh"}
    assert main(["init", "--yes", "--no-settings", "--no-workflow"]) == 0
    assert not (repository / "mblint.toml").exists()


def test_without_a_terminal_it_does_not_ask(repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\ny\ny\n"))
    assert main(["init"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(("answers", "written"), [
    (["", "", ""], {"mblint.toml", ".pre-commit-config.yaml"}),
    (["no", "y", "y"], {".pre-commit-config.yaml", ".github/workflows/mblint.yml"}),
    (["what?", "n", "N"], set()),
])  # fmt: skip
def test_it_asks_about_each(answers: list[str], written: set[str], repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(files(repository))
    given = iter(answers)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda prompt: next(given))
    assert main(["init"]) == 0
    assert set(files(repository)) - before == written


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("old", ["", "[project]\nname = 'x'  # ours\n", "[tool.ruff]\nline-length = 100", "# only a comment\n\n\n"])
def test_the_table_is_added_to_pyproject(old: str, end: str, repository: Path) -> None:
    old = old.replace("\n", end)
    (repository / "pyproject.toml").write_bytes(old.encode())
    assert main(["init", "--settings"]) == 0
    text = (repository / "pyproject.toml").read_bytes().decode()
    assert text.startswith(old)
    assert not old or text.count("\n") == text.count(end)
    table = tomllib.loads(text)["tool"].pop("mblint")
    assert table["upstream"] == "0.6.2" and table["gpu"] == "h100"
    assert load_settings(start=repository).settings.upstream == "0.6.2"


def test_a_pyproject_that_is_no_toml_is_left_alone(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "pyproject.toml").write_text("[project\n")
    assert main(["init", "--settings"]) == 2
    assert (repository / "pyproject.toml").read_text() == "[project\n"
    assert "cannot be added to" in capsys.readouterr().err


HOOKS = {
    "indented": "# ours\nrepos:\n  - repo: local\n    hooks:\n      - {id: a, name: a, entry: a, language: system}  # keep\n",
    "flush": "repos:\n- repo: meta\n  hooks:\n  - id: identity\n\n\n# an end\n",
    "first": "repos:\n  - repo: meta\n    hooks:\n      - id: identity\n    # of this one\n\ndefault_stages: [pre-commit]\nfail_fast: true\n",
    "no line end": "default_stages: [pre-commit]\nrepos:\n    -   repo: meta\n        hooks:\n        -   id: identity",
    "block": "repos:\n  - repo: meta\n    hooks:\n      - id: identity\n        exclude: |\n          (?x)^(\n            a#b\n          )$\nci: {skip: [x]}\n",
}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("kind", sorted(HOOKS))
def test_the_hook_is_added_to_the_list_that_is_there(kind: str, end: str, repository: Path) -> None:
    old = HOOKS[kind].replace("\n", end)
    (repository / ".pre-commit-config.yaml").write_bytes(old.encode())
    assert main(["init", "--hook"]) == 0
    text = (repository / ".pre-commit-config.yaml").read_bytes().decode()
    before, after = yaml.safe_load(old), yaml.safe_load(text)
    added = after["repos"].pop()
    assert after == before
    assert added["repo"].endswith("/mblint") and added["hooks"] == [{"id": "mblint"}]
    assert text.count("\n") == text.count(end)
    assert [line for line in old.splitlines() if line not in text.splitlines()] == []
    tool = shutil.which("pre-commit", path=str(Path(sys.executable).parent))
    if tool is not None:
        done = subprocess.run([tool, "validate-config"], cwd=repository, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("old", ["repos: []\n", "repos: [{repo: meta, hooks: [{id: identity}]}]\n", "x: 1\n", "a: [\n", "- 1\n", ""])
def test_a_list_that_cannot_be_added_to_is_left_alone(old: str, repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / ".pre-commit-config.yaml").write_text(old)
    assert main(["init", "--hook"]) == 2
    assert (repository / ".pre-commit-config.yaml").read_text() == old
    assert "add the hook by hand" in capsys.readouterr().err


def test_the_release_is_that_of_the_repository(repository: Path) -> None:
    (repository / "uv.lock").write_text('[[package]]\nname = "megatron-bridge"\nversion = "0.4.2"\n')
    assert detect(repository).release == "0.4.2"
    (repository / "requirements-dev.txt").write_text("megatron_bridge == 0.5.0\n")
    assert detect(repository).release is None  # two that differ
    (repository / "src" / "megatron" / "bridge").mkdir(parents=True)
    (repository / "src" / "megatron" / "bridge" / "__init__.py").write_text("")
    assert main(["init", "--settings"]) == 0
    assert load_settings(start=repository).settings.upstream is None  # its own source is judged against


def test_a_file_that_only_sounds_like_a_recipe_is_none(repository: Path) -> None:
    assert list(detect(repository).recipes) == ["src/acme/recipes/llama.py"]
    (repository / "src" / "acme" / "broken.py").write_text("from megatron.bridge import (\n")
    assert list(detect(repository).recipes) == ["src/acme/recipes/llama.py"]


@pytest.mark.parametrize(("names", "folders"), [
    (["a/b/c.py", "a/b/d/e.py"], ["a/b"]), (["a/b/c.py", "a/x.py", "z/y/q.sh"], ["a", "z/y"]), (["x.py", "a/b.py"], ["."]), ([], []),
])  # fmt: skip
def test_folders_are_no_wider_than_needed(names: list[str], folders: list[str]) -> None:
    assert common_folders(names) == folders


def test_an_empty_folder_is_a_start_too(bare_environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--yes"]) == 0
    assert "no recipe and no launch script yet" in capsys.readouterr().out
    assert main(["init", "nowhere"]) == 2
    assert main(["init", "--yes", "--upstream", "main"]) == 2


def test_the_workflow_asks_for_no_more_than_it_needs(repository: Path) -> None:
    assert main(["init", "--workflow"]) == 0
    workflow = yaml.safe_load((repository / ".github/workflows/mblint.yml").read_text())
    assert workflow["permissions"] == {} and workflow["jobs"]["mblint"]["permissions"] == {"contents": "read"}
    zizmor = shutil.which("zizmor", path=str(Path(sys.executable).parent))
    if zizmor is None:
        pytest.skip("zizmor is not installed")
    (repository / "zizmor.yml").write_text('rules: {unpinned-uses: {config: {policies: {"*": ref-pin}}}}\n')
    done = subprocess.run(
        [zizmor, "--offline", "--no-progress", "--config", "zizmor.yml", ".github/workflows/mblint.yml"],
        cwd=repository, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
