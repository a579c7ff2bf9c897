"""Model providers from Hugging Face ids: AutoBridge is evaluated on what is known of the model, in place of the network.

For a release whose source is there, upstream's own AutoBridge and the bridge class of the model's architecture run on a
configuration object that is built from facts (mblint/upstream/models.py). What cannot be known from these stays
unknown. Without source the recorded providers of the snapshot answer.
"""

from __future__ import annotations

import ast
import gzip
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from mblint.evaluate.codec import decode, resolve
from mblint.evaluate.copying import copy_value
from mblint.evaluate.errors import BudgetExceeded, NeedFork, Raised
from mblint.evaluate.machine import Machine, exception_name, exception_text
from mblint.evaluate.modules import Module
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, ClassValue, EnumMember, External, FunctionValue, Instance
from mblint.launch.bridges import BridgeIndex, index_bridges
from mblint.launch.hf_classes import Library
from mblint.launch.hf_models import Models
from mblint.upstream.models import ModelSource, cache_folder
from mblint.upstream.transformers import class_table, table_for

AUTO_BRIDGE = "megatron.bridge.models.conversion.auto_bridge.AutoBridge"
MODEL_BRIDGE = "megatron.bridge.models.conversion.model_bridge"
LOAD_CONFIG = "megatron.bridge.models.hf_pretrained.safe_config_loader.safe_load_config_with_retry"
KEY = "_mblint_key"
"""Attribute of an AutoBridge that was made from plain arguments: which ones."""

PLAIN = (str, int, float, bool, type(None))


@lru_cache(maxsize=4)
def provider_table(release: str) -> dict[str, dict[str, Any]]:
    """Recorded providers of a release: Hugging Face id -> field -> encoded value."""
    file = resources.files("mblint.upstream").joinpath(f"data/{release}/providers.json.gz")
    if not file.is_file():
        return {}
    table: dict[str, dict[str, Any]] = json.loads(gzip.decompress(file.read_bytes()))
    return table


def install(
    machine: Machine,
    release: str,
    project: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    source: ModelSource | None = None,
) -> Providers:
    """Register what stands in for the Hugging Face side of megatron-bridge with a machine.

    `project`: folders in which a relative model path is looked for. `environment`: says where the Hugging Face cache of the
    user is (default: that of the process). `source` replaces both.
    """
    if source is None:
        source = ModelSource(project, cache_folder(os.environ if environment is None else environment))
    providers = Providers(machine, release, source)
    providers.install()
    return providers


