"""The text of `mblint estimate`: for each launch what fills its worst GPU and how full each stage is.

All sizes are GiB, 2**30 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from mblint.facts.memory.capacity import GIB
from mblint.facts.memory.groups import (
    ACTIVATION_GROUP,
    ALLOWANCE_GROUP,
    GRADIENT_GROUP,
    OPTIMIZER_GROUP,
    TEMPORARY_GROUP,
    WEIGHT_GROUP,
    group_of,
    grouped,
)
from mblint.shown import by_reason, neutral, with_remedy

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    from mblint.facts.memory.launch_memory import LaunchMemory

# More launches than this are listed in one table only, unless details are asked for.
_DETAILED: Final = 4
_STAGES: Final = 24
_BAR: Final = 48
_STYLES: Final[dict[str, tuple[str, str]]] = {
    WEIGHT_GROUP: ("W", "blue"),
    GRADIENT_GROUP: ("G", "cyan"),
    OPTIMIZER_GROUP: ("O", "magenta"),
    ACTIVATION_GROUP: ("A", "green"),
    TEMPORARY_GROUP: ("T", "yellow"),
    ALLOWANCE_GROUP: (".", "bright_black"),
}
_VERDICTS: Final = {"fits": "green", "close": "yellow", "does not fit": "red", "unknown": "yellow"}


def estimate_text(
    launches: Sequence[LaunchMemory],
    *,
    color: bool = False,
    blocks: bool = True,
    width: int = 100,
    detailed: bool | None = None,
) -> str:
    """The whole report.

    `blocks`: whether the output can show block characters; without them, and without colour, bars are made
    of letters. `detailed`: components and stages of every launch; None: where there are at most four.
    """
    import io

    from rich.console import Console

    out = io.StringIO()
    console = Console(
        file=out,
        width=max(60, width),
        force_terminal=color,
        no_color=not color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    bars = _Bars(color and blocks)
    if detailed is None:
        detailed = len(launches) <= _DETAILED
    if detailed:
        for number, launch in enumerate(launches):
            if number:
                console.print()
            _launch(console, bars, launch)
    if len(launches) > (1 if detailed else 0):
        if detailed:
            console.print()
        _summary(console, bars, launches)
    # Tables fill their last column: what trails is nothing.
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


class _Bars:
    """Stacked bars, in coloured blocks or in letters."""

    def __init__(self, colored: bool) -> None:
        self.colored = colored

    def cell(self, group: str) -> tuple[str, str]:
        letter, style = _STYLES[group]
        if not self.colored:
            return letter, ""
        return ("░" if group == ALLOWANCE_GROUP else "█"), style

    def bar(self, groups: Mapping[str, float], full: float, capacity: float | None, cells: int = _BAR) -> Text:
        """One bar: `full` bytes are `cells` wide; the capacity is marked."""
        from rich.text import Text

        text = Text(no_wrap=True)
        if full <= 0:
            return text
        mark = None if capacity is None else min(cells, round(capacity / full * cells))
        done, position = 0.0, 0
        drawn: list[tuple[str, str]] = []
        for group, size in groups.items():
            done += size
            end = min(cells, round(done / full * cells))
            drawn += [self.cell(group)] * (end - position)
            position = max(position, end)
        drawn += [(" ", "")] * (cells + 1 - len(drawn))
        if mark is not None:
            drawn.insert(mark, ("│" if self.colored else "|", "bold"))
        for (character, style), run in groupby(drawn):
            text.append(character * len(list(run)), style)
        text.rstrip()
        return text


def gib(size: float) -> str:
    """A size in GiB: two digits behind the point below ten, else one."""
    value = size / GIB
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"


def _say(console: Console, text: Text) -> None:
    """A line of words: not folded, so that it can be searched and copied."""
    console.print(text, soft_wrap=True)


def _launch(console: Console, bars: _Bars, launch: LaunchMemory) -> None:
    from rich.text import Text

    _say(console, _head(launch))
    for key, value in launch.changes.items():
        _say(console, Text(f"  with {neutral(key)} = {neutral(str(value))}", style="cyan"))
    if launch.total_bytes is None:
        _say(console, Text("  no estimate", style="yellow"))
        for reason in by_reason(launch.missing):
            _say(console, Text(f"  not known: {neutral(reason)}"))
    else:
        _say(console, _verdict(launch))
        if launch.refused:
            reason = launch.refused if len(launch.refused) <= 160 else f"{launch.refused[:160]}..."
            _say(console, Text(f"  it does not start: {neutral(' '.join(reason.split()))}; mblint check says more", style="red"))
        if launch.groups:
            capacity, full = _scale([launch])
            line = Text("\n  ")
            line.append_text(bars.bar(launch.groups, full, capacity, min(_BAR, console.width - 4)))
            _say(console, line)
        console.print()
        console.print(_components(bars, launch))
        if len(launch.stages) > 1:
            console.print()
            console.print(_stages(console, bars, launch))
        if launch.others:
            console.print()
    for other in launch.others:
        if other.total_bytes is None:
            _say(console, Text(f"  {neutral(other.name)}: none; {neutral(other.because)}", style="dim"))
            continue
        parts = ", ".join(f"{neutral(name)} {gib(size)}" for name, size in other.components.items())
        _say(console, Text(f"  {neutral(other.name)}: {gib(other.total_bytes)} GiB ({parts})", style="dim"))


def _head(launch: LaunchMemory) -> Text:
    from rich.text import Text

    head = Text()
    head.append(neutral(launch.id), style="bold")
    if launch.world_size is not None:
        head.append(f"  {launch.world_size} GPU{'s' * (launch.world_size != 1)}")
    if launch.gpu:
        head.append(f"  {neutral(launch.gpu)}")
    return head


def _verdict(launch: LaunchMemory) -> Text:
    from rich.text import Text

    total, judgement = launch.total_bytes or 0, launch.judgement
    text = Text("  ")
    if judgement is None:
        text.append(f"{gib(total)} GiB by {launch.formula}")
    else:
        words = {"fits": "fits", "close": "close to the limit", "does not fit": "does not fit"}
        word = words.get(judgement.verdict, "cannot be said whether it fits")
        text.append(word, style=f"bold {_VERDICTS[judgement.verdict]}")
        text.append(f": {gib(total)} GiB")
    if launch.capacity is not None and launch.head_room_bytes is not None:
        room = launch.head_room_bytes
        text.append(f" of {launch.capacity.low_gib:.1f} GiB")
        text.append(f", {gib(room)} GiB left" if room >= 0 else f", {gib(-room)} GiB too much")
    worst = launch.estimate.worst if launch.estimate is not None else None
    if worst is not None:
        of = f" on stage {worst.stage} of {len(launch.stages)}" if len(launch.stages) > 1 else ""
        text.append(f"; the peak is in the {worst.moment}{of}")
    if judgement is not None and launch.estimate is not None:
        low, high = gib(judgement.low_bytes), gib(judgement.high_bytes)
        text.append(f"\n  between {low} and {high} GiB ({judgement.band})", style="dim")
        doubts = [text for text in (with_remedy(judgement.because), launch.architecture.get("doubt", "")) if text]
        if judgement.capacity is None:
            names = (
                ("not counted", launch.estimate.not_modelled),
                ("only roughly counted", launch.estimate.approximated),
            )
            doubts += [f"{words}: {', '.join(found)}" for words, found in names if found]
        for doubt in doubts:
            text.append(f"\n  {neutral(doubt)}", style="yellow")
    return text


def _components(bars: _Bars, launch: LaunchMemory) -> RenderableType:
    from rich.text import Text

    own = bool(launch.groups)
    table = _table("", "component", ">GiB", ">%", "kind" if own else "")
    total = launch.total_bytes or 0
    before = ""
    for name, size in launch.components.items():
        group = group_of(name) if own else ""
        cell = Text(*bars.cell(group)) if own else Text()
        share = f"{size / total:.0%}" if total else ""
        table.add_row(cell, neutral(name), gib(size), share, "" if group == before else group)
        before = group
    table.add_row("", "total", gib(total), style="bold")
    if launch.allocated_bytes is not None:
        table.add_row("", "of it PyTorch's allocator holds", gib(launch.allocated_bytes), style="dim")
    if launch.static_bytes is not None:
        where = "of it stays between steps" if len(launch.stages) < 2 else "stays between steps, at most"
        table.add_row("", where, gib(launch.static_bytes), style="dim")
    return _indented(table)


def _stages(console: Console, bars: _Bars, launch: LaunchMemory) -> RenderableType:
    from rich.text import Text

    capacity, full = _scale([launch])
    head = "allocated at the peak" + (f", of {capacity / GIB:.1f} GiB" if capacity else "")
    table = _table(">stage", ">layers", ">params, 10^9", ">in flight", ">state", ">peak", head)
    worst = launch.estimate.worst if launch.estimate is not None else None
    shown = launch.stages
    if len(shown) > _STAGES:
        largest = sorted(shown, key=lambda stage: -stage.allocated_bytes)[:_STAGES]
        shown = tuple(sorted(largest, key=lambda stage: stage.stage))
    for stage in shown:
        table.add_row(
            str(stage.stage),
            str(stage.layers),
            f"{stage.parameters / 1e9:.2f}",
            str(stage.microbatches_in_flight),
            gib(stage.static_bytes),
            gib(stage.allocated_bytes),
            bars.bar(grouped(stage.components), full, capacity, max(10, min(_BAR, console.width - 60))),
            style="bold" if worst is stage else "",
        )
    left = len(launch.stages) - len(shown)
    if left:
        table.add_row("", "", "", "", "", "", Text(f"{left} more stages hold no more than these"))
    return _indented(table)


def _summary(console: Console, bars: _Bars, launches: Sequence[LaunchMemory]) -> None:
    """Two lines a launch: its name and changes, then its figures and a bar on a common scale."""
    from rich.text import Text

    _, full = _scale(launches)
    cells = max(10, min(_BAR, console.width - 68))
    scale = f"bars: {gib(full)} GiB" if full else ""
    figures = "{:>7}  {:<6}{:>7}{:>7}{:>7}{:>8}  "
    titles = figures.format("GPUs", "type", "state", "peak", "total", "left")
    _say(console, Text(f"{titles}{'':<14}{scale}".rstrip(), style="dim"))
    for launch in launches:
        _say(console, Text(neutral(launch.id), style="bold"))
        for key, value in launch.changes.items():
            _say(console, Text(f"  with {neutral(key)} = {neutral(str(value))}", style="cyan"))
        sizes = (launch.static_bytes, launch.allocated_bytes, launch.total_bytes, launch.head_room_bytes)
        gpus = "" if launch.world_size is None else str(launch.world_size)
        columns = ("" if size is None else gib(size) for size in sizes)
        line = Text(figures.format(gpus, neutral(launch.gpu), *columns))
        if launch.total_bytes is None:
            line.append("not known: " + neutral(", ".join(launch.missing)), style="yellow")
        else:
            verdict = launch.judgement.verdict if launch.judgement is not None else ""
            line.append(f"{verdict:<14}", style=_VERDICTS.get(verdict, ""))
            capacity = launch.capacity.low_gib * GIB if launch.capacity else None
            line.append_text(bars.bar(launch.groups, full, capacity, cells))
        _say(console, line)
    groups = [group for group in _STYLES if any(launch.groups.get(group) for launch in launches)]
    if groups:
        legend = Text("\n  ")
        for group in groups:
            legend.append(*bars.cell(group))
            legend.append(f" {group}   ")
        _say(console, legend)


def _scale(launches: Sequence[LaunchMemory]) -> tuple[float | None, float]:
    """(capacity of the first, bytes that a whole bar stands for)."""
    capacities = [launch.capacity.low_gib * GIB for launch in launches if launch.capacity]
    sizes = [float(launch.total_bytes) for launch in launches if launch.total_bytes is not None]
    return (capacities[0] if capacities else None), max([*capacities, *sizes], default=0.0)


def _table(*titles: str) -> Table:
    """A table without lines; a title that begins with > is of a column of numbers."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in titles:
        right = title.startswith(">")
        table.add_column(title.removeprefix(">"), justify="right" if right else "left", no_wrap=right)
    return table


def _indented(table: Table) -> RenderableType:
    from rich.padding import Padding

    return Padding(table, (0, 0, 0, 2))
