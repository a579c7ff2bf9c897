"""Random recipes: whatever their formatting, an edit changes the intended value and nothing else."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mblint.findings import Fix
from mblint.fix.text import Text

from .kit import ABSENT, PATH, Write, after, difference, plan, run

KEYS = [
    "model.tp",
    "model.pp",
    "model.name",
    "train.gbs",
    "train.mbs",
    "ddp.overlap",
    "optimizer.lr",
    "dataset.path",
]
VALUES: list[Any] = [
    None,
    True,
    False,
    1,
    8,
    -3,
    10_000,
    1e-5,
    0.5,
    "plain",
    "it's",
    'say "x"',
    "é",
    "a\\b",
    ["a", "b"],
    [],
]
NEW: list[Any] = [*VALUES, 7, "new", ["a"], ["a", "b", "c"], 2.5]


@dataclass(frozen=True)
class Recipe:
    """A program; `writes` gives for each key the offsets of the piece that writes it last."""

    source: str
    writes: dict[str, tuple[int, int]]
    values: dict[str, Any]
    kinds: dict[str, str]


@st.composite
def literals(draw: st.DrawFn, value: Any) -> str:
    if isinstance(value, str):
        body = value.replace("\\", "\\\\")
        choices = [repr(value)]
        if '"' not in value:
            choices += [f'"{body}"', f'"""{body}"""']
        if "'" not in value:
            choices.append(f"'{body}'")
        text = draw(st.sampled_from(choices))
    elif isinstance(value, list):
        quote = draw(st.sampled_from("'\""))
        items = [f"{quote}{item}{quote}" for item in value]
        text = draw(
            st.sampled_from(
                [
                    f"[{', '.join(items)}]",
                    f"[{', '.join(items)}{',' if items else ''}]",
                    "[\n        " + ",\n        ".join(items) + ("," if items else "") + "\n    ]",
                    "[  # items\n        " + ", ".join(items) + "\n    ]",
                ]
            )
        )
    else:
        text = repr(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1000:
            text = draw(st.sampled_from([text, f"{value:_}", hex(value)]))
    return draw(st.sampled_from([text, text, f"({text})", f"( {text} )", f"(  # why\n        {text}\n    )"]))


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    indent = draw(st.sampled_from(["    ", "  ", "\t"]))
    lines: list[str] = ["# -*- coding: utf-8 -*-", "", "@keep"] if draw(st.booleans()) else ["# ü"]
    lines += ["def other():", f"{indent}return base()", "", "def recipe():"]
    if draw(st.booleans()):
        lines.append(f'{indent}"""Doc é."""')
    lines.append(f"{indent}cfg = base()")
    alias = {"model": "m"} if draw(st.booleans()) else {}
    if alias:
        lines.append(f"{indent}m = cfg.model")
    source = "\n".join(lines) + "\n"
    writes: dict[str, tuple[int, int]] = {}
    values: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=8))
    for key in keys:
        section, leaf = key.split(".")
        owner = draw(st.sampled_from([f"cfg.{section}", alias.get(section, f"cfg.{section}")]))
        target = draw(st.sampled_from([f"{owner}.{leaf}", f"{owner} . {leaf}" if section == "train" else f"{owner}.{leaf}"]))
        value = draw(st.sampled_from(VALUES))
        literal = draw(literals(value))
        kind = draw(
            st.sampled_from(
                [
                    "plain",
                    "plain",
                    "plain",
                    "annotated",
                    "tuple",
                    "chain",
                    "setattr",
                    "loop",
                    "if",
                    "semicolon",
                ]
            )
        )
        comment = draw(st.sampled_from(["", "", "  # note", " # =: é \"'", ";"]))
        if draw(st.integers(0, 4)) == 0:
            source += draw(st.sampled_from(["\n", f"{indent}# {key} = 99\n", "# left\n"]))
        if kind == "plain":
            head, tail = f"{indent}{target}{draw(st.sampled_from([' = ', '=', '  =  ']))}", comment
        elif kind == "annotated":
            head, tail = f"{indent}{owner}.{leaf}: object = ", comment
        elif kind == "tuple":
            head, tail = f"{indent}cfg.checkpoint.a, {target} = 1, ", comment
        elif kind == "chain":
            head, tail = f"{indent}cfg.checkpoint.b = {target} = ", comment
        elif kind == "setattr":
            head, tail = f'{indent}setattr({owner}, "{leaf}", ', ")" + comment
        elif kind == "loop":
            head, tail = f"{indent}for k, v in {{'{leaf}': ", f"}}.items(): setattr({owner}, k, v)"
        elif kind == "if":
            head, tail = f"{indent}if cfg:\n{indent}{indent}{target} = ", comment
        else:
            head, tail = f"{indent}cfg.checkpoint.c = 1; {target} = ", ""
        start = len(source) + len(head)
        statement = len(source) + len(head) - len(head.lstrip())
        if kind == "if":
            statement = len(source) + len(f"{indent}if cfg:\n{indent}{indent}")
        if kind == "semicolon":
            statement += len("cfg.checkpoint.c = 1; ")
        source += head + literal
        end = len(source) + (1 if kind == "setattr" else 0)
        source += tail + "\n"
        whole = draw(st.booleans()) and kind != "loop"
        opening = literal.startswith("(") and not whole and draw(st.booleans())
        if opening and "#" not in literal:
            inner = literal.strip("()").strip()
            offset = literal.index(inner)
            if not inner.startswith("("):
                writes[key] = (start + offset, start + offset + len(inner))
                values[key], kinds[key] = value, kind
                continue
        writes[key] = (statement, end) if whole else (start, start + len(literal))
        values[key], kinds[key] = value, kind
    source += f"{indent}return cfg" + draw(st.sampled_from(["\n", "", "  # done\n"]))
    if draw(st.booleans()):
        # Offsets move by one for every line before them.
        writes = {key: (a + source.count("\n", 0, a), b + source.count("\n", 0, b)) for key, (a, b) in writes.items()}
        source = source.replace("\n", "\r\n")
    return Recipe(source, writes, values, kinds)


def differing(one: ast.AST, other: ast.AST) -> list[tuple[Any, Any]]:
    """The smallest pairs of nodes in which two trees differ."""
    if type(one) is not type(other):
        return [(one, other)]
    found: list[tuple[Any, Any]] = []
    for name in one._fields:
        a, b = getattr(one, name, None), getattr(other, name, None)
        if isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return [(one, other)]
            for x, y in zip(a, b, strict=True):
                found += differing(x, y) if isinstance(x, ast.AST) else ([(one, other)] if x != y else [])
        elif isinstance(a, ast.AST) and isinstance(b, ast.AST):
            found += differing(a, b)
        elif a != b or type(a) is not type(b):
            found.append((one, other))
    return found


def write_of(recipe: Recipe, key: str) -> Write:
    return Write(Text(PATH, recipe.source).span(*recipe.writes[key]), recipe.values[key])


@settings(max_examples=200, deadline=None)
@given(recipes(), st.sampled_from(NEW), st.data())
def test_a_new_value_lands_and_nothing_else_changes(recipe: Recipe, value: Any, data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(recipe.writes)))
    if value == recipe.values[key] and type(value) is type(recipe.values[key]):
        return
    fix = plan(recipe.source, {key: value}, {key: write_of(recipe, key)})
    text = after(recipe.source, fix)
    changed = {name: new for name, (_, new) in difference(run(recipe.source), run(text)).items()}
    assert changed == ({key: value} if value != recipe.values[key] else {})
    assert type(run(text)[key]) is type(value)
    trees = differing(ast.parse(recipe.source), ast.parse(text))
    if recipe.kinds[key] != "chain":
        assert len(trees) == 1
        assert isinstance(trees[0][1], ast.Constant | ast.List | ast.UnaryOp)
        assert ast.literal_eval(trees[0][1]) == value or value in (ast.literal_eval(trees[0][1]), [value])
    start, end = (Text(PATH, recipe.source).position(offset)[0] for offset in recipe.writes[key])
    lines, now = recipe.source.split("\n"), text.split("\n")
    assert now[: start - 1] == lines[: start - 1]
    tail = len(lines) - end
    assert tail == 0 or now[-tail:] == lines[-tail:]
    assert "\r\n" not in recipe.source or "\n" not in text.replace("\r\n", "")
    assert isinstance(fix, Fix)
    if fix.safety == "unsafe":
        assert "#" in recipe.source[slice(*recipe.writes[key])]


@settings(max_examples=80, deadline=None)
@given(recipes(), st.data())
def test_a_deletion_takes_one_setting_out(recipe: Recipe, data: st.DataObject) -> None:
    keys = [key for key in sorted(recipe.writes) if recipe.kinds[key] != "loop"]
    single = [key for key in keys if sum(recipe.source.count(part) for part in (key.split(".")[1],)) == 1]
    if not single:
        return
    key = data.draw(st.sampled_from(single))
    fix = plan(recipe.source, {key: ABSENT}, {key: write_of(recipe, key)})
    text = after(recipe.source, fix)
    assert set(difference(run(recipe.source), run(text))) == {key}
    assert key not in run(text)
    lost = recipe.source.count("#") - text.count("#")
    assert isinstance(fix, Fix) and (fix.safety == "unsafe") == (lost > 0)


@settings(max_examples=80, deadline=None)
@given(recipes(), st.sampled_from(["model.new", "train.new", "validation.new"]), st.sampled_from(NEW))
def test_an_addition_sets_one_key_more(recipe: Recipe, key: str, value: Any) -> None:
    text = after(recipe.source, plan(recipe.source, {key: value}))
    assert difference(run(recipe.source), run(text)) == {key: (ABSENT, value)}
    before, now = recipe.source.split("\n"), text.split("\n")
    assert len(now) == len(before) + 1
    position = next((i for i, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), len(before))
    assert before[position:] == now[position + 1 :] or before == now[:-1] or now[position + 1] == before[position]


@settings(max_examples=60, deadline=None)
@given(recipes(), st.data())
def test_a_renaming_moves_one_value(recipe: Recipe, data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(recipe.writes)))
    if recipe.source.count(key.split(".")[1]) != 1:
        return
    new = key.split(".")[0] + ".renamed"
    text = after(
        recipe.source,
        plan(recipe.source, {key: ABSENT, new: recipe.values[key]}, {key: write_of(recipe, key)}),
    )
    assert difference(run(recipe.source), run(text)) == {
        key: (recipe.values[key], ABSENT),
        new: (ABSENT, recipe.values[key]),
    }
    assert text.count("#") == recipe.source.count("#")
