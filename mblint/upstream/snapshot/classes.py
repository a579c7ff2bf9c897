"""Classes of a snapshot. A record holds

b     bases                  y   kinds: "d" dataclass, "f" frozen, "k" keyword-only, "o" a base is not known
a     [[field, annotation, kind, value], ...], the class's own fields in order; kind adds up
      1 default, 2 made anew for each instance, 4 no parameter of the constructor, 8 keyword only, 16 InitVar
v     class attribute -> value; of an enumeration its members, in order
m     method -> [parameters, effects], see functions.py; "s" static and "c" class methods: names of m
p     property -> [value or null, whether it can be set]
post  field -> what __post_init__ leaves in it, for the fields that it may change; null: nothing is known
init  constructor that somebody wrote: {"a": parameters, "d": their defaults, "v": attribute -> value,
      "k": all keywords}
sync  attribute -> the one that is always set with it
to    attribute whose object takes and gives what this one does not have
"""

from __future__ import annotations

import ast
from functools import lru_cache, partial
from typing import Any

from mblint.evaluate.frames import Frame
from mblint.evaluate.machine import Machine
from mblint.evaluate.objects import find_in_class, finish_class, get_attribute, set_attribute
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    Builtin,
    ClassMethod,
    ClassValue,
    Field,
    FunctionValue,
    Instance,
    Property,
    StaticMethod,
)
from mblint.upstream.snapshot.functions import change_arguments, machine_of, native
from mblint.upstream.snapshot.values import Call

LENGTHS = ("seq_length", "sequence_length")
"""Two names of one setting of datasets."""

DEFAULT, FACTORY, NOT_INIT, KEYWORD, INIT_ONLY = 1, 2, 4, 8, 16


@lru_cache(maxsize=4096)
def annotation_of(text: str) -> ast.expr | None:
    """The expression of an annotation."""
    try:
        return ast.parse(text, mode="eval").body if text else None
    except SyntaxError:
        return ast.Name(text)


def make_class(part: Any, reference: str, record: dict[str, Any]) -> ClassValue:
    """The class that a record describes."""
    snapshot = part.snapshot
    module = snapshot.module(reference.partition(":")[0])
    qualname = reference.partition(":")[2]
    bases = tuple([part.values.default(base) for base in record.get("b", ())])
    cls = ClassValue(qualname.rpartition(".")[2], qualname, module, bases, None)  # type: ignore[arg-type]
    kinds = record.get("y", "")
    space = cls.namespace
    for name, data in record.get("v", {}).items():
        space[name] = part.values.default(data)
    _add_methods(part, cls, record)
    finish_class(snapshot.machine, cls)
    cls.opaque = cls.opaque or "o" in kinds
    cls.frozen = "f" in kinds
    if "d" in kinds:
        _add_fields(part, cls, record, "k" in kinds)
    return cls


def _add_fields(part: Any, cls: ClassValue, record: dict[str, Any], keyword_only: bool) -> None:
    cls.dataclass = True
    cls.kw_only = keyword_only
    fields: dict[str, Field] = {}
    for base in reversed(cls.cached_mro[1:]):
        if isinstance(base, ClassValue) and base.dataclass:
            fields.update(base.field_map)
            cls.init_variables.update(base.init_variables)
    for name, annotation, kind, *value in record.get("a", ()):
        field = Field(name, cls, annotation_of(annotation), cls.module, None)  # type: ignore[arg-type]
        field.init = not kind & NOT_INIT
        field.kw_only = bool(kind & KEYWORD)
        if kind & FACTORY:
            field.factory = Builtin("default_factory", partial(_fresh, part, value[0]))
        elif kind & DEFAULT:
            field.default = cls.namespace[name] = part.values.default(value[0])
        if kind & INIT_ONLY:
            cls.init_variables[name] = field
        fields[name] = field
    cls.field_map = fields


