"""How a report over a repository puts the figures of a launch into words; the table and the page say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mblint.findings import Finding
from mblint.overview.model import Entry, Shape
from mblint.report.model import count_of

UNKNOWN = "?"


def gpus(entry: Entry) -> str:
    """`64 h100`; what is not known is left out."""
    return " ".join(str(part) for part in (entry.world_size, entry.gpu) if part)


def layout(shape: Shape) -> str:
    """`TP4 PP4 VPP5 CP2 DP1`: sizes of 1 are left out, except that something is always said."""
    words = []
    for name, label in (("tp", "TP"), ("pp", "PP"), ("vp", "VPP"), ("cp", "CP"), ("ep", "EP"), ("dp", "DP")):
        size = shape.sizes.get(name)
        if size is not None and (size != 1 or name == "dp"):
            words.append(f"{label}{size}")
    return " ".join(words)


def batch(shape: Shape) -> str:
    """`1/512`: micro and global batch size."""
    if shape.micro_batch is None and shape.global_batch is None:
        return ""
    return f"{UNKNOWN if shape.micro_batch is None else shape.micro_batch}/{UNKNOWN if shape.global_batch is None else shape.global_batch}"


def findings_text(findings: Sequence[Finding]) -> str:
    """`1 error, 2 warnings`."""
    counts = Counter(finding.severity for finding in findings)
    return ", ".join(count_of(counts[name], name) for name in ("error", "warning", "advice") if counts[name])
