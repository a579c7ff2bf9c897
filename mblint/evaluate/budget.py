"""Bounds of one evaluation, and the account that is kept against them."""

from __future__ import annotations

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
    seconds = 7.0
    """Processor time, for what the other bounds do not see. Not time of the clock: a busy machine changes no result."""
    file_seconds = 7.0
    """Processor time of all evaluations that one file asks for, as far as each goes beyond `usual`."""
    usual = 0.5
    """Processor time of one evaluation that is not counted against its file: a file may hold many recipes."""


MINUTE = 60.0


class Budget:
    """What one evaluation has used. `begin` starts a new one."""

    def __init__(self) -> None:
        self.steps = 0
        self.built = 0
        self.checkpoint = 0
        self.started = time.process_time()
        self.deadline = 0.0
        self.depth = 0
        self.owner = ""
        """The file whose evaluation this is."""
        self.spent: dict[str, float] = {}
        """File -> what its evaluations took beyond the usual, in the last minute of the clock: an editor asks for hours."""
        self.since = time.monotonic()
        self.running = False
        """Whether an evaluation is under way."""
        self.late = 0
        """How often the time was up: what hangs on that may be another result the next time."""
        self.begin()

    def begin(self, owner: str | None = None) -> None:
        """Start a new account, for the same file as before unless another is named.

        Raises BudgetExceeded when the file has used up what all its evaluations may take together.
        """
        if time.monotonic() - self.since > MINUTE:
            self.spent.clear()
            self.since = time.monotonic()
        self.end()
        now = self.started = time.process_time()
        self.running = True
        self.steps = 0
        self.built = 0
        self.checkpoint = 4096
        if owner is not None:
            self.owner = owner
        left = Limits.file_seconds - self.spent.get(self.owner, 0.0)
        self.deadline = now + min(Limits.seconds, max(left, 0.0) + Limits.usual)
        if left <= 0:
            self.late += 1
            raise BudgetExceeded(f"more than {Limits.file_seconds:g} seconds for the recipes of one file")

    def end(self) -> None:
        """Close the account: what is done until the next one begins is no evaluation of a file."""
        excess = time.process_time() - self.started - Limits.usual
        if self.running and self.owner and excess > 0:
            self.spent[self.owner] = self.spent.get(self.owner, 0.0) + excess
        self.running = False

    def step(self, count: int = 1) -> None:
        """Count steps. Raises BudgetExceeded."""
        self.steps += count
        if self.steps > self.checkpoint:
            self.check()

    def check(self) -> None:
        """Compare with the bounds; called every few thousand steps. Raises BudgetExceeded."""
        if self.steps > Limits.steps:
            raise BudgetExceeded(f"more than {Limits.steps:,} steps")
        if time.process_time() > self.deadline:
            self.late += 1
            raise BudgetExceeded(f"more than {Limits.seconds:g} seconds of computing")
        self.checkpoint = self.steps + 4096

    def check_rounds(self, count: int) -> None:
        """A loop or an iterator has come to its round `count`. Raises BudgetExceeded."""
        if count > Limits.loop:
            raise BudgetExceeded(f"a loop of more than {Limits.loop:,} rounds")

    def check_size(self, count: int) -> None:
        """A value of `count` elements is being built. Raises BudgetExceeded."""
        if count > Limits.container:
            raise BudgetExceeded(f"a value of more than {Limits.container:,} elements")
        if count > 256:
            self.built += count
            if self.built > Limits.total:
                raise BudgetExceeded(f"values of more than {Limits.total:,} elements together")
            self.step(count >> 5)

    def check_nested(self, value: object) -> None:
        """A value is about to be walked with all that is in it, each part as often as it occurs. Raises BudgetExceeded."""
        pending = [value]
        count = 0
        while pending:
            held = pending.pop()
            if isinstance(held, (list, tuple, dict)):
                count += len(held) + 1
                if count > Limits.container:
                    raise BudgetExceeded(f"a value of more than {Limits.container:,} elements with those inside")
                parts = held.values() if isinstance(held, dict) else held
                pending.extend(part for part in parts if isinstance(part, (list, tuple, dict)))
        if count > 256:
            self.step(count >> 5)
