"""Versions of packages on disk, read as text: nothing is imported or run."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable
from pathlib import Path

MAX_BYTES = 200_000

_DIST_INFO = re.compile(r"^(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)\.(?:dist|egg)-info$")


def package_version(root: Path, package: str) -> str | None:
    """Version of `megatron.<package>` (`bridge` or `core`) whose source is below `root`.

    Its own `package_info.py` is asked first, since it belongs to the very source; then the metadata that an
    installer put beside it. None when neither says it.
    """
    return _from_package_info(root / "megatron" / package / "package_info.py") or _from_metadata(root, f"megatron_{package}")


def _from_package_info(path: Path) -> str | None:
    """MAJOR, MINOR, PATCH and PRE_RELEASE, the four constants that all releases have."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    values: dict[str, int | str] = {}
    for statement in tree.body:
        if (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
            and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, (int, str))
        ):
            values[statement.targets[0].id] = statement.value.value
    numbers = [values.get(name) for name in ("MAJOR", "MINOR", "PATCH")]
    if not all(isinstance(number, int) for number in numbers):
        return None
    return ".".join(str(number) for number in numbers) + str(values.get("PRE_RELEASE", ""))


def _from_metadata(root: Path, distribution: str) -> str | None:
    return distributions([root]).get(distribution.replace("_", "-"))


def distributions(sites: Iterable[Path]) -> dict[str, str]:
    """Normalised name -> version of everything that is installed in these site-packages folders.

    Taken from the names of the metadata folders; where a name stands in several, the first folder wins.
    """
    found: dict[str, str] = {}
    for site in sites:
        try:
            names = sorted(entry.name for entry in os.scandir(site))
        except OSError:
            continue
        for name in names:
            match = _DIST_INFO.match(name)
            if match:
                found.setdefault(re.sub(r"[-_.]+", "-", match["name"]).lower(), match["version"])
    return found
