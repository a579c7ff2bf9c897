"""Edits of Python recipes: what changes in the text, what the recipe then makes, and the grade."""

from __future__ import annotations

from typing import Any

import pytest

from mblint.findings import Fix
from mblint.fix.plan import plan_fix
from mblint.fix.text import Refusal
from mblint.read.span import Span

from .kit import ABSENT, PATH, Write, after, changed_lines, difference, plan, run, span_of

RECIPE = '''"""Recipes."""

import torch


def recipe():
    """A recipe."""
    cfg = base()
    m = cfg.model

    cfg.model.tp = 2  # tensor
    m.pp = 4
    cfg.model.names = [
        "a",  # first
        "b",
        "c",
    ]
    cfg.train.gbs, cfg.train.mbs = (512, 1)
    cfg.ddp.overlap = cfg.optimizer.overlap = True  # both
    cfg.optimizer.dtype = torch.float32
    cfg.model.seq = SIZE
    cfg.model.backend = AttnBackend.auto
    cfg.model.big = 10_000
    for k, v in {"cp": 4, 'ep': 2}.items():
        setattr(cfg.model, k, v)
    for name, val in [("etp", 1)]: setattr(cfg.model, name, val)
    for obj in (cfg.ddp, cfg.optimizer):
        obj.bucket = 1
    setattr(cfg.model, "vp", 3)
    if cfg.model.tp == 2:
        cfg.model.branch = 1
    if cfg: cfg.model.one = 1; cfg.model.two = 2
    if cfg:
        cfg.model.only = 1
    cfg.model.aa = 1; cfg.model.bb = 2; cfg.model.cc = 3
    def inner(c):
        c.model.inn = 5
    inner(cfg)
    cfg.model.aug = 1
    cfg.model.aug += 1
    cfg.model.ann: int = (7)
    cfg.model.long = (
        "a"
        "b"
    )
    # environment
    cfg.env_vars = {
        **COMMON,
        # allocator
        "ALLOC": "x:True",
        "NCCL": 0,
    }
    return cfg
'''

CONSTRUCTED = """def recipe(seq: int = 2048):
    return ConfigContainer(
        model=Provider(
            tp=2,  # tensor
            seq=seq,
            pp=4  # pipeline
        ),
        train=TrainingConfig(gbs=5), env_vars={}
    )
"""


def check(
    source: str,
    changes: dict[str, Any],
    writes: dict[str, Any] | None,
    lines: list[str],
    grade: str = "safe",
    expect: dict[str, Any] | None = None,
    **kw: Any,
) -> None:
    fix = plan(source, changes, writes, **kw)
    text = after(source, fix)
    assert changed_lines(source, text) == lines
    assert isinstance(fix, Fix)
    assert fix.safety == grade
    wanted = changes if expect is None else expect
    assert {key: new for key, (_, new) in difference(run(source), run(text)).items()} == wanted


@pytest.mark.parametrize("piece", ["2", "cfg.model.tp", "cfg.model.tp = 2"])
def test_a_value_changes_whatever_the_span_covers(piece: str) -> None:
    start = RECIPE.index("cfg.model.tp = 2")
    offset = start + (len("cfg.model.tp = ") if piece == "2" else 0)
    line = RECIPE[:start].count("\n") + 1
    column = offset - RECIPE.rindex("\n", 0, offset)
    write = Write(Span(PATH, line, column, line, column + len(piece)), 2)
    lines = ["-    cfg.model.tp = 2  # tensor", "+    cfg.model.tp = 8  # tensor"]
    check(RECIPE, {"model.tp": 8}, {"model.tp": write}, lines, expect={"model.tp": 8, "model.branch": ABSENT})


