"""Facts of recomputation that depend on the layers of the model."""

from __future__ import annotations

from typing import Any

import pytest

from mblint.evaluate.unknown import Unknown
from mblint.facts.view import View
from mblint.ruleset.examples import launch_of


def idle(base: str, modules: list[str], more: dict[str, Any] | None = None, **example: Any) -> object:
    values = {"model.recompute_granularity": "selective", "model.recompute_modules": modules, **(more or {})}
    return View(launch_of({"base": base, "set": values, **example})).read("recompute.idle_modules")


@pytest.mark.parametrize(
    ("base", "modules", "more", "expected"),
    [
        ("dense", ["mlp", "core_attn"], {}, []),
        ("dense", ["moe_act", "layernorm"], {}, ["moe_act"]),
        ("moe", ["mlp", "moe"], {}, ["mlp"]),
        ("moe", ["mlp"], {"model.moe_layer_freq": [0, 1]}, []),
        ("moe", ["shared_experts"], {}, ["shared_experts"]),
        ("moe", ["shared_experts"], {"model.moe_shared_expert_intermediate_size": 1024}, []),
        ("hybrid", ["core_attn", "mlp", "moe"], {}, ["moe"]),
        ("hybrid", ["core_attn", "mlp"], {"model.hybrid_layer_pattern": "MEME"}, ["core_attn", "mlp"]),
        ("moe", ["mlp"], {"model.recompute_granularity": None}, []),
    ],
)
def test_idle_modules(base: str, modules: list[str], more: dict[str, Any], expected: list[str]) -> None:
    assert idle(base, modules, more) == expected


def test_idle_modules_of_a_model_that_is_not_known() -> None:
    assert isinstance(idle("dense", ["moe"], unknown=["model.num_moe_experts"]), Unknown)
