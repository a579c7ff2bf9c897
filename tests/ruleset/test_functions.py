"""The functions of expressions, by value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mblint.evaluate.unknown import ABSENT
from mblint.facts.view import View
from mblint.ruleset.examples import FlatLaunch, launch_of
from mblint.ruleset.expression import compile_expression
from mblint.ruleset.functions import divisors, largest_divisor, nearest_divisor, nearest_multiple, round_up


def value(text: str, launch: FlatLaunch | None = None) -> object:
    return compile_expression(text).value(View(launch or FlatLaunch()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("divisors(12)", [1, 2, 3, 4, 6, 12]),
        ("divisors(16)", [1, 2, 4, 8, 16]),
        ("largest_divisor(20, at_most=12)", 10),
        ("largest_divisor(20, at_most=12, at_least=11)", ABSENT),
        ("smallest_divisor(20, at_least=6)", 10),
        ("nearest_divisor(60, 8)", 6),
        ("nearest_divisor(60, to=7)", 6),
        ("round_up(10, 8)", 16),
        ("round_down(10, 8)", 8),
        ("nearest_multiple(10, 8)", 8),
        ("nearest_multiple(12, 8)", 16),
        ("nearest_multiple(1, 8)", 8),
        ("ceil_div(10, 4)", 3),
        ("gcd(12, 18)", 6),
        ("lcm(4, 6)", 12),
        ("is_power_of_two(8)", True),
        ("is_power_of_two(6)", False),
        ("min(3, 2)", 2),
        ("max([3, 2])", 3),
        ("prod([2, 3])", 6),
        ("abs(-2)", 2),
        ("round(2.5678, 2)", 2.57),
        ("round(2.6)", 3),
        ("int('16')", 16),
        ("int(True)", 1),
        ("sorted([3, 1, 3])", [1, 3]),
        ("count(['a', 'b', 'a'], 'a')", 2),
        ("count(None, 'a')", 0),
        ("without(['a', 'b'], 'b')", ["a"]),
        ("with_item(['a'], 'b', 'a')", ["a", "b"]),
        ("with_item(None, 'b')", ["b"]),
        ("common(['a', 'b'], ['b', 'c'])", ["b"]),
        ("join(['a', 'b'], '+')", "a+b"),
        ("lower('AbC')", "abc"),
        ("startswith('fp8_x', 'fp4', 'fp8')", True),
        ("startswith(None, 'fp8')", False),
        ("contains('abc', 'b')", True),
        ("contains(None, 'b')", False),
        ("member('torch.nn.functional.silu')", "silu"),
        ("member(None)", None),
        ("largest_divisor(True)", ABSENT),
        ("round_up(10, 0)", ABSENT),
    ],
)
def test_value(text: str, expected: object) -> None:
    assert value(text) == expected


@given(st.integers(1, 5000), st.integers(1, 200))
def test_divisors_and_multiples(n: int, m: int) -> None:
    found = divisors(n)
    assert found == [d for d in range(1, n + 1) if n % d == 0]
    assert largest_divisor(n, at_most=m) == max(d for d in found if d <= m)
    assert n % nearest_divisor(n, m) == 0  # type: ignore[operator]
    assert round_up(n, m) % m == 0 and 0 <= round_up(n, m) - n < m  # type: ignore[operator]
    assert nearest_multiple(n, m) % m == 0  # type: ignore[operator]


def test_values_before_the_launch_path() -> None:
    launch = launch_of({"set": {"ddp.grad_reduce_in_fp32": True}, "written": {"ddp.grad_reduce_in_fp32": False}})
    assert value("written(ddp.grad_reduce_in_fp32)", launch) is False
    assert value("overwritten(ddp.grad_reduce_in_fp32)", launch) is True
    assert value("overwritten(ddp.bucket_size)", launch) is False


def test_change_over_the_parent() -> None:
    launch = launch_of({"set": {"model.num_layers": 40}, "parent": {"set": {"model.num_layers": 32}}})
    assert value("changed_from_parent(model.num_layers)", launch) is True
    assert value("changed_from_parent(model.hidden_size)", launch) is False
    assert value("parent.model.num_layers", launch) == 32
    assert value("parent.parallel.tp", launch) == 1


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("fixes the OOM", True),
        ("to fit 80 GB", True),
        ("save memory", True),
        ("smaller bubble", False),
        ("benefits all", False),
        ("", False),
    ],
)
def test_motive(comment: str, expected: bool) -> None:
    key = "model.virtual_pipeline_model_parallel_size"
    launch = launch_of({"set": {key: 2}, "comments": {key: comment}})
    assert value(f"motive_memory({key})", launch) is expected