class Providers:
    """Evaluates AutoBridge, once for each set of plain arguments."""

    def __init__(self, machine: Machine, release: str, source: ModelSource) -> None:
        self.machine = machine
        self.release = release
        self.source = source
        self._models: Models | None = None
        self._bridges: BridgeIndex | None = None
        self.own: dict[str, ClassValue] = {}
        """Architecture -> bridge class, by register_bridge in evaluated code of a project."""
        self.made: dict[Any, list[tuple[dict[str, Any], Instance]]] = {}
        """What was asked for -> (the environment variables that it depends on, the result)."""

    # --- parts that are made when they are needed ----------------------------------------------------------------------

    @property
    def bridges(self) -> BridgeIndex:
        if self._bridges is None:
            self._bridges = index_bridges(self.machine.modules.roots)
        return self._bridges

    @property
    def models(self) -> Models:
        if self._models is None:
            declared = self.machine.facts.versions.get("transformers") if self.machine.facts is not None else None
            library = Library(self.machine, class_table(table_for(self.release, declared)))
            self._models = Models(self.machine, library, self.source, self.bridges)
            if self.machine.facts is not None:
                self._models.install(self.machine.facts.special_calls)
        return self._models

    def install(self) -> None:
        machine = self.machine
        # Loading the class table is left to the first module that asks for the package.
        machine.modules.stand_ins["transformers"] = lambda name: self.models.library.module(name)
        special: dict[str, Callable[..., Any]] = {
            f"{AUTO_BRIDGE}.from_hf_pretrained": self._from_hf_pretrained,
            f"{AUTO_BRIDGE}.to_megatron_provider": self._to_megatron_provider,
            f"{AUTO_BRIDGE}.can_handle": self._can_handle,
            f"{AUTO_BRIDGE}._validate_config": self._validate_config,
            f"{AUTO_BRIDGE}._model_bridge": self._model_bridge,
            f"{MODEL_BRIDGE}.register_bridge_implementation": self._register_bridge,
            LOAD_CONFIG: self._load_config,
        }
        machine.special_functions.update(special)

    # --- what stands in for functions of upstream ----------------------------------------------------------------------

    def _load_config(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        given = {key: value for key, value in kwargs.items() if key not in ("path", "max_retries", "base_delay")}
        return self.models.config(args[0] if args else kwargs.get("path"), given)

    def _from_hf_pretrained(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        function = self._function("from_hf_pretrained")
        cls = args[0] if args and isinstance(args[0], ClassValue) else self._auto_bridge()
        path = args[1] if len(args) > 1 else kwargs.get("path", kwargs.get("model_id"))
        rest = {key: value for key, value in kwargs.items() if key not in ("path", "revision")}
        pinned = kwargs.get("revision") is not None
        if function is None or cls is None:
            made = m.new_instance(cls, "an AutoBridge")
            made.attrs[KEY] = (path,)
            return made
        if not all(isinstance(value, (*PLAIN, External)) for value in (path, *rest.values())):
            return self._run(function, [cls, path], rest, site, frame)
        key = (path, cls.full_name, pinned, *sorted(rest.items()))
        config = self.models.config(path, rest)
        if config.cls is None:
            made = m.new_instance(cls, config.reason)
            made.attrs[KEY] = key
            return made
        pristine = self._remember(("bridge", key), lambda: self._run(function, [cls, path], rest, None, frame))
        if not isinstance(pristine, Instance) or pristine.cls is None:
            # Its methods still have to be found: what they give is an object of which only what is set is known.
            pristine = m.new_instance(cls, getattr(pristine, "reason", "") or "AutoBridge was not evaluated")
        pristine.attrs.setdefault(KEY, key)
        if pinned and "hf_model_revision" in pristine.attrs:
            pristine.attrs["hf_model_revision"] = Unknown("no facts say to which revision of a model they belong")
        return copy_value(m, pristine)

    def _to_megatron_provider(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        function = self._function("to_megatron_provider")
        bridge = args[0] if args else None
        key = bridge.attrs.get(KEY) if isinstance(bridge, Instance) else None
        load = args[1] if len(args) > 1 else kwargs.get("load_weights", True)
        hf_id = key[0] if key else None
        if function is None or not isinstance(bridge, Instance) or bridge.cls is None or len(bridge.attrs) == 1:
            return self._recorded(bridge, hf_id, load)
        held = self.made.get(("bridge", key)) if key else None
        rest = [*args[1:], *kwargs.values()]
        pristine = next((made for _, made in held or () if same_graph(made, bridge)), None)
        if pristine is None or not all(isinstance(value, PLAIN) for value in rest):
            result = self._run(function, args, kwargs, site, frame)
        else:
            asked = ("provider", key, tuple(args[1:]), tuple(sorted(kwargs.items())))
            result = self._remember(asked, lambda: self._run(function, [copy_value(m, pristine), *args[1:]], kwargs, None, frame))
            if isinstance(result, Instance):
                return copy_value(m, result)
        if isinstance(result, Instance) and result.cls is not None:
            return result
        recorded = self._recorded(bridge, hf_id, load)
        if recorded.cls is None:
            recorded.reason = getattr(result, "reason", "") or recorded.reason
        return recorded

    def _can_handle(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        config = self.models.config(args[1] if len(args) > 1 else kwargs.get("path"))
        architectures = config.attrs.get("architectures")
        if config.cls is None or not isinstance(architectures, (list, type(None))):
            return Unknown(config.reason or "the model's architecture is not known")
        return any(self._has_bridge(name) for name in architectures or ())

    def _validate_config(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        config = args[1] if len(args) > 1 else kwargs.get("config")
        if not isinstance(config, Instance) or config.cls is None:
            return None
        architectures = config.attrs.get("architectures", MISSING)
        if architectures is MISSING or type(architectures) is Unknown:
            return None
        names = [name for name in architectures or () if isinstance(name, str)]
        auto_map = config.attrs.get("auto_map")
        if isinstance(auto_map, dict) and isinstance(auto_map.get("AutoModelForCausalLM"), str):
            names = [auto_map["AutoModelForCausalLM"].rpartition(".")[2]]
        if not any(self._has_bridge(name) for name in names):
            what = ", ".join(names) or "a model without architectures"
            return m.implicit(ValueError, f"AutoBridge of this megatron-bridge does not support {what}", site, frame)
        return None

    def _model_bridge(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        from mblint.evaluate.calls import instantiate
        from mblint.evaluate.objects import get_attribute

        auto = args[0]
        wrapped = auto.attrs.get("hf_pretrained") if isinstance(auto, Instance) else None
        config = get_attribute(m, wrapped, "config", site, frame) if _wraps(wrapped) else wrapped
        if not isinstance(config, Instance) or config.cls is None:
            return m.new_instance(None, getattr(config, "reason", "") or "the model's configuration is not known")
        architecture = get_attribute(m, auto, "_causal_lm_architecture", site, frame)
        name = architecture.name.rpartition(".")[2] if isinstance(architecture, External) else architecture
        if type(name) is Unknown:
            # Whether the file has an auto_map is not known: it would name the same architecture.
            named = config.attrs.get("architectures")
            fitting = [n for n in named if isinstance(n, str) and self._has_bridge(n)] if isinstance(named, list) else []
            name = fitting[0] if len(fitting) == 1 else name
        cls = self._bridge_of(name) if isinstance(name, str) else None
        if cls is None:
            return m.new_instance(None, f"there is no bridge for {name}" if isinstance(name, str) else "the architecture is not known")
        bridge = instantiate(m, cls, [], {}, site, frame)
        if isinstance(bridge, Instance):
            bridge.attrs.update({"hf_pretrained": config, "hf_config": config, "export_weight_dtype": "bf16"})
        return bridge

    def _register_bridge(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        source, cls = kwargs.get("source"), kwargs.get("bridge_class")
        name = source.name.rpartition(".")[2] if isinstance(source, External) else source
        if isinstance(name, str) and isinstance(cls, ClassValue) and not cls.module.name.startswith("megatron.bridge."):
            self.own[name] = cls
        return None

    # --- evaluation ----------------------------------------------------------------------------------------------------

    def _auto_bridge(self) -> ClassValue | None:
        module, _, name = AUTO_BRIDGE.rpartition(".")
        found = self.machine.modules.import_from(module, name)
        return found if isinstance(found, ClassValue) else None

    def _function(self, name: str) -> FunctionValue | None:
        """A method of upstream's AutoBridge; None without source."""
        cls = self._auto_bridge()
        held = cls.namespace.get(name) if cls is not None else None
        held = getattr(held, "function", held)
        return held if isinstance(held, FunctionValue) else None

    def _has_bridge(self, architecture: str) -> bool:
        return architecture in self.own or architecture in self.bridges.bridges

    def _bridge_of(self, architecture: str) -> ClassValue | None:
        if architecture in self.own:
            return self.own[architecture]
        place = self.bridges.bridges.get(architecture)
        if place is None:
            return None
        _without_targets(self.machine.modules.find(place[0]))
        found = self.machine.modules.import_from(*place)
        return found if isinstance(found, ClassValue) else None

    def _run(self, function: FunctionValue, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        from mblint.evaluate.calls import run_function

        return run_function(self.machine, function, args, kwargs, site, frame)

    def _remember(self, key: Any, compute: Callable[[], Any]) -> Any:
        """The result of an evaluation that depends on nothing but its key and environment variables.

        What goes wrong inside gives Unknown with the reason: it is reported by nobody, since facts may be wrong.
        """
        machine, facts = self.machine, self.machine.facts
        for watched, result in self.made.get(key, ()):
            if all(facts.env.get(name, MISSING) is value or facts.env.get(name, MISSING) == value for name, value in watched.items()):
                machine.env_read_count += len(watched)
                return result
        outer = (machine.phase, machine.go_on, machine.speculation, machine.handlers, machine.path_decisions, machine.oldest_touched)
        trail, machine.trail = machine.trail, []
        machine.phase, machine.go_on, machine.speculation, machine.handlers, machine.path_decisions = 0, False, 0, [], None
        machine.oldest_touched = sys.maxsize
        failures, undecided, steps = len(machine.failures), len(machine.undecided), machine.steps
        watching, facts.watched = facts.watched, {}
        started = machine.clock
        machine.clock += 1
        try:
            result = compute()
        except Raised as raised:
            result = Unknown(f"{exception_name(raised.value)}: {exception_text(raised.value)}"[:300])
        except (BudgetExceeded, NeedFork) as error:
            result = Unknown(f"AutoBridge was not evaluated: {error}")
        finally:
            pure = machine.oldest_touched > started
            machine.trail = trail
            (machine.phase, machine.go_on, machine.speculation, machine.handlers, machine.path_decisions, touched) = outer
            machine.oldest_touched = touched if pure else min(touched, machine.oldest_touched)
            machine.steps = steps
            del machine.failures[failures:]
            del machine.undecided[undecided:]
            watched, facts.watched = facts.watched, watching
            if watching is not None:
                watching.update(watched)
        if isinstance(result, Instance):
            _drop_hooks(result)
            if pure:
                self.made.setdefault(key, []).append((watched, result))
        elif pure:
            self.made.setdefault(key, []).append((watched, self.machine.new_instance(None, getattr(result, "reason", ""))))
        return result

    def _recorded(self, bridge: Any, hf_id: Any, load: Any) -> Instance:
        reason = bridge.reason if isinstance(bridge, Instance) else getattr(bridge, "reason", "")
        provider = recorded_provider(self.machine, self.release, hf_id)
        if provider.cls is None and reason:
            provider.reason = reason
        if load is True:
            provider.attrs["perform_initialization"] = False
        return provider


def _without_targets(module: Any) -> None:
    """Leave out `target=` where a module registers bridges: it names the model's own code, which is large and tells nothing."""
    if not isinstance(module, Module):
        return
    for statement in module.tree.body:
        for decorator in statement.decorator_list if isinstance(statement, ast.ClassDef) else ():
            if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute) and decorator.func.attr == "register_bridge":
                for keyword in decorator.keywords:
                    if keyword.arg == "target":
                        keyword.value = ast.copy_location(ast.Constant(None), keyword.value)


def _wraps(value: Any) -> bool:
    """Whether a value is upstream's wrapper around a model, and not the configuration itself."""
    return isinstance(value, Instance) and value.cls is not None and value.cls.module.name.startswith("megatron.bridge.")


def _drop_hooks(provider: Instance) -> None:
    """Hooks that load weights hold the whole model's wrapper; nothing that is judged runs them."""
    for name in ("_pre_wrap_hooks", "pre_wrap_hooks"):
        hooks = provider.attrs.get(name)
        if isinstance(hooks, list):
            provider.attrs[name] = [Unknown("a hook that loads weights") for _ in hooks]


def same_graph(left: Any, right: Any, depth: int = 0) -> bool:
    """Whether two values, one a copy of the other, still hold the same."""
    if left is right:
        return True
    kind = type(left)
    if kind is not type(right) or depth > 30:
        return False
    if kind is Instance:
        if left.cls is not right.cls or len(left.attrs) != len(right.attrs):
            return False
        return all(name in right.attrs and same_graph(value, right.attrs[name], depth + 1) for name, value in left.attrs.items())
    if isinstance(left, dict):
        return len(left) == len(right) and all(name in right and same_graph(value, right[name], depth + 1) for name, value in left.items())
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(same_graph(a, b, depth + 1) for a, b in zip(left, right, strict=True))
    if kind is Unknown:
        return bool(left.reason == right.reason)
    return bool(left == right) if isinstance(left, (*PLAIN, External, set)) else False


def recorded_provider(machine: Machine, release: str, hf_id: Any) -> Instance:
    """The recorded provider of a known id; else an object of which only what the recipe sets is known."""
    if not isinstance(hf_id, str):
        return machine.new_instance(None, getattr(hf_id, "reason", "") or "the model id is not known")
    facts = provider_table(release).get(hf_id)
    if facts is None:
        return machine.new_instance(None, f"the architecture of {hf_id} is not known")
    cls = resolve(machine, facts["__class__"])
    if not isinstance(cls, ClassValue):
        return machine.new_instance(None, f"{facts['__class__']} was not found")
    from mblint.evaluate.dataclass import construct

    base = machine.new_instance(cls)
    speculation = machine.speculation
    machine.speculation += 1  # required fields are filled from the table: their absence is no failure
    try:
        construct(machine, cls, base, [], {}, None, None, _frame(machine))
    finally:
        machine.speculation = speculation
    nested: dict[str, dict[str, Any]] = {}
    for name, data in facts.items():
        if name == "__class__":
            continue
        head, _, rest = name.partition(".")
        if rest:
            nested.setdefault(head, {})[rest] = data
            continue
        if isinstance(data, dict) and "obj" in data and isinstance(base.attrs.get(name), Instance):
            continue
        base.attrs[name] = enum_or(machine, cls, name, data)
    for head, inner in nested.items():
        base.attrs[head] = _nested(machine, inner)
    base.origin.clear()
    return base


def _nested(machine: Machine, facts: dict[str, Any]) -> Instance:
    cls = resolve(machine, facts.get("__class__", "")) if facts.get("__class__") else None
    made = machine.new_instance(cls if isinstance(cls, ClassValue) else None, "a sub-config of a library")
    deeper: dict[str, dict[str, Any]] = {}
    for name, data in facts.items():
        head, _, rest = name.partition(".")
        if rest:
            deeper.setdefault(head, {})[rest] = data
        elif name != "__class__":
            made.attrs[name] = enum_or(machine, made.cls, name, data)
    for head, inner in deeper.items():
        made.attrs[head] = _nested(machine, inner)
    return made


def enum_or(machine: Machine, cls: ClassValue | None, name: str, data: Any) -> Any:
    """Decode a field's value; enum members are looked up through the field's default or annotation."""
    if isinstance(data, dict) and "enum" in data:
        class_name, _, member = data["enum"].partition(".")
        field = cls.field_map.get(name) if cls is not None else None
        default = field.default if field is not None else MISSING
        if isinstance(default, EnumMember) and default.cls.name == class_name:
            return default.cls.enum_members.get(member, Unknown(data["enum"]))
        for module in ("megatron.core.transformer.enums", "megatron.core.enums"):
            found = machine.modules.import_from(module, class_name)
            if isinstance(found, ClassValue) and member in found.enum_members:
                return found.enum_members[member]
        return Unknown(data["enum"])
    return decode(machine, data)


def _frame(machine: Machine) -> Any:
    from mblint.evaluate.operators import machine_frame

    return machine_frame(machine)


__all__ = ["External", "Providers", "enum_or", "install", "provider_table", "recorded_provider"]
