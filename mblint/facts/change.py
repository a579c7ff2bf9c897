"""What a change did to a launch: its base is the same launch at the revision that the change starts from.

`base.<name>` reads any key or fact there and is absent without a base; the facts here are False or empty then.
The measured figures are those of megatron-bridge's guide on memory tuning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from mblint.evaluate.unknown import ABSENT, Absent, Unknown
from mblint.facts.environment import ALLOCATOR_VARIABLES, parse_allocator
from mblint.facts.memory.estimate import estimate
from mblint.facts.memory.reading import Overlay
from mblint.facts.motive import comment, speaks_of_memory
from mblint.facts.view import Stop, View, fact

GIB: Final = 2**30
WORTH_GIB: Final = 0.1
"""Savings below this are not named as a way to save memory."""

_WORDS: Final = re.compile(
    r"\b(oom\w*|out[ -]of[ -]memory|memory|vram|hbm)\b|メモリ|显存|内存"
    r"|\b(do(es)?n['o]?t|does not|do not|no longer|make\b.{0,60}|to) fit\b"
    r"|\bfit(s|ting)?\b.{0,40}\b(gpus?|cards?|[abhg]+\d{3}s?|\d+ ?gi?b)\b",
    re.IGNORECASE,
)
_MOTIVE_KEYS: Final = (
    "model.tensor_model_parallel_size",
    "model.pipeline_model_parallel_size",
    "model.virtual_pipeline_model_parallel_size",
    "model.pipeline_model_parallel_layout",
    "model.context_parallel_size",
    "model.expert_model_parallel_size",
    "model.recompute_granularity",
    "model.recompute_modules",
    "model.recompute_num_layers",
    "train.micro_batch_size",
)


def _known(view: View, name: str) -> object:
    """A value, or None where it is unknown or absent."""
    value = view.read(name)
    return None if isinstance(value, Unknown | Absent) else value


def _differs(view: View, name: str) -> bool:
    now, before = view.get(name), view.get(f"base.{name}")
    for value in (now, before):
        if isinstance(value, Unknown):
            raise Stop(value)
    return now is not before and (isinstance(now, Absent) or isinstance(before, Absent) or now != before)


@fact("change.has_base")
def has_base(view: View) -> bool:
    """Whether a change is under review that reaches this launch, and the launch was there before it."""
    return view.base is not None


@fact("change.gpus_changed")
def gpus_changed(view: View) -> object:
    """Whether the number of GPUs changed; a number that is not known at either side did not."""
    if view.base is None:
        return False
    now, before = view.get("world_size"), view.base.read("world_size")
    if isinstance(now, Unknown | Absent) and isinstance(before, Unknown | Absent):
        return False
    for value in (now, before):
        if isinstance(value, Unknown | Absent):
            return value
    return now != before


# Why


def _changed_keys(view: View) -> list[str]:
    base = view.base
    return [] if base is None else [key for key in _MOTIVE_KEYS if not _same(view.read(key), base.read(key))]


def _words(view: View) -> Iterable[str]:
    """What the change says of itself where it touches the recipe or the places that set a changed size."""
    words = getattr(view.resolved, "words", None)
    if not callable(words):
        return
    own = getattr(view.resolved, "span", None)
    paths: dict[str, None] = {} if own is None else {own.path: None}
    for key in _changed_keys(view):
        paths.update((write.span.path, None) for write in view.resolved.origins(key) if write.in_project)
    for path in paths:
        yield str(words(path))


def _same(now: object, before: object) -> bool:
    return now is before or (not isinstance(now, Unknown | Absent) and now == before)


@fact("change.memory_motive")
def memory_motive(view: View) -> bool:
    """Whether the change's messages, its branch, or a comment beside a changed size give memory as the reason."""
    if view.base is None:
        return False
    if any(speaks_of_memory(comment(view, key)) for key in _changed_keys(view)):
        return True
    return any(_WORDS.search(text) is not None for text in _words(view))


@fact("change.instead")
def instead(view: View) -> str:
    """For a change that is meant to save memory: the cheaper steps that are still open to this launch, as a sentence that a
    message ends with; "" otherwise."""
    if not view.flag("change.memory_motive"):
        return ""
    steps = [str(step) for step in view.items("change.steps")]
    return f". Cheaper for memory, and still open here: {'; '.join(steps)}" if steps else ""


