"""The ways through a recipe: each takes other branches where a condition is not known."""

from __future__ import annotations

from collections.abc import Iterator

MAX_PATHS = 8
"""Ways through a recipe that are followed."""
MAX_FAILED_PATHS = 64
"""Ways through a recipe that end in an exception, until the search for one that does not is given up."""


class Ways:
    """Finds the ways while they are gone: `for decisions, taken in ways`, where who goes one puts the branches into `taken`.

    A way that ends in an exception is reported by `fail`, any other counts as gone.
    """

    def __init__(self) -> None:
        self._pending: list[list[bool]] = [[]]
        self._gone = 0
        self._failed = 0

    def fail(self) -> None:
        """The way that is being gone ends in an exception."""
        self._gone -= 1
        self._failed += 1

    @property
    def open(self) -> bool:
        """Whether there are ways that were not gone."""
        return bool(self._pending)

    def __iter__(self) -> Iterator[tuple[list[bool], list[bool]]]:
        while self._pending and self._gone < MAX_PATHS and self._failed < MAX_FAILED_PATHS:
            decisions = self._pending.pop(0)
            taken: list[bool] = []
            self._gone += 1
            yield decisions, taken
            self._pending += [[*taken[:index], not taken[index]] for index in range(len(decisions), len(taken))]
