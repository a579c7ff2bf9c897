"""Which attention implementation runs.

The backend is chosen by `attention_backend`; auto and None leave the choice to Transformer Engine, which
takes flash or fused attention unless environment variables forbid both. Source:
LanguageModule._set_attention_backend.
"""

from __future__ import annotations

from mblint.facts.view import View, fact


@fact("attention.backend")
def backend(view: View) -> str:
    """ "flash", "fused", "unfused", "local" or "auto" (also where it is None)."""
    return view.text("model.attention_backend", "auto").rpartition(".")[2]


@fact("attention.unfused")
def unfused(view: View) -> bool:
    """Whether attention scores are materialised: unfused or local, or both faster ways forbidden."""
    if view.value("model.transformer_impl") == "local":
        return True
    chosen = view.text("attention.backend")
    if chosen in ("unfused", "local"):
        return True
    if chosen != "auto" or view.value("model.attention_backend") is not None:
        return False
    # With auto written out the launch itself sets these variables to 1 or refuses other values.
    flash, fused = view.get("env.NVTE_FLASH_ATTN"), view.get("env.NVTE_FUSED_ATTN")
    return flash == "0" and fused == "0"
