"""The modules of a snapshot, as imports find them."""

from __future__ import annotations

from typing import Any

from mblint.evaluate.machine import Machine
from mblint.evaluate.modules import DataModule, ModuleTable
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, ClassValue, External, Instance
from mblint.upstream.snapshot.store import Store, open_store
from mblint.upstream.snapshot.values import Call, Values


class Snapshot:
    """The shipped facts of one release, served to an evaluator. Not shared between machines."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.release: str = store.index["release"]
        self.core: str = store.index["core"]
        self.table: ModuleTable | None = None
        self._library: dict[str, ClassValue] = {}
        self._parts: dict[str, Part] = {}
        self._modules: dict[str, SnapshotModule | None] = {}

    @classmethod
    def load(cls, release: str | None) -> Snapshot | None:
        """The snapshot of a release, None when none is shipped."""
        store = open_store(release) if release else None
        return cls(store) if store is not None else None

    @property
    def machine(self) -> Machine:
        assert self.table is not None and self.table.machine is not None
        return self.table.machine

    def module(self, name: str) -> SnapshotModule | None:
        """The module of a dotted name; None for one that the release does not have."""
        if name in self._modules:
            return self._modules[name]
        part = self.part_of(name)
        record = part.data["modules"].get(name) if part is not None else None
        made = SnapshotModule(self, part, name, record) if part is not None and record is not None else None
        self._modules[name] = made
        return made

    def part_of(self, module: str) -> Part | None:
        """The part that holds a module: the longest name that starts it."""
        name = module
        while name and name not in self.store.places:
            name = name.rpartition(".")[0]
        if not name or not name.startswith("megatron"):
            return None
        held = self._parts.get(name)
        if held is None:
            held = self._parts[name] = Part(self, self.store.part(name))
        return held

    def named(self, reference: str) -> Any:
        """The value of "module:name", which may be "module:Class.name"; Unknown when there is none."""
        module, _, path = reference.partition(":")
        found: Any = self.table.find(module) if self.table is not None else None
        if found is None:
            return External(f"{module}.{path}")
        part = self.part_of(module)
        if part is not None and reference in part.data["functions"] and "." in path:
            return part.function(reference)
        first, *rest = path.split(".")
        value = found.lookup(first)
        for step in rest:
            space = getattr(value, "namespace", {})
            value = getattr(value, "enum_members", {}).get(step, space.get(step, MISSING))
        return value if value is not MISSING else Unknown(f"{module} has no {path}")

    def library_class(self, full_name: str) -> ClassValue:
        """A stand-in for a class of a library: its name, and that it may have any attribute."""
        held = self._library.get(full_name)
        if held is None:
            from mblint.evaluate.objects import finish_class

            module, _, name = full_name.rpartition(".")
            home = self.table.find(module) if self.table is not None else None
            held = self._library[full_name] = ClassValue(name, name, home, (), None)  # type: ignore[arg-type]
            finish_class(self.machine, held)
            held.opaque = True
        return held

    def submodules(self, package: str) -> list[str]:
        """Dotted names of the packages right below a package, sorted."""
        depth = package.count(".") + 1
        found: set[str] = set()
        for name in self.store.places:
            if name.startswith(f"{package}.") or package.startswith(name):
                for module, record in self.store.part(name)["modules"].items():
                    if record.get("p") and module.startswith(f"{package}.") and module.count(".") == depth:
                        found.add(module)
        return sorted(found)

    def provider(self, hf_id: str) -> Instance | None:
        """What AutoBridge makes of a model, without its weights; None for a model of which nothing is known."""
        data = self.store.part("providers")
        node = data.get("providers", {}).get(hf_id)
        if node is None:
            return None
        made = Values(self, data["shared"]).value(node, Call())
        return made if isinstance(made, Instance) else None

    def reads(self, name: str) -> bool:
        """Whether anything in the release reads an attribute of that name, recipes aside."""
        return name in self._read_names

    @property
    def _read_names(self) -> frozenset[str]:
        held: frozenset[str] | None = getattr(self.store, "read_names", None)
        if held is None:
            held = frozenset(self.store.part("reads"))
            self.store.read_names = held  # type: ignore[attr-defined]
        return held


class Part:
    """The modules that share a name's start, and what they hold."""

    def __init__(self, snapshot: Snapshot, data: dict[str, Any]) -> None:
        self.snapshot = snapshot
        self.data = data
        self.values = Values(snapshot, data["shared"])
        self._made: dict[str, Any] = {}

    def function(self, reference: str) -> Any:
        """The function "module:name"."""
        held = self._made.get(reference)
        if held is None:
            from mblint.upstream.snapshot.functions import make_function

            held = self._made[reference] = make_function(self, reference, self.data["functions"][reference])
        return held

    def cls(self, reference: str) -> Any:
        """The class "module:Name"."""
        held = self._made.get(reference)
        if held is None:
            from mblint.upstream.snapshot.classes import make_class

            held = make_class(self, reference, self.data["classes"][reference])
            held = self._made.setdefault(reference, held)
        return held


