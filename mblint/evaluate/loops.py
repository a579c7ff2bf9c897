"""Loops: rounds, ways that break off, and loops of which nobody knows how often they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mblint.evaluate.budget import Limits
from mblint.evaluate.control import (
    BREAK,
    CONTINUE,
    DEAD,
    RETURN,
    add_pending,
    current,
    dismiss,
    release,
    settle,
)
from mblint.evaluate.errors import BudgetExceeded, Raised
from mblint.evaluate.frames import Exec, Frame
from mblint.evaluate.heap import attribute, collect
from mblint.evaluate.joining import (
    MUTABLE,
    Outcome,
    apply_join,
    join_attribute,
    put_attribute,
    put_entry,
    reach_of,
    same,
)
from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, REST, BoundMethod, FunctionValue, Instance, Partial, Sites

OUTER = 10
"""Added to the signals of ways that belong to a loop around the one that runs."""


def apart_from_outer(run: Exec) -> Exec:
    """A loop: the ways that broke off or continued before it began belong to the loop around it, and wait until it ends."""

    def loop(frame: Frame) -> Any:
        waiting = [way for way in frame.pending or () if way.signal in (BREAK, CONTINUE)]
        if not waiting:
            return run(frame)
        for way in waiting:
            way.signal = (way.signal or 0) + OUTER
        try:
            return run(frame)
        finally:
            for way in waiting:
                way.signal = (way.signal or 0) - OUTER

    return loop


def run_round(machine: Machine, frame: Frame, body: Exec) -> int | None:
    """One round of a loop, with the ways that continued joined at its end: None, BREAK or RETURN (DEAD: all others
    raise, but a way has broken off before)."""
    try:
        signal: int | None = body(frame)
    except Raised as error:
        if frame.pending is None or not any(way.signal in (BREAK, CONTINUE) for way in frame.pending):
            raise
        dismiss(machine, error)
        signal = DEAD
    if frame.pending is not None:
        signal = settle(machine, frame, signal, CONTINUE)
    return None if signal == CONTINUE else signal


def end_loop(machine: Machine, frame: Frame, signal: int | None, orelse: Exec | None) -> int | None:
    """After the last round: `else`, then join the ways that broke off."""
    if signal is None and orelse is not None:
        try:
            signal = orelse(frame)
        except Raised as error:
            if frame.pending is None or not any(way.signal == BREAK for way in frame.pending):
                raise
            dismiss(machine, error)
            signal = DEAD
        if frame.pending is not None and signal in (BREAK, CONTINUE):
            # They belong to the loop around this one; the ways that broke off here do not.
            return _leave_outer(machine, frame, signal)
        if signal in (BREAK, CONTINUE):
            return signal
    if frame.pending is not None:
        signal = settle(machine, frame, signal, BREAK)
    return None if signal == BREAK else signal


def _leave_outer(machine: Machine, frame: Frame, signal: int) -> int | None:
    assert frame.pending is not None
    chosen = [way for way in frame.pending if way.signal == BREAK]
    if not chosen:
        return signal
    frame.pending = [way for way in frame.pending if way.signal != BREAK]
    frame.pending.append(current(machine, frame, signal))
    apply_join(machine, frame.mark, chosen, chosen[0].reason or "a branch that is not known")
    return None


def repeat_unknown(machine: Machine, frame: Frame, test: Callable[[Frame], Any] | None, body: Exec, reason: str) -> int | None:
    """A loop of which nobody knows how often it runs: weaken the state until a further round changes nothing.

    `test` (for `while`) is evaluated before each round; a round that it excludes ends the loop.
    """
    text = f"set in a loop over what is not known: {reason}"
    machine.speculation += 1
    machine.unknown_loops += 1
    failures, blamed = len(machine.failures), frame.blamed
    settling = _Settling(machine)
    began = machine.clock
    try:
        for _ in range(Limits.rounds):
            machine.step()
            mark, start = machine.mark(), machine.clock
            machine.clock += 1
            kept = list(frame.pending or ())
            ended = False
            signal: int | None
            try:
                answer = test(frame) if test is not None else None
                if answer is False:
                    break
                signal = body(frame)
            except Raised as error:
                dismiss(machine, error, reason)
                signal = DEAD
            if frame.pending is not None:
                signal = settle(machine, frame, signal, CONTINUE)
            if signal == RETURN:
                add_pending(machine, frame, current(machine, frame, RETURN))
                ended = True
            elif signal == BREAK:
                add_pending(machine, frame, current(machine, frame, BREAK))
                ended = True
            elif signal == DEAD:
                ended = True
            changes = collect(machine.trail, mark)
            machine.undo(mark)
            machine.clock += 1
            if ended:
                break
            before = machine.mark()
            apply_join(machine, mark, [Outcome({}, None, None, start, start), Outcome(changes, None, None, start, machine.clock)], text)
            summarize(machine, before, began)
            if settling.done(before, start):
                break
            # What left in a round that is not the last is covered by the same way in the last.
            frame.pending = [way for way in frame.pending or () if any(way is held for held in kept)] if frame.pending is not None else None
            release(machine, frame)
        else:
            raise BudgetExceeded(f"a loop over what is not known does not settle in {Limits.rounds} rounds")
    finally:
        machine.unknown_loops -= 1
        machine.speculation -= 1
        del machine.failures[failures:]
        frame.blamed = blamed
    return None


def summarize(machine: Machine, mark: int, began: int) -> None:
    """Let one object stand for those of its class that the rounds of a loop made, wherever they are alternatives."""
    pending: list[tuple[Any, Any]] = []
    for entry in machine.trail[mark:]:
        target = entry[0]
        if len(entry) >= 3 and isinstance(target, (Instance, dict)):
            pending.append((target, entry[1]))
        elif isinstance(target, dict):
            pending.extend((target, key) for key in target)
    while pending:
        target, key = pending.pop()
        value = target.attrs.get(key) if isinstance(target, Instance) else target.get(key)
        if type(value) is not Unknown or value.options is None or len(value.options) < 2:
            continue
        kept: dict[Any, Instance] = {}
        options: list[Any] = []
        loose = False
        for option in value.options:
            birth = birth_of(machine, option) if isinstance(option, MUTABLE) else 0
            if birth <= began:
                options.append(option)
            elif not isinstance(option, Instance):
                loose = loose or any(isinstance(o, type(option)) and birth_of(machine, o) > began for o in options)
                options.append(option)
            elif option.cls not in kept:
                kept[option.cls] = option
                options.append(option)
            else:
                pending.extend(_merge(machine, kept[option.cls], option, value.reason))
        if loose:
            for option in value.options:
                if isinstance(option, (list, dict, set)) and birth_of(machine, option) > began:
                    machine.havoc(option, value.reason)
            made = Unknown(value.reason, value.span, optional=value.optional, reach=reach_of(value))
        elif len(options) < len(value.options):
            made = Unknown(value.reason, value.span, optional=value.optional, many=value.many, options=tuple(options))
        else:
            continue
        if isinstance(target, Instance):
            put_attribute(machine, target, key, (made, target.origin.get(key)))
        else:
            put_entry(machine, target, key, made)


def _merge(machine: Machine, kept: Instance, other: Instance, reason: str) -> list[tuple[Any, Any]]:
    """Make `kept` stand for `other` too; returns the places that changed."""
    machine.summaries[id(kept)] = kept
    for name in {**kept.attrs, **other.attrs}:
        pair = join_attribute([attribute(kept, name), attribute(other, name)], reason, None)
        put_attribute(machine, kept, name, pair)
    return [(kept, name) for name in kept.attrs]


def birth_of(machine: Machine, held: Any) -> int:
    return held.birth if type(held) is Instance else machine.container_birth.get(id(held), 0)


def _forgotten(entry: tuple[Any, ...]) -> bool:
    """Whether nothing is known any more of what a change put in place."""
    target = entry[0]
    if len(entry) == 2:
        if isinstance(target, dict):
            return REST in target and all(_is_open(value) for value in target.values())
        return isinstance(target, (list, set)) and all(_is_open(element) for element in target)
    key = entry[1]
    return _is_open(target.attrs.get(key) if isinstance(target, Instance) else target.get(key) if isinstance(target, dict) else None)


def _is_open(value: Any) -> bool:
    return type(value) is Unknown and value.options is None


class _Settling:
    """Whether a round of a loop over what is not known left everything as it was.

    Objects that the round made itself are as good as those of the round before; so when there are such, a second round
    must find the same.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.began = machine.clock
        self.met_new = False
        self.once = False

    def done(self, mark: int, start: int) -> bool:
        """Look at what the join since `mark` changed; `start` is the clock at the beginning of the round."""
        self.met_new = False
        if not all(self._entry(entry, start) for entry in self.machine.trail[mark:]):
            self.once = False
            return False
        if not self.met_new or self.once:
            return True
        self.once = True
        return False

    def _entry(self, entry: tuple[Any, ...], start: int) -> bool:
        target, old = entry[0], entry[-1]
        birth = birth_of(self.machine, target)
        if birth > start or type(target) is Sites:
            return True
        if birth > self.began and _forgotten(entry):
            # What the round before made is not known any more; what this round made will fare alike in the next.
            self.met_new = True
            return True
        if len(entry) == 4:
            return self._covered(entry[2], target.attrs.get(entry[1], MISSING), start)
        if len(entry) == 3:
            return self._covered(old, target.get(entry[1], MISSING), start)
        if isinstance(old, dict):
            return old.keys() == target.keys() and all(self._covered(held, target[key], start) for key, held in old.items())
        if isinstance(old, list):
            return len(old) == len(target) and all(self._covered(a, b, start) for a, b in zip(old, target, strict=True))
        if isinstance(old, set):
            return {e for e in old if type(e) is not Unknown} == {e for e in target if type(e) is not Unknown}
        return bool(old == target.index)

    def _covered(self, old: Any, new: Any, start: int) -> bool:
        """Whether the old value said no more than the new one."""
        if same(old, new):
            return True
        if type(old) is not Unknown or type(new) is not Unknown or old.many != new.many or old.optional != new.optional:
            return False
        if old.options is None:
            known = {id(held) for held in old.reach}
            return all(
                id(held) in known or self._is_new(held, start) or any(same(held, other) for other in old.reach) for held in reach_of(new)
            )
        if new.options is None:
            return False
        return all(any(same(option, other) for other in old.options) or self._is_new(option, start) for option in new.options)

    def _is_new(self, held: Any, start: int) -> bool:
        if type(held) is FunctionValue:
            held = held.closure.vars if held.closure is not None else held
        elif type(held) is BoundMethod:
            held = held.receiver
        # Containers that any round made are alike: their content is not known any more.
        since = start if type(held) is Instance else self.began
        if (isinstance(held, MUTABLE) and birth_of(self.machine, held) > since) or type(held) is Partial:
            self.met_new = True
            return True
        return False
