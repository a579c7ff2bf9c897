"""A known command line, held against argparse itself."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from mblint.evaluate.library.arguments import Option
from mblint.evaluate.library.command_line import passed
from mblint.evaluate.unknown import Unknown

OPTIONS: list[tuple[list[str], dict[str, Any]]] = [
    (["-n", "--number"], {"type": int}),
    (["--name"], {}),
    (["--flag"], {"action": "store_true"}),
    (["--off"], {"action": "store_false"}),
    (["--many"], {"nargs": "*", "type": int}),
    (["--maybe"], {"nargs": "?", "const": "c"}),
    (["--more"], {"action": "append"}),
    (["--two"], {"nargs": 2}),
]


def ours(words: list[Any]) -> tuple[dict[str, Any], list[Any]]:
    options = []
    for names, given in OPTIONS:
        dest = names[-1].lstrip("-")
        shape = (tuple(names), given.get("nargs"), given.get("const"))
        options.append(Option(dest, given.get("action", "store"), None, given.get("type"), False, False, None, *shape))
    return passed(options, words, lambda option, text: option.convert(text) if option.convert and isinstance(text, str) else text)


def theirs(words: list[str]) -> tuple[dict[str, Any], list[str]]:
    parser = argparse.ArgumentParser(argument_default=argparse.SUPPRESS)
    for names, given in OPTIONS:
        parser.add_argument(*names, **given)
    space, rest = parser.parse_known_args(words)
    return vars(space), rest


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--number 3 model.x=1",
        "-n 3 --name=a --flag --off",
        "--many 1 2 3 --name b train.y=2",
        "--maybe --flag",
        "--maybe x a=b",
        "--more a --more b c=d ++e=f ~g",
        "--two a b rest=1",
        "--num 4 --unknown x y=1",
        "--number -3 --name -",
    ],
)
def test_words_are_taken_as_argparse_takes_them(line: str) -> None:
    assert ours(line.split()) == theirs(line.split())


def test_a_word_that_is_not_known_is_a_value_or_stays() -> None:
    word, other = Unknown("why"), Unknown("why not")
    found, rest = ours(["--name", word, other, "a=1"])
    assert found == {"name": word} and rest == [other, "a=1"]