def _fresh(part: Any, data: Any, machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return part.values.default(data)


def _add_methods(part: Any, cls: ClassValue, record: dict[str, Any]) -> None:
    space = cls.namespace
    static, of_class = record.get("s", ()), record.get("c", ())
    work: Any
    for name, (parameters, effects) in record.get("m", {}).items():
        full_name = f"{cls.full_name}.{name}"
        special = part.snapshot.machine.special_functions.get(full_name)
        method: Any
        if special is not None:
            method = Builtin(f"method:{name}", special)
        else:
            work = _unknown_constructor if name == "__init__" else partial(change_arguments, full_name, effects)
            method = native(cls.module, f"{cls.qualname}.{name}", parameters, work, cls)
        space[name] = StaticMethod(method) if name in static else ClassMethod(method) if name in of_class else method
    for name, (data, settable) in record.get("p", {}).items():
        getter = native(cls.module, f"{cls.qualname}.{name}", "(self)", partial(_property, part, name, data), cls)
        setter = native(cls.module, f"{cls.qualname}.{name}", "(self, value)", partial(_forget_all, name), cls) if settable else None
        space[name] = Property(getter, setter)
    if "post" in record and "__post_init__" in record.get("m", ()):
        parameters = record["m"]["__post_init__"][0]
        space["__post_init__"] = native(cls.module, f"{cls.qualname}.__post_init__", parameters, _post_init, cls)
    if "init" in record:
        work = partial(_construct, part, record["init"])
        defaults = tuple([part.values.default(data) for data in record["init"].get("d", ())])
        space["__init__"] = native(cls.module, f"{cls.qualname}.__init__", record["init"]["a"], work, cls, defaults)
    if "sync" in record:
        work = partial(_set_both, {**record["sync"], **{b: a for a, b in record["sync"].items()}})
        space["__setattr__"] = native(cls.module, f"{cls.qualname}.__setattr__", "(self, name, value)", work, cls)
    if "to" in record:
        names = "(self, name, value)"
        space["__setattr__"] = native(cls.module, f"{cls.qualname}.__setattr__", names, partial(_pass_on, record["to"]), cls)
        space["__getattr__"] = native(cls.module, f"{cls.qualname}.__getattr__", "(self, name)", partial(_ask, record["to"]), cls)


def _property(part: Any, name: str, data: Any, function: FunctionValue, bound: dict[str, Any], site: Any, frame: Frame) -> Any:
    if data is None:
        return Unknown(f"the property {name} is not evaluated without source")
    call = Call(frame=frame)
    call.receiver = bound["self"]
    return part.values.value(data, call)


def _forget_all(name: str, function: FunctionValue, bound: dict[str, Any], site: Any, frame: Frame) -> None:
    machine_of(function).havoc(bound["self"], f"setting {name} may change it")


# --- constructors -----------------------------------------------------------------------------------------


def _post_init(function: FunctionValue, bound: dict[str, Any], site: Any, frame: Frame) -> None:
    """Leave in the fields what the release's own __post_init__ does."""
    receiver = bound[next(iter(bound))]
    if not isinstance(receiver, Instance) or receiver.cls is None:
        return
    for base in receiver.cls.cached_mro:
        record = _record_of(base)
        if record is not None and "post" in record:
            part = base.module.part  # type: ignore[attr-defined]
            change_fields(part, receiver, record["post"], function, site, frame)
            return


def _record_of(cls: object) -> dict[str, Any] | None:
    part = getattr(getattr(cls, "module", None), "part", None)
    if part is None or not isinstance(cls, ClassValue):
        return None
    record: dict[str, Any] | None = part.data["classes"].get(f"{cls.module.name}:{cls.qualname}")
    return record


def change_fields(part: Any, receiver: Instance, table: dict[str, Any] | None, function: Any, site: Any, frame: Frame) -> None:
    """Set the fields of a table, each from the values that the object has now."""
    machine: Machine = part.snapshot.machine
    if table is None:
        machine.havoc(receiver, f"{function.full_name} is not evaluated without source")
        return
    call = Call(dict(receiver.attrs), trace=frame.trace, called_at=site, frame=frame)
    call.receiver = receiver
    for name, data in table.items():
        call.before = receiver.attrs.get(name, MISSING)
        value = part.values.value(data, call)
        if value is not MISSING and value is not call.before:
            previous = receiver.origin.get(name)
            machine.write(receiver, name, value, site, frame.trace)
            if previous is None:
                receiver.origin.pop(name, None)


def _unknown_constructor(function: FunctionValue, bound: dict[str, Any], site: Any, frame: Frame) -> None:
    """A constructor of which nothing is known: the object has its fields, and no value is known."""
    receiver = bound[next(iter(bound))]
    if isinstance(receiver, Instance) and receiver.cls is not None:
        for name in receiver.cls.field_map:
            receiver.attrs.setdefault(name, Unknown(f"{function.full_name} is not evaluated without source"))


def _construct(part: Any, record: dict[str, Any], function: FunctionValue, bound: dict[str, Any], site: Any, frame: Frame) -> None:
    """A constructor that somebody wrote: attributes from arguments, the others at their defaults."""
    machine: Machine = part.snapshot.machine
    receiver = bound["self"]
    arguments = {name: value for name, value in bound.items() if name != "self"}
    extra = arguments.pop("kwargs", {})
    arguments.update(extra)
    call = Call(arguments, called_at=site, trace=frame.trace, frame=frame)
    sites = _keyword_sites(site)
    wrong = [name for name in extra if name not in record["k"]]
    if wrong:
        machine.implicit(TypeError, f"{receiver.cls.name}() got an unexpected keyword argument '{wrong[0]}'", site, frame)
    for name, data in record["v"].items():
        value = part.values.value(data, call)
        if value is MISSING:
            continue
        receiver.attrs[name] = value
        given = next(
            (word for word in (name, *LENGTHS) if word in arguments and (word == name or name in LENGTHS)),
            None,
        )
        if given is not None and (given in extra or given in sites):
            machine.write(receiver, name, value, sites.get(given, site), frame.trace)


def _keyword_sites(site: Any) -> dict[str, Any]:
    from mblint.evaluate.site import Site

    if not isinstance(site, Site) or not isinstance(site.node, ast.Call):
        return {}
    return {k.arg: Site(site.module, k.value, site.where) for k in site.node.keywords if k.arg}


# --- attribute hooks --------------------------------------------------------------------------------------


def _set_both(pairs: dict[str, str], function: FunctionValue, bound: dict[str, Any], site: Any, frame: Frame) -> None:
    """Set an attribute, and the one that always has the same value once it is there."""
    machine = machine_of(function)
    receiver, name, value = bound["self"], bound["name"], bound["value"]
    machine.write(receiver, name, value, site, frame.trace)
    other = pairs.get(name)
    if other is not None and other in receiver.attrs:
        held = receiver.attrs[other]
        if held is not value and (type(held) is not type(value) or type(value) is Unknown or held != value):
            machine.write(receiver, other, value, site, frame.trace)


def _pass_on(inner: str, function: FunctionValue, bound: dict[str, Any], site: Any, frame: Frame) -> None:
    """Set an attribute on the object that has it."""
    machine = machine_of(function)
    receiver, name, value = bound["self"], bound["name"], bound["value"]
    target = receiver.attrs.get(inner)
    if isinstance(target, Instance) and isinstance(name, str) and _has(target, name):
        set_attribute(machine, target, name, value, site, frame)
    else:
        machine.write(receiver, name, value, site, frame.trace)


def _ask(inner: str, function: FunctionValue, bound: dict[str, Any], site: Any, frame: Frame) -> Any:
    machine = machine_of(function)
    receiver, name = bound["self"], bound["name"]
    target = receiver.attrs.get(inner)
    if isinstance(target, Instance):
        return get_attribute(machine, target, name, site, frame)
    return machine.implicit(AttributeError, f"'{receiver.cls.name}' object has no attribute '{name}'", site, frame)


def _has(target: Instance, name: str) -> bool:
    return name in target.attrs or (target.cls is not None and find_in_class(target.cls, name) is not MISSING)
