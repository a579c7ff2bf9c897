"""Messages with values in them."""

from __future__ import annotations

import pytest

from mblint.evaluate.unknown import Unknown
from mblint.facts.view import View
from mblint.ruleset.examples import FlatLaunch
from mblint.ruleset.expression import ExpressionError
from mblint.ruleset.template import compile_template

VIEW = View(
    FlatLaunch(
        values={
            "model.n": 1234567,
            "model.x": 0.28,
            "model.bytes": 47_545_000_000,
            "model.items": ["a", "b"],
            "model.none": None,
            "model.unknown": Unknown("?"),
        }
    )
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("n = {model.n}", "n = 1234567"),
        ("{model.n:,}", "1,234,567"),
        ("{model.x:pct}", "28 %"),
        ("{model.x:.1f}", "0.3"),
        ("{model.bytes:gb}", "47.5 GB"),
        ("{model.bytes:gib}", "44.3 GiB"),
        ("{model.items}", "[a, b]"),
        ("{model.items:list}", "a, b"),
        ("{model.items[0]:repr}", "'a'"),
        ("{model.none} {model.missing} {model.unknown}", "None absent unknown"),
        ("{{{model.n}}}", "{1234567}"),
        ("{'a:b' if model.n > 1 else '}'}", "a:b"),
        ("{model.n // 1000:,}", "1,234"),
        ("{[x for x in model.items][0]}", "a"),
    ],
)
def test_rendering(text: str, expected: str) -> None:
    assert compile_template(text).render(VIEW) == expected


@pytest.mark.parametrize(
    "text",
    [
        "{model.n",
        "model.n}",
        "{model.n:weird}",
        "{}",
        "{model.n!r}",
        "{nothing.n}",
        "{new}",
        "{model.n:>10000000}",
    ],
)
def test_what_is_no_template(text: str) -> None:
    with pytest.raises(ExpressionError):
        compile_template(text)


def test_names_that_the_frame_supplies() -> None:
    template = compile_template("use {new} of {model.n}", frozenset({"new"}))
    assert template.render(VIEW, {"new": 3}) == "use 3 of 1234567"
