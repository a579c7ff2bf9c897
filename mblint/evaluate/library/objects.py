"""Methods that every object inherits, and the constructor that @dataclass generates."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import Builtin, ClassValue, Instance


def object_method(name: str) -> Builtin:
    """object.__init__, object.__setattr__, ... as functions of the receiver."""

    def method(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        receiver = args[0] if args else None
        if name == "__setattr__" and isinstance(receiver, Instance) and len(args) == 3 and isinstance(args[1], str):
            caller_site = frame.trace[0] if frame.trace is not None and frame.function is not None and frame.function.name == "__setattr__" else site
            machine.write(receiver, args[1], args[2], caller_site or site, frame.trace)
            return None
        if name == "__getattribute__" and isinstance(receiver, Instance):
            from mblint.evaluate.objects import get_attribute

            return get_attribute(machine, receiver, args[1], site, frame)
        if name == "__new__" and isinstance(receiver, ClassValue):
            return machine.new_instance(receiver)
        if name == "__eq__":
            from mblint.evaluate.operators import equal

            return equal(args[0], args[1]) if len(args) == 2 else Unknown("equality")
        if name in ("__repr__", "__str__"):
            return Unknown("text of an object")
        if name == "__delattr__" and isinstance(receiver, Instance) and args[1] in receiver.attrs:
            machine.trail.append((receiver.attrs, args[1], receiver.attrs[args[1]]))
            del receiver.attrs[args[1]]
        return None

    return Builtin(f"method:{name}", method)


def dataclass_init(cls: ClassValue) -> Builtin:
    """The generated __init__ of a dataclass, called by name (`Base.__init__(self, ...)`)."""

    def init(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        from mblint.evaluate.dataclass import construct

        if args and isinstance(args[0], Instance):
            # The outer call's keywords keep their places: look for them where the constructor was called.
            construct(machine, cls, args[0], args[1:], kwargs, _outer_sites(frame, kwargs), site, frame)
        return None

    return Builtin("method:__init__", init)


def _outer_sites(frame: Any, kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Where the keywords that a hand-written __init__ passes on were written."""
    import ast

    from mblint.evaluate.site import Site

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
