"""The settings: `[tool.mblint]` in pyproject.toml, or mblint.toml, as one model.

A wrong key or value ends the run with its place and the nearest right one: a linter that runs with fewer
rules than its user believes is worse than none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

if TYPE_CHECKING:
    from pydantic import TypeAdapter

FailOn = Literal["error", "warning", "advice", "never"]
Profile = Literal["minimal", "default", "strict"]

DEFAULT_EXCLUDE = (
    ".git", ".hg", ".svn", ".venv", "venv", ".env", "env", ".tox", ".nox", ".mypy_cache", ".pytest_cache",
    ".ruff_cache", "__pycache__", "node_modules", "build", "dist", "site-packages", ".ipynb_checkpoints",
)  # fmt: skip
"""Folder names that a walk never enters; a path that is named on the command line is checked all the same."""

GPU_TYPES = (
    "a100", "a800", "h100", "h200", "h20", "h800", "gh200", "b100", "b200", "b300", "gb200", "gb300", "l40",
    "l40s", "rtx6000", "r100", "vr200", "v100", "mi300x", "mi325x", "mi350x", "mi355x",
)  # fmt: skip
"""GPU types that mblint has heard of. Another name is taken as it is, unless it looks like a slip of one of
these.
"""

_GPU_TRIMMINGS = re.compile(r"nvidia|amd|instinct|tensor|core|gpu|sxm\d?|pcie|nvl\d*|\d+gb|hbm\d\w?")


def gpu_type(text: str) -> str:
    """A GPU type in the spelling that rules use. Raises ValueError when it looks like a typing error."""
    words = re.split(r"[\s_-]+", text.strip().lower())
    name = "".join(word for word in words if not _GPU_TRIMMINGS.fullmatch(word))
    if name in GPU_TYPES:
        return name
    if not re.fullmatch(r"[a-z]+\d+[a-z0-9]*", name):
        raise ValueError(f"{text!r} is not a GPU type; for example h100, gb200")
    from mblint.ruleset.suggest import closest

    near = closest(name, GPU_TYPES)
    if near is not None:
        raise ValueError(f"{text!r} is not a known GPU type; did you mean {near!r}?")
    return name


def _specifier(text: str) -> str:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(text if text[:1] in "<>=!~" else f"=={text}")
    except InvalidSpecifier:
        raise ValueError(f"{text!r} is not a version or a range of versions; for example '>=0.1,<0.2'") from None
    return text


def _override(text: str) -> str:
    if not re.match(r"^(~|\+{0,2})[A-Za-z_][\w.\[\]-]*=", text) and not text.startswith("~"):
        raise ValueError(f"{text!r} is not an override; for example 'model.tensor_model_parallel_size=8'")
    return text


def _address(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s/?#\x00-\x1f\x7f-\x9f\"'<>]+(/[^\s?#\x00-\x1f\x7f-\x9f\"'<>]*)?", text):
        raise ValueError(f"{text!r} is not the address of a site; for example 'https://docs.example.org/mblint'")
    return text.rstrip("/")


def _positive(number: int) -> int:
    if number < 1:
        raise ValueError(f"must be at least 1, not {number}")
    return number


@dataclass(frozen=True)
class _Check:
    """A condition on a value, in the form that pydantic asks for; pydantic itself is only loaded by who
    validates.
    """

    check: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self.check, handler(source))


class _OneOrMany:
    """A single string stands for an array of one."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(
            # a tuple, since the items arrive here as Python's list, which strict checking does not take for
            # one
            lambda value: (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value,
            handler(source),
        )

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:
        return {"anyOf": [{"type": "string"}, handler(schema)]}


GpuType = Annotated[str, _Check(gpu_type)]
Count = Annotated[int, _Check(_positive)]
Strings = Annotated[tuple[str, ...], _OneOrMany()]
Override = Annotated[str, _Check(_override)]
Specifier = Annotated[str, _Check(_specifier)]
Address = Annotated[str, _Check(_address)]


