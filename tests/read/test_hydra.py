"""Hydra's override grammar, against a table and against Hydra itself."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mblint.read.hydra import HydraError, Shuffled, Sweep, parse_override


@pytest.mark.parametrize(
    ("text", "kind", "key", "value"),
    [
        ("model.tensor_model_parallel_size=4", "change", "model.tensor_model_parallel_size", 4),
        ("a='4'", "change", "a", "4"),
        ("a=4.0", "change", "a", 4.0),
        ("a=1e3", "change", "a", 1000.0),
        ("a=.5", "change", "a", 0.5),
        ("a=8_192", "change", "a", 8192),
        ("a=8k", "change", "a", "8k"),
        ("a=null", "change", "a", None),
        ("a=None", "change", "a", "None"),
        ("a=TRUE", "change", "a", True),
        ("a=yes", "change", "a", "yes"),
        ("a=", "change", "a", ""),
        ("a=[core_attn, mlp]", "change", "a", ["core_attn", "mlp"]),
        ("a=[[x,y],[0.3,0.7]]", "change", "a", [["x", "y"], [0.3, 0.7]]),
        ("a={k:1,l:[2]}", "change", "a", {"k": 1, "l": [2]}),
        ("a='[core_attn]'", "change", "a", "[core_attn]"),
        ("a=s3://x/y", "change", "a", "s3://x/y"),
        ("a=${b.c}", "change", "a", "${b.c}"),
        ("a=x\\,y", "change", "a", "x,y"),
        ("a= 5 ", "change", "a", 5),
        ("a=int(3.7)", "change", "a", 3),
        ("a=str([1,true])", "change", "a", ["1", "true"]),
        ("a=sort([3,1,2])", "change", "a", [1, 2, 3]),
        ("+a.b=1", "add", "a.b", 1),
        ("++a=1", "force_add", "a", 1),
        ("~a", "delete", "a", None),
        ("~a=1", "delete", "a", 1),
        ("=4", "change", "", 4),
        ("a.0=x", "change", "a.0", "x"),
    ],
)
def test_what_is_written_is_what_is_read(text: str, kind: str, key: str, value: object) -> None:
    parsed = parse_override(text)
    assert (parsed.kind, parsed.key, parsed.value) == (kind, key, value)
    assert type(parsed.value) is type(value)
    assert text[parsed.value_at :].strip() != "" or value in ("", None)


@pytest.mark.parametrize("text", ["a=1,2", "a=range(1,3)", "a=choice(x,y)", "a=interval(0,1)", "a=int(1,2)"])
def test_sweeps_are_told_apart(text: str) -> None:
    assert isinstance(parse_override(text).value, Sweep)


def test_a_shuffle_has_no_value() -> None:
    assert isinstance(parse_override("a=shuffle([1,2])").value, Shuffled)


def test_packages_are_told_apart() -> None:
    assert parse_override("db@x=1").package == "x"
    assert parse_override("a/b=1").key == "a/b"


@pytest.mark.parametrize(
    "text",
    ["", "a", "a b=1", "a..b=1", "--a=1", "a:4", "a=b=c", "a=[1", "a={1}", "a=int(x)", "a='x", "a=nofunc(1)", "é=1",
     "a=" + "[" * 200 + "]" * 200],
)  # fmt: skip
def test_what_hydra_refuses_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(HydraError) as caught:
        parse_override(text)
    assert "\n" not in str(caught.value)


_PIECES = [
    "a", "b.c", "=", "+", "~", "1", "1.5", "1e3", "-2", "true", "null", "nan", "inf", "[", "]", "{", "}", ",", ":",
    " ", '"', "'", "\\", "\\,", "\\ ", "(", ")", "int", "str", "sort", "/", "@", "$", "${a.b}", "%", "*", ".", "-",
    "_", "é", "1_000", "00", '"q"', "'q r'", "float(", "\\'", "\t", "x-y",
]  # fmt: skip
_HEADS = ["a", "m.b", "+a", "++m.b", "~a", "a/b", "a@b", "a.0", "$x", "m.$y", ""]


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**40))
def test_random_overrides_read_as_hydra_reads_them(seed: int) -> None:
    parser = pytest.importorskip("hydra.core.override_parser.overrides_parser").OverridesParser.create()
    sweep = pytest.importorskip("hydra.core.override_parser.types").Sweep
    chance = random.Random(seed)
    text = chance.choice(_HEADS) + chance.choice(["=", "=", "=", ""])
    text += "".join(chance.choice(_PIECES) for _ in range(chance.randint(0, 8)))
    try:
        real = parser.parse_overrides([text])[0]
    except Exception:
        with pytest.raises(HydraError):
            parse_override(text)
        return
    ours = parse_override(text)
    kinds = {"CHANGE": "change", "ADD": "add", "FORCE_ADD": "force_add", "DEL": "delete"}
    assert (ours.kind, ours.key, ours.package) == (kinds[real.type.name], real.key_or_group, real.package)
    if isinstance(real.value(), sweep):
        assert isinstance(ours.value, Sweep)
    elif not isinstance(ours.value, Shuffled):
        assert repr(ours.value) == repr(real.value())
