"""What is said of a recipe whose branches are not known: each finding once, with the branches that it depends on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mblint.findings import Finding

Literal = tuple[str, int, bool]
"""A branch that was taken: its test, its number among those of that text on the way, and its outcome."""
Way = tuple[Literal, ...]

MAX_CONDITIONS = 12
"""Branches, the last ones, that the condition of a finding names."""
MAX_WAYS = 3
"""Ways that one condition joins by "or"."""


def way_of(taken: Iterable[tuple[str, bool]]) -> Way:
    """The branches of one way through a recipe, in their order."""
    counts: dict[str, int] = {}
    found = []
    for text, choice in taken:
        counts[text] = counts.get(text, 0) + 1
        found.append((text, counts[text], choice))
    return tuple(found)


def condition_of(way: Way) -> str | None:
    """A way in words; None for that without branches."""
    words = [text if choice else f"not ({text})" for text, _, choice in way[-MAX_CONDITIONS:]]
    if len(way) > MAX_CONDITIONS:
        words.append(f"{len(way) - MAX_CONDITIONS} branches before")
    return " and ".join(dict.fromkeys(words)) or None


def simplified(ways: Sequence[Way]) -> list[Way]:
    """The fewest ways that say the same: two that differ in one outcome need not name that branch, and a way that another one
    covers is left out. All ways together become the one without branches."""
    found = list(dict.fromkeys(ways))
    while (pair := _pair(found)) is not None:
        at, other, made = pair
        kept = [way for index, way in enumerate(found) if index not in (at, other)]
        found = [*kept[:at], made, *kept[at:]] if made not in kept else kept
    return found


def _pair(ways: Sequence[Way]) -> tuple[int, int, Way] | None:
    """Two ways that can be one, by their positions, and that one."""
    for at, way in enumerate(ways):
        for other in range(at + 1, len(ways)):
            one, two = frozenset(way), frozenset(ways[other])
            if one <= two:
                return at, other, way
            if two <= one:
                return at, other, ways[other]
            left, right = one - two, two - one
            if len(left) == 1 and right == {(text, number, not choice) for text, number, choice in left}:
                return at, other, tuple(literal for literal in way if literal not in left)
    return None


def once(ways: Sequence[tuple[Way, Sequence[Finding]]], complete: bool) -> list[Finding]:
    """The findings of all ways through a recipe; without condition what holds on every way, if all were gone.

    Findings of one rule at one place that differ in a word or a number only are one: it names all of them.
    """
    groups: dict[object, list[tuple[Way, Finding]]] = {}
    for way, findings in ways:
        for finding in findings:
            words = len(finding.message.split(" "))
            groups.setdefault((finding.rule, finding.span, finding.severity, words), []).append((way, finding))
    found: list[Finding] = []
    for group in groups.values():
        by_message: dict[str, list[tuple[Way, Finding]]] = {}
        for way, finding in group:
            by_message.setdefault(finding.message, []).append((way, finding))
        if (
            len(by_message) > 1
            and len({way for way, _ in group}) == len(group)
            and (message := _joined_words(list(by_message))) is not None
        ):
            found.append(_one(group, len(ways), complete, message))
        else:
            found += [_one(same, len(ways), complete, message) for message, same in by_message.items()]
    return found


def _one(group: Sequence[tuple[Way, Finding]], ways: int, complete: bool, message: str) -> Finding:
    first = group[0][1]
    taken = list(dict.fromkeys(way for way, _ in group))
    remaining = simplified(taken)
    condition: str | None
    if (complete and len(taken) == ways) or () in remaining:
        condition = None
    elif len(remaining) == 1:
        condition = condition_of(remaining[0])
    else:
        parts = [f"({condition_of(way)})" for way in remaining[:MAX_WAYS]]
        if len(remaining) > MAX_WAYS:
            parts.append(f"on {len(remaining) - MAX_WAYS} more ways")
        condition = " or ".join(parts)
    related = tuple(dict.fromkeys(one for _, finding in group for one in finding.related)) if message != first.message else first.related
    fixes = tuple(fix for fix in first.fixes if all(fix in finding.fixes for _, finding in group))
    return replace(first, message=message, condition=condition, related=related, fixes=fixes)


def _joined_words(messages: Sequence[str]) -> str | None:
    """Messages that differ in single words as one: `= 2 or 4`. None where they say different things."""
    columns = list(zip(*(message.split(" ") for message in messages), strict=True))
    differing = [column for column in columns if len(set(column)) > 1]
    if 2 * len(differing) > len(columns):
        return None
    return " ".join(_alternatives(column) for column in columns)


def _alternatives(words: Sequence[str]) -> str:
    """Different words with their common brackets and commas once: `(2)` and `(4)` are `(2 or 4)`."""
    different = list(dict.fromkeys(words))
    if len(different) == 1:
        return different[0]
    start, end = 0, 0
    shortest = min(map(len, different))
    while start < shortest and len({word[start] for word in different}) == 1 and not different[0][start].isalnum():
        start += 1
    while end < shortest - start and len({word[-1 - end] for word in different}) == 1 and not different[0][-1 - end].isalnum():
        end += 1
    inner = [word[start : len(word) - end] for word in different]
    return f"{different[0][:start]}{' or '.join(inner)}{different[0][len(different[0]) - end :]}"