def key_spelling(name: str) -> str:
    """The spelling of a field in the file."""
    return name.replace("_", "-")


_CONFIG: dict[str, Any] = {
    "extra": "forbid",
    "strict": True,
    "alias_generator": key_spelling,
    "use_attribute_docstrings": True,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """Facts of the environment that a launch will run in, where they cannot be seen in the source."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _CONFIG

    torch: str | None = None
    """Version of PyTorch, such as "2.9.1"."""
    te: str | None = None
    """Version of Transformer Engine; "" says that it is not installed."""
    packages: dict[str, str | bool] = field(default_factory=dict)
    """Version of another package, or true and false for installed and not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One row of the matrix: a recipe with what is added to it when it is launched."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _CONFIG

    name: str | None = None
    """How reports call this launch."""
    recipe: Strings
    """Recipe as `package.module:function` or function name; `*` and `?` match several."""
    overrides: tuple[Override, ...] = ()
    """`key=value` arguments, as upstream's command line takes them."""
    files: Strings = ()
    """YAML override files, relative to the settings file, in the order in which they apply."""
    set: dict[str, Any] = field(default_factory=dict)
    """Keys assigned after recipe, files and overrides: plain values by dotted name."""
    env: dict[str, str] | None = None
    """The whole environment of the launch; without it the environment is unknown."""
    world_size: Count | None = None
    """Number of GPUs."""
    gpu: GpuType | None = None
    """GPU type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that `[tool.mblint]` or mblint.toml can say."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _CONFIG

    required_version: Specifier | None = None
    """Version of mblint that must run, or a range such as ">=0.1,<0.2"."""
    profile: Profile = "default"
    """Which rules are on: "minimal" (errors only), "default", or "strict" (advice counts too)."""
    select: Strings = ()
    """Only these rules, by id (MB203), name, or prefix (MB2); empty means those of the profile."""
    extend_select: Strings = ()
    """Rules in addition to `select` or the profile."""
    ignore: Strings = ()
    """Rules that are off."""
    per_file_ignores: dict[str, Strings] = field(default_factory=dict)
    """Glob of files -> rules that are off there."""
    extend_rules: Strings = ()
    """Folders or files with rules of your own."""
    docs_url: Address | None = None
    """Address of a built copy of mblint's documentation, such as "https://docs.example.org/mblint": rule ids in reports lead
    to their pages there.
    """
    exclude: Strings = ()
    """Globs of files and folders that are not checked, in addition to the usual ones."""
    fail_on: FailOn = "warning"
    """Lowest severity that makes the exit code 1."""
    baseline: str | None = None
    """File of accepted findings."""
    upstream: str | None = None
    """Folder of a Megatron-Bridge source, a fetched version such as "0.6.2", or "none" for the shipped
    snapshot.
    """
    python: str | None = None
    """Interpreter or environment in which megatron-bridge is installed; it is looked at, never run."""
    assume: Assumed = Assumed()
    """Facts of the environment that a launch will run in."""
    world_size: Count | None = None
    """Number of GPUs, where neither the recipe nor the launch says it."""
    gpu: GpuType | None = None
    """GPU type, where neither the recipe nor the launch says it."""
    estimate: bool | None = None
    """Whether memory is estimated: by default where all that it needs is known."""
    cache: bool = True
    """Whether results of earlier runs are used and kept, in the user's cache folder."""
    launches: tuple[Launch, ...] = ()
    """The launches to judge, in addition to each recipe as it is."""


def adapter() -> TypeAdapter[Settings]:
    """The pydantic view of the dataclasses above; costs a tenth of a second, so only for who needs it."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # saves the scan of all installed packages
    from pydantic import TypeAdapter

    return TypeAdapter(Settings)


def json_schema() -> dict[str, Any]:
    """The JSON schema of the settings, for editors."""
    schema = adapter().json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "mblint settings"}
