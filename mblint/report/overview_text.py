"""The table of `mblint report` in a terminal: launches below their files."""

from __future__ import annotations

from collections import Counter
from typing import TextIO

from mblint.facts.memory.capacity import GIB
from mblint.overview.model import Entry, Overview
from mblint.report.frame import Line
from mblint.report.full import write_lines
from mblint.report.model import count_of, summary_lines
from mblint.report.overview_words import batch, findings_text, gpus, layout
from mblint.shown import neutral

_MEMORY_STYLES = {"fits": "good", "close": "warning", "does not fit": "error"}


def render(overview: Overview, out: TextIO, *, color: bool) -> None:
    """Write the table, then what `check` says in its last lines."""
    lines: list[Line] = []
    table = [_cells(entry) for entry in overview.entries]
    widths = [max((len(text) for text, _ in column), default=0) for column in zip(*table, strict=True)]
    file = None
    for entry, cells in zip(overview.entries, table, strict=True):
        if entry.file != file:
            file = entry.file
            lines += [[]] if lines else []
            lines.append([(neutral(file) or "(no file)", "bold")])
        row: Line = [("  ", "")]
        for (text, style), width in zip(cells, widths, strict=True):
            row += [(text, style), (" " * (width - len(text) + 2), "")]
        lines.append(row[:-1])
    lines += [[]] if lines else []
    fits: Counter[str] = Counter(
        entry.memory.judgement.verdict for entry in overview.entries if entry.memory is not None and entry.memory.judgement
    )
    if fits["does not fit"] or fits["close"]:
        parts = [f"{count_of(fits[name], 'launch')} {words}" for name, words in _FITS if fits[name]]
        lines.append([(f"Memory: {', '.join(parts)}.", "")])
    lines += [[(line, "bold" if index == 0 else "")] for index, line in enumerate(summary_lines(overview.report))]
    write_lines(out, lines, color)


_FITS = (("does not fit", "too large"), ("close", "close to the limit"), ("fits", "with room"))


def _cells(entry: Entry) -> list[tuple[str, str]]:
    shape = entry.shape
    name = entry.name.rpartition(":")[2] if entry.name == entry.recipe else entry.name
    memory, style = _memory(entry)
    worst = next((level for level in ("error", "warning", "advice") if any(f.severity == level for f in entry.findings)), "dim")
    return [
        (neutral(name), ""),
        (neutral(gpus(entry)), ""),
        (layout(shape), ""),
        (batch(shape), ""),
        (neutral(shape.precision), ""),
        (memory, style),
        (findings_text(entry.findings) or ("not decided" if entry.verdict == "undecided" else "no findings"), worst),
    ]


def _memory(entry: Entry) -> tuple[str, str]:
    memory = entry.memory
    if memory is None or memory.total_bytes is None:
        return "", "dim"
    room = f" of {memory.capacity.low_gib:.1f}" if memory.capacity else ""
    style = _MEMORY_STYLES.get(memory.judgement.verdict, "dim") if memory.judgement else "dim"
    return f"{memory.total_bytes / GIB:.1f}{room} GiB", style
