"""From a launch's description to a resolved launch on the heap, and back."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.codec import decode
from mblint.evaluate.errors import BudgetExceeded, Raised, StopEvaluation
from mblint.evaluate.machine import PHASE_OVERRIDE, PHASE_RECIPE, exception_name, exception_text
from mblint.evaluate.objects import set_attribute
from mblint.evaluate.operators import machine_frame
from mblint.evaluate.site import Site, SourceSite
from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.evaluate.values import MISSING, ClassValue, External, FunctionValue, Instance
from mblint.launch.entry import is_training
from mblint.launch.naming import gpu_of, world_size_of
from mblint.launch.overrides import CliOverride, Skipped
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.session import Session
from mblint.launch.spec import LaunchSpec
from mblint.read.shell import HOLE
from mblint.read.span import Span


@dataclass(frozen=True)
class Launch:
    """What a launch is made of. `recipe` is `module:function`; None stands for a plain GPT config.

    `set` values win over the recipe, as if assigned after it returned; encoded values are understood. `env` given is
    all there is; None is unknown. `world_size` and `gpu` None are taken from the recipe's name where it says them.
    """

    recipe: str | None
    id: str = ""
    set: Mapping[str, Any] = field(default_factory=dict)
    overrides: Sequence[str | CliOverride] = ()
    files: Sequence[str] = ()
    world_size: int | None = None
    gpu: str | None = None
    env: Mapping[str, Any] | None = None
    set_by: str = "--set"
    spec: LaunchSpec | None = None
    """What a script or YAML file says of the launch; its overrides and steps are applied before `set`."""
    env_known: bool = True
    """With `env` given: whether nothing else is set."""
    title: str = ""
    """What people call the launch, where that is not its recipe's name: a row of the settings, a line of a list."""

    @property
    def name(self) -> str:
        """The recipe, or what describes the launch."""
        return self.id if self.spec is not None else self.recipe or self.id or "plain"

    @property
    def label(self) -> str:
        """What reports call the launch."""
        return f"{self.title} ({self.name})" if self.title and self.title != self.name else self.name


class CannotEvaluate(Exception):
    """The recipe raises, or could not be evaluated: `span` is the place, the text says why."""

    def __init__(self, message: str, span: Span | None, raises: bool = False, trace: Any = None, aside: bool = False) -> None:
        """`aside`: it is nobody's mistake, the launch is of a kind that cannot be followed."""
        super().__init__(message)
        self.aside = aside
        self.message = message
        self.span = span
        self.raises = raises
        self.trace = trace


MAX_PATHS = 8


def find_recipe(session: Session, name: str) -> Any:
    """The function of `module:function` (or `module.function`). Raises CannotEvaluate."""
    module_name, colon, function = name.partition(":")
    if not colon:
        module_name, _, function = name.rpartition(".")
    module = session.modules.find(module_name)
    if module is None:
        raise CannotEvaluate(f"module {module_name} was not found in the project or in the upstream source", None)
    value = module.lookup(function)
    if isinstance(value, FunctionValue) or callable(getattr(value, "call", None)):
        return value
    if value is MISSING:
        near = _closest(function, getattr(module, "binders", {}))
        raise CannotEvaluate(f"{module_name} has no function {function}" + (f"; did you mean {near}?" if near else ""), None)
    raise CannotEvaluate(f"{name} is not a function", None)


def _closest(name: str, names: Any) -> str | None:
    from mblint.ruleset.suggest import closest

    return closest(name, list(names))


