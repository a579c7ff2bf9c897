"""A launch with a candidate's changes, given the way a user would give them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mblint.launch.run import Launch


def override_text(value: object) -> str:
    """The right side of `key=value` in the command line's grammar: `null`, `true`, `[a,b]`, bare words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ",".join(override_text(item) for item in value) + "]"
    return str(value)


def override_lines(changes: Mapping[str, object]) -> list[str]:
    """Ready `key=value` arguments; what is not a key that the command line reaches is left out."""
    return [f"{key}={override_text(value)}" for key, value in changes.items() if is_key(key) and not assigned_only(key)]


def assignment_lines(changes: Mapping[str, object]) -> list[str]:
    """Ready statements for a recipe that returns `cfg`: for keys that the command line does not reach."""
    return [f"cfg.{key} = {value!r}" for key, value in changes.items() if assigned_only(key)]


def assigned_only(key: str) -> bool:
    """Whether only code can set a key: an adapter can be called, and upstream leaves what can be called out of the
    configuration that overrides are merged into (`training/utils/omegaconf_utils.py`)."""
    return key.startswith("peft.")


def environment(changes: Mapping[str, object]) -> dict[str, str]:
    """Environment variables among the changes."""
    return {key[4:]: str(value) for key, value in changes.items() if key.startswith("env.")}


def is_key(name: str) -> bool:
    """Whether a change is one of the configuration itself."""
    return name != "world_size" and not name.startswith("env.")


def changed_launch(launch: Launch, changes: Mapping[str, object]) -> Launch:
    """The launch as it would be with the changes.

    Where a recipe is started by name the keys are given as arguments of the command line, exactly as they are
    printed; those that it does not reach, and all of a launch that a script describes, are assigned.
    """
    keys = {key: value for key, value in changes.items() if is_key(key)}
    env = environment(changes)
    fields: dict[str, Any] = {}
    if "world_size" in changes:
        fields["world_size"] = changes["world_size"]
    if env:
        fields["env"] = {**(launch.env or {}), **env}
        fields["env_known"] = launch.env is not None and launch.env_known
    assigned = {key: value for key, value in launch.set.items() if key not in keys}
    if launch.spec is None:
        fields["overrides"] = (*launch.overrides, *override_lines(keys))
        fields["set"] = {**assigned, **{key: value for key, value in keys.items() if assigned_only(key)}}
    else:
        fields["set"] = {**assigned, **keys}
    return replace(launch, **fields)
