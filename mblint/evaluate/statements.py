"""Statements to closures: each takes a Frame and returns None, or a signal that control leaves."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from mblint.evaluate import operators as ops
from mblint.evaluate.calls import call, make_exception
from mblint.evaluate.compiler import Context
from mblint.evaluate.contexts import Suspended
from mblint.evaluate.errors import Failure, NeedFork, Raised
from mblint.evaluate.expressions import compile_condition, compile_expression
from mblint.evaluate.frames import Exec, Frame
from mblint.evaluate.guards import guard_reads
from mblint.evaluate.iteration import iterate
from mblint.evaluate.joining import Outcome, apply_join, collect
from mblint.evaluate.machine import Limits, exception_matches, exception_name, exception_text
from mblint.evaluate.objects import get_attribute, set_attribute
from mblint.evaluate.subscripts import delete_item, get_item, set_item
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, BuiltinClass, External, FunctionValue, Instance

RETURN, BREAK, CONTINUE = 1, 2, 3


def compile_block(context: Context, body: list[ast.stmt]) -> Exec:
    """A sequence of statements."""
    steps = [compile_statement(context, statement) for statement in body if not _is_inert(statement)]
    machine = context.machine
    if len(steps) == 1:
        only = steps[0]

        def run_one(frame: Frame) -> Any:
            machine.steps += 1
            return only(frame)

        return run_one

    def run(frame: Frame) -> Any:
        for step in steps:
            signal = step(frame)
            if signal is not None:
                return signal
        machine.steps += len(steps)
        if machine.steps > Limits.steps:
            machine.step()
        return None

    return run


def _is_inert(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))


def compile_statement(context: Context, node: ast.stmt) -> Exec:
    maker = _MAKERS.get(type(node))
    if maker is None:
        return lambda frame: None
    made: Exec = maker(context, node)
    return made


# --- assignment --------------------------------------------------------------------------------------------------


def compile_target(context: Context, node: ast.expr) -> Callable[[Frame, Any], None]:
    """A closure that assigns a value to a target."""
    machine = context.machine
    if isinstance(node, ast.Name):
        name = node.id
        scope = context.scope
        if scope is None or name in scope.globals:
            module = context.module

            def assign_global(frame: Frame, value: Any) -> None:
                if scope is not None:
                    machine.oldest_touched = 0
                    # The module's own statement comes first: run late, it would undo this write.
                    module.lookup(name)
                machine.store(module.vars, name, value)

            return assign_global
        if name in scope.nonlocals:

            def assign_outer(frame: Frame, value: Any) -> None:
                holder = frame.parent
                while holder is not None:
                    if name in holder.vars:
                        machine.store(holder.vars, name, value)
                        return
                    holder = holder.parent

            return assign_outer

        def assign_local(frame: Frame, value: Any) -> None:
            if machine.speculation:
                machine.store(frame.vars, name, value)
            else:
                frame.vars[name] = value

        return assign_local
    if isinstance(node, ast.Attribute):
        owner_of = compile_expression(context, node.value)
        name = node.attr
        site = context.site(node)

        def assign_attribute(frame: Frame, value: Any) -> None:
            set_attribute(machine, owner_of(frame), name, value, site, frame)

        return assign_attribute
    if isinstance(node, ast.Subscript):
        container = compile_expression(context, node.value)
        index = compile_expression(context, node.slice)
        site = context.site(node)

        def assign_item(frame: Frame, value: Any) -> None:
            set_item(machine, container(frame), index(frame), value, site, frame)

        return assign_item
    if isinstance(node, (ast.Tuple, ast.List)):
        return _unpack(context, node)
    if isinstance(node, ast.Starred):
        return compile_target(context, node.value)
    return lambda frame, value: None


def _unpack(context: Context, node: ast.Tuple | ast.List) -> Callable[[Frame, Any], None]:
    machine = context.machine
    site = context.site(node)
    targets = [compile_target(context, element) for element in node.elts]
    star = next((i for i, e in enumerate(node.elts) if isinstance(e, ast.Starred)), None)

    def assign(frame: Frame, value: Any) -> None:
        items = iterate(machine, value, site, frame)
        if type(items) is Unknown:
            for target in targets:
                target(frame, Unknown(items.reason, items.span))
            return
        items = list(items)
        if star is None:
            if len(items) != len(targets):
                if not ops.has_rest(items):
                    kind = "not enough" if len(items) < len(targets) else "too many"
                    machine.implicit(ValueError, f"{kind} values to unpack (expected {len(targets)})", site, frame)
                items = [Unknown("unpacked from a value of unknown length")] * len(targets)
            for target, item in zip(targets, items, strict=True):
                target(frame, item)
            return
        after = len(targets) - star - 1
        if len(items) < star + after:
            machine.implicit(ValueError, f"not enough values to unpack (expected at least {star + after})", site, frame)
            items = [Unknown("unpacked from a value of unknown length")] * (star + after)
        for target, item in zip(targets[:star], items[:star], strict=True):
            target(frame, item)
        targets[star](frame, machine.born(items[star : len(items) - after]))
        for target, item in zip(targets[star + 1 :], items[len(items) - after :] if after else [], strict=True):
            target(frame, item)

    return assign


def _assign(context: Context, node: ast.Assign) -> Exec:
    value = compile_expression(context, node.value)
    targets = [compile_target(context, target) for target in node.targets]
    if len(targets) == 1:
        only = targets[0]

        def assign_one(frame: Frame) -> None:
            only(frame, value(frame))

        return assign_one

    def assign(frame: Frame) -> None:
        held = value(frame)
        for target in targets:
            target(frame, held)

    return assign


def _annotated(context: Context, node: ast.AnnAssign) -> Exec:
    note: Exec | None = None
    if context.scope is not None and context.scope.is_class and isinstance(node.target, ast.Name):
        name = node.target.id

        def note(frame: Frame) -> None:
            frame.vars.setdefault("__annotations__", {})[name] = node

    if node.value is None:
        return note or (lambda frame: None)
    value = compile_expression(context, node.value)
    target = compile_target(context, node.target)

    def assign(frame: Frame) -> None:
        if note is not None:
            note(frame)
        target(frame, value(frame))

    return assign


def _augmented(context: Context, node: ast.AugAssign) -> Exec:
    machine = context.machine
    kind = type(node.op)
    value = compile_expression(context, node.value)
    site = context.site(node)
    if isinstance(node.target, ast.Name):
        read = compile_expression(context, ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        assign = compile_target(context, node.target)

        def run(frame: Frame) -> None:
            held = read(frame)
            assign(frame, _in_place(machine, kind, held, value(frame), site, frame))

        return run
    if isinstance(node.target, ast.Attribute):
        owner_of = compile_expression(context, node.target.value)
        name = node.target.attr
        target_site = context.site(node.target)

        def run_attribute(frame: Frame) -> None:
            owner = owner_of(frame)
            held = get_attribute(machine, owner, name, target_site, frame)
            set_attribute(machine, owner, name, _in_place(machine, kind, held, value(frame), site, frame), target_site, frame)

        return run_attribute
    if isinstance(node.target, ast.Subscript):
        container_of = compile_expression(context, node.target.value)
        index_of = compile_expression(context, node.target.slice)

        def run_item(frame: Frame) -> None:
            container, index = container_of(frame), index_of(frame)
            held = get_item(machine, container, index, site, frame)
            set_item(machine, container, index, _in_place(machine, kind, held, value(frame), site, frame), site, frame)

        return run_item
    return lambda frame: None


def _in_place(machine: Any, kind: type[ast.operator], left: Any, right: Any, site: Any, frame: Frame) -> Any:
    """a += b: lists grow where they are."""
    if kind is ast.Add and isinstance(left, list):
        items = iterate(machine, right, site, frame)
        machine.touch(left)
        left.extend([Unknown(f"rest: {items.reason}")] if type(items) is Unknown else items)
        machine.check_size(len(left))
        return left
    if kind is ast.BitOr and isinstance(left, dict) and isinstance(right, dict):
        machine.touch(left)
        left.update(right)
        return left
    if kind is ast.BitOr and isinstance(left, set) and isinstance(right, (set, frozenset)):
        machine.touch(left)
        left.update(right)
        return left
    return ops.binary(machine, kind, left, right, site, frame)


def _forget(machine: Any, name: str) -> Exec:
    """del name"""

    def run(frame: Frame) -> None:
        if name in frame.vars:
            machine.trail.append((frame.vars, name, frame.vars[name]))
            del frame.vars[name]

    return run


def _delete(context: Context, node: ast.Delete) -> Exec:
    machine = context.machine
    steps: list[Exec] = []
    for target in node.targets:
        site = context.site(target)
        if isinstance(target, ast.Name):
            name = target.id
            steps.append(_forget(machine, name))
        elif isinstance(target, ast.Attribute):
            owner_of = compile_expression(context, target.value)

            def remove(frame: Frame, owner_of: Any = owner_of, name: str = target.attr) -> None:
                owner = owner_of(frame)
                if isinstance(owner, Instance) and name in owner.attrs:
                    machine.trail.append((owner.attrs, name, owner.attrs[name]))
                    del owner.attrs[name]

            steps.append(remove)
        elif isinstance(target, ast.Subscript):
            container_of, index_of = compile_expression(context, target.value), compile_expression(context, target.slice)

            def remove_item(frame: Frame, container_of: Any = container_of, index_of: Any = index_of, site: Any = site) -> None:
                delete_item(machine, container_of(frame), index_of(frame), site, frame)

            steps.append(remove_item)

    def run(frame: Frame) -> None:
        for step in steps:
            step(frame)

    return run


# --- control -----------------------------------------------------------------------------------------------------


def _expression(context: Context, node: ast.Expr) -> Exec:
    value = compile_expression(context, node.value)

    def run(frame: Frame) -> None:
        value(frame)

    return run


def _return(context: Context, node: ast.Return) -> Exec:
    value = compile_expression(context, node.value) if node.value is not None else None

    def run(frame: Frame) -> int:
        frame.result = value(frame) if value is not None else None
        return RETURN

    return run


def _leaves(body: list[ast.stmt]) -> bool:
    """Whether a block may return, break or continue out of itself (raising does not count)."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, (ast.Return, ast.Break, ast.Continue)):
                return True
    return False


