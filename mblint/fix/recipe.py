"""What a recipe function calls its config and its sections, and where a new setting belongs in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mblint.findings import TextEdit
from mblint.fix.items import append_items
from mblint.fix.python import statement_of
from mblint.fix.sites import chain, target_name
from mblint.fix.text import Edits, Refusal, Text
from mblint.fix.tree import Tree, parse_around
from mblint.launch.entry import TRAINERS
from mblint.read.span import Span

if TYPE_CHECKING:
    import ast

    import libcst as cst


@dataclass(slots=True)
class Recipe:
    """One recipe function.

    `variable` is the local name that it returns or trains with (None when that is an expression), `returned` the return
    or the call of the trainer, `names` maps local
    names to the section they stand for (`m` -> `model`, the config itself -> ``), `writes` the last
    attribute write of each section, `calls` the constructor call that makes a section, `env` the last
    write of `env_vars`, `handed` the last place where the config or a part of it is given to a function.
    """

    tree: Tree
    node: cst.FunctionDef
    body: list[cst.CSTNode]
    variable: str | None = None
    returned: cst.CSTNode | None = None
    names: dict[str, str] = field(default_factory=dict)
    writes: dict[str, tuple[cst.CSTNode, cst.BaseExpression]] = field(default_factory=dict)
    calls: dict[str, cst.Call] = field(default_factory=dict)
    env: cst.CSTNode | None = None
    handed: int = -1

    def top(self, node: cst.CSTNode) -> cst.CSTNode:
        """The statement of the function's own body that holds `node`."""
        around = [node, *self.tree.ancestors(node)]
        return next(item for item in around if any(item is statement for statement in self.body))

    def path(self, node: cst.CSTNode) -> str | None:
        """The config key that a dotted expression stands for, here and now; None if it is no part of it."""
        names = chain(node)
        if names is None or names[0] not in self.names:
            return None
        return ".".join([*([self.names[names[0]]] if self.names[names[0]] else []), *names[1:]])


def read_recipe(text: Text, span: Span, module: ast.Module | None = None) -> Recipe | Refusal:
    """The recipe function at `span` (its name, its header or the whole of it)."""
    import libcst as cst

    tree = parse_around(text, span, module)
    if isinstance(tree, Refusal):
        return tree
    start, end = text.bounds(span)
    around = [
        node
        for node in tree.walk()
        if isinstance(node, cst.FunctionDef) and text.position(_start(tree, node))[0] <= span.line and tree.range(node)[1] >= start
    ]
    if not around:
        return Refusal("no function was found at the recipe's place", span)
    exact = [node for node in around if tree.range(node) == (start, end) or _named_at(tree, node, span)]
    node = (exact or around)[-1]
    if not isinstance(node.body, cst.IndentedBlock):
        return Refusal("the recipe stands on one line", tree.span(node))
    recipe = Recipe(tree, node, list(node.body.body))
    returns = [item for item in _own_nodes(tree, node) if isinstance(item, cst.Return)]
    names = {item.value.value if isinstance(item.value, cst.Name) else None for item in returns}
    if len(names) == 1:
        recipe.variable = names.pop()
        recipe.returned = returns[0] if recipe.variable is not None or len(returns) == 1 else None
    if recipe.variable is None:
        _find_training(recipe)
    if recipe.variable is not None:
        recipe.names[recipe.variable] = ""
    _collect(recipe)
    return recipe


def _find_training(recipe: Recipe) -> None:
    """The config of a program: the local name that it hands to a trainer."""
    import libcst as cst

    for node in _own_nodes(recipe.tree, recipe.node):
        if isinstance(node, cst.Call) and target_name(node.func) in TRAINERS:
            for arg in node.args:
                if isinstance(arg.value, cst.Name) and (arg.keyword is None or arg.keyword.value == "config"):
                    recipe.variable, recipe.returned = arg.value.value, node
                    return


def _start(tree: Tree, node: cst.FunctionDef) -> int:
    return min([tree.range(node)[0], *(tree.range(item)[0] for item in node.decorators)])


def _named_at(tree: Tree, node: cst.FunctionDef, span: Span) -> bool:
    return tree.text.position(tree.range(node.name)[0])[0] == span.line


def _own_nodes(tree: Tree, function: cst.FunctionDef) -> Iterator[cst.CSTNode]:
    """The nodes of a function's body without those of functions, classes and lambdas inside it."""
    import libcst as cst

    stack: list[cst.CSTNode] = [function.body]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, cst.FunctionDef | cst.ClassDef | cst.Lambda):
            stack.extend(reversed(tree.children(node)))


