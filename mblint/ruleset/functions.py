"""The functions that expressions of rule files may call. All are pure and bounded.

Arguments that are unknown make the result unknown, absent ones make it not applicable, before the function is
reached; a function that wants to see them itself is `lenient`. A function with `takes_names` gets the *names*
of its first arguments and a view to look at them.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from mblint.evaluate.unknown import ABSENT, Absent, Unknown
from mblint.ruleset.versions import at_least

MAX_DIVIDE: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Function:
    """One function: `run` gets values (or a view first), `doc` is one line."""

    run: Callable[..., object]
    doc: str
    lenient: bool = False
    needs_view: bool = False
    takes_names: int = 0

    def check_arguments(self, name: str, positional: int, keywords: list[str]) -> None:
        """Raise ExpressionError if a call with these arguments could not be made."""
        from mblint.ruleset.expression import ExpressionError

        extra = 1 if self.needs_view or self.takes_names else 0
        try:
            _signature(self.run).bind(*[None] * (positional + extra), **dict.fromkeys(keywords))
        except TypeError as error:
            raise ExpressionError(f"{name}(): {error}") from None
        if positional < self.takes_names:
            raise ExpressionError(f"{name}() wants the name of a key first")


@cache
def _signature(run: Callable[..., object]) -> inspect.Signature:
    return inspect.signature(run)


FUNCTIONS: dict[str, Function] = {}


def _register(
    name: str | None = None, *, lenient: bool = False, needs_view: bool = False, takes_names: int = 0
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    def add(run: Callable[..., object]) -> Callable[..., object]:
        doc = (run.__doc__ or "").strip().partition("\n")[0]
        own_name = name or run.__name__.strip("_")
        FUNCTIONS[own_name] = Function(run, doc, lenient, needs_view, takes_names)
        return run

    return add


# Whole numbers


def _whole(*values: object) -> None:
    if any(isinstance(value, bool) or not isinstance(value, int) for value in values):
        raise TypeError("whole numbers are wanted")


@_register()
def divisors(n: int) -> object:
    """All divisors of a positive whole number, ascending."""
    _whole(n)
    if not 0 < n <= MAX_DIVIDE:
        return ABSENT
    low = [d for d in range(1, math.isqrt(n) + 1) if n % d == 0]
    return low + [n // d for d in reversed(low) if d * d != n]


@_register()
def largest_divisor(n: int, at_most: int | None = None, at_least: int = 1) -> object:
    """The largest divisor of n that is at most `at_most` and at least `at_least`; else absent."""
    _whole(n)
    found = divisors(n)
    if not isinstance(found, list):
        return ABSENT
    fitting = [d for d in found if (at_most is None or d <= at_most) and d >= at_least]
    return fitting[-1] if fitting else ABSENT


@_register()
def smallest_divisor(n: int, at_least: int = 1) -> object:
    """The smallest divisor of n that is at least `at_least`; absent if there is none."""
    _whole(n)
    found = divisors(n)
    if not isinstance(found, list):
        return ABSENT
    return next((d for d in found if d >= at_least), ABSENT)


@_register()
def nearest_divisor(n: int, to: int) -> object:
    """The divisor of n that is nearest to `to` (the smaller one on a tie)."""
    _whole(n, to)
    found = divisors(n)
    return min(found, key=lambda d: (abs(d - to), d)) if isinstance(found, list) else ABSENT


@_register()
def round_up(n: int, multiple: int) -> object:
    """n raised to the next multiple of `multiple`."""
    _whole(n, multiple)
    return -(-n // multiple) * multiple


@_register()
def round_down(n: int, multiple: int) -> object:
    """n lowered to a multiple of `multiple`."""
    _whole(n, multiple)
    return n // multiple * multiple


@_register()
def nearest_multiple(n: int, multiple: int) -> object:
    """The positive multiple of `multiple` nearest to n (the larger one on a tie)."""
    _whole(n, multiple)
    return max(multiple, (2 * n + multiple) // (2 * multiple) * multiple)


@_register()
def ceil_div(n: int, d: int) -> object:
    """n / d rounded up."""
    _whole(n, d)
    return -(-n // d)


@_register()
def gcd(*values: int) -> object:
    """Greatest common divisor."""
    _whole(*values)
    return math.gcd(*values)


@_register()
def lcm(*values: int) -> object:
    """Least common multiple."""
    _whole(*values)
    return math.lcm(*values) if max(map(abs, values), default=0) <= 2**63 else ABSENT


@_register()
def is_power_of_two(n: int) -> object:
    """Whether n is 1, 2, 4, 8, ..."""
    _whole(n)
    return n > 0 and n & (n - 1) == 0


# Python's own


@_register(name="abs")
def _abs(x: float) -> object:
    """Absolute value of a number."""
    return abs(x)


@_register(name="round")
def _round(x: float, digits: int = 0) -> object:
    """A number rounded to `digits` places (a whole number for 0)."""
    return round(x, digits) if digits else round(x)


@_register(name="int")
def _int(x: object) -> object:
    """A whole number from a number, a boolean or a decimal string; absent if it is not one."""
    if isinstance(x, str):
        return int(x) if re.fullmatch(r"\s*[+-]?\d{1,18}\s*", x) else ABSENT
    return int(x) if isinstance(x, int | float) else ABSENT


@_register(name="len")
def _len(x: object) -> object:
    """Length of a list, dict or string; None is empty."""
    if x is None:
        return 0
    return len(x) if isinstance(x, list | dict | str) else ABSENT


def _numbers(values: tuple[object, ...]) -> list[Any]:
    items: list[Any] = list(values)
    if len(items) == 1 and isinstance(items[0], list):
        items = list(items[0])
    if not items or any(not isinstance(item, int | float) for item in items):
        raise TypeError("numbers are wanted")
    return items


@_register(name="min")
def _min(*values: object) -> object:
    """Smallest of several numbers or of a list."""
    return min(_numbers(values))


@_register(name="max")
def _max(*values: object) -> object:
    """Largest of several numbers or of a list."""
    return max(_numbers(values))


@_register(name="sum")
def _sum(values: object) -> object:
    """Sum of a list of numbers."""
    if values is None or values == []:
        return 0
    return sum(_numbers((values,)))


@_register(name="prod")
def _prod(values: object) -> object:
    """Product of a list of numbers."""
    if values is None or values == []:
        return 1
    return math.prod(_numbers((values,)))


@_register(name="sorted")
def _sorted(values: object) -> object:
    """A list in ascending order, without repeats."""
    if values is None:
        return []
    return sorted(set(values)) if isinstance(values, list) else ABSENT


@_register(name="any", lenient=True)
def _any(values: object) -> object:
    """Whether any element is true; three-valued, takes a comprehension or a list."""
    raise TypeError("any() is compiled, not called")


@_register(name="all", lenient=True)
def _all(values: object) -> object:
    """Whether all elements are true; three-valued, takes a comprehension or a list."""
    raise TypeError("all() is compiled, not called")


# Lists and text


@_register()
def count(values: object, item: object) -> object:
    """How often `item` occurs in a list or string; None counts as empty."""
    if values is None:
        return 0
    if isinstance(values, list):
        return values.count(item)
    return values.count(item) if isinstance(values, str) and isinstance(item, str) and item else ABSENT


@_register()
def without(values: object, *items: object) -> object:
    """A list without the named items, order kept; None counts as empty."""
    if values is None:
        return []
    return [value for value in values if value not in items] if isinstance(values, list) else ABSENT


@_register()
def with_item(values: object, *items: object) -> object:
    """A list with the named items added at the end where missing; None counts as empty."""
    base = [] if values is None else values
    return base + [item for item in items if item not in base] if isinstance(base, list) else ABSENT


@_register()
def common(a: object, b: object) -> object:
    """The items of list a that are in list b too; None counts as empty."""
    left, right = a if a is not None else [], b if b is not None else []
    if not (isinstance(left, list) and isinstance(right, list)):
        return ABSENT
    return [item for item in left if item in right]


@_register()
def join(values: object, separator: str = ", ") -> object:
    """The items of a list as one text."""
    return separator.join(str(value) for value in values) if isinstance(values, list) else ABSENT


@_register()
def lower(text: object) -> object:
    """Text in lower case; None stays None."""
    return text.lower() if isinstance(text, str) else text


@_register()
def startswith(text: object, *prefixes: str) -> object:
    """Whether a text starts with one of the prefixes; None does not."""
    return isinstance(text, str) and text.startswith(prefixes)


@_register()
def contains(container: object, item: object) -> object:
    """Whether a list, dict or text holds `item`; None holds nothing."""
    if container is None:
        return False
    if isinstance(container, str):
        return isinstance(item, str) and item in container
    return item in container if isinstance(container, list | dict) else ABSENT


@_register()
def member(value: object) -> object:
    """The last part of a dotted name ("flash" of AttnBackend.flash, "silu" of torch.nn.functional.silu)."""
    return value.rpartition(".")[2] if isinstance(value, str) else value


@_register(lenient=True)
def default(value: object, other: object) -> object:
    """The value, or `other` where the value is None or absent."""
    return other if value is None or isinstance(value, Absent) else value


@_register(lenient=True)
def known(value: object) -> object:
    """Whether the value is known; a rule may use it to stay silent rather than undecided."""
    return not isinstance(value, Unknown)


# Names of keys


@_register(takes_names=1)
def is_set(view: Any, name: str) -> object:
    """Whether the key exists and is not None (for a section: whether it holds an object)."""
    value = view.read(name)
    if isinstance(value, Unknown):
        return value
    return value is not None and not isinstance(value, Absent)


@_register(takes_names=1)
def unset(view: Any, name: str) -> object:
    """Whether the key is None or does not exist: the opposite of is_set."""
    value = is_set(view, name)
    return value if isinstance(value, Unknown) else not value


@_register(takes_names=1)
def exists(view: Any, name: str) -> object:
    """Whether the key exists in this configuration (None is a value)."""
    value = view.read(name)
    return value if isinstance(value, Unknown) else not isinstance(value, Absent)


@_register(takes_names=1)
def written(view: Any, name: str) -> object:
    """The key's value as recipe and overrides left it, before the launch path overwrote it."""
    view.read(name)
    return view.resolved.written(name)


