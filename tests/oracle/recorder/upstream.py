"""Imports the real megatron-bridge and finds its recipes. The rest of the recorder goes through here."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import logging
import os
import pkgutil
import sys
import typing
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import hub, machine, standins

PACKAGES = ("megatron.bridge.recipes", "megatron.bridge.perf_recipes")


@dataclass(frozen=True)
class Upstream:
    """A loaded release: where it came from, and what was assumed of its surroundings."""

    source: Path
    versions: dict[str, str]
    folder: str
    models: dict[str, dict[str, Any]]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Upstream prints and warns a lot; none of it is recorded."""
    sink = io.StringIO()
    with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def load(
    source: Path,
    models: Path,
    folder: Path,
    torch_version: str | None = None,
    packages: dict[str, str | None] | None = None,
) -> Upstream:
    """Put `source` (a folder that holds `megatron/`) on the path, with stand-ins, pretended GPUs and a local hub.

    `torch_version` is what torch is made to report, if it should be another than the installed one. The
    process works in `folder` from here on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_DATASETS_OFFLINE="1", HOME=str(folder))
    logging.disable(logging.CRITICAL)
    if not hasattr(typing, "override"):  # Python before 3.12
        import typing_extensions

        typing.override = typing_extensions.override  # type: ignore[attr-defined]
    sys.path.insert(0, str(source))
    with quiet():
        import torch

        if torch_version:
            torch.__version__ = torch_version
        stand_in_versions = standins.install(packages)
        machine.pretend_cuda()
        configs = hub.read_models(models)
        hub.install(configs, folder / "hub")
        _without_triton_jit()

        hub.without_revisions()
    versions = {
        "bridge": _version("megatron-bridge", "megatron.bridge"),
        "core": _version("megatron-core", "megatron.core"),
        "torch": str(torch.__version__).split("+")[0],
        "te": stand_in_versions.get("transformer_engine", "absent"),
        "transformers": _version("transformers", "transformers"),
        "python": ".".join(map(str, sys.version_info[:2])),
    }
    return Upstream(source, versions, str(folder), configs)


def _without_triton_jit() -> None:
    """Without a GPU driver, a Triton kernel can be defined but not autotuned: leave the functions as they are."""
    with contextlib.suppress(ImportError):
        import triton

        def autotune(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
            return lambda function: function

        triton.autotune = autotune


def _version(distribution: str, module: str) -> str:
    import importlib.metadata as metadata

    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(distribution)
    return str(getattr(sys.modules.get(module), "__version__", "unknown"))


def modules(package: str) -> tuple[list[str], dict[str, str]]:
    """Names of the modules of a package that import, and the error of those that do not."""
    try:
        root = importlib.import_module(package)
    except ImportError as error:
        return [], {package: f"{type(error).__name__}: {error}"}
    found, failed = [package], {}
    for info in pkgutil.walk_packages(root.__path__, f"{package}.", onerror=lambda name: None):
        try:
            with quiet():
                importlib.import_module(info.name)
        except Exception as error:
            failed[info.name] = f"{type(error).__name__}: {error}"
        else:
            found.append(info.name)
    return sorted(found), failed


def recipes(package: str) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    """`module:name` -> function, for public functions that can be called with nothing; and failed imports.

    A second name in the defining module counts too.
    """
    names, failed = modules(package)
    found: dict[str, Callable[[], Any]] = {}
    for name in names:
        for attribute, value in sorted(vars(sys.modules[name]).items()):
            if (
                inspect.isfunction(value)
                and value.__module__ == name
                and not attribute.startswith("_")
                and attribute.endswith("config")
                and all(
                    parameter.default is not parameter.empty or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
                    for parameter in inspect.signature(value).parameters.values()
                )
            ):
                found[f"{name}:{attribute}"] = value
    return found, failed
