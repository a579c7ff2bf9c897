"""Which CUDA graphs a launch captures.

`cuda_graph_impl` names the implementation (none, local, transformer_engine, full_iteration); the older
switches `enable_cuda_graph` and `external_cuda_graph` stand for local and transformer_engine. Source:
TransformerConfig.__post_init__.
"""

from __future__ import annotations

from mblint.facts.versions import at_least
from mblint.facts.view import View, fact


@fact("graphs.impl")
def impl(view: View) -> str:
    """ "none", "local", "transformer_engine" or "full_iteration", older switches included."""
    given = view.text("model.cuda_graph_impl", "none")
    if given == "none":
        if view.flag("model.enable_cuda_graph"):
            return "local"
        if view.flag("model.external_cuda_graph"):
            return "transformer_engine"
    if given == "local" and "full_iteration" in _names(view, "model.cuda_graph_scope", "model.cuda_graph_modules"):
        return "full_iteration"
    return given


@fact("graphs.active")
def active(view: View) -> bool:
    """Whether training captures CUDA graphs."""
    return view.text("graphs.impl") != "none"


@fact("graphs.per_layer")
def per_layer(view: View) -> bool:
    """Whether layers are captured one by one (local or transformer_engine)."""
    return view.text("graphs.impl") in ("local", "transformer_engine")


@fact("graphs.modules")
def modules(view: View) -> list[object]:
    """The modules that are captured ("attn", "moe_router", ...); empty means the whole layer.

    From Bridge 0.6 on they are cleared where `cuda_graph_impl` is "none", before an older switch changes that.
    """
    if view.text("model.cuda_graph_impl", "none") == "none" and at_least(view, "bridge", 0, 6):
        return []
    ends = {"full", "full_iteration", "full_iteration_inference"}
    # Core before 0.18 knows the older name only.
    keys = ("model.cuda_graph_modules",) if at_least(view, "core", 0, 18) else ()
    names = _names(view, *keys, "model.cuda_graph_scope")
    return [name for name in dict.fromkeys(names) if name not in ends]


def _names(view: View, *keys: str) -> list[str]:
    names: list[str] = []
    for key in keys:
        for item in view.items(key):
            names.extend(part.strip().rpartition(".")[2] for part in str(item).split(","))
    return [name for name in names if name]
