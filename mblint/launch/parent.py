"""The recipe that a recipe starts from."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.values import FunctionValue, Instance
from mblint.launch.naming import gpu_of, world_size_of
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.run import CannotEvaluate, call_recipe, definition, find_recipe
from mblint.launch.session import Session


def parent_of(session: Session, recipe: str, child: ResolvedLaunch) -> ResolvedLaunch | None:
    """The recipe that a recipe starts from: the first public function it calls that returns a ConfigContainer.

    Evaluated without arguments, as it would be launched, and apart from the child: many recipes start from the same one.
    """
    function = find_recipe(session, recipe)
    if not isinstance(function, FunctionValue):
        return None
    module, node = function.module, function.node
    for callee in module.derive(("calls", node), lambda: _called_names(node)):
        value = _named_function(session, function, callee)
        if not isinstance(value, FunctionValue) or value.name.startswith("_") or value is function:
            continue
        if not value.name.endswith("_config") and "ConfigContainer" not in _returns(value):
            continue
        try:
            cfg = _config_of(session, value)
        except CannotEvaluate:
            continue
        world = session.world
        size, gpu = world.world_size, world.gpu
        world.world_size, world.gpu = world_size_of(value.name), gpu_of(value.name)
        try:
            return ResolvedLaunch(session, cfg, f"{value.module.name}:{value.name}", definition(session, value), child.env_known)
        finally:
            world.world_size, world.gpu = size, gpu
    return None


def _config_of(session: Session, function: FunctionValue) -> Instance:
    """What a recipe returns here, remembered as long as its sources are the same. Raises CannotEvaluate."""
    machine, world, module = session.machine, session.world, function.module

    def compute() -> Instance:
        saved = (machine.phase, machine.go_on, machine.path_taken, machine.depth, machine.owner)
        try:
            return call_recipe(session, function, [])
        finally:
            machine.phase, machine.go_on, machine.path_taken, machine.depth, machine.owner = saved

    if world.argv is not None or session.handed.config is not None:
        return compute()
    return session.parents.get((module.path, module.name, function.name, world.world_size, world.gpu), compute)


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
