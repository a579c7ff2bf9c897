"""What a change of one top-level statement reaches inside its file."""

from __future__ import annotations

import pytest

from mblint.fix.units import reached_names

BEFORE = '''"""Recipes."""
import os
from base import start

SIZE = 4


def helper(cfg):
    cfg.model.tp = SIZE
    return cfg


def first_config():
    return helper(start())


def second_config():
    cfg = start()
    cfg.model.pp = 2
    return cfg


def third_config():
    return getattr(os, "name") and second_config()
'''


@pytest.mark.parametrize(
    ("old", "new", "reached"),
    [
        ("cfg.model.pp = 2", "cfg.model.pp = 1", {"second_config", "third_config"}),
        ("cfg.model.tp = SIZE", "cfg.model.tp = 2", {"helper", "first_config"}),
        ("SIZE = 4", "SIZE = 2", {"SIZE", "helper", "first_config"}),
        ("import os\n", "import os\nimport torch\n", set()),
        ("from base import start\n", "from base import begin as start\n", {"start", "first_config", "second_config", "third_config"}),
        ("import os\n", "import os\nfrom more import *\n", None),
        ("def second_config():", "def other():", {"second_config", "other", "third_config"}),
        ("SIZE = 4\n", "SIZE = 4\nprint(SIZE)\n", None),
        ('"""Recipes."""', '"""My recipes."""', set()),
        ("return cfg", "return cfg(", None),
    ],
)  # fmt: skip
def test_what_a_change_reaches(old: str, new: str, reached: set[str] | None) -> None:
    assert old in BEFORE
    assert reached_names(BEFORE, BEFORE.replace(old, new, 1)) == (None if reached is None else frozenset(reached))


def test_nothing_is_reached_by_no_change() -> None:
    assert reached_names(BEFORE, BEFORE) == frozenset()


def test_lines_that_move_are_no_change() -> None:
    assert reached_names(BEFORE, "\n\n" + BEFORE) == frozenset()


def test_code_that_finds_others_by_any_name_is_always_reached() -> None:
    dynamic = BEFORE + "\n\ndef fourth_config():\n    return globals()['second' + '_config']()\n"
    changed = reached_names(dynamic, dynamic.replace("cfg.model.pp = 2", "cfg.model.pp = 1"))
    assert changed == {"second_config", "third_config", "fourth_config"}


def test_a_text_that_names_a_function_reaches_it() -> None:
    named = BEFORE + "\n\ndef fourth_config():\n    return make('second_config')\n"
    changed = reached_names(named, named.replace("cfg.model.pp = 2", "cfg.model.pp = 1"))
    assert changed is not None and "fourth_config" in changed


def test_a_function_that_is_registered_reaches_everything_that_looks_there() -> None:
    registered = BEFORE.replace("def second_config", "@register\ndef second_config")
    changed = reached_names(registered, registered.replace("cfg.model.tp = SIZE", "cfg.model.tp = 2"))
    assert changed is not None and "second_config" in changed, "a decorator may call it, whenever it likes"


def test_statements_that_call_what_changed_reach_everything() -> None:
    called = BEFORE + "\nRECIPES = [first_config, second_config]\nRECIPES.append(third_config)\n"
    assert reached_names(called, called.replace("cfg.model.pp = 2", "cfg.model.pp = 1")) is None
