"""On which line each key of a TOML document stands; the standard reader does not say."""

from __future__ import annotations

import contextlib

Path = tuple[str | int, ...]


def key_lines(text: str) -> dict[Path, int]:
    """Path of each key and array item (`("tool", "mblint", "launches", 0, "recipe")`) -> line, from 1.

    `text` must be valid TOML (the caller has parsed it already). The first place wins. On anything unexpected
    the lines found so far are given.
    """
    scanner = _Scanner(text)
    # What the standard reader accepts and this one does not understand costs lines, never a failure.
    with contextlib.suppress(IndexError, RecursionError):
        scanner.document()
    return scanner.found


class _Scanner:
    """A cursor over valid TOML that looks only at keys and skips values."""

    def __init__(self, text: str) -> None:
        self.text = text + "\n"
        self.at = 0
        self.found: dict[Path, int] = {}
        self.arrays: dict[Path, int] = {}
        """Index of the last `[[table]]` of each array of tables."""
        self._counted = (0, 1)

    def note(self, path: Path, offset: int | None = None) -> None:
        """Remember the line of the cursor (or of an earlier offset); counted on from the last one."""
        offset = self.at if offset is None else offset
        counted, line = self._counted
        if offset < counted:
            counted, line = 0, 1
        line += self.text.count("\n", counted, offset)
        self._counted = (offset, line)
        self.found.setdefault(path, line)

    def document(self) -> None:
        table: Path = ()
        while True:
            self.blank()
            if self.at >= len(self.text):
                return
            if self.text.startswith("[[", self.at):
                self.at += 2
                table = self.header(array=True)
                self.at += 2
            elif self.text[self.at] == "[":
                self.at += 1
                table = self.header(array=False)
                self.at += 1
            else:
                self.pair(table)

    def header(self, array: bool) -> Path:
        """A table's name with the indices of the arrays of tables that it goes through."""
        path: Path = ()
        names = self.key()
        for number, name in enumerate(names):
            path += (name,)
            if array and number == len(names) - 1:
                self.note(path)
                self.arrays[path] = self.arrays.get(path, -1) + 1
            if path in self.arrays:
                path += (self.arrays[path],)
            self.note(path)
        return path

    def pair(self, table: Path) -> None:
        start = self.at
        path = table
        for name in self.key():
            path += (name,)
            self.note(path, start)
        self.blank()
        self.at += 1  # the equals sign
        self.value(path)

    def key(self) -> list[str]:
        names = []
        while True:
            self.blank()
            names.append(self.string() if self.text[self.at] in "\"'" else self.bare())
            self.spaces()
            if self.text[self.at] != ".":
                return names
            self.at += 1

    def bare(self) -> str:
        start = self.at
        while self.text[self.at].isalnum() or self.text[self.at] in "-_":
            self.at += 1
        if self.at == start:
            raise IndexError
        return self.text[start : self.at]

    def string(self) -> str:
        """Skip a string of any of the four kinds; gives its text, escapes left as they are."""
        quote = self.text[self.at]
        mark = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        start = self.at = self.at + len(mark)
        while not self.text.startswith(mark, self.at):
            if self.at >= len(self.text):
                raise IndexError
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        end = self.at
        self.at += len(mark)
        while len(mark) == 3 and self.text[self.at] == quote:  # up to two quotes may stand before the end mark
            self.at += 1
        return self.text[start:end]

    def value(self, path: Path) -> None:
        self.blank()
        character = self.text[self.at]
        if character in "\"'":
            self.string()
        elif character == "[":
            self.at += 1
            index = 0
            while self.more("]"):
                self.note((*path, index))
                self.value((*path, index))
                index += 1
        elif character == "{":
            self.at += 1
            while self.more("}"):
                self.pair(path)
        else:
            while self.text[self.at] not in ",]}\n#":
                self.at += 1

    def more(self, end: str) -> bool:
        """Step over commas; False, and past the end mark, when the array or inline table ends."""
        self.blank()
        while self.text[self.at] == ",":
            self.at += 1
            self.blank()
        if self.text[self.at] == end:
            self.at += 1
            return False
        return True

    def spaces(self) -> None:
        while self.text[self.at] in " \t":
            self.at += 1

    def blank(self) -> None:
        """Step over white space, line ends and comments."""
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "#":
                self.at = self.text.index("\n", self.at)
            elif character in " \t\r\n":
                self.at += 1
            else:
                return
