"""Sets and removes entries of a recipe's `env_vars`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mblint.fix.items import remove_item
from mblint.fix.python import delete_write, overwritten
from mblint.fix.recipe import Addition, Recipe
from mblint.fix.render import Renderer
from mblint.fix.sites import all_sites, is_literal, string_value
from mblint.fix.text import Edits, Refusal

if TYPE_CHECKING:
    import libcst as cst

    from mblint.fix.tree import Tree


def _env_dict(recipe: Recipe) -> cst.Dict | None:
    """The literal dict that the recipe last gives to `env_vars`."""
    import libcst as cst

    value = getattr(recipe.env, "value", None)
    return value if isinstance(value, cst.Dict) else None


def _entry(table: cst.Dict, name: str) -> int | None:
    """The index of the entry for `name` if nothing after it can overwrite it."""
    import libcst as cst

    found: int | None = None
    for index, item in enumerate(table.elements):
        if isinstance(item, cst.StarredDictElement):
            found = None
        elif isinstance(item, cst.DictElement) and string_value(item.key) == name:
            found = index
    return found


def env_source(value: Any, renderer: Renderer, table: cst.Dict | None, old: cst.CSTNode | None) -> str:
    """An environment value as the file writes such values: numbers as numbers where it does so, else
    strings.
    """
    import libcst as cst

    text = str(int(value)) if isinstance(value, bool) else str(value)
    number = text.isdecimal() and text == str(int(text))
    if old is not None:
        bare = isinstance(old, cst.Integer)
    else:
        items = [item.value for item in table.elements] if table is not None else []
        bare = any(isinstance(item, cst.Integer) for item in items)
    if number and bare:
        return text
    source = renderer.render(text, old if isinstance(old, cst.SimpleString) else None, "str")
    return source if isinstance(source, str) else repr(text)


def replace_entry(tree: Tree, old: cst.BaseExpression, value: Any, renderer: Renderer) -> Edits:
    """Another value for an entry that is written out."""
    unsafe = () if is_literal(old) else (overwritten(tree, old),)
    return Edits((tree.text.edit(*tree.range(old), env_source(value, renderer, None, old)),), unsafe)


def set_env(recipe: Recipe, name: str, value: Any, renderer: Renderer, *, exists: bool = True) -> Edits | Addition | Refusal:
    """Give the environment variable a value: change or add its entry where the recipe writes a literal dict,
    else one statement after its last write of `env_vars`. `exists` says that the config has a dict there."""

    tree, table = recipe.tree, _env_dict(recipe)
    key = renderer.render(name, None, "str")
    if isinstance(key, Refusal):
        return key
    if table is not None:
        index = _entry(table, name)
        if index is not None:
            return replace_entry(tree, table.elements[index].value, value, renderer)
        return Addition(f"{key}: {env_source(value, renderer, table, None)}", table, item=True)
    source = env_source(value, renderer, None, None)
    if exists or recipe.env is not None:
        return Addition(f"{{config}}.env_vars[{key}] = {source}")
    return Addition(f"{{config}}.env_vars = {{{key}: {source}}}")


def remove_env(recipe: Recipe, name: str, renderer: Renderer) -> Edits | Addition | Refusal:
    """Unset the variable: take out its entry or its assignment, else drop it from the dict before the
    return.
    """
    table = _env_dict(recipe)
    if table is not None:
        index = _entry(table, name)
        if index is not None:
            return Edits(tuple(remove_item(recipe.tree, table, index)))
    own = [
        site
        for site in all_sites(recipe.tree, recipe.node)
        if site.name == name and site.target is not None and recipe.path(getattr(site.target, "value", site.target)) == "env_vars"
    ]
    if table is None and len(own) == 1:
        return delete_write(recipe.tree, own[0])
    key = renderer.render(name, None, "str")
    if isinstance(key, Refusal):
        return key
    return Addition(f"{{config}}.env_vars.pop({key}, None)")
