"""What the texts of a release say: which attributes something reads, which values something names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache

from mblint.launch.session import Session

RECIPE_FOLDERS = frozenset({"recipes", "perf_recipes"})


def reads(session: Session, name: str) -> bool | None:
    """Whether anything in the release reads an attribute of that name; None when nobody knows."""
    if session.upstream_roots:
        return is_read(session.upstream_roots, name)
    snapshot = session.modules.snapshot
    return snapshot.reads(name) if snapshot is not None else None


def asks(session: Session, name: str) -> bool | None:
    """Whether anything in the release asks objects for an attribute of that name, which not all of them need to have
    (`getattr(dataset, "NAME", False)`); None without its source."""
    return is_asked(session.upstream_roots, name) if session.upstream_roots else None


@lru_cache(maxsize=4096)
def is_asked(roots: tuple[str, ...], name: str) -> bool:
    """Whether a `getattr` or `hasattr` in the upstream source names the attribute."""
    asked = re.compile(rf"\b(?:get|has)attr\([^\"']*[\"']{re.escape(name)}[\"']")
    return any(asked.search(text) for text in upstream_texts(roots) if name in text)


@lru_cache(maxsize=4096)
def is_read(roots: tuple[str, ...], name: str) -> bool:
    """Whether anything in the upstream source reads an attribute, or names it in a string.

    Assignments to it do not count; recipes are left out, they only set.
    """
    read = re.compile(rf"(\.{re.escape(name)}\b(?!\s*=[^=]))|([\"']{re.escape(name)}[\"'])")
    return any(read.search(text) for text in upstream_texts(roots) if name in text)


@lru_cache(maxsize=2)
def upstream_texts(roots: tuple[str, ...]) -> tuple[str, ...]:
    """Texts of all upstream modules but the recipes."""
    return tuple(_texts(roots, recipes=False))


@lru_cache(maxsize=2)
def recipe_texts(roots: tuple[str, ...]) -> tuple[str, ...]:
    """Texts of the shipped recipes."""
    return tuple(_texts(roots, recipes=True))


def _texts(roots: tuple[str, ...], recipes: bool) -> Iterator[str]:
    """Upstream's recipes, or all its other modules."""
    for root in roots:
        for folder, folders, files in os.walk(os.path.join(root, "megatron")):
            folders[:] = [name for name in folders if name != "__pycache__" and (recipes or name not in RECIPE_FOLDERS)]
            is_recipe = not RECIPE_FOLDERS.isdisjoint(os.path.relpath(folder, root).split(os.sep))
            for file in files:
                if file.endswith(".py") and is_recipe == recipes:
                    with open(os.path.join(folder, file), encoding="utf-8", errors="replace") as handle:
                        yield handle.read()
