"""What evaluated code computes with.

Numbers, strings, None, tuples, lists, dicts and sets are Python's own; this file holds the rest. Containers may
hold `Unknown`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mblint.evaluate.frames import Code, Frame
    from mblint.evaluate.modules import Module
    from mblint.evaluate.site import Site


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""No value at all: an unbound name, a field without default."""


class _Rest:
    __slots__ = ()

    def __repr__(self) -> str:
        return "REST"


REST: Final = _Rest()
"""The key under which a dict (or the keyword arguments of a call) says that it may hold more than is known."""


class Write:
    """One assignment to an attribute: where, what, in which phase, and the one before."""

    __slots__ = ("phase", "previous", "site", "trace", "value")

    def __init__(self, site: Any, value: object, previous: Write | None, trace: Any, phase: int) -> None:
        self.site = site
        self.value = value
        self.previous = previous
        self.trace = trace
        self.phase = phase


class External:
    """A name of a library that is not evaluated, such as `torch.bfloat16`; identity is the dotted name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return type(other) is External and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"External({self.name})"


class BuiltinClass:
    """A class of Python's own (`int`, `dict`, `ValueError`)."""

    __slots__ = ("type",)

    def __init__(self, type_: type) -> None:
        self.type = type_

    @property
    def name(self) -> str:
        return self.type.__name__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BuiltinClass) and other.type is self.type

    def __hash__(self) -> int:
        return hash(self.type)

    def __repr__(self) -> str:
        return f"BuiltinClass({self.type.__name__})"


class Builtin:
    """A function that the evaluator provides; `call(machine, args, kwargs, site, frame)`."""

    __slots__ = ("call", "name")

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        self.name = name
        self.call = call

    def __repr__(self) -> str:
        return f"Builtin({self.name})"


class Field:
    """A field of a dataclass. `default` is MISSING when there is none; `factory` is called for each instance."""

    __slots__ = (
        "annotation", "compare", "default", "factory", "init", "kw_only", "metadata", "module", "name", "owner", "site",
    )  # fmt: skip

    def __init__(self, name: str, owner: ClassValue, annotation: ast.expr | None, module: Module, site: Site) -> None:
        self.name = name
        self.owner = owner
        self.annotation = annotation
        self.module = module
        self.site = site
        self.default: object = MISSING
        self.factory: object = MISSING
        self.init = True
        self.compare = True
        self.kw_only: bool | None = None
        self.metadata: object = None


class ClassValue:
    """A class made by evaluated source."""

    __slots__ = (
        "bases", "builtin_base", "cached_mro", "dataclass", "enum_members", "factories", "field_map", "frozen", "hooks",
        "init_variables", "is_enum", "kw_only", "module", "name", "namespace", "node", "opaque", "options", "plan", "positional",
        "qualname", "required", "site", "template",
    )  # fmt: skip

    def __init__(self, name: str, qualname: str, module: Module, bases: tuple[object, ...], site: Site) -> None:
        self.name = name
        self.qualname = qualname
        self.module = module
        self.bases = bases
        self.site = site
        self.node: ast.ClassDef | None = None
        self.namespace: dict[str, object] = {}
        self.cached_mro: tuple[object, ...] = ()
        self.dataclass = False
        self.kw_only = False
        self.frozen = False
        self.is_enum = False
        self.enum_members: dict[str, EnumMember] = {}
        self.field_map: dict[str, Field] = {}
        """Fields and pseudo-fields (InitVar) of a dataclass, in order."""
        self.init_variables: dict[str, Field] = {}
        self.options: dict[Any, Any] = {}
        """Arguments of @dataclass."""
        self.positional: list[str] = []
        self.required: list[str] = []
        self.builtin_base: type | None = None
        """The one of Python's own classes that it derives from, other than object."""
        self.template: dict[str, object] | None = None
        self.factories: list[Field] = []
        self.plan: Any = None
        self.hooks: Any = None
        self.opaque = False
        """True when a base is not known, so an attribute that is not found may exist all the same."""

    @property
    def full_name(self) -> str:
        return f"{self.module.name}.{self.qualname}"

    def __repr__(self) -> str:
        return f"ClassValue({self.full_name})"


class Instance:
    """An object of an evaluated class. `cls` None: an object of which only what was assigned is known."""

    __slots__ = ("attrs", "birth", "cls", "origin", "reason")

    def __init__(self, cls: ClassValue | None, birth: int = 0, reason: str = "") -> None:
        self.cls = cls
        self.attrs: dict[str, object] = {}
        self.origin: dict[str, Write] = {}
        self.birth = birth
        self.reason = reason

    def __repr__(self) -> str:
        return f"Instance({self.cls.name if self.cls else self.reason})"