class SnapshotModule(DataModule):
    """One module: global names, made when somebody asks for them."""

    is_data = True
    """It has no text: places in it cannot be shown."""

    def __init__(self, snapshot: Snapshot, part: Part, name: str, record: dict[str, Any]) -> None:
        self.snapshot = snapshot
        self.part = part
        self.name = name
        self.record = record
        self.is_package = bool(record.get("p"))
        self.relative_path = name.replace(".", "/") + ("/__init__.py" if self.is_package else ".py")
        self.path = f"snapshot:{snapshot.release}/{self.relative_path}"
        self.vars: dict[str, Any] = {"__name__": name, "__file__": self.path}
        self._imports: dict[str, tuple[str, str]] | None = None

    def lookup(self, name: str) -> Any:
        """The value of a global name, or MISSING."""
        held = self.vars.get(name, MISSING)
        if held is MISSING:
            held = self._find(name)
            if held is not MISSING:
                self.vars[name] = held
        return held

    def _find(self, name: str) -> Any:
        record, part = self.record, self.part
        reference = f"{self.name}:{name}"
        if name in record.get("v", ()):
            return part.values.default(record["v"][name])
        if reference in part.data["functions"]:
            return part.function(reference)
        if reference in part.data["classes"]:
            return part.cls(reference)
        if name in record.get("f", ()):
            from mblint.upstream.snapshot.functions import make_function

            return make_function(part, reference, {})
        if name in record.get("x", ()):
            return External(f"{self.name}.{name}")
        table = self.snapshot.table
        assert table is not None
        if name in record.get("m", ()):
            return table.import_name(record["m"][name])
        source = self.imports.get(name)
        if source is not None:
            return table.import_from(*source)
        for star in reversed(record.get("s", ())):
            other = table.find(star)
            if other is not None and not name.startswith("_"):
                value = other.lookup(name)
                if value is not MISSING:
                    return value
        if self.is_package:
            below = table.find(f"{self.name}.{name}")
            if below is not None:
                return below
        return External(f"{self.name}.{name}") if record.get("g") else MISSING

    @property
    def imports(self) -> dict[str, tuple[str, str]]:
        """Name -> (module, name there)."""
        if self._imports is None:
            self._imports = {}
            for source, names in self.record.get("i", {}).items():
                for item in names:
                    there, here = (item, item) if isinstance(item, str) else item
                    self._imports[here] = (source, there)
        return self._imports

    def names(self) -> set[str]:
        """The global names, those of `import *` aside."""
        record = self.record
        own = {
            ref.partition(":")[2] for kind in ("functions", "classes") for ref in self.part.data[kind] if ref.startswith(f"{self.name}:")
        }
        return {
            *own,
            *record.get("v", ()),
            *record.get("f", ()),
            *record.get("x", ()),
            *record.get("m", ()),
            *self.imports,
        }

    @property
    def binders(self) -> dict[str, Any]:
        """The global names, as modules with text hold them."""
        return dict.fromkeys(sorted(self.names()))

    def __repr__(self) -> str:
        return f"SnapshotModule({self.name})"


def has_source(module: Any) -> bool:
    """Whether a module's text can be shown."""
    return not getattr(module, "is_data", False)