def _call_recipe(session: Session, function: FunctionValue, decisions: list[bool], given: dict[str, Any] | None = None) -> Instance:
    machine = session.machine
    machine.phase, machine.go_on = PHASE_RECIPE, False
    machine.depth, machine.speculation = 0, 0
    machine.handlers = []
    machine.failures.clear()
    machine.undecided.clear()
    machine.path_decisions = decisions
    machine.path_taken = []
    args, kwargs = _unknown_arguments(function, given or {})
    handed, world = session.handed, session.world
    program = isinstance(function.node, ast.FunctionDef) and is_training(function.module.tree, function.node)
    if program:
        session.program_folders = [*session.program_folders, os.path.dirname(function.module.path)]
        world.argv = world.argv if world.argv is not None else []
    try:
        machine.begin(function.module.path)
        result = call(machine, function, args, kwargs, None, machine_frame(machine))
    except Raised as raised:
        where = _project_place(session, raised.site, raised.trace)
        implicit = raised.guards is not None
        text = f"{exception_name(raised.value)}: {exception_text(raised.value)}"
        if any(type(value) is Unknown for value in (*args, *kwargs.values())):
            # With arguments that nobody knows it is no recipe by itself, and what it says of them is no error.
            raise CannotEvaluate(f"does not return a ConfigContainer: with unknown arguments it raises {text}", where) from None
        raise CannotEvaluate(
            f"the recipe raises {text}" if not implicit else f"building the config raises {text}", where, True, raised.trace
        ) from None
    except BudgetExceeded as error:
        raise CannotEvaluate(f"the recipe was not evaluated to its end: {error}", _definition(session, function)) from None
    except (RecursionError, StopEvaluation):
        raise CannotEvaluate("the recipe was not evaluated to its end: nested too deeply", _definition(session, function)) from None
    finally:
        machine.path_decisions = None
        machine.depth = 0
    if handed.config is not None and not (isinstance(result, Instance) and result.cls is not None and is_container(result.cls)):
        result = handed.config
    if program and isinstance(result, Unknown):
        raise CannotEvaluate(f"the config that it trains with is not known: {result.reason}", _definition(session, function))
    if program and result is None:
        raise CannotEvaluate("it hands no config to a trainer that could be followed", _definition(session, function))
    if not isinstance(result, Instance) or result.cls is None or not is_container(result.cls):
        reason = result.reason if isinstance(result, (Unknown, Instance)) and result.reason else "it returns something else"
        raise CannotEvaluate(f"does not return a ConfigContainer: {reason}", _definition(session, function))
    return result


def is_container(cls: ClassValue) -> bool:
    """Whether a class is upstream's ConfigContainer or derives from it."""
    return any(isinstance(base, ClassValue) and base.name == "ConfigContainer" for base in cls.cached_mro)


