"""The guide's failure table, row by row; logs within bounds; upstream's checks found by their message."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from mblint.cli.main import main
from mblint.diagnose import log as log_module
from mblint.diagnose.causes import LaunchFacts, causes
from mblint.diagnose.events import events_of
from mblint.diagnose.log import log_of
from mblint.diagnose.upstream_check import _names

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried} MiB. GPU {gpu} has a total capacity of 79.10 GiB "
    "of which 512.00 MiB is free. Of the allocated memory {allocated} GiB is allocated by PyTorch, and {reserved} GiB is reserved by "
    "PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
)


def oom(rank: int, tried: str = "896.00", allocated: str = "77.00", reserved: str = "0.40") -> list[str]:
    return [
        f"[rank{rank}]: Traceback (most recent call last):",
        f'[rank{rank}]:   File "/site/megatron/core/pipeline_parallel/schedules.py", line 5, in forward_step',
        f"[rank{rank}]: " + OOM.format(tried=tried, gpu=rank % 8, allocated=allocated, reserved=reserved),
    ]


def ids(lines: list[str], launch: LaunchFacts | None = None) -> list[str]:
    return [cause.id for cause in causes(events_of(lines), launch)]


def test_one_rank_of_many_is_fragmentation() -> None:
    lines = ["world_size: 32", *oom(3)]
    (cause,) = causes(events_of(lines))
    assert (cause.id, cause.certainty) == ("fragmentation", "likely")
    assert "out of memory on 1 rank of 32: 3" in cause.seen
    assert any("expandable_segments:True" in fix for fix in cause.fix)


def test_the_hint_in_the_message_does_not_count_as_set() -> None:
    assert events_of(oom(3)).segments is None
    assert events_of(["export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"]).segments is True


def test_more_reserved_than_asked_for_is_fragmentation_on_any_number_of_ranks() -> None:
    lines = ["world_size: 2", *oom(0, reserved="9.00"), *oom(1, reserved="8.00")]
    assert ids(lines) == ["fragmentation"]


def test_with_expandable_segments_it_is_capacity() -> None:
    lines = ["PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "world_size: 4", *oom(2)]
    assert ids(lines) == ["capacity"]


def test_on_all_ranks_without_them_capacity_is_likely_and_they_come_first_to_try() -> None:
    lines = ["world_size: 2", *oom(0), *oom(1)]
    assert [(cause.id, cause.certainty) for cause in causes(events_of(lines))] == [
        ("capacity", "likely"),
        ("fragmentation", "possible"),
    ]


def test_set_in_the_launch_but_memory_in_pieces() -> None:
    assert ids(oom(0, reserved="9.00"), LaunchFacts(segments=True)) == ["segments-not-in-effect"]


def test_estimate_above_capacity() -> None:
    known = LaunchFacts(verdict="does not fit", needed_gib=120.0, capacity_gib=79.1, largest="gradients")
    found = causes(events_of(oom(0)), known)
    assert (found[0].id, found[0].certainty) == ("estimate-above-capacity", "certain")
    assert "gradients" in found[0].cause


def test_expected_above_capacity_is_likely() -> None:
    known = LaunchFacts(verdict="close", needed_gib=81.0, capacity_gib=79.1, largest="gradients")
    assert ("estimate-above-capacity", "likely") in [(cause.id, cause.certainty) for cause in causes(events_of(oom(0)), known)]
    known = LaunchFacts(verdict="close", needed_gib=78.0, capacity_gib=79.1, largest="gradients")
    assert "estimate-above-capacity" not in ids(oom(0), known)


def test_a_gap_of_less_than_a_percent_is_no_fragmentation() -> None:
    lines = ["world_size: 2", *oom(0, tried="128.00", reserved="0.40"), *oom(1, tried="128.00", reserved="0.40")]
    assert ids(lines)[0] == "capacity"


def test_the_message_of_older_releases() -> None:
    line = (
        "RuntimeError: CUDA out of memory. Tried to allocate 786.00 MiB (GPU 3; 31.74 GiB total capacity; 28.82 GiB already allocated; "
        "577.12 MiB free; 29.97 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb"
    )
    (report,) = events_of([line]).out_of_memory
    assert (report.gpu, report.capacity) == (3, round(31.74 * 2**30))
    assert report.free == round(577.12 * 2**20)
    assert report.reserved == pytest.approx(1.15 * 2**30, rel=1e-6)
    assert report.would_have_fitted


def test_the_log_knows_better_how_many_ranks_ran() -> None:
    lines = ["world_size: 8", *oom(0), *oom(5)]
    assert "out of memory on 2 ranks of 8: 0, 5" in causes(events_of(lines), LaunchFacts(world_size=2))[0].seen
    assert "out of memory on 2 ranks of 6: 0, 5" in causes(events_of([*oom(0), *oom(5)]), LaunchFacts(world_size=2))[0].seen


def test_a_launch_that_fits_only_by_the_expected_size_may_need_more() -> None:
    known = LaunchFacts(verdict="fits", needed_gib=76.0, high_gib=80.0, capacity_gib=79.1, segments=True)
    assert ids(oom(0, tried="2000.00"), known) == ["capacity"]
    known.high_gib = 60.0
    assert ids(oom(0, tried="2000.00"), known) == ["more-than-estimated", "capacity"]


def test_environment_variables_that_a_check_reads_are_named() -> None:
    tests = [ast.parse("'on' not in os.getenv('SOME_CONF', '') or config.some_size == os.environ['OTHER_FLAG']", mode="eval").body]
    assert set(_names(tests)) == {"some_size", "SOME_CONF", "OTHER_FLAG"}


def test_lora_with_sequence_parallel() -> None:
    known = LaunchFacts(lora=True, sequence_parallel=True, tp=2, regather=False)
    assert "lora-inputs-kept" in ids(oom(0), known)
    assert "lora-inputs-kept" not in ids(oom(0), LaunchFacts(lora=True, sequence_parallel=True, tp=1))
    assert "lora-inputs-kept" not in ids(oom(0), LaunchFacts(lora=True, sequence_parallel=True, tp=2, regather=True))


def test_pipeline_with_cpu_offloading() -> None:
    assert ids(["3: ValueError: Currently there is no support for Pipeline parallelism with CPU offloading"]) == [
        "cpu-offload-with-pipeline"
    ]


def test_user_buffers_with_expandable_segments() -> None:
    said = "RuntimeError: NCCL user buffer registration does not work with expandable segments"
    assert ids([said]) == ["user-buffers-with-expandable-segments"]
    inside = [
        "expandable_segments:True",
        '  File "/site/megatron/core/nccl_allocator.py", line 5, in init',
        "RuntimeError: allocation failed",
    ]
    assert ids(inside) == ["user-buffers-with-expandable-segments"]
    assert ids(["RuntimeError: something else"]) == []


def test_an_unharmed_log_has_no_cause() -> None:
    assert ids(["iteration 5/10 | lm loss: 2.3", "UserWarning: expandable", "saved checkpoint"]) == []


@pytest.mark.parametrize("where", ["head", "middle", "tail"])
def test_a_failure_anywhere_in_a_long_log_is_found(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    for name, size in (("HEAD", 20_000), ("TAIL", 40_000), ("_CHUNK", 10_000)):
        monkeypatch.setattr(log_module, name, size)
    filler = ["iteration 1 | lm loss 2.0 | " + "x" * 60] * 10_000
    at = {"head": 10, "middle": 5_000, "tail": 9_990}[where]
    data = "\n".join([*filler[:at], *oom(3, reserved="9.0"), *filler[at:]]).encode()
    found = log_of(data)
    assert found.size == len(data)
    assert sum(map(len, found.lines)) < 200_000
    assert ids(list(found.lines)) == ["fragmentation"]


def test_bytes_that_are_no_text() -> None:
    assert ids(list(log_of(bytes(range(256)) * 50 + b"\n" + "\n".join(oom(1)).encode("utf-16")).lines)) == []
    assert ids(list(log_of(b"\x1b[31m" + "\n".join(oom(1, reserved="9")).encode() + b"\x1b[0m").lines)) == ["fragmentation"]


def test_an_exception_of_upstream_names_the_check_and_the_rule(upstream: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/site/megatron/core/transformer/transformer_config.py", line 1, in __post_init__\n'
        "    raise ValueError(\n"
        "ValueError: num_attention_heads (30) must be a multiple of tensor_model_parallel_size (4).\n"
    )
    (tmp_path / "run.log").write_text(text)
    code = main(["diagnose", str(tmp_path / "run.log"), "--isolated", "--upstream", str(upstream), "--format", "json"])
    (cause,) = json.loads(capsys.readouterr().out)["causes"]
    assert (code, cause["id"], cause["certainty"]) == (0, "heads-not-dividing-tensor-parallel", "certain")
    assert any("num_attention_heads % self.tensor_model_parallel_size" in line for line in cause["confirm"])


def test_mistakes_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.log").write_bytes(b"\n\n")
    assert main(["diagnose", str(tmp_path / "empty.log")]) == 4
    assert main(["diagnose", str(tmp_path / "none.log")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
