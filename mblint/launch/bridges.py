"""Which bridge class of megatron-bridge serves which Hugging Face architecture, found in its source text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

MOST_BYTES: Final = 2_000_000

_REGISTERED = re.compile(
    r"""register_bridge\(\s*source\s*=\s*(?P<source>["']?[\w.]+["']?)"""
    r"""(?:(?!register_bridge\().)*?\n(?:class\s+(?P<cls>\w+)|\s*\)\s*\(\s*(?P<called>\w+)\s*\))""",
    re.DOTALL,
)
"""`@X.register_bridge(source=S, ...)` above a class, or `X.register_bridge(source=S, ...)(Class)`."""

_AS_WELL = re.compile(
    r"""register_bridge_implementation\(\s*source\s*=\s*(?P<source>["']?[\w.]+["']?)[^)]*?bridge_class\s*=\s*(?P<cls>[A-Z]\w+)"""
)
"""`register_bridge_implementation(source=S, ..., bridge_class=Class)`: a second name for a bridge."""

_CONSTANT = """^{name}\\s*(?::\\s*\\w+\\s*)?=\\s*["']([\\w.]+)["']"""
_CONFIG = re.compile(r"""^\s*AutoConfig\.register\(\s*(?:["'](?P<type>[\w-]+)["']|[\w.]+)\s*,\s*(?P<cls>\w+)""", re.MULTILINE)
_MODEL_TYPE = """^class\\s+{name}\\b.*?^\\s+model_type\\s*(?::[^=\\n]*)?=\\s*["']([\\w-]+)["']"""


@dataclass(slots=True)
class BridgeIndex:
    """What one release of megatron-bridge registers."""

    bridges: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Architecture -> (module, class) of the bridge."""
    configs: dict[str, tuple[str, str]] = field(default_factory=dict)
    """model_type -> (module, class) of configurations that megatron-bridge brings itself."""


def index_bridges(roots: Iterable[str]) -> BridgeIndex:
    """Search `megatron/bridge` below the first root that has it."""
    for root in roots:
        base = os.path.join(root, "megatron", "bridge")
        if os.path.isdir(base):
            index = BridgeIndex()
            for folder in ("models", "diffusion"):
                for path in _sources(os.path.join(base, folder)):
                    _read(path, os.path.relpath(path, root), index)
            return index
    return BridgeIndex()


def _sources(folder: str) -> Iterable[str]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            # Bridges are in *_bridge.py in every release; packages register configurations.
            if name.endswith("_bridge.py") or name == "__init__.py":
                yield os.path.join(parent, name)


def _read(path: str, relative: str, index: BridgeIndex) -> None:
    try:
        if os.path.getsize(path) > MOST_BYTES:
            return
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError):
        return
    module = relative.removesuffix(".py").removesuffix(os.sep + "__init__").replace(os.sep, ".")
    for name, cls in bridges_in(text).items():
        index.bridges.setdefault(name, (module, cls))
    if "AutoConfig.register(" in text:
        for match in _CONFIG.finditer(text):
            kind = match["type"] or _model_type(path, text, match["cls"])
            if kind is not None:
                index.configs.setdefault(kind, (module, match["cls"]))


def bridges_in(text: str) -> dict[str, str]:
    """Architecture -> bridge class, for what the text of one module registers."""
    found: dict[str, str] = {}
    if "register_bridge" not in text:
        return found
    for match in (*_REGISTERED.finditer(text), *_AS_WELL.finditer(text)):
        source = match["source"]
        if source[0] in "\"'":
            name = source.strip("\"'")
        else:
            constant = re.search(_CONSTANT.format(name=re.escape(source)), text, re.MULTILINE)
            name = constant[1] if constant is not None else source.rpartition(".")[2]
        found.setdefault(name, match["cls"] or match.groupdict().get("called") or "")
    return found


def _model_type(path: str, text: str, name: str) -> str | None:
    """The model_type of a class that is registered under it: in this file, or in the one it comes from."""
    candidates = [text]
    imported = re.search(rf"^\s*from\s+\S*?([\w]+)\s+import\s+\(?[^)\n]*\b{name}\b", text, re.MULTILINE)
    if imported is not None:
        try:
            with open(os.path.join(os.path.dirname(path), imported[1] + ".py"), encoding="utf-8") as file:
                candidates.append(file.read(MOST_BYTES))
        except (OSError, UnicodeDecodeError):
            pass
    for candidate in candidates:
        found = re.search(_MODEL_TYPE.format(name=name), candidate, re.MULTILINE | re.DOTALL)
        if found is not None:
            return found[1]
    return None
