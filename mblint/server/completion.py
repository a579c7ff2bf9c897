"""What may be written at a place: fields of a section, keywords of a constructor, and the values of a field."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mblint.evaluate.modules import SourceError
from mblint.evaluate.values import ClassValue, Instance
from mblint.launch.commands import SECTIONS
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.run import CannotEvaluate, Launch, on_heap
from mblint.server.documents import Document
from mblint.server.fields import FieldInfo, class_fields, enum_values, fields_of
from mblint.server.hover import section_of
from mblint.server.judging import FileState, outline
from mblint.server.keys import function_at, parsed_around, sections, yaml_parents
from mblint.server.launches import launches_at, shown_launches
from mblint.server.project import Project
from mblint.server.shift import Shift


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that may be written. `kind`: field, section, value or keyword."""

    label: str
    insert: str
    kind: str
    detail: str = ""
    doc: str = ""
    order: str = ""


@dataclass(frozen=True, slots=True)
class Choices:
    """What may replace the characters from `start` to `end` (columns from 1) of the line."""

    items: tuple[Choice, ...]
    start: int
    end: int


_MEMBER = re.compile(r"(?P<chain>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\.(?P<word>\w*)$")
_VALUE = re.compile(r"(?P<chain>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)[ \t]*(?::[^=]*)?=[ \t]*(?P<word>['\"]?[\w.\-]*)$")
_COMPARE = re.compile(r"[=!<>]=[ \t]*['\"]?[\w.\-]*$")
_CALL = re.compile(r"(?:(?<=[(,])|^)[ \t]*(?P<word>[A-Za-z_]?\w*)$")
_KEYWORD_VALUE = re.compile(r"(?:(?<=[(,])|^)[ \t]*(?P<name>[A-Za-z_]\w*)[ \t]*=[ \t]*(?P<word>['\"]?[\w.\-]*)$")
_YAML_KEY = re.compile(r"^(?P<indent>[ ]*)(?P<word>\w*)$")
_YAML_VALUE = re.compile(r"^(?P<indent>[ ]*)(?P<key>[A-Za-z_]\w*):[ ]+(?P<word>['\"]?[\w.\-]*)$")
_OVERRIDE = re.compile(rf"(?:^|[\s\"'])(?:\+\+?|~)?(?P<path>(?:{'|'.join(SECTIONS)})(?:\.\w+)*)\.(?P<word>\w*)$")
_OVERRIDE_VALUE = re.compile(rf"(?:^|[\s\"'])(?:\+\+?)?(?P<path>(?:{'|'.join(SECTIONS)})(?:\.\w+)+)=(?P<word>[\w.\-]*)$")


def complete(
    project: Project, states: dict[str, FileState], state: FileState, document: Document, lines: Sequence[str], line: int, column: int
) -> Choices | None:
    """What may be written at a place of a document."""
    content = lines[line - 1] if 0 < line <= len(lines) else ""
    before, after = content[: column - 1], content[column - 1 :]
    rest = re.match(r"\w*", after)
    end = column + (rest.end() if rest is not None else 0)
    quote = re.search(r"(['\"])[\w.\-]*$", before)
    if quote is not None and content[end - 1 : end] == quote[1]:
        end += 1  # the editor closed the string already
    if document.kind == "python":
        return _python(project, states, state, document, before, line, column, end)
    if document.path is not None and document.path.endswith((".yaml", ".yml")):
        found = _yaml(project, state, document, lines, before, line, column, end)
        if found is not None:
            return found
    return _override(project, state, before, column, end)


# --- Python ------------------------------------------------------------------------------------------------------------