def _if(context: Context, node: ast.If) -> Exec:
    machine = context.machine
    test = compile_condition(context, node.test)
    body = compile_block(context, node.body)
    orelse = compile_block(context, node.orelse) if node.orelse else None
    site = context.site(node.test)
    leaves = _leaves(node.body) or _leaves(node.orelse)

    def run(frame: Frame) -> Any:
        answer = test(frame)
        if answer is True:
            return body(frame)
        if answer is False:
            return orelse(frame) if orelse is not None else None
        return branch_on_unknown(machine, frame, answer, body, orelse, site, leaves)

    return run


def branch_on_unknown(
    machine: Any, frame: Frame, answer: Unknown, body: Exec, orelse: Exec | None, site: Any, leaves: bool
) -> Any:
    """An `if` whose condition is not known: choose, fork the call, or run both sides and join."""
    if machine.path_decisions is not None and not machine.speculation:
        taken = machine.path_decisions
        index = len(machine.path_taken)
        choice = taken[index] if index < len(taken) else True
        machine.path_taken.append((site, choice, answer.reason))
        if choice:
            return body(frame)
        return orelse(frame) if orelse is not None else None
    if leaves and frame.function is not None:
        if frame.decisions is not None and frame.forks < len(frame.decisions):
            choice = frame.decisions[frame.forks]
            frame.forks += 1
            if choice:
                return body(frame)
            return orelse(frame) if orelse is not None else None
        raise NeedFork(frame, answer.reason)
    outcomes: list[Outcome] = []
    raised: list[Raised] = []
    mark = machine.mark()
    machine.speculation += 1
    failures = len(machine.failures)
    blamed = frame.blamed
    try:
        for side in (body, orelse):
            try:
                if side is not None:
                    side(frame)
            except Raised as error:
                raised.append(error)
                machine.undo(mark)
                continue
            outcomes.append(Outcome(collect(machine, mark), None, None))
            machine.undo(mark)
    finally:
        machine.speculation -= 1
        del machine.failures[failures:]
        frame.blamed = blamed
    if raised:
        machine.undecided.append((raised[0].site, answer.reason))
    if not outcomes:
        raise raised[0]
    known = None
    if answer.equates is not None and not raised:
        # `if a != b: a = b` leaves a = b on either side, however little was known of a before.
        unknown, value, is_equal = answer.equates
        known = (0 if is_equal else 1, unknown, value)
    apply_join(machine, outcomes, answer.reason, known)
    return None


