"""Whether every batch is as long as `model.seq_length`, or only the longest ones are.

Source: megatron-bridge 0.6.2, `data/datasets/gpt_sft.py:collate_fn`, `data/collators/sequence_padding.py`,
`data/collators/sft.py` (packing within a batch), `training/config.py` (fixed lengths are forced with PP or
EP, and the effective `dataset.pad_to_max_length` says so).
"""

from __future__ import annotations

from mblint.evaluate.unknown import Absent, Unknown
from mblint.facts.memory.reading import Source

# Pretraining data are cut into samples of the full length.
_FULL = {"GPTDatasetConfig", "MockGPTDatasetConfig", "BlendedMegatronDatasetConfig", "GPTFIMDatasetConfig"}


def shorter_batches(source: Source) -> str:
    """Why batches may be shorter than `model.seq_length`; "" where they never are.

    Activations are then an upper bound that only the longest samples reach. A dataset of another kind, or
    one that is not known, may do anything.
    """
    classes = source.classes("dataset")
    if isinstance(classes, Absent):
        return ""
    if isinstance(classes, Unknown) or not classes:
        return "the dataset is not known"
    names = {name.rpartition(".")[2] for name in classes}
    if names & _FULL:
        return ""
    if "GPTSFTDatasetConfig" in names:
        # Packs are filled up to the packed size.
        if source.get("dataset.enable_offline_packing") is True:
            return ""
        kwargs = source.get("dataset.dataset_kwargs")
        inside = kwargs.get("pad_to_max_length") if isinstance(kwargs, dict) else None
        if True in (inside, source.get("dataset.dataset_kwargs.pad_to_max_length")):
            return ""
        return "samples are padded to the longest of their batch (dataset_kwargs has no pad_to_max_length)"
    if source.get("dataset.enable_in_batch_packing") is True:
        return "dataset.enable_in_batch_packing makes a batch as long as its samples together"
    if source.get("dataset.pad_to_max_length") is True:
        return ""
    return "samples are padded to the longest of their batch (dataset.pad_to_max_length is not set)"
