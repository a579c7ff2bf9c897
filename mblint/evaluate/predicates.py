"""Questions about values of which some are unknown.

`truth`, `equal`, `identical` and `contains` answer True, False or an Unknown; they never guess.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mblint.evaluate.iteration import view_elements
from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown, like
from mblint.evaluate.values import (
    MISSING,
    REST,
    BoundMethod,
    Builtin,
    BuiltinClass,
    ClassMethod,
    ClassValue,
    DictView,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    KnownIterator,
    Partial,
    StaticMethod,
    UnionValue,
)

PLAIN = frozenset({int, float, str, bool, type(None), bytes, complex})
OPAQUE_TRUE = (FunctionValue, ClassValue, BuiltinClass, Builtin, Partial, BoundMethod, UnionValue)


def of_options(value: Unknown, ask: Callable[[Any], bool | Unknown]) -> bool | Unknown:
    """A question about one of several values: known when the answer is the same for all."""
    if not value.options or value.many or value.optional:
        return like(value)
    answers = [ask(option) for option in value.options]
    first = answers[0]
    if type(first) is Unknown or any(answer is not first for answer in answers[1:]):
        return like(value)
    return first


def truth(machine: Machine, value: Any) -> bool | Unknown:
    """bool(value), or Unknown."""
    kind = type(value)
    if kind is bool:
        return bool(value)
    if kind is DictView:
        value = value.owner
    if kind is Unknown:
        return value if value.options is None else of_options(value, lambda option: truth(machine, option))
    if kind in PLAIN or isinstance(value, range):
        return bool(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        if value and all(type(element) is Unknown and element.many for element in value):
            return Unknown("a list that may be empty")
        return bool(value)
    if isinstance(value, dict):
        from mblint.evaluate.joining import maybe_absent

        if value and all(key is REST or maybe_absent(held) for key, held in value.items()):
            return Unknown("a dict that may be empty")
        return bool(value)
    if kind is EnumMember:
        return bool(value.value) if value.mixed else True
    if kind is Instance:
        return _truth_of_instance(machine, value)
    if isinstance(value, OPAQUE_TRUE):
        return True
    if kind is External:
        return True if value.name.startswith(("torch.", "transformers.")) else Unknown(f"{value.name} is not known")
    return True


def _truth_of_instance(machine: Machine, value: Instance) -> bool | Unknown:
    if value.cls is None:
        return Unknown(value.reason or "unknown object")
    from mblint.evaluate.calls import call
    from mblint.evaluate.classes import class_lookup

    for hook in ("__bool__", "__len__"):
        method = class_lookup(value.cls, hook)
        if method is not None:
            result = call(machine, BoundMethod(method, value), [], {}, None, machine_frame(machine))
            return truth(machine, result) if type(result) is not Instance else True
    if value.cls.opaque or (value.cls.builtin_base not in (None,) and not issubclass(value.cls.builtin_base, BaseException)):
        return Unknown("truth of an object of an unknown class")
    return True


def when_true(machine: Machine, value: Unknown) -> Any:
    """What a value of unknown truth is where it is true."""
    return _narrowed(machine, value, True)


def when_false(machine: Machine, value: Unknown) -> Any:
    """What a value of unknown truth is where it is false."""
    return _narrowed(machine, value, False)


def _narrowed(machine: Machine, value: Any, wanted: bool) -> Any:
    if type(value) is not Unknown or value.options is None or value.many:
        return value
    kept = tuple(option for option in value.options if truth(machine, option) is not (not wanted))
    if len(kept) == 1:
        return kept[0]
    return Unknown(value.reason, value.span, options=kept, apart=value.apart) if kept else value


def machine_frame(machine: Machine) -> Any:
    """A frame for calls that no evaluated code makes."""
    from mblint.evaluate.frames import Frame

    return Frame(None, None, None, None, machine.mark())  # type: ignore[arg-type]


def enum_base(member: EnumMember) -> type | None:
    """The plain type that an enumeration mixes in (str, int), or None."""
    return type(member.value) if member.mixed else None


MOST_COMPARISONS = 50_000
"""Of parts of two values: lists that hold one another several times unfold to any number."""
_comparisons = [0]


def equal(left: Any, right: Any, depth: int = 0) -> bool | Unknown:
    """left == right in three-valued logic."""
    left_kind, right_kind = type(left), type(right)
    if left_kind in PLAIN and right_kind in PLAIN:
        return bool(left == right)
    if left_kind is Unknown:
        return of_options(left, lambda option: equal(option, right, depth + 1)) if depth < 5 else like(left)
    if right_kind is Unknown:
        return of_options(right, lambda option: equal(left, option, depth + 1)) if depth < 5 else like(right)
    if left is right:
        return True
    if depth > 50:
        return Unknown("values nested too deeply to compare")
    if depth == 0:
        _comparisons[0] = MOST_COMPARISONS
    _comparisons[0] -= 1
    if _comparisons[0] < 0:
        return Unknown("values with too much in them to compare")
    if left_kind is EnumMember or right_kind is EnumMember:
        return _equal_members(left, right, depth)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        if isinstance(left, list) != isinstance(right, list):
            return False
        if has_rest(left) or has_rest(right):
            return Unknown("comparison of a list of unknown length")
        if len(left) != len(right):
            return False
        return all_of(a is b if a is b and type(a) is not Unknown else equal(a, b, depth + 1) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return _equal_dicts(left, right, depth)
    if left_kind is DictView or right_kind is DictView:
        return _equal_views(left, right, depth)
    if isinstance(left, (set, frozenset)) and isinstance(right, (set, frozenset)):
        if any(type(x) is Unknown for x in left) or any(type(x) is Unknown for x in right):
            return Unknown("comparison of a set with unknown elements")
        return left == right
    if left_kind is External or right_kind is External:
        if left_kind is External and right_kind is External:
            return bool(left.name == right.name)
        return (
            False if not isinstance(left, Instance) and not isinstance(right, Instance) else Unknown("comparison with a library's object")
        )
    if left_kind is Instance or right_kind is Instance:
        return _equal_instances(left, right, depth)
    if isinstance(left, BoundMethod) and isinstance(right, BoundMethod):
        return left.function is right.function and left.receiver is right.receiver
    if isinstance(left, (Partial, KnownIterator)) or isinstance(right, (Partial, KnownIterator)):
        return False
    try:
        return bool(left == right)
    except Exception:
        return Unknown("values that cannot be compared")


def _equal_views(left: Any, right: Any, depth: int) -> bool | Unknown:
    """Views of keys and items compare as sets; views of values are equal to themselves alone."""
    sides = []
    for side in (left, right):
        if type(side) is DictView:
            if side.kind == "values":
                return False
            elements = view_elements(side)
            if any(type(e) is Unknown for e in elements) or side.kind == "items":
                return Unknown("comparison of views of a dict")
            sides.append(set(elements))
        else:
            sides.append(side)
    return equal(sides[0], sides[1], depth + 1)


def _equal_members(left: Any, right: Any, depth: int) -> bool | Unknown:
    if isinstance(left, EnumMember) and isinstance(right, EnumMember):
        if left.cls is right.cls:
            return bool(left.name == right.name)
        return equal(left.value, right.value, depth + 1) if left.mixed and right.mixed else False
    member, other = (left, right) if isinstance(left, EnumMember) else (right, left)
    if member.mixed:
        return equal(member.value, other, depth + 1)
    return Unknown("comparison with an unknown object") if isinstance(other, Instance) and other.cls is None else False


def _equal_dicts(left: dict[Any, Any], right: dict[Any, Any], depth: int) -> bool | Unknown:
    from mblint.evaluate.joining import maybe_absent

    if REST in left or REST in right or any(maybe_absent(v) for v in (*left.values(), *right.values())):
        return Unknown("comparison of a dict with unknown entries")
    if len(left) != len(right) or any(key not in right for key in left):
        return False
    return all_of(equal(held, right[key], depth + 1) for key, held in left.items())


def _equal_instances(left: Any, right: Any, depth: int) -> bool | Unknown:
    if isinstance(left, Instance) and isinstance(right, Instance):
        if left.cls is None or right.cls is None:
            return Unknown("comparison of unknown objects")
        from mblint.evaluate.classes import class_lookup

        if isinstance(class_lookup(left.cls, "__eq__"), FunctionValue) or isinstance(class_lookup(right.cls, "__eq__"), FunctionValue):
            return Unknown("comparison of objects that define it themselves")
        if left.cls is not right.cls:
            return Unknown("comparison of objects of unknown classes") if left.cls.opaque or right.cls.opaque else False
        if left.cls.dataclass and left.cls.options.get("eq", True) is not False:
            names = [n for n, field in left.cls.field_map.items() if field.compare and n not in left.cls.init_variables]
            if any(n not in left.attrs or n not in right.attrs for n in names):
                return Unknown("comparison of objects with missing attributes")
            return all_of(equal(left.attrs[n], right.attrs[n], depth + 1) for n in names)
        return Unknown("comparison of two objects") if left.cls.opaque or left.cls.builtin_base is not None else False
    one = left if isinstance(left, Instance) else right
    if one.cls is None or one.cls.opaque or one.cls.builtin_base is not None:
        return Unknown(one.reason or "comparison of an unknown object")
    from mblint.evaluate.classes import class_lookup

    return Unknown("comparison of an object") if class_lookup(one.cls, "__eq__") is not None else False


def all_of(answers: Any) -> bool | Unknown:
    """Kleene conjunction."""
    unknown: Unknown | None = None
    for answer in answers:
        if answer is False:
            return False
        if answer is not True:
            unknown = answer
    return True if unknown is None else unknown


def any_of(answers: Any) -> bool | Unknown:
    """Kleene disjunction."""
    unknown: Unknown | None = None
    for answer in answers:
        if answer is True:
            return True
        if answer is not False:
            unknown = answer
    return False if unknown is None else unknown


def has_rest(container: Any) -> bool:
    """True when a list, tuple or set stands for more elements than are known."""
    return any(type(element) is Unknown and element.many for element in container)


def identical(left: Any, right: Any) -> bool | Unknown:
    """left is right in three-valued logic (enum members, classes and constants are unique)."""
    if type(left) is Unknown:
        return of_options(left, lambda option: identical(option, right))
    if type(right) is Unknown:
        return of_options(right, lambda option: identical(left, option))
    if left is None or right is None or type(left) is bool or type(right) is bool:
        if left is right:
            return True
        one = right if left is None or type(left) is bool else left
        if type(one) is Instance and one.cls is None:
            return Unknown(one.reason or "unknown object")
        return False
    if type(left) in PLAIN and type(left) is type(right):
        # Whether equal numbers and texts are one object is up to the interpreter, small integers apart.
        if left != right:
            return False
        return True if type(left) is int and -5 <= left <= 256 else Unknown("whether equal values are one object")
    if left is right:
        return True
    if type(left) is EnumMember and type(right) is EnumMember:
        return left.cls is right.cls and left.name == right.name
    if type(left) is type(right) and isinstance(left, (External, BuiltinClass)):
        return bool(left == right)
    if isinstance(left, tuple) and isinstance(right, tuple) and left == right:
        return Unknown("whether equal values are one object")
    return False


def contains(machine: Machine, container: Any, item: Any, site: Any, frame: Any) -> Any:
    """item in container in three-valued logic."""
    if type(container) is Unknown:
        return of_options(container, lambda option: contains(machine, option, item, site, frame))
    if type(container) is DictView:
        container = container.owner if container.kind == "keys" else view_elements(container)
    if type(container) is EnumMember and container.mixed:
        container = container.value
    if isinstance(container, str):
        if isinstance(item, str):
            return item in container
        if type(item) is Unknown:
            return like(item)
        if type(item) is EnumMember and isinstance(item.value, str) and item.mixed:
            return item.value in container
        return machine.implicit(TypeError, f"'in <string>' requires string as left operand, not {describe(item)}", site, frame)
    if isinstance(container, dict):
        return _has_key(machine, container, item, site, frame)
    if isinstance(container, (set, frozenset)):
        if type(item) is not Unknown:
            try:
                if item in container:
                    return True
            except TypeError:
                return machine.implicit(TypeError, f"unhashable type: '{describe(item)}'", site, frame)
            if type(item) in PLAIN and all(type(element) in PLAIN for element in container):
                return False
        return any_of(equal(item, element) for element in container)
    if isinstance(container, (list, tuple)):
        return any_of(True if item is element and type(item) is not Unknown else equal(item, element) for element in container)
    if isinstance(container, range):
        return item in container if isinstance(item, (int, float)) else like(item) if type(item) is Unknown else False
    if isinstance(container, KnownIterator):
        from mblint.evaluate.iteration import walk

        elements = walk(machine, container, site, frame)
        return elements if type(elements) is Unknown else any_of(equal(item, element) for element in elements)
    if isinstance(container, ClassValue) and container.is_enum:
        if type(item) is EnumMember:
            return item.cls is container
        return any_of(equal(item, member.value) for member in container.enum_members.values())
    return _in_object(machine, container, item, site, frame)


def _has_key(machine: Machine, container: dict[Any, Any], item: Any, site: Any, frame: Any) -> Any:
    from mblint.evaluate.joining import maybe_absent

    if type(item) is Unknown:
        return False if not container else of_options(item, lambda option: _has_key(machine, container, option, site, frame))
    try:
        held = container.get(item, MISSING)
    except TypeError:
        return machine.implicit(TypeError, f"unhashable type: '{describe(item)}'", site, frame)
    if held is not MISSING:
        return like(held) if maybe_absent(held) else True
    return like(container[REST]) if REST in container else False


def _in_object(machine: Machine, container: Any, item: Any, site: Any, frame: Any) -> Any:
    if isinstance(container, Instance):
        from mblint.evaluate.calls import call
        from mblint.evaluate.classes import class_lookup

        method = class_lookup(container.cls, "__contains__") if container.cls else None
        if method is not None:
            return truth(machine, call(machine, BoundMethod(method, container), [item], {}, site, frame))
        if container.cls is None or container.cls.opaque or class_lookup(container.cls, "__iter__") is not None:
            return Unknown(container.reason or "membership in an unknown object")
        if class_lookup(container.cls, "__getitem__") is None and container.cls.builtin_base is None:
            return machine.implicit(TypeError, f"argument of type '{container.cls.name}' is not iterable", site, frame)
    if isinstance(container, External) and container.name == "os.environ":
        found = machine.facts.read_environment(machine, item, MISSING, site, frame, quiet=True)
        return found is not MISSING if type(found) is not Unknown else found
    if container is None or isinstance(container, (int, float, bool)):
        return machine.implicit(TypeError, f"argument of type '{describe(container)}' is not iterable", site, frame)
    return Unknown("membership in a value that is not known")


def describe(value: Any) -> str:
    """The type of a value, as Python names it in its own messages."""
    if isinstance(value, Instance):
        return value.cls.name if value.cls else "object"
    if isinstance(value, EnumMember):
        return value.cls.name
    if isinstance(value, BoundMethod):
        return "method"
    if isinstance(value, (FunctionValue, StaticMethod, ClassMethod)):
        return "function"
    if isinstance(value, Builtin):
        return "builtin_function_or_method"
    if isinstance(value, (ClassValue, BuiltinClass)):
        return "type"
    if isinstance(value, dict):
        return "dict"
    if isinstance(value, KnownIterator):
        return "generator"
    if isinstance(value, DictView):
        return f"dict_{value.kind}"
    if isinstance(value, Partial):
        return "functools.partial"
    return type(value).__name__
