"""Joining the effects of ways through a program of which only one will be taken."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.budget import Limits
from mblint.evaluate.errors import Raised
from mblint.evaluate.heap import LENGTH, Before, Change, Changes, attribute, collect, intermediate, snapshot
from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown, rest
from mblint.evaluate.values import MISSING, REST, BoundMethod, External, FunctionValue, Instance, KnownIterator, Partial, Sites, Write

PLAIN = frozenset({int, float, str, bool, type(None), bytes, complex})
MUTABLE = (Instance, list, dict, set, KnownIterator)
CARRIERS = (*MUTABLE, BoundMethod, Partial)


def carries(value: Any) -> bool:
    """Whether a change may go through a value: mutable objects, and callables that hold on to some."""
    return isinstance(value, CARRIERS) or (type(value) is FunctionValue and value.closure is not None)


class Outcome:
    """One way through: what it changed, how it ended (`signal`), its result.

    Objects with a birth in (start, end] were made on this way alone. `reason` tells why it is one of several; `known` is an
    Unknown and the value that it has on this way.
    """

    __slots__ = ("changes", "end", "known", "reason", "result", "signal", "start")

    def __init__(
        self, changes: Changes, result: Any = None, signal: int | None = None, start: int = 0, end: int = 0, reason: str = ""
    ) -> None:
        self.reason = reason
        self.known: tuple[Any, Any] | None = None
        self.changes = changes
        self.result = result
        self.signal = signal
        self.start = start
        self.end = end


def same(left: Any, right: Any) -> bool:
    """Whether two joined values need not be told apart."""
    if left is right:
        return True
    kind = type(left)
    if kind is not type(right):
        return False
    if kind is tuple:
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if kind is float:
        return bool(left == right) and str(left) == str(right)
    if kind in PLAIN:
        return bool(left == right)
    if kind is FunctionValue:
        # The same `def`, run again where the same variables are.
        return left.node is right.node and left.closure is right.closure and same(left.defaults, right.defaults)
    if kind is BoundMethod:
        return left.receiver is right.receiver and same(left.function, right.function)
    return kind is External and bool(left == right)


def join_values(values: list[Any], reason: str, fresh_after: int | None = None) -> Any:
    """The one value when all agree, else an Unknown that remembers the alternatives.

    Instances born after `fresh_after` exist on one way each.
    """
    first = values[0]
    if all(same(first, other) for other in values[1:]):
        return first
    if not reason:
        reason = next((value.reason for value in values if type(value) is Unknown), "an exception that is not certain")
    options: list[Any] = []
    reach: list[Any] = []
    closed = True
    apart = True
    optional = False
    for value in values:
        if value is MISSING:
            optional = True
            continue
        if type(value) is not Unknown:
            held: tuple[Any, ...] = (value,)
            if isinstance(value, MUTABLE):
                apart = apart and fresh_after is not None and type(value) is Instance and value.birth > fresh_after
        elif value.options is None or value.many:
            closed = False
            optional = optional or value.optional
            reach.extend(value.reach)
            continue
        else:
            optional = optional or value.optional
            held = value.options
            apart = apart and (value.apart or not any(isinstance(option, MUTABLE) for option in held))
        for option in held:
            if not any(same(option, other) for other in options):
                options.append(option)
    if closed and len(options) <= Limits.options:
        return Unknown(reason, optional=optional, options=tuple(options), apart=apart)
    reach.extend(option for option in options if carries(option))
    return Unknown(reason, optional=optional, reach=tuple(dict((id(r), r) for r in reach).values()))


def maybe_absent(value: Any) -> bool:
    """True when a value may not exist at all."""
    return type(value) is Unknown and value.optional


def there(value: Unknown) -> Any:
    """What a value that may not exist is where it does."""
    if value.options is not None and len(value.options) == 1:
        return value.options[0]
    return Unknown(value.reason, value.span, options=value.options, reach=value.reach, apart=value.apart)


def exists(birth: int, index: int, outcomes: list[Outcome]) -> bool:
    """Whether an object of that birth exists on the outcome's way."""
    own = outcomes[index]
    for number, other in enumerate(outcomes):
        if number == index or not other.start < birth <= other.end:
            continue
        if not (other.start <= own.start and own.end <= other.end and own.end):
            return False
    return not own.end or birth <= own.end


