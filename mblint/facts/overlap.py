"""Overlap of communication and computation, after the comm_overlap section has had its say.

What `comm_overlap` leaves at None is chosen from the parallel sizes and written over the user's own `ddp` and
`model` values. Source: megatron.bridge.training.comm_overlap.CommOverlapConfig.
"""

from __future__ import annotations

from mblint.facts.view import View, fact


@fact("overlap.section")
def section(view: View) -> bool:
    """Whether a comm_overlap section is there."""
    return view.value("comm_overlap") is not None


@fact("overlap.tp")
def tp(view: View) -> bool:
    """Whether tensor parallel communication is overlapped; a section wants TP and SP for it."""
    if not view.flag("overlap.section"):
        return view.flag("model.tp_comm_overlap")
    if not view.flag("comm_overlap.tp_comm_overlap"):
        return False
    return view.integer("parallel.tp") >= 2 and view.flag("model.sequence_parallel")


@fact("overlap.expert")
def expert(view: View) -> bool:
    """Whether the all-to-all of expert parallelism is overlapped."""
    if view.flag("overlap.section"):
        return view.flag("comm_overlap.overlap_moe_expert_parallel_comm")
    return view.flag("model.overlap_moe_expert_parallel_comm")


@fact("overlap.delayed_wgrad")
def delayed_wgrad(view: View) -> bool:
    """Whether weight gradients are computed later than the gradients of activations."""
    if view.flag("overlap.section"):
        return view.flag("comm_overlap.delay_wgrad_compute")
    return view.flag("model.delay_wgrad_compute")


@fact("overlap.decides_dp")
def decides_dp(view: View) -> bool:
    """Whether the section sets what ddp and optimizer overlap: only with ddp's distributed optimizer."""
    return view.flag("overlap.section") and view.flag("ddp.use_distributed_optimizer")


def _data_parallel(view: View, name: str, *own: str) -> bool:
    if not view.flag("overlap.decides_dp"):
        return any(view.flag(key) for key in own)
    said = view.value(f"comm_overlap.{name}")
    return bool(said) if said is not None else view.integer("parallel.data_parallel_size") > 1


@fact("overlap.grad_reduce")
def grad_reduce(view: View) -> bool:
    """Whether the reduction of gradients is overlapped with backward."""
    return _data_parallel(view, "overlap_grad_reduce", "ddp.overlap_grad_reduce")


@fact("overlap.param_gather")
def param_gather(view: View) -> bool:
    """Whether the gathering of parameters is overlapped with forward; either switch does."""
    return _data_parallel(view, "overlap_param_gather", "ddp.overlap_param_gather", "optimizer.overlap_param_gather")


@fact("overlap.optimizer_step")
def optimizer_step(view: View) -> bool:
    """Whether the gathering of parameters is overlapped with the optimizer's step."""
    if view.flag("overlap.decides_dp"):
        return view.flag("comm_overlap.overlap_param_gather_with_optimizer_step")
    return view.flag("optimizer.overlap_param_gather_with_optimizer_step")


@fact("overlap.bucket_size")
def bucket_size(view: View) -> int | None:
    """Parameters of a gradient bucket, as given; None leaves it to max(40M, 1M x DP)."""
    if view.flag("overlap.decides_dp"):
        said = view.value("comm_overlap.bucket_size")
        if said is not None:
            return view.integer("comm_overlap.bucket_size")
        return 128 * 1024 * 1024 if view.integer("parallel.data_parallel_size") > 1 else None
    return None if view.value("ddp.bucket_size") is None else view.integer("ddp.bucket_size")


@fact("overlap.p2p")
def p2p(view: View) -> bool:
    """Whether transfers between pipeline stages are overlapped with computation."""
    if not view.flag("overlap.section"):
        return view.flag("model.overlap_p2p_comm")
    said = view.value("comm_overlap.overlap_p2p_comm")
    if said is not None:
        return bool(said)
    chunks = view.integer("model.virtual_pipeline_model_parallel_size", 1)
    return chunks > 1 and view.integer("parallel.pp") > 1
