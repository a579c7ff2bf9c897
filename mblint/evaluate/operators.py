"""Operators over values of which some are unknown.

`truth`, `equal`, `identical` and `contains` answer True, False or an Unknown; they never guess.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from mblint.evaluate.machine import Limits, Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    BoundMethod,
    Builtin,
    BuiltinClass,
    ClassValue,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    KnownIterator,
    Partial,
    UnionValue,
    VersionValue,
)

PLAIN = frozenset({int, float, str, bool, type(None), bytes, complex})
OPAQUE_TRUE = (FunctionValue, ClassValue, BuiltinClass, Builtin, Partial, BoundMethod, UnionValue)


def truth(machine: Machine, value: Any) -> bool | Unknown:
    """bool(value), or Unknown."""
    kind = type(value)
    if kind is bool:
        return bool(value)
    if kind is Unknown:
        return value  # type: ignore[no-any-return]
    if kind in PLAIN or kind is list or kind is tuple or isinstance(value, (dict, set, frozenset, range)):
        return bool(value)
    if kind is EnumMember:
        base = enum_base(value)
        return bool(value.value) if base is not None and type(value.value) in PLAIN else True
    if kind is Instance:
        if value.cls is None:
            return Unknown(value.reason or "unknown object")
        from mblint.evaluate.objects import class_lookup

        for hook in ("__bool__", "__len__"):
            method = class_lookup(value.cls, hook)
            if method is not None:
                from mblint.evaluate.calls import call

                result = call(machine, BoundMethod(method, value), [], {}, None, machine_frame(machine))
                return truth(machine, result) if type(result) is not Instance else True
        return Unknown("truth of an object of an unknown class") if value.cls.opaque else True
    if isinstance(value, OPAQUE_TRUE):
        return True
    if kind is External:
        return True if value.name.startswith(("torch.", "transformers.")) else Unknown(f"{value.name} is not known")
    return True


def machine_frame(machine: Machine) -> Any:
    """A frame for calls that no evaluated code makes."""
    from mblint.evaluate.frames import Frame

    return Frame(None, None, None, None)  # type: ignore[arg-type]


def enum_base(member: EnumMember) -> type | None:
    """The plain type that an enumeration mixes in (str, int), or None."""
    for base in member.cls.cached_mro:
        if isinstance(base, BuiltinClass) and base.type in (str, int, float):
            return base.type
        if isinstance(base, External) and base.name in ("enum.IntEnum", "enum.IntFlag"):
            return int
        if isinstance(base, External) and base.name == "enum.StrEnum":
            return str
    return None


def equal(left: Any, right: Any, depth: int = 0) -> bool | Unknown:
    """left == right in three-valued logic."""
    if left is right and type(left) is not Unknown:
        return True
    left_kind, right_kind = type(left), type(right)
    if left_kind in PLAIN and right_kind in PLAIN:
        return bool(left == right)
    if left_kind is Unknown:
        return Unknown(left.reason, left.span)
    if right_kind is Unknown:
        return Unknown(right.reason, right.span)
    if depth > 50:
        return Unknown("values nested too deeply to compare")
    if left_kind is EnumMember or right_kind is EnumMember:
        if left_kind is EnumMember and right_kind is EnumMember:
            if left.cls is right.cls:
                return bool(left.name == right.name)
            if enum_base(left) is None or enum_base(right) is None:
                return False
            return equal(left.value, right.value)
        member, other = (left, right) if left_kind is EnumMember else (right, left)
        if enum_base(member) is not None and type(member.value) in PLAIN:
            return equal(member.value, other, depth + 1)
        return Unknown("comparison with an unknown object") if isinstance(other, Instance) and other.cls is None else False
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        if isinstance(left, list) != isinstance(right, list):
            return False
        if len(left) != len(right):
            return Unknown("comparison of a list of unknown length") if has_rest(left) or has_rest(right) else False
        return all_of(equal(a, b, depth + 1) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        if left.keys() != right.keys():
            return False
        return all_of(equal(held, right[key], depth + 1) for key, held in left.items())
    if isinstance(left, (set, frozenset)) and isinstance(right, (set, frozenset)):
        if any(type(x) is Unknown for x in left) or any(type(x) is Unknown for x in right):
            return Unknown("comparison of a set with unknown elements")
        return left == right
    if left_kind is External or right_kind is External:
        if left_kind is External and right_kind is External:
            return bool(left.name == right.name)
        return False
    if left_kind is Instance or right_kind is Instance:
        if left_kind is Instance and right_kind is Instance:
            if left.cls is None or right.cls is None:
                return Unknown("comparison of unknown objects")
            if left.cls is not right.cls:
                return False
            if left.cls.dataclass:
                return all_of(equal(left.attrs.get(n), right.attrs.get(n), depth + 1) for n in left.cls.field_map)
            return Unknown("comparison of two objects")
        one = left if left_kind is Instance else right
        if one.cls is None or one.cls.opaque:
            return Unknown(one.reason or "comparison of an unknown object")
        return False
    if isinstance(left, BoundMethod) and isinstance(right, BoundMethod):
        return left.function is right.function and left.receiver is right.receiver
    try:
        return bool(left == right)
    except Exception:
        return Unknown("values that cannot be compared")


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
    """True when a container stands for more elements than are known."""
    return any(type(element) is Unknown and element.reason.startswith("rest:") for element in container)


def identical(left: Any, right: Any) -> bool | Unknown:
    """left is right in three-valued logic (enum members, classes and constants are unique)."""
    if type(left) is Unknown:
        return Unknown(left.reason, left.span)
    if type(right) is Unknown:
        return Unknown(right.reason, right.span)
    if left is None or right is None or type(left) is bool or type(right) is bool:
        if left is right:
            return True
        one = right if left is None or type(left) is bool else left
        if type(one) is Instance and one.cls is None:
            return Unknown(one.reason or "unknown object")
        return False
    if left is right:
        return True
    if type(left) is EnumMember and type(right) is EnumMember:
        return left.cls is right.cls and left.name == right.name
    if type(left) in PLAIN or type(left) in (External, BuiltinClass):
        return equal(left, right) if type(left) is type(right) else False
    if isinstance(left, BoundMethod) and isinstance(right, BoundMethod):
        return left.function is right.function and left.receiver is right.receiver
    return False


def contains(machine: Machine, container: Any, item: Any, site: Any, frame: Any) -> Any:
    """item in container in three-valued logic."""
    if type(container) is Unknown:
        return Unknown(container.reason, container.span)
    if isinstance(container, str):
        if isinstance(item, str):
            return item in container
        if type(item) is Unknown:
            return Unknown(item.reason, item.span)
        if type(item) is EnumMember and isinstance(item.value, str) and enum_base(item) is str:
            return item.value in container
        return machine.implicit(TypeError, f"'in <string>' requires string as left operand, not {describe(item)}", site, frame)
    if isinstance(container, (dict, set, frozenset)):
        if type(item) is Unknown:
            return False if not container else Unknown(item.reason, item.span)
        try:
            if item in container:
                return True
        except TypeError:
            return machine.implicit(TypeError, f"unhashable type: {describe(item)}", site, frame)
        return any_of(equal(item, element) for element in container if type(element) not in PLAIN or type(item) not in PLAIN)
    if isinstance(container, (list, tuple)):
        return any_of(equal(item, element) for element in container)
    if isinstance(container, range):
        return item in container if isinstance(item, (int, float)) else equal(item, 0) if type(item) is Unknown else False
    if isinstance(container, KnownIterator):
        return any_of(equal(item, element) for element in container.items[container.index :])
    if isinstance(container, ClassValue) and container.is_enum:
        if type(item) is EnumMember:
            return item.cls is container
        return any_of(equal(item, member.value) for member in container.enum_members.values())
    if isinstance(container, Instance):
        from mblint.evaluate.calls import call
        from mblint.evaluate.objects import class_lookup

        method = class_lookup(container.cls, "__contains__") if container.cls else None
        if method is not None:
            return truth(machine, call(machine, BoundMethod(method, container), [item], {}, site, frame))
        if container.cls is None or container.cls.opaque:
            return Unknown(container.reason or "membership in an unknown object")
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
    if isinstance(value, (FunctionValue, BoundMethod, Builtin)):
        return "function"
    if isinstance(value, (ClassValue, BuiltinClass)):
        return "type"
    return type(value).__name__


def _safe_pow(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int) and abs(left) > 1 and (right > 4096 or right * abs(left).bit_length() > 65536):
        return Unknown("a number too large to compute")
    return left**right


def _safe_multiply(left: Any, right: Any) -> Any:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, (str, bytes, list, tuple)) and isinstance(other, int) and len(one) * other > Limits.container:
            return Unknown("a value too large to build")
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > 65536:
        return Unknown("a number too large to compute")
    return left * right


def _safe_shift(left: Any, right: Any) -> Any:
    return left << right if isinstance(right, int) and right < 4096 else Unknown("a number too large to compute")


def _safe_add(left: Any, right: Any) -> Any:
    if isinstance(left, (str, list, tuple)) and isinstance(right, (str, list, tuple)) and len(left) + len(right) > Limits.container:
        return Unknown("a value too large to build")
    return left + right


def _safe_modulo(left: Any, right: Any) -> Any:
    if isinstance(left, str):
        operands = right if isinstance(right, tuple) else (right,)
        if any(type(o) not in PLAIN or (isinstance(o, int) and abs(o) > 10_000) for o in operands) or len(left) > 10_000:
            return Unknown("a formatted string")
    return left % right


BINARY: dict[type[ast.operator], tuple[str, str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", "__add__", _safe_add),
    ast.Sub: ("-", "__sub__", operator.sub),
    ast.Mult: ("*", "__mul__", _safe_multiply),
    ast.Div: ("/", "__truediv__", operator.truediv),
    ast.FloorDiv: ("//", "__floordiv__", operator.floordiv),
    ast.Mod: ("%", "__mod__", _safe_modulo),
    ast.Pow: ("** or pow()", "__pow__", _safe_pow),
    ast.LShift: ("<<", "__lshift__", _safe_shift),
    ast.RShift: (">>", "__rshift__", operator.rshift),
    ast.BitOr: ("|", "__or__", operator.or_),
    ast.BitAnd: ("&", "__and__", operator.and_),
    ast.BitXor: ("^", "__xor__", operator.xor),
    ast.MatMult: ("@", "__matmul__", operator.matmul),
}

NATIVE = (int, float, str, bool, bytes, list, tuple, dict, set, frozenset, type(None), complex)
CLASS_LIKE = (ClassValue, BuiltinClass, UnionValue, External)


def binary(machine: Machine, kind: type[ast.operator], left: Any, right: Any, site: Any, frame: Any) -> Any:
    """left <operator> right."""
    symbol, hook, function = BINARY[kind]
    if type(left) is Unknown:
        return Unknown(left.reason, left.span)
    if type(right) is Unknown:
        return Unknown(right.reason, right.span)
    if type(left) is EnumMember and enum_base(left) is not None:
        left = left.value
    if type(right) is EnumMember and enum_base(right) is not None:
        right = right.value
    if isinstance(left, NATIVE) and isinstance(right, NATIVE):
        if kind is ast.BitOr and isinstance(left, dict) and isinstance(right, dict):
            merged = type(left)(left)
            merged.update(right)
            return machine.born(merged)
        try:
            result = function(left, right)
        except TypeError:
            return machine.implicit(
                TypeError, f"unsupported operand type(s) for {symbol}: '{describe(left)}' and '{describe(right)}'", site, frame
            )
        except ZeroDivisionError as error:
            return machine.implicit(ZeroDivisionError, str(error), site, frame)
        except (ValueError, OverflowError) as error:
            return machine.implicit(type(error), str(error), site, frame)
        if type(result) is complex:
            return Unknown("a complex number")
        if isinstance(result, (list, dict, set)):
            machine.born(result)
        return result
    if kind is ast.BitOr and (isinstance(left, CLASS_LIKE) or left is None) and (isinstance(right, CLASS_LIKE) or right is None):
        members: list[Any] = []
        for one in (left, right):
            members.extend(one.members if isinstance(one, UnionValue) else [one])
        return UnionValue(tuple(members))
    if isinstance(left, Instance) and left.cls is not None:
        from mblint.evaluate.calls import call
        from mblint.evaluate.objects import class_lookup

        method = class_lookup(left.cls, hook)
        if method is not None:
            return call(machine, BoundMethod(method, left), [right], {}, site, frame)
    for one in (left, right):
        if isinstance(one, Instance):
            return Unknown(one.reason or f"{symbol} on an object")
        if isinstance(one, External):
            return Unknown(f"{one.name} is not known")
    if kind is ast.Div and not isinstance(left, NATIVE):
        return Unknown("a path")
    if isinstance(left, (FunctionValue, ClassValue, BuiltinClass, BoundMethod)) or isinstance(
        right, (FunctionValue, ClassValue, BuiltinClass, BoundMethod)
    ):
        return machine.implicit(
            TypeError, f"unsupported operand type(s) for {symbol}: '{describe(left)}' and '{describe(right)}'", site, frame
        )
    return Unknown(f"{symbol} on values that are not known")


ORDER: dict[type[ast.cmpop], tuple[str, str, Callable[[Any, Any], bool]]] = {
    ast.Lt: ("<", "__lt__", operator.lt),
    ast.LtE: ("<=", "__le__", operator.le),
    ast.Gt: (">", "__gt__", operator.gt),
    ast.GtE: (">=", "__ge__", operator.ge),
}


def compare(machine: Machine, kind: type[ast.cmpop], left: Any, right: Any, site: Any, frame: Any) -> Any:
    """left <comparison> right: True, False or Unknown."""
    if kind is ast.Eq or kind is ast.NotEq:
        if isinstance(left, Instance) and left.cls is not None and not left.cls.dataclass:
            from mblint.evaluate.objects import class_lookup

            method = class_lookup(left.cls, "__eq__")
            if isinstance(method, FunctionValue):
                from mblint.evaluate.calls import call

                answer = call(machine, BoundMethod(method, left), [right], {}, site, frame)
                answer = truth(machine, answer)
                return answer if kind is ast.Eq or type(answer) is Unknown else not answer
        answer = equal(left, right)
        if type(answer) is Unknown:
            if (type(left) is Unknown) is not (type(right) is Unknown):
                pair = (left, right) if type(left) is Unknown else (right, left)
                answer.equates = (*pair, kind is ast.Eq)
            return answer
        return answer if kind is ast.Eq else not answer
    if kind is ast.Is:
        return identical(left, right)
    if kind is ast.IsNot:
        answer = identical(left, right)
        return answer if type(answer) is Unknown else not answer
    if kind is ast.In:
        return contains(machine, right, left, site, frame)
    if kind is ast.NotIn:
        answer = contains(machine, right, left, site, frame)
        return answer if type(answer) is Unknown else not answer
    symbol, hook, function = ORDER[kind]
    if type(left) is Unknown:
        return Unknown(left.reason, left.span)
    if type(right) is Unknown:
        return Unknown(right.reason, right.span)
    if type(left) is EnumMember and enum_base(left) is not None:
        left = left.value
    if type(right) is EnumMember and enum_base(right) is not None:
        right = right.value
    if isinstance(left, NATIVE) and isinstance(right, NATIVE):
        try:
            return function(left, right)
        except TypeError:
            if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
                return Unknown("comparison of sequences with unknown elements")
    elif isinstance(left, Instance) and left.cls is not None:
        from mblint.evaluate.calls import call
        from mblint.evaluate.objects import class_lookup

        method = class_lookup(left.cls, hook)
        if method is not None:
            return call(machine, BoundMethod(method, left), [right], {}, site, frame)
        return Unknown("order of objects")
    elif isinstance(left, VersionValue) and isinstance(right, VersionValue):
        return function(left.version, right.version)
    elif not (left is None or right is None):
        return Unknown("order of values that are not known")
    elif isinstance(left, Instance) or isinstance(right, Instance) or isinstance(left, External) or isinstance(right, External):
        return Unknown("order of values that are not known")
    return machine.implicit(
        TypeError, f"'{symbol}' not supported between instances of '{describe(left)}' and '{describe(right)}'", site, frame
    )


def unary(machine: Machine, kind: type[ast.unaryop], operand: Any, site: Any, frame: Any) -> Any:
    """<operator> operand."""
    if kind is ast.Not:
        answer = truth(machine, operand)
        return answer if type(answer) is Unknown else not answer
    if type(operand) is Unknown:
        return Unknown(operand.reason, operand.span)
    if isinstance(operand, (int, float)):
        if kind is ast.USub:
            return -operand
        if kind is ast.UAdd:
            return +operand
        if isinstance(operand, int):
            return ~operand
    if isinstance(operand, (Instance, External)):
        return Unknown("arithmetic on an object")
    return machine.implicit(TypeError, f"bad operand type for unary operator: '{describe(operand)}'", site, frame)
