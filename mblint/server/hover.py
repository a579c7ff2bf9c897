"""What is said of a key: its value, who set it, what the launch path makes of it, and what it does to memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mblint.evaluate.machine import PHASE_LAUNCH
from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.evaluate.values import Instance
from mblint.facts.memory.capacity import GIB
from mblint.facts.memory.launch_memory import LaunchMemory, own_memory
from mblint.facts.memory.reading import Overlay
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.run import Launch
from mblint.server.documents import Document
from mblint.server.fields import FieldInfo, fields_of, shown
from mblint.server.judging import FileState
from mblint.server.keys import chain_at, function_at, keyword_at, override_at, parsed_around, sections, yaml_path
from mblint.server.launches import evaluated, launches_at, shown_launches
from mblint.server.project import Project
from mblint.server.shift import Shift
from mblint.shown import neutral, relative

MAX_WRITES = 5


@dataclass(frozen=True, slots=True)
class Hover:
    """Markdown about the characters from `start` to `end` (columns from 1) of the line that was asked about."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Asked:
    """The key at a place, in the launches that it is about."""

    key: str
    start: int
    end: int
    launches: tuple[Launch, ...]


def hover(
    project: Project, states: dict[str, FileState], state: FileState, document: Document, lines: Sequence[str], line: int, column: int
) -> Hover | None:
    """The hover at a place of a document; None where no key of a config stands there."""
    asked = asked_at(project, states, state, document, lines, line, column)
    if asked is None:
        return None
    blocks = [text for launch in asked.launches if (text := _of_launch(project, launch, asked.key))]
    return Hover("\n\n---\n\n".join(dict.fromkeys(blocks)), asked.start, asked.end) if blocks else None


def asked_at(
    project: Project, states: dict[str, FileState], state: FileState, document: Document, lines: Sequence[str], line: int, column: int
) -> Asked | None:
    """Find the key at a place."""
    content = lines[line - 1] if 0 < line <= len(lines) else ""
    if document.kind == "python":
        return _asked_python(project, states, state, document.text, content, line, column)
    launches = tuple(shown_launches(state))
    found = override_at(content, column)
    if found is not None:
        return Asked(found[0], found[1], found[2], launches[:1])
    path = yaml_path(list(lines), line) if not document.path or document.path.endswith((".yaml", ".yml")) else None
    word = chain_at(content, column)
    if word is None:
        return None
    if path is not None and word.root == path[-1] and launches:
        key = ".".join(path)
        if any(known(project, launch, key) for launch in launches[:1]):
            return Asked(key, word.start, word.end, launches[:1])
    for launch in launches:
        for key in _written_at(project, launch, state.path, line, column):
            return Asked(key, word.start, word.end, (launch,))
    return None


def _asked_python(
    project: Project, states: dict[str, FileState], state: FileState, text: str, content: str, line: int, column: int
) -> Asked | None:
    around = parsed_around(text, line)
    tree = around[1] if around is not None else None
    at = line if tree is not None else Shift(state.text, text).back(line)
    function = function_at(tree, line) if tree is not None else None
    if tree is None and state.module is not None:
        tree, function = state.module.tree, function_at(state.module.tree, at)
    launches = tuple(launches_at(project, states, state, tree, at))
    if not launches:
        return None
    names = sections(function)
    place = chain_at(content, column)
    if place is not None and place.root in names:
        path = (*names[place.root], *place.path)
        if path and any(known(project, launch, ".".join(path)) for launch in launches[:1]):
            return Asked(".".join(path), place.start, place.end, launches)
    if tree is not None and place is not None and not place.path:
        keyword = keyword_at(tree, line, len(content[: column - 1].encode("utf-8", "replace")) + 1, names)
        if keyword is not None:
            return Asked(".".join(keyword), place.start, place.end, launches)
    return None


def known(project: Project, launch: Launch, key: str) -> bool:
    """Whether a launch has such a key, a section or a value."""
    with evaluated(project, launch) as resolved:
        if resolved is None:
            return False
        return resolved.get(key) is not ABSENT or resolved.classes(key) is not ABSENT


def _written_at(project: Project, launch: Launch, path: str, line: int, column: int) -> list[str]:
    """Keys that a place of a script or file sets in a launch, those that hold the column first."""
    with evaluated(project, launch) as resolved:
        if resolved is None:
            return []
        found: list[tuple[bool, str]] = []
        for key in list(resolved.keys()):
            for write in resolved.origins(key):
                if write.span.path == path and write.span.line <= line <= max(write.span.end_line, write.span.line):
                    inside = write.span.column <= column <= (write.span.end_column or column)
                    found.append((not inside, key))
        return [key for _, key in sorted(found)][:1]


def _of_launch(project: Project, launch: Launch, key: str) -> str:
    with evaluated(project, launch) as resolved:
        if resolved is None:
            return ""
        value = resolved.get(key)
        if value is ABSENT:
            return _section(project, resolved, key)
        lines = [_title(key, field_of(resolved, key))]
        written = resolved.written(key)
        who = _short(launch)
        lines.append(f"`{_value(written)}` in {who}" if written is not ABSENT else f"not set by {who}")
        if not isinstance(written, Unknown) and not _same(written, value):
            by = [write for write in resolved.all_writes(key) if write.phase == PHASE_LAUNCH]
            place = f", written by {_place(project, by[-1].span.path, by[-1].span.line)}" if by else ""
            lines.append(f"**after the launch path: `{_value(value)}`**{place}")
        lines += _writes(project, resolved, key)
        recorder = _Recorder(resolved)
        now = own_memory(recorder, resolved.name)
        failures = len(resolved.path.failures)
    # One launch at a time: what upstream keeps in globals would tell the second that it is the second.
    if key in recorder.read and now.total_bytes is not None:
        lines.append(_memory(project, launch, now, key, value, failures))
    return "\n\n".join(lines)


