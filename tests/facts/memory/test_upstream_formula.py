"""The upstream formula against numbers that megatron-bridge 0.6.2 itself produced."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from mblint.evaluate.unknown import Unknown
from mblint.facts.memory.upstream_formula import ACTIVATION, DENSE, EXPERTS, upstream_estimate


@pytest.fixture(scope="module")
def recorded(data) -> list[dict[str, Any]]:
    return json.loads(gzip.decompress((data / "upstream_estimates.json.gz").read_bytes()))


def test_every_component_of_every_recorded_launch(recorded, launch) -> None:
    assert len(recorded) > 250
    for record in recorded:
        found = upstream_estimate(launch(record["config"], record["world_size"]))
        assert not found.missing, record["name"]
        assert found.total_bytes == pytest.approx(record["total"], rel=1e-9), record["name"]
        assert found.components == pytest.approx(record["components"], rel=1e-9), record["name"]
        assert found.total_parameters == pytest.approx(record["parameters"], rel=1e-9)
        assert found.num_microbatches == record["microbatches"]
        assert found.data_parallel_size == record["data_parallel_size"]


def test_the_recordings_cover_what_the_formula_distinguishes(recorded) -> None:
    configs = [record["config"] for record in recorded]
    for key in (
        "model.num_moe_experts",
        "model.mtp_num_layers",
        "model.moe_latent_size",
        "model.virtual_pipeline_model_parallel_size",
        "model.num_layers_in_last_pipeline_stage",
        "model.moe_shared_expert_intermediate_size",
    ):
        assert any(config.get(key) for config in configs), key
    assert any(config["model.context_parallel_size"] > 1 for config in configs)
    assert any(not config.get("optimizer.use_distributed_optimizer") for config in configs)


def test_adam_without_sharding_is_18_bytes_a_parameter(plain) -> None:
    found = upstream_estimate(plain(set={"optimizer.use_distributed_optimizer": False, "ddp.use_distributed_optimizer": False}))
    assert found.static_bytes == pytest.approx(18 * found.total_parameters)
    assert set(found.components) == {DENSE, ACTIVATION}
    assert EXPERTS not in found.components


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"model.vocab_size": None}, "model.vocab_size"),
        ({"model.hidden_size": Unknown("two recipes disagree")}, "model.hidden_size"),
        ({"model.tensor_model_parallel_size": 0}, "model.tensor_model_parallel_size"),
        ({"model.num_layers_in_first_pipeline_stage": 4}, "model.num_layers_in_first_pipeline_stage"),
        (
            {
                "model.pipeline_model_parallel_size": 2,
                "model.virtual_pipeline_model_parallel_size": 3,
                "model.num_layers_in_first_pipeline_stage": 8,
            },
            "model.num_layers_in_first_pipeline_stage",
        ),
        ({"model.num_moe_experts": 8, "model.moe_layer_freq": [1, 0]}, "model.moe_layer_freq"),
    ],
)
def test_no_estimate_says_which_key_is_to_blame(plain, changes, key) -> None:
    found = upstream_estimate(plain(set=changes))
    assert key in found.missing
    assert found.components == {}
