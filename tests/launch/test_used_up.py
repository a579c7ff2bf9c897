"""Launches of a file that has used up the time of its evaluations."""

from __future__ import annotations

from pathlib import Path

import pytest

from mblint.checker import Checker
from mblint.evaluate.budget import Limits
from mblint.evaluate.modules import SourceError
from mblint.launch.run import CannotEvaluate, Launch, on_heap
from mblint.launch.session import Session
from mblint.upstream.locate import snapshot

RECIPE = """
from megatron.bridge.recipes.llama import llama3_8b_pretrain_config

def recipe():
    return llama3_8b_pretrain_config()
"""


@pytest.mark.parametrize("launch", [Launch("own:recipe"), Launch("own:recipe", world_size=8)], ids=["kept recipe", "another launch"])
def test_a_later_launch_is_not_judged_and_says_why(tmp_path: Path, launch: Launch) -> None:
    (tmp_path / "own.py").write_text(RECIPE)
    session = Session(snapshot("a test"), [tmp_path])
    with on_heap(session, Launch("own:recipe")) as found:
        assert found.get("model.num_layers") == 32
    machine = session.machine
    machine.spent[machine.owner] = Limits.file_seconds + 1
    with pytest.raises(CannotEvaluate, match="for the recipes of one file"), on_heap(session, launch):
        pass
    machine.spent.clear()
    with on_heap(session, launch) as found:
        assert found.get("model.num_layers") == 32


def test_a_file_that_used_up_its_time_is_not_looked_through_again(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(RECIPE)
    checker = Checker(Session(snapshot("a test"), [tmp_path]), [])
    path = tmp_path / "own.py"
    assert [name for name, _ in checker.recipes_of(path)] == ["own:recipe"]
    machine = checker.session.machine
    machine.spent[str(path)] = Limits.file_seconds + 1
    with pytest.raises(SourceError, match="for the recipes of one file"):
        checker.recipes_of(path)
