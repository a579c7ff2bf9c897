"""Unpack the Python source of a wheel, trusting nothing that the archive says about itself.

A wheel is refused as a whole when any member could land outside the folder, is a link or a device, appears
twice, or is larger than source code is: such a file was not made by a build tool.
"""

from __future__ import annotations

import os
import re
import stat
import zipfile
from pathlib import Path, PurePosixPath

from mblint.errors import UserError

MAX_MEMBERS = 20_000
MAX_FILE_BYTES = 8_000_000
MAX_TOTAL_BYTES = 200_000_000

_DRIVE = re.compile(r"^[A-Za-z]:")
_DIST_INFO = re.compile(r"^[A-Za-z0-9_.+!-]+\.dist-info$")


def unpack_source(wheel: Path, folder: Path) -> int:
    """Write the `megatron/**/*.py` files and the metadata of `wheel` below `folder`; gives their number.

    Nothing else of the wheel is written (no binaries, no scripts). Raises UserError when the file is not a
    sound wheel; the folder is then incomplete and to be thrown away.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = _checked(archive, wheel.name)
            total = 0
            for info, path in members:
                target = folder.joinpath(*path.parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                total += _write(archive, info, target, MAX_TOTAL_BYTES - total, wheel.name)
            return len(members)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        # RuntimeError is what zipfile raises for an encrypted member
        raise UserError(f"{wheel.name} is not a sound wheel: {error}") from None
    except OSError as error:
        raise UserError(f"{wheel.name} cannot be unpacked to {folder}: {error.strerror or error}") from None
    except ValueError as error:  # zlib.error is not one, but a bad name or date is
        raise UserError(f"{wheel.name} is not a sound wheel: {error}") from None


def _checked(archive: zipfile.ZipFile, name: str) -> list[tuple[zipfile.ZipInfo, PurePosixPath]]:
    """The members to write, after every member was looked at."""
    infos = archive.infolist()
    if len(infos) > MAX_MEMBERS:
        raise UserError(f"{name} holds {len(infos)} files, more than any release does: not unpacked")
    seen: set[str] = set()
    wanted = []
    for info in infos:
        _refuse_unsafe(info, name)
        # case-folded, because two names may be one file on the user's file system
        folded = info.filename.rstrip("/").casefold()
        if folded in seen:
            raise UserError(f"{name} holds {info.filename!r} twice: not unpacked")
        seen.add(folded)
        path = PurePosixPath(info.filename)
        if not info.is_dir() and _is_source_or_metadata(path):
            wanted.append((info, path))
    return wanted


def _refuse_unsafe(info: zipfile.ZipInfo, name: str) -> None:
    raw = info.orig_filename
    parts = raw.replace("\\", "/").rstrip("/").split("/")
    if (
        not raw
        or "\\" in raw
        or raw.startswith("/")
        or _DRIVE.match(raw)
        or any(part in ("", ".", "..") for part in parts)
        or any(ord(character) < 32 for character in raw)
    ):
        raise UserError(f"{name} holds a file with the unsafe name {raw!r}: not unpacked")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise UserError(f"{name} holds {raw!r}, which is a link or a device: not unpacked")
    if info.file_size > MAX_FILE_BYTES and raw.endswith(".py"):
        raise UserError(f"{name} holds {raw!r} of {info.file_size:,} bytes: not unpacked")


def _is_source_or_metadata(path: PurePosixPath) -> bool:
    if path.parts[0] == "megatron":
        return path.suffix == ".py"
    return bool(_DIST_INFO.match(path.parts[0])) and (
        path.parts[1:] in (("METADATA",), ("WHEEL",), ("top_level.txt",)) or path.parts[1] == "licenses"
    )


def _write(archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path, room: int, name: str) -> int:
    """Copy one member; what counts is what comes out, not the size that the archive states."""
    import zlib

    limit = min(MAX_FILE_BYTES, room)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    written = 0
    try:
        with archive.open(info) as source, open(os.open(target, flags, 0o644), "wb") as sink:
            while chunk := source.read(65_536):
                written += len(chunk)
                if written > limit:
                    raise UserError(f"{name} unpacks to more than source code needs ({info.filename}): stopped")
                sink.write(chunk)
    except zlib.error as error:
        raise UserError(f"{name} is damaged at {info.filename}: {error}") from None
    return written
