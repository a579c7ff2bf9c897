"""Edits of YAML: the text keeps its comments, anchors and order; a loader sees the intended value only."""

from __future__ import annotations

from typing import Any

import pytest
import yaml as pyyaml
from hypothesis import given, settings
from hypothesis import strategies as st

from mblint.fix import yaml
from mblint.fix.apply import apply_edits
from mblint.fix.check import comments
from mblint.fix.text import Edits, Refusal, Text
from mblint.fix.yaml_layout import find_paths, read_layout
from mblint.fix.yaml_render import render_yaml
from mblint.read.yaml import Scalar, read_yaml, scalar_value

from .kit import changed_lines

PATH = "/repo/conf/run.yaml"

FILE = """# top é
defaults: &base   # shared
  tp: &four 4
  pp: *four
  names: [a, 'b', "c"]
  deep:
    x: 1   # one
    y: 2

model:
  <<: *base
  cp: 1  # cp
  mods:
    - core_attn  # keep
    - mlp
    - moe
  flow: {a: 1, b: {c: 2}}
teacher: *base   # teach
empty:
opt: {<<: *base, lr: 1.0e-4}
text: |
  hello # no comment
  there

train:
  gbs: "128"
  flag: True
  q: 'x'
"""


def edited(source: str, done: Edits | Refusal) -> str:
    assert isinstance(done, Edits), done
    return apply_edits(PATH, source, done.edits)


def set_key(source: str, path: str, value: Any) -> str:
    return edited(source, yaml.set_key(Text(PATH, source), path.split("."), value))


def at(data: Any, path: str) -> Any:
    for part in path.split("."):
        data = data[part]
    return data


@pytest.mark.parametrize(
    ("path", "value", "lines"),
    [
        ("model.cp", 8, ["-  cp: 1  # cp", "+  cp: 8  # cp"]),
        ("model.tp", 8, ["+  tp: 8"]),
        ("defaults.pp", 8, ["-  pp: *four", "+  pp: 8"]),
        ("defaults.tp", 8, ["-  tp: &four 4", "-  pp: *four", "+  tp: 8", "+  pp: &four 4"]),
        ("teacher.tp", 8, ["-teacher: *base   # teach", "+teacher:   # teach", "+  <<: *base", "+  tp: 8"]),
        ("model.deep.x", 8, ["-  deep:", "+  deep: &deep", "+  deep:", "+    <<: *deep", "+    x: 8"]),
        ("opt.lr", 1e-5, ["-opt: {<<: *base, lr: 1.0e-4}", "+opt: {<<: *base, lr: 1.0e-05}"]),
        ("opt.tp", 1, ["-opt: {<<: *base, lr: 1.0e-4}", "+opt: {<<: *base, lr: 1.0e-4, tp: 1}"]),
        ("empty.a.b", "null", ["+  a:", '+    b: "null"']),
        ("model.mods", ["core_attn", "moe"], ["-    - mlp"]),
        ("model.mods", ["core_attn", "mlp", "moe", "z z"], ["+    - z z"]),
        ("model.flow.b.c", None, ["-  flow: {a: 1, b: {c: 2}}", "+  flow: {a: 1, b: {c: null}}"]),
        ("defaults.names", ["a", "c"], ["-  names: [a, 'b', \"c\"]", '+  names: [a, "c"]']),
        ("text", "q", ["-text: |", "-  hello # no comment", "-  there", "+text: q"]),
        ("train.flag", False, ["-  flag: True", "+  flag: False"]),
        ("train.q", "it's", ["-  q: 'x'", "+  q: 'it''s'"]),
        ("train.new", "3e-4", ['+  new: "3e-4"']),
        ("brand.new.x", 2, ["+brand:", "+  new:", "+    x: 2"]),
    ],
)
def test_a_key_is_set(path: str, value: Any, lines: list[str]) -> None:
    text = set_key(FILE, path, value)
    assert changed_lines(FILE, text) == lines
    assert at(pyyaml.safe_load(text), path) == value


def test_an_override_of_a_merged_value_leaves_the_others_alone() -> None:
    before = pyyaml.safe_load(FILE)
    for path in ("model.tp", "teacher.tp", "opt.tp", "model.deep.x", "teacher.deep.x", "opt.deep.x"):
        now = pyyaml.safe_load(set_key(FILE, path, 99))
        assert at(now, path) == 99
        section, inner = path.split(".", 1)
        at(now, path.rpartition(".")[0])[path.rpartition(".")[2]] = at(before, path)
        assert now == before, (section, inner)


