"""How often Python looks for cycles of objects that nothing else holds."""

from __future__ import annotations

import gc

RARELY = (1_000_000, 20, 100)
"""Thresholds of `gc.set_threshold`: modules, closures and values live as long as the run, and looking through them
again and again is up to a third of a short run's time."""


def collect_rarely() -> tuple[int, int, int]:
    """Set the thresholds of this process; returns those that held before."""
    before = gc.get_threshold()
    gc.set_threshold(*RARELY)
    return before
