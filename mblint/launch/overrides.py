"""What YAML files and `key=value` arguments do to a config, as upstream's override machinery does it.

Upstream turns the config into an OmegaConf tree (functions and other objects left out), merges the YAML file
without struct mode, applies Hydra overrides with struct mode, and writes every key of the result back with
`setattr` (megatron/bridge/training/utils/omegaconf_utils.py). Here the same is done on an abstract config;
the result is the list of assignments that differ, each with the place that wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mblint.evaluate.unknown import Unknown
from mblint.launch import omega
from mblint.launch.omega import Config, Dict, Leaf, List, OmegaError, Tree
from mblint.launch.symbols import ACTIVATION_FIELDS, Construct, Symbol, activation, activation_name, dtype
from mblint.read import hydra
from mblint.read.interpolation import is_interpolation
from mblint.read.span import Span


class ConfigNode(Protocol):
    """One dataclass instance of a config."""

    @property
    def class_name(self) -> str:
        """Qualified name of its class."""

    @property
    def is_callable(self) -> bool:
        """Whether its class defines `__call__` (every PEFT class does): upstream leaves such objects out of
        the tree."""

    def fields(self) -> Iterable[str]:
        """The names of its dataclass fields, in order."""

    def has(self, name: str) -> bool:
        """Whether it has such an attribute: a field, a property, a method."""

    def get(self, name: str) -> Any:
        """A field's value: plain data, None, `ConfigNode`, `Symbol`, `Unknown`, or a list or dict of
        these."""

    def set(self, name: str, value: Any, span: Span | None) -> None:
        """Assign plain data, a `Symbol`, a `Construct` or an `Unknown` to an attribute."""


@dataclass(frozen=True, slots=True)
class CliOverride:
    """One `key=value` argument. `unknown` is set when part of its value could not be determined; then `text`
    ends after the `=`."""

    text: str
    span: Span | None = None
    unknown: Unknown | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """One attribute that the overrides set. `spans` says where the items of a dict value were written."""

    key: str
    value: Any
    span: Span | None
    spans: Mapping[str, Span] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A key without effect: no attribute of that name exists on `owner` (upstream only logs a warning), or,
    with `restored`, upstream puts the old object back afterwards."""

    key: str
    span: Span | None
    owner: str
    known: tuple[str, ...] = ()
    restored: bool = False
    value: Any = field(default_factory=lambda: Unknown("a value that nobody asked for"))
    """What the key was to get; unknown for whole sections."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Upstream refuses the overrides: the launch ends here."""

    reason: str
    span: Span | None = None


@dataclass(slots=True)
class OverrideResult:
    assignments: list[Assignment] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    undecided: list[tuple[str, Unknown]] = field(default_factory=list)
    assumed: dict[str, Any] = field(default_factory=dict)
    failed: Failure | None = None


# ------------------------------------------------------------------ config to tree


def config_tree(node: ConfigNode, excluded: dict[str, Any], prefix: str = "") -> Dict:
    """The config as upstream hands it to OmegaConf. Values that it leaves out are collected in `excluded`."""
    items: dict[Any, Tree] = {}
    for name in node.fields():
        key = f"{prefix}{name}"
        value = _base_tree(node.get(name), name, key, excluded)
        if value is not None:
            items[name] = value
    return Dict(items, written=False)


def _base_tree(value: Any, name: str, key: str, excluded: dict[str, Any]) -> Tree | None:
    if isinstance(value, Symbol):
        if value.kind == "dtype":
            return Leaf(value.name, written=False)
        if value.kind in ("enum", "class"):
            return Leaf(value, written=False)
        short = activation_name(value.name) if value.kind == "function" and name in ACTIVATION_FIELDS else None
        if short:
            return Leaf(short, written=False)
        excluded[key] = value
        return None
    if isinstance(value, (set, frozenset, bytes)):
        excluded[key] = value
        return None
    if _is_node(value):
        if value.is_callable:
            excluded[key] = value
            return None
        return config_tree(value, excluded, f"{key}.")
    if isinstance(value, Mapping):
        nested = {item: _base_tree(v, str(item), f"{key}.{item}", excluded) for item, v in value.items()}
        return Dict({item: t for item, t in nested.items() if t is not None}, written=False)
    if isinstance(value, (list, tuple)):
        inner = [_base_tree(v, f"{name}[{i}]", f"{key}[{i}]", {}) for i, v in enumerate(value)]
        return List([t for t in inner if t is not None], written=False)
    return Leaf(value, written=False)


