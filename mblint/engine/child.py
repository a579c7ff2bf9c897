"""Runs in the interpreter that has megatron-bridge: reads requests as JSON from standard input, calls
`estimate_training_memory` on each, writes answers as JSON to standard output.

Standard library only, and nothing of mblint: that need not be installed there.

In: {"requests": [{"config": {dotted key: encoded value}, "data_parallel_size": int,
"num_microbatches": int}]}.
Out, on the last line: {"version": str, "answers": [{"components": {name: bytes}, "assumptions": [str]} or
{"error": str}]}, or {"problem": "not-installed" | "too-old" | "failed", "message": str, "version": str | null}.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

MODULE = "megatron.bridge.training.utils.theoretical_memory_utils"


class Section:
    """An object that has the attributes of a configuration section."""


def decode(value: Any) -> Any:
    """A value of the shared encoding; what names code of torch or megatron is imported."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if isinstance(value, dict):
        if "dict" in value:
            return {key: decode(item) for key, item in value["dict"].items()}
        if "set" in value:
            return {decode(item) for item in value["set"]}
        if "ref" in value:
            return reference(value["ref"])
        return Section()
    return value


def reference(name: str) -> Any:
    """The function or class of that dotted name, or an object that equals nothing else."""
    import importlib

    if name == "torch._C._nn.gelu":
        name = "torch.nn.functional.gelu"
    module, _, attribute = name.rpartition(".")
    if not module.startswith(("torch.", "megatron.")):
        return Section()
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception:
        return Section()


def build(flat: dict[str, Any]) -> Any:
    """Nested sections from dotted keys."""
    root = Section()
    for key, value in flat.items():
        owner = root
        parts = key.split(".")
        if parts[-1] == "__class__":
            continue
        for part in parts[:-1]:
            held = owner.__dict__.get(part)
            if not isinstance(held, Section):
                held = Section()
                owner.__dict__[part] = held
            owner = held
        owner.__dict__.setdefault(parts[-1], decode(value))
    return root


def version() -> str | None:
    """The installed release, or None."""
    from importlib import metadata

    try:
        return metadata.version("megatron-bridge")
    except Exception:
        return None


def answer(function: Any, request: dict[str, Any]) -> dict[str, Any]:
    """The components of one configuration."""
    config = build(request["config"])
    config.data_parallel_size = request["data_parallel_size"]
    found = function(config, num_microbatches=request["num_microbatches"])
    parts = list(found.model_state_components)
    if found.activation is not None:
        parts.append(found.activation)
    return {
        "components": {part.name: float(part.memory_bytes) for part in parts},
        "assumptions": [str(text) for text in found.assumptions],
    }


def last_line(error: BaseException) -> str:
    """One line that names an error."""
    text = " ".join(str(error).split())
    return (type(error).__name__ + (": " + text if text else ""))[:300]


def work(requests: list[dict[str, Any]]) -> dict[str, Any]:
    """All answers, or the problem that stands before them."""
    import importlib

    installed = version()
    try:
        module = importlib.import_module(MODULE)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing in ("megatron", "megatron.bridge"):
            return {"problem": "not-installed", "message": last_line(error), "version": installed}
        if MODULE.startswith(missing):
            return {"problem": "too-old", "message": last_line(error), "version": installed}
        return {"problem": "failed", "message": last_line(error), "version": installed}
    except BaseException as error:
        return {"problem": "failed", "message": last_line(error), "version": installed}
    function = getattr(module, "estimate_training_memory", None)
    if function is None:
        return {
            "problem": "too-old",
            "message": "no estimate_training_memory in " + MODULE,
            "version": installed,
        }
    answers = []
    for request in requests:
        try:
            answers.append(answer(function, request))
        except Exception as error:
            answers.append({"error": last_line(error)})
    return {"version": installed, "answers": answers}


def main() -> None:
    """Everything that imports print goes to standard error, so that the answer stands alone."""
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != folder]
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests = json.load(sys.stdin)["requests"]
    out.write("\n" + json.dumps(work(requests)) + "\n")
    out.flush()
    os._exit(0)  # threads of imported libraries must not hold the answer back


if __name__ == "__main__":
    main()
