"""Values of a snapshot, from JSON to what evaluated code computes with.

Numbers, strings, true, false and null stand for themselves, a list for a list. An object is one of

    {"t": [...]}  tuple    {"s": [...]}  set    {"m": {name: value}} or {"d": [[key, value]]}  dict
    {"f": "inf"}  float    {"x": "torch.bfloat16"}  name of a library    {"b": "int"}  class of Python's own
    {"r": "module:name"}  function or class of the release        {"e": "module:Class.MEMBER"}  enum member
    {"p": [function, [args], {keywords}]}  functools.partial      {"o": "module.Class"}  object of a library
    {"path": "a/b"}  pathlib.Path  {"u": reason, "a": {...}}  object of which only some attributes are known
    {"i": "module:Class", "a": {attribute: value}, "o": [attributes], "n": [attributes]}
        instance: its class's defaults, but "a"; "o" was set too, to the default; "n" it does not have
    {"l": "module.Class", "a": {...}}  object of a library's class of which only the name is known
    {"?": reason, "many": 1, "optional": 1, "options": [...]}  not known, see mblint/evaluate/unknown.py
    {"rest": 1}  the key under which a dict says that it may hold more
    {"=": number}  shared value    {"!": ["ValueError", text]}  raises
    {"id": n, "v": value}, {"is": n}  one object at two places
    {"$": parameter}, {"$a": attribute}  an argument of the call, an attribute of its first argument
    {"c": [[conditions, value], ...]}  the first value whose conditions hold
    {"k": 1}  what was there before

Conditions map a parameter, `parameter.attribute`, `@gpu` or `%VARIABLE` of the environment to the value that
it must have, to {"not": value}, to {"other": [values]} that it has none of, to {"isa": "module:Class"}, or
to {"given": 1}.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mblint.evaluate.errors import Raised
from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    REST,
    BuiltinClass,
    ClassValue,
    EnumMember,
    ExceptionValue,
    External,
    Foreign,
    Instance,
    Partial,
    TrackedDict,
    Write,
)

if TYPE_CHECKING:
    from mblint.upstream.snapshot.modules import Snapshot

PLAIN = (str, int, float, bool, type(None))
NOTHING: Mapping[str, Any] = {}


class Call:
    """What values may refer to: the call that they are the result of.

    `site` stands for the function, `trace` leads to who called it; both None for defaults: nobody wrote them.
    """

    __slots__ = ("arguments", "before", "called_at", "frame", "objects", "receiver", "site", "trace")

    def __init__(
        self,
        arguments: Mapping[str, Any] = NOTHING,
        site: Any = None,
        trace: Any = None,
        called_at: Any = None,
        frame: Any = None,
    ) -> None:
        self.arguments = arguments
        self.site = site
        self.trace = trace
        self.called_at = called_at
        self.frame = frame
        self.receiver: Any = None
        self.before: Any = MISSING
        self.objects: dict[int, Any] = {}


class Values:
    """Makes the values of one part."""

    def __init__(self, snapshot: Snapshot, shared: list[Any]) -> None:
        self.snapshot = snapshot
        self.shared = shared

    @property
    def machine(self) -> Machine:
        return self.snapshot.machine

    def value(self, data: Any, call: Call) -> Any:
        """The value of a node, made anew."""
        kind = type(data)
        if kind is dict:
            tag = next(iter(data))
            return _MAKERS[tag](self, data, call)
        if kind is list:
            return self.machine.born([self.value(element, call) for element in data])
        return data

    def default(self, data: Any) -> Any:
        """A value that no call made."""
        return data if isinstance(data, PLAIN) else self.value(data, Call())

    def holds(self, conditions: Mapping[str, Any], call: Call) -> bool:
        """Whether all conditions are certain to hold."""
        return all(self._holds(name, wanted, call) for name, wanted in conditions.items())

    def _holds(self, name: str, wanted: Any, call: Call) -> bool:
        machine = self.machine
        if name[0] == "@":
            machine.oldest_touched = min(machine.oldest_touched, machine.clock)
            actual = machine.facts.gpu
        elif name[0] == "%":
            machine.env_read_count += 1
            actual = _variable(machine, name[1:])
        else:
            actual = _argument_value(call, name)
        if type(wanted) is dict and "other" in wanted:
            return actual is not MISSING and type(actual) is not Unknown and not any(_same(actual, one) for one in wanted["other"])
        if type(wanted) is dict and "isa" in wanted:
            return isinstance(actual, Instance) and self.snapshot.named(wanted["isa"]) is actual.cls
        if type(wanted) is dict and "given" in wanted:
            return actual is not MISSING
        if type(wanted) is dict and "not" in wanted:
            return actual is not MISSING and type(actual) is not Unknown and not _same(actual, wanted["not"])
        return _same(actual, wanted if isinstance(wanted, PLAIN) else self.value(wanted, call))


def _argument_value(call: Call, name: str) -> Any:
    """An argument, or an attribute of one."""
    parameter, _, attribute = name.partition(".")
    value = call.arguments.get(parameter, MISSING)
    if not attribute:
        return value
    return value.attrs.get(attribute, MISSING) if isinstance(value, Instance) else MISSING


def _variable(machine: Machine, name: str) -> Any:
    """An environment variable: None when it is known to be unset."""
    world = machine.facts
    if name in world.env:
        held = world.env[name]
        return None if held is MISSING else held
    return None if world.env_known else MISSING


def _same(actual: Any, wanted: Any) -> bool:
    if isinstance(actual, dict) and isinstance(wanted, dict):
        return not actual and not wanted
    return type(actual) is type(wanted) and not isinstance(actual, Unknown) and bool(actual == wanted)


# --- one function a kind of node --------------------------------------------------------------------------


def _tuple(values: Values, data: Any, call: Call) -> Any:
    return tuple([values.value(element, call) for element in data["t"]])


def _set(values: Values, data: Any, call: Call) -> Any:
    return values.machine.born({values.value(element, call) for element in data["s"]})


def _mapping(values: Values, data: Any, call: Call) -> Any:
    return values.machine.born(TrackedDict({name: values.value(held, call) for name, held in data["m"].items()}))


def _pairs(values: Values, data: Any, call: Call) -> Any:
    return values.machine.born(TrackedDict({values.value(key, call): values.value(held, call) for key, held in data["d"]}))


def _partial(values: Values, data: Any, call: Call) -> Any:
    function, args, keywords = data["p"]
    return Partial(
        values.value(function, call),
        tuple([values.value(argument, call) for argument in args]),
        {name: values.value(held, call) for name, held in keywords.items()},
    )


def _reference(values: Values, data: Any, call: Call) -> Any:
    return values.snapshot.named(data["r"])


def _member(values: Values, data: Any, call: Call) -> Any:
    name, _, member = data["e"].rpartition(".")
    cls = values.snapshot.named(name)
    held = cls.enum_members.get(member) if isinstance(cls, ClassValue) else None
    return held if isinstance(held, EnumMember) else Unknown(f"{name.rpartition(':')[2]}.{member}")


def _path(values: Values, data: Any, call: Call) -> Any:
    from mblint.evaluate.library.system import path_object

    return path_object(values.machine, data["path"])


def _object(values: Values, data: Any, call: Call) -> Any:
    made = values.machine.new_instance(None, data["u"])
    for name, held in data.get("a", NOTHING).items():
        made.attrs[name] = values.value(held, call)
    return made


def _instance(values: Values, data: Any, call: Call) -> Any:
    cls = values.snapshot.named(data["i"])
    machine = values.machine
    if not isinstance(cls, ClassValue):
        return machine.new_instance(None, f"{data['i']} was not found")
    made = machine.new_instance(cls)
    given = data.get("a", NOTHING)
    attrs = made.attrs
    fill_defaults(values.snapshot, cls, attrs, given)
    site, trace, phase = call.site, call.trace, machine.phase
    origin = made.origin
    for name, held in given.items():
        value = attrs[name] = held if isinstance(held, PLAIN) else values.value(held, call)
        if site is not None:
            origin[name] = Write(site, value, None, trace, phase)
    for name in data.get("n", ()):
        attrs.pop(name, None)
    if site is not None:
        for name in data.get("o", ()):
            origin[name] = Write(site, attrs.get(name), None, trace, phase)
    return made


def _library_object(values: Values, data: Any, call: Call) -> Any:
    made = values.machine.new_instance(values.snapshot.library_class(data["l"]))
    for name, held in data["a"].items():
        made.attrs[name] = values.value(held, call)
    return made


def fill_defaults(snapshot: Snapshot, cls: ClassValue, attrs: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Give an instance the defaults of its fields, without what __post_init__ would do."""
    if not cls.dataclass:
        return
    if cls.template is None:
        from mblint.evaluate.dataclass import prepare

        prepare(cls)
    attrs.update(cls.template or {})
    if cls.factories:
        from mblint.evaluate.calls import call as evaluate
        from mblint.evaluate.operators import machine_frame

        frame = machine_frame(snapshot.machine)
        for field in cls.factories:
            if field.name not in given:
                attrs[field.name] = evaluate(snapshot.machine, field.factory, [], {}, None, frame)


