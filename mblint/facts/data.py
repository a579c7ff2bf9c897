"""Sequence lengths, packing and mock data."""

from __future__ import annotations

import re
from math import lcm
from typing import Final

from mblint.evaluate.unknown import Unknown
from mblint.facts.view import Stop, View, fact

MAX_PATHS: Final = 10_000


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


@fact("data.mock")
def mock(view: View) -> bool:
    """Whether a GPT dataset names no data, so that random tokens stand in; absent for other datasets."""
    if "GPTDatasetConfig" not in view.class_names("dataset"):
        view.stop()
    sources = ("dataset.blend", "dataset.blend_per_split", "dataset.data_path")
    return all(view.value(name) in (None, [], "") for name in sources)


@fact("data.collate_multiple")
def collate_multiple(view: View) -> int:
    """What padded lengths are multiples of, in training and evaluation: 2 x CP, and CP x TP with SP."""
    tp = view.integer("parallel.tp")
    shards = tp if tp > 1 and view.flag("model.sequence_parallel") else 1
    sizes = {view.integer("parallel.cp"), view.integer("parallel.eval_cp")}
    if any(size < 1 for size in (*sizes, shards)):
        view.stop()
    return lcm(*(2 * size if size > 1 else 1 for size in sizes), *(size * shards for size in sizes if shards > 1))


@fact("data.tokens_per_rank")
def tokens_per_rank(view: View) -> int:
    """Tokens of a sequence on one rank: seq_length / CP, / TP with SP; absent where these do not divide."""
    tp = view.integer("parallel.tp")
    shards = view.integer("parallel.cp") * (tp if tp > 1 and view.flag("model.sequence_parallel") else 1)
    length = view.integer("model.seq_length")
    return length // shards if shards > 0 and length % shards == 0 else view.stop()


@fact("data.made_up")
def made_up(view: View) -> bool:
    """Whether training runs on made-up data: no data named, or a mock dataset."""
    if any(name.startswith("Mock") for name in view.class_names("dataset")):
        return True
    return view.value("data.mock", False) is True


@fact("data.padded_to_max")
def padded_to_max(view: View) -> bool:
    """Whether the dataset pads every sample to the full length (by its field or dataset_kwargs)."""
    if view.value("dataset.pad_to_max_length", False) is True:
        return True
    keywords = view.value("dataset.dataset_kwargs")
    if not isinstance(keywords, dict):
        return False
    padded = keywords.get("pad_to_max_length", False)
    if isinstance(padded, Unknown):
        raise Stop(padded)
    return padded is True


@fact("data.validation_share")
def validation_share(view: View) -> float:
    """The part of the data that `split` gives to validation, not normalized; 0 where it is left out."""
    parts = re.findall(r"\d{0,30}\.?\d{1,30}", view.text("dataset.split"))[:8]
    return float(parts[1]) if len(parts) > 1 else 0.0


@fact("data.suffixed_paths")
def suffixed_paths(view: View) -> list[object]:
    """Paths of a GPT dataset that end in .bin or .idx, where the prefix of the pair is wanted."""
    if "GPTDatasetConfig" not in view.class_names("dataset"):
        view.stop()
    found: list[object] = []
    pending = [view.value(name) for name in ("dataset.data_path", "dataset.blend", "dataset.blend_per_split")]
    for value in pending:
        if isinstance(value, Unknown):
            raise Stop(value)
        if isinstance(value, list) and len(pending) < MAX_PATHS:
            pending.extend(value)
        elif isinstance(value, str):
            found += [path for path in value.split() if path.endswith((".bin", ".idx"))]
    return found