@pytest.mark.parametrize(
    ("key", "piece", "value", "line"),
    [
        ("model.pp", "m.pp = 4", 8, "m.pp = 8"),
        ("train.gbs", "cfg.train.gbs", 64, "cfg.train.gbs, cfg.train.mbs = (64, 1)"),
        (
            "train.mbs",
            "cfg.train.gbs, cfg.train.mbs = (512, 1)",
            2,
            "cfg.train.gbs, cfg.train.mbs = (512, 2)",
        ),
        ("optimizer.dtype", "torch.float32", "torch.bfloat16", "cfg.optimizer.dtype = torch.bfloat16"),
        ("model.big", "10_000", 12345, "cfg.model.big = 12_345"),
        ("model.cp", "4", 8, "for k, v in {\"cp\": 8, 'ep': 2}.items():"),
        ("model.vp", 'setattr(cfg.model, "vp", 3)', None, 'setattr(cfg.model, "vp", None)'),
        ("model.two", "cfg.model.two = 2", 5, "if cfg: cfg.model.one = 1; cfg.model.two = 5"),
        ("model.ann", "(7)", 8, "cfg.model.ann: int = 8"),
        ("env_vars.ALLOC", '"x:True"', "y", '"ALLOC": "y",'),
        ("env_vars.NCCL", '"NCCL": 0', "1", '"NCCL": 1,'),
    ],
)
def test_the_written_value_is_replaced_in_its_place(key: str, piece: str, value: Any, line: str) -> None:
    nth = 1 if piece == "4" else 0
    write = Write(span_of(RECIPE, piece, nth=nth), None)
    fix = plan(RECIPE, {key: value}, {key: write})
    text = after(RECIPE, fix)
    assert [new[1:].strip() for new in changed_lines(RECIPE, text) if new[0] == "+"] == [line]
    now = run(text)[key]
    assert now == (int(value) if key == "env_vars.NCCL" else value)
    assert isinstance(fix, Fix) and fix.safety == "safe"


def test_an_enum_member_keeps_the_spelling_of_its_class() -> None:
    writes = {"model.backend": "AttnBackend.auto"}
    text = after(RECIPE, plan(RECIPE, {"model.backend": "AttnBackend.flash"}, writes))
    assert changed_lines(RECIPE, text)[1] == "+    cfg.model.backend = AttnBackend.flash"


def test_one_element_goes_and_the_others_stand_as_they_were() -> None:
    writes = {"model.names": "cfg.model.names"}
    check(RECIPE, {"model.names": ["a", "c"]}, writes, ['-        "b",'])
    check(RECIPE, {"model.names": ["a", "b", "c", "d"]}, writes, ['+        "d",'])
    check(RECIPE, {"model.names": ["b", "c"]}, writes, ['-        "a",  # first'], "unsafe")


def test_other_lists_are_written_anew_and_lose_their_comments_only_when_asked() -> None:
    fix = plan(RECIPE, {"model.names": ["x"]}, {"model.names": "cfg.model.names"})
    assert isinstance(fix, Fix) and fix.safety == "unsafe"
    assert '    cfg.model.names = ["x"]\n' in after(RECIPE, fix)


def test_one_target_of_a_chain_gets_a_line_of_its_own() -> None:
    writes = {"ddp.overlap": "cfg.ddp.overlap = cfg.optimizer.overlap = True"}
    lines = [
        "-    cfg.ddp.overlap = cfg.optimizer.overlap = True  # both",
        "+    cfg.optimizer.overlap = True  # both",
        "+    cfg.ddp.overlap = False",
    ]
    check(RECIPE, {"ddp.overlap": False}, writes, lines)
    writes = {"optimizer.overlap": "cfg.ddp.overlap = cfg.optimizer.overlap = True"}
    lines = [
        "-    cfg.ddp.overlap = cfg.optimizer.overlap = True  # both",
        "+    cfg.ddp.overlap = True  # both",
        "+    cfg.optimizer.overlap = False",
    ]
    check(RECIPE, {"optimizer.overlap": False}, writes, lines)


@pytest.mark.parametrize(
    ("key", "piece"),
    [
        ("ddp.bucket", "obj.bucket = 1"),  # serves two objects
        ("model.inn", "c.model.inn = 5"),  # a nested function
        ("model.aug", "cfg.model.aug += 1"),  # an in-place operation
    ],
)
def test_a_place_that_serves_more_than_one_write_is_left_and_the_key_set_after_it(key: str, piece: str) -> None:
    section, name = key.split(".")
    check(RECIPE, {key: 8}, {key: piece}, [f"+    cfg.{section}.{name} = 8"])


def test_an_expression_is_overwritten_only_when_asked() -> None:
    lines = ["-    cfg.model.seq = SIZE", "+    cfg.model.seq = 8192"]
    check(RECIPE, {"model.seq": 8192}, {"model.seq": "cfg.model.seq = SIZE"}, lines, "unsafe")


def test_new_settings_stand_beside_their_section_in_its_style() -> None:
    lines = [
        "+    cfg.train.new = 's'",
        "+    cfg.model.new = 1",
        "+    cfg.model.other = 1e-05",
        "+    cfg.checkpoint.new = None",
    ]
    source = RECIPE.replace('"', "'").replace("'''", '"""')
    changes = {"model.new": 1, "model.other": 1e-5, "train.new": "s", "checkpoint.new": None}
    check(source, changes, None, lines)
    short = "def recipe():\n    cfg = base()\n    m = cfg.model\n    m.tp = 4\n    cfg.train.x = 1\n    return cfg\n"
    check(short, {"model.pp": 2}, None, ["+    m.pp = 2"])


