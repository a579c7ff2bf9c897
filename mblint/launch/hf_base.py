"""What the common base class of Hugging Face configurations does: its constructor and a few methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mblint.evaluate.copying import copy_value
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, ClassValue, External, Instance
from mblint.launch.hf_steps import run_steps

if TYPE_CHECKING:
    from mblint.launch.hf_classes import Library

TEXT_CONFIGS = ("text_encoder", "decoder", "generator", "text_config")
"""Where a composite configuration keeps the part that text goes through."""

SCALED_ROPE = ("llama3", "yarn", "longrope")
"""Kinds of rotary embedding that remember the length of the original training."""

INTERNAL = frozenset({"_commit_hash", "_attn_implementation_internal", "_experts_implementation_internal", "_auto_class"})
ODD_ROPE = "rotary embedding settings that are not known"


def finish(library: Library, instance: Instance, given: dict[str, Any]) -> None:
    """The base constructor: dtype, labels, rotary embedding, and every other key as an attribute."""
    base = library.table["base"]
    attrs = instance.attrs
    if not library.post_style or instance.cls is library.open:
        for name, default in base["fields"].items():
            if name == "output_attentions":
                attrs["_output_attentions"] = given.pop(name, default)
            elif name != "num_labels":
                library.put(instance, name, given.pop(name) if name in given else library.fresh(default))
    older = given.pop("torch_dtype", None)
    dtype = attrs.get("dtype")
    dtype = older if dtype is None else dtype
    attrs["dtype"] = External(f"torch.{dtype}") if isinstance(dtype, str) else dtype
    _labels(library, instance, given.pop("num_labels", None))
    if base["rope"]:
        given = _rope(library, instance, given)
    for name, default in base["generation"].items():
        if base["sets_generation"]:
            library.put(instance, name, given.pop(name) if name in given else library.fresh(default))
        else:
            given.pop(name, None)
    attrs["_name_or_path"] = given.pop("name_or_path", "")
    attrs["_commit_hash"] = given.pop("_commit_hash", None)
    attrs.setdefault("_output_attentions", given.pop("output_attentions", False))
    attrs["_attn_implementation_internal"] = given.pop("attn_implementation", None)
    if library.post_style:
        attrs["_experts_implementation_internal"] = given.pop("experts_implementation", None)
    else:
        attrs["transformers_version"] = given.pop("transformers_version", None)
    for key, value in given.items():
        if key not in INTERNAL:
            library.put(instance, key, value)
    if base["sets_generation"]:
        attrs.setdefault("tf_legacy_loss", False)
        attrs.setdefault("use_bfloat16", False)


def _labels(library: Library, instance: Instance, count: Any) -> None:
    labels = instance.attrs.get("id2label")
    if labels is None:
        library.put(instance, "num_labels", count if count is not None else 2)
    elif isinstance(labels, dict):
        instance.attrs["id2label"] = {int(key) if isinstance(key, str) and key.isdigit() else key: value for key, value in labels.items()}


def _rope(library: Library, instance: Instance, given: dict[str, Any]) -> dict[str, Any]:
    """Keys of rotary embeddings, old or new, as one dict `rope_parameters`; returns the other keys."""
    attrs = instance.attrs
    if any(type(given.get(key)) is Unknown for key in ("rope_scaling", "rope_theta", "partial_rotary_factor")):
        attrs["rope_parameters"] = Unknown(ODD_ROPE)
        return given
    if "rope_parameters" not in attrs and not (given.get("rope_scaling") and given.get("rope_theta")):
        return given
    if type(attrs.get("rope_parameters")) is Unknown:
        return given
    given = library.machine.born(dict(given))
    steps = _rope_steps(library, instance)
    if steps is not None:
        run_steps(library, instance, steps, {"c": instance, "kw": given})
        return given
    parameters = given.pop("rope_scaling", None) or attrs.get("rope_parameters")
    parameters = parameters if parameters is not None else library.machine.born({})
    if not isinstance(parameters, dict):
        attrs["rope_parameters"] = Unknown(ODD_ROPE)
        return given
    attrs["rope_parameters"] = parameters
    theta = given.pop("rope_theta", MISSING)
    for name, default in (("rope_theta", MISSING), ("default_theta", 10_000.0)):
        theta = library.peek(instance, name, default) if theta is MISSING else theta
    parameters.setdefault("rope_theta", theta)
    factor = given.get("partial_rotary_factor", library.peek(instance, "partial_rotary_factor", None))
    if factor is not None:
        parameters.setdefault("partial_rotary_factor", factor)
    standardize_rope(library, instance)
    return given


def _rope_steps(library: Library, instance: Instance) -> list[Any] | None:
    """How the nearest class that has a way of its own brings the keys into form."""
    for cls in instance.cls.cached_mro if instance.cls is not None else ():
        record = library.record_of(cls) if isinstance(cls, ClassValue) else None
        if record is not None and "rope" in record:
            steps: list[Any] = record["rope"]
            return steps
    return None


def standardize_rope(library: Library, instance: Instance) -> None:
    """Complete `rope_parameters`: the type, and the base in every part where kinds of layers differ."""
    parameters = instance.attrs.get("rope_parameters")
    theta = library.peek(instance, "rope_theta", None)
    factor = library.peek(instance, "partial_rotary_factor", None)
    kinds = library.peek(instance, "layer_types", None)
    if type(parameters) is Unknown:
        return
    parameters = library.machine.born({}) if parameters is None else parameters
    if not isinstance(parameters, dict) or any(type(value) is Unknown for value in (theta, factor, kinds)):
        instance.attrs["rope_parameters"] = Unknown(ODD_ROPE)
        return
    if not parameters and not theta:
        return
    by_layer = _is_by_layer(parameters, kinds)
    for part in [parameters.get(kind) for kind in dict.fromkeys(kinds)] if by_layer else [parameters]:
        if not isinstance(part, dict):
            instance.attrs["rope_parameters"] = Unknown(ODD_ROPE)
            return
        part.setdefault("rope_type", part.get("type", "default"))
        part.setdefault("rope_theta", theta)
        if factor is not None:
            part["partial_rotary_factor"] = factor
        if part["rope_type"] in SCALED_ROPE:
            length = library.peek(instance, "max_position_embeddings", None)
            own = library.peek(instance, "original_max_position_embeddings", MISSING)
            if own is not MISSING and not by_layer:
                part["original_max_position_embeddings"] = own
            part.setdefault("original_max_position_embeddings", length)
    instance.attrs["rope_parameters"] = parameters


def _is_by_layer(parameters: dict[Any, Any], kinds: Any) -> bool:
    """Whether rotary settings are given for each kind of layer."""
    if not isinstance(kinds, list) or not parameters:
        return False
    return set(parameters) <= {kind for kind in kinds if isinstance(kind, str)}


def name_rope_type(library: Library, instance: Instance) -> None:
    """The check of rotary settings at the end of construction also gives them their type."""
    parameters = instance.attrs.get("rope_parameters")
    if not isinstance(parameters, dict) or not parameters or instance.cls is None:
        return
    for cls in instance.cls.cached_mro:
        if isinstance(cls, ClassValue) and "v" in library.records.get(cls.name, ()):
            return
    if not _is_by_layer(parameters, library.peek(instance, "layer_types", None)):
        parameters.setdefault("rope_type", parameters.get("type", "default"))


def to_dict(library: Library, value: Any, depth: int = 0) -> Any:
    """config.to_dict()"""
    if not isinstance(value, Instance):
        return copy_value(library.machine, value)
    if value.cls is None or depth > 10:
        return Unknown(value.reason or "a configuration that is not known")
    made = {key: to_dict(library, inner, depth + 1) for key, inner in value.attrs.items() if key not in INTERNAL}
    if "_output_attentions" in made:
        made["output_attentions"] = made.pop("_output_attentions")
    if isinstance(made.get("dtype"), External):
        made["dtype"] = made["dtype"].name.rpartition(".")[2]
    model_type = value.cls.namespace.get("model_type")
    if model_type:
        made["model_type"] = model_type
    made.pop("transformers_version", None)
    if not depth:
        made["transformers_version"] = library.table["version"]
    return library.machine.born(made)


def text_config(library: Library, instance: Instance, kwargs: dict[str, Any]) -> Any:
    """config.get_text_config()"""
    encoder, decoder = kwargs.get("encoder"), kwargs.get("decoder")
    names: tuple[str, ...] = TEXT_CONFIGS
    if encoder != decoder:
        names = TEXT_CONFIGS[1:] if decoder else TEXT_CONFIGS[:1]
    found = [library.peek(instance, name, None) for name in names]
    held = [value for value in found if value is not None]
    if any(type(value) is Unknown for value in held) or len(held) > 1:
        return Unknown("which part of the configuration is for text")
    return held[0] if held else instance
