"""Python's dataclass rules: field order and defaults along the bases, and the constructor that follows from them."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.machine import Machine
from mblint.evaluate.site import Site
from mblint.evaluate.unknown import Unknown, like
from mblint.evaluate.values import MISSING, REST, ClassValue, External, Field, FunctionValue, Instance


def make_dataclass(machine: Machine, cls: ClassValue, options: dict[Any, Any]) -> None:
    """Apply @dataclass: collect fields from the bases (reverse method order), then from the body."""
    cls.dataclass = True
    cls.options = dict(options)
    cls.frozen = options.get("frozen") is True or any(isinstance(b, ClassValue) and b.frozen for b in cls.cached_mro[1:])
    cls.kw_only = options.get("kw_only") is True
    fields: dict[str, Field] = {}
    for base in reversed(cls.cached_mro[1:]):
        if isinstance(base, ClassValue) and base.dataclass:
            fields.update(base.field_map)
            cls.init_variables.update(base.init_variables)
    annotations: dict[str, ast.AnnAssign] = cls.namespace.get("__annotations__", {})  # type: ignore[assignment]
    keyword_only = cls.kw_only
    for name, statement in annotations.items():
        head = _head(statement.annotation)
        if head == "ClassVar":
            continue
        if head == "KW_ONLY":
            keyword_only = True
            continue
        field = Field(name, cls, statement.annotation, cls.module, Site(cls.module, statement, cls.qualname))
        field.kw_only = keyword_only
        _declare(cls, field, cls.namespace.get(name, MISSING))
        if head == "InitVar":
            cls.init_variables[name] = field
        else:
            cls.init_variables.pop(name, None)
        # A field that is redefined keeps its place in the order.
        fields[name] = field
    cls.field_map = fields
    cls.template = None
    cls.hooks = None


def _head(annotation: ast.expr) -> str:
    """The last name of an annotation's head: ClassVar for typing.ClassVar[int]."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        text = annotation.value.partition("[")[0].strip()
        return text.rpartition(".")[2]
    while isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    if isinstance(annotation, ast.Attribute):
        return annotation.attr
    return annotation.id if isinstance(annotation, ast.Name) else ""


def _declare(cls: ClassValue, field: Field, given: Any) -> None:
    """Take default and options from what the class body assigned to the field's name."""
    if not isinstance(given, Field):
        if given is not MISSING:
            field.default = given
        return
    field.default = given.default
    field.factory = given.factory
    field.init = given.init
    field.compare = given.compare
    field.metadata = given.metadata
    if given.kw_only is not None:
        field.kw_only = given.kw_only
    if field.default is not MISSING:
        cls.namespace[field.name] = field.default
    else:
        del cls.namespace[field.name]


def prepare(cls: ClassValue) -> None:
    """What every construction needs: default attributes, factories, parameter names."""
    template: dict[str, object] = {}
    factories: list[Field] = []
    for name, field in cls.field_map.items():
        if name in cls.init_variables:
            continue
        if field.factory is not MISSING:
            factories.append(field)
        elif field.default is not MISSING:
            template[name] = field.default
    cls.template = template
    cls.factories = factories
    parameters = [field for field in cls.field_map.values() if field.init]
    cls.positional = [field.name for field in parameters if not field.kw_only]
    cls.required = [field.name for field in parameters if field.default is MISSING and field.factory is MISSING]


def construct(
    machine: Machine,
    cls: ClassValue,
    instance: Instance,
    args: list[Any],
    kwargs: dict[Any, Any],
    sites: dict[Any, Any] | None,
    site: Any,
    frame: Any,
) -> None:
    """The generated __init__: set every field, then call __post_init__."""
    from mblint.evaluate.calls import call
    from mblint.evaluate.objects import hooks_of
    from mblint.evaluate.values import BoundMethod

    if cls.template is None:
        prepare(cls)
    assert cls.template is not None
    given = kwargs
    if args:
        given = _with_positional(machine, cls, args, kwargs, site, frame)
    bad = _check_arguments(machine, cls, given, sites, site, frame)
    hooks = hooks_of(instance.cls) if instance.cls is not None else hooks_of(cls)
    plan = instance.cls.plan if instance.cls is not None else None
    if hooks.setattr is not None or plan or instance.attrs:
        _set_one_by_one(machine, cls, instance, given, sites, site, frame)
    else:
        attrs = instance.attrs
        attrs.update(cls.template)
        for field in cls.factories:
            if field.name not in given:
                attrs[field.name] = call(machine, field.factory, [], {}, field.site, frame)
        field_map = cls.field_map
        variables = cls.init_variables
        for name, value in given.items():
            if name in field_map and name not in variables:
                if type(value) is Unknown and value.optional:
                    value = like(value)  # the default is possible
                machine.write(instance, name, value, sites.get(name, site) if sites else site, frame.trace)
    for name in bad:
        instance.attrs.setdefault(name, Unknown(f"{name} was not given"))
    if hooks.post_init is not None:
        variables_given = [given.get(name, field.default) for name, field in cls.init_variables.items()]
        call(machine, BoundMethod(hooks.post_init, instance), variables_given, {}, site, frame)


