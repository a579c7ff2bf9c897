"""Three-valued logic against brute force: an outcome covers exactly what completions of the unknown values give."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.facts.view import View
from mblint.ruleset.examples import FlatLaunch
from mblint.ruleset.expression import compile_expression
from mblint.ruleset.logic import AND, FALSE, NOT, NOT_APPLICABLE, OR, TRUE, UNKNOWN

KEYS = ("model.a", "model.b", "model.c")
DOMAIN: tuple[Any, ...] = (True, False, None, 0, 2, ABSENT)
UNKNOWN_VALUE = Unknown("not known here")


def view(values: dict[str, Any]) -> View:
    return View(FlatLaunch(values={key: value for key, value in values.items() if value is not ABSENT}))


def completions(values: dict[str, Any]) -> list[dict[str, Any]]:
    unknown = [key for key, value in values.items() if isinstance(value, Unknown)]
    return [{**values, **dict(zip(unknown, chosen, strict=True))} for chosen in product(DOMAIN, repeat=len(unknown))]


atoms = st.one_of(
    st.sampled_from(KEYS),
    st.builds("{} == {}".format, st.sampled_from(KEYS), st.sampled_from([*KEYS, "2", "None", "True"])),
    st.builds("{} > {}".format, st.sampled_from(KEYS), st.sampled_from([*KEYS, "1"])),
    st.builds("{} is None".format, st.sampled_from(KEYS)),
    st.builds("{} in [0, {}]".format, st.sampled_from(KEYS), st.sampled_from(KEYS)),
    st.builds("{} % {} == 0".format, st.sampled_from(KEYS), st.sampled_from([*KEYS, "2"])),
    st.builds("is_set({})".format, st.sampled_from(KEYS)),
    st.builds("any(x == {} for x in [1, {}])".format, st.sampled_from(KEYS), st.sampled_from(KEYS)),
    st.builds("({} if {} else {}) == 2".format, *[st.sampled_from(KEYS)] * 3),
    st.builds("({} or {}) > 1".format, *[st.sampled_from(KEYS)] * 2),
    st.builds("default({}, 2) == 2".format, st.sampled_from(KEYS)),
)
conditions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("(not {})".format, inner),
    ),
    max_leaves=6,
)
launches = st.fixed_dictionaries({key: st.sampled_from([*DOMAIN, UNKNOWN_VALUE]) for key in KEYS})


@settings(max_examples=500, deadline=None)
@given(conditions, launches)
def test_every_completion_is_among_the_possible_outcomes(text: str, values: dict[str, Any]) -> None:
    expression = compile_expression(text)
    possible = expression.test(view(values))
    for complete in completions(values):
        outcome = expression.test(view(complete))
        assert outcome in (TRUE, FALSE, NOT_APPLICABLE)
        assert outcome & possible, f"{text} is {outcome} for {complete}, but {possible} was claimed"


@settings(max_examples=300, deadline=None)
@given(
    st.recursive(
        st.just("#"),
        lambda inner: st.one_of(
            st.builds("({} and {})".format, inner, inner),
            st.builds("({} or {})".format, inner, inner),
            st.builds("(not {})".format, inner),
        ),
        max_leaves=4,
    ),
    st.lists(st.sampled_from([True, False, ABSENT, UNKNOWN_VALUE]), min_size=8, max_size=8),
)
def test_outcomes_are_exact_where_every_value_is_read_once(shape: str, chosen: list[Any]) -> None:
    text, count = "", 0
    for char in shape:
        if char == "#":
            text += f"model.k{count}"
            count += 1
        else:
            text += char
    values = {f"model.k{number}": chosen[number] for number in range(count)}
    expression = compile_expression(text)
    union = 0
    unknown = [key for key, value in values.items() if isinstance(value, Unknown)]
    for filled in product((True, False, ABSENT), repeat=len(unknown)):
        union |= expression.test(view({**values, **dict(zip(unknown, filled, strict=True))}))
    assert expression.test(view(values)) == union


def test_single_outcomes_are_strong_kleene() -> None:
    order = {FALSE: 0, NOT_APPLICABLE: 1, TRUE: 2}
    back = {rank: outcome for outcome, rank in order.items()}
    for a, b in product(order, repeat=2):
        assert AND[a][b] == back[min(order[a], order[b])]
        assert OR[a][b] == back[max(order[a], order[b])]
        assert NOT[a] == back[2 - order[a]]


def test_unknown_decides_nothing_that_is_decided_already() -> None:
    assert AND[FALSE][UNKNOWN] == FALSE
    assert OR[TRUE][UNKNOWN] == TRUE
    assert AND[TRUE][UNKNOWN] == UNKNOWN
    assert not AND[NOT_APPLICABLE][UNKNOWN] & TRUE
