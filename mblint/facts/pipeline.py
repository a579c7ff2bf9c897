"""How layers are laid over pipeline stages and their model chunks.

Four ways exist and exclude one another: an even split, counts for the first and last stage, embedding and
loss counted as layers, and a layout. Source: TransformerConfig.__post_init__, get_num_layers_to_build,
PipelineParallelLayerLayout.
"""

from __future__ import annotations

import re
from typing import Final

from mblint.evaluate.unknown import Unknown
from mblint.facts.view import Stop, View, fact

MAX_LAYERS: Final = 10_000
MAX_STAGES: Final = 4_096
_LAYOUT: Final = "model.pipeline_model_parallel_layout"
_FIRST: Final = "model.num_layers_in_first_pipeline_stage"
_LAST: Final = "model.num_layers_in_last_pipeline_stage"
_EMBEDDING: Final = "model.account_for_embedding_in_pipeline_split"
_LOSS: Final = "model.account_for_loss_in_pipeline_split"
_LETTERS: Final = {"embedding": "E", "decoder": "t", "loss": "L", "mtp": "m", "encoder": "e"}


@fact("pipeline.vp")
def vp(view: View) -> int | None:
    """Virtual pipeline size: as given, or what the layout makes of it, or None."""
    size = view.known("model.virtual_pipeline_model_parallel_size")
    if size is not None:
        return view.integer("model.virtual_pipeline_model_parallel_size")
    if view.value(_LAYOUT) is None:
        return None
    stages = view.integer("pipeline.layout_stages")
    chunks, rest = divmod(stages, view.integer("parallel.pp"))
    if rest:
        view.stop()
    return chunks if chunks > 1 else None


@fact("pipeline.way")
def way(view: View) -> str:
    """How layers are split: "even", "counts", "accounted", "layout"; absent for patterns with stages."""
    if view.value(_LAYOUT) is not None:
        return "layout"
    pattern = view.value("model.hybrid_layer_pattern")
    if isinstance(pattern, str) and "|" in pattern:
        view.stop()
    if view.value(_FIRST) is not None or view.value(_LAST) is not None:
        return "counts"
    return "accounted" if view.flag(_EMBEDDING) or view.flag(_LOSS) else "even"


@fact("pipeline.even")
def even(view: View) -> bool:
    """Whether every stage is to hold equally many layers (no layout, no counts, nothing accounted for)."""
    return view.text("pipeline.way") == "even"


@fact("pipeline.layers")
def layers(view: View) -> int:
    """Layers of the decoder; absent for hybrid models, whose pattern gives them when it is finalized."""
    if view.value("model.hybrid_layer_pattern") is not None or view.value("model.hybrid_override_pattern") is not None:
        view.stop()
    count = view.integer("model.num_layers")
    return count if 0 < count <= MAX_LAYERS else view.stop()


@fact("pipeline.counted_layers")
def counted_layers(view: View) -> int:
    """Layers with embedding and loss where these count as layers."""
    return view.integer("pipeline.layers") + view.flag(_EMBEDDING) + view.flag(_LOSS)


@fact("pipeline.middle_layers")
def middle_layers(view: View) -> int:
    """Layers left for the stages between first and last, after the counts given for these."""
    return view.integer("pipeline.layers") - view.integer(_FIRST, 0) - view.integer(_LAST, 0)


@fact("pipeline.middle_stages")
def middle_stages(view: View) -> int:
    """Stages whose layer count is not given."""
    given = (view.value(_FIRST) is not None) + (view.value(_LAST) is not None)
    return view.integer("parallel.pp") - given


@fact("pipeline.splits")
def splits(view: View) -> bool:
    """Whether the layers can be laid over the stages at all."""
    kind, pp = view.text("pipeline.way"), view.integer("parallel.pp")
    if pp < 1:
        view.stop()
    if kind == "layout":
        return view.integer("pipeline.layout_stages") % pp == 0
    if kind == "counts":
        middle, stages = view.integer("pipeline.middle_layers"), view.integer("pipeline.middle_stages")
        if stages <= 0 or middle <= 0:
            return stages == 0 and middle == 0
        return middle % stages == 0
    return view.integer("pipeline.counted_layers") % pp == 0


