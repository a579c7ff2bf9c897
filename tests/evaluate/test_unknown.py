"""Branches, loops and exceptions on values that are not known: what is claimed holds for every completion."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from .evaluate_kit import UNKNOWN, Failed, Program, lines, plain, run, unknown

HEAD = """
from dataclasses import dataclass, field

@dataclass
class Model:
    tp: int = 1
    pp: int = 1

@dataclass
class Config:
    model: Model = field(default_factory=Model)
    x: object = None

"""


def given(body: str, *args: Any, arguments: str = "u") -> Any:
    source = f"{HEAD}def f({arguments}):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"
    return run(source, *(args or (unknown(),)))


CASES = {
    "both sides differ": ("if u: x = 1\nelse: x = 2\nreturn x", UNKNOWN),
    "both sides agree": ("if u: x = 1\nelse: x = 1\nreturn x", 1),
    "one side changes": ("x = 1\nif u: x = 2\nreturn x", UNKNOWN),
    "one side repeats the value": ("x = 1\nif u: x = 1\nreturn x", 1),
    "what is not touched stays": ("x = y = 1\nif u: x = 2\nreturn y", 1),
    "bound on one side only": ("if u: x = 1\nreturn x", UNKNOWN),
    "attributes": ("c = Config()\nif u: c.model.tp = 4\nreturn c.model.tp, c.model.pp", (UNKNOWN, 1)),
    "through an alias": ("c = Config()\nm = c.model\nif u: m.tp = 4\nelse: c.model.tp = 4\nreturn c.model.tp", 4),
    "elif chain": ("if u == 1: x = 1\nelif u == 2: x = 2\nelse: x = 3\nreturn x", UNKNOWN),
    "numbers of one kind decide": ("if u: x = 1\nelse: x = 2\nreturn x > 0, x > 1, x is None", (True, UNKNOWN, False)),
    "early return": ("if u: return 1\nreturn 2", UNKNOWN),
    "early return of the same": ("if u: return 1\nreturn 1", 1),
    "effects before an early return": ("c = Config()\nif u:\n    c.model.tp = 2\n    return c\nc.model.pp = 3\nc.x = 1\nreturn c", ("Config", {"model": ("Model", {"tp": UNKNOWN, "pp": UNKNOWN}), "x": UNKNOWN})),
    "return on both sides": ("c = Config()\nif u:\n    c.x = 1\n    return c\nelse:\n    c.x = 1\n    return c", ("Config", {"model": ("Model", {"tp": 1, "pp": 1}), "x": 1})),
    "nested returns": ("if u:\n    if u > 1: return 1\n    if u > 2: return 1\n    return 1\nreturn 1", 1),
    "return inside a loop": ("for i in range(3):\n    if u == i: return i\nreturn 9", UNKNOWN),
    "break": ("n = 0\nfor i in range(3):\n    if u == i: break\n    n += 1\nreturn n, 5", (UNKNOWN, 5)),
    "break on every round": ("for i in range(3):\n    x = 7\n    if u: break\nreturn x", 7),
    "continue": ("n = 0\nfor i in range(3):\n    if u: continue\n    n += 1\nm = 4\nreturn n, m", (UNKNOWN, 4)),
    "else of a loop that may break": ("for i in range(2):\n    if u: break\nelse: return 1\nreturn 2", UNKNOWN),
    "certain after the loop": ("c = Config()\nfor i in range(2):\n    if u: break\nc.x = 3\nreturn c.x", 3),
    "raise on one side": ("if u: raise ValueError('no')\nreturn 1", 1),
    "raise on both sides": ("if u: raise ValueError('a')\nelse: raise ValueError('b')", Failed("ValueError", "a")),
    "a caught raise of one side": ("x = 1\ntry:\n    if u: raise ValueError\n    x = 2\nexcept ValueError:\n    x = 3\nreturn x", UNKNOWN),
    "a caught raise with the same end": ("try:\n    if u: raise ValueError\n    x = 2\nexcept ValueError:\n    x = 2\nreturn x", 2),
    "raised in a function": ("def check():\n    if u: raise ValueError\nx = 1\ntry:\n    check()\n    x = 2\nexcept ValueError:\n    pass\nreturn x", UNKNOWN),
    "another exception is not caught": ("x = 1\ntry:\n    if u: raise KeyError\n    x = 2\nexcept ValueError:\n    x = 3\nreturn x", 2),
    "an unknown operation may raise": ("x = 1\ntry:\n    int(u)\n    x = 2\nexcept ValueError:\n    x = 3\nreturn x", UNKNOWN),
    "imports are not in doubt": ("try:\n    import json\n    u.x\n    y = 1\nexcept ImportError:\n    y = 2\nreturn y", 1),
    "finally on every way": ("log = []\ndef g():\n    try:\n        if u: return 1\n        return 1\n    finally:\n        log.append('end')\ng()\nreturn log", ["end"]),
    "return in a handler": ("try:\n    if u: raise ValueError\nexcept ValueError:\n    return 1\nreturn 2", UNKNOWN),
    "with": ("import contextlib\nx = 1\nwith contextlib.suppress(ValueError):\n    if u: raise ValueError\n    x = 2\nreturn x", UNKNOWN),
    "loop over what is not known": ("x = 1\ny = 1\nfor i in u: x = 2\nreturn x, y", (UNKNOWN, 1)),
    "a loop that sets the same": ("x = 1\nfor i in u: x = 1\nreturn x", 1),
    "a second round sees the first": ("a = b = 0\nfor i in u:\n    if a == 1: b = 5\n    a = 1\nreturn b", UNKNOWN),
    "a third round": ("a = b = c = 0\nfor i in u:\n    c = b\n    b = a\n    a = 1\nreturn c", UNKNOWN),
    "counting": ("n = 0\nfor i in u: n += 1\nreturn n", UNKNOWN),
    "collecting": ("xs = [1]\nfor i in u: xs.append(i)\nreturn xs[0], len(xs)", (1, UNKNOWN)),
    "an object for each round": ("m = Model()\nfor i in u:\n    m = Model(tp=i)\n    m.pp = 3\nreturn m.tp, m.pp", (UNKNOWN, UNKNOWN)),
    "return from a loop over unknown": ("for i in u:\n    if i: return 1\nreturn 1", 1),
    "while": ("n = 5\nwhile u > 1: n = 5\nreturn n", 5),
    "the rest of a list": ("found = []\nfor i in [1, *u, 2]: found.append(i)\nreturn found[0], found[-1]", (1, 2)),
    "nested loops": ("x = 0\nfor i in u:\n    for j in (1, 2):\n        if i: break\n        x = j\nreturn x", UNKNOWN),
    "side effects of and": ("xs = []\nu and xs.append(1)\nreturn xs", UNKNOWN),
    "side effects of a conditional": ("xs = [0]\ny = xs.append(1) if u else None\nreturn y, xs[0], len(xs)", (None, 0, UNKNOWN)),
    "x and False": ("y = u and False\nreturn y, 1 if u and False else 2", (UNKNOWN, 2)),
    "one of two objects: reading": ("a, b = Model(tp=2), Model(tp=2, pp=5)\nm = a if u else b\nreturn m.tp, m.pp", (2, UNKNOWN)),
    "one of two objects: writing": ("a, b = Model(), Model()\nm = a if u else b\nm.tp = 8\nreturn a.tp, b.tp, a.pp", (UNKNOWN, UNKNOWN, 1)),
    "one of two lists": ("a, b = [1], [2]\nxs = a if u else b\nxs.append(3)\nreturn a, len(b), b[0]", (UNKNOWN, UNKNOWN, 2)),
    "one of two new objects": ("c = Config()\nif u: c.model = Model(tp=2)\nelse: c.model = Model(tp=4)\nc.model.pp = 8\nreturn c.model.pp, c.model.tp", (8, UNKNOWN)),
    "unknown code got the object": ("c = Config()\nu.change(c)\nreturn c.model.tp", UNKNOWN),
    "unknown code got an object that holds it": ("c = Config()\nu([c])\nreturn c.model.pp", UNKNOWN),
    "stored in an unknown object": ("c = Config()\nu.held = c\nu.held.x = 5\nreturn c.x", UNKNOWN),
    "an unknown name for setattr": ("m = Model()\nsetattr(m, u, 3)\nreturn m.tp", UNKNOWN),
    "an unknown key": ("d = {'a': 1}\nd[u] = 2\nreturn d['a'], d.get('b')", (UNKNOWN, UNKNOWN)),
    "a key on one side": ("d = {'a': 1}\nif u: d['b'] = 2\nreturn d['a'], 'b' in d, d['b'], len(d)", (1, UNKNOWN, 2, UNKNOWN)),
    "a deleted key": ("d = {'a': 1, 'b': 2}\nif u: del d['a']\nreturn d['b'], d.get('a', 1), d.get('a', 0)", (2, 1, UNKNOWN)),
    "two functions": ("g = (lambda x: x + 1) if u else (lambda x: x + 2)\nreturn g(1), 3", (UNKNOWN, 3)),
    "two functions that agree": ("g = (lambda x: x * 2) if u else (lambda x: x + x)\nreturn g(4)", 8),
    "narrowed by equality": ("x = u\nif x != 4: x = 4\nreturn x", 4),
    "assert": ("assert u\nreturn 1", 1),
    "a caught assertion": ("x = 1\ntry:\n    assert u\n    x = 2\nexcept AssertionError: pass\nreturn x", UNKNOWN),
    "match": ("match u:\n    case 1: x = 1\n    case _: x = 2\nreturn x", UNKNOWN),
    "match with return": ("match u:\n    case 1: return 5\n    case str(): return 5\nreturn 5", 5),
    "a generator": ("def g():\n    yield 1\n    if u: yield 2\n    yield 3\nxs = list(g())\nreturn xs[0], len(xs)", (1, UNKNOWN)),
    "nonlocal on one side": ("n = 1\ndef g():\n    nonlocal n\n    if u: n = 2\ng()\nreturn n", UNKNOWN),
    "many branches, one statement each": ("x = 0\n" + "if u: x += 1\n" * 40 + "return x, 1", (UNKNOWN, 1)),
    "many early returns": ("".join(f"if u == {n}: return 1\n" for n in range(40)) + "return 1", 1),
}  # fmt: skip


@pytest.mark.parametrize("body, expected", CASES.values(), ids=CASES.keys())
def test_joins(body: str, expected: object) -> None:
    result = given(body)
    assert result == expected
    known = lambda value: [known(v) for v in value] if isinstance(value, (tuple, list)) else value is UNKNOWN  # noqa: E731
    assert known(result) == known(expected), result


def recipe(body: str) -> Any:
    program = Program(f"{HEAD}def f(u):\n    c = Config()\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n    return c\n")
    return program.call("f", unknown("the size is not known"))


BASE = HEAD.count("\n") + 3
"""The line on which the body of `recipe` begins."""


def test_every_write_is_kept_in_order() -> None:
    config = recipe("c.model.tp = 2\nc.model.tp = 4\nm = c.model\nm.tp = 8\n")
    write = config.attrs["model"].origin["tp"]
    assert [write.value, write.previous.value, write.previous.previous.value] == [8, 4, 2]
    assert lines(config.attrs["model"], "tp") == [BASE, BASE + 1, BASE + 3]
    span = write.site.span()
    assert (span.line, span.column, span.end_column) == (BASE + 3, 5, 9)


def test_columns_count_characters() -> None:
    config = recipe("name = 'ä€😀'; c.x = 1\n")
    assert config.origin["x"].site.span().column == 5 + len("name = 'ä€😀'; ")


def test_keyword_arguments_have_their_own_place() -> None:
    config = recipe("c.model = Model(\n    tp=2,\n    pp=3,\n)\n")
    assert lines(config.attrs["model"], "tp") == [BASE + 1] and lines(config.attrs["model"], "pp") == [BASE + 2]
    config = recipe("options = {\n    'tp': 2,\n}\noptions['pp'] = 3\nc.model = Model(**options)\n")
    assert lines(config.attrs["model"], "tp") == [BASE + 1] and lines(config.attrs["model"], "pp") == [BASE + 3]


def test_a_default_has_no_write() -> None:
    config = recipe("c.model = Model(tp=2)\n")
    assert "pp" not in config.attrs["model"].origin and "x" not in config.origin


def test_a_possible_write_is_kept_with_the_one_before() -> None:
    config = recipe("c.x = 1\nif u:\n    c.x = 2\n")
    assert plain(config.attrs["x"]) is UNKNOWN and config.attrs["x"].reason == "the size is not known"
    assert lines(config, "x") == [BASE, BASE + 2]
    assert config.origin["x"].previous.value == 1


def test_writes_of_both_sides_are_kept() -> None:
    config = recipe("if u:\n    c.x = 1\nelse:\n    c.x = 2\n")
    assert lines(config, "x") == [BASE + 1, BASE + 3]
    config = recipe("if u:\n    c.x = 1\nelse:\n    c.x = 1\n")
    assert config.attrs["x"] == 1 and lines(config, "x") == [BASE + 1, BASE + 3] and config.origin["x"].value == 1


def test_replace_keeps_where_the_others_were_written() -> None:
    config = recipe("import dataclasses\nc.model.tp = 2\nc.model = dataclasses.replace(\n    c.model,\n    pp=4,\n)\n")
    assert lines(config.attrs["model"], "tp") == [BASE + 1] and lines(config.attrs["model"], "pp") == [BASE + 4]


def test_copies_keep_their_history() -> None:
    config = recipe("import copy\nc.model.tp = 2\nc.model = copy.deepcopy(c.model)\nc.model.tp = 3\n")
    assert lines(config.attrs["model"], "tp") == [BASE + 1, BASE + 3]


def test_setattr_is_written_where_it_stands() -> None:
    config = recipe("for name, value in {'tp': 2, 'pp': 3}.items():\n    setattr(c.model, name, value)\n")
    assert lines(config.attrs["model"], "tp") == [BASE + 1]


def test_nothing_is_left_of_what_was_taken_back() -> None:
    body = "    c.x = 1\n    c.model.tp = 2\n    del c.model.pp\n    D['a'] = 1\n    D.pop('b')\n    L.append(1)\n    L.insert(0, 2)\n    S.add(3)\n    Model.kind = 4\n"
    program = Program(
        f"{HEAD}D = {{'b': 2}}\nL = [0]\nS = {{1}}\ndef f(c):\n{body}    global G\n    G = 1\n    return next(IT)\nIT = iter([1, 2, 3])\n"
    )
    config = program.call("Config")
    shared = [program.get(name) for name in ("D", "L", "S", "IT")]
    machine = program.machine
    for _ in range(3):
        mark = machine.mark()
        assert program.call("f", config) == 1
        assert plain(shared[:3]) == [{"a": 1}, [2, 0, 1], {1, 3}] and program.get("Model").namespace["kind"] == 4
        machine.undo(mark)
        assert plain(config) == ("Config", {"model": ("Model", {"tp": 1, "pp": 1}), "x": None})
        assert plain(shared[:3]) == [{"b": 2}, [0], {1}]
        assert "kind" not in program.get("Model").namespace and config.origin == {} and "G" not in program.get("Model").module.vars


def test_undecided_checks_are_named() -> None:
    program = Program("def f(u):\n    if u > 3:\n        raise ValueError('too large')\n    return 1\n")
    assert program.call("f", unknown("the size is not known")) == 1
    ((site, reason),) = program.machine.undecided
    assert site.line == 3 and reason == "the size is not known"


def test_going_on_records_failures() -> None:
    program = Program(
        "def f(u):\n    x = 1\n    if x < 2:\n        raise ValueError('too small')\n    if u: raise KeyError\n    return 5\n"
    )
    program.machine.go_on = True
    assert program.call("f", unknown()) == 5
    (failure,) = program.machine.failures
    assert failure.exception == "ValueError" and failure.message == "too small" and failure.site.line == 4
