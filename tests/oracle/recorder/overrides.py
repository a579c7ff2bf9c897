"""Records what upstream's own override machinery makes of YAML texts and `key=value` arguments."""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import machine, upstream
from .encode import changes, flatten
from .override_texts import CLI, YAML
from .recipes import named_size

# Recipes of different kinds: dense, MoE, hybrid, LoRA, with mixed_precision and comm_overlap as objects.
RECIPES = (
    "megatron.bridge.recipes.nemotronh.h100.nemotron_3_nano:nemotron_3_nano_pretrain_8gpu_h100_bf16_config",
    "megatron.bridge.recipes.qwen.h100.qwen3:qwen3_8b_sft_4gpu_h100_bf16_config",
    "megatron.bridge.recipes.deepseek.h100.deepseek_v3:deepseek_v3_pretrain_1024gpu_h100_bf16_config",
    "megatron.bridge.perf_recipes.llama.h100.llama3:llama3_8b_pretrain_8gpu_h100_bf16_config",
    "megatron.bridge.recipes.llama.llama3:llama32_1b_pretrain_config",
    "megatron.bridge.recipes.qwen.qwen3_moe:qwen3_30b_a3b_pretrain_config",
)


class Heard(logging.Handler):
    """Remembers whether upstream warned."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.warned = False

    def emit(self, record: logging.LogRecord) -> None:
        self.warned = True


def record_overrides(loaded: upstream.Upstream, args: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Every text applied to every recipe of the release that is named, each to a fresh config."""
    functions: dict[str, Callable[[], Any]] = {}
    failed: dict[str, str] = {}
    for package in args.package or upstream.PACKAGES:
        found, _ = upstream.recipes(package)
        functions.update(found)
    if args.launches:
        with gzip.open(args.launches, "rt") as stream:
            rows = [(row["recipe"], row["kind"], row["given"]) for row in json.load(stream)]
    else:
        recipes = args.recipe or [name for name in RECIPES if name in functions]
        rows = [(name, "cli", text) for name in recipes for text in CLI]
        rows += [(name, "yaml", text) for name in recipes for text in YAML]
    records = []
    for name, kind, text in rows:
        if name not in functions:
            failed[name] = "no such recipe in this release"
            continue
        records.append(apply(functions[name], name, kind, text, loaded.folder))
    return records, failed


def apply(function: Callable[[], Any], name: str, kind: str, text: str, folder: str) -> dict[str, Any]:
    """One text applied to a fresh config of one recipe."""
    from megatron.bridge.training.utils import omegaconf_utils

    size, gpu = named_size(name) or (8, "h100")
    path = Path(folder) / "given.yaml"
    heard = Heard()
    head = {"recipe": name, "kind": kind, "given": text, "warned": False}
    with machine.launch_on(gpu, size, folder):
        with upstream.quiet():
            config = function()
        before = flatten(config, folder)
        os.environ["HOME"] = "<home>"
        logger = omegaconf_utils.logger
        logging.disable(logging.NOTSET)
        logger.addHandler(heard)
        logger.propagate = False
        try:
            with upstream.quiet():
                if kind == "yaml":
                    path.write_text(text)
                    config = omegaconf_utils.process_config_with_overrides(config, config_filepath=str(path))
                else:
                    config = omegaconf_utils.process_config_with_overrides(config, cli_overrides=[text])
        except Exception as error:
            message = re.sub(r'"[^"]*given\.yaml",', '"<file>', str(error))[:260]
            return {**head, "ok": False, "type": type(error).__name__, "msg": message}
        finally:
            logger.removeHandler(heard)
            logger.propagate = True
            logging.disable(logging.CRITICAL)
        return {
            **head,
            "warned": heard.warned,
            "ok": True,
            "changed": changes(before, flatten(config, folder), "<absent>"),
        }
