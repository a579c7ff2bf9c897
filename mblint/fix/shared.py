"""What is said of an edit that changes several launches: their names, and which of them had nothing to mend."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from mblint.findings import Fix

SHOWN_NAMES = 12
"""Launches that the text of a fix names; programs are told all."""


def differing(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    """The launches whose configs differ."""
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def strays(before: Mapping[str, object], after: Mapping[str, object], affected: Collection[str]) -> list[str]:
    """The launches whose configs differ, of those that are not `affected`."""
    return sorted(name for name in differing(before, after) if name not in affected)


def with_recipes(fix: Fix, changed: Collection[str], affected: Collection[str]) -> Fix:
    """The fix with the names of the launches that its edit changes, where those are several; `affected` have the finding."""
    names = sorted(changed)
    if len(names) < 2:
        return fix
    others = [name for name in names if name not in affected]
    cost = f"it changes {_listed(names)}" + (f"; {_listed(others)} {'does' if len(others) == 1 else 'do'} not need it" if others else "")
    return replace(fix, title=f"{fix.title}, in {fix.helper}", cost=f"{fix.cost}; {cost}" if fix.cost else cost, recipes=tuple(names))


def _listed(names: list[str]) -> str:
    """Names in a sentence: of functions, where those tell the launches apart."""
    short = [name.rpartition(":")[2] for name in names]
    shown = short if len(set(short)) == len(short) else names
    if len(shown) > SHOWN_NAMES:
        return f"{', '.join(shown[:SHOWN_NAMES])} and {len(shown) - SHOWN_NAMES} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
