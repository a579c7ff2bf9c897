"""Sequence lengths, packing and mock data."""

from __future__ import annotations

from mblint.facts.view import View, fact


@fact("data.seq_length")
def seq_length(view: View) -> int:
    """Sequence length of the dataset."""
    return view.integer("dataset.seq_length")


@fact("data.packed")
def packed(view: View) -> bool:
    """Whether sequences are packed (offline or in the batch)."""
    return (
        view.flag("dataset.enable_offline_packing")
        or view.flag("dataset.enable_in_batch_packing")
        or view.value("dataset.offline_packing_specs") is not None
        or view.value("dataset.packed_sequence_specs") is not None
    )
