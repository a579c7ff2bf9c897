"""dataclasses: the functions of the module."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.dataclass import field_declaration, fields_of, make_dataclass
from mblint.evaluate.library.registry import Args, Kwargs, known, library
from mblint.evaluate.machine import Machine
from mblint.evaluate.site import Site
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, Builtin, ClassValue, Field, Instance, TrackedDict


def apply_dataclass(machine: Machine, target: Any, options: dict[Any, Any]) -> Any:
    """@dataclass(**options) on a class."""
    if isinstance(target, ClassValue):
        make_dataclass(machine, target, options)
    return target


@library("dataclasses.dataclass")
def _dataclass(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    if args:
        return apply_dataclass(machine, args[0], kwargs)
    return Builtin("dataclass", lambda m, a, k, s, f: apply_dataclass(m, a[0], kwargs))


@library("dataclasses.field")
def _field(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return field_declaration(machine, kwargs, site)


def _class_of(value: Any) -> ClassValue | None:
    """The dataclass that an instance or class is, or derives from."""
    cls = value.cls if isinstance(value, Instance) else value
    if isinstance(cls, ClassValue):
        for base in cls.cached_mro:
            if isinstance(base, ClassValue) and base.dataclass:
                return base
    return None


@library("dataclasses.fields")
def _fields(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    cls = _class_of(args[0])
    if cls is not None:
        return tuple(fields_of(cls))
    unknown = known(args[:1])
    if unknown is not None and not (isinstance(args[0], Instance) and args[0].cls is not None and not args[0].cls.opaque):
        return unknown
    return machine.implicit(TypeError, "must be called with a dataclass type or instance", site, frame)


@library("dataclasses.is_dataclass")
def _is_dataclass(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    value = args[0]
    if _class_of(value) is not None:
        return True
    cls = value.cls if isinstance(value, Instance) else value
    if isinstance(cls, ClassValue):
        return Unknown(f"{cls.name} has bases that are not known") if cls.opaque else False
    unknown = known([value])
    return unknown if unknown is not None else False


@library("dataclasses.replace", "copy.replace")
def _replace(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    """A new instance from the old one's fields; a field that is not given keeps the places where it was written."""
    from mblint.evaluate.calls import call

    source = args[0]
    cls = _class_of(source)
    if not isinstance(source, Instance) or cls is None or source.cls is None:
        unknown = known([source])
        return unknown if unknown is not None else Unknown("replace() of a value that is not a dataclass")
    given: dict[Any, Any] = {}
    for field in fields_of(cls):
        if not field.init:
            if field.name in kwargs:
                text = f"field {field.name} is declared with init=False, it cannot be specified with replace()"
                machine.implicit(ValueError, text, site, frame)
        elif field.name not in kwargs and field.name in source.attrs:
            given[field.name] = source.attrs[field.name]
    sites: dict[Any, Any] = {name: source.origin[name].site for name in given if name in source.origin}
    if isinstance(site, Site) and isinstance(site.node, ast.Call):
        sites.update({k.arg: Site(site.module, k.value, site.where) for k in site.node.keywords if k.arg})
    made = call(machine, source.cls, [], {**given, **kwargs}, site, frame, sites)
    if isinstance(made, Instance):
        for name in given:
            if name not in source.origin:
                made.origin.pop(name, None)
            elif name in made.origin and made.origin[name].value is source.origin[name].value:
                made.origin[name] = source.origin[name]
    return made


@library("dataclasses.asdict")
def _asdict(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return _convert(machine, args[0], 0)


def _convert(machine: Machine, value: Any, depth: int) -> Any:
    if depth > 20:
        return Unknown("nested too deeply")
    cls = _class_of(value) if isinstance(value, Instance) else None
    if cls is not None:
        names = [field.name for field in fields_of(cls)]
        result = TrackedDict({n: _convert(machine, value.attrs[n], depth + 1) for n in names if n in value.attrs})
        result.sites.update({n: value.origin[n].site for n in result if n in value.origin})
        return machine.born(result)
    if isinstance(value, list):
        return machine.born([_convert(machine, v, depth + 1) for v in value])
    if isinstance(value, tuple):
        return tuple([_convert(machine, v, depth + 1) for v in value])
    if isinstance(value, dict):
        return machine.born(TrackedDict({k: _convert(machine, v, depth + 1) for k, v in value.items()}))
    if isinstance(value, (Instance, set)):
        from mblint.evaluate.copying import copy_value

        return copy_value(machine, value)
    return value


@library("dataclasses.astuple")
def _astuple(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    cls = _class_of(args[0])
    if cls is None or not isinstance(args[0], Instance):
        return Unknown("astuple() of a value that is not a dataclass")
    values = [_convert(machine, args[0].attrs[field.name], 1) for field in fields_of(cls) if field.name in args[0].attrs]
    if any(isinstance(value, dict) for value in values):
        return Unknown("astuple() of nested dataclasses")
    return tuple(values)


__all__ = ["MISSING", "Field", "apply_dataclass"]
