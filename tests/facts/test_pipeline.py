"""How layers are laid over stages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.facts.pipeline import parse_layout
from mblint.facts.view import View, all_facts
from mblint.ruleset.examples import launch_of

FIRST, LAST = "num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage"


def read(name: str, layers: int = 32, pp: int = 1, **values: Any) -> object:
    keys = {"num_layers": layers, "pipeline_model_parallel_size": pp, **values}
    return View(launch_of({"set": {f"model.{key}": value for key, value in keys.items()}})).read(name)


def test_even() -> None:
    assert read("pipeline.way", 80, 4) == "even"
    assert read("pipeline.even", 80, 4) is True
    assert read("pipeline.layers_per_stage", 80, 4) == 20
    assert read("pipeline.layers_per_stage", 60, 8) is ABSENT
    assert read("pipeline.splits", 60, 8) is False
    assert read("pipeline.stage_layers", 80, 4) == [20, 20, 20, 20]
    assert read("pipeline.counts", 80, 4) == [20]


def test_counts_of_first_and_last_stage() -> None:
    given = {FIRST: 4, LAST: 8}
    assert read("pipeline.way", 60, 8, **given) == "counts"
    assert read("pipeline.middle_layers", 60, 8, **given) == 48
    assert read("pipeline.layers_per_stage", 60, 8, **given) == 8
    assert read("pipeline.stage_layers", 60, 8, **given) == [4, 8, 8, 8, 8, 8, 8, 8]
    assert read("pipeline.counts", 60, 8, **given) == [4, 8]
    assert read("pipeline.splits", 61, 8, **given) is False
    assert read("pipeline.stage_layers", 48, 2, **{FIRST: 20, LAST: 28}) == [20, 28]
    assert read("pipeline.splits", 48, 2, **{FIRST: 11, LAST: 13}) is False
    assert read("pipeline.splits", 40, 1, **{FIRST: 17, LAST: 23}) is False
    assert read("pipeline.splits", 10, 4, **{FIRST: 6, LAST: 6}) is False


def test_embedding_and_loss_as_layers() -> None:
    both = {"account_for_embedding_in_pipeline_split": True, "account_for_loss_in_pipeline_split": True}
    assert read("pipeline.way", 30, 4, **both) == "accounted"
    assert read("pipeline.counted_layers", 30, 4, **both) == 32
    assert read("pipeline.stage_layers", 30, 4, **both) == [7, 8, 8, 7]
    assert read("pipeline.splits", 32, 4, **both) is False


def test_layout() -> None:
    given = {"pipeline_model_parallel_layout": "Et*3|(tt|)*29,mL"}
    assert read("pipeline.way", 61, 8, **given) == "layout"
    assert read("pipeline.layout_stages", 61, 8, **given) == 31
    assert read("pipeline.layout_layers", 61, 8, **given) == 61
    assert read("pipeline.layout_mtp", 61, 8, **given) == 1
    assert read("pipeline.layout_empty_stages", 61, 8, **given) == [30]
    assert read("pipeline.layers_per_stage", 61, 8, **given) is ABSENT
    lists = {"pipeline_model_parallel_layout": [["embedding", "decoder"], ["LayerType.decoder", "loss"]]}
    assert read("pipeline.layout", 2, 2, **lists) == ["Et", "tL"]
    assert read("pipeline.stage_layers", 2, 2, **lists) == [1, 1]


def test_virtual_size() -> None:
    assert read("pipeline.vp", 80, 4) is None
    assert read("pipeline.vp", 80, 4, virtual_pipeline_model_parallel_size=5) == 5
    four = {"pipeline_model_parallel_layout": "Et|t|t|tL"}
    assert read("pipeline.vp", 4, 2, **four) == 2
    assert read("pipeline.vp", 4, 4, **four) is None
    assert read("pipeline.vp", 4, 3, **four) is ABSENT


def test_a_layout_that_the_launch_path_made_an_object_of() -> None:
    key = "model.pipeline_model_parallel_layout"
    example = {
        "set": {key: "<megatron.core.transformer.pipeline_parallel_layer_layout.PipelineParallelLayerLayout>"},
        "written": {key: "Et|tL"},
    }
    assert View(launch_of(example)).read("pipeline.layout") == ["Et", "tL"]


def test_hybrid_models_and_unknown_layers() -> None:
    hybrid = View(launch_of({"base": "hybrid", "set": {"model.pipeline_model_parallel_size": 2}}))
    assert hybrid.read("pipeline.layers_per_stage") is ABSENT
    unknown = View(launch_of({"set": {}, "unknown": ["model.num_layers"]}))
    assert isinstance(unknown.read("pipeline.layers_per_stage"), Unknown)
    assert read("pipeline.layers_per_stage", 0, 1) is ABSENT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("E|t|L", ["E", "t", "L"]),
        ("Et*3|(tt|)*2mL", ["Ettt", "tt", "tt", "mL"]),
        ("(t|t)*2", ["t", "tt", "t"]),
        ("E,t,t|t,L", ["Ett", "tL"]),
        ("Ex|L", None),
        ("E(t|)*999999L", None),
        ("t" * 20_000, None),
        ("((t)*2)*2", None),
    ],
)
def test_layout_text(text: str, expected: list[str] | None) -> None:
    assert parse_layout(text) == expected


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="Etml|L()*0123456789,", max_size=40))
def test_any_layout_text_is_parsed_or_refused(text: str) -> None:
    rows = parse_layout(text)
    assert rows is None or set("".join(rows)) <= set("EtmL")


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 130), st.integers(1, 16), st.sampled_from([None, 1, 3, 8]), st.sampled_from([None, 2, 5]))
def test_stages_hold_all_layers_or_there_is_no_split(layers: int, pp: int, first: int | None, last: int | None) -> None:
    given = {FIRST: first, LAST: last}
    stages = read("pipeline.stage_layers", layers, pp, **given)
    if read("pipeline.splits", layers, pp, **given):
        assert isinstance(stages, list)
        assert sum(stages) == layers and len(stages) == pp
    else:
        assert stages is ABSENT


@pytest.mark.parametrize("size", ["tensor", "pipeline", "context", "expert"])
def test_a_size_of_zero_leaves_facts_out(size: str) -> None:
    """No fact fails inside; `pipeline.vp` of a layout divided by the number of stages."""
    given = {f"model.{size}_model_parallel_size" if size != "context" else "model.context_parallel_size": 0}
    layout = {"model.num_layers": 8, "model.pipeline_model_parallel_layout": "Ett|tt|tt|ttL", "model.num_moe_experts": 8}
    view = View(launch_of({"set": {**layout, **given, "train.micro_batch_size": 0}, "world_size": 8, "gpu": "h100"}))
    for name in all_facts():
        view.read(name)
    if size == "pipeline":
        assert view.read("pipeline.vp") is ABSENT
