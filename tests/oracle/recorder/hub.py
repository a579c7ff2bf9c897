"""A model hub on this disk: config.json files in place of the real hub, nothing else.

`models` is a folder of `<org>--<name>.json` files with the keys `hf_id` and `config`. Whatever asks the hub
for `config.json` of a known id gets that config; every other file, and every other id, is missing. Code of
a model repository is never run: where the transformers package has no class for a model type, it is the class of the
architecture that the file names, or a plain object that has just the keys of the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_models(folder: Path) -> dict[str, dict[str, Any]]:
    """Hugging Face id -> its config.json."""
    configs: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text())
        configs[record["hf_id"]] = record["config"]
    return configs


def install(models: dict[str, dict[str, Any]], cache: Path) -> None:
    """Answer the transformers package's questions to the hub from `models`; `cache` holds the files it reads."""
    from transformers import AutoConfig, AutoProcessor, AutoTokenizer, PretrainedConfig
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    from transformers.utils import hub

    def cached_files(path_or_repo_id: Any, filenames: list[str], **kwargs: Any) -> list[str] | None:
        name = str(path_or_repo_id)
        if name in models and filenames == ["config.json"]:
            target = cache / name.replace("/", "--") / "config.json"
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                target.write_text(json.dumps(models[name]))
            return [str(target)]
        if not kwargs.get("_raise_exceptions_for_missing_entries", True):
            return None
        raise OSError(f"{name} does not appear to have a file named {filenames[0]}")

    hub.cached_files = cached_files
    real = AutoConfig.from_pretrained.__func__

    def from_pretrained(cls: Any, pretrained_model_name_or_path: Any, *args: Any, **kwargs: Any) -> Any:
        name = str(pretrained_model_name_or_path)
        if name in models and models[name].get("model_type") not in CONFIG_MAPPING:
            return config_of(name)
        kwargs["trust_remote_code"] = False
        return real(cls, pretrained_model_name_or_path, *args, **kwargs)

    def config_of(name: str) -> Any:
        """For a model type that only the repository's own code knows: the class of its architecture, or a plain one."""
        values = dict(models[name])
        architecture = (values.get("architectures") or [""])[0]
        known = [kind for kind, model in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items() if model == architecture]
        if known:
            config = CONFIG_MAPPING[known[0]](**values)
        else:
            config = type("PlainConfig", (PretrainedConfig,), {})()
            for key, value in values.items():
                setattr(config, key, value)
        config.model_type = values.get("model_type") or "unknown"
        config.name_or_path = name
        return config

    AutoConfig.from_pretrained = classmethod(from_pretrained)

    def no_files(cls: Any, pretrained_model_name_or_path: Any, *args: Any, **kwargs: Any) -> Any:
        raise OSError(f"{pretrained_model_name_or_path} does not appear to have tokenizer or processor files")

    # Newer transformers would make an empty tokenizer of a config alone.
    for kind in (AutoTokenizer, AutoProcessor):
        kind.from_pretrained = classmethod(no_files)


def without_revisions() -> None:
    """The local hub has one revision of each model: AutoBridge is not told of another one."""
    from megatron.bridge import AutoBridge

    real = AutoBridge.from_hf_pretrained.__func__

    def from_hf_pretrained(cls: Any, path: Any, **kwargs: Any) -> Any:
        kwargs.pop("revision", None)
        return real(cls, path, **kwargs)

    AutoBridge.from_hf_pretrained = classmethod(from_hf_pretrained)
