"""What counts as a change that nobody was told of."""

from __future__ import annotations

import pytest

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.judging.path import really_changed

LAYOUT = "<megatron.core.transformer.pipeline_parallel_layer_layout.PipelineParallelLayerLayout>"


@pytest.mark.parametrize(
    ("wrote", "now"), [(False, True), (1024, 4096), ("9999,8,2", "1,1,1"), (1, 1.5), (True, "all"), ("selective", "full"), ([1], [2])]
)
def test_another_value_is_a_change(wrote: object, now: object) -> None:
    assert really_changed(wrote, now)


@pytest.mark.parametrize(
    ("wrote", "now"),
    [
        ("Et*11|t*10mL", LAYOUT),  # parsed
        ("MEM*", "MEM*/*E/*E"),  # completed
        ("bf16", "bf16_mixed"),
        ("bf16", ["x"]),
        (1, 1.0),
        (None, 4),
        (4, None),
        (["a"], []),
        (4, Unknown("not known")),
        (4, ABSENT),
    ],
)
def test_the_same_in_another_form_is_none(wrote: object, now: object) -> None:
    assert not really_changed(wrote, now)
