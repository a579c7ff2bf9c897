"""Whether a launch fits, and when nobody can say."""

from __future__ import annotations

import pytest

from mblint.evaluate.unknown import Unknown
from mblint.facts.memory.allowance import CONTEXT, FRAGMENTATION, GRAPHS, NCCL
from mblint.facts.memory.capacity import CAPACITIES, GIB, judge
from mblint.facts.memory.estimate import estimate


def test_verdicts_follow_the_size(plain) -> None:
    verdicts = []
    for layers in range(8, 80, 4):
        judgement = judge(estimate(plain(num_layers=layers)), "h100")
        verdicts.append(judgement.verdict)
        assert judgement.low_bytes < judgement.high_bytes
        assert judgement.capacity == CAPACITIES["h100"]
    assert verdicts[0] == "fits" and verdicts[-1] == "does not fit"
    order = ["fits", "close", "does not fit"]
    assert verdicts == sorted(verdicts, key=order.index)
    assert set(verdicts) == set(order)


def test_a_seven_billion_model_on_one_gpu_does_not_fit_by_its_state_alone(plain) -> None:
    """18 bytes times 6.7e9 parameters are 112 GiB."""
    found = estimate(
        plain(
            num_layers=32,
            hidden_size=4096,
            ffn_hidden_size=11008,
            num_query_groups=32,
            kv_channels=128,
            seq_length=512,
        )
    )
    assert found.static_bytes / GIB == pytest.approx(18 * 6.74e9 / GIB, rel=0.01)
    judgement = judge(found, "h100")
    assert judgement.verdict == "does not fit"
    assert judgement.largest == "optimizer states"
    assert judgement.head_room_bytes < -30 * GIB
    assert judge(found, "B200").verdict == "fits"


def test_head_room_is_capacity_less_what_is_held(plain) -> None:
    found = estimate(plain())
    judgement = judge(found, "h200")
    capacity = round(CAPACITIES["h200"].low_gib * GIB)
    assert judgement.head_room_bytes == capacity - found.total_bytes


def test_unknown_gpu_and_unknown_inputs(plain) -> None:
    assert judge(estimate(plain()), "tpu").verdict == "unknown"
    assert "'tpu'" in judge(estimate(plain()), "tpu").because
    assert judge(estimate(plain()), "").because == "the GPU type is not known"
    found = judge(estimate(plain(hidden_size=Unknown("x"))), "h100")
    assert found.verdict == "unknown"
    assert found.because == "not known: model.hidden_size"


def test_a_lower_bound_never_fits_but_may_not_fit(plain) -> None:
    small, large = (
        estimate(plain(cpu_offloading_weights=True)),
        estimate(plain(cpu_offloading_weights=True, num_layers=200)),
    )
    assert judge(small, "h100").verdict == "unknown"
    assert "model.cpu_offloading_weights" in judge(small, "h100").because
    assert judge(large, "h100").verdict == "does not fit"


def test_capacities_are_ordered_and_have_a_source() -> None:
    assert all(0 < c.low_gib <= c.high_gib < 400 and c.source for c in CAPACITIES.values())
    for smaller, larger in (("a100", "h200"), ("h200", "b200"), ("b200", "b300"), ("gb200", "gb300")):
        assert CAPACITIES[smaller].high_gib < CAPACITIES[larger].low_gib


def test_allowance(plain, launch) -> None:
    alone, many = estimate(plain()).allowance, estimate(plain(8, tensor_model_parallel_size=2)).allowance
    assert alone.components[CONTEXT] == many.components[CONTEXT] == GIB
    assert alone.components[NCCL] < many.components[NCCL]
    flat = plain().flat
    expandable = estimate(launch(flat, env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})).allowance
    assert expandable.components[FRAGMENTATION] < alone.components[FRAGMENTATION]
    graphs = estimate(plain(cuda_graph_impl="local")).allowance
    assert GRAPHS in graphs.components and GRAPHS not in alone.components


SFT = {"dataset.__class__": "megatron.bridge.data.builders.gpt_sft.GPTSFTDatasetConfig"}
HF = {"dataset.__class__": "megatron.bridge.data.builders.direct_hf_sft.DirectHFSFTDatasetConfig"}


@pytest.mark.parametrize(
    ("dataset", "may_be_shorter"),
    [
        ({}, False),
        ({"dataset.__class__": "megatron.bridge.training.config.GPTDatasetConfig"}, False),
        ({**SFT, "dataset.enable_offline_packing": True}, False),
        ({**SFT, "dataset.enable_offline_packing": False}, True),
        ({**SFT, "dataset.dataset_kwargs": {"pad_to_max_length": True}}, False),
        ({**SFT, "dataset.dataset_kwargs": {"pad_to_max_length": False}}, True),
        ({**HF, "dataset.pad_to_max_length": True}, False),
        ({**HF, "dataset.pad_to_max_length": False}, True),
        ({**HF, "dataset.pad_to_max_length": Unknown("x")}, True),
        ({**HF, "dataset.pad_to_max_length": True, "dataset.enable_in_batch_packing": True}, True),
        ({"dataset.__class__": Unknown("it is built from a file")}, True),
        ({"dataset.__class__": "my_project.data.Mine"}, True),
    ],
)
def test_batches_that_the_data_may_leave_short(plain, dataset, may_be_shorter) -> None:
    assert bool(estimate(plain(set=dataset)).shorter) is may_be_shorter


def test_where_the_data_decide_only_the_state_can_be_too_large(plain) -> None:
    long = {"seq_length": 262144}
    assert judge(estimate(plain(**long)), "h100").verdict == "does not fit"
    unpadded = {**HF, "dataset.pad_to_max_length": False}
    found = judge(estimate(plain(set=unpadded, **long)), "h100")
    assert found.verdict == "unknown"
    assert "full batches" in found.because and "pad_to_max_length" in found.because
    assert judge(estimate(plain(set=unpadded)), "h100").verdict == "fits"
    assert judge(estimate(plain(set=unpadded, num_layers=100)), "h100").verdict == "does not fit"


def test_state_alone_bounds_the_lower_end(plain) -> None:
    for layers in (40, 60, 80):
        found = estimate(plain(num_layers=layers, seq_length=128))
        low = judge(found, "h100").low_bytes
        assert low >= 0.97 * found.static_bytes
        assert low <= found.total_bytes
