"""Calling things: argument binding, constructors, memory of earlier calls, forks."""

from __future__ import annotations

import ast
import re
import sys
from typing import Any

from mblint.evaluate.copying import copy_value
from mblint.evaluate.dataclass import construct, is_hand_written
from mblint.evaluate.errors import BudgetExceeded, NeedFork, Raised
from mblint.evaluate.frames import Code, Frame
from mblint.evaluate.machine import Limits, Machine
from mblint.evaluate.objects import class_lookup, find_in_class
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    BoundMethod,
    Builtin,
    BuiltinClass,
    ClassMethod,
    ClassValue,
    ExceptionValue,
    External,
    FunctionValue,
    Instance,
    KnownIterator,
    Partial,
    StaticMethod,
)

_FAILED = re.compile(r"([A-Z][A-Za-z]*)?(Error|Exception): ")
"""Reasons that `Machine.implicit` gives."""

HASHABLE = (int, float, str, bool, type(None))


def call(
    machine: Machine,
    function: Any,
    args: list[Any],
    kwargs: dict[str, Any],
    site: Any,
    frame: Any,
    sites: dict[str, Any] | None = None,
) -> Any:
    """function(*args, **kwargs). `sites` tells where each keyword argument was written."""
    kind = type(function)
    if kind is FunctionValue:
        return call_function(machine, function, args, kwargs, site, frame)
    if kind is BoundMethod:
        inner = function.function
        if type(inner) is FunctionValue:
            return call_function(machine, inner, [function.receiver, *args], kwargs, site, frame)
        if type(inner) is Builtin:
            return inner.call(machine, [function.receiver, *args], kwargs, site, frame)
        return call(machine, inner, [function.receiver, *args], kwargs, site, frame)
    if kind is Builtin:
        return function.call(machine, args, kwargs, site, frame)
    if kind is ClassValue:
        return instantiate(machine, function, args, kwargs, site, frame, sites)
    if kind is BuiltinClass:
        from mblint.evaluate.builtins import construct_builtin

        return construct_builtin(machine, function, args, kwargs, site, frame)
    if kind is External:
        from mblint.evaluate.library import call_library

        return call_library(machine, function, args, kwargs, site, frame)
    if kind is Partial:
        return call(machine, function.function, [*function.args, *args], {**function.kwargs, **kwargs}, site, frame, sites)
    if kind in (StaticMethod, ClassMethod):
        return call(machine, function.function, args, kwargs, site, frame)
    if kind is Instance:
        method = class_lookup(function.cls, "__call__")
        if method is not None:
            return call(machine, BoundMethod(method, function), args, kwargs, site, frame)
        return _unknown_call(machine, function.reason or "an object that cannot be called is not known", args, kwargs, site)
    if kind is Unknown:
        if _FAILED.match(function.reason):
            # What a failed check left: the program would have ended there, nothing was called.
            return Unknown(function.reason, function.span)
        return _unknown_call(machine, function.reason, args, kwargs, site)
    if function is None or isinstance(function, HASHABLE):
        from mblint.evaluate.operators import describe

        return machine.implicit(TypeError, f"'{describe(function)}' object is not callable", site, frame)
    return _unknown_call(machine, "a callable that is not known", args, kwargs, site)


def _unknown_call(machine: Machine, reason: str, args: list[Any], kwargs: dict[str, Any], site: Any) -> Any:
    """Unknown code may change what it is given."""
    for value in [*args, *kwargs.values()]:
        machine.havoc(value, reason)
    return Unknown(reason, site.span() if site else None)


def opaque(machine: Machine, reason: str) -> Instance:
    """An object of which nothing is known but what will be assigned to it."""
    return machine.new_instance(None, reason)


def code_of(machine: Machine, function: FunctionValue) -> Code:
    code = function.code
    if code is None:
        code = machine.compiled.get(function.node)
        if code is None:
            from mblint.evaluate.compiler import compile_function

            code = compile_function(machine, function)
            code.special = machine.special_functions.get(function.full_name)
            machine.compiled[function.node] = code
        function.code = code
    return code