def test_a_key_that_a_helper_sets_too_is_set_after_the_helper() -> None:
    source = (
        "def set_tp(cfg):\n    cfg.model.tp = 1\n\n\ndef recipe():\n    cfg = base()\n    cfg.model.pp = 4\n"
        "    set_tp(cfg)\n    return cfg\n"
    )
    text = after(source, plan(source, {"model.tp": 2}, {"model.tp": "cfg.model.tp = 1"}))
    assert run(text)["model.tp"] == 2
    assert text == source.replace("    return cfg", "    cfg.model.tp = 2\n    return cfg")
    text = after(source, plan(source, {"model.cp": 2}))
    assert changed_lines(source, text) == ["+    cfg.model.cp = 2"]
    assert text.index("cfg.model.cp") < text.index("set_tp(cfg)\n    return")


def test_a_section_that_is_replaced_is_not_written_before() -> None:
    source = "def recipe():\n    cfg = base()\n    cfg.model.pp = 4\n    cfg.model = helper(base().model)\n    return cfg\n"
    assert run(after(source, plan(source, {"model.tp": 2})))["model.tp"] == 2


def test_at_end_nothing_can_overwrite_the_new_setting() -> None:
    source = "def recipe():\n    cfg = base()\n    cfg.model.tp = 4\n    helper(cfg)\n    # done\n    return cfg\n"
    text = after(source, plan(source, {"model.pp": 2}, at_end=True))
    assert text == source.replace("helper(cfg)\n", "helper(cfg)\n    cfg.model.pp = 2\n")


def test_a_returned_call_gets_a_name() -> None:
    source = "def recipe():\n    return base()  # plain\n"
    changes = {"model.x": 1, "model.y": "b", "env_vars.Q": "1"}
    text = after(source, plan(source, changes))
    assert text == (
        "def recipe():\n    cfg = base()  # plain\n    cfg.model.x = 1\n"
        '    cfg.model.y = "b"\n    cfg.env_vars["Q"] = "1"\n    return cfg\n'
    )
    assert {key: new for key, (_, new) in difference(run(source), run(text)).items()} == changes


def test_keywords_are_added_changed_and_deleted_in_constructor_calls() -> None:
    lines = [
        "-            pp=4  # pipeline",
        "+            pp=4,  # pipeline",
        "+            x=1,",
        '+            z="b"',
        "-        train=TrainingConfig(gbs=5), env_vars={}",
        '+        train=TrainingConfig(gbs=5, mbs=1), env_vars={"Q": "1"}',
    ]
    changes = {"model.x": 1, "model.z": "b", "train.mbs": 1, "env_vars.Q": "1"}
    check(CONSTRUCTED, changes, None, lines)
    lines = ["-            tp=2,  # tensor", "+            tp=8,  # tensor"]
    check(CONSTRUCTED, {"model.tp": 8}, {"model.tp": "tp=2"}, lines)
    fix = plan(CONSTRUCTED, {"model.seq": ABSENT}, {"model.seq": "seq=seq"})
    assert isinstance(fix, Fix) and fix.safety == "unsafe"
    assert after(CONSTRUCTED, fix) == CONSTRUCTED.replace("            seq=seq,\n", "")


def test_a_default_of_the_recipe_itself_is_changed() -> None:
    lines = ["-def recipe(seq: int = 2048):", "+def recipe(seq: int = 4096):"]
    check(CONSTRUCTED, {"model.seq": 4096}, {"model.seq": "2048"}, lines)


def test_a_variable_section_is_known_by_the_call_it_is_handed_to() -> None:
    source = "def recipe():\n    model = Provider(tp=2)\n    cfg = ConfigContainer(\n        model=model,\n    )\n    return cfg\n"
    check(source, {"model.pp": 4}, None, ["-    model = Provider(tp=2)", "+    model = Provider(tp=2, pp=4)"])
    source = source.replace("    cfg =", "    model.vp = 1\n    cfg =")
    check(source, {"model.pp": 4}, None, ["+    model.pp = 4"])


