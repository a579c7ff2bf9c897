"""What is known of torch: dtypes, activation functions, and what a GPU type answers."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import External, Instance

DTYPES = frozenset(
    f"torch.{name}"
    for name in (
        "float32 float16 bfloat16 float64 int8 int16 int32 int64 uint8 bool float8_e4m3fn float8_e5m2 complex64 complex128".split()
    )
)

CONSTANTS: dict[str, Any] = {
    "torch.float": External("torch.float32"),
    "torch.half": External("torch.float16"),
    "torch.double": External("torch.float64"),
    "torch.long": External("torch.int64"),
    "torch.int": External("torch.int32"),
}

GPU_FACTS: dict[str, tuple[str, int, int, int]] = {
    # name that the driver reports, compute capability, GiB on the board (NVIDIA data sheets)
    "a100": ("NVIDIA A100-SXM4-80GB", 8, 0, 80),
    "h100": ("NVIDIA H100 80GB HBM3", 9, 0, 80),
    "h200": ("NVIDIA H200", 9, 0, 141),
    "b200": ("NVIDIA B200", 10, 0, 180),
    "b300": ("NVIDIA B300 SXM6 AC", 10, 3, 270),
    "gb200": ("NVIDIA GB200", 10, 0, 186),
    "gb300": ("NVIDIA GB300", 10, 3, 278),
    "vr200": ("NVIDIA VR200", 10, 7, 288),
    "r100": ("NVIDIA R100", 10, 7, 288),
}


def _properties(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    gpu = machine.facts.gpu
    facts = GPU_FACTS.get(gpu) if isinstance(gpu, str) else None
    made: Instance = machine.new_instance(None, "the GPU type is not known" if facts is None else "a GPU property that is not known")
    if facts is not None:
        made.attrs.update({"name": facts[0], "major": facts[1], "minor": facts[2], "total_memory": facts[3] * 2**30})
    return made


def _capability(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    gpu = machine.facts.gpu
    facts = GPU_FACTS.get(gpu) if isinstance(gpu, str) else None
    return (facts[1], facts[2]) if facts is not None else Unknown("the GPU type is not known")


def _device_name(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    gpu = machine.facts.gpu
    facts = GPU_FACTS.get(gpu) if isinstance(gpu, str) else None
    return facts[0] if facts is not None else Unknown("the GPU type is not known")


def _no(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return False


def _yes(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return True


def _nothing(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return None


def _world_size(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    machine.oldest_touched = 0
    size = machine.facts.world_size
    return size if isinstance(size, int) else Unknown("the number of GPUs is not known")


def _rank(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return 0


def _is_initialized(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return bool(machine.facts.flags.get("distributed"))


def _init_process_group(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    machine.oldest_touched = 0
    machine.store(machine.facts.flags, "distributed", True)
    return None


def _device_count(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    """GPUs of one node: eight, four for the Grace boards, never more than the launch has."""
    machine.oldest_touched = 0
    size, gpu = machine.facts.world_size, machine.facts.gpu
    per_node = 4 if isinstance(gpu, str) and gpu.startswith(("gb", "vr")) else 8
    return min(size, per_node) if isinstance(size, int) else Unknown("the number of GPUs is not known")


CALLS: dict[str, Any] = {
    "torch.cuda.is_available": _yes,
    "torch.cuda.get_device_properties": _properties,
    "torch.cuda.get_device_capability": _capability,
    "torch.cuda.get_device_name": _device_name,
    "torch.cuda.current_device": _rank,
    "torch.distributed.is_available": _yes,
    "torch.distributed.is_initialized": _is_initialized,
    "torch.distributed.init_process_group": _init_process_group,
    "torch.cuda.device_count": _device_count,
    "torch.cuda.set_device": _nothing,
    "torch.distributed.get_world_size": _world_size,
    "torch.distributed.get_rank": _rank,
    "torch.use_deterministic_algorithms": _nothing,
    "torch.is_tensor": _no,
    "torch.compiler.is_compiling": _no,
    "torch.distributed.barrier": _nothing,
}
