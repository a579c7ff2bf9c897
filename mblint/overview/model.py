"""What a report over a repository is made from: one entry a launch. The formats only show it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mblint.facts.memory.launch_memory import LaunchMemory
from mblint.findings import Finding
from mblint.report.model import Report
from mblint.shown import relative

SIZES: Final = ("tp", "pp", "vp", "cp", "ep", "etp", "dp")
"""Parallel sizes of an entry, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who set a key: the place relative to the root, the value that was set, and whether the launch path did it."""

    place: str
    line: int
    value: Any
    by: str
    by_launch_path: bool


@dataclass(frozen=True, slots=True)
class Value:
    """A key's value in the output encoding, or why it is not known; its origins from the first to the one that holds.

    Without origins the value is the default of its class.
    """

    key: str
    value: Any
    unknown: str | None = None
    origins: tuple[Origin, ...] = ()


@dataclass(frozen=True, slots=True)
class Shape:
    """The figures that people tell launches apart by. None is not known, "" does not exist for the launch."""

    model: str = ""
    layers: int | None = None
    hidden: int | None = None
    sizes: Mapping[str, int | None] = field(default_factory=dict)
    micro_batch: int | None = None
    global_batch: int | None = None
    sequence: int | None = None
    precision: str = ""
    recompute: str = ""
    peft: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One launch. `verdict` is `ok`, `fails` or `undecided`; `memory` None where nothing could be estimated;
    `values` empty where the recipe could not be evaluated. `file` is relative to the root."""

    name: str
    recipe: str
    file: str
    line: int
    verdict: str
    world_size: int | None
    gpu: str
    shape: Shape
    memory: LaunchMemory | None
    values: tuple[Value, ...]
    findings: tuple[Finding, ...]
    undecided: int
    condition: str | None = None


def place(path: str, root: str, libraries: Sequence[str]) -> str:
    """A file below the root, or a module's file below its library: nothing of this machine where it can be helped."""
    short = relative(path, root)
    if short != path:
        return short
    return next((relative(path, folder) for folder in libraries if path.startswith(folder + os.sep)), short)


@dataclass(frozen=True, slots=True)
class Overview:
    """All launches below some paths. `report` holds what `check` would report of them; `title` names the repository and
    `revision` its commit, where git knows one; `root` is the folder that paths are shown relative to, `libraries` the
    folders that upstream's modules are found in."""

    title: str
    revision: str
    root: str
    libraries: tuple[str, ...]
    entries: tuple[Entry, ...]
    report: Report
