"""What constructors do to the fields of an object: found by running them on stand-ins."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.errors import BudgetExceeded, NeedFork, Raised, StopEvaluation
from mblint.evaluate.objects import find_in_class
from mblint.evaluate.operators import machine_frame
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, BoundMethod, ClassValue, External, Field, FunctionValue, Instance
from tools.snapshot.effects import ALL, CHANGED, cannot_change
from tools.snapshot.encode import canonical, unknown_node
from tools.snapshot.knobs import signature
from tools.snapshot.merge import KEEP, Run, merge
from tools.snapshot.runs import Recorder

MOST_FIELDS_IN_PAIRS = 14
MOST_FIELDS = 60
"""A class whose __post_init__ reads more fields is run with one at a time of those that it may change."""

ALWAYS_FIXED = ("cuda_graph_scope", "cuda_graph_modules")
"""Fields of such a class that most runs leave at their defaults: their text decides which others change."""


class Constructors:
    """Runs methods on objects whose fields are stand-ins."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.encoder = recorder.encoder
        self.machine = recorder.machine

    def effects(self, function: FunctionValue, cls: ClassValue | None) -> dict[str, Any]:
        """The effects of a method; a number or a text is never changed where it is."""
        effects = self.recorder.effects.of(function, cls)
        first = _first(function)
        paths = effects.get(first, ())
        if cls is None or paths == ALL or not paths:
            return effects

        def fixed(path: str) -> bool:
            field = cls.field_map.get(path.rstrip(CHANGED)) if path.endswith(CHANGED) else None
            return field is not None and cannot_change(field.annotation)

        return {**effects, first: [path for path in paths if not fixed(path)]}

    def symbolic(self, cls: ClassValue, fixed: dict[str, Any]) -> tuple[Instance, dict[int, Any]]:
        """An instance whose fields are stand-ins, but for those that are fixed."""
        made = self.machine.new_instance(cls)
        marks: dict[int, Any] = {}
        for name in cls.field_map:
            if name in fixed:
                made.attrs[name] = fixed[name]
                continue
            mark = Unknown(f"the field {name}")
            made.attrs[name] = mark
            marks[id(mark)] = {"$a": name}
        return made, marks

    def guarded(self, work: Any) -> Any:
        """The result of an evaluation whose effects are taken back; None when it fails."""
        mark = self.recorder.reset()
        try:
            return work()
        except (Raised, BudgetExceeded, NeedFork, StopEvaluation, RecursionError):
            return None
        finally:
            self.machine.undo(mark)

    def post(self, cls: ClassValue, method: FunctionValue) -> dict[str, Any] | None:
        """Field -> what __post_init__ leaves in it."""
        effects = self.effects(method, cls).get(_first(method), ())
        if effects == ALL:
            return None
        if not effects:
            return {}
        changed = {path.rstrip(CHANGED).partition(".")[0] for path in effects}
        below = {path.rstrip(CHANGED).partition(".")[0] for path in effects if "." in path or path.endswith(CHANGED)}
        runs: list[Run] = []
        defaults = {name: self._default_of(field) for name, field in cls.field_map.items()}
        asked = _reads(method, cls)
        settled = {name: value for name, value in defaults.items() if name in asked and (_simple(value) or value in ({}, []))}
        relevant = list(settled)
        base: dict[str, Any] = {}
        if len(relevant) > MOST_FIELDS:
            base = {name: settled[name] for name in ALWAYS_FIXED if name in settled}
            relevant = [name for name in relevant if name in effects and name not in base]
        tries: list[dict[str, Any]] = [{}, base, *({**base, name: settled[name]} for name in relevant)]
        tries += [{**base, name: not settled[name]} for name in relevant if isinstance(settled[name], bool)]
        if not base:
            tries.append(settled)
        if len(relevant) <= MOST_FIELDS_IN_PAIRS:
            tries += [{a: settled[a], b: settled[b]} for i, a in enumerate(relevant) for b in relevant[i + 1 :]]
        elif not base:
            tries += [{name: value for name, value in settled.items() if name != left} for left in relevant]
        for fixed in tries:
            table = self.guarded(lambda fixed=fixed: self._post_run(cls, method, fixed))
            if table is not None:
                runs.append(({n: self.encoder.node(v) for n, v in fixed.items()}, table))
            elif not fixed:
                runs.append(
                    (
                        {},
                        {path: unknown_node("__post_init__ is not evaluated without source") for path in sorted(changed)},
                    )
                )
        names = [name for name in dict.fromkeys(name for _, table in runs for name in table) if name in changed]
        result = {name: merge([(c, table.get(name, KEEP)) for c, table in runs], lambda c, a: KEEP) for name in names}
        for name in sorted(below):
            result[name] = unknown_node("it may be changed by __post_init__, which is not evaluated without source")
        return {name: node for name, node in result.items() if node != KEEP}

    def _post_run(self, cls: ClassValue, method: FunctionValue, fixed: dict[str, Any]) -> dict[str, Any]:
        instance, marks = self.symbolic(cls, fixed)
        before = dict(instance.attrs)
        call(self.machine, BoundMethod(method, instance), [], {}, None, machine_frame(self.machine))
        table: dict[str, Any] = {}
        for name, value in instance.attrs.items():
            if name in before and (
                before[name] is value or (name in fixed and _simple(value) and type(value) is type(fixed[name]) and value == fixed[name])
            ):
                continue
            node = self.encoder.node(value, marks, False)
            table[name] = {"$": node["$a"]} if isinstance(node, dict) and "$a" in node else node
        return table

    def _default_of(self, field: Field) -> Any:
        if field.factory is MISSING:
            return field.default
        made = self.encoder.made_by(field.factory)
        return {} if made == {"m": {}} else [] if made == [] else MISSING

    def written(self, cls: ClassValue, written: FunctionValue) -> dict[str, Any] | None:
        """A constructor that somebody wrote: run with as few arguments as it takes, then with each other."""
        if written not in cls.namespace.values():
            return None
        names = [a.arg for a in [*written.node.args.args, *written.node.args.kwonlyargs]][1:]
        accepted = list(dict.fromkeys([*names, *(n for n, f in cls.field_map.items() if f.init)]))
        source = next((name for name in ("seq_length", "sequence_length") if name in names), "seq_length")

        def build(given: dict[str, Any]) -> dict[str, Any] | None:
            def work() -> dict[str, Any]:
                made = call(self.machine, cls, [], dict(given), None, machine_frame(self.machine))
                marks = {id(value): {"$": name} for name, value in given.items()}
                return {name: self.encoder.node(value, marks, False) for name, value in made.attrs.items()}

            return self.guarded(work)

        # The one that has to be there is tested for None only, so a name that is not None may stand for it.
        needed = External("the sequence length")
        required = [
            name
            for name, f in cls.field_map.items()
            if f.init and f.default is MISSING and f.factory is MISSING and name not in ("seq_length", "sequence_length")
        ]
        base: dict[str, Any] = {
            source: needed,
            **{name: Unknown(f"the argument {name}") for name in required},
        }
        least = build(base)
        if least is None:
            return None
        result: dict[str, Any] = {}
        taken: list[str] = []
        for name in accepted:
            if name in (source, "sequence_length", *required):
                taken.append(name)
                if name in required:
                    missing = {"!": ["TypeError", f"{cls.name}.__init__() missing required argument: {name}"]}
                    result[name] = {"c": [[{name: {"given": 1}}, {"$": name}], [{}, missing]]}
                continue
            mark = Unknown(f"the argument {name}")
            made = build({**base, name: mark})
            if made is None:
                continue
            taken.append(name)
            changed = {attribute: node for attribute, node in made.items() if canonical(node) != canonical(least.get(attribute, KEEP))}
            if changed != {name: {"$": name}}:
                for attribute in changed:
                    result[attribute] = unknown_node(f"it depends on {name}")
                continue
            result[name] = {"c": [[{name: {"given": 1}}, {"$": name}], [{}, least.get(name, KEEP)]]}
        for attribute, node in least.items():
            result.setdefault(attribute, node)
        choices = [[{"seq_length": {"not": None}}, {"$": "seq_length"}]]
        others = {name: value for name, value in base.items() if name != source}
        if build({**others, "sequence_length": needed}) is not None:
            choices.append([{"sequence_length": {"given": 1}}, {"$": "sequence_length"}])
        if build(others) is None:
            choices.append([{}, {"!": ["ValueError", "a sequence length has to be given"]}])
        for attribute, node in least.items():
            if node == {"$": source}:
                result[attribute] = {"c": choices}
        return {
            "a": signature(written),
            "v": result,
            "k": taken,
            "d": [self.encoder.node(v) for v in written.defaults],
        }


