"""copy, functools, itertools, collections, contextlib."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import Any

from mblint.evaluate.budget import Limits
from mblint.evaluate.calls import CALLS_MADE, call
from mblint.evaluate.classes import class_lookup
from mblint.evaluate.copying import copy_value
from mblint.evaluate.iteration import iterate, walk
from mblint.evaluate.library.registry import Args, Kwargs, library
from mblint.evaluate.machine import Machine
from mblint.evaluate.methods import update_dict
from mblint.evaluate.operators import binary, compare, has_rest, truth
from mblint.evaluate.unknown import Unknown, like, rest
from mblint.evaluate.values import (
    BoundMethod,
    Builtin,
    BuiltinClass,
    ClassValue,
    FunctionValue,
    Instance,
    KnownIterator,
    Partial,
    TrackedDict,
)


@library("copy.deepcopy")
def _deepcopy(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    value = args[0]
    method = class_lookup(value.cls, "__deepcopy__") if isinstance(value, Instance) else None
    if method is not None:
        return call(machine, BoundMethod(method, value), [machine.born(TrackedDict())], {}, site, frame)
    return copy_value(machine, value)


@library("copy.copy")
def _copy(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    value = args[0]
    if isinstance(value, Instance):
        method = class_lookup(value.cls, "__copy__")
        if method is not None:
            return call(machine, BoundMethod(method, value), [], {}, site, frame)
        made = machine.new_instance(value.cls, value.reason)
        made.attrs, made.origin = dict(value.attrs), dict(value.origin)
        return made
    if isinstance(value, TrackedDict):
        result = value.empty()
        result.update(value)
        result.sites.update(value.sites)
        return machine.born(result)
    if isinstance(value, (list, dict, set)):
        return machine.born(type(value)(value))
    return value


# --- functools -------------------------------------------------------------------------------------------------------


@library("functools.partial", "functools.partialmethod")
def _partial(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    function, given, named = args[0], tuple(args[1:]), dict(kwargs)
    if isinstance(function, Partial):
        return Partial(function.function, (*function.args, *given), {**function.kwargs, **named})
    return Partial(function, given, named)


@library("functools.lru_cache", "functools.cache")
def _lru_cache(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    """The function itself, with a memory of its calls beside it."""
    if args and isinstance(args[0], FunctionValue):
        return _remembering(machine, args[0])
    return Builtin("lru_cache", lambda m, a, k, s, f: _remembering(m, a[0]))


def _remembering(machine: Machine, function: Any) -> Any:
    if isinstance(function, FunctionValue):
        function.attrs[CALLS_MADE] = machine.born(TrackedDict())
    return function


@library("functools.wraps", "functools.update_wrapper")
def _wraps(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    """@wraps(f): the wrapper keeps f's name."""
    if len(args) > 1:
        return _named_after(args[0], args[1])
    return Builtin("wraps", lambda m, a, k, s, f: _named_after(a[0], args[0]))


def _named_after(wrapper: Any, original: Any) -> Any:
    if isinstance(wrapper, FunctionValue) and isinstance(original, FunctionValue):
        wrapper.name, wrapper.qualname = original.name, original.qualname
        wrapper.attrs["__wrapped__"] = original
    return wrapper


