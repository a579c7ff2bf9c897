"""Methods that every object inherits, the constructor that @dataclass generates, and classes of the standard library."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.machine import Machine
from mblint.evaluate.site import Site
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import Builtin, ClassValue, Instance


def object_method(name: str) -> Builtin:
    """object.__init__, object.__setattr__, ... as functions of the receiver."""

    def method(machine: Machine, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
        receiver = args[0] if args else None
        if name == "__setattr__" and isinstance(receiver, Instance) and len(args) == 3 and isinstance(args[1], str):
            _set(machine, receiver, args[1], args[2], site, frame)
            return None
        if name == "__getattribute__" and isinstance(receiver, Instance):
            from mblint.evaluate.objects import get_attribute

            return get_attribute(machine, receiver, args[1], site, frame)
        if name == "__init__" and isinstance(receiver, Instance) and _is_exception(receiver):
            machine.write(receiver, "args", tuple(args[1:]), None, None)
            receiver.origin.pop("args", None)
            return None
        if name == "__new__" and isinstance(receiver, ClassValue):
            return machine.new_instance(receiver)
        if name in ("__eq__", "__ne__"):
            from mblint.evaluate.predicates import equal

            answer = equal(args[0], args[1])
            return answer if name == "__eq__" or type(answer) is Unknown else not answer
        if name in ("__repr__", "__str__", "__hash__", "__format__"):
            return Unknown(f"{name} of an object")
        if name == "__delattr__" and isinstance(receiver, Instance):
            if args[1] in receiver.attrs:
                machine.remove(receiver, args[1])
            else:
                machine.implicit(AttributeError, f"object has no attribute '{args[1]}'", site, frame)
        return None

    return Builtin(f"method:{name}", method)


def _is_exception(receiver: Instance) -> bool:
    base = receiver.cls.builtin_base if receiver.cls is not None else None
    return base is not None and issubclass(base, BaseException)


def _set(machine: Machine, receiver: Instance, name: str, value: Any, site: Any, frame: Any) -> None:
    """Set past the hooks; what a __setattr__ passes on was written where that was called."""
    cls = receiver.cls
    if cls is not None and cls.plan is not None and name in cls.plan:
        from mblint.evaluate.objects import set_through_descriptor

        set_through_descriptor(machine, cls, receiver, name, value, site, frame)
        return
    in_hook = frame.trace is not None and frame.function is not None and frame.function.name == "__setattr__"
    machine.write(receiver, name, value, (frame.trace[0] if in_hook else site) or site, frame.trace)


def dataclass_init(cls: ClassValue) -> Builtin:
    """The generated __init__ of a dataclass, called by name (`Base.__init__(self, ...)`)."""

    def init(machine: Machine, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
        from mblint.evaluate.dataclass import construct

        if args and isinstance(args[0], Instance):
            # The outer call's keywords keep their places: look for them where the constructor was called.
            construct(machine, cls, args[0], args[1:], kwargs, _outer_sites(frame, kwargs), site, frame)
        return None

    return Builtin("method:__init__", init)


def _outer_sites(frame: Any, kwargs: dict[Any, Any]) -> dict[Any, Any] | None:
    """Where the keywords that a hand-written __init__ passes on were written."""
    trace = frame.trace
    if trace is None or trace[0] is None or not isinstance(trace[0], Site):
        return None
    node = trace[0].node
    if not isinstance(node, ast.Call):
        return None
    found = {k.arg: Site(trace[0].module, k.value, trace[0].where) for k in node.keywords if k.arg}
    if "seq_length" in found and "sequence_length" in kwargs:
        found.setdefault("sequence_length", found["seq_length"])
    return {name: found.get(name, trace[0]) for name in kwargs}


class LibraryModule:
    """The module of a class that the evaluator provides."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = f"<{name}>"
        self.relative_path = name.replace(".", "/") + ".py"
        self.vars: dict[str, Any] = {}
        self.binders: dict[str, Any] = {}

    def lookup(self, name: str) -> Any:
        from mblint.evaluate.values import External

        return self.vars.get(name, External(f"{self.name}.{name}"))

    def star_is_open(self) -> bool:
        return False

    def character_column(self, line: int, byte_column: int) -> int:
        return byte_column


def library_class(machine: Machine, dotted: str) -> ClassValue:
    """A class of the standard library whose instances hold plain attributes, such as argparse.Namespace."""
    key = ("library class", dotted)
    held: ClassValue | None = machine.compiled.get(key)
    if held is None:
        module, _, name = dotted.rpartition(".")
        held = ClassValue(name, name, LibraryModule(module), (), None)  # type: ignore[arg-type]
        held.cached_mro = (held,)
        machine.compiled[key] = held
    return held
