"""What is read is never run: mblint's own source has no way to, and an audit hook watches runs over hostile projects."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import mblint

from .kit import GOOD, environment, write
from .programs import BODIES, VALUES, body_module, value_module
from .texts import SHELL, YAML

PACKAGE = Path(mblint.__file__).parent
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "execfile", "input", "breakpoint"}
FORBIDDEN_MODULES = {
    "pickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "code", "codeop", "runpy", "ctypes", "cffi", "socket", "http", "ftplib",
    "smtplib", "ssl", "requests", "httpx", "aiohttp", "webbrowser", "pty", "imp", "torch", "megatron", "ruamel",
}  # fmt: skip
PROCESSES = {"subprocess", "multiprocessing", "importlib"}
EXCEPTIONS = {
    # The disk cache reads back its own records: a reader that knows the listed classes only.
    ("cache/codec.py", "pickle"),
    # Processes: git; pip as the user's own way to the package index; the interpreter of `--engine megatron-bridge`; workers.
    ("review/git.py", "subprocess"), ("upstream/fetch.py", "subprocess"), ("engine/run.py", "subprocess"), ("workers.py", "multiprocessing"),
    # What imports by name imports modules of mblint.
    ("cli/main.py", "importlib"), ("cli/completion.py", "importlib"), ("completion/words.py", "importlib"), ("facts/view.py", "importlib"),
    ("report/formats.py", "importlib"),
    # Versions of installed packages.
    ("engine/child.py", "importlib"), ("upstream/fetch.py", "importlib"),
}  # fmt: skip
"""(file, module) pairs that are looked at by hand."""


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imported(tree: ast.AST) -> list[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def test_the_source_has_no_way_to_run_what_it_reads() -> None:
    found: list[str] = []
    for path in modules():
        name = path.relative_to(PACKAGE).as_posix()
        tree = ast.parse(path.read_bytes())
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            callee = node.func
            if isinstance(callee, ast.Name) and callee.id in FORBIDDEN_CALLS and (name, callee.id) != ("cli/init_run.py", "input"):
                found.append(f"{name}:{node.lineno} calls {callee.id}")
            if isinstance(callee, ast.Attribute) and isinstance(callee.value, ast.Name):
                dotted = f"{callee.value.id}.{callee.attr}"
                if dotted in (
                    "os.system",
                    "os.popen",
                    "os.execv",
                    "os.execve",
                    "os.spawnv",
                    "os.posix_spawn",
                    "builtins.eval",
                    "builtins.exec",
                ):
                    found.append(f"{name}:{node.lineno} calls {dotted}")
                if dotted in ("yaml.unsafe_load", "yaml.full_load", "yaml.load", "yaml.load_all", "yaml.unsafe_load_all"):
                    loaders = [ast.unparse(value) for value in [*node.args[1:], *(keyword.value for keyword in node.keywords)]]
                    if not loaders or "Safe" not in loaders[0]:
                        found.append(f"{name}:{node.lineno} calls {dotted} without a safe loader")
                if dotted == "subprocess.run" and any(k.arg == "shell" for k in node.keywords):
                    found.append(f"{name}:{node.lineno} starts a shell")
    assert found == []


def test_the_source_imports_nothing_that_runs_or_connects() -> None:
    found = set()
    for path in modules():
        name = path.relative_to(PACKAGE).as_posix()
        for module in imported(ast.parse(path.read_bytes())):
            top = module.partition(".")[0]
            if top in FORBIDDEN_MODULES or (
                top in PROCESSES and not module.startswith(("importlib.resources", "importlib.metadata", "importlib.abc"))
            ):
                if not (name.startswith("server/") and top in ("socket", "importlib")):
                    found.add((name, top))
    assert found - EXCEPTIONS == set()


def watched(words: Sequence[str], folder: Path, tmp_path: Path) -> tuple[int, list[str]]:
    """Exit code and misdeeds of `mblint WORDS` in a folder."""
    report = tmp_path / "audit.json"
    cache, reports = tmp_path / "cache", tmp_path / "reports"
    reports.mkdir(exist_ok=True)
    allowed = os.pathsep.join(map(str, (folder, cache, reports)))
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("watch.py")), str(report), allowed, "--", *words],
        cwd=folder, env=environment(cache, PYTHONDONTWRITEBYTECODE="1"), capture_output=True, text=True, check=False, timeout=300,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert report.exists(), done.stderr[-2000:]
    data = json.loads(report.read_text())
    return data["code"], data["done"]


EVIL = (
    "eval", "exec", "import", "importlib", "system", "popen", "subprocess", "open", "read a secret", "path write", "path read", "list folders",
    "remove", "pickle", "socket", "request", "ctypes", "exit", "kill", "subclasses", "globals of a function", "fork", "thread", "yaml bomb",
)  # fmt: skip


def hostile_project(folder: Path) -> Path:
    """Files that would do harm if anything of them ran."""
    files: dict[str, str | bytes] = {f"v{number}.py": value_module(VALUES[name]) for number, name in enumerate(EVIL)}
    files |= {f"y{number}.yaml": YAML[name] for number, name in enumerate(("code tags", "targets", "resolvers", "defaults of itself"))}
    files |= {f"s{number}.sh": SHELL[name] for number, name in enumerate(("commands", "eval", "sources itself", "substitution, deep"))}
    files["body.py"] = body_module(BODIES["names to obey"])
    # Modules with the names of those that mblint and its libraries import late.
    trap = "open(__file__ + '.pwned', 'w')\nraise SystemExit('ran')\n"
    for name in (
        "yaml",
        "random",
        "torch",
        "libcst",
        "rich/__init__",
        "difflib",
        "megatron/__init__",
        "conftest",
        "sitecustomize",
        "setup",
    ):
        files[f"{name}.py"] = trap
    files["imports.py"] = "import yaml, torch, conftest\nfrom rich import print\nfrom megatron.x import y\n" + GOOD
    return write(folder, files)


COMMANDS = {
    "check": ["check", "--upstream", "none", "-j1", "."],
    "reports": ["check", "--upstream", "none", "-j1", "--output", "sarif=../reports/a", "--output", "html=../reports/b", "."],
    "fixes": ["check", "--upstream", "none", "-j1", "--fix", "--unsafe-fixes", "--diff", "imports.py"],
    "explain": ["explain", "--upstream", "none", "imports.py"],
    "estimate": ["estimate", "--upstream", "none", "imports.py"],
    "diff": ["diff", "--upstream", "none", "HEAD"],
    "rules": ["rules"],
    "settings": ["settings"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_run_opened_or_connected(name: str, tmp_path: Path) -> None:
    project = hostile_project(tmp_path / "project")
    if name == "diff":
        (project / ".git").rmdir()
        for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
            subprocess.run(["git", *words], cwd=project, check=True, capture_output=True)
    words = [word for word in COMMANDS[name]]
    if name == "reports":
        words[words.index("html=../reports/b")] = "markdown=../reports/b"
    code, done = watched(words, project, tmp_path)
    assert done == []
    assert not list(project.rglob("*pwned*"))
    assert code in (0, 1)


def test_the_watch_sees_what_it_looks_for(tmp_path: Path) -> None:
    """A file outside is noticed: here the settings that an option names."""
    project = write(tmp_path / "project", {})
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "mblint.toml").write_text("")
    _, done = watched(["check", "--upstream", "none", "--config", str(outside / "mblint.toml"), "."], project, tmp_path)
    assert any(str(outside) in deed for deed in done)


def test_a_module_run_does_not_import_from_the_working_folder(tmp_path: Path) -> None:
    """`python -m mblint` puts the working folder first on the path; a linter must not import what it checks."""
    project = hostile_project(tmp_path / "project")
    done = subprocess.run(
        [sys.executable, "-m", "mblint", "check", "--upstream", "none", "imports.py"],
        cwd=project, env=environment(tmp_path / "cache"), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert not list(project.rglob("*pwned*"))
