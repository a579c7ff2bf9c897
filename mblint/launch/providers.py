"""Model providers from Hugging Face ids: AutoBridge, evaluated on what is known of the model.

For a release whose source is there, upstream's own AutoBridge and the bridge class of the model's
architecture run on a configuration object that is built from facts (mblint/upstream/models.py): the network
is not asked. What does not follow from these stays unknown. Without source, the recorded providers answer.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mblint.evaluate.copying import copy_value
from mblint.evaluate.errors import Raised
from mblint.evaluate.machine import Machine, exception_text
from mblint.evaluate.modules import Module
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, ClassValue, ExceptionValue, External, FunctionValue, Instance
from mblint.launch.apart import PLAIN, Memory, same_graph
from mblint.launch.bridges import BridgeIndex, bridges_in, index_bridges
from mblint.launch.hf_classes import Library
from mblint.launch.hf_models import Models
from mblint.launch.recorded import enum_or, recorded_provider
from mblint.upstream.models import ModelSource, cache_folder
from mblint.upstream.transformers import class_table, table_for

AUTO_BRIDGE = "megatron.bridge.models.conversion.auto_bridge.AutoBridge"
REGISTER = "megatron.bridge.models.conversion.model_bridge.register_bridge_implementation"
LOAD_CONFIG = "megatron.bridge.models.hf_pretrained.safe_config_loader.safe_load_config_with_retry"
AUTO_CONFIG_MODULES = (
    "transformers",
    "transformers.models.auto",
    "transformers.models.auto.configuration_auto",
)
DIFFUSERS_MODELS = ("FluxTransformer2DModel", "WanTransformer3DModel")

KEY = "_mblint_key"
"""Attribute of an AutoBridge that was made from plain arguments: which ones, the id or folder first."""

HOOKS = ("_pre_wrap_hooks", "pre_wrap_hooks")


def install(
    machine: Machine,
    release: str,
    project: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    source: ModelSource | None = None,
) -> Providers:
    """Register what stands in for the Hugging Face side of megatron-bridge with a machine.

    `project`: folders in which a relative model path is looked for. `environment`: says where the user's
    Hugging Face cache is (default: that of the process). `source` replaces both.
    """
    if source is None:
        source = ModelSource(project, cache_folder(os.environ if environment is None else environment))
    providers = Providers(machine, release, source)
    providers.install()
    return providers


class Providers:
    """AutoBridge for one machine, evaluated once for each set of plain arguments."""

    def __init__(self, machine: Machine, release: str, source: ModelSource) -> None:
        self.machine = machine
        self.release = release
        self.source = source
        self.memory = Memory(machine)
        self.own: dict[str, ClassValue] = {}
        """Architecture -> bridge class, by register_bridge in evaluated code that is not upstream's."""
        self._searched: set[str] = set()
        self._models: Models | None = None
        self._bridges: BridgeIndex | None = None

    def install(self) -> None:
        """Put the stand-ins in place. The tables are loaded when something asks for the package."""
        machine = self.machine
        machine.modules.stand_ins["transformers"] = lambda name: self.models.library.module(name)
        machine.special_functions.update(
            {
                f"{AUTO_BRIDGE}.from_hf_pretrained": self._from_hf_pretrained,
                f"{AUTO_BRIDGE}.to_megatron_provider": self._to_megatron_provider,
                f"{AUTO_BRIDGE}.can_handle": self._can_handle,
                f"{AUTO_BRIDGE}._validate_config": self._validate_config,
                f"{AUTO_BRIDGE}._model_bridge": self._model_bridge,
                REGISTER: self._register_bridge,
                LOAD_CONFIG: self._load_config,
            }
        )
        calls = machine.facts.special_calls
        for module in AUTO_CONFIG_MODULES:
            for name in ("from_pretrained", "register", "for_model"):
                calls[f"{module}.AutoConfig.{name}"] = self._of_models(name)
        for model in DIFFUSERS_MODELS:
            calls[f"diffusers.{model}.load_config"] = self._of_models("load_dict")

    @property
    def bridges(self) -> BridgeIndex:
        if self._bridges is None:
            self._bridges = index_bridges(self.machine.modules.roots)
        return self._bridges

    @property
    def models(self) -> Models:
        if self._models is None:
            table = table_for(self.release, self.machine.facts.versions.get("transformers"))
            library = Library(self.machine, class_table(table))
            self._models = Models(self.machine, library, self.source, self.bridges)
        return self._models

    def _of_models(self, name: str) -> Callable[..., Any]:
        return lambda *arguments: getattr(self.models, name)(*arguments)

    # --- what stands in for functions of upstream -----------------------------------------------------

    def _load_config(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        given = {k: v for k, v in kwargs.items() if k not in ("path", "max_retries", "base_delay")}
        return self.models.config(args[0] if args else kwargs.get("path"), given)

    def _from_hf_pretrained(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        cls = args[0] if args and isinstance(args[0], ClassValue) else self._auto_bridge()
        path = args[1] if len(args) > 1 else kwargs.get("path")
        # Which revision facts belong to is not known, so it cannot choose among them.
        rest = {name: value for name, value in kwargs.items() if name not in ("path", "revision")}
        pinned = kwargs.get("revision") is not None
        function = self._method("from_hf_pretrained")
        plain = all(isinstance(value, (*PLAIN, External)) for value in (path, *rest.values()))
        key = (
            path,
            cls.full_name if cls is not None else "",
            pinned,
            *(sorted(rest.items()) if plain else ()),
        )
        problem = self.models.problem(path, rest.get("subfolder"))
        if function is None or cls is None or problem is not None:
            return self._unknown_bridge(cls, path, problem or "")
        if not plain:
            try:
                made = self._run(function, [cls, path], rest, site, frame)
            except Raised as raised:  # facts may be wrong: what is refused is only not known
                made = Unknown(exception_text(raised.value))
            if isinstance(made, Instance) and made.cls is not None:
                made.attrs[KEY] = (path,)
                return made
            return self._unknown_bridge(cls, path, getattr(made, "reason", ""))
        pristine = self.memory.get(("bridge", key), lambda: self._run(function, [cls, path], rest, None, frame))
        if pristine.cls is None:
            return self._unknown_bridge(cls, path, pristine.reason)
        pristine.attrs[KEY] = key
        if pinned and "hf_model_revision" in pristine.attrs:
            pristine.attrs["hf_model_revision"] = Unknown("no facts say to which revision they belong")
        return copy_value(m, pristine)

    def _unknown_bridge(self, cls: ClassValue | None, path: Any, reason: str) -> Instance:
        """An AutoBridge of which only its methods are known: what they give is not."""
        made = self.machine.new_instance(cls, reason or "AutoBridge was not evaluated")
        made.attrs[KEY] = (path,)
        return made

    def _to_megatron_provider(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        bridge = args[0] if args else None
        load = args[1] if len(args) > 1 else kwargs.get("load_weights", True)
        function = self._method("to_megatron_provider")
        if not isinstance(bridge, Instance) or bridge.cls is None:
            return self._without_source(getattr(bridge, "reason", ""), None, load)
        key: Any = bridge.attrs.get(KEY)
        if function is None or bridge.attrs.keys() == {KEY}:
            return self._without_source(bridge.reason, key[0] if key else None, load)
        pristine = next((p for p in self.memory.results(("bridge", key)) if same_graph(p, bridge)), None)
        rest = args[1:]
        if pristine is None or not all(isinstance(value, PLAIN) for value in (*rest, *kwargs.values())):
            try:
                result = self._run(function, args, kwargs, site, frame)
            except Raised as raised:
                if key is None:  # the recipe made the configuration itself: this is what a launch would say
                    raise
                result = Unknown(exception_text(raised.value))
        else:

            def compute() -> Any:
                made = self._run(function, [copy_value(m, pristine), *rest], kwargs, None, frame)
                return _without_hooks(made)

            held = self.memory.get(("provider", key, tuple(rest), tuple(sorted(kwargs.items()))), compute)
            result = copy_value(m, held)
        if isinstance(result, Instance) and result.cls is not None:
            return result
        return self._without_source(getattr(result, "reason", ""), key[0] if key else None, load)

    def _without_source(self, reason: str, hf_id: Any, load: Any) -> Instance:
        """The recorded provider; for other ids an object of which only what the recipe sets is known."""
        provider = recorded_provider(self.machine, self.release, hf_id)
        if provider.cls is None and reason:
            provider.reason = reason
        if load is True:
            provider.attrs["perform_initialization"] = False
        return provider

    def _can_handle(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        config = self.models.config(args[1] if len(args) > 1 else kwargs.get("path"))
        names = config.attrs.get("architectures")
        if config.cls is None or not isinstance(names, (list, type(None))):
            return Unknown(config.reason or "the model's architecture is not known")
        return any(self._has_bridge(name) for name in names or ())

    def _validate_config(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        config = args[1] if len(args) > 1 else kwargs.get("config")
        if not isinstance(config, Instance) or config.cls is None:
            return None
        names = config.attrs.get("architectures", MISSING)
        mapped = config.attrs.get("auto_map")
        if names is MISSING or type(names) is Unknown or type(mapped) is Unknown:
            return None
        if isinstance(mapped, dict) and isinstance(mapped.get("AutoModelForCausalLM"), str):
            names = [mapped["AutoModelForCausalLM"].rpartition(".")[2]]
        names = names if isinstance(names, (list, tuple)) else []
        if any(not isinstance(name, str) or self._has_bridge(name) for name in names):
            return None
        what = ", ".join(names) or "a model without architectures"
        problem = ExceptionValue(ValueError, (f"this megatron-bridge has no bridge for {what}",))
        raise Raised(problem, site, frame.trace)

    def _model_bridge(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        from mblint.evaluate.calls import instantiate
        from mblint.evaluate.objects import get_attribute

        auto = args[0]
        config = auto.attrs.get("hf_pretrained") if isinstance(auto, Instance) else None
        if _is_wrapper(config):
            config = get_attribute(m, config, "config", site, frame)
        if not isinstance(config, Instance) or config.cls is None:
            reason = getattr(config, "reason", "") or "the model's configuration is not known"
            return m.new_instance(None, reason)
        name = get_attribute(m, auto, "_causal_lm_architecture", site, frame)
        if isinstance(name, External):
            name = name.name.rpartition(".")[2]
        if not isinstance(name, str):
            # Whether the file has an auto_map is not known: it would name the same architecture.
            named = config.attrs.get("architectures")
            named = named if isinstance(named, list) else []
            fitting = [n for n in named if isinstance(n, str) and self._has_bridge(n)]
            name = fitting[0] if len(fitting) == 1 else None
        cls = self._bridge_of(name) if name is not None else None
        if cls is None:
            return m.new_instance(None, f"no bridge for {name}" if name else "the architecture is not known")
        bridge = instantiate(m, cls, [], {}, site, frame)
        if isinstance(bridge, Instance):
            bridge.attrs.update(hf_pretrained=config, hf_config=config, export_weight_dtype="bf16")
        return bridge

    def _register_bridge(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        source, cls = kwargs.get("source"), kwargs.get("bridge_class")
        name = source.name.rpartition(".")[2] if isinstance(source, External) else source
        if isinstance(name, str) and isinstance(cls, ClassValue) and not _is_upstream(cls):
            self.own[name] = cls
        return None

    # --- upstream's classes ---------------------------------------------------------------------------

    def _auto_bridge(self) -> ClassValue | None:
        module, _, name = AUTO_BRIDGE.rpartition(".")
        found = self.machine.modules.import_from(module, name)
        return found if isinstance(found, ClassValue) else None

    def _method(self, name: str) -> FunctionValue | None:
        """A method of upstream's AutoBridge; None without source."""
        cls = self._auto_bridge()
        held = cls.namespace.get(name) if cls is not None else None
        held = getattr(held, "function", held)
        return held if isinstance(held, FunctionValue) else None

    def _has_bridge(self, architecture: str) -> bool:
        return architecture in self.own or self._place_of(architecture) is not None

    def _place_of(self, architecture: str) -> tuple[str, str] | None:
        """(module, class) of the bridge; modules that a project imports may register further ones."""
        index = self.bridges.bridges
        if architecture not in index:
            for name, module in list(self.machine.modules.loaded.items()):
                if name not in self._searched and isinstance(module, Module):
                    self._searched.add(name)
                    for key, cls in bridges_in(module.text).items():
                        index.setdefault(key, (name, cls))
        return index.get(architecture)

    def _bridge_of(self, architecture: str) -> ClassValue | None:
        if architecture in self.own:
            return self.own[architecture]
        place = self._place_of(architecture)
        if place is None:
            return None
        _leave_out_targets(self.machine.modules.find(place[0]))
        found = self.machine.modules.import_from(*place)
        return found if isinstance(found, ClassValue) else None

    def _run(self, function: FunctionValue, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        """Run the source of a method. What it refuses is raised; what breaks inside is not known."""
        from mblint.evaluate.calls import run_function

        try:
            return run_function(self.machine, function, args, kwargs, site, frame)
        except Raised as raised:
            if raised.guards == ("implicit",):
                return Unknown(f"AutoBridge was not evaluated to the end: {exception_text(raised.value)}")
            raise


def _is_upstream(cls: ClassValue) -> bool:
    return cls.module.name.startswith("megatron.bridge.")


def _is_wrapper(value: Any) -> bool:
    """Whether a value is upstream's wrapper around a model, and not the configuration itself."""
    return isinstance(value, Instance) and value.cls is not None and "hf_pretrained" in value.cls.module.name


def _leave_out_targets(module: Any) -> None:
    """Leave out `target=` where a module registers bridges: it names code that is large and tells nothing."""
    for statement in module.tree.body if isinstance(module, Module) else ():
        for decorator in statement.decorator_list if isinstance(statement, ast.ClassDef) else ():
            called = decorator.func if isinstance(decorator, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr == "register_bridge":
                for keyword in decorator.keywords:  # type: ignore[attr-defined]
                    if keyword.arg == "target":
                        keyword.value = ast.copy_location(ast.Constant(None), keyword.value)


def _without_hooks(provider: Any) -> Any:
    """Hooks that load weights hold the whole model's wrapper; nothing that is judged runs them."""
    if isinstance(provider, Instance):
        for name in HOOKS:
            hooks = provider.attrs.get(name)
            if isinstance(hooks, list):
                provider.attrs[name] = [Unknown("a hook that loads weights") for _ in hooks]
    return provider


__all__ = ["Providers", "enum_or", "install", "recorded_provider"]
