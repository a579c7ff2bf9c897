"""What a repository holds: recipes, launch scripts, the release it is written for, and what of mblint is there already."""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mblint.files import may_concern, python_files, walk
from mblint.launch.discover import recipe_functions
from mblint.launch.naming import gpu_of
from mblint.settings_file import find_settings

HOOKS_FILE: Final = ".pre-commit-config.yaml"
WORKFLOW_FILE: Final = ".github/workflows/mblint.yml"
_DEPENDENCIES: Final = ("pyproject.toml", "setup.cfg", "setup.py", "environment.yml", "environment.yaml", "uv.lock", "poetry.lock")
_PINNED: Final = re.compile(r"""megatron[-_]bridge(?:\[[^]\n]*\])?["']?\s*(?:===?|=)\s*["']?v?(\d+\.\d+(?:\.\d+)*)""", re.IGNORECASE)
_LOCKED: Final = re.compile(r"""name = "megatron-bridge"\nversion = "(\d+\.\d+(?:\.\d+)*)\"""")
_OURS: Final = re.compile(r"megatron[./]bridge|ConfigContainer")
MAX_BYTES: Final = 5_000_000


@dataclass(frozen=True)
class Found:
    """What there is below `root`; `folders` (relative, `.` for the root itself) hold all recipes and scripts."""

    root: Path
    recipes: dict[str, list[str]] = field(default_factory=dict)
    """File -> names of its recipes, both as they are written."""
    scripts: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    release: str | None = None
    """The megatron-bridge that the repository's own files pin, and where that stands."""
    release_from: str = ""
    gpu: str | None = None
    """The one GPU type that the recipes' names mention."""
    settings: Path | None = None
    hooks: bool = False
    """Whether the hooks' file names mblint already."""
    workflow: Path | None = None
    """A workflow that runs mblint already."""
    on_github: bool = False

    @property
    def recipe_count(self) -> int:
        return sum(len(names) for names in self.recipes.values())


def detect(root: Path) -> Found:
    """Look through a repository. Reads files, runs nothing."""
    root = root.resolve()
    recipes = dict(_recipes(root))
    scripts = list(_scripts(root))
    release, release_from = _release(root)
    gpus = Counter(gpu for names in recipes.values() for name in names if (gpu := gpu_of(name)))
    settings, _ = find_settings(root)
    return Found(
        root=root,
        recipes=recipes,
        scripts=scripts,
        folders=common_folders([*recipes, *scripts]),
        release=release,
        release_from=release_from,
        gpu=next(iter(gpus)) if len(gpus) == 1 else None,
        settings=settings,
        hooks=bool(re.search(r"^\s*-?\s*id:\s*mblint\b", _text(root / HOOKS_FILE), re.MULTILINE)),
        workflow=next((path for path in _workflows(root) if re.search(r"\bmblint\b", _text(path))), None),
        on_github=(root / ".github").is_dir() or "github.com" in _text(root / ".git" / "config"),
    )


def _text(path: Path) -> str:
    """The text of a file that may not be there."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return ""
        return path.read_bytes().decode("utf-8-sig", "replace").replace("\r\n", "\n")
    except OSError:
        return ""


def _recipes(root: Path) -> Iterator[tuple[str, list[str]]]:
    for file, _ in python_files([root], (), root):
        if not may_concern(file):
            continue
        text = _text(file)
        if not _OURS.search(text):
            continue
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        names = [node.name for node in recipe_functions(tree)]
        if names:
            yield file.relative_to(root).as_posix(), names


def _scripts(root: Path) -> Iterator[str]:
    from mblint.files import SHELL
    from mblint.launch.script import may_launch

    for file in walk([root], (), root, lambda path: path.name.endswith(SHELL)):
        text = _text(file)
        if text and may_launch(text):
            yield file.relative_to(root).as_posix()


def _workflows(root: Path) -> list[Path]:
    folder = root / ".github" / "workflows"
    return sorted([*folder.glob("*.yml"), *folder.glob("*.yaml")]) if folder.is_dir() else []


def common_folders(files: Iterable[str]) -> list[str]:
    """The fewest folders that hold all files, none of them wider than needed: one for each first part of the paths."""
    groups: dict[str, list[str]] = {}
    for file in files:
        folder = os.path.dirname(file)
        groups.setdefault(folder.split("/")[0], []).append(folder)
    if "" in groups:
        return ["."]
    return sorted(os.path.commonpath(folders) for folders in groups.values())


def _release(root: Path) -> tuple[str | None, str]:
    """The release that dependencies pin, and the file that says so. Several different ones say nothing."""
    names = [
        *_DEPENDENCIES,
        *sorted(path.name for path in root.glob("*requirements*.txt")),
        *sorted(path.name for path in root.glob("Dockerfile*")),
    ]
    found: dict[str, str] = {}
    for name in names:
        text = _text(root / name)
        for match in (*_PINNED.finditer(text), *_LOCKED.finditer(text)):
            found.setdefault(match[1], name)
    return next(iter(found.items())) if len(found) == 1 else (None, "")
