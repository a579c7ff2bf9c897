"""Libraries that are not evaluated: what is known of their functions and constants.

A table maps dotted names to functions of the evaluator. A name that is in no table gives Unknown when it is called;
code of a library that is not known to leave its arguments alone makes them unknown too.
"""

from __future__ import annotations

import sys
from typing import Any

from mblint.evaluate.contexts import MARK
from mblint.evaluate.library import standard, torch
from mblint.evaluate.library.objects import dataclass_init, object_method
from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import Builtin, ClassMethod, External, FunctionValue, Property, StaticMethod

CALLS: dict[str, Any] = {**standard.CALLS, **torch.CALLS}
CONSTANTS: dict[str, Any] = {**standard.CONSTANTS, **torch.CONSTANTS}

HARMLESS = frozenset(sys.stdlib_module_names) | frozenset(
    "torch transformers numpy omegaconf hydra yaml rich packaging tqdm wandb datasets tokenizers accelerate safetensors "
    "huggingface_hub einops apex transformer_engine flash_attn triton nvidia_resiliency_ext modelopt nemo_run pydantic "
    "loguru tensorboard typing_extensions diffusers peft sentencepiece psutil requests click typer attr regex PIL".split()
)
"""Top-level packages whose functions do not change a training config that is passed to them."""


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
    return submodule if submodule is not None else External(standard.ALIASES.get(dotted, dotted))


def call_library(machine: Machine, function: External, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    """function(*args, **kwargs) for a library's function."""
    name = standard.ALIASES.get(function.name, function.name)
    known = CALLS.get(name)
    if known is not None:
        return known(machine, args, kwargs, site, frame)
    if machine.facts is not None:
        special = machine.facts.special_call(name)
        if special is not None:
            return special(machine, args, kwargs, site, frame)
    top = name.partition(".")[0]
    if top not in HARMLESS:
        for value in [*args, *kwargs.values()]:
            machine.havoc(value, f"{name} was not found, and may change it")
    if name.rpartition(".")[2].startswith(("set_", "manual_seed", "warn", "log", "print", "init")) or top in ("logging", "warnings", "loguru"):
        return None
    return Unknown(f"{name}() is not evaluated", site.span() if site else None)


def library_decorator(machine: Machine, decorator: External, target: Any) -> Any:
    """@decorator of a library on an evaluated function or class."""
    name = standard.ALIASES.get(decorator.name, decorator.name)
    if name == "dataclasses.dataclass":
        return standard.apply_dataclass(machine, target, {})
    if name in ("functools.cached_property", "abc.abstractproperty", "enum.property"):
        return Property(target)
    if name in ("contextlib.contextmanager", "contextlib.asynccontextmanager") and isinstance(target, FunctionValue):
        target.attrs[MARK] = True
        return target
    if name in ("abc.abstractclassmethod",):
        return ClassMethod(target)
    if name in ("abc.abstractstaticmethod",):
        return StaticMethod(target)
    return target


__all__ = [
    "Builtin", "FunctionValue", "call_library", "dataclass_init", "library_attribute", "library_decorator", "object_method",
]  # fmt: skip
