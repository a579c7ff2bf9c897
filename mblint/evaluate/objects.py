"""Classes and attributes: method order, descriptors, hooks, dataclass fields."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    BoundMethod,
    Builtin,
    BuiltinClass,
    ClassMethod,
    ClassValue,
    EnumMember,
    ExceptionValue,
    External,
    Field,
    FunctionValue,
    Instance,
    Partial,
    Property,
    StaticMethod,
    SuperValue,
    UnionValue,
)

TRANSPARENT = frozenset(
    {"abc.ABC", "typing.Generic", "typing.Protocol", "typing_extensions.Protocol", "typing_extensions.Generic", "object"}
)
"""Bases of libraries that add no attributes worth asking for."""

ENUM_BASES = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag"})


def method_order(cls: ClassValue) -> tuple[object, ...]:
    """The C3 linearisation; falls back to depth first where bases are not known or contradict."""

    def order_of(base: object) -> list[object]:
        if isinstance(base, ClassValue):
            return list(base.cached_mro)
        return [base]

    sequences = [order_of(base) for base in cls.bases] + [list(cls.bases)]
    result: list[object] = [cls]
    while True:
        sequences = [sequence for sequence in sequences if sequence]
        if not sequences:
            return tuple(result)
        for sequence in sequences:
            head = sequence[0]
            if not any(head in other[1:] for other in sequences):
                break
        else:
            head = sequences[0][0]
        result.append(head)
        for sequence in sequences:
            while head in sequence:
                sequence.remove(head)


def find_in_class(cls: ClassValue, name: str, after: ClassValue | None = None) -> Any:
    """An attribute along the method order (after a class, for super()); MISSING when nobody has it."""
    skipping = after is not None
    for base in cls.cached_mro:
        if skipping:
            if base is after:
                skipping = False
            continue
        if isinstance(base, ClassValue) and name in base.namespace:
            return base.namespace[name]
    return MISSING


def class_lookup(cls: ClassValue | None, name: str) -> Any:
    """A method along the method order, or None."""
    if cls is None:
        return None
    found = find_in_class(cls, name)
    return None if found is MISSING else found


class Hooks:
    """Which special methods a class has, so that the common case stays fast."""

    __slots__ = ("getattr", "post_init", "setattr")

    def __init__(self, cls: ClassValue) -> None:
        self.setattr = class_lookup(cls, "__setattr__")
        self.getattr = class_lookup(cls, "__getattr__")
        self.post_init = class_lookup(cls, "__post_init__")


def hooks_of(cls: ClassValue) -> Hooks:
    if cls.hooks is None:
        cls.hooks = Hooks(cls)
    hooks: Hooks = cls.hooks
    return hooks


def bind(machine: Machine, found: Any, receiver: Any, cls: Any, site: Any, frame: Any) -> Any:
    """The descriptor protocol for a class attribute reached through an instance or a class."""
    if type(found) is FunctionValue:
        return BoundMethod(found, receiver) if receiver is not None else found
    if type(found) is StaticMethod:
        return found.function
    if type(found) is ClassMethod:
        return BoundMethod(found.function, cls)
    if type(found) is Property:
        if receiver is None:
            return found
        from mblint.evaluate.calls import call

        return call(machine, found.getter, [receiver], {}, site, frame)
    if type(found) is Builtin and found.name.startswith("method:") and receiver is not None:
        return BoundMethod(found, receiver)
    return found


def get_attribute(machine: Machine, target: Any, name: str, site: Any, frame: Any, default: Any = MISSING) -> Any:
    """target.name. With `default`, a missing attribute gives it (getattr with three arguments)."""
    kind = type(target)
    if kind is Instance:
        attrs = target.attrs
        cls = target.cls
        if name in attrs:
            if cls is not None and cls.plan is not None and name in cls.plan:
                pass  # a property of that name wins over the instance
            else:
                return attrs[name]
        if cls is None:
            child = Unknown(target.reason or "unknown object", site.span() if site else None)
            return child
        found = find_in_class(cls, name)
        if found is not MISSING:
            if default is not MISSING and type(found) is Property:
                return _property_or(machine, found, target, cls, site, frame, default)
            return bind(machine, found, target, cls, site, frame)
        if name == "__class__":
            return cls
        if name == "__dict__":
            return attrs
        hook = hooks_of(cls).getattr
        if hook is not None:
            from mblint.evaluate.calls import call
            from mblint.evaluate.errors import Raised
            from mblint.evaluate.machine import exception_name

            if default is MISSING:
                return call(machine, BoundMethod(hook, target), [name], {}, site, frame)
            machine.handlers.append((BuiltinClass(AttributeError),))
            try:
                return call(machine, BoundMethod(hook, target), [name], {}, site, frame)
            except Raised as raised:
                if exception_name(raised.value) == "AttributeError":
                    return default
                raise
            finally:
                machine.handlers.pop()
        if cls.opaque:
            return Unknown(f"{cls.name} has bases that are not known", site.span() if site else None)
        special = _special_attribute(target, cls, name)
        if special is not MISSING:
            return special
        if default is not MISSING:
            return default
        return machine.implicit(AttributeError, f"'{cls.name}' object has no attribute '{name}'", site, frame)
    if kind is Unknown:
        return Unknown(target.reason, target.span)
    if kind is ClassValue:
        return class_attribute(machine, target, name, site, frame, default)
    if kind is External:
        from mblint.evaluate.library import library_attribute

        return library_attribute(machine, target, name)
    if kind is EnumMember:
        if name in ("name", "_name_"):
            return target.name
        if name in ("value", "_value_"):
            return target.value
        found = find_in_class(target.cls, name)
        if found is not MISSING:
            return bind(machine, found, target, target.cls, site, frame)
        if isinstance(target.value, str) and hasattr(str, name):
            from mblint.evaluate.natives import native_attribute

            return native_attribute(machine, target.value, name, site, frame, default)
        return default if default is not MISSING else Unknown(f"{target!r}.{name}")
    if kind is SuperValue:
        return super_attribute(machine, target, name, site, frame, default)
    if kind is BoundMethod:
        if name in ("__name__", "__qualname__", "__module__", "__doc__"):
            return get_attribute(machine, target.function, name, site, frame, default)
        if name == "__self__":
            return target.receiver
        if name == "__func__":
            return target.function
        if isinstance(target.function, FunctionValue) and name in target.function.attrs:
            return target.function.attrs[name]
        return default if default is not MISSING else Unknown(f"attribute {name} of a method")
    if kind is FunctionValue:
        if name == "__name__":
            return target.name
        if name == "__qualname__":
            return target.qualname
        if name == "__module__":
            return target.module.name
        if name == "__doc__":
            return ast.get_docstring(target.node) if not isinstance(target.node, ast.Lambda) else None
        if name in target.attrs:
            return target.attrs[name]
        if name == "cache_clear":
            return Builtin("cache_clear", lambda *_: None)
        if name == "__wrapped__":
            return default if default is not MISSING else Unknown("__wrapped__")
        return default if default is not MISSING else machine.implicit(
            AttributeError, f"'function' object has no attribute '{name}'", site, frame
        )  # fmt: skip
    if kind is Partial:
        if name == "func":
            return target.function
        if name == "args":
            return target.args
        if name == "keywords":
            return dict(target.kwargs)
        return default if default is not MISSING else Unknown(f"attribute {name} of a partial")
    if kind is Field:
        if name == "name":
            return target.name
        if name == "default":
            return target.default if target.default is not MISSING else External("dataclasses.MISSING")
        if name == "default_factory":
            return target.factory if target.factory is not MISSING else External("dataclasses.MISSING")
        if name == "init":
            return target.init
        if name == "type":
            return ast.unparse(target.annotation) if target.annotation is not None else None
        if name == "metadata":
            return target.metadata if target.metadata is not None else {}
        return Unknown(f"field attribute {name}")
    if kind is UnionValue:
        return target.members if name == "__args__" else Unknown(f"attribute {name} of a union")
    if kind is ExceptionValue:
        return list(target.args) if name == "args" else Unknown(f"attribute {name} of an exception")
    if kind is Property and name in ("setter", "getter", "deleter"):

        def make(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
            return Property(target.getter, args[0]) if name == "setter" else target

        return Builtin("property.setter", make)
    from mblint.evaluate.modules import Module

    if isinstance(target, Module) or hasattr(target, "lookup"):
        found = target.lookup(name)
        if found is not MISSING:
            return found
        if default is not MISSING:
            return default
        return Unknown(f"module {target.name} has no {name}", site.span() if site else None)
    from mblint.evaluate.natives import native_attribute

    return native_attribute(machine, target, name, site, frame, default)


def _property_or(machine: Machine, found: Property, target: Instance, cls: ClassValue, site: Any, frame: Any, default: Any) -> Any:
    """A property for getattr with a default and for hasattr: an AttributeError inside it gives the default."""
    from mblint.evaluate.errors import Raised
    from mblint.evaluate.machine import exception_name

    machine.handlers.append((BuiltinClass(AttributeError),))
    try:
        return bind(machine, found, target, cls, site, frame)
    except Raised as raised:
        if exception_name(raised.value) == "AttributeError":
            return default
        raise
    finally:
        machine.handlers.pop()


def _special_attribute(target: Instance, cls: ClassValue, name: str) -> Any:
    if name == "__dataclass_fields__" and cls.dataclass:
        return dict(cls.field_map)
    if name == "__module__":
        return cls.module.name
    if name == "__doc__":
        return None
    if name in ("__init__", "__eq__", "__repr__", "__str__", "__setattr__"):
        from mblint.evaluate.library import object_method

        return BoundMethod(object_method(name), target)
    return MISSING


def class_attribute(machine: Machine, cls: ClassValue, name: str, site: Any, frame: Any, default: Any = MISSING) -> Any:
    """cls.name for a class made by evaluated source."""
    if cls.is_enum:
        if name in cls.enum_members:
            return cls.enum_members[name]
        if name == "__members__":
            return dict(cls.enum_members)
    found = find_in_class(cls, name)
    if found is not MISSING:
        if cls.dataclass and name in cls.field_map and isinstance(found, Field):
            return found.default
        return bind(machine, found, None, cls, site, frame)
    if name in ("__name__", "__qualname__"):
        return cls.name if name == "__name__" else cls.qualname
    if name == "__module__":
        return cls.module.name
    if name == "__dataclass_fields__" and cls.dataclass:
        return dict(cls.field_map)
    if name == "__mro__":
        return cls.cached_mro
    if name == "mro":
        return Builtin("mro", lambda *_: list(cls.cached_mro))
    if name == "__bases__":
        return cls.bases
    if name == "__doc__":
        return ast.get_docstring(cls.node) if cls.node is not None else None
    if name == "__dict__":
        return dict(cls.namespace)
    if name == "__annotations__":
        return {field: None for field in cls.namespace.get("__annotations__", {})}  # type: ignore[attr-defined]
    if name == "__init__" and cls.dataclass:
        from mblint.evaluate.library import dataclass_init

        return dataclass_init(cls)
    if name in ("__init__", "__new__", "__setattr__", "__post_init__", "__eq__", "__init_subclass__"):
        from mblint.evaluate.library import object_method

        if name != "__post_init__":
            return object_method(name)
    if cls.opaque:
        return Unknown(f"{cls.name} has bases that are not known", site.span() if site else None)
    if default is not MISSING:
        return default
    return machine.implicit(AttributeError, f"type object '{cls.name}' has no attribute '{name}'", site, frame)


def super_attribute(machine: Machine, value: SuperValue, name: str, site: Any, frame: Any, default: Any = MISSING) -> Any:
    """super().name"""
    receiver = value.receiver
    cls = receiver.cls if isinstance(receiver, (Instance, EnumMember)) else receiver
    if not isinstance(cls, ClassValue):
        return Unknown("super() of a value that is not known")
    found = find_in_class(cls, name, value.after)
    if found is not MISSING:
        return bind(machine, found, receiver if isinstance(receiver, Instance) else None, cls, site, frame)
    if name == "__init__":
        after = False
        for base in cls.cached_mro:
            if base is value.after:
                after = True
            elif after and isinstance(base, ClassValue) and base.dataclass:
                from mblint.evaluate.library import dataclass_init

                return BoundMethod(dataclass_init(base), receiver)
    from mblint.evaluate.library import object_method

    if name in ("__init__", "__setattr__", "__getattribute__", "__new__", "__init_subclass__", "__delattr__", "__eq__"):
        return BoundMethod(object_method(name), receiver)
    if cls.opaque:
        return Unknown(f"{cls.name} has bases that are not known", site.span() if site else None)
    if default is not MISSING:
        return default
    return machine.implicit(AttributeError, f"'super' object has no attribute '{name}'", site, frame)


def set_attribute(machine: Machine, target: Any, name: str, value: Any, site: Any, frame: Any) -> None:
    """target.name = value"""
    kind = type(target)
    if kind is Instance:
        cls = target.cls
        if cls is not None:
            hook = hooks_of(cls).setattr
            if hook is not None:
                from mblint.evaluate.calls import call

                call(machine, BoundMethod(hook, target), [name, value], {}, site, frame)
                return
            if cls.plan is not None and name in cls.plan:
                setter = cls.plan[name]
                from mblint.evaluate.calls import call

                if setter is not None:
                    call(machine, setter, [target, value], {}, site, frame)
                else:
                    machine.implicit(AttributeError, f"property '{name}' of '{cls.name}' object has no setter", site, frame)
                return
            if cls.frozen:
                machine.implicit(AttributeError, f"cannot assign to field '{name}'", site, frame)
                return
        machine.write(target, name, value, site, frame.trace)
    elif kind is ClassValue:
        machine.store(target.namespace, name, value)
        target.hooks = None
        target.template = None
    elif kind is FunctionValue:
        machine.store(target.attrs, name, value)
    elif kind is Unknown or kind is External:
        return
    elif hasattr(target, "lookup") and hasattr(target, "vars"):
        machine.oldest_touched = 0
        target.lookup(name)
        machine.store(target.vars, name, value)
    elif target is None or isinstance(target, (int, float, str, bool, list, tuple, dict, set)):
        from mblint.evaluate.operators import describe

        machine.implicit(AttributeError, f"'{describe(target)}' object has no attribute '{name}'", site, frame)


def finish_class(machine: Machine, cls: ClassValue) -> None:
    """Everything that follows from bases and body: order, enum members, properties."""
    cls.cached_mro = method_order(cls)
    plan: dict[str, Any] = {}
    for base in reversed(cls.cached_mro):
        if isinstance(base, ClassValue):
            cls.is_enum = cls.is_enum or base.is_enum
            cls.opaque = cls.opaque or base.opaque
            for name, held in base.namespace.items():
                if type(held) is Property:
                    plan[name] = held.setter
                else:
                    plan.pop(name, None)
        elif isinstance(base, External):
            if base.name in ENUM_BASES:
                cls.is_enum = True
            elif base.name not in TRANSPARENT:
                cls.opaque = True
        elif not isinstance(base, BuiltinClass):
            cls.opaque = True
    cls.plan = plan or None
    if cls.is_enum:
        _make_members(machine, cls)


def _make_members(machine: Machine, cls: ClassValue) -> None:
    last = 0
    for base in cls.cached_mro[1:]:
        if isinstance(base, ClassValue):
            cls.enum_members.update(base.enum_members)
    for name, held in list(cls.namespace.items()):
        if name.startswith("_") or isinstance(held, (FunctionValue, Property, StaticMethod, ClassMethod, ClassValue)):
            continue
        value = held
        if isinstance(held, External) and held.name == "enum.auto()":
            is_text = any(isinstance(b, External) and b.name == "enum.StrEnum" for b in cls.cached_mro)
            value = name.lower() if is_text else last + 1
        if isinstance(value, int):
            last = value
        for member in cls.enum_members.values():
            if type(member.value) is type(value) and member.value == value:
                cls.enum_members[name] = member
                break
        else:
            cls.enum_members[name] = EnumMember(cls, name, value)
        del cls.namespace[name]


def is_instance(machine: Machine, value: Any, cls: Any) -> bool | Unknown:
    """isinstance(value, cls), cls being a class or a (nested) tuple or union of classes."""
    from mblint.evaluate.operators import any_of

    if isinstance(cls, (tuple, list)):
        return any_of(is_instance(machine, value, member) for member in cls)
    if isinstance(cls, UnionValue):
        return any_of(is_instance(machine, value, member) for member in cls.members)
    if type(cls) is Unknown:
        return Unknown(cls.reason, cls.span)
    if type(value) is Unknown:
        return Unknown(value.reason, value.span)
    if cls is None:
        return value is None
    if isinstance(value, Instance):
        if value.cls is None:
            if isinstance(cls, BuiltinClass):
                return cls.type is object
            return Unknown(value.reason or "unknown object")
        return is_subclass(value.cls, cls)
    if isinstance(value, EnumMember):
        return is_subclass(value.cls, cls)
    if isinstance(cls, BuiltinClass):
        if cls.type is object:
            return True
        if isinstance(value, ExceptionValue):
            return issubclass(value.type, cls.type)
        if isinstance(value, External):
            return False if cls.type in (int, float, str, bool, list, dict, tuple, set) else Unknown(value.name)
        if cls.type is type:
            return isinstance(value, (ClassValue, BuiltinClass))
        return isinstance(value, cls.type)
    if isinstance(cls, External):
        return _is_external_instance(value, cls)
    return False


_LIBRARY_KINDS: dict[str, tuple[type, ...]] = {
    "collections.abc.Mapping": (dict,),
    "typing.Mapping": (dict,),
    "typing.Dict": (dict,),
    "collections.abc.MutableMapping": (dict,),
    "collections.abc.Sequence": (list, tuple, str, range),
    "typing.Sequence": (list, tuple, str, range),
    "typing.List": (list,),
    "typing.Tuple": (tuple,),
    "typing.Set": (set,),
    "collections.abc.Iterable": (list, tuple, str, dict, set, frozenset, range),
    "typing.Iterable": (list, tuple, str, dict, set, frozenset, range),
    "collections.abc.Set": (set, frozenset),
    "collections.OrderedDict": (),
    "numbers.Number": (int, float),
    "numbers.Integral": (int,),
    "collections.abc.Callable": (FunctionValue, ClassValue, BoundMethod, Builtin, BuiltinClass, Partial),
    "typing.Callable": (FunctionValue, ClassValue, BoundMethod, Builtin, BuiltinClass, Partial),
}


def _is_external_instance(value: Any, cls: External) -> bool | Unknown:
    if cls.name in _LIBRARY_KINDS:
        return isinstance(value, _LIBRARY_KINDS[cls.name])
    if isinstance(value, External):
        if cls.name == "torch.dtype":
            from mblint.evaluate.library.torch import DTYPES

            return value.name in DTYPES
        return Unknown(f"whether {value.name} is a {cls.name}")
    return False


def is_subclass(cls: Any, other: Any) -> bool | Unknown:
    """issubclass for evaluated classes."""
    if isinstance(other, (tuple, list)):
        from mblint.evaluate.operators import any_of

        return any_of(is_subclass(cls, member) for member in other)
    if isinstance(other, UnionValue):
        return is_subclass(cls, other.members)
    if isinstance(cls, BuiltinClass):
        return isinstance(other, BuiltinClass) and issubclass(cls.type, other.type)
    if not isinstance(cls, ClassValue):
        return Unknown("a class that is not known")
    if other in cls.cached_mro:
        return True
    if isinstance(other, BuiltinClass):
        if other.type is object:
            return True
        if any(isinstance(base, BuiltinClass) and issubclass(base.type, other.type) for base in cls.cached_mro):
            return True
        if cls.is_enum and other.type in (int, str):
            names = {"enum.IntEnum", "enum.IntFlag"} if other.type is int else {"enum.StrEnum"}
            return any(isinstance(b, External) and b.name in names for b in cls.cached_mro)
        return Unknown(f"{cls.name} has bases that are not known") if cls.opaque and other.type not in (int, str, float, bool) else False
    if isinstance(other, External):
        if other.name in ("enum.Enum",) and cls.is_enum:
            return True
        return Unknown(f"{cls.name} has bases that are not known") if _has_unknown_base(cls, other) else False
    if type(other) is Unknown:
        return Unknown(other.reason)
    return Unknown(f"{cls.name} has bases that are not known") if any(type(b) is Unknown for b in cls.cached_mro) else False


def _has_unknown_base(cls: ClassValue, other: External) -> bool:
    """Whether an external base could derive from another external class (same top-level package)."""
    top = other.name.partition(".")[0]
    return any(
        (isinstance(base, External) and base.name not in TRANSPARENT and base.name.partition(".")[0] == top) or type(base) is Unknown
        for base in cls.cached_mro
    )
