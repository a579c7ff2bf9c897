"""Random recipe programs, with the values that real Python gives them.

A program is text in the style of recipes: a few constants, helper functions and classes, and a function that builds a
configuration from a stub of ConfigContainer. `run_real` executes it in this process; the evaluator is held against it.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import itertools
import math
import sys
import types
from collections.abc import Callable
from typing import Any, Protocol

from .evaluate_kit import UNKNOWN, Failed

STUB = """
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Optional


class Kind(str, Enum):
    FLASH = "flash"
    FUSED = "fused"


class Level(Enum):
    LOW = 1
    HIGH = 2


@dataclass
class Model:
    tp: int = 1
    pp: int = 1
    vp: Optional[int] = None
    layers: int = 24
    name: str = "model"
    rate: float = 0.5
    modules: list = field(default_factory=lambda: ["core"])
    extra: dict = field(default_factory=dict)
    kind: Any = Kind.FLASH

    @property
    def product(self):
        return self.tp * self.pp

    def scaled(self, by=2):
        return self.tp * by


@dataclass
class Mixed(Model):
    experts: int = 8
    derived: int = field(init=False, default=0)

    def __post_init__(self):
        self.derived = self.experts + self.tp
        if self.experts < 0:
            raise ValueError(f"experts {self.experts}")


@dataclass(kw_only=True)
class Train:
    micro: int = 1
    batch: int = 32
    env: dict = field(default_factory=lambda: {"A": "1"})


class Watched:
    def __init__(self, size=1):
        self.size = size

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)

    def __getattr__(self, name):
        if name.startswith("auto_"):
            return len(name)
        raise AttributeError(name)


@dataclass
class ConfigContainer:
    model: Model = field(default_factory=Model)
    train: Train = field(default_factory=Train)
    other: Any = None
