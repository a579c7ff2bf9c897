"""The optimizer as the launch will run it."""

from __future__ import annotations

from mblint.facts.view import View, fact


@fact("optim.distributed")
def distributed(view: View) -> bool:
    """Whether optimizer state is sharded over data parallel ranks.

    Either switch turns both on; FSDP forces them.
    """
    return view.flag("ddp.use_distributed_optimizer") or view.flag("optimizer.use_distributed_optimizer") or view.flag("fsdp.active")
