"""What happened in a log: exceptions with their places, memory that ran out, on which ranks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from mblint.facts.memory.capacity import GIB

_UNITS: Final = {"B": 1, "BYTES": 1, "KIB": 2**10, "MIB": 2**20, "GIB": GIB}
# torchrun's and srun's labels, PyTorch's own, and plain text before a message.
_PREFIX: Final = re.compile(
    r"^\s{0,8}(?:\[(?:rank|default)?(\d{1,6})\]\s?:|\[rank(\d{1,6})\]\s?:?|(?:rank|Rank)\s(\d{1,6})\s?:|(\d{1,6}):(?=\s))\s?"
)
_FRAME: Final = re.compile(r'^\s*File "([^"]{1,400})", line (\d{1,7})(?:, in (\S{1,200}))?')
_EXCEPTION: Final = re.compile(
    r"^((?:[A-Za-z_]\w*\.){0,8}[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Timeout|Warning)|StopIteration)(?:: ?(.*))?$"
)
_OOM: Final = re.compile(
    r"CUDA out of memory|OutOfMemoryError|CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED|Cuda failure.{0,20}out of memory"
)
# PyTorch before 2.1 wrote "(GPU 0; 31.74 GiB total capacity; 28.82 GiB already allocated; ... 29.97 GiB reserved in total".
_GPU: Final = re.compile(r"GPU (\d{1,4})(?: has a total capacity of|;) ([\d.]{1,12}) (\w{1,5})")
_SIZES: Final = {
    "tried": re.compile(r"Tried to allocate ([\d.]{1,12}) (\w{1,5})"),
    "free": re.compile(r"([\d.]{1,12}) (\w{1,5}) (?:is )?free\b"),
    "allocated": re.compile(r"([\d.]{1,12}) (\w{1,5}) (?:is allocated by PyTorch|already allocated)"),
    "reserved": re.compile(r"([\d.]{1,12}) (\w{1,5}) is reserved by PyTorch but unallocated"),
}
_RESERVED: Final = re.compile(r"([\d.]{1,12}) (\w{1,5}) reserved in total by PyTorch")
_GAP: Final = 0.01
"""Share of a GPU that lies between allocations in any run; less of it is no sign of fragmentation."""
_WORLD: Final = re.compile(r"\bworld[_ -]?size['\"]?\s{0,3}[=:]\s{0,3}(\d{1,6})", re.IGNORECASE)
_SEGMENTS: Final = re.compile(r"expandable_segments['\"]?\s?[:=]\s?(True|False)", re.IGNORECASE)
_HINT: Final = re.compile(r"try setting|to avoid fragmentation", re.IGNORECASE)
# Words without which a line tells nothing: most lines of a log are passed over by this alone.
_WORTH: Final = re.compile(
    r'File "|Traceback|Error|Exception|Exit|exit|Interrupt|[Tt]imeout|Warning|StopIteration|memory|ALLOC|'
    r"world|WORLD|World|expandable|EXPANDABLE|lora|LoRA|nccl|NCCL|parallel|oom|Killed|NaN|nan\b"
)
_MESSAGE_LINES: Final = 12
_EXCEPTIONS: Final = 400


@dataclass(frozen=True, slots=True)
class Frame:
    """A place in a traceback."""

    path: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception that ended a process. `frames`: outermost first."""

    kind: str
    message: str
    frames: tuple[Frame, ...]
    rank: int | None
    line: int


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """One report of GPU memory that ran out; sizes in bytes, None where it does not say."""

    rank: int | None
    gpu: int | None
    line: int
    capacity: int | None = None
    tried: int | None = None
    free: int | None = None
    allocated: int | None = None
    reserved: int | None = None

    @property
    def would_have_fitted(self) -> bool:
        """Clearly more lay reserved and unused in the allocator than was asked for."""
        if self.tried is None or self.reserved is None or self.reserved < self.tried:
            return False
        return self.capacity is None or self.reserved >= _GAP * self.capacity


@dataclass(slots=True)
class Events:
    """All that a log tells. `segments` is None where it does not say how the allocator was set."""

    raised: list[Raised] = field(default_factory=list)
    out_of_memory: list[OutOfMemory] = field(default_factory=list)
    ranks: set[int] = field(default_factory=set)
    world_size: int | None = None
    segments: bool | None = None
    mentions: dict[str, int] = field(default_factory=dict)


