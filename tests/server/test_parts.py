"""Units behind the server: positions, parts of a module, moved lines, edits between texts."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mblint.server.actions import edit_between, edits_by_line
from mblint.server.documents import Document, Lines, Position, clean, open_document, path_of, uri_of
from mblint.server.importers import imported_names
from mblint.server.keys import chain_at, override_at, sections, yaml_path
from mblint.server.parts import parts_of
from mblint.server.shift import Shift
from mblint.server.worker import EDITED, IDLE, QUESTION, Worker

from .kit import applied

TEXTS = st.text(st.sampled_from("ab\n\r\x0c\u2028ü🚀 "), max_size=30)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_positions_go_there_and_back(text: str, encoding: str) -> None:
    lines = Lines(text, encoding)  # type: ignore[arg-type]
    assert "".join(lines.lines) == text.replace("\r\n", "").replace("\n", "").replace("\r", "")
    for number, content in enumerate(lines.lines, 1):
        for column in range(1, len(content) + 2):
            assert lines.place(lines.position(number, column)) == (number, column)
    assert lines.place(Position(10**6, 5)) == (len(lines.lines), len(lines.lines[-1]) + 1)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.integers(0, 8), st.integers(0, 12), st.integers(0, 8), st.integers(0, 12), TEXTS)
def test_incremental_edits_are_what_the_protocol_says(text: str, line: int, column: int, line2: int, column2: int, new: str) -> None:
    document = Document("file:///x.py", 1, text, "/x.py", "python")
    lines = Lines(text, "utf-16")
    start, end = sorted([(line, column), (line2, column2)])
    begin_place, end_place = lines.place(Position(*start)), lines.place(Position(*end))
    offsets = [sum(len(part) for part in _with_ends(text)[: place[0] - 1]) + place[1] - 1 for place in (begin_place, end_place)]
    document.edit(Position(*start), Position(*end), new, 2, "utf-16")
    assert document.text == text[: offsets[0]] + new + text[offsets[1] :]
    assert document.version == 2 and document.generation == 1


def _with_ends(text: str) -> list[str]:
    import re

    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n|\Z)", text)


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("ab\nü🚀"), max_size=30), st.text(st.sampled_from("ab\nü🚀"), max_size=30))
def test_edits_between_texts_give_the_other_text(old: str, new: str) -> None:
    from lsprotocol import types as t

    from mblint.server.convert import range_of

    lines = Lines(old, "utf-16")
    for edits in ((edit_between("/x.py", old, new),), edits_by_line("/x.py", old, new)):
        assert applied(old, [t.TextEdit(range_of(edit.span, lines), edit.text) for edit in edits]) == new


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b%20c/%C3%BC.py", "/a/b c/ü.py"),
        ("file://localhost/a.py", "/a.py"),
        ("file:///c%3A/x/y.py", "c:/x/y.py"),
        ("untitled:Untitled-1", None),
        ("git:/a.py?x", None),
        ("file:///a%00.py", None),
        ("http://[::1", None),
        ("", None),
    ],
)
def test_paths_of_uris(uri: str, path: str | None) -> None:
    assert path_of(uri) == path


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).filter(lambda name: name not in (".", "..")))
def test_uris_of_paths_lead_back(name: str) -> None:
    path = "/tmp/" + name.replace("/", "_")
    assert path_of(uri_of(path)) == path


def test_lone_surrogates_become_what_a_file_can_hold() -> None:
    assert clean("a\ud800b🚀") == "a\ufffdb🚀"
    document = open_document("untitled:Neu 1", "python", 1, "x = '\udfff'", "/nowhere")
    assert document.path == "/nowhere/Neu_1.py" and document.text == "x = '\ufffd'"


MODULE = """import os
from a import b

LIMIT = 3

# about one
def one():
    return LIMIT + two()

def two():
    return b()

@register("three")
def three():
    return 1

def four():
    return globals()["one"]()

