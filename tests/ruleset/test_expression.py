"""What expressions of rule files mean, and what they may not hold."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.facts.view import View
from mblint.ruleset.examples import FlatLaunch
from mblint.ruleset.expression import ExpressionError, Trace, compile_expression
from mblint.ruleset.functions import FUNCTIONS
from mblint.ruleset.logic import FALSE, NOT_APPLICABLE, TRUE, UNKNOWN

LAUNCH = FlatLaunch(
    values={
        "model.four": 4,
        "model.none": None,
        "model.flag": True,
        "model.name": "AttnBackend.flash",
        "model.items": ["core_attn", "mlp"],
        "model.table": {"a": 1},
        "model.unknown": Unknown("read from a file"),
        "model.half_known": [1, Unknown("read from a file")],
        "model.__class__": "megatron.bridge.models.gpt_provider.GPTModelProvider",
        "peft": None,
    },
    given=("model.four",),
    world_size=8,
    env={"NCCL_ALGO": "Ring"},
)


def value(text: str) -> object:
    return compile_expression(text).value(View(LAUNCH))


def test(text: str) -> int:
    return compile_expression(text).test(View(LAUNCH))


test.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model.four", 4),
        ("model.four * 2 + 1", 9),
        ("model.four // 3", 1),
        ("-model.four", -4),
        ("2 ** 3", 8),
        ("model.items[0]", "core_attn"),
        ("model.items[-1]", "mlp"),
        ("model.table['a']", 1),
        ("'x' if model.flag else 'y'", "x"),
        ("model.none or 3", 3),
        ("model.four and 3", 3),
        ("[model.four, 1]", [4, 1]),
        ("[x + 1 for x in [1, 2, 3] if x > 1]", [3, 4]),
        ("sum(x for x in [1, 2])", 3),
        ("model.four > 3", True),
        ("1 < model.four < 4", False),
        ("member(model.name)", "flash"),
        ("len(model.items)", 2),
        ("len(model.none)", 0),
        ("default(model.missing, 7)", 7),
        ("default(model.none, 7)", 7),
        ("env.NCCL_ALGO", "Ring"),
        ("world_size // 2", 4),
        ("model", "megatron.bridge.models.gpt_provider.GPTModelProvider"),
        ("peft", None),
    ],
)
def test_values(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "model.missing",
        "model.missing + 1",
        "model.none + 1",
        "model.none * 2",
        "model.four / 0",
        "model.four % 0",
        "model.items[5]",
        "model.table['b']",
        "'a' * 3",
        "[1] * 3",
        "model.items + 1",
        "2 ** 1000",
        "(2 ** 64) ** 64",
        "int('nine')",
        "largest_divisor(0)",
        "largest_divisor(10 ** 12)",
        "min([])",
        "model.name[0] - 1",
    ],
)
def test_what_has_no_value_does_not_apply(text: str) -> None:
    assert value(text) is ABSENT


@pytest.mark.parametrize(
    "text",
    ["model.unknown", "model.unknown + 1", "1 if model.unknown else 2", "env.OTHER", "max(model.half_known)"],
)
def test_what_depends_on_an_unknown_value_is_unknown(text: str) -> None:
    assert isinstance(value(text), Unknown)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model.none is None", TRUE),
        ("model.missing is None", NOT_APPLICABLE),
        ("model.none > 1", NOT_APPLICABLE),
        ("model.none == 1", FALSE),
        ("'mlp' in model.none", FALSE),
        ("'mlp' not in model.none", TRUE),
        ("'mlp' in model.items", TRUE),
        ("'flash' in model.name", TRUE),
        ("1 in model.half_known", TRUE),
        ("2 in model.half_known", UNKNOWN),
        ("model.missing == 3 or model.flag", TRUE),
        ("not model.missing", NOT_APPLICABLE),
        ("model.unknown and model.none", FALSE),
        ("any(x == 1 for x in model.half_known)", TRUE),
        ("all(x == 1 for x in model.half_known)", UNKNOWN),
        ("any(x == 1 for x in model.none)", FALSE),
        ("all(x == 1 for x in [])", TRUE),
        ("any(x > 1 for x in [1, 3] if x != 3)", FALSE),
        ("any(model.half_known)", TRUE),
        ("all(model.half_known)", UNKNOWN),
        ("is_set(model.none)", FALSE),
        ("is_set(peft)", FALSE),
        ("is_set(model)", TRUE),
        ("unset(model.missing)", TRUE),
        ("exists(model.none)", TRUE),
        ("exists(model.missing)", FALSE),
        ("is_set(model.unknown)", UNKNOWN),
        ("is_class(model, 'GPTModelProvider')", TRUE),
        ("is_class(model, 'TransformerConfig')", TRUE),
        ("is_class(model, 'T5ModelProvider')", FALSE),
        ("is_class(peft, 'LoRA')", NOT_APPLICABLE),
        ("set_by_user(model.four)", TRUE),
        ("set_by_user(model.flag)", FALSE),
        ("version_at_least('torch', '2.11')", TRUE),
        ("version_at_least('apex', '1')", UNKNOWN),
        ("known(model.unknown)", FALSE),
        ("parent.model.four == 4", NOT_APPLICABLE),
        ("changed_from_parent(model.four)", NOT_APPLICABLE),
    ],
)
def test_outcomes(text: str, expected: int) -> None:
    assert test(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model.four.bit_length()", "listed functions"),
        ("().__class__", "attributes of values"),
        ("'a'.join", "attributes of values"),
        ("[].append", "attributes of values"),
        ("(model.four).real + [].x", "attributes of values"),
        ("any(x.y for x in model.items)", "loop variable"),
        ("__import__('os')", "no function __import__"),
        ("open('x')", "no function open"),
        ("largest_divisr(3)", "did you mean largest_divisor"),
        ("lambda: 1", "lambda"),
        ("(x := 1)", ":="),
        ("f'{model.four}'", "f-string"),
        ("{'a': 1}", "dict literal"),
        ("model.items[0:1]", "slice"),
        ("[*model.items]", "\\*"),
        ("max(*model.items)", "\\*"),
        ("round(3, **model.table)", "\\*"),
        ("~model.four", "~"),
        ("model.four << 2", "LShift"),
        ("model.four @ 2", "MatMult"),
        ("b'x'", "bytes"),
        ("...", "ellipsis"),
        ("1j", "complex"),
        ("10 ** 10 == 9" + "9" * 40, "too large"),
        ("model.four is 4", "None, True or False"),
        ("nothing.four", "neither a key"),
        ("parallel.nothing", "neither a key"),
        ("[x for x in [1] for y in [2]]", "one `for`"),
        ("[model for model in [1]]", "already means"),
        ("[x for x, y in [1]]", "plain name"),
        ("largest_divisor()", "missing"),
        ("largest_divisor(1, bogus=2)", "unexpected"),
        ("is_set(3)", "neither a key"),
        ("model.four +", "not an expression"),
        ("model.four; model.flag", "not an expression"),
        ("import os", "not an expression"),
        ("", "not an expression"),
        ("yield 1", "not an expression|yield"),
        ("await model.four", "await|not an expression"),
        ("(" * 1500 + "1" + ")" * 1500, "nested|not an expression"),
        ("not " * 60 + "model.flag", "nested"),
        ("+".join(["1"] * 400), "nested|parts"),
        ("[" + ",".join(["1"] * 600) + "]", "parts"),
        ("1 + " * 2000 + "1", "longer"),
    ],
)
def test_what_a_rule_file_may_not_hold(text: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words):
        compile_expression(text)


def test_no_result_grows_without_bound() -> None:
    start = time.perf_counter()
    for text in (
        "2 ** 64 * 2 ** 64 * 2 ** 64 * 2 ** 64 * 2 ** 64",
        "[x for x in divisors(5040 * 1980)]",
        "lcm(2 ** 62, 3 ** 38, 5 ** 20)",
        "sum([x for x in divisors(9999999)])",
        "count('aaaaaaaaaa', 'a')",
    ):
        result = value(text)
        assert result is ABSENT or len(str(result)) < 5_000
    assert time.perf_counter() - start < 1


def test_loops_share_a_budget_of_steps() -> None:
    many = View(FlatLaunch(values={"model.many": list(range(2_000)), "model.more": list(range(2_001))}))
    start = time.perf_counter()
    nested = compile_expression("any(any(any(x + y + z == -1 for z in model.many) for y in model.many) for x in model.many)")
    assert nested.test(many) == UNKNOWN
    assert isinstance(compile_expression("[len([y for y in model.many]) for x in model.many]").value(many), Unknown)
    assert compile_expression("sum(x for x in model.many)").value(many) == 1999 * 1000
    assert compile_expression("[x for x in model.more]").value(many) is ABSENT
    assert compile_expression("model.many + model.many").value(many) is ABSENT
    assert time.perf_counter() - start < 2


def test_trace_names_what_was_read_and_what_it_lacked() -> None:
    trace = Trace(View(LAUNCH))
    compile_expression("model.flag and model.unknown > 2 and model.four > 1").test(trace)
    assert list(trace.read_names) == ["model.flag", "model.unknown", "model.four"]
    assert {name: unknown.reason for name, unknown in trace.unknowns().items()} == {"model.unknown": "read from a file"}


def test_every_function_says_what_it_does() -> None:
    for name, function in FUNCTIONS.items():
        assert function.doc.endswith("."), name


@settings(max_examples=300, deadline=None)
@given(
    st.recursive(
        st.sampled_from(["1", "2", "7", "model.four", "0", "3.5"]),
        lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "//", "%", "/"]), inner),
        max_leaves=6,
    ),
    st.sampled_from(["<", "<=", "==", "!=", ">", ">="]),
)
def test_arithmetic_is_python_s_own(text: str, comparison: str) -> None:
    plain = f"{text} {comparison} 2"
    try:
        expected: Any = eval(plain.replace("model.four", "4"))
    except ZeroDivisionError:
        assert test(plain) == NOT_APPLICABLE
        return
    assert test(plain) == (TRUE if expected else FALSE)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="model.four()[]{}'\"+-*/%<>=!&|^~:,; notandrif0123456789_\\\n\x00é", max_size=60))
def test_any_text_compiles_or_is_refused_in_words(text: str) -> None:
    try:
        expression = compile_expression(text)
    except ExpressionError as error:
        assert str(error)
        return
    assert expression.test(View(LAUNCH)) in range(1, 8)
