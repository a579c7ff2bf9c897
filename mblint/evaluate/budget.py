"""Bounds of one evaluation, and the account that is kept against them."""

from __future__ import annotations

import sys
import time

from mblint.evaluate.errors import BudgetExceeded


class Limits:
    """Bounds of one evaluation."""

    steps = 1_500_000
    """Statements, loop rounds and calls; large values count as several."""
    depth = 90
    """Calls of evaluated functions inside each other."""
    container = 200_000
    """Most elements of one list, dict, set, or characters of one string that evaluation may build."""
    total = 20_000_000
    """Most elements and characters of large values together."""
    bits = 8192
    """Longest integer."""
    loop = 100_000
    """Most rounds of one loop."""
    rounds = 12
    """Most rounds of a loop over what is not known, until its effect must have settled."""
    options = 6
    """Most alternatives that one value remembers after branches on unknown values."""
    seconds = 10.0
    """Wall time, for what the other bounds do not see."""


class Budget:
    """What one evaluation has used. `begin` starts a new one."""

    def __init__(self) -> None:
        self.steps = 0
        self.built = 0
        self.checkpoint = 0
        self.deadline = 0.0
        self.depth = 0
        self.begin()

    def begin(self, seconds: float | None = None) -> None:
        """Start a new account."""
        self.steps = 0
        self.built = 0
        self.checkpoint = 4096
        self.deadline = time.monotonic() + (Limits.seconds if seconds is None else seconds)

    def step(self, count: int = 1) -> None:
        """Count steps. Raises BudgetExceeded."""
        self.steps += count
        if self.steps > self.checkpoint:
            self.check()

    def check(self) -> None:
        """Compare with the bounds; called every few thousand steps. Raises BudgetExceeded."""
        if self.steps > Limits.steps:
            raise BudgetExceeded(f"more than {Limits.steps:,} steps")
        if time.monotonic() > self.deadline:
            raise BudgetExceeded(f"more than {Limits.seconds:g} seconds")
        self.checkpoint = self.steps + 4096

    def check_size(self, count: int) -> None:
        """A value of `count` elements is being built. Raises BudgetExceeded."""
        if count > Limits.container:
            raise BudgetExceeded(f"a value of more than {Limits.container:,} elements")
        if count > 256:
            self.built += count
            if self.built > Limits.total:
                raise BudgetExceeded(f"values of more than {Limits.total:,} elements together")
            self.step(count >> 5)


NEVER = sys.maxsize