def _python(
    project: Project, states: dict[str, FileState], state: FileState, document: Document, before: str, line: int, column: int, end: int
) -> Choices | None:
    if "#" in before and before.lstrip().startswith("#"):
        return None
    member, value = _MEMBER.search(before), _VALUE.search(before)
    call, keyword = _CALL.search(before), _KEYWORD_VALUE.search(before)
    if not (member or value or call or keyword):
        return None
    with _readable(project, state, document, line) as read:
        if read is None:
            return None
        tree, at = read
        function = function_at(tree, at)
        names = sections(function)
        with _resolved(project, launches_at(project, states, state, tree, at)) as resolved:
            if value is not None and not _COMPARE.search(before):
                root, *rest = value["chain"].split(".")
                if root in names and resolved is not None:
                    whole: list[str] = [*names[root], *rest]
                    path, name = whole[:-1], whole[-1]
                    info = _field(section_of(resolved, ".".join(path)), name)
                    if info is not None:
                        return _values(info.values, value["word"], column, end)
            if member is not None:
                root, *rest = member["chain"].split(".")
                owner = section_of(resolved, ".".join((*names[root], *rest))) if root in names and resolved is not None else None
                if owner is not None:
                    return Choices(tuple(_keys(fields_of(owner), "")), column - len(member["word"]), end)
        opened = _open_call(before, document.text, line)
        if opened is not None and state.module is not None:
            cls = _class_named(project, state, opened)
            if cls is not None and keyword is not None:
                info = next((info for info in class_fields(cls) if info.name == keyword["name"]), None)
                return _values(info.values, keyword["word"], column, end) if info is not None else None
            if cls is not None and call is not None:
                return Choices(tuple(_keys(class_fields(cls), "=")), column - len(call["word"]), end)
    return None


@contextmanager
def _readable(project: Project, state: FileState, document: Document, line: int) -> Iterator[tuple[ast.Module, int] | None]:
    """A tree for the place, and the line in it: of the text, of the text without the line that is being typed, or of the last good
    one. The session sees the same text."""
    around = parsed_around(document.text, line)
    if around is None:
        yield (state.module.tree, Shift(state.text, document.text).back(line)) if state.module is not None else None
        return
    text, tree = around
    if text == document.text and state.broken is None:
        yield tree, line
        return
    overlay = {path: held for path, held in project.session.modules.overlay.items() if isinstance(held, str)}
    kept = (state.named, state.module, state.parts, state.text, state.broken)
    project.warm.refresh({**overlay, state.path: text})
    try:
        outline(project, state, text)
    except SourceError:
        yield None
    else:
        yield tree, line
    finally:
        state.named, state.module, state.parts, state.text, state.broken = kept
        project.warm.refresh(overlay)


@contextmanager
def _resolved(project: Project, launches: Sequence[Launch]) -> Iterator[ResolvedLaunch | None]:
    """The first of some launches that can be evaluated, else a plain config."""
    for launch in [*launches, Launch(None)]:
        context = on_heap(project.session, launch)
        try:
            resolved = context.__enter__()
        except CannotEvaluate:
            continue
        try:
            yield resolved
        finally:
            context.__exit__(None, None, None)
        return
    yield None


def _open_call(before: str, text: str, line: int) -> str | None:
    """The callee of the innermost call that is open at a place, where it is a plain name."""
    from mblint.evaluate.source import split_lines

    lines = split_lines(text)[max(line - 60, 0) : line - 1]
    content = "\n".join([*lines, before])
    depth = 0
    for index in range(len(content) - 1, -1, -1):
        char = content[index]
        if char in ")]}":
            depth += 1
        elif char in "([{":
            if depth:
                depth -= 1
                continue
            match = re.search(r"([A-Za-z_][\w.]*)$", content[:index])
            if char != "(" or match is None or re.search(r"\b(?:def|class)\s+$", content[: match.start()]):
                return None
            return match[1]
    return None


def _class_named(project: Project, state: FileState, name: str) -> ClassValue | None:
    """The class that a name of the module stands for."""
    assert state.module is not None
    root, *rest = name.split(".")
    value = state.module.lookup(root)
    for part in rest:
        value = value.lookup(part) if hasattr(value, "lookup") else None
    return value if isinstance(value, ClassValue) and value.field_map else None


# --- YAML and command lines ----------------------------------------------------------------------------------------------


