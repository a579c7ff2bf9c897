"""What could be smaller as far as memory goes: tensor parallel, whole-layer recomputation, pipeline stages.

Said only of launches whose estimate is certain (full batches, nothing approximated or left out), and only
where the smaller setting fits with 20 % of the GPU free: the opposite of the guide's order of remedies, which
puts these last because of their cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.facts.memory.capacity import GIB, judge
from mblint.facts.memory.estimate import Estimate, estimate
from mblint.facts.memory.facts import _estimate
from mblint.facts.memory.reading import Overlay
from mblint.facts.view import View, fact

HEAD_ROOM: Final = 0.2
"""Share of the GPU's memory that must stay free with the smaller setting."""

TP, PP = "model.tensor_model_parallel_size", "model.pipeline_model_parallel_size"
VP, CP, EP = (
    "model.virtual_pipeline_model_parallel_size",
    "model.context_parallel_size",
    "model.expert_model_parallel_size",
)
# Settings that place layers by hand: another number of stages needs another placement.
_PLACED: Final = (
    "model.pipeline_model_parallel_layout",
    "model.num_layers_in_first_pipeline_stage",
    "model.num_layers_in_last_pipeline_stage",
    "model.account_for_embedding_in_pipeline_split",
    "model.account_for_loss_in_pipeline_split",
)


@fact("memory.smaller_tp")
def smaller_tp(view: View) -> object:
    """Half the tensor parallel size where that fits with head-room, else 0."""
    return _smaller(view)["tp"][0]


@fact("memory.smaller_pp")
def smaller_pp(view: View) -> object:
    """Half the pipeline stages where that fits with head-room, else 0."""
    return _smaller(view)["pp"][0]


@fact("memory.smaller_vp")
def smaller_vp(view: View) -> object:
    """Model chunks a stage that go with `memory.smaller_pp`; None for none."""
    chunks = _smaller(view)["vp"][0]
    return chunks if chunks > 1 else None


@fact("memory.recompute_unneeded")
def recompute_unneeded(view: View) -> object:
    """Whether the launch fits with head-room without recomputing whole layers."""
    return bool(_smaller(view)["recompute"][0])


@fact("memory.smaller_gib")
def smaller_gib(view: View) -> object:
    """What the launch would need with the first of the three that could be smaller (TP, recompute, PP)."""
    held = _smaller(view)
    for name in ("tp", "recompute", "pp"):
        if held[name][0]:
            return round(held[name][1] / GIB, 1)
    return ABSENT


def _smaller(view: View) -> dict[str, tuple[int, int]]:
    """Name -> (value or 0, bytes needed with it); found once for a launch."""
    if view.smaller is not None:
        return view.smaller
    found = {"tp": (0, 0), "recompute": (0, 0), "pp": (0, 0), "vp": (0, 0)}
    if _certain(view, _estimate(view)):
        for name, value, changes in _halved(view):
            needed = _fits(view, changes)
            if needed and not found[name][0]:
                found[name] = (value, needed)
                if name == "pp":
                    chunks = changes.get(VP)
                    found["vp"] = (chunks if isinstance(chunks, int) else 0, 0)
    view.smaller = found
    return found


def _certain(view: View, found: Estimate) -> bool:
    """Only where the launch itself has the head-room can a smaller setting have it."""
    if found.missing or found.shorter or found.approximated or found.not_modelled:
        return False
    if _number(view, "ddp.use_megatron_fsdp") or _number(view, "dist.use_torch_fsdp2"):
        return False
    gpu = view.resolved.gpu
    judged = judge(found, gpu if isinstance(gpu, str) else "")
    if judged.capacity is None or judged.verdict != "fits":
        return False
    return judged.head_room_bytes >= HEAD_ROOM * judged.capacity.low_gib * GIB


def _fits(view: View, changes: Mapping[str, object]) -> int:
    """Bytes needed with the changes where that leaves the head-room, else 0."""
    gpu = view.resolved.gpu
    found = estimate(Overlay(view.resolved, changes))
    judged = judge(found, gpu if isinstance(gpu, str) else "")
    if judged.capacity is None or judged.verdict != "fits":
        return 0
    if judged.head_room_bytes < HEAD_ROOM * judged.capacity.low_gib * GIB:
        return 0
    return found.total_bytes or 0


def _number(view: View, key: str, default: int = 0) -> int:
    value = view.resolved.get(key)
    if value is ABSENT or isinstance(value, Unknown) or not isinstance(value, int):
        return default
    return int(value)


def _halved(view: View) -> Iterator[tuple[str, int, dict[str, object]]]:
    """Settings to try: (name, value, changes)."""
    tp, pp, cp = _number(view, TP, 1), _number(view, PP, 1), _number(view, CP, 1)
    world = view.resolved.world_size
    if not isinstance(world, int) or world % (tp * pp * cp):
        return
    if tp > 1 and tp % 2 == 0 and _divides(view, world, tp // 2, pp, cp):
        yield "tp", tp // 2, {TP: tp // 2}
    if view.resolved.get("model.recompute_granularity") == "full":
        none: dict[str, object] = {
            "model.recompute_granularity": None,
            "model.recompute_method": None,
            "model.recompute_num_layers": None,
            "model.recompute_modules": None,
        }
        yield "recompute", 1, none
    if pp > 1 and pp % 2 == 0 and _divides(view, world, tp, pp // 2, cp):
        layers, chunks = _number(view, "model.num_layers"), _number(view, VP, 1)
        if any(view.resolved.get(key) not in (None, False, ABSENT) for key in _PLACED) or not layers:
            return
        if layers % (pp // 2):
            return
        stage = layers // (pp // 2)
        count = max((size for size in range(1, chunks + 1) if stage % size == 0), default=1)
        kept = count if pp > 2 and count > 1 else None
        yield "pp", pp // 2, {PP: pp // 2, VP: kept}


def _divides(view: View, world: int, tp: int, pp: int, cp: int) -> bool:
    """Whether batch and experts divide over the data parallel ranks that there would be."""
    data = world // (tp * pp * cp)
    micro, batch = _number(view, "train.micro_batch_size"), _number(view, "train.global_batch_size")
    if not micro or not batch or batch % (micro * data):
        return False
    if pp > 1 and batch // (micro * data) < pp:  # the pipeline would run empty
        return False
    if not _number(view, "model.num_moe_experts"):
        return True
    tensor = _number(view, "model.expert_tensor_parallel_size") or tp
    return world % (_number(view, EP, 1) * tensor * pp) == 0
