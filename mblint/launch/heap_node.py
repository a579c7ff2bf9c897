"""A config on the evaluator's heap, as the override machinery sees it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.codec import resolve
from mblint.evaluate.library.torch import DTYPES
from mblint.evaluate.objects import class_lookup, get_attribute, set_attribute
from mblint.evaluate.operators import machine_frame
from mblint.evaluate.site import SourceSite
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    BuiltinClass,
    ClassValue,
    EnumMember,
    External,
    Foreign,
    FunctionValue,
    Instance,
    Partial,
    TrackedDict,
)
from mblint.launch.plain import plain
from mblint.launch.session import Session
from mblint.launch.symbols import Construct, Symbol
from mblint.read.span import Span


class HeapNode:
    """One object of the config. `by` names the layer in provenance: a YAML file, the command line."""

    def __init__(self, session: Session, instance: Instance, by: str = "override") -> None:
        self.session = session
        self.instance = instance
        self.by = by

    @property
    def class_name(self) -> str:
        cls = self.instance.cls
        return cls.full_name if cls is not None else "?"

    @property
    def is_callable(self) -> bool:
        return class_lookup(self.instance.cls, "__call__") is not None

    def fields(self) -> Iterable[str]:
        cls = self.instance.cls
        names = cls.field_map if cls is not None and cls.field_map else self.instance.attrs
        return [name for name in names if name in self.instance.attrs]

    def has(self, name: str) -> bool:
        if name in self.instance.attrs:
            return True
        cls = self.instance.cls
        return cls is None or cls.opaque or any(isinstance(base, ClassValue) and name in base.namespace for base in cls.cached_mro)

    def get(self, name: str) -> Any:
        value = self.instance.attrs.get(name, MISSING)
        if value is MISSING:
            machine = self.session.machine
            value = get_attribute(machine, self.instance, name, None, machine_frame(machine), None)
        return self._shown(value)

    def _shown(self, value: Any) -> Any:
        if isinstance(value, Instance):
            if value.cls is None:
                return Unknown(value.reason or "an object that is not known")
            return HeapNode(self.session, value, self.by) if value.cls.dataclass else Symbol("object", value.cls.full_name)
        if isinstance(value, External):
            return Symbol("dtype" if value.name in DTYPES else "function", value.name)
        if isinstance(value, FunctionValue):
            return Symbol("function", value.full_name)
        if isinstance(value, (ClassValue, BuiltinClass)):
            return Symbol("class", value.full_name if isinstance(value, ClassValue) else value.name)
        if isinstance(value, EnumMember):
            return Symbol("enum", f"{value.cls.name}.{value.name}")
        if isinstance(value, Partial):
            return Symbol("object", "functools.partial")
        if isinstance(value, Foreign):
            return Symbol("object", value.class_name)
        if isinstance(value, dict):
            return {key: self._shown(held) for key, held in value.items() if key is not None}
        if isinstance(value, (list, tuple)):
            return [self._shown(held) for held in value]
        if isinstance(value, (set, frozenset)):
            return set(value)
        return value if isinstance(value, (str, int, float, bool, type(None), Unknown)) else plain(value)

    def set(self, name: str, value: Any, span: Span | None) -> None:
        machine = self.session.machine
        made = self._made(name, value)
        set_attribute(machine, self.instance, name, made, SourceSite(span, self.by), machine_frame(machine))

    def _made(self, name: str, value: Any) -> Any:
        machine = self.session.machine
        if isinstance(value, Symbol):
            if value.kind == "enum":
                from mblint.launch.providers import enum_or

                return enum_or(machine, self.instance.cls, name, {"enum": value.name})
            if value.kind == "dtype":
                return External(value.name)
            if value.kind == "object":
                held = self.instance.attrs.get(name)
                return held if held is not None else Foreign(value.name)
            return resolve(machine, value.name)
        if isinstance(value, Construct):
            return construct_value(self.session, value)
        if isinstance(value, HeapNode):
            return value.instance
        if isinstance(value, dict):
            made = machine.born(TrackedDict({key: self._made(name, held) for key, held in value.items()}))
            return made
        if isinstance(value, (list, tuple)):
            return machine.born([self._made(name, held) for held in value])
        if isinstance(value, (set, frozenset)):
            return machine.born(set(value))
        return value


def construct_value(session: Session, wanted: Construct) -> Any:
    """The object of a `_target_` mapping, built by evaluating its class or function; an opaque object where that is not known."""
    machine = session.machine
    target = resolve(machine, wanted.target)
    frame = machine_frame(machine)

    def inner(value: Any) -> Any:
        if isinstance(value, Construct):
            return construct_value(session, value)
        if isinstance(value, dict):
            return machine.born(TrackedDict({key: inner(held) for key, held in value.items()}))
        if isinstance(value, (list, tuple)):
            return machine.born([inner(held) for held in value])
        return value

    if not wanted.call:
        return target
    args, kwargs = [inner(value) for value in wanted.args], {key: inner(value) for key, value in wanted.kwargs.items()}
    if wanted.partial:
        return Partial(target, tuple(args), kwargs)
    if isinstance(target, ClassValue) and target.is_enum and len(args) == 1:
        return call(machine, target, args, {}, None, frame)
    if not isinstance(target, (ClassValue, FunctionValue, BuiltinClass, External)):
        return machine.new_instance(None, f"{wanted.target} was not found")
    site = SourceSite(wanted.span, wanted.target)
    machine.speculation += 1  # fields that a class gained since the file was written are no failure of this launch
    try:
        made = call(machine, target, args, kwargs, None, frame, {key: site for key in kwargs})
    finally:
        machine.speculation -= 1
    return made if type(made) is not Unknown else machine.new_instance(None, made.reason)
