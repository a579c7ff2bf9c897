"""Ways out: which remedies apply, their order, and that each answer was judged as it is printed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from mblint.cli.main import main
from mblint.facts.memory.capacity import GIB
from mblint.launch.run import Launch as LaunchOf
from mblint.wayout.candidates import Candidate, candidates
from mblint.wayout.changed import assignment_lines, changed_launch, override_lines
from mblint.wayout.cost import MLP
from mblint.wayout.goal import Goal, parse_goal
from mblint.wayout.remedies import FAMILIES, Remedy, remedies
from mblint.wayout.search import _barred, _refused_part
from tests.facts.memory.conftest import PLAIN, Launch


def found(changes: Mapping[str, object], world: int = 32, env: dict[str, str] | None = None) -> dict[str, list[Remedy]]:
    out: dict[str, list[Remedy]] = {}
    for remedy in remedies(Launch({**PLAIN, **changes}, world, env=env or {})):
        out.setdefault(remedy.family, []).append(remedy)
    return out


def test_remedies_come_in_the_guides_order() -> None:
    everything = remedies(Launch({**PLAIN, "model.tensor_model_parallel_size": 2}, 32))
    ranks = [remedy.rank for remedy in everything]
    assert ranks == sorted(ranks)
    assert FAMILIES[0] == "expandable segments" and FAMILIES[-1] == "TP"


def test_segments_are_added_to_what_the_allocator_was_told() -> None:
    (remedy,) = found({}, env={"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128,expandable_segments:False"})["expandable segments"]
    assert remedy.changes == {"env.PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128,expandable_segments:True"}
    assert "expandable segments" not in found({}, env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})
    assert "expandable segments" not in found({"ddp.nccl_ub": True})
    (graphs,) = found({"model.cuda_graph_impl": "local"})["expandable segments"]
    assert graphs.changes["env.NCCL_GRAPH_REGISTER"] == "0"


def test_cpu_offload_only_with_one_stage_and_regather_only_under_sequence_parallel() -> None:
    offload = {"model.cpu_offloading": False}
    assert any("model.cpu_offloading" in remedy.changes for remedy in found(offload)["CPU offload"])
    assert "CPU offload" not in found({**offload, "model.pipeline_model_parallel_size": 2})
    lora = {"peft.sequence_parallel_input_regather": False, "model.tensor_model_parallel_size": 2}
    assert "LoRA re-gather" not in found(lora)
    assert found({**lora, "model.sequence_parallel": True})["LoRA re-gather"][0].cost.measured


def test_more_stages_with_data_parallel_kept_need_more_gpus() -> None:
    kept, lost = found({})["PP, DP kept"][0], found({})["PP"][0]
    assert kept.changes["world_size"] == 64 and "world_size" not in lost.changes
    assert "-5.9" in lost.cost.measured and not kept.cost.measured


def test_sequence_parallel_and_fusions_come_before_what_costs() -> None:
    off = {"model.tensor_model_parallel_size": 4, "model.sequence_parallel": False}
    assert found(off)["sequence parallel"][0].changes == {"model.sequence_parallel": True}
    assert "sequence parallel" not in found({**off, "model.tensor_model_parallel_size": 1})
    assert "sequence parallel" not in found({**off, "model.sequence_parallel": True})
    plain = {"model.cross_entropy_loss_fusion": False, "model.cross_entropy_fusion_impl": "native", "model.bias_activation_fusion": False}
    assert [sorted(remedy.changes) for remedy in found(plain)["fusion"]] == [
        ["model.cross_entropy_fusion_impl", "model.cross_entropy_loss_fusion"],
        ["model.bias_activation_fusion"],
        ["model.bias_activation_fusion", "model.cross_entropy_fusion_impl", "model.cross_entropy_loss_fusion"],
    ]
    fused = {"model.cross_entropy_loss_fusion": True, "model.cross_entropy_fusion_impl": "te"}
    assert "fusion" not in found(fused)


def test_more_data_parallel_ranks_only_where_they_share_something() -> None:
    assert [remedy.changes for remedy in found({})["more DP"]] == [{"world_size": 64}, {"world_size": 128}]
    alone = {"optimizer.use_distributed_optimizer": False, "ddp.use_distributed_optimizer": False}
    assert "more DP" not in found(alone)


def test_uneven_stages_hold_all_layers() -> None:
    first, last = "model.num_layers_in_first_pipeline_stage", "model.num_layers_in_last_pipeline_stage"
    for stages in (2, 4):
        for remedy in found({"model.pipeline_model_parallel_size": stages})["layers per stage"]:
            rest = 16 - remedy.changes[first] - remedy.changes[last]
            assert rest == 0 if stages == 2 else rest > 0 and rest % (stages - 2) == 0
    assert "layers per stage" not in found({})
    assert "layers per stage" not in found({"model.pipeline_model_parallel_size": 4, "model.virtual_pipeline_model_parallel_size": 2})
    assert "layers per stage" not in found({"model.pipeline_model_parallel_size": 4, first: 3})


def test_combinations_are_bounded_distinct_and_never_contradict_themselves() -> None:
    everything = remedies(Launch({**PLAIN, "train.micro_batch_size": 8, "model.cpu_offloading": False}, 64))
    many = candidates(everything, limit=300)
    assert len(many) == 300 == len({tuple(map(id, candidate.steps)) for candidate in many})
    for candidate in many:
        families = [step.family for step in candidate.steps]
        assert len(set(families)) == len(families)
        assert families[0] == "expandable segments"  # it costs nothing
        assert not {"PP", "PP, DP kept"} <= set(families)
    orders = [candidate.order for candidate in many]
    assert orders == sorted(orders)


def test_muon_gets_no_remedies_of_adam() -> None:
    muon = found({"optimizer.optimizer": "dist_muon", "optimizer.use_distributed_optimizer": False, "ddp.use_distributed_optimizer": False})
    assert not {"optimizer", "FSDP"} & set(muon)
    assert "optimizer" in found({"optimizer.use_distributed_optimizer": False, "ddp.use_distributed_optimizer": False})


def test_goals() -> None:
    assert parse_goal("fit") == Goal()
    assert parse_goal("headroom=10GiB") == Goal(10 * GIB)
    assert parse_goal("headroom=1.5gb") == Goal(1_500_000_000)
    for text in ("", "headroom", "headroom=10", "headroom=-1GiB", "fits"):
        with pytest.raises(ValueError, match="neither"):
            parse_goal(text)


def test_overrides_are_in_the_command_lines_grammar() -> None:
    changes = {"model.a": None, "model.b": ["mlp", "moe_act"], "model.c": True, "env.X": "1", "world_size": 8, "train.d": 2}
    assert override_lines(changes) == ["model.a=null", "model.b=[mlp,moe_act]", "model.c=true", "train.d=2"]


def test_keys_of_adapters_are_assigned_in_the_recipe() -> None:
    changes = {"peft.sequence_parallel_input_regather": True, "model.a": 1}
    assert override_lines(changes) == ["model.a=1"]
    assert assignment_lines(changes) == ["cfg.peft.sequence_parallel_input_regather = True"]
    launch = changed_launch(LaunchOf("some:recipe", env={}), changes)
    assert launch.overrides == ("model.a=1",) and launch.set == {"peft.sequence_parallel_input_regather": True}


def test_what_was_refused_is_not_tried_again_in_company() -> None:
    offload = Remedy("CPU offload", "", {"model.cpu_offloading": True, "model.cpu_offloading_num_layers": 4}, MLP)
    stages = Remedy("PP", "", {"model.pipeline_model_parallel_size": 2}, MLP)
    more = Remedy("PP", "", {"model.pipeline_model_parallel_size": 4}, MLP, 1)
    both = _refused_part(Candidate((offload, stages)), frozenset({"model.cpu_offloading", "model.pipeline_model_parallel_size"}))
    assert _barred(Candidate((offload, more)), [both])
    assert not _barred(Candidate((more,)), [both]) and not _barred(Candidate((offload,)), [both])
    alone = _refused_part(Candidate((offload, stages)), frozenset({"model.pipeline_model_parallel_size"}))
    assert _barred(Candidate((stages,)), [alone]) and not _barred(Candidate((more,)), [alone])


BIG = {
    "model.num_layers": 32, "model.hidden_size": 4096, "model.ffn_hidden_size": 14336, "model.num_attention_heads": 32,
    "model.num_query_groups": 8, "model.kv_channels": 128, "model.vocab_size": 128256, "model.seq_length": 8192, "dataset.seq_length": 8192,
    "model.gated_linear_unit": True, "model.add_bias_linear": False, "train.micro_batch_size": 1, "train.global_batch_size": 16,
    "dataset.eod_mask_loss": False, "dataset.reset_position_ids": False, "dataset.reset_attention_mask": False,
}  # fmt: skip


@pytest.fixture
def suggest(upstream: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def run(set_: Mapping[str, object], *words: str, gpu: str = "h100", world: int = 8) -> tuple[int, dict]:
        line = {"recipe": None, "id": "big", "set": dict(set_), "world_size": world, "gpu": gpu, "env": {}}
        (tmp_path / "launches.jsonl").write_text(json.dumps(line))
        code = main(
            [
                "suggest",
                "--launches",
                str(tmp_path / "launches.jsonl"),
                "--isolated",
                "--upstream",
                str(upstream),
                "--format",
                "json",
                *words,
            ]
        )
        return code, json.loads(capsys.readouterr().out)["launches"][0]

    return run


def test_answers_fit_and_come_cheapest_first(suggest) -> None:
    code, entry = suggest(BIG)
    assert code == 0 and not entry["goal_reached"]
    assert entry["now"]["verdict"] == "does not fit"
    assert entry["answers"], entry
    capacity = entry["now"]["capacity_bytes"]
    ranks = [max(FAMILIES.index(family) for family in answer["families"]) for answer in entry["answers"]]
    assert ranks == sorted(ranks)
    for answer in entry["answers"]:
        assert answer["after"]["high_bytes"] <= capacity
        assert answer["saved_bytes"] == entry["now"]["total_bytes"] - answer["after"]["total_bytes"] > 0
        assert all(cost["measured"] for cost in answer["costs"])
        assert answer["environment"]["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"


def test_what_is_printed_is_what_was_judged(suggest) -> None:
    _, entry = suggest(BIG, "--limit", "1")
    answer = entry["answers"][0]
    _, again = suggest({**BIG, **answer["changes"]}, "--goal", "headroom=9999GiB", world=answer["world_size"] or 8)
    # Without the environment the allowance differs; what the allocator holds does not.
    assert again["now"]["allocated_bytes"] == answer["after"]["allocated_bytes"]


RECIPE = """\
from megatron.bridge.recipes.gemma.h100.gemma3 import gemma3_1b_pretrain_1gpu_h100_bf16_config


