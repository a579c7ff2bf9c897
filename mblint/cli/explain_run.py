"""The work of `mblint explain`."""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mblint.cli.common_run import existing, open_session, placed, unknown_key, uses_cache, with_arguments
from mblint.cli.named_launch import named_launch
from mblint.errors import UserError
from mblint.evaluate.modules import SourceError
from mblint.evaluate.values import FunctionValue
from mblint.launch import path as launch_path
from mblint.launch.lines import read_launches
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.run import CannotEvaluate, Launch, UnknownKey, on_heap
from mblint.launch.session import Session, with_deep_stack
from mblint.settings_file import shown_path
from mblint.workers import spread

if TYPE_CHECKING:
    from mblint.cache.results import Results
    from mblint.settings_file import Loaded


def run(args: argparse.Namespace) -> int:
    """Resolve what the arguments name and show it."""
    if args.recipes_from:
        return _recipes(args)
    if args.launches:
        return _launches(args)
    return _one(args)


def _recipes(args: argparse.Namespace) -> int:
    text = sys.stdin.read() if args.recipes_from == "-" else _read(args.recipes_from)
    names = [line.strip() for line in text.splitlines() if line.strip()]
    if not names:
        raise UserError("no recipe names were given", "one `package.module:function` a line", exit_code=4)
    loaded, session = open_session(args, [])
    launch_path.install(session)

    results = _results_of(args, loaded, session)
    held = {} if results is None else results.named(names)
    missing = [name for name in dict.fromkeys(names) if name not in held]

    def work(name: str) -> str:
        return json.dumps(recipe_entry(args, loaded, session, name))

    if results is None:
        fresh = dict(zip(missing, spread(missing, lambda part: [work(name) for name in part], None, few=100), strict=True))
    else:
        made = dict(zip(missing, results.spread(missing, work, None, few=100), strict=True))
        results.keep_named({name: text for name, (text, lasts) in made.items() if lasts})
        fresh = {name: text for name, (text, _) in made.items()}
    entries = {**held, **fresh}
    sys.stdout.write('{"recipes": [' + ",\n".join(entries[name] for name in names) + "]}\n")
    return 0


def _results_of(args: argparse.Namespace, loaded: Loaded, session: Session) -> Results | None:
    """The memory of earlier runs of the same question."""
    if not uses_cache(args, loaded):
        return None
    from mblint.cache.results import Results

    given = ("explain", sorted(args.set), args.world_size, args.gpu, str(loaded.root), Path.cwd())
    return Results(session, (loaded.settings, given))


