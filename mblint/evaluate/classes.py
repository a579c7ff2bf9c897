"""Classes: method order, what follows from a class body, and questions about kinds."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown, like
from mblint.evaluate.values import (
    MISSING,
    BoundMethod,
    Builtin,
    BuiltinClass,
    ClassMethod,
    ClassValue,
    DictView,
    EnumMember,
    ExceptionValue,
    External,
    FunctionValue,
    Instance,
    KnownIterator,
    Partial,
    Property,
    StaticMethod,
    UnionValue,
)

TRANSPARENT = frozenset(
    {
        "abc.ABC", "typing.Generic", "typing.Protocol", "typing_extensions.Protocol", "typing_extensions.Generic", "object",
        "typing.NamedTuple", "typing.TypedDict", "typing_extensions.TypedDict",
    }
)  # fmt: skip
"""Bases of libraries that add no attributes worth asking for."""

ENUM_BASES = frozenset({"enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag"})


def method_order(cls: ClassValue) -> tuple[object, ...]:
    """The C3 linearisation; falls back to depth first where bases are not known or contradict."""

    def order_of(base: object) -> list[object]:
        return list(base.cached_mro) if isinstance(base, ClassValue) else [base]

    if len(cls.bases) == 1:
        return (cls, *order_of(cls.bases[0]))
    sequences = [order_of(base) for base in cls.bases] + [list(cls.bases)]
    result: list[object] = [cls]
    while True:
        sequences = [sequence for sequence in sequences if sequence]
        if not sequences:
            return tuple(result)
        for sequence in sequences:
            head = sequence[0]
            if not any(head in other[1:] for other in sequences):
                break
        else:
            head = sequences[0][0]
        result.append(head)
        for sequence in sequences:
            while head in sequence:
                sequence.remove(head)


def find_in_class(cls: ClassValue, name: str, after: ClassValue | None = None) -> Any:
    """An attribute along the method order (after a class, for super()); MISSING when nobody has it."""
    skipping = after is not None
    for base in cls.cached_mro:
        if skipping:
            if base is after:
                skipping = False
            continue
        if isinstance(base, ClassValue) and name in base.namespace:
            return base.namespace[name]
    return MISSING


def class_lookup(cls: ClassValue | None, name: str) -> Any:
    """A method along the method order, or None."""
    if cls is None:
        return None
    found = find_in_class(cls, name)
    return None if found is MISSING else found


def named_fields(cls: ClassValue) -> list[str] | None:
    """The fields of a typing.NamedTuple, in order; None for other classes."""
    for base in cls.cached_mro:
        if isinstance(base, ClassValue) and any(isinstance(b, External) and b.name.endswith("NamedTuple") for b in base.bases):
            fields: Any = base.namespace.get("__annotations__", {})
            return list(fields)
    return None


class Hooks:
    """Which special methods a class has, so that the common case stays fast."""

    __slots__ = ("delattr", "getattr", "post_init", "setattr", "slots")

    def __init__(self, cls: ClassValue) -> None:
        self.slots = _slots(cls)
        self.setattr = class_lookup(cls, "__setattr__")
        self.getattr = class_lookup(cls, "__getattr__")
        self.delattr = class_lookup(cls, "__delattr__")
        self.post_init = class_lookup(cls, "__post_init__")


def _slots(cls: ClassValue) -> frozenset[str] | None:
    """The only attributes that instances can have; None where they can have any."""
    names: set[str] = set()
    for base in cls.cached_mro:
        if isinstance(base, BuiltinClass) and base.type is object:
            continue
        held: Any = base.namespace.get("__slots__") if isinstance(base, ClassValue) else None
        if isinstance(held, str):
            held = (held,)
        if not isinstance(held, (list, tuple)) or not all(isinstance(name, str) for name in held):
            return None
        names.update(held)
    return None if "__dict__" in names else frozenset(names)


def hooks_of(cls: ClassValue) -> Hooks:
    if cls.hooks is None:
        cls.hooks = Hooks(cls)
    hooks: Hooks = cls.hooks
    return hooks


def finish_class(machine: Machine, cls: ClassValue) -> None:
    """Everything that follows from bases and body: order, enum members, properties."""
    cls.cached_mro = method_order(cls)
    machine.step(len(cls.cached_mro))
    plan: dict[str, Any] = {}
    for base in reversed(cls.cached_mro):
        if isinstance(base, ClassValue):
            cls.is_enum = cls.is_enum or base.is_enum
            cls.opaque = cls.opaque or base.opaque
            for name, held in base.namespace.items():
                if is_data_descriptor(held):
                    plan[name] = held.setter if type(held) is Property else held
                else:
                    plan.pop(name, None)
        elif isinstance(base, External):
            if base.name in ENUM_BASES:
                cls.is_enum = True
            elif base.name not in TRANSPARENT:
                cls.opaque = True
        elif isinstance(base, BuiltinClass):
            if base.type is not object:
                cls.builtin_base = base.type
        else:
            cls.opaque = True
    cls.plan = plan or None
    if any(isinstance(base, External) and base.name.endswith("TypedDict") for base in cls.cached_mro):
        cls.builtin_base = dict
    if named_fields(cls) is not None:
        cls.builtin_base = tuple
    if find_in_class(cls, "__getattribute__") is not MISSING:
        cls.opaque = True
    if cls.is_enum:
        cls.builtin_base = None
        _make_members(machine, cls)


def is_data_descriptor(held: Any) -> bool:
    """Whether a class attribute wins over what the instance holds."""
    if type(held) is Property:
        return not held.cached
    return type(held) is Instance and held.cls is not None and class_lookup(held.cls, "__set__") is not None


def _make_members(machine: Machine, cls: ClassValue) -> None:
    """Members of an enumeration, in order; equal values are aliases."""
    names = {base.name for base in cls.cached_mro if isinstance(base, External)}
    types = [base.type for base in cls.cached_mro if isinstance(base, BuiltinClass)]
    is_text, is_flag = "enum.StrEnum" in names, bool(names & {"enum.Flag", "enum.IntFlag"})
    mixed = bool(names & {"enum.IntEnum", "enum.IntFlag", "enum.StrEnum"}) or any(t in (str, int, float) for t in types)
    last: int = 0
    for base in reversed(cls.cached_mro[1:]):
        if isinstance(base, ClassValue):
            cls.enum_members.update(base.enum_members)
    custom = class_lookup(cls, "__init__") is not None or class_lookup(cls, "__new__") is not None
    for name, held in list(cls.namespace.items()):
        if name.startswith("_") or isinstance(held, (FunctionValue, Property, StaticMethod, ClassMethod, ClassValue, Builtin)):
            continue
        value: Any = held
        if isinstance(held, External) and held.name == "enum.auto()":
            if class_lookup(cls, "_generate_next_value_") is not None:
                value = Unknown("a value that the enumeration makes itself")
            elif is_text:
                value = name.lower()
            else:
                value = (1 if not last else 1 << last.bit_length()) if is_flag else last + 1
        elif mixed and isinstance(value, int) and str in types:
            value = str(value)
        if isinstance(value, int):
            last = max(last, value) if is_flag else value
        if custom and not isinstance(value, Unknown):
            value = Unknown("a value that the enumeration's constructor makes") if class_lookup(cls, "__new__") is not None else value
        for member in cls.enum_members.values():
            if type(member.value) is type(value) and type(value) is not Unknown and member.value == value:
                cls.enum_members[name] = member
                break
        else:
            cls.enum_members[name] = EnumMember(cls, name, value, mixed and type(value) in (str, int, float, bool))
        del cls.namespace[name]


# --- questions about kinds -----------------------------------------------------------------------------------------


def is_instance(machine: Machine, value: Any, cls: Any) -> bool | Unknown:
    """isinstance(value, cls), cls being a class or a (nested) tuple or union of classes."""
    from mblint.evaluate.operators import any_of, of_options

    if isinstance(cls, (tuple, list)):
        return any_of(is_instance(machine, value, member) for member in cls)
    if isinstance(cls, UnionValue):
        return any_of(is_instance(machine, value, member) for member in cls.members)
    if type(cls) is Unknown:
        return like(cls)
    if type(value) is Unknown:
        return of_options(value, lambda option: is_instance(machine, option, cls))
    if cls is None or cls == BuiltinClass(type(None)):
        return value is None
    if isinstance(value, Instance):
        if value.cls is None:
            if isinstance(cls, BuiltinClass):
                return True if cls.type is object else _opaque_is(value, cls)
            return Unknown(value.reason or "unknown object")
        return is_subclass(value.cls, cls)
    if isinstance(value, EnumMember):
        return is_subclass(value.cls, cls)
    if isinstance(cls, BuiltinClass):
        return _is_builtin_instance(value, cls)
    if isinstance(cls, External):
        return _is_external_instance(value, cls)
    return Unknown("an object of a library") if not isinstance(cls, ClassValue) else False


def _opaque_is(value: Instance, cls: BuiltinClass) -> bool | Unknown:
    """An object of an unknown class stands for a config or a library's object, not for a number or a text."""
    if cls.type in (int, float, str, bool, bytes, tuple, list, set):
        return False
    return Unknown(value.reason or "unknown object")


