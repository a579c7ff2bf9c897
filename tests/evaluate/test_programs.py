"""Random programs: what the evaluator claims of them is what Python makes of them.

Python itself runs each program against a stub of ConfigContainer. A value that is claimed must be Python's; a program that
is said to raise must raise, and the same exception where nothing was unknown. MBLINT_PROGRAMS=20000 runs that many, as the
nightly job does.
"""

from __future__ import annotations

import copy
import os
import random
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mblint.evaluate.budget import Limits
from mblint.evaluate.errors import BudgetExceeded, Raised
from mblint.evaluate.machine import exception_name, exception_text
from mblint.evaluate.unknown import unknowns_made

from .evaluate_kit import UNKNOWN, Failed, Program, plain, unknown
from .programs import STUB, Source, Writer, differences, hidden_value, run_real
from .programs_wide import WideWriter

COUNT = int(os.environ.get("MBLINT_PROGRAMS", "500"))
COMPLETIONS = 4


class Seeded:
    """Decisions from a seed: cheap, and a failing seed names its program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def below(self, limit: int) -> int:
        """A number from 0 to limit - 1."""
        return self.random.randrange(limit)


def program_of(seed: int) -> tuple[str, Writer, Source]:
    """A program, its writer, and the source of values for its hidden parameters: a third of all programs has some."""
    source = Seeded(seed)
    hidden = (0, 0, 2)[seed % 3]
    writer = WideWriter(source, hidden) if seed % 5 else Writer(source, hidden)
    return writer.write(), writer, source


def claimed_of(text: str, hidden: int) -> tuple[Any, bool]:
    """[config, state] or Failed, and whether anything was unknown; raises BudgetExceeded."""
    before = unknowns_made()
    program = Program(text, stub=STUB)
    try:
        value = program.call("recipe", *[unknown() for _ in range(hidden)])
        claimed: Any = [plain(value), plain(program.get("STATE"))]
    except Raised as raised:
        claimed = Failed(exception_name(raised.value), exception_text(raised.value))
    return claimed, unknowns_made() != before


def objection(claimed: Any, real: Any, doubt: bool) -> str | None:
    """What is wrong with a claim, or None. With `doubt` a run may raise all the same, or raise something else."""
    if isinstance(claimed, Failed):
        if not isinstance(real, Failed):
            return f"claimed to raise {claimed.name}: {claimed.text}, ends well"
        return None if doubt or claimed.name == real.name else f"claimed to raise {claimed.name}, raises {real.name}: {real.text}"
    if isinstance(real, Failed):
        return None if doubt else f"claimed to end well, raises {real.name}: {real.text}"
    found = differences(claimed, real)
    return "; ".join(found[:3]) or None


@settings(max_examples=COUNT, deadline=None, suppress_health_check=list(HealthCheck), derandomize=COUNT <= 500, database=None)
@given(st.integers(0, 2**40))
def test_claims_are_what_python_does(seed: int) -> None:
    text, writer, source = program_of(seed)
    try:
        claimed, doubt = claimed_of(text, len(writer.kinds))
    except BudgetExceeded:
        return
    for _ in range(COMPLETIONS if writer.kinds else 1):
        values = [hidden_value(source, kind) for kind in writer.kinds]
        real = run_real(text, copy.deepcopy(values))
        if real is None:
            continue
        problem = objection(claimed, real, doubt)
        assert problem is None, f"{problem}\nwith {values}, seed {seed}:\n{text}"


@pytest.mark.parametrize("seed", range(3))
def test_most_of_a_program_is_known(seed: int) -> None:
    """A claim can only be wrong where one is made: nearly all values of programs without hidden parameters are known."""
    from .programs import count_known

    known = total = 0
    for number in range(25):
        text = WideWriter(Seeded(seed * 1000 + number)).write()
        try:
            claimed, _ = claimed_of(text, 0)
        except BudgetExceeded:
            continue
        if not isinstance(claimed, Failed):
            counted = count_known(claimed)
            known, total = known + counted[0], total + counted[1]
    assert total > 120
    assert known / total > 0.93


# --- changes that change nothing -------------------------------------------------------------------------------------


def _renamed(text: str) -> str:
    """Every local variable under another name."""
    return re.sub(r"\b([vuwzmci])(\d+)(x|k|_)?\b", r"renamed_\1\2\3", text)


def _inlined(text: str) -> str:
    """The body of the recipe in a function of its own."""
    return text.replace("def recipe(", "def inner_recipe(") + "\n\ndef recipe(*args, **kwargs):\n    return inner_recipe(*args, **kwargs)\n"


def _grouped(text: str) -> str:
    """Unrelated statements before, between the definitions, and after."""
    lines = text.replace("\ndef recipe(", "\nUNRELATED = [1, 2]\n\ndef recipe(")
    return f"import math as unrelated\n{lines}\n\ndef never_called():\n    raise ValueError\n"


def _nested(text: str) -> str:
    """The recipe under a condition that holds."""
    head, mark, body = text.partition("def recipe(")
    return head + "if True:\n" + "".join(f"    {line}\n" for line in (mark + body).split("\n"))


@pytest.mark.parametrize("change", [_renamed, _inlined, _grouped, _nested])
def test_changes_without_meaning_change_no_claim(change: Any) -> None:
    for seed in range(24):
        text, writer, _ = program_of(seed)
        hidden = len(writer.kinds)
        try:
            changed, before = claimed_of(change(text), hidden)[0], claimed_of(text, hidden)[0]
            if change is _renamed:  # f"{name=}" and some messages show names
                changed, before = repr(changed), _renamed(repr(before))
            assert changed == before, f"seed {seed}"
        except BudgetExceeded:
            continue


def test_independent_assignments_can_be_reordered() -> None:
    lines = [
        "cfg.model.tp = 4", "cfg.model.pp = 2", "cfg.train.batch = 64", "cfg.train.env['A'] = '2'", "cfg.model.extra['k'] = 1",
        "cfg.model.name = 'n'", "cfg.other = [1, 2]",
    ]  # fmt: skip
    head = "from stub import ConfigContainer\nSTATE = {}\ndef recipe():\n    cfg = ConfigContainer()\n"
    shuffler = random.Random(1)
    expected = None
    for _ in range(12):
        shuffler.shuffle(lines)
        claimed, doubt = claimed_of(head + "".join(f"    {line}\n" for line in lines) + "    return cfg\n", 0)
        expected = claimed if expected is None else expected
        assert (claimed, doubt) == (expected, False)


# --- what random programs found -------------------------------------------------------------------------------------

MANAGERS = """
from contextlib import contextmanager
class Quiet:
    def __init__(self, log): self.log = log
    def __enter__(self): return self.log
    def __exit__(self, kind, error, trace):
        self.log.append(kind.__name__ if kind else "out")
        return True
