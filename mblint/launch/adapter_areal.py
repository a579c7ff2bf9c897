"""AReaL: parallelism as a small language, `megatron:(attn:d1p6t1c1|ffn:d1p6t1e1)`, for Megatron-Bridge
models."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from mblint.evaluate.unknown import Unknown
from mblint.launch.omega import Config, Dict, Leaf, OmegaError
from mblint.launch.spec import Assign, Given, LaunchSpec
from mblint.read.span import Span

_SIZE = re.compile(r"([dptce])(\d+)")


def is_areal(root: Dict) -> bool:
    """Whether the actor trains through Megatron-Bridge."""
    actor = root.items.get("actor")
    megatron = actor.items.get("megatron") if isinstance(actor, Dict) else None
    bridge = megatron.items.get("bridge_type") if isinstance(megatron, Dict) else None
    return isinstance(bridge, Leaf) and bridge.value == "megatron-bridge"


def sizes_of(backend: str) -> dict[str, dict[str, int]] | None:
    """The sizes of attention and of experts; None when the text is not understood."""
    kind, _, body = backend.partition(":")
    if kind != "megatron":
        return None
    parts: dict[str, dict[str, int]] = {}
    body = body.strip("()")
    for piece in body.split("|"):
        name, colon, dims = piece.rpartition(":")
        if not re.fullmatch(r"(?:[dptce]\d+)+", dims) or (colon and name not in ("attn", "ffn")):
            return None
        parts[name or "attn"] = {letter: int(number) for letter, number in _SIZE.findall(dims)}
    return parts


def read_areal(root: Dict, path: str, env: Mapping[str, Any]) -> LaunchSpec:
    """The training launch of an AReaL file."""
    config = Config(root, env=env, foreign=True)

    def get(key: str) -> tuple[Any, Span | None]:
        try:
            node = config.select(key)
            if node is None:
                return None, None
            return config.plain(node, tuple(key.split("."))), node.span
        except OmegaError as error:
            return Unknown(error.reason, error.span), error.span

    backend, span = get("actor.backend")
    parts = sizes_of(backend) if isinstance(backend, str) else None
    assigns: list[Assign] = []
    world: int | Unknown = Unknown("the parallelism of actor.backend is not understood", span)
    if parts is not None:
        attention, experts = parts.get("attn", {}), parts.get("ffn", parts.get("attn", {}))
        world = 1
        for size in attention.values():
            world *= size
        assigns += [
            Assign("model.tensor_model_parallel_size", attention.get("t", 1), span),
            Assign("model.pipeline_model_parallel_size", attention.get("p", 1), span),
            Assign("model.context_parallel_size", attention.get("c", 1), span),
            Assign("model.expert_model_parallel_size", experts.get("e", 1), span),
        ]
        if "ffn" in parts:
            assigns.append(Assign("model.expert_tensor_parallel_size", experts.get("t", 1), span))
    lora, _ = get("actor.use_lora")
    for key, target in (
        ("actor.optimizer.lr", "optimizer.lr"),
        ("actor.optimizer.weight_decay", "optimizer.weight_decay"),
        ("train_dataset.batch_size", "train.global_batch_size"),
        *((("actor.lora_rank", "peft.dim"), ("actor.lora_alpha", "peft.alpha"),
           ("actor.target_modules", "peft.target_modules")) if lora is True else ()),
    ):  # fmt: skip
        value, place = get(key)
        if value is not None:
            assigns.append(Assign(target, value, place))
    model, place = get("actor.path")
    return LaunchSpec(
        name=posixpath.basename(path),
        launcher="areal",
        model=Given(model, place) if model is not None else None,
        assigns=tuple(assigns),
        world_size=world,
        span=root.span,
        foreign_resolvers=True,
        entry="areal",
    )
