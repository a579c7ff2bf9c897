"""What a GPU type means: generation, memory, how many share an NVLink domain.

Memory is what the driver reports as total, in GiB, rounded down; a process can use about half a GiB less.
Sources: NVIDIA data sheets (A100, H100, H200, B200, B300, GB200, GB300, Vera Rubin), compute capabilities
from the CUDA programming guide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mblint.facts.view import View, fact


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU type. `capability` is CUDA's, `nvlink_domain` the GPUs that reach one another over NVLink."""

    generation: str
    capability: float
    memory_gib: float
    nvlink_domain: int


GPUS: Final[dict[str, Gpu]] = {
    "v100": Gpu("volta", 7.0, 32.0, 8),
    "a100": Gpu("ampere", 8.0, 79.0, 8),
    "h100": Gpu("hopper", 9.0, 79.0, 8),
    "h200": Gpu("hopper", 9.0, 139.0, 8),
    "h20": Gpu("hopper", 9.0, 95.0, 8),
    "gh200": Gpu("hopper", 9.0, 94.0, 32),
    "b200": Gpu("blackwell", 10.0, 178.0, 8),
    "gb200": Gpu("blackwell", 10.0, 184.0, 72),
    "b300": Gpu("blackwell", 10.3, 267.0, 8),
    "gb300": Gpu("blackwell", 10.3, 276.0, 72),
    "r100": Gpu("rubin", 10.7, 276.0, 8),
    "vr200": Gpu("rubin", 10.7, 276.0, 72),
}


def _gpu(view: View) -> Gpu:
    found = GPUS.get(view.text("gpu.name"))
    return view.stop() if found is None else found


@fact("gpu.name")
def name(view: View) -> object:
    """The GPU type in lower case, such as "h100"."""
    value = view.resolved.gpu
    return value.lower() if isinstance(value, str) else value


@fact("gpu.generation")
def generation(view: View) -> str:
    """ "ampere", "hopper", "blackwell" or "rubin"."""
    return _gpu(view).generation


@fact("gpu.capability")
def capability(view: View) -> float:
    """CUDA compute capability, such as 9.0."""
    return _gpu(view).capability


@fact("gpu.before_blackwell")
def before_blackwell(view: View) -> bool:
    """Whether the GPU is of a generation before Blackwell (compute capability below 10)."""
    return _gpu(view).capability < 10


@fact("gpu.memory_gib")
def memory_gib(view: View) -> float:
    """Total memory in GiB."""
    return _gpu(view).memory_gib


@fact("gpu.nvlink_domain")
def nvlink_domain(view: View) -> int:
    """GPUs in one NVLink domain: 8 in a node, 72 in an NVL72 rack."""
    return _gpu(view).nvlink_domain
