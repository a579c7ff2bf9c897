"""A launch with all its values: what judges read.

It looks at the evaluator's heap while the launch is on it; `freeze` is not needed by judges, which run before the
launch is taken back.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mblint.evaluate.codec import NotKnown, encode, flatten
from mblint.evaluate.machine import PHASE_LAUNCH, PHASE_OVERRIDE
from mblint.evaluate.modules import Module
from mblint.evaluate.site import Site
from mblint.evaluate.source import split_lines
from mblint.evaluate.unknown import ABSENT, Absent, Unknown
from mblint.evaluate.values import MISSING, ClassValue, External, Field, FunctionValue, Instance, Property, TrackedDict
from mblint.evaluate.values import Write as HeapWrite
from mblint.launch.branches import Way
from mblint.launch.plain import plain
from mblint.launch.session import Session
from mblint.read.span import Span

_CLASS = re.compile(r"(?<![\w.])[A-Z]\w*")


@dataclass(frozen=True, slots=True)
class Write:
    """Who set a key. `kind`: assign, keyword, dict, override, default, call (a value that code further away made)."""

    span: Span
    value: object
    by: str
    in_project: bool
    kind: str = "assign"
    phase: int = 0


class ResolvedLaunch:
    """See mblint.facts.protocol.Resolved for what each member means."""

    def __init__(self, session: Session, cfg: Instance, name: str, span: Span | None, env_known: bool) -> None:
        self.session = session
        self.cfg = cfg
        self.name = name
        self.span = span
        self.body: Span | None = None
        """The whole recipe function; `span` is its first line."""
        world = session.world
        self.world_size: int | Unknown = world.world_size if world.world_size is not None else Unknown("the number of GPUs is not known")
        self.gpu: str | Unknown = world.gpu if world.gpu is not None else Unknown("the GPU type is not known")
        self.versions: Mapping[str, str] = session.versions
        self.env_known = env_known
        self.base: Any = None
        """The same launch at the base of the change under review (a FrozenLaunch), if there is one."""
        self.words: Callable[[str], str] | None = None
        """What the change says of itself where it touches a file: messages of its commits, the branch's name."""
        self.exports: Mapping[str, Span] = {}
        """Where the launcher exports variables of the environment, by their names."""
        self.skipped: tuple[Any, ...] = ()
        """Override keys that no field has, which upstream skips."""
        self.way: Way = ()
        """The branches on unknown values that lead to this config."""
        self.condition: str | None = None
        """In words, the outcome of branches on unknown values that leads to this config."""
        self._before: dict[str, Any] | None = None
        self._env: dict[str, Any] | None = None
        self.parent: ResolvedLaunch | None = None
        """The launch of the recipe that this one starts from, as it was written."""
        self.path: Any = None
        """The outcome of the launch path, once it has run."""

    # --- values --------------------------------------------------------------------------------------------------

    def remember_written(self) -> None:
        """Keep what recipe and overrides left, before the launch path changes it."""
        before: dict[str, Any] = {}
        flatten(self.cfg, "", before)
        self._before = before
        _ = self.env  # merged before the launch path applies env_vars to the process

    def get(self, key: str) -> object:
        section, _, name = key.rpartition(".")
        owner = self._section(section)
        if owner is None:
            return self._dict_entry(key)
        if isinstance(owner, Unknown):
            return owner
        if name == "__class__":
            return owner.cls.full_name if owner.cls is not None else Unknown(owner.reason)
        value = self._attribute(owner, name)
        if value is ABSENT:
            return ABSENT
        if isinstance(value, Instance) and (value.cls is None or value.cls.dataclass):
            return ABSENT if value.cls is not None else Unknown(value.reason or "an object that is not known")
        return plain(value)

    def written(self, key: str) -> object:
        if self._before is None:
            return self.get(key)
        value = self._before.get(key, ABSENT)
        return ABSENT if value is ABSENT else plain(value)

    def fingerprint(self) -> int:
        """A number, within this process, that is the same for configs that recipe and overrides left the same; reasons of values that
        are not known do not count."""
        return hash(tuple((key, _marked(plain(value))) for key, value in sorted((self._before or {}).items())))

    def _attribute(self, owner: Instance, name: str) -> Any:
        value = owner.attrs.get(name, MISSING)
        if value is not MISSING:
            return value
        if owner.cls is None:
            return Unknown(owner.reason or "an object that is not known")
        for base in owner.cls.cached_mro:
            if isinstance(base, ClassValue) and name in base.namespace:
                held = base.namespace[name]
                if isinstance(held, Property):
                    from mblint.evaluate.objects import get_attribute
                    from mblint.evaluate.operators import machine_frame

                    return get_attribute(self.session.machine, owner, name, None, machine_frame(self.session.machine))
                if isinstance(held, (FunctionValue, Field)) or name.startswith("__"):
                    return ABSENT
                return held
        return ABSENT

    def _section(self, path: str) -> Instance | Unknown | None:
        """The object at a dotted path; None when the path leads to no object."""
        current: Any = self.cfg
        if path:
            for part in path.split("."):
                if isinstance(current, Unknown):
                    return current
                if not isinstance(current, Instance):
                    return None
                current = current.attrs.get(part, MISSING if current.cls is not None else Unknown(current.reason))
        if isinstance(current, (Instance, Unknown)):
            return current
        return None

    def _dict_entry(self, key: str) -> object:
        """`env_vars.NAME` and other entries of dicts that are fields."""
        parts = key.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            owner = self._section(".".join(parts[: cut - 1]))
            if isinstance(owner, Instance):
                held = owner.attrs.get(parts[cut - 1], MISSING)
                if isinstance(held, dict):
                    entry = held.get(".".join(parts[cut:]), MISSING)
                    return ABSENT if entry is MISSING else plain(entry)
                return ABSENT
        return ABSENT

    def classes(self, section: str) -> tuple[str, ...] | Unknown | Absent:
        owner = self._section(section)
        if isinstance(owner, Unknown):
            return owner
        if owner is None:
            return ABSENT
        if owner.cls is None:
            return Unknown(owner.reason or "an object that is not known")
        names = [base.full_name if isinstance(base, ClassValue) else base.name for base in owner.cls.cached_mro if hasattr(base, "name")]
        return tuple(names)

    def keys(self) -> Iterable[str]:
        flat: dict[str, Any] = {}
        flatten(self.cfg, "", flat)
        return flat.keys()

    def flat(self) -> tuple[dict[str, Any], dict[str, str]]:
        """All keys in the output encoding, and those that are unknown with their reasons."""
        values: dict[str, Any] = {}
        flatten(self.cfg, "", values)
        config: dict[str, Any] = {}
        unknown: dict[str, str] = {}
        for key, value in values.items():
            try:
                config[key] = encode(value)
            except NotKnown as error:
                unknown[key] = error.unknown.reason
        return config, unknown

    def annotation(self, key: str) -> str | None:
        """The annotation of a key's field, as source."""
        section, _, name = key.rpartition(".")
        owner = self._section(section)
        if isinstance(owner, Instance) and owner.cls is not None and name in owner.cls.field_map:
            annotation = owner.cls.field_map[name].annotation
            return ast.unparse(annotation) if annotation is not None else None
        return None

    def spelled(self, key: str) -> str | None:
        """As `annotation`, its enums with the modules that define them, for files that do not import them."""
        hint = self.annotation(key)
        section, _, name = key.rpartition(".")
        owner = self._section(section)
        if hint is None or not isinstance(owner, Instance) or owner.cls is None:
            return hint
        for base in owner.cls.cached_mro:
            if isinstance(base, ClassValue) and name in base.field_map and isinstance(base.module, Module):
                for word in set(_CLASS.findall(hint)) & base.module.binders.keys():
                    found = base.module.lookup(word)
                    if isinstance(found, ClassValue) and found.is_enum and found.name == word:
                        hint = re.sub(rf"(?<![\w.]){word}\b", found.full_name, hint)
        return hint

    # --- environment -----------------------------------------------------------------------------------------------

    @property
    def env(self) -> Mapping[str, Any]:
        """The process environment, completed by the recipe's env_vars: what the launcher set wins."""
        if self._env is None:
            merged: dict[str, Any] = {}
            given = self.cfg.attrs.get("env_vars")
            if isinstance(given, dict):
                for name, value in given.items():
                    if isinstance(name, str):
                        merged[name] = value if isinstance(value, Unknown) else _text(value)
            for name, value in self.session.world.env.items():
                if value is not MISSING:
                    merged[name] = value if isinstance(value, Unknown) else str(value)
            self._env = merged
        return self._env

    # --- provenance --------------------------------------------------------------------------------------------------

    def origins(self, key: str) -> tuple[Write, ...]:
        """All writes before the launch path, oldest first."""
        return tuple(write for write in self.all_writes(key) if write.phase < PHASE_LAUNCH)

    def all_writes(self, key: str) -> tuple[Write, ...]:
        """All writes of a key, oldest first, those of the launch path included."""
        section, _, name = key.rpartition(".")
        owner = self._section(section)
        if isinstance(owner, Instance):
            chain: list[HeapWrite] = []
            write: HeapWrite | None = owner.origin.get(name)
            while write is not None and len(chain) < 50:
                chain.append(write)
                write = write.previous
            found = [self._write(item, key) for item in reversed(chain)]
            if not found and section and isinstance(owner, Instance) and name not in owner.origin:
                return ()
            return tuple(item for item in found if item is not None)
        if owner is None and "." in key:
            return self._entry_writes(key)
        return ()

    def skipped_writes(self, key: str) -> tuple[Write, ...]:
        """Where an override gives a key that no field has."""
        return tuple(
            Write(item.span, item.value, "override", True, "override", PHASE_OVERRIDE)
            for item in self.skipped
            if item.key == key and item.span is not None
        )

    def overridden(self) -> list[str]:
        """Keys whose last write came from a YAML file or a command line, sorted."""
        found: list[str] = []
        pending: list[tuple[str, Any]] = [("", self.cfg)]
        while pending:
            prefix, owner = pending.pop()
            for name, write in owner.origin.items():
                if write.phase == PHASE_OVERRIDE and not isinstance(write.site, Site):
                    found.append(f"{prefix}{name}")
            inner = owner.attrs.items() if prefix.count(".") < 3 else ()
            pending += [(f"{prefix}{name}.", held) for name, held in inner if isinstance(held, Instance) and held.cls is not None]
        return sorted(found)

    def computed_from(self, key: str) -> list[str]:
        """Keys that the last write of a key by evaluated code read on its right-hand side, where they can be named."""
        section, _, name = key.rpartition(".")
        owner = self._section(section)
        write = owner.origin.get(name) if isinstance(owner, Instance) else None
        if write is None or not isinstance(write.site, Site):
            return []
        found: list[str] = []
        module = write.site.module
        statement = module.derive("assignments", lambda: _assignments(module)).get(write.site.node)
        if statement is not None:
            for node in ast.walk(statement.value):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    parts = ast.unparse(node).split(".")[1:]
                    for prefix in ("", f"{section}."):
                        dotted = prefix + ".".join(parts)
                        if parts and self.get(dotted) is not ABSENT and dotted not in found:
                            found.append(dotted)
        return found

    def _entry_writes(self, key: str) -> tuple[Write, ...]:
        head, _, entry = key.partition(".")
        held = self.cfg.attrs.get(head)
        found: list[Write] = []
        if isinstance(held, TrackedDict) and entry in held.sites:
            site = held.sites[entry]
            if isinstance(site, Site):
                write = self._from_site(site, held.get(entry), None, 0, "dict")
                found += [write] if write is not None else []
            elif site is not None and (place := site.span()) is not None:
                found.append(Write(place, plain(held.get(entry)), site.by, True, "override", PHASE_OVERRIDE))
        if head == "env_vars" and entry in self.exports:
            # The process environment wins over what the recipe asks for.
            value = self.session.world.env.get(entry)
            found.append(Write(self.exports[entry], plain(value), "environment of the launch", True, "override", PHASE_OVERRIDE))
        return tuple(found)

    def _write(self, write: HeapWrite, key: str) -> Write | None:
        site = write.site
        if isinstance(site, Site):
            kind = "assign"
            if not isinstance(site.node, (ast.Attribute, ast.Subscript)):
                kind = "call" if isinstance(site.node, ast.Call) else "keyword"
            return self._from_site(site, write.value, write.trace, write.phase, kind)
        if site is None:
            return None
        place = site.span()
        return Write(place, plain(write.value), site.by, True, "override", write.phase) if place is not None else None

    def _from_site(self, site: Site, value: Any, trace: Any, phase: int, kind: str) -> Write | None:
        session = self.session
        if session.in_project(site.module.path):
            return Write(site.span(), plain(value), self._by(site), True, kind, phase)
        # Written inside a library: the line of the project that called it is the one that people can change.
        step = trace
        while step is not None:
            where, step = step
            if isinstance(where, Site) and session.in_project(where.module.path):
                return Write(where.span(), plain(value), self._by(site), False, "call", phase)
        if not session.is_shown(site.module.path):
            return None
        return Write(site.span(), plain(value), self._by(site), False, kind, phase)

    def _by(self, site: Site) -> str:
        return f"{site.module.name}:{site.where}" if site.where else site.module.name

    def comments(self, key: str) -> str:
        """The comment text beside the writes of a key: on their lines and on the comment lines right above."""
        texts: list[str] = []
        for write in self.origins(key):
            if not write.in_project:
                continue
            texts += comment_text(self.session, write.span)
        return " ".join(texts)

    def phase_of_value(self, key: str) -> int:
        """0 recipe (or default), 1 override, 2 launch path: who wrote the value that holds."""
        writes = self.all_writes(key)
        return writes[-1].phase if writes else 0


