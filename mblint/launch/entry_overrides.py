"""Overrides that a program applies itself: OmegaConf and the override helpers of megatron-bridge, on a config of the heap.

Upstream turns the config into an OmegaConf tree, merges files and arguments into it and writes all of it back. Here the
tree is a stand-in that remembers what was merged; it is carried out as one when it is applied.
"""

from __future__ import annotations

import os
from typing import Any

from mblint.evaluate.library.omegaconf import ConfigDict, wrap
from mblint.evaluate.library.registry import CALLS
from mblint.evaluate.machine import Machine
from mblint.evaluate.site import SourceSite
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import ExceptionValue, Instance
from mblint.launch import omega
from mblint.launch.heap_node import HeapNode
from mblint.launch.overrides import CliOverride, evaluate_overrides, write
from mblint.launch.session import Session
from mblint.launch.yaml_tree import load_layer
from mblint.read.yaml import YamlError

HELPERS = "megatron.bridge.training.utils.omegaconf_utils"


class Tree:
    """The OmegaConf tree of a config: the config, the layers merged into it, the words applied to it."""

    def __init__(self, config: Instance, layers: tuple[omega.Dict, ...] = (), words: tuple[CliOverride, ...] = ()) -> None:
        self.config, self.layers, self.words = config, layers, words

    def attribute(self, machine: Machine, name: str, site: Any, frame: Any, default: Any) -> Any:
        return Unknown(f"{name} of a config that overrides are being merged into")


class File(ConfigDict):
    """A YAML file that was loaded; `layer` has it with its places."""

    __slots__ = ("layer",)
    layer: omega.Dict


