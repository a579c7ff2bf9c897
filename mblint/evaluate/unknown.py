"""The values that are not there: unknown with a reason, and absent."""

from __future__ import annotations

from typing import Any, Final, final

from mblint.read.span import Span

_made = [0]
_PLAIN = frozenset({int, float, str, bool, type(None), bytes})


def unknowns_made() -> int:
    """How many unknown values this process has made. When it grew while a `try` body ran, that body met a value
    that is not known, so it may have raised."""
    return _made[0]


def count_unknown() -> None:
    """Count one that was made earlier and is met again (a remembered call)."""
    _made[0] += 1


@final
class Unknown:
    """A value that the evaluator could not determine, and why.

    `partial` is text for people when the value is a string of which only pieces are known.
    `many`, inside a container, stands for any number of elements, none included; with `options`, for one of them or none.
    `optional`: it may not exist at all (an entry of a dict, an attribute, a variable).
    `options`, when not None, holds every value that this may be.
    `equates`: for the answer of `a == b` with one side unknown, that side, the other, and whether it was `==` (False: `!=`);
    on the way on which they are equal the value is known.
    `reach` holds mutable objects that this may be, or lead to, when the options are not all known.
    Asking for its truth is a bug of the engine: code that branches on values must treat it explicitly.
    """

    __slots__ = ("apart", "equates", "many", "optional", "options", "partial", "reach", "reason", "span")

    def __init__(
        self,
        reason: str,
        span: Span | None = None,
        partial: str | None = None,
        optional: bool = False,
        *,
        many: bool = False,
        options: tuple[Any, ...] | None = None,
        reach: tuple[Any, ...] = (),
        apart: bool = False,
    ) -> None:
        self.reason = reason
        self.span = span
        self.partial = partial
        self.optional = optional
        self.many = many
        self.options = options
        self.reach = reach
        self.equates: tuple[Any, Any, bool] | None = None
        self.apart = apart
        """The options exist only on the paths on which they are meant: changing all of them changes just the one."""
        _made[0] += 1

    def __bool__(self) -> bool:
        raise TypeError(f"truth of an unknown value: {self.reason}")

    def __repr__(self) -> str:
        return f"Unknown({self.reason!r}{', many' if self.many else ''})"


def rest(reason: str, span: Span | None = None, reach: tuple[Any, ...] = ()) -> Unknown:
    """An element that stands for any number of elements."""
    return Unknown(reason, span, many=True, reach=reach)


def possibly(value: Any, reason: str, span: Span | None = None) -> Unknown:
    """An element that is there or not."""
    if type(value) is Unknown:
        if value.options is None:
            return rest(reason, span, value.reach)
        return Unknown(reason, span, many=True, options=value.options)
    return Unknown(reason, span, many=True, options=(value,))


def like(value: Unknown) -> Unknown:
    """What an operation on an unknown value gives: unknown for the same reason, and perhaps a part of it."""
    reach = value.reach
    if value.options is not None:
        reach = tuple(option for option in value.options if type(option) not in _PLAIN)
    return Unknown(value.reason, value.span, reach=reach)


@final
class Absent:
    """The type of ABSENT; there is one instance."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"

    def __reduce__(self) -> str:
        return "ABSENT"  # the one instance, in other processes too

    def __bool__(self) -> bool:
        raise TypeError("truth of an absent value")


ABSENT: Final = Absent()
"""A key that does not exist in this config (no such field, or its section is null)."""
