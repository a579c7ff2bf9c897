"""Serialized configs: `run_config.yaml` with `_target_`, `_args_`, `_call_` and `_partial_`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mblint.launch.omega import Config, Dict, Leaf, List, OmegaError, Tree
from mblint.launch.symbols import DTYPES, Construct, Symbol

_RESERVED = ("_target_", "_call_", "_partial_", "_args_", "_name_")


def serialized(root: Dict, env: Mapping[str, Any] | None = None, env_known: bool = False) -> Any:
    """A tree with `_target_` mappings as `Construct` and `Symbol` values, every keyword with its place.

    Raises OmegaError where the file's interpolations cannot be resolved.
    """
    config = Config(root, env=env or {}, env_known=env_known)
    return _value(config, root, ())


def _value(config: Config, node: Tree, path: tuple[Any, ...]) -> Any:
    node = config.resolved(node, path)
    if isinstance(node, Leaf):
        return node.value
    if isinstance(node, List):
        return [_value(config, item, (*path, index)) for index, item in enumerate(node.items)]
    target = node.items.get("_target_")
    if not isinstance(target, Leaf) or not isinstance(target.value, str):
        return {key: _value(config, item, (*path, key)) for key, item in node.items.items()}
    return _object(config, node, target.value, path)


def _flag(config: Config, node: Dict, name: str, default: bool, path: tuple[Any, ...]) -> bool:
    if name not in node.items:
        return default
    value = config.plain(node.items[name], (*path, name))
    if not isinstance(value, bool):
        raise OmegaError(f"{name} has to be true or false, not {value!r}", node.items[name].span)
    return value


def _object(config: Config, node: Dict, target: str, path: tuple[Any, ...]) -> Any:
    call = _flag(config, node, "_call_", True, path)
    if not call:
        extra = [key for key in node.items if key not in ("_target_", "_call_")]
        if extra:
            raise OmegaError(f"{target} is only named (_call_: false) and takes no {extra[0]!r}", node.span)
        if target.startswith("torch.") and target.removeprefix("torch.") in DTYPES.values():
            return Symbol("dtype", target)
        last = target.rsplit(".", 1)[-1]
        return Symbol("class" if last[:1].isupper() else "function", target)
    arguments = node.items.get("_args_")
    args = _value(config, arguments, (*path, "_args_")) if arguments is not None else []
    kwargs, spans = {}, {}
    for key, item in node.items.items():
        if key in _RESERVED or not isinstance(key, str):
            continue
        kwargs[key] = _value(config, item, (*path, key))
        place = item.span or node.keys.get(key)
        if place is not None:
            spans[key] = place
    partial = _flag(config, node, "_partial_", False, path)
    return Construct(target, tuple(args) if isinstance(args, list) else (args,), kwargs, True, partial, node.span, spans)