class Overrides:
    """The models of one session."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def install(self) -> None:
        calls, functions = self.session.machine.facts.special_calls, self.session.machine.special_functions
        calls["omegaconf.OmegaConf.load"] = self._load
        calls["omegaconf.OmegaConf.merge"] = self._merge
        calls["omegaconf.OmegaConf.from_cli"] = self._from_cli
        calls["omegaconf.OmegaConf.to_container"] = calls["omegaconf.OmegaConf.to_object"] = self._to_container
        calls["omegaconf.OmegaConf.to_yaml"] = lambda *given: Unknown("a config as text")
        functions[f"{HELPERS}.create_omegaconf_dict_config"] = self._create
        functions[f"{HELPERS}.parse_hydra_overrides"] = self._parse
        functions[f"{HELPERS}.apply_overrides"] = self._apply
        functions[f"{HELPERS}.process_config_with_overrides"] = self._process

    # --- files ---------------------------------------------------------------------------------------------------

    def _load(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        name = _path_text(args[0] if args else kwargs.get("file_"))
        layer = self._layer(name) if isinstance(name, str) else None
        if layer is None:
            return Unknown(f"the file {name} is not at hand" if isinstance(name, str) else "a file whose name is not known")
        made = File(_as_dict(m, layer))
        made.layer = layer
        return m.born(made)

    def _layer(self, name: str) -> omega.Dict | None:
        roots = [*self.session.program_folders, *self.session.project]
        for path in [name] if os.path.isabs(name) else [os.path.join(root, name) for root in roots]:
            if not self.session.in_project(path):
                continue
            try:
                return load_layer(self.session.data_of(path).decode("utf-8-sig"), os.path.realpath(path))
            except (OSError, UnicodeDecodeError):
                continue
            except (omega.OmegaError, YamlError):
                return None
        return None

    # --- OmegaConf -----------------------------------------------------------------------------------------------

    def _merge(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        first = args[0] if args else None
        if not isinstance(first, Tree):
            return CALLS["omegaconf.OmegaConf.merge"](m, args, kwargs, site, frame)
        layers = list(first.layers)
        for other in args[1:]:
            layer = _as_layer(other, site)
            if layer is None:
                return Unknown(getattr(other, "reason", "") or "merged with what is not known")
            layers.append(layer)
        return Tree(first.config, tuple(layers), first.words)

    def _from_cli(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        words = args[0] if args else m.facts.argv
        if words is None or any(type(word) is Unknown for word in words):
            return Unknown("the command line is not known")
        return CALLS["omegaconf.OmegaConf.from_dotlist"](m, [list(words)], {}, site, frame)

    def _to_container(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        if args and isinstance(args[0], Tree):
            return args[0]
        return CALLS["omegaconf.OmegaConf.to_container"](m, args, kwargs, site, frame)

    # --- helpers of megatron-bridge ------------------------------------------------------------------------------

    def _create(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        config = args[0] if args else kwargs.get("config_container")
        if not isinstance(config, Instance) or config.cls is None:
            return Unknown("overrides of a config that is not known")
        return (Tree(config), Unknown("what OmegaConf cannot hold"))

    def _parse(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        tree, words = [*args, *kwargs.values(), None, None][:2]
        if not isinstance(tree, Tree):
            return CALLS["omegaconf.OmegaConf.merge"](m, [tree, Unknown("overrides in Hydra's grammar")], {}, site, frame)
        overrides = self._words(words, site)
        if overrides is None:
            return Unknown("overrides that are not known")
        return Tree(tree.config, tree.layers, (*tree.words, *overrides))

    def _words(self, words: Any, site: Any) -> list[CliOverride] | None:
        if words is None:
            return []
        if not isinstance(words, (list, tuple)):
            return None
        found = []
        for word in words:
            if id(word) in self.session.handed.words:
                found.append(self.session.handed.words[id(word)])
            elif isinstance(word, str):
                found.append(CliOverride(word, site.span() if site is not None else None))
            else:
                return None
        return found

    def _apply(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        config, changes = [*args, *kwargs.values(), None, None][:2]
        if not isinstance(config, Instance):
            return None
        if isinstance(changes, Tree):
            return self._carry_out(config, changes, site, frame)
        layer = _as_layer(changes, site)
        if layer is None:
            m.havoc(config, getattr(changes, "reason", "") or "overrides that are not known")
            return None
        return self._carry_out(config, Tree(config, (layer,)), site, frame)

    def _process(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        names = ("config", "config_filepath", "cli_overrides")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        config = given.get("config")
        if not isinstance(config, Instance) or config.cls is None:
            return config
        layers: tuple[omega.Dict, ...] = ()
        name = _path_text(given.get("config_filepath"))
        words = self._words(given.get("cli_overrides"), site)
        if name:
            layer = self._layer(name) if isinstance(name, str) else None
            if layer is None:
                m.havoc(config, f"the file {name} is not at hand" if isinstance(name, str) else "overridden from a file that is not known")
                return config
            layers = (layer,)
        if words is None:
            m.havoc(config, "overrides that are not known")
            return config
        self._carry_out(config, Tree(config, layers, tuple(words)), site, frame)
        return config

    def _carry_out(self, config: Instance, tree: Tree, site: Any, frame: Any) -> Any:
        world = self.session.world
        node = HeapNode(self.session, config, "override")
        result = evaluate_overrides(node, tree.layers, tree.words, env=world.env, env_known=world.env_known)
        if result.failed is not None:
            from mblint.evaluate.control import fail

            where = SourceSite(result.failed.span, "override") if result.failed.span is not None else site
            fail(
                self.session.machine, ExceptionValue(ValueError, (f"upstream refuses the overrides: {result.failed.reason}",)), where, frame
            )
            return None
        write(node, result)
        self.session.handed.skipped += result.skipped
        return None


def _path_text(value: Any) -> Any:
    """The text of a path or string; Unknown for one that is not known."""
    if isinstance(value, Instance):
        return value.attrs.get("_text", Unknown("a path that is not known"))
    return str(value) if isinstance(value, str) else value


def _as_layer(value: Any, site: Any) -> omega.Dict | None:
    if isinstance(value, File):
        return value.layer
    if not isinstance(value, dict):
        return None
    from mblint.launch.plain import plain

    plain_value = plain(value)
    if not isinstance(plain_value, dict):
        return None
    made = omega.tree(plain_value, site.span() if site is not None else None)
    return made if isinstance(made, omega.Dict) else None


def _as_dict(machine: Machine, layer: omega.Dict) -> ConfigDict:
    """A layer as the dict that programs read from."""

    def made(node: Any) -> Any:
        if isinstance(node, omega.Dict):
            return {key: made(held) for key, held in node.items.items()}
        if isinstance(node, omega.List):
            return [made(held) for held in node.items]
        return node.value

    found = wrap(machine, made(layer))
    assert isinstance(found, ConfigDict)
    return found
