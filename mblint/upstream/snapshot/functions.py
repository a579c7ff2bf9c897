"""Functions of a snapshot: what they return and change, without their source. A record holds

a  parameters, as Python writes them, each default as `...`     d  the defaults, k  those of keyword-only ones
r  the result, see values.py; absent: not known
w  parameter -> {path: value}: attributes that are set on what it is given
e  effects where nothing better is known: parameter -> attributes that may change, as dotted paths, or "*"
   for all
l  the line of its definition
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from mblint.evaluate.calls import bind_arguments, unknown_call
from mblint.evaluate.frames import Code, Frame
from mblint.evaluate.machine import Machine
from mblint.evaluate.objects import set_attribute
from mblint.evaluate.site import Site
from mblint.evaluate.unknown import Unknown, like
from mblint.evaluate.values import MISSING, ClassValue, FunctionValue, Instance
from mblint.upstream.snapshot.values import Call

ANY = "(*args, **kwargs)"

Work = Callable[[FunctionValue, dict[str, Any], Any, Frame], Any]
"""function, its arguments by name, place of the call, frame of the caller -> result."""


def native(
    module: Any,
    qualname: str,
    parameters: str,
    work: Work,
    cls: ClassValue | None = None,
    defaults: tuple[Any, ...] = (),
    keyword_defaults: dict[str, Any] | None = None,
    line: int = 1,
) -> FunctionValue:
    """A function value whose body is `work`."""
    name = qualname.rpartition(".")[2]
    node = _definition(name if name.isidentifier() else "function", parameters or ANY)
    node.lineno = line
    function = FunctionValue(node, name, qualname, module, None, defaults, keyword_defaults or {}, cls)
    code = Code(node)
    code.special = partial(_run, function, code, work)
    function.code = code
    return function


def _definition(name: str, parameters: str) -> ast.FunctionDef:
    node = ast.parse(f"def {name}{parameters}: ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def _run(
    function: FunctionValue,
    code: Code,
    work: Work,
    machine: Machine,
    args: list[Any],
    kwargs: dict[str, Any],
    site: Any,
    caller: Any,
) -> Any:
    bound: dict[str, Any] = {}
    problem = bind_arguments(machine, function, code, bound, args, kwargs)
    if problem is None:
        return work(function, bound, site, caller)
    if problem.startswith("?"):
        return unknown_call(machine, problem[1:], args, kwargs, site)
    return machine.implicit(TypeError, f"{function.name}() {problem}", site, caller)


def make_function(part: Any, reference: str, record: dict[str, Any]) -> FunctionValue:
    """The function that a record describes; {} for one of which only the name is known."""
    module_name, _, qualname = reference.partition(":")
    module = part.snapshot.module(module_name)
    special = part.snapshot.machine.special_functions.get(f"{module_name}.{qualname}")
    defaults = tuple([part.values.default(data) for data in record.get("d", ())])
    keyword_defaults = {name: part.values.default(data) for name, data in record.get("k", {}).items()}
    if "r" in record or "w" in record:
        work: Work = partial(_evaluate, part, record)
    else:
        work = partial(change_arguments, f"{module_name}.{qualname}", record.get("e", {"*": "*"}))
    function = native(module, qualname, record.get("a", ANY), work, None, defaults, keyword_defaults, record.get("l", 1))
    if special is not None and function.code is not None:
        function.code.special = special
    return function


def _evaluate(part: Any, record: dict[str, Any], function: FunctionValue, bound: dict[str, Any], site: Any, frame: Frame) -> Any:
    """The result of a call, with the arguments put in."""
    further = function.node.args.kwarg
    if further is not None and bound.get(further.arg):
        # What was written down is a call with nothing but its own parameters.
        return change_arguments(function.full_name, {"*": "*"}, function, bound, site, frame)
    trace = (site, frame.trace) if site is not None else frame.trace
    place = Site(function.module, function.node, function.qualname)
    call = Call(bound, place, trace, site, frame)
    for parameter, writes in record.get("w", {}).items():
        _write_paths(part, bound.get(parameter), writes, call, SimpleNamespace(trace=trace))
    return part.values.value(record["r"], call) if "r" in record else Unknown(f"{function.name}() is not evaluated without source")


def _write_paths(part: Any, target: Any, writes: dict[str, Any], call: Call, frame: Any) -> None:
    machine: Machine = part.snapshot.machine
    values = []
    for path, data in writes.items():
        owner, name = owner_of(target, path)
        call.before = owner.attrs.get(name, MISSING) if isinstance(owner, Instance) else MISSING
        values.append((owner, name, call.before, part.values.value(data, call)))
    for owner, name, before, value in values:
        if type(value) is Unknown and value.optional and before is not MISSING:
            value = like(value)  # it was there before, so it is there
        if isinstance(owner, Instance) and value is not before and value is not MISSING:
            set_attribute(machine, owner, name, value, call.site, frame)


def machine_of(function: FunctionValue) -> Machine:
    """The machine that a function of a snapshot belongs to."""
    machine: Machine = function.module.snapshot.machine  # type: ignore[attr-defined]
    return machine


def owner_of(target: Any, path: str) -> tuple[Any, str]:
    """The object that holds the last name of a dotted path, and that name."""
    *steps, name = path.split(".")
    for step in steps:
        target = target.attrs.get(step) if isinstance(target, Instance) else None
    return target, name


def change_arguments(
    full_name: str,
    effects: dict[str, Any],
    function: FunctionValue,
    bound: dict[str, Any],
    site: Any,
    frame: Frame,
) -> Any:
    """A call of which only the effects are known: what it may change is unknown after it, and its result."""
    machine = machine_of(function)
    reason = f"{full_name}() is not evaluated without source"
    everything = effects.get("*")
    for name, value in bound.items():
        changed = effects.get(name, everything)
        if changed is None:
            continue
        if changed == "*":
            machine.havoc(value, f"{reason}, and may change it")
            continue
        for path in changed:
            owner, attribute = owner_of(value, path)
            if isinstance(owner, Instance):
                held = owner.attrs.get(attribute, MISSING)
                if isinstance(held, (Instance, list, dict)):
                    machine.havoc(held, f"{reason}, and may change it")
                machine.write(owner, attribute, Unknown(f"{reason}, and may change it"), None, None)
    reach = tuple([value for value in bound.values() if isinstance(value, (Instance, list, dict, set))])
    return Unknown(reason, site.span() if site else None, reach=reach)
