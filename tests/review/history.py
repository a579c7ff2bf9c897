"""A project and 40 commits on it: what somebody changed, under which message, and which rules that is to be told."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMON = '''\
"""What all recipes of the team share."""

ALLOCATOR = "expandable_segments:True"


def environment(cfg):
    cfg.env_vars = {"PYTORCH_CUDA_ALLOC_CONF": ALLOCATOR, "NCCL_NVLS_ENABLE": "0", "NCCL_GRAPH_REGISTER": "0"}
    return cfg


def sizes(cfg, tp, pp, vp=None):
    cfg.model.tensor_model_parallel_size = tp
    cfg.model.pipeline_model_parallel_size = pp
    cfg.model.virtual_pipeline_model_parallel_size = vp
    cfg.model.context_parallel_size = 1
    cfg.model.sequence_parallel = tp > 1
    return cfg


def schedule(cfg, steps):
    cfg.train.train_iters = steps
    cfg.scheduler.lr_warmup_iters = 100
    return cfg
'''

LLAMA = '''\
"""Llama 3 for the team's 32 GPUs."""

from megatron.bridge.recipes.llama.h100.llama3 import llama3_70b_pretrain_32gpu_h100_bf16_config as shipped_70b
from megatron.bridge.recipes.llama.h100.llama3 import llama3_8b_peft_1gpu_h100_bf16_config as shipped_lora

from recipes.common import environment, schedule, sizes


def ours_70b_config():
    cfg = shipped_70b()
    sizes(cfg, tp=4, pp=4, vp=5)
    cfg.train.global_batch_size = 128
    cfg.train.micro_batch_size = 1
    schedule(cfg, 20000)
    cfg.scheduler.lr_decay_iters = 20000
    cfg.checkpoint.save = "/ckpt/llama70b"
    cfg.checkpoint.load = "/ckpt/llama70b"
    cfg.optimizer.lr = 1.5e-4
    return environment(cfg)


def ours_lora_config():
    cfg = shipped_lora()
    sizes(cfg, tp=2, pp=1)
    cfg.peft.sequence_parallel_input_regather = True
    cfg.train.micro_batch_size = 1
    return environment(cfg)
'''

QWEN = '''\
"""Qwen 3 for the team's 32 GPUs."""

from megatron.bridge.recipes.qwen.h100.qwen3 import qwen3_8b_pretrain_4gpu_h100_bf16_config as shipped_8b

from recipes.common import environment, sizes

GPUS = 32


def ours_qwen_config():
    cfg = shipped_8b()
    tp, pp = 2, 1
    sizes(cfg, tp=tp, pp=pp)
    cfg.train.global_batch_size = GPUS // (tp * pp) * 16
    return environment(cfg)
