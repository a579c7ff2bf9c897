"""Primus: `modules.<name>` with framework megatron_bridge; flat `overrides` become keyword arguments of a
recipe.

Primus calls the recipe with everything it knows and drops, in silence, each keyword that is refused; sections
of the ConfigContainer that the file names are merged afterwards, keys that do not exist being dropped as
well.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from mblint.evaluate.unknown import Unknown
from mblint.launch.inherit import ReadFile, overlay, with_extends
from mblint.launch.omega import Dict, Leaf, OmegaError, copied, raw
from mblint.launch.slurm import gpu_of
from mblint.launch.spec import Given, LaunchSpec

FRAMEWORK = "megatron_bridge"

_SECTIONS = frozenset(
    {"rng", "rerun_state_machine", "train", "optimizer", "ddp", "scheduler", "dataset", "logger", "tokenizer",
     "checkpoint", "dist",
     "ft", "straggler", "nvrx_straggler", "profiling", "comm_overlap", "mixed_precision",
     "tensor_inspect", "inprocess_restart"}
)  # fmt: skip
_META = frozenset({"recipe", "flavor", "recipe_kwargs", "primus", "trainable", "stage", "framework", "config", "model"})


def modules_of(root: Dict) -> list[tuple[str, Dict]]:
    """The modules of a Primus file that train with Megatron-Bridge, by name."""
    modules = root.items.get("modules")
    if not isinstance(modules, Dict):
        return []
    found = []
    for name, module in modules.items.items():
        if isinstance(module, Dict):
            framework = module.items.get("framework")
            if isinstance(framework, Leaf) and framework.value == FRAMEWORK:
                found.append((str(name), module))
    return found


def read_primus(text: str, path: str, read_file: ReadFile, env: Mapping[str, Any]) -> list[LaunchSpec]:
    """The launches of a Primus experiment file. Raises OmegaError where the file is not valid."""
    assumed: dict[str, Any] = {}
    root, _ = with_extends(text, path, read_file, env, assumed)
    return [_launch(name, module, path, read_file, env, assumed) for name, module in modules_of(root)]


def _launch(name: str, module: Dict, path: str, read_file: ReadFile, env: Mapping[str, Any], assumed: dict[str, Any]) -> LaunchSpec:
    settings = Dict({}, module.span)
    unknown = None
    for kind, folder in (("config", "modules"), ("model", "models")):
        named = module.items.get(kind)
        if not isinstance(named, Leaf) or not isinstance(named.value, str):
            continue
        preset = _preset(named.value, folder, path, read_file, env, assumed)
        if preset is not None:
            overlay(settings, preset)
        elif kind == "model":
            unknown = Unknown(f"the preset {named.value} of Primus is not at hand", named.span)
    overrides = module.items.get("overrides")
    if isinstance(overrides, Dict):
        overlay(settings, overrides)
    recipe = _recipe(settings)
    kwargs: dict[str, Given] = {}
    layer = Dict({}, settings.span, keys=settings.keys)
    for key, item in settings.items.items():
        if key in _META or not isinstance(key, str):
            continue
        value = raw(item)
        kwargs[key] = Given(value, item.span)
        if key in _SECTIONS and isinstance(item, Dict):
            layer.items[key] = copied(item)
    flavor = settings.items.get("flavor")
    hardware = gpu_of(posixpath.basename(posixpath.dirname(path)))
    return LaunchSpec(
        name=f"{posixpath.basename(path)}:{name}",
        launcher="primus",
        recipe=recipe,
        recipe_span=flavor.span if flavor is not None else None,
        recipe_kwargs=kwargs,
        lenient_kwargs=True,
        layers=(layer,) if layer.items else (),
        gpu=hardware or Unknown("the file does not name a GPU type"),
        span=module.span,
        assumed={variable: str(value) for variable, value in assumed.items()},
        more=unknown if recipe is None else None,
        entry="primus",
    )


def _recipe(settings: Dict) -> str | None:
    module, function = settings.items.get("recipe"), settings.items.get("flavor")
    if not isinstance(module, Leaf) or not isinstance(function, Leaf):
        return None
    if not isinstance(module.value, str) or not isinstance(function.value, str):
        return None
    name = module.value
    if not name.startswith(("megatron.", "primus.")):
        name = f"megatron.bridge.recipes.{name}"
    return f"{name}:{function.value}"


def _preset(name: str, folder: str, path: str, read_file: ReadFile, env: Mapping[str, Any], assumed: dict[str, Any]) -> Dict | None:
    """A preset of Primus, looked for in the checkout that the file stands in."""
    place = posixpath.dirname(path)
    while True:
        candidate = posixpath.join(place, "primus", "configs", folder, FRAMEWORK, name)
        text = read_file(candidate)
        if text is not None:
            try:
                return with_extends(text, candidate, read_file, env, assumed)[0]
            except OmegaError:
                return None
        parent = posixpath.dirname(place)
        if parent == place:
            return None
        place = parent