@pytest.mark.parametrize(
    ("key", "piece", "lines", "grade"),
    [
        ("model.tp", "cfg.model.tp = 2", ["-    cfg.model.tp = 2  # tensor"], "unsafe"),
        ("model.pp", "m.pp = 4", ["-    m.pp = 4"], "safe"),
        (
            "train.gbs",
            "cfg.train.gbs",
            ["-    cfg.train.gbs, cfg.train.mbs = (512, 1)", "+    cfg.train.mbs = 1"],
            "safe",
        ),
        ("model.vp", 'setattr(cfg.model, "vp", 3)', ['-    setattr(cfg.model, "vp", 3)'], "safe"),
        ("model.only", "cfg.model.only = 1", ["-        cfg.model.only = 1", "+        pass"], "safe"),
        (
            "model.one",
            "cfg.model.one = 1",
            ["-    if cfg: cfg.model.one = 1; cfg.model.two = 2", "+    if cfg: cfg.model.two = 2"],
            "safe",
        ),
        (
            "model.cc",
            "cfg.model.cc = 3",
            [
                "-    cfg.model.aa = 1; cfg.model.bb = 2; cfg.model.cc = 3",
                "+    cfg.model.aa = 1; cfg.model.bb = 2",
            ],
            "safe",
        ),
        ("model.seq", "cfg.model.seq = SIZE", ["-    cfg.model.seq = SIZE"], "unsafe"),
        ("env_vars.ALLOC", '"ALLOC": "x:True"', ['-        "ALLOC": "x:True",'], "safe"),
    ],
)
def test_a_write_is_taken_out(key: str, piece: str, lines: list[str], grade: str) -> None:
    expect = {key: ABSENT, **({"model.branch": ABSENT} if key == "model.tp" else {})}
    source = RECIPE.replace("cfg.model.tp == 2", "getattr(cfg.model, 'tp', 0) == 2")
    check(source, {key: ABSENT}, {key: piece}, lines, grade, expect)


def test_a_statement_over_several_lines_is_taken_out_whole() -> None:
    fix = plan(RECIPE, {"model.long": ABSENT}, {"model.long": "cfg.model.long"})
    assert after(RECIPE, fix) == RECIPE.replace('    cfg.model.long = (\n        "a"\n        "b"\n    )\n', "")


def test_all_writes_of_a_dead_key_go() -> None:
    source = "def recipe():\n    cfg = base()\n    cfg.model.x = 1\n    if cfg:\n        cfg.model.x = 2\n    return cfg\n"
    writes = {
        "model.x": [
            Write(span_of(source, "cfg.model.x = 1"), 1),
            Write(span_of(source, "cfg.model.x = 2"), 2),
        ]
    }
    text = after(source, plan(source, {"model.x": ABSENT}, writes))
    assert text == "def recipe():\n    cfg = base()\n    if cfg:\n        pass\n    return cfg\n"


def test_an_entry_is_added_to_the_environment_in_its_style() -> None:
    check(RECIPE, {"env_vars.NEW": 1}, None, ['+        "NEW": 1,'])
    check(
        RECIPE,
        {"env_vars.NEW": "a:b", "env_vars.B": "x"},
        None,
        ['+        "NEW": "a:b",', '+        "B": "x",'],
    )
    inline = "def recipe():\n    cfg = base()\n    cfg.env_vars = {**COMMON}\n    return cfg\n"
    text = after(inline, plan(inline, {"env_vars.A": "1"}))
    assert 'cfg.env_vars = {**COMMON, "A": "1"}' in text
    bare = "def recipe():\n    cfg = base()\n    return cfg\n"
    assert '    cfg.env_vars["A"] = "1"\n' in after(bare, plan(bare, {"env_vars.A": "1"}))
    text = after(bare, plan(bare, {"env_vars.A": "1"}, env_missing=True))
    assert '    cfg.env_vars = {"A": "1"}\n' in text


def test_an_entry_that_a_later_table_overwrites_is_not_the_one_to_change() -> None:
    source = 'def recipe():\n    cfg = base()\n    cfg.env_vars = {"COMMON": "5", **COMMON}\n    return cfg\n'
    text = after(source, plan(source, {"env_vars.COMMON": "7"}))
    assert run(text)["env_vars.COMMON"] == "7"
    assert '{"COMMON": "5", **COMMON, "COMMON": "7"}' in text


def test_a_variable_from_a_shared_table_is_unset_in_the_recipe() -> None:
    text = after(RECIPE, plan(RECIPE, {"env_vars.COMMON": ABSENT}))
    assert changed_lines(RECIPE, text) == ['+    cfg.env_vars.pop("COMMON", None)']
    assert "env_vars.COMMON" not in run(text)