def _read(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{name}: {getattr(error, 'strerror', None) or error}", "name a text file, or -") from None


def recipe_entry(args: argparse.Namespace, loaded: Loaded, session: Session, name: str) -> dict[str, Any]:
    """One recipe: where it is, its values, and what is unknown and why."""
    entry: dict[str, Any] = {"recipe": name, "path": None, "line": None, "config": {}, "unknown": {}}
    try:
        with on_heap(session, with_arguments(args, loaded, Launch(name))) as resolved:
            entry["config"], entry["unknown"] = resolved.flat()
            if resolved.span is not None:
                entry["path"], entry["line"] = resolved.span.path, resolved.span.line
    except CannotEvaluate as problem:
        entry["failed"] = problem.message
    return entry


def _launches(args: argparse.Namespace) -> int:
    loaded, session = open_session(args, [])
    launch_path.install(session)
    launches = [with_arguments(args, loaded, launch) for launch in read_launches(args.launches)]
    order = sorted(range(len(launches)), key=lambda index: (launches[index].recipe or "", index))

    def work(part: Sequence[int]) -> list[tuple[int, str]]:
        return [(index, json.dumps(launch_entry(args, session, launches[index]))) for index in part]

    entries = dict(spread(order, work, None, few=100))
    sys.stdout.write('{"launches": [' + ",\n".join(entries[index] for index in range(len(launches))) + "]}\n")
    return 0


def launch_entry(args: argparse.Namespace, session: Session, launch: Launch) -> dict[str, Any]:
    """One launch: values after overrides (or, with --effective, after the launch path)."""
    entry: dict[str, Any] = {"id": launch.id, "config": {}, "unknown": {}, "failed": None, "skipped": []}
    try:
        with on_heap(session, launch) as resolved:
            if args.effective:
                launch_path.run_path(session, resolved.cfg)
            entry["config"], entry["unknown"] = resolved.flat()
            entry["skipped"] = [skipped.key for skipped in resolved.skipped]
    except CannotEvaluate as problem:
        entry["failed"] = problem.message
    return entry


# --- one recipe ------------------------------------------------------------------------------------------------------


def recipe_name(session: Session, text: str) -> str:
    """`module:function` for what people write: a function name, module:function, FILE or FILE:function. Raises UserError."""
    head, colon, function = text.rpartition(":") if ":" in text else (text, "", "")
    file = head if colon else text
    if file.endswith(".py"):
        path = existing([file])[0]
        try:
            module = session.module_of(path)
        except SourceError as error:
            raise UserError(f"{shown_path(Path(error.path))}:{error.line}:{error.column}: {error.message}") from None
        if function:
            return f"{module.name}:{function}"
        from mblint.launch.discover import recipe_functions

        names = [node.name for node in recipe_functions(module.tree)]
        if len(names) == 1:
            return f"{module.name}:{names[0]}"
        if not names:
            raise UserError(
                f"{file}: no recipe in it",
                "a recipe is a function that returns a ConfigContainer",
                exit_code=4,
            )
        raise UserError(f"{file} holds {len(names)} recipes", f"name one: {file}:{names[0]}")
    from mblint.launch.from_spec import shipped_names
    from mblint.launch.own_recipe import names as own_names
    from mblint.launch.own_recipe import own_recipe

    if colon or "." in text:
        # Reports call a recipe by its module, which need not be one that can be imported from here.
        known = not colon or session.modules.find(head) is not None
        return text if known else own_recipe(session, text) or text
    found = own_recipe(session, text) or shipped_recipe(session, text)
    if found is None:
        from mblint.ruleset.suggest import closest

        near = closest(text, own_names(session)) or closest(text, shipped_names(session.upstream_roots))
        raise UserError(
            f"no recipe is called {text}", f"did you mean {near}?" if near else "give package.module:function, or FILE:function"
        )
    return found


def shipped_recipe(session: Session, name: str) -> str | None:
    """`module:function` of a recipe that upstream exports by its bare name."""
    for package in ("megatron.bridge.recipes", "megatron.bridge.perf_recipes"):
        value = session.modules.import_from(package, name)
        if isinstance(value, FunctionValue):
            return f"{value.module.name}:{value.name}"
    for family in session.modules.submodules("megatron.bridge.recipes") + session.modules.submodules("megatron.bridge.perf_recipes"):
        value = session.modules.import_from(family, name)
        if isinstance(value, FunctionValue):
            return f"{value.module.name}:{value.name}"
    return None


def _one(args: argparse.Namespace) -> int:
    file = args.recipe.rpartition(":")[0] if ":" in args.recipe else args.recipe
    paths = [Path(file)] if Path(file).is_file() else []
    loaded, session = open_session(args, paths)
    launch_path.install(session)

    def work() -> int:
        launch = with_arguments(args, loaded, named_launch(loaded, session, args.recipe, args.of))
        try:
            if args.diff:
                return _show_difference(args, loaded, session, launch)
            with on_heap(session, launch) as resolved:
                resolved.remember_written()
                if args.effective:
                    resolved.path = launch_path.run_path(session, resolved.cfg)
                return _show(args, session, resolved, launch)
        except UnknownKey as problem:
            raise UserError(*unknown_key(problem)) from None
        except CannotEvaluate as problem:
            raise UserError(placed(problem)) from None

    return with_deep_stack(work)


def _wanted(args: argparse.Namespace, key: str) -> bool:
    return not args.key or any(fnmatch.fnmatch(key, pattern) for pattern in args.key)


def _show(args: argparse.Namespace, session: Session, resolved: ResolvedLaunch, launch: Launch) -> int:
    config, unknown = resolved.flat()
    keys = [key for key in [*config, *unknown] if _wanted(args, key)]
    if args.key and not keys:
        raise UserError(f"no key matches {', '.join(args.key)}", "keys look like model.tensor_model_parallel_size")
    if args.format == "json":
        data: dict[str, Any] = {
            "recipe": launch.recipe or resolved.name,
            "launch": launch.label,
            "path": resolved.span.path if resolved.span else None,
            "line": resolved.span.line if resolved.span else None,
            "config": {key: config[key] for key in keys if key in config},
            "unknown": {key: unknown[key] for key in keys if key in unknown},
        }
        if not args.flat:
            data["origins"] = {
                key: [
                    {"path": w.span.path, "line": w.span.line, "value": w.value, "by": w.by, "kind": w.kind}
                    for w in resolved.all_writes(key)
                ]
                for key in keys
            }
        json.dump(data, sys.stdout, default=str, indent=None if args.flat else 1)
        sys.stdout.write("\n")
        return 0
    from mblint.report.explain_text import render_tree

    render_tree(args, session, resolved, launch, keys, config, unknown)
    return 0


def _show_difference(args: argparse.Namespace, loaded: Loaded, session: Session, launch: Launch) -> int:
    other = replace(launch, recipe=recipe_name(session, args.diff), world_size=None, gpu=None)
    sides: list[dict[str, Any]] = []
    for one in (launch, with_arguments(args, loaded, other)):
        with on_heap(session, one) as resolved:
            resolved.remember_written()
            if args.effective:
                launch_path.run_path(session, resolved.cfg)
            config, unknown = resolved.flat()
            values = {**config, **{key: f"? ({reason})" for key, reason in unknown.items()}}
            values["(GPUs)"] = resolved.world_size if isinstance(resolved.world_size, int) else None
            sides.append({key: value for key, value in values.items() if _wanted(args, key)})
    left, right = sides
    changed = [key for key in dict.fromkeys([*left, *right]) if left.get(key, "(absent)") != right.get(key, "(absent)")]
    if args.format == "json":
        json.dump({key: [left.get(key), right.get(key)] for key in changed}, sys.stdout, default=str, indent=1)
        sys.stdout.write("\n")
        return 0
    from mblint.report.explain_text import render_difference

    render_difference(args, launch.recipe or "", other.recipe or "", left, right, changed)
    return 0