def _first(method: FunctionValue) -> str:
    return method.node.args.args[0].arg if method.node.args.args else ""


def _simple(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, External))


def _reads(method: FunctionValue, cls: ClassValue) -> set[str]:
    """Names of attributes of the receiver that a method and what it calls on the receiver read."""
    found: set[str] = set()
    seen: set[Any] = set()
    pending = [method]
    while pending:
        function = pending.pop()
        if function.node in seen:
            continue
        seen.add(function.node)
        first = _first(function)
        for node in ast.walk(function.node):
            if not isinstance(node, ast.Attribute):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in cls.field_map:
                    found.add(node.value)
                continue
            if isinstance(node.value, ast.Name) and node.value.id == first:
                found.add(node.attr)
                inner = find_in_class(cls, node.attr)
            elif (
                isinstance(node.value, ast.Call)
                and isinstance(node.value.func, ast.Name)
                and node.value.func.id == "super"
                and function.defining_class is not None
            ):
                inner = find_in_class(cls, node.attr, function.defining_class)
            elif isinstance(node.value, ast.Name) and node.attr == "__post_init__":
                owner = function.module.lookup(node.value.id)
                inner = find_in_class(owner, node.attr) if isinstance(owner, ClassValue) else MISSING
            else:
                continue
            if isinstance(inner, FunctionValue):
                pending.append(inner)
    return found