def test_a_renamed_key_keeps_its_line() -> None:
    writes = {"model.tp": Write(span_of(RECIPE, "cfg.model.tp = 2"), 2)}
    fix = plan(RECIPE, {"model.tp": ABSENT, "model.tensor": 2}, writes)
    text = after(RECIPE, fix)
    assert changed_lines(RECIPE, text)[1] == "+    cfg.model.tensor = 2  # tensor"
    assert isinstance(fix, Fix) and fix.safety == "safe"
    text = after(RECIPE, plan(RECIPE, {"model.tp": ABSENT, "train.tensor": 2}, writes))
    assert changed_lines(RECIPE, text)[1] == "+    cfg.train.tensor = 2  # tensor"
    writes = {"model.seq": Write(span_of(RECIPE, "cfg.model.seq = SIZE"), 4096)}
    text = after(RECIPE, plan(RECIPE, {"model.seq": ABSENT, "model.length": 4096}, writes))
    assert changed_lines(RECIPE, text)[1] == "+    cfg.model.length = SIZE"
    writes = {"model.pp": Write(span_of(RECIPE, "m.pp = 4"), 4)}
    text = after(RECIPE, plan(RECIPE, {"model.pp": ABSENT, "train.pp": 4}, writes))
    assert difference(run(RECIPE), run(text)) == {"model.pp": (4, ABSENT), "train.pp": (ABSENT, 4)}


def test_a_value_from_elsewhere_is_set_in_the_recipe_and_not_where_it_comes_from() -> None:
    helper = Write(Span("/repo/helpers.py", 3, 5, 3, 20), 4, "helper")
    upstream = Write(Span("/site/megatron/bridge/recipes/common.py", 9, 1, 9, 4), 4, "upstream", False)
    for write in (helper, upstream):
        fix = plan(RECIPE, {"dataset.seq": 1}, {"dataset.seq": write})
        assert isinstance(fix, Fix) and {edit.span.path for edit in fix.edits} == {PATH}
        refused = plan(RECIPE, {"dataset.seq": ABSENT}, {"dataset.seq": write})
        assert isinstance(refused, Refusal)


def test_what_is_needed_is_imported() -> None:
    source = '"""Doc."""\nfrom megatron.bridge.recipes import base\n\n\ndef recipe():\n    cfg = base()\n    return cfg\n'
    hints = {"model.backend": "megatron.core.transformer.enums.AttnBackend", "optimizer.dtype": "torch.dtype"}
    changes = {"model.backend": "AttnBackend.flash", "optimizer.dtype": "torch.bfloat16"}
    text = after(source, plan(source, changes, hints=hints))
    assert "import base\nfrom megatron.core.transformer.enums import AttnBackend\nimport torch\n" in text
    assert "cfg.model.backend = AttnBackend.flash\n    cfg.optimizer.dtype = torch.bfloat16\n" in text
    plain = plan(source, {"optimizer.dtype": "bfloat16"}, hints={"optimizer.dtype": "str"})
    assert 'cfg.optimizer.dtype = "bfloat16"' in after(source, plain)
    assert isinstance(plan(source, {"model.backend": "AttnBackend.flash"}), Refusal)


def test_aliased_imports_are_used() -> None:
    source = "import torch as t\nimport torch.nn.functional as F\n\n\ndef recipe():\n    cfg = base()\n    return cfg\n"
    hints = {"model.act": "Callable"}
    text = after(
        source,
        plan(source, {"model.act": "torch.nn.functional.silu", "model.d": "torch.float16"}, hints=hints),
    )
    assert "cfg.model.act = F.silu\n    cfg.model.d = t.float16\n" in text


def test_line_endings_tabs_marks_and_the_missing_last_line_end_survive() -> None:
    source = (
        '# -*- coding: utf-8 -*-\r\n# ü\r\n@keep\r\ndef recipe(tp: int = 2):\r\n\t"""dö"""\r\n\tcfg = base()\r\n'
        "\tcfg.model.tp = tp\r\n\tcfg.model.s = 'é'  # naïve\r\n\tcfg.train.x = 3\r\n\treturn cfg"
    )
    text = after(
        source,
        plan(
            source,
            {"model.s": "x", "model.new": "é", "train.x": ABSENT},
            {"model.s": "'é'", "train.x": "cfg.train.x = 3"},
        ),
    )
    expected = source.replace("'é'  # naïve\r\n", "'x'  # naïve\r\n\tcfg.model.new = 'é'\r\n")
    assert text == expected.replace("\tcfg.train.x = 3\r\n", "")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "def recipe():\n    cfg = base()\n    if cfg:\n        return base()\n    return cfg\n",
            "one named config",
        ),
        ("def recipe(): return base()\n", "one line"),
        ("def recipe():\n    return {'a': base()}['a']\n", "one named config"),
    ],
)
def test_what_cannot_be_written_is_refused_with_a_reason(source: str, reason: str) -> None:
    refused = plan(source, {"model.x": 1})
    assert isinstance(refused, Refusal)
    assert reason in refused.reason


