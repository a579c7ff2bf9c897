"""Constructors: instances of evaluated classes, enumeration members by value, exceptions."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.calls import call, call_function
from mblint.evaluate.classes import named_fields
from mblint.evaluate.dataclass import construct, is_hand_written
from mblint.evaluate.machine import Machine
from mblint.evaluate.objects import class_lookup, find_in_class
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    REST,
    BoundMethod,
    BuiltinClass,
    ClassMethod,
    ClassValue,
    ExceptionValue,
    External,
    FunctionValue,
    Instance,
    StaticMethod,
)


def instantiate(
    machine: Machine, cls: ClassValue, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any, sites: dict[Any, Any] | None = None
) -> Any:
    """cls(*args, **kwargs)"""
    if cls.is_enum:
        return _enum_by_value(machine, cls, args, site, frame)
    if REST in kwargs:
        return _partly_known(machine, cls, kwargs, site, frame, sites)
    special = machine.facts.special_class(cls.full_name) if machine.facts is not None else None
    if special is not None:
        return special(machine, cls, args, kwargs, site, frame)
    if cls.builtin_base is not None and named_fields(cls) is None:
        return _of_builtin(machine, cls, args, kwargs, site, frame)
    new = find_in_class(cls, "__new__")
    if isinstance(new, (FunctionValue, StaticMethod)):
        made = call(machine, new, [cls, *args], kwargs, site, frame)
        if not isinstance(made, Instance) or made.cls is not cls:
            return made
        instance = made
    else:
        instance = machine.new_instance(cls)
    initialize(machine, cls, instance, args, kwargs, site, frame, sites)
    return instance


def initialize(
    machine: Machine, cls: ClassValue, instance: Instance, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any,
    sites: dict[Any, Any] | None,
) -> None:  # fmt: skip
    """What __init__ does, written by hand or generated."""
    written = is_hand_written(cls)
    if written is not None:
        call_function(machine, written, [instance, *args], kwargs, site, frame)
        return
    for base in cls.cached_mro:
        if isinstance(base, ClassValue) and "__init__" in base.namespace:
            call(machine, BoundMethod(base.namespace["__init__"], instance), args, kwargs, site, frame)
            return
        if isinstance(base, ClassValue) and base.dataclass and base.options.get("init", True) is not False:
            construct(machine, base, instance, args, kwargs, sites, site, frame)
            return
    if named_fields(cls) is not None:
        _fill_named(machine, cls, instance, args, kwargs, site, frame)
    elif (args or kwargs) and not cls.opaque and find_in_class(cls, "__new__") is MISSING:
        machine.implicit(TypeError, f"{cls.name}() takes no arguments", site, frame)


def _of_builtin(machine: Machine, cls: ClassValue, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    """An instance of a class that derives from one of Python's own."""
    assert cls.builtin_base is not None
    instance = machine.new_instance(cls)
    if issubclass(cls.builtin_base, BaseException):
        instance.attrs["args"] = tuple(args)
        written = is_hand_written(cls)
        if written is not None:
            call_function(machine, written, [instance, *args], kwargs, site, frame)
        return instance
    if any(isinstance(base, External) and base.name.endswith("TypedDict") for base in cls.bases):
        return machine.born(dict(kwargs))
    # A str, list or dict with methods of its own: its content is not followed.
    instance.reason = f"{cls.name} is a {cls.builtin_base.__name__}"
    written = is_hand_written(cls)
    if written is not None:
        call_function(machine, written, [instance, *args], kwargs, site, frame)
    return instance


def _fill_named(
    machine: Machine, cls: ClassValue, instance: Instance, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any
) -> None:
    """The fields of a typing.NamedTuple."""
    named = named_fields(cls) or []
    given = {**dict(zip(named, args, strict=False)), **kwargs}
    if len(args) > len(named) or any(name not in named for name in kwargs):
        machine.implicit(TypeError, f"{cls.name}() takes other arguments", site, frame)
    for name in named:
        value = given.get(name, find_in_class(cls, name))
        if value is MISSING:
            machine.implicit(TypeError, f"{cls.name}() missing 1 required positional argument: '{name}'", site, frame)
            value = Unknown("an argument that is missing")
        machine.write(instance, name, value, site, frame.trace)


def _partly_known(
    machine: Machine, cls: ClassValue, kwargs: dict[Any, Any], site: Any, frame: Any, sites: dict[Any, Any] | None
) -> Instance:
    """An instance built from keyword arguments of which some are not known."""
    instance = machine.new_instance(cls)
    for base in cls.cached_mro:
        if isinstance(base, ClassValue) and base.dataclass:
            for name in base.field_map:
                instance.attrs[name] = Unknown("built from keyword arguments that are not known")
            break
    if is_hand_written(cls) is None and class_lookup(cls, "__post_init__") is None and class_lookup(cls, "__setattr__") is None:
        for name, value in kwargs.items():
            if name is not REST:
                machine.write(instance, name, value, sites.get(name, site) if sites else site, frame.trace)
    for value in kwargs.values():
        if is_hand_written(cls) is not None:
            machine.havoc(value, "given to a constructor whose arguments are not all known")
    return instance


def _enum_by_value(machine: Machine, cls: ClassValue, args: list[Any], site: Any, frame: Any) -> Any:
    from mblint.evaluate.operators import describe, equal

    if len(args) != 1:
        return Unknown("an enumeration made in an unusual way")
    if getattr(args[0], "cls", None) is cls:
        return args[0]
    for member in cls.enum_members.values():
        answer = equal(member.value, args[0])
        if type(answer) is Unknown:
            return Unknown(answer.reason)
        if answer:
            return member
    missing = find_in_class(cls, "_missing_")
    if missing is not MISSING:
        function = missing.function if isinstance(missing, ClassMethod) else missing
        found = call(machine, BoundMethod(function, cls), args, {}, site, frame)
        if found is not None:
            return found
    text = repr(args[0]) if isinstance(args[0], (str, int, float, type(None))) else describe(args[0])
    return machine.implicit(ValueError, f"{text} is not a valid {cls.qualname}", site, frame)


def make_exception(machine: Machine, value: Any, site: Any, frame: Any) -> Any:
    """What `raise value` throws."""
    if isinstance(value, BuiltinClass) and issubclass(value.type, BaseException):
        return ExceptionValue(value.type, ())
    if isinstance(value, ClassValue):
        return instantiate(machine, value, [], {}, site, frame)
    if isinstance(value, (ExceptionValue, Instance)):
        return value
    if value is None or isinstance(value, (int, float, str, list, dict, tuple)):
        return ExceptionValue(TypeError, ("exceptions must derive from BaseException",))
    return ExceptionValue(Exception, ("an exception that is not known",))