def _is_node(value: Any) -> bool:
    return not isinstance(value, type) and hasattr(value, "fields") and hasattr(value, "class_name")


# ------------------------------------------------------------------ apply


def evaluate_overrides(
    root: ConfigNode,
    layers: Sequence[Dict] = (),
    cli: Sequence[CliOverride] = (),
    env: Mapping[str, Any] | None = None,
    env_known: bool = False,
    resolvers: Mapping[str, omega.Resolver] | None = None,
    foreign_resolvers: bool = False,
) -> OverrideResult:
    """What the overrides do to `root`, which is not changed. `layers` are YAML files, merged first to last.

    With `foreign_resolvers` a resolver nobody knows gives an unknown value (the program that reads the file
    registered it); without, it is a failure, as it is in upstream's own runners.
    """
    result = OverrideResult()
    excluded: dict[str, Any] = {}
    config = Config(
        config_tree(root, excluded),
        env=env or {},
        env_known=env_known,
        resolvers=resolvers or {},
        foreign=foreign_resolvers,
        assumed=result.assumed,
    )
    before = omega.copied(config.root)
    assert isinstance(before, Dict)
    try:
        for layer in layers:
            config.merge(layer)
        for override in cli:
            _apply_cli(config, override, result)
        config.plain(config.root)
    except OmegaError as error:
        result.failed = Failure(error.reason, error.span)
        return result
    _collect(root, config.root, before, (), config, excluded, result)
    return result


def _apply_cli(config: Config, override: CliOverride, result: OverrideResult) -> None:
    try:
        parsed = hydra.parse_override(override.text + ("null" if override.unknown is not None else ""))
    except hydra.HydraError as error:
        raise OmegaError(str(error), override.span) from None
    key, value = parsed.key, parsed.value if override.unknown is None else override.unknown
    if parsed.package is not None:
        raise OmegaError(f"{override.text!r}: {key!r} is no config group (`@` selects a package of one)", override.span)
    if isinstance(value, hydra.Sweep):
        raise OmegaError(f"{override.text!r} is a sweep over several values, and a launch takes one", override.span)
    if isinstance(value, hydra.Shuffled):
        value = Unknown("shuffle() differs from run to run", override.span)
    try:
        if parsed.kind == "delete":
            config.delete(key, value)
        elif parsed.kind == "add" and _exists(config, key) and not isinstance(value, (dict, list)):
            raise OmegaError(f"{override.text!r}: {key!r} exists already; `+` only adds, use {key}=... or ++{key}=...")
        else:
            config.update(key, value, override.span, force=parsed.kind in ("add", "force_add"))
    except omega.UnknownContainer as error:
        result.undecided.append((key, Unknown(error.reason, override.span)))
    except omega.StructError:
        near = _near(config, key)
        meant = f"; did you mean {near}?" if near else ""
        raise OmegaError(f"{override.text!r}: the config has no key {key!r}{meant}", override.span) from None
    except OmegaError as error:
        raise OmegaError(error.reason, override.span) from None


def _near(config: Config, key: str) -> str | None:
    """The key most like one that is not there, in the section that it names."""
    from mblint.ruleset.suggest import closest

    parts = key.split(".")
    for depth, part in enumerate(parts):
        section = config.select(".".join(parts[:depth]))
        if not isinstance(section, Dict):
            return None
        if part not in section.items:
            name = closest(part, [str(name) for name in section.items])
            return ".".join([*parts[:depth], name, *parts[depth + 1 :]]) if name is not None else None
    return None


def _exists(config: Config, key: str) -> bool:
    """Whether `+key` meets a value. An unknown value counts as none: it may be null."""
    found = config.select(key)
    if not isinstance(found, Leaf):
        return found is not None
    return not (found.value is None or isinstance(found.value, Unknown) or found.value == omega.MISSING)


# ------------------------------------------------------------------ tree back to config


