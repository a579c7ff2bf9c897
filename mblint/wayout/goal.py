"""What a way out must reach."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mblint.facts.memory.capacity import GIB, Judgement


@dataclass(frozen=True, slots=True)
class Goal:
    """The upper end of the estimate within the GPU, or `head_room_bytes` free of it at the expected size."""

    head_room_bytes: int | None = None

    def met(self, found: Judgement) -> bool:
        """Whether a judged estimate reaches it."""
        if found.capacity is None or found.verdict == "does not fit":
            return False
        if self.head_room_bytes is not None:
            return found.head_room_bytes >= self.head_room_bytes
        return found.high_bytes <= found.capacity.low_gib * GIB

    @property
    def text(self) -> str:
        """As the command line spells it."""
        return "fit" if self.head_room_bytes is None else f"headroom={self.head_room_bytes / GIB:g}GiB"


_UNITS = {"gib": GIB, "gb": 10**9, "mib": 2**20, "mb": 10**6}


def parse_goal(text: str) -> Goal:
    """`fit`, or `headroom=10GiB` (also GB, MiB, MB). Raises ValueError."""
    if text == "fit":
        return Goal()
    match = re.fullmatch(r"headroom=(\d{1,6}(?:\.\d{1,6})?)\s*(GiB|GB|MiB|MB)", text, re.IGNORECASE)
    if match is None:
        raise ValueError(f"{text!r} is neither fit nor headroom=SIZE, for example headroom=10GiB")
    return Goal(round(float(match[1]) * _UNITS[match[2].lower()]))
