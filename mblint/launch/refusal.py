"""Launches that stop before a config is built: their own program refuses what it is given."""

from __future__ import annotations

from mblint.findings import Finding
from mblint.launch.spec import LaunchSpec

RUNNERS = ("unified", "performance", "performance-recipes")
"""The launchers whose command line is read with their own option parser."""


def refused_arguments(spec: LaunchSpec) -> Finding | None:
    """The finding about a command line at which the runner's option parser stops; None where it does not, or where the
    program is none of the runners."""
    if spec.refused is None or spec.launcher not in RUNNERS:
        return None
    reason, span = spec.refused
    return Finding(
        rule="MB854",
        name="arguments-refused-by-runner",
        severity="error",
        outcome="fails",
        message=f"the launch stops at its command line: {reason}",
        span=span or spec.span,
        launch=spec.name,
    )
