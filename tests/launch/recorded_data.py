"""Make the recordings in tests/data/providers compact; also the program that records configuration objects.

    python tests/launch/recorded_data.py providers RECORDING.json.gz tests/data/providers/0.6.2.json.gz
    python tests/launch/recorded_data.py configs MODELS_FOLDER tests/data/providers/configs-5.12.1.json.gz

RECORDING is what `tests/oracle/record.py providers` wrote: it ran the real megatron-bridge. `configs` imports the real
transformers package, so run it where that is installed. Parts that the transformers package fills are left out of
the providers: the configuration objects themselves are compared.
"""

from __future__ import annotations

import collections
import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

PARTS = re.compile(
    r"(^|\.)(vision_config|hf_config|hf_text_config|thinker_config|talker_config|text_config|code2wav_config|audio_config)(\.|$)"
)
MODELS = (
    "meta-llama/Llama-3.2-1B",
    "Qwen/Qwen2-72B",
    "Qwen/Qwen3-30B-A3B",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "Qwen/Qwen2.5-VL-3B-Instruct",
    "Qwen/Qwen3.5-0.8B",
    "Qwen/Qwen3-Omni-30B-A3B-Instruct",
    "google/gemma-3-4b-it",
    "google/gemma-4-E4B-it",
    "deepseek-ai/DeepSeek-V3",
    "deepseek-ai/DeepSeek-V4-Flash",
    "nvidia/Nemotron-H-8B-Base-8K",
    "openai/gpt-oss-20b",
    "zai-org/GLM-4.5V",
    "zai-org/GLM-5.1",
    "mistralai/Ministral-3-3B-Base-2512",
    "MiniMaxAI/MiniMax-M3",
    "LGAI-EXAONE/K-EXAONE-236B-A23B",
)
NEEDLESS = (
    "_commit_hash",
    "ignore_keys_at_rope_validation",
    "transformers_version",
    "_name_or_path",
    "_attn_implementation",
    "_experts_implementation",
)
ASKED = [
    "rope_scaling",
    "rope_theta",
    "torch_dtype",
    "num_hidden_layers",
    "hidden_size",
    "head_dim",
    "num_key_value_heads",
    "num_experts",
    "num_local_experts",
    "n_routed_experts",
    "hybrid_override_pattern",
    "layer_types",
    "tie_word_embeddings",
    "default_theta",
    "model_type",
    "name_or_path",
]


def compact_providers(recording: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """{"classes": {class: {field: usual value}}, "models": {id: [class, {field: other value}, [absent fields]]}}"""
    classes: dict[str, dict[str, dict[str, Any]]] = {}
    for name, values in recording.items():
        flat = {k: v for k, v in values.items() if not PARTS.search(k)}
        classes.setdefault(flat["__class__"], {})[name] = flat
    common: dict[str, dict[str, Any]] = {}
    models: dict[str, list[Any]] = {}
    for cls, members in classes.items():
        counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        for values in members.values():
            for key, value in values.items():
                counts[key][json.dumps(value, sort_keys=True)] += 1
        usual = common[cls] = {key: json.loads(counter.most_common(1)[0][0]) for key, counter in counts.items()}
        for name, values in members.items():
            other = {k: v for k, v in values.items() if usual[k] != v or type(usual[k]) is not type(v)}
            models[name] = [cls, other, sorted(set(usual) - set(values))]
    return {"classes": common, "models": models}


def expand_providers(compact: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Id -> field -> value."""
    return {
        name: {**{k: v for k, v in compact["classes"][cls].items() if k not in absent}, **values}
        for name, (cls, values, absent) in compact["models"].items()
    }


def record_configs(folder: Path) -> dict[str, Any]:
    """{"id": {"config": the file, "object": attributes of the real object, "asked": getattr of some names}}"""
    import torch
    from transformers import PretrainedConfig
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    def encode(value: Any) -> Any:
        if isinstance(value, PretrainedConfig):
            held = {k: encode(v) for k, v in vars(value).items() if not k.startswith(NEEDLESS)}
            return {"__class__": type(value).__name__, **held}
        if isinstance(value, dict):
            return {str(k): encode(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [encode(v) for v in value]
        if isinstance(value, torch.dtype):
            return str(value)
        return value if value is None or isinstance(value, (int, float, str, bool)) else f"<{type(value).__name__}>"

    found: dict[str, Any] = {}
    for name in MODELS:
        file = json.loads((folder / f"{name.replace('/', '--')}.json").read_text())["config"]
        if file["model_type"] not in CONFIG_MAPPING:
            continue
        try:
            made = CONFIG_MAPPING[file["model_type"]].from_dict(json.loads(json.dumps(file)))
        except Exception:  # this release of the package does not take this file
            continue
        asked = {key: encode(getattr(made, key)) if hasattr(made, key) else "<missing>" for key in ASKED}
        found[name] = {"object": encode(made), "asked": asked}
    return found


def main() -> None:
    kind, source, target = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if kind == "providers":
        made = compact_providers(json.loads(gzip.decompress(source.read_bytes())))
    else:
        made = record_configs(source)
    text = json.dumps(made, separators=(",", ":"), sort_keys=True)
    target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{target}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
