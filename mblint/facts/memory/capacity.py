"""What a GPU type holds, and whether an estimate fits.

Capacities are the totals that CUDA reports to a process ("GPU 0 has a total capacity of ..." in PyTorch's
out-of-memory message), in GiB; the driver's own reserve is off already. Rubin parts have only been announced
(288 GB): their range runs from that many decimal bytes to what the same announcement became on GB300.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from mblint.facts.memory.estimate import Estimate

GIB: Final = 2**30

Verdict = Literal["fits", "close", "does not fit", "unknown"]


@dataclass(frozen=True, slots=True)
class Capacity:
    """Memory that a process can see, GiB: the range over the parts sold under one name, and where it is
    from."""

    low_gib: float
    high_gib: float
    source: str


_REPORTED = "total capacity in PyTorch's out-of-memory message"
CAPACITIES: Final[dict[str, Capacity]] = {
    "v100": Capacity(31.7, 31.8, _REPORTED),
    "a100": Capacity(79.1, 79.3, _REPORTED),
    "h100": Capacity(79.1, 79.3, _REPORTED),
    "h200": Capacity(139.7, 139.8, _REPORTED),
    "b200": Capacity(178.3, 178.4, _REPORTED),
    "gb200": Capacity(184.3, 184.3, _REPORTED),
    "b300": Capacity(267.6, 267.7, _REPORTED),
    "gb300": Capacity(276.5, 276.5, _REPORTED),
    "r100": Capacity(268.2, 276.5, "announced 288 GB"),
    "vr200": Capacity(268.2, 276.5, "announced 288 GB"),
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a launch fits. `low_bytes` and `high_bytes` bound what the worst GPU will hold, by the stated
    error; `band` says where they are from."""

    verdict: Verdict
    gpu: str
    capacity: Capacity | None
    low_bytes: int
    high_bytes: int
    head_room_bytes: int
    largest: str
    because: str
    band: str = ""


def judge(estimate: Estimate, gpu: str) -> Judgement:
    """Compare an estimate with the capacity of a GPU type.

    "does not fit": even the lower end is more than the largest part of that name holds. "close": what is expected
    (allocated and the usual allowance) leaves nothing free, or less than the allocator loses between its segments where
    these cannot grow. The upper end of the range alone is no reason to warn: published runs that use their GPU well would
    all be close. Where parts of the launch are not counted the estimate is a lower bound, so "fits" is not said; of what is
    only roughly counted nothing is said but that its state alone is too large. Where batches may be shorter than the
    sequence length, only the state is certain.
    """
    capacity = CAPACITIES.get(gpu.lower())
    worst, margin = estimate.worst, estimate.allowance
    if worst is None or margin is None:
        keys = ", ".join(sorted(estimate.missing))
        return Judgement("unknown", gpu, capacity, 0, 0, 0, "", f"not known: {keys}")
    allocated = worst.allocated_bytes
    # Of batches whose length the data decide, and of a model that is counted as a similar one, only the state
    # is certain.
    certain = (estimate.static_bytes or 0) * (1 - estimate.state_error)
    band = f"{estimate.error:.0%} of what is allocated, and the allowance's range"
    if estimate.approximated or estimate.shorter:
        band = f"from the state alone to all of it, with {estimate.error:.0%} and the allowance's range"
    else:
        certain = max(certain, allocated * (1 - estimate.error))
    low = round(certain + margin.low_bytes)
    high = round(allocated * (1 + estimate.error) + margin.typical_bytes)
    largest = max(worst.components, key=lambda name: worst.components[name], default="")
    if capacity is None:
        because = f"the memory of GPU type {gpu!r} is not known" if gpu else "the GPU type is not known"
        return Judgement("unknown", gpu, None, low, high, 0, largest, because, band)
    room = round(capacity.low_gib * GIB) - allocated - margin.typical_bytes
    doubts = []
    if estimate.not_modelled:
        doubts.append("not counted: " + ", ".join(estimate.not_modelled))
    if estimate.approximated:
        doubts.append("only roughly counted: " + ", ".join(estimate.approximated))
    if low > capacity.high_gib * GIB:
        verdict: Verdict = "does not fit"
    elif room < estimate.spare * capacity.low_gib * GIB and not estimate.approximated:
        verdict = "close"
        if estimate.shorter:
            verdict = "unknown"
            doubts.append(f"full batches need more than the GPU has, and {estimate.shorter}")
    else:
        verdict = "unknown" if doubts else "fits"
    return Judgement(verdict, gpu, capacity, low, high, room, largest, "; ".join(doubts), band)