def _for(context: Context, node: ast.For | ast.AsyncFor) -> Exec:
    machine = context.machine
    source = compile_expression(context, node.iter)
    assign = compile_target(context, node.target)
    body = compile_block(context, node.body)
    orelse = compile_block(context, node.orelse) if node.orelse else None
    site = context.site(node)

    def run(frame: Frame) -> Any:
        items = iterate(machine, source(frame), site, frame)
        if type(items) is Unknown:
            _maybe_loop(machine, frame, assign, body, items)
            return None
        count = 0
        for item in items:
            count += 1
            if count > Limits.loop:
                machine.check_size(Limits.container + 1)
            machine.step()
            if type(item) is Unknown and item.reason.startswith("rest:"):
                _maybe_loop(machine, frame, assign, body, item)
                break
            assign(frame, item)
            signal = body(frame)
            if signal is not None:
                if signal == BREAK:
                    return None
                if signal == RETURN:
                    return RETURN
        return orelse(frame) if orelse is not None else None

    return run


def _maybe_loop(machine: Any, frame: Frame, assign: Any, body: Exec, reason: Unknown) -> None:
    """A loop over what is not known: what its body writes is no longer certain."""
    mark = machine.mark()
    machine.speculation += 1
    failures = len(machine.failures)
    blamed = frame.blamed
    outcome: Outcome | None = None
    try:
        assign(frame, Unknown(reason.reason, reason.span))
        body(frame)
        outcome = Outcome(collect(machine, mark), None, None)
    except (Raised, NeedFork):
        outcome = Outcome(collect(machine, mark), None, None)
    finally:
        machine.undo(mark)
        machine.speculation -= 1
        del machine.failures[failures:]
        frame.blamed = blamed
    assert outcome is not None
    for place, (target, key, value) in outcome.changes.items():
        if key is not None and isinstance(value, (str, int, float, bool, type(None), list, dict, tuple)):
            outcome.changes[place] = (target, key, Unknown(f"set in a loop over what is not known: {reason.reason}"))
    apply_join(machine, [outcome, Outcome({}, None, None)], f"set in a loop over what is not known: {reason.reason}")


