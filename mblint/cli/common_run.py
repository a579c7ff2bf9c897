"""What check, explain and estimate start from: settings, upstream, session, launches."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mblint.cli.options import settings_of, upstream_of
from mblint.errors import UserError

if TYPE_CHECKING:
    from mblint.launch.run import CannotEvaluate, Launch, UnknownKey
    from mblint.launch.session import Session
    from mblint.settings_file import Loaded
    from mblint.upstream.locate import Upstream


DISTRIBUTIONS = {
    "torch": "torch",
    "te": "transformer-engine",
    "transformers": "transformers",
    "flash_attn": "flash-attn",
}
"""Facts about versions and the distributions that say them."""


def open_session(args: argparse.Namespace, paths: list[Path]) -> tuple[Loaded, Session]:
    """The settings and a session over the project and the located upstream."""
    from mblint.launch.session import Session

    loaded = settings_of(args)
    upstream = upstream_of(args, loaded, paths)
    return loaded, Session(upstream, project_roots(loaded, paths), facts_of(loaded, upstream))


def project_roots(loaded: Loaded, paths: list[Path]) -> list[Path]:
    """The folders whose files are the user's own: the settings' folder, and the folders of named paths."""
    roots = [loaded.root]
    for path in paths:
        folder = path if path.is_dir() else path.parent
        if folder.resolve() not in [root.resolve() for root in roots] and not _inside(folder, loaded.root):
            roots.append(folder)
    return roots


def _inside(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())


def facts_of(loaded: Loaded, upstream: Upstream) -> Any:
    """Declared versions and packages, then those of the environment that the upstream was found in."""
    from mblint.launch.session import Facts

    assumed = loaded.settings.assume
    versions: dict[str, str] = dict(environment_versions(upstream))
    if assumed.torch is not None:
        versions["torch"] = assumed.torch
    if assumed.te:
        versions["te"] = assumed.te
    missing = set()
    if assumed.te == "":
        missing.add("transformer_engine")
    for name, value in assumed.packages.items():
        if value is False:
            missing.add(name.replace("-", "_"))
        elif isinstance(value, str):
            versions[name.replace("-", "_")] = value
    return Facts(versions, frozenset(missing))


def environment_versions(upstream: Upstream) -> Mapping[str, str]:
    """Versions of torch, Transformer Engine and others installed beside the upstream."""
    from mblint.upstream.versions import distributions

    installed = distributions(upstream.sites)
    return {fact: installed[name] for fact, name in DISTRIBUTIONS.items() if name in installed}


def with_arguments(args: argparse.Namespace, loaded: Loaded, launch: Launch) -> Launch:
    """A launch completed by the command line, then by the settings where neither it nor its recipe's name says it."""
    from mblint.launch.naming import gpu_of, world_size_of

    name = launch.stated
    settings = loaded.settings
    size = launch.world_size or args.world_size or world_size_of(name) or settings.world_size
    gpu = launch.gpu or args.gpu or gpu_of(name) or settings.gpu
    given = {**launch.set, **{key: literal(text) for key, text in args.set}}
    return replace(launch, world_size=size, gpu=gpu, set=given)


def refuse_unknown_keys(session: Session, launch: Launch) -> None:
    """Evaluate a launch that is the only one that was asked about, as far as the keys that are given to it.

    Raises UserError for one that no field has: an answer to another question would be given in its place.
    """
    from mblint.launch.run import CannotEvaluate, UnknownKey, on_heap

    if not launch.set:
        return
    try:
        with on_heap(session, launch):
            return
    except UnknownKey as problem:
        raise UserError(*unknown_key(problem)) from None
    except CannotEvaluate:
        return  # whoever asked says it


def placed(problem: CannotEvaluate) -> str:
    """What is said of a launch that cannot be evaluated, behind its place."""
    from mblint.settings_file import shown_path

    place = f"{shown_path(Path(problem.span.path))}:{problem.span.line}: " if problem.span is not None else ""
    return f"{place}{problem.message}"


def unknown_key(problem: UnknownKey) -> tuple[str, str]:
    """Message and remedy for a key that no field has."""
    return problem.message, "" if problem.message.endswith("?") else "`mblint explain RECIPE` lists the keys"


def literal(text: str) -> Any:
    """The value that a word of the command line stands for: numbers, true, false, null or None, lists and dicts; else text."""
    import ast
    import json

    words = {"true": True, "false": False, "null": None, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return {"dict": value} if isinstance(value, dict) else value
    return text


def uses_cache(args: argparse.Namespace, loaded: Loaded) -> bool:
    """Whether results of earlier runs may be used and kept: not with --no-cache, MBLINT_NO_CACHE, or the setting."""
    return not getattr(args, "no_cache", False) and not os.environ.get("MBLINT_NO_CACHE") and loaded.settings.cache


def nothing_found(paths: Sequence[Path]) -> UserError:
    """What is said where no launch is found below the paths, with the remedy for files of that kind."""
    from mblint.cli.named_launch import OF_OVERRIDES
    from mblint.files import OTHER_TEXT, YAML

    if all(path.name.endswith((*YAML, *OTHER_TEXT)) for path in paths):
        remedy = OF_OVERRIDES
    else:
        remedy = "a recipe is a function that returns a ConfigContainer; name the folder or file that holds it"
    return UserError(f"no recipe found in {', '.join(str(path) for path in paths)}", remedy, exit_code=4)


def existing(paths: list[str]) -> list[Path]:
    """Paths of the command line. Raises UserError for one that is not there."""
    found = []
    for text in paths:
        path = Path(text)
        if not path.exists() and not path.is_symlink():
            raise UserError(f"{text}: no such file or folder", "check the spelling")
        found.append(path)
    return found
