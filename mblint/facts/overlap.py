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
    """Whether tensor parallel communication is overlapped."""
    if view.flag("overlap.section"):
        return view.flag("comm_overlap.tp_comm_overlap") and view.integer("parallel.tp") >= 2
    return view.flag("model.tp_comm_overlap")


@fact("overlap.expert")
def expert(view: View) -> bool:
    """Whether the all-to-all of expert parallelism is overlapped."""
    if view.flag("overlap.section"):
        return view.flag("comm_overlap.overlap_moe_expert_parallel_comm")
    return view.flag("model.overlap_moe_expert_parallel_comm")