def test_a_change_that_others_see_is_not_safe() -> None:
    done = yaml.set_key(Text(PATH, FILE), ["defaults", "deep", "x"], 5)
    assert isinstance(done, Edits) and done.unsafe == ("also changes what uses *base",)
    done = yaml.set_key(Text(PATH, "a: ${oc.env:TP,4}\n"), ["a"], 8)
    assert isinstance(done, Edits) and "interpolation" in done.unsafe[0]


@pytest.mark.parametrize(
    ("source", "path", "expected"),
    [
        ("a: 1", "b.c", "a: 1\nb:\n  c: 9"),
        ("a:\r\n    b: 1\r\nc: 2", "a.z.q", "a:\r\n    b: 1\r\n    z:\r\n        q: 9\r\nc: 2"),
        ("", "a.b", "a:\n  b: 9\n"),
        ("# only\n", "a", "# only\na: 9\n"),
        ("- a: 1\n  b: 2\n- c: 3\n", "0.z", "- a: 1\n  b: 2\n  z: 9\n- c: 3\n"),
        ("a: !!str 5\n", "a", "a: 9\n"),
        ("b: &x 5\nc: [*x, 1]\n", "b", "b: 9\nc: [&x 5, 1]\n"),
        ("m:\n- a\n- b\nz: 1\n", "m", "m: 9\nz: 1\n"),
        ("a:  # why\n  b: 1\n", "a.c", "a:  # why\n  b: 1\n  c: 9\n"),
        ("a: {}\n", "a.c", "a: {c: 9}\n"),
        ("a: ~  # none\n", "a.c", "a:  # none\n  c: 9\n"),
        ('"a b": {"x": 1}\n', "a b.x", '"a b": {"x": 9}\n'),
    ],
)
def test_layouts(source: str, path: str, expected: str) -> None:
    assert set_key(source, path, 9) == expected


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("train.flag", ["-  flag: True"]),
        ("train.q", ["-  q: 'x'"]),
        ("model.flow.a", ["-  flow: {a: 1, b: {c: 2}}", "+  flow: {b: {c: 2}}"]),
        ("model.flow.b.c", ["-  flow: {a: 1, b: {c: 2}}", "+  flow: {a: 1, b: {}}"]),
        ("defaults.pp", ["-  pp: *four"]),
    ],
)
def test_a_key_is_taken_out(path: str, lines: list[str]) -> None:
    text = edited(FILE, yaml.delete_key(Text(PATH, FILE), path.split(".")))
    assert changed_lines(FILE, text) == lines
    with pytest.raises(KeyError):
        at(pyyaml.safe_load(text), path)


def test_the_last_key_of_a_section_leaves_an_empty_mapping_not_a_null() -> None:
    source = "model:\n  tp: 4  # four\ntrain:\n  x: 1\n"
    text = edited(source, yaml.delete_key(Text(PATH, source), ["model", "tp"]))
    assert pyyaml.safe_load(text) == {"model": {}, "train": {"x": 1}}


@pytest.mark.parametrize("path", ["defaults.tp", "model.tp", "teacher.tp", "nowhere"])
def test_what_is_written_elsewhere_is_not_taken_out(path: str) -> None:
    assert isinstance(yaml.delete_key(Text(PATH, FILE), path.split(".")), Refusal)


def test_a_key_is_renamed_in_its_place() -> None:
    text = edited(FILE, yaml.rename_key(Text(PATH, FILE), ["train", "flag"], "flags"))
    assert changed_lines(FILE, text) == ["-  flag: True", "+  flags: True"]
    assert isinstance(yaml.rename_key(Text(PATH, FILE), ["train", "flag"], "q"), Refusal)


def test_every_way_to_a_value_is_found() -> None:
    text = Text(PATH, FILE)
    start = FILE.index("1   # one")
    paths = [".".join(path) for _, path in find_paths(text, text.span(start, start + 1))]
    assert paths == ["defaults.deep.x", "model.deep.x", "teacher.deep.x", "opt.deep.x"]
    start = FILE.index("cp: 1")
    assert find_paths(text, text.span(start, start + 5)) == [(0, ("model", "cp"))]


@pytest.mark.parametrize("source", ["a: [", "a: b: c", "\t- x", "a: *nowhere", "[" * 500 + "]" * 500, "a: \x00"])
def test_bad_yaml_is_refused(source: str) -> None:
    assert isinstance(yaml.set_key(Text(PATH, source), ["a"], 1), Refusal)