@contextmanager
def noted(log):
    try:
        yield 1
    except KeyError as error:
        log.append("caught")
def f(h):
    log = []
    with {manager}:
        if h:
            raise KeyError("k")
        log.append("after")
    return log
"""


@pytest.mark.parametrize("manager", ["Quiet(log)", "noted(log)", "Quiet(log), noted([])"])
def test_a_manager_may_take_away_what_some_ways_raise(manager: str) -> None:
    program = Program(MANAGERS.format(manager=manager))
    assert program.run("f", unknown()) is UNKNOWN
    assert program.run("f", False)[0] == "after"
    assert "after" not in program.run("f", True)


@pytest.mark.parametrize("body", ["a[h].append(1)", "for n in h: a[n % 2].append(n)", "a[h]"])
def test_reading_an_unknown_key_may_make_an_entry(body: str) -> None:
    source = f"import collections\ndef f(h):\n    a = collections.defaultdict(list)\n    {body}\n    return dict(a)\n"
    assert Program(source).run("f", unknown()) is UNKNOWN


@pytest.mark.parametrize("test", ["(b := a.pop()) > 1 and a", "a.pop() > 1 and a"])
def test_the_test_of_a_loop_is_asked_once_a_round(test: str) -> None:
    program = Program(f"def f(h):\n    a = [3, h]\n    while {test}:\n        pass\n    return a\n")
    assert (program.run("f", 1), program.run("f", 2)) == ([3], [])
    assert program.run("f", unknown()) is UNKNOWN


INNER = (
    "for y in range(2): pass",
    "y = 2\n        while y: y -= 1",
    "for y in range(x):\n            if y == 4: break\n        else:\n            y = 1",
)


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("leave", ["continue", "break"])
def test_a_way_that_left_a_round_waits_for_the_loop_that_it_left(inner: str, leave: str) -> None:
    """An inner loop does not take it for one of its own."""
    source = f"def f(h):\n    for x in range(6):\n        if x == h: {leave}\n        {inner}\n        if x > 2: break\n    return x\n"
    program = Program(source)
    assert program.run("f", 99) == 3
    assert program.run("f", 3) == (4 if leave == "continue" else 3)
    assert program.run("f", unknown()) is UNKNOWN


# --- bounds ----------------------------------------------------------------------------------------------------------


def test_an_evaluation_starts_with_a_fresh_account() -> None:
    """Neither the time nor the sizes of what was evaluated before count against what comes after."""
    program = Program("def f(n):\n    x = ''\n    for i in range(n):\n        x += 'abcdefgh'\n    return [len(x), len(list(range(n)))]\n")
    machine = program.machine
    for n in (1_000, 1_001, 1_002):
        assert program.run("f", n) == [8 * n, n]
        assert 1_000_000 < machine.built < 5_000_000 and machine.steps > n
    machine.begin()
    assert (machine.built, machine.steps) == (0, 0)


def test_a_file_has_a_bound_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("mblint.evaluate.budget.time.process_time", lambda: now[0])
    machine = Program("").machine
    machine.begin("a.py")
    for _ in range(100):  # many recipes that each take what is usual
        now[0] += Limits.usual
        machine.begin("a.py")
    now[0] += Limits.file_seconds + 1
    with pytest.raises(BudgetExceeded, match="for the recipes of one file"):
        machine.begin("a.py")
    machine.begin("b.py")
    monkeypatch.setattr("mblint.evaluate.budget.MINUTE", -1.0)
    machine.begin("a.py")