class EnumMember:
    """A member of an enumeration; equal to its value when the class is also a str or int (`mixed`)."""

    __slots__ = ("cls", "mixed", "name", "value")

    def __init__(self, cls: ClassValue, name: str, value: object, mixed: bool = False) -> None:
        self.cls = cls
        self.name = name
        self.value = value
        self.mixed = mixed

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not self.mixed:
            return False
        return bool(self.value == (other.value if isinstance(other, EnumMember) and other.mixed else other))

    def __hash__(self) -> int:
        return hash(self.value) if self.mixed else hash(self.name)

    def __repr__(self) -> str:
        return f"{self.cls.name}.{self.name}"


class FunctionValue:
    """A function or lambda of evaluated source; its body is compiled on the first call."""

    __slots__ = (
        "attrs", "closure", "code", "defaults", "defining_class", "kw_defaults", "module", "name", "node", "qualname",
    )  # fmt: skip

    def __init__(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        name: str,
        qualname: str,
        module: Module,
        closure: Frame | None,
        defaults: tuple[object, ...],
        kw_defaults: dict[str, object],
        defining_class: ClassValue | None,
    ) -> None:
        self.node = node
        self.name = name
        self.qualname = qualname
        self.module = module
        self.closure = closure
        self.defaults = defaults
        self.kw_defaults = kw_defaults
        self.defining_class = defining_class
        self.code: Code | None = None
        self.attrs: dict[str, object] = {}

    @property
    def full_name(self) -> str:
        return f"{self.module.name}.{self.qualname}"

    def __repr__(self) -> str:
        return f"FunctionValue({self.full_name})"


class BoundMethod:
    __slots__ = ("function", "receiver")

    def __init__(self, function: object, receiver: object) -> None:
        self.function = function
        self.receiver = receiver


class StaticMethod:
    __slots__ = ("function",)

    def __init__(self, function: object) -> None:
        self.function = function


class ClassMethod:
    __slots__ = ("function",)

    def __init__(self, function: object) -> None:
        self.function = function


class Property:
    """property, or functools.cached_property (`cached`), whose value stays with the instance."""

    __slots__ = ("cached", "deleter", "getter", "setter")

    def __init__(self, getter: object, setter: object = None, deleter: object = None, cached: bool = False) -> None:
        self.getter = getter
        self.setter = setter
        self.deleter = deleter
        self.cached = cached


class Partial:
    """functools.partial."""

    __slots__ = ("args", "function", "kwargs")

    def __init__(self, function: object, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs


class SuperValue:
    """super(): attribute lookup that starts after `after` in the receiver's class order."""

    __slots__ = ("after", "receiver")

    def __init__(self, after: ClassValue, receiver: object) -> None:
        self.after = after
        self.receiver = receiver


class UnionValue:
    """`A | B` over classes."""

    __slots__ = ("members",)

    def __init__(self, members: tuple[object, ...]) -> None:
        self.members = members


class KnownIterator:
    """An iterator. `items` are the elements computed so far; `source` computes more when it is not None."""

    __slots__ = ("index", "items", "private", "source")

    def __init__(self, items: list[Any], source: Iterator[Any] | None = None, private: Any = None) -> None:
        self.items = items
        self.index = 0
        self.source = source
        self.private = private
        """The variables of the generator function that computes the elements."""


class ExceptionValue:
    """An instance of one of Python's own exceptions."""

    __slots__ = ("args", "type")

    def __init__(self, type_: type[BaseException], args: tuple[object, ...]) -> None:
        self.type = type_
        self.args = args


class Sites(dict[Any, Any]):
    """Key -> where it was written."""

    __slots__ = ()


class TrackedDict(dict[Any, Any]):
    """A dict that knows where entries were written."""

    __slots__ = ("sites",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.sites = Sites()
        for other in args:
            if isinstance(other, TrackedDict):
                self.sites.update(other.sites)

    def empty(self) -> TrackedDict:
        """A new one of the same kind."""
        return type(self)()


class DictView:
    """What dict.keys(), values() and items() give: it follows the dict."""

    __slots__ = ("kind", "owner")

    def __init__(self, owner: dict[Any, Any], kind: str) -> None:
        self.owner = owner
        self.kind = kind


class Foreign:
    """An object of a library's class, of which nothing but the class is known."""

    __slots__ = ("class_name",)

    def __init__(self, class_name: str) -> None:
        self.class_name = class_name


class VersionValue:
    """A parsed package version."""

    __slots__ = ("version",)

    def __init__(self, version: Any) -> None:
        self.version = version

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VersionValue) and bool(self.version == other.version)

    def __hash__(self) -> int:
        return hash(self.version)