def _while(context: Context, node: ast.While) -> Exec:
    machine = context.machine
    test = compile_condition(context, node.test)
    body = compile_block(context, node.body)
    orelse = compile_block(context, node.orelse) if node.orelse else None

    def run(frame: Frame) -> Any:
        count = 0
        while True:
            answer = test(frame)
            if answer is False:
                return orelse(frame) if orelse is not None else None
            if answer is not True:
                _maybe_loop(machine, frame, lambda f, v: None, body, answer)
                return None
            count += 1
            machine.step()
            if count > Limits.loop:
                machine.check_size(Limits.container + 1)
            signal = body(frame)
            if signal is not None:
                if signal == BREAK:
                    return None
                if signal == RETURN:
                    return RETURN

    return run


def _raise(context: Context, node: ast.Raise) -> Exec:
    machine = context.machine
    value = compile_expression(context, node.exc) if node.exc is not None else None
    site = context.site(node)

    def run(frame: Frame) -> None:
        if value is None:
            current = frame.vars.get("__exception__")
            raise Raised(current if current is not None else make_exception(machine, None, site, frame), site, frame.trace)
        fail(machine, make_exception(machine, value(frame), site, frame), site, frame)

    return run


def fail(machine: Any, exception: Any, site: Any, frame: Frame) -> None:
    """An exception is reached. Inside a speculation, under a handler, or when stopping at the first, it travels;
    else it is recorded and the evaluation goes on as if the check had passed."""
    if machine.speculation or machine.catches(exception) or not machine.go_on:
        raise Raised(exception, site, frame.trace)
    frame.blamed = True
    reads = guard_reads(machine, site, frame)
    machine.failures.append(
        Failure(exception_name(exception), exception_text(exception), site, frame.trace, reads, False, machine.phase)
    )


def _assert(context: Context, node: ast.Assert) -> Exec:
    machine = context.machine
    test = compile_condition(context, node.test)
    message = compile_expression(context, node.msg) if node.msg is not None else None
    site = context.site(node)

    def run(frame: Frame) -> None:
        answer = test(frame)
        if answer is True:
            return
        if answer is False:
            from mblint.evaluate.values import ExceptionValue

            text = message(frame) if message is not None else ""
            fail(machine, ExceptionValue(AssertionError, (text,)), site, frame)
        elif not machine.speculation:
            machine.undecided.append((site, answer.reason))

    return run


