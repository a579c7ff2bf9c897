"""Runs one launch of the real package up to the point where a GPU would be needed, and tells what happened."""

from __future__ import annotations

import re
import signal
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from . import upstream

SECONDS = 60  # a launch that takes longer is left out of the recording

# Failures that only mean that the launch has to name a file or folder.
LAUNCH_INPUT = re.compile(
    r"save is not set|data_files must contain|path must be set|pretrained_checkpoint|"
    r"dataset_root|data path|checkpoint path|load(?:_dir)? must be|must be set to a non-empty",
    re.IGNORECASE,
)


class TookTooLong(BaseException):
    """The launch did not come to an end within `SECONDS`. Not an Exception: upstream must not catch it."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def stop(number: int, frame: Any) -> None:
        raise TookTooLong(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def place(error: BaseException) -> str:
    """`megatron/...py:function` of the innermost frame of `error` that belongs to upstream."""
    where = "?"
    for frame in traceback.extract_tb(error.__traceback__):
        parts = Path(frame.filename).parts
        if "megatron" in parts:
            start = len(parts) - 1 - parts[::-1].index("megatron")
            where = f"{'/'.join(parts[start:])}:{frame.name}"
    return where


def failure(error: BaseException, stage: str) -> dict[str, Any]:
    """The part of a verdict that tells how a launch failed."""
    record: dict[str, Any] = {
        "ok": False,
        "type": type(error).__name__,
        "msg": str(error)[:400],
        "where": place(error),
        "stage": stage,
    }
    if LAUNCH_INPUT.search(record["msg"]):
        record["category"] = "launch_input"
    return record


def assign(config: Any, key: str, value: Any) -> None:
    """`config.outer.inner = value` for the key `outer.inner`; `torch.float32` names a dtype."""
    *outer, last = key.split(".")
    for name in outer:
        config = getattr(config, name)
    setattr(config, last, as_object(value))


def as_object(value: Any) -> Any:
    """The object that an encoded plain value stands for: a list is copied, a dtype's name is the dtype."""
    if isinstance(value, str) and value.startswith("torch."):
        import torch

        return getattr(torch, value.removeprefix("torch."), value)
    if isinstance(value, list):
        return [as_object(item) for item in value]
    return value


def can_assign(config: Any, key: str) -> bool:
    """Whether every object on the way to `key` is there and the last one has such an attribute."""
    for name in key.split("."):
        if config is None or not hasattr(config, name):
            return False
        config = getattr(config, name)
    return True


def forget_earlier_launches() -> None:
    """Undo the process-wide settings that an earlier launch made."""
    import torch
    from megatron.core import num_microbatches_calculator, parallel_state

    parallel_state.destroy_model_parallel()
    getattr(num_microbatches_calculator, "destroy_num_microbatches_calculator", lambda: None)()
    torch.use_deterministic_algorithms(False)
    try:
        from megatron.core import config as core_config

        core_config.set_experimental_flag(False)
    except (ImportError, AttributeError):
        pass


class Group:
    """A process group that only knows its ranks."""

    def __init__(self, ranks: list[int]) -> None:
        self.ranks = ranks

    def size(self) -> int:
        return len(self.ranks)

    def rank(self) -> int:
        return self.ranks.index(0) if 0 in self.ranks else -1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


