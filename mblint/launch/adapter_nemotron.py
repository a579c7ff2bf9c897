"""Nemotron: `recipe: {_target_: ...}` beside sections of a ConfigContainer and a `run:` section of the
launcher."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from mblint.evaluate.unknown import Unknown
from mblint.launch.omega import Config, Dict, Leaf, OmegaError, copied
from mblint.launch.spec import Given, LaunchSpec

QUIET = frozenset({"run", "data", "artifacts", "hf_model_path", "load_hf_weights", "trust_remote_code", "hf_load", "recipe"})
"""Keys that the launcher reads itself; the ConfigContainer has none of them."""


def target_of(root: Dict) -> str | None:
    """The recipe that a file names under `recipe._target_` (`__target__` in older files)."""
    recipe = root.items.get("recipe")
    if not isinstance(recipe, Dict):
        return None
    target = recipe.items.get("_target_") or recipe.items.get("__target__")
    return target.value if isinstance(target, Leaf) and isinstance(target.value, str) else None


def read_nemotron(root: Dict, path: str, env: Mapping[str, Any]) -> LaunchSpec:
    """The launch of a Nemotron file: the sections stay one layer, merged over the recipe as upstream does
    it."""
    target = target_of(root)
    assert target is not None
    config = Config(root, env=env, foreign=True)
    recipe = root.items["recipe"]
    assert isinstance(recipe, Dict)
    kwargs: dict[str, Given] = {}
    for key, item in recipe.items.items():
        if key in ("_target_", "__target__") or not isinstance(key, str):
            continue
        try:
            kwargs[key] = Given(config.plain(item, ("recipe", key)), item.span)
        except OmegaError as error:
            kwargs[key] = Given(Unknown(error.reason, error.span), item.span)
    layer = copied(root)
    assert isinstance(layer, Dict)
    layer.items.pop("recipe")
    module, _, function = target.rpartition(".")
    place = recipe.items.get("_target_") or recipe.items.get("__target__")
    return LaunchSpec(
        name=posixpath.basename(path),
        launcher="nemotron",
        recipe=f"{module}:{function}" if module else function,
        recipe_span=place.span if place is not None else None,
        recipe_kwargs=kwargs,
        layers=(layer,),
        world_size=_world(config),
        span=root.span,
        quiet_keys=QUIET,
        foreign_resolvers=True,
        entry="nemotron",
    )


def _world(config: Config) -> int | Unknown:
    for nodes_key, gpus_key in (
        ("run.env.nodes", "run.env.gpus_per_node"),
        ("run.nodes", "run.gpus_per_node"),
    ):
        try:
            nodes, gpus = config.select(nodes_key), config.select(gpus_key)
        except OmegaError:
            continue
        if isinstance(gpus, Leaf) and isinstance(gpus.value, int):
            count = nodes.value if isinstance(nodes, Leaf) and isinstance(nodes.value, int) else 1
            return count * gpus.value
    return Unknown("the file does not say on how many GPUs")
