"""What activation recomputation does in the end. Source: TransformerConfig.__post_init__."""

from __future__ import annotations

from mblint.facts.view import View, fact


@fact("recompute.granularity")
def granularity(view: View) -> str | None:
    """ "full", "selective" or None."""
    value = view.value("model.recompute_granularity")
    return value if isinstance(value, str) else None


@fact("recompute.full")
def full(view: View) -> bool:
    """Whether whole layers are recomputed."""
    return view.value("recompute.granularity") == "full"


@fact("recompute.modules")
def modules(view: View) -> list[object]:
    """Modules that selective recompute covers; empty without it. A list that is not given means core_attn."""
    if view.value("recompute.granularity") != "selective":
        return []
    if view.value("model.recompute_modules") is None:
        return ["core_attn"]
    return view.items("model.recompute_modules")
