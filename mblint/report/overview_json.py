"""The JSON of `mblint report`: one object a launch, without its values, which `mblint explain` shows."""

from __future__ import annotations

from typing import Any

from mblint.overview.model import SIZES, Entry, Overview, place
from mblint.report.entries import finding_entry
from mblint.report.estimate_json import estimate_entry

SCHEMA_VERSION = 1
"""Raised when a field changes its meaning or goes; new fields do not raise it."""


def overview_report(overview: Overview) -> dict[str, Any]:
    """`{"launches": [...], "versions": {...}}`; unknown figures are null."""
    return {
        "schema_version": SCHEMA_VERSION,
        "title": overview.title,
        "revision": overview.revision or None,
        "versions": dict(overview.report.versions),
        "launches": [_entry(overview, entry) for entry in overview.entries],
    }


def _entry(overview: Overview, entry: Entry) -> dict[str, Any]:
    shape = entry.shape
    return {
        "name": entry.name,
        "recipe": entry.recipe,
        "path": entry.file or None,
        "line": entry.line or None,
        "verdict": entry.verdict,
        "condition": entry.condition,
        "world_size": entry.world_size,
        "gpu": entry.gpu or None,
        "model": shape.model or None,
        "num_layers": shape.layers,
        "hidden_size": shape.hidden,
        **{name: shape.sizes.get(name) for name in SIZES},
        "micro_batch_size": shape.micro_batch,
        "global_batch_size": shape.global_batch,
        "seq_length": shape.sequence,
        "precision": shape.precision or None,
        "recompute": shape.recompute or None,
        "peft": shape.peft or None,
        "memory": estimate_entry(entry.memory) if entry.memory is not None else None,
        "findings": [
            finding_entry(finding, overview.report.root, lambda path: place(path, overview.root, overview.libraries))
            for finding in entry.findings
        ],
        "undecided_rules": entry.undecided,
    }
