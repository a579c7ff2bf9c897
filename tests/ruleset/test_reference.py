"""The reference of what expressions can use."""

from __future__ import annotations

from mblint.facts.view import all_facts
from mblint.ruleset.functions import FUNCTIONS
from mblint.ruleset.reference import reference


def test_everything_is_in_it() -> None:
    text = reference()
    for name in [*all_facts(), *FUNCTIONS]:
        assert f"`{name}" in text
    assert "- `largest_divisor(n, at_most=None, at_least=1)`: " in text
    assert "- `is_set(name)`: " in text
