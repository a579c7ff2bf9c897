"""Functions of a release to records: run with stand-ins for their arguments, under as many conditions as pay.

A stand-in is an unknown value. Where it comes out unchanged, the result holds the argument; where the result
depends on it, the evaluator says that it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.errors import BudgetExceeded, NeedFork, Raised, StopEvaluation
from mblint.evaluate.library.torch import GPU_FACTS
from mblint.evaluate.machine import Machine, exception_name
from mblint.evaluate.operators import machine_frame
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, FunctionValue, Instance
from mblint.evaluate.world import World
from tools.snapshot.effects import ALL, CHANGED, EffectReader, parameters
from tools.snapshot.encode import Encoder, canonical, reference, unknown_node
from tools.snapshot.knobs import AnyOf, Other, choices, compared_attributes, settings, signature
from tools.snapshot.merge import KEEP, Run, agreed, merge

MOST_WAYS = 16
PROCESS = frozenset({"WORLD_SIZE", "RANK", "LOCAL_RANK"})

OPTIONAL = (
    "mixed_precision",
    "comm_overlap",
    "peft",
    "profiling",
    "tensor_inspect",
    "tokenizer",
    "dataset",
    "model",
)
"""Sections that may hold something else than an object with attributes."""


@dataclass
class Recorder:
    """Runs functions of one session."""

    machine: Machine
    world: World
    encoder: Encoder
    effects: EffectReader = field(default_factory=EffectReader)

    def record(self, function: FunctionValue) -> dict[str, Any]:
        """What functions.py reads of a function."""
        made: dict[str, Any] = {"a": signature(function), "l": getattr(function.node, "lineno", 1)}
        if function.defaults:
            made["d"] = [self.encoder.node(value) for value in function.defaults]
        if function.kw_defaults:
            made["k"] = {name: self.encoder.node(value) for name, value in function.kw_defaults.items()}
        effects = self.effects.of(function)
        if any(paths == ALL for paths in effects.values()) or function.node.args.vararg is not None:
            return {**made, "e": effects}
        result = self.result(function, effects)
        if result is None:
            return {**made, "e": effects}
        made["r"] = result["r"]
        writes = {name: table for name, table in result.get("w", {}).items() if table}
        if writes:
            made["w"] = writes
        return made

    # --- which runs ---------------------------------------------------------------------------------------

    def result(self, function: FunctionValue, effects: dict[str, Any]) -> dict[str, Any] | None:
        """The merged runs: "r" the result, "w" what is set on arguments. None when it cannot be evaluated."""
        kwarg = function.node.args.kwarg.arg if function.node.args.kwarg else None
        plain = [name for name in parameters(function) if name not in effects and name != kwarg]
        knobs: dict[str, list[Any]] = {name: choices(function, name) for name in plain}
        knobs.update(compared_attributes(function, effects))
        self.world.watched = {}
        first = self.run(function, {}, effects, plain, ())
        variables = sorted(set(self.world.watched or {}) - PROCESS)
        self.world.watched = None
        if first is not None and variables:
            first = self.run(function, {}, effects, plain, variables)
        if first is None:
            return None
        runs = [first]
        tried: list[dict[str, Any]] = []

        def go_through() -> None:
            for fixed in settings(function, knobs):
                run = self.run(function, fixed, effects, plain, variables) if fixed not in tried else None
                tried.append(fixed)
                if run is not None:
                    runs.append(run)

        if variables:
            knobs["%"] = [None]
        go_through()
        if any("GPU" in canonical(tree) for _, tree in runs):
            knobs["@gpu"] = sorted(GPU_FACTS)
            go_through()
        return self._merged(runs)

    def run(
        self,
        function: FunctionValue,
        fixed: dict[str, Any],
        effects: dict[str, Any],
        plain: list[str],
        variables: Sequence[str],
    ) -> Run | None:
        """One run, and one for each section that may hold no object: only what they agree on is kept."""
        whole = self.run_once(function, fixed, effects, plain, variables, None)
        for name, paths in effects.items():
            for section in OPTIONAL:
                if whole is not None and any(path.startswith(f"{section}.") for path in paths):
                    other = self.run_once(function, fixed, effects, plain, variables, (name, section))
                    whole = _agreed(whole, other, (name, section)) if other is not None else None
        return whole

    def _merged(self, runs: list[Run]) -> dict[str, Any]:
        results = [(c, node["r"]) for c, node in runs]
        made: dict[str, Any] = {"r": self._top(results)}
        passed = [(c, node) for c, node in runs if not (isinstance(node["r"], dict) and "!" in node["r"])]
        for name in {name for _, node in runs for name in node["w"]}:
            paths = list(dict.fromkeys(path for _, node in runs for path in node["w"].get(name, ())))
            made.setdefault("w", {})[name] = {
                path: merge([(c, node["w"].get(name, {}).get(path, KEEP)) for c, node in passed], self._default) for path in paths
            }
        return made

    def _top(self, runs: list[Run]) -> Any:
        raised = [(c, node) for c, node in runs if isinstance(node, dict) and "!" in node]
        other = [(c, node) for c, node in runs if not (isinstance(node, dict) and "!" in node)]
        if not other:
            return raised[0][1]
        merged = merge(other, self._default)
        if not raised:
            return merged
        return {"c": [*[[c, node] for c, node in sorted(raised, key=lambda run: -len(run[0]))], [{}, merged]]}

    def _default(self, cls: str, attribute: str) -> Any:
        value = self.class_of(cls)
        return self.encoder.defaults(value).get(attribute, KEEP) if value is not None else KEEP

    def class_of(self, reference: str) -> Any:
        module, _, name = reference.partition(":")
        found: Any = self.machine.modules.find(module)
        for step in name.split("."):
            found = found.lookup(step) if hasattr(found, "lookup") else found.namespace.get(step)
        return found

    # --- one run ------------------------------------------------------------------------------------------

    def run_once(
        self,
        function: FunctionValue,
        fixed: dict[str, Any],
        effects: dict[str, Any],
        plain: list[str],
        variables: Sequence[str],
        without: tuple[str, str] | None,
    ) -> Run | None:
        """Call with stand-ins, but for what is fixed. None when it cannot be evaluated.

        `without`: (parameter, section) that holds no object.
        """
        machine, world = self.machine, self.world
        marks: dict[int, Any] = {}
        arguments: dict[str, Any] = {}
        for name in plain:
            value = fixed.get(name, MISSING)
            if isinstance(value, AnyOf):
                value = machine.new_instance(value.cls)
                value.attrs.update({field: Unknown(f"{field} of the argument {name}") for field in value.cls.field_map})
            arguments[name] = value if value is not MISSING else Unknown(f"the argument {name}")
            if value is MISSING or isinstance(value, Instance):
                marks[id(arguments[name])] = {"$": name}
        shadows: dict[str, Instance] = {}
        for name, paths in effects.items():
            shadow = shadows[name] = self._shadow(name, paths, without[1] if without is not None and without[0] == name else None)
            for key, value in fixed.items():
                if key.partition(".")[0] == name:
                    shadow.attrs[key.partition(".")[2]] = value.sample if isinstance(value, Other) else value
            marks[id(shadows[name])] = {"$": name}
            arguments[name] = shadows[name]
        world.gpu = fixed.get("@gpu")
        world.env_known = "%" in fixed
        world.env = {} if world.env_known else {name: Unknown(f"the environment variable {name}") for name in variables}
        only = {p.arg for p in function.node.args.posonlyargs}
        args = [arguments[p.arg] for p in function.node.args.posonlyargs if p.arg in arguments]
        kwargs = {name: value for name, value in arguments.items() if name not in only}
        writes: dict[str, Any] = {}

        def evaluate() -> Any:
            try:
                result: Any = call(machine, function, args, kwargs, None, machine_frame(machine))
                writes.update({name: self._writes(shadows[name], paths, marks) for name, paths in effects.items()})
                return self.encoder.node(result, marks, sharing=False)
            except Raised as raised:
                return {"!": [exception_name(raised.value), "megatron-bridge itself raises it"]}

        mark = self.reset()
        try:
            node = evaluate()
        except (BudgetExceeded, NeedFork, StopEvaluation, RecursionError):
            machine.undo(mark)
            node = self._way_by_way(evaluate) if not effects else None
            if node is None:
                return None
        finally:
            machine.undo(mark)
            world.gpu, world.env, world.env_known = None, {}, False
        conditions = {name: self._condition(value) for name, value in fixed.items() if name != "%"}
        if "%" in fixed:
            conditions.update({f"%{name}": None for name in variables})
        return conditions, {"r": node, "w": writes}

    def _condition(self, value: Any) -> Any:
        if isinstance(value, Other):
            return {"other": list(value.than)}
        return {"isa": reference(value.cls)} if isinstance(value, AnyOf) else self.encoder.node(value)

    def _way_by_way(self, evaluate: Callable[[], Any]) -> Any:
        """What all ways through a function agree on, each with other outcomes of its unknown conditions.

        None when there are too many, or none of them can be evaluated.
        """
        machine = self.machine
        nodes: list[Any] = []
        tried = 0
        pending: list[list[bool]] = [[]]
        while pending:
            decisions = pending.pop(0)
            mark = self.reset()
            machine.path_decisions = decisions
            try:
                nodes.append(evaluate())
            except (BudgetExceeded, NeedFork, StopEvaluation, RecursionError):
                pass  # the way that a run of mblint takes first is among those that can be evaluated
            finally:
                taken = [choice for _, choice, _ in machine.path_taken]
                machine.path_decisions = None
                machine.undo(mark)
            tried += 1
            if tried > MOST_WAYS:
                return None
            pending += [[*taken[:index], not taken[index]] for index in range(len(decisions), len(taken))]
        kept = [node for node in nodes if not (isinstance(node, dict) and "!" in node)] or nodes
        return None if not kept else agreed(kept, "a condition that is not known decides it", self._default)

    def reset(self) -> int:
        machine = self.machine
        machine.phase, machine.go_on = 0, False
        machine.depth, machine.speculation = 0, 0
        machine.begin()
        machine.handlers = []
        machine.failures.clear()
        machine.undecided.clear()
        machine.path_decisions, machine.path_taken = None, []
        return machine.mark()

    def _shadow(self, name: str, paths: list[str], without: str | None) -> Instance:
        """An object of which nothing is known, with one inside wherever something is changed below it."""
        made = self.machine.new_instance(None, f"an attribute of the argument {name}")
        for path in paths:
            owner = made
            for step in path.split(".")[:-1]:
                if owner is made and step == without:
                    owner.attrs[step] = Unknown(f"the section {step}")
                    break
                inner = owner.attrs.get(step)
                if not isinstance(inner, Instance):
                    inner = owner.attrs[step] = self.machine.new_instance(None, f"an attribute of the argument {name}")
                owner = inner
        return made

    def _writes(self, shadow: Instance, paths: list[str], marks: dict[int, Any]) -> dict[str, Any]:
        """Path -> node of what was set. What is changed where it is the run does not see: not known."""
        found: dict[str, Any] = {}

        def walk(owner: Instance, prefix: str) -> None:
            for name, value in owner.attrs.items():
                if name in owner.origin:
                    found[f"{prefix}{name}"] = self.encoder.node(value, marks, sharing=False)
                elif isinstance(value, Instance):
                    walk(value, f"{prefix}{name}.")

        walk(shadow, "")
        for path in paths:
            if path.endswith(CHANGED):
                found[path[:-1]] = unknown_node("it may be changed by a function that is not evaluated")
        return found


def _agreed(run: Run, other: Run, without: tuple[str, str]) -> Run:
    """What two runs under the same conditions agree on; below the section that one lacks, the other knows."""
    conditions, tree = run
    name, section = without
    result = tree["r"] if canonical(tree["r"]) == canonical(other[1]["r"]) else unknown_node(f"it depends on {section}")
    writes: dict[str, Any] = {}
    for parameter in {**tree["w"], **other[1]["w"]}:
        ours, theirs = tree["w"].get(parameter, {}), other[1]["w"].get(parameter, {})
        table = writes[parameter] = {}
        for path in {**ours, **theirs}:
            one, two = ours.get(path, KEEP), theirs.get(path, KEEP)
            below = parameter == name and path.startswith(f"{section}.")
            table[path] = one if below or canonical(one) == canonical(two) else unknown_node(f"it depends on {section}")
    return conditions, {"r": result, "w": writes}
