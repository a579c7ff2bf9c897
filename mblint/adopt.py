"""Living with the findings of a grown repository: its baseline, read, shrunk and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mblint import baseline
from mblint.errors import UserError
from mblint.findings import Finding

CHANGE_RULES = "review"
"""Area of the rules on changes: what they find is gone once the change is merged, so it is no matter for a baseline."""


@dataclass
class Known:
    """The baseline of a run. Called by the report with its findings; remembers what it saw for writing."""

    path: Path
    root: str
    whole: bool
    """Whether the run looks at the whole project, so that an entry whose place was not seen is out of date."""
    active: Callable[[str], bool]
    lasting: Callable[[Finding], bool]
    """Whether a finding belongs into a baseline."""
    entries: list[dict[str, Any]] = field(default_factory=list)
    kept: list[dict[str, Any]] = field(default_factory=list)
    stale: list[dict[str, Any]] = field(default_factory=list)
    new: list[Finding] = field(default_factory=list)

    def __call__(self, findings: list[Finding], places: set[str], doubts: set[tuple[str, str]]) -> tuple[list[Finding], int]:
        compared = baseline.compare(findings, self.entries, self.root, places, self.whole)
        # A rule that was off or could not be decided did not say that the finding is gone.
        asked = [e for e in compared.stale if self.active(str(e["rule"])) and (str(e["rule"]), str(e.get("launch", ""))) not in doubts]
        self.stale = asked
        self.kept = [*compared.entries, *(entry for entry in compared.stale if entry not in asked)]
        self.new = compared.new
        return compared.new, len(compared.known)

    def shrink(self) -> int:
        """Take the entries out that match nothing any more; how many. Raises UserError when the file cannot be written."""
        if self.stale:
            self._save(self.kept)
        return len(self.stale)

    def write(self) -> tuple[int, int]:
        """Write what there is now: the number of entries, and of those that were added. Raises UserError."""
        added = baseline.entries_of([finding for finding in self.new if self.lasting(finding)], self.root)
        self._save([*self.kept, *added])
        return len(self.kept) + len(added), len(added)

    def _save(self, entries: list[dict[str, Any]]) -> None:
        try:
            baseline.save(str(self.path), entries)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written: {error.strerror or error}", "name another file") from None


def load(path: Path, must_exist: bool) -> list[dict[str, Any]]:
    """The entries of a baseline file; none where it does not exist yet. Raises UserError."""
    if not path.exists() and not must_exist:
        return []
    try:
        return baseline.load(str(path))
    except baseline.BaselineError as error:
        raise UserError(str(error)) from None