def _unknown_arguments(function: FunctionValue, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Unknown values for parameters without default, where the launch does not give them."""
    node = getattr(function, "node", None)
    if node is None:
        return [], dict(given)
    arguments = node.args
    names = [a.arg for a in [*arguments.posonlyargs, *arguments.args]]
    required = len(names) - len(function.defaults)
    args: list[Any] = [
        given[a.arg] if a.arg in given else _parameter(function, a) for a in [*arguments.posonlyargs, *arguments.args][:required]
    ]
    kwargs = {a.arg: _parameter(function, a) for a in arguments.kwonlyargs if a.arg not in function.kw_defaults}
    kwargs.update({name: value for name, value in given.items() if name not in names[:required]})
    return args, kwargs


def _parameter(function: FunctionValue, argument: ast.arg) -> Any:
    """A parameter without default: its only Literal value, if the annotation has one; else unknown."""
    annotation = argument.annotation
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value).rpartition(".")[2] == "Literal":
        if isinstance(annotation.slice, ast.Constant):
            return annotation.slice.value
    return Unknown(f"the parameter {argument.arg} has no default", Site(function.module, argument).span())


def _definition(session: Session, function: Any) -> Span | None:
    if not isinstance(function, FunctionValue) or not session.is_shown(function.module.path):
        return None
    node = function.node
    span = Site(function.module, node).span()
    return Span(span.path, span.line, span.column, span.line, span.column + len("def ") + len(function.name))


def _project_place(session: Session, site: Any, trace: Any) -> Span | None:
    """The nearest line of the project on the way to a site."""
    if isinstance(site, Site) and session.in_project(site.module.path):
        return site.span()
    while trace is not None:
        where, trace = trace
        if isinstance(where, Site) and session.in_project(where.module.path):
            return where.span()
    return site.span() if isinstance(site, Site) and session.is_shown(site.module.path) else None


def parent_of(session: Session, recipe: str, child: ResolvedLaunch) -> ResolvedLaunch | None:
    """The recipe that a recipe starts from: the first public function it calls that returns a ConfigContainer.

    Evaluated without arguments, as it would be launched; it stays on the heap as long as the child.
    """
    function = find_recipe(session, recipe)
    if not isinstance(function, FunctionValue):
        return None
    for callee in _called_names(function.node):
        value = _named_function(session, function, callee)
        if not isinstance(value, FunctionValue) or value.name.startswith("_") or value is function:
            continue
        if not value.name.endswith("_config") and "ConfigContainer" not in _returns(value):
            continue
        machine = session.machine
        saved = (machine.phase, machine.go_on, machine.path_taken)
        world = session.world
        size, gpu = world.world_size, world.gpu
        try:
            cfg = _call_recipe(session, value, [])
            world.world_size, world.gpu = world_size_of(value.name), gpu_of(value.name)
            return ResolvedLaunch(session, cfg, f"{value.module.name}:{value.name}", _definition(session, value), child.env_known)
        except CannotEvaluate:
            continue
        finally:
            machine.phase, machine.go_on, machine.path_taken = saved
            world.world_size, world.gpu = size, gpu
    return None


@lru_cache(maxsize=512)
def _called_names(node: ast.AST) -> tuple[ast.Name | ast.Attribute, ...]:
    """What a function calls by a name or a dotted name, in the order of `ast.walk`."""
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    return tuple(callee for callee in calls if isinstance(callee, (ast.Name, ast.Attribute)))


def _returns(function: FunctionValue) -> str:
    returns = getattr(function.node, "returns", None)
    return ast.unparse(returns) if returns is not None else ""


def _named_function(session: Session, function: FunctionValue, callee: ast.expr) -> Any:
    """A function that a name or a dotted name of the module stands for."""
    if isinstance(callee, ast.Name):
        return function.module.lookup(callee.id)
    if isinstance(callee, ast.Attribute) and isinstance(callee.value, ast.Name):
        module = function.module.lookup(callee.value.id)
        return module.lookup(callee.attr) if hasattr(module, "lookup") else None
    return None


def plain_config(session: Session) -> Instance:
    """A ConfigContainer with a GPT model provider and every section at upstream's field defaults."""
    machine = session.machine
    frame = machine_frame(machine)
    config = "megatron.bridge.training.config"

    def make(module: str, name: str, **given: Any) -> Any:
        cls = session.modules.import_from(module, name)
        if not isinstance(cls, ClassValue):
            return machine.new_instance(None, f"{name} was not found")
        machine.speculation += 1  # fields without default stay unset: that is no failure here
        try:
            return call(machine, cls, [], given, None, frame)
        finally:
            machine.speculation -= 1

    machine.phase, machine.go_on = PHASE_RECIPE, False
    cls = session.modules.import_from(config, "ConfigContainer")
    if not isinstance(cls, ClassValue):
        raise CannotEvaluate("the upstream source has no ConfigContainer", None)
    sections: dict[str, Any] = {
        "model": make("megatron.bridge.models.gpt_provider", "GPTModelProvider"),
        "train": make(config, "TrainingConfig"),
        "optimizer": make(config, "OptimizerConfig"),
        "scheduler": make(config, "SchedulerConfig"),
        "dataset": make(config, "GPTDatasetConfig", seq_length=1024),
        "logger": make(config, "LoggerConfig"),
        "tokenizer": make(config, "TokenizerConfig"),
        "checkpoint": make(config, "CheckpointConfig"),
        "ddp": make(config, "DistributedDataParallelConfig"),
    }
    machine.speculation += 1
    try:
        result = call(machine, cls, [], sections, None, frame)
    finally:
        machine.speculation -= 1
    for section in sections.values():
        if isinstance(section, Instance):
            section.origin.clear()
    result.origin.clear()
    return result  # type: ignore[no-any-return]


@contextmanager
def on_heap(session: Session, launch: Launch, decisions: list[bool] | None = None) -> Iterator[ResolvedLaunch]:
    """A launch, evaluated up to its overrides, for as long as the block runs; every effect is taken back after it.

    Raises CannotEvaluate.
    """
    machine = session.machine
    recipes = session.recipes
    recipes.open += 1
    machine.speculation, machine.depth, machine.handlers = 0, 0, []
    world = session.world
    name = launch.recipe or "plain"
    function_name = re.split(r"[:.]", name)[-1]
    saved = (world.world_size, world.gpu, world.env, world.env_known)
    argv = world.argv
    world.world_size = launch.world_size if launch.world_size is not None else world_size_of(function_name)
    world.gpu = launch.gpu if launch.gpu is not None else gpu_of(function_name)
    world.env = dict(launch.env or {})
    world.env_known = launch.env is not None and launch.env_known
    _give_words(session, launch)
    key = _held_key(session, launch, decisions or [])
    held = recipes.find(key)
    mark = machine.mark()
    try:
        span = body = None
        condition = None
        if launch.recipe is None:
            cfg = _without_recipe(session, launch)
        else:
            function = find_recipe(session, launch.recipe)
            span = _definition(session, function)
            body = Site(function.module, function.node).span() if span is not None else None
            if held is not None:
                cfg = recipes.resume(held)
            else:
                cfg = _call_recipe(session, function, decisions or [], _given(session, launch))
                mark = recipes.keep(key, mark, cfg)
            condition = _condition(session) if machine.path_taken else None
        machine.phase, machine.go_on = PHASE_OVERRIDE, False
        skipped = apply_overrides(session, cfg, launch) if launch.spec is None else _apply_spec(session, cfg, launch)
        if launch.spec is not None:
            span = launch.spec.recipe_span or launch.spec.span or span
        apply_set(session, cfg, launch)
        resolved = ResolvedLaunch(session, cfg, launch.name, span, world.env_known)
        resolved.skipped = (*session.handed.skipped, *skipped)
        resolved.body = body
        if launch.spec is not None:
            resolved.exports = {key: given.span for key, given in launch.spec.env.items() if given.span is not None}
        resolved.condition = condition
        yield resolved
    finally:
        recipes.open -= 1
        machine.undo(mark)
        machine.phase = PHASE_RECIPE
        world.world_size, world.gpu, world.env, world.env_known = saved
        world.argv = argv


def _give_words(session: Session, launch: Launch) -> None:
    """Start the program of a launch with its words; one that nobody starts gets none, and a recipe has no command line."""
    world, handed = session.world, session.handed
    handed.clear()
    spec = launch.spec
    started = spec is not None and spec.program is not None and launch.recipe is not None
    world.argv = [word for word, _ in spec.argv] if spec is not None and started else None
    handed.words = {id(word): override for word, override in spec.argv} if spec is not None and started else {}
    folders = [os.path.dirname(spec.span.path)] if spec is not None and spec.span is not None else []
    session.program_folders = folders


def _held_key(session: Session, launch: Launch, decisions: list[bool]) -> tuple[Any, ...] | None:
    """All that the config of a launch's recipe depends on, beside the sources; None where that cannot be compared."""
    world = session.world
    if (
        launch.recipe is None
        or world.argv is not None
        or _given(session, launch)
        or not all(isinstance(value, str) for value in world.env.values())
    ):
        return None
    return (launch.recipe, tuple(decisions), world.world_size, world.gpu, world.env_known, tuple(sorted(world.env.items())))


def _without_recipe(session: Session, launch: Launch) -> Instance:
    if launch.spec is None:
        return plain_config(session)
    from mblint.launch.from_spec import config_of

    cfg = config_of(session, launch.spec)
    if cfg is None:
        named = f"no recipe is called {launch.spec.recipe}" if launch.spec.recipe else "it names no recipe"
        raise CannotEvaluate(
            f"{named}, so the launch is not judged", launch.spec.recipe_span or launch.spec.span, aside=not launch.spec.recipe
        )
    return cfg


def _given(session: Session, launch: Launch) -> dict[str, Any]:
    """Keyword arguments of the recipe that the launch gives."""
    if launch.spec is None or not launch.spec.recipe_kwargs:
        return {}
    from mblint.launch.from_spec import fitting_arguments

    return fitting_arguments(find_recipe(session, launch.recipe or ""), launch.spec)


def _apply_spec(session: Session, cfg: Instance, launch: Launch) -> tuple[Skipped, ...]:
    from mblint.launch.from_spec import Refused, apply_spec, is_benchmark

    assert launch.spec is not None
    absent = launch.spec.absent
    if absent is not None:
        shown = absent.path.replace(HOLE, "?")
        raise CannotEvaluate(f"{shown}, which it merges, is not at hand, so the launch is not judged", absent.span, aside=True)
    try:
        target = apply_spec(session, cfg, launch.spec, _layers_of(session, launch.files), is_benchmark(launch.recipe))
    except Refused as refused:
        raise CannotEvaluate(f"upstream refuses the overrides: {refused.reason}", refused.span, raises=True) from None
    return tuple(target.skipped)


def _condition(session: Session) -> str | None:
    """The unknown branches that were taken, in words."""
    words = []
    for site, choice, _ in session.machine.path_taken:
        text = ast.unparse(site.node) if isinstance(site, Site) else "?"
        words.append(text if choice else f"not ({text})")
    return " and ".join(dict.fromkeys(words)) or None


def apply_overrides(session: Session, cfg: Instance, launch: Launch) -> tuple[Skipped, ...]:
    """Merge the YAML files, then the `key=value` arguments, as upstream's own machinery does; the keys that it skips.

    Raises CannotEvaluate where upstream refuses them.
    """
    if not launch.files and not launch.overrides:
        return ()
    from mblint.launch.heap_node import HeapNode
    from mblint.launch.overrides import evaluate_overrides, write

    layers = _layers_of(session, launch.files)
    given = [item if isinstance(item, CliOverride) else CliOverride(item) for item in launch.overrides]
    node = HeapNode(session, cfg)
    world = session.world
    result = evaluate_overrides(node, layers, given, env=world.env, env_known=world.env_known)
    if result.failed is not None:
        raise CannotEvaluate(f"upstream refuses the overrides: {result.failed.reason}", result.failed.span, raises=True)
    write(node, result)
    return tuple(result.skipped)


def _layers_of(session: Session, files: Sequence[str]) -> list[Any]:
    """The YAML files as layers to merge. Raises CannotEvaluate."""
    if not files:
        return []
    from mblint.launch.omega import OmegaError
    from mblint.launch.yaml_tree import load_layer
    from mblint.read.yaml import YamlError

    layers = []
    for name in files:
        try:
            layers.append(load_layer(session.data_of(name).decode("utf-8-sig"), name))
        except (OSError, UnicodeDecodeError) as error:
            raise CannotEvaluate(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}", Span(name, 1)) from None
        except (YamlError, OmegaError) as error:
            raise CannotEvaluate(f"{name}: {error}", getattr(error, "span", None) or Span(name, 1), raises=True) from None
    return layers


def apply_set(session: Session, cfg: Instance, launch: Launch) -> None:
    """Assign the `set` values. `section.__class__` makes a section that is null. Raises CannotEvaluate."""
    machine = session.machine
    frame = machine_frame(machine)
    ordered = sorted(launch.set.items(), key=lambda item: not item[0].endswith(".__class__"))
    for key, data in ordered:
        site = SourceSite(None, f"{launch.set_by} {key}")
        parts = key.split(".")
        owner: Any = cfg
        if parts[-1] == "__class__":
            _make_section(session, cfg, parts[:-1], str(data), site, frame)
            continue
        for part in parts[:-1]:
            held = owner.attrs.get(part) if isinstance(owner, Instance) else owner.get(part) if isinstance(owner, dict) else None
            if held is None:
                raise CannotEvaluate(f"{launch.set_by} {key}: {part} is null or does not exist in this config", None)
            owner = held
        value = field_value(session, owner, parts[-1], data)
        if isinstance(owner, dict):
            machine.touch(owner)
            owner[parts[-1]] = value
        else:
            set_attribute(machine, owner, parts[-1], value, site, frame)


def apply_changes(session: Session, cfg: Instance, changes: Mapping[str, Any]) -> None:
    """Carry out a fix's changes on the heap: new values by key; ABSENT takes a setting back to its class's default.

    Raises CannotEvaluate for a key whose section is not there.
    """
    machine = session.machine
    frame = machine_frame(machine)
    for key, value in changes.items():
        if _export(session, key, value):
            continue
        *sections, name = key.split(".")
        owner: Any = cfg
        for part in sections:
            held = owner.attrs.get(part) if isinstance(owner, Instance) else None
            if held is None and part == "env_vars":
                held = machine.born({})
                set_attribute(machine, owner, part, held, None, frame)
            if not isinstance(held, (Instance, dict)):
                raise CannotEvaluate(f"{key}: there is no {part}", None)
            owner = held
        if isinstance(owner, dict):
            machine.touch(owner)
            if value is ABSENT or value is None:
                owner.pop(name, None)
            else:
                owner[name] = value
        elif value is ABSENT:
            _reset(session, owner, name)
        else:
            set_attribute(machine, owner, name, field_value(session, owner, name, value), SourceSite(None, "a fix"), frame)


def _export(session: Session, key: str, value: Any) -> bool:
    """Change a variable that the launcher exports, which wins over the recipe's `env_vars`; False where it exports none."""
    section, _, name = key.partition(".")
    env = session.world.env
    if section != "env_vars" or name not in env:
        return False
    others = {other: held for other, held in env.items() if other != name}
    session.world.env = others if value is ABSENT or value is None else {**others, name: value}
    return True


def _reset(session: Session, owner: Instance, name: str) -> None:
    """Back to the default of the class; an attribute without one goes away."""
    machine = session.machine
    field = owner.cls.field_map.get(name) if owner.cls is not None else None
    if field is not None and (field.default is not MISSING or field.factory is not MISSING):
        default = field.default
        if field.factory is not MISSING:
            default = call(machine, field.factory, [], {}, None, machine_frame(machine))
        machine.write(owner, name, default, None, None)
    elif name in owner.attrs:
        machine.trail.append((owner.attrs, name, owner.attrs[name]))
        del owner.attrs[name]
    if name in owner.origin:
        machine.trail.append((owner.origin, name, owner.origin[name]))
        del owner.origin[name]


def _make_section(session: Session, cfg: Instance, path: list[str], class_name: str, site: Any, frame: Any) -> None:
    from mblint.evaluate.codec import resolve

    cls = resolve(session.machine, class_name)
    owner: Any = cfg
    for part in path[:-1]:
        owner = owner.attrs.get(part) if isinstance(owner, Instance) else None
    if not isinstance(owner, Instance):
        raise CannotEvaluate(f"{'.'.join(path)}.__class__: there is no such section", None)
    if isinstance(cls, ClassValue):
        session.machine.speculation += 1
        try:
            made = call(session.machine, cls, [], {}, None, frame)
        finally:
            session.machine.speculation -= 1
        if isinstance(made, Instance):
            made.origin.clear()
    else:
        made = session.machine.new_instance(None, f"{class_name} was not found")
    set_attribute(session.machine, owner, path[-1], made, site, frame)


def field_value(session: Session, owner: Any, name: str, data: Any) -> Any:
    """Decode a given value for a field: a plain string may stand for a dtype, a function or an enum member."""
    from mblint.launch.providers import enum_or

    if isinstance(data, dict) and set(data) == {"enum"} and isinstance(owner, Instance):
        return enum_or(session.machine, owner.cls, name, data)
    value = decode(session.machine, data)
    if not isinstance(value, str) or not isinstance(owner, Instance):
        return value
    current = owner.attrs.get(name)
    return named_value(session, owner, name, value, current)


def named_value(session: Session, owner: Instance, name: str, text: str, current: Any) -> Any:
    """What a string means where the field holds a dtype, an activation function or an enum member."""
    from mblint.evaluate.library.torch import DTYPES
    from mblint.evaluate.values import EnumMember

    if isinstance(current, EnumMember):
        members = current.cls.enum_members
        return members.get(text, next((m for m in members.values() if m.value == text), text))
    if name.endswith("dtype") or (isinstance(current, External) and current.name in DTYPES):
        dotted = text if text.startswith("torch.") else f"torch.{_DTYPE_NAMES.get(text, text)}"
        return External(dotted) if dotted in DTYPES else text
    if name == "activation_func" and not isinstance(current, str):
        known = _ACTIVATIONS.get(text)
        if known is None:
            return text
        from mblint.evaluate.codec import resolve

        return resolve(session.machine, known)
    return text


_DTYPE_NAMES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "float": "float32", "half": "float16", "fp8": "float8_e4m3fn"}
_ACTIVATIONS = {
    "silu": "torch.nn.functional.silu",
    "gelu": "torch.nn.functional.gelu",
    "relu": "torch.nn.functional.relu",
    "quick_gelu": "megatron.core.activations.quick_gelu",
    "squared_relu": "megatron.core.activations.squared_relu",
}

__all__ = ["CannotEvaluate", "Launch", "find_recipe", "on_heap"]