@fact("change.steps")
def steps(view: View) -> list[object]:
    """The guide's cheaper steps to save memory that this launch has not taken, in its order, with estimated GiB."""
    found: list[object] = []
    if not _known(view, "ddp.nccl_ub"):
        segments = view.read("environment.expandable_segments")
        if segments is False:
            found.append("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (no cost)")
        elif isinstance(segments, Unknown):
            found.append("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (no cost), unless the launcher sets it")
    if _known(view, "lora.active") and not _known(view, "peft.sequence_parallel_input_regather"):
        if _known(view, "lora.regather_targets"):
            saved = _saved(view, {"peft.sequence_parallel_input_regather": True})
            found.append(f"sequence_parallel_input_regather on the LoRA ({_gib(saved)}0.3 to 6.7 % slower where measured)")
    if view.read("recompute.granularity") is None:
        changes = {"model.recompute_granularity": "selective", "model.recompute_modules": ["core_attn"]}
        saved = _saved(view, changes)
        if saved is None or saved >= WORTH_GIB:
            found.append(f"selective recomputation of core_attn{_bracket(_gib(saved))}")
    if view.read("optim.distributed") is False and view.read("peft") is None:
        size = _known(view, "parallel.data_parallel_size")
        if size is None or (isinstance(size, int) and size > 1):
            saved = _saved(view, {"optimizer.use_distributed_optimizer": True, "ddp.use_distributed_optimizer": True})
            found.append(f"the distributed optimizer ({_gib(saved)}1 to 2 % slower)")
    return found


def _gib(saved: float | None) -> str:
    return f"an estimated {saved:.1f} GiB, " if saved is not None and saved >= WORTH_GIB else ""


def _bracket(text: str) -> str:
    return f" ({text.rstrip(', ')})" if text else ""


def _saved(view: View, changes: Mapping[str, object]) -> float | None:
    """GiB that the worst stage would need less; None where no estimate can be made."""
    now = _total(view)
    after = estimate(Overlay(view.resolved, changes)).total_bytes
    return None if now is None or after is None else (now - after) / GIB


def _total(view: View) -> int | None:
    if view.memory is None:
        view.memory = estimate(view.resolved)
    total = view.memory.total_bytes
    return int(total) if total is not None else None


@fact("change.memory")
def memory(view: View) -> str:
    """The estimate before and after, as a part of a message; "" where one is missing or they hardly differ."""
    if view.base is None:
        return ""
    before, now = _total(view.base), _total(view)
    if before is None or now is None or abs(now - before) < WORTH_GIB * GIB:
        return ""
    return f" (estimated peak {before / GIB:.1f} -> {now / GIB:.1f} GiB a GPU)"


@fact("change.memory_delta_gib")
def memory_delta_gib(view: View) -> object:
    """Estimated GiB of the worst stage now less those at the base; absent without a base, unknown without an estimate."""
    if view.base is None:
        return ABSENT
    before, now = _total(view.base), _total(view)
    return Unknown("the memory of this launch is not known") if before is None or now is None else round((now - before) / GIB, 1)


# What


@fact("change.model_parallel_grew")
def model_parallel_grew(view: View) -> object:
    """Whether one copy of the model takes more GPUs than before, of as many GPUs as before: data parallel falls."""
    if view.base is None:
        return False
    now, before = view.get("parallel.model_parallel_size"), view.base.read("parallel.model_parallel_size")
    for value in (now, before):
        if isinstance(value, Unknown | Absent):
            return value
    if not (isinstance(now, int) and isinstance(before, int) and now > before):
        return False
    changed = view.get("change.gpus_changed")
    return changed if isinstance(changed, Unknown | Absent) else not changed


@fact("change.data_parallel_share")
def data_parallel_share(view: View) -> object:
    """Data parallel size now as a part of that before, by the model parallel sizes; absent without a base."""
    if view.base is None:
        return ABSENT
    now, before = view.get("parallel.model_parallel_size"), view.base.read("parallel.model_parallel_size")
    return before / now if isinstance(now, int) and isinstance(before, int) and now else ABSENT