def _unknown(values: Values, data: Any, call: Call) -> Any:
    options = data.get("options")
    known = tuple([values.value(option, call) for option in options]) if options is not None else None
    return Unknown(data["?"], None, None, "optional" in data, many="many" in data, options=known)


def _shared(values: Values, data: Any, call: Call) -> Any:
    return values.value(values.shared[data["="]], call)


def _raises(values: Values, data: Any, call: Call) -> Any:
    name, text = data["!"]
    kind = getattr(builtins, name, None)
    error = kind if isinstance(kind, type) and issubclass(kind, BaseException) else Exception
    raise Raised(ExceptionValue(error, (text,)), call.called_at, call.trace)


def _first(values: Values, data: Any, call: Call) -> Any:
    for conditions, held in data["c"]:
        if values.holds(conditions, call):
            return values.value(held, call)
    return Unknown("it depends on arguments in a way that the snapshot does not tell")


def _argument(values: Values, data: Any, call: Call) -> Any:
    return call.arguments.get(data["$"], Unknown(f"the argument {data['$']}"))


def _attribute(values: Values, data: Any, call: Call) -> Any:
    held = call.receiver.attrs.get(data["$a"], MISSING) if isinstance(call.receiver, Instance) else MISSING
    return held if held is not MISSING else Unknown(f"the attribute {data['$a']}")


def _marked(values: Values, data: Any, call: Call) -> Any:
    made = call.objects[data["id"]] = values.value(data["v"], call)
    return made


_MAKERS: dict[str, Callable[[Values, Any, Call], Any]] = {
    "t": _tuple,
    "s": _set,
    "m": _mapping,
    "d": _pairs,
    "f": lambda values, data, call: float(data["f"]),
    "x": lambda values, data, call: External(data["x"]),
    "b": lambda values, data, call: BuiltinClass(getattr(builtins, data["b"])),
    "r": _reference,
    "e": _member,
    "p": _partial,
    "o": lambda values, data, call: Foreign(data["o"]),
    "path": _path,
    "u": _object,
    "l": _library_object,
    "i": _instance,
    "?": _unknown,
    "rest": lambda values, data, call: REST,
    "=": _shared,
    "!": _raises,
    "id": _marked,
    "is": lambda values, data, call: call.objects.get(data["is"], Unknown("an object that was not made")),
    "$": _argument,
    "$a": _attribute,
    "c": _first,
    "k": lambda values, data, call: call.before,
}
