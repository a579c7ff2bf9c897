"""From config changes to text edits: finds for each key the place to write, and grades the whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol

from mblint.evaluate.unknown import ABSENT
from mblint.findings import Fix, TextEdit
from mblint.fix import shell, yaml
from mblint.fix.apply import EditConflict, apply_all
from mblint.fix.check import is_python, is_script, is_yaml, lost_comments, parses
from mblint.fix.layers import Layer
from mblint.fix.python_file import PythonFile
from mblint.fix.text import Edits, Refusal, Text, text_of
from mblint.fix.yaml_layout import find_paths
from mblint.read.span import Span

ENV = "env_vars."


class Write(Protocol):
    """One write of a key, as the evaluation recorded it."""

    @property
    def span(self) -> Span: ...
    @property
    def value(self) -> object: ...
    @property
    def by(self) -> str: ...
    @property
    def in_project(self) -> bool: ...


def plan_fix(
    fix: Fix,
    writes: Mapping[str, Sequence[Write]],
    sources: Mapping[str, str] | Callable[[str], str | None],
    function: Span | None,
    *,
    hints: Mapping[str, str] | None = None,
    layers: Sequence[Layer] = (),
    at_end: bool = False,
    env_missing: bool = False,
) -> Fix | Refusal:
    """The fix with its text edits and the grade that they deserve, or why there are none.

    `fix.changes` gives each key its new plain value; ABSENT takes the setting out, and one key taken out
    together with one set to the same value is a renaming. `writes` holds each key's writes, first to
    last, `function` the recipe in the project (None where the launch uses one from elsewhere), `sources`
    the decoded texts by absolute path, `hints` the annotation of a key's field. A value that the recipe
    writes itself is changed there; one that comes from a helper or from upstream is set in the recipe,
    never where it comes from. `at_end` puts new settings before the return instead of beside their
    section: for a second try. `env_missing` says that the config has no dict at `env_vars` yet.
    """
    source = sources if callable(sources) else sources.get
    planner = _Planner(writes, source, function, hints or {}, layers, at_end, env_missing)
    renamed = renaming(fix.changes, writes)
    for key, value in fix.changes.items():
        if renamed is not None and key == renamed[0]:
            continue
        done = planner.rename(*renamed) if renamed is not None else planner.change(key, value)
        if isinstance(done, Refusal):
            return done
    return planner.finish(fix)


def renaming(changes: Mapping[str, Any], writes: Mapping[str, Sequence[Write]]) -> tuple[str, str] | None:
    """(old key, new key) when the changes say no more than that a setting has another name now."""
    if len(changes) != 2:
        return None
    gone = [key for key, value in changes.items() if value is ABSENT]
    new = [key for key, value in changes.items() if value is not ABSENT]
    if len(gone) != 1 or not writes.get(gone[0]):
        return None
    last = writes[gone[0]][-1].value
    same = type(last) is type(changes[new[0]]) and last == changes[new[0]]
    return (gone[0], new[0]) if same else None


class _Planner:
    """Collects the edits of one fix, file by file."""

    def __init__(
        self,
        writes: Mapping[str, Sequence[Write]],
        source: Callable[[str], str | None],
        function: Span | None,
        hints: Mapping[str, str],
        layers: Sequence[Layer],
        at_end: bool,
        env_missing: bool,
    ) -> None:
        self.writes, self.source, self.function = writes, source, function
        self.hints, self.layers, self.at_end, self.env_missing = hints, layers, at_end, env_missing
        self.python: dict[str, PythonFile] = {}
        self.edits: list[TextEdit] = []
        self.unsafe: list[str] = []

    def change(self, key: str, value: Any) -> Refusal | None:
        written = [write for write in self.writes.get(key, ()) if write.span.path]
        last = written[-1] if written else None
        if value is ABSENT or (value is None and key.startswith(ENV)):
            return self._delete(key, written)
        if last is not None and last.in_project and not is_python(last.span.path):
            return self._take(self._in_layer(last.span, key, value))
        if last is not None and last.in_project and self._in_function(last.span):
            done = self._file(last.span.path)
            if isinstance(done, Refusal):
                return done
            edits = done.replace(last.span, key, value, self.hints.get(key))
            if isinstance(edits, Edits):
                return self._take(edits)
        return self._set(key, value)

    def rename(self, old: str, new: str) -> Refusal | None:
        last = self.writes[old][-1]
        mine = [write for write in self.writes[old] if write.in_project]
        # What a library wrote to the new name came before; the proof tells if it did not.
        if len(mine) == 1 and not any(write.in_project for write in self.writes.get(new, ())):
            if is_python(last.span.path) and self._in_function(last.span):
                file = self._file(last.span.path)
                done = file if isinstance(file, Refusal) else file.rename(last.span, old, new)
                if isinstance(done, Edits):
                    return self._take(done)
            elif last.in_project and not is_python(last.span.path):
                done = self._rename_in_layer(last.span, old, new)
                if isinstance(done, Edits):
                    return self._take(done)
        failed = self._delete(old, list(self.writes[old]))
        return failed if failed is not None else self.change(new, last.value)

    def _file(self, path: str) -> PythonFile | Refusal:
        if path not in self.python:
            source = self.source(path)
            if source is None:
                return Refusal(f"the text of {path} is not at hand")
            self.python[path] = PythonFile(path, source, self.function)
        return self.python[path]

    def _text(self, path: str) -> Text | Refusal:
        source = self.source(path)
        return Refusal(f"the text of {path} is not at hand") if source is None else text_of(path, source)

    def _in_function(self, span: Span) -> bool:
        """Whether a place lies in the recipe's function; its span may cover the header only."""
        if self.function is None or span.path != self.function.path:
            return False
        file = self._file(span.path)
        return not isinstance(file, Refusal) and span.line in file.recipe_lines

    def _take(self, done: Edits | Refusal) -> Refusal | None:
        if isinstance(done, Refusal):
            return done
        self.edits += done.edits
        self.unsafe += done.unsafe
        return None

    def _set(self, key: str, value: Any) -> Refusal | None:
        """Set a key where the launch does not write it yet: in the recipe, else in the strongest layer."""
        if self.function is not None:
            file = self._file(self.function.path)
            if isinstance(file, Refusal):
                return file
            if key.startswith(ENV):
                return self._take(file.set_env(key.removeprefix(ENV), value, not self.env_missing))
            late, after = self.at_end, -1
            for write in self.writes.get(key, ()):
                if not self._in_function(write.span):
                    after = max(after, file.handed_on)  # a helper sets it, wherever it is called
                elif write.in_project:
                    late = True  # written here in a way that could not be changed: this comes after it
                else:
                    after = max(after, file.text.bounds(write.span)[0])  # a call of other code sets it
            return self._take(file.add(key, value, self.hints.get(key), at_end=late, after=after))
        if not self.layers:
            return Refusal("the recipe is not part of the project, and no file of the project overrides it")
        layer = self.layers[-1]
        if not is_yaml(layer.span.path) and not is_script(layer.span.path):
            return Refusal("the launch is described in a file that is not edited", layer.span)
        text = self._text(layer.span.path)
        if isinstance(text, Refusal):
            return text
        if layer.kind == "yaml":
            return self._take(yaml.set_key(text, (*layer.prefix, *key.split(".")), value, layer.document))
        if key.startswith(ENV) and is_script(layer.span.path) and not self.at_end:
            return self._take(shell.set_export(text, key.removeprefix(ENV), value, layer.span))
        word = shell.render_override(value)
        if isinstance(word, Refusal):
            return word
        return self._take(shell.add_override(text, layer.span, f"{key}={word}"))

    def _in_layer(self, span: Span, key: str, value: Any) -> Edits | Refusal:
        text = self._text(span.path)
        if isinstance(text, Refusal):
            return text
        if not is_yaml(span.path):
            if not is_script(span.path):
                return Refusal(f"`{key}` is set in a file that is not edited", span)
            return shell.replace_value(text, span, value, environment=key.startswith(ENV))
        found = self._yaml_path(text, span, key)
        if isinstance(found, Refusal):
            if shell.is_word_of(text, span, key.removeprefix(ENV)):  # a command inside the file
                return shell.replace_value(text, span, value, environment=key.startswith(ENV))
            return found
        if key.startswith(ENV) and isinstance(value, str) and value.isdecimal() and value == str(int(value)):
            start, end = text.bounds(span)
            if text.text[start:end][-1:].isdecimal():  # numbers of the environment stand bare here
                value = int(value)
        return yaml.set_key(text, found[1], value, found[0])

    def _rename_in_layer(self, span: Span, old: str, new: str) -> Edits | Refusal:
        text = self._text(span.path)
        if isinstance(text, Refusal):
            return text
        if not is_yaml(span.path) or shell.is_word_of(text, span, old):
            return shell.rename_word(text, span, old, new)
        if old.rpartition(".")[0] != new.rpartition(".")[0]:
            return Refusal("the new setting belongs to another section", span)
        found = self._yaml_path(text, span, old)
        if isinstance(found, Refusal):
            return found
        return yaml.rename_key(text, found[1], new.rpartition(".")[2], found[0])

    def _yaml_path(self, text: Text, span: Span, key: str) -> tuple[int, tuple[str, ...]] | Refusal:
        """The place in the document that gives the key its value: the path that ends like the key."""
        paths, parts = find_paths(text, span), tuple(key.split("."))
        prefixes = [layer.prefix for layer in self.layers if layer.kind == "yaml" and layer.span.path == span.path]
        for document, path in paths:
            if any(path == (*prefix, *parts) for prefix in prefixes):
                return document, path
        ending = [found for found in paths if found[1][-len(parts) :] == parts]
        if ending:
            return min(ending, key=lambda found: len(found[1]))
        if len(paths) == 1 and paths[0][1] and (paths[0][1][-1] == parts[-1] or (key.startswith(ENV) and paths[0][1][-1] == "value")):
            return paths[0]
        return Refusal(f"`{key}` was not found in the YAML file", span)

    def _delete(self, key: str, written: Sequence[Write]) -> Refusal | None:
        mine = [write for write in written if write.in_project]
        if not mine and key.startswith(ENV) and self.function is not None:
            return self._unset_env(key)
        if not mine:
            return Refusal(f"`{key}` is not set in the project")
        for write in {write.span: write for write in mine}.values():
            if not is_python(write.span.path):
                text = self._text(write.span.path)
                if isinstance(text, Refusal):
                    return text
                failed = self._take(self._delete_in_layer(text, write.span, key))
            elif self._in_function(write.span):
                file = self._file(write.span.path)
                failed = file if isinstance(file, Refusal) else self._take(file.delete(write.span, key))
            elif key.startswith(ENV) and self.function is not None:
                failed = self._unset_env(key)
            else:
                failed = Refusal(f"`{key}` is set outside of this recipe, in {write.by}", write.span)
            if failed is not None:
                return failed
        return None

    def _unset_env(self, key: str) -> Refusal | None:
        assert self.function is not None
        file = self._file(self.function.path)
        return file if isinstance(file, Refusal) else self._take(file.unset_env(key.removeprefix(ENV)))

    def _delete_in_layer(self, text: Text, span: Span, key: str) -> Edits | Refusal:
        if is_script(span.path) or (is_yaml(span.path) and shell.is_word_of(text, span, key.removeprefix(ENV))):
            return shell.delete_word(text, span)
        if not is_yaml(span.path):
            return Refusal(f"`{key}` is set in a file that is not edited", span)
        found = self._yaml_path(text, span, key)
        return found if isinstance(found, Refusal) else yaml.delete_key(text, found[1], found[0])

    def finish(self, fix: Fix) -> Fix | Refusal:
        for file in self.python.values():
            failed = self._take(file.finish())
            if failed is not None:
                return failed
        edits = list(dict.fromkeys(self.edits))
        if not edits:
            return Refusal("nothing would change")
        before = {path: self.source(path) or "" for path in {edit.span.path for edit in edits}}
        try:
            after = apply_all(before, edits)
        except EditConflict:
            return Refusal("its edits meet in one place")
        if not after:
            return Refusal("nothing would change")
        unsafe = list(dict.fromkeys(self.unsafe))
        for path, source in after.items():
            own = self.python.get(path)
            if not (own.parses_with(edits) if own is not None else parses(path, source)):
                return Refusal("the edited file could not be read again", edits[0].span)
            removed = (edit for edit in edits if edit.span.path == path)
            if not any("#" in _removed(before[path], edit) for edit in removed):
                continue  # reading all comments twice takes long, and only what was removed can be lost
            lost = lost_comments(path, before[path], source)
            if lost:
                unsafe.append(f"drops the comment `{lost[0][:60]}`")
        safety: Literal["safe", "unsafe"] = "unsafe" if unsafe or fix.safety == "unsafe" else "safe"
        return replace(fix, edits=tuple(edits), safety=safety, cost=fix.cost)


def _removed(source: str, edit: TextEdit) -> str:
    start, end = text_of(edit.span.path, source).bounds(edit.span)
    return source[start:end]
