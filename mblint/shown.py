"""How names, paths and messages are shown: relative to the project, with nothing in them that a terminal
obeys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache

# C0 and C1 controls, DEL, line separators, and the marks that turn the direction of text around.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def _name(match: re.Match[str]) -> str:
    code = ord(match.group())
    short = {9: "\\t", 10: "\\n", 13: "\\r"}.get(code)
    return short or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def neutral(text: str, *, keep: str = "") -> str:
    """The text with every control character written out (`\\x1b`, `\\n`), except those in `keep`."""
    return _CONTROL.sub(lambda match: match.group() if match.group() in keep else _name(match), text)


@lru_cache(maxsize=4096)
def relative(path: str, root: str) -> str:
    """The path below `root` with forward slashes; as it is when it lies elsewhere or `root` is empty."""
    if not root:
        return path.replace(os.sep, "/")
    try:
        short = os.path.relpath(path, root)
    except ValueError:  # another drive
        return path.replace(os.sep, "/")
    if short == os.pardir or short.startswith(os.pardir + os.sep):
        short = path
    return short.replace(os.sep, "/")


def shown_path(path: str, root: str) -> str:
    """`relative`, made safe to print."""
    return neutral(relative(path, root))


_REMEDIES = {"the number of GPUs is not known": "--world-size N gives it", "the GPU type is not known": "--gpu TYPE gives it"}
_ARCHITECTURE = re.compile(r"the architecture of (\S+) is not known$")


def with_remedy(reason: str) -> str:
    """A reason why something is not known, and what tells it, where there is such a thing."""
    for known, remedy in _REMEDIES.items():
        if reason.endswith(known):
            return f"{reason}; {remedy}"
    if found := _ARCHITECTURE.search(reason):
        return f"{reason}; its config.json gives it, in a folder {found[1]} of this project or in the Hugging Face cache"
    return reason


def by_reason(missing: Mapping[str, str]) -> list[str]:
    """Keys that are not known and why: those of one reason together, the first two of them by name."""
    keys: dict[str, list[str]] = {}
    for key, reason in missing.items():
        keys.setdefault(reason, []).append(key)
    lines = []
    for reason, names in keys.items():
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        lines.append(f"{', '.join(names[:2])}{more}: {with_remedy(reason)}")
    return lines
