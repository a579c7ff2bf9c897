"""Which functions of a file are taken for recipes."""

from __future__ import annotations

import ast

import pytest

from mblint.launch.discover import recipe_functions

IMPORTS = (
    "from megatron.bridge.training.config import ConfigContainer\nfrom megatron.bridge.recipes.llama import llama3_8b_pretrain_config\n\n"
)


@pytest.mark.parametrize(
    ("function", "is_recipe"),
    [
        ("def small_config():\n    return make()", True),
        ("def small() -> ConfigContainer:\n    return make()", True),
        ("def small():\n    return llama3_8b_pretrain_config()", True),
        ("def _small_config():\n    return make()", False),
        ("def change_config(cfg: ConfigContainer):\n    cfg.model.bf16 = True", False),
        ("def test_that_a_mask_raises_for_a_config():\n    check()", False),
        ("def test_recipe():\n    return llama3_8b_pretrain_config()", False),
        ("def test_run() -> ConfigContainer:\n    return make()", True),
    ],
)
def test_what_is_a_recipe(function: str, is_recipe: bool) -> None:
    assert bool(recipe_functions(ast.parse(IMPORTS + function + "\n"))) is is_recipe
