"""Comments that are written for findings."""

from __future__ import annotations

import pytest

from mblint.findings import Finding
from mblint.ignores import Ignored, add_ignores
from mblint.read.span import Span

KNOWN = {"MB203": "vpp-not-dividing-layers", "MB101": "tp-raised-over-parent"}


def _add(path: str, text: str, *places: tuple[int, str], reason: str = "") -> Ignored:
    findings = [Finding(rule, KNOWN[rule], "warning", "slow", "m", Span(path, line, 1, line, 2)) for line, rule in places]
    return add_ignores(findings, {path: text}.get, KNOWN, reason)


@pytest.mark.parametrize(
    ("text", "line", "after"),
    [
        ("x = 1\n", 1, "x = 1  # mblint: ignore[MB203]\n"),
        ("x = 1  # why\n", 1, "x = 1  # why  # mblint: ignore[MB203]\n"),
        ("x = 1", 1, "x = 1  # mblint: ignore[MB203]"),
        ("f(\r\n    a=1,\r\n)\r\n", 2, "f(\r\n    a=1,  # mblint: ignore[MB203]\r\n)\r\n"),
        ("x = '''\nb\n'''\n", 1, "# mblint: ignore[MB203]\nx = '''\nb\n'''\n"),
        ("if y:\n    x = 1 + \\\n        2\n", 2, "if y:\n    # mblint: ignore[MB203]\n    x = 1 + \\\n        2\n"),
        ("def f():\n    return 1\n", 1, "def f():  # mblint: ignore[MB203]\n    return 1\n"),
        ("x = 1  # mblint: ignore[MB101] old\n", 1, "x = 1  # mblint: ignore[MB101, MB203] old\n"),
        (f"x = {'1 + ' * 30}1\n", 1, f"# mblint: ignore[MB203]\nx = {'1 + ' * 30}1\n"),
    ],
)
def test_python(text: str, line: int, after: str) -> None:
    result = _add("/p/a.py", text, (line, "MB203"))
    assert result.texts == {"/p/a.py": after}
    assert len(result.done) == 1 and not result.left


def test_several_rules_on_one_line_with_a_reason() -> None:
    result = _add("/p/a.py", "x = 1\n", (1, "MB203"), (1, "MB101"), (1, "MB203"), reason="see #7\nrun of May")
    assert result.texts["/p/a.py"] == "x = 1  # mblint: ignore[MB101, MB203] see 7 run of May\n"
    assert len(result.done) == 3


def test_many_places_of_one_file() -> None:
    text = "a = '''\n1'''\nb = 2\n\nc = '''\n3'''\n"
    result = _add("/p/a.py", text, (1, "MB203"), (3, "MB101"), (5, "MB203"))
    assert not result.left and result.texts["/p/a.py"].count("mblint:") == 3


def test_yaml_and_shell_get_lines_of_their_own() -> None:
    yaml = _add("/p/a.yaml", "model:\n  x: 1\n", (2, "MB203"))
    assert yaml.texts["/p/a.yaml"] == "model:\n  # mblint: ignore[MB203]\n  x: 1\n" and not yaml.left
    shell = _add("/p/a.sh", "torchrun x.py \\\n  a=1 \\\n  b=2\n", (2, "MB203"))
    assert shell.texts["/p/a.sh"] == "# mblint: ignore[MB203]\ntorchrun x.py \\\n  a=1 \\\n  b=2\n" and not shell.left


def test_what_cannot_be_ignored_is_left() -> None:
    finding = Finding("MB903", "unused-suppression", "warning", "dead", "m", Span("/p/a.py", 1))
    placeless = Finding("MB203", "x-y", "warning", "slow", "m", None)
    foreign = Finding("MB203", "x-y", "warning", "slow", "m", Span("/lib/b.py", 1))
    result = add_ignores([finding, placeless, foreign], {"/p/a.py": "x = 1\n"}.get, KNOWN)
    assert not result.texts and len(result.left) == 3


def test_broken_source_is_left_alone() -> None:
    result = _add("/p/a.py", "x = (\n", (1, "MB203"))
    assert not result.texts and result.left


def test_a_block_text_is_not_torn_apart() -> None:
    text = "run: |\n  first\n  second\n"
    result = _add("/p/a.yaml", text, (3, "MB203"))
    assert not result.texts and result.left
