"""What the tests of the evaluator share: small programs in, plain values and exceptions out."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.classes import named_fields
from mblint.evaluate.compiler import run_module_statement
from mblint.evaluate.errors import Raised
from mblint.evaluate.machine import Machine, exception_name, exception_text
from mblint.evaluate.modules import ModuleTable
from mblint.evaluate.predicates import machine_frame
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    REST,
    BuiltinClass,
    ClassValue,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    KnownIterator,
    Partial,
)
from mblint.evaluate.world import World

ROOT = "/project"


@dataclass(frozen=True)
class Failed:
    """The program ends in an exception."""

    name: str
    text: str = ""


class Anything:
    """Stands for a value that is not known; equal to all."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "?"


UNKNOWN = Anything()


class Program:
    """Modules by name, on one machine."""

    def __init__(self, source: str = "", world: World | None = None, strict: bool = True, **modules: str) -> None:
        files = {"main": source, **modules}
        self.files = {name: textwrap.dedent(text) for name, text in files.items()}
        overlay: dict[str, Any] = {}
        for name, text in self.files.items():
            path = name.replace("__", "/").removesuffix("/init")
            ending = "/__init__.py" if name.endswith("__init") else ".py"
            overlay[f"{ROOT}/{path}{ending}"] = text.encode()
        self.table = ModuleTable([ROOT], overlay)
        self.machine = Machine(self.table, world or World())
        self.machine.strict = strict
        machine = self.machine
        self.table.execute = lambda module, statement: run_module_statement(machine, module, statement)

    def get(self, name: str, module: str = "main") -> Any:
        return self.table.import_from(module, name)

    def call(self, name: str = "f", *args: Any, module: str = "main", **kwargs: Any) -> Any:
        """The raw value that a function gives."""
        frame = machine_frame(self.machine)
        self.machine.begin()
        return call(self.machine, self.get(name, module), list(args), kwargs, None, frame)

    def run(self, name: str = "f", *args: Any, **kwargs: Any) -> Any:
        """The plain value that a function gives, or Failed."""
        try:
            value = self.call(name, *args, **kwargs)
        except Raised as raised:
            return Failed(exception_name(raised.value), exception_text(raised.value))
        return plain(value)


def run(source: str, *args: Any, **modules: str) -> Any:
    """f(*args) of a program."""
    return Program(source, **modules).run("f", *args)


def unknown(reason: str = "hidden") -> Unknown:
    return Unknown(reason)


def plain(value: Any, seen: tuple[int, ...] = ()) -> Any:
    """A value as the tests write it: objects as (class, attributes), what is not known as UNKNOWN."""
    if type(value) is Unknown:
        return UNKNOWN
    if id(value) in seen:
        return "<cycle>"
    inner = (*seen, id(value))
    if isinstance(value, Instance):
        if value.cls is None:
            return UNKNOWN
        if named_fields(value.cls) is not None:
            return tuple(plain(held, inner) for held in value.attrs.values())
        if value.cls.builtin_base is not None and not issubclass(value.cls.builtin_base, BaseException):
            return UNKNOWN
        return (value.cls.name, {name: plain(held, inner) for name, held in value.attrs.items()})
    if isinstance(value, EnumMember):
        return f"{value.cls.name}.{value.name}"
    if isinstance(value, dict):
        if REST in value or any(type(v) is Unknown and v.optional for v in value.values()):
            return UNKNOWN
        return {plain(key, inner): plain(held, inner) for key, held in value.items()}
    if isinstance(value, list):
        return UNKNOWN if _open(value) else [plain(held, inner) for held in value]
    if isinstance(value, tuple):
        return UNKNOWN if _open(value) else tuple(plain(held, inner) for held in value)
    if isinstance(value, (set, frozenset)):
        return UNKNOWN if any(type(e) is Unknown for e in value) else {plain(held, inner) for held in value}
    if isinstance(value, (FunctionValue, ClassValue, External, BuiltinClass)):
        return f"<{value.name}>"
    if isinstance(value, KnownIterator):
        return "<iterator>"
    if isinstance(value, Partial):
        return "<partial>"
    return value


def _open(value: Any) -> bool:
    return any(type(element) is Unknown and element.many for element in value)


def lines(instance: Instance, name: str) -> list[int]:
    """Lines on which an attribute was written, first to last."""
    found = []
    write = instance.origin.get(name)
    while write is not None:
        found.append(write.site.line)
        write = write.previous
    return found[::-1]
