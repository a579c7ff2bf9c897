"""How evaluation is interrupted."""

from __future__ import annotations

from typing import Any


class Raised(Exception):
    """An exception of the evaluated program that travels to its handler.

    `value` is an ExceptionValue or an Instance of an evaluated exception class.
    """

    def __init__(self, value: Any, site: Any, trace: Any, guards: Any = None) -> None:
        super().__init__()
        self.value = value
        self.site = site
        self.trace = trace
        self.guards = guards


class BudgetExceeded(Exception):
    """The evaluation took too many steps, too deep a recursion or too large a value."""


class StopEvaluation(Exception):
    """Evaluation has reached the point up to which it was asked for."""


class NeedFork(Exception):
    """Not raised any more: a branch on an unknown value is joined where its ways meet."""


class Failure:
    """A check that failed: an exception that was reached for certain and not caught.

    `guards` are the (object, attribute) pairs that the conditions on the way to it read; `implicit` is set when the
    language raised it (None + 1).
    """

    __slots__ = ("exception", "guards", "implicit", "message", "phase", "site", "trace")

    def __init__(
        self,
        exception: str,
        message: str,
        site: Any,
        trace: Any,
        guards: tuple[Any, ...],
        implicit: bool,
        phase: int,
    ) -> None:
        self.exception = exception
        self.message = message
        self.site = site
        self.trace = trace
        self.guards = guards
        self.implicit = implicit
        self.phase = phase

    def __repr__(self) -> str:
        return f"Failure({self.exception} at {self.site}: {self.message[:80]})"
