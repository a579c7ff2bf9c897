"""The JSON that other programs read after `check --launches`: one object a launch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mblint.findings import Finding
from mblint.report.entries import finding_entry as full_entry
from mblint.verdict import Verdict

SAID_BY_THE_LAUNCH = ("launch", "fingerprint", "help_url")
"""What an entry of a report has and one below its launch needs not."""


def launches_report(verdicts: Iterable[Verdict]) -> dict[str, Any]:
    """`{"launches": [...]}` as docs/programs.md describes it."""
    return {"launches": [launch_entry(verdict) for verdict in verdicts]}


def launch_entry(verdict: Verdict) -> dict[str, Any]:
    """One launch: verdict, findings, and what could not be decided."""
    return {
        "id": verdict.id,
        "recipe": verdict.recipe,
        "verdict": verdict.verdict,
        "findings": [finding_entry(finding) for finding in verdict.findings],
        "undecided": [{"rule": doubt.rule, "name": doubt.name, "because": doubt.because} for doubt in verdict.undecided],
    }


def finding_entry(finding: Finding) -> dict[str, Any]:
    """One finding with its places and fixes; a fix has changes and no edits, for there is no text to change."""
    entry = {name: value for name, value in full_entry(finding).items() if name not in SAID_BY_THE_LAUNCH}
    if entry["condition"] is None:
        del entry["condition"]
    for fix in entry["fixes"]:
        del fix["edits"]
    return entry