@fact("pipeline.layers_per_stage")
def layers_per_stage(view: View) -> int:
    """Layers of a stage (of a middle stage with counts; embedding and loss included where they count).

    Absent where the layers do not divide, with a layout, and where no middle stage is left.
    """
    kind = view.text("pipeline.way")
    if kind == "layout" or not view.flag("pipeline.splits"):
        view.stop()
    if kind == "counts":
        stages = view.integer("pipeline.middle_stages")
        return view.integer("pipeline.middle_layers") // stages if stages else view.stop()
    return view.integer("pipeline.counted_layers") // view.integer("parallel.pp")


@fact("pipeline.counts")
def counts(view: View) -> list[object]:
    """Layers that have to divide by the virtual pipeline size: of first, middle and last stage as far as they
    differ.
    """
    kind = view.text("pipeline.way")
    if kind == "layout":
        view.stop()
    if kind != "counts":
        return [view.integer("pipeline.layers_per_stage")]
    found: list[object] = [view.integer(name) for name in (_FIRST, _LAST) if view.value(name) is not None]
    if view.integer("pipeline.middle_stages") > 0:
        found.append(view.integer("pipeline.layers_per_stage"))
    return list(dict.fromkeys(found))


@fact("pipeline.stage_layers")
def stage_layers(view: View) -> list[object]:
    """Decoder layers of every stage, first to last; absent where they cannot be laid out."""
    kind, pp = view.text("pipeline.way"), view.integer("parallel.pp")
    if not view.flag("pipeline.splits") or pp > MAX_STAGES:
        view.stop()
    if kind == "layout":
        rows = _rows(view)
        return [sum(rows[at].count("t") for at in range(stage, len(rows), pp)) for stage in range(pp)]
    if kind == "counts":
        stages = view.integer("pipeline.middle_stages")
        middle = view.integer("pipeline.middle_layers") // stages if stages else 0
        result: list[object] = [middle] * stages
        if view.value(_FIRST) is not None:
            result.insert(0, view.integer(_FIRST))
        if view.value(_LAST) is not None:
            result.append(view.integer(_LAST))
        return result
    each = view.integer("pipeline.layers_per_stage")
    laid = [each] * pp
    laid[0] -= view.flag(_EMBEDDING)
    laid[-1] -= view.flag(_LOSS)
    return list(laid)


# Hybrid models, whose pattern names every layer


def _main_pattern(view: View) -> str:
    """The decoder's part of the pattern, stages separated by "|"; ends the fact for models without one."""
    pattern = view.value("model.hybrid_layer_pattern", view.value("model.hybrid_override_pattern"))
    if not isinstance(pattern, str):
        view.stop()
    main = pattern.partition("/")[0]
    return main if len(main) <= MAX_LAYERS and set(main) <= set("MG*D+-E|") else view.stop()


@fact("pipeline.pattern_layers")
def pattern_layers(view: View) -> int:
    """Decoder layers in the pattern of a hybrid model; absent without one."""
    return len(_main_pattern(view).replace("|", ""))


@fact("pipeline.pattern_segments")
def pattern_segments(view: View) -> int:
    """Stages that the pattern of a hybrid model separates by "|"; absent without a pattern."""
    return _main_pattern(view).count("|") + 1


@fact("pipeline.pattern_splits")
def pattern_splits(view: View) -> bool:
    """Whether the layers of a pattern without stages fit the counts of first and last stage, or what counts.

    Absent with a layout, with stages in the pattern, and where layers are simply shared evenly.
    """
    if view.value(_LAYOUT) is not None or view.integer("pipeline.pattern_segments") > 1:
        view.stop()
    layers, stages = view.integer("pipeline.pattern_layers"), view.integer("parallel.pp")
    given = [view.integer(name) for name in (_FIRST, _LAST) if view.value(name) is not None]
    if given:
        layers, stages = layers - sum(given), stages - len(given)
        return layers % stages == 0 and bool(layers) if stages else not layers
    if not view.flag(_EMBEDDING) and not view.flag(_LOSS):
        view.stop()
    return stages > 0 and (layers + view.flag(_EMBEDDING) + view.flag(_LOSS)) % stages == 0


