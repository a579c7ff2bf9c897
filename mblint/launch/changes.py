"""Values that are put into a config on the heap: `--set`, and what fixes change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.codec import decode
from mblint.evaluate.objects import set_attribute
from mblint.evaluate.operators import machine_frame
from mblint.evaluate.site import SourceSite
from mblint.evaluate.unknown import ABSENT
from mblint.evaluate.values import MISSING, ClassValue, External, Instance
from mblint.launch.description import CannotEvaluate, Launch, UnknownKey
from mblint.launch.release_text import asks, reads
from mblint.launch.session import Session
from mblint.ruleset.suggest import closest


def apply_set(session: Session, cfg: Instance, launch: Launch) -> None:
    """Assign the `set` values. `section.__class__` makes a section that is null. Raises CannotEvaluate."""
    machine = session.machine
    frame = machine_frame(machine)
    ordered = sorted(launch.set.items(), key=lambda item: not item[0].endswith(".__class__"))
    for key, data in ordered:
        site = SourceSite(None, f"{launch.set_by} {key}")
        parts = key.split(".")
        owner: Any = cfg
        if parts[-1] == "__class__":
            _make_section(session, cfg, parts[:-1], str(data), site, frame)
            continue
        for depth, part in enumerate(parts[:-1]):
            held = owner.attrs.get(part) if isinstance(owner, Instance) else owner.get(part) if isinstance(owner, dict) else None
            if held is None and owner is cfg and part == "env_vars":
                held = _environment(session, cfg, site)
            if held is None:
                refuse_unknown(session, cfg, owner, parts[: depth + 1], launch)
                raise CannotEvaluate(f"{launch.set_by} {key}: {'.'.join(parts[: depth + 1])} is null in this config", launch.place)
            owner = held
        refuse_unknown(session, cfg, owner, parts, launch)
        value = field_value(session, owner, parts[-1], data)
        if isinstance(owner, dict):
            machine.touch(owner)
            owner[parts[-1]] = value
        else:
            set_attribute(machine, owner, parts[-1], value, site, frame)


def refuse_unknown(session: Session, cfg: Instance, owner: Any, path: list[str], launch: Launch) -> None:
    """Raise UnknownKey where the last part of a dotted path is no attribute of its owner.

    A config object takes any attribute, and some code reads attributes that not every class declares. So a name passes that
    something in the release asks for with `getattr`, and one that something reads, unless a field of the owner is spelled
    nearly so or another section has the field: then that one is read.
    """
    name = path[-1]
    if not isinstance(owner, Instance) or not is_undeclared(owner, name) or name in owner.attrs:
        return
    assert owner.cls is not None
    asked = asks(session, name)
    if asked is None:  # without the source only this is known: what a dataset has depends on its class, and is asked for
        asked = path[0] == "dataset" and reads(session, name) is not False
    if asked:
        return
    section = ".".join(path[:-1])
    near = closest(name, [field for field in owner.cls.field_map if not field.startswith("_")])
    meant = [f"{section}.{near}".lstrip(".")] if near is not None else _elsewhere(cfg, name)
    if not meant and reads(session, name) is not False:
        return
    hint = f"; did you mean {' or '.join(meant)}?" if meant else ""
    raise UnknownKey(f"{launch.set_by} {'.'.join(path)}: {owner.cls.name} has no field {name}{hint}", launch.place)


def is_undeclared(owner: Instance, name: str) -> bool:
    """Whether an object's class is known, is one of fields, and has no field, method or property of that name."""
    cls = owner.cls
    if cls is None or cls.opaque or not cls.field_map or name in cls.field_map:
        return False
    return not any(isinstance(base, ClassValue) and name in base.namespace for base in cls.cached_mro)


def _elsewhere(cfg: Instance, name: str) -> list[str]:
    """Keys of the config's sections that have a field of that name, at most three."""
    found = [
        f"{section}.{name}"
        for section, held in cfg.attrs.items()
        if isinstance(held, Instance) and held.cls is not None and name in held.cls.field_map and not name.startswith("_")
    ]
    return found[:3]


def apply_changes(session: Session, cfg: Instance, changes: Mapping[str, Any]) -> None:
    """Carry out a fix's changes on the heap: new values by key; ABSENT takes a setting back to its class's default.

    Raises CannotEvaluate for a key whose section is not there.
    """
    machine = session.machine
    frame = machine_frame(machine)
    for key, value in changes.items():
        if _export(session, key, value):
            continue
        *sections, name = key.split(".")
        owner: Any = cfg
        for part in sections:
            held = owner.attrs.get(part) if isinstance(owner, Instance) else None
            if held is None and part == "env_vars":
                held = _environment(session, owner, None)
            if not isinstance(held, (Instance, dict)):
                raise CannotEvaluate(f"{key}: there is no {part}", None)
            owner = held
        if isinstance(owner, dict):
            machine.touch(owner)
            if value is ABSENT or value is None:
                owner.pop(name, None)
            else:
                owner[name] = value
        elif value is ABSENT:
            _reset(session, owner, name)
        else:
            set_attribute(machine, owner, name, field_value(session, owner, name, value), SourceSite(None, "a fix"), frame)