"""


class Source(Protocol):
    """Where the decisions of a random program come from."""

    def below(self, limit: int) -> int:
        """A number from 0 to limit - 1."""


class _Scope:
    def __init__(self, variables: dict[str, str], depth: int = 0, in_loop: bool = False, in_function: bool = True) -> None:
        self.variables = variables
        self.depth = depth
        self.in_loop = in_loop
        self.in_function = in_function

    def inner(self, in_loop: bool | None = None) -> _Scope:
        return _Scope(dict(self.variables), self.depth + 1, self.in_loop if in_loop is None else in_loop, self.in_function)


class Writer:
    """Writes one program."""

    def __init__(self, source: Source, hidden: int = 0) -> None:
        self.source = source
        self.hidden = hidden
        self.counter = 0
        self.helpers: list[tuple[str, int]] = []
        self.out: list[str] = []
        self.budget = 40
        self.in_comprehension = 0
        self.kinds: list[str] = []

    # --- decisions -----------------------------------------------------------------------------------------------

    def pick(self, options: Any) -> Any:
        return options[self.source.below(len(options))]

    def chance(self, percent: int) -> bool:
        return self.source.below(100) < percent

    def fresh(self, prefix: str = "v") -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def of_kind(self, scope: _Scope, kind: str) -> str | None:
        names = [name for name, held in scope.variables.items() if held == kind]
        return self.pick(names) if names else None

    # --- expressions ---------------------------------------------------------------------------------------------

    def inside(self, write: Callable[[], str]) -> str:
        """Part of a comprehension or lambda."""
        self.in_comprehension += 1
        try:
            return write()
        finally:
            self.in_comprehension -= 1

    def integer(self, scope: _Scope, depth: int = 0) -> str:
        simple = depth > 2 or self.chance(35)
        name = self.of_kind(scope, "int")
        if simple:
            if name is not None and self.chance(70):
                return name
            return str(self.source.below(9) - 1)
        form = self.source.below(26)
        one = lambda: self.integer(scope, depth + 1)  # noqa: E731
        if form < 5:
            operator = self.pick(["+", "-", "*", "//", "%", "**", "&", "|", "<<", "+", "*"])
            left, right = one(), one()
            if operator in ("//", "%") and not self.chance(15):
                right = f"({right} or 1)"
            if operator in ("**", "<<"):
                left, right = f"(abs({left}) % 9)", f"({right} & 3)"
            return f"({left} {operator} {right})"
        if form == 5:
            return f"({one()} if {self.boolean(scope, depth + 1)} else {one()})"
        if form == 6:
            return f"len({self.listing(scope, depth + 1)})"
        if form == 7:
            return f"{self.pick(['min', 'max'])}({one()}, {one()})"
        if form == 8:
            return f"sum({self.listing(scope, depth + 1)})"
        if form == 9:
            if self.chance(15):
                return f"{self.listing(scope, depth + 1)}[{self.source.below(4) - 1}]"
            return f"[*{self.listing(scope, depth + 1)}, {one()}, {one()}][{self.pick(['0', '-1', '1', '-2'])}]"
        if form == 10:
            return f"int({self.pick([self.floating(scope, depth + 1), repr(str(self.source.below(20))), self.boolean(scope, depth + 1)])})"
        if form == 11:
            return f"{self.mapping(scope, depth + 1)}.get({self.key()!r}, {one()})"
        if form == 12:
            key = self.key()
            return (
                f"{{'{key}': {one()}, **{self.mapping(scope, depth + 1)}}}['{key}']"
                if not self.chance(10)
                else f"{self.mapping(scope, depth + 1)}['{key}']"
            )
        if form in (13, 14):
            return self.attribute(scope)
        if form == 15 and self.helpers:
            helper, arity = self.pick(self.helpers)
            return f"{helper}({', '.join(one() for _ in range(arity))})"
        if form == 16:
            return f"abs({one()})"
        if form == 17:
            return f"({one()} or {one()})" if self.chance(50) else f"({one()} and {one()})"
        if form == 18 and not self.in_comprehension:
            variable = self.fresh("w")
            return f"({variable} := {one()})"
        if form == 19:
            return self.inside(lambda: f"next((i for i in {self.listing(scope, depth + 1)} if i > {one()}), {one()})")
        if form == 20:
            return f"(lambda x, y=2: x * y + 1)({one()})"
        if form == 21:
            return f"functools.reduce(lambda a, b: a + b, {self.listing(scope, depth + 1)}, {one()})"
        if form == 22:
            return f"math.{self.pick(['floor', 'ceil'])}({self.floating(scope, depth + 1)})"
        if form == 23:
            return f"{self.text(scope, depth + 1)}.count('a')"
        if form == 24:
            return f"getattr({self.instance(scope)}, {self.pick(['tp', 'pp', 'missing', 'micro'])!r}, {one()})"
        return f"-{one()}" if self.chance(50) else f"round({self.floating(scope, depth + 1)})"

    def floating(self, scope: _Scope, depth: int = 0) -> str:
        if depth > 2 or self.chance(50):
            return self.pick(["0.5", "1.5", "2.0", "1e-4", "3.25"])
        one = self.floating(scope, depth + 1)
        return self.pick(
            [
                f"({one} * {self.integer(scope, depth + 1)})",
                f"({one} + {self.floating(scope, depth + 1)})",
                f"float({self.integer(scope, depth + 1)})",
                f"({self.integer(scope, depth + 1)} / 2)",
            ]
        )

    def boolean(self, scope: _Scope, depth: int = 0) -> str:
        name = self.of_kind(scope, "bool")
        if name is not None and self.chance(40):
            return name
        if depth > 2:
            return self.pick(["True", "False"])
        form = self.source.below(14)
        if form < 4:
            return f"({self.integer(scope, depth + 1)} {self.pick(['<', '<=', '==', '!=', '>', '>='])} {self.integer(scope, depth + 1)})"
        if form == 4:
            return f"(not {self.boolean(scope, depth + 1)})"
        if form == 5:
            return f"({self.boolean(scope, depth + 1)} {self.pick(['and', 'or'])} {self.boolean(scope, depth + 1)})"
        if form == 6:
            return f"({self.integer(scope, depth + 1)} {self.pick(['in', 'not in'])} {self.listing(scope, depth + 1)})"
        if form == 7:
            return f"({self.key()!r} in {self.mapping(scope, depth + 1)})"
        if form == 8:
            return f"({self.optional(scope)} is {self.pick(['None', 'not None'])})"
        if form == 9:
            return f"isinstance({self.pick([self.integer(scope, depth + 1), self.text(scope, depth + 1), self.instance(scope)])}, {self.pick(['int', 'str', 'Model', 'Mixed', '(int, Train)'])})"
        if form == 10:
            return f"hasattr({self.instance(scope)}, {self.pick(['tp', 'experts', 'nothing', 'auto_x'])!r})"
        if form == 11:
            test = self.pick(["x > 1", "x", "x != 3"])
            return self.inside(lambda: f"{self.pick(['any', 'all'])}({test} for x in {self.listing(scope, depth + 1)})")
        if form == 12:
            return f"({self.integer(scope, depth + 1)} < {self.integer(scope, depth + 1)} <= {self.integer(scope, depth + 1)})"
        return f"({self.text(scope, depth + 1)} {self.pick(['==', '!=', 'in', '<'])} {self.text(scope, depth + 1)})"

    def text(self, scope: _Scope, depth: int = 0) -> str:
        name = self.of_kind(scope, "str")
        if depth > 2 or self.chance(40):
            return name if name is not None and self.chance(60) else repr(self.pick(["a", "llama", "", "x_y", "8B"]))
        form = self.source.below(12)
        if form < 3:
            spec = self.pick(["", "", ":3d", ":04", "!r", ":>5"])
            name = self.of_kind(scope, "int") or str(self.source.below(9))
            return f"f'n{{{name}{spec}}}'"
        if form == 3:
            return f"({self.text(scope, depth + 1)} + {self.text(scope, depth + 1)})"
        if form == 4:
            return f"{self.text(scope, depth + 1)}.{self.pick(['upper', 'lower', 'strip', 'title'])}()"
        if form == 5:
            return self.inside(lambda: f"'-'.join(str(x) for x in {self.listing(scope, depth + 1)})")
        if form == 6:
            return f"str({self.pick([self.integer(scope, depth + 1), self.boolean(scope, depth + 1), self.listing(scope, depth + 1)])})"
        if form == 7:
            return f"('%s-%d' % ({self.text(scope, depth + 1)}, {self.integer(scope, depth + 1)}))"
        if form == 8:
            return f"'{{}}_{{}}'.format({self.integer(scope, depth + 1)}, {self.text(scope, depth + 1)})"
        if form == 9:
            return f"{self.text(scope, depth + 1)}.replace('a', {self.text(scope, depth + 1)})"
        if form == 10:
            return f"{self.text(scope, depth + 1)}[{self.pick(['0', '-1', '1:', ':2', '::-1', '1:', ':-1', ':3', '2:'])}]"
        return f"repr({self.listing(scope, depth + 1)})"

    def listing(self, scope: _Scope, depth: int = 0) -> str:
        name = self.of_kind(scope, "list")
        if name is not None and self.chance(45):
            return name
        if depth > 2:
            return self.pick(["[1, 2, 3]", "[]", "[4]"])
        form = self.source.below(13)
        one = lambda: self.integer(scope, depth + 1)  # noqa: E731
        if form < 3:
            return f"[{', '.join(one() for _ in range(self.source.below(4)))}]"
        if form == 3:
            return f"list(range({self.source.below(6)}))"
        if form == 4:
            return self.inside(lambda: self.list_comprehension(scope, depth))
        if form == 5:
            return f"({self.listing(scope, depth + 1)} + {self.listing(scope, depth + 1)})"
        if form == 6:
            return f"sorted({self.listing(scope, depth + 1)}{self.pick(['', ', reverse=True', ', key=lambda k: -k'])})"
        if form == 7:
            return f"{self.listing(scope, depth + 1)}[{self.pick(['1:', ':2', '::-1', ':-1', '::2'])}]"
        if form == 8:
            return f"[*{self.listing(scope, depth + 1)}, {one()}]"
        if form == 9:
            return f"list(map(lambda m: m + 1, {self.listing(scope, depth + 1)}))"
        if form == 10:
            return self.inside(lambda: f"[a * b for a, b in zip({self.listing(scope, depth + 1)}, {self.listing(scope, depth + 1)})]")
        if form == 11:
            return f"list({self.mapping(scope, depth + 1)}.values())"
        return f"({self.listing(scope, depth + 1)} * {self.source.below(3)})"

    def list_comprehension(self, scope: _Scope, depth: int) -> str:
        inner = _Scope({**scope.variables, "q": "int"})
        condition = f" if {self.boolean(inner, depth + 1)}" if self.chance(60) else ""
        return f"[{self.integer(inner, depth + 1)} for q in {self.listing(scope, depth + 1)}{condition}]"

    def dict_comprehension(self, scope: _Scope, depth: int) -> str:
        inner = _Scope({**scope.variables, "k": "str", "v": "int"})
        condition = f" if {self.boolean(inner, depth + 1)}" if self.chance(50) else ""
        return f"{{k: {self.integer(inner, depth + 1)} for k, v in {self.mapping(scope, depth + 1)}.items(){condition}}}"

    def key(self) -> str:
        return str(self.pick(["A", "B", "C", "D"]))

    def mapping(self, scope: _Scope, depth: int = 0) -> str:
        name = self.of_kind(scope, "dict")
        if name is not None and self.chance(50):
            return name
        if depth > 2:
            return self.pick(["{'A': 1}", "{}", "{'B': 2, 'C': 3}"])
        form = self.source.below(7)
        if form < 3:
            return "{" + ", ".join(f"{self.key()!r}: {self.integer(scope, depth + 1)}" for _ in range(self.source.below(4))) + "}"
        if form == 3:
            return f"{{**{self.mapping(scope, depth + 1)}, {self.key()!r}: {self.integer(scope, depth + 1)}}}"
        if form == 4:
            return f"dict({self.mapping(scope, depth + 1)}, {self.key()}={self.integer(scope, depth + 1)})"
        if form == 5:
            return self.inside(lambda: self.dict_comprehension(scope, depth))
        return f"({self.mapping(scope, depth + 1)} | {self.mapping(scope, depth + 1)})"

    def optional(self, scope: _Scope) -> str:
        name = self.of_kind(scope, "optional")
        if name is not None:
            return name
        return f"({self.integer(scope, 2)} if {self.boolean(scope, 2)} else None)"

    def instance(self, scope: _Scope) -> str:
        name = self.of_kind(scope, "model")
        return name if name is not None and self.chance(70) else "cfg.model"

    def attribute(self, scope: _Scope) -> str:
        return self.pick([
            "cfg.model.tp", "cfg.model.pp", "cfg.model.layers", "cfg.train.micro", "cfg.train.batch", "cfg.model.product",
            "cfg.model.scaled()", "len(cfg.model.modules)", f"{self.instance(scope)}.tp", f"{self.instance(scope)}.scaled(by=3)",
        ])  # fmt: skip

    def any_value(self, scope: _Scope) -> str:
        return self.pick([self.integer, self.text, self.boolean, self.listing, self.mapping, self.floating])(scope)

    def new_model(self, scope: _Scope) -> str:
        form = self.source.below(7)
        if form == 0:
            return f"Model(tp={self.integer(scope)}, name={self.text(scope)})"
        if form == 1:
            return f"Mixed({self.integer(scope)}, experts={self.integer(scope)})"
        if form == 2:
            return f"dataclasses.replace({self.instance(scope)}, pp={self.integer(scope)})"
        if form == 3:
            return f"copy.deepcopy({self.instance(scope)})"
        if form == 4:
            return f"Model(**{self.pick([dict(tp=2), dict(pp=4, layers=8), dict(tp=1, kind=None)])!r})"
        if form == 5:
            return f"functools.partial(Model, tp={self.integer(scope)})(pp={self.integer(scope)})"
        return f"({self.instance(scope)} if {self.boolean(scope)} else Model(tp={self.integer(scope)}))"

    # --- statements ------------------------------------------------------------------------------------------------

    def block(self, scope: _Scope, indent: str, count: int) -> None:
        before = len(self.out)
        for _ in range(count):
            if self.budget <= 0:
                break
            self.statement(scope, indent)
        if len(self.out) == before:
            self.out.append(f"{indent}pass")

    def put(self, indent: str, text: str) -> None:
        self.budget -= 1
        self.out.append(indent + text)

    def statement(self, scope: _Scope, indent: str) -> None:
        form = self.source.below(40)
        deep = scope.depth >= 3
        if form < 5:
            self.assign(scope, indent)
        elif form < 11:
            self.set_attribute(scope, indent)
        elif form < 16 and not deep:
            self.branch(scope, indent)
        elif form < 20 and not deep:
            self.loop(scope, indent)
        elif form < 22 and not deep:
            self.attempt(scope, indent)
        elif form < 24:
            self.leave(scope, indent)
        elif form < 27:
            self.change_container(scope, indent)
        elif form == 27:
            name = self.fresh("m")
            self.put(indent, f"{name} = {self.new_model(scope)}")
            scope.variables[name] = "model"
        elif form == 28:
            name = self.fresh("m")
            self.put(indent, f"{name} = cfg.model")
            scope.variables[name] = "model"
        elif form == 29:
            self.put(indent, f"cfg.model = {self.new_model(scope)}")
        elif form == 30:
            a, b = self.fresh(), self.fresh()
            self.put(
                indent,
                self.pick(
                    [
                        f"{a}, {b} = {self.integer(scope)}, {self.integer(scope)}",
                        f"{a}, *{b}_ = [{self.integer(scope)}, *{self.listing(scope)}]; {b} = len({b}_)",
                    ]
                ),
            )
            scope.variables[a] = scope.variables[b] = "int"
        elif form == 31 and not deep:
            self.match(scope, indent)
        elif form == 32 and not deep:
            self.closure(scope, indent)
        elif form == 33:
            self.put(indent, f"setattr({self.instance(scope)}, {self.pick(['tp', 'pp', 'added'])!r}, {self.integer(scope)})")
        elif form == 34 and not deep:
            self.managed(scope, indent)
        elif form == 35:
            self.put(
                indent,
                f"for n_, v_ in {{'tp': {self.integer(scope)}, 'pp': {self.integer(scope)}}}.items(): setattr({self.instance(scope)}, n_, v_)",
            )
        elif form == 36:
            self.put(
                indent,
                f"assert {self.boolean(scope)}, {self.text(scope)}"
                if self.chance(15)
                else f"STATE['count'] = STATE['count'] + {self.integer(scope)}",
            )
        elif form == 37:
            name = self.fresh("g")
            self.put(indent, f"{name} = list(numbers({self.integer(scope)}))")
            scope.variables[name] = "list"
        elif form == 38:
            self.put(indent, f"bump({self.instance(scope)}, {self.integer(scope)})")
        else:
            self.put(
                indent,
                f"cfg.other = {self.pick([self.any_value(scope), 'Kind.FUSED', 'Level.HIGH', 'Watched(3).auto_abc', 'cfg.model', self.new_model(scope)])}",
            )

    def assign(self, scope: _Scope, indent: str) -> None:
        kinds: dict[str, Callable[[_Scope], str]] = {
            "int": self.integer, "str": self.text, "bool": self.boolean, "list": self.listing, "dict": self.mapping, "optional": self.optional,
        }  # fmt: skip
        kind = self.pick(list(kinds))
        existing = self.of_kind(scope, kind)
        if existing is not None and not existing.startswith("h") and self.chance(45):
            if kind in ("int", "list") and self.chance(40):
                operator = self.pick(["+", "-", "*"]) if kind == "int" else "+"
                self.put(indent, f"{existing} {operator}= {kinds[kind](scope)}")
                return
            self.put(indent, f"{existing} = {kinds[kind](scope)}")
            return
        name = self.fresh()
        self.put(indent, f"{name} = {kinds[kind](scope)}")
        scope.variables[name] = kind

    def set_attribute(self, scope: _Scope, indent: str) -> None:
        target = self.instance(scope)
        self.put(indent, self.pick([
            f"{target}.tp = {self.integer(scope)}",
            f"{target}.pp = {self.integer(scope)}",
            f"{target}.vp = {self.optional(scope)}",
            f"{target}.name = {self.text(scope)}",
            f"{target}.rate = {self.floating(scope)}",
            f"{target}.modules = {self.listing(scope)}",
            f"cfg.train.micro = {self.integer(scope)}",
            f"cfg.train.batch += {self.integer(scope)}",
            f"{target}.tp = cfg.train.micro = {self.integer(scope)}",
            f"cfg.train.env[{self.key()!r}] = {self.text(scope)}",
            f"{target}.extra[{self.key()!r}] = {self.integer(scope)}",
            f"{target}.modules.append({self.integer(scope)})",
        ]))  # fmt: skip

    def branch(self, scope: _Scope, indent: str) -> None:
        self.put(indent, f"if {self.boolean(scope)}:")
        inner = scope.inner()
        self.block(inner, indent + "    ", 1 + self.source.below(3))
        if self.chance(25):
            self.put(indent, f"elif {self.boolean(scope)}:")
            self.block(scope.inner(), indent + "    ", 1 + self.source.below(2))
        if self.chance(50):
            self.put(indent, "else:")
            self.block(scope.inner(), indent + "    ", 1 + self.source.below(3))

    def loop(self, scope: _Scope, indent: str) -> None:
        inner = scope.inner(in_loop=True)
        form = self.source.below(6)
        if form == 0:
            name = self.fresh("n")
            self.put(indent, f"{name} = {self.source.below(4)}")
            scope.variables[name] = "counter"
            self.put(indent, f"while {name} > 0 and {self.boolean(scope)}:")
            self.put(indent + "    ", f"{name} -= 1")
            self.block(inner, indent + "    ", 1 + self.source.below(3))
        else:
            name = self.fresh("i")
            inner.variables[name] = "int"
            if form == 1:
                self.put(indent, f"for {name}, {name}x in enumerate({self.listing(scope)}):")
                inner.variables[name + "x"] = "int"
            elif form == 2:
                self.put(indent, f"for {name}k, {name} in {self.mapping(scope)}.items():")
                inner.variables[name + "k"] = "str"
            elif form == 3:
                self.put(indent, f"for {name} in numbers({self.integer(scope)}):")
            elif form == 4:
                self.put(indent, f"for {name} in range({self.integer(scope)} % 5):")
            else:
                self.put(indent, f"for {name} in {self.listing(scope)}:")
            self.block(inner, indent + "    ", 1 + self.source.below(3))
        if self.chance(20):
            self.put(indent, "else:")
            self.block(scope.inner(), indent + "    ", 1)

    def attempt(self, scope: _Scope, indent: str) -> None:
        self.put(indent, "try:")
        self.block(scope.inner(), indent + "    ", 1 + self.source.below(3))
        if self.chance(40):
            self.put(indent + "    ", self.pick([
                f"if {self.boolean(scope)}: raise ValueError({self.text(scope)})", "cfg.model.nothing", f"int({self.text(scope)})",
                f"[][{self.integer(scope)}]", f"1 // ({self.integer(scope)})", "check(cfg.model.tp)",
            ]))  # fmt: skip
        final = self.chance(30)
        if not final or self.chance(60):
            types = self.pick(["ValueError", "(ValueError, KeyError)", "Exception", "AttributeError", "ZeroDivisionError", "LookupError"])
            self.put(indent, f"except {types}{self.pick(['', ' as e'])}:")
            self.block(scope.inner(), indent + "    ", 1 + self.source.below(2))
            if self.chance(20):
                self.put(indent, "else:")
                self.block(scope.inner(), indent + "    ", 1)
        if final:
            self.put(indent, "finally:")
            self.block(_Scope(dict(scope.variables), scope.depth + 2, False, False), indent + "    ", 1)

    def leave(self, scope: _Scope, indent: str) -> None:
        options = []
        if scope.in_loop:
            options += ["break", "continue"]
        if scope.in_function and scope.depth:
            options.append("return cfg")
        if not options:
            self.set_attribute(scope, indent)
            return
        way = self.pick(options)
        if scope.depth and self.chance(30):
            self.put(indent, way)
        else:
            self.put(indent, f"if {self.boolean(scope)}: {way}")

    def change_container(self, scope: _Scope, indent: str) -> None:
        target = self.of_kind(scope, self.pick(["list", "dict"]))
        if target is None:
            self.assign(scope, indent)
            return
        if scope.variables[target] == "list":
            self.put(indent, target + self.pick([
                f".append({self.integer(scope)})", f".extend({self.listing(scope)})", f".insert(0, {self.integer(scope)})", ".reverse()", ".sort()",
                f"[0:1] = {self.listing(scope)}", f" += {self.listing(scope)}", ".clear()", f"[-1:] = [{self.integer(scope)}]", " *= 2", f"[-1] = {self.integer(scope)}" if self.chance(20) else ".sort(reverse=True)",
                ".pop()" if self.chance(20) else f".append({self.integer(scope)})",
            ]))  # fmt: skip
        else:
            self.put(indent, self.pick([
                f"{target}[{self.key()!r}] = {self.integer(scope)}", f"{target}.update({self.mapping(scope)})",
                f"{target}.pop({self.key()!r}, None)", f"{target}.setdefault({self.key()!r}, {self.integer(scope)})", f"del {target}[{self.key()!r}]" if self.chance(20) else f"{target}[{self.key()!r}] = {self.integer(scope)}",
                f"{target}.update({self.key()}={self.integer(scope)})",
            ]))  # fmt: skip

    def match(self, scope: _Scope, indent: str) -> None:
        self.put(
            indent,
            f"match {self.pick([self.integer(scope), self.listing(scope), self.text(scope), self.instance(scope), self.mapping(scope)])}:",
        )
        name = self.fresh("c")
        for pattern, bound in self.pick([
            [("0 | 1", None), (f"int({name})", "int")],
            [("[]", None), (f"[{name}]", None), (f"[_, *{name}]", None)],
            [("'a' | 'llama'", None), (f"str() as {name}", "str")],
            [("Mixed(experts=8)", None), (f"Model(tp={name})", "int")],
            [("{'A': 1}", None), (f"{{'B': {name}, **rest}}", "int")],
        ]):  # fmt: skip
            self.put(indent + "    ", f"case {pattern}:")
            inner = scope.inner()
            if bound is not None:
                inner.variables[name] = bound
            self.block(inner, indent + "        ", 1 + self.source.below(2))
        if self.chance(50):
            self.put(indent + "    ", "case _:")
            self.block(scope.inner(), indent + "        ", 1)

    def closure(self, scope: _Scope, indent: str) -> None:
        name, counter = self.fresh("f"), self.fresh("z")
        self.put(indent, f"{counter} = {self.integer(scope)}")
        scope.variables[counter] = "int"
        self.put(indent, f"def {name}(p, q=1):")
        self.put(indent + "    ", f"nonlocal {counter}")
        inner = _Scope({**scope.variables, "p": "int", "q": "int"}, scope.depth + 2, False, False)
        self.put(indent + "    ", f"{counter} += {self.integer(inner)}")
        if self.chance(50):
            self.put(indent + "    ", f"if {self.boolean(inner)}: return {self.integer(inner)}")
        self.put(indent + "    ", f"return {self.integer(inner)}")
        result = self.fresh()
        self.put(indent, f"{result} = {name}({self.integer(scope)})")
        scope.variables[result] = "int"

    def managed(self, scope: _Scope, indent: str) -> None:
        self.put(
            indent,
            self.pick(
                [
                    f"with patched(cfg.model, {self.integer(scope)}):",
                    f"with patched(cfg.model, {self.integer(scope)}) as held:",
                    "with contextlib.suppress(ValueError, KeyError):",
                    "with Manager(cfg):",
                ]
            ),
        )
        self.block(scope.inner(), indent + "    ", 1 + self.source.below(2))
        if self.chance(25):
            self.put(indent + "    ", f"if {self.boolean(scope)}: raise ValueError('inside')")

    # --- the whole ---------------------------------------------------------------------------------------------------

    def helper(self) -> None:
        name, arity = self.fresh("helper"), 1 + self.source.below(2)
        names = ["a", "b"][:arity]
        scope = _Scope(dict.fromkeys(names, "int"), 1, False)
        self.out.append(f"def {name}({', '.join(names)}):")
        saved, self.budget = self.budget, 5
        for _ in range(1 + self.source.below(3)):
            form = self.source.below(4)
            text = {
                0: lambda: f"if {self.boolean(scope)}: return {self.integer(scope)}",
                1: lambda: f"a = {self.integer(scope)}",
                2: lambda: f"if {self.boolean(scope)}: raise ValueError('helper')" if self.chance(30) else f"a += {self.integer(scope)}",
                3: lambda: f"for r in range(3):\n        if {self.boolean(scope)}: break\n        a += r",
            }[form]()
            self.out.append("    " + text.replace("cfg.", "DEFAULT."))
        self.out.append("    return " + self.integer(scope).replace("cfg.", "DEFAULT."))
        self.budget = saved
        self.helpers.append((name, arity))

    def write(self) -> str:
        self.out = [PRELUDE]
        for _ in range(self.source.below(3)):
            self.helper()
        hidden = [f"h{index}" for index in range(self.hidden)]
        kinds = [self.pick(["int", "bool", "str", "optional", "list"]) for _ in hidden]
        scope = _Scope(dict(zip(hidden, kinds, strict=True)))
        self.out.append(f"def recipe({', '.join([*hidden, 'size=4', 'flag=False'])}):")
        scope.variables.update({"size": "int", "flag": "bool"})
        self.out.append("    cfg = ConfigContainer()")
        self.block(scope, "    ", 4 + self.source.below(12))
        self.out.append("    return cfg")
        self.kinds = kinds
        return "\n".join(self.out) + "\n"


PRELUDE = """
import contextlib, copy, dataclasses, functools, math
from contextlib import contextmanager
from stub import ConfigContainer, Kind, Level, Mixed, Model, Train, Watched

