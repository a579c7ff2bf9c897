"""Fixes of failing launches that nobody wrote by hand: each one that is offered mends what it says, and breaks nothing.

`MBLINT_GENERATED_FIXES=N` takes N launches instead of a few, `MBLINT_GENERATED_FIXES_SEED` others. With
`MBLINT_RECORDED_VERDICTS=FILE` (what the real upstream said of launches, as tests/oracle records it) the launches are those
that failed there, and a launch that is fixed into one that passed there has to pass here.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mblint.evaluate.unknown import ABSENT
from mblint.launch.session import with_deep_stack

from .generated import Bench, Case, Outcome, random_cases, writable

COUNT = int(os.environ.get("MBLINT_GENERATED_FIXES", "12"))
SEED = os.environ.get("MBLINT_GENERATED_FIXES_SEED", "1")
RECORDED = os.environ.get("MBLINT_RECORDED_VERDICTS")

pytestmark = pytest.mark.upstream


def _recorded() -> list[dict[str, Any]]:
    assert RECORDED is not None
    with gzip.open(RECORDED, "rt") as handle:
        found: list[dict[str, Any]] = json.load(handle)
    return found


def _cases() -> Iterator[Case]:
    if RECORDED is None:
        yield from random_cases(SEED)
        return
    failed = [one for one in _recorded() if not one["ok"] and one["overrides"] and one.get("category") != "launch_input"]
    step = max(1, len(failed) // COUNT)
    for one in failed[::step]:
        overrides = {**one["supplied"], **one["overrides"]}
        if writable(overrides):
            yield Case(one["recipe"], overrides, one["world_size"], one["gpu"])


class Passing:
    """The recorded launches that passed, found by what they set: a value that the recipe has anyway does not tell launches apart."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.launches: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
        for one in _recorded() if RECORDED is not None else ():
            if one["ok"] and not one.get("later"):
                self.launches.setdefault((one["recipe"], one["world_size"], one["gpu"]), []).append({**one["supplied"], **one["overrides"]})

    def holds(self, case: Case) -> bool:
        """Whether a launch that sets this passed."""
        recorded = self.launches.get((case.recipe, case.world_size, case.gpu))
        if not recorded:
            return False
        wanted = self._told_apart(case, case.overrides)
        return any(self._told_apart(case, overrides) == wanted for overrides in recorded)

    def _told_apart(self, case: Case, overrides: dict[str, Any]) -> str:
        values = self.bench.values_of(case.recipe, case.world_size, case.gpu)
        return json.dumps(sorted(item for item in overrides.items() if values.get(item[0], ABSENT) != item[1]), default=str)


def test_offered_fixes_mend_what_they_say_and_break_nothing(upstream: Path, tmp_path: Path) -> None:
    bench = Bench(upstream, tmp_path)
    passing, seen, wrong = Passing(bench), Counter[str](), []
    matched: list[str] = []
    rules: Counter[str] = Counter()

    def run(case: Case) -> Outcome:
        return with_deep_stack(lambda: bench.run(case))

    fresh = itertools.islice(_cases(), 40 * COUNT)
    for case in fresh:
        if seen["fails"] >= COUNT:
            break
        outcome = run(case)
        seen[outcome.verdict] += 1
        if outcome.verdict != "fails":
            continue
        seen["offered"] += outcome.offered
        seen["by hand"] += outcome.by_hand
        rules += outcome.rules
        wrong += [f"{case.recipe} {case.overrides}: {text}" for text in outcome.wrong]
        for _, fix, verdict in outcome.after:
            changed = {key: value for key, value in {**case.overrides, **fix.changes}.items() if value is not ABSENT}
            if with_deep_stack(partial(passing.holds, replace(case, overrides=changed))):
                seen["recorded as passing"] += 1
                if verdict == "fails":
                    matched.append(f"{case.recipe} {changed}")
    print(dict(seen), dict(rules))
    assert RECORDED is None or COUNT < 100 or seen["recorded as passing"], "no fixed launch was found among the recorded ones"
    assert not wrong, "\n".join(wrong)
    assert not matched, "\n".join(matched)
    assert seen["fails"] >= COUNT and seen["offered"] > COUNT // 4
