"""Edits of shell text; bash says which words a command gets before and after."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mblint.fix import shell
from mblint.fix.apply import apply_edits
from mblint.fix.text import Edits, Refusal, Text
from mblint.read.hydra import parse_override
from mblint.read.span import Span

from .kit import changed_lines, span_of

PATH = "/repo/run.sh"
BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="needs bash as the oracle")

SCRIPT = """#!/bin/bash
#SBATCH --nodes=8
# comment
set -euo pipefail

export NCCL_NVLS_ENABLE=0  # nvls
export CUDA="32"

show --nproc 8 run.py \\
    -tp 4 --pp=2 \\
    model.tp=4 \\
    model.pp=$PP \\
    "model.mods=[a,b]" \\
    'model.x=y' \\
    model.sp=True \\
    model.cg=true \\
    model.z="q"   
    train.gbs=${GBS:-512} \\
    train.mbs=1

show a.py model.a=1 model.b=2
"""


def edited(source: str, done: Edits | Refusal) -> str:
    assert isinstance(done, Edits), done
    return apply_edits(PATH, source, done.edits)


def words(source: str) -> list[str]:
    """The arguments that `show` gets in a script, by bash."""
    assert BASH is not None
    script = "show() { printf '%s\\0' \"$@\"; }\nexport PP=3\n" + source.replace("set -euo pipefail", "")
    done = subprocess.run([BASH, "-c", script], capture_output=True, check=False, env={"PATH": "/usr/bin:/bin"})
    return done.stdout.decode().split("\0")[:-1]


@needs_bash
@pytest.mark.parametrize(
    ("piece", "value", "word", "grade"),
    [
        ("model.tp=4", 8, "model.tp=8", "safe"),
        ("model.pp=$PP", 8, "model.pp=8", "unsafe"),
        ('"model.mods=[a,b]"', ["a", "c d"], "model.mods=[a,'c d']", "safe"),
        ("'model.x=y'", "it's", "model.x='it\\'s'", "safe"),
        ('model.z="q"', None, "model.z=null", "safe"),
        ("--pp=2", 8, "--pp=8", "safe"),
        ("model.sp=True", False, "model.sp=False", "safe"),
        ("model.cg=true", False, "model.cg=false", "safe"),
        ("model.a=1", ["a", "b"], "model.a=[a,b]", "safe"),
        ("model.b=2", 'a $b `c` "d"', "model.b='a $b `c` \"d\"'", "safe"),
    ],
)
def test_a_value_on_the_command_line_changes(piece: str, value: Any, word: str, grade: str) -> None:
    done = shell.replace_value(Text(PATH, SCRIPT), span_of(SCRIPT, piece, PATH), value)
    text = edited(SCRIPT, done)
    assert word in words(text)
    assert len(words(text)) == len(words(SCRIPT))
    assert isinstance(done, Edits) and bool(done.unsafe) == (grade == "unsafe")
    assert len(changed_lines(SCRIPT, text)) == 2


def test_the_default_of_an_expansion_changes_and_stays_a_default() -> None:
    done = shell.replace_value(Text(PATH, SCRIPT), span_of(SCRIPT, "train.gbs=${GBS:-512}", PATH), 8)
    assert changed_lines(SCRIPT, edited(SCRIPT, done))[1] == "+    train.gbs=${GBS:-8} \\"
    assert isinstance(done, Edits) and done.unsafe


def test_exports_are_changed_or_added_beside_the_others() -> None:
    text = Text(PATH, SCRIPT)
    assert changed_lines(SCRIPT, edited(SCRIPT, shell.set_export(text, "CUDA", 1))) == [
        '-export CUDA="32"',
        '+export CUDA="1"',
    ]
    added = edited(SCRIPT, shell.set_export(text, "NEW", "a b"))
    assert "export CUDA=\"32\"\nexport NEW='a b'\n" in added
    bare = "#!/bin/bash\n#SBATCH -N 1\nset -e\n\nrun x\n"
    assert edited(bare, shell.set_export(Text(PATH, bare), "A", 1)).startswith("#!/bin/bash\n#SBATCH -N 1\nset -e\nexport A=1\n")


@needs_bash
def test_an_override_is_added_in_the_style_of_the_command() -> None:
    start, end = SCRIPT.index("    train.gbs"), SCRIPT.index("\n\nshow a.py")
    span = Text(PATH, SCRIPT).span(start, end)
    text = edited(SCRIPT, shell.add_override(Text(PATH, SCRIPT), span, "model.q=[a]"))
    assert "    train.mbs=1 \\\n    'model.q=[a]'\n" in text
    text = edited(
        SCRIPT,
        shell.add_override(Text(PATH, SCRIPT), span_of(SCRIPT, "show a.py model.a=1 model.b=2", PATH), "q=1"),
    )
    assert words(text)[-1] == "q=1"


@needs_bash
@pytest.mark.parametrize(
    "tail",
    ["", " > log", " 2>&1 | tee log", " &", " # note", "; echo done", " && echo done", " \\\n    2> err", ' "$@" > log', " <<< x"],
)
def test_an_override_is_added_before_what_follows_the_arguments(tail: str, tmp_path: Path) -> None:
    script = f"show a.py model.a=1{tail}\nwait\n"
    text = edited(script, shell.add_override(Text(PATH, script), span_of(script, "show", PATH), "q=1"))
    assert BASH is not None
    given = "show() { printf '%s\\n' \"$@\" >&9; }\nexec 9> given\n"
    subprocess.run([BASH, "-c", given + text], cwd=tmp_path, check=False, env={"PATH": "/usr/bin:/bin"})
    assert (tmp_path / "given").read_text() == "a.py\nmodel.a=1\nq=1\n"


@needs_bash
@pytest.mark.parametrize("piece", ["model.a=1", "model.b=2", "model.pp=$PP", "model.tp=4", "--pp=2"])
def test_a_word_is_taken_out(piece: str) -> None:
    text = edited(SCRIPT, shell.delete_word(Text(PATH, SCRIPT), span_of(SCRIPT, piece, PATH)))
    gone = [word for word in words(SCRIPT) if word not in words(text)]
    assert gone == [piece.replace("$PP", "3")]


def test_the_last_word_takes_the_backslash_before_it_along() -> None:
    text = edited(SCRIPT, shell.delete_word(Text(PATH, SCRIPT), span_of(SCRIPT, "train.mbs=1", PATH)))
    assert changed_lines(SCRIPT, text) == [
        "-    train.gbs=${GBS:-512} \\",
        "-    train.mbs=1",
        "+    train.gbs=${GBS:-512}",
    ]


@needs_bash
def test_a_lost_backslash_comes_back() -> None:
    assert "train.mbs=1" not in words(SCRIPT)
    line = SCRIPT[: SCRIPT.index('model.z="q"')].count("\n") + 1
    text = edited(SCRIPT, shell.mend_continuation(Text(PATH, SCRIPT), line))
    assert {"train.gbs=512", "train.mbs=1"} <= set(words(text))
    blank = "run a \\ \n    b=1\n"
    assert edited(blank, shell.mend_continuation(Text(PATH, blank), 1)) == "run a \\\n    b=1\n"
    assert isinstance(shell.mend_continuation(Text(PATH, SCRIPT), line - 1), Refusal)
    assert isinstance(shell.mend_continuation(Text(PATH, "run a # c\nb=1\n"), 1), Refusal)
    assert isinstance(shell.mend_continuation(Text(PATH, "run a"), 1), Refusal)


def test_an_override_gets_another_key() -> None:
    span = span_of(SCRIPT, '"model.mods=[a,b]"', PATH)
    text = edited(SCRIPT, shell.rename_word(Text(PATH, SCRIPT), span, "model.mods", "model.modules"))
    assert '"model.modules=[a,b]"' in text
    assert isinstance(shell.rename_word(Text(PATH, SCRIPT), Span(PATH, 1, 1, 1, 4), "a.b", "c"), Refusal)


values = (
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(min_codepoint=32, max_codepoint=0x24F, blacklist_categories=("Cs", "Cc")), max_size=10)
    | st.sampled_from(
        [
            "null",
            "1e5",
            "a b",
            "x:y",
            "$HOME",
            "`id`",
            "it's",
            'say "x"',
            "a,b",
            "[x]",
            "\\",
            "a\\'b",
            "#",
            "!",
            "*",
        ]
    )
)


@needs_bash
@settings(max_examples=60, deadline=None)
@given(values | st.lists(values, max_size=3), st.sampled_from(["k=1", '"k=1"', "'k=1'", 'k="1"', "k='1'"]))
def test_any_value_reaches_the_program_and_is_read_back(value: Any, word: str) -> None:
    source = f"show {word} next\n"
    done = shell.replace_value(Text(PATH, source), span_of(source, word, PATH), value)
    got = words(edited(source, done))
    assert len(got) == 2 and got[1] == "next"
    parsed = parse_override(got[0])
    assert parsed.key == "k"
    assert parsed.value == value and type(parsed.value) is type(value)
