"""Going through values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mblint.evaluate.budget import Limits
from mblint.evaluate.joining import maybe_absent, there
from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown, like, possibly, rest
from mblint.evaluate.values import (
    REST,
    BoundMethod,
    BuiltinClass,
    ClassValue,
    DictView,
    EnumMember,
    External,
    Instance,
    KnownIterator,
    TrackedDict,
)

Items = list[Any] | tuple[Any, ...] | range


def iterate(machine: Machine, value: Any, site: Any, frame: Any) -> Items | Unknown:
    """All elements of `value`, in order; Unknown when they are not known. An element may stand for any number."""
    kind = type(value)
    if kind is list:
        return list(value)
    if kind is tuple or kind is range:
        items: Items = value
        if kind is range and not _short(value):
            return Unknown(f"a range of more than {Limits.loop:,} numbers", site.span() if site else None)
        return items
    if kind is KnownIterator:
        found: list[Any] = []
        while True:
            one = advance(machine, value)
            if one is None:
                return found
            found.append(one[0])
            machine.check_size(len(found))
            if type(one[0]) is Unknown and one[0].many and value.source is None and value.index >= len(value.items):
                return found
    return _elements(machine, value, site, frame)


def walk(machine: Machine, value: Any, site: Any, frame: Any) -> Iterable[Any] | Unknown:
    """Elements one by one, for loops: a list that grows meanwhile is seen to grow, a generator runs as it is asked."""
    kind = type(value)
    if kind is list:
        live: list[Any] = value
        return live
    if kind is KnownIterator:
        return _advancing(machine, value)
    if isinstance(value, dict):
        return _checked(machine, value, dict_keys(value), site, frame)
    if kind is DictView:
        return _checked(machine, value.owner, view_elements(value), site, frame)
    return iterate(machine, value, site, frame)


def _advancing(machine: Machine, iterator: KnownIterator) -> Iterator[Any]:
    while True:
        one = advance(machine, iterator)
        if one is None:
            return
        yield one[0]


def _checked(machine: Machine, held: Any, keys: Any, site: Any, frame: Any) -> Iterator[Any]:
    size = len(held)
    for key in keys:
        yield key
        if len(held) != size:
            machine.implicit(RuntimeError, "dictionary changed size during iteration", site, frame)
            return


def advance(machine: Machine, iterator: KnownIterator) -> tuple[Any] | None:
    """The next element of an iterator; None at its end."""
    if iterator.index < len(iterator.items):
        item = iterator.items[iterator.index]
        machine.touch(iterator)
        iterator.index += 1
        return (item,)
    if iterator.source is None:
        return None
    machine.step()
    mark = machine.mark()
    try:
        item = next(iterator.source)
    except StopIteration:
        iterator.source = None
        _keep_private(machine, iterator, mark)
        return None
    _keep_private(machine, iterator, mark)
    iterator.items.append(item)
    machine.check_rounds(len(iterator.items))
    machine.touch(iterator)
    iterator.index = len(iterator.items)
    return (item,)


def _keep_private(machine: Machine, iterator: KnownIterator, mark: int) -> None:
    """The variables of a generator go with its position, which is never taken back: nor are they."""
    private = iterator.private
    if private is not None and len(machine.trail) > mark:
        machine.trail[mark:] = [entry for entry in machine.trail[mark:] if entry[0] is not private]


def throw(machine: Machine, iterator: KnownIterator, error: Any) -> bool:
    """Raise an exception where a generator waits; True when it takes the exception and ends. Raises Raised."""
    source = iterator.source
    if source is None or not hasattr(source, "throw"):
        raise error
    mark = machine.mark()
    try:
        source.throw(error)
    except StopIteration:
        _keep_private(machine, iterator, mark)
        return True
    return True


def _short(value: range) -> bool:
    try:
        return len(value) <= Limits.loop
    except OverflowError:
        return False


def _elements(machine: Machine, value: Any, site: Any, frame: Any) -> Items | Unknown:
    if type(value) is Unknown:
        return like(value)
    if isinstance(value, dict):
        return dict_keys(value)
    if type(value) is DictView:
        return view_elements(value)
    if isinstance(value, (set, frozenset)):
        return set_elements(value)
    if isinstance(value, (str, bytes, list)):
        return list(value)
    if isinstance(value, ClassValue) and value.is_enum:
        seen: dict[int, Any] = {id(member): member for member in value.enum_members.values()}
        return list(seen.values())
    if isinstance(value, Instance):
        return _instance_elements(machine, value, site, frame)
    if isinstance(value, External):
        return Unknown(f"iteration over {value.name}", site.span() if site else None)
    from mblint.evaluate.operators import describe

    if isinstance(value, EnumMember) and value.mixed and isinstance(value.value, str):
        return list(value.value)
    if value is None or isinstance(value, (int, float, EnumMember, BuiltinClass, BoundMethod)):
        answer = machine.implicit(TypeError, f"'{describe(value)}' object is not iterable", site, frame)
        return answer if type(answer) is Unknown else Unknown("not iterable")
    return Unknown(f"iteration over a {describe(value)}", site.span() if site else None)


def dict_keys(value: dict[Any, Any]) -> list[Any]:
    """The keys of a dict; one that may not be there stands for none or one."""
    from mblint.evaluate.joining import maybe_absent

    if REST not in value and not any(type(held) is Unknown and maybe_absent(held) for held in value.values()):
        return list(value)
    found: list[Any] = []
    for key, held in value.items():
        if key is REST or maybe_absent(held):
            reason = getattr(held, "reason", "keys that are not known")
            found.append(rest(reason) if key is REST else possibly(key, reason))
        else:
            found.append(key)
    return found


def view_elements(view: DictView) -> list[Any]:
    """The elements of a view of a dict, as they are now."""
    owner = view.owner
    if view.kind == "keys":
        return dict_keys(owner)
    if view.kind == "values":
        return [_entry(key, value, value) for key, value in owner.items()]
    return [_entry(key, value, (key, value)) for key, value in owner.items()]


def _entry(key: Any, value: Any, shown: Any) -> Any:
    """An entry as an element: one that may not be there, or that stands for many, says so."""
    if key is REST:
        return rest(value.reason, value.span, value.reach)
    if maybe_absent(value):
        return possibly(there(value) if shown is value else (key, there(value)), value.reason, value.span)
    return shown


def set_elements(value: set[Any] | frozenset[Any]) -> list[Any]:
    """The elements of a set. Numbers come as Python has them; what hashes by chance is sorted, so that runs repeat."""
    if all(type(element) in (int, bool) for element in value):
        return list(value)
    return sorted(value, key=lambda element: (type(element).__name__, repr(element)))


def chance_order(value: Any) -> bool:
    """Whether the order of a set's elements differs from run to run."""
    return isinstance(value, (set, frozenset)) and len(value) > 1 and not all(type(e) in (int, bool) for e in value)


def _instance_elements(machine: Machine, value: Instance, site: Any, frame: Any) -> Items | Unknown:
    from mblint.evaluate.calls import call
    from mblint.evaluate.classes import class_lookup, named_fields

    method = class_lookup(value.cls, "__iter__")
    if method is not None:
        made = call(machine, BoundMethod(method, value), [], {}, site, frame)
        if made is not value:
            return iterate(machine, made, site, frame)
        return Unknown("an iterator with a state of its own", site.span() if site else None)
    names = named_fields(value.cls) if value.cls is not None else None
    if names is not None:
        return [value.attrs.get(name, Unknown("a field of a tuple")) for name in names]
    plain = value.cls is not None and not value.cls.opaque and value.cls.builtin_base is None
    if plain and value.cls is not None and class_lookup(value.cls, "__getitem__") is None:
        machine.implicit(TypeError, f"'{value.cls.name}' object is not iterable", site, frame)
    return Unknown(value.reason or "iteration over an object", site.span() if site else None)


__all__ = ["Items", "TrackedDict", "advance", "chance_order", "dict_keys", "iterate", "set_elements", "throw", "walk"]
