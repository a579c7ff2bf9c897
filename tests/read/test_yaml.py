"""YAML documents with places: shapes, scalar rules, merge keys, hostile input."""

from __future__ import annotations

import time

import pytest
import yaml as pyyaml

from mblint.read.yaml import (
    Mapping,
    Scalar,
    SequenceNode,
    YamlError,
    get,
    get_text,
    merged_pairs,
    read_yaml,
    scalar_value,
    text_offsets,
    walk_scalars,
)


def root(text: str):  # type: ignore[no-untyped-def]
    (document,) = read_yaml(text, "f.yaml")
    return document.root


def test_places_are_those_of_the_text() -> None:
    node = root("model:\n  seq_length: 4096  # tokens\n  lr: '3e-4'\n")
    value = get(get(node, "model"), "seq_length")
    assert isinstance(value, Scalar)
    assert (value.span.line, value.span.column, value.span.end_column) == (2, 15, 19)
    assert str(value.span) == "f.yaml:2:15"


def test_an_anchor_is_not_part_of_the_value() -> None:
    node = root("a: &x 12\nb: *x\n")
    first, second = get(node, "a"), get(node, "b")
    assert first is second
    assert (first.span.line, first.span.column, first.span.end_column) == (1, 7, 9)


@pytest.mark.parametrize(
    ("text", "omegaconf", "plain"),
    [
        ("3e-4", 3e-4, "3e-4"),
        ("1e3", 1000.0, "1e3"),
        ("1.5e3", 1500.0, "1.5e3"),
        ("1_000", 1000, 1000),
        ("010", 8, 8),
        ("0x10", 16, 16),
        ("1:30", 90, 90),
        ("yes", True, True),
        ("None", "None", "None"),
        ("~", None, None),
        ("", None, None),
        ("2026-01-01", "2026-01-01", __import__("datetime").date(2026, 1, 1)),
        ("'yes'", "yes", "yes"),
        ("!!str 12", "12", "12"),
        ("8k", "8k", "8k"),
        (".inf", float("inf"), float("inf")),
    ],
)
def test_plain_scalars(text: str, omegaconf: object, plain: object) -> None:
    node = get(root(f"a: {text}\n"), "a")
    assert isinstance(node, Scalar)
    assert scalar_value(node, "omegaconf") == omegaconf
    assert scalar_value(node, "yaml11") == plain
    assert type(scalar_value(node, "omegaconf")) is type(omegaconf)


def test_merge_keys_keep_own_values_and_the_first_source_wins() -> None:
    node = root("a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  z: 3\n  <<: [*a, *b]\n")
    section = get(node, "c")
    assert isinstance(section, Mapping)
    values = {key.text: value.text for key, value in merged_pairs(section)}
    assert values == {"x": "1", "y": "1", "z": "3"}
    assert values == {
        k: str(v) for k, v in pyyaml.safe_load("a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  z: 3\n  <<: [*a, *b]\n")["c"].items()
    }
    assert get_text(node, "c", "y") == "1"


def test_several_documents_and_none() -> None:
    assert [d.span.line for d in read_yaml("a: 1\n---\nb: 2\n---\n", "f")] == [1, 2, 4]
    assert read_yaml("", "f") == []
    (empty,) = read_yaml("---\n...\n", "f")
    assert isinstance(empty.root, Scalar) and empty.root.text == ""


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("model:\n\ttp: 4\n", "token", 2),
        ("a: [1, 2\nb: 3\n", "", 2),
        ("a: *nobody\n", "no anchor", 1),
        ("a: &a [1, *a]\n", "contains itself", 1),
        ("a: &a {b: {c: *a}}\n", "contains itself", 1),
        ("[" * 300 + "]" * 300, "nested deeper", 1),
        ("a: " + "{b: " * 250 + "}" * 250, "nested deeper", 1),
        ("a: 'x\n", "", 2),
        ("\x00", "", 1),
    ],
)
def test_bad_text_is_one_error_with_its_line(text: str, reason: str, line: int) -> None:
    with pytest.raises(YamlError) as caught:
        read_yaml(text, "f.yaml")
    assert reason in caught.value.reason
    assert caught.value.span.line == line
    assert "\n" not in caught.value.reason


def test_an_alias_bomb_is_read_in_no_time_and_refused_when_it_is_expanded() -> None:
    lines = ["a0: &a0 {k: x}"]
    lines += [f"a{i}: &a{i} {{" + ", ".join(f"k{j}: *a{i - 1}" for j in range(9)) + "}" for i in range(1, 20)]
    started = time.perf_counter()
    node = root("\n".join(lines))
    assert time.perf_counter() - started < 1
    assert sum(1 for _ in walk_scalars(node)) == 1
    merges = ["a0: &a0 {k: x, l: y}"] + [f"a{i}: &a{i} {{" + "<<: [" + ", ".join([f"*a{i - 1}"] * 9) + "]}" for i in range(1, 14)]
    bomb = get(root("\n".join(merges)), "a13")
    assert isinstance(bomb, Mapping)
    with pytest.raises(YamlError, match="expand"):
        merged_pairs(bomb)


def test_offsets_lead_into_block_and_folded_text() -> None:
    text = "cmd: |\n    torchrun \\\n      a.b=c\nfold: >-\n  one\n  two\nquoted: 'it is'\nesc: \"a\\nb\"\n"
    node = root(text)
    for key in ("cmd", "fold", "quoted"):
        scalar = get(node, key)
        assert isinstance(scalar, Scalar)
        offsets = text_offsets(scalar, text)
        assert len(offsets) == len(scalar.text)
        assert all(text[o] == c for o, c in zip(offsets, scalar.text, strict=True) if not c.isspace())
    escaped = get(node, "esc")
    assert isinstance(escaped, Scalar)
    assert len(text_offsets(escaped, text)) == 3


def test_a_sequence_keeps_its_items() -> None:
    node = root("- a\n- b: 1\n- [c]\n")
    assert isinstance(node, SequenceNode)
    assert [type(item).__name__ for item in node.items] == ["Scalar", "Mapping", "SequenceNode"]
    assert get(node, "x") is None
