"""The package as users get it: the wheel, the console script, and how fast it starts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is built, so that a file saved meanwhile makes no difference."""
    folder = tmp_path_factory.mktemp("source")
    for name in ("mblint", "rules"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    return folder


def _build(source: Path, out: Path) -> Path:
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)],
        capture_output=True, text=True, check=False, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    return _build(source, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_the_package_and_the_rules_and_nothing_else(wheel: Path, source: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert {"mblint/py.typed", "mblint/__main__.py", "mblint/cli/check.py"} <= names
    rules = {path.relative_to(source / "rules").as_posix() for path in (source / "rules").rglob("*.yaml")}
    assert rules
    assert {f"mblint/_rules/{rule}" for rule in rules} <= names
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"mblint"}
    assert not [name for name in names if name.endswith((".pyc", ".pyo")) or "test" in name.split("/")[1:2]]
    assert "License-Expression: Apache-2.0" in metadata
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_is_the_same_bytes_when_built_again(wheel: Path, source: Path, tmp_path: Path) -> None:
    assert _build(source, tmp_path).read_bytes() == wheel.read_bytes()


def test_the_wheel_alone_finds_its_rules(wheel: Path, tmp_path: Path) -> None:
    """Unpacked as an installer does it, away from the checkout."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = "import mblint.ruleset.locate as here; print(here.__file__); print(here.rules_folder())"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    file, folder = done.stdout.splitlines()
    assert file.startswith(str(tmp_path / "site"))
    assert Path(folder) == (tmp_path / "site" / "mblint" / "_rules").resolve()
    done = subprocess.run(
        [sys.executable, "-m", "mblint", "rules"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^MB\d{3} ", done.stdout, re.MULTILINE)


def test_the_module_and_the_script_are_the_same_program() -> None:
    script = Path(sys.executable).parent / "mblint"
    if not script.exists():
        pytest.skip("mblint is not installed in this environment")
    for command in ([str(script)], [sys.executable, "-m", "mblint"]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert re.fullmatch(r"mblint \d+\.\d+\.\d+\S*\n.*megatron-bridge .*\n", done.stdout)


def test_start_up_is_at_most_five_bare_interpreters() -> None:
    def fastest(*words: str) -> float:
        best = float("inf")
        for _ in range(7):
            begin = time.perf_counter()
            subprocess.run([sys.executable, *words], capture_output=True, check=True)
            best = min(best, time.perf_counter() - begin)
        return best

    assert fastest("-m", "mblint", "--version") <= 5 * fastest("-c", "pass")


def test_the_hooks_name_commands_and_options_that_exist() -> None:
    import yaml

    from mblint.cli.main import main

    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {hook["id"] for hook in hooks} >= {"mblint", "mblint-all", "mblint-fix"}
    for hook in hooks:
        program, *words = hook["entry"].split()
        assert program == "mblint"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mblint.cli.check.run", lambda args: 0)
            assert main(words) == 0, hook["entry"]
        assert hook["require_serial"] is True


def test_the_project_names_no_index_host_and_no_foreign_path() -> None:
    words = re.compile(r"pypi\.org|pythonhosted|/work/|/root/", re.IGNORECASE)
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    found = []
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path == Path(__file__).resolve() or not path.is_file() or path.suffix in {".gz", ".png"}:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{name}: {match.group()}" for match in words.finditer(text)]
    assert found == []


def test_versions_and_dependencies_are_declared_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["dynamic"] == ["version"]
    names = {re.split(r"[<>=!~;\[ ]", line, maxsplit=1)[0] for line in project["dependencies"]}
    assert not any(name.startswith("megatron") for name in names)  # only ever an extra
    assert set(project["optional-dependencies"]) >= {"dev", "lsp", "estimator"}