def _try(context: Context, node: ast.Try) -> Exec:
    machine = context.machine
    body = compile_block(context, node.body)
    handlers = [
        (compile_expression(context, h.type) if h.type is not None else None, h.name, compile_block(context, h.body)) for h in node.handlers
    ]
    orelse = compile_block(context, node.orelse) if node.orelse else None
    final = compile_block(context, node.finalbody) if node.finalbody else None

    def types_of(frame: Frame) -> Any:
        types: list[Any] = []
        for type_of, _, _ in handlers:
            if type_of is None:
                return None
            held = type_of(frame)
            types.extend(held if isinstance(held, tuple) else [held])
        return tuple(types)

    def guarded(frame: Frame) -> Any:
        if not handlers:
            return body(frame)
        machine.handlers.append(types_of(frame))
        popped = False
        try:
            signal = body(frame)
        except Raised as raised:
            machine.handlers.pop()
            popped = True
            for type_of, name, handle in handlers:
                if type_of is not None:
                    types = type_of(frame)
                    types = types if isinstance(types, tuple) else (types,)
                    if all(exception_matches(raised.value, type_) is False for type_ in types):
                        continue
                if name:
                    frame.vars[name] = raised.value
                before = frame.vars.get("__exception__")
                frame.vars["__exception__"] = raised.value
                try:
                    return handle(frame)
                finally:
                    frame.vars["__exception__"] = before
            raise
        finally:
            if not popped:
                machine.handlers.pop()
        if signal is None and orelse is not None:
            return orelse(frame)
        return signal

    if final is None:
        return guarded

    def run(frame: Frame) -> Any:
        try:
            signal = guarded(frame)
        except Raised:
            outcome = final(frame)
            if outcome is not None:
                return outcome
            raise
        result = frame.result
        outcome = final(frame)
        if outcome is not None:
            return outcome
        frame.result = result
        return signal

    return run


def _with(context: Context, node: ast.With | ast.AsyncWith) -> Exec:
    machine = context.machine
    items = [
        (compile_expression(context, item.context_expr), compile_target(context, item.optional_vars) if item.optional_vars else None)
        for item in node.items
    ]
    body = compile_block(context, node.body)
    site = context.site(node)

    def run(frame: Frame) -> Any:
        suppressed: list[Any] = []
        exits: list[tuple[Any, Any]] = []
        for manager_of, assign in items:
            manager = manager_of(frame)
            entered: Any = Unknown("the value of a context manager")
            if isinstance(manager, Instance) and manager.cls is not None:
                from mblint.evaluate.objects import class_lookup
                from mblint.evaluate.values import BoundMethod

                enter, leave = class_lookup(manager.cls, "__enter__"), class_lookup(manager.cls, "__exit__")
                if enter is not None:
                    entered = call(machine, BoundMethod(enter, manager), [], {}, site, frame)
                if leave is not None:
                    exits.append((BoundMethod(leave, manager), None))
            elif type(manager) is Suspended:
                entered = manager.enter()
                exits.append((None, manager))
            elif type(manager) is tuple and manager and manager[0] == "suppress":
                suppressed.extend(manager[1])
            elif hasattr(manager, "items") and hasattr(manager, "index") and manager.items:
                entered = manager.items[0]
            if assign is not None:
                assign(frame, entered)
        if suppressed:
            machine.handlers.append(tuple(suppressed))
            try:
                return body(frame)
            except Raised as raised:
                if all(exception_matches(raised.value, type_) is False for type_ in suppressed):
                    raise
                return None
            finally:
                machine.handlers.pop()
        try:
            signal = body(frame)
        except Raised:
            for _, suspended in reversed(exits):
                if suspended is not None:
                    suspended.leave(raised=True)
            raise
        for leave, suspended in reversed(exits):
            if suspended is not None:
                suspended.leave(raised=False)
            else:
                call(machine, leave, [None, None, None], {}, site, frame)
        return signal

    return run


