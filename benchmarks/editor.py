"""Times the editor's server on a recipe file of 1,000 lines: from a change to its diagnostics, beside a cold `mblint check`.

    python benchmarks/editor.py [--changes 20] [--upstream 0.6.2] [--lines 1000]

A real client talks to the server over stdio. The change is one digit in one recipe in the middle of the file; "helper" changes a
function that every recipe calls, so that all of them are judged again. Times are wall clock, medians.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lsprotocol import types as t
from pygls.lsp.client import LanguageClient

PARENTS = (
    ("llama", "llama3_8b_pretrain_config"), ("qwen", "qwen3_8b_pretrain_config"), ("llama", "llama31_70b_pretrain_config"),
    ("qwen", "qwen3_30b_a3b_pretrain_config"), ("llama", "llama32_1b_pretrain_config"), ("llama", "llama3_8b_sft_config"),
)  # fmt: skip
SETTINGS = (
    "model.tensor_model_parallel_size = 2", "model.pipeline_model_parallel_size = 1", "model.context_parallel_size = 1",
    "model.sequence_parallel = True", "model.seq_length = 4096", "dataset.seq_length = 4096", "train.micro_batch_size = 1",
    "train.global_batch_size = 128", "optimizer.lr = 3e-4", "optimizer.min_lr = 3e-5", "optimizer.adam_beta1 = 0.9",
    "optimizer.adam_beta2 = 0.95", "optimizer.weight_decay = 0.1", "optimizer.clip_grad = 1.0", "scheduler.lr_decay_style = 'cosine'",
    "ddp.overlap_grad_reduce = True", "ddp.overlap_param_gather = True", "ddp.grad_reduce_in_fp32 = True",
    "ddp.use_distributed_optimizer = True", "checkpoint.save_interval = 500", "checkpoint.async_save = False",
    "logger.log_interval = 10", "rng.seed = 1234", "train.eval_iters = 32",
)  # fmt: skip


def recipes(lines: int) -> str:
    """A module of about that many lines: a helper, and recipes that start from shipped ones."""
    text = ['"""Recipes of a team."""', ""]
    for family in sorted({family for family, _ in PARENTS}):
        names = ", ".join(name for other, name in PARENTS if other == family)
        text.append(f"from megatron.bridge.recipes.{family} import {names}")
    text += ["from megatron.bridge.training.config import ConfigContainer", "", "", "def _common(cfg: ConfigContainer) -> None:"]
    text += ["    cfg.train.train_iters = 10000", "    cfg.train.manual_gc = True", "    cfg.train.manual_gc_interval = 100"]
    number = 0
    while len(text) < lines:
        _, parent = PARENTS[number % len(PARENTS)]
        text += ["", "", f"def team_{number:02d}_config() -> ConfigContainer:", f'    """Run {number} of the team."""']
        text += [f"    cfg = {parent}()", "    _common(cfg)"]
        for index, setting in enumerate(SETTINGS):
            text += ["", "    # as the last sweep had it"] if index % 4 == 0 else []
            text.append(f"    cfg.{setting}")
        text.append("    return cfg")
        number += 1
    return "\n".join(text) + "\n"


class Client(LanguageClient):
    """Notes when diagnostics arrive."""

    def __init__(self) -> None:
        super().__init__("benchmark", "1")
        self.arrived: dict[int, tuple[float, int]] = {}
        self.news = asyncio.Event()
        self.version = 1

    async def wait(self, version: int) -> float:
        """The time at which the first diagnostics of a version came."""
        while version not in self.arrived:
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), 120)
        return self.arrived[version][0]

    async def settle(self) -> None:
        """Wait until nothing comes any more."""
        while True:
            self.news.clear()
            try:
                await asyncio.wait_for(self.news.wait(), 2.0)
            except TimeoutError:
                return


def used(pid: int) -> float:
    """Seconds of processor time of a process; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(path: Path, text: str, changes: int) -> dict[str, list[float]]:
    """Seconds from each change to its first diagnostics, and from opening the file."""
    client = Client()

    @client.feature(t.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def _(params: t.PublishDiagnosticsParams) -> None:
        client.arrived.setdefault(params.version or 0, (time.perf_counter(), len(params.diagnostics)))
        client.news.set()

    await client.start_io(sys.executable, "-m", "mblint", "server")
    await client.initialize_async(t.InitializeParams(capabilities=t.ClientCapabilities(), root_uri=path.parent.as_uri()))
    client.initialized(t.InitializedParams())
    uri = path.as_uri()
    started = time.perf_counter()
    client.text_document_did_open(t.DidOpenTextDocumentParams(t.TextDocumentItem(uri, "python", 1, text)))
    found = {"open": [await client.wait(1) - started], "one recipe": [], "helper": []}
    await client.settle()
    middle = text.index("def ", len(text) // 2)
    places = {"one recipe": text.index("parallel_size = 2", middle) + len("parallel_size = "), "helper": text.index("10000")}
    for kind, at in places.items():
        line, column = text.count("\n", 0, at), at - text.rfind("\n", 0, at) - 1
        before = used(client._server.pid if client._server else 0)
        for number in range(changes if kind == "one recipe" else max(changes // 4, 1)):
            client.version += 1
            place = t.Range(t.Position(line, column), t.Position(line, column + 1))
            new = t.TextDocumentContentChangePartial(range=place, text="2143"[number % 4])
            document = t.VersionedTextDocumentIdentifier(version=client.version, uri=uri)
            started = time.perf_counter()
            client.text_document_did_change(t.DidChangeTextDocumentParams(document, [new]))
            found[kind].append(await client.wait(client.version) - started)
            await (asyncio.sleep(0.2) if kind == "one recipe" else client.settle())
        found[f"{kind}, processor time"] = [(used(client._server.pid if client._server else 0) - before) / len(found[kind])]
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--upstream", default="0.6.2")
    parser.add_argument("--lines", type=int, default=1000)
    args = parser.parse_args()
    text = recipes(args.lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder).resolve() / "team.py"
        path.write_text(text)
        (path.parent / "mblint.toml").write_text(f'upstream = "{args.upstream}"\ngpu = "h100"\nworld-size = 64\n')
        taken = []
        for _ in range(3):
            started = time.perf_counter()
            check = [sys.executable, "-m", "mblint", "check", "team.py", "-j1", "-qq", "--exit-zero", "--no-cache"]
            subprocess.run(check, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            taken.append(time.perf_counter() - started)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        cold, worked = statistics.median(taken), (children.ru_utime + children.ru_stime) / len(taken)
        found = asyncio.run(measure(path, text, args.changes))
    print(f"{len(text.splitlines())} lines, {text.count('def team_')} recipes; times in ms")
    print(f"{'cold mblint check':<48}{cold * 1000:8.0f}")
    print(f"{'cold mblint check, processor time':<48}{worked * 1000:8.0f}")
    for kind, times in found.items():
        peer = worked if "processor" in kind else cold
        worst = f", worst {max(times) * 1000:.0f}" if len(times) > 1 else ""
        median = statistics.median(times)
        ratio = f"  ({peer / median:.0f} times as fast)" if median else ""
        print(f"{f'first diagnostics, {kind}':<48}{median * 1000:8.0f}{worst}{ratio}")


if __name__ == "__main__":
    main()
