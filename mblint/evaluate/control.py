"""Control flow where conditions are not known.

A condition that is not known runs both sides, takes back what each did, and joins the two. A side that leaves (by
return, break or continue) ends the way it is on: what that way has changed is kept in `frame.pending` until the loop
or the function that it leaves ends, and is joined there with the ways that went on. A side that raises is followed to
the `try` that takes the exception (`Guard.raises`), and dropped when there is none: what is claimed holds for the runs
that do not fail. So each statement is evaluated once for every way that reaches it, never once a path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mblint.evaluate.errors import Failure, Raised
from mblint.evaluate.frames import Exec, Frame
from mblint.evaluate.heap import collect
from mblint.evaluate.joining import Outcome, apply_join, drop
from mblint.evaluate.machine import Machine, exception_name, exception_text
from mblint.evaluate.unknown import Unknown

RETURN, BREAK, CONTINUE, DEAD = 1, 2, 3, 4


def fail(machine: Machine, exception: Any, site: Any, frame: Frame) -> None:
    """An exception is reached. Inside a speculation, under a handler, or when stopping at the first, it travels;
    else it is recorded and the evaluation goes on as if the check had passed."""
    if machine.speculation or machine.catches(exception) or not machine.go_on:
        raise Raised(exception, site, frame.trace)
    from mblint.evaluate.guards import guard_reads

    frame.blamed = True
    reads = guard_reads(machine, site, frame)
    machine.failures.append(Failure(exception_name(exception), exception_text(exception), site, frame.trace, reads, False, machine.phase))


# --- branches --------------------------------------------------------------------------------------------------------


def branch_on_unknown(machine: Machine, frame: Frame, answer: Unknown, body: Exec, orelse: Exec | None, site: Any) -> Any:
    """An `if` whose condition is not known: take the choice that was asked for, or run both sides and join."""
    if machine.path_decisions is not None and not machine.speculation:
        taken = machine.path_decisions
        index = len(machine.path_taken)
        choice = taken[index] if index < len(taken) else True
        machine.path_taken.append((site, choice, answer.reason))
        if choice:
            return body(frame)
        return orelse(frame) if orelse is not None else None
    known: list[Any] = [None, None]
    if answer.equates is not None:
        # `if a != b: a = b` leaves a = b on either side, however little was known of a before.
        unknown, value, is_equal = answer.equates
        known[0 if is_equal else 1] = (unknown, value)
    signal, _ = run_sides(machine, frame, [(body, True), (orelse or _nothing, True)], answer.reason, site, known)
    return signal


def _nothing(frame: Frame) -> None:
    return None


def choose_value(machine: Machine, frame: Frame, sides: Sequence[Callable[[Frame], Any]], reason: str, site: Any) -> Any:
    """An expression of which one of several sides is evaluated, nobody knows which: the join of their values."""
    _, value = run_sides(machine, frame, [(side, False) for side in sides], reason, site)
    return value


def run_sides(
    machine: Machine,
    frame: Frame,
    sides: Sequence[tuple[Callable[[Frame], Any], bool]],
    reason: str,
    site: Any,
    known: Sequence[tuple[Any, Any] | None] = (),
) -> tuple[int | None, Any]:
    """Run alternatives; each is a statement that gives a signal (True) or an expression that gives a value (False).

    `known` says for each side of which Unknown it knows the value.
    """
    mark = machine.mark()
    machine.step(16 + (mark - frame.mark >> 4))  # what the sides have in common is gathered for each of them
    through: list[Outcome] = []
    leaving: list[tuple[Outcome, Outcome]] = []
    raising: list[tuple[Raised, Outcome, Any, Outcome | None]] = []
    machine.speculation += 1
    failures, blamed = len(machine.failures), frame.blamed
    held = frame.result
    try:
        for number, (side, is_statement) in enumerate(sides):
            start = machine.clock
            machine.clock += 1
            try:
                value = side(frame)
            except Raised as error:
                end = machine.clock
                guard = machine.guard_for(error.value)
                seen = Outcome(collect(machine.trail, guard.mark), None, None, start, end) if guard is not None else None
                raising.append((error, Outcome(collect(machine.trail, mark), None, None, start, end), guard, seen))
            else:
                signal = value if is_statement else None
                end = machine.clock
                local = Outcome(collect(machine.trail, mark), value if not is_statement else frame.result, signal, start, end)
                local.known = known[number] if known else None
                if signal is None:
                    through.append(local)
                else:
                    whole = Outcome(collect(machine.trail, frame.mark), frame.result, signal, start, end, reason)
                    leaving.append((local, whole))
            machine.undo(mark)
            machine.clock += 1
            frame.result = held
    finally:
        machine.speculation -= 1
        del machine.failures[failures:]
        frame.blamed = blamed
    if not through and not leaving:
        return _all_raise(machine, frame, raising, mark, reason)
    for raised, _, guard, seen in raising:
        _set_aside(machine, raised, guard, seen, reason)
    if through:
        for _, whole in leaving:
            add_pending(machine, frame, whole)
        return None, apply_join(machine, mark, through, reason)
    for _, whole in leaving[:-1]:
        add_pending(machine, frame, whole)
    local, _ = leaving[-1]
    apply_join(machine, mark, [local], reason)
    frame.result = local.result
    return local.signal, None


def _all_raise(machine: Machine, frame: Frame, raising: list[Any], mark: int, reason: str) -> tuple[int | None, Any]:
    """Every side raises, so an exception is certain: of those that somebody catches the last goes on its way."""
    caught = [entry for entry in raising if entry[2] is not None]
    last = caught[-1] if caught else raising[0]
    if not caught and machine.go_on and not machine.speculation:
        error = last[0]
        fail(machine, error.value, error.site, frame)
        return None, Unknown(reason)
    for error, _, guard, seen in raising:
        if error is not last[0]:
            _set_aside(machine, error, guard, seen, reason)
    apply_join(machine, mark, [last[1]], reason)
    raise last[0]


def _set_aside(machine: Machine, error: Raised, guard: Any, seen: Outcome | None, reason: str) -> None:
    """Keep an exception that only some ways raise for the `try` that takes it."""
    if guard is None:
        drop(machine, error, reason)
        return
    if not guard.raises:
        machine.speculation += 1
    machine.asides += 1
    guard.raises.append((error, seen))


# --- ways that have left ---------------------------------------------------------------------------------------------


def add_pending(machine: Machine, frame: Frame, outcome: Outcome) -> None:
    """Keep a way that left; whatever follows is only possible until it is joined again."""
    if frame.pending is None:
        frame.pending = []
        machine.speculation += 1
    frame.pending.append(outcome)


def release(machine: Machine, frame: Frame) -> None:
    """When no way is pending any more, what follows is certain again."""
    if frame.pending is not None and not frame.pending:
        frame.pending = None
        machine.speculation -= 1


def current(machine: Machine, frame: Frame, signal: int | None) -> Outcome:
    """The way that is being followed, as an outcome."""
    return Outcome(collect(machine.trail, frame.mark), frame.result, signal)


def settle(machine: Machine, frame: Frame, signal: int | None, kind: int) -> int | None:
    """Join the ways that left by `kind` with the one that ended with `signal`; returns the signal that holds now."""
    assert frame.pending is not None
    chosen = [way for way in frame.pending if way.signal == kind]
    if not chosen:
        return signal
    frame.pending = [way for way in frame.pending if way.signal != kind]
    if signal is None or signal == kind:
        chosen.append(current(machine, frame, None))
    elif signal != DEAD:
        frame.pending.append(current(machine, frame, signal))
    apply_join(machine, frame.mark, chosen, chosen[0].reason or "a branch that is not known")
    release(machine, frame)
    return None


def finish_call(machine: Machine, frame: Frame, result: Any, dead: bool) -> Any:
    """The end of a call from which some ways have returned before: join them; returns the joined result."""
    ways = frame.pending or []
    frame.pending = None
    machine.speculation -= 1
    if not dead:
        ways.append(Outcome(collect(machine.trail, frame.mark), result))
    name = frame.function.name if frame.function is not None else "the module"
    return apply_join(machine, frame.mark, ways, ways[0].reason or f"a branch in {name} is not known")


def abandon(machine: Machine, frame: Frame) -> None:
    """Evaluation stops inside this call: its ways are forgotten."""
    if frame.pending is not None:
        frame.pending = None
        machine.speculation -= 1


def dismiss(machine: Machine, error: Raised, reason: str = "a branch that is not known") -> None:
    """The way that is being followed ends in an exception while others have left before."""
    guard = machine.guard_for(error.value)
    seen = Outcome(collect(machine.trail, guard.mark)) if guard is not None else None
    _set_aside(machine, error, guard, seen, reason)


def combine(machine: Machine, frame: Frame, ways: list[Outcome]) -> int | None:
    """Go on after a statement that can end in several ways (changes relative to the frame's mark)."""
    through = [way for way in ways if way.signal is None]
    leaving = [way for way in ways if way.signal is not None]
    if through:
        for way in leaving:
            add_pending(machine, frame, way)
        apply_join(machine, frame.mark, through, "")
        return None
    for way in leaving[:-1]:
        add_pending(machine, frame, way)
    apply_join(machine, frame.mark, [leaving[-1]], "")
    frame.result = leaving[-1].result
    return leaving[-1].signal
