"""OmegaConf on literal data: create, merge, to_container and friends. Interpolations are not resolved here."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.library.registry import Args, Kwargs, library
from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, REST, External, Instance, TrackedDict

DEEPEST = 30


class ConfigDict(TrackedDict):
    """omegaconf.DictConfig: entries are attributes too."""

    __slots__ = ()

    def attribute(self, machine: Machine, name: str, site: Any, frame: Any, default: Any) -> Any:
        from mblint.evaluate.subscripts import find_key

        found = find_key(self, name)
        if found is not MISSING:
            return found
        if default is not MISSING:
            return default
        return machine.implicit(AttributeError, f"Missing key {name}", site, frame)

    def set_attribute(self, machine: Machine, name: str, value: Any, site: Any, frame: Any) -> None:
        machine.touch_entry(self, name)
        self[name] = wrap(machine, value)
        machine.store(self.sites, name, site)

    def entry(self, machine: Machine, value: Any) -> Any:
        """What is held for a value that is assigned."""
        return wrap(machine, value)

    def type_of(self) -> Any:
        return External("omegaconf.DictConfig")


class ConfigList(list[Any]):
    """omegaconf.ListConfig."""

    def type_of(self) -> Any:
        return External("omegaconf.ListConfig")


def read(value: Any) -> Any:
    """An interpolation or a missing value is not known; anything else is as it was written."""
    if isinstance(value, str) and ("${" in value or value == "???"):
        return Unknown("an interpolation" if "${" in value else "a value that must be set", partial=value)
    return value


def wrap(machine: Machine, value: Any, depth: int = 0) -> Any:
    """Plain containers as OmegaConf holds them: copied."""
    if depth > DEEPEST:
        return Unknown("nested too deeply")
    if isinstance(value, dict):
        made = ConfigDict()
        machine.born(made)
        for key, held in value.items():
            made[key] = wrap(machine, held, depth + 1) if key is not REST else held
        if isinstance(value, TrackedDict):
            made.sites.update(value.sites)
        return made
    if isinstance(value, (list, tuple)):
        return machine.born(ConfigList([wrap(machine, held, depth + 1) for held in value]))
    if isinstance(value, Instance):
        return _structured(machine, value, depth)
    return read(value)


def _structured(machine: Machine, value: Instance, depth: int) -> Any:
    """A dataclass instance as a config: its fields."""
    cls = value.cls
    if cls is None or not cls.dataclass:
        return Unknown(value.reason or "an object inside a config")
    from mblint.evaluate.dataclass import fields_of

    made = ConfigDict()
    machine.born(made)
    for field in fields_of(cls):
        if field.name in value.attrs:
            made[field.name] = wrap(machine, value.attrs[field.name], depth + 1)
            if field.name in value.origin:
                made.sites[field.name] = value.origin[field.name].site
    return made


def unwrap(machine: Machine, value: Any, depth: int = 0) -> Any:
    """OmegaConf containers as plain ones."""
    if depth > DEEPEST:
        return Unknown("nested too deeply")
    if isinstance(value, dict):
        made = TrackedDict()
        machine.born(made)
        for key, held in value.items():
            made[key] = unwrap(machine, held, depth + 1)
        if isinstance(value, TrackedDict):
            made.sites.update(value.sites)
        return made
    if isinstance(value, list):
        return machine.born([unwrap(machine, held, depth + 1) for held in value])
    return value


def merge(machine: Machine, left: Any, right: Any, depth: int = 0) -> Any:
    """Dicts are merged entry by entry, anything else is replaced."""
    if not isinstance(left, ConfigDict) or not isinstance(right, ConfigDict) or depth > DEEPEST:
        return right
    if REST in right:
        return Unknown("merged with entries that are not known")
    made = ConfigDict()
    machine.born(made)
    made.update(left)
    made.sites.update(left.sites)
    for key, held in right.items():
        made[key] = merge(machine, made[key], held, depth + 1) if key in made else held
        if key in right.sites:
            made.sites[key] = right.sites[key]
    return made


@library("omegaconf.OmegaConf.create")
def _create(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    value = args[0] if args else kwargs.get("obj", machine.born(TrackedDict()))
    if isinstance(value, str) or value is None:
        return Unknown("a config read from text")
    return wrap(machine, value)


@library("omegaconf.OmegaConf.structured")
def _from_class(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return wrap(machine, args[0]) if isinstance(args[0], Instance) else Unknown("a config made from a class")


@library("omegaconf.OmegaConf.merge", "omegaconf.OmegaConf.unsafe_merge")
def _merge(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    merged = wrap(machine, args[0])
    for other in args[1:]:
        if not isinstance(other, (dict, list, Instance)):
            return Unknown(getattr(other, "reason", "") or "merged with what is not known")
        merged = merge(machine, merged, wrap(machine, other))
    return merged


@library("omegaconf.OmegaConf.to_container", "omegaconf.OmegaConf.to_object")
def _to_container(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    if not isinstance(args[0], (ConfigDict, ConfigList)):
        return Unknown(getattr(args[0], "reason", "") or "not a config")
    return unwrap(machine, args[0])


@library("omegaconf.OmegaConf.from_dotlist")
def _from_dotlist(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    words = args[0]
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        return Unknown("overrides that are not known")
    made = ConfigDict()
    machine.born(made)
    for word in words:
        key, equals, text = word.partition("=")
        _put(machine, made, key, _parsed(text) if equals else None, site)
    return made


def _parsed(text: str) -> Any:
    """A value as OmegaConf reads it from a command line: YAML."""
    import yaml

    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return Unknown("a text that is not YAML")
    return value if isinstance(value, (str, int, float, bool, type(None))) else Unknown("a structure inside an override")


def _put(machine: Machine, target: ConfigDict, dotted: str, value: Any, site: Any) -> None:
    head, _, tail = dotted.partition(".")
    if not tail:
        target.set_attribute(machine, head, value, site, None)
        return
    held = target.get(head)
    if not isinstance(held, ConfigDict):
        held = ConfigDict()
        machine.born(held)
        target.set_attribute(machine, head, held, site, None)
        held = target[head]
    _put(machine, held, tail, value, site)


@library("omegaconf.OmegaConf.update")
def _update(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    target, key, value = args[0], args[1], args[2] if len(args) > 2 else kwargs.get("value")
    if isinstance(target, ConfigDict) and isinstance(key, str):
        _put(machine, target, key, value, site)
    else:
        machine.havoc(target, "updated under a key that is not known")
    return None


@library("omegaconf.OmegaConf.select")
def _select(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    value, key = args[0], args[1]
    if not isinstance(key, str):
        return Unknown("a key that is not known")
    for part in key.split("."):
        if not isinstance(value, ConfigDict):
            return Unknown("a part of a config that is not known")
        if REST in value:
            return Unknown("a config with unknown entries")
        if part not in value:
            return kwargs.get("default", args[2] if len(args) > 2 else None)
        value = value[part]
    return value


@library("omegaconf.OmegaConf.is_config", "omegaconf.OmegaConf.is_dict", "omegaconf.OmegaConf.is_list")
def _is_config(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    if type(args[0]) is Unknown or isinstance(args[0], Instance):
        return Unknown("whether a value is a config")
    return isinstance(args[0], (ConfigDict, ConfigList))


@library(
    "omegaconf.OmegaConf.set_struct", "omegaconf.OmegaConf.set_readonly", "omegaconf.OmegaConf.resolve",
    "omegaconf.OmegaConf.register_new_resolver",
)  # fmt: skip
def _settings(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return None


__all__ = ["ConfigDict", "ConfigList", "merge", "unwrap", "wrap"]
