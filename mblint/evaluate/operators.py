"""Arithmetic and comparison operators over values of which some are unknown."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from mblint.evaluate.budget import Limits
from mblint.evaluate.iteration import iterate
from mblint.evaluate.machine import Machine
from mblint.evaluate.predicates import (
    PLAIN,
    all_of,
    any_of,
    contains,
    describe,
    enum_base,
    equal,
    has_rest,
    identical,
    machine_frame,
    of_options,
    truth,
    when_false,
    when_true,
)
from mblint.evaluate.unknown import Unknown, like
from mblint.evaluate.values import (
    BoundMethod,
    BuiltinClass,
    ClassValue,
    DictView,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    TrackedDict,
    UnionValue,
    VersionValue,
)


def _safe_pow(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        if abs(left) > 1 and right > 0 and right * abs(left).bit_length() > Limits.bits:
            return Unknown("a number too large to compute")
        if right < -4096:
            return Unknown("a number too small to compute")
    return left**right


def _safe_multiply(left: Any, right: Any) -> Any:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, (str, bytes, list, tuple)) and isinstance(other, int) and len(one) * other > Limits.container:
            return Unknown("a value too large to build")
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > Limits.bits:
        return Unknown("a number too large to compute")
    return left * right


def _safe_shift(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int) and right > 0 and left.bit_length() + right > Limits.bits:
        return Unknown("a number too large to compute")
    return left << right


def _safe_add(left: Any, right: Any) -> Any:
    if isinstance(left, (str, list, tuple)) and isinstance(right, (str, list, tuple)) and len(left) + len(right) > Limits.container:
        return Unknown("a value too large to build")
    return left + right


def _safe_modulo(left: Any, right: Any) -> Any:
    if isinstance(left, (str, bytes)):
        operands = right if isinstance(right, tuple) else (right,)
        if any(type(o) not in PLAIN or (isinstance(o, int) and abs(o) > 10_000) for o in operands) or len(left) > 10_000:
            return Unknown("a formatted string")
        if any(width in left for width in "123456789"):
            return Unknown("a formatted string") if any(len(part) > 4 for part in _numbers(left)) else left % right
    return left % right


def _numbers(text: Any) -> list[str]:
    import re

    return re.findall(r"\d+", text if isinstance(text, str) else text.decode("latin-1"))


BINARY: dict[type[ast.operator], tuple[str, str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", "add", _safe_add),
    ast.Sub: ("-", "sub", operator.sub),
    ast.Mult: ("*", "mul", _safe_multiply),
    ast.Div: ("/", "truediv", operator.truediv),
    ast.FloorDiv: ("//", "floordiv", operator.floordiv),
    ast.Mod: ("%", "mod", _safe_modulo),
    ast.Pow: ("** or pow()", "pow", _safe_pow),
    ast.LShift: ("<<", "lshift", _safe_shift),
    ast.RShift: (">>", "rshift", operator.rshift),
    ast.BitOr: ("|", "or", operator.or_),
    ast.BitAnd: ("&", "and", operator.and_),
    ast.BitXor: ("^", "xor", operator.xor),
    ast.MatMult: ("@", "matmul", operator.matmul),
}

NUMBERS = frozenset({int, float, bool})
NATIVE = (int, float, str, bool, bytes, list, tuple, dict, set, frozenset, type(None), complex)
CLASS_LIKE = (ClassValue, BuiltinClass, UnionValue, External)


def binary(machine: Machine, kind: type[ast.operator], left: Any, right: Any, site: Any, frame: Any) -> Any:
    """left <operator> right."""
    symbol, hook, function = BINARY[kind]
    if type(left) is Unknown or type(right) is Unknown:
        return like(left if type(left) is Unknown else right)
    if type(left) is EnumMember and left.mixed:
        left = left.value
    if type(right) is EnumMember and right.mixed:
        right = right.value
    if type(left) is DictView or type(right) is DictView:
        return _of_views(machine, kind, left, right, site, frame)
    if isinstance(left, NATIVE) and isinstance(right, NATIVE):
        return _native(machine, kind, function, left, right, site, frame)
    if kind is ast.BitOr and (isinstance(left, CLASS_LIKE) or left is None) and (isinstance(right, CLASS_LIKE) or right is None):
        members: list[Any] = []
        for one in (left, right):
            members.extend(one.members if isinstance(one, UnionValue) else [one])
        return UnionValue(tuple(members))
    if isinstance(left, Instance) or isinstance(right, Instance):
        return _of_instances(machine, symbol, hook, left, right, site, frame)
    if hasattr(left, "binary") or hasattr(right, "binary"):
        return left.binary(machine, kind, right) if hasattr(left, "binary") else Unknown(f"{symbol} on an object")
    for one in (left, right):
        if isinstance(one, External):
            return Unknown(f"{one.name} is not known")
    if isinstance(left, (FunctionValue, ClassValue, BuiltinClass, BoundMethod, EnumMember)) or isinstance(
        right, (FunctionValue, ClassValue, BuiltinClass, BoundMethod, EnumMember)
    ):
        if any(isinstance(one, EnumMember) for one in (left, right)):
            return Unknown(f"{symbol} on a member of an enumeration")
        return _unsupported(machine, symbol, left, right, site, frame)
    return Unknown(f"{symbol} on values that are not known")


def _unsupported(machine: Machine, symbol: str, left: Any, right: Any, site: Any, frame: Any) -> Any:
    text = f"unsupported operand type(s) for {symbol}: '{describe(left)}' and '{describe(right)}'"
    return machine.implicit(TypeError, text, site, frame)


def _native(machine: Machine, kind: type[ast.operator], function: Any, left: Any, right: Any, site: Any, frame: Any) -> Any:
    """Python's own operation on Python's own values."""
    if isinstance(left, dict) and isinstance(right, dict) and kind is ast.BitOr:
        from mblint.evaluate.methods import update_dict

        merged = left.empty() if isinstance(left, TrackedDict) else TrackedDict()
        machine.born(merged)
        update_dict(machine, merged, left)
        update_dict(machine, merged, right)
        return merged
    if isinstance(left, (set, frozenset)) and isinstance(right, (set, frozenset)) and _doubtful_sets(left, right):
        return Unknown("a set with unknown elements")
    try:
        result = function(left, right)
    except TypeError as error:
        return machine.implicit(TypeError, _message(error), site, frame)
    except ArithmeticError as error:
        return machine.implicit(type(error), str(error), site, frame)
    except ValueError as error:
        return machine.implicit(ValueError, str(error), site, frame)
    made = type(result)
    if made in NUMBERS:
        return result
    if made is complex:
        return Unknown("a complex number")
    if isinstance(result, (list, dict, set)):
        machine.born(result)
    if isinstance(result, (str, bytes, list, tuple, set)) and len(result) > 256:
        machine.check_size(len(result))
    return result


def _of_views(machine: Machine, kind: type[ast.operator], left: Any, right: Any, site: Any, frame: Any) -> Any:
    """Set operations on dict.keys() and dict.items()."""
    sides = []
    for side in (left, right):
        elements = iterate(machine, side, site, frame)
        if type(elements) is Unknown or any(type(element) is Unknown for element in elements):
            return Unknown("a set with unknown elements")
        try:
            sides.append(set(elements))
        except TypeError as error:
            return machine.implicit(TypeError, str(error), site, frame)
    return binary(machine, kind, sides[0], sides[1], site, frame)


def _doubtful_sets(left: Any, right: Any) -> bool:
    return any(type(element) is Unknown for element in left) or any(type(element) is Unknown for element in right)


def _of_instances(machine: Machine, symbol: str, hook: str, left: Any, right: Any, site: Any, frame: Any) -> Any:
    """__add__ of the left, then __radd__ of the right operand."""
    from mblint.evaluate.calls import call
    from mblint.evaluate.classes import class_lookup

    for owner, other, name in ((left, right, f"__{hook}__"), (right, left, f"__r{hook}__")):
        if isinstance(owner, Instance) and owner.cls is not None:
            method = class_lookup(owner.cls, name)
            if method is not None:
                answer = call(machine, BoundMethod(method, owner), [other], {}, site, frame)
                if not (isinstance(answer, External) and answer.name == "NotImplemented"):
                    return answer
        elif isinstance(owner, Instance) and name in owner.attrs:  # a model of a library's object
            return call(machine, owner.attrs[name], [other], {}, site, frame)
    for one in (left, right):
        if isinstance(one, Instance) and (one.cls is None or one.cls.opaque or one.cls.builtin_base is not None):
            return Unknown(one.reason or f"{symbol} on an object")
        if isinstance(one, External):
            return Unknown(f"{one.name} is not known")
    return _unsupported(machine, symbol, left, right, site, frame)


# --- comparison ------------------------------------------------------------------------------------------------------

ORDER: dict[type[ast.cmpop], tuple[str, str, str, Callable[[Any, Any], bool]]] = {
    ast.Lt: ("<", "__lt__", "__gt__", operator.lt),
    ast.LtE: ("<=", "__le__", "__ge__", operator.le),
    ast.Gt: (">", "__gt__", "__lt__", operator.gt),
    ast.GtE: (">=", "__ge__", "__le__", operator.ge),
}


def compare(machine: Machine, kind: type[ast.cmpop], left: Any, right: Any, site: Any, frame: Any) -> Any:
    """left <comparison> right: True, False or Unknown (or what a method of the operands makes of it)."""
    if kind is ast.Eq or kind is ast.NotEq:
        return _equality(machine, kind is ast.Eq, left, right, site, frame)
    if kind is ast.Is:
        return identical(left, right)
    if kind is ast.In:
        return contains(machine, right, left, site, frame)
    if kind is ast.IsNot or kind is ast.NotIn:
        answer = identical(left, right) if kind is ast.IsNot else contains(machine, right, left, site, frame)
        return answer if type(answer) is Unknown else not answer
    if type(left) is Unknown or type(right) is Unknown:
        return _order_of_options(machine, kind, left, right, site, frame)
    symbol, hook, mirrored, function = ORDER[kind]
    if type(left) is EnumMember and left.mixed:
        left = left.value
    if type(right) is EnumMember and right.mixed:
        right = right.value
    if isinstance(left, NATIVE) and isinstance(right, NATIVE):
        return _native_order(machine, symbol, function, left, right, site, frame)
    if isinstance(left, Instance) or isinstance(right, Instance):
        return _order_of_instances(machine, symbol, hook, mirrored, left, right, site, frame)
    if isinstance(left, VersionValue) and isinstance(right, VersionValue):
        return function(left.version, right.version)
    if isinstance(left, External) or isinstance(right, External) or not (left is None or right is None):
        return Unknown("order of values that are not known")
    return _no_order(machine, symbol, left, right, site, frame)


def _no_order(machine: Machine, symbol: str, left: Any, right: Any, site: Any, frame: Any) -> Any:
    text = f"'{symbol}' not supported between instances of '{describe(left)}' and '{describe(right)}'"
    return machine.implicit(TypeError, text, site, frame)


def _native_order(machine: Machine, symbol: str, function: Any, left: Any, right: Any, site: Any, frame: Any) -> Any:
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return _order_of_sequences(machine, symbol, function, left, right, site, frame)
    if isinstance(left, (set, frozenset)) and isinstance(right, (set, frozenset)) and _doubtful_sets(left, right):
        return Unknown("comparison of sets with unknown elements")
    try:
        return function(left, right)
    except TypeError as error:
        return machine.implicit(TypeError, _message(error), site, frame)


def _message(error: TypeError) -> str:
    """Python's own words, for the kinds of values that stand for Python's own here."""
    return str(error).replace("TrackedDict", "dict").replace("DefaultDict", "collections.defaultdict")


def _order_of_sequences(machine: Machine, symbol: str, function: Any, left: Any, right: Any, site: Any, frame: Any) -> Any:
    """Lists and tuples: the first pair that differs decides."""
    if type(left) is not type(right):
        return _no_order(machine, symbol, left, right, site, frame)
    kind = next(kind for kind, entry in ORDER.items() if entry[0] == symbol)
    for one, other in zip(left, right, strict=False):
        if (type(one) is Unknown and one.many) or (type(other) is Unknown and other.many):
            return Unknown("comparison of sequences of unknown length")
        answer = equal(one, other)
        if type(answer) is Unknown:
            return answer
        if answer is False:
            return compare(machine, kind, one, other, site, frame)
    if has_rest(left) or has_rest(right):
        return Unknown("comparison of sequences of unknown length")
    return function(len(left), len(right))


def _order_of_options(machine: Machine, kind: type[ast.cmpop], left: Any, right: Any, site: Any, frame: Any) -> Any:
    """Order where one side is one of a few numbers: known when all of them agree."""
    unknown, other, swapped = (left, right, False) if type(left) is Unknown else (right, left, True)
    if type(other) not in NUMBERS or unknown.options is None or not all(type(o) in NUMBERS for o in unknown.options):
        return like(unknown)
    function = ORDER[kind][3]
    answers = {function(other, o) if swapped else function(o, other) for o in unknown.options}
    return answers.pop() if len(answers) == 1 else like(unknown)


def _order_of_instances(machine: Machine, symbol: str, hook: str, mirrored: str, left: Any, right: Any, site: Any, frame: Any) -> Any:
    from mblint.evaluate.calls import call
    from mblint.evaluate.classes import class_lookup

    for owner, other, name in ((left, right, hook), (right, left, mirrored)):
        if isinstance(owner, Instance) and owner.cls is not None:
            method = class_lookup(owner.cls, name)
            if method is not None:
                answer = call(machine, BoundMethod(method, owner), [other], {}, site, frame)
                if not (isinstance(answer, External) and answer.name == "NotImplemented"):
                    return answer
            if owner.cls.options.get("order") is True:
                return Unknown("order of objects")
    for one in (left, right):
        if isinstance(one, Instance) and (one.cls is None or one.cls.opaque or one.cls.builtin_base is not None):
            return Unknown(one.reason or "order of objects")
        if isinstance(one, External):
            return Unknown("order of values that are not known")
    return _no_order(machine, symbol, left, right, site, frame)


def _equality(machine: Machine, wanted: bool, left: Any, right: Any, site: Any, frame: Any) -> Any:
    """== and !=, through __eq__ and __ne__ where a class writes its own."""
    if type(left) is Instance or type(right) is Instance:
        from mblint.evaluate.calls import call
        from mblint.evaluate.classes import class_lookup

        for owner, other in ((left, right), (right, left)):
            if type(owner) is not Instance or owner.cls is None:
                continue
            method = class_lookup(owner.cls, "__eq__" if wanted else "__ne__")
            negated = False
            if not isinstance(method, FunctionValue) and not wanted:
                method, negated = class_lookup(owner.cls, "__eq__"), True
            if isinstance(method, FunctionValue):
                answer = call(machine, BoundMethod(method, owner), [other], {}, site, frame)
                if isinstance(answer, External) and answer.name == "NotImplemented":
                    continue
                if not negated:
                    return answer
                answer = truth(machine, answer)
                return answer if type(answer) is Unknown else not answer
    answer = equal(left, right)
    if type(answer) is Unknown:
        if (type(left) is Unknown) is not (type(right) is Unknown):
            unknown, value = (left, right) if type(left) is Unknown else (right, left)
            if type(value) in PLAIN or isinstance(value, (External, EnumMember)):
                answer.equates = (unknown, value, wanted)
        return answer
    return answer if wanted else not answer


def unary(machine: Machine, kind: type[ast.unaryop], operand: Any, site: Any, frame: Any) -> Any:
    """<operator> operand."""
    if kind is ast.Not:
        answer = truth(machine, operand)
        return like(answer) if type(answer) is Unknown else not answer
    if type(operand) is Unknown:
        return like(operand)
    if type(operand) is EnumMember and operand.mixed:
        operand = operand.value
    if isinstance(operand, (int, float)):
        if kind is ast.USub:
            return -operand
        if kind is ast.UAdd:
            return +operand
        if isinstance(operand, int):
            return ~int(operand)
    if isinstance(operand, (Instance, External)):
        return _unary_of_instance(machine, kind, operand, site, frame)
    symbol = {ast.USub: "-", ast.UAdd: "+"}.get(kind, "~")
    return machine.implicit(TypeError, f"bad operand type for unary {symbol}: '{describe(operand)}'", site, frame)


def _unary_of_instance(machine: Machine, kind: type[ast.unaryop], operand: Any, site: Any, frame: Any) -> Any:
    from mblint.evaluate.calls import call
    from mblint.evaluate.classes import class_lookup

    hook = {ast.USub: "__neg__", ast.UAdd: "__pos__"}.get(kind, "__invert__")
    method = class_lookup(operand.cls, hook) if isinstance(operand, Instance) else None
    if method is not None:
        return call(machine, BoundMethod(method, operand), [], {}, site, frame)
    return Unknown("arithmetic on an object")


__all__ = [
    "NATIVE", "PLAIN", "all_of", "any_of", "binary", "compare", "contains", "describe", "enum_base", "equal", "has_rest",
    "identical", "machine_frame", "of_options", "truth", "unary", "when_false", "when_true",
]  # fmt: skip