STATE = {"count": 0}
DEFAULT = ConfigContainer()


def numbers(limit):
    value = 0
    while value < limit and value < 6:
        yield value
        value += 2


def bump(model, by):
    model.tp += by
    if by > 3:
        return model
    model.extra["bumped"] = by


def check(value):
    if value > 2:
        raise ValueError(f"too large: {value}")


@contextmanager
def patched(model, value):
    before = model.pp
    model.pp = value
    try:
        yield model
    finally:
        model.pp = before


class Manager:
    def __init__(self, cfg):
        self.cfg = cfg

    def __enter__(self):
        self.cfg.train.env["entered"] = "yes"
        return self

    def __exit__(self, kind, value, trace):
        self.cfg.train.env["left"] = "yes"
        return False

"""


def hidden_value(source: Source, kind: str) -> Any:
    """A value for a hidden parameter."""
    options: dict[str, list[Any]] = {
        "int": [0, 1, 2, 3, 8, -1], "bool": [True, False], "str": ["a", "", "llama", "8B"], "optional": [None, 0, 2, 5],
        "list": [[], [1], [1, 2, 3], [4, 0]],
    }  # fmt: skip
    return copy.deepcopy(options[kind][source.below(len(options[kind]))])


def real_plain(value: Any, seen: tuple[int, ...] = ()) -> Any:
    """A real value in the form that `evaluate_kit.plain` gives to evaluated ones."""
    if id(value) in seen:
        return "<cycle>"
    inner = (*seen, id(value))
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, dict):
        return {real_plain(key, inner): real_plain(held, inner) for key, held in value.items()}
    if isinstance(value, list):
        return [real_plain(held, inner) for held in value]
    if isinstance(value, tuple):
        return tuple(real_plain(held, inner) for held in value)
    if isinstance(value, (set, frozenset)):
        return {real_plain(held, inner) for held in value}
    if isinstance(value, (types.FunctionType, type)):
        return f"<{value.__name__}>"
    if isinstance(value, types.GeneratorType):
        return "<iterator>"
    if isinstance(value, functools.partial):
        return "<partial>"
    if dataclasses.is_dataclass(value) or hasattr(value, "__dict__"):
        return (type(value).__name__, {name: real_plain(held, inner) for name, held in vars(value).items()})
    return value


STEPS = 20_000


class TooLong(BaseException):
    """The program does not end soon, or builds values without end."""


def _too_large(value: Any) -> bool:
    if isinstance(value, (list, str, tuple, dict)):
        return len(value) > 20_000
    return isinstance(value, int) and value.bit_length() > 20_000


def run_real(source: str, arguments: list[Any]) -> Any:
    """What real Python makes of a program: [config, state], Failed, or None when it takes too long."""
    stub = types.ModuleType("stub")
    sys.modules["stub"] = stub
    counter = itertools.count()

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if next(counter) > STEPS or any(_too_large(value) for value in list(frame.f_locals.values())):
            raise TooLong
        return trace

    try:
        exec(compile(STUB, "stub.py", "exec"), stub.__dict__)
        main = types.ModuleType("main")
        sys.modules["main"] = main  # where dataclasses look annotations up
        space: dict[str, Any] = main.__dict__
        exec(compile(source, "main.py", "exec"), space)
        sys.settrace(trace)
        try:
            value = space["recipe"](*arguments)
        finally:
            sys.settrace(None)
        return [real_plain(value), real_plain(space["STATE"])]
    except TooLong:
        return None
    except RecursionError:
        return None
    except Exception as error:
        return Failed(type(error).__name__, str(error))
    finally:
        del sys.modules["stub"]
        sys.modules.pop("main", None)


def differences(claimed: Any, real: Any, path: str = "") -> list[str]:
    """Where a claimed value is known and differs from the real one."""
    if claimed is UNKNOWN:
        return []
    if type(claimed) is not type(real):
        if (
            isinstance(claimed, (int, float))
            and isinstance(real, (int, float))
            and claimed == real
            and not isinstance(claimed, bool)
            and not isinstance(real, bool)
        ):
            return []
        return [f"{path}: {claimed!r}, really {real!r}"]
    if isinstance(claimed, (list, tuple)):
        if len(claimed) != len(real):
            return [f"{path}: {claimed!r}, really {real!r}"]
        return [d for i, (a, b) in enumerate(zip(claimed, real, strict=True)) for d in differences(a, b, f"{path}[{i}]")]
    if isinstance(claimed, dict):
        if list(claimed) != list(real) if path.endswith("env") else set(claimed) != set(real):
            missing = set(claimed) ^ set(real)
            if any(claimed.get(key, UNKNOWN) is not UNKNOWN or key not in claimed for key in missing):
                return [f"{path}: keys {list(claimed)}, really {list(real)}"]
        return [d for key in claimed if key in real for d in differences(claimed[key], real[key], f"{path}.{key}")]
    if isinstance(claimed, float) and math.isnan(claimed) and math.isnan(real):
        return []
    return [] if claimed == real else [f"{path}: {claimed!r}, really {real!r}"]


def count_known(claimed: Any) -> tuple[int, int]:
    """(known leaves, all leaves) of a claimed value."""
    if claimed is UNKNOWN:
        return 0, 1
    if isinstance(claimed, dict):
        parts = [count_known(held) for held in claimed.values()]
    elif isinstance(claimed, (list, tuple)):
        parts = [count_known(held) for held in claimed]
    else:
        return 1, 1
    return sum(known for known, _ in parts), sum(total for _, total in parts)
