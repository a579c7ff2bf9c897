"""The part of OmegaConf that launches use: containers with places, merge, dot-path update, interpolation.

Values keep the span of the text that wrote them. `Unknown` leaves pass through: what depends on one is
unknown.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mblint.evaluate.unknown import Unknown
from mblint.read import interpolation as syntax
from mblint.read.span import Span


class OmegaError(Exception):
    """OmegaConf would raise here; the message is one sentence."""

    def __init__(self, reason: str, span: Span | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span


class StructError(OmegaError):
    """A key that is not there, while no keys may be added."""


class UnknownContainer(OmegaError):
    """A step of a path leads through a value that is unknown: what happens cannot be said."""


MISSING = "???"

MAX_CHAIN = 100

MAX_WORK = 50_000
"""Values that one config may have, those repeated by interpolations included."""

MAX_FOLLOWED = 20_000
"""Interpolations that are followed for one config, those behind others each time they are asked for."""

MAX_TEXT = 200_000
"""Characters of a text with interpolations in it."""


@dataclass(slots=True, eq=False)
class Leaf:
    """A value that is no container. `written` is False for what came with the config that is overridden."""

    value: Any
    span: Span | None = None
    written: bool = True


@dataclass(slots=True, eq=False)
class Dict:
    """A mapping. `keys` holds the places of its keys where they are known."""

    items: dict[Any, Tree]
    span: Span | None = None
    written: bool = True
    keys: dict[Any, Span] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class List:
    items: list[Tree]
    span: Span | None = None
    written: bool = True


Tree = Leaf | Dict | List


def tree(value: Any, span: Span | None = None, written: bool = True) -> Tree:
    """Plain data as a tree, every node at one span. Raises OmegaError on keys OmegaConf refuses, or bad
    interpolations."""
    if isinstance(value, Mapping):
        for key in value:
            check_key(key, span)
        return Dict({key: tree(item, span, written) for key, item in value.items()}, span, written)
    if isinstance(value, (list, tuple)):
        return List([tree(item, span, written) for item in value], span, written)
    check_text(value, span)
    return Leaf(value, span, written)


def check_key(key: object, span: Span | None) -> None:
    if not isinstance(key, (str, int, float, bool, bytes)):
        raise OmegaError(f"a key of type {type(key).__name__} is not allowed", span)


def check_text(value: object, span: Span | None) -> None:
    """OmegaConf parses every string that holds `${` when it is stored."""
    if syntax.is_interpolation(value):
        try:
            syntax.parse_interpolation(str(value))
        except syntax.InterpolationError as error:
            raise OmegaError(str(error), span) from None


def copied(node: Tree) -> Tree:
    if isinstance(node, Leaf):
        return Leaf(node.value, node.span, node.written)
    if isinstance(node, Dict):
        return Dict({key: copied(item) for key, item in node.items.items()}, node.span, node.written, dict(node.keys))
    return List([copied(item) for item in node.items], node.span, node.written)


def respanned(node: Tree, span: Span | None) -> Tree:
    """A copy that counts as written at `span`."""
    if isinstance(node, Leaf):
        return Leaf(node.value, span)
    if isinstance(node, Dict):
        return Dict({key: respanned(item, span) for key, item in node.items.items()}, span)
    return List([respanned(item, span) for item in node.items], span)


_HEAD = re.compile(r"(\.)*[^.\[]*")
_REST = re.compile(r"\.([^.\[]*)|\[(.*?)\]")


def split_key(key: str) -> list[str]:
    """The parts of a dot path; brackets count as dots: `a[b].c` is a, b, c."""
    head = _HEAD.match(key)
    assert head
    parts = key[: head.end()].split(".")
    if head.end() == len(key):
        return parts
    if key[head.end()] == "[" and not parts[-1]:
        parts.pop()
    return parts + [dotted or bracketed for dotted, bracketed in _REST.findall(key[head.end() :])]


def _is_index(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


Resolver = Callable[..., Any]


def _scalars_only(operate: Resolver) -> Resolver:
    def checked(a: Any, b: Any) -> Any:
        if isinstance(a, (list, dict)) or isinstance(b, (list, dict)):
            raise TypeError("containers have no arithmetic")
        return operate(a, b)

    return checked


ARITHMETIC: Mapping[str, Resolver] = {
    "add": _scalars_only(operator.add),
    "sub": _scalars_only(operator.sub),
    "mul": _scalars_only(operator.mul),
    "div": _scalars_only(operator.truediv),
    "max": _scalars_only(max),
}
"""Resolvers that reinforcement-learning launchers register beside OmegaConf's own."""


