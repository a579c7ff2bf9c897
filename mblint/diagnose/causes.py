"""From what happened in a log to its cause, how to confirm it and what mends it: the tuning guide's failure
table, row by row, and what is certain without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from mblint.diagnose.events import Events, OutOfMemory, Raised
from mblint.facts.memory.capacity import GIB

Certainty = Literal["certain", "likely", "possible"]

SET_SEGMENTS = "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
_PP_OFFLOAD = "no support for pipeline parallelism with cpu offloading"


@dataclass(frozen=True, slots=True)
class Cause:
    """One explanation. `id` is stable; `seen` says what in the log or in the launch speaks for it."""

    id: str
    title: str
    certainty: Certainty
    cause: str
    seen: tuple[str, ...] = ()
    confirm: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()


@dataclass(slots=True)
class LaunchFacts:
    """What is known of the launch that failed; None where it is not known or no launch was named."""

    world_size: int | None = None
    segments: bool | None = None
    verdict: str = ""
    needed_gib: float | None = None
    high_gib: float | None = None
    capacity_gib: float | None = None
    largest: str = ""
    lora: bool = False
    sequence_parallel: bool = False
    tp: int = 1
    regather: bool | None = None
    pp: int | None = None
    cpu_offloading: bool = False
    nccl_ub: bool = False
    findings: Mapping[str, str] = field(default_factory=dict)


def causes(events: Events, launch: LaunchFacts | None = None) -> list[Cause]:
    """All that explain the log, the most certain first."""
    known = launch or LaunchFacts()
    found = [
        *_refused(events, known),
        *_estimated(events, known),
        *_memory(events, known),
        *_lora(events, known),
        *_others(events),
    ]
    order = {"certain": 0, "likely": 1, "possible": 2}
    return sorted(found, key=lambda cause: order[cause.certainty])


def _where(raised: Raised) -> str:
    rank = f"rank {raised.rank}, " if raised.rank is not None else ""
    return f"{rank}line {raised.line} of what was read: {raised.kind}: {raised.message[:300]}"


def named(raised: Raised, events: Events) -> str:
    """The id of the cause that an exception stands for by itself (the guide's table names two), else empty."""
    said = raised.message.lower()
    if _PP_OFFLOAD in said:
        return "cpu-offload-with-pipeline"
    if raised.kind == "RuntimeError":
        allocator = any("nccl_allocator" in frame.path for frame in raised.frames)
        about = any(word in said for word in ("nccl", "mempool", "user buffer"))
        if ("expandable" in said and (about or allocator)) or (allocator and events.segments):
            return "user-buffers-with-expandable-segments"
    return ""


def _refused(events: Events, launch: LaunchFacts) -> Iterator[Cause]:
    """The two combinations that the guide's table names as exceptions."""
    first: dict[str, Raised] = {}
    for raised in events.raised:
        first.setdefault(named(raised, events), raised)
    offload, buffers = first.get("cpu-offload-with-pipeline"), first.get("user-buffers-with-expandable-segments")
    if offload is not None:
        stages = f", here {launch.pp}" if launch.pp else ""
        yield Cause(
            "cpu-offload-with-pipeline",
            "CPU offloading with more than one pipeline stage",
            "certain",
            "model.cpu_offloading is on and pipeline_model_parallel_size is above 1; Megatron-Core has no support for both together",
            (_where(offload),),
            (f"look at model.pipeline_model_parallel_size{stages}",),
            ("model.cpu_offloading=false", "or model.pipeline_model_parallel_size=1"),
        )
    if buffers is not None:
        yield Cause(
            "user-buffers-with-expandable-segments",
            "NCCL user buffers with expandable segments",
            "certain" if "expandable" in buffers.message.lower() else "likely",
            "memory for NCCL's user buffers (--use-nccl-ub, ddp.nccl_ub) cannot come from an allocator whose segments grow",
            (_where(buffers),),
            ("look for expandable_segments in PYTORCH_CUDA_ALLOC_CONF of the launch's environment",),
            (
                "remove expandable_segments:True from PYTORCH_CUDA_ALLOC_CONF",
                "or ddp.nccl_ub=false (drop --use-nccl-ub)",
            ),
        )


def _estimated(events: Events, launch: LaunchFacts) -> Iterator[Cause]:
    """The estimate of the launch is above what its GPU holds."""
    if launch.needed_gib is None or launch.capacity_gib is None:
        return
    above = launch.verdict == "close" and launch.needed_gib > launch.capacity_gib
    if above or launch.verdict == "does not fit":
        yield Cause(
            "estimate-above-capacity",
            "The launch needs more memory than the GPU has",
            "certain" if events.out_of_memory and not above else "likely",
            f"model state or activations are too large: about {launch.needed_gib:.1f} GiB of "
            f"{launch.capacity_gib:.1f} GiB; "
            f"the largest part is {launch.largest}",
            (f"estimate: {launch.needed_gib:.1f} GiB",),
            ("mblint estimate shows each part and stage; estimate_training_memory of megatron-bridge says its own",),
            ("change PP, TP, CP or EP, the distributed optimizer or recomputation before launching; mblint suggest finds the cheapest",),
        )


def _ranks(events: Events) -> set[int]:
    known = (report.rank if report.rank is not None else report.gpu for report in events.out_of_memory)
    return {rank for rank in known if rank is not None}


def _world(events: Events, launch: LaunchFacts, ranks: set[int]) -> int | None:
    """How many ranks ran: what the log says before what the launch says, and never fewer than were seen."""
    world = events.world_size or launch.world_size
    most = max((*events.ranks, *ranks), default=-1) + 1
    if world is None:
        return len(events.ranks) if len(events.ranks) > 1 else None
    return world if world >= most else most


def _memory(events: Events, launch: LaunchFacts) -> Iterator[Cause]:
    reports = events.out_of_memory
    if not reports:
        return
    ranks = _ranks(events)
    world = _world(events, launch, ranks)
    segments = launch.segments if launch.segments is not None else events.segments
    seen = [_reported(reports[0])]
    if ranks:
        of = f" of {world}" if world else ""
        seen.append(f"out of memory on {len(ranks)} rank{'s' * (len(ranks) != 1)}{of}: {_listed(ranks)}")
    fragmented = next((report for report in reports if report.would_have_fitted), None)
    if fragmented is not None and fragmented.tried is not None and fragmented.reserved is not None:
        seen.append(
            f"{_gib(fragmented.reserved)} lay reserved and unused while {_gib(fragmented.tried)} was asked for: in pieces too small"
        )
    said = {
        None: "nothing says whether expandable segments are on",
        True: "expandable segments are on",
        False: "expandable segments are off",
    }
    seen.append(said[segments])
    one = len(ranks) == 1 and (world is None or world > 1)
    # Clearly: with the upper end of the estimate too.
    fits = launch.verdict == "fits" and (launch.high_gib or 0.0) <= (launch.capacity_gib or launch.high_gib or 0.0)
    if segments and fragmented is not None and events.segments is None:
        yield _not_in_effect(seen)
        return
    if segments:
        yield _capacity(seen, launch, "likely" if not fits else "possible")
        if fits:
            yield _uneven(seen, launch)
        return
    if fragmented is not None or one or fits:
        certainty: Certainty = "certain" if fragmented is not None and segments is False else "likely"
        yield Cause(
            "fragmentation",
            "The allocator's memory is in pieces" + (" on one rank" if one else ""),
            certainty,
            "memory is there, but between segments that cannot grow: one rank runs out while others have room"
            if one
            else "memory is there, but between segments that cannot grow",
            tuple(seen),
            ("see whether PYTORCH_CUDA_ALLOC_CONF has expandable_segments:True in the launch script, before the training command",),
            (SET_SEGMENTS + " (costs no throughput; not together with NCCL user buffers)",),
        )
        return
    yield Cause(
        "fragmentation",
        "Fragmentation, or too little memory",
        "possible",
        "without expandable segments the allocator loses memory between its segments; on most ranks at once it is more often real capacity",
        tuple(seen),
        ("set expandable segments and run again: they cost nothing, and if it still runs out, capacity is what is missing",),
        (SET_SEGMENTS,),
    )
    yield _capacity(seen, launch, "likely" if world and len(ranks) * 2 >= world else "possible")


def _capacity(seen: list[str], launch: LaunchFacts, certainty: Certainty) -> Cause:
    estimate = (
        (f"estimate: {launch.needed_gib:.1f} GiB of {launch.capacity_gib:.1f} GiB",) if launch.needed_gib and launch.capacity_gib else ()
    )
    return Cause(
        "capacity",
        "The GPU is too small for this launch",
        certainty,
        "with expandable segments on, fragmentation is not it: parameters, optimizer and activations need more than there is"
        if "expandable segments are on" in seen
        else "parameters, optimizer and activations need more than there is",
        (*seen, *estimate),
        ("compare nvidia-smi after the model is built with mblint estimate: parameters and optimizer states first",),
        ("more pipeline stages, the distributed optimizer or more recomputation, in this order; mblint suggest names the settings",),
    )


def _not_in_effect(seen: list[str]) -> Cause:
    return Cause(
        "segments-not-in-effect",
        "Expandable segments are set, and did not reach the process",
        "likely",
        "the launch sets them, but memory lay in pieces that could not grow: the variable was lost on "
        "the way, "
        "or set after PyTorch had read it",
        tuple(seen),
        ("print os.environ.get('PYTORCH_CUDA_ALLOC_CONF') at the start of the training script",),
        (SET_SEGMENTS + " in the launch script, before the training command",),
    )


def _uneven(seen: list[str], launch: LaunchFacts) -> Cause:
    return Cause(
        "more-than-estimated",
        "Something needs more than the estimate counts",
        "likely",
        "the launch should fit: uneven routing of tokens, longer samples, evaluation, checkpoint saving or another process on the GPU",
        tuple(seen),
        ("see in which step and phase it happens, and whether nvidia-smi shows another process",),
        ("set a capacity factor for experts, bound sample lengths, or leave more head-room: mblint suggest --goal headroom=10GiB",),
    )


def _lora(events: Events, launch: LaunchFacts) -> Iterator[Cause]:
    lora = launch.lora or "lora" in events.mentions
    parallel = (launch.sequence_parallel and launch.tp > 1) or "sequence_parallel" in events.mentions
    on = launch.regather if launch.regather is not None else "regather" in events.mentions
    if not (lora and parallel and not on and events.out_of_memory):
        return
    yield Cause(
        "lora-inputs-kept",
        "LoRA with sequence parallel keeps every gathered input",
        "likely" if launch.lora else "possible",
        "each adapter on a column-parallel layer keeps its whole gathered input until backward",
        ("LoRA and sequence parallel are on, sequence_parallel_input_regather is not",),
        ("see whether peft.sequence_parallel_input_regather is on, and whether targets include linear_qkv or linear_fc1",),
        (
            "cfg.peft.sequence_parallel_input_regather = True, in the recipe: overrides do not reach peft",
            "without effect on row-parallel and expert adapters, with TP 1, CUDA graphs, CPU activation offload, or full and mlp recompute",
        ),
    )


def _others(events: Events) -> Iterator[Cause]:
    at = events.mentions
    if "host_memory" in at:
        yield Cause(
            "host-memory",
            "The host ran out of memory",
            "likely",
            "the kernel or the scheduler killed a process: memory of the node, not of the GPU",
            (f"line {at['host_memory']} of what was read",),
            ("dmesg or sacct --format=MaxRSS on that node",),
            ("fewer data loader workers, less offloading to the host, or more memory for the job",),
        )
    if "illegal_access" in at and not events.out_of_memory:
        yield Cause(
            "illegal-access",
            "A kernel read or wrote outside its memory",
            "possible",
            "a fault in a kernel, or wrong sizes; the place in the traceback is later than the fault",
            (f"line {at['illegal_access']} of what was read",),
            ("run once with CUDA_LAUNCH_BLOCKING=1: the traceback then names the kernel",),
            (),
        )
    if "collective_timeout" in at:
        yield Cause(
            "collective-timeout",
            "Ranks waited for one that did not come",
            "possible",
            "a rank died or hung before a collective; the timeout is its consequence where another error stands in the log",
            (f"line {at['collective_timeout']} of what was read",),
            ("find the rank that failed first: its error comes before the timeouts",),
            (),
        )


def _reported(report: OutOfMemory) -> str:
    text = f"line {report.line} of what was read: CUDA out of memory"
    parts = [
        f"{_gib(size)} {name}"
        for name, size in (
            ("asked for", report.tried),
            ("allocated", report.allocated),
            ("reserved and unused", report.reserved),
        )
        if size is not None
    ]
    return text + (f" ({', '.join(parts)})" if parts else "")


def _gib(size: int) -> str:
    return f"{size / GIB:.2f} GiB"


def _listed(ranks: set[int]) -> str:
    ordered = sorted(ranks)
    return ", ".join(map(str, ordered[:8])) + (", ..." if len(ordered) > 8 else "")
