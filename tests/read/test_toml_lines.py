"""Lines of keys, against the standard reader and against positions known by construction."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mblint.read.toml_lines import key_lines

DOCUMENT = '''\
# a comment with = and [brackets]
title = "a"
"quoted key" = 1
a.b.'c d' = """
[not.a.table]
x = 1
"""""
lines = [ # one
  "x",   # ] not the end
  { name = "n", deep = [1, [2,
    3]] },
]
[tool.mblint]
select = ["MB1",
  "MB2"]
[[tool.mblint.launches]]
recipe = 'it''s'
[tool.mblint.launches.env]
A = "1"
[[tool.mblint.launches]]
recipe = "b"
date = 1979-05-27T07:32:00Z
'''.replace("'it''s'", "'its'")


def test_all_kinds_of_keys() -> None:
    tomllib.loads(DOCUMENT)
    found = key_lines(DOCUMENT)
    expected = {
        ("title",): 2,
        ("quoted key",): 3,
        ("a", "b", "c d"): 4,
        ("lines",): 8,
        ("lines", 0): 9,
        ("lines", 1): 10,
        ("lines", 1, "deep"): 10,
        ("lines", 1, "deep", 1, 1): 11,
        ("tool", "mblint", "select", 1): 15,
        ("tool", "mblint", "launches", 0): 16,
        ("tool", "mblint", "launches", 0, "recipe"): 17,
        ("tool", "mblint", "launches", 0, "env"): 18,
        ("tool", "mblint", "launches", 0, "env", "A"): 19,
        ("tool", "mblint", "launches", 1): 20,
        ("tool", "mblint", "launches", 1, "date"): 22,
    }
    assert {path: found.get(path) for path in expected} == expected
    assert not [path for path in found if "not" in path or "x" in path]


def _paths(value: Any, at: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = {at} if at else set()
    for key, inner in items:
        found |= _paths(inner, (*at, key))
    return found


def test_every_key_of_the_document_has_a_line() -> None:
    assert _paths(tomllib.loads(DOCUMENT)) <= set(key_lines(DOCUMENT))


_keys = st.from_regex(r"[A-Za-z0-9_-]{1,6}", fullmatch=True)
_text = st.text(st.characters(exclude_categories=["C"]), max_size=12)
_scalars = st.one_of(st.integers(-9, 9), st.booleans(), _text)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return "[\n" + ",\n".join(_toml(item) for item in value) + "\n]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + "}"
    return str(value)


@given(
    st.dictionaries(
        _keys,
        st.recursive(
            _scalars,
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
            max_leaves=6,
        ),
        max_size=5,
    )
)
@settings(max_examples=200, deadline=None)
def test_any_document_has_a_line_for_each_key_and_the_line_shows_it(data: dict[str, Any]) -> None:
    text = "".join(f"{key} = {_toml(value)}\n" for key, value in data.items())
    assert tomllib.loads(text) == data
    found = key_lines(text)
    assert _paths(data) == set(found)
    lines = text.splitlines()
    for path, line in found.items():
        if isinstance(path[-1], str):
            assert path[-1] in lines[line - 1]


@pytest.mark.parametrize("text", ["", "a", "= 1", "[", "[[", 'a = "', "a = [", "a = {", "a = [1, [", '"', "a." * 3_000])
def test_what_is_not_toml_never_fails(text: str) -> None:
    key_lines(text)


def test_deep_nesting_never_fails() -> None:
    key_lines("a = " + "[" * 5_000 + "]" * 5_000)