def apply_join(machine: Machine, base: int, outcomes: list[Outcome], reason: str) -> Any:
    """Make the heap what the outcomes agree on, Unknown where they differ; returns the joined result.

    The changes of the outcomes are relative to `base`, a mark of the trail; the heap may hold any later state.
    """
    before = Before(machine.trail, base)
    targets: dict[int, Any] = {place: entries[0][0] for place, entries in before.entries.items()}
    for outcome in outcomes:
        for place, change in outcome.changes.items():
            targets[place] = change.target
    fresh_after = min((outcome.start for outcome in outcomes if outcome.end), default=None)
    # The sides of one branch share none of the objects that they make.
    apart_after = fresh_after if all(outcome.end for outcome in outcomes) else None
    for place, target in targets.items():
        changes = [outcome.changes.get(place) for outcome in outcomes]
        knowledge = [outcome.known for outcome in outcomes]
        if fresh_after is not None:
            birth = target.birth if type(target) is Instance else machine.container_birth.get(place, 0)
            if birth > fresh_after:
                # Ways on which the object was never made have no say in what it holds.
                kept = [i for i in range(len(outcomes)) if exists(birth, i, outcomes)]
                if kept:
                    changes, knowledge = [changes[i] for i in kept], [knowledge[i] for i in kept]
        entries = before.entries.get(place, ())
        if any(change is not None and change.whole is not None for change in changes) or any(
            len(entry) == 2 or entry[1] is LENGTH for entry in entries
        ):
            wholes = [_whole(before, target, change) for change in changes]
            put_whole(machine, target, wholes[0] if len(wholes) == 1 else join_containers(wholes, reason, apart_after))
            continue
        keys: dict[Any, None] = {entry[1]: None for entry in entries}
        for change_of in changes:
            if change_of is not None:
                keys.update(dict.fromkeys(change_of.keys))
        for key in keys:
            values = [_value_on(before, target, key, c, known) for c, known in zip(changes, knowledge, strict=True)]
            if type(target) is Instance:
                put_attribute(machine, target, key, join_attribute(values, reason, apart_after))
            elif type(target) is Sites:
                put_entry(machine, target, key, next((value for value in values if value is not MISSING), MISSING))
            else:
                put_entry(machine, target, key, values[0] if len(values) == 1 else join_values(values, reason, apart_after))
    results = [outcome.result for outcome in outcomes]
    return results[0] if len(results) == 1 else join_values(results, reason, apart_after)


def _value_on(before: Before, target: Any, key: Any, change: Change | None, known: tuple[Any, Any] | None) -> Any:
    """The value of a place on one way (for an instance: the pair of value and write)."""
    if change is not None and key in change.keys:
        return change.keys[key]
    held = before.value(target, key)
    if known is not None:
        if type(target) is Instance:
            return (known[1], held[1]) if held[0] is known[0] else held
        return known[1] if held is known[0] else held
    return held


def _whole(before: Before, target: Any, change: Change | None) -> Any:
    if change is not None and change.whole is not None:
        return change.whole
    held = before.whole(target)
    if change is not None:
        for key, value in change.keys.items():
            if value is MISSING:
                held.pop(key, None)
            else:
                held[key] = value
    return held


def join_attribute(pairs: list[tuple[Any, Any]], reason: str, fresh_after: int | None) -> tuple[Any, Any]:
    """Join of (value, write) pairs: the writes that may have happened follow each other in the history."""
    if len(pairs) == 1:
        return pairs[0]
    value = join_values([held for held, _ in pairs], reason, fresh_after)
    writes: list[Write] = []
    for _, write in pairs:
        if write is not None and not any(write is other for other in writes):
            writes.append(write)
    if len(writes) <= 1 and all(write is not None for _, write in pairs):
        return value, writes[0]
    if not writes:
        return value, None
    chains = [_chain(write) for write in writes]
    common = chains[0] if len(writes) == sum(w is not None for _, w in pairs) and not any(w is None for _, w in pairs) else []
    for chain in chains[1:]:
        common = [write for write in common if any(write is other for other in chain)]
    top: Write | None = common[0] if common else None
    for chain in chains:
        for write in reversed(chain):
            if not any(write is other for other in common):
                known = same(write.value, value)
                top = Write(write.site, value if known else Unknown(reason), top, write.trace, write.phase)
    return value, top


def _chain(write: Write | None) -> list[Write]:
    found: list[Write] = []
    while write is not None and len(found) < 50:
        found.append(write)
        write = write.previous
    return found


def join_containers(values: list[Any], reason: str, fresh_after: int | None = None) -> Any:
    """Join of several contents of one container."""
    first = values[0]
    if isinstance(first, dict):
        keys: dict[Any, None] = {}
        for value in values:
            keys.update(dict.fromkeys(value))
        joined = {}
        for key in keys:
            held = [value.get(key, MISSING) for value in values]
            one = join_values(held, reason, fresh_after)
            joined[key] = Unknown(reason) if key is REST and one is not held[0] else one
        return joined
    if isinstance(first, list):
        return _join_lists(values, reason, fresh_after)
    if isinstance(first, set):
        shared = [e for e in first if type(e) is not Unknown and all(e in other for other in values[1:])]
        return set(shared) if all(len(value) == len(shared) for value in values) else {*shared, rest(reason)}
    return first if all(value == first for value in values[1:]) else min(values)


