"""How certain the architecture of a launch's model is: where its config.json was found, and how much of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mblint.upstream.models import Confidence, ModelSource, cache_folder

WORDS: Final[dict[Confidence, str]] = {
    "copied": "as its config.json says",
    "partial": "known in part",
    "derived": "taken from models of the same architecture",
}


@dataclass(frozen=True, slots=True)
class Architecture:
    """`model` is the Hugging Face id or folder."""

    model: str
    confidence: Confidence

    @property
    def doubt(self) -> str:
        """What a reader has to know; "" where the whole config.json was at hand."""
        if self.confidence == "copied":
            return ""
        return f"the configuration of {self.model} is {WORDS[self.confidence]}"


def architecture_of(name: object, roots: Sequence[str] = ()) -> Architecture | None:
    """The published model of that Hugging Face id or folder (a relative one is looked for in `roots`); None where there is no
    such name, or nothing is known of it."""
    if not isinstance(name, str):
        return None
    facts = ModelSource(roots, cache_folder(os.environ)).facts(name)
    return Architecture(name, facts.confidence) if facts.config is not None else None
