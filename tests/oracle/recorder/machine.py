"""The machine that a launch is pretended to run on: a GPU type, a world size, an environment."""

from __future__ import annotations

import os
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Gpu:
    """What `torch.cuda` tells of a GPU type: its name, compute capability, memory in GiB, multiprocessors."""

    name: str
    major: int
    minor: int
    memory: int
    multiprocessors: int


# Names as the driver gives them; capabilities as published (A100 8.0, Hopper 9.0, Blackwell 10.0,
# Blackwell Ultra 10.3). Rubin is assumed to be 10.7: no public table gives it yet.
GPUS: dict[str, Gpu] = {
    "a100": Gpu("NVIDIA A100-SXM4-80GB", 8, 0, 80, 108),
    "h100": Gpu("NVIDIA H100 80GB HBM3", 9, 0, 80, 132),
    "h200": Gpu("NVIDIA H200", 9, 0, 141, 132),
    "b200": Gpu("NVIDIA B200", 10, 0, 180, 148),
    "gb200": Gpu("NVIDIA GB200", 10, 0, 186, 152),
    "b300": Gpu("NVIDIA B300 SXM6 AC", 10, 3, 268, 148),
    "gb300": Gpu("NVIDIA GB300", 10, 3, 277, 152),
    "vr200": Gpu("NVIDIA VR200", 10, 7, 288, 160),
    "r100": Gpu("NVIDIA R100", 10, 7, 288, 160),
}


class _Current:
    gpu: Gpu = GPUS["h100"]


def pretend_cuda() -> None:
    """Make `torch.cuda` answer as on a node with eight GPUs of the current type. Nothing is ever run there."""
    import torch

    def properties(device: Any = None) -> Any:
        gpu = _Current.gpu
        return types.SimpleNamespace(
            name=gpu.name,
            major=gpu.major,
            minor=gpu.minor,
            total_memory=gpu.memory * 2**30,
            multi_processor_count=gpu.multiprocessors,
        )

    answers = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": lambda: None,
        "_lazy_init": lambda: None,
        "device_count": lambda: 8,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "synchronize": lambda device=None: None,
        "get_device_properties": properties,
        "get_device_name": lambda device=None: _Current.gpu.name,
        "get_device_capability": lambda device=None: (_Current.gpu.major, _Current.gpu.minor),
        "is_bf16_supported": lambda including_emulation=True: True,
        "mem_get_info": lambda device=None: (_Current.gpu.memory * 2**30, _Current.gpu.memory * 2**30),
        "memory_allocated": lambda device=None: 0,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)


# Variables that a launch must not inherit from the machine that records.
FOREIGN_PREFIXES = ("NCCL_", "NVTE_", "CUDA_", "TORCH_NCCL", "PYTORCH_", "NVSHMEM_", "SLURM_", "NVLINK_", "USE_MNNVL")


def clean_environment(environ: Mapping[str, str], world_size: int, folder: str) -> dict[str, str]:
    """The environment of rank 0 of a launch of `world_size` GPUs: no variable that steers a GPU library."""
    kept = {name: value for name, value in environ.items() if not name.startswith(FOREIGN_PREFIXES)}
    kept.update(
        {
            "RANK": "0",
            "LOCAL_RANK": "0",
            "WORLD_SIZE": str(world_size),
            "LOCAL_WORLD_SIZE": str(min(world_size, 8)),
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": "29500",
            "HOME": folder,
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
        }
    )
    return kept


@contextmanager
def launch_on(gpu: str, world_size: int, folder: str) -> Iterator[None]:
    """Within: the GPU type and environment of a launch. The process's environment comes back afterwards."""
    before = dict(os.environ)
    _Current.gpu = GPUS[gpu]
    fresh = clean_environment(before, world_size, folder)
    os.environ.clear()
    os.environ.update(fresh)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
