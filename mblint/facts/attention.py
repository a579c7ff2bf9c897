"""Which attention implementation runs.

The backend is chosen by `attention_backend`; auto and None leave the choice to Transformer Engine, which
takes flash or fused attention unless environment variables forbid both. Source:
LanguageModule._set_attention_backend.

The field holds a member of AttnBackend, which is no text enum: a plain text such as "flash" equals none of
its members, and the model chooses as if nothing were said. Only hybrid and Qwen Omni providers know the text
"local".
"""

from __future__ import annotations

from mblint.facts.view import View, fact

_KNOW_TEXT_LOCAL = ("HybridModelProvider", "MambaModelProvider", "Qwen3OmniModelProvider")


@fact("attention.backend_is_text")
def backend_is_text(view: View) -> bool:
    """Whether the backend is given as plain text, which nothing compares equal to."""
    value = view.value("model.attention_backend")
    if not isinstance(value, str) or "." in value:
        return False
    if value != "local":
        return True
    names = [name.rpartition(".")[2] for name in view.class_names("model")]
    return not any(name in _KNOW_TEXT_LOCAL for name in names)


@fact("attention.backend")
def backend(view: View) -> str:
    """ "flash", "fused", "unfused", "local" or "auto" (also where it is None or plain text)."""
    if view.flag("attention.backend_is_text"):
        return "auto"
    return view.text("model.attention_backend", "auto").rpartition(".")[2]


@fact("attention.unfused")
def unfused(view: View) -> bool:
    """Whether attention scores are materialised: unfused or local, or both faster ways forbidden."""
    if view.value("model.transformer_impl") == "local":
        return True
    chosen = view.text("attention.backend")
    if chosen in ("unfused", "local"):
        return True
    said = view.value("model.attention_backend") is not None and not view.flag("attention.backend_is_text")
    if chosen != "auto" or said:
        return False
    # With auto written out the launch itself sets these variables to 1 or refuses other values.
    flash, fused = view.get("env.NVTE_FLASH_ATTN"), view.get("env.NVTE_FUSED_ATTN")
    return flash == "0" and fused == "0"
