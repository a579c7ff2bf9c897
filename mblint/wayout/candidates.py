"""Combinations of remedies, cheapest first, up to a bound."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from mblint.wayout.remedies import Remedy, exclude

LIMIT = 2000
"""Candidates that are looked at."""

_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Candidate:
    """Remedies that are applied together, in the guide's order."""

    steps: tuple[Remedy, ...]

    @property
    def changes(self) -> dict[str, object]:
        """Keys and values of all steps together."""
        return {key: value for step in self.steps for key, value in step.changes.items()}

    @property
    def order(self) -> tuple[int, int, int, int]:
        """By the dearest remedy, then by how many there are: cheapest in the guide's order first."""
        ranks = [step.rank for step in self.steps]
        return (max(ranks, default=-1), len(ranks), sum(ranks), sum(step.strength for step in self.steps))

    def costs_more_than(self, other: Candidate) -> bool:
        """Whether it does all that the other does, at least as strongly: then the other is better."""
        mine = {step.family: step.strength for step in self.steps}
        return all(step.family in mine and mine[step.family] >= step.strength for step in other.steps)


def candidates(found: Sequence[Remedy], limit: int = LIMIT) -> list[Candidate]:
    """Every remedy that costs throughput alone, up to four of different families, and all families
    from the cheapest up to each; in the guide's order, at most `limit`.

    A remedy that costs nothing (expandable segments) is part of each.
    """
    free = tuple(remedy for remedy in found if remedy.rank == 0)
    paid = [remedy for remedy in found if remedy.rank > 0]
    chosen: dict[tuple[int, ...], Candidate] = {}

    def add(steps: Iterable[Remedy]) -> None:
        if len(chosen) < limit:
            given = (*free, *steps)
            chosen.setdefault(tuple(id(step) for step in given), Candidate(given))

    if free:
        add(())
    for remedy in paid:
        add((remedy,))
    for steps in _ladders(paid):
        add(steps)
    for count in range(2, _AT_ONCE + 1):
        groups = [group for group in combinations(paid, count) if _together(group)]
        groups.sort(key=lambda group: (max(step.rank for step in group), sum(step.rank for step in group)))
        for group in groups:
            add(group)
    return sorted(chosen.values(), key=lambda candidate: candidate.order)


def _together(group: Sequence[Remedy]) -> bool:
    return not any(exclude(one.family, other.family) for one, other in combinations(group, 2))


def _ladders(paid: Sequence[Remedy]) -> Iterable[tuple[Remedy, ...]]:
    """The strongest of each family, one family more each time: for launches that are far too large."""
    strongest: dict[str, Remedy] = {}
    for remedy in paid:
        if remedy.family not in strongest or strongest[remedy.family].strength <= remedy.strength:
            strongest[remedy.family] = remedy
    ordered = sorted(strongest.values(), key=lambda remedy: remedy.rank)
    for end in range(2, len(ordered) + 1):
        steps: list[Remedy] = []
        # Later families win: they were reached because the earlier ones did not do.
        for remedy in reversed(ordered[:end]):
            if not any(exclude(remedy.family, other.family) for other in steps):
                steps.append(remedy)
        yield tuple(reversed(steps))
