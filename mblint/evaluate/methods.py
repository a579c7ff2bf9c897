"""Methods of lists, tuples, dicts and sets."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.iteration import chance_order, iterate
from mblint.evaluate.joining import MUTABLE, join_values, maybe_absent, there
from mblint.evaluate.machine import Machine
from mblint.evaluate.predicates import any_of, equal, has_rest
from mblint.evaluate.subscripts import find_key
from mblint.evaluate.texts import text_of
from mblint.evaluate.unknown import Unknown, like, rest
from mblint.evaluate.values import MISSING, REST, DictView, EnumMember, External, Instance, KnownIterator, TrackedDict

PURE_LIST = frozenset({"index", "count", "copy"})
CHANGES_LIST = frozenset({"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"})
DICT = frozenset({"update", "pop", "popitem", "setdefault", "clear", "get", "keys", "values", "items", "copy"})
SET = {
    **dict.fromkeys("union intersection difference symmetric_difference issubset issuperset isdisjoint copy".split(), False),
    **dict.fromkeys("add update discard remove clear pop intersection_update difference_update symmetric_difference_update".split(), True),
}
"""Methods of sets, and whether they change the set."""


def mutable_parts(items: Any) -> tuple[Any, ...]:
    return tuple(item for item in items if isinstance(item, MUTABLE))


# --- lists and tuples ----------------------------------------------------------------------------------------------


def call_list(machine: Machine, target: list[Any], name: str, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    if name == "append":
        (item,) = args
        machine.touch_end(target)
        target.append(item)
        if len(target) & 255 == 0:
            machine.check_size(len(target))
        return None
    if name == "extend":
        items = iterate(machine, args[0], site, frame)
        machine.touch_end(target)
        target.extend([rest(items.reason, reach=items.reach)] if type(items) is Unknown else items)
        machine.check_size(len(target))
        return None
    if name == "copy":
        return machine.born(list(target))
    if name in ("index", "count", "remove"):
        return _search(machine, target, name, args, site, frame)
    machine.touch(target)
    if name == "clear":
        target.clear()
    elif name == "sort":
        from mblint.evaluate.builtins import sort_values

        ordered = sort_values(machine, target, kwargs, site, frame)
        target[:] = ordered if isinstance(ordered, list) else [Unknown(ordered.reason, reach=mutable_parts(target)) for _ in target]
    elif has_rest(target) and name != "reverse":
        return _change_open(target, name, args)
    elif name == "insert":
        index, item = args
        if isinstance(index, int):
            target.insert(index, item)
        else:
            target[:] = [Unknown("shifted by an insertion", reach=mutable_parts([*target, item])) for _ in range(len(target) + 1)]
    elif name == "pop":
        return _pop(machine, target, args, site, frame)
    elif name == "reverse":
        target.reverse()
    machine.check_size(len(target))
    return None


def _pop(machine: Machine, target: list[Any], args: list[Any], site: Any, frame: Any) -> Any:
    index = args[0] if args else -1
    if type(index) is Unknown:
        parts = mutable_parts(target)
        if target:
            target[:] = [Unknown(index.reason, reach=parts) for _ in range(len(target) - 1)]
        return Unknown(index.reason, reach=parts)
    try:
        return target.pop(index)
    except IndexError:
        return machine.implicit(IndexError, "pop index out of range" if target else "pop from empty list", site, frame)
    except TypeError as error:
        return machine.implicit(TypeError, str(error), site, frame)


def _change_open(target: list[Any], name: str, args: list[Any]) -> Any:
    """insert or pop in a list of unknown length."""
    if name == "pop" and not args and not (type(target[-1]) is Unknown and target[-1].many):
        return target.pop()
    reach = mutable_parts([*target, *args])
    target[:] = [rest("a list of unknown length", reach=reach)]
    return Unknown("an element of a list of unknown length", reach=reach) if name == "pop" else None


def _search(machine: Machine, target: list[Any], name: str, args: list[Any], site: Any, frame: Any) -> Any:
    wanted = args[0]
    offset = 0
    items = target
    if name == "index" and len(args) > 1:
        if not all(isinstance(a, int) for a in args[1:]):
            return Unknown("a search between unknown places")
        start, stop, _ = slice(*args[1:3] if len(args) > 2 else (args[1], None)).indices(len(target))
        offset, items = start, target[start:stop]
    answers = [True if item is wanted and type(item) is not Unknown else equal(item, wanted) for item in items]
    first = next((i for i, answer in enumerate(answers) if answer is not False), None)
    if has_rest(target) or any(type(answer) is Unknown for answer in answers):
        if name == "index" and first is not None and answers[first] is True and not has_rest(target):
            return first + offset
        if name == "remove":
            machine.touch(target)
            target[:] = [rest("an element that is not known was removed", reach=mutable_parts(target))]
        return Unknown("a search in a list with unknown elements")
    if name == "count":
        return answers.count(True)
    if first is None:
        text = text_of(machine, wanted, "r")
        shown = f"{text} is not in list" if name == "index" else "list.remove(x): x not in list"
        return machine.implicit(ValueError, shown, site, frame)
    if name == "index":
        return first + offset
    machine.touch(target)
    del target[first]
    return None


def call_tuple(machine: Machine, target: tuple[Any, ...], name: str, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    return _search(machine, list(target), name, args, site, frame)


# --- dicts -----------------------------------------------------------------------------------------------------------


def call_dict(machine: Machine, target: dict[Any, Any], name: str, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    if name == "get":
        return _get(target, args[0], args[1] if len(args) > 1 else kwargs.get("default"))
    if name in ("keys", "values", "items"):
        return DictView(target, name)
    if name == "copy":
        made: Any = target.empty() if isinstance(target, TrackedDict) else type(target)()
        machine.born(made)
        made.update(target)
        if isinstance(target, TrackedDict):
            made.sites.update(target.sites)
        return made
    if name == "update":
        for other in args:
            update_dict(machine, target, other, site, frame)
        if kwargs:
            update_dict(machine, target, kwargs)
            if isinstance(target, TrackedDict):
                for key in kwargs:
                    machine.store(target.sites, key, site)
        return None
    if name in ("setdefault", "pop") and type(args[0]) is Unknown:
        machine.havoc(target, args[0].reason)
        return like(args[0])
    if name == "setdefault":
        return _setdefault(machine, target, args[0], args[1] if len(args) > 1 else None, site, frame)
    machine.touch(target)
    if name == "pop":
        return _pop_entry(machine, target, args, kwargs, site, frame)
    if name == "clear":
        target.clear()
        return None
    if REST in target or any(maybe_absent(value) for value in target.values()):
        machine.havoc(target, "an entry that is not known was taken out")
        return Unknown("an entry that is not known")
    if not target:
        return machine.missing_key("popitem(): dictionary is empty", site, frame)
    return target.popitem()


def _get(target: dict[Any, Any], key: Any, default: Any) -> Any:
    if type(key) is Unknown:
        if not target:
            return default
        return Unknown(key.reason, key.span, reach=mutable_parts([*target.values(), default]))
    found = find_key(target, key)
    if found is MISSING:
        return default
    if maybe_absent(found):
        return join_values([there(found), default], found.reason)
    return found


def _setdefault(machine: Machine, target: dict[Any, Any], key: Any, default: Any, site: Any, frame: Any) -> Any:
    from mblint.evaluate.displays import blur_dict, hashable

    if not hashable(machine, key, site, frame):
        blur_dict(target, "a key that is not known")
        return Unknown("a key that is not known")
    found = find_key(target, key)
    if found is not MISSING and not (key not in target):
        if not maybe_absent(found):
            return found
        found = join_values([there(found), default], found.reason)
    elif found is not MISSING:
        found = Unknown(found.reason, reach=mutable_parts([default]))
    else:
        found = default
    machine.touch_entry(target, key)
    target[key] = found
    if isinstance(target, TrackedDict):
        machine.store(target.sites, key, site)
    return found


def _pop_entry(machine: Machine, target: dict[Any, Any], args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    found = find_key(target, args[0])
    if found is MISSING:
        if len(args) > 1:
            return args[1]
        return machine.missing_key(args[0], site, frame)
    target.pop(args[0], None)
    if maybe_absent(found):
        return join_values([there(found), *args[1:2]], found.reason)
    return found


def set_possible_entry(target: dict[Any, Any], pair: Unknown) -> None:
    """An entry of which nobody knows whether it is there, or what it is."""
    from mblint.evaluate.displays import blur_dict

    options = pair.options
    if options is None or len(options) != 1 or not isinstance(options[0], tuple) or len(options[0]) != 2:
        blur_dict(target, pair.reason)
        return
    key, value = options[0]
    if type(key) is Unknown or isinstance(key, (list, dict, set, Instance)):
        blur_dict(target, pair.reason)
    else:
        target[key] = join_values([value, target.get(key, MISSING)], pair.reason)


def update_dict(machine: Machine, target: dict[Any, Any], other: Any, site: Any = None, frame: Any = None) -> None:
    """target.update(other): entries that may not be there leave what was there possible."""
    from mblint.evaluate.displays import blur_dict, hashable

    machine.touch(target)
    if type(other) is Unknown or isinstance(other, (Instance, External)):
        blur_dict(target, getattr(other, "reason", "") or "an update that is not known")
        return
    if hasattr(target, "entry"):
        other = target.entry(machine, other)
    if isinstance(other, dict):
        if REST in other:
            blur_dict(target, other[REST].reason)
        for key, value in other.items():
            if maybe_absent(value):
                before = target.get(key, MISSING)
                target[key] = join_values([there(value), before], value.reason)
            elif key is not REST:
                target[key] = value
        if isinstance(target, TrackedDict) and isinstance(other, TrackedDict):
            for key, place in other.sites.items():
                machine.store(target.sites, key, place)
        machine.check_size(len(target))
        return
    pairs = iterate(machine, other, site, frame)
    if type(pairs) is Unknown:
        blur_dict(target, pairs.reason)
        return
    for pair in pairs:
        if type(pair) is Unknown:
            set_possible_entry(target, pair)
            continue
        parts = iterate(machine, pair, site, frame)
        if type(parts) is Unknown or len(parts) != 2 or type(parts[0]) is Unknown:
            if type(parts) is not Unknown and len(parts) != 2 and not has_rest(parts):
                message = f"dictionary update sequence element #0 has length {len(parts)}; 2 is required"
                machine.implicit(ValueError, message, site, frame)
            blur_dict(target, "an entry that is not known")
        elif hashable(machine, parts[0], site, frame):
            target[parts[0]] = parts[1]


# --- sets ------------------------------------------------------------------------------------------------------------


def call_set(machine: Machine, target: Any, name: str, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    from mblint.evaluate.displays import hashable

    if name in ("add", "discard", "remove"):
        item = args[0]
        machine.touch(target)
        if type(item) is not Unknown and not hashable(machine, item, site, frame):
            target.add(rest("an element that is not known"))
            return None
        if name == "add":
            target.add(item)
            return None
        if type(item) is Unknown or any(type(element) is Unknown for element in target):
            machine.havoc(target, "an element that is not known was removed")
            return None
        if name == "remove" and item not in target:
            return machine.missing_key(item, site, frame)
        target.discard(item)
        return None
    others = []
    for other in args:
        items = iterate(machine, other, site, frame)
        if type(items) is Unknown:
            if SET[name]:
                machine.havoc(target, items.reason)
            return Unknown(items.reason) if not SET[name] else None
        others.append(items)
    doubtful = any(type(element) is Unknown for element in target) or any(type(e) is Unknown for items in others for e in items)
    if doubtful and name not in ("update", "copy", "clear", "union"):
        if SET[name]:
            machine.havoc(target, "a set with unknown elements")
        return Unknown("a set with unknown elements")
    if SET[name]:
        machine.touch(target)
        if name == "pop":
            return _pop_element(machine, target, site, frame)
        getattr(target, name)(*others)
        return None
    result = getattr(target, name)(*others)
    return machine.born(result) if isinstance(result, set) else result


def _pop_element(machine: Machine, target: set[Any], site: Any, frame: Any) -> Any:
    if not target:
        return machine.missing_key("pop from an empty set", site, frame)
    if chance_order(target):
        parts = mutable_parts(target)
        target.clear()
        target.add(rest("what is left of a set", reach=parts))
        return Unknown("an element of a set, which one changes from run to run", reach=parts)
    return target.pop()


__all__ = [
    "CHANGES_LIST", "DICT", "PURE_LIST", "SET", "EnumMember", "KnownIterator", "any_of", "call_dict", "call_list", "call_set",
    "call_tuple", "update_dict",
]  # fmt: skip
