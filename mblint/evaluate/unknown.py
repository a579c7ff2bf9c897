"""The values that are not there: unknown with a reason, and absent."""

from __future__ import annotations

from typing import Final, final

from mblint.read.span import Span


@final
class Unknown:
    """A value that the evaluator could not determine, and why.

    `partial` is text for people when the value is a string of which only pieces are known. `optional`: an entry of a dict
    that may not be there at all. `equates`: for the answer of `a == b` with one side unknown, that side, the other, and
    whether it was `==` (False: `!=`); the branch in which they are equal then knows the value.
    Asking for its truth is a bug of the engine: code that branches on values must treat it explicitly.
    """

    __slots__ = ("equates", "optional", "partial", "reason", "span")

    def __init__(self, reason: str, span: Span | None = None, partial: str | None = None, optional: bool = False) -> None:
        self.reason = reason
        self.span = span
        self.partial = partial
        self.optional = optional
        self.equates: tuple[object, object, bool] | None = None

    def __bool__(self) -> bool:
        raise TypeError(f"truth of an unknown value: {self.reason}")

    def __repr__(self) -> str:
        return f"Unknown({self.reason!r})"


@final
class Absent:
    """The type of ABSENT; there is one instance."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        raise TypeError("truth of an absent value")


ABSENT: Final = Absent()
"""A key that does not exist in this config (no such field, or its section is null)."""
