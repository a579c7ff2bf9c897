"""Records launches: which start, which fail and where, what validation changed, what upstream estimates."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import launch, launches, machine, upstream
from .encode import changes, flatten
from .recipes import named_size, size_of


def record_verdicts(loaded: upstream.Upstream, args: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """All launches that the arguments ask for, each run for real, and the recipes that cannot be built."""
    functions: dict[str, Callable[[], Any]] = {}
    failed: dict[str, str] = {}
    for package in args.package or upstream.PACKAGES:
        found, wrong = upstream.recipes(package)
        failed.update(wrong)
        functions.update(found)
    if args.launches:
        asked = iter(read_launches(args.launches))
    else:
        asked = iter(ask(functions, loaded, args.random, random.Random(args.seed), failed))
    records = []
    for number, one in enumerate(asked):
        if one["recipe"] not in functions or one["recipe"] in failed:
            continue
        try:
            records.append(record(functions[one["recipe"]], one, loaded))
        except (Exception, launch.TookTooLong) as error:  # before the launch path began, or no end in sight
            failed[json.dumps(one, sort_keys=True)] = f"{type(error).__name__}: {error}"
        if number % 250 == 249:
            print(f"{number + 1} launches", flush=True)
    return records, failed


def read_launches(path: Path) -> list[dict[str, Any]]:
    """The launches of an earlier recording, without their outcome."""
    with gzip.open(path, "rt") as stream:
        recorded = json.load(stream)
    return [{key: row[key] for key in ("recipe", "world_size", "gpu", "overrides")} for row in recorded]


def ask(
    functions: dict[str, Callable[[], Any]],
    loaded: upstream.Upstream,
    count: int,
    source: random.Random,
    failed: dict[str, str],
) -> Iterator[dict[str, Any]]:
    """Every recipe as it is, then `count` random launches spread evenly over the recipes of each package."""
    built: dict[str, Any] = {}
    sizes: dict[str, tuple[int, str]] = {}
    for name, function in functions.items():
        size, gpu = named_size(name) or (8, "h100")
        try:
            with machine.launch_on(gpu, size, loaded.folder), upstream.quiet():
                config = function()
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
            continue
        if not hasattr(config, "model"):
            continue
        if named_size(name) is None and any(map(named_size, functions)):
            continue  # a release that names sizes: the other names are aliases and bases
        built[name], sizes[name] = config, size_of(name, config)
        yield {"recipe": name, "world_size": sizes[name][0], "gpu": sizes[name][1], "overrides": {}}
    for package in upstream.PACKAGES:
        names = [name for name in built if name.startswith(f"{package}.")]
        seen: set[str] = set()
        while names and len(seen) < count:
            name = source.choice(names)
            keys = [key for key in launches.CATALOGUE if launch.can_assign(built[name], key)]
            overrides = launches.choose_overrides(keys, source)
            one = {
                "recipe": name,
                "world_size": launches.choose_world(sizes[name][0], source),
                "gpu": sizes[name][1],
                "overrides": overrides,
            }
            text = json.dumps(one, sort_keys=True)
            if text not in seen:
                seen.add(text)
                yield one


def record(function: Callable[[], Any], one: dict[str, Any], loaded: upstream.Upstream) -> dict[str, Any]:
    """Run one launch and tell what it did, in the format of the recordings."""
    head = {**{key: one[key] for key in ("recipe", "world_size", "gpu", "overrides")}, "supplied": {}}
    with machine.launch_on(one["gpu"], one["world_size"], loaded.folder), launch.time_limit(launch.SECONDS):
        with upstream.quiet():
            launch.forget_earlier_launches()
            config = function()
            for key, value in one["overrides"].items():
                launch.assign(config, key, value)
            head["supplied"] = supply(config, loaded.folder)
        before = flatten(config, loaded.folder)
        try:
            launch.update(config)
        except Exception as error:
            return {**head, **launch.failure(error, "config")}
        after = flatten(config, loaded.folder)
        try:
            with upstream.quiet():
                facts = launch.start_groups(config, one["world_size"])
        except Exception as error:
            return {**head, **launch.failure(error, "groups")}
        outcome: dict[str, Any] = {**head, "ok": True}
        if not one["overrides"]:
            outcome["changed"] = changes(before, after)
        with upstream.quiet():
            estimated = launch.estimate(config, facts)
            later = launch.later_failures(config, facts, dict(os.environ))
        if estimated is not None:
            outcome["estimate"] = estimated
        if later:
            outcome["later"] = later
        return outcome


def supply(config: Any, folder: str) -> dict[str, str]:
    """Give what any launch of a fine-tuning recipe names: the checkpoint that it starts from, an existing folder."""
    if getattr(config, "peft", None) is None or not hasattr(config.checkpoint, "pretrained_checkpoint"):
        return {}
    config.checkpoint.pretrained_checkpoint = folder
    return {"checkpoint.pretrained_checkpoint": "<existing dir>"}