@library("functools.total_ordering")
def _total_ordering(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    """The comparisons that a class leaves out, from the one that it writes and its equality."""
    cls = args[0]
    if isinstance(cls, ClassValue):
        written = next((hook for hook in _FROM_ONE if isinstance(class_lookup(cls, hook), FunctionValue)), None)
        for hook, (negated, or_equal) in _FROM_ONE.get(written or "", {}).items():
            if class_lookup(cls, hook) is None:
                cls.namespace[hook] = Builtin(f"method:{hook}", _derived_order(written or "", negated, or_equal))
    return cls


_FROM_ONE: dict[str, dict[str, tuple[bool, str]]] = {
    "__lt__": {"__gt__": (True, "and not"), "__le__": (False, "or"), "__ge__": (True, "")},
    "__le__": {"__ge__": (True, "or"), "__lt__": (False, "and not"), "__gt__": (True, "")},
    "__gt__": {"__lt__": (True, "and not"), "__ge__": (False, "or"), "__le__": (True, "")},
    "__ge__": {"__le__": (True, "or"), "__gt__": (False, "and not"), "__lt__": (True, "")},
}
"""Written comparison -> derived one -> (whether the written answer is turned round, how equality comes in)."""


def _derived_order(written: str, negated: bool, or_equal: str) -> Any:
    def derived(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
        answer = truth(machine, call(machine, BoundMethod(class_lookup(args[0].cls, written), args[0]), [args[1]], {}, site, frame))
        if type(answer) is Unknown:
            return answer
        first = answer is not negated
        if not or_equal or first is (or_equal == "or"):
            return first
        same = truth(machine, compare(machine, ast.Eq, args[0], args[1], site, frame))
        if type(same) is Unknown:
            return same
        return same if or_equal == "or" else not same

    return derived


@library("functools.reduce")
def _reduce(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    items = iterate(machine, args[1], site, frame)
    if type(items) is Unknown:
        return like(items)
    pending = list(items)
    if has_rest(pending):
        return Unknown("reduce() of a list of unknown length")
    if len(args) > 2:
        total = args[2]
    elif pending:
        total = pending.pop(0)
    else:
        return machine.implicit(TypeError, "reduce() of empty iterable with no initial value", site, frame)
    for item in pending:
        machine.step()
        total = call(machine, args[0], [total, item], {}, site, frame)
    return total


# --- itertools -------------------------------------------------------------------------------------------------------


@library("itertools.chain")
def _chain(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return machine.born(KnownIterator([], _chained(machine, args, site, frame)))


def _chained(machine: Machine, sources: Any, site: Any, frame: Any) -> Iterator[Any]:
    for source in sources:
        items = walk(machine, source, site, frame)
        if type(items) is Unknown:
            yield rest(items.reason, reach=items.reach)
        else:
            yield from items


@library("itertools.chain.from_iterable")
def _chain_from(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    outer = iterate(machine, args[0], site, frame)
    return like(outer) if type(outer) is Unknown else _chain(machine, list(outer), {}, site, frame)


def _columns(machine: Machine, sources: Any, site: Any, frame: Any) -> list[Any] | Unknown:
    """The elements of several sources; Unknown when one of them has an unknown number."""
    columns = []
    for source in sources:
        items = iterate(machine, source, site, frame)
        if type(items) is Unknown:
            return like(items)
        if has_rest(items):
            return Unknown("a list of unknown length")
        columns.append(items)
    return columns


@library("itertools.product")
def _product(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    columns = _columns(machine, args, site, frame)
    repeat = kwargs.get("repeat", 1)
    if type(columns) is Unknown or not isinstance(repeat, int):
        return columns if type(columns) is Unknown else Unknown("a product of unknown size")
    assert isinstance(columns, list)
    size = 1
    for column in columns * min(repeat, 20):
        size *= len(column)
    if size > Limits.loop or repeat > 20:
        return Unknown("a product too large to build")
    return machine.born(KnownIterator(list(itertools.product(*columns, repeat=repeat))))


def _selection(name: str) -> None:
    choose = getattr(itertools, name)

    def select(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
        columns = _columns(machine, args[:1], site, frame)
        if type(columns) is Unknown or not all(isinstance(a, int) for a in args[1:]):
            return columns if type(columns) is Unknown else Unknown("a selection of unknown size")
        assert isinstance(columns, list)
        if len(columns[0]) > 12:
            return Unknown("a selection too large to build")
        return machine.born(KnownIterator(list(choose(columns[0], *args[1:]))))

    library(f"itertools.{name}")(select)


for _name in ("combinations", "permutations", "combinations_with_replacement"):
    _selection(_name)


@library("itertools.accumulate")
def _accumulate(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    items = iterate(machine, args[0], site, frame)
    if type(items) is Unknown:
        return like(items)
    function = args[1] if len(args) > 1 else kwargs.get("func")
    result: list[Any] = [kwargs["initial"]] if kwargs.get("initial") is not None else []
    for item in items:
        if type(item) is Unknown and item.many:
            return machine.born(KnownIterator([*result, rest(item.reason)]))
        if not result:
            result.append(item)
        elif function is None:
            result.append(binary(machine, ast.Add, result[-1], item, site, frame))
        else:
            result.append(call(machine, function, [result[-1], item], {}, site, frame))
    return machine.born(KnownIterator(result))


@library("itertools.repeat")
def _repeat(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    times = args[1] if len(args) > 1 else kwargs.get("times")
    if times is None:
        return machine.born(KnownIterator([], itertools.repeat(args[0])))
    if not isinstance(times, int) or times > Limits.loop:
        return Unknown("an unknown number of repetitions")
    return machine.born(KnownIterator([args[0]] * max(0, times)))


@library("itertools.count")
def _count(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    values = [*args, *kwargs.values()]
    if not all(isinstance(a, (int, float)) for a in values):
        return Unknown("a count from an unknown start")
    return machine.born(KnownIterator([], itertools.count(*args, **kwargs)))


@library("itertools.cycle")
def _cycle(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    columns = _columns(machine, args, site, frame)
    return columns if type(columns) is Unknown else machine.born(KnownIterator([], itertools.cycle(columns[0])))


@library("itertools.islice")
def _islice(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    items = walk(machine, args[0], site, frame)
    if type(items) is Unknown or not all(isinstance(a, (int, type(None))) for a in args[1:]):
        return like(items) if type(items) is Unknown else Unknown("a slice that is not known")
    found: list[Any] = []
    for item in itertools.islice(_until_gap(items), *args[1:]):
        found.append(item)
        if type(item) is Unknown and item.many:
            break
        machine.check_size(len(found))
    if any(type(item) is Unknown and item.many for item in found) and len(args) > 2:
        return Unknown("a slice of a list of unknown length")
    return machine.born(KnownIterator(found))


def _until_gap(items: Any) -> Iterator[Any]:
    for item in items:
        yield item
        if type(item) is Unknown and item.many:
            return


@library("itertools.zip_longest")
def _zip_longest(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    columns = _columns(machine, args, site, frame)
    if type(columns) is Unknown:
        return columns
    return machine.born(KnownIterator(list(itertools.zip_longest(*columns, fillvalue=kwargs.get("fillvalue")))))


# --- collections -----------------------------------------------------------------------------------------------------


class DefaultDict(TrackedDict):
    """collections.defaultdict."""

    __slots__ = ("default_factory",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.default_factory: Any = None

    def empty(self) -> DefaultDict:
        made = DefaultDict()
        made.default_factory = self.default_factory
        return made

    def missing(self, machine: Machine, key: Any, site: Any, frame: Any) -> Any:
        """The value that reading a missing key makes."""
        if self.default_factory is None:
            return machine.missing_key(key, site, frame)
        value = call(machine, self.default_factory, [], {}, site, frame)
        machine.touch_entry(self, key)
        self[key] = value
        return value


@library("collections.defaultdict")
def _defaultdict(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    made = DefaultDict()
    machine.born(made)
    made.default_factory = args[0] if args else None
    for other in [*args[1:], kwargs]:
        update_dict(machine, made, other, site, frame)
    return made


class OrderedDict(TrackedDict):
    """collections.OrderedDict."""

    __slots__ = ()


@library("collections.OrderedDict")
def _ordered(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return _filled(machine, OrderedDict(), args, kwargs, site, frame)


@library("types.MappingProxyType")
def _proxy(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return _filled(machine, TrackedDict(), args, kwargs, site, frame)


def _filled(machine: Machine, made: TrackedDict, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> TrackedDict:
    machine.born(made)
    for other in [*args, kwargs]:
        update_dict(machine, made, other, site, frame)
    return made


@library("collections.Counter")
def _counter(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    items = iterate(machine, args[0], site, frame) if args else ()
    if type(items) is Unknown or any(type(i) is Unknown for i in items) or isinstance(args[0] if args else None, dict):
        return Unknown("a count of unknown values")
    made = DefaultDict()
    made.default_factory = BuiltinClass(int)
    for item in items:
        made[item] = made.get(item, 0) + 1
    return machine.born(made)


# --- contextlib ------------------------------------------------------------------------------------------------------


@library("contextlib.suppress")
def _suppress(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return ("suppress", tuple(args))


@library("contextlib.nullcontext")
def _nullcontext(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return machine.born(KnownIterator([args[0] if args else kwargs.get("enter_result")]))
