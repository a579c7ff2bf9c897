"""Calling things: argument binding, and memory of earlier calls."""

from __future__ import annotations

import re
import sys
from typing import Any

from mblint.evaluate.budget import Limits
from mblint.evaluate.control import abandon, dismiss, finish_call
from mblint.evaluate.copying import copy_value, oldest
from mblint.evaluate.errors import BudgetExceeded, Raised
from mblint.evaluate.frames import Code, Frame
from mblint.evaluate.machine import Machine
from mblint.evaluate.objects import class_lookup
from mblint.evaluate.unknown import Unknown, count_unknown, like, unknowns_made
from mblint.evaluate.values import (
    MISSING,
    REST,
    BoundMethod,
    Builtin,
    BuiltinClass,
    ClassMethod,
    ClassValue,
    External,
    FunctionValue,
    Instance,
    KnownIterator,
    Partial,
    StaticMethod,
)

FAILED = re.compile(r"([A-Z][A-Za-z]*)?(Error|Exception): ")
"""Reasons that `Machine.implicit` gives."""

HASHABLE = (int, float, str, bool, type(None))


def call(
    machine: Machine,
    function: Any,
    args: list[Any],
    kwargs: dict[Any, Any],
    site: Any,
    frame: Any,
    sites: dict[Any, Any] | None = None,
) -> Any:
    """function(*args, **kwargs). `sites` tells where each keyword argument was written."""
    kind = type(function)
    if kind is FunctionValue:
        return call_function(machine, function, args, kwargs, site, frame)
    if kind is BoundMethod:
        inner = function.function
        if type(inner) is FunctionValue:
            return call_function(machine, inner, [function.receiver, *args], kwargs, site, frame)
        return call(machine, inner, [function.receiver, *args], kwargs, site, frame)
    if kind is Builtin:
        return call_native(machine, function.name, function.call, args, kwargs, site, frame)
    if kind is ClassValue:
        from mblint.evaluate.instances import instantiate

        return instantiate(machine, function, args, kwargs, site, frame, sites)
    if kind is BuiltinClass:
        from mblint.evaluate.constructors import construct_builtin

        def construct(m: Machine, a: list[Any], k: dict[Any, Any], s: Any, f: Any) -> Any:
            return construct_builtin(m, function, a, k, s, f)

        return call_native(machine, function.name, construct, args, kwargs, site, frame)
    if kind is External:
        from mblint.evaluate.library import call_library

        def run(m: Machine, a: list[Any], k: dict[Any, Any], s: Any, f: Any) -> Any:
            return call_library(m, function, a, k, s, f)

        return call_native(machine, function.name, run, args, kwargs, site, frame)
    if kind is Partial:
        return call(machine, function.function, [*function.args, *args], {**function.kwargs, **kwargs}, site, frame, sites)
    if kind in (StaticMethod, ClassMethod):
        return call(machine, function.function, args, kwargs, site, frame)
    if kind is Instance:
        method = class_lookup(function.cls, "__call__")
        if method is not None:
            return call(machine, BoundMethod(method, function), args, kwargs, site, frame)
        if function.cls is not None and not function.cls.opaque:
            return machine.implicit(TypeError, f"'{function.cls.name}' object is not callable", site, frame)
        machine.havoc(function, function.reason)
        return unknown_call(machine, function.reason or "an object that may be callable", args, kwargs, site)
    if kind is Unknown:
        return _call_unknown(machine, function, args, kwargs, site, frame, sites)
    if function is None or isinstance(function, (*HASHABLE, list, dict, tuple, set)):
        from mblint.evaluate.operators import describe

        return machine.implicit(TypeError, f"'{describe(function)}' object is not callable", site, frame)
    return unknown_call(machine, "a callable that is not known", args, kwargs, site)


ODD = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError)


def call_native(machine: Machine, name: str, run: Any, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any) -> Any:
    """Call a function that the evaluator provides. Arguments that its model does not foresee give Unknown."""
    if STAR in args or (kwargs and name not in SPREADS and _doubtful(kwargs)):
        return unknown_call(machine, "arguments that are not known", args, kwargs, site)
    try:
        return run(machine, args, kwargs, site, frame)
    except ODD as error:
        if machine.strict:
            raise
        return unknown_call(machine, f"{name}() with arguments that are not foreseen ({type(error).__name__})", args, kwargs, site)


def _doubtful(kwargs: dict[Any, Any]) -> bool:
    return any(name is REST or (type(value) is Unknown and value.optional) for name, value in kwargs.items())


SPREADS = frozenset({"dict", "dict.update", "types.SimpleNamespace", "argparse.Namespace"})
"""Functions that take keyword arguments of which some are not known."""


