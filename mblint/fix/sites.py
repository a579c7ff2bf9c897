"""Finds what stands at a place of a recipe: the expression or the assignment that a span points at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mblint.fix.text import Refusal

if TYPE_CHECKING:
    import libcst as cst

    from mblint.fix.tree import Tree
    from mblint.read.span import Span

Kind = Literal["assign", "tuple", "annotated", "augmented", "keyword", "entry", "setattr", "expression"]


@dataclass(frozen=True, slots=True)
class Site:
    """A place that gives a value to a name.

    `value` is the expression; `holder` the node that a deletion takes out: the statement (small), the keyword
    argument, or the dict entry; `target` the left side where there is one.
    """

    kind: Kind
    value: cst.BaseExpression
    holder: cst.CSTNode
    name: str | None = None
    target: cst.BaseExpression | None = None


def string_value(node: cst.CSTNode) -> str | None:
    """The value of a plain string literal, else None."""
    import libcst as cst

    if not isinstance(node, cst.SimpleString | cst.ConcatenatedString):
        return None
    value = node.evaluated_value
    return value if isinstance(value, str) else None


def target_name(node: cst.CSTNode) -> str | None:
    """The last name of an assignment target: `x` of `cfg.model.x`, `N` of `env["N"]`."""
    import libcst as cst

    if isinstance(node, cst.Attribute):
        return node.attr.value
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Subscript) and len(node.slice) == 1:
        index = node.slice[0].slice
        return string_value(index.value) if isinstance(index, cst.Index) else None
    return None


def _pairs(target: cst.BaseExpression, value: cst.BaseExpression) -> list[tuple[cst.BaseExpression, cst.BaseExpression, bool]]:
    """(target, value, inside a tuple) for each plain target; unequal or starred unpacking stays whole."""
    import libcst as cst

    sequence = cst.Tuple | cst.List
    if isinstance(target, sequence):
        if not isinstance(value, sequence) or len(target.elements) != len(value.elements):
            return []
        if any(isinstance(item, cst.StarredElement) for item in (*target.elements, *value.elements)):
            return []
        return [
            (left, right, True)
            for one, other in zip(target.elements, value.elements, strict=True)
            for left, right, _ in _pairs(one.value, other.value)
        ]
    return [(target, value, False)]


def _of_call(node: cst.Call) -> list[Site]:
    import libcst as cst

    sites = [Site("keyword", arg.value, arg, arg.keyword.value) for arg in node.args if arg.keyword is not None]
    plain = [arg for arg in node.args if arg.keyword is None and not arg.star]
    if isinstance(node.func, cst.Name) and node.func.value == "setattr" and len(plain) == 3:
        sites.append(Site("setattr", plain[2].value, node, string_value(plain[1].value), plain[0].value))
    return sites


def all_sites(tree: Tree, root: cst.CSTNode | None = None) -> list[Site]:
    """Every write below `root`, in source order."""
    import libcst as cst

    sites: list[Site] = []
    for node in tree.walk(root):
        if isinstance(node, cst.Assign):
            for target in node.targets:
                for left, right, inside in _pairs(target.target, node.value):
                    sites.append(Site("tuple" if inside else "assign", right, node, target_name(left), left))
        elif isinstance(node, cst.AnnAssign) and node.value is not None:
            sites.append(Site("annotated", node.value, node, target_name(node.target), node.target))
        elif isinstance(node, cst.AugAssign):
            sites.append(Site("augmented", node.value, node, target_name(node.target), node.target))
        elif isinstance(node, cst.Call):
            sites.extend(_of_call(node))
        elif isinstance(node, cst.DictElement):
            sites.append(Site("entry", node.value, node, string_value(node.key)))
    return sites


def chain(node: cst.CSTNode) -> tuple[str, ...] | None:
    """The names of a dotted expression: ("cfg", "model", "x"); None for anything else."""
    import libcst as cst

    names: list[str] = []
    while isinstance(node, cst.Attribute):
        names.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    return (node.value, *reversed(names))


def _closeness(site: Site, key: str) -> int:
    """How many last parts of the key the target spells out."""
    names = chain(site.target) if site.target is not None else None
    count = 0
    for one, other in zip(reversed(names or ()), reversed(key.split(".")), strict=False):
        if one != other:
            break
        count += 1
    return count


def find_site(tree: Tree, span: Span, key: str | None = None) -> Site | Refusal:
    """The write that `span` points at; it may cover the value, the target, the keyword or the whole
    statement.

    `key` (dotted) decides between several writes on one span. A span that covers exactly one expression
    and no write (an element of a table) gives an `expression`.
    """
    start, end = tree.text.bounds(span)
    name = key.rsplit(".", 1)[-1] if key else None
    sites = all_sites(tree)
    named = [site for site in sites if name is None or site.name == name]

    def covers(node: cst.CSTNode | None) -> bool:
        return node is not None and (start, end) in (tree.range(node), tree.inner(node))

    for exact in (
        [site for site in named if covers(site.target)],
        [site for site in named if covers(site.value)],
        [site for site in named if covers(site.holder)],
    ):
        if exact:
            # Of several equally close targets the last one wins when the statement runs.
            return max(enumerate(exact), key=lambda pair: (_closeness(pair[1], key or ""), pair[0]))[1]
    expression = _expression_at(tree, start, end)
    if expression is not None and not _is_target(sites, expression):
        return Site("expression", expression, expression, name)
    position = tree.text.position
    first, last = position(start)[0], position(end)[0]
    near = [
        site
        for site in named
        if site.name is not None and position(tree.range(site.holder)[0])[0] <= last and position(tree.range(site.holder)[1])[0] >= first
    ]
    touching = [s for s in near if tree.range(s.holder)[0] <= end and tree.range(s.holder)[1] >= start]
    for found in (touching, near):
        if found and (name is not None or len(found) == 1):
            # Innermost first: an entry of a dict lies inside the assignment of the dict.
            return min(
                found,
                key=lambda s: (tree.range(s.holder)[1] - tree.range(s.holder)[0], -_closeness(s, key or "")),
            )
    return Refusal("no assignment to this setting was found at its place", span)


def _is_target(sites: list[Site], node: cst.BaseExpression) -> bool:
    return any(site.target is node for site in sites)


def _expression_at(tree: Tree, start: int, end: int) -> cst.BaseExpression | None:
    import libcst as cst

    for node in tree.walk():
        if isinstance(node, cst.BaseExpression) and (start, end) in (tree.range(node), tree.inner(node)):
            return node
    return None


def is_literal(node: cst.CSTNode) -> bool:
    """Whether the expression is a constant that a reader wrote out: a literal, a dtype, an enum member, or a
    list, tuple, set or dict of such.

    `torch.bfloat16` and `AttnBackend.flash` count; `SEQUENCE_LENGTH_16K`, `cfg.model.x` and any call do not.
    """
    import libcst as cst

    if isinstance(node, cst.SimpleString | cst.ConcatenatedString | cst.Integer | cst.Float | cst.Imaginary):
        return string_value(node) is not None or not isinstance(node, cst.SimpleString | cst.ConcatenatedString)
    if isinstance(node, cst.Name):
        return node.value in {"True", "False", "None"}
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.Minus | cst.Plus) and is_literal(node.expression)
    if isinstance(node, cst.Attribute):
        base = node.value
        if isinstance(base, cst.Name) and base.value == "torch":
            return True
        owner = target_name(base)
        return owner is not None and owner[:1].isupper() and not owner.isupper()
    if isinstance(node, cst.List | cst.Tuple | cst.Set):
        return all(isinstance(item, cst.Element) and is_literal(item.value) for item in node.elements)
    if isinstance(node, cst.Dict):
        return all(isinstance(item, cst.DictElement) and is_literal(item.key) and is_literal(item.value) for item in node.elements)
    return False
