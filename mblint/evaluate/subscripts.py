"""container[index]: reading, writing, deleting."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.joining import there
from mblint.evaluate.machine import Machine
from mblint.evaluate.predicates import describe, has_rest
from mblint.evaluate.unknown import Unknown, count_unknown, like, rest
from mblint.evaluate.values import (
    MISSING,
    REST,
    BoundMethod,
    BuiltinClass,
    ClassValue,
    EnumMember,
    External,
    Instance,
    TrackedDict,
    UnionValue,
)

GENERIC = ("typing.", "collections.abc.", "torch.nn.", "typing_extensions.")


def find_key(container: dict[Any, Any], key: Any) -> Any:
    """The value of a key, MISSING, or Unknown when the key may be among those that are not known."""
    try:
        held = container.get(key, MISSING)
    except TypeError:
        return MISSING
    if held is MISSING and REST in container:
        return like(container[REST])
    return held


def get_item(machine: Machine, container: Any, index: Any, site: Any, frame: Any) -> Any:
    """container[index]"""
    if isinstance(container, (list, tuple, str, range, bytes)):
        return _get_element(machine, container, index, site, frame)
    if isinstance(container, dict):
        return _get_entry(machine, container, index, site, frame)
    if type(container) is Unknown:
        return _get_from_options(machine, container, index, site, frame)
    if isinstance(container, Instance):
        return _get_from_instance(machine, container, index, site, frame)
    if isinstance(container, ClassValue):
        if container.is_enum and isinstance(index, str):
            member = container.enum_members.get(index)
            return member if member is not None else machine.missing_key(index, site, frame)
        return container
    if isinstance(container, (BuiltinClass, UnionValue)):
        return container
    if isinstance(container, External):
        return _get_from_library(machine, container, index, site, frame)
    if container is None or isinstance(container, (int, float)):
        return machine.implicit(TypeError, f"'{describe(container)}' object is not subscriptable", site, frame)
    if isinstance(container, (set, frozenset)):
        return machine.implicit(TypeError, f"'{describe(container)}' object is not subscriptable", site, frame)
    if isinstance(container, EnumMember) and container.mixed:
        return get_item(machine, container.value, index, site, frame)
    return Unknown("an element of a value that is not known")


def _get_element(machine: Machine, container: Any, index: Any, site: Any, frame: Any) -> Any:
    """An element or a slice of a sequence."""
    if isinstance(index, EnumMember) and index.mixed:
        index = index.value
    if type(index) is Unknown:
        if isinstance(container, (list, tuple)):
            return Unknown(index.reason, index.span, reach=tuple(e for e in container if isinstance(e, (Instance, list, dict, set))))
        return like(index)
    if isinstance(container, (list, tuple)) and has_rest(container):
        return _get_from_open(machine, container, index)
    if not isinstance(index, (int, slice)):
        if isinstance(container, str):
            text = f"string indices must be integers, not '{describe(index)}'"
        else:
            text = f"{describe(container)} indices must be integers or slices, not {describe(index)}"
        return machine.implicit(TypeError, text, site, frame)
    try:
        result = container[index]
    except IndexError:
        noun = "string" if isinstance(container, str) else "range object" if isinstance(container, range) else describe(container)
        return machine.implicit(IndexError, f"{noun} index out of range", site, frame)
    except (TypeError, ValueError) as error:
        return machine.implicit(type(error), str(error), site, frame)
    if isinstance(result, (list, str, tuple)) and len(result) > 256:
        machine.check_size(len(result))
    return machine.born(result) if isinstance(result, list) and isinstance(index, slice) else result


def _get_from_open(machine: Machine, container: Any, index: Any) -> Any:
    """From a sequence of unknown length: what stands before the first gap, counted from the front, or after the last,
    counted from the end."""
    gaps = [position for position, element in enumerate(container) if type(element) is Unknown and element.many]
    if isinstance(index, int):
        if 0 <= index < gaps[0]:
            return container[index]
        if index < 0 and len(container) + index > gaps[-1]:
            return container[index]
    elif isinstance(index, slice) and index.step in (None, 1):
        start, stop = index.start or 0, index.stop
        if isinstance(start, int) and start >= 0 and isinstance(stop, int) and 0 <= stop <= gaps[0]:
            return machine.born(container[start:stop]) if isinstance(container, list) else container[start:stop]
    reach = tuple(e for e in container if isinstance(e, (Instance, list, dict, set)))
    gap = container[gaps[0]]
    if isinstance(index, slice):
        open_ = [rest(gap.reason, gap.span, reach + gap.reach)]
        return machine.born(open_) if isinstance(container, list) else tuple(open_)
    return Unknown(gap.reason or "an element of a list of unknown length", gap.span, reach=reach + gap.reach)


def _get_entry(machine: Machine, container: dict[Any, Any], index: Any, site: Any, frame: Any) -> Any:
    hook = getattr(container, "missing", None)
    if type(index) is Unknown:
        held = tuple(v for v in container.values() if isinstance(v, (Instance, list, dict, set)))
        if hook is not None and REST not in container:  # reading may make an entry
            machine.touch_entry(container, REST)
            container[REST] = rest(index.reason)
        return Unknown(index.reason, index.span, reach=held)
    found = find_key(container, index)
    if found is not MISSING:
        if type(found) is Unknown and found.optional:
            # It is there, or the program stops here.
            count_unknown()
            return there(found) if hook is None else like(found)
        return found
    if hook is not None:
        return hook(machine, index, site, frame)
    if isinstance(index, (list, dict, set)):
        return machine.implicit(TypeError, f"unhashable type: '{describe(index)}'", site, frame)
    return machine.missing_key(index, site, frame)


def _get_from_options(machine: Machine, container: Unknown, index: Any, site: Any, frame: Any) -> Any:
    from mblint.evaluate.control import choose_value

    if container.options is None or container.many:
        return like(container)
    options = [option for option in container.options if not isinstance(option, (int, float, type(None)))]
    if not options:
        return like(container)

    def side(option: Any) -> Any:
        return lambda inner: get_item(machine, option, index, site, inner)

    value = choose_value(machine, frame, [side(option) for option in options], container.reason, site)
    like(container)  # counted: it may have raised
    return value


def _get_from_instance(machine: Machine, container: Instance, index: Any, site: Any, frame: Any) -> Any:
    from mblint.evaluate.calls import call
    from mblint.evaluate.classes import class_lookup, named_fields

    method = class_lookup(container.cls, "__getitem__")
    if method is not None:
        return call(machine, BoundMethod(method, container), [index], {}, site, frame)
    cls = container.cls
    names = named_fields(cls) if cls is not None else None
    if names is not None:
        if isinstance(index, int) and -len(names) <= index < len(names):
            return container.attrs.get(names[index], Unknown("a field of a tuple"))
    if cls is None or cls.opaque or cls.builtin_base is not None:
        return Unknown(container.reason or "an element of an object that is not known")
    return machine.implicit(TypeError, f"'{cls.name}' object is not subscriptable", site, frame)


def _get_from_library(machine: Machine, container: External, index: Any, site: Any, frame: Any) -> Any:
    if container.name in ("typing.Optional",):
        return UnionValue((index, None))
    if container.name in ("typing.Union",):
        return UnionValue(index if isinstance(index, tuple) else (index,))
    if container.name == "os.environ":
        return machine.facts.read_environment(machine, index, MISSING, site, frame)
    if container.name.startswith(GENERIC):
        return container
    return Unknown(f"{container.name}[...]", site.span() if site else None)


def set_item(machine: Machine, container: Any, index: Any, value: Any, site: Any, frame: Any) -> None:
    """container[index] = value"""
    if isinstance(container, dict):
        _set_entry(machine, container, index, value, site, frame)
    elif isinstance(container, list):
        _set_element(machine, container, index, value, site, frame)
    elif isinstance(container, External) and container.name == "os.environ":
        machine.facts.set_environment(machine, index, value, site, frame)
    elif isinstance(container, Unknown):
        from mblint.evaluate.objects import set_on_unknown

        set_on_unknown(machine, container, value, lambda owner, inner: set_item(machine, owner, index, value, site, inner), frame)
    elif isinstance(container, Instance):
        from mblint.evaluate.calls import call
        from mblint.evaluate.classes import class_lookup

        method = class_lookup(container.cls, "__setitem__")
        if method is not None:
            call(machine, BoundMethod(method, container), [index, value], {}, site, frame)
        elif container.cls is not None and not container.cls.opaque and container.cls.builtin_base is None:
            machine.implicit(TypeError, f"'{container.cls.name}' object does not support item assignment", site, frame)
        else:
            machine.havoc(container, "an item was set on an object that is not known")
    elif container is None or isinstance(container, (int, float, str, tuple, set, frozenset, bytes)):
        machine.implicit(TypeError, f"'{describe(container)}' object does not support item assignment", site, frame)


def _set_entry(machine: Machine, container: dict[Any, Any], index: Any, value: Any, site: Any, frame: Any) -> None:
    from mblint.evaluate.displays import blur_dict, hashable

    if type(index) is Unknown:
        machine.touch(container)
        blur_dict(container, index.reason)
        return
    if not hashable(machine, index, site, frame):
        machine.touch(container)
        blur_dict(container, "a key that is not known")
        return
    machine.touch_entry(container, index)
    container[index] = container.entry(machine, value) if hasattr(container, "entry") else value
    if isinstance(container, TrackedDict):
        machine.store(container.sites, index, site)
    if len(container) & 255 == 0:
        machine.check_size(len(container))


def _set_element(machine: Machine, container: list[Any], index: Any, value: Any, site: Any, frame: Any) -> None:
    machine.touch(container)
    if type(index) is Unknown or has_rest(container):
        reason = index.reason if type(index) is Unknown else "a list of unknown length"
        if isinstance(index, int) and type(index) is not bool and _before_gap(container, index):
            container[index] = value
            return
        reach = tuple(e for e in (*container, value) if isinstance(e, (Instance, list, dict, set)))
        if has_rest(container) or isinstance(index, slice):
            container[:] = [rest(reason, reach=reach)]
        else:
            container[:] = [Unknown(reason, reach=reach) for _ in container]
        return
    if isinstance(index, slice):
        from mblint.evaluate.iteration import iterate

        items = iterate(machine, value, site, frame)
        if type(items) is Unknown:
            container[:] = [rest(items.reason)]
            return
        value = list(items)
    try:
        container[index] = value
    except IndexError:
        machine.implicit(IndexError, "list assignment index out of range", site, frame)
    except (TypeError, ValueError) as error:
        machine.implicit(type(error), str(error), site, frame)
    machine.check_size(len(container))


def _before_gap(container: list[Any], index: int) -> bool:
    first = next(position for position, element in enumerate(container) if type(element) is Unknown and element.many)
    return 0 <= index < first


def delete_item(machine: Machine, container: Any, index: Any, site: Any, frame: Any) -> None:
    """del container[index]"""
    if isinstance(container, (dict, list)):
        machine.touch(container)
        if type(index) is Unknown or (isinstance(container, list) and has_rest(container)):
            machine.havoc(container, "an element that is not known was deleted")
            return
        try:
            if isinstance(container, dict) and index not in container and REST in container:
                return
            del container[index]
        except KeyError:
            machine.missing_key(index, site, frame)
        except IndexError:
            machine.implicit(IndexError, "list assignment index out of range", site, frame)
        except TypeError as error:
            machine.implicit(TypeError, str(error), site, frame)
    elif isinstance(container, External) and container.name == "os.environ":
        machine.facts.set_environment(machine, index, MISSING, site, frame)
    elif isinstance(container, Unknown):
        from mblint.evaluate.objects import set_on_unknown

        set_on_unknown(machine, container, None, lambda owner, inner: delete_item(machine, owner, index, site, inner), frame)
    elif isinstance(container, Instance):
        from mblint.evaluate.calls import call
        from mblint.evaluate.classes import class_lookup

        method = class_lookup(container.cls, "__delitem__")
        if method is not None:
            call(machine, BoundMethod(method, container), [index], {}, site, frame)
        else:
            machine.havoc(container, "an item was deleted from an object that is not known")
    elif container is None or isinstance(container, (int, float, str, tuple)):
        machine.implicit(TypeError, f"'{describe(container)}' object doesn't support item deletion", site, frame)
