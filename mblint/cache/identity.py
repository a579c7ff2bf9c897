"""What a result holds for: this tool, this release, these settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import mblint
from mblint.ruleset.locate import rules_folder
from mblint.upstream.locate import Upstream

SOURCES = (".py", ".yaml", ".json", ".gz")


@lru_cache(maxsize=8)
def tree_stamp(folder: str) -> str:
    """A digest of the names, sizes and times of the source files below a folder."""
    found: list[str] = []
    pending = [folder]
    while pending:
        current = pending.pop()
        try:
            with os.scandir(current) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name != "__pycache__":
                            pending.append(entry.path)
                    elif entry.name.endswith(SOURCES):
                        held = entry.stat()
                        found.append(f"{entry.path}\0{held.st_size}\0{held.st_mtime_ns}")
        except OSError:
            found.append(f"{current}\0unreadable")
    return sha256("\n".join(sorted(found)).encode("utf-8", "surrogateescape")).hexdigest()


def tool_stamp() -> str:
    """This version of mblint, with its rules."""
    package = str(Path(mblint.__file__).parent)
    return "|".join(
        (mblint.__version__, tree_stamp(package), tree_stamp(str(rules_folder())), f"{sys.version_info[0]}.{sys.version_info[1]}")
    )


def upstream_stamp(upstream: Upstream) -> str:
    """The source that is judged against; the snapshot is part of the tool."""
    trees = [tree_stamp(str(root / "megatron")) for root in upstream.roots]
    return "|".join((upstream.pair, *(str(root) for root in upstream.roots), *trees))


def digest(parts: Iterable[Any]) -> str:
    """One name for all of these, by their texts."""
    return sha256("\0".join(repr(part) for part in parts).encode("utf-8", "surrogateescape")).hexdigest()
