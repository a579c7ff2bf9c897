"""The user's cache folder, and the fetched copies of upstream in it.

Layout: `<cache>/upstream/bridge-0.6.2-core-0.19.2/` holds `megatron/`, the two `*.dist-info` folders and
`mblint-upstream.json`, which is written before the folder gets its name: a folder without it is not a copy.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mblint.errors import UserError

MARKER = "mblint-upstream.json"


def cache_folder() -> Path:
    """`$MBLINT_CACHE_DIR`, else the platform's place for caches; nothing is created."""
    given = os.environ.get("MBLINT_CACHE_DIR")
    if given:
        return Path(given).expanduser().absolute()
    xdg = os.environ.get("XDG_CACHE_HOME")
    if xdg and os.path.isabs(xdg):  # the XDG specification: a relative one is to be ignored
        return Path(xdg) / "mblint"
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return Path(base) / "mblint" / "Cache" if base else _home() / "AppData" / "Local" / "mblint" / "Cache"
    if sys.platform == "darwin":
        return _home() / "Library" / "Caches" / "mblint"
    return _home() / ".cache" / "mblint"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # no HOME and no entry in the password file, as in some containers
        import tempfile

        return Path(tempfile.gettempdir()) / f"mblint-{os.getuid() if hasattr(os, 'getuid') else 'user'}"


def upstream_folder() -> Path:
    """Where the fetched copies are; may not exist."""
    return cache_folder() / "upstream"


@dataclass(frozen=True, slots=True)
class Copy:
    """One fetched pair. `verified`: both wheels had the hash that mblint pins. `wheels`: file name ->
    sha256.
    """

    path: Path
    bridge: str
    core: str
    verified: bool
    wheels: dict[str, str]


def copy_name(bridge: str, core: str) -> str:
    """Name of the folder of a pair."""
    return f"bridge-{bridge}-core-{core}"


def version_key(version: str) -> tuple[Any, ...]:
    """Sorts release numbers as numbers, and anything that is no version below them, without failing."""
    from packaging.version import InvalidVersion, Version

    try:
        return (1, Version(version))
    except InvalidVersion:
        return (0, version)


def copies() -> list[Copy]:
    """All whole copies, newest pair first. A folder that cannot be read is left out."""
    try:
        names = sorted(entry.name for entry in os.scandir(upstream_folder()) if entry.is_dir())
    except OSError:
        return []
    found = [copy for name in names if (copy := read_copy(upstream_folder() / name)) is not None]
    return sorted(found, key=lambda copy: (version_key(copy.bridge), version_key(copy.core)), reverse=True)


def read_copy(path: Path) -> Copy | None:
    """The copy in this folder, or None when it is not a whole one."""
    try:
        with open(path / MARKER, encoding="utf-8") as handle:
            data = json.load(handle)
        copy = Copy(
            path=path,
            bridge=str(data["bridge"]),
            core=str(data["core"]),
            verified=data["verified"] is True,
            wheels={str(name): str(digest) for name, digest in data["wheels"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    whole = (path / "megatron" / "bridge").is_dir() and (path / "megatron" / "core").is_dir()
    return copy if whole and path.name == copy_name(copy.bridge, copy.core) else None


def find_copy(bridge: str, core: str | None = None) -> Copy | None:
    """The copy of this bridge: with this core, else with the one it was released with, else the newest."""
    from mblint.upstream.releases import known_core

    fitting = [copy for copy in copies() if copy.bridge == bridge and core in (None, copy.core)]
    preferred = known_core(bridge)
    return next((copy for copy in fitting if copy.core == preferred), fitting[0] if fitting else None)


def write_marker(folder: Path, copy: Copy) -> None:
    """Declare the folder a whole copy; last step before it is renamed to its place."""
    data = {key: value for key, value in asdict(copy).items() if key != "path"}
    with open(folder / MARKER, "w", encoding="utf-8") as handle:
        json.dump(data, handle, indent=1, sort_keys=True)
        handle.flush()
        os.fsync(handle.fileno())


def work_folder() -> Path:
    """A fresh folder on the cache's own file system, so that renaming out of it is atomic. Raises
    UserError.
    """
    import tempfile

    base = upstream_folder()
    try:
        base.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=".new-", dir=base))
    except OSError as error:
        raise UserError(
            f"the cache folder {base} cannot be written: {error.strerror or error}",
            "set MBLINT_CACHE_DIR to a folder that can",
        ) from None


def settle(folder: Path, copy: Copy) -> Copy:
    """Give a finished folder its name. When another process was first, its copy stands and ours goes.

    Returns the copy that is in place.
    """
    import shutil

    write_marker(folder, copy)
    target = upstream_folder() / copy_name(copy.bridge, copy.core)
    for _ in range(3):
        try:
            os.rename(folder, target)
            return Copy(target, copy.bridge, copy.core, copy.verified, copy.wheels)
        except OSError:
            there = read_copy(target)
            if there is not None:
                shutil.rmtree(folder, ignore_errors=True)
                return there
            discard(target)  # damaged, or half removed
    raise UserError(f"{target} cannot be replaced", f"remove it by hand, or run `mblint upstream remove {copy.bridge}`")


def discard(folder: Path) -> None:
    """Remove a folder of the cache: renamed first, so that nobody sees half of it. Raises UserError."""
    import shutil
    import tempfile

    if not os.path.lexists(folder):
        return
    try:
        if folder.is_symlink() or not folder.is_dir():
            folder.unlink()
            return
        away = Path(tempfile.mkdtemp(prefix=".old-", dir=folder.parent))
        os.rename(folder, away / folder.name)
        shutil.rmtree(away)
    except FileNotFoundError:
        return  # another process removed it meanwhile
    except OSError as error:
        raise UserError(f"{folder} cannot be removed: {error.strerror or error}") from None


def sweep(older_than_seconds: float = 86_400.0) -> None:
    """Remove what interrupted runs left behind; never fails."""
    import shutil
    import time

    limit = time.time() - older_than_seconds
    try:
        for entry in os.scandir(upstream_folder()):
            if entry.name.startswith((".new-", ".old-")) and entry.stat(follow_symlinks=False).st_mtime < limit:
                shutil.rmtree(entry.path, ignore_errors=True)
    except OSError:
        return