def _is_builtin_instance(value: Any, cls: BuiltinClass) -> bool | Unknown:
    if cls.type is object:
        return True
    if isinstance(value, ExceptionValue):
        return issubclass(value.type, cls.type)
    if isinstance(value, External):
        return False if cls.type in (int, float, str, bool, list, dict, tuple, set) else Unknown(value.name)
    if cls.type is type:
        return isinstance(value, (ClassValue, BuiltinClass))
    if cls.type is dict and type(value).__name__ == "ConfigDict":
        return False
    if cls.type is list and type(value).__name__ == "ConfigList":
        return False
    return isinstance(value, cls.type)


_LIBRARY_KINDS: dict[str, tuple[type, ...]] = {
    "collections.abc.Mapping": (dict,),
    "typing.Mapping": (dict,),
    "typing.Dict": (dict,),
    "collections.abc.MutableMapping": (dict,),
    "typing.MutableMapping": (dict,),
    "collections.abc.Sequence": (list, tuple, str, range, bytes),
    "typing.Sequence": (list, tuple, str, range, bytes),
    "collections.abc.MutableSequence": (list,),
    "typing.List": (list,),
    "typing.Tuple": (tuple,),
    "typing.Set": (set,),
    "collections.abc.Iterable": (list, tuple, str, dict, set, frozenset, range, bytes, KnownIterator, DictView),
    "typing.Iterable": (list, tuple, str, dict, set, frozenset, range, bytes, KnownIterator, DictView),
    "collections.abc.Set": (set, frozenset),
    "collections.abc.Sized": (list, tuple, str, dict, set, frozenset, range, bytes),
    "collections.abc.Hashable": (int, float, str, type(None), bytes, frozenset, range),
    "numbers.Number": (int, float, complex),
    "numbers.Integral": (int,),
    "numbers.Real": (int, float),
    "collections.abc.Callable": (FunctionValue, ClassValue, BoundMethod, Builtin, BuiltinClass, Partial),
    "typing.Callable": (FunctionValue, ClassValue, BoundMethod, Builtin, BuiltinClass, Partial),
    "functools.partial": (Partial,),
    "types.FunctionType": (FunctionValue,),
    "types.LambdaType": (FunctionValue,),
    "types.MethodType": (BoundMethod,),
    "types.GeneratorType": (KnownIterator,),
    "types.NoneType": (type(None),),
    "enum.Enum": (EnumMember,),
}