def call_function(machine: Machine, function: FunctionValue, args: list[Any], kwargs: dict[str, Any], site: Any, caller: Any) -> Any:
    """Call evaluated source, through the memory of earlier calls where that cannot be told from running it."""
    if machine.depth >= Limits.depth:
        raise BudgetExceeded(f"calls nested more than {Limits.depth} deep in {function.name}")
    code = function.code or code_of(machine, function)
    if code.special is not None:
        return code.special(machine, args, kwargs, site, caller)
    key = _memo_key(machine, function, args, kwargs)
    if key is None:
        return run_function(machine, function, args, kwargs, site, caller)
    held = machine.memo.get(key)
    if held is not None:
        return copy_value(machine, held[0])
    outer, started = machine.oldest_touched, machine.clock
    machine.clock += 1
    machine.oldest_touched = sys.maxsize
    failures, undecided, mark = len(machine.failures), len(machine.undecided), machine.mark()
    reads, taken = len(machine.env_reads), len(machine.path_taken)
    result = run_function(machine, function, args, kwargs, None, caller)
    touched = machine.oldest_touched
    machine.oldest_touched = min(outer, touched)
    pure = (
        touched > started
        and len(machine.failures) == failures
        and len(machine.undecided) == undecided
        and machine.env_read_count == reads
        and type(result) is not Unknown
        and len(machine.path_taken) == taken
    )
    if pure:
        machine.memo[key] = (result,)
        if machine.speculation == 0:
            machine.forget(mark)
        return copy_value(machine, result)
    return result


