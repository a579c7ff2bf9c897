"""Comments and directives are found where they are, and nowhere else."""

from __future__ import annotations

import io
import tokenize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mblint.read.comments import read_comments, read_directives


def texts(source: str, path: str) -> list[str]:
    return [comment.text for comment in read_comments(source, path)]


def test_python_comments_have_exact_places() -> None:
    source = "# é first\r\nx = '# no'  # yes\r\ndef f(\r\n    a=1,  # in\r\n):\r\n    '''# no\r\n    # no'''\r\n\t# own\r\n"
    found = read_comments(source, "/f.py")
    assert [c.text for c in found] == ["# é first", "# yes", "# in", "# own"]
    assert [(c.span.line, c.span.column, c.alone) for c in found] == [
        (1, 1, True),
        (2, 13, False),
        (4, 11, False),
        (8, 2, True),
    ]
    lines = source.split("\r\n")
    for comment in found:
        assert lines[comment.span.line - 1][comment.span.column - 1 : comment.span.end_column - 1] == comment.text


def test_yaml_comments() -> None:
    source = (
        "# top\na: '# no'  # yes é\nb: x#no\nc: |\n  # no\n  text # no\n\n# after\nd: [1, # in\n 2]\ne: # empty\nf: \"a\n  # no\n  b\"\n"
    )
    assert texts(source, "/f.yaml") == ["# top", "# yes é", "# after", "# in", "# empty"]
    assert texts("a: [  # open\n", "/f.yml") == ["# open"]


def test_shell_comments() -> None:
    source = (
        "#!/bin/bash\n# one\necho '# no' \"# no\" a#no $#  # two\nx=${#y} # three\necho \\# no;# four\n"
        "cat <<'EOF' # five\n# six\ndon't # seven\nEOF\necho 'a\n# no\n' # eight\n"
    )
    assert texts(source, "/run.sh") == [
        "#!/bin/bash",
        "# one",
        "# two",
        "# three",
        "# four",
        "# five",
        "# six",
        "# seven",
        "# eight",
    ]


def test_directives_are_taken_apart() -> None:
    source = "x = 1  # noqa: E501  # mblint: ignore[MB101, vpp-not-dividing-layers] we measured it  # more\n"
    (found,) = read_directives(source, "/f.py")
    assert [name for name, _ in found.ids] == ["MB101", "vpp-not-dividing-layers"]
    assert found.reason == "we measured it" and found.word == "ignore" and not found.alone and found.problem is None
    for name, span in found.ids:
        assert source[span.column - 1 : span.end_column - 1] == name
    assert source[found.span.column - 1 : found.span.end_column - 1] == "# mblint: ignore[MB101, vpp-not-dividing-layers] we measured it"


@pytest.mark.parametrize(
    ("comment", "word", "problem"),
    [
        ("# mblint: ignore-file[MB1]", "ignore-file", None),
        ("#mblint:ignore[MB1]", "ignore", None),
        ("#  mblint:  Ignore [MB1 MB2] why", "ignore", None),
        ("# mblint: ignore", "ignore", "names no rule"),
        ("# mblint: ignore[]", "ignore", "names no rule"),
        ("# mblint: ignore MB1", "ignore", "names no rule"),
        ("# mblint: ingore[MB1]", "ingore", "did you mean `ignore`"),
        ("# mblint: disable[MB1]", "disable", "no directive"),
    ],
)
def test_forms_of_directives(comment: str, word: str, problem: str | None) -> None:
    (found,) = read_directives(f"{comment}\n", "/f.py")
    assert found.word == word and found.alone
    assert (found.problem is None) if problem is None else (problem in (found.problem or ""))


@pytest.mark.parametrize("source", ["# mblint: recipe=a.b:c\n", "x = '# mblint: ignore[MB1]'\n", "# about mblint ignore[MB1]\n"])
def test_what_is_no_suppression(source: str) -> None:
    assert read_directives(source, "/f.py") == []


def test_broken_python_still_gives_the_comments_before_the_break() -> None:
    assert [d.word for d in read_directives("# mblint: ignore[MB1]\nx = (\n'", "/f.py")] == ["ignore"]


@settings(max_examples=300, deadline=None)
@given(st.text("#'\"\\ \n\r\ta:{}[]<EOF-|&*!é", max_size=40), st.sampled_from(["/a.py", "/a.yaml", "/a.sh"]))
def test_no_text_breaks_the_scan(source: str, path: str) -> None:
    for comment in read_comments(source, path):
        assert comment.text.startswith("#") and "\n" not in comment.text
        assert comment.span.line == comment.span.end_line
        assert comment.span.end_column - comment.span.column == len(comment.text)
    if path == "/a.py":
        try:
            tokens = list(tokenize.generate_tokens(io.StringIO(source, newline="").readline))
        except (tokenize.TokenError, SyntaxError):
            return
        assert len([t for t in tokens if t.type == tokenize.COMMENT]) == len(read_comments(source, path))