def _join_lists(values: list[list[Any]], reason: str, fresh_after: int | None) -> list[Any]:
    open_at = [next((i for i, e in enumerate(value) if type(e) is Unknown and e.many), None) for value in values]
    if all(i is None for i in open_at) and len({len(value) for value in values}) == 1:
        return [join_values(list(column), reason, fresh_after) for column in zip(*values, strict=True)]
    if all(len(value) == len(values[0]) and all(same(a, b) for a, b in zip(value, values[0], strict=True)) for value in values):
        return values[0]
    known = min(len(value) if i is None else i for value, i in zip(values, open_at, strict=True))
    head = [join_values([value[i] for value in values], reason, fresh_after) for i in range(known)]
    reach = {id(e): e for value in values for e in value[known:] if carries(e)}
    for value in values:
        for element in value[known:]:
            if type(element) is Unknown:
                reach.update((id(e), e) for e in reach_of(element))
    return [*head, rest(reason, reach=tuple(reach.values()))]


def reach_of(value: Unknown) -> tuple[Any, ...]:
    """Mutable objects that an unknown value may be."""
    if value.options is None:
        return value.reach
    return tuple(option for option in value.options if carries(option))


# --- writing joined values -----------------------------------------------------------------------------------------


def put_attribute(machine: Machine, target: Instance, name: str, pair: tuple[Any, Any]) -> None:
    before = attribute(target, name)
    value, write = pair
    if before[0] is value and before[1] is write:
        return
    machine.trail.append((target, name, *before))
    if value is MISSING:
        target.attrs.pop(name, None)
    else:
        target.attrs[name] = value
    if write is None:
        target.origin.pop(name, None)
    else:
        target.origin[name] = write


def put_entry(machine: Machine, target: Any, key: Any, value: Any) -> None:
    before = target.get(key, MISSING)
    if before is value:
        return
    machine.trail.append((target, key, before))
    if value is MISSING:
        target.pop(key, None)
    else:
        target[key] = value


def put_whole(machine: Machine, target: Any, value: Any) -> None:
    machine.trail.append((target, snapshot(target)))
    if isinstance(target, (dict, set)):
        target.clear()
        target.update(value)
    elif isinstance(target, list):
        target[:] = value
    else:
        target.index = value


def switch(machine: Machine, base: int, changes: Changes) -> None:
    """Make the heap what it was on a way whose changes since `base` are known."""
    apply_join(machine, base, [Outcome(changes)], "")


def weaken(machine: Machine, base: int) -> None:
    """Make the heap cover every state that it had since `base`."""
    reason = "an exception may have come before or after this was set"
    for target, keys in intermediate(machine.trail, base).values():
        if keys is None:
            now, first = snapshot(target), Before(machine.trail, base).whole(target)
            put_whole(machine, target, _blur(now, first, reason))
            continue
        for key, values in keys.items():
            if isinstance(target, Instance):
                value, write = join_attribute(values, reason, None)
                put_attribute(machine, target, key, (_open(value, values[-1][0]), write))
            else:
                put_entry(machine, target, key, _open(join_values(values, reason), values[-1]))


def _open(joined: Any, last: Any) -> Any:
    """What branches inside wrote on the way is not on the trail: the alternatives are not complete."""
    if type(joined) is Unknown and joined is not last and joined.options is not None:
        return Unknown(joined.reason, optional=joined.optional, reach=reach_of(joined))
    return joined


def _blur(now: Any, first: Any, reason: str) -> Any:
    if isinstance(now, list):
        reach = tuple(e for e in [*now, *first] if isinstance(e, MUTABLE))
        return now if len(now) == len(first) and all(same(a, b) for a, b in zip(now, first, strict=True)) else [rest(reason, reach=reach)]
    if isinstance(now, dict):
        return {**{key: Unknown(reason) for key in [*first, *now]}, REST: rest(reason)}
    if isinstance(now, set):
        return {rest(reason)}
    return now


def drop(machine: Machine, error: Raised, reason: str) -> None:
    """A way that ends in an exception nobody catches is not followed further."""
    machine.undecided.append((error.site, reason))


__all__ = [
    "MUTABLE",
    "PLAIN",
    "Outcome",
    "apply_join",
    "collect",
    "drop",
    "exists",
    "join_containers",
    "join_values",
    "maybe_absent",
    "same",
    "switch",
    "weaken",
]
