"""Which files below the given paths are looked at."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from mblint.settings import DEFAULT_EXCLUDE

_CONCERNS = re.compile(rb"ConfigContainer|megatron[./]bridge|_config\b")
SHELL = (".sh", ".bash", ".sbatch", ".slurm", ".sub")
YAML = (".yaml", ".yml")
OTHER_TEXT = (".yaml-template", ".tpl")
OTHERS = (*SHELL, *YAML, *OTHER_TEXT)
"""Names of files that are not read as Python, even when they are named."""
MAX_SNIFFED = 5_000_000


def python_files(paths: Sequence[Path], exclude: Iterable[str], root: Path) -> Iterator[tuple[Path, bool]]:
    """Python files and whether each was named itself (those are read whatever they hold), sorted within each folder."""
    named = {str(path) for path in paths if not path.is_dir()}
    for file in walk(paths, exclude, root, lambda path: path.name.endswith(".py")):
        yield file, str(file) in named


def walk(paths: Iterable[Path], exclude: Iterable[str], root: Path, wanted: Callable[[Path], bool]) -> Iterator[Path]:
    """Files below the paths whose name is wanted; files that are named themselves are taken if no other reader has them.

    Walks never follow links to folders, and skip `exclude` (globs of names or of paths below `root`).
    """
    patterns = [*DEFAULT_EXCLUDE, *exclude]
    seen: set[str] = set()
    for path in paths:
        if path.is_dir():
            for folder, folders, files in os.walk(path):
                folders[:] = sorted(name for name in folders if not _excluded(Path(folder, name), patterns, root))
                for name in sorted(files):
                    file = Path(folder, name)
                    if wanted(file) and not _excluded(file, patterns, root) and _once(file, seen):
                        yield file
        elif (wanted(path) or (wanted(Path("x.py")) and not path.name.endswith(OTHERS))) and _once(path, seen):
            yield path


def _once(path: Path, seen: set[str]) -> bool:
    real = os.path.realpath(path)
    if real in seen:
        return False
    seen.add(real)
    return True


def excluded(path: Path, exclude: Iterable[str], root: Path) -> bool:
    """Whether a walk from the root would skip the file, or a folder that it is in."""
    patterns = [*DEFAULT_EXCLUDE, *exclude]
    return any(_excluded(part, patterns, root) for part in (path, *path.parents))


def _excluded(path: Path, patterns: Sequence[str], root: Path) -> bool:
    try:
        relative = os.path.relpath(path, root).replace(os.sep, "/")
    except ValueError:  # on another drive
        relative = str(path)
    names, paths = _matchers(tuple(patterns))
    return names.match(path.name) is not None or paths.match(relative) is not None


@lru_cache(maxsize=16)
def _matchers(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What the name, and what the path below the root, of something left out matches; asked of every file there is."""
    below = [text for pattern in patterns for text in (pattern, f"{pattern}/*")]
    names, paths = ("|".join(fnmatch.translate(os.path.normcase(text)) for text in texts) for texts in (patterns, below))
    return re.compile(names or r"(?!)"), re.compile(paths or r"(?!)")


def source_files(
    paths: Sequence[Path], exclude: Iterable[str], root: Path, overlay: Mapping[str, bytes | str | None]
) -> Iterator[tuple[Path, bool]]:
    """As `python_files`, with an overlay's files put in, and those taken out that it says are not there."""
    seen: set[str] = set()
    for path, named in python_files(paths, exclude, root):
        real = os.path.realpath(path)
        seen.add(real)
        if overlay.get(real, b"") is not None:
            yield path, named
    tops = [os.path.realpath(path) for path in paths if path.is_dir()]
    for name in sorted(overlay):
        if overlay[name] is None or name in seen or not name.endswith(".py"):
            continue
        file = Path(name)
        inside = any(name.startswith(top + os.sep) for top in tops)
        if inside and not excluded(file, exclude, root):
            yield file, False


def may_concern(path: Path, overlay: Mapping[str, bytes | str | None] | None = None) -> bool:
    """A cheap look at the bytes: whether a file could hold a recipe. Unreadable files are for the reader to report."""
    held = overlay.get(os.path.realpath(path)) if overlay else None
    if held is not None:
        return _CONCERNS.search(held.encode("utf-8") if isinstance(held, str) else held) is not None
    try:
        if not path.is_file():
            return False
        if path.stat().st_size > MAX_SNIFFED:
            with path.open("rb") as handle:
                return _CONCERNS.search(handle.read(MAX_SNIFFED)) is not None
        return _CONCERNS.search(path.read_bytes()) is not None
    except OSError:
        return True


def is_launch_file(path: Path) -> bool:
    """Whether the name is that of a file that may describe launches."""
    return path.name.endswith(OTHERS)


def launch_files(
    paths: Sequence[Path], exclude: Sequence[str], root: Path, overlay: Mapping[str, bytes | str | None] | None = None
) -> Iterator[Path]:
    """Scripts and YAML files below the paths, sorted; with an overlay's put in, and without those that it says are not there."""
    seen: set[str] = set()
    for path in walk(paths, exclude, root, is_launch_file):
        if not overlay:
            yield path
            continue
        real = os.path.realpath(path)
        seen.add(real)
        if overlay.get(real, b"") is not None:
            yield path
    tops = [os.path.realpath(path) for path in paths if path.is_dir()]
    for name, text in sorted((overlay or {}).items()):
        if text is None or name in seen or not is_launch_file(Path(name)):
            continue
        if any(name.startswith(top + os.sep) for top in tops) and not excluded(Path(name), exclude, root):
            yield Path(name)
