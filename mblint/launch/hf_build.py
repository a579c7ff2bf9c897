"""Builds Hugging Face configuration objects: what the constructors of their classes do with the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mblint.evaluate.copying import copy_value
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import BoundMethod, ClassValue, FunctionValue, Instance
from mblint.launch import hf_base
from mblint.launch.hf_steps import run_steps

if TYPE_CHECKING:
    from mblint.launch.hf_classes import Library


def build(library: Library, cls: ClassValue, values: dict[Any, Any]) -> Instance:
    """cls(**values)"""
    from mblint.evaluate.calls import instantiate
    from mblint.evaluate.operators import machine_frame

    machine = library.machine
    made = library.guarded(lambda: instantiate(machine, cls, [], values, None, machine_frame(machine)))
    if isinstance(made, Instance):
        return made
    return machine.new_instance(None, getattr(made, "reason", "") or f"{cls.name} is not known")


def build_open(library: Library, values: dict[str, Any], complete: bool) -> Instance:
    """A configuration of a class that is not known: known is what the file holds, and nothing that it lacks.

    `complete`: the file holds all that there is, so base fields that it lacks have their defaults.
    """
    made = library.machine.new_instance(library.open, "the class of this configuration is not known")
    given = dict(values)
    for key, inner in values.items():
        if isinstance(inner, dict) and key.endswith("_config") and "quant" not in key:
            # A part that says of which model type it is, is configured like that type.
            cls = library.class_of(inner.get("model_type"), inner.get("architectures"))
            given[key] = build(library, cls, inner) if cls is not None else build_open(library, inner, complete)
    hf_base.finish(library, made, given)
    if not complete:
        for name in library.table["base"]["fields"]:
            if name not in values and not (name == "dtype" and "torch_dtype" in values):
                made.attrs.pop(name, None)
    elif not {"rope_scaling", "rope_parameters"} & values.keys():
        # A whole file holds all that its class sets: scaling of the rotary embedding has no other default.
        made.attrs["rope_parameters" if library.table["base"]["rope"] else "rope_scaling"] = None
    return made


def construct(library: Library, name: str | None, instance: Instance, kwargs: dict[Any, Any]) -> None:
    """The constructor of a class of the table (None: the common base class), called with these keywords."""
    machine = library.machine
    # Classes change the dicts that they get: the caller's stay as they are, those of one construction are
    # shared.
    inner, library.constructing = library.constructing, True
    given = {key: value if inner else copy_value(machine, value) for key, value in kwargs.items() if key is not None}
    mark = machine.mark()
    try:
        library.guarded(lambda: _initialize(library, name, instance, given))
    finally:
        library.constructing = inner
    if machine.speculation == 0:
        machine.forget(mark)
    if None in kwargs:
        for field in library.fields_of(name):
            if field not in kwargs:
                instance.attrs[field] = Unknown("built from keyword arguments that are not known")


def _initialize(library: Library, name: str | None, instance: Instance, given: dict[str, Any]) -> None:
    if not library.post_style or _constructor(library, name, "init")[1] is not None:
        _run(library, name, "init", instance, given)
        return
    for field, default in library.fields_of(name).items():
        library.put(instance, field, given.pop(field) if field in given else library.fresh(default))
    written = _written_post_init(instance)
    if written is not None:
        from mblint.evaluate.calls import call
        from mblint.evaluate.operators import machine_frame

        machine = library.machine
        call(machine, BoundMethod(written, instance), [], given, None, machine_frame(machine))
        return
    _run(library, name, "post", instance, given)
    hf_base.name_rope_type(library, instance)


def _written_post_init(instance: Instance) -> FunctionValue | None:
    """A __post_init__ of evaluated source, when it comes before those of the package."""
    for cls in instance.cls.cached_mro if instance.cls is not None else ():
        held = cls.namespace.get("__post_init__") if isinstance(cls, ClassValue) else None
        if held is not None:
            return held if isinstance(held, FunctionValue) else None
    return None


def _constructor(library: Library, name: str | None, kind: str) -> tuple[str | None, list[Any] | None]:
    """The nearest class upwards that has a constructor of its own: (its name, [parameters, steps])."""
    while name is not None:
        record = library.records[name]
        if kind in record:
            return name, record[kind]
        name = record.get("b")
    return None, None


def _run(library: Library, name: str | None, kind: str, instance: Instance, given: dict[str, Any]) -> None:
    """Run a constructor ("init") or __post_init__ ("post") and through it those of the bases."""
    owner, constructor = _constructor(library, name, kind)
    if owner is None or constructor is None:
        hf_base.finish(library, instance, given)
        return
    parameters, steps = constructor
    variables: dict[str, Any] = {"c": instance}
    for parameter, *default in parameters:
        if parameter in given:
            variables[parameter] = given.pop(parameter)
        elif len(default) > 1:
            variables[parameter] = Unknown(f"the default of {parameter} is computed")
        else:
            variables[parameter] = library.fresh(default[0]) if default else None
    variables["kw"] = library.machine.born(given)

    def base(extra: dict[str, Any]) -> None:
        _run(library, library.records[owner].get("b"), kind, instance, {**variables["kw"], **extra})

    run_steps(library, instance, steps, variables, base)
