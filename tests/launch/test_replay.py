"""Parts of the launch path that are done again for the same values: what was read decides, and nothing of the first launch stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mblint.checker import Checker
from mblint.evaluate.calls import call
from mblint.evaluate.operators import machine_frame
from mblint.evaluate.values import Instance
from mblint.launch.replay import Replay
from mblint.launch.run import Launch
from mblint.launch.session import Session
from mblint.ruleset.load import load_rules
from mblint.upstream.locate import Upstream, locate

SETUP = """
import os
from dataclasses import dataclass, field

GROUP = None
SEEN = []
HELD = None


@dataclass
class Model:
    tensor: int = 1
    layers: int = 8
    names: list = field(default_factory=list)


@dataclass
class Config:
    model: Model = field(default_factory=Model)
    other: Model = field(default_factory=Model)
    seed: int = 1


def config(tensor=1, layers=8, names=(), seed=1, shared=False):
    cfg = Config(seed=seed)
    cfg.model.tensor = tensor
    cfg.model.layers = layers
    cfg.model.names = list(names)
    if shared:
        cfg.other = cfg.model
    return cfg


def plain(cfg):
    global GROUP
    GROUP = [rank for rank in range(cfg.model.tensor)]
    os.environ["GROUP"] = str(len(GROUP))


def refuses(cfg):
    if cfg.model.tensor > 4:
        raise ValueError("too many")


def writes(cfg):
    cfg.model.layers = cfg.model.tensor


def appends(cfg):
    cfg.model.names.append("x")


def remembers(cfg):
    global HELD
    HELD = cfg.model


def grows(cfg):
    SEEN.append(cfg.model.tensor)


def asks(cfg):
    global GROUP
    GROUP = "names" if cfg.model.names else "none"


def counts(cfg):
    global GROUP
    GROUP = [name for name in vars(cfg.model)] + [cfg.seed]


def compares(cfg):
    global GROUP
    GROUP = cfg.model is cfg.other


def reads_environment(cfg):
    global GROUP
    GROUP = os.environ.get("HOSTS", "none")
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[Any, bool]]:
    """Evaluates a part on a config, and gives (the module's GROUP afterwards, whether it was done again)."""
    package = tmp_path / "megatron" / "bridge"
    package.mkdir(parents=True)
    (package / "setup.py").write_text(SETUP)
    session = Session(Upstream("folder", "0.6.2", None, bridge_root=tmp_path), [])
    machine = session.machine
    module = session.modules.find("megatron.bridge.setup")
    session.world.env_known = True

    def one(part: str, environment: dict[str, str] | None = None, **given: Any) -> tuple[Any, bool]:
        frame, evaluated = machine_frame(machine), []
        session.world.env = dict(environment or {})
        cfg = call(machine, module.lookup("config"), [], given, None, frame)
        assert isinstance(cfg, Instance)
        before, mark = dict(cfg.attrs["model"].attrs), machine.mark()
        machine.failures.clear()
        machine.phase, machine.go_on = 2, True

        def evaluate() -> None:
            evaluated.append(part)
            call(machine, module.lookup(part), [cfg], {}, None, frame)

        assert session.replay.run(part, [cfg], evaluate) is None
        group, machine.phase, machine.go_on = module.lookup("GROUP"), 0, False
        if part == "plain":
            assert session.world.env["GROUP"] == str(int(given.get("tensor", 1)))
        if part == "refuses":
            group = [failure.message for failure in machine.failures]
        machine.undo(mark)
        assert module.lookup("GROUP") is None and module.lookup("HELD") is None, "a launch leaves nothing behind"
        assert cfg.attrs["model"].attrs == before or part in ("writes", "appends")
        assert type(cfg.attrs["model"].attrs) is dict
        return group, not evaluated

    return one


def test_the_same_values_are_not_evaluated_again(run: Callable[..., tuple[Any, bool]]) -> None:
    assert run("plain", tensor=3) == ([0, 1, 2], False)
    assert run("plain", tensor=3) == ([0, 1, 2], True)
    assert run("plain", tensor=2) == ([0, 1], False)
    assert run("plain", tensor=3) == ([0, 1, 2], True)


