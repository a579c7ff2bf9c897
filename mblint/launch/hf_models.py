"""Configuration objects of models: what AutoConfig.from_pretrained gives evaluated code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mblint.evaluate.copying import copy_value
from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import ClassValue, Instance
from mblint.launch import hf_build
from mblint.launch.bridges import BridgeIndex
from mblint.launch.hf_classes import Library
from mblint.upstream.models import NOT_SHARED, ModelFacts, ModelSource

LOADING = frozenset(
    [
        "trust_remote_code",
        "revision",
        "code_revision",
        "cache_dir",
        "force_download",
        "local_files_only",
        "token",
        "use_auth_token",
        "proxies",
        "subfolder",
        "resume_download",
        "return_unused_kwargs",
        "device_map",
        "low_cpu_mem_usage",
    ]
)
"""Arguments of from_pretrained that say how to load, not what."""

AT_CONSTRUCTION = frozenset(
    [
        "num_labels",
        "attn_implementation",
        "experts_implementation",
        "output_attentions",
        "torch_dtype",
        "dtype",
        "name_or_path",
    ]
)
"""Arguments of from_pretrained that take the place of keys of the file; others are set afterwards."""


class Models:
    """Configurations by name, each built once and handed out as copies."""

    def __init__(self, machine: Machine, library: Library, source: ModelSource, bridges: BridgeIndex) -> None:
        self.machine = machine
        self.library = library
        self.source = source
        self.bridges = bridges
        library.class_of = self.class_of
        library.load = lambda cls, name, kwargs: self.config(name, kwargs, cls)
        self.registered: dict[str, ClassValue] = {}
        """model_type -> class, by AutoConfig.register in evaluated code."""
        self.built: dict[tuple[str, str | None], Instance] = {}

    def config(self, name: Any, kwargs: Mapping[str, Any] | None = None, cls: ClassValue | None = None) -> Instance:
        """The configuration of a model by id or folder; without facts, one of which nothing is known."""
        kwargs = kwargs or {}
        subfolder = kwargs.get("subfolder")
        problem = self.problem(name, subfolder)
        if problem is not None:
            return self.machine.new_instance(None, problem)
        changed = {
            key: value for key, value in kwargs.items() if key in AT_CONSTRUCTION and not (key.endswith("dtype") and value == "auto")
        }
        if changed or cls is not None:
            made = self._build(name, subfolder or None, changed, cls)
        else:
            held = self.built.get((name, subfolder))
            if held is None:
                # It is kept beyond the launch, so what making it wrote is not taken back with the launch.
                trail, self.machine.trail = self.machine.trail, []
                try:
                    held = self.built[name, subfolder] = self._build(name, subfolder or None, {}, None)
                finally:
                    self.machine.trail = trail
            made = copy_value(self.machine, held)
        for key, value in kwargs.items():
            if key is None or key in LOADING or key in AT_CONSTRUCTION or made.cls is None:
                continue
            if key in made.attrs or self.library.peek(made, key, None) is not None:
                self._override(made, key, value)
        return made

    def problem(self, name: Any, subfolder: Any = None) -> str | None:
        """Why there are no facts of a model; None when there are."""
        if not isinstance(name, str):
            return getattr(name, "reason", "") or "the model id is not known"
        if not isinstance(subfolder, (str, type(None))):
            return "where the model's configuration is, is not known"
        return self.source.facts(name, subfolder).reason or None

    def _override(self, made: Instance, key: str, value: Any) -> None:
        current = made.attrs.get(key)
        if isinstance(current, Instance) and isinstance(value, dict):
            for inner, new in value.items():
                self.library.put(current, inner, new)
        else:
            self.library.put(made, key, value)

    def _build(self, name: str, subfolder: str | None, changed: dict[str, Any], cls: ClassValue | None) -> Instance:
        facts = self.source.facts(name, subfolder)
        library = self.library
        values = library.fresh({**(facts.config or {})})
        values.setdefault("name_or_path", name)
        values.update(changed)
        model_type = values.get("model_type")
        cls = cls if cls is not None else self.class_of(model_type, values.get("architectures"))
        if not facts.complete and cls is not None:
            self._name_architecture(values, model_type)
        if cls is not None:
            made = hf_build.build(library, cls, values)
        else:
            made = hf_build.build_open(library, values, facts.complete)
        if not facts.complete:
            self._forget_absent(made, {**(facts.config or {}), **changed}, facts)
        return made

    def class_of(self, model_type: Any, architectures: Any) -> ClassValue | None:
        """The class of a model type; by its architecture when the package does not know the type."""
        if not isinstance(model_type, str):
            return None
        if model_type in self.registered:
            return self.registered[model_type]
        cls = self.library.class_of_type(model_type)
        if cls is not None:
            return cls
        if model_type in self.bridges.configs:
            found = self.machine.modules.import_from(*self.bridges.configs[model_type])
            return found if isinstance(found, ClassValue) else None
        # Repositories that bring the class themselves write it after the package's one for the architecture.
        for architecture in architectures if isinstance(architectures, list) else ():
            known = self.library.table["architectures"]
            if isinstance(architecture, str) and architecture in known:
                return self.library.class_of_type(known[architecture])
        return None

    def _name_architecture(self, values: dict[str, Any], model_type: Any) -> None:
        """Facts in part may lack `architectures`: often only one with a bridge has the model type."""
        if values.get("architectures"):
            return
        known = self.library.table["architectures"]
        fitting = [name for name, kind in known.items() if kind == model_type and name in self.bridges.bridges]
        one = len(fitting) == 1
        values["architectures"] = fitting if one else Unknown("the model's architectures are not known")

    def _forget_absent(self, made: Instance, given: Mapping[str, Any], facts: ModelFacts, part: bool = False) -> None:
        """Keys in which models of one architecture differ are not known when facts in part lack them."""
        unsure = NOT_SHARED
        if part and not self.library.table["base"]["rope"]:
            unsure = unsure | {"rope_scaling"}  # parts of composite models have it in sections of their own
        for key in unsure:
            if key not in given and key in made.attrs and not (key == "dtype" and "torch_dtype" in given):
                made.attrs[key] = Unknown(f"{key} of this model is not known ({facts.confidence} facts)")
        for name, inner in made.attrs.items():
            if isinstance(inner, Instance):
                # A file from before there were parts tells about them at its top.
                own = given.get(name)
                self._forget_absent(inner, own if isinstance(own, dict) else given, facts, True)

    # --- what evaluated code calls --------------------------------------------------------------------

    def from_pretrained(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        """AutoConfig.from_pretrained(id or folder, **arguments)"""
        rest = dict(kwargs)
        named = rest.pop("pretrained_model_name_or_path", None)
        made = self.config(args[0] if args else named, rest)
        return (made, {}) if kwargs.get("return_unused_kwargs") is True else made

    def register(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        """AutoConfig.register(model_type, class)"""
        if len(args) >= 2 and isinstance(args[0], str) and isinstance(args[1], ClassValue):
            self.registered[args[0]] = args[1]
        return None

    def for_model(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        """AutoConfig.for_model(model_type, **values)"""
        return self.library.config_of(m, args, kwargs, site, frame)

    def load_dict(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        """The config.json of a diffusers model as a dict."""
        name, subfolder = args[0] if args else None, kwargs.get("subfolder")
        if not isinstance(name, str) or type(subfolder) is Unknown:
            return Unknown("the configuration of a model that is not known")
        facts = self.source.facts(name, subfolder)
        return self.library.fresh({**facts.config}) if facts.config is not None else Unknown(facts.reason)
