"""How certain the architecture of a launch's model is: where its config.json was found, and how much of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from mblint.launch.resolved import ResolvedLaunch
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
        return f"the architecture of {self.model} is {WORDS[self.confidence]}"


def architecture_of(launch: ResolvedLaunch) -> Architecture | None:
    """The published model that the launch builds; None where it names none, or nothing is known of it."""
    name = launch.get("model.hf_model_id")
    if not isinstance(name, str):
        return None
    facts = ModelSource(launch.session.project, cache_folder(os.environ)).facts(name)
    return Architecture(name, facts.confidence) if facts.config is not None else None
