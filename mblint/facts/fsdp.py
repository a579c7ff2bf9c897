"""Fully sharded data parallelism: which kind is on, and what it shards.

Megatron-FSDP is on when either `dist` or `ddp` says so; the launch then sets both, and the distributed
optimizer. Source: ConfigContainer._validate_and_apply_megatron_fsdp_configs.
"""

from __future__ import annotations

from mblint.facts.view import View, fact


@fact("fsdp.megatron")
def megatron(view: View) -> bool:
    """Whether Megatron-FSDP is used."""
    return view.flag("dist.use_megatron_fsdp") or view.flag("ddp.use_megatron_fsdp")


@fact("fsdp.torch")
def torch(view: View) -> bool:
    """Whether PyTorch's FSDP2 is used."""
    return view.flag("dist.use_torch_fsdp2")


@fact("fsdp.active")
def active(view: View) -> bool:
    """Whether either kind of FSDP is used."""
    return view.flag("fsdp.megatron") or view.flag("fsdp.torch")


@fact("fsdp.strategy")
def strategy(view: View) -> str:
    """What Megatron-FSDP shards ("no_shard", "optim", "optim_grads", "optim_grads_params"); else absent."""
    if not view.flag("fsdp.megatron"):
        view.stop()
    return view.text("ddp.data_parallel_sharding_strategy", "no_shard")
