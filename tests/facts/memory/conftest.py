"""A launch made from a flat dict, standing in for a resolved one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mblint.evaluate.unknown import ABSENT, Absent, Unknown

DATA = Path(__file__).parents[2] / "data" / "memory"


class Launch:
    """Keys and values as a resolved launch gives them."""

    def __init__(
        self,
        flat: Mapping[str, object],
        world_size: int | Unknown = 1,
        gpu: str | Unknown = "h100",
        versions: Mapping[str, str] | None = None,
        env: Mapping[str, str | Unknown] | None = None,
        written: Mapping[str, object] | None = None,
    ) -> None:
        self.flat = dict(flat)
        self.world_size = world_size
        self.gpu = gpu
        self.versions = versions or {}
        self.env = env or {}
        self._written = written or {}

    def get(self, key: str) -> object:
        return self.flat.get(key, ABSENT)

    def written(self, key: str) -> object:
        return self._written.get(key, self.get(key))

    def classes(self, section: str) -> tuple[str, ...] | Unknown | Absent:
        value = self.flat.get(f"{section}.__class__", ABSENT)
        if isinstance(value, Unknown):
            return value
        return (value,) if isinstance(value, str) else ABSENT


PLAIN: dict[str, object] = {
    "model.num_layers": 16,
    "model.hidden_size": 2048,
    "model.ffn_hidden_size": 8192,
    "model.num_attention_heads": 32,
    "model.num_query_groups": 8,
    "model.kv_channels": 64,
    "model.vocab_size": 32000,
    "model.seq_length": 4096,
    "model.normalization": "RMSNorm",
    "model.gated_linear_unit": True,
    "model.activation_func": "torch.nn.functional.silu",
    "model.add_bias_linear": False,
    "model.share_embeddings_and_output_weights": False,
    "model.position_embedding_type": "rope",
    "model.hidden_dropout": 0.0,
    "model.attention_dropout": 0.0,
    "model.bf16": True,
    "model.bias_activation_fusion": True,
    "model.deallocate_pipeline_outputs": True,
    "train.micro_batch_size": 1,
    "train.global_batch_size": 64,
    "optimizer.optimizer": "adam",
    "optimizer.use_distributed_optimizer": True,
    "ddp.use_distributed_optimizer": True,
    "ddp.grad_reduce_in_fp32": True,
}
"""A Llama-like model of 1.1 billion parameters."""


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of recorded values."""
    return DATA


@pytest.fixture(scope="session")
def launch() -> Callable[..., Launch]:
    """Make a launch from a flat dict."""
    return Launch


@pytest.fixture(scope="session")
def plain() -> Callable[..., Launch]:
    """Make a launch of a small dense model; keyword arguments are keys of the model section, `set` any keys."""

    def make(world_size: int = 1, gpu: str = "h100", set: Mapping[str, object] | None = None, **model: object) -> Launch:
        flat = {**PLAIN, **{f"model.{key}": value for key, value in model.items()}, **(set or {})}
        return Launch(flat, world_size, gpu)

    return make
