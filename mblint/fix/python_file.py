"""One Python file under change: the recipe in it, what is added to it, and the imports that this needs."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mblint.fix import env, python
from mblint.fix.recipe import Addition, Recipe, assignment, emit, read_recipe
from mblint.fix.render import Renderer, module_names
from mblint.fix.sites import Site, find_site, is_literal
from mblint.fix.text import Edits, Refusal, Text, text_of
from mblint.fix.tree import Tree, parse_ast, still_parses
from mblint.read.span import Span

if TYPE_CHECKING:
    from mblint.findings import TextEdit


# The fixes of one file's findings are planned one after the other on the same text; neither the trees nor
# what is known of a recipe changes by that.


@lru_cache(maxsize=4)
def _parsed(path: str, source: str) -> tuple[Text, ast.Module | None]:
    return text_of(path, source), parse_ast(source)


@lru_cache(maxsize=16)
def _recipe(path: str, source: str, function: Span) -> Recipe | Refusal:
    text, module = _parsed(path, source)
    return read_recipe(text, function, module)


class PythonFile:
    """Plans edits of one file; `finish` gives those that belong together (additions, imports)."""

    def __init__(self, path: str, source: str, function: Span | None) -> None:
        self.text, self.module = _parsed(path, source)
        own = function if function is not None and function.path == path else None
        self._recipe = _recipe(path, source, own) if own is not None else Refusal("no recipe is known here")
        self._renderer: Renderer | None = None
        self._additions: list[Addition] = []
        self._has_env = False

    @property
    def renderer(self) -> Renderer:
        if self._renderer is None:
            names = module_names(self.module or ast.Module([], []))
            self._renderer = Renderer(names, self.text.text)
        return self._renderer

    @property
    def recipe_lines(self) -> range:
        """The lines of the recipe's function; none where it was not found."""
        if isinstance(self._recipe, Refusal):
            return range(0)
        start, end = self._recipe.tree.range(self._recipe.node)
        return range(self.text.position(start)[0], self.text.position(end)[0] + 1)

    @property
    def handed_on(self) -> int:
        """The offset of the last call in the recipe that gets the config or a part of it; -1 for none."""
        return self._recipe.handed if isinstance(self._recipe, Recipe) else -1

    def _locate(self, span: Span, key: str) -> tuple[Tree, Site] | Refusal:
        if isinstance(self._recipe, Recipe):
            site = find_site(self._recipe.tree, span, key)
            return site if isinstance(site, Refusal) else (self._recipe.tree, site)
        return python.locate(self.text, span, key, self.module)

    def replace(self, span: Span, key: str, value: Any, hint: str | None) -> Edits | Refusal:
        """A new value where the key is written; refused where that place serves more than this one write."""
        found = self._locate(span, key)
        if isinstance(found, Refusal):
            return found
        tree, site = found
        if site.kind == "expression" and not is_literal(site.value):
            return Refusal("the value is made by an expression", tree.span(site.value))
        if python.in_loop_or_function(tree, site.holder):
            return Refusal("the value is written in a loop or a nested function", tree.span(site.holder))
        if key.startswith("env_vars."):
            return env.replace_entry(tree, site.value, value, self.renderer)
        return python.replace_value(tree, site, value, self.renderer, hint)

    def rename(self, span: Span, old: str, new: str) -> Edits | Refusal:
        found = self._locate(span, old)
        if isinstance(found, Refusal):
            return found
        if python.in_loop_or_function(found[0], found[1].holder):
            return Refusal("the value is written in a loop or a nested function", span)
        return python.rename_write(*found, old, new)

    def delete(self, span: Span, key: str) -> Edits | Refusal:
        found = self._locate(span, key)
        if isinstance(found, Refusal):
            return found
        if python.in_loop_or_function(found[0], found[1].holder):
            return Refusal(f"`{key}` is written in a loop or a nested function", span)
        return python.delete_write(*found)

    def add(self, key: str, value: Any, hint: str | None, *, at_end: bool, after: int) -> Edits | Refusal:
        """A new setting in the recipe; see `assignment` for where."""
        if isinstance(self._recipe, Refusal):
            return self._recipe
        source = self.renderer.render(value, None, hint)
        if isinstance(source, Refusal):
            return source
        self._additions.append(assignment(self._recipe, key, source, at_end=at_end, after=after))
        return Edits(())

    def set_env(self, name: str, value: Any, exists: bool) -> Edits | Refusal:
        if isinstance(self._recipe, Refusal):
            return self._recipe
        done = env.set_env(self._recipe, name, value, self.renderer, exists=exists or self._has_env)
        self._has_env = self._has_env or isinstance(done, Addition)  # the first one made the dict
        return self._keep(done)

    def unset_env(self, name: str) -> Edits | Refusal:
        if isinstance(self._recipe, Refusal):
            return self._recipe
        return self._keep(env.remove_env(self._recipe, name, self.renderer))

    def _keep(self, done: Edits | Addition | Refusal) -> Edits | Refusal:
        if isinstance(done, Addition):
            self._additions.append(done)
            return Edits(())
        return done

    def parses_with(self, edits: Sequence[TextEdit]) -> bool:
        """Whether the file can be read with these edits."""
        return still_parses(self.text, self.module, [edit for edit in edits if edit.span.path == self.text.path])

    def finish(self) -> Edits | Refusal:
        edits: list[TextEdit] = []
        if self._additions and isinstance(self._recipe, Recipe):
            done = emit(self._recipe, self._additions)
            if isinstance(done, Refusal):
                return done
            edits += done.edits
        if self._renderer is not None and self._renderer.imports:
            edits.append(_import_edit(self.text, self.module, self._renderer.imports))
        return Edits(tuple(edits))


def _import_edit(text: Text, module: ast.Module | None, lines: list[str]) -> TextEdit:
    """Puts import lines after the file's last import, else after its docstring, else at its top."""
    body = module.body if module is not None else []
    last: ast.stmt | None = None
    for node in body:
        last = node if isinstance(node, ast.Import | ast.ImportFrom) else last
    if last is None and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        last = body[0]
    if last is None:
        line = body[0].lineno if body else 1
        place = text.line_start(line)
        return text.edit(place, place, "".join(f"{line}{text.newline}" for line in lines))
    end = text.line_end(last.end_lineno or last.lineno)
    return text.edit(end, end, "".join(f"{text.newline}{line}" for line in lines))
