"""Applying edits in memory: order, conflicts, diffs that git takes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mblint.findings import TextEdit
from mblint.fix.apply import EditConflict, apply_all, apply_edits, merge, unified_diff
from mblint.fix.text import Text
from mblint.read.span import Span


def edit(source: str, start: int, end: int, new: str, path: str = "/f") -> TextEdit:
    return TextEdit(Text(path, source).span(start, end), new)


def test_edits_apply_in_place_order_whatever_order_they_come_in() -> None:
    source = "one two three\n"
    edits = [
        edit(source, 8, 13, "3"),
        edit(source, 0, 3, "1"),
        edit(source, 4, 4, "a"),
        edit(source, 4, 4, "b"),
    ]
    assert apply_edits("/f", source, edits) == "1 abtwo 3\n"
    assert apply_edits("/f", source, [*edits, edits[0]]) == "1 abtwo 3\n"


@pytest.mark.parametrize(
    ("first", "second", "collide"),
    [
        ((0, 3), (3, 5), False),
        ((0, 3), (2, 5), True),
        ((0, 3), (0, 3), True),
        ((0, 3), (0, 0), False),
        ((0, 3), (3, 3), False),
        ((0, 3), (1, 1), True),
        ((1, 1), (1, 1), False),
        ((0, 5), (1, 2), True),
    ],
)
def test_what_collides(first: tuple[int, int], second: tuple[int, int], collide: bool) -> None:
    source = "abcdefgh"
    edits = [edit(source, *first, "X"), edit(source, *second, "Y")]
    assert bool(merge({"/f": source}, [[edits[0]], [edits[1]]]).conflicts) is collide
    if collide:
        with pytest.raises(EditConflict, match="/f:1:"):
            apply_edits("/f", source, edits)
    else:
        apply_edits("/f", source, edits)


def test_sets_are_taken_whole_or_not_at_all() -> None:
    sources = {"/f": "abc", "/g": "abc"}
    one = [edit("abc", 0, 1, "X"), edit("abc", 0, 1, "X", "/g")]
    two = [edit("abc", 2, 3, "Z"), edit("abc", 0, 2, "Y", "/g")]
    three = [edit("abc", 2, 3, "W")]
    merged = merge(sources, [one, two, three, one])
    assert merged.accepted == (0, 2, 3)
    assert merged.conflicts == ((1, 0),)
    assert apply_all(sources, [*one, *three, *one]) == {"/f": "XbW", "/g": "Xbc"}


@settings(max_examples=200, deadline=None)
@given(st.text("ab\r\n\x0c\u2028é", max_size=30), st.data())
def test_offsets_and_positions_are_each_others_inverse(source: str, data: st.DataObject) -> None:
    text = Text("/f", source)
    offset = data.draw(st.integers(0, len(source)))
    line, column = text.position(offset)
    if offset and source[offset - 1 : offset + 1] == "\r\n":
        return  # no place in a text: between the two characters of a line ending
    assert text.offset(line, column) == offset or source[offset - 1 : offset] in ("\r", "\n")
    assert text.line_count == source.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    assert text.bounds(Span("/f", line))[1] == text.line_end(line)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("a\nb", "a\nb\nc"),
        ("a\nb\n", "a\nb"),
        ("a\r\nb\r\n", "a\r\nB\r\n"),
        ("", "x\n"),
        ("x\x0cy\u2028z\n", "x\x0cY\u2028z\n"),
        ("--- a\n+++ b\n", "--- c\n+++ d\n"),
    ],
)
def test_git_applies_the_diff(tmp_path: Path, before: str, after: str) -> None:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    file = tmp_path / "sub dir" / "file.py"
    file.parent.mkdir()
    file.write_bytes(before.encode())
    diff = unified_diff(str(file), before, after, root=str(tmp_path))
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "--unsafe-paths", "-"], cwd=tmp_path, input=diff.encode(), check=True)
    assert file.read_bytes() == after.encode()


def test_a_colored_diff_is_the_same_diff() -> None:
    import re

    plain = unified_diff("/r/f.py", "a\nb\n", "a\nc\n", root="/r")
    colored = unified_diff("/r/f.py", "a\nb\n", "a\nc\n", root="/r", color=True)
    assert re.sub(r"\x1b\[\d*m", "", colored) == plain
    assert "\x1b[31m-b" in colored and "\x1b[32m+c" in colored
    assert unified_diff("/r/f.py", "a", "a") == ""
    assert "\x1b" not in unified_diff("/r/\x1b[31m.py", "a\n", "b\n", root="/r")