def _match(context: Context, node: ast.Match) -> Exec:
    machine = context.machine
    subject = compile_expression(context, node.subject)
    site = context.site(node)
    cases = [
        (_pattern(context, case.pattern), compile_condition(context, case.guard) if case.guard else None, compile_block(context, case.body))
        for case in node.cases
    ]
    leaves = any(_leaves(case.body) for case in node.cases)

    def run_from(start: int, value: Any, frame: Frame) -> Any:
        for index in range(start, len(cases)):
            matches, guard, body = cases[index]
            answer = matches(frame, value)
            if answer is True and guard is not None:
                answer = guard(frame)
            if answer is True:
                return body(frame)
            if answer is not False:
                return branch_on_unknown(machine, frame, answer, body, lambda f, i=index: run_from(i + 1, value, f), site, leaves)  # type: ignore[misc]
        return None

    return lambda frame: run_from(0, subject(frame), frame)


def _pattern(context: Context, pattern: ast.pattern) -> Callable[[Frame, Any], Any]:
    machine = context.machine
    if isinstance(pattern, ast.MatchValue):
        wanted = compile_expression(context, pattern.value)
        return lambda frame, value: ops.equal(value, wanted(frame))
    if isinstance(pattern, ast.MatchSingleton):
        constant = pattern.value
        return lambda frame, value: ops.identical(value, constant)
    if isinstance(pattern, ast.MatchOr):
        parts = [_pattern(context, part) for part in pattern.patterns]
        return lambda frame, value: ops.any_of(part(frame, value) for part in parts)
    if isinstance(pattern, ast.MatchAs):
        inner = _pattern(context, pattern.pattern) if pattern.pattern is not None else None
        assign = compile_target(context, ast.Name(pattern.name, ast.Store())) if pattern.name else None

        def capture(frame: Frame, value: Any) -> Any:
            answer = inner(frame, value) if inner is not None else True
            if answer is True and assign is not None:
                assign(frame, value)
            return answer

        return capture
    if isinstance(pattern, ast.MatchClass) and not pattern.patterns and not pattern.kwd_patterns:
        from mblint.evaluate.objects import is_instance

        cls_of = compile_expression(context, pattern.cls)
        return lambda frame, value: is_instance(machine, value, cls_of(frame))
    if isinstance(pattern, ast.MatchSequence) and not any(isinstance(p, ast.MatchStar) for p in pattern.patterns):
        parts = [_pattern(context, part) for part in pattern.patterns]

        def sequence(frame: Frame, value: Any) -> Any:
            if type(value) is Unknown:
                return Unknown(value.reason)
            if not isinstance(value, (list, tuple)) or len(value) != len(parts):
                return False
            return ops.all_of(part(frame, item) for part, item in zip(parts, value, strict=True))

        return sequence
    return lambda frame, value: Unknown("a match pattern that is not evaluated")


# --- definitions -------------------------------------------------------------------------------------------------