_MENTIONED: Final = {
    "lora": re.compile(
        r"\bmegatron\.bridge\.peft\.lora|\bLoRA\(|peft_scheme['\"]?\s?[:=]\s?['\"]?lora|linear_in\.weight|lora_a\b", re.IGNORECASE),
    "sequence_parallel": re.compile(r"sequence_parallel['\"]?\s?[:=]\s?true", re.IGNORECASE),
    "regather": re.compile(r"sequence_parallel_input_regather['\"]?\s?[:=]\s?true", re.IGNORECASE),
    "nccl_ub": re.compile(r"nccl[-_]ub\b(?!['\"]?\s?[:=]\s?(?:false|0))", re.IGNORECASE),
    "collective_timeout": re.compile(r"Watchdog caught collective operation timeout|NCCL.{0,40}timeout", re.IGNORECASE),
    "host_memory": re.compile(
        r"oom-kill|oom_kill|Out of memory: Killed process"
        r"|DataLoader worker .{0,40}killed by signal: Killed|exitcode\s*:\s*-9\b"
    ),
    "illegal_access": re.compile(r"an illegal memory access was encountered"),
    "loss_nan": re.compile(r"found NaN in local|loss is nan|NaN or Inf found", re.IGNORECASE),
}  # fmt: skip


def events_of(lines: Sequence[str]) -> Events:
    """Read a log's lines once."""
    found = Events()
    stacks: dict[int | None, list[Frame]] = {}
    for number, raw in enumerate(lines):
        rank, text = _unlabelled(raw)
        if rank is not None:
            found.ranks.add(rank)
        if _WORTH.search(text) is None:
            continue
        if frame := _FRAME.match(text):
            stacks.setdefault(rank, []).append(Frame(frame[1], int(frame[2]), frame[3] or ""))
            continue
        if "Traceback (most recent call last)" in text:
            stacks[rank] = []
            continue
        held = stacks.get(rank, [])
        if (match := _EXCEPTION.match(text.strip())) and (held or not match[1].endswith("Warning")):
            if len(found.raised) < _EXCEPTIONS:
                message = _continued(lines, number, rank, match[2] or "")
                found.raised.append(Raised(match[1], message, tuple(held[-60:]), rank, number + 1))
            stacks[rank] = []
        if _OOM.search(text):
            found.out_of_memory.append(_out_of_memory(text + " " + _continued(lines, number, rank, ""), rank, number + 1))
        _mentions(found, text, number)
    return found


def _mentions(found: Events, text: str, number: int) -> None:
    if (world := _WORLD.search(text)) and int(world[1]) > 0:
        found.world_size = max(found.world_size or 0, int(world[1]))
    if (segments := _SEGMENTS.search(text)) and not _HINT.search(text):
        found.segments = bool(found.segments) or segments[1].lower() == "true"
    for name, pattern in _MENTIONED.items():
        if name not in found.mentions and pattern.search(text):
            found.mentions[name] = number + 1


def _unlabelled(line: str) -> tuple[int | None, str]:
    """The rank that a launcher put before a line, and the line without it."""
    match = _PREFIX.match(line)
    if match is None:
        return None, line
    return int(next(group for group in match.groups() if group is not None)), line[match.end() :]


def _continued(lines: Sequence[str], number: int, rank: int | None, first: str) -> str:
    """A message with the lines that follow it up to the next traceback, label or exception."""
    parts = [first]
    for raw in lines[number + 1 : number + _MESSAGE_LINES]:
        label, text = _unlabelled(raw)
        if label != rank or _FRAME.match(text) or "Traceback (most" in text or _EXCEPTION.match(text.strip()):
            break
        if re.match(r"^\s*(?:\[|\d{4}-|[IWE]\d{4} |srun:|E\d{4})", text):
            break
        parts.append(text.strip())
    return " ".join(part for part in parts if part)[:2_000]


def _out_of_memory(text: str, rank: int | None, line: int) -> OutOfMemory:
    gpu = _GPU.search(text)
    sizes = {name: _size(match[1], match[2]) for name, pattern in _SIZES.items() if (match := pattern.search(text))}
    capacity = _size(gpu[2], gpu[3]) if gpu else None
    total, allocated = _RESERVED.search(text), sizes.get("allocated")
    if total and allocated is not None and (reserved := _size(total[1], total[2])) is not None:
        sizes["reserved"] = max(0, reserved - allocated)
    return OutOfMemory(rank, int(gpu[1]) if gpu else None, line, capacity, **sizes)


def _size(number: str, unit: str) -> int | None:
    try:
        return round(float(number) * _UNITS[unit.upper()])
    except (KeyError, ValueError):
        return None
