"""Launches that files describe (scripts, YAML), put on the evaluator's heap."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.codec import resolve
from mblint.evaluate.machine import PHASE_OVERRIDE
from mblint.evaluate.objects import get_attribute, set_attribute
from mblint.evaluate.operators import machine_frame
from mblint.evaluate.site import SourceSite
from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.evaluate.values import ClassValue, FunctionValue, Instance, Sites, TrackedDict
from mblint.launch.heap_node import HeapNode, construct_value
from mblint.launch.overrides import CliOverride, OverrideResult, Skipped, evaluate_overrides, write
from mblint.launch.plain import plain
from mblint.launch.runner_steps import Section, run_steps
from mblint.launch.session import Session
from mblint.launch.spec import LaunchSpec
from mblint.launch.symbols import Construct, Symbol
from mblint.read.span import Span

SHIPPED = ("megatron.bridge.recipes", "megatron.bridge.perf_recipes")


class Refused(Exception):
    """Upstream would not take what the file gives."""

    def __init__(self, reason: str, span: Span | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span


def recipe_of(session: Session, spec: LaunchSpec) -> str | None:
    """`module:function` of the recipe that a launch names; None when it is not found."""
    if spec.recipe is None:
        return None
    if ":" in spec.recipe:
        return spec.recipe
    head, _, function = spec.recipe.rpartition(".")
    if head:
        return f"{head}:{function}"
    for package in [*spec.modules, *SHIPPED]:
        for module in [package, *session.modules.submodules(package)]:
            value = session.modules.import_from(module, function)
            if isinstance(value, FunctionValue):
                return f"{value.module.name}:{value.name}"
    if spec.launcher == "performance" and function == spec.recipe:
        from mblint.launch.runner_flags import performance_fallback

        other = performance_fallback(spec, benchmark_names(session.upstream_roots))
        return recipe_of(session, replace(spec, recipe=other, launcher="plain")) if other is not None else None
    return None


@lru_cache(maxsize=4)
def benchmark_names(roots: tuple[str, ...]) -> tuple[str, ...]:
    """The functions of the performance recipes below some source folders, sorted; none where there is no source."""
    return _names(roots, "perf_recipes/*/*/*.py", r"^def (\w+_config)\(")


def shipped_names(roots: tuple[str, ...]) -> tuple[str, ...]:
    """The names of all recipes below some source folders, aliases included."""
    return tuple(
        name for package in ("recipes", "perf_recipes") for name in _names(roots, f"{package}/**/*.py", r"^(?:def )?(\w+_config)(?:\(| = )")
    )


def _names(roots: tuple[str, ...], files: str, pattern: str) -> tuple[str, ...]:
    """What a pattern finds in files of megatron-bridge, sorted."""
    names: set[str] = set()
    for root in roots:
        for path in Path(root).glob(f"megatron/bridge/{files}"):
            names.update(re.findall(pattern, path.read_text(encoding="utf-8", errors="replace"), re.M))
    return tuple(sorted(names))


def fitting_arguments(function: Any, spec: LaunchSpec) -> dict[str, Any]:
    """The keyword arguments that a launcher hands to a recipe, of those that the launch gives: runners of megatron-bridge
    look at the recipe's parameters (scripts/training/recipe_runner.py), others drop in silence what it does not take."""
    given = {name: held.value for name, held in spec.recipe_kwargs.items()}
    node = getattr(function, "node", None)
    if node is None:
        return given
    names = {argument.arg for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]}
    anything = node.args.kwarg is not None
    if spec.launcher == "unified" and "peft_scheme" in given and "peft_scheme" not in names:
        scheme = given.pop("peft_scheme")
        if "peft" in names or anything:
            given["peft"] = scheme
    if spec.lenient_kwargs and not anything:
        given = {name: value for name, value in given.items() if name in names}
    return given


def is_benchmark(recipe: str | None) -> bool:
    """Whether a recipe is one of the performance recipes, which runners treat in their own way."""
    return recipe is not None and ".perf_recipes." in recipe