# Calls that take a part of the config and change nothing that is set beside it.
_HARMLESS = {"setattr", "getattr", "hasattr", "isinstance", "print", "len", "deepcopy", "replace", *TRAINERS}


def _collect(recipe: Recipe) -> None:
    import libcst as cst

    # Sections that are made first and handed to the config later (`model = Provider(...)`, then
    # `ConfigContainer(model=model)`) are known only after the whole body was seen once.
    for _ in range(2):
        recipe.writes.clear()
        for node in _own_nodes(recipe.tree, recipe.node):
            if isinstance(node, cst.Return) and isinstance(node.value, cst.Call):
                _sections(recipe, "", node.value)
            elif isinstance(node, cst.Assign):
                for target in node.targets:
                    _assigned(recipe, node, target.target)
            elif isinstance(node, cst.AnnAssign) and node.value is not None:
                _assigned(recipe, node, node.target)
            elif isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
                method = node.value.func
                if isinstance(method, cst.Attribute) and recipe.path(method.value) == "env_vars":
                    recipe.env = node
            elif _hands_on(recipe, node):
                recipe.handed = max(recipe.handed, recipe.tree.range(node)[0])


def _hands_on(recipe: Recipe, node: cst.CSTNode) -> bool:
    import libcst as cst

    if not isinstance(node, cst.Call) or target_name(node.func) in _HARMLESS:
        return False
    return any(recipe.path(arg.value) is not None for arg in node.args)


def _assigned(recipe: Recipe, node: cst.Assign | cst.AnnAssign, target: cst.BaseExpression) -> None:
    import libcst as cst

    value = node.value
    if isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            _written(recipe, node, element.value)
        return
    if isinstance(target, cst.Name):
        known = recipe.names.get(target.value)
        path = recipe.path(value) if value is not None else None
        if path is not None:
            recipe.names[target.value] = path
        elif known is not None and isinstance(value, cst.Call):
            _sections(recipe, known, value)
        return
    path = recipe.path(target)
    if path is not None and isinstance(value, cst.Name) and value.value not in recipe.names:
        recipe.names[value.value] = path
    if path is not None:
        _forget(recipe.writes, path)
        _forget(recipe.calls, path)
    if path is not None and isinstance(value, cst.Call):
        _sections(recipe, path, value)
    _written(recipe, node, target)


def _forget(known: dict[str, Any], path: str) -> None:
    """Another object stands at `path` now: what was set on the old one is gone."""
    for key in [key for key in known if path and (key == path or key.startswith(path + "."))]:
        del known[key]


def _written(recipe: Recipe, node: cst.CSTNode, target: cst.BaseExpression) -> None:
    import libcst as cst

    if isinstance(target, cst.Subscript) and recipe.path(target.value) == "env_vars":
        recipe.env = node
    if not isinstance(target, cst.Attribute):
        return
    path = recipe.path(target)
    if path is None:
        return
    if path == "env_vars":
        recipe.env = node
    recipe.writes[path.rpartition(".")[0]] = (node, target.value)


def _sections(recipe: Recipe, path: str, call: cst.Call) -> None:
    """Note what the keywords of a constructor call make: `ConfigContainer(model=GPTModelProvider(...))`."""
    import libcst as cst

    name = target_name(call.func)
    if name is None or not name.lstrip("_")[:1].isupper():
        return
    recipe.calls[path] = call
    for arg in call.args:
        if arg.keyword is None:
            continue
        inner = f"{path}.{arg.keyword.value}" if path else arg.keyword.value
        if inner == "env_vars":
            recipe.env = arg
        if isinstance(arg.value, cst.Call):
            _sections(recipe, inner, arg.value)
        elif isinstance(arg.value, cst.Name):
            recipe.names.setdefault(arg.value.value, inner)


# Insertion


@dataclass(frozen=True, slots=True)
class Addition:
    """Source to be added: as an item of `anchor` (a call or dict), on a line after `anchor` (a statement), or
    before the return (no anchor), where `{config}` stands for the config's name."""

    source: str
    anchor: cst.CSTNode | None = None
    item: bool = False