def _title(key: str, info: FieldInfo | None) -> str:
    if info is None:
        return f"**{key}**"
    default = f" = `{_tick(info.default)}`" if info.default else ""
    return f"**{key}** — `{_tick(info.type)}`{default}  \n{info.owner}" + (f", {info.place}" if info.place else "")


def _section(project: Project, resolved: ResolvedLaunch, key: str) -> str:
    classes = resolved.classes(key)
    if not isinstance(classes, tuple) or not classes:
        return ""
    return f"**{key}** — `{classes[0]}`\n\nin {resolved.name.rpartition(':')[2]}"


def _writes(project: Project, resolved: ResolvedLaunch, key: str) -> list[str]:
    writes = [write for write in resolved.all_writes(key) if write.phase != PHASE_LAUNCH]
    if not writes:
        return ["nobody set it: the default of its class" if "." in key else "nobody set it"]
    found = []
    for number, write in enumerate(reversed(writes[-MAX_WRITES:])):
        word = "set at" if number == 0 else "before that"
        value = f" to `{_value(write.value)}`" if number or not _same(write.value, resolved.written(key)) else ""
        found.append(f"- {word} {_place(project, write.span.path, write.span.line)}{value}")
    if len(writes) > MAX_WRITES:
        found.append(f"- and {len(writes) - MAX_WRITES} earlier")
    return ["\n".join(found)]


def field_of(resolved: ResolvedLaunch, key: str) -> FieldInfo | None:
    """The field that a key is."""
    section, _, name = key.rpartition(".")
    owner = section_of(resolved, section)
    if owner is None or owner.cls is None or name not in owner.cls.field_map:
        return None
    return next((info for info in fields_of(owner) if info.name == name), None)


def section_of(resolved: ResolvedLaunch, path: str) -> Instance | None:
    """The object at a dotted path of a config."""
    current: object = resolved.cfg
    for part in path.split(".") if path else ():
        current = current.attrs.get(part) if isinstance(current, Instance) else None
    return current if isinstance(current, Instance) else None


# --- memory ------------------------------------------------------------------------------------------------------------


class _Recorder(Overlay):
    """A launch that remembers which keys were asked for."""

    __slots__ = ("read",)

    def __init__(self, base: ResolvedLaunch) -> None:
        super().__init__(base, {})
        self.read: set[str] = set()

    def get(self, key: str) -> object:
        self.read.add(key)
        return super().get(key)

    def written(self, key: str) -> object:
        self.read.add(key)
        return super().written(key)


def _memory(project: Project, launch: Launch, now: LaunchMemory, key: str, value: object, failures: int) -> str:
    """What the launch needs, and what it would need with other values of the key that bring no new failure."""
    assert now.total_bytes is not None
    rows = []
    for other in _others(value):
        with evaluated(project, replace(launch, set={**launch.set, key: other})) as changed:
            if changed is None or len(changed.path.failures) > failures or (changed.path.stopped and not changed.path.no_source):
                continue
            then = own_memory(changed, launch.id)
        if then.total_bytes is not None:
            rows.append(f"- with `{_value(other)}`: {then.total_bytes / GIB:.1f} GiB{_difference(now, then)}")
    capacity = f" of {now.capacity.low_gib:.1f} GiB" if now.capacity is not None else " GiB"
    head = f"memory of the fullest GPU: {now.total_bytes / GIB:.1f}{capacity} ({_groups(now)})"
    return "\n".join([head, *rows])


def _others(value: object) -> Iterable[object]:
    """Values to compare with: the other truth, half and twice as much."""
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int) and value > 0:
        return tuple(other for other in (value // 2, value * 2) if other > 0)
    return ()


def _groups(memory: LaunchMemory) -> str:
    sizes = sorted(memory.groups.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {size / GIB:.1f}" for name, size in sizes if size >= 0.05 * GIB)


def _difference(now: LaunchMemory, then: LaunchMemory) -> str:
    moves = {name: (then.groups.get(name, 0.0) - size) / GIB for name, size in now.groups.items()}
    largest = sorted((name for name in moves if abs(moves[name]) >= 0.1), key=lambda name: -abs(moves[name]))[:2]
    return f" ({', '.join(f'{name} {moves[name]:+.1f}' for name in largest)})" if largest else ""


# --- words ---------------------------------------------------------------------------------------------------------------


def _short(launch: Launch) -> str:
    name = launch.id if launch.spec is not None else (launch.recipe or "the launch").rpartition(":")[2]
    return f"`{_tick(name)}`"


def _place(project: Project, path: str, line: int) -> str:
    from mblint.server.documents import uri_of

    shown_name = neutral(relative(path, str(project.loaded.root)))
    for root in project.session.upstream_roots:
        if path.startswith(root + "/"):
            shown_name = relative(path, root)
    return f"[{shown_name}:{line}]({uri_of(path)}#L{line})"


def _value(value: object) -> str:
    if isinstance(value, Unknown):
        return _tick(f"unknown: {value.reason}")
    text = shown(value)
    return _tick(text if len(text) <= 120 else f"{text[:117]}...")


def _tick(text: str) -> str:
    return neutral(text).replace("`", "'")


def _same(left: object, right: object) -> bool:
    return type(left) is type(right) and bool(left == right)