class HeapTarget:
    """The config on the heap, as the steps of a runner change it."""

    def __init__(self, session: Session, cfg: Instance, spec: LaunchSpec, layers: Sequence[Any]) -> None:
        self.session = session
        self.cfg = cfg
        self.spec = spec
        self.layers = list(layers)
        self.skipped: list[Skipped] = []
        self.undecided: list[tuple[str, Unknown]] = []

    def _owner(self, key: str) -> tuple[Any, str]:
        *sections, name = key.split(".")
        owner: Any = self.cfg
        for part in sections:
            if isinstance(owner, Instance):
                owner = owner.attrs.get(part)
            elif isinstance(owner, dict):
                owner = owner.get(part)
        return owner, name

    def get(self, key: str) -> Any:
        owner, name = self._owner(key)
        if isinstance(owner, Unknown):
            return owner
        if isinstance(owner, dict):
            return plain(owner[name]) if name in owner else ABSENT
        if not isinstance(owner, Instance):
            return ABSENT
        machine = self.session.machine
        value = get_attribute(machine, owner, name, None, machine_frame(machine), MISSING_VALUE)
        if value is MISSING_VALUE:
            return ABSENT
        if isinstance(value, Instance):
            return HeapNode(self.session, value) if value.cls is not None else Unknown(value.reason)
        return plain(value)

    def set(self, key: str, value: Any, span: Span | None, by: str) -> None:
        owner, name = self._owner(key)
        if isinstance(owner, dict):
            self.session.machine.touch(owner)
            owner[name] = value
            if isinstance(owner, TrackedDict):
                owner.sites = Sites({**owner.sites, name: SourceSite(span, by)})
        elif isinstance(owner, Instance):
            HeapNode(self.session, owner, by).set(name, value, span)

    def call(self, function: str, arguments: Sequence[Any], into: str | None, by: str) -> None:
        machine = self.session.machine
        module, _, name = function.partition(":")
        found = resolve(machine, f"{module}.{name}")
        args = [self._argument(argument) for argument in arguments]
        result = call(machine, found, args, {}, None, machine_frame(machine))
        if into is not None:
            owner, attribute = self._owner(into)
            if isinstance(owner, Instance):
                made = result if type(result) is not Unknown else machine.new_instance(None, result.reason)
                set_attribute(machine, owner, attribute, made, SourceSite(self.spec.span, by), machine_frame(machine))

    def _argument(self, argument: Any) -> Any:
        if isinstance(argument, Section):
            owner, name = self._owner(argument.name) if argument.name else (None, "")
            return self.cfg if not argument.name else owner.attrs.get(name) if isinstance(owner, Instance) else None
        if isinstance(argument, (Construct, Symbol)):
            return HeapNode(self.session, self.cfg)._made("", argument)
        return argument

    def override(self, cli: Sequence[CliOverride]) -> None:
        """Files first, then the arguments, in one go as upstream does. Raises Refused."""
        world = self.session.world
        node = HeapNode(self.session, self.cfg, "override")
        layers, self.layers = self.layers, []
        result: OverrideResult = evaluate_overrides(
            node, layers, cli, env=world.env, env_known=world.env_known, foreign_resolvers=self.spec.foreign_resolvers
        )
        if result.failed is not None:
            raise Refused(result.failed.reason, result.failed.span)
        write(node, result)
        self.skipped += [skipped for skipped in result.skipped if skipped.key not in self.spec.quiet_keys]
        self.undecided += result.undecided


MISSING_VALUE = object()


def config_of(session: Session, spec: LaunchSpec) -> Instance | None:
    """The config of a launch that names no recipe: built from a serialized config, or around a model id."""
    from mblint.launch.plain_config import plain_config

    if spec.construct is not None:
        made = construct_value(session, spec.construct)
        return made if isinstance(made, Instance) else None
    if spec.model is None and not spec.assigns:
        return None
    cfg = plain_config(session)
    if spec.model is not None:
        cfg.attrs["model"] = _provider(session, spec.model.value)
    if spec.launcher in FILLS_IN:
        for section, held in cfg.attrs.items():
            if isinstance(held, Instance) and section != "model":
                cfg.attrs[section] = session.machine.new_instance(None, f"{spec.launcher} fills in what its file does not say")
    if spec.launcher in SEQUENCE_PARALLEL_OF_ITS_OWN and isinstance(model := cfg.attrs.get("model"), Instance):
        model.attrs["sequence_parallel"] = Unknown(f"{spec.launcher} chooses sequence_parallel where its file does not")
    return cfg


FILLS_IN = frozenset({"nemo-rl", "verl", "skyrl", "areal", "megatron-lm"})
"""Launchers that make the whole config themselves: of what their files leave open, no default of Megatron-Bridge holds."""

SEQUENCE_PARALLEL_OF_ITS_OWN = FILLS_IN - {"megatron-lm"}
"""Those that leave the model's fields at their defaults but this one: verl's default is on, SkyRL and AReaL derive it from the
tensor parallel size. Megatron-LM's option is off where it is not given, as the field is."""


def _provider(session: Session, hf_id: Any) -> Any:
    """The provider that AutoBridge gives for a model id."""
    machine = session.machine
    frame = machine_frame(machine)
    bridge = session.modules.import_from("megatron.bridge.models.conversion.auto_bridge", "AutoBridge")
    if not isinstance(bridge, ClassValue):
        return machine.new_instance(None, "the upstream source has no AutoBridge")
    made = call(machine, get_attribute(machine, bridge, "from_hf_pretrained", None, frame), [hf_id], {}, None, frame)
    provider = call(machine, get_attribute(machine, made, "to_megatron_provider", None, frame), [], {"load_weights": False}, None, frame)
    return provider if isinstance(provider, Instance) else machine.new_instance(None, "the model is not known")


def apply_spec(session: Session, cfg: Instance, spec: LaunchSpec, layers: Sequence[Any], benchmark: bool) -> HeapTarget:
    """Everything that the launch does to the config between the recipe and Bridge's own validation. Raises Refused."""
    machine = session.machine
    machine.phase, machine.go_on = PHASE_OVERRIDE, False
    target = HeapTarget(session, cfg, spec, [*spec.layers, *layers])
    run_steps(spec, target, benchmark)
    if target.layers:
        target.override(())
    for assign in spec.assigns:
        target.set(assign.key, assign.value, assign.span, f"{spec.launcher} option")
    return target