def _yaml(
    project: Project, state: FileState, document: Document, lines: Sequence[str], before: str, line: int, column: int, end: int
) -> Choices | None:
    key, value = _YAML_KEY.match(before), _YAML_VALUE.match(before)
    match = key or value
    if match is None or not _is_override_file(document.text, line, state):
        return None
    parents = yaml_parents(list(lines), line, len(match["indent"]))
    with _with_section(project, shown_launches(state)[:1], ".".join(parents)) as owner:
        if value is not None:
            info = _field(owner, value["key"])
            return _values(enum_values(info), value["word"], column, end) if info is not None else None
        if owner is None or key is None:
            return None
        return Choices(tuple(_keys(fields_of(owner), ": ", _section_ending(len(key["indent"])))), column - len(key["word"]), end)


@contextmanager
def _with_section(project: Project, launches: Sequence[Launch], path: str) -> Iterator[Instance | None]:
    """A section of the launch; of its recipe alone where the file, as it is being written, has just emptied it; else of a plain
    config."""
    tries = [*launches, *(Launch(launch.recipe) for launch in launches if launch.recipe is not None), Launch(None)]
    for launch in tries:
        with _resolved(project, [launch]) as resolved:
            owner = section_of(resolved, path) if resolved is not None else None
            if owner is not None:
                yield owner
                return
    yield None


def _section_ending(indent: int) -> str:
    return ":\n" + " " * (indent + 2)


def _is_override_file(text: str, line: int, state: FileState) -> bool:
    """Whether a YAML file overrides a recipe, as far as can be told while it is being written."""
    from mblint.launch.yaml_files import read_yaml_file

    reading = read_yaml_file(text, state.path)
    if reading.shape != "none":
        return reading.shape in ("overrides", "serialized")
    tops = [word for number, row in enumerate(text.splitlines(), 1) if number != line and (word := re.match(r"([A-Za-z_]\w*):", row))]
    return all(word[1] in SECTIONS for word in tops) and (bool(tops) or "mblint:" in text)


def _override(project: Project, state: FileState, before: str, column: int, end: int) -> Choices | None:
    member, value = _OVERRIDE.search(before), _OVERRIDE_VALUE.search(before)
    if member is None and value is None:
        return None
    with _resolved(project, shown_launches(state)[:1]) as resolved:
        if resolved is None:
            return None
        if value is not None:
            path, _, name = value["path"].rpartition(".")
            info = _field(section_of(resolved, path), name)
            return _values(enum_values(info), value["word"], column, end) if info is not None else None
        assert member is not None
        owner = section_of(resolved, member["path"])
        return Choices(tuple(_keys(fields_of(owner), "=", ".")), column - len(member["word"]), end) if owner is not None else None


# --- choices -------------------------------------------------------------------------------------------------------------


def _field(owner: Instance | None, name: str) -> FieldInfo | None:
    return next((info for info in fields_of(owner) if info.name == name), None) if owner is not None else None


def _keys(infos: Iterable[FieldInfo], ending: str, section_ending: str = "") -> Iterator[Choice]:
    for number, info in enumerate(infos):
        default = f" = {info.default}" if info.default else ""
        values = f"one of {', '.join(f'`{value}`' for value in info.values)}" if len(info.values) > 2 else ""
        source = f"{info.owner}, {info.place}" if info.place else info.owner
        after = section_ending if info.section else ending
        yield Choice(
            info.name, info.name + after, "section" if info.section else "field", f"{info.type}{default}",
            "\n\n".join(part for part in (values, source) if part), f"{number:04d}",
        )  # fmt: skip


def _values(values: Sequence[str], word: str, column: int, end: int) -> Choices | None:
    """Values that may replace the word that is being typed, an opening quote included."""
    if not values:
        return None
    quote = word[:1] if word[:1] in ("'", '"') else '"'
    texts = [quote + text[1:-1] + quote if text[:1] in ("'", '"') else text for text in values]
    items = tuple(Choice(text, text, "value", order=f"{number:04d}") for number, text in enumerate(texts))
    return Choices(items, column - len(word), end)
