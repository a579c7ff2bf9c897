"""Layers on stages, micro batches in flight."""

from __future__ import annotations

import pytest

from mblint.facts.memory.estimate import estimate
from mblint.facts.memory.inputs import read_inputs
from mblint.facts.memory.layout import LayoutError, stage_chunks
from mblint.facts.memory.model_shape import parse_layout
from mblint.facts.memory.schedule import flights


def read(made):
    inputs, missing = read_inputs(made)
    assert inputs is not None, missing
    return inputs


def numbers(made) -> list[list[int]]:
    """Decoder layers of each chunk of each stage."""
    return [[len(chunk.layers) for chunk in chunks] for chunks in stage_chunks(read(made))]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"num_layers": 8, "pipeline_model_parallel_size": 4}, [[2], [2], [2], [2]]),
        (
            {
                "num_layers": 8,
                "pipeline_model_parallel_size": 2,
                "virtual_pipeline_model_parallel_size": 2,
            },
            [[2, 2], [2, 2]],
        ),
        (
            {
                "num_layers": 10,
                "pipeline_model_parallel_size": 4,
                "num_layers_in_first_pipeline_stage": 1,
                "num_layers_in_last_pipeline_stage": 3,
            },
            [[1], [3], [3], [3]],
        ),
        (
            {
                "num_layers": 6,
                "pipeline_model_parallel_size": 4,
                "account_for_embedding_in_pipeline_split": True,
                "account_for_loss_in_pipeline_split": True,
            },
            [[1], [2], [2], [1]],
        ),
        # Written out by hand: chunks run stage 0, stage 1, then stage 0 again.
        (
            {
                "num_layers": 5,
                "pipeline_model_parallel_size": 2,
                "virtual_pipeline_model_parallel_size": 2,
                "pipeline_model_parallel_layout": "Et|tt|t|tL",
            },
            [[1, 1], [2, 1]],
        ),
        (
            {
                "num_layers": 3,
                "pipeline_model_parallel_size": 2,
                "pipeline_model_parallel_layout": [["embedding", "decoder"], ["decoder", "decoder", "loss"]],
            },
            [[1], [2]],
        ),
        # Without pipeline parallelism everything is on the one stage, whatever else is said.
        ({"num_layers": 7, "virtual_pipeline_model_parallel_size": 3}, [[7]]),
    ],
)
def test_layers_of_each_chunk(plain, config, expected) -> None:
    assert numbers(plain(4, **config)) == expected


def test_ends_of_the_pipeline(plain) -> None:
    stages = stage_chunks(read(plain(2, num_layers=8, pipeline_model_parallel_size=2, virtual_pipeline_model_parallel_size=2)))
    flat = [chunk for chunks in stages for chunk in chunks]
    assert [chunk.embedding for chunk in flat] == [True, False, False, False]
    assert [chunk.output for chunk in flat] == [False, False, False, True]
    assert [index for index, _ in stages[1][0].layers] == [2, 3]


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"num_layers": 7, "pipeline_model_parallel_size": 2}, "model.num_layers"),
        (
            {
                "num_layers": 8,
                "pipeline_model_parallel_size": 4,
                "virtual_pipeline_model_parallel_size": 3,
            },
            "model.virtual_pipeline_model_parallel_size",
        ),
        (
            {"pipeline_model_parallel_size": 2, "pipeline_model_parallel_layout": "Et|t|tL"},
            "model.pipeline_model_parallel_layout",
        ),
        (
            {"pipeline_model_parallel_size": 2, "pipeline_model_parallel_layout": "Et|tL"},
            "model.num_layers",
        ),
        (
            {"pipeline_model_parallel_size": 2, "num_layers_in_first_pipeline_stage": 17},
            "model.num_layers",
        ),
    ],
)
def test_a_layout_that_cannot_be_names_its_key(plain, config, key) -> None:
    made = plain(4, **config)
    with pytest.raises(LayoutError) as error:
        stage_chunks(read(made))
    assert error.value.key == key
    assert key in estimate(made).missing


