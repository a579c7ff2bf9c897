"""Environment variables of the launch. `env.NAME` reads one; here is what several of them mean together.

A recipe's `env_vars` are defaults that the process environment overrides (apply_environment_variables); the
merged map comes from the resolved launch.
"""

from __future__ import annotations

from mblint.evaluate.unknown import Unknown
from mblint.facts.view import Stop, View, fact

ALLOCATOR_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


@fact("environment.known")
def known(view: View) -> bool:
    """Whether the whole environment of the launch is known, so that absence means unset."""
    return view.resolved.env_known


@fact("environment.mentioned")
def mentioned(view: View) -> bool:
    """Whether the recipe or its launcher sets any variable, so that one that is missing was left out."""
    return view.resolved.env_known or bool(view.resolved.env)


def _allocator(view: View) -> str | None:
    """The allocator settings that PyTorch will see; PYTORCH_ALLOC_CONF, the newer name, wins."""
    values = {name: view.get(f"env.{name}") for name in ALLOCATOR_VARIABLES}
    newer = values["PYTORCH_ALLOC_CONF"]
    older = values["PYTORCH_CUDA_ALLOC_CONF"]
    if isinstance(newer, str):
        return newer
    if isinstance(older, str):
        # That the newer name is not known to be unset does not matter: nobody sets both.
        return older
    for value in (newer, older):
        if isinstance(value, Unknown):
            raise Stop(value)
    return None


@fact("environment.allocator")
def allocator(view: View) -> str | None:
    """The text of PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF; None if neither is set."""
    return _allocator(view)


@fact("environment.expandable_segments")
def expandable_segments(view: View) -> bool:
    """Whether PyTorch's allocator uses expandable segments."""
    text = _allocator(view)
    return text is not None and parse_allocator(text).get("expandable_segments", "").lower() == "true"


@fact("environment.allocator_variable")
def allocator_variable(view: View) -> str | None:
    """The variable that allocator settings are read from: PYTORCH_ALLOC_CONF where it is set, else the older
    name.
    """
    if isinstance(view.get("env.PYTORCH_ALLOC_CONF"), str):
        return "PYTORCH_ALLOC_CONF"
    return None if _allocator(view) is None else "PYTORCH_CUDA_ALLOC_CONF"


@fact("environment.segments_left_out")
def segments_left_out(view: View) -> bool:
    """Whether an environment is given, in whole or by the recipe, and says nothing of expandable segments.

    False where nothing is known of the environment, where somebody decided against them, and with another
    allocator.
    """
    if not view.flag("environment.mentioned"):
        return False
    if view.resolved.env_known or any(name in view.resolved.env for name in ALLOCATOR_VARIABLES):
        settings = parse_allocator(_allocator(view) or "")
        return "expandable_segments" not in settings and "backend" not in settings
    view.get("env.PYTORCH_CUDA_ALLOC_CONF")
    return True


@fact("environment.graph_register")
def graph_register(view: View) -> object:
    """NCCL_GRAPH_REGISTER; None also where the recipe's own environment sets the allocator but not this."""
    given = view.get("env.NCCL_GRAPH_REGISTER")
    if isinstance(given, Unknown) and "NCCL_GRAPH_REGISTER" not in view.resolved.env:
        if any(name in view.resolved.env for name in ALLOCATOR_VARIABLES):
            return None
        raise Stop(given)
    return given


@fact("environment.allocator_with_segments")
def allocator_with_segments(view: View) -> str:
    """The allocator settings with expandable segments switched on, others kept."""
    settings = parse_allocator(_allocator(view) or "")
    settings["expandable_segments"] = "True"
    return ",".join(f"{name}:{value}" for name, value in settings.items())


@fact("environment.allocator_without_segments")
def allocator_without_segments(view: View) -> str:
    """The allocator settings without expandable segments, others kept."""
    settings = parse_allocator(_allocator(view) or "")
    settings.pop("expandable_segments", None)
    return ",".join(f"{name}:{value}" for name, value in settings.items())


def parse_allocator(text: str) -> dict[str, str]:
    """The settings of an allocator variable: "a:1,b:[x:1,y:2]" as a mapping; what is malformed is skipped."""
    settings: dict[str, str] = {}
    depth, start = 0, 0
    for at, char in enumerate(text + ","):
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
        elif char == "," and depth <= 0:
            name, colon, value = text[start:at].partition(":")
            if colon and name.strip():
                settings[name.strip()] = value.strip()
            start = at + 1
    return settings
