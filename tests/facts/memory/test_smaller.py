"""Where a setting is larger than memory needs, and where that must not be said."""

from __future__ import annotations

import pytest

from mblint.evaluate.unknown import Unknown
from mblint.facts.memory.smaller import recompute_unneeded, smaller_gib, smaller_pp, smaller_tp, smaller_vp
from mblint.facts.view import View

FULL = {"model.recompute_granularity": "full", "model.recompute_method": "uniform", "model.recompute_num_layers": 1}


def view(plain, world: int = 8, gpu: str = "h100", **changes: object) -> View:
    return View(plain(world, gpu, set={key.replace("__", "."): value for key, value in changes.items()}))


TP2 = {"model__tensor_model_parallel_size": 2}
PP4 = {"model__pipeline_model_parallel_size": 4, "model__virtual_pipeline_model_parallel_size": 4}


def test_half_of_it_where_that_fits(plain) -> None:
    assert smaller_tp(view(plain, **TP2)) == 1
    found = view(plain, **PP4)
    assert (smaller_pp(found), smaller_vp(found)) == (2, 4)
    assert 0 < smaller_gib(found) < 0.8 * 79.1
    assert recompute_unneeded(View(plain(8, set=FULL))) is True


def test_nothing_is_said_where_the_batch_would_not_divide(plain) -> None:
    assert smaller_tp(view(plain, train__global_batch_size=4, **TP2)) == 0
    assert smaller_pp(view(plain, train__global_batch_size=2, **PP4)) == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"ddp__use_megatron_fsdp": True},
        {"optimizer__optimizer": "a new one"},  # not modelled
        {"model__num_layers": Unknown("read from a file")},
    ],
)
def test_nothing_is_said_of_an_estimate_that_is_not_certain(plain, changes) -> None:
    assert smaller_tp(view(plain, **TP2, **changes)) == 0


def test_nothing_is_said_without_head_room_or_gpu(plain) -> None:
    large = {"model__num_layers": 80, "model__hidden_size": 8192, "model__ffn_hidden_size": 28672}
    assert smaller_tp(view(plain, world=16, **TP2, **large)) == 0
    assert smaller_tp(view(plain, gpu="tpu9", **TP2)) == 0


def test_layers_placed_by_hand_stay_where_they_are(plain) -> None:
    assert smaller_pp(view(plain, model__num_layers_in_first_pipeline_stage=3, **PP4)) == 0
