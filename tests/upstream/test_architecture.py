"""How certain the architecture of a launch is."""

from __future__ import annotations

from typing import Any

import pytest

from mblint.evaluate.unknown import Unknown
from mblint.upstream.architecture import Architecture, architecture_of
from mblint.upstream.models import shipped_models


@pytest.mark.parametrize("confidence", ["copied", "partial", "derived"])
def test_confidence_of_the_shipped_table(confidence: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    name = next(name for name, held in shipped_models().items() if held["confidence"] == confidence)
    found = architecture_of(name)
    assert found is not None and (found.model, found.confidence) == (name, confidence)
    assert bool(found.doubt) is (confidence != "copied")


def test_no_published_model_is_no_doubt(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    for name in (None, Unknown("x"), "somebody/unheard-of"):
        assert architecture_of(name) is None
    assert "org/name" in Architecture("org/name", "partial").doubt
