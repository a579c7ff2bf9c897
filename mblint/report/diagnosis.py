"""A diagnosis as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mblint.report.wayout import wayout_text
from mblint.shown import neutral
from mblint.wayout.goal import Goal

if TYPE_CHECKING:
    from mblint.diagnose.causes import Cause
    from mblint.diagnose.events import Events
    from mblint.diagnose.log import Log
    from mblint.launch.run import Launch
    from mblint.wayout.search import Result


def diagnosis_text(log: Log, events: Events, found: list[Cause], launch: Launch | None, ways: Result | None) -> str:
    """Each cause with what speaks for it, how to confirm it and what mends it; then the ways out."""
    lines = []
    if log.left_out:
        lines += [
            f"{log.name}: {log.size:,} bytes, {log.left_out:,} of them in the middle were only searched for failures",
            "",
        ]
    if not found:
        lines.append("nothing in this log is known to mblint")
        last = events.raised[-1] if events.raised else None
        if last is not None:
            lines.append(f"  the last exception in it: {neutral(last.kind)}: {neutral(last.message[:300])}")
    for number, cause in enumerate(found, 1):
        lines.append(f"{number}. {neutral(cause.title)}  [{cause.certainty}, {cause.id}]")
        lines.append(f"   cause:   {neutral(cause.cause)}")
        for head, items in (("seen", cause.seen), ("confirm", cause.confirm), ("fix", cause.fix)):
            for index, item in enumerate(items):
                label = f"{head}:" if index == 0 else ""
                lines.append(f"   {label:<9}{neutral(item)}")
        lines.append("")
    if ways is not None and launch is not None:
        lines += ["ways out for this launch", ""]
        lines.append(wayout_text(launch.recipe or "plain", launch, Goal(), ways))
    return "\n".join(lines).rstrip() + "\n"
