"""Shares in messages: what is nearly all is not called all."""

from __future__ import annotations

import pytest

from mblint.ruleset.template import show


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.28, "28 %"), (0.995, "more than 99 %"), (0.994, "99 %"), (1.0, "100 %"), (0.004, "less than 1 %"), (0.0, "0 %"), (1.5, "150 %"), (-0.3, "-30 %")],
)  # fmt: skip
def test_percents(share: float, text: str) -> None:
    assert show(share, "pct") == text