def my_1b_config():
    cfg = gemma3_1b_pretrain_1gpu_h100_bf16_config()
    cfg.model.cross_entropy_fusion_impl = "native"  # as before
    return cfg
"""


def test_an_answer_is_written_into_the_recipe(
    upstream: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    words = ["mine.py", "--world-size", "1", "--gpu", "h100", "--isolated", "--upstream", str(upstream)]
    assert main(["suggest", *words, "--fix", "1", "--diff"]) == 1
    out, err = capsys.readouterr()
    assert "not written" not in err, err
    assert out.startswith("--- a/") and file.read_text() == RECIPE
    assert main(["suggest", *words, "--fix", "1"]) == 0
    assert 'cross_entropy_fusion_impl = "te"  # as before' in file.read_text()
    capsys.readouterr()
    assert main(["suggest", *words, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["launches"][0]["goal_reached"]


def test_what_is_no_file_of_the_project_is_not_written(
    upstream: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = "megatron.bridge.recipes.gemma.h100.gemma3:gemma3_1b_pretrain_1gpu_h100_bf16_config"
    assert main(["suggest", recipe, "--isolated", "--upstream", str(upstream), "--fix", "1", "--diff"]) == 1
    assert "not a file of this project" in capsys.readouterr().err
    assert main(["suggest", recipe, "--isolated", "--upstream", str(upstream), "--fix", "99"]) == 2
    assert main(["suggest", recipe, "--diff"]) == 2


def test_a_launch_that_fits_needs_nothing(suggest) -> None:
    code, entry = suggest({**BIG, "model.num_layers": 2}, gpu="b300")
    assert (code, entry["goal_reached"], entry["answers"]) == (0, True, [])


def test_an_unknown_gpu_is_said_not_guessed(suggest) -> None:
    code, entry = suggest(BIG, gpu="tpu9")
    assert code == 1 and "not known" in entry["because"]


def test_wrong_goals_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suggest", "x", "--goal", "more"]) == 2
    assert "headroom=10GiB" in capsys.readouterr().err
    assert main(["suggest"]) == 2