@dataclass(slots=True)
class Config:
    """A root container with what its interpolations may ask.

    `env` is the environment at launch, `env_known` whether a name that is not in it is known to be unset.
    `resolvers` are registered ones; with `foreign` set, a resolver nobody knows gives an unknown value
    instead of an error. `assumed` collects the environment names whose default was taken.
    """

    root: Dict
    env: Mapping[str, Any] = field(default_factory=dict)
    env_known: bool = False
    resolvers: Mapping[str, Resolver] = field(default_factory=dict)
    foreign: bool = False
    assumed: dict[str, Any] = field(default_factory=dict)
    within: list[int] = field(default_factory=list, repr=False)
    """The containers whose values are being collected: a reference to one of them has no end."""
    work: int = 0
    followed: int = 0

    # ---------------------------------------------------------------- merge

    def merge(self, source: Dict) -> None:
        """`OmegaConf.merge(config, source)`, in place, without struct mode."""
        self._merge(self.root, source, (), struct=False)

    def _merge(self, target: Dict, source: Dict, path: tuple[Any, ...], struct: bool) -> None:
        target.keys.update(source.keys)
        for key, new in source.items.items():
            old = target.items.get(key)
            here = (*path, key)
            if isinstance(old, Leaf) and syntax.is_interpolation(old.value):
                try:
                    referred: Tree | None = self._deref(old, here, [])
                except OmegaError:  # merging looks behind an interpolation, and does not mind a broken one
                    referred = None
                if isinstance(referred, (Dict, List)):
                    old = target.items[key] = copied(referred)
            if old is None:
                if struct:
                    raise StructError(f"the key {dotted(here)!r} does not exist", new.span)
                target.items[key] = copied(new)
                continue
            if isinstance(new, Leaf):
                if new.value == MISSING and isinstance(new.value, str):
                    continue
                target.items[key] = copied(new)
            elif isinstance(old, Leaf):
                if isinstance(old.value, Unknown):
                    target.items[key] = Leaf(Unknown(f"merged over a value that is unknown: {old.value.reason}"), new.span)
                else:
                    target.items[key] = copied(new)
            else:
                self._merge_containers(old, new, here, struct)

    def _merge_containers(self, old: Dict | List, new: Dict | List, path: tuple[Any, ...], struct: bool) -> None:
        if isinstance(old, Dict) and isinstance(new, Dict):
            self._merge(old, new, path, struct)
        elif isinstance(old, List) and isinstance(new, List):
            old.items = [copied(item) for item in new.items]
            old.span, old.written = new.span, new.written
        else:
            raise OmegaError(f"{dotted(path)!r}: a mapping and a list cannot be merged", new.span)

    # ---------------------------------------------------------------- dot paths

    def child(self, container: Dict | List, key: str) -> tuple[Tree | None, str | int]:
        """One step down. Raises OmegaError when a list is asked for something that is no index."""
        if isinstance(container, Dict):
            return container.items.get(key), key
        if not _is_index(key):
            raise OmegaError(f"{key!r} is not an index of a list")
        index = int(key)
        return (container.items[index] if 0 <= index < len(container.items) else None), index

    def select(self, key: str) -> Tree | None:
        """The node at a dot path with interpolations on the way resolved; None where there is none."""
        if key == "":
            return self.root
        try:
            return self._select(self.root, split_key(key), (), [], missing_is_error=False)
        except _NotContainer:
            return None

    def update(self, key: str, value: Any, span: Span | None, force: bool) -> None:
        """`OmegaConf.update(config, key, value, merge=True, force_add=force)` in struct mode. Raises
        OmegaError."""
        parts = split_key(key)
        container: Dict | List = self.root
        for depth, part in enumerate(parts[:-1]):
            nested, name = self.child(container, part)
            if not isinstance(nested, (Dict, List)):
                if isinstance(nested, Leaf) and isinstance(nested.value, Unknown):
                    raise UnknownContainer(f"{dotted(parts[: depth + 1])!r} is unknown: {nested.value.reason}", span)
                nested = Dict({}, span)
                self._store(container, name, nested, parts[: depth + 1], force, span)
            container = nested
        last: str | int = parts[-1]
        if isinstance(container, List):
            if not _is_index(parts[-1]):
                raise OmegaError(f"{parts[-1]!r} is not an index of the list {dotted(parts[:-1])!r}", span)
            last = int(parts[-1])
        new = tree(value, span)
        if isinstance(new, (Dict, List)):
            there = self._get(container, last)
            if isinstance(there, (Dict, List)):
                self._merge_containers(there, new, tuple(parts), struct=not force)
                return
        self._store(container, last, new, parts, force, span)

    @staticmethod
    def _get(container: Dict | List, key: str | int) -> Tree | None:
        if isinstance(container, Dict):
            return container.items.get(key)
        assert isinstance(key, int)
        return container.items[key] if -len(container.items) <= key < len(container.items) else None

    def _store(
        self,
        container: Dict | List,
        key: str | int,
        new: Tree,
        path: Sequence[str],
        force: bool,
        span: Span | None,
    ) -> None:
        if isinstance(container, List):
            assert isinstance(key, int)
            if not -len(container.items) <= key < len(container.items):
                raise OmegaError(f"the list {dotted(path[:-1])!r} has no item {key}", span)
            container.items[key] = new
        else:
            if key not in container.items and not force:
                raise StructError(f"the key {dotted(path)!r} does not exist", span)
            container.items[key] = new

    def delete(self, key: str, expected: Any) -> None:
        """`~key` or `~key=value`. Raises OmegaError."""
        node = self.select(key)
        value = self.plain(node, tuple(split_key(key))) if node is not None else None
        if value is None or (isinstance(value, str) and value == MISSING):
            raise OmegaError(f"{key!r} cannot be deleted: it does not exist or is null")
        if expected is not None and value != expected:
            raise OmegaError(f"{key!r} cannot be deleted: its value is {value!r}, not {expected!r}")
        parent, _, name = key.rpartition(".")
        container = self.select(parent)
        if isinstance(container, Dict) and name in container.items:
            del container.items[name]
        else:  # a list item included: Hydra indexes the list with a string
            raise OmegaError(f"{key!r} cannot be deleted")

    # ---------------------------------------------------------------- values

    def plain(self, node: Tree, path: tuple[Any, ...] = ()) -> Any:
        """Plain data with every interpolation resolved. Raises OmegaError where OmegaConf would."""
        self.work = self.work + 1 if self.within else 0
        if self.work > MAX_WORK:
            raise OmegaError(
                f"more than {MAX_WORK:,} values are followed, those that interpolations repeat included", getattr(node, "span", None)
            )
        if isinstance(node, Leaf):
            found = self._deref(node, path, [])
            if isinstance(found, Leaf):
                return found.value
            node, path = found, self._path_of(found) or path
        if id(node) in self.within:
            raise OmegaError(f"{dotted(path)!r}: the interpolation refers to itself", node.span)
        self.within.append(id(node))
        try:
            if isinstance(node, Dict):
                return {key: self.plain(item, (*path, key)) for key, item in node.items.items()}
            return [self.plain(item, (*path, index)) for index, item in enumerate(node.items)]
        finally:
            self.within.pop()

    def resolved(self, node: Tree, path: tuple[Any, ...] = ()) -> Tree:
        """The node behind interpolations: a leaf with a final value, or a container. Raises OmegaError."""
        return self._deref(node, path, [])

    def _deref(self, node: Tree, path: tuple[Any, ...], stack: list[int]) -> Tree:
        if not isinstance(node, Leaf) or not syntax.is_interpolation(node.value):
            return node
        if id(node) in stack:
            raise OmegaError(f"{dotted(path)!r}: the interpolation refers to itself", node.span)
        if len(stack) > MAX_CHAIN:
            raise OmegaError(f"{dotted(path)!r}: more than {MAX_CHAIN} interpolations in a row", node.span)
        self.followed += 1
        if self.followed > MAX_FOLLOWED:
            raise OmegaError(f"{dotted(path)!r}: more than {MAX_FOLLOWED:,} interpolations are followed", node.span)
        stack.append(id(node))
        try:
            parts = syntax.parse_interpolation(node.value).parts
            if len(parts) == 1 and not isinstance(parts[0], str):
                found = self._interpolate(parts[0], path, stack, node)
                if isinstance(found, (Leaf, Dict, List)):
                    if isinstance(found, Leaf):
                        return Leaf(found.value, node.span, node.written)
                    return found
                return Leaf(found, node.span, node.written)
            return Leaf(self._join(parts, path, stack, node), node.span, node.written)
        except syntax.InterpolationError as error:
            raise OmegaError(str(error), node.span) from None
        finally:
            stack.pop()

    def _join(self, parts: Sequence[str | syntax.Interpolation], path: tuple[Any, ...], stack: list[int], node: Leaf) -> Any:
        texts = []
        for part in parts:
            if isinstance(part, str):
                texts.append(part)
                continue
            value = self._interpolate(part, path, stack, node)
            if isinstance(value, Leaf):
                value = value.value
            elif isinstance(value, (Dict, List)):
                value = raw(value)  # inside a text a container prints as it is written
            if isinstance(value, Unknown):
                return value
            texts.append(str(value))
            if sum(map(len, texts)) > MAX_TEXT:
                raise OmegaError(f"{dotted(path)!r}: a text of more than {MAX_TEXT:,} characters", node.span)
        return "".join(texts)

    def _value(self, found: Any, path: tuple[Any, ...]) -> Any:
        if isinstance(found, Leaf):
            return found.value  # resolved already: a result that holds `${` is not read again
        return self.plain(found, path) if isinstance(found, (Dict, List)) else found

    def _interpolate(self, part: syntax.Interpolation, path: tuple[Any, ...], stack: list[int], node: Leaf) -> Any:
        if isinstance(part, syntax.ResolverCall):
            return self._call(part, path, stack, node)
        keys = []
        for key in part.keys:
            if not isinstance(key, str):
                value = self._value(self._interpolate(key, path, stack, node), path)
                if isinstance(value, Unknown):
                    return value
                if not isinstance(value, str):
                    raise OmegaError(f"{dotted(path)!r}: {value!r} is used as a key in an interpolation", node.span)
                key = value
            keys.append(key)
        found = self._lookup("." * part.dots + ".".join(keys), path, stack, node)
        if found is node or any(found is self._at(path[:length]) for length in range(len(path))):
            raise OmegaError(f"{dotted(path)!r}: the interpolation refers to a parent of itself", node.span)
        return found

    def _lookup(self, key: str, path: tuple[Any, ...], stack: list[int], node: Leaf) -> Tree:
        base: tuple[Any, ...] = ()
        if key.startswith("."):
            base = path[:-1]
            key = key[1:]
            while key.startswith("."):
                if not base:
                    raise OmegaError(f"{dotted(path)!r}: the relative interpolation leaves the config", node.span)
                base, key = base[:-1], key[1:]
        start = self._at(base)
        if start is None:
            raise OmegaError(f"{dotted(path)!r}: the place of the interpolation is gone", node.span)
        try:
            found = self._select(start, split_key(key), base, stack, missing_is_error=True)
        except _NotContainer as error:
            raise OmegaError(f"{dotted(path)!r}: {error.reason}", node.span) from None
        if found is None:
            raise OmegaError(f"{dotted(path)!r}: the interpolation key {key!r} is not found", node.span)
        return found

    def _at(self, path: Sequence[Any]) -> Dict | List | None:
        node: Tree = self.root
        for key in path:
            there: Tree | None = None
            if isinstance(node, (Dict, List)):
                there = self._get(node, key) if isinstance(node, Dict) or isinstance(key, int) else None
            if there is None:
                return None
            node = there
        return None if isinstance(node, Leaf) else node

    def _path_of(self, wanted: Tree) -> tuple[Any, ...] | None:
        for path, node in walk(self.root):
            if node is wanted:
                return path
        return None

    def _select(
        self,
        start: Dict | List,
        keys: list[str],
        base: tuple[Any, ...],
        stack: list[int],
        missing_is_error: bool,
    ) -> Tree | None:
        node: Dict | List = start
        path = base
        for depth, key in enumerate(keys):
            found, name = self.child(node, key)
            path = (*path, name)
            if isinstance(found, Leaf) and missing_is_error and isinstance(found.value, str) and found.value == MISSING:
                raise OmegaError(f"{dotted(path)!r} is marked as missing (???)", found.span)
            if found is not None:
                found = self._deref(found, path, stack)
            if depth == len(keys) - 1:
                return found
            if found is None:
                return None
            if isinstance(found, Leaf):
                if isinstance(found.value, Unknown):
                    return found
                raise _NotContainer(f"{dotted(path)!r} is no container and cannot hold {keys[depth + 1]!r}", found.span)
            node = found
        return None

    # ---------------------------------------------------------------- resolvers

    def _call(self, call: syntax.ResolverCall, path: tuple[Any, ...], stack: list[int], node: Leaf) -> Any:
        names = [self._value(self._interpolate(n, path, stack, node), path) if not isinstance(n, str) else n for n in call.name]
        if any(isinstance(name, Unknown) for name in names):
            return Unknown("the name of a resolver is unknown", node.span)
        name = ".".join(str(part) for part in names)
        args = [self._argument(argument, path, stack, node) for argument in call.args]
        for argument in args:
            if isinstance(argument, Unknown):
                return argument
        try:
            return self._resolver(name, args, path, stack, node)
        except OmegaError:
            raise
        except Exception as error:
            raise OmegaError(f"{dotted(path)!r}: the resolver {name!r} fails: {error}", node.span) from None

    def _argument(self, element: syntax.Element, path: tuple[Any, ...], stack: list[int], node: Leaf) -> Any:
        match element:
            case syntax.Literal():
                return element.value
            case syntax.Joined():
                return self._join(element.parts, path, stack, node)
            case syntax.ListOf():
                return [self._argument(item, path, stack, node) for item in element.items]
            case syntax.DictOf():
                return {key: self._argument(item, path, stack, node) for key, item in element.items}
        return self._value(self._interpolate(element, path, stack, node), path)

    def _resolver(self, name: str, args: list[Any], path: tuple[Any, ...], stack: list[int], node: Leaf) -> Any:
        if name == "oc.env":
            return self._environment(*args, node=node)
        if name == "oc.decode":
            (text,) = args
            if text is None:
                return None
            if not isinstance(text, str):
                raise TypeError(f"it takes a string, not {text!r}")
            return self._argument(syntax.parse_element(text), path, stack, node)
        if name == "oc.create":
            (value,) = args
            return tree(value, node.span, node.written)
        if name == "oc.select":
            return self._oc_select(*args, path=path, stack=stack, node=node)
        if name in ("oc.dict.keys", "oc.dict.values"):
            found = self._lookup(str(args[0]), path, stack, node)
            if not isinstance(found, Dict):
                raise TypeError(f"{args[0]!r} is no mapping")
            if name == "oc.dict.keys":
                return tree(list(found.items), node.span, node.written)
            values = [self.plain(item, (*path, key)) for key, item in found.items.items()]
            if any(isinstance(value, str) and value == MISSING for value in values):
                raise ValueError(f"a value of {args[0]!r} is marked as missing (???)")
            return List([Leaf(value, node.span, node.written) for value in values], node.span, node.written)
        if name == "oc.deprecated":
            return self._lookup(str(args[0]), path, stack, node)
        if name in self.resolvers:
            return self.resolvers[name](*args)
        if self.foreign:
            return Unknown(f"the resolver {name!r} belongs to the program that reads this file", node.span)
        raise OmegaError(f"{dotted(path)!r}: there is no resolver {name!r}", node.span)

    def _environment(self, name: str, *default: Any, node: Leaf) -> Any:
        if name in self.env:
            return self.env[name]
        if default:
            value = str(default[0]) if default[0] is not None else None
            if not self.env_known:
                self.assumed[name] = value
            return value
        if self.env_known:
            raise OmegaError(f"the environment variable {name!r} is not set", node.span)
        return Unknown(f"the environment variable {name} is not known", node.span)

    def _oc_select(self, key: str, *default: Any, path: tuple[Any, ...], stack: list[int], node: Leaf) -> Any:
        base = path[:-1] if key.startswith(".") else ()
        start = self._at(base)
        try:
            found = self._select(start, split_key(key.lstrip(".")), base, stack, False) if start is not None else None
        except _NotContainer:
            found = None
        if found is None or (isinstance(found, Leaf) and isinstance(found.value, str) and found.value == MISSING):
            return default[0] if default else None
        return found


class _NotContainer(OmegaError):
    pass


def walk(node: Tree, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Tree]]:
    """Every node below (and with) `node`, parents first."""
    yield path, node
    if isinstance(node, Dict):
        for key, item in node.items.items():
            yield from walk(item, (*path, key))
    elif isinstance(node, List):
        for index, item in enumerate(node.items):
            yield from walk(item, (*path, index))


def raw(node: Tree) -> Any:
    """Plain data as written, interpolations unresolved."""
    if isinstance(node, Leaf):
        return node.value
    if isinstance(node, Dict):
        return {key: raw(item) for key, item in node.items.items()}
    return [raw(item) for item in node.items]


def dotted(path: Sequence[Any]) -> str:
    return ".".join(str(part) for part in path)
