"""math, operator and the little of numpy that configuration code uses."""

from __future__ import annotations

import ast
import math
from typing import Any

from mblint.evaluate.budget import Limits
from mblint.evaluate.iteration import iterate
from mblint.evaluate.library.registry import CALLS, Args, Kwargs, known, library
from mblint.evaluate.machine import Machine
from mblint.evaluate.objects import get_attribute
from mblint.evaluate.operators import binary, compare
from mblint.evaluate.subscripts import get_item
from mblint.evaluate.unknown import Unknown, like
from mblint.evaluate.values import Builtin, EnumMember

CONSTANTS: dict[str, Any] = {
    "math.inf": math.inf,
    "math.nan": math.nan,
    "math.pi": math.pi,
    "math.e": math.e,
    "math.tau": math.tau,
}


MOST_ARGUMENTS = 200
"""Of a function of the math module: lcm() of many numbers is a number of any length."""


def _math(name: str) -> None:
    function = getattr(math, name)

    def compute(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
        if len(args) > MOST_ARGUMENTS:
            return Unknown(f"math.{name}() of more than {MOST_ARGUMENTS} numbers")
        unknown = known([*args, *kwargs.values()])
        if unknown is not None:
            return unknown
        args = [a.value if isinstance(a, EnumMember) and a.mixed else a for a in args]
        if any(isinstance(a, int) and a.bit_length() > 4096 for a in args) or (name in ("factorial", "comb", "perm") and max(args) > 1000):
            return Unknown("a number too large to compute")
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError, ArithmeticError) as error:
            return machine.implicit(type(error), str(error), site, frame)

    CALLS[f"math.{name}"] = compute


for _name in (
    "ceil floor sqrt log log2 log10 exp pow gcd lcm isclose isnan isinf fabs trunc sin cos tan factorial comb perm copysign fmod isfinite "
    "isqrt log1p expm1 atan atan2 degrees radians hypot".split()
):
    _math(_name)


@library("math.prod", "numpy.prod")
def _prod(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return _fold(machine, ast.Mult, args[0], kwargs.get("start", 1), site, frame)


@library("math.fsum")
def _fsum(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    items = iterate(machine, args[0], site, frame)
    if type(items) is Unknown:
        return like(items)
    unknown = known(list(items))
    return unknown if unknown is not None else math.fsum(items)


def _fold(machine: Machine, kind: type[ast.operator], source: Any, total: Any, site: Any, frame: Any) -> Any:
    items = iterate(machine, source, site, frame)
    if type(items) is Unknown:
        return like(items)
    for item in items:
        machine.step()
        total = binary(machine, kind, total, item, site, frame)
    return total


@library("numpy.array", "numpy.asarray")
def _array(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    """A small array of numbers as a list; configuration code only sums and divides them."""
    items = iterate(machine, args[0], site, frame)
    return like(items) if type(items) is Unknown else machine.born(list(items))


def _operator(name: str, kind: type[ast.operator]) -> None:
    def compute(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
        return binary(machine, kind, args[0], args[1], site, frame)

    CALLS[f"operator.{name}"] = compute


def _comparison(name: str, kind: type[ast.cmpop]) -> None:
    def compute(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
        return compare(machine, kind, args[0], args[1], site, frame)

    CALLS[f"operator.{name}"] = compute


for _operation, _kind in {
    "mul": ast.Mult, "add": ast.Add, "sub": ast.Sub, "floordiv": ast.FloorDiv, "truediv": ast.Div, "mod": ast.Mod,
    "pow": ast.Pow, "or_": ast.BitOr, "and_": ast.BitAnd, "xor": ast.BitXor, "concat": ast.Add,
}.items():  # fmt: skip
    _operator(_operation, _kind)
for _operation, _order in {"eq": ast.Eq, "ne": ast.NotEq, "lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE}.items():
    _comparison(_operation, _order)


@library("operator.attrgetter")
def _attrgetter(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    if not all(isinstance(a, str) for a in args):
        return Unknown("attrgetter of a name that is not known")

    def get(m: Machine, a: Args, k: Kwargs, s: Any, f: Any) -> Any:
        found = []
        for path in args:
            value = a[0]
            for part in path.split("."):
                value = get_attribute(m, value, part, s, f)
            found.append(value)
        return found[0] if len(found) == 1 else tuple(found)

    return Builtin("attrgetter", get)


@library("operator.itemgetter")
def _itemgetter(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    def get(m: Machine, a: Args, k: Kwargs, s: Any, f: Any) -> Any:
        found = [get_item(m, a[0], index, s, f) for index in args]
        return found[0] if len(found) == 1 else tuple(found)

    return Builtin("itemgetter", get)


__all__ = ["CONSTANTS", "Limits"]
