"""Classes of a release to records; mblint/upstream/snapshot/classes.py tells what they hold."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.dataclass import is_hand_written
from mblint.evaluate.objects import class_lookup
from mblint.evaluate.operators import machine_frame
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    BuiltinClass,
    ClassMethod,
    ClassValue,
    External,
    Field,
    FunctionValue,
    Property,
    StaticMethod,
)
from mblint.upstream.snapshot.classes import DEFAULT, FACTORY, INIT_ONLY, KEYWORD, NOT_INIT
from tools.snapshot.constructors import Constructors
from tools.snapshot.effects import ALL, CHANGED
from tools.snapshot.encode import canonical
from tools.snapshot.knobs import signature
from tools.snapshot.runs import Recorder


def is_wanted(cls: ClassValue) -> bool:
    """Whether a class is described in full: what configs are made of, and what is raised."""
    if cls.dataclass or cls.is_enum or cls.full_name in ALSO:
        return True
    return any(isinstance(base, BuiltinClass) and issubclass(base.type, BaseException) for base in cls.cached_mro)


ALSO = frozenset({"megatron.bridge.models.conversion.auto_bridge.AutoBridge"})


class ClassRecorder:
    """Makes the records of classes."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.encoder = recorder.encoder
        self.machine = recorder.machine
        self.constructors = Constructors(recorder)

    def record(self, cls: ClassValue) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if cls.bases:
            made["b"] = [self.encoder.node(base) for base in cls.bases]
        kinds = "".join(
            letter
            for letter, given in (
                ("d", cls.dataclass),
                ("f", cls.frozen),
                ("k", cls.kw_only),
                ("o", _opaque(cls)),
            )
            if given
        )
        if kinds:
            made["y"] = kinds
        if cls.dataclass:
            made["a"] = [self._field(field) for field in cls.field_map.values() if field.owner is cls]
        self._members(cls, made)
        if cls.dataclass:
            self._constructor(cls, made)
        self._hooks(cls, made)
        if "__init__" in made.get("m", ()):
            if "init" in made:
                del made["m"]["__init__"]
            elif "o" not in kinds:
                made["y"] = kinds + "o"
        return {key: value for key, value in made.items() if value or key == "post"}

    def _field(self, field: Field) -> list[Any]:
        annotation = ast.unparse(field.annotation) if field.annotation is not None else ""
        if isinstance(field.annotation, ast.Constant) and isinstance(field.annotation.value, str):
            annotation = field.annotation.value
        kind = (0 if field.init else NOT_INIT) | (KEYWORD if field.kw_only else 0)
        kind |= INIT_ONLY if field.name in field.owner.init_variables else 0
        if field.factory is not MISSING:
            return [field.name, annotation, kind | FACTORY, self.encoder.made_by(field.factory)]
        if field.default is not MISSING:
            return [field.name, annotation, kind | DEFAULT, self.encoder.node(field.default)]
        return [field.name, annotation, kind]

    def _members(self, cls: ClassValue, made: dict[str, Any]) -> None:
        """Class attributes, methods and properties."""
        values: dict[str, Any] = {name: self.encoder.node(member.value) for name, member in cls.enum_members.items()} if cls.is_enum else {}
        methods: dict[str, Any] = {}
        static, of_class, properties = [], [], {}
        own_fields = {name for name, field in cls.field_map.items() if field.owner is cls}
        for name, held in cls.namespace.items():
            if name in ("__annotations__", "__module__", "__qualname__", "__doc__", "__slots__") or name in own_fields:
                continue
            if isinstance(held, Property):
                properties[name] = [self._property(cls, held), held.setter is not None]
                continue
            function = held.function if isinstance(held, (StaticMethod, ClassMethod)) else held
            if isinstance(function, FunctionValue) and function.module is cls.module and function.defining_class is cls:
                effects = self.constructors.effects(function, None if isinstance(held, (StaticMethod, ClassMethod)) else cls)
                methods[name] = [signature(function).partition(" ->")[0], _plain(effects)]
                static += [name] if isinstance(held, StaticMethod) else []
                of_class += [name] if isinstance(held, ClassMethod) else []
            else:
                values[name] = self.encoder.node(held)
        made.update({"v": values, "m": methods, "s": static, "c": of_class, "p": properties})

    # --- what runs on its own -----------------------------------------------------------------------------

    def _property(self, cls: ClassValue, held: Property) -> Any:
        if not isinstance(held.getter, FunctionValue) or not cls.field_map:
            return None
        made, marks = self.constructors.symbolic(cls, {})
        node = self.constructors.guarded(
            lambda: self.encoder.node(call(self.machine, held.getter, [made], {}, None, machine_frame(self.machine)), marks, False)
        )
        return None if '{"?"' in canonical(node) else node

    def _constructor(self, cls: ClassValue, made: dict[str, Any]) -> None:
        written = is_hand_written(cls)
        if written is not None:
            record = self.constructors.written(cls, written)
            if record is not None:
                made["init"] = record
            return
        method = class_lookup(cls, "__post_init__")
        if isinstance(method, FunctionValue):
            made["post"] = self.constructors.post(cls, method)

    # --- hooks --------------------------------------------------------------------------------------------

    def _hooks(self, cls: ClassValue, made: dict[str, Any]) -> None:
        hook = cls.namespace.get("__setattr__")
        if not isinstance(hook, FunctionValue):
            return
        made["m"].pop("__setattr__", None)
        made["m"].pop("__getattr__", None)
        asks = cls.namespace.get("__getattr__")
        inner = [
            node.args[1].value
            for node in ast.walk(hook.node)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "object.__getattribute__" and isinstance(node.args[1], ast.Constant)
        ]
        if inner and isinstance(asks, FunctionValue):
            made["to"] = inner[0]
            return
        pairs = self._pairs(cls, hook)
        if pairs:
            made["sync"] = pairs

    def _pairs(self, cls: ClassValue, hook: FunctionValue) -> dict[str, str]:
        """Attributes that a hook sets together: found by setting each."""
        from mblint.evaluate.objects import set_attribute

        pairs: dict[str, str] = {}
        for name in cls.field_map:

            def work(name: str = name) -> list[str]:
                made, _ = self.constructors.symbolic(cls, {n: None for n in cls.field_map})
                set_attribute(self.machine, made, name, "a mark", None, machine_frame(self.machine))
                return [other for other, value in made.attrs.items() if value == "a mark" and other != name]

            for other in self.constructors.guarded(work) or ():
                if pairs.get(other) != name:
                    pairs[name] = other
        return pairs


def _plain(effects: dict[str, Any]) -> dict[str, Any]:
    """Effects as methods hold them: where something changes, not how."""
    return {name: paths if paths == ALL else sorted({path.rstrip(CHANGED) for path in paths}) for name, paths in effects.items()}


def _opaque(cls: ClassValue) -> bool:
    return cls.opaque and all(
        not isinstance(base, (External, Unknown)) and isinstance(base, (ClassValue, BuiltinClass)) for base in cls.bases
    )
