"""Fields of a section of the config, as the located upstream defines them: name, type, default, and the values that may be written."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from mblint.evaluate.site import Site
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, ClassValue, Field, Instance
from mblint.launch.plain import plain

DTYPES = ("torch.bfloat16", "torch.float16", "torch.float32")
MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """One field. `default` is "" where there is none to be shown; `values` are texts that may stand behind `=`."""

    name: str
    type: str
    default: str
    owner: str
    section: bool
    values: tuple[str, ...]
    place: str = ""
    """Where it is defined, as `megatron/core/model_parallel_config.py:55`; "" where the source is not at hand."""


def fields_of(owner: Instance) -> list[FieldInfo]:
    """The fields of an object of the config, those of its own class first."""
    cls = owner.cls
    if cls is None:
        return []
    found = [field_info(field, owner.attrs.get(name)) for name, field in cls.field_map.items() if not name.startswith("_")]
    named = {info.name for info in found}
    for name, value in owner.attrs.items():
        if name not in named and not name.startswith("_") and isinstance(value, Instance) and value.cls is not None:
            found.append(FieldInfo(name, value.cls.name, "", cls.name, True, ()))
    return found


def class_fields(cls: ClassValue) -> list[FieldInfo]:
    """The fields of a dataclass that its constructor takes."""
    return [field_info(field, None) for name, field in cls.field_map.items() if not name.startswith("_") and field.init]


def field_info(field: Field, held: object) -> FieldInfo:
    """What is known of a field; `held` is the value that it has now."""
    annotation = field.annotation
    text = ast.unparse(annotation) if annotation is not None else ""
    return FieldInfo(
        field.name,
        text,
        default_text(field),
        field.owner.name,
        isinstance(held, Instance) and held.cls is not None and bool(held.cls.field_map),
        tuple(dict.fromkeys(values_of(field, annotation))),
        place_of(field),
    )


def default_text(field: Field) -> str:
    """The default of a field as source."""
    if field.default is not MISSING:
        value = plain(field.default)
        return "" if isinstance(value, Unknown) else shown(value)
    if field.factory is not MISSING:
        name = getattr(field.factory, "name", "")
        return f"{name}()" if name and name.isidentifier() else ""
    return ""


def shown(value: object) -> str:
    """A plain value as people write it in Python."""
    if isinstance(value, str):
        return value if value.startswith("torch.") or ("." in value and value.rpartition(".")[2].isupper()) else repr(value)
    return repr(value)


def values_of(field: Field, annotation: ast.expr | None, depth: int = 0) -> Iterator[str]:
    """Texts of the values that an annotation lists: of literals, booleans, enums, dtypes and None."""
    if annotation is None or depth > MAX_DEPTH:
        return
    if isinstance(annotation, ast.BinOp):
        yield from values_of(field, annotation.left, depth + 1)
        yield from values_of(field, annotation.right, depth + 1)
    elif isinstance(annotation, ast.Constant):
        if annotation.value is None:
            yield "None"
        elif isinstance(annotation.value, str):
            try:
                yield from values_of(field, ast.parse(annotation.value, mode="eval").body, depth + 1)
            except (SyntaxError, ValueError):
                return
    elif isinstance(annotation, ast.Subscript):
        name = ast.unparse(annotation.value).rpartition(".")[2]
        inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        if name == "Literal":
            yield from (repr(item.value) for item in inner if isinstance(item, ast.Constant))
        elif name in ("Optional", "Union"):
            for item in inner:
                yield from values_of(field, item, depth + 1)
            if name == "Optional":
                yield "None"
    elif isinstance(annotation, (ast.Name, ast.Attribute)):
        yield from _named_values(field, annotation, depth)


def _named_values(field: Field, annotation: ast.Name | ast.Attribute, depth: int) -> Iterator[str]:
    name = ast.unparse(annotation)
    if name == "bool":
        yield from ("True", "False")
    elif name in ("torch.dtype", "dtype"):
        yield from DTYPES
    elif isinstance(annotation, ast.Name):
        statements = getattr(field.module, "binders", {}).get(name, [])
        if statements and isinstance(statements[-1], ast.Assign):
            yield from values_of(field, statements[-1].value, depth + 1)
            return
        value = field.module.lookup(name) if hasattr(field.module, "lookup") else None
        if isinstance(value, ClassValue) and value.is_enum:
            yield from (f"{value.name}.{member}" for member in value.enum_members)


def enum_values(info: FieldInfo) -> tuple[str, ...]:
    """The values as a YAML file has them: names of enum members, booleans and null in YAML's spelling, words without quotes."""
    found = []
    for text in info.values:
        if text in ("True", "False"):
            found.append(text.lower())
        elif text == "None":
            found.append("null")
        elif text[:1] in "'\"":
            found.append(str(ast.literal_eval(text)))
        else:
            found.append(text.removeprefix("torch.") if text in DTYPES else text.rpartition(".")[2])
    return tuple(found)


def place_of(field: Field) -> str:
    """Where a field is defined; of the shipped snapshot, which has no lines, nothing."""
    site = field.site if isinstance(field.site, Site) else None
    return f"{site.module.relative_path}:{site.line}" if site is not None else ""
