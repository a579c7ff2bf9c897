"""YAML files that build on others: OmegaConf files with `defaults:`, Primus files with `extends:` and
`${VAR:default}`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Any

from mblint.evaluate.unknown import Unknown
from mblint.launch.omega import Config, Dict, Leaf, List, OmegaError, Tree, copied
from mblint.launch.yaml_tree import load_layer
from mblint.read.span import Span

MAX_PARENTS = 24

ReadFile = Callable[[str], str | None]
"""The text of a file by its path, None where there is none."""


def with_defaults(root: Dict, path: str, read_file: ReadFile) -> tuple[Dict, list[str]]:
    """A file merged over what its `defaults:` names, parents first, and the parents that could not be read.

    A section with `_override_: true` replaces the parent's section instead of being merged into it.
    Raises OmegaError on a cycle, on too many parents, or where merging fails.
    """
    missing: list[str] = []
    return _inherited(root, path, read_file, (), missing), missing


def _inherited(root: Dict, path: str, read_file: ReadFile, trail: tuple[str, ...], missing: list[str]) -> Dict:
    names = root.items.get("defaults")
    if names is None:
        return root
    if path in trail or len(trail) >= MAX_PARENTS:
        raise OmegaError(f"the files that `defaults:` names refer to each other: {path}", names.span)
    own = copied(root)
    assert isinstance(own, Dict)
    del own.items["defaults"]
    base = Dict({}, root.span)
    for name in _names(names):
        parent_path = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        text = read_file(parent_path)
        if text is None:
            missing.append(name)
            continue
        parent = load_layer(text, parent_path)
        _merge_override(base, _inherited(parent, parent_path, read_file, (*trail, path), missing))
    _merge_override(base, own)
    return base


def _names(node: Tree) -> list[str]:
    leaves = node.items if isinstance(node, List) else [node]
    return [leaf.value for leaf in leaves if isinstance(leaf, Leaf) and isinstance(leaf.value, str)]


def _merge_override(base: Dict, over: Dict) -> None:
    for key, section in over.items.items():
        if isinstance(section, Dict):
            marker = section.items.get("_override_")
            if isinstance(marker, Leaf) and marker.value is True:
                del section.items["_override_"]
                base.items.pop(key, None)
    Config(base).merge(over)


# ------------------------------------------------------------------ Primus

_VARIABLE = re.compile(r"\$\{([^:{}]+)(?::([^}]*))?\}")


def with_extends(text: str, path: str, read_file: ReadFile, env: Mapping[str, Any], assumed: dict[str, Any]) -> tuple[Dict, list[str]]:
    """A Primus file: environment variables put in, laid over the presets that `extends:` names, later ones
    winning.

    Raises OmegaError as `with_defaults` does.
    """
    missing: list[str] = []
    return _extended(text, path, read_file, env, assumed, (), missing), missing


def _extended(
    text: str,
    path: str,
    read_file: ReadFile,
    env: Mapping[str, Any],
    assumed: dict[str, Any],
    trail: tuple[str, ...],
    missing: list[str],
) -> Dict:
    root = load_layer(_escaped(text), path, schema="yaml11")
    substituted(root, env, assumed)
    names = root.items.pop("extends", None)
    if names is None:
        return root
    if path in trail or len(trail) >= MAX_PARENTS:
        raise OmegaError(f"the files that `extends:` names refer to each other: {path}", names.span)
    base = Dict({}, root.span)
    for name in _names(names):
        parent_path = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        parent = read_file(parent_path)
        if parent is None:
            missing.append(name)
            continue
        overlay(base, _extended(parent, parent_path, read_file, env, assumed, (*trail, path), missing))
    overlay(base, root)
    return base


def _escaped(text: str) -> str:
    """`${VAR:default}` is no OmegaConf interpolation: kept as it is, and not parsed as one."""
    return text.replace("${", "$\u2063{")


def overlay(base: Dict, over: Dict) -> None:
    """Deep merge: mappings are merged, everything else is replaced."""
    base.keys.update(over.keys)
    for key, item in over.items.items():
        old = base.items.get(key)
        if isinstance(old, Dict) and isinstance(item, Dict):
            overlay(old, item)
        else:
            base.items[key] = copied(item)


def substituted(node: Tree, env: Mapping[str, Any], assumed: dict[str, Any]) -> None:
    """Put environment variables into the strings of a tree, in place; numbers that result become numbers."""
    items: list[tuple[Any, Tree]] = []
    if isinstance(node, Dict):
        items = list(node.items.items())
    elif isinstance(node, List):
        items = list(enumerate(node.items))
    for _, item in items:
        if not isinstance(item, Leaf):
            substituted(item, env, assumed)
        elif isinstance(item.value, str) and "\u2063" in item.value:
            item.value = _with_environment(item.value.replace("\u2063", ""), env, assumed, item.span)


def _with_environment(text: str, env: Mapping[str, Any], assumed: dict[str, Any], span: Span | None) -> Any:
    unknown: Unknown | None = None

    def replace(match: re.Match[str]) -> str:
        nonlocal unknown
        name, default = match[1], match[2]
        if name in env:
            value = env[name]
            if isinstance(value, Unknown):
                unknown = value
                return ""
            return str(value)
        if default is None:
            unknown = Unknown(f"the environment variable {name} is not known", span)
            return ""
        assumed[name] = default
        return default

    result = _VARIABLE.sub(replace, text)
    if unknown is not None:
        return unknown
    if result == text:
        return result
    if re.fullmatch(r"-?\d+", result):
        return int(result)
    try:
        return float(result)
    except ValueError:
        return result