def _with_positional(machine: Machine, cls: ClassValue, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> dict[Any, Any]:
    given: dict[Any, Any] = {}
    names = cls.positional
    if len(args) > len(names):
        least = 1 + len([name for name in names if name in cls.required])
        takes = f"from {least} to {len(names) + 1}" if least != len(names) + 1 else str(least)
        were = "was" if len(args) == 0 else "were"
        text = f"{cls.name}.__init__() takes {takes} positional argument{'s' if takes != '1' else ''} but {len(args) + 1} {were} given"
        machine.implicit(TypeError, text, site, frame)
    for name, value in zip(names, args, strict=False):
        given[name] = value
        if name in kwargs:
            machine.implicit(TypeError, f"{cls.name}.__init__() got multiple values for argument '{name}'", site, frame)
    given.update(kwargs)
    return given


def _check_arguments(
    machine: Machine, cls: ClassValue, given: dict[Any, Any], sites: dict[Any, Any] | None, site: Any, frame: Any
) -> list[str]:
    """Python's complaints about the arguments; returns the required ones that are missing."""
    field_map = cls.field_map
    for name, value in given.items():
        field = field_map.get(name)
        if type(value) is Unknown and value.optional:
            continue
        if (field is None or not field.init) and not any(type(b) is Unknown for b in cls.cached_mro):
            where = sites.get(name, site) if sites else site
            machine.implicit(TypeError, f"{cls.name}.__init__() got an unexpected keyword argument '{name}'", where, frame)
    if not cls.required or REST in given:
        return []
    missing = [name for name in cls.required if name not in given]
    if missing and not cls.opaque:
        from mblint.evaluate.calls import listed

        plural = "s" if len(missing) > 1 else ""
        kind = "keyword-only" if all(name not in cls.positional for name in missing) else "positional"
        shown = [name for name in missing if (name in cls.positional) == (kind == "positional")]
        text = f"{cls.name}.__init__() missing {len(shown)} required {kind} argument{plural}: {listed(shown)}"
        machine.implicit(TypeError, text, site, frame)
    return missing


def _set_one_by_one(
    machine: Machine, cls: ClassValue, instance: Instance, given: dict[Any, Any], sites: dict[Any, Any] | None, site: Any, frame: Any
) -> None:
    """Fields of a class that watches its attributes, or that has some already, in the order of the generated code."""
    from mblint.evaluate.calls import call
    from mblint.evaluate.objects import hooks_of, set_attribute

    watched = hooks_of(instance.cls or cls).setattr is not None
    frozen = cls.frozen
    for name, field in cls.field_map.items():
        if name in cls.init_variables:
            continue
        if name in given:
            value = given[name]
        elif field.factory is not MISSING:
            value = call(machine, field.factory, [], {}, field.site, frame)
        elif field.default is not MISSING:
            value = field.default
        else:
            continue
        where = (sites or {}).get(name, site) if name in given else field.site
        if frozen:
            machine.write(instance, name, value, where, frame.trace)
        elif name in given or watched or (instance.cls is not None and name in (instance.cls.plan or ())):
            set_attribute(machine, instance, name, value, where, frame)
        else:
            instance.attrs[name] = value
        if name not in given:
            instance.origin.pop(name, None)


def field_declaration(machine: Machine, kwargs: dict[Any, Any], site: Any) -> Field:
    """dataclasses.field(...)"""
    declared = Field("", None, None, None, site)  # type: ignore[arg-type]
    declared.default = kwargs.get("default", MISSING)
    if isinstance(declared.default, External) and declared.default.name == "dataclasses.MISSING":
        declared.default = MISSING
    declared.factory = kwargs.get("default_factory", MISSING)
    declared.init = kwargs.get("init", True) is not False
    declared.compare = kwargs.get("compare", True) is not False
    declared.kw_only = kwargs.get("kw_only")
    declared.metadata = kwargs.get("metadata")
    return declared


def is_hand_written(cls: ClassValue) -> FunctionValue | None:
    """The __init__ that somebody wrote, when it wins over a generated one."""
    for base in cls.cached_mro:
        if isinstance(base, ClassValue):
            held = base.namespace.get("__init__")
            if isinstance(held, FunctionValue):
                return held
            if base.dataclass and base.options.get("init", True) is not False:
                return None
    return None


def fields_of(cls: ClassValue) -> list[Field]:
    """dataclasses.fields(cls): the fields without the pseudo-fields."""
    return [field for name, field in cls.field_map.items() if name not in cls.init_variables]