def _function(context: Context, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Exec:
    machine = context.machine
    defaults = [compile_expression(context, d) for d in node.args.defaults]
    kw_defaults = [
        (a.arg, compile_expression(context, d)) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d is not None
    ]
    decorators = [(compile_expression(context, d), context.site(d)) for d in reversed(node.decorator_list)]
    name = node.name
    in_class = context.scope is not None and context.scope.is_class
    within = f"{context.qualname}." if in_class or context.scope is None else f"{context.qualname}.<locals>."
    qualname = f"{within}{name}" if context.qualname else name
    assign = compile_target(context, ast.Name(name, ast.Store()))
    module = context.module
    nested = context.scope is not None and not in_class

    def run(frame: Frame) -> None:
        closure = frame if nested else (frame.parent if in_class else None)
        function: Any = FunctionValue(
            node, name, qualname, module, closure, tuple(d(frame) for d in defaults),
            {n: d(frame) for n, d in kw_defaults}, frame.cls if in_class else None,
        )  # fmt: skip
        for decorator_of, site in decorators:
            function = decorate(machine, decorator_of(frame), function, site, frame)
        assign(frame, function)

    return run


def decorate(machine: Any, decorator: Any, target: Any, site: Any, frame: Frame) -> Any:
    """Apply a decorator; one of a library that is not known keeps the function as it is."""
    from mblint.evaluate.library import library_decorator

    if isinstance(decorator, External):
        return library_decorator(machine, decorator, target)
    if type(decorator) is Unknown or isinstance(decorator, Instance):
        return target
    result = call(machine, decorator, [target], {}, site, frame)
    return target if type(result) is Unknown or result is None or isinstance(result, External) else result


def _class(context: Context, node: ast.ClassDef) -> Exec:
    from mblint.evaluate.frames import Scope, scope_of
    from mblint.evaluate.values import ClassValue

    machine = context.machine
    bases = [compile_expression(context, b) for b in node.bases]
    decorators = [(compile_expression(context, d), context.site(d)) for d in reversed(node.decorator_list)]
    scope, _ = scope_of(None, node.body, context.scope)
    scope.is_class = True
    qualname = f"{context.qualname}.{node.name}" if context.qualname else node.name
    inner = Context(machine, context.module, scope, qualname)
    body: list[Exec] | None = None
    assign = compile_target(context, ast.Name(node.name, ast.Store()))
    site = context.site(node)
    nested: Scope | None = context.scope

    def run(frame: Frame) -> None:
        nonlocal body
        from mblint.evaluate.objects import find_in_class, finish_class

        if body is None:
            body = [compile_statement(inner, statement) for statement in node.body if not _is_inert(statement)]
        cls = ClassValue(node.name, qualname, context.module, tuple(b(frame) for b in bases), site)
        cls.node = node
        child = Frame(frame.module, frame if nested is not None else None, None, frame.trace)
        child.scope = scope
        child.cls = cls
        child.vars = cls.namespace
        for step in body:
            step(child)
        finish_class(machine, cls)
        made: Any = cls
        for decorator_of, where in decorators:
            made = decorate(machine, decorator_of(frame), made, where, frame)
        if not cls.is_enum:
            for base in cls.cached_mro[1:]:
                if isinstance(base, ClassValue) and "__init_subclass__" in base.namespace:
                    hook = find_in_class(base, "__init_subclass__")
                    from mblint.evaluate.values import BoundMethod, ClassMethod

                    machine.speculation += 0
                    call(machine, BoundMethod(hook.function if isinstance(hook, ClassMethod) else hook, cls), [], {}, site, frame)
                    break
        assign(frame, made)

    return run


def _import(context: Context, node: ast.Import) -> Exec:
    machine = context.machine
    steps = []
    for alias in node.names:
        top = alias.name.partition(".")[0]
        steps.append((alias.name, compile_target(context, ast.Name(alias.asname or top, ast.Store())), alias.name if alias.asname else top))
    site = context.site(node)

    def run(frame: Frame) -> None:
        for full, assign, bound in steps:
            if not importable(machine, full, site, frame):
                continue
            assign(frame, machine.modules.import_name(bound))

    return run


def _import_from(context: Context, node: ast.ImportFrom) -> Exec:
    machine = context.machine
    module = context.module
    site = context.site(node)
    if node.names[0].name == "*":
        return lambda frame: None
    steps = [(alias.name, compile_target(context, ast.Name(alias.asname or alias.name, ast.Store()))) for alias in node.names]

    def run(frame: Frame) -> None:
        source = machine.modules.resolve_relative(module, node)
        if not importable(machine, source, site, frame):
            for _, assign in steps:
                assign(frame, Unknown(f"{source} is declared as not installed"))
            return
        for name, assign in steps:
            if source == "__future__":
                continue
            value = machine.modules.import_from(source, name)
            if value is MISSING:
                answer = machine.implicit(ImportError, f"cannot import name '{name}' from '{source}'", site, frame)
                assign(frame, answer if type(answer) is Unknown else Unknown(f"{source} has no {name}"))
                continue
            assign(frame, value)

    return run


def importable(machine: Any, name: str, site: Any, frame: Frame) -> bool:
    """False (after raising ImportError where somebody catches it) for packages declared as not installed."""
    top = name.partition(".")[0]
    if machine.facts is not None and machine.facts.missing_package(name):
        from mblint.evaluate.values import ExceptionValue

        value = ExceptionValue(ModuleNotFoundError, (f"No module named '{top}'",))
        if machine.catches(value):
            raise Raised(value, site, frame.trace)
        return False
    return True


def _break(context: Context, node: ast.Break) -> Exec:
    return lambda frame: BREAK


def _continue(context: Context, node: ast.Continue) -> Exec:
    return lambda frame: CONTINUE


_MAKERS: dict[type[ast.stmt], Any] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Delete: _delete,
    ast.Expr: _expression,
    ast.Return: _return,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Try: _try,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Match: _match,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Break: _break,
    ast.Continue: _continue,
}

__all__ = ["BuiltinClass", "compile_block", "compile_statement", "compile_target", "decorate", "fail"]