def test_a_recipe_with_early_returns_gets_the_setting_before_all_of_them() -> None:
    source = "def recipe():\n    cfg = base()\n    if cfg.model:\n        return cfg\n    cfg.train.x = 1\n    return cfg\n"
    text = after(source, plan(source, {"model.x": 1}))
    assert changed_lines(source, text) == ["+    cfg.model.x = 1"]
    assert run(text)["model.x"] == 1


def test_a_form_feed_is_refused_because_libcst_would_move_it() -> None:
    source = "def recipe():\n    cfg = base()\n\x0c\n    cfg.model.x = 1\n    return cfg\n"
    assert isinstance(plan(source, {"model.x": 2}, {"model.x": "cfg.model.x"}), Fix | Refusal)


def test_hostile_sizes_are_refused_not_crashed_on() -> None:
    deep = "(" * 190 + "1" + ")" * 190
    source = f"def recipe():\n    cfg = base()\n    cfg.model.x = {deep}\n    return cfg\n"
    assert isinstance(plan(source, {"model.x": 2}, {"model.x": "cfg.model.x"}), Fix | Refusal)
    chain = "not " * 160 + "1"
    source = f"def recipe():\n    cfg = base()\n    cfg.model.x = {chain}\n    return cfg\n"
    assert isinstance(plan(source, {"model.x": 2}, {"model.x": "cfg.model.x"}), Refusal)


def test_a_value_that_a_call_made_is_overridden_after_the_call_and_the_call_kept() -> None:
    source = "def recipe():\n    cfg = base()\n    cfg.model.pp = 4\n    cfg.model.tp = helper(3)\n    return cfg\n"
    made = Write(span_of(source, "base()"), 1, "upstream", in_project=False)
    text = after(source, plan(source, {"model.cp": 2}, {"model.cp": made}))
    assert changed_lines(source, text) == ["+    cfg.model.cp = 2"]
    assert text.index("cfg.model.cp") > text.index("cfg.model.tp")
    late = "def recipe():\n    cfg = base()\n    cfg.model.pp = 4\n    helper(1)\n    return cfg\n"
    made = Write(span_of(late, "helper(1)"), 1, "upstream", in_project=False)
    text = after(late, plan(late, {"model.cp": 2}, {"model.cp": made}))
    assert text == late.replace("    return", "    cfg.model.cp = 2\n    return")
    inside = Write(span_of(source, "helper(3)"), 3)
    fix = plan(source, {"model.tp": 2}, {"model.tp": inside})
    assert isinstance(fix, Fix) and fix.safety == "unsafe"
    assert changed_lines(source, after(source, fix)) == [
        "-    cfg.model.tp = helper(3)",
        "+    cfg.model.tp = 2",
    ]


def test_the_span_of_the_header_is_enough_to_know_the_recipe() -> None:
    source = "def other():\n    cfg = base()\n    cfg.model.tp = 1\n    return cfg\n\n\n" + RECIPE.split("\n\n\n", 1)[1]
    line = source[: source.index("def recipe")].count("\n") + 1
    write = Write(span_of(source, "cfg.model.tp = 2"), 2)
    fix = plan_fix(
        Fix("t", "safe", {"model.tp": 8}),
        {"model.tp": [write]},
        {PATH: source},
        Span(PATH, line, 1, line, 14),
    )
    assert changed_lines(source, after(source, fix)) == [
        "-    cfg.model.tp = 2  # tensor",
        "+    cfg.model.tp = 8  # tensor",
    ]
    elsewhere = Write(span_of(source, "cfg.model.tp = 1"), 1)
    fix = plan_fix(
        Fix("t", "safe", {"model.tp": 8}),
        {"model.tp": [elsewhere]},
        {PATH: source},
        Span(PATH, line, 1, line, 14),
    )
    assert all(line[0] == "+" for line in changed_lines(source, after(source, fix)))