def test_layout_text() -> None:
    assert parse_layout("Et*2|(t|)*2mL") == (
        ("embedding", "decoder", "decoder"),
        ("decoder",),
        ("decoder",),
        ("mtp", "loss"),
    )
    assert parse_layout("E t, t|L") == (("embedding", "decoder", "decoder"), ("loss",))
    assert parse_layout([["LayerType.embedding"], ["LayerType.loss"]]) == (("embedding",), ("loss",))


@pytest.mark.parametrize("text", ["Ex|L", "(t*2", "t*999999999999", "t*" + "9" * 5000, 7, ["E"], [["head"]]])
def test_what_is_no_layout(text) -> None:
    assert parse_layout(text) is None


def test_a_layout_object_is_read_from_what_was_written(launch, plain) -> None:
    flat = plain(2, num_layers=3, pipeline_model_parallel_size=2).flat
    key = "model.pipeline_model_parallel_layout"
    made = launch({**flat, key: "<megatron.core.Layout>"}, 2, written={key: "Et|ttL"})
    assert numbers(made) == [[1], [2]]
    unwritten = launch({**flat, key: "<megatron.core.Layout>"}, 2)
    assert key in read_inputs(unwritten)[1]


def test_hybrid_pattern(plain) -> None:
    made = plain(2, hybrid_layer_pattern="M*-|ME", pipeline_model_parallel_size=2, num_moe_experts=4)
    kinds = [[kind for _, kind in chunk.layers] for chunks in stage_chunks(read(made)) for chunk in chunks]
    assert [[kind.attention or kind.mlp for kind in part] for part in kinds] == [
        ["mamba", "gqa", "dense"],
        ["mamba", "moe"],
    ]
    assert "model.hybrid_layer_pattern" in read_inputs(plain(hybrid_layer_pattern="M?"))[1]


def test_1f1b_holds_one_micro_batch_more_on_every_earlier_stage(plain) -> None:
    inputs = read(plain(4, pipeline_model_parallel_size=4))
    assert [flights(inputs, rank)[0].passes for rank in range(4)] == [(4,), (3,), (2,), (1,)]
    few = read(plain(4, pipeline_model_parallel_size=4, set={"train.global_batch_size": 2}))
    assert [flights(few, rank)[0].passes for rank in range(4)] == [(2,), (2,), (2,), (1,)]


def test_interleaving_holds_the_warm_up_and_one_pass_more(plain) -> None:
    inputs = read(plain(4, pipeline_model_parallel_size=4, virtual_pipeline_model_parallel_size=2))
    most = [max(sum(flight.passes) for flight in flights(inputs, rank)) for rank in range(4)]
    # 2 (PP - r - 1) + (VP - 1) PP passes of a chunk ahead, and the one that runs.
    assert most == [6 + 4 + 1, 4 + 4 + 1, 2 + 4 + 1, 0 + 4 + 1]
    grouped = read(
        plain(
            4,
            pipeline_model_parallel_size=4,
            virtual_pipeline_model_parallel_size=2,
            microbatch_group_size_per_vp_stage=8,
        )
    )
    assert max(sum(flight.passes) for flight in flights(grouped, 0)) == 6 + 8 + 1


def test_every_micro_batch_is_in_flight_at_most(plain) -> None:
    inputs = read(
        plain(
            4,
            pipeline_model_parallel_size=4,
            virtual_pipeline_model_parallel_size=4,
            set={"train.global_batch_size": 4},
        )
    )
    for rank in range(4):
        assert all(0 <= held <= 4 for flight in flights(inputs, rank) for held in flight.passes)
        # Four micro batches through four chunks: nothing can run backward before all have run forward on rank 0.
    assert max(sum(flight.passes) for flight in flights(inputs, 0)) == 16


def test_pipeline_outputs_are_counted_unless_freed(plain) -> None:
    freed = estimate(plain(4, pipeline_model_parallel_size=4))
    kept = estimate(plain(4, pipeline_model_parallel_size=4, deallocate_pipeline_outputs=False))
    boundary = 4096 * 2048 * 2
    added = [b.allocated_bytes - a.allocated_bytes for a, b in zip(freed.stages, kept.stages, strict=True)]
    assert added == [4 * boundary, 3 * boundary, 2 * boundary, 0]
