"""Writes fixed files: each one whole or not at all.

The new text goes to a temporary file in the same folder, is flushed to the disk and renamed over the old
one; an interrupt or a crash at any moment leaves the old or the new file, never a part. A kill between
the two steps leaves the temporary file (`.NAME.*.mblint-tmp`) behind.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import hashlib
import io
import os
import stat
import tempfile
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass

TEMPORARY_SUFFIX = ".mblint-tmp"


class WriteRefused(Exception):
    """The file is left as it is; the message is one sentence with the path and the remedy."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file as it was read: `text` without byte order mark and with its own line endings, `digest` of
    its bytes.
    """

    path: str
    text: str
    encoding: str
    bom: bool
    digest: str


@dataclass(frozen=True, slots=True)
class NewText:
    """What a file shall hold. `digest` is that of the bytes from which the change was computed."""

    path: str
    text: str
    digest: str


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome for one file; `refused` says why it was left alone."""

    path: str
    refused: str | None = None


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def decode(path: str, data: bytes) -> SourceFile:
    """The text of a file's bytes: by PEP 263 for Python, UTF-8 for all else.

    Raises UnicodeDecodeError, LookupError or SyntaxError (an unknown or contradicting coding line).
    """
    bom = data.startswith(codecs.BOM_UTF8)
    encoding = "utf-8"
    if path.endswith((".py", ".pyi")):
        encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    text = (data[len(codecs.BOM_UTF8) :] if bom else data).decode(encoding)
    return SourceFile(path, text, encoding, bom, digest_of(data))


def read_source(path: str) -> SourceFile:
    """Read a file for editing. Raises what `decode` raises, and OSError."""
    with open(path, "rb", opener=_regular) as file:
        return decode(path, file.read())


def _regular(path: str, flags: int) -> int:
    """Open a regular file: a pipe would wait for its writer, a device may never end. Raises OSError."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    return os.open(path, flags)


def encode(text: str, encoding: str, bom: bool) -> bytes:
    """The bytes of a text; raises UnicodeEncodeError where the file's encoding lacks a character."""
    return (codecs.BOM_UTF8 if bom else b"") + text.encode(encoding)


def _target(path: str, root: str) -> str:
    """The real file behind `path`, which must lie below the project root."""
    target, top = os.path.realpath(path), os.path.realpath(root)
    try:
        inside = os.path.commonpath([target, top]) == top
    except ValueError:  # another drive
        inside = False
    if not inside:
        raise WriteRefused(f"{path}: lies outside of the project ({top}); run mblint in the project that owns it")
    return target


def _checked(path: str, target: str, digest: str) -> tuple[os.stat_result, SourceFile]:
    try:
        status = os.stat(target)
        with open(target, "rb") as file:
            data = file.read()
    except OSError as error:
        raise WriteRefused(f"{path}: cannot be read any more ({error.strerror})") from None
    if not stat.S_ISREG(status.st_mode):
        raise WriteRefused(f"{path}: is no regular file")
    if not status.st_mode & 0o222 or not os.access(target, os.W_OK):
        raise WriteRefused(f"{path}: is read-only; make it writable to have it fixed")
    if status.st_nlink > 1:
        raise WriteRefused(f"{path}: has {status.st_nlink} hard links, which an atomic write would part; copy it first")
    if digest_of(data) != digest:
        raise WriteRefused(f"{path}: was changed since it was read; run mblint again")
    try:
        return status, decode(path, data)
    except (UnicodeDecodeError, LookupError, SyntaxError):
        raise WriteRefused(f"{path}: is not text in the encoding that it names") from None


def _keep_owner(handle: int, temporary: str, status: os.stat_result, path: str) -> None:
    chown = getattr(os, "fchown", None)
    now = os.fstat(handle)
    if chown is not None and (now.st_uid, now.st_gid) != (status.st_uid, status.st_gid):
        try:
            chown(handle, status.st_uid, status.st_gid)
        except OSError:
            raise WriteRefused(f"{path}: belongs to another user, which writing it would change") from None
    if hasattr(os, "fchmod"):
        os.fchmod(handle, stat.S_IMODE(status.st_mode))  # after the owner: changing that may drop bits
    else:
        os.chmod(temporary, stat.S_IMODE(status.st_mode))


def _copy_attributes(source: str, target: str) -> None:
    if not hasattr(os, "listxattr"):
        return
    with contextlib.suppress(OSError):
        for name in os.listxattr(source):
            with contextlib.suppress(OSError):
                os.setxattr(target, name, os.getxattr(source, name))


def _sync_folder(folder: str) -> None:
    with contextlib.suppress(OSError):  # not every file system can
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_file(new: NewText, root: str) -> None:
    """Replace one file's content atomically, keeping encoding, byte order mark, mode, owner and
    attributes.

    A symbolic link stays one; the file behind it is written if that lies below `root`. Raises
    WriteRefused when the file is outside, read-only, hard-linked, or no longer what the change was
    computed from.
    """
    target = _target(new.path, root)
    status, old = _checked(new.path, target, new.digest)
    try:
        data = encode(new.text, old.encoding, old.bom)
    except UnicodeEncodeError:
        raise WriteRefused(f"{new.path}: the new text has characters that {old.encoding} lacks") from None
    folder = os.path.dirname(target)
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(TEMPORARY_SUFFIX, f".{os.path.basename(target)}.", folder)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            _keep_owner(file.fileno(), temporary, status, new.path)
            os.fsync(file.fileno())
        _copy_attributes(target, temporary)
        _checked(new.path, target, new.digest)  # as late as can be
        os.replace(temporary, target)
        temporary = ""
        _sync_folder(folder)
    except OSError as error:
        raise WriteRefused(f"{new.path}: could not be written ({error.strerror})") from None
    finally:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def write_files(changes: Iterable[NewText], root: str) -> list[Written]:
    """Write several files, each one for itself: one that is refused does not stop the others."""
    outcome: list[Written] = []
    for change in changes:
        try:
            write_file(change, root)
        except WriteRefused as refused:
            outcome.append(Written(change.path, str(refused)))
        else:
            outcome.append(Written(change.path))
    return outcome
