"""The text of `mblint explain`: a tree of values with who set them, and the difference of two recipes."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from mblint.evaluate.unknown import Unknown
from mblint.launch.resolved import ResolvedLaunch, Write
from mblint.launch.run import Launch
from mblint.launch.session import Session
from mblint.report.model import LAUNCHERS
from mblint.report.stream import use_color
from mblint.shown import neutral, relative


def _console(args: argparse.Namespace) -> Any:
    from rich.console import Console

    colored = use_color(sys.stdout, args.color)
    return Console(
        file=sys.stdout, force_terminal=colored, no_color=not colored, highlight=False, soft_wrap=True, emoji=False, markup=False
    )


def render_tree(
    args: argparse.Namespace,
    session: Session,
    resolved: ResolvedLaunch,
    launch: Launch,
    keys: list[str],
    config: dict[str, Any],
    unknown: dict[str, str],
) -> None:
    """Values below their sections; what nobody set is shown only when a key was asked for, or with -v."""
    import os

    from rich.text import Text

    console = _console(args)
    root = os.getcwd()
    head = Text(launch.label, style="bold")
    if isinstance(resolved.world_size, int):
        head.append(f"  {resolved.world_size} GPUs")
    if isinstance(resolved.gpu, str):
        head.append(f"  {resolved.gpu}")
    console.print(head)
    for note in origin_lines(launch, root):
        console.print(Text(neutral(note), style="dim"))
    section = None
    hidden = 0
    for key in keys:
        if key.endswith("__class__"):
            continue
        writes = resolved.all_writes(key)
        if not writes and not args.key and not args.verbose and key in config:
            hidden += 1
            continue
        prefix, _, name = key.rpartition(".")
        if prefix != section:
            section = prefix
            line = Text(f"{prefix or '(container)'}", style="bold cyan")
            cls = config.get(f"{prefix}.__class__" if prefix else "__class__")
            if cls:
                line.append(f"  {str(cls).rpartition('.')[2]}", style="dim")
            console.print(line)
        line = Text("  ")
        line.append(name)
        if key in config:
            line.append(" = ")
            line.append(neutral(shown_value(config[key])), style="green")
        else:
            line.append(" unknown: ", style="yellow")
            line.append(neutral(unknown[key]), style="yellow")
        console.print(line)
        for number, write in enumerate(reversed(writes)):
            word = "set" if number == 0 else "before"
            place = f"{relative(write.span.path, root)}:{write.span.line}"
            text = Text(f"      {word} {place}", style="dim")
            if write.phase == 2:
                text.append("  by the launch path", style="dim")
            elif write.kind == "override":
                text.append(f"  {layer_of(write, launch)}", style="dim")
            if number:
                text.append(f"  {neutral(shown_value(write.value))}", style="dim")
            console.print(text)
    for line in environment_lines(args, resolved, launch, root):
        console.print(line)
    if hidden:
        console.print(Text(f"{hidden} more keys have their class's default; -v shows them, --key GLOB picks some", style="dim"))
    console.print(Text(session.upstream.pair, style="dim"))


def environment_lines(args: argparse.Namespace, resolved: ResolvedLaunch, launch: Launch, root: str) -> list[Any]:
    """The environment that the process gets, where a script or manifest sets one: each variable with who sets it."""
    import fnmatch

    from rich.text import Text

    if launch.spec is None or not launch.spec.env:
        return []
    lines = []
    for name, value in sorted(resolved.env.items()):
        if args.key and not any(fnmatch.fnmatch(f"{head}.{name}", pattern) for pattern in args.key for head in ("env", "env_vars")):
            continue
        line = Text(f"  {name}")
        if isinstance(value, Unknown):
            line.append(f" unknown: {neutral(value.reason)}", style="yellow")
        else:
            line.append(" = ").append(neutral(shown_value(value)), style="green")
        lines.append(line)
        for number, write in enumerate(reversed(resolved.origins(f"env_vars.{name}"))):
            place = f"{relative(write.span.path, root)}:{write.span.line}"
            lines.append(Text(f"      {'before' if number else 'set'} {place}", style="dim"))
    return [Text("environment of the process", style="bold cyan"), *lines] if lines else []


def origin_lines(launch: Launch, root: str) -> list[str]:
    """What a launch that a file describes is made of: the recipe, who starts it, what was not understood."""
    spec = launch.spec
    if spec is None:
        return []
    lines = [f"recipe {launch.recipe}"] if launch.recipe is not None else []
    lines.append(f"config by {LAUNCHERS.get(spec.launcher, spec.launcher)}")
    lines += [f"when {condition}" for condition in spec.conditions]
    lines += [f"not understood: {text}" + (f" ({relative(place.path, root)}:{place.line})" if place else "") for text, place in spec.unread]
    if spec.more is not None:
        lines.append(spec.more.reason)
    return lines


def layer_of(write: Write, launch: Launch) -> str:
    """In a word, what kind of file or text set a value over the recipe's."""
    path = write.span.path
    if write.by.startswith(("--set", "set")) or write.by.endswith(" set"):
        return "by --set"
    if write.by == "environment of the launch":
        return "by the environment of the launch"
    if path.endswith((".yaml", ".yml")):
        return "by the YAML file"
    return "by the command line" if write.by == "override" else f"by the launcher ({write.by})"


def shown_value(value: Any) -> str:
    """A value as people write it."""
    if isinstance(value, dict) and len(value) == 1:
        ((kind, inner),) = value.items()
        if kind in ("enum", "ref"):
            return str(inner)
        if kind == "obj":
            return f"<{inner}>"
        if kind in ("dict", "set"):
            return str(inner)
    return repr(value) if isinstance(value, str) else str(value)


def render_difference(
    args: argparse.Namespace, name: str, other: str, left: dict[str, Any], right: dict[str, Any], changed: list[str]
) -> None:
    """A table of the keys that differ."""
    from rich.table import Table

    console = _console(args)
    if not changed:
        console.print(f"{name} and {other} resolve to the same values")
        return
    table = Table(box=None, pad_edge=False, show_edge=False)
    table.add_column("key", overflow="fold")
    table.add_column(name.rpartition(":")[2], style="green", overflow="fold")
    table.add_column(other.rpartition(":")[2], style="magenta", overflow="fold")
    for key in changed:
        sides = [shown_value(side[key]) if key in side else "(absent)" for side in (left, right)]
        table.add_row(key, *(neutral(side) for side in sides))
    console.print(table)
    console.print(f"{len(changed)} keys differ")