def _marked(value: Any) -> str:
    if isinstance(value, (list, dict)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return f"[{','.join(f'{key}:{_marked(held)}' for key, held in items)}]"
    return "unknown" if isinstance(value, Unknown) else repr(value)


def _text(value: Any) -> Any:
    """What a variable holds that is set from a value: its text, where that is plain."""
    return str(value) if value is None or isinstance(value, (str, int, float, bool)) else Unknown("the text of an object")


def _assignments(module: Module) -> dict[ast.AST, ast.Assign]:
    """Target -> the assignment that it stands in, for all of a module."""
    return {target: statement for statement in ast.walk(module.tree) if isinstance(statement, ast.Assign) for target in statement.targets}


def comment_text(session: Session, span: Span) -> list[str]:
    """Comments at a place of a Python file that is loaded."""
    for module in session.modules.loaded.values():
        if getattr(module, "path", None) == span.path and hasattr(module, "text"):
            lines = split_lines(module.text)
            found: list[str] = []
            index = span.line - 2
            while index >= 0 and lines[index].lstrip().startswith("#"):
                found.insert(0, lines[index].strip(" #"))
                index -= 1
            for line in lines[span.line - 1 : max(span.line, span.end_line)]:
                _, mark, comment = line.partition("#")
                if mark:
                    found.append(comment.strip())
            return found
    return []


__all__ = ["PHASE_LAUNCH", "PHASE_OVERRIDE", "External", "ResolvedLaunch", "Write"]
