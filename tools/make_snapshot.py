#!/usr/bin/env python3
"""Write down what mblint knows of a release of megatron-bridge without its source.

    python tools/make_snapshot.py FOLDER_OR_VERSION [--output FILE]

The source is a folder that holds `megatron/`, or a version that `mblint upstream fetch` brought. All is
evaluated as mblint evaluates it in a run, nothing is imported. The same source gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from mblint.evaluate.budget import Limits  # noqa: E402
from mblint.evaluate.calls import call  # noqa: E402
from mblint.evaluate.errors import BudgetExceeded, NeedFork, Raised  # noqa: E402
from mblint.evaluate.objects import get_attribute  # noqa: E402
from mblint.evaluate.operators import machine_frame  # noqa: E402
from mblint.launch import providers  # noqa: E402
from mblint.launch.release_text import upstream_texts  # noqa: E402
from mblint.launch.session import Session, with_deep_stack  # noqa: E402
from mblint.upstream.locate import Upstream, locate  # noqa: E402
from mblint.upstream.models import ModelSource, shipped_models  # noqa: E402
from mblint.upstream.snapshot.store import INDEX_BYTES  # noqa: E402
from tools.snapshot.effects import EffectReader  # noqa: E402
from tools.snapshot.encode import Encoder  # noqa: E402
from tools.snapshot.modules import ModuleRecorder, module_names, part_name, read_names, share  # noqa: E402
from tools.snapshot.runs import Recorder  # noqa: E402

MOST_STEPS = 20_000
"""Bound of one evaluation: nothing that a run of mblint asks for comes near it, loops that wait for files do."""


@contextmanager
def by_steps() -> Iterator[None]:
    """Bound evaluations by steps alone, not by time: a slow machine writes the same bytes."""
    held = Limits.steps, Limits.seconds, Limits.file_seconds
    Limits.steps, Limits.seconds, Limits.file_seconds = MOST_STEPS, float("inf"), float("inf")
    try:
        yield
    finally:
        Limits.steps, Limits.seconds, Limits.file_seconds = held


def make(upstream: Upstream) -> tuple[dict[str, Any], dict[str, Any]]:
    """The index (without places) and the parts by name."""
    with by_steps():
        return _make(upstream)


def _make(upstream: Upstream) -> tuple[dict[str, Any], dict[str, Any]]:
    session = Session(upstream)
    machine = session.machine
    # Nothing of this machine's own Hugging Face cache may get in.
    providers.install(machine, upstream.bridge or "", source=ModelSource())
    recorder = Recorder(machine, session.world, Encoder(machine), EffectReader(machine.special_functions))
    modules = ModuleRecorder(session.modules, recorder)
    names = sorted({name for root in upstream.roots for name in module_names(str(root))})
    packages = {name for name in names if any(other.startswith(f"{name}.") for other in names)} | {"megatron"}
    modules.want(names)
    parts: dict[str, Any] = {}
    for name in names:
        part = parts.setdefault(part_name(name, packages), {"modules": {}, "classes": {}, "functions": {}, "shared": []})
        machine.begin()  # each module has an account of its own
        modules.record(name, part)
    models = {hf_id: node for hf_id in sorted(shipped_models()) if (node := _provider(recorder, hf_id)) is not None}
    modules.complete(parts, packages)
    for local in sorted(recorder.encoder.local):
        part = parts[part_name(local.partition(":")[0], packages)]
        part["functions"].setdefault(local, {})
    parts["providers"] = {"providers": models}
    for part in parts.values():
        share(part)
    whole: dict[str, Any] = {"reads": read_names(list(upstream_texts(tuple(str(root) for root in upstream.roots))))}
    whole.update(sorted(parts.items()))
    return {"release": upstream.bridge, "core": upstream.core}, whole


def _provider(recorder: Recorder, hf_id: str) -> Any:
    """The node of the provider that AutoBridge makes of a model; None where it makes none."""
    machine = recorder.machine
    auto = machine.modules.import_from("megatron.bridge.models.conversion.auto_bridge", "AutoBridge")
    mark = recorder.reset()
    frame = machine_frame(machine)
    try:
        bridge = call(machine, get_attribute(machine, auto, "from_hf_pretrained", None, frame), [hf_id], {}, None, frame)
        method = get_attribute(machine, bridge, "to_megatron_provider", None, frame)
        made = call(machine, method, [], {"load_weights": False}, None, frame)
        node = recorder.encoder.node(made)
    except (Raised, BudgetExceeded, NeedFork):
        return None
    finally:
        machine.undo(mark)
    return node if isinstance(node, dict) and "i" in node else None


def packed(index: dict[str, Any], parts: dict[str, Any]) -> bytes:
    """The bytes of the file."""
    blocks = {name: _compressed(part) for name, part in parts.items()}
    head = _compressed({**index, "parts": [[name, len(block)] for name, block in blocks.items()]})
    assert len(head) < INDEX_BYTES
    return head + b"".join(blocks.values())


def _compressed(data: Any) -> bytes:
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0, compresslevel=9) as file:
        file.write(f"{text}\n".encode())
    return buffer.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="a folder that holds megatron/, or a fetched version")
    parser.add_argument("--output", type=Path, help="default: where mblint looks for it")
    args = parser.parse_args()
    upstream = locate(args.source)
    if not upstream.bridge or not upstream.core:
        sys.exit(f"{args.source}: it does not say which releases of megatron-bridge and megatron-core it holds")
    index, parts = with_deep_stack(lambda: make(upstream))
    output = args.output or ROOT / "mblint" / "upstream" / "data" / upstream.bridge / "snapshot.jsonl.gz"
    output.parent.mkdir(parents=True, exist_ok=True)
    data = packed(index, parts)
    output.write_bytes(data)
    functions = sum(len(part.get("functions", ())) for name, part in parts.items() if name != "reads")
    print(f"{output}: {len(data):,} bytes, {len(parts)} parts, {functions} functions")


if __name__ == "__main__":
    main()
