"""container[index]: reading, writing, deleting."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    BoundMethod,
    BuiltinClass,
    ClassValue,
    EnumMember,
    External,
    Instance,
    TrackedDict,
    UnionValue,
)


def find_key(container: dict[Any, Any], key: Any) -> Any:
    """The value of a key, MISSING, or Unknown when the key may be among those that are not known."""
    try:
        if key in container:
            return container[key]
    except TypeError:
        return MISSING
    if isinstance(key, (EnumMember, str, int)):
        from mblint.evaluate.operators import equal

        for held in container:
            if (isinstance(held, EnumMember) or isinstance(key, EnumMember)) and equal(held, key) is True:
                return container[held]
    if None in container and type(container[None]) is Unknown:
        return Unknown(container[None].reason)
    return MISSING


def get_item(machine: Machine, container: Any, index: Any, site: Any, frame: Any) -> Any:
    """container[index]"""
    if type(container) is Unknown:
        return Unknown(container.reason, container.span)
    if isinstance(container, (ClassValue, UnionValue)):
        if isinstance(container, ClassValue) and container.is_enum and isinstance(index, str):
            member = container.enum_members.get(index)
            return member if member is not None else machine.implicit(KeyError, repr(index), site, frame)
        return container
    if isinstance(container, BuiltinClass):
        return container
    if isinstance(container, External):
        if container.name in ("typing.Optional",):
            return UnionValue((index, None))
        if container.name in ("typing.Union",):
            return UnionValue(index if isinstance(index, tuple) else (index,))
        if container.name == "os.environ":
            return machine.facts.read_environment(machine, index, MISSING, site, frame)
        if container.name.startswith(("typing.", "collections.abc.", "torch.nn.", "typing_extensions.")):
            return container
        return Unknown(f"{container.name}[...]", site.span() if site else None)
    if type(index) is Unknown:
        if isinstance(container, (list, tuple, dict, str)) and not container:
            return machine.implicit(KeyError if isinstance(container, dict) else IndexError, "?", site, frame)
        return Unknown(index.reason, index.span)
    if isinstance(container, dict):
        found = find_key(container, index)
        if found is MISSING:
            if getattr(container, "default_factory", None) is not None:
                from mblint.evaluate.calls import call

                made = call(machine, container.default_factory, [], {}, site, frame)  # type: ignore[attr-defined]
                machine.touch(container)
                container[index] = made
                return made
            from mblint.evaluate.natives import text_of

            text = text_of(machine, index, "r")
            return machine.implicit(KeyError, text if isinstance(text, str) else "?", site, frame)
        return found
    if isinstance(container, (list, tuple, str, range, bytes)):
        if isinstance(index, EnumMember):
            index = index.value
        if not isinstance(index, (int, slice)):
            from mblint.evaluate.operators import describe

            kind = describe(container)
            return machine.implicit(TypeError, f"{kind} indices must be integers or slices, not {describe(index)}", site, frame)
        try:
            result = container[index]
        except IndexError:
            from mblint.evaluate.operators import describe, has_rest

            if isinstance(container, (list, tuple)) and has_rest(container):
                return Unknown("an element of a list of unknown length")
            return machine.implicit(IndexError, f"{describe(container)} index out of range", site, frame)
        except (TypeError, ValueError) as error:
            return machine.implicit(type(error), str(error), site, frame)
        return machine.born(result) if isinstance(result, list) else result
    if isinstance(container, Instance):
        from mblint.evaluate.calls import call
        from mblint.evaluate.objects import class_lookup

        method = class_lookup(container.cls, "__getitem__")
        if method is not None:
            return call(machine, BoundMethod(method, container), [index], {}, site, frame)
        if container.cls is None or container.cls.opaque:
            return Unknown(container.reason or "an element of an object that is not known")
    if container is None or isinstance(container, (int, float, Instance)):
        from mblint.evaluate.operators import describe

        return machine.implicit(TypeError, f"'{describe(container)}' object is not subscriptable", site, frame)
    return Unknown("an element of a value that is not known")


def set_item(machine: Machine, container: Any, index: Any, value: Any, site: Any, frame: Any) -> None:
    """container[index] = value"""
    if isinstance(container, dict):
        machine.touch(container)
        if type(index) is Unknown:
            for key in list(container):
                container[key] = Unknown(index.reason)
            container[None] = Unknown(f"rest: {index.reason}")
            return
        try:
            for held in container:
                if isinstance(held, EnumMember) is not isinstance(index, EnumMember):
                    break
            container[index] = value
        except TypeError:
            machine.implicit(TypeError, "unhashable key of a dict", site, frame)
            return
        if isinstance(container, TrackedDict):
            container.sites = {**container.sites, index: site}
        machine.check_size(len(container))
    elif isinstance(container, list):
        machine.touch(container)
        if type(index) is Unknown:
            container[:] = [Unknown(index.reason)] * len(container)
            return
        try:
            container[index] = value
        except IndexError:
            machine.implicit(IndexError, "list assignment index out of range", site, frame)
        except (TypeError, ValueError) as error:
            machine.implicit(type(error), str(error), site, frame)
    elif isinstance(container, External) and container.name == "os.environ":
        machine.facts.set_environment(machine, index, value, site, frame)
    elif isinstance(container, Instance):
        from mblint.evaluate.calls import call
        from mblint.evaluate.objects import class_lookup

        method = class_lookup(container.cls, "__setitem__")
        if method is not None:
            call(machine, BoundMethod(method, container), [index, value], {}, site, frame)
        elif container.cls is not None and not container.cls.opaque:
            machine.implicit(TypeError, f"'{container.cls.name}' object does not support item assignment", site, frame)
    elif container is None or isinstance(container, (int, float, str, tuple)):
        from mblint.evaluate.operators import describe

        machine.implicit(TypeError, f"'{describe(container)}' object does not support item assignment", site, frame)


def delete_item(machine: Machine, container: Any, index: Any, site: Any, frame: Any) -> None:
    """del container[index]"""
    if isinstance(container, (dict, list)) and type(index) is not Unknown:
        machine.touch(container)
        try:
            del container[index]
        except (KeyError, IndexError, TypeError):
            machine.implicit(KeyError if isinstance(container, dict) else IndexError, repr(index), site, frame)
    elif isinstance(container, External) and container.name == "os.environ":
        machine.facts.set_environment(machine, index, MISSING, site, frame)
