"""Files of the cache: written whole or not at all, checked when they are read, removed when nobody asked for them."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
import zlib
from hashlib import sha256
from pathlib import Path

from mblint.upstream.cache import cache_folder

MAGIC = b"mblint-1"
KEPT_SECONDS = 30 * 86_400.0
SWEEP_SECONDS = 86_400.0


class Store:
    """Blobs by name in one folder. Nothing here raises for the state of the disk."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_folder() / "results"
        self.broken = False
        """A write failed: nothing more is written in this run."""

    def get(self, name: str) -> bytes | None:
        """The blob of that name, or None where there is none or it is damaged."""
        path = self._path(name)
        try:
            with open(path, "rb") as handle:
                data = handle.read()
            if data[: len(MAGIC)] != MAGIC or sha256(data[len(MAGIC) + 32 :]).digest() != data[len(MAGIC) : len(MAGIC) + 32]:
                return None
            return zlib.decompress(data[len(MAGIC) + 32 :])
        except (OSError, zlib.error):
            return None

    def put(self, name: str, blob: bytes) -> None:
        """Keep a blob; the last of several writers wins, and readers see one or the other."""
        if self.broken:
            return
        path = self._path(name)
        packed = zlib.compress(blob, 1)
        temporary = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + sha256(packed).digest() + packed)
            os.replace(temporary, path)
        except OSError:
            self.broken = True
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)

    def _path(self, name: str) -> Path:
        return self.folder / name[:2] / name[2:]

    def sweep(self, now: float | None = None) -> None:
        """Remove what was not written or used for long; looks at most once a day."""
        now = time.time() if now is None else now
        stamp = self.folder / "swept"
        try:
            if now - stamp.stat().st_mtime < SWEEP_SECONDS:
                return
        except OSError:
            pass
        try:
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.write_bytes(b"")
            os.utime(stamp, (now, now))
            for group in os.scandir(self.folder):
                if group.is_dir(follow_symlinks=False):
                    for entry in os.scandir(group.path):
                        held = entry.stat(follow_symlinks=False)
                        if now - max(held.st_mtime, held.st_atime) > KEPT_SECONDS:
                            os.unlink(entry.path)
        except OSError:
            return