def assignment(recipe: Recipe, key: str, source: str, *, at_end: bool = False, after: int = -1) -> Addition:
    """Set `key` in the recipe's own style: beside the other settings of its section, else before the return.

    `after` is the offset of the last place that sets the key too and may not be changed: where the section is
    written before it, and always with `at_end`, the setting goes before the return.
    """
    section, _, leaf = key.rpartition(".")
    if section and not at_end:
        if section in recipe.writes:
            node, prefix = recipe.writes[section]
            top = recipe.top(node)
            if recipe.tree.range(top)[0] < after:
                return Addition(f"{{config}}.{key} = {source}")
            own = statement_of(recipe.tree, node) is top
            name = recipe.tree.code(prefix) if own else _config_path(recipe, section)
            if name is not None and "\n" not in name:
                return Addition(f"{name}.{leaf} = {source}", top)
        call = recipe.calls.get(section)
        late = call is not None and recipe.tree.range(call)[0] < after
        if call is not None and not late and any(arg.keyword is not None for arg in call.args):
            return Addition(f"{leaf}={source}", call, item=True)
    return Addition(f"{{config}}.{key} = {source}")


def emit(recipe: Recipe, additions: Sequence[Addition]) -> Edits | Refusal:
    """The edits of all additions to one recipe; those of one place come in the order given."""
    edits: list[TextEdit] = []
    for anchor in dict.fromkeys(addition.anchor for addition in additions):
        group = [addition for addition in additions if addition.anchor is anchor]
        sources = [addition.source for addition in group]
        if anchor is None:
            last = _before_return(recipe, sources)
            if isinstance(last, Refusal):
                return last
            edits += last
        elif group[0].item:
            added = append_items(recipe.tree, anchor, sources)
            if isinstance(added, Refusal):
                return added
            edits += added
        else:
            edits.append(_line_after(recipe, anchor, sources))
    return Edits(tuple(edits))


def _config_path(recipe: Recipe, section: str) -> str | None:
    return f"{recipe.variable}.{section}" if recipe.variable is not None else None


def _body_indent(recipe: Recipe) -> str:
    text = recipe.tree.text
    return text.indent(text.position(recipe.tree.range(recipe.body[0])[0])[0])


def _line_after(recipe: Recipe, statement: cst.CSTNode, sources: list[str]) -> TextEdit:
    """An edit that puts statements on lines of their own after a statement of the function's body."""
    text, indent = recipe.tree.text, _body_indent(recipe)
    end = text.line_end(text.position(recipe.tree.range(statement)[1])[0])
    return text.edit(end, end, "".join(f"{text.newline}{indent}{source}" for source in sources))


def _before_return(recipe: Recipe, sources: list[str]) -> list[TextEdit] | Refusal:
    text, indent = recipe.tree.text, _body_indent(recipe)
    if recipe.variable is None or recipe.returned is None:
        return _name_the_result(recipe, sources)
    lines = [source.replace("{config}", recipe.variable) for source in sources]
    top = recipe.top(recipe.returned)
    index = next(i for i, item in enumerate(recipe.body) if item is top)
    if index:
        return [_line_after(recipe, recipe.body[index - 1], lines)]
    place = text.line_start(text.position(recipe.tree.range(top)[0])[0])
    return [text.edit(place, place, "".join(f"{indent}{line}{text.newline}" for line in lines))]


def _name_the_result(recipe: Recipe, sources: list[str]) -> list[TextEdit] | Refusal:
    """`return base()` becomes `cfg = base()`, the new statements, `return cfg`."""
    import libcst as cst

    tree, text, returned, last = recipe.tree, recipe.tree.text, recipe.returned, recipe.body[-1]
    if (
        not isinstance(returned, cst.Return)
        or not isinstance(returned.value, cst.Call)
        or not isinstance(last, cst.SimpleStatementLine)
        or len(last.body) != 1
        or last.body[0] is not returned
    ):
        return Refusal("the recipe does not return one named config", tree.span(recipe.node.name))
    taken = {node.value for node in tree.walk(recipe.node) if isinstance(node, cst.Name)}
    name = next(name for name in ("cfg", "config", "recipe_cfg", "cfg_", "mblint_cfg") if name not in taken)
    lines = [*(source.replace("{config}", name) for source in sources), f"return {name}"]
    start, value = tree.range(returned)[0], tree.range(returned.value)[0]
    end = text.line_end(text.position(tree.range(last)[1])[0])
    tail = "".join(f"{text.newline}{_body_indent(recipe)}{line}" for line in lines)
    return [text.edit(start, value, f"{name} = "), text.edit(end, end, tail)]
