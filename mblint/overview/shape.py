"""The figures that people tell launches apart by, read from a resolved launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mblint.facts.view import View
from mblint.overview.model import SIZES, Shape

_SIZE_FACTS: Final = {
    "tp": "parallel.tp",
    "pp": "parallel.pp",
    "vp": "pipeline.vp",
    "cp": "parallel.cp",
    "ep": "parallel.ep",
    "etp": "parallel.etp",
    "dp": "parallel.data_parallel_size",
}


def shape_of(view: View) -> Shape:
    """The figures of a launch after its launch path."""
    sizes = {name: _count(view, _SIZE_FACTS[name]) for name in SIZES}
    if sizes["vp"] is None and view.get("pipeline.vp") is None:
        sizes["vp"] = 1
    return Shape(
        model=_text(_model, view),
        layers=_count(view, "model.num_layers"),
        hidden=_count(view, "model.hidden_size"),
        sizes=sizes,
        micro_batch=_count(view, "train.micro_batch_size"),
        global_batch=_count(view, "train.global_batch_size"),
        sequence=_count(view, "model.seq_length"),
        precision=_text(_precision, view),
        recompute=_text(_recompute, view),
        peft=_text(_peft, view),
    )


def _count(view: View, name: str) -> int | None:
    value = view.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(read: Callable[[View], str], view: View) -> str:
    """What a reader says, or nothing where a value that it needs is not known."""
    from mblint.facts.view import Stop

    try:
        return read(view)
    except Stop:
        return ""


def _model(view: View) -> str:
    """The Hugging Face id where the model comes from one, else the provider's class without its endings."""
    name = view.get("model.hf_model_id")
    if isinstance(name, str) and name:
        return name
    classes = view.class_names("model")
    short = classes[0].rpartition(".")[2] if classes else ""
    for ending in ("Provider", "Model"):
        short = short.removesuffix(ending)
    return short


def _precision(view: View) -> str:
    """`bf16`, `fp16` or `fp32`, and the quantized format beside it."""
    base = "bf16" if view.flag("precision.bf16") else "fp16" if view.flag("precision.fp16") else "fp32"
    if view.value("precision.fp4"):
        return f"{base} + nvfp4"
    if view.value("precision.fp8"):
        recipe = view.get("precision.fp8_recipe")
        named = recipe if isinstance(recipe, str) else "fp8"
        return f"{base} + {named}" if named.startswith(("mxfp8", "fp8")) else f"{base} + fp8 {named}"
    return base


def _recompute(view: View) -> str:
    """`full`, the modules of selective recomputation, or `none`."""
    kind = view.value("recompute.granularity")
    if kind == "full":
        method, layers = view.get("model.recompute_method"), view.get("model.recompute_num_layers")
        return " ".join(["full", *(str(part) for part in (method, layers) if isinstance(part, str | int))])
    if kind == "selective":
        return ", ".join(str(name) for name in view.items("recompute.modules"))
    return "none"


def _peft(view: View) -> str:
    if view.value("peft") is None:
        return ""
    classes = view.class_names("peft")
    return classes[0].rpartition(".")[2] if classes else ""