def test_what_is_not_read_makes_no_difference(run: Callable[..., tuple[Any, bool]]) -> None:
    assert run("plain", tensor=3, layers=8, seed=1)[1] is False
    assert run("plain", tensor=3, layers=80, seed=7, names=["a"]) == ([0, 1, 2], True)


def test_another_type_is_another_value(run: Callable[..., tuple[Any, bool]]) -> None:
    assert run("plain", tensor=1) == ([0], False)
    assert run("plain", tensor=True)[1] is False


def test_a_list_is_compared_with_all_that_it_holds(run: Callable[..., tuple[Any, bool]]) -> None:
    assert run("asks", names=[]) == ("none", False)
    assert run("asks", names=["a"]) == ("names", False)
    assert run("asks", names=["a"]) == ("names", True)
    assert run("asks", names=["b"]) == ("names", False)


def test_reading_all_names_is_reading_all_values(run: Callable[..., tuple[Any, bool]]) -> None:
    assert run("counts", layers=8)[1] is False
    assert run("counts", layers=8) == (["tensor", "layers", "names", 1], True)
    assert run("counts", layers=9)[1] is False


def test_one_object_in_two_places_is_not_two_alike(run: Callable[..., tuple[Any, bool]]) -> None:
    assert run("compares", shared=False) == (False, False)
    assert run("compares", shared=True) == (True, False)
    assert run("compares", shared=False) == (False, True)
    assert run("compares", shared=True) == (True, True)


def test_the_environment_counts_as_a_whole(run: Callable[..., tuple[Any, bool]]) -> None:
    assert run("reads_environment") == ("none", False)
    assert run("reads_environment", {"HOSTS": "two"}) == ("two", False)
    assert run("reads_environment", {"HOSTS": "two"}) == ("two", True)
    assert run("reads_environment") == ("none", True)


def test_a_failed_check_is_evaluated_each_time(run: Callable[..., tuple[Any, bool]]) -> None:
    for _ in range(2):
        assert run("refuses", tensor=8) == (["too many"], False)
    assert run("refuses", tensor=2) == ([], False)
    assert run("refuses", tensor=2) == ([], True)


@pytest.mark.parametrize("part", ["writes", "appends", "remembers", "grows"])
def test_what_changes_the_config_or_hands_it_on_is_evaluated_each_time(run: Callable[..., tuple[Any, bool]], part: str) -> None:
    for _ in range(3):
        assert run(part, tensor=2)[1] is False


def test_launches_are_judged_as_without_it(fetched: Callable[[], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Healthy and failing launches of one recipe in turn: replayed or not, the verdicts are the same."""
    sets: list[dict[str, Any]] = [
        {}, {"model.tensor_model_parallel_size": 2}, {"model.tensor_model_parallel_size": 3}, {}, {"train.global_batch_size": 100},
        {"model.context_parallel_size": 2}, {"train.train_iters": 10}, {"model.pipeline_model_parallel_size": 7}, {},
        {"rng.seed": 7}, {"model.expert_model_parallel_size": 2}, {"dist.use_gloo_process_groups": False},
    ]  # fmt: skip
    recipe = "megatron.bridge.recipes.llama:llama3_8b_pretrain_config"
    launches = [Launch(recipe, set=given, world_size=size) for size in (8, 64) for given in sets]
    hits: list[bool] = []
    find = Replay._find

    def counted(self: Replay, start: Any, roots: list[Any]) -> Any:
        done = find(self, start, roots)
        hits.append(done is not None)
        return done

    def verdicts() -> list[tuple[str, list[tuple[str, str]]]]:
        checker = Checker(Session(locate(str(fetched()), project=tmp_path), []), load_rules())
        judged = [checker.judge_launch(launch) for launch in launches]
        return [(one.verdict, [(finding.rule, finding.message) for finding in one.findings]) for one in judged]

    monkeypatch.setattr(Replay, "_find", counted)
    replayed = verdicts()
    assert sum(hits) > len(hits) // 4, "most of these launches set up the same groups"
    monkeypatch.setattr(Replay, "run", lambda self, part, roots, evaluate: evaluate())
    assert verdicts() == replayed
    assert {verdict for verdict, _ in replayed} == {"ok", "fails"}
