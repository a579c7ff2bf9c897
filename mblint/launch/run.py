"""From a launch's description to a resolved launch on the heap, and back."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.errors import BudgetExceeded, Raised, StopEvaluation
from mblint.evaluate.machine import PHASE_OVERRIDE, PHASE_RECIPE, exception_name, exception_text
from mblint.evaluate.operators import machine_frame
from mblint.evaluate.site import Site
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, ClassValue, FunctionValue, Instance
from mblint.launch.branches import Way, condition_of, way_of
from mblint.launch.changes import apply_set
from mblint.launch.description import CannotEvaluate, Launch, UnknownKey
from mblint.launch.entry import is_training
from mblint.launch.naming import gpu_of, world_size_of
from mblint.launch.overrides import CliOverride, Skipped
from mblint.launch.plain_config import plain_config
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.session import Session
from mblint.read.span import Span


def find_recipe(session: Session, name: str) -> Any:
    """The function of `module:function` (or `module.function`). Raises CannotEvaluate."""
    module_name, colon, function = name.rpartition(":")  # the name of a file may hold one too
    if not colon:
        module_name, _, function = name.rpartition(".")
    if not module_name:
        found = _shipped(session, function)
        if found is None:
            raise CannotEvaluate(f"no recipe is called {name}; give package.module:function, or a shipped recipe's name", None)
        return find_recipe(session, found)
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


def _shipped(session: Session, name: str) -> str | None:
    """`module:function` of a shipped recipe."""
    from mblint.launch.from_spec import recipe_of
    from mblint.launch.spec import LaunchSpec

    return recipe_of(session, LaunchSpec("", recipe=name))


def _closest(name: str, names: Any) -> str | None:
    from mblint.ruleset.suggest import closest

    return closest(name, list(names))


def call_recipe(session: Session, function: FunctionValue, decisions: list[bool], given: dict[str, Any] | None = None) -> Instance:
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
    module, node = function.module, function.node
    program = isinstance(node, ast.FunctionDef) and is_training(module, node)
    alone = False
    if program:
        session.program_folders = [*session.program_folders, os.path.dirname(function.module.path)]
        alone = world.argv is None
        world.argv = world.argv if world.argv is not None else []
    try:
        machine.begin(function.module.path)
        result = call(machine, function, args, kwargs, None, machine_frame(machine))
    except Raised as raised:
        where = _project_place(session, raised.site, raised.trace)
        implicit = raised.guards is not None
        text = f"{exception_name(raised.value)}: {exception_text(raised.value)}"
        if alone:
            raise CannotEvaluate(f"started without arguments it raises {text}", where, aside=True) from None
        if any(type(value) is Unknown for value in (*args, *kwargs.values())):
            # With arguments that nobody knows it is no recipe by itself, and what it says of them is no error.
            raise CannotEvaluate(f"does not return a ConfigContainer: with unknown arguments it raises {text}", where) from None
        raise CannotEvaluate(
            f"the recipe raises {text}" if not implicit else f"building the config raises {text}", where, True, raised.trace
        ) from None
    except BudgetExceeded as error:
        raise CannotEvaluate(f"the recipe was not evaluated to its end: {error}", definition(session, function)) from None
    except (RecursionError, StopEvaluation):
        raise CannotEvaluate("the recipe was not evaluated to its end: nested too deeply", definition(session, function)) from None
    finally:
        machine.path_decisions = None
        machine.depth = 0
    if handed.config is not None and not (isinstance(result, Instance) and result.cls is not None and is_container(result.cls)):
        result = handed.config
    if program and isinstance(result, Unknown):
        raise CannotEvaluate(f"the config that it trains with is not known: {result.reason}", definition(session, function))
    if program and result is None:
        raise CannotEvaluate("it hands no config to a trainer that could be followed", definition(session, function))
    if not isinstance(result, Instance) or result.cls is None or not is_container(result.cls):
        reason = result.reason if isinstance(result, (Unknown, Instance)) and result.reason else "it returns something else"
        raise CannotEvaluate(f"does not return a ConfigContainer: {reason}", definition(session, function))
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


def definition(session: Session, function: Any) -> Span | None:
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
    function_name = launch.stated
    saved = (world.world_size, world.gpu, world.env, world.env_known)
    argv = world.argv
    world.world_size = launch.world_size if launch.world_size is not None else world_size_of(function_name)
    world.gpu = launch.gpu if launch.gpu is not None else gpu_of(function_name)
    world.env = dict(launch.env or {})
    world.env_known = launch.env is not None and launch.env_known
    _give_words(session, launch)
    mark = machine.mark()
    try:
        span = body = None
        try:
            _stop_if_refused(launch)
            key = _held_key(session, launch, decisions or [])
            held = recipes.find(key)
            mark = machine.mark()
            way: Way = ()
            if launch.recipe is None:
                cfg = _without_recipe(session, launch)
            else:
                function = find_recipe(session, launch.recipe)
                span = definition(session, function)
                body = Site(function.module, function.node).span() if span is not None else None
                if held is not None:
                    cfg = recipes.resume(held)
                else:
                    cfg = call_recipe(session, function, decisions or [], _given(session, launch))
                    # What a program handed to a trainer, and how, is not on the heap.
                    mark = recipes.keep(key if session.handed.config is None else None, mark, cfg)
                way = way_of(_way(session))
            machine.phase, machine.go_on = PHASE_OVERRIDE, False
            skipped = apply_overrides(session, cfg, launch) if launch.spec is None else _apply_spec(session, cfg, launch)
            if launch.spec is not None:
                span = launch.spec.recipe_span or launch.spec.span or span
            elif launch.place is not None and (span is None or not session.in_project(span.path)):
                span = launch.place
            try:
                apply_set(session, cfg, launch)
            except CannotEvaluate as problem:
                problem.span = problem.span or span
                raise
            resolved = ResolvedLaunch(session, cfg, launch.name, span, world.env_known)
            resolved.skipped = (*session.handed.skipped, *skipped)
            resolved.body = body
            if launch.spec is not None:
                resolved.exports = {key: given.span for key, given in launch.spec.env.items() if given.span is not None}
            resolved.way, resolved.condition = way, condition_of(way)
        except BudgetExceeded as error:  # also where its file has used up its time before this launch began
            raise CannotEvaluate(f"the launch was not evaluated to its end: {error}", span or launch.place) from None
        yield resolved
    finally:
        recipes.open -= 1
        machine.end()
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


def _stop_if_refused(launch: Launch) -> None:
    """Raises CannotEvaluate where the launcher itself stops, before it looks at any recipe."""
    if launch.spec is not None and launch.spec.refused is not None:
        reason, span = launch.spec.refused
        raise CannotEvaluate(f"upstream refuses the overrides: {reason}", span, raises=True)


def _without_recipe(session: Session, launch: Launch) -> Instance:
    if launch.spec is None:
        return plain_config(session)
    from mblint.launch.from_spec import config_of, shipped_names
    from mblint.launch.runner_flags import BENCHMARK

    cfg = config_of(session, launch.spec)
    if cfg is None:
        named, aside = "it names no recipe", not launch.spec.recipe
        if launch.spec.launcher == "performance" and not session.modules.submodules(BENCHMARK):
            # Before 0.6 the performance recipes were files beside their runner.
            named, aside = f"this release of megatron-bridge has no {BENCHMARK}", True
        elif launch.spec.recipe:
            near = _closest(launch.spec.recipe, shipped_names(session.upstream_roots))
            named = f"no recipe is called {launch.spec.recipe}" + (f" (did you mean {near}?)" if near else "")
        raise CannotEvaluate(f"{named}, so the launch is not judged", launch.spec.recipe_span or launch.spec.span, aside=aside)
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
        from mblint.read.shell import HOLE

        shown = absent.path.replace(HOLE, "?")
        raise CannotEvaluate(f"{shown}, which it merges, is not at hand, so the launch is not judged", absent.span, aside=True)
    try:
        target = apply_spec(session, cfg, launch.spec, _layers_of(session, launch.files), is_benchmark(launch.recipe))
    except Refused as refused:
        raise CannotEvaluate(f"upstream refuses the overrides: {refused.reason}", refused.span, raises=True) from None
    return tuple(target.skipped)


def _way(session: Session) -> list[tuple[str, bool]]:
    """The unknown branches that were taken, as text."""
    found = []
    for site, choice, _ in session.machine.path_taken:
        node = site.node if isinstance(site, Site) else None
        text = f"case {ast.unparse(node)}" if isinstance(node, ast.pattern) else ast.unparse(node) if node is not None else "?"
        found.append((text, choice))
    return found


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


__all__ = ["CannotEvaluate", "Launch", "UnknownKey", "find_recipe", "on_heap"]