def _call_unknown(
    machine: Machine, function: Unknown, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any, sites: dict[Any, Any] | None
) -> Any:
    """A call of one of several functions, or of nobody knows what."""
    options = function.options
    if FAILED.match(function.reason):
        # What a failed check left: the program would have ended there, nothing was called.
        return like(function)
    if options is None or function.many:
        return unknown_call(machine, function.reason, args, kwargs, site, function)
    from mblint.evaluate.control import choose_value

    def side(option: Any) -> Any:
        return lambda inner: call(machine, option, args, kwargs, site, inner, sites)

    return choose_value(machine, frame, [side(option) for option in options], function.reason, site)


def unknown_call(machine: Machine, reason: str, args: list[Any], kwargs: dict[Any, Any], site: Any, callee: Any = None) -> Any:
    """Unknown code may change what it is given, and what it was taken from."""
    given = [*args, *kwargs.values()]
    if type(callee) is Unknown:
        given.extend(callee.reach if callee.options is None else callee.options)
    for value in given:
        machine.havoc(value, reason)
    reach = tuple(value for value in given if isinstance(value, (Instance, list, dict, set)))
    return Unknown(reason, site.span() if site else None, reach=reach)


def code_of(machine: Machine, function: FunctionValue) -> Code:
    code = function.code
    if code is None:
        codes = function.module.codes
        code = codes.get(function.node)
        if code is None:
            from mblint.evaluate.compiler import compile_function

            code = compile_function(machine, function)
            code.special = machine.special_functions.get(function.full_name)
            codes[function.node] = code
        function.code = code
    return code


def call_function(machine: Machine, function: FunctionValue, args: list[Any], kwargs: dict[Any, Any], site: Any, caller: Any) -> Any:
    """Call evaluated source, through the memory of earlier calls where that cannot be told from running it."""
    if machine.depth >= Limits.depth:
        raise BudgetExceeded(f"calls nested more than {Limits.depth} deep in {function.name}")
    code = function.code or code_of(machine, function)
    if code.special is not None:
        return code.special(machine, args, kwargs, site, caller)
    if function.attrs and CALLS_MADE in function.attrs:
        return _remembered(machine, function, args, kwargs, site, caller)
    key = _memo_key(machine, function, args, kwargs)
    if key is None:
        return run_function(machine, function, args, kwargs, site, caller)
    held = machine.memo.get(key)
    if held is not None:
        result, met_unknown = held
        if met_unknown:
            count_unknown()
        return copy_value(machine, result)
    outer, started = machine.oldest_touched, machine.clock
    machine.clock += 1
    machine.oldest_touched = sys.maxsize
    failures, undecided, mark, made = len(machine.failures), len(machine.undecided), machine.mark(), unknowns_made()
    asides, reads, taken = machine.asides, machine.env_read_count, len(machine.path_taken)
    result = run_function(machine, function, args, kwargs, None, caller)
    touched = machine.oldest_touched
    machine.oldest_touched = min(outer, touched)
    pure = (
        touched > started
        and len(machine.failures) == failures
        and len(machine.undecided) == undecided
        and machine.asides == asides
        and machine.env_read_count == reads
        and len(machine.path_taken) == taken
        and type(result) is not Unknown
        and not machine.shared_changed
        and oldest(machine, result) > started
    )
    if pure:
        machine.memo[key] = (result, unknowns_made() != made)
        if machine.speculation == 0:
            machine.forget(mark)
        return copy_value(machine, result)
    return result


CALLS_MADE = "cache of calls"
"""Where a function that is decorated with lru_cache keeps what its calls gave."""


def _remembered(machine: Machine, function: FunctionValue, args: list[Any], kwargs: dict[Any, Any], site: Any, caller: Any) -> Any:
    """A call of a function that remembers its calls: one that was made before gives the same object, and does nothing."""
    calls: Any = function.attrs[CALLS_MADE]
    given = (*args, *kwargs.values())
    if not all(isinstance(value, HASHABLE) for value in given):
        return run_function(machine, function, args, kwargs, site, caller)
    key = (tuple(args), tuple(kwargs.items()))
    if key not in calls:
        result = run_function(machine, function, args, kwargs, site, caller)
        machine.touch_entry(calls, key)
        calls[key] = result
    return calls[key]


def _memo_key(machine: Machine, function: FunctionValue, args: list[Any], kwargs: dict[Any, Any]) -> Any:
    """A key for calls of module-level functions with plain arguments, outside speculation and the launch phase."""
    if (
        machine.phase != 0
        or machine.speculation
        or function.closure is not None
        or function.defining_class is not None
        or machine.shared_changed
        or machine.module_depth
    ):
        return None
    for value in args:
        if not isinstance(value, HASHABLE):
            return None
    for value in kwargs.values():
        if not isinstance(value, HASHABLE):
            return None
    return (
        function,
        machine.facts.gpu if machine.facts is not None else None,
        tuple([(type(a), a) for a in args]),
        tuple([(k, type(v), v) for k, v in kwargs.items()]) if kwargs else (),
    )


