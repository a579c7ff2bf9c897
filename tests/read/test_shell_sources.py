"""Words of scripts whose values are written elsewhere: the place of the word, and those of the values."""

from __future__ import annotations

import pytest

from mblint.launch.script import read_script
from mblint.read.span import Span

RUN = "python scripts/training/run_recipe.py --recipe r_pretrain_config"


def covered(text: str, span: Span) -> str:
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:n])) for n in range(len(lines) + 1)]
    return text[starts[span.line - 1] + span.column - 1 : starts[span.end_line - 1] + span.end_column - 1]


def last_override(text: str) -> tuple[str, str, list[tuple[str, str]]]:
    """The last override, what its place covers, and the places and sentences of its sources."""
    override = read_script(text, "/repo/run.sh").launches[0].overrides[-1]
    assert override.span is not None
    return override.text, covered(text, override.span), [(covered(text, s.span), s.message) for s in override.span.sources]


@pytest.mark.parametrize(
    ("text", "value", "place", "sources"),
    [
        (f"{RUN} model.a=4\n", "model.a=4", "model.a=4", []),
        (f"TP=4\n{RUN} model.a=$TP\n", "model.a=4", "model.a=$TP", [("TP=4", "TP=4 is set here")]),
        (f"export TP=4\n{RUN} model.a=${{TP}} \\\n  x\n", "model.a=4", "model.a=${TP}", [("TP=4", "TP=4 is set here")]),
        (f"TP=16\n{RUN} 'model.a='\"$TP\"\n", "model.a=16", "model.a='\"$TP", [("TP=16", "TP=16 is set here")]),
        (f'N="8"\n{RUN} "model.a=$N"\n', "model.a=8", "model.a=$N", [('N="8', "N=8 is set here")]),
        (f"A=1\nB=2\n{RUN} model.a=[$A,$B]\n", "model.a=[1,2]", "model.a=[$A,$B]", [("A=1", "A=1 is set here"), ("B=2", "B=2 is set here")]),
        (f"{RUN} model.a=${{TP:-4}}\n", "model.a=4", "model.a=${TP:-4}", []),
        (f"TP=${{TP:-4}}\n{RUN} model.a=$TP\n", "model.a=4", "model.a=$TP", [("4", "4 is the default of TP")]),
        (f"A=8\n{RUN} model.a=$((A * 2)),5\n", "model.a=16,5", "model.a=$((A * 2)),5", []),
        (f"W=(\n  model.b=1\n  model.a=$TP\n)\n{RUN} ${{W[@]}}\n", None, "model.a=$TP", []),
        (f"TP=4\nW=(model.a=$TP)\n{RUN} ${{W[@]}}\n", "model.a=4", "model.a=$TP", [("TP=4", "TP=4 is set here")]),
        (f'TP=4\nW="model.b=1 model.a=$TP"\n{RUN} $W\n', "model.a=4", "model.a=$TP", [("TP=4", "TP=4 is set here")]),
        (f'EXTRA="model.a=4"\n{RUN} $EXTRA\n', "model.a=4", "model.a=4", []),
        (f"go() {{ {RUN} model.a=$1; }}\ngo 4\n", "model.a=4", "model.a=$1", [("4", "4 comes from here")]),
        (f"{RUN} model.a=a\\ b\n", "model.a=a b", "model.a=a\\ b", []),
    ],
)  # fmt: skip
def test_places_of_a_word(text: str, value: str | None, place: str, sources: list[tuple[str, str]]) -> None:
    given, covers, found = last_override(text)
    assert value is None or given == value
    assert (covers, found) == (place, sources)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("TP=4\n{run} -tp $TP\n", "TP=4"),
        ("TP='4'\n{run} -tp $TP\n", "TP='4"),
        ("{run} -tp 4\n", "4"),
        ("W='-tp 4'\n{run} $W\n", "4"),
        ("W='-tp 4 -pp 2'\n{run} $W\n", "4"),
    ],
)
def test_place_of_an_option_that_a_variable_gives(text: str, place: str) -> None:
    """As a whole it stands in the assignment, which is shown with the name."""
    script = text.format(run=RUN)
    flag = read_script(script, "/repo/run.sh").launches[0].flags["tensor_model_parallel_size"]
    assert flag.value == 4 and flag.span is not None and covered(script, flag.span) == place
