"""Option tables read from source, and command lines cut up with them: the standard library's argparse decides."""

from __future__ import annotations

import argparse

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mblint.launch.argparse_table import read_table, split

SOURCE = """
import argparse

def make(kind):
    parser = argparse.ArgumentParser(description="x")
    group = parser.add_argument_group("sizes")
    parser.add_argument("--recipe", type=str, required=True, help="a recipe")
    group.add_argument("-tp", "--tensor_size", type=int, default=1)
    group.add_argument("--vp", type=int, nargs="?", const=2)
    group.add_argument("--names", nargs="*", default=[])
    group.add_argument("--more", nargs="+")
    group.add_argument("--two", nargs=2)
    group.add_argument("--dry-run", action="store_true")
    group.add_argument("--no-x", action="store_false", dest="x")
    group.add_argument("--mode", choices=["a", "b"])
    group.add_argument("--env", action="append", type=kind)
    parser.add_argument("rest", nargs="*")
    return parser
"""


def real_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--recipe", type=str)
    parser.add_argument("-tp", "--tensor_size")
    parser.add_argument("--vp", nargs="?", const=2)
    parser.add_argument("--names", nargs="*")
    parser.add_argument("--more", nargs="+")
    parser.add_argument("--two", nargs=2)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--no-x", action="store_false", dest="x")
    parser.add_argument("--mode")
    parser.add_argument("--env", action="append")
    return parser


def test_a_table_is_read_from_add_argument_calls() -> None:
    table = read_table(SOURCE)
    assert table is not None and table.abbreviations
    assert table.destinations() == {
        "recipe", "tensor_size", "vp", "names", "more", "two", "dry_run", "x", "mode", "env",
    }  # fmt: skip
    tensor = table.find("-tp")
    assert tensor is not None and (tensor.dest, tensor.kind, tensor.default) == ("tensor_size", "int", 1)
    mode = table.find("--mode")
    assert mode is not None and mode.choices == ("a", "b")
    assert [table.find(n).nargs for n in ("--vp", "--names", "--more", "--two", "--dry-run")] == [
        "?",
        "*",
        "+",
        2,
        0,
    ]  # type: ignore[union-attr]


def test_prefixes_name_an_option_only_where_they_are_allowed_and_unique() -> None:
    table = read_table(SOURCE)
    strict = read_table(SOURCE.replace('description="x"', "allow_abbrev=False"))
    assert table is not None and strict is not None
    assert table.find("--rec") is table.find("--recipe")
    assert table.find("--m") is None and strict.find("--rec") is None


@pytest.mark.parametrize("source", ["", "x = 1", "def broken(:", "\0", "(" * 500])
def test_a_file_without_options_has_no_table(source: str) -> None:
    assert read_table(source) is None


WORD = st.sampled_from(
    ["--recipe", "--recipe=r", "--rec", "-tp", "-tp=3", "--tensor_size", "--tensor_size=4", "--vp", "--names", "--more",
     "--two", "--dry-run", "--no-x", "--mode", "--env", "--env=A=1", "--unknown", "--unknown=1", "-z", "a", "b=1", "8",
     "-1", "-2.5", "model.x=1", "++a=1", "~b", ""]
)  # fmt: skip


@settings(max_examples=600, deadline=None)
@given(st.lists(WORD, max_size=8))
def test_a_command_line_is_cut_as_parse_known_args_cuts_it(words: list[str]) -> None:
    table = read_table(SOURCE)
    assert table is not None
    try:
        parser = real_parser()
        parser.error = lambda message: (_ for _ in ()).throw(ValueError(message))  # type: ignore[assignment, return-value]
        known, rest = parser.parse_known_args(words)
    except (ValueError, argparse.ArgumentError):
        return  # refused: how it is cut does not matter
    cut = split(words, table)
    found: dict[str, object] = {}
    for item in cut.found:
        values = [item.inline] if item.inline is not None else [words[i] for i in item.values]
        option = item.option
        if option.nargs == 0:
            found[option.dest] = option.dest != "x"
        elif option.append:
            found.setdefault(option.dest, []).extend(values)  # type: ignore[attr-defined]
        elif option.nargs == "?":
            found[option.dest] = values[0] if values else 2
        elif option.nargs is None:
            found[option.dest] = values[0]
        else:
            found[option.dest] = values
    expected = {key: value for key, value in vars(known).items() if value is not None}
    for key, default in (("dry_run", False), ("x", True)):
        if expected.get(key) == default:
            del expected[key]
    assert found == expected
    assert [words[i] for i in cut.rest] == [word for word in rest if word != "--"]
