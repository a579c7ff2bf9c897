"""Reading Python source: text and tree, or a reason with its line."""

from __future__ import annotations

import ast
import os
import re

MAX_SOURCE_BYTES = 5_000_000


class SourceError(Exception):
    """A file that cannot be read or parsed; `line` and `column` (in characters) count from 1."""

    def __init__(self, path: str, line: int, message: str, column: int = 1) -> None:
        super().__init__(message)
        self.path = path
        self.line = line
        self.message = message
        self.column = column


def parse_source(path: str, data: bytes | str | None = None) -> tuple[str, ast.Module]:
    """The text and tree of a Python file; `data` replaces the file's content. Raises SourceError."""
    try:
        if data is None:
            if not os.path.isfile(path):
                raise SourceError(path, 1, "not a regular file")
            if os.path.getsize(path) > MAX_SOURCE_BYTES:
                raise SourceError(path, 1, f"larger than {MAX_SOURCE_BYTES // 1_000_000} MB, not read")
            with open(path, "rb") as handle:
                data = handle.read()
    except OSError as error:
        raise SourceError(path, 1, f"cannot be read: {error.strerror or error}") from None
    if isinstance(data, str):
        # Decoded already: a coding line in it says nothing any more.
        return data, _parsed(path, data)
    if len(data) > MAX_SOURCE_BYTES:
        raise SourceError(path, 1, f"larger than {MAX_SOURCE_BYTES // 1_000_000} MB, not read")
    if b"\0" in data:
        raise SourceError(path, data[: data.index(b"\0")].count(b"\n") + 1, "holds a NUL byte, so it is not Python source")
    tree = _parsed(path, data)
    encoding = "utf-8-sig"
    if b"coding" in data[:200]:
        import io
        import tokenize

        try:
            encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        except SyntaxError:
            encoding = "utf-8"
    return data.decode(encoding, "replace"), tree


def _parsed(path: str, data: bytes | str) -> ast.Module:
    try:
        return ast.parse(data, filename=path)
    except SyntaxError as error:
        found = _in_characters(data, error)
        raise SourceError(path, found.lineno or 1, f"syntax error: {found.msg}", max(found.offset or 1, 1)) from None
    except (ValueError, UnicodeDecodeError, LookupError) as error:
        raise SourceError(path, 1, f"cannot be decoded: {error}") from None
    except (RecursionError, MemoryError):
        raise SourceError(path, 1, "nested too deeply to be parsed") from None


def _in_characters(data: bytes | str, error: SyntaxError) -> SyntaxError:
    """The error with its column counted in characters: for bytes the parser counts bytes."""
    if isinstance(data, bytes):
        try:
            ast.parse(data.decode("utf-8-sig"))
        except SyntaxError as again:
            return again
        except (ValueError, RecursionError, MemoryError):
            return error
    return error


LINE_END = re.compile(r"\r\n|\r|\n")


def split_lines(text: str) -> list[str]:
    """Lines as the parser counts them: form feeds and Unicode separators end none."""
    return LINE_END.split(text)