TABLE["x"] = 1
"""


def test_a_recipe_depends_on_what_it_mentions_and_on_what_acts() -> None:
    parts = parts_of(MODULE, ast.parse(MODULE))
    texts = MODULE.splitlines()

    def reached(name: str) -> list[str]:
        return [texts[parts.parts[index].last - 1].strip() for index in parts.reached(name)]

    assert reached("two") == ["from a import b", "return b()", "return 1", 'TABLE["x"] = 1']
    assert reached("one") == ["from a import b", "LIMIT = 3", "return LIMIT + two()", "return b()", "return 1", 'TABLE["x"] = 1']
    assert len(reached("four")) == len(parts.parts)
    assert parts.parts[parts.binders["one"][0]].first == 5  # the comment and the blank line above belong to it


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("LIMIT = 3", "LIMIT = 4", {"one", "four"}),
        ("# about one", "# about 1", {"one", "four"}),
        ("return b()", "return b(1)", {"one", "two", "four"}),
        ("return 1", "return 2", {"one", "two", "three", "four"}),
        ("import os", "import sys", {"four"}),
    ],
)
def test_what_a_change_reaches(old: str, new: str, changes: set[str]) -> None:
    before = parts_of(MODULE, ast.parse(MODULE))
    text = MODULE.replace(old, new, 1)
    after = parts_of(text, ast.parse(text))
    names = ("one", "two", "three", "four")
    assert {name for name in names if before.digest(before.reached(name)) != after.digest(after.reached(name))} == changes


def test_two_statements_on_a_line_are_two_parts() -> None:
    text = "a = 1; b = a\ndef f():\n    return b\n"
    parts = parts_of(text, ast.parse(text))
    assert parts.binders == {"a": [0], "b": [1], "f": [2]} and parts.reached("f") == (0, 1, 2)


def test_shifted_lines() -> None:
    shift = Shift("a\nb\nc\nd\n", "a\nx\ny\nc\nd\n")
    assert [shift.line(number) for number in (1, 3, 4, 5)] == [1, 4, 5, 6]
    assert [shift.back(number) for number in (1, 4, 5)] == [1, 3, 4]
    assert 2 <= shift.line(2) <= 3


def test_chains_and_keys() -> None:
    line = "    cfg.model.tensor = cfg.env_vars['NCCL_X'] + other.thing"
    assert chain_at(line, 8) is not None and chain_at(line, 8).path == ()  # type: ignore[union-attr]
    found = chain_at(line, 12)
    assert found is not None and (found.root, found.path, found.start, found.end) == ("cfg", ("model",), 5, 14)
    found = chain_at(line, line.index("NCCL_X") + 3)
    assert found is not None and found.path == ("env_vars", "NCCL_X")
    assert chain_at(line, 2) is None and chain_at("", 1) is None
    function = ast.parse(
        "def f(model_cfg, x: ConfigContainer, y):\n    o = x.optimizer\n    p = o.inner\n    z = base_config()\n    return z"
    ).body[0]
    assert isinstance(function, ast.FunctionDef)
    names = sections(function)
    assert (names["model_cfg"], names["x"], names["o"], names["p"], names["z"]) == (
        ("model",),
        (),
        ("optimizer",),
        ("optimizer", "inner"),
        (),
    )
    assert "y" not in names
    yaml = ["model:", "  # x", "  inner:", "    key: 1", "train:", "  a: 2"]
    assert yaml_path(yaml, 4) == ("model", "inner", "key") and yaml_path(yaml, 6) == ("train", "a") and yaml_path(yaml, 2) is None
    assert override_at("run ++model.a.b=3 train.x=1", 14) == ("model.a.b", 7, 16) and override_at("unmodel.a=3", 5) is None


def test_import_lines() -> None:
    text = "import a.b as c, d\nfrom .x import (\n    y,  # why\n    z as w,\n)\n    from ..up import q\nfrom e import *\n"
    assert imported_names(text, "p.q.m", False) == {"a", "a.b", "d", "p.q.x", "p.q.x.y", "p.q.x.z", "p.up", "p.up.q", "e", "e.*"}
    assert imported_names("from . import x\n", "p.q", True) == {"p.q", "p.q.x"}


def test_the_worker_takes_the_urgent_first_and_replaces_what_waits() -> None:
    import threading

    worker, gate, order = Worker(), threading.Event(), []
    first = worker.submit(gate.wait, EDITED)
    while not first.running():
        pass
    idle = worker.submit(lambda: order.append("idle"), IDLE)
    old = worker.submit(lambda: order.append("old"), EDITED, key="file")
    new = worker.submit(lambda: order.append("new"), EDITED, key="file")
    assert not worker.waits(QUESTION) and worker.waits(EDITED)
    asked = worker.submit(lambda: order.append("asked"), QUESTION)
    gone = worker.submit(lambda: order.append("gone"), QUESTION)
    assert gone.cancel() and worker.waits(QUESTION)
    failing = worker.submit(lambda: 1 // 0, QUESTION)
    gate.set()
    for future in (idle, new, asked):
        future.result(10)
    assert order == ["asked", "new", "idle"] and old.cancelled()
    assert isinstance(failing.exception(10), ZeroDivisionError)
    worker.close()
    assert worker.submit(lambda: 1, QUESTION).cancelled()