def _is_external_instance(value: Any, cls: External) -> bool | Unknown:
    if cls.name in _LIBRARY_KINDS:
        if isinstance(value, External):
            return Unknown(f"whether {value.name} is a {cls.name}")
        return isinstance(value, _LIBRARY_KINDS[cls.name])
    if isinstance(value, External):
        if cls.name == "torch.dtype":
            from mblint.evaluate.library.torch import DTYPES

            return value.name in DTYPES
        return Unknown(f"whether {value.name} is a {cls.name}")
    kind = type(value).__name__
    if kind in ("ConfigDict", "ConfigList"):
        last = cls.name.rpartition(".")[2]
        if cls.name.startswith("omegaconf."):
            return {"DictConfig": kind == "ConfigDict", "ListConfig": kind == "ConfigList"}.get(last, True)
        return False
    if kind == "DefaultDict" and cls.name == "collections.defaultdict":
        return True
    if isinstance(value, (dict, KnownIterator)) and cls.name.startswith(("collections.", "typing.")):
        return Unknown(f"whether a value is a {cls.name}")
    return False


def is_subclass(cls: Any, other: Any) -> bool | Unknown:
    """issubclass for evaluated classes."""
    if isinstance(other, (tuple, list)):
        from mblint.evaluate.operators import any_of

        return any_of(is_subclass(cls, member) for member in other)
    if isinstance(other, UnionValue):
        return is_subclass(cls, other.members)
    if isinstance(cls, BuiltinClass):
        if isinstance(other, External) and other.name in _LIBRARY_KINDS:
            return Unknown(f"whether {cls.name} is a {other.name}")
        return isinstance(other, BuiltinClass) and issubclass(cls.type, other.type)
    if not isinstance(cls, ClassValue):
        return Unknown("a class that is not known")
    if other in cls.cached_mro:
        return True
    if type(other) is Unknown:
        return like(other)
    doubt = Unknown(f"{cls.name} has bases that are not known")
    if isinstance(other, BuiltinClass):
        return _derives_from_builtin(cls, other.type, doubt)
    if isinstance(other, External):
        if other.name == "enum.Enum" and cls.is_enum:
            return True
        return doubt if _has_unknown_base(cls, other) else False
    return doubt if any(type(b) is Unknown for b in cls.cached_mro) else False


def _derives_from_builtin(cls: ClassValue, other: type, doubt: Unknown) -> bool | Unknown:
    if other is object:
        return True
    if any(isinstance(base, BuiltinClass) and issubclass(base.type, other) for base in cls.cached_mro):
        return True
    if cls.is_enum and other in (int, str):
        names = {"enum.IntEnum", "enum.IntFlag"} if other is int else {"enum.StrEnum"}
        return any(isinstance(b, External) and b.name in names for b in cls.cached_mro)
    if other is tuple and any(isinstance(b, External) and b.name.endswith("NamedTuple") for b in cls.cached_mro):
        return True
    return doubt if cls.opaque and other not in (int, str, float, bool) else False


def _has_unknown_base(cls: ClassValue, other: External) -> bool:
    """Whether an external base could derive from another external class (same top-level package)."""
    top = other.name.partition(".")[0]
    return any(
        (isinstance(base, External) and base.name not in TRANSPARENT and base.name.partition(".")[0] == top) or type(base) is Unknown
        for base in cls.cached_mro
    )