def run_function(machine: Machine, function: FunctionValue, args: list[Any], kwargs: dict[Any, Any], site: Any, caller: Any) -> Any:
    """Run the source of a function: no memory of earlier calls, and not what stands in for it."""
    code = function.code or code_of(machine, function)
    trace = (site, caller.trace) if site is not None else caller.trace
    frame = Frame(function.module, function.closure, function, trace, len(machine.trail))
    frame.cls = function.defining_class
    if machine.speculation or machine.handlers or machine.noting:
        machine.born(frame.vars)
    problem = bind_arguments(machine, function, code, frame.vars, args, kwargs)
    if problem is not None:
        if problem.startswith("?"):
            return unknown_call(machine, problem[1:], args, kwargs, site, function)
        return machine.implicit(TypeError, f"{function.qualname}() {problem}", site, caller)
    if code.generate is not None:
        return machine.born(KnownIterator([], code.generate(frame), frame.vars))
    machine.steps += 1
    if machine.steps > machine.checkpoint:
        machine.check()
    machine.depth += 1
    try:
        signal = code.body(frame)  # type: ignore[misc]
    except Raised as error:
        if frame.pending is None:
            raise
        dismiss(machine, error)
        return finish_call(machine, frame, None, True)
    except BaseException:
        abandon(machine, frame)
        raise
    finally:
        machine.depth -= 1
    result = frame.result
    if signal is None:
        # A call that a failed check would have ended gives no value that anything may be concluded from.
        result = Unknown("Error: the call ended with a failed check") if frame.blamed else None
    return result if frame.pending is None else finish_call(machine, frame, result, False)


def bind_arguments(
    machine: Machine, function: FunctionValue, code: Code, into: dict[str, Any], args: list[Any], kwargs: dict[Any, Any]
) -> str | None:
    """Bind arguments to parameters; the text of Python's complaint when they do not fit ('?' first: not known)."""
    names = code.positional
    count = len(args)
    if code.simple and not kwargs and count == len(names):
        for name, value in zip(names, args, strict=True):
            into[name] = value
        return None
    if any(type(value) is _Star for value in args) or REST in kwargs:
        return "?arguments that are not known"
    if count > len(names):
        if code.vararg is None:
            least = len(names) - len(function.defaults)
            takes = f"from {least} to {len(names)}" if function.defaults else str(len(names))
            plural = "" if len(names) == 1 and not function.defaults else "s"
            return f"takes {takes} positional argument{plural} but {count} {'was' if count == 1 else 'were'} given"
        into[code.vararg] = tuple(args[len(names) :])
    elif code.vararg is not None:
        into[code.vararg] = ()
    for name, value in zip(names, args, strict=False):
        into[name] = value
    extra: dict[str, Any] = {}
    taken = set(names[:count])
    for name, value in kwargs.items():
        if name in names[code.posonly_count :] or name in code.kwonly:
            if name in taken:
                return f"got multiple values for argument '{name}'"
            # An argument that may not be given leaves the default possible.
            into[name] = like(value) if type(value) is Unknown and value.optional else value
        elif code.kwarg is not None:
            extra[name] = value
        elif type(value) is not Unknown or not value.optional:
            return f"got an unexpected keyword argument '{name}'"
    if code.kwarg is not None:
        into[code.kwarg] = machine.born(extra)
    defaults = function.defaults
    first_default = len(names) - len(defaults)
    missing: list[str] = []
    missing_named: list[str] = []
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
                missing_named.append(name)
            else:
                into[name] = held
    for kind, absent in (("positional", missing), ("keyword-only", missing_named)):
        if absent:
            return f"missing {len(absent)} required {kind} argument{'s' if len(absent) > 1 else ''}: {listed(absent)}"
    return None


def listed(names: list[str]) -> str:
    """Names as Python lists them in its messages: 'a', 'b', and 'c'."""
    quoted = [f"'{name}'" for name in names]
    if len(quoted) < 3:
        return " and ".join(quoted)
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"


def instantiate(
    machine: Machine, cls: ClassValue, args: list[Any], kwargs: dict[Any, Any], site: Any, frame: Any, sites: dict[Any, Any] | None = None
) -> Any:
    """See mblint.evaluate.instances.instantiate."""
    from mblint.evaluate import instances

    return instances.instantiate(machine, cls, args, kwargs, site, frame, sites)


class _Star:
    """Stands for `*unknown` among positional arguments."""


STAR = _Star()