@_register(takes_names=1)
def overwritten(view: Any, name: str) -> object:
    """Whether the launch path replaced what was written by something else."""
    now, before = view.read(name), view.resolved.written(name)
    if now is ABSENT or before is ABSENT:
        return ABSENT
    for value in (now, before):
        if isinstance(value, Unknown):
            return value
    return now != before


@_register(takes_names=1)
def set_by_user(view: Any, name: str) -> object:
    """Whether something in the project under check wrote the key."""
    view.read(name)
    return any(write.in_project for write in view.resolved.origins(name))


@_register(takes_names=1)
def is_written(view: Any, name: str) -> object:
    """Whether anything wrote the key: recipe, helper, override; False means it has its class's default."""
    view.read(name)
    return bool(view.resolved.origins(name))


@_register(takes_names=1)
def changed_from_parent(view: Any, name: str) -> object:
    """Whether the value differs from that in the recipe that this one starts from; absent without one."""
    if view.parent is None:
        return ABSENT
    now, before = view.read(name), view.parent.read(name)
    for value in (now, before):
        if isinstance(value, Unknown):
            return value
    return now is not before and (isinstance(now, Absent) or isinstance(before, Absent) or now != before)


@_register(takes_names=1)
def changed(view: Any, name: str) -> object:
    """Whether the change under review gave the key or fact another value; False where there is no base."""
    if view.base is None:
        return False
    now, before = view.read(name), view.read(f"base.{name}")
    for value in (now, before):
        if isinstance(value, Unknown):
            return value
    return now is not before and (isinstance(now, Absent) or isinstance(before, Absent) or now != before)


@_register(takes_names=1)
def is_class(view: Any, section: str, *names: str) -> object:
    """Whether a section's object is of one of the named classes or a subclass; absent if it is null."""
    view.read(f"{section}.__class__" if section else "__class__")
    classes = view.resolved.classes(section)
    if isinstance(classes, Unknown | Absent):
        return classes
    return any(name in names or name.rpartition(".")[2] in names for name in classes)


# Versions


@_register(needs_view=True)
def version_at_least(view: Any, package: str, version: str) -> object:
    """Whether "bridge", "core", "torch" or "te" has at least this version; unknown if not declared."""
    have = view.resolved.versions.get(package)
    try:
        return at_least(have, version)
    except (TypeError, ValueError):
        return Unknown(f"the version of {package} is not known")


@_register(takes_names=1)
def motive_memory(view: Any, name: str) -> object:
    """Whether a comment beside the key's write gives memory or OOM as the reason."""
    from mblint.facts.motive import comment, speaks_of_memory

    view.read(name)
    return speaks_of_memory(comment(view, name))
