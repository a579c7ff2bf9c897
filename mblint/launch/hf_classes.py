"""Hugging Face configuration classes for evaluated code: what `import transformers` gives it.

The classes come from a table (mblint/upstream/transformers.py). Of each it holds

    m   module                      t   model_type
    b   base class, if not the common one
    d   fields with their defaults  k   other class attributes
    a   other names of attributes   s   classes of sub-configs
    post, init                      [parameters with defaults, steps] of the constructor
    rope                            steps that bring the rotary embedding's keys into form
    p   properties: name -> [getter, setter]: [parameters, steps, formula], [parameter, steps], or null
    f   methods: name -> [parameters, steps, formula]
    u   names whose value the table cannot tell
    g   attributes are taken from (get) and put into (set) text_config where that has them, except these
    v   the class checks its rotary settings in its own way

Steps and formulas are told in tools/config_formulas.py. Formulas are evaluated like any other source.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mblint.evaluate.errors import BudgetExceeded, Raised
from mblint.evaluate.machine import Machine
from mblint.evaluate.modules import DataModule
from mblint.evaluate.objects import finish_class, get_attribute
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, Builtin, ClassMethod, ClassValue, External, Instance, Property
from mblint.launch import hf_base, hf_build
from mblint.launch.hf_steps import Formulas, run_steps

T = TypeVar("T")

BASE_NAMES = ("PreTrainedConfig", "PretrainedConfig")
BASE_MODULE = "transformers.configuration_utils"
MOST_LABELS = 100_000


class LibraryModule(DataModule):
    """A module of the transformers package: its configuration classes; of other names nothing is known."""

    path = ""
    is_package = True

    def __init__(self, library: Library, name: str) -> None:
        self.library = library
        self.name = name
        self.relative_path = name.replace(".", "/") + ".py"
        self.vars: dict[str, Any] = {}
        self.binders: dict[str, Any] = {}

    def lookup(self, name: str) -> Any:
        """A configuration class, or a name of which nothing but itself is known."""
        held = self.vars.get(name)
        if held is not None:
            return held
        cls = self.library.find(name)
        if cls is not None:
            return cls
        return External(f"transformers.{name}" if name[:1].isupper() else f"{self.name}.{name}")

    def __repr__(self) -> str:
        return f"LibraryModule({self.name})"


class Library:
    """The classes of one table, made when they are asked for."""

    def __init__(self, machine: Machine, table: dict[str, Any]) -> None:
        self.machine = machine
        self.table = table
        self.records: dict[str, dict[str, Any]] = table["classes"]
        self.modules: dict[str, LibraryModule] = {}
        self.classes: dict[str, ClassValue] = {}
        self.post_style: bool = table["base"]["style"] == "post"
        """Whether classes are dataclasses with __post_init__ (from 5.8 on) or have their own constructors."""
        self.formulas = Formulas(machine, self.module("transformers"), self.name)
        self.constructing = False
        self.class_of: Callable[[Any, Any], ClassValue | None] = lambda kind, _: self.class_of_type(kind)
        """(model_type, architectures) -> the class; set by who knows more classes than the table."""
        self.load: Callable[[ClassValue, Any, dict[str, Any]], Any] | None = None
        """(class, id or folder, arguments) -> the configuration, for Class.from_pretrained."""
        self.base = self._make_base()
        self.open = self._make_open()

    # --- modules and classes --------------------------------------------------------------------------

    def module(self, name: str) -> LibraryModule:
        """A module of the package by its dotted name."""
        held = self.modules.get(name)
        if held is None:
            held = self.modules[name] = LibraryModule(self, name)
        return held

    def find(self, name: str) -> ClassValue | None:
        """The configuration class of that name; None when the table has none."""
        if name in BASE_NAMES:
            return self.base
        if name not in self.records:
            return None
        held = self.classes.get(name)
        return held if held is not None else self._make(name)

    def class_of_type(self, model_type: Any) -> ClassValue | None:
        """The configuration class of a model type; None when the table has none."""
        name = self.table["types"].get(model_type) if isinstance(model_type, str) else None
        return self.find(name) if name is not None else None

    def name(self, word: str) -> Any:
        """What a global name in a formula means; None when nothing is known of it."""
        if word == "config_of":
            return Builtin("config_of", self.config_of)
        if word == "field_names":
            return Builtin("field_names", lambda m, a, k, s, f: list(self.fields_of(a[0].name)))
        return External("math") if word == "math" else self.find(word)

    def record_of(self, cls: ClassValue) -> dict[str, Any] | None:
        """What the table holds of a class; None for classes of evaluated source."""
        return self.records.get(cls.name) if self.classes.get(cls.name) is cls else None

    def fields_of(self, name: str | None) -> dict[str, Any]:
        """Fields of a class and its bases with their defaults, in order; of the common base for None."""
        if name is None:
            fields: dict[str, Any] = self.table["base"]["fields"] if self.post_style else {}
            return fields
        record = self.records[name]
        own = record.get("d", {})
        if not own and "init" in record:
            own = {p[0]: p[1] if len(p) > 1 else None for p in record["init"][0]}
        return {**self.fields_of(record.get("b")), **own}

    def _new(self, name: str, module: str, bases: tuple[object, ...]) -> ClassValue:
        return ClassValue(name, name, self.module(module), bases, None)  # type: ignore[arg-type]

    def _make_base(self) -> ClassValue:
        base = self.table["base"]
        cls = self._new(BASE_NAMES[0] if base["rope"] else BASE_NAMES[1], BASE_MODULE, ())
        space = cls.namespace
        for method in base["methods"]:
            space[method] = Unknown(f"{method} of a configuration is not evaluated")
        space.update(base["constants"])
        space.update({"attribute_map": {}, "sub_configs": {}, "model_type": ""})
        for shown, held in (
            ("name_or_path", "_name_or_path"),
            ("output_attentions", "_output_attentions"),
            ("_attn_implementation", "_attn_implementation_internal"),
        ):
            space[shown] = self._alias(held, None)
        space["num_labels"] = self._number_of_labels()
        space["torch_dtype"] = self._alias("dtype")
        space["use_return_dict"] = self._alias("return_dict")
        if base["rope"]:
            space["rope_scaling"] = self._alias("rope_parameters")
        methods: dict[str, Callable[[list[Any], dict[str, Any]], Any]] = {
            "__init__": lambda a, k: hf_build.construct(self, None, a[0], k),
            "__post_init__": lambda a, k: hf_base.finish(self, a[0], dict(k)),
            "to_dict": lambda a, k: hf_base.to_dict(self, a[0]),
            "get_text_config": lambda a, k: hf_base.text_config(self, a[0], k),
            "update": self._update,
        }
        for name, method in methods.items():
            space[name] = _method(name, method)
        space["from_dict"] = ClassMethod(_method("from_dict", self._from_dict))
        space["from_pretrained"] = ClassMethod(_method("from_pretrained", self._from_pretrained))
        finish_class(self.machine, cls)
        return cls

    def _make_open(self) -> ClassValue:
        """The class of a configuration whose own class is not known: an attribute not set may exist."""
        cls = self._new("PretrainedConfig", BASE_MODULE, (self.base,))
        finish_class(self.machine, cls)
        cls.opaque = True
        return cls

    def _make(self, name: str) -> ClassValue:
        record = self.records[name]
        base = self.find(record["b"]) if "b" in record else self.base
        cls = self._new(name, record["m"], (base,))
        self.classes[name] = cls
        space = cls.namespace
        unknown = record.get("u", ())
        for known, value in record.get("k", {}).items():
            space[known] = self.fresh(value)
        for word in unknown:
            space[word] = Unknown(f"{name}.{word} is not known")
        if "t" in record:
            space["model_type"] = record["t"]
        if "a" in record:
            space["attribute_map"] = dict(record["a"])
            space.update({shown: self._alias(held) for shown, held in record["a"].items() if shown != held})
        if "s" in record:
            space["sub_configs"] = {key: self.find(sub) or External(f"transformers.{sub}") for key, sub in record["s"].items()}
        for shown, (getter, setter) in record.get("p", {}).items():
            space[shown] = self._property(getter, setter)
        for method, function in record.get("f", {}).items():
            space[method] = self._function(function)
        if "g" in record:
            self._share_with_text(record, space)
        space["__init__"] = _method("__init__", lambda a, k: hf_build.construct(self, name, a[0], k))
        finish_class(self.machine, cls)
        cls.opaque = cls.opaque or "__getattribute__" in unknown or "__getattr__" in unknown
        if self.post_style:
            # They are dataclasses: a resolved config shows their fields one by one.
            cls.field_map = dict.fromkeys(self.fields_of(name))  # type: ignore[assignment]
        return cls

    # --- class attributes -----------------------------------------------------------------------------

    def _alias(self, held: str, missing: Any = MISSING) -> Property:
        """Another name of an attribute."""

        def get(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
            if missing is not MISSING and held not in args[0].attrs:
                return missing
            return get_attribute(m, args[0], held, site, frame)

        def put(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> None:
            m.write(args[0], held, args[1], site, frame.trace)

        return Property(Builtin("property", get), Builtin("property.setter", put))

    def _share_with_text(self, record: dict[str, Any], space: dict[str, object]) -> None:
        """Attributes that a composite configuration shares with its text part."""
        base, parts = self.table["base"], record.get("s", {})
        text = parts.get("text_config")
        names = {*self.fields_of(text), *base["fields"], *base["generation"]} if text in self.records else set()

        def shared(name: str) -> Property:
            kept = {kind: name in record["g"].get(kind, (name,)) for kind in ("get", "set")}

            def holder(instance: Instance, kind: str) -> Instance:
                inner = instance.attrs.get("text_config")
                return inner if not kept[kind] and isinstance(inner, Instance) and name in inner.attrs else instance

            def get(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
                held = holder(args[0], "get").attrs.get(name, MISSING)
                if held is MISSING:
                    return m.implicit(AttributeError, f"no attribute '{name}'", site, frame)
                return held

            def put(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> None:
                m.write(holder(args[0], "set"), name, args[1], site, frame.trace)

            return Property(Builtin("property", get), Builtin("property.setter", put))

        for name in names - {"dtype", "num_labels", "text_config", *parts}:
            space[name] = shared(name)

    def _number_of_labels(self) -> Property:
        def get(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
            labels = args[0].attrs.get("id2label")
            return len(labels) if isinstance(labels, dict) else None

        def put(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> None:
            count = args[1]
            if isinstance(count, int) and 0 <= count < MOST_LABELS:
                names = {index: f"LABEL_{index}" for index in range(count)}
                m.write(args[0], "id2label", m.born(names), site, None)
                m.write(args[0], "label2id", m.born({name: index for index, name in names.items()}), site, None)

        return Property(Builtin("property", get), Builtin("property.setter", put))

    def _property(self, getter: list[Any] | None, setter: list[Any] | None) -> Property:
        def get(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
            if getter is None:
                return Unknown("a property that can only be set")
            return self._run_function(getter, {"c": args[0]})

        def put(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> None:
            if setter is not None:
                parameter, steps = setter
                variables = {"c": args[0], parameter: args[1], "kw": {}}
                self.guarded(lambda: run_steps(self, args[0], steps, variables))

        return Property(Builtin("property", get), Builtin("property.setter", put) if setter is not None else None)

    def _function(self, function: list[Any]) -> Builtin:
        def run(args: list[Any], kwargs: dict[str, Any]) -> Any:
            receiver, given = (args[0], args[1:]) if args and isinstance(args[0], Instance) else (None, args)
            return self._run_function(function, {"c": receiver, **dict(zip(function[0], given, strict=False)), **kwargs})

        return _method("of a configuration", run)

    def _run_function(self, function: list[Any], variables: dict[str, Any]) -> Any:
        parameters, steps, formula = function
        for parameter in parameters:
            variables.setdefault(parameter, None)
        variables.setdefault("kw", {})

        def run() -> Any:
            run_steps(self, variables["c"], steps, variables)
            return self.formulas.value(formula, variables)

        return self.guarded(run)

    # --- what instances are made of -------------------------------------------------------------------

    def guarded(self, run: Callable[[], T]) -> T | Unknown:
        """Run library code: what goes wrong inside is not the fault of the code that is read."""
        machine = self.machine
        machine.speculation += 1
        handlers, machine.handlers = machine.handlers, []
        try:
            return run()
        except (Raised, BudgetExceeded):
            return Unknown("a configuration whose class refuses it")
        finally:
            machine.handlers = handlers
            machine.speculation -= 1

    def fresh(self, value: Any) -> Any:
        """A value of the table or of a config.json as evaluated code would hold it."""
        if isinstance(value, dict):
            return self.machine.born({key: self.fresh(inner) for key, inner in value.items()})
        if isinstance(value, list):
            return self.machine.born([self.fresh(inner) for inner in value])
        return value

    def put(self, instance: Instance, name: str, value: Any) -> None:
        """Set an attribute, under whatever name it is really kept; nobody is told who did."""
        plan = instance.cls.plan if instance.cls is not None else None
        if plan is None or name not in plan:
            instance.attrs[name] = value
        elif plan[name] is not None:
            from mblint.evaluate.calls import call
            from mblint.evaluate.operators import machine_frame

            call(self.machine, plan[name], [instance, value], {}, None, machine_frame(self.machine))
            for written in [key for key, write in instance.origin.items() if write.site is None]:
                del instance.origin[written]

    def peek(self, instance: Instance, name: str, default: Any) -> Any:
        """getattr(instance, name, default)"""
        from mblint.evaluate.operators import machine_frame

        plan = instance.cls.plan if instance.cls is not None else None
        if name in instance.attrs and (plan is None or name not in plan):
            return instance.attrs[name]
        found = get_attribute(self.machine, instance, name, None, machine_frame(self.machine), _NOTHING)
        return default if found is _NOTHING else found

    def config_of(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        """AutoConfig.for_model(model_type, **values)"""
        model_type = args[0] if args else kwargs.get("model_type")
        cls = self.class_of_type(model_type) if isinstance(model_type, str) else None
        if cls is None:
            return hf_build.build_open(self, {k: v for k, v in kwargs.items() if k is not None}, True)
        return hf_build.build(self, cls, kwargs)

    def _update(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if len(args) != 2 or not isinstance(args[1], dict):
            return Unknown("an update that is not known")
        for key, value in args[1].items():
            self.put(args[0], key, value)
        return None

    def _from_dict(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if len(args) == 2 and isinstance(args[1], dict) and isinstance(args[0], ClassValue):
            return hf_build.build(self, args[0], {**args[1], **kwargs})
        return self.machine.new_instance(None, "a configuration from a dict that is not known")

    def _from_pretrained(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if len(args) == 2 and isinstance(args[0], ClassValue) and self.load is not None:
            return self.load(args[0], args[1], kwargs)
        return self.machine.new_instance(None, "a configuration that is not known")


_NOTHING = Builtin("missing", lambda *_: None)


def _method(name: str, run: Callable[[list[Any], dict[str, Any]], Any]) -> Builtin:
    return Builtin(f"method:{name}", lambda m, args, kwargs, site, frame: run(args, kwargs))
