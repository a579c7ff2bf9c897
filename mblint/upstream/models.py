"""The config.json of a model: from a folder, the Hugging Face cache of the user, or the shipped table.

Nothing is fetched. A file that cannot be used gives no facts, with the reason in words.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any, Final, Literal

MOST_BYTES: Final = 4_000_000
"""No config.json of a model is larger; a file that is, is not read."""

DEEPEST: Final = 40

Confidence = Literal["copied", "partial", "derived"]
"""copied: the whole config.json. partial: some of its keys. derived: from models of the same architecture."""

_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")

NOT_SHARED: Final = frozenset({"dtype", "max_position_embeddings", "eos_token_id", "quantization_config"})
"""Keys in which models of one architecture differ: facts in part that lack one do not tell it."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of one model. `config` is None when nothing is; `reason` then says why."""

    config: Mapping[str, Any] | None
    source: str = ""
    confidence: Confidence = "copied"
    reason: str = ""

    @property
    def complete(self) -> bool:
        """Whether a key that is absent is known to be absent."""
        return self.confidence == "copied"


@lru_cache(maxsize=1)
def shipped_models() -> dict[str, dict[str, Any]]:
    """Hugging Face id -> {confidence, source, config}; made by tools/models_table.py."""
    file = resources.files("mblint.upstream").joinpath("data/models.json.gz")
    table: dict[str, dict[str, Any]] = json.loads(gzip.decompress(file.read_bytes()))
    return table


def cache_folder(environment: Mapping[str, str]) -> str:
    """The folder of the Hugging Face hub cache that this environment means."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environment.get(name):
            return os.path.expanduser(environment[name])
    if environment.get("HF_HOME"):
        return os.path.join(os.path.expanduser(environment["HF_HOME"]), "hub")
    base = environment.get("XDG_CACHE_HOME") or os.path.join(environment.get("HOME") or os.path.expanduser("~"), ".cache")
    return os.path.join(base, "huggingface", "hub")


@dataclass(slots=True)
class ModelSource:
    """Where facts of models are looked for, in this order: folders, the hub cache, the shipped table."""

    roots: Sequence[str] = ()
    """Folders of the project: a relative path is looked for in these, and never leaves them."""
    cache: str | None = None
    """The Hugging Face hub cache; None: not asked."""
    held: dict[tuple[str, str | None], ModelFacts] = field(default_factory=dict)
    consulted: set[str] = field(default_factory=set)
    """Files and folders that were looked at, whether they are there or not."""

    def facts(self, name: str, subfolder: str | None = None) -> ModelFacts:
        """What is known of a model by Hugging Face id or folder. `subfolder`: where in it config.json is."""
        key = (name, subfolder)
        found = self.held.get(key)
        if found is None:
            found = self.held[key] = self._find(name, subfolder)
        return found

    def _find(self, name: str, subfolder: str | None) -> ModelFacts:
        tail = os.path.join(subfolder, "config.json") if subfolder else "config.json"
        if os.path.isabs(name):
            self.consulted.add(os.path.join(name, tail))
            if not os.path.isdir(name):
                return ModelFacts(None, reason=f"there is no folder {name}")
            return read_config(os.path.join(name, tail))
        for root in self.roots:
            folder = os.path.realpath(os.path.join(root, name))
            if not folder.startswith(os.path.realpath(root) + os.sep):
                continue
            self.consulted.add(os.path.join(folder, tail))
            if os.path.isdir(folder):
                return read_config(os.path.join(folder, tail))
        if not _ID.fullmatch(name):
            return ModelFacts(None, reason=f"{name} is neither a folder of this project nor a Hugging Face id")
        if self.cache is not None:
            folder = model_folder(self.cache, name)
            self.consulted.update(os.path.join(folder, part) for part in ("snapshots", os.path.join("refs", "main")))
        if self.cache is not None and (path := cached_config(self.cache, name, tail)) is not None:
            self.consulted.add(path)
            found = read_config(path)
            if found.config is not None:
                return found
        record = shipped_models().get(name)
        if record is None:
            return ModelFacts(None, reason=f"the architecture of {name} is not known")
        return ModelFacts(record["config"], record["source"], record["confidence"])


def model_folder(cache: str, name: str) -> str:
    """The folder of a model in a hub cache."""
    return os.path.join(cache, "models--" + name.replace("/", "--"))


def cached_config(cache: str, name: str, tail: str = "config.json") -> str | None:
    """The config.json of a model in a hub cache: of the revision `main`, else of the last one by name."""
    folder = model_folder(cache, name)
    snapshots = os.path.join(folder, "snapshots")
    try:
        revisions = sorted(os.listdir(snapshots))
    except OSError:
        return None
    try:
        with open(os.path.join(folder, "refs", "main"), encoding="utf-8") as file:
            main = file.read(100).strip()
    except (OSError, UnicodeDecodeError):
        main = ""
    if main in revisions:
        revisions.append(main)
    for revision in reversed(revisions):
        path = os.path.join(snapshots, revision, tail)
        if os.path.isfile(path):
            return path
    return None


def read_config(path: str) -> ModelFacts:
    """The facts in one config.json."""
    try:
        if os.path.getsize(path) > MOST_BYTES:
            return ModelFacts(None, reason=f"{path} is larger than {MOST_BYTES // 1_000_000} MB, not read")
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
        config = json.loads(data)
    except OSError as error:
        return ModelFacts(None, reason=f"{path} cannot be read: {error.strerror or error}")
    except (ValueError, RecursionError) as error:
        return ModelFacts(None, reason=f"{path} is not JSON: {str(error)[:120]}")
    if not isinstance(config, dict):
        return ModelFacts(None, reason=f"{path} holds no JSON object")
    if _too_deep(config, DEEPEST):
        return ModelFacts(None, reason=f"{path} is nested too deeply")
    return ModelFacts(config, path)


def _too_deep(value: Any, left: int) -> bool:
    if isinstance(value, (dict, list)):
        inner = value.values() if isinstance(value, dict) else value
        return left == 0 or any(_too_deep(part, left - 1) for part in inner)
    return False