def test_an_alias_bomb_is_edited_without_expanding_it() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 40)]
    source = "\n".join([*lines, "model: {tp: 1}"]) + "\n"
    assert set_key(source, "model.tp", 2).endswith("model: {tp: 2}\n")


plain_values = (
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False)
    | st.text(max_size=12)
    | st.sampled_from(
        [
            "null",
            "True",
            "3e-4",
            "1_000",
            "0x10",
            "2024-01-01",
            "a: b",
            "- x",
            "#",
            "~",
            "${x}",
            "yes",
            "=",
            "<<",
            "1:30",
        ]
    )
)


@settings(max_examples=400, deadline=None)
@given(plain_values | st.lists(plain_values, max_size=3))
def test_rendered_values_read_back_equal_in_both_dialects(value: Any) -> None:
    source = render_yaml(value)
    assert isinstance(source, str)
    assert pyyaml.safe_load(f"a: {source}\nb: [{source}]")["a"] == value
    root = read_yaml(f"a: {source}\n", PATH)[0].root
    node = root.pairs[0][1]  # type: ignore[union-attr]
    items = node.items if isinstance(value, list) else [node]  # type: ignore[union-attr]
    wanted = value if isinstance(value, list) else [value]
    for item, expected in zip(items, wanted, strict=True):
        assert isinstance(item, Scalar)
        got = scalar_value(item, "omegaconf")
        assert got == expected and type(got) is type(expected)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A YAML override file in random layout, and the paths of its values."""
    step = draw(st.sampled_from([2, 4]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    lines: list[str] = ["# é head"] if draw(st.booleans()) else []
    paths: list[str] = []
    for section in draw(st.lists(st.sampled_from(["model", "train", "ddp", "optimizer"]), min_size=1, unique=True)):
        leaves = draw(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=4, unique=True))
        comment = draw(st.sampled_from(["", "  # why", " #: {x}"]))
        scalars = [draw(st.sampled_from(["1", "x y", "'q'", '"a # b"', "3.5", "null", "[1, 2]", "${a.b}"])) for _ in leaves]
        if draw(st.booleans()):
            scalars = [f'"{scalar}"' if "$" in scalar else scalar for scalar in scalars]
            lines.append(f"{section}: {{{', '.join(f'{k}: {v}' for k, v in zip(leaves, scalars, strict=True))}}}{comment}")
        else:
            lines.append(f"{section}:{comment}")
            for leaf, scalar in zip(leaves, scalars, strict=True):
                if draw(st.integers(0, 5)) == 0:
                    lines += [draw(st.sampled_from(["", "# note", " " * step + "# inner"]))]
                lines.append(f"{' ' * step}{leaf}: {scalar}{draw(st.sampled_from(['', '  # c', ' # d: e']))}")
        paths += [f"{section}.{leaf}" for leaf in leaves]
    return end.join(lines) + draw(st.sampled_from(["", end])), paths


@settings(max_examples=300, deadline=None)
@given(files(), st.sampled_from([8, "new", None, 1e-5, [1, 2, 3], ["x"], True]), st.data())
def test_random_files_change_in_one_value_only(file: tuple[str, list[str]], value: Any, data: st.DataObject) -> None:
    source, paths = file
    path = data.draw(st.sampled_from([*paths, "model.zz", "train.zz", "peft.zz"]))
    text = set_key(source, path, value)
    expected = pyyaml.safe_load(source)
    section, leaf = path.split(".")
    expected.setdefault(section, {})[leaf] = value
    assert pyyaml.safe_load(text) == expected
    assert comments(PATH, text) == comments(PATH, source)
    assert "\r\n" not in source or "\n" not in text.replace("\r\n", "")
    removed = [line for line in changed_lines(source, text) if line[0] == "-"]
    assert len(removed) <= 1 or ("\n" not in source[-1:] and len(removed) <= 2)


@settings(max_examples=200, deadline=None)
@given(files(), st.data())
def test_random_files_lose_one_key_only(file: tuple[str, list[str]], data: st.DataObject) -> None:
    source, paths = file
    path = data.draw(st.sampled_from(paths))
    text = edited(source, yaml.delete_key(Text(PATH, source), path.split(".")))
    expected = pyyaml.safe_load(source)
    section, leaf = path.split(".")
    del expected[section][leaf]
    assert pyyaml.safe_load(text) == expected
    assert not isinstance(read_layout(text), Refusal)
