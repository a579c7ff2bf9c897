"""The recipe that was evaluated last, kept on the heap: the next launch of it starts where it returned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mblint.evaluate.machine import Machine
from mblint.evaluate.values import Instance


@dataclass(frozen=True, slots=True)
class Held:
    """What a recipe made. `before` and `after` are marks of the trail around its evaluation."""

    key: tuple[Any, ...]
    before: int
    after: int
    cfg: Instance
    path_taken: tuple[tuple[Any, bool, str], ...]


class HeldRecipe:
    """Keeps one evaluated recipe, for launches that follow each other. Launches inside a launch are not kept."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.held: Held | None = None
        self.open = 0
        """How many launches are on the heap now."""

    def release(self) -> None:
        """Take the kept recipe back: its sources, or what is declared about the world, may have changed."""
        if self.held is not None:
            self.machine.undo(self.held.before)
            self.held = None

    def find(self, key: tuple[Any, ...] | None) -> Held | None:
        """The kept recipe, if it is this one; another one makes place. `key` names all that the result depends on, beside
        the sources; None is never kept."""
        if self.open > 1:
            return None
        if self.held is not None and self.held.key != key:
            self.release()
        return self.held

    def resume(self, held: Held) -> Instance:
        """Go on from a kept recipe as if it had just returned."""
        machine = self.machine
        machine.failures.clear()
        machine.undecided.clear()
        machine.path_taken = list(held.path_taken)
        machine.begin()
        return held.cfg

    def keep(self, key: tuple[Any, ...] | None, before: int, cfg: Instance) -> int:
        """Keep what was evaluated since the mark `before`, where it can be; the mark that a launch is to be taken back to."""
        machine = self.machine
        if key is None or self.open > 1 or machine.shared_changed:
            return before
        self.held = Held(key, before, machine.mark(), cfg, tuple(machine.path_taken))
        return self.held.after
