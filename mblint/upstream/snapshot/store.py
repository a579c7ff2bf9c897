"""The file of a snapshot: its parts, each read when it is asked for."""

from __future__ import annotations

import json
import zlib
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

GZIP = 16 + zlib.MAX_WBITS
INDEX_BYTES = 1 << 16
"""The index fits in this many bytes; tools/make_snapshot.py sees to it."""


class Store:
    """One snapshot file. `part(name)` gives a part's data, {} for a part that it does not have."""

    def __init__(self, file: Traversable) -> None:
        self.file = file
        with file.open("rb") as handle:
            head = handle.read(INDEX_BYTES)
        reader = zlib.decompressobj(GZIP)
        self.index: dict[str, Any] = json.loads(reader.decompress(head))
        place = len(head) - len(reader.unused_data)
        self.places: dict[str, tuple[int, int]] = {}
        for name, length in self.index["parts"]:
            self.places[name] = (place, length)
            place += length
        self._held: dict[str, Any] = {}

    def part(self, name: str) -> Any:
        held = self._held.get(name)
        if held is None:
            held = self._held[name] = self._read(name)
        return held

    def _read(self, name: str) -> Any:
        place = self.places.get(name)
        if place is None:
            return {}
        with self.file.open("rb") as handle:
            handle.seek(place[0])
            return json.loads(zlib.decompress(handle.read(place[1]), GZIP))


@lru_cache(maxsize=2)
def open_store(release: str) -> Store | None:
    """The store of a release, None when no snapshot of it is shipped."""
    file = resources.files("mblint.upstream").joinpath(f"data/{release}/snapshot.jsonl.gz")
    return Store(file) if file.is_file() else None
