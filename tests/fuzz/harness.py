"""Fuzzes the readers and the expression parser: `python -m tests.fuzz.harness TARGET [SECONDS]`.

With atheris installed it is guided by coverage (`pip install atheris`); without it, inputs are random changes of seeds. A
target may refuse its input with the errors that it documents; anything else, and an input that takes seconds, is a defect.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ..hostile.texts import SHELL, YAML

SLOW = 5.0
"""Seconds of processor time after which an input counts as a defect."""


def python(data: bytes) -> None:
    from mblint.evaluate.source import SourceError, parse_source
    from mblint.launch.discover import recipe_functions
    from mblint.read.comments import read_comments

    try:
        text, tree = parse_source("a.py", data)
    except SourceError:
        return
    recipe_functions(tree)
    read_comments(text, "a.py")


def yaml(data: bytes) -> None:
    from mblint.launch.yaml_files import read_yaml_file
    from mblint.read.comments import read_comments

    text = "# mblint: recipe=llama3_8b_pretrain_config\n" + data.decode("utf-8", "replace")
    read_yaml_file(text, "/repo/a.yaml")
    read_comments(text, "a.yaml")


def shell(data: bytes) -> None:
    from mblint.launch.script import read_script
    from mblint.read.comments import read_comments

    text = data.decode("utf-8", "replace") + "\ntorchrun --nproc_per_node=8 scripts/training/run_recipe.py --recipe r_pretrain_config\n"
    read_script(text, "/repo/a.sh")
    read_comments(text, "a.sh")


def overrides(data: bytes) -> None:
    from mblint.read import hydra

    try:
        hydra.parse_override(data.decode("utf-8", "replace"))
    except hydra.HydraError:
        return


def interpolations(data: bytes) -> None:
    from mblint.read.interpolation import InterpolationError, parse_interpolation

    try:
        parse_interpolation("${" + data.decode("utf-8", "replace"))
    except InterpolationError:
        return


def expressions(data: bytes) -> None:
    from mblint.facts.view import View
    from mblint.ruleset.examples import FlatLaunch
    from mblint.ruleset.expression import ExpressionError, compile_expression

    try:
        condition = compile_expression(data.decode("utf-8", "replace"))
    except ExpressionError:
        return
    condition.test(View(FlatLaunch(values={"model.a": 2, "model.b": [1, 2], "model.c": "text"})))


def settings(data: bytes) -> None:
    from mblint.errors import UserError
    from mblint.settings_file import read_text

    try:
        read_text(data.decode("utf-8", "replace"), Path("mblint.toml"), Path("."))
    except UserError:
        return


def launches(data: bytes) -> None:
    from mblint.errors import UserError
    from mblint.launch.lines import parse_launches

    try:
        list(parse_launches(data.decode("utf-8", "replace").splitlines(), "list.jsonl"))
    except UserError:
        return


TARGETS: dict[str, tuple[Callable[[bytes], None], list[str]]] = {
    "python": (python, ["def a_config() -> 'X':\n    return f(x)['a']  # mblint: ignore[MB101]\n", "class A(B):\n  x: int = 1\n"]),
    "yaml": (yaml, [text for text in YAML.values() if isinstance(text, str) and len(text) < 2_000]),
    "shell": (shell, [text for text in SHELL.values() if isinstance(text, str) and len(text) < 2_000]),
    "overrides": (overrides, ["a.b=[1,{c:2}]", "+a='x y'", "~a", "a=${b}", "a@b:c=1,2", "x=cast(1)", 'a="\\""']),
    "interpolations": (interpolations, ["a.b}", "oc.env:A,b}", ".a[b].c}", "a:[1,'x'],{b:2}}", "${a}b}"]),
    "expressions": (
        expressions,
        ["model.a is None and model.b % 2 == 0", "any(x > 1 for x in model.b)", "(model.a if model.c else 2) == [1, 'a']"],
    ),
    "settings": (settings, ['ignore = ["MB101"]\n[[launches]]\nrecipe = "a"\n', "[tool.mblint]\nfail-on = 'error'\n"]),
    "launches": (launches, ['{"id": "1", "recipe": "a:b", "set": {"model.a": 1}, "world_size": 8}', '{"recipe": null, "env": {"A": "1"}}']),
}


def mutated(source: random.Random, seeds: list[bytes]) -> bytes:
    """A seed with some bytes changed, taken out, doubled, or taken from another seed."""
    data = bytearray(source.choice(seeds))
    for _ in range(1 + source.randrange(6)):
        at = source.randrange(len(data) + 1)
        match source.randrange(6):
            case 0:
                data[at : at + 1] = bytes([source.randrange(256)])
            case 1:
                del data[at : at + 1 + source.randrange(8)]
            case 2:
                data[at:at] = data[at : at + source.randrange(20)] * source.randrange(1, 4)
            case 3:
                other = source.choice(seeds)
                begin = source.randrange(len(other) + 1)
                data[at:at] = other[begin : begin + source.randrange(30)]
            case 4:
                data[at:at] = source.choice(
                    [b"(", b"[", b"{", b"$(", b"${", b'"', b"'", b"\\", b"\0", b"\n", b"&a ", b"*a", b"<<: ", b"9" * 40, b"\xff"]
                )
            case _:
                data[at:at] = bytes([data[at - 1]]) * source.randrange(1, 60) if data else b"x"
    return bytes(data[:20_000])


def fuzz(name: str, seconds: float, seed: int = 0) -> int:
    """Random inputs for some time; how many. Raises what the target raises, with the input in a note."""
    run, texts = TARGETS[name]
    source = random.Random(seed)
    seeds = [text.encode() for text in texts]
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        data = mutated(source, seeds)
        begin = time.process_time()
        try:
            run(data)
        except Exception as error:
            error.add_note(f"{name}: {data!r}")
            raise
        assert time.process_time() - begin < SLOW, f"{name} takes long: {data!r}"
        count += 1
    return count


def main() -> None:
    name, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
    try:
        import atheris  # type: ignore[import-not-found]
    except ImportError:
        print(f"{name}: {fuzz(name, seconds)} inputs, without coverage")
        return
    run, _ = TARGETS[name]
    with atheris.instrument_imports(include=["mblint"]):
        run(b"")
    atheris.Setup([sys.argv[0], f"-max_total_time={int(seconds)}", "-max_len=4096", f"-timeout={int(SLOW * 4)}"], run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