@fact("change.segments_dropped")
def segments_dropped(view: View) -> bool:
    """Whether the launch set expandable segments for the allocator before, and does not any more.

    Not with NCCL user buffers, which they do not go together with, and not with another allocator.
    """
    if view.base is None or view.flag("ddp.nccl_ub"):
        return False
    if not _segments(view.base) or "cudaMallocAsync" in str(_allocator(view)):
        return False
    for name in ALLOCATOR_VARIABLES:
        view.get(f"env.{name}")
    return not _segments(view)


def _allocator(view: View) -> str:
    env = view.resolved.env
    for name in reversed(ALLOCATOR_VARIABLES):
        value = env.get(name)
        if isinstance(value, Unknown):
            raise Stop(value)
        if value is not None:
            return str(value)
    return ""


def _segments(view: View) -> bool:
    return parse_allocator(_allocator(view)).get("expandable_segments", "").lower() == "true"


@fact("change.batch_follows")
def batch_follows(view: View) -> bool:
    """Whether the global batch changed in step with the data parallel size, on as many GPUs as before.

    By the model parallel sizes, so that it can be told without knowing the number of GPUs.
    """
    if view.base is None or view.flag("change.gpus_changed") or not _differs(view, "train.global_batch_size"):
        return False
    now, before = view.integer("parallel.model_parallel_size"), view.base.read("parallel.model_parallel_size")
    was = view.base.read("train.global_batch_size")
    if not isinstance(before, int) or not isinstance(was, int):
        raise Stop(before if isinstance(before, Unknown) else ABSENT)
    return now != before and now * view.integer("train.global_batch_size") == before * was


_SEMANTICS: Final = (
    "ddp.grad_reduce_in_fp32",
    "ddp.average_in_collective",
    "model.calculate_per_token_loss",
    "model.attention_softmax_in_fp32",
    "model.fp32_residual_connection",
    "model.params_dtype",
    "model.pipeline_dtype",
    "model.fp8",
    "model.fp8_recipe",
    "model.fp4",
    "optimizer.main_grads_dtype",
    "optimizer.main_params_dtype",
    "optimizer.exp_avg_dtype",
    "optimizer.exp_avg_sq_dtype",
)
_NAMED_BY_PRECISION: Final = frozenset({"model.params_dtype", "model.pipeline_dtype", "model.fp8", "model.fp8_recipe", "model.fp4"})
"""What somebody who picks another mixed precision recipe means to change."""


@fact("change.semantics")
def semantics(view: View) -> list[object]:
    """Keys of precision and loss whose effective value the change took away from what is written for them, unaltered."""
    if view.base is None:
        return []
    meant = not _same(view.read("precision.recipe"), view.base.read("precision.recipe"))
    found: list[object] = []
    for key in _SEMANTICS:
        now, before = view.read(key), view.base.read(key)
        if isinstance(now, Unknown | Absent) or isinstance(before, Unknown | Absent) or now == before:
            continue
        if meant and key in _NAMED_BY_PRECISION:
            continue
        written = view.resolved.written(key)
        if _same(written, now) or not _same(written, view.base.resolved.written(key)) or _spelled_out(view, key):
            continue  # what is written holds, or somebody wrote it anew
        view.get(key)
        found.append(key)
    return found


def _spelled_out(view: View, key: str) -> bool:
    """Whether the project itself sets the field of that name in a mixed precision recipe."""
    writes = view.resolved.origins(f"mixed_precision.{key.rpartition('.')[2]}")
    return any(write.in_project and getattr(write, "kind", "") != "call" for write in writes)


@fact("change.semantics_text")
def semantics_text(view: View) -> str:
    """The keys of change.semantics with both values."""
    parts = [f"{key} goes from {_shown(_base(view, str(key)))} to {_shown(view.read(str(key)))}" for key in view.items("change.semantics")]
    return ", ".join(parts)


def _base(view: View, name: str) -> object:
    return ABSENT if view.base is None else view.base.read(name)


def _shown(value: object) -> str:
    return {True: "true", False: "false", None: "null"}[value] if value is None or isinstance(value, bool) else str(value)
