"""Mistakes in the text of a settings file that is being edited."""

from __future__ import annotations

import re
from pathlib import Path

from mblint.errors import UserError
from mblint.settings_file import read_text

_PLACE = re.compile(r"^.*?:(\d+): (.*)$", re.DOTALL)


def settings_problems(text: str, path: str) -> list[tuple[int, str]]:
    """(line, what is wrong) for each mistake; nothing for a pyproject.toml that does not speak of mblint."""
    file = Path(path)
    if file.name == "pyproject.toml" and "mblint" not in text:
        return []
    try:
        read_text(text, file, file.parent)
    except UserError as error:
        found = []
        for line in str(error).splitlines():
            match = _PLACE.match(line)
            found.append((int(match[1]), match[2]) if match is not None else (1, line))
        return found
    return []
