"""Attributes: reading, setting and deleting, with descriptors and hooks."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable
from typing import Any

from mblint.evaluate.classes import class_lookup, find_in_class, finish_class, hooks_of, is_instance, is_subclass
from mblint.evaluate.errors import Raised
from mblint.evaluate.heap import collect
from mblint.evaluate.machine import Guard, Machine, exception_name
from mblint.evaluate.unknown import Unknown, count_unknown, like
from mblint.evaluate.values import (
    MISSING,
    BoundMethod,
    Builtin,
    BuiltinClass,
    ClassMethod,
    ClassValue,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    Property,
    StaticMethod,
    SuperValue,
    TrackedDict,
)

PLAIN = frozenset({int, float, str, bool, type(None), bytes, tuple})


def bind(machine: Machine, found: Any, receiver: Any, cls: Any, site: Any, frame: Any) -> Any:
    """The descriptor protocol for a class attribute reached through an instance or a class."""
    kind = type(found)
    if kind is FunctionValue:
        return BoundMethod(found, receiver) if receiver is not None else found
    if kind is StaticMethod:
        return found.function
    if kind is ClassMethod:
        return BoundMethod(found.function, cls)
    if kind is Property:
        return found if receiver is None else _property_value(machine, found, receiver, site, frame)
    if kind is Builtin and found.name.startswith("method:") and receiver is not None:
        return BoundMethod(found, receiver)
    if kind is Instance and found.cls is not None:
        getter = class_lookup(found.cls, "__get__")
        if getter is not None:
            from mblint.evaluate.calls import call

            return call(machine, BoundMethod(getter, found), [receiver, cls], {}, site, frame)
    return found


def _property_value(machine: Machine, found: Property, receiver: Any, site: Any, frame: Any) -> Any:
    from mblint.evaluate.calls import call

    value = call(machine, found.getter, [receiver], {}, site, frame)
    if found.cached and isinstance(receiver, Instance) and isinstance(found.getter, FunctionValue):
        name = found.getter.name
        machine.write(receiver, name, value, None, None)
        receiver.origin.pop(name, None)
    return value


def get_attribute(machine: Machine, target: Any, name: str, site: Any, frame: Any, default: Any = MISSING) -> Any:
    """target.name. With `default`, a missing attribute gives it (getattr with three arguments)."""
    kind = type(target)
    if kind is Instance:
        return _instance_attribute(machine, target, name, site, frame, default)
    if kind is Unknown:
        return _unknown_attribute(machine, target, name, site, frame, default)
    if kind is ClassValue:
        return class_attribute(machine, target, name, site, frame, default)
    if kind is External:
        from mblint.evaluate.library import library_attribute

        return library_attribute(machine, target, name)
    if kind is SuperValue:
        return super_attribute(machine, target, name, site, frame, default)
    from mblint.evaluate.attributes import other_attribute

    return other_attribute(machine, target, name, site, frame, default)


def _instance_attribute(machine: Machine, target: Instance, name: str, site: Any, frame: Any, default: Any) -> Any:
    attrs = target.attrs
    cls = target.cls
    # A property of that name wins over what the instance holds.
    if name in attrs and (cls is None or cls.plan is None or name not in cls.plan):
        return attrs[name]
    if cls is None:
        return Unknown(target.reason or "unknown object", site.span() if site else None)
    found = find_in_class(cls, name)
    if found is not MISSING:
        if type(found) is Property and hooks_of(cls).getattr is not None:
            return _or_hook(machine, target, name, lambda: bind(machine, found, target, cls, site, frame), site, frame, default)
        if default is not MISSING and type(found) is Property:
            return attempt(machine, lambda: bind(machine, found, target, cls, site, frame), default, frame)
        return bind(machine, found, target, cls, site, frame)
    if name == "__class__":
        return cls
    if name == "__dict__":
        return attrs
    hook = hooks_of(cls).getattr
    if hook is not None:
        from mblint.evaluate.calls import call

        if default is MISSING:
            return call(machine, BoundMethod(hook, target), [name], {}, site, frame)
        return attempt(machine, lambda: call(machine, BoundMethod(hook, target), [name], {}, site, frame), default, frame)
    if cls.opaque or (cls.builtin_base is not None and hasattr(cls.builtin_base, name)):
        return Unknown(f"{cls.name} has bases that are not known", site.span() if site else None)
    special = _special_attribute(target, cls, name)
    if special is not MISSING:
        return special
    if default is not MISSING:
        return default
    return machine.implicit(AttributeError, f"'{cls.name}' object has no attribute '{name}'", site, frame)


def _or_hook(machine: Machine, target: Instance, name: str, read: Callable[[], Any], site: Any, frame: Any, default: Any) -> Any:
    """A property whose getter raises AttributeError hands over to __getattr__."""
    from mblint.evaluate.calls import call

    assert target.cls is not None
    mark = object()
    value = attempt(machine, read, mark, frame)
    if value is not mark:
        return value
    hook = BoundMethod(hooks_of(target.cls).getattr, target)
    if default is MISSING:
        return call(machine, hook, [name], {}, site, frame)
    return attempt(machine, lambda: call(machine, hook, [name], {}, site, frame), default, frame)


def attempt(machine: Machine, run: Callable[[], Any], default: Any, frame: Any) -> Any:
    """The value of `run`, or the default when it raises AttributeError; their join when that is not certain."""
    guard = Guard((BuiltinClass(AttributeError),), machine.mark())
    machine.handlers.append(guard)
    try:
        value = run()
    except Raised as raised:
        if exception_name(raised.value) != "AttributeError" and not guard.takes(raised.value):
            raise
        value = default
    finally:
        machine.handlers.pop()
        if guard.raises:
            machine.speculation -= 1
    if not guard.raises:
        return value
    from mblint.evaluate.joining import Outcome, apply_join

    ways = [Outcome(collect(machine.trail, guard.mark), value)]
    ways += [Outcome(seen.changes, default) for _, seen in guard.raises]
    return apply_join(machine, guard.mark, ways, "an attribute that may be missing")


def _unknown_attribute(machine: Machine, target: Unknown, name: str, site: Any, frame: Any, default: Any) -> Any:
    """An attribute of one of several objects: what they agree on."""
    if target.options is None or target.many:
        return like(target)
    from mblint.evaluate.control import choose_value

    # What raises goes no further.
    options = [o for o in target.options if type(o) not in PLAIN or default is not MISSING or hasattr(o, name)]
    count_unknown()
    if not options or any(type(option) is External for option in options):
        return like(target)

    def side(option: Any) -> Callable[[Any], Any]:
        return lambda inner: get_attribute(machine, option, name, site, inner, default)

    return choose_value(machine, frame, [side(option) for option in options], target.reason, site)


def _special_attribute(target: Instance, cls: ClassValue, name: str) -> Any:
    if name == "__dataclass_fields__" and cls.dataclass:
        return dict(cls.field_map)
    if name == "__module__":
        return cls.module.name
    if name == "__doc__":
        return None
    if cls.builtin_base is tuple and name in ("_replace", "_asdict"):
        return BoundMethod(Builtin(f"method:{name}", _changed_tuple if name == "_replace" else _tuple_as_dict), target)
    if name in ("__init__", "__eq__", "__repr__", "__str__", "__setattr__", "__hash__"):
        from mblint.evaluate.library import object_method

        return BoundMethod(object_method(name), target)
    return MISSING


def _changed_tuple(machine: Machine, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    """typing.NamedTuple._replace"""
    from mblint.evaluate.calls import call

    return call(machine, args[0].cls, [], {**args[0].attrs, **kwargs}, site, frame)


def _tuple_as_dict(machine: Machine, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    """typing.NamedTuple._asdict"""
    return machine.born(TrackedDict(args[0].attrs))


def class_attribute(machine: Machine, cls: ClassValue, name: str, site: Any, frame: Any, default: Any = MISSING) -> Any:
    """cls.name for a class made by evaluated source."""
    if cls.is_enum:
        if name in cls.enum_members:
            return cls.enum_members[name]
        if name == "__members__":
            return machine.born(dict(cls.enum_members))
    found = find_in_class(cls, name)
    if found is not MISSING:
        return bind(machine, found, None, cls, site, frame)
    plain = _class_fact(cls, name)
    if plain is not MISSING:
        return plain
    if name in ("__init__", "__new__", "__setattr__", "__eq__", "__init_subclass__", "__delattr__", "__getattribute__"):
        from mblint.evaluate.library import dataclass_init, object_method

        for base in cls.cached_mro:
            if name == "__init__" and isinstance(base, ClassValue) and base.dataclass:
                return dataclass_init(base)
        return object_method(name)
    if cls.opaque or (cls.builtin_base is not None and hasattr(cls.builtin_base, name)):
        return Unknown(f"{cls.name} has bases that are not known", site.span() if site else None)
    if default is not MISSING:
        return default
    return machine.implicit(AttributeError, f"type object '{cls.name}' has no attribute '{name}'", site, frame)


def _class_fact(cls: ClassValue, name: str) -> Any:
    if name == "__name__":
        return cls.name
    if name == "__qualname__":
        return cls.qualname
    if name == "__module__":
        return cls.module.name
    if name == "__dataclass_fields__" and cls.dataclass:
        return dict(cls.field_map)
    if name == "__mro__":
        return (*cls.cached_mro, BuiltinClass(object)) if BuiltinClass(object) not in cls.cached_mro else cls.cached_mro
    if name == "mro":
        return Builtin("mro", lambda *_: list(_class_fact(cls, "__mro__")))
    if name == "__bases__":
        return cls.bases
    if name == "__doc__":
        return ast.get_docstring(cls.node) if cls.node is not None else None
    if name == "__dict__":
        return dict(cls.namespace)
    if name == "__annotations__":
        annotations: Any = cls.namespace.get("__annotations__", {})
        return {field: Unknown("an annotation") for field in annotations}
    return MISSING


def super_attribute(machine: Machine, value: SuperValue, name: str, site: Any, frame: Any, default: Any = MISSING) -> Any:
    """super().name"""
    receiver = value.receiver
    cls = receiver.cls if isinstance(receiver, (Instance, EnumMember)) else receiver
    if not isinstance(cls, ClassValue):
        return Unknown("super() of a value that is not known")
    found = find_in_class(cls, name, value.after)
    after = False
    for base in cls.cached_mro:
        if base is value.after:
            after = True
        elif after and name == "__init__" and isinstance(base, ClassValue):
            if "__init__" in base.namespace:
                break
            if base.dataclass:
                from mblint.evaluate.library import dataclass_init

                return BoundMethod(dataclass_init(base), receiver)
    if found is not MISSING:
        return bind(machine, found, receiver if isinstance(receiver, Instance) else None, cls, site, frame)
    from mblint.evaluate.library import object_method

    if name in ("__init__", "__setattr__", "__getattribute__", "__new__", "__init_subclass__", "__delattr__", "__eq__", "__hash__"):
        method = object_method(name)
        return method if name == "__new__" else BoundMethod(method, receiver)
    if cls.opaque or cls.builtin_base is not None:
        return Unknown(f"{cls.name} has bases that are not known", site.span() if site else None)
    if default is not MISSING:
        return default
    return machine.implicit(AttributeError, f"'super' object has no attribute '{name}'", site, frame)


# --- setting and deleting ------------------------------------------------------------------------------------------


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
            if cls.frozen:
                machine.implicit(dataclasses.FrozenInstanceError, f"cannot assign to field '{name}'", site, frame)
                return
            if cls.plan is not None and name in cls.plan:
                set_through_descriptor(machine, cls, target, name, value, site, frame)
                return
            slots = hooks_of(cls).slots
            if slots is not None and name not in slots:
                machine.implicit(AttributeError, f"'{cls.name}' object has no attribute '{name}'", site, frame)
                return
        machine.write(target, name, value, site, frame.trace)
    elif kind is ClassValue:
        machine.store_global(target, target.namespace, name, value)
        target.hooks = None
        target.template = None
    elif kind is FunctionValue:
        machine.store_global(target, target.attrs, name, value)
    elif kind is Unknown:
        set_on_unknown(machine, target, value, lambda owner, inner: set_attribute(machine, owner, name, value, site, inner), frame)
    elif kind is External:
        return
    elif hasattr(target, "lookup") and hasattr(target, "vars"):
        target.lookup(name)
        machine.store_global(target, target.vars, name, value)
    else:
        from mblint.evaluate.attributes import set_other

        set_other(machine, target, name, value, site, frame)


def set_through_descriptor(machine: Machine, cls: ClassValue, target: Instance, name: str, value: Any, site: Any, frame: Any) -> None:
    from mblint.evaluate.calls import call

    assert cls.plan is not None
    setter = cls.plan[name]
    if isinstance(setter, Instance):
        call(machine, BoundMethod(class_lookup(setter.cls, "__set__"), setter), [target, value], {}, site, frame)
    elif setter is not None:
        call(machine, setter, [target, value], {}, site, frame)
    else:
        machine.implicit(AttributeError, f"property '{name}' of '{cls.name}' object has no setter", site, frame)


def set_on_unknown(machine: Machine, target: Unknown, value: Any, put: Callable[[Any, Any], None], frame: Any) -> None:
    """A write to one of several objects, or to nobody knows which."""
    from mblint.evaluate.control import choose_value
    from mblint.evaluate.joining import MUTABLE, reach_of

    options = target.options
    if options is not None and not target.many:
        owners = [option for option in options if type(option) not in PLAIN]
        count_unknown()
        if target.apart:
            for owner in owners:
                put(owner, frame)
            return
        others = len(owners) > 1
        for owner in owners:
            sides: list[Callable[[Any], Any]] = [lambda inner, owner=owner: put(owner, inner)]  # type: ignore[misc]
            if others:
                sides.append(lambda inner: None)
            choose_value(machine, frame, sides, target.reason, None)
        return
    for held in (*reach_of(target), *machine.escaped):
        machine.havoc(held, f"changed through a value that is not known: {target.reason}")
    if isinstance(value, MUTABLE):
        if machine.unknown_loops:
            machine.havoc(value, f"stored in an object that is not known: {target.reason}")
        else:
            machine.touch_end(machine.escaped)
            machine.escaped.append(value)


def del_attribute(machine: Machine, target: Any, name: str, site: Any, frame: Any) -> None:
    """del target.name"""
    if isinstance(target, Instance):
        cls = target.cls
        if cls is not None and hooks_of(cls).delattr is not None:
            from mblint.evaluate.calls import call

            call(machine, BoundMethod(hooks_of(cls).delattr, target), [name], {}, site, frame)
            return
        if cls is not None and cls.frozen:
            machine.implicit(dataclasses.FrozenInstanceError, f"cannot delete field '{name}'", site, frame)
        elif name in target.attrs:
            machine.remove(target, name)
        elif cls is not None and not cls.opaque:
            machine.implicit(AttributeError, f"'{cls.name}' object has no attribute '{name}'", site, frame)
    elif isinstance(target, ClassValue) and name in target.namespace:
        machine.store_shared()
        machine.namespaces[id(target.namespace)] = (target, target.namespace)
        machine.trail.append((target.namespace, name, target.namespace[name]))
        del target.namespace[name]
        target.hooks = None
        target.template = None
    elif isinstance(target, Unknown):
        set_on_unknown(machine, target, None, lambda owner, inner: del_attribute(machine, owner, name, site, inner), frame)


__all__ = [
    "attempt", "bind", "class_attribute", "class_lookup", "del_attribute", "find_in_class", "finish_class", "get_attribute",
    "hooks_of", "is_instance", "is_subclass", "set_attribute",
]  # fmt: skip
