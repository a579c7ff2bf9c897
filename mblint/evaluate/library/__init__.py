"""Libraries that are not evaluated: what is known of their functions and constants.

A table maps dotted names to functions of the evaluator. A name that is in no table gives Unknown when it is called;
code of a library that is not known to leave its arguments alone makes them unknown too.
"""

from __future__ import annotations

import sys
from typing import Any

from mblint.evaluate.library import arguments, exitstack, inspection, numbers, omegaconf, records, system, text, tools, torch
from mblint.evaluate.library.objects import dataclass_init, object_method
from mblint.evaluate.library.registry import CALLS
from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import Builtin, ClassMethod, External, FunctionValue, Property, StaticMethod

CALLS.update(torch.CALLS)
CONSTANTS: dict[str, Any] = {
    **numbers.CONSTANTS, **system.CONSTANTS, **text.CONSTANTS, **inspection.CONSTANTS, **torch.CONSTANTS,
}  # fmt: skip

ALIASES: dict[str, str] = {
    "posixpath.join": "os.path.join",
    "typing.OrderedDict": "collections.OrderedDict",
    "packaging.version.parse": "packaging.version.Version",
    "omegaconf.omegaconf.OmegaConf": "omegaconf.OmegaConf",
}

HARMLESS = frozenset(sys.stdlib_module_names) | frozenset(
    "torch transformers numpy omegaconf hydra yaml rich packaging tqdm wandb datasets tokenizers accelerate safetensors "
    "huggingface_hub einops apex transformer_engine flash_attn triton nvidia_resiliency_ext modelopt nemo_run pydantic "
    "loguru tensorboard typing_extensions diffusers peft sentencepiece psutil requests click typer attr regex PIL "
    "multistorageclient".split()
)
"""Top-level packages whose functions do not change a training config that is passed to them."""

CHANGES_ARGUMENTS = frozenset(
    "random.shuffle heapq.heappush heapq.heappop heapq.heapify heapq.heappushpop heapq.heapreplace bisect.insort "
    "bisect.insort_left bisect.insort_right operator.setitem operator.delitem operator.iadd operator.ior".split()
)
"""Library functions that change what they are given all the same."""

DECORATORS = frozenset({"functools.total_ordering", "functools.lru_cache", "functools.cache"})
"""Library functions that are evaluated when they decorate."""

SILENT = ("set_", "manual_seed", "warn", "log", "print", "init")
"""Beginnings of the names of functions that are called for their effect on the process, and return None."""


def library_attribute(machine: Machine, target: External, name: str) -> Any:
    """module.name for a library."""
    dotted = f"{target.name}.{name}"
    if dotted in CONSTANTS:
        return CONSTANTS[dotted]
    if machine.facts is not None:
        known = machine.facts.library_value(dotted)
        if known is not None:
            return known
    if dotted in CALLS:
        return External(dotted)
    submodule = machine.modules.find(dotted) if target.name.partition(".")[0] not in HARMLESS else None
    return submodule if submodule is not None else External(ALIASES.get(dotted, dotted))


def call_library(machine: Machine, function: External, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    """function(*args, **kwargs) for a library's function."""
    name = ALIASES.get(function.name, function.name)
    if machine.facts is not None:
        special = machine.facts.special_call(name)
        if special is not None:
            return special(machine, args, kwargs, site, frame)
    known = CALLS.get(name)
    if known is not None:
        return known(machine, args, kwargs, site, frame)
    top = name.partition(".")[0]
    if top not in HARMLESS or name in CHANGES_ARGUMENTS:
        from mblint.evaluate.calls import unknown_call

        return unknown_call(machine, f"{name}() is not evaluated, and may change what it is given", args, kwargs, site)
    if name.rpartition(".")[2].startswith(SILENT) or top in ("logging", "warnings", "loguru"):
        return None
    return Unknown(f"{name}() is not evaluated", site.span() if site else None)


def library_decorator(machine: Machine, decorator: External, target: Any) -> Any:
    """@decorator of a library on an evaluated function or class."""
    name = ALIASES.get(decorator.name, decorator.name)
    if name in DECORATORS:
        return CALLS[name](machine, [target], {}, None, None)
    if name in ("functools.singledispatch", "functools.singledispatchmethod"):
        return Unknown(f"a function that {name} chooses")
    if name == "dataclasses.dataclass":
        return records.apply_dataclass(machine, target, {})
    if name in ("abc.abstractproperty", "enum.property", "functools.cached_property"):
        return Property(target, cached=name.startswith("functools"))
    if name == "abc.abstractclassmethod":
        return ClassMethod(target)
    if name == "abc.abstractstaticmethod":
        return StaticMethod(target)
    return target


__all__ = [
    "Builtin", "FunctionValue", "arguments", "call_library", "dataclass_init", "exitstack", "library_attribute", "library_decorator",
    "object_method", "omegaconf", "tools",
]  # fmt: skip
