"""Asks the installed megatron-bridge for its own estimates, by a process of its interpreter."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mblint.errors import UserError
from mblint.facts.memory.launch_memory import OtherFigure
from mblint.facts.memory.upstream_formula import upstream_estimate
from mblint.launch.resolved import ResolvedLaunch

NAME: Final = "megatron-bridge's own estimator"
SECONDS: Final = 180.0
"""For importing torch and megatron-bridge, and all estimates."""
_OUTPUT: Final = 64 * 2**20
_HINT: Final = "pip install '.[estimator]' in a checkout of mblint, in a Python 3.12 environment"


def request_of(launch: ResolvedLaunch) -> dict[str, Any]:
    """What the other process needs of a launch, after its launch path ran."""
    formula = upstream_estimate(launch)
    return {
        "config": launch.flat()[0],
        "data_parallel_size": formula.data_parallel_size,
        "num_microbatches": formula.num_microbatches,
    }


def interpreter(python: str) -> str:
    """The executable of `--python`: itself, or that of an environment's folder. Raises UserError."""
    given = Path(python).expanduser()
    if given.is_dir():
        for part in ("bin/python", "Scripts/python.exe"):
            if (given / part).exists():
                return str(given / part)
        raise UserError(f"--python {python}: no interpreter in that folder", "name the interpreter itself")
    return str(given) if given.exists() else python


def ask(python: str, requests: Sequence[Mapping[str, Any] | None], seconds: float = SECONDS) -> list[OtherFigure]:
    """One figure a request, in order; a figure without components says why. None asks for nothing."""
    wanted = [request for request in requests if request is not None]
    if not wanted:
        return [OtherFigure(NAME, because="the launch could not be evaluated") for _ in requests]
    answer = _exchange(interpreter(python), wanted, seconds)
    if "answers" not in answer:
        because = str(answer.get("message", "it gave no answer"))
        return [OtherFigure(NAME, because=because) for _ in requests]
    name = f"{NAME}, {answer['version']}" if answer.get("version") else NAME
    answers = iter(answer["answers"])
    return [_figure(name, None if request is None else next(answers, None)) for request in requests]


def _figure(name: str, found: Any) -> OtherFigure:
    if not isinstance(found, dict):
        return OtherFigure(name, because="it gave no answer")
    components = found.get("components")
    if isinstance(components, dict) and components and all(isinstance(size, int | float) for size in components.values()):
        return OtherFigure(name, {str(part): float(size) for part, size in components.items()})
    return OtherFigure(name, because=f"it failed: {found.get('error', 'it gave no components')}")


def _exchange(python: str, requests: list[Any], seconds: float) -> dict[str, Any]:
    """The answer of the other process, or `{"message": ...}`."""
    child = Path(__file__).with_name("child.py")
    # The estimate is arithmetic: no GPU is needed, and none is to be occupied.
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [python, str(child)],
            input=json.dumps({"requests": requests}).encode(),
            capture_output=True,
            timeout=seconds,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"message": f"{python} gave no answer within {seconds:g} s"}
    except OSError as error:
        return {"message": f"{python} cannot be run: {error.strerror or error}"}
    answer = _last_object(done.stdout)
    if answer is None:
        return {"message": f"{python} {_ended(done)}"}
    return answer if "answers" in answer else {"message": _problem(python, answer)}


def _last_object(data: bytes) -> dict[str, Any] | None:
    for line in reversed(data[-_OUTPUT:].decode("utf-8", errors="replace").splitlines()):
        if line.startswith("{"):
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                return None
            return found if isinstance(found, dict) else None
    return None


def _problem(python: str, answer: Mapping[str, Any]) -> str:
    kind, said, version = answer.get("problem"), answer.get("message", ""), answer.get("version")
    if kind == "not-installed":
        return f"megatron-bridge is not installed for {python}; {_HINT}"
    if kind == "too-old":
        return f"megatron-bridge {version or 'there'} has no estimator; it is there from 0.5 on"
    return f"megatron-bridge {version or ''} could not be imported by {python}: {said}".replace("  ", " ")


def _ended(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = [line.strip() for line in done.stderr[-4000:].decode("utf-8", errors="replace").splitlines() if line.strip()]
    return f"ended with code {done.returncode}" + (f": {lines[-1][:300]}" if lines else "")