@fact("pipeline.no_rope_entries")
def no_rope_entries(view: View) -> int:
    """Layers that no_rope_freq lists; 0 where it is a number or not given."""
    view.value("model.no_rope_freq")
    written = view.resolved.written("model.no_rope_freq")
    if isinstance(written, Unknown):
        raise Stop(written)
    return len(written) if isinstance(written, list) else 0


# Work of a step


@fact("pipeline.lengths_vary")
def lengths_vary(view: View) -> bool:
    """Whether stages tell one another the shape of every micro batch (packing in the batch asks for it)."""
    return view.flag("model.variable_seq_lengths") or (
        view.integer("parallel.pp") > 1 and (view.flag("dataset.enable_in_batch_packing") or view.flag("dataset.pack_sequences_in_batch"))
    )


@fact("pipeline.bubble")
def bubble(view: View) -> float:
    """Share of a step that every stage spends idle: (PP - 1) / (VP x micro batches + PP - 1)."""
    pp = view.integer("parallel.pp")
    chunks = view.value("pipeline.vp", 1)
    if pp < 1 or not isinstance(chunks, int):
        view.stop()
    return (pp - 1) / (chunks * view.integer("batch.num_microbatches") + pp - 1)


# The layout


@fact("pipeline.layout")
def layout(view: View) -> list[object]:
    """The layout as a list of chunks, each a text of E (embedding), t (decoder layer), m (MTP), L (loss)."""
    return list(_rows(view))


@fact("pipeline.layout_stages")
def layout_stages(view: View) -> int:
    """Chunks in the layout: PP x virtual pipeline size."""
    return len(_rows(view))


@fact("pipeline.layout_layers")
def layout_layers(view: View) -> int:
    """Decoder layers in the layout."""
    return sum(row.count("t") for row in _rows(view))


@fact("pipeline.layout_mtp")
def layout_mtp(view: View) -> int:
    """MTP layers in the layout."""
    return sum(row.count("m") for row in _rows(view))


@fact("pipeline.layout_empty_stages")
def layout_empty_stages(view: View) -> list[object]:
    """Numbers (from 0) of the layout's chunks that hold no decoder layer."""
    return [at for at, row in enumerate(_rows(view)) if "t" not in row]


def _rows(view: View) -> list[str]:
    value = view.known(_LAYOUT)
    if isinstance(value, str) and value.startswith("<"):
        # The launch path has made an object of it; what was written is the same layout as text or lists.
        value = view.resolved.written(_LAYOUT)
    if isinstance(value, str):
        rows = parse_layout(value)
    elif isinstance(value, list):
        rows = _from_lists(value)
    else:
        rows = None
    return view.stop() if rows is None else rows


def _from_lists(value: list[object]) -> list[str] | None:
    rows = []
    for row in value[:MAX_STAGES]:
        if not isinstance(row, list):
            return None
        letters = [_LETTERS.get(str(item).rpartition(".")[2].strip().lower()) for item in row]
        if any(letter is None for letter in letters):
            return None
        rows.append("".join(letter or "" for letter in letters))
    return rows


def parse_layout(text: str) -> list[str] | None:
    """Chunks of a layout such as "Ettt|(tt|)*29m|L"; None where upstream would refuse it.

    Commas are only for reading; `(...)*n` repeats a group, `x*n` a letter; groups do not nest.
    """
    text = text.replace(",", "")
    if len(text) > MAX_LAYERS:
        return None
    for pattern in (r"\(([^)]+)\)\*(\d+)", r"(.)\*(\d+)"):
        size = 0
        for match in re.finditer(pattern, text):
            size += len(match[1]) * int(match[2][:6])
            if size > 4 * MAX_LAYERS:
                return None
        text = re.sub(pattern, lambda match: match[1] * int(match[2]), text)
    rows = text.split("|")
    return rows if all(letter in "EtmL" for row in rows for letter in row) else None
