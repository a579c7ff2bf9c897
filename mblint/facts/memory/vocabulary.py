"""Rows of the embedding and of the output matrix.

Source: megatron-bridge 0.6.2, `models/gpt_provider.py` and `training/tokenizers/`: a model without a size of its own takes the
tokenizer's at launch, padded to a multiple of TP x a given number where that is asked for.
"""

from __future__ import annotations

import math

from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.facts.memory.reading import Reader


def vocabulary(read: Reader, tp: int) -> int:
    """The size that the launch will have; what is not known is recorded as missing.

    For the tokenizer of a published model the size in that model's config.json stands in: the tokenizer has at most that
    many tokens, and rarely a percent fewer.
    """
    size = _own(read)
    if size is None:
        size = _published(read)
    if size is None:
        size = read.size("model.vocab_size") if isinstance(read.source.get("model.vocab_size"), Unknown) else None
    if size is None:
        read.missing["model.vocab_size"] = "the tokenizer sets it at launch"
        return 1
    if not read.flag("model.should_pad_vocab"):
        return size
    multiple = max(1, read.integer("model.make_vocab_size_divisible_by", 128) * tp)
    return math.ceil(size / multiple) * multiple


def _own(read: Reader) -> int | None:
    """What the model says, then what the tokenizer's section says."""
    value = read.source.get("model.vocab_size")
    if value is None or value is ABSENT:
        return read.optional("tokenizer.vocab_size", 0)
    return None if isinstance(value, Unknown) else read.size("model.vocab_size")


def _published(read: Reader) -> int | None:
    """The vocabulary of the published model whose tokenizer is named."""
    name = read.source.get("tokenizer.tokenizer_model")
    if read.source.get("tokenizer.tokenizer_type") != "HuggingFaceTokenizer" or not isinstance(name, str):
        return None
    from mblint.upstream.models import shipped_models

    config = shipped_models().get(name, {}).get("config") or {}
    for part in (config, config.get("text_config") or {}):
        size = part.get("vocab_size")
        if isinstance(size, int):
            return size
    return None