class NcclOptions:
    """Options of a process group; nothing reads them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.config = mock.MagicMock()


@contextmanager
def distributed(world_size: int) -> Iterator[None]:
    """`torch.distributed` as on rank 0 of an initialised world, with groups that cannot communicate."""
    import torch

    everyone = Group(list(range(world_size)))

    def new_group(ranks: Any = None, *args: Any, **kwargs: Any) -> Group:
        return Group(list(ranks) if ranks is not None else everyone.ranks)

    def new_subgroups_by_enumeration(ranks_per_subgroup_list: Any, *args: Any, **kwargs: Any) -> Any:
        groups = [Group(list(ranks)) for ranks in ranks_per_subgroup_list]
        mine = next((group for group in groups if 0 in group.ranks), None)
        return mine, groups

    def size(group: Any = None) -> int:
        return group.size() if isinstance(group, Group) else world_size

    def rank(group: Any = None) -> int:
        return group.rank() if isinstance(group, Group) else 0

    answers = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "get_world_size": size,
        "get_rank": rank,
        "get_backend": lambda group=None: "nccl",
        "get_process_group_ranks": lambda group=None: (group or everyone).ranks,
        "get_global_rank": lambda group, group_rank: group.ranks[group_rank],
        "new_group": new_group,
        "new_subgroups_by_enumeration": new_subgroups_by_enumeration,
        "barrier": lambda *args, **kwargs: None,
    }
    with ExitStack() as stack:
        for name, answer in answers.items():
            stack.enter_context(mock.patch.object(torch.distributed, name, answer))
        nccl = getattr(torch.distributed, "ProcessGroupNCCL", None)
        if nccl is not None:
            stack.enter_context(mock.patch.object(nccl, "Options", NcclOptions))
        yield


def start_groups(config: Any, world_size: int) -> dict[str, Any]:
    """The pure first steps after validation: micro-batch calculator, process groups, layers of every stage."""
    from megatron.bridge.training import initialize
    from megatron.core import parallel_state
    from megatron.core.num_microbatches_calculator import (
        get_num_microbatches,
        init_num_microbatches_calculator,
    )

    train = config.train
    init_num_microbatches_calculator(
        0,
        train.rampup_batch_size,
        train.global_batch_size,
        train.micro_batch_size,
        config.data_parallel_size,
        train.decrease_batch_size_if_needed,
    )
    facts = {"num_microbatches": get_num_microbatches(), "data_parallel_size": config.data_parallel_size}
    model = getattr(config.model, "transformer", None) or config.model
    with distributed(world_size):
        initialize._initialize_distributed(
            model_config=model,
            dist_config=config.dist,
            num_distributed_optimizer_instances=config.ddp.num_distributed_optimizer_instances,
            get_embedding_ranks=None,
            get_position_embedding_ranks=None,
        )
        build_stages(model, parallel_state)
    return facts


def build_stages(model: Any, parallel_state: Any) -> None:
    """Ask, for every pipeline stage and model chunk, how many layers are built there."""
    import inspect

    from megatron.core.transformer import transformer_block

    if any(kind.__name__.startswith(("Hybrid", "Mamba")) for kind in type(model).__mro__):
        return  # stages of hybrid models come from their pattern, which validation has already judged
    count = transformer_block.get_num_layers_to_build
    names = inspect.signature(count).parameters
    for rank in range(model.pipeline_model_parallel_size):
        parallel_state.set_pipeline_model_parallel_rank(rank)
        for chunk in range(model.virtual_pipeline_model_parallel_size or 1):
            chunks = {"vp_stage": chunk} if model.virtual_pipeline_model_parallel_size else {}
            asked = {key: value for key, value in {**chunks, "pp_rank": rank}.items() if key in names}
            count(model, **asked)


def later_failures(config: Any, facts: dict[str, Any], environ: dict[str, str]) -> list[dict[str, str]]:
    """Where a launch that starts will fail afterwards: the scheduler is really made, the others are read conditions."""
    from megatron.bridge.training import optim

    later: list[dict[str, str]] = []
    try:
        optim._get_scheduler(config.optimizer, config.scheduler, mock.MagicMock(param_groups=[]))
    except Exception as error:
        later.append({"where": place(error), "type": type(error).__name__})
    model = config.model
    experts = getattr(model, "num_moe_experts", None)
    if experts:
        # Named by the file and function of the check in megatron.core, release 0.19.
        if model.tensor_model_parallel_size > 1 and not model.sequence_parallel:
            later.append({"where": "megatron/core/transformer/moe/moe_layer.py:forward", "type": "ValueError"})
        if experts % model.expert_model_parallel_size:
            later.append({"where": "megatron/core/transformer/moe/moe_layer.py:__init__", "type": "AssertionError"})
    if model.virtual_pipeline_model_parallel_size and model.pipeline_model_parallel_size > 1:
        schedule = "megatron/core/pipeline_parallel/schedules.py:forward_backward_pipelining_with_interleaving"
        stages, batches = model.pipeline_model_parallel_size, facts["num_microbatches"]
        group = getattr(model, "microbatch_group_size_per_vp_stage", None) or stages
        if group > batches or group < stages:
            later.append({"where": schedule, "type": "ValueError"})
        elif 0 < batches % group < stages:
            later.append({"where": schedule, "type": "RuntimeError"})
    if getattr(config.ddp, "nccl_ub", False) and "expandable_segments:True" in environ.get("PYTORCH_CUDA_ALLOC_CONF", ""):
        later.append(
            {
                "where": "allocator: user buffers with expandable segments (refused before torch 2.11)",
                "type": "RuntimeError",
            }
        )
    return later


def estimate(config: Any, facts: dict[str, Any]) -> dict[str, Any] | None:
    """Upstream's own memory estimate; `{"error": ...}` where it fails, None where the release has none."""
    try:
        from megatron.bridge.training.utils.theoretical_memory_utils import estimate_training_memory
    except ImportError:
        return None
    try:
        made = estimate_training_memory(config, facts["num_microbatches"])
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    fields = ("parameter_count", "parameter_count_per_gpu", "bytes_per_parameter", "memory_bytes")
    return {
        **facts,
        "total_parameters": made.total_parameters,
        "components": {part.name: {field: getattr(part, field) for field in fields} for part in made.model_state_components},
        "activation_bytes": made.activation.memory_bytes if made.activation else None,
        "total_bytes": made.total_memory_bytes,
    }


def update(config: Any) -> None:
    """Upstream's `runtime_config_update`, or what `pretrain` calls in its place in older releases."""
    from megatron.bridge.training import config as bridge_config

    with upstream.quiet():
        bridge_config.runtime_config_update(config)