def _memo_key(machine: Machine, function: FunctionValue, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A key for calls of module-level functions with plain arguments, outside speculation and the launch phase."""
    if machine.phase != 0 or machine.speculation or function.closure is not None or function.defining_class is not None:
        return None
    for value in args:
        if not isinstance(value, HASHABLE):
            return None
    for value in kwargs.values():
        if not isinstance(value, HASHABLE):
            return None
    gpu = machine.facts.gpu if machine.facts is not None else None
    return (function.module.name, function.qualname, function.node, gpu, tuple((type(a), a) for a in args), tuple((k, type(v), v) for k, v in kwargs.items()))


def run_function(machine: Machine, function: FunctionValue, args: list[Any], kwargs: dict[str, Any], site: Any, caller: Any) -> Any:
    """Run the source of a function: no memory of earlier calls, and not what stands in for it."""
    code = function.code or code_of(machine, function)
    frame = Frame(function.module, function.closure, function, (site, caller.trace) if site is not None else caller.trace)
    frame.cls = function.defining_class
    problem = bind_arguments(machine, function, code, frame.vars, args, kwargs)
    if problem is not None:
        if problem.startswith("?"):
            return _unknown_call(machine, problem[1:], args, kwargs, site)
        return machine.implicit(TypeError, f"{function.name}() {problem}", site, caller)
    machine.depth += 1
    machine.steps += 1
    try:
        if code.is_generator:
            if function.attrs:
                from mblint.evaluate.contexts import suspend

                suspended = suspend(machine, function, frame)
                if suspended is not None:
                    return suspended
            frame.yields = []
            code.body(frame)  # type: ignore[misc]
            return KnownIterator(frame.yields)
        mark = machine.mark()
        try:
            signal = code.body(frame)  # type: ignore[misc]
        except NeedFork as fork:
            if fork.frame is not frame:
                raise
            machine.undo(mark)
            return fork_call(machine, function, code, args, kwargs, site, caller, mark, fork.reason)
        if signal is None:
            # A call that a failed check would have ended gives no value that anything may be concluded from.
            return Unknown("Error: the call ended with a failed check") if frame.blamed else None
        return frame.result
    finally:
        machine.depth -= 1


def fork_call(
    machine: Machine,
    function: FunctionValue,
    code: Code,
    args: list[Any],
    kwargs: dict[str, Any],
    site: Any,
    caller: Any,
    mark: int,
    reason: str = "",
) -> Any:
    """Run a call for each outcome of its unknown branches with early exits, and join what the runs agree on."""
    from mblint.evaluate.joining import Outcome, apply_join, collect

    pending: list[list[bool]] = [[True], [False]]
    outcomes: list[Outcome] = []
    machine.speculation += 1
    failures, undecided = len(machine.failures), len(machine.undecided)
    try:
        while pending:
            decisions = pending.pop()
            frame = Frame(function.module, function.closure, function, (site, caller.trace) if site is not None else caller.trace)
            frame.cls = function.defining_class
            frame.decisions = decisions
            bind_arguments(machine, function, code, frame.vars, args, kwargs)
            raised: Raised | None = None
            result: Any = None
            try:
                signal = code.body(frame)  # type: ignore[misc]
                result = frame.result if signal is not None else None
            except NeedFork as fork:
                machine.undo(mark)
                if fork.frame is not frame:
                    raise
                if len(decisions) < Limits.forks:
                    pending.append([*decisions, True])
                    pending.append([*decisions, False])
                else:
                    outcomes.append(Outcome({}, Unknown("too many unknown branches"), None))
                continue
            except Raised as error:
                raised = error
            outcomes.append(Outcome(collect(machine, mark), result, raised))
            machine.undo(mark)
    finally:
        machine.speculation -= 1
        del machine.failures[failures:]
        del machine.undecided[undecided + 8 :]
    alive = [outcome for outcome in outcomes if outcome.raised is None]
    if not alive:
        assert outcomes[0].raised is not None
        raise outcomes[0].raised
    return apply_join(machine, alive, reason or f"a branch in {function.name} is not known")


def bind_arguments(
    machine: Machine, function: FunctionValue, code: Code, into: dict[str, Any], args: list[Any], kwargs: dict[str, Any]
) -> str | None:
    """Bind arguments to parameters; the text of Python's complaint when they do not fit ('?' first: not known)."""
    names = code.positional
    count = len(args)
    if code.simple and not kwargs and count == len(names):
        for name, value in zip(names, args, strict=True):
            into[name] = value
        return None
    if any(type(value) is _Star for value in args) or None in kwargs:
        return "?arguments that are not known"
    if count > len(names):
        if code.vararg is None:
            return f"takes {len(names)} positional arguments but {count} were given"
        into[code.vararg] = tuple(args[len(names) :])
    elif code.vararg is not None:
        into[code.vararg] = ()
    for name, value in zip(names, args, strict=False):
        into[name] = value
    extra: dict[str, Any] = {}
    for name, value in kwargs.items():
        if name in into and name != code.vararg and name not in names[: code.posonly_count]:
            return f"got multiple values for argument '{name}'"
        if name in names[code.posonly_count :] or name in code.kwonly:
            into[name] = value
        elif code.kwarg is not None:
            extra[name] = value
        elif type(value) is not Unknown or not value.optional:
            return f"got an unexpected keyword argument '{name}'"
    if code.kwarg is not None:
        into[code.kwarg] = machine.born(extra)
    defaults = function.defaults
    first_default = len(names) - len(defaults)
    missing = []
    for index, name in enumerate(names):
        if name not in into:
            if index >= first_default:
                into[name] = defaults[index - first_default]
            else:
                missing.append(name)
    for name in code.kwonly:
        if name not in into:
            held = function.kw_defaults.get(name, MISSING)
            if held is MISSING:
                missing.append(name)
            else:
                into[name] = held
    if missing:
        return f"missing {len(missing)} required argument{'s' if len(missing) > 1 else ''}: {', '.join(missing)}"
    return None


class _Star:
    """Stands for `*unknown` among positional arguments."""


STAR = _Star()


def instantiate(
    machine: Machine, cls: ClassValue, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any, sites: dict[str, Any] | None = None
) -> Any:
    """cls(*args, **kwargs)"""
    if cls.is_enum:
        return _enum_by_value(machine, cls, args, site, frame)
    if None in kwargs:
        kwargs = {name: value for name, value in kwargs.items() if name is not None}
        instance = machine.new_instance(cls)
        if cls.dataclass:
            _fill_unknown(cls, instance)
            for name, value in kwargs.items():
                machine.write(instance, name, value, sites.get(name, site) if sites else site, frame.trace)
        return instance
    special = machine.facts.special_class(cls.full_name) if machine.facts is not None else None
    if special is not None:
        return special(machine, cls, args, kwargs, site, frame)
    if any(isinstance(base, BuiltinClass) and issubclass(base.type, BaseException) for base in cls.cached_mro):
        instance = machine.new_instance(cls)
        instance.attrs["args"] = tuple(args)
        return instance
    new = find_in_class(cls, "__new__")
    if isinstance(new, (FunctionValue, StaticMethod)):
        made = call(machine, new, [cls, *args], kwargs, site, frame)
        if not isinstance(made, Instance) or made.cls is not cls:
            return made
        instance = made
    else:
        instance = machine.new_instance(cls)
    written = is_hand_written(cls)
    if written is not None:
        call_function(machine, written, [instance, *args], kwargs, site, frame)
        return instance
    for base in cls.cached_mro:
        if isinstance(base, ClassValue) and "__init__" in base.namespace:
            call(machine, BoundMethod(base.namespace["__init__"], instance), args, kwargs, site, frame)
            break
        if isinstance(base, ClassValue) and base.dataclass:
            construct(machine, base, instance, args, kwargs, sites, site, frame)
            break
    else:
        named = cls.namespace.get("__annotations__")
        if (args or kwargs) and any(isinstance(b, External) and b.name == "typing.NamedTuple" for b in cls.bases) and isinstance(named, dict):
            for name, value in [*zip(named, args, strict=False), *kwargs.items()]:
                machine.write(instance, name, value, site, frame.trace)
        elif any(isinstance(b, External) and b.name.endswith("TypedDict") for b in cls.bases):
            return machine.born(dict(kwargs))
        elif (args or kwargs) and not cls.opaque:
            machine.implicit(TypeError, f"{cls.name}() takes no arguments", site, frame)
    return instance


def _fill_unknown(cls: ClassValue, instance: Instance) -> None:
    for name in cls.field_map:
        instance.attrs[name] = Unknown("built from keyword arguments that are not known")


def _enum_by_value(machine: Machine, cls: ClassValue, args: list[Any], site: Any, frame: Any) -> Any:
    from mblint.evaluate.operators import describe, equal

    if len(args) != 1:
        return Unknown("an enumeration made in an unusual way")
    if getattr(args[0], "cls", None) is cls:
        return args[0]
    for member in cls.enum_members.values():
        answer = equal(member.value, args[0])
        if type(answer) is Unknown:
            return Unknown(answer.reason)
        if answer:
            return member
    missing = find_in_class(cls, "_missing_")
    if missing is not MISSING:
        found = call(machine, BoundMethod(missing.function if isinstance(missing, ClassMethod) else missing, cls), args, {}, site, frame)
        if found is not None:
            return found
    text = args[0] if isinstance(args[0], (str, int)) else describe(args[0])
    return machine.implicit(ValueError, f"{text!r} is not a valid {cls.name}", site, frame)


def make_exception(machine: Machine, value: Any, site: Any, frame: Any) -> Any:
    """What `raise value` throws."""
    if isinstance(value, BuiltinClass) and issubclass(value.type, BaseException):
        return ExceptionValue(value.type, ())
    if isinstance(value, ClassValue):
        return instantiate(machine, value, [], {}, site, frame)
    if isinstance(value, (ExceptionValue, Instance)):
        return value
    return ExceptionValue(Exception, ("an exception that is not known",))


def function_node(function: FunctionValue) -> ast.AST:
    return function.node