def _collect(
    node: ConfigNode,
    after: Dict,
    before: Dict,
    path: tuple[str, ...],
    config: Config,
    excluded: Mapping[str, Any],
    result: OverrideResult,
) -> None:
    for name, item in after.items.items():
        here = (*path, name)
        key = omega.dotted(here)
        old = before.items.get(name)
        if not isinstance(name, str) or (old is None and not node.has(name)):
            place = after.keys.get(name) or _span(item)
            meant = config.plain(item, here) if isinstance(item, Leaf) and not is_interpolation(item.value) else None
            known = {} if meant is None else {"value": meant}
            result.skipped.append(Skipped(key, place, node.class_name, tuple(node.fields()), **known))
            continue
        if key in excluded and old is None:
            # The old object is put back afterwards. What was written into it, instead of over it, stays.
            if isinstance(item, Dict) and "_target_" not in item.items and _is_node(excluded[key]):
                _collect(excluded[key], item, Dict({}, written=False), here, config, excluded, result)
                continue
            place = after.keys.get(name) or _span(item)
            result.skipped.append(Skipped(key, place, node.class_name, restored=True))
            continue
        if isinstance(item, Leaf) and not item.written and not is_interpolation(item.value):
            continue
        current = node.get(name)
        try:
            final = config.resolved(item, here)
        except OmegaError:  # reported by the pass over the whole tree
            continue
        if isinstance(final, Dict) and "_target_" not in final.items and _is_node(current):
            inner = old if isinstance(old, Dict) else Dict({}, written=False)
            _collect(current, final, inner, here, config, excluded, result)
            continue
        if old is not None and not _changed(item, old):
            continue
        value: Any = config.plain(item, here)
        if isinstance(value, dict) and "_target_" in value:
            built = construct(value, _span(item))
            result.assignments.append(Assignment(key, built, _span(item)))
            result.assignments.extend(Assignment(other, kept, None) for other, kept in excluded.items() if other.startswith(key + "."))
            continue
        result.assignments.append(Assignment(key, _converted(name, value, current), _span(item), dict(_spans(item))))


def _changed(after: Tree, before: Tree) -> bool:
    """Whether anything below was written, or a key is gone."""
    if isinstance(after, Leaf) or isinstance(before, Leaf) or type(after) is not type(before):
        return isinstance(after, Leaf) is False or after.written
    if isinstance(after, Dict) and isinstance(before, Dict):
        if list(after.items) != list(before.items):
            return True
        return any(_changed(item, before.items[key]) for key, item in after.items.items())
    assert isinstance(after, List) and isinstance(before, List)
    return after.written or len(after.items) != len(before.items) or any(map(_changed, after.items, before.items))


def _span(node: Tree) -> Span | None:
    """The place that wrote a node: the last written one below it, for a container that was only added to."""
    if isinstance(node, Leaf) or node.span is not None:
        return node.span
    spans = [item.span for _, item in omega.walk(node) if isinstance(item, Leaf) and item.written and item.span]
    return max(spans) if spans else None


def _spans(node: Tree) -> Iterator[tuple[str, Span]]:
    if not isinstance(node, Leaf):
        for path, item in omega.walk(node):
            if isinstance(item, Leaf) and item.written and item.span:
                yield omega.dotted(path), item.span


def _converted(name: str, value: Any, current: Any) -> Any:
    """The value that is stored: dtype and activation names become what they name, nothing else is checked."""
    if isinstance(value, str):
        if isinstance(current, Symbol) and current.kind == "dtype":
            return dtype(value) or value
        if name in ACTIVATION_FIELDS:
            return activation(value) or value
    return value


def construct(value: Any, span: Span | None = None) -> Any:
    """Plain data with every `_target_` mapping as a `Construct`."""
    if isinstance(value, Mapping):
        target = value.get("_target_")
        inner = {
            key: construct(item, span) for key, item in value.items() if key not in ("_target_", "_call_", "_partial_", "_args_", "_name_")
        }
        if not isinstance(target, str):
            return {key: construct(item, span) for key, item in value.items()}
        args = value.get("_args_") or ()
        return Construct(
            target,
            tuple(construct(item, span) for item in args),
            inner,
            call=value.get("_call_", True) is not False,
            partial=value.get("_partial_", False) is True,
            span=span,
        )
    if isinstance(value, (list, tuple)):
        return [construct(item, span) for item in value]
    return value


def write(root: ConfigNode, result: OverrideResult) -> None:
    """Carry out the assignments on the config."""
    for assignment in result.assignments:
        *sections, name = assignment.key.split(".")
        node: Any = root
        for section in sections:
            node = node.get(section) if _is_node(node) else None
        if _is_node(node):
            node.set(name, assignment.value, assignment.span)
