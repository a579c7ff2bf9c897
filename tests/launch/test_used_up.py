"""Launches of a file that has used up the time of its evaluations."""

from __future__ import annotations

from pathlib import Path

import pytest

from mblint.evaluate.budget import Limits
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
