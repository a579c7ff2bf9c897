"""importlib, inspect, typing, enum: what code asks about code."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.dataclass import is_hand_written
from mblint.evaluate.library.registry import Args, Kwargs, library
from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import ClassValue, External, TrackedDict

CONSTANTS: dict[str, Any] = {"typing.TYPE_CHECKING": False}


@library("enum.auto")
def _auto(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return External("enum.auto()")


@library("typing.cast")
def _cast(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return args[1]


@library("typing.get_args")
def _get_args(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return Unknown("arguments of a type")


@library("typing.TypeVar", "typing.NewType", "typing.ParamSpec")
def _typevar(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return External("typing.Any")


@library("importlib.metadata.version")
def _metadata_version(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return machine.facts.package_version(args[0] if args else None)


@library("importlib.util.find_spec")
def _find_spec(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    if isinstance(args[0], str):
        return None if machine.facts.missing_package(args[0]) else External(f"spec of {args[0]}")
    return Unknown("a package that is not known")


@library("importlib.import_module")
def _import_module(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    if not args or not isinstance(args[0], str):
        return Unknown("a module chosen at run time")
    name = args[0]
    if name.startswith("."):
        package = args[1] if len(args) > 1 else kwargs.get("package")
        if not isinstance(package, str):
            return Unknown("a module chosen at run time")
        level = len(name) - len(name.lstrip("."))
        parts = package.split(".")
        parts = parts[: len(parts) - (level - 1)]
        name = ".".join([*parts, name.lstrip(".")])
    return machine.modules.import_name(name)


@library("inspect.signature")
def _signature(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    names = _parameters(machine, args[0])
    if names is None:
        return Unknown("a signature that is not known")
    made = machine.new_instance(None, "a signature")
    made.attrs["parameters"] = machine.born(TrackedDict({name: name for name in names}))
    return made


def _parameters(machine: Machine, value: Any) -> list[str] | None:
    """Parameter names of a function or class."""
    function = getattr(value, "function", value)
    node = getattr(function, "node", None)
    if isinstance(function, ClassValue):
        written = is_hand_written(function)
        if written is None and function.dataclass:
            return [name for name, field in function.field_map.items() if field.init]
        node = written.node if written is not None else None
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        names = [a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]
        return [name for name in names if name != "self"]
    if isinstance(function, External):
        parameters: list[str] | None = machine.facts.library_parameters(function.name)
        return parameters
    return None
