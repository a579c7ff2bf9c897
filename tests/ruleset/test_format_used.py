"""Every part of the rule format is used by a rule, so that the tests of rules exercise it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from mblint.ruleset import model
from mblint.ruleset.examples import launch_of
from mblint.ruleset.load import load_rules

RULES = [rule.data for rule in load_rules()]


def _examples() -> Iterator[dict[str, Any]]:
    return (example for data in RULES for found in data["examples"].values() for example in found)


PARTS: dict[type[BaseModel], list[Any]] = {
    model.RuleModel: RULES,
    model.CaseModel: [case for data in RULES for case in data.get("cases", ())],
    model.FixModel: [fix for data in RULES for fix in data.get("fixes", ())],
    model.ExamplesModel: [data["examples"] for data in RULES],
    model.ExampleModel: list(_examples()),
    model.ParentModel: [example["parent"] for example in _examples() if example.get("parent")],
    model.BeforeModel: [example["before"] for example in _examples() if example.get("before")],
}


NO_RULE_YET = {"ParentModel.base", "ParentModel.gpu", "ParentModel.env", "BeforeModel.base", "BeforeModel.gpu"}
"""What rules of others may use; see the tests below."""


@pytest.mark.parametrize(("part", "name"), [(part, name) for part in PARTS for name in part.model_fields])
def test_a_rule_uses_it(part: type[BaseModel], name: str) -> None:
    where = f"{part.__name__}.{name}"
    assert any(name in given for given in PARTS[part]) is (where not in NO_RULE_YET), f"no rule file has {where}, or one has now"


def test_a_parent_has_a_base_a_gpu_and_an_environment_of_its_own() -> None:
    launch = launch_of({"set": {}, "gpu": "h100", "parent": {"base": "moe", "gpu": "b200", "env": {"NCCL_ALGO": "Ring"}}})
    assert launch.parent is not None
    assert (launch.get("model.num_moe_experts"), launch.parent.get("model.num_moe_experts")) == (None, 64)
    assert (launch.gpu, launch.parent.gpu, launch.parent.env, launch.parent.env_known) == ("h100", "b200", {"NCCL_ALGO": "Ring"}, True)
    assert not launch.env_known


def test_what_was_before_a_change_has_a_base_and_a_gpu_of_its_own() -> None:
    launch = launch_of({"set": {}, "gpu": "h100", "world_size": 8, "before": {"base": "moe", "gpu": "b200"}})
    assert launch.base is not None
    assert (launch.base.get("model.num_moe_experts"), launch.base.gpu, launch.base.world_size) == (64, "b200", 8)
