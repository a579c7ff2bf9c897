"""Why somebody says they changed something: comments beside a write, and the recipe's name.

These facts are functions of a key, used in rules as `motive_memory(key)`; here is what they look for.
"""

from __future__ import annotations

import re
from typing import Final

from mblint.facts.view import View, fact

_MEMORY: Final = re.compile(r"\b(oom|out[ -]of[ -]memory|memory|mem|vram|hbm|fits?|gib|メモリ)\b|メモリ|显存|内存", re.IGNORECASE)
_NAME: Final = re.compile(r"(^|_)(oom|memory|mem|lowmem|memfit|save_?mem)(_|$)", re.IGNORECASE)


def speaks_of_memory(text: str) -> bool:
    """Whether a comment gives memory as the reason."""
    return _MEMORY.search(text) is not None


def comment(view: View, key: str) -> str:
    """The comment beside the writes of a key, as far as the launch knows comments; else empty."""
    read = getattr(view.resolved, "comments", None)
    return str(read(key) or "") if callable(read) else ""


@fact("motive.name_speaks_of_memory")
def name_speaks_of_memory(view: View) -> bool:
    """Whether the recipe's own name gives memory as its purpose."""
    return _NAME.search(view.text("launch.function")) is not None