'''

SETTINGS = """\
world-size = 32
gpu = "h200"

[[launches]]
name = "qwen with overrides"
recipe = "ours_qwen_config"
files = ["conf/überschreibung 1.yaml"]
"""

OVERRIDES = "train:\n  log_interval: 10\nmodel:\n  seq_length: 4096\n"


@dataclass(frozen=True)
class Commit:
    """`edit` changes the files; `expected` are the rules that the commit is to be told, no more and no less."""

    message: str
    edit: Callable[[Path], None]
    expected: frozenset[str] = frozenset()

    @property
    def harmless(self) -> bool:
        return not self.expected


def git(folder: Path, *args: str) -> str:
    """Run git in a folder, with an identity and nothing of the user's settings."""
    identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false", "-c", "protocol.file.allow=always"]
    done = subprocess.run(
        ["git", *identity, *args], cwd=folder, capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(folder.parent), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"},
    )  # fmt: skip
    assert done.returncode == 0, f"git {args}: {done.stderr}"
    return done.stdout.strip()


def start(folder: Path) -> Path:
    """The project at its first commit."""
    for name, text in (
        ("recipes/__init__.py", ""),
        ("recipes/common.py", COMMON),
        ("recipes/llama.py", LLAMA),
        ("recipes/qwen.py", QWEN),
        ("mblint.toml", SETTINGS),
        ("conf/überschreibung 1.yaml", OVERRIDES),
        ("README.md", "Recipes.\n"),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "Add the recipes")
    return folder


def commit(folder: Path, message: str) -> None:
    """Commit everything that there is."""
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)


def swap(name: str, *pairs: tuple[str, str]) -> Callable[[Path], None]:
    """An edit that replaces texts of a file; each has to be there."""

    def edit(folder: Path) -> None:
        path = folder / name
        text = path.read_text(encoding="utf-8")
        for old, new in pairs:
            assert old in text, f"{old!r} is not in {name}"
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")

    return edit


def both(*edits: Callable[[Path], None]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        for each in edits:
            each(folder)

    return edit


def put(name: str, text: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    return edit


def move(old: str, new: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        (folder / new).parent.mkdir(parents=True, exist_ok=True)
        (folder / old).rename(folder / new)

    return edit


def _move_to_package(folder: Path) -> None:
    """Move the Qwen recipe into a package of its own, with a line that keeps the old import alive."""
    move("recipes/qwen.py", "recipes/qwen/dense.py")(folder)
    put("recipes/qwen/__init__.py", "")(folder)


def _move_function(folder: Path) -> None:
    """Move the LoRA recipe out of llama.py into a module of its own."""
    path = folder / "recipes/llama.py"
    text = path.read_text(encoding="utf-8")
    head, mark, tail = text.partition("def ours_lora")
    end = tail.index("return environment(cfg)\n") + len("return environment(cfg)\n")
    lora, rest = mark + tail[:end], tail[end:]
    line = next(line for line in text.splitlines() if "shipped_lora" in line)
    path.write_text(head.replace(line + "\n", "").rstrip() + "\n" + rest, encoding="utf-8")
    put("recipes/lora.py", f'"""LoRA."""\n\n{line}\n\nfrom recipes.common import environment, sizes\n\n\n{lora}')(folder)


def _sections(folder: Path) -> None:
    """Give the 70B recipe's sections to helpers of its own."""
    swap(
        "recipes/llama.py",
        (
            '    cfg.checkpoint.save = "/ckpt/llama70b-v2"\n    cfg.checkpoint.load = "/ckpt/llama70b"\n',
            '    _folders(cfg, "/ckpt/llama70b-v2", "/ckpt/llama70b")\n',
        ),
        (
            "def team_llama_70b_config",
            "def _folders(cfg, save, load):\n    cfg.checkpoint.save = save\n    cfg.checkpoint.load = load\n\n\ndef team_llama_70b_config",
        ),
    )(folder)


L, Q, C = "recipes/llama.py", "recipes/qwen.py", "recipes/common.py"
D = "recipes/qwen/dense.py"

COMMITS: tuple[Commit, ...] = (
    Commit("Say what the recipes are for", swap("README.md", ("Recipes.", "Recipes of the team."))),
    Commit("Raise TP: the 70B run was out of memory", swap(L, ("tp=4, pp=4, vp=5", "tp=8, pp=4, vp=5")), frozenset({"MB150"})),
    Commit(
        "Set the sizes by constants",
        both(
            swap(L, ("tp=8, pp=4, vp=5", "tp=TP, pp=PP, vp=VP")),
            swap(L, ("def ours_70b_config", "TP, PP, VP = 8, 4, 5\n\n\ndef ours_70b_config")),
        ),
    ),
    Commit("Go back to TP 4", swap(L, ("TP, PP, VP = 8, 4, 5", "TP, PP, VP = 4, 4, 5"))),
    Commit("Use longer pipelines", swap(L, ("TP, PP, VP = 4, 4, 5", "TP, PP, VP = 4, 8, 5")), frozenset({"MB151"})),
    Commit(
        "Reorder the assignments",
        swap(
            L,
            (
                "    cfg.train.global_batch_size = 128\n    cfg.train.micro_batch_size = 1\n",
                "    cfg.train.micro_batch_size = 1\n    cfg.train.global_batch_size = 128\n",
            ),
        ),
    ),
    Commit("Go back to PP 4", swap(L, ("= 4, 8, 5", "= 4, 4, 5"))),
    Commit("VPP 10 against the OOM of 70B", swap(L, ("= 4, 4, 5", "= 4, 4, 10")), frozenset({"MB152"})),
    Commit("Smaller bubble: back to 5 chunks", swap(L, ("= 4, 4, 10", "= 4, 4, 5"))),
    Commit(
        "Wrap long lines",
        swap(
            C,
            (
                '    cfg.env_vars = {"PYTORCH_CUDA_ALLOC_CONF": ALLOCATOR, "NCCL_NVLS_ENABLE": "0", "NCCL_GRAPH_REGISTER": "0"}\n',
                '    cfg.env_vars = {\n        "PYTORCH_CUDA_ALLOC_CONF": ALLOCATOR,\n        "NCCL_NVLS_ENABLE": "0",\n'
                '        "NCCL_GRAPH_REGISTER": "0",\n    }\n',
            ),
        ),
    ),
    Commit(
        "Recompute the MLP",
        swap(
            L,
            (
                "    cfg.optimizer.lr = 1.5e-4\n",
                '    cfg.optimizer.lr = 1.5e-4\n    cfg.model.recompute_granularity = "selective"\n'
                '    cfg.model.recompute_modules = ["core_attn", "mlp"]\n',
            ),
        ),
        frozenset({"MB153"}),
    ),
    Commit("List the modules the other way round", swap(L, ('["core_attn", "mlp"]', '["mlp", "core_attn"]'))),
    Commit(
        "Recompute everything",
        swap(
            L,
            (
                '    cfg.model.recompute_granularity = "selective"\n    cfg.model.recompute_modules = ["mlp", "core_attn"]\n',
                '    cfg.model.recompute_granularity = "full"\n    cfg.model.recompute_method = "uniform"\n'
                "    cfg.model.recompute_num_layers = 1\n",
            ),
        ),
        frozenset({"MB154"}),
    ),
    Commit(
        "Recompute nothing",
        swap(
            L,
            (
                '    cfg.model.recompute_granularity = "full"\n    cfg.model.recompute_method = "uniform"\n'
                "    cfg.model.recompute_num_layers = 1\n",
                "",
            ),
        ),
    ),
    Commit("Rename the 70B recipe", swap(L, ("ours_70b_config", "team_llama_70b_config"))),
    Commit(
        "Plain optimizer",
        swap(
            L,
            (
                "    cfg.optimizer.lr = 1.5e-4\n",
                "    cfg.optimizer.lr = 1.5e-4\n    cfg.optimizer.use_distributed_optimizer = False\n"
                "    cfg.ddp.use_distributed_optimizer = False\n    cfg.ddp.overlap_param_gather = False\n",
            ),
        ),
        frozenset({"MB155"}),
    ),
    Commit(
        "Distributed optimizer again",
        swap(
            L,
            (
                "    cfg.optimizer.use_distributed_optimizer = False\n    cfg.ddp.use_distributed_optimizer = False\n"
                "    cfg.ddp.overlap_param_gather = False\n",
                "",
            ),
        ),
    ),
    Commit("Tidy the environment", swap(C, ('        "PYTORCH_CUDA_ALLOC_CONF": ALLOCATOR,\n', "")), frozenset({"MB156"})),
    Commit(
        "Allocator settings are back",
        swap(C, ('        "NCCL_NVLS_ENABLE"', '        "PYTORCH_CUDA_ALLOC_CONF": ALLOCATOR,\n        "NCCL_NVLS_ENABLE"')),
    ),
    Commit("Move the LoRA recipe to a module of its own", _move_function),
    Commit(
        "Simplify the LoRA recipe",
        swap("recipes/lora.py", ("    cfg.peft.sequence_parallel_input_regather = True\n", "")),
        frozenset({"MB157"}),
    ),
    Commit(
        "Keep the input of LoRA sharded",
        swap(
            "recipes/lora.py",
            ("    cfg.train.micro_batch_size", "    cfg.peft.sequence_parallel_input_regather = True\n    cfg.train.micro_batch_size"),
        ),
    ),
    Commit("Qwen with TP 4", swap(Q, ("tp, pp = 2, 1", "tp, pp = 4, 1")), frozenset({"MB150", "MB158"})),
    Commit(
        "Extract the batch arithmetic",
        both(
            swap(
                Q,
                ("GPUS // (tp * pp) * 16", "batch(tp * pp, 16)"),
                ("import environment, sizes", "import batch, environment, sizes"),
                ("GPUS = 32\n\n\n", "\n"),
            ),
            swap(
                C,
                (
                    "def schedule",
                    "def batch(model_parallel, per_rank, gpus=32):\n    return gpus // model_parallel * per_rank\n\n\ndef schedule",
                ),
            ),
        ),
    ),
    Commit("Move Qwen into a package", _move_to_package),
    Commit("Train the 70B longer", swap(L, ("schedule(cfg, 20000)", "schedule(cfg, 30000)")), frozenset({"MB159"})),
    Commit("Decay over all of it", swap(L, ("lr_decay_iters = 20000", "lr_decay_iters = 30000"))),
    Commit("Save version 2 elsewhere", swap(L, ('save = "/ckpt/llama70b"', 'save = "/ckpt/llama70b-v2"')), frozenset({"MB162"})),
    Commit("Helpers for the folders", _sections),
    Commit(
        "Reduce in half precision where it is fast",
        swap(L, ("    cfg.optimizer.lr = 1.5e-4\n", '    cfg.optimizer.lr = 1.5e-4\n    cfg.mixed_precision = "fp16_mixed"\n')),
        frozenset({"MB160"}),
    ),
    Commit("bf16 again", swap(L, ('    cfg.mixed_precision = "fp16_mixed"\n', ""))),
    Commit("LoRA with micro batches of 2", swap("recipes/lora.py", ("micro_batch_size = 1", "micro_batch_size = 2")), frozenset({"MB708"})),
    Commit("Comment on memory: TP 4 avoids OOM here", swap(D, ("tp, pp = 4, 1", "tp, pp = 4, 1  # out of memory with less"))),
    Commit(
        "Add a recipe",
        put("recipes/small.py", QWEN.replace("ours_qwen", "ours_small").replace("tp, pp = 2, 1", "tp, pp = 1, 1")),
        frozenset({"MB717"}),
    ),
    Commit(
        "Eight-way TP by override",
        swap("conf/überschreibung 1.yaml", ("model:\n", "model:\n  tensor_model_parallel_size: 8\n")),
        frozenset({"MB150"}),
    ),
    Commit(
        "Sort the override file",
        put("conf/überschreibung 1.yaml", "model: {seq_length: 4096, tensor_model_parallel_size: 8}\ntrain: {log_interval: 10}\n"),
    ),
    Commit(
        "Share the sizes with all",
        swap(C, ("    cfg.model.tensor_model_parallel_size = tp\n", "    cfg.model.tensor_model_parallel_size = 2 * tp\n")),
        frozenset({"MB150"}),
    ),
    Commit("Share the sizes with nobody", swap(C, ("= 2 * tp\n", "= tp\n"))),
    Commit("Misspell a key", swap(L, ("cfg.train.micro_batch_size = 1", "cfg.train.micro_batchsize = 1")), frozenset({"MB801"})),
    Commit(
        "Rename the helper module",
        both(
            move(C, "recipes/shared.py"),
            swap(L, ("recipes.common", "recipes.shared")),
            swap(D, ("recipes.common", "recipes.shared")),
            swap("recipes/lora.py", ("recipes.common", "recipes.shared")),
            swap("recipes/small.py", ("recipes.common", "recipes.shared")),
        ),
    ),
)


def rules(report: Any) -> list[str]:
    """The rules of a JSON report's findings, sorted, each once."""
    return sorted({finding["rule"] for finding in report["findings"]})