def _environment(session: Session, cfg: Any, site: Any) -> dict[Any, Any]:
    """An empty `env_vars`, for a config that has none yet."""
    held: dict[Any, Any] = session.machine.born({})
    set_attribute(session.machine, cfg, "env_vars", held, site, machine_frame(session.machine))
    return held


def _export(session: Session, key: str, value: Any) -> bool:
    """Change a variable that the launcher exports, which wins over the recipe's `env_vars`; False where it exports none."""
    section, _, name = key.partition(".")
    env = session.world.env
    if section != "env_vars" or name not in env:
        return False
    others = {other: held for other, held in env.items() if other != name}
    session.world.env = others if value is ABSENT or value is None else {**others, name: value}
    return True


def _reset(session: Session, owner: Instance, name: str) -> None:
    """Back to the default of the class; an attribute without one goes away."""
    machine = session.machine
    field = owner.cls.field_map.get(name) if owner.cls is not None else None
    if field is not None and (field.default is not MISSING or field.factory is not MISSING):
        default = field.default
        if field.factory is not MISSING:
            default = call(machine, field.factory, [], {}, None, machine_frame(machine))
        machine.write(owner, name, default, None, None)
    elif name in owner.attrs:
        machine.trail.append((owner.attrs, name, owner.attrs[name]))
        del owner.attrs[name]
    if name in owner.origin:
        machine.trail.append((owner.origin, name, owner.origin[name]))
        del owner.origin[name]


def _make_section(session: Session, cfg: Instance, path: list[str], class_name: str, site: Any, frame: Any) -> None:
    from mblint.evaluate.codec import resolve

    cls = resolve(session.machine, class_name)
    owner: Any = cfg
    for part in path[:-1]:
        owner = owner.attrs.get(part) if isinstance(owner, Instance) else None
    if not isinstance(owner, Instance):
        raise CannotEvaluate(f"{'.'.join(path)}.__class__: there is no such section", None)
    if isinstance(cls, ClassValue):
        session.machine.speculation += 1
        try:
            made = call(session.machine, cls, [], {}, None, frame)
        finally:
            session.machine.speculation -= 1
        if isinstance(made, Instance):
            made.origin.clear()
    else:
        made = session.machine.new_instance(None, f"{class_name} was not found")
    set_attribute(session.machine, owner, path[-1], made, site, frame)


def field_value(session: Session, owner: Any, name: str, data: Any) -> Any:
    """Decode a given value for a field: a plain string may stand for a dtype, a function or an enum member."""
    from mblint.launch.providers import enum_or

    if isinstance(data, dict) and set(data) == {"enum"} and isinstance(owner, Instance):
        return enum_or(session.machine, owner.cls, name, data)
    value = decode(session.machine, data)
    if not isinstance(value, str) or not isinstance(owner, Instance):
        return value
    current = owner.attrs.get(name)
    return named_value(session, owner, name, value, current)


def named_value(session: Session, owner: Instance, name: str, text: str, current: Any) -> Any:
    """What a string means where the field holds a dtype, an activation function or an enum member."""
    from mblint.evaluate.library.torch import DTYPES
    from mblint.evaluate.values import EnumMember

    if isinstance(current, EnumMember):
        members = current.cls.enum_members
        return members.get(text, next((m for m in members.values() if m.value == text), text))
    if name.endswith("dtype") or (isinstance(current, External) and current.name in DTYPES):
        dotted = text if text.startswith("torch.") else f"torch.{_DTYPE_NAMES.get(text, text)}"
        return External(dotted) if dotted in DTYPES else text
    if name == "activation_func" and not isinstance(current, str):
        known = _ACTIVATIONS.get(text)
        if known is None:
            return text
        from mblint.evaluate.codec import resolve

        return resolve(session.machine, known)
    return text


_DTYPE_NAMES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "float": "float32", "half": "float16", "fp8": "float8_e4m3fn"}
_ACTIVATIONS = {
    "silu": "torch.nn.functional.silu",
    "gelu": "torch.nn.functional.gelu",
    "relu": "torch.nn.functional.relu",
    "quick_gelu": "megatron.core.activations.quick_gelu",
    "squared_relu": "megatron.core.activations.squared_relu",
}
