"""Python's dataclass rules: field order and defaults along the bases, and the constructor that follows from them."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.machine import Machine
from mblint.evaluate.site import Site
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, ClassValue, External, Field, FunctionValue, Instance


def make_dataclass(machine: Machine, cls: ClassValue, options: dict[str, object]) -> None:
    """Apply @dataclass: collect fields from the bases (reverse method order), then from the body."""
    cls.dataclass = True
    cls.frozen = options.get("frozen") is True
    cls.kw_only = options.get("kw_only") is True
    fields: dict[str, Field] = {}
    for base in reversed(cls.cached_mro[1:]):
        if isinstance(base, ClassValue) and base.dataclass:
            fields.update(base.field_map)
    annotations: dict[str, ast.AnnAssign] = cls.namespace.get("__annotations__", {})  # type: ignore[assignment]
    keyword_only = cls.kw_only
    for name, statement in annotations.items():
        text = ast.unparse(statement.annotation) if not isinstance(statement.annotation, ast.Constant) else str(statement.annotation.value)
        if text.startswith(("ClassVar", "typing.ClassVar")):
            continue
        if text in ("KW_ONLY", "dataclasses.KW_ONLY"):
            keyword_only = True
            continue
        site = Site(cls.module, statement, cls.qualname)
        field = Field(name, cls, statement.annotation, cls.module, site)
        field.kw_only = keyword_only
        given = cls.namespace.get(name, MISSING)
        if isinstance(given, Field):
            field.default = given.default
            field.factory = given.factory
            field.init = given.init
            field.metadata = given.metadata
            if given.kw_only:
                field.kw_only = True
            if field.default is not MISSING:
                cls.namespace[name] = field.default
            else:
                del cls.namespace[name]
        elif given is not MISSING:
            field.default = given
        # A field that is redefined keeps its place in the order.
        fields[name] = field
    cls.field_map = fields
    cls.template = None
    cls.init_names = None


def _prepare(cls: ClassValue) -> None:
    """Default attributes that every instance starts with."""
    template: dict[str, object] = {}
    factories: list[Field] = []
    for name, field in cls.field_map.items():
        if field.factory is not MISSING:
            factories.append(field)
        elif field.default is not MISSING:
            template[name] = field.default
    cls.template = template
    cls.factories = factories


def construct(
    machine: Machine,
    cls: ClassValue,
    instance: Instance,
    args: list[Any],
    kwargs: dict[str, Any],
    sites: dict[str, Any] | None,
    site: Any,
    frame: Any,
) -> None:
    """The generated __init__: set every field, then call __post_init__."""
    from mblint.evaluate.calls import call
    from mblint.evaluate.objects import hooks_of, set_attribute
    from mblint.evaluate.values import BoundMethod

    if cls.template is None:
        _prepare(cls)
    given = kwargs
    if args:
        given = dict(kwargs)
        names = [f.name for f in cls.field_map.values() if f.init and not f.kw_only]
        if len(args) > len(names):
            machine.implicit(TypeError, f"{cls.name}() takes {len(names)} positional arguments but {len(args)} were given", site, frame)
        for name, value in zip(names, args, strict=False):
            given[name] = value
    hooks = hooks_of(instance.cls) if instance.cls is not None else hooks_of(cls)
    plan = instance.cls.plan if instance.cls is not None else None
    if hooks.setattr is not None or plan or instance.attrs:
        for name, field in cls.field_map.items():
            if name in given:
                value = given[name]
            elif field.factory is not MISSING:
                value = call(machine, field.factory, [], {}, field.site, frame)
            elif field.default is not MISSING:
                value = field.default
            else:
                continue
            if name in given or hooks.setattr is not None:
                set_attribute(machine, instance, name, value, (sites or {}).get(name, site) if name in given else field.site, frame)
                if name not in given:
                    instance.origin.pop(name, None)
            else:
                instance.attrs[name] = value
                instance.origin.pop(name, None)
    else:
        attrs = instance.attrs
        attrs.update(cls.template)  # type: ignore[arg-type]
        for field in cls.factories:
            if field.name not in given:
                attrs[field.name] = call(machine, field.factory, [], {}, field.site, frame)
        for name, value in given.items():
            if name in cls.field_map:
                machine.write(instance, name, value, sites.get(name, site) if sites else site, frame.trace)
    for name in given:
        field_ = cls.field_map.get(name)
        if field_ is None or not field_.init:
            if any(type(b) is Unknown for b in cls.cached_mro) or (type(given[name]) is Unknown and given[name].optional):
                continue
            bad_site = sites.get(name, site) if sites else site
            machine.implicit(TypeError, f"{cls.name}.__init__() got an unexpected keyword argument '{name}'", bad_site, frame)
    if not cls.opaque:
        missing = [f.name for f in cls.field_map.values() if f.init and f.name not in instance.attrs]
        if missing:
            machine.implicit(
                TypeError, f"{cls.name}.__init__() missing required argument{'s' if len(missing) > 1 else ''}: {', '.join(missing)}", site, frame
            )
            for name in missing:
                instance.attrs[name] = Unknown(f"{name} was not given")
    if hooks.post_init is not None:
        call(machine, BoundMethod(hooks.post_init, instance), _init_variables(cls, given), {}, site, frame)


def _init_variables(cls: ClassValue, given: dict[str, Any]) -> list[Any]:
    """Values of InitVar pseudo-fields, which __post_init__ takes as arguments."""
    if cls.init_names is None:
        cls.init_names = [name for name, field in cls.field_map.items() if _is_init_variable(field.annotation)]
    return [given.get(name, cls.field_map[name].default) for name in cls.init_names]


def _is_init_variable(annotation: ast.expr | None) -> bool:
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.value, (ast.Name, ast.Attribute)):
        return False
    return ast.unparse(annotation.value) in ("InitVar", "dataclasses.InitVar")


def field_declaration(machine: Machine, kwargs: dict[str, Any], site: Any) -> Field:
    """dataclasses.field(...)"""
    declared = Field("", None, None, None, site)  # type: ignore[arg-type]
    declared.default = kwargs.get("default", MISSING)
    if isinstance(declared.default, External) and declared.default.name == "dataclasses.MISSING":
        declared.default = MISSING
    declared.factory = kwargs.get("default_factory", MISSING)
    declared.init = kwargs.get("init", True) is not False
    declared.kw_only = kwargs.get("kw_only") is True
    declared.metadata = kwargs.get("metadata")
    return declared


def is_hand_written(cls: ClassValue) -> FunctionValue | None:
    """The __init__ that somebody wrote, when it wins over a generated one."""
    for base in cls.cached_mro:
        if isinstance(base, ClassValue):
            held = base.namespace.get("__init__")
            if isinstance(held, FunctionValue):
                return held
            if base.dataclass:
                return None
    return None
