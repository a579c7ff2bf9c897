"""Hugging Face configuration classes for evaluated code: what `import transformers` gives it.

The classes come from a table (mblint/upstream/transformers.py). Of each it holds

    m   module                      t   model_type
    b   base class, if not the common one
    d   fields with their defaults  k   other class attributes
    a   other names of attributes   s   classes of sub-configs
    post, init                      [parameters with defaults, steps] of the constructor
    rope                            steps that bring the rotary embedding's keys into form
    p   properties: name -> [[parameters, steps, formula] | null, [parameter, steps] | null] (getter, setter)
    f   methods: name -> [parameters, steps, formula]
    u   names whose value the table cannot tell
    g   attributes are taken from (get) and put into (set) text_config where that has them, except these
    v   the class checks its rotary settings in its own way

Steps and formulas are told in tools/config_formulas.py. Formulas are evaluated like any other source that is read.
"""

from __future__ import annotations

from typing import Any

from mblint.evaluate.copying import copy_value
from mblint.evaluate.errors import NeedFork, Raised
from mblint.evaluate.machine import Machine
from mblint.evaluate.objects import finish_class, get_attribute
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    BoundMethod,
    Builtin,
    ClassMethod,
    ClassValue,
    External,
    FunctionValue,
    Instance,
    Property,
)
from mblint.launch.hf_steps import Formulas, run_steps

BASE_NAMES = ("PreTrainedConfig", "PretrainedConfig")
BASE_MODULE = "transformers.configuration_utils"
TEXT_CONFIGS = ("text_encoder", "decoder", "generator", "text_config")
"""Where a composite configuration keeps the part that text goes through."""

SCALED_ROPE = ("llama3", "yarn", "longrope")
MOST_LABELS = 100_000
INTERNAL = frozenset({"_commit_hash", "_attn_implementation_internal", "_experts_implementation_internal", "_auto_class"})


class LibraryModule:
    """A module of the transformers package: configuration classes by name, everything else by its dotted name."""

    path = ""
    is_package = True
    stars: tuple[Any, ...] = ()

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

    def star_is_open(self) -> bool:
        return False

    def character_column(self, line: int, byte_column: int) -> int:
        return byte_column

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
        self.formulas = Formulas(machine, self.module("transformers"), self.name)
        self.constructing = False
        self.class_of: Any = lambda model_type, architectures: None
        """(model_type, architectures) -> the configuration class; set by who knows more classes than the table."""
        self.load: Any = None
        """(class, id or folder, arguments) -> the configuration, for Class.from_pretrained."""
        self.base = self._make_base()
        self.post_style = table["base"]["style"] == "post"
        self.open = self._make_open()

    # --- modules and classes ---------------------------------------------------------------------------------------

    def module(self, name: str) -> LibraryModule:
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

    def class_of_type(self, model_type: str) -> ClassValue | None:
        """The configuration class of a model type."""
        name = self.table["types"].get(model_type)
        return self.find(name) if name is not None else None

    def name(self, word: str) -> Any:
        """What a global name in a formula means; None when nothing is known of it."""
        if word == "config_of":
            return Builtin("config_of", self._config_of)
        if word == "field_names":
            return Builtin("field_names", lambda m, a, k, s, f: list(self.fields_of(a[0].name)))
        return External("math") if word == "math" else self.find(word)

    def record_of(self, cls: ClassValue) -> dict[str, Any] | None:
        return self.records.get(cls.name) if self.classes.get(cls.name) is cls else None

    def _new(self, name: str, module: str, bases: tuple[object, ...]) -> ClassValue:
        return ClassValue(name, name, self.module(module), bases, None)  # type: ignore[arg-type]

    def _make_base(self) -> ClassValue:
        base = self.table["base"]
        cls = self._new(BASE_NAMES[0] if base["style"] == "post" or base["rope"] else BASE_NAMES[1], BASE_MODULE, ())
        space = cls.namespace
        for method in base["methods"]:
            space[method] = Unknown(f"{method} of a configuration is not evaluated")
        space.update(base["constants"])
        space["attribute_map"], space["sub_configs"], space["model_type"] = {}, {}, ""
        space["__init__"] = Builtin("method:__init__", lambda m, a, k, s, f: self._construct(None, a[0], k))
        space["__post_init__"] = Builtin("method:__post_init__", lambda m, a, k, s, f: self._finish(a[0], dict(k)))
        for shown, held in (("name_or_path", "_name_or_path"), ("output_attentions", "_output_attentions")):
            space[shown] = self._alias(held, None)
        space["_attn_implementation"] = self._alias("_attn_implementation_internal", None)
        space["num_labels"] = self._number_of_labels()
        space["torch_dtype"] = self._alias("dtype")
        space["use_return_dict"] = self._alias("return_dict")
        if base["rope"]:
            space["rope_scaling"] = self._alias("rope_parameters")
        space["to_dict"] = Builtin("method:to_dict", lambda m, a, k, s, f: self.to_dict(a[0]))
        space["get_text_config"] = Builtin("method:get_text_config", lambda m, a, k, s, f: self.text_config(a[0], k))
        space["update"] = Builtin("method:update", self._update)
        space["from_dict"] = ClassMethod(Builtin("from_dict", self._from_dict))
        space["from_pretrained"] = ClassMethod(Builtin("from_pretrained", self._from_pretrained))
        finish_class(self.machine, cls)
        return cls

    def _make_open(self) -> ClassValue:
        """The class of a configuration whose own class is not known: an attribute that is not set may exist."""
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
        for known, value in record.get("k", {}).items():
            space[known] = self.fresh(value)
        space.update({unknown: Unknown(f"{name}.{unknown} is not known") for unknown in record.get("u", ())})
        if "t" in record:
            space["model_type"] = record["t"]
        if "a" in record:
            space["attribute_map"] = dict(record["a"])
            for shown, held in record["a"].items():
                if shown != held:
                    space[shown] = self._alias(held)
        if "s" in record:
            space["sub_configs"] = {key: self.find(sub) or External(f"transformers.{sub}") for key, sub in record["s"].items()}
        for shown, (getter, setter) in record.get("p", {}).items():
            space[shown] = self._property(getter, setter)
        for method, (parameters, steps, formula) in record.get("f", {}).items():
            space[method] = self._function(parameters, steps, formula)
        if "g" in record:
            self._pass_on(record, space)
        space["__init__"] = Builtin("method:__init__", lambda m, a, k, s, f: self._construct(name, a[0], k))
        finish_class(self.machine, cls)
        cls.opaque = cls.opaque or "__getattribute__" in record.get("u", ()) or "__getattr__" in record.get("u", ())
        # Configurations show their fields one by one in a resolved config, as dataclasses do.
        if self.post_style:
            cls.field_map = dict.fromkeys(self.fields_of(name))  # type: ignore[arg-type]
        return cls

    def fields_of(self, name: str) -> dict[str, Any]:
        """Fields of a class and its bases with their defaults, in order."""
        record = self.records[name]
        inherited = self.fields_of(record["b"]) if "b" in record else (self.table["base"]["fields"] if self.post_style else {})
        own = record.get("d", {})
        if not own and "init" in record:
            own = {parameter[0]: parameter[1] if len(parameter) > 1 else None for parameter in record["init"][0]}
        return {**inherited, **own}

    # --- class attributes --------------------------------------------------------------------------------------------

    def _alias(self, held: str, missing: Any = MISSING) -> Property:
        """Another name of an attribute."""

        def get(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
            if missing is not MISSING and held not in args[0].attrs:
                return missing
            return get_attribute(m, args[0], held, site, frame)

        def put(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> None:
            m.write(args[0], held, args[1], site, frame.trace if frame is not None else None)

        return Property(Builtin("property", get), Builtin("property.setter", put))

    def _pass_on(self, record: dict[str, Any], space: dict[str, object]) -> None:
        """Attributes that a composite configuration shares with its text part."""
        text = record.get("s", {}).get("text_config")
        names = {*self.fields_of(text), *self.table["base"]["fields"], *self.table["base"]["generation"]} if text in self.records else set()

        def shared(name: str) -> Property:
            keeps = {kind: name in record["g"].get(kind, ()) or kind not in record["g"] for kind in ("get", "set")}

            def holder(instance: Instance, kind: str) -> Instance:
                inner = instance.attrs.get("text_config")
                return inner if not keeps[kind] and isinstance(inner, Instance) and name in inner.attrs else instance

            def get(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
                held = holder(args[0], "get").attrs.get(name, MISSING)
                return held if held is not MISSING else m.implicit(AttributeError, f"no attribute '{name}'", site, frame)

            def put(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> None:
                m.write(holder(args[0], "set"), name, args[1], site, frame.trace)

            return Property(Builtin("property", get), Builtin("property.setter", put))

        for name in names - {"dtype", "num_labels", "text_config", *record.get("s", ())}:
            space[name] = shared(name)

    def _number_of_labels(self) -> Property:
        def get(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
            labels = args[0].attrs.get("id2label")
            return len(labels) if isinstance(labels, dict) else None

        def put(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> None:
            if isinstance(args[1], int) and 0 <= args[1] < MOST_LABELS:
                m.write(args[0], "id2label", m.born({index: f"LABEL_{index}" for index in range(args[1])}), site, None)
                m.write(args[0], "label2id", m.born({f"LABEL_{index}": index for index in range(args[1])}), site, None)

        return Property(Builtin("property", get), Builtin("property.setter", put))

    def _property(self, getter: list[Any] | None, setter: list[Any] | None) -> Property:
        def get(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
            if getter is None:
                return Unknown("a property that can only be set")
            return self._run_function(getter, {"c": args[0]})

        def put(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> None:
            if setter is not None:
                self._guarded(lambda: run_steps(self, args[0], setter[1], {"c": args[0], setter[0]: args[1], "kw": {}}))

        return Property(Builtin("property", get), Builtin("property.setter", put) if setter is not None else None)

    def _function(self, parameters: list[str], steps: list[Any], formula: str) -> Any:
        def run(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
            receiver, given = (args[0], args[1:]) if args and isinstance(args[0], Instance) else (None, args)
            return self._run_function([parameters, steps, formula], {"c": receiver, **dict(zip(parameters, given, strict=False)), **kwargs})

        return Builtin("method:of a configuration", run)

    def _run_function(self, function: list[Any], variables: dict[str, Any]) -> Any:
        parameters, steps, formula = function
        for parameter in parameters:
            variables.setdefault(parameter, None)
        variables.setdefault("kw", {})

        def run() -> Any:
            run_steps(self, variables["c"], steps, variables)
            return self.formulas.value(formula, variables)

        return self._guarded(run)

    def _guarded(self, run: Any) -> Any:
        """Run library code: what goes wrong inside is not the fault of the code that is read."""
        machine = self.machine
        machine.speculation += 1
        handlers, machine.handlers = machine.handlers, []
        try:
            return run()
        except (Raised, NeedFork):
            return Unknown("a configuration whose class refuses it")
        finally:
            machine.handlers = handlers
            machine.speculation -= 1

    # --- instances ---------------------------------------------------------------------------------------------------

    def fresh(self, value: Any) -> Any:
        """A value of the table or of a config.json as evaluated code would hold it."""
        if isinstance(value, dict):
            return self.machine.born({key: self.fresh(inner) for key, inner in value.items()})
        if isinstance(value, list):
            return self.machine.born([self.fresh(inner) for inner in value])
        return value

    def build(self, cls: ClassValue, values: dict[str, Any]) -> Instance:
        """cls(**values)"""
        from mblint.evaluate.calls import instantiate
        from mblint.evaluate.operators import machine_frame

        made = self._guarded(lambda: instantiate(self.machine, cls, [], values, None, machine_frame(self.machine)))
        return made if isinstance(made, Instance) else self.machine.new_instance(None, getattr(made, "reason", "") or cls.name)

    def build_open(self, values: dict[str, Any], complete: bool) -> Instance:
        """A configuration whose class is not known: what the file holds is known, what it does not hold is not."""
        made = self.machine.new_instance(self.open, "the class of this configuration is not known")
        nested = dict(values)
        for key, inner in values.items():
            if isinstance(inner, dict) and key.endswith("_config") and "quant" not in key:
                # A part that says of which model type it is, is configured like that type.
                kind = self.class_of(inner.get("model_type"), inner.get("architectures"))
                nested[key] = self.build(kind, inner) if kind is not None else self.build_open(inner, complete)
        self._finish(made, nested)
        if complete and not {"rope_scaling", "rope_parameters"} & values.keys():
            # A whole file holds everything that its class sets: scaling of the rotary embedding has no other default anywhere.
            made.attrs["rope_parameters" if self.table["base"]["rope"] else "rope_scaling"] = None
        if not complete:
            for field in self.table["base"]["fields"]:
                if field not in values and not (field == "dtype" and "torch_dtype" in values):
                    made.attrs.pop(field, None)
        return made

    def _construct(self, name: str | None, instance: Instance, kwargs: dict[str, Any]) -> None:
        # Classes change the dicts that they are given: the caller's stay as they are, those of one construction are shared.
        inner, self.constructing = self.constructing, True
        given = {key: value if inner else copy_value(self.machine, value) for key, value in kwargs.items() if key is not None}
        mark = self.machine.mark()
        try:
            self._guarded(lambda: self._initialize(name, instance, given))
        finally:
            self.constructing = inner
        if self.machine.speculation == 0:
            self.machine.forget(mark)
        if None in kwargs:
            for field in self.fields_of(name) if name is not None else ():
                if field not in given:
                    instance.attrs[field] = Unknown("built from keyword arguments that are not known")

    def _initialize(self, name: str | None, instance: Instance, given: dict[str, Any]) -> None:
        if not self.post_style or (name is not None and self._constructor(name, "init")[1] is not None):
            self._run_constructor(name, "init", instance, given)
            return
        fields = self.fields_of(name) if name is not None else self.table["base"]["fields"]
        for field, default in fields.items():
            self.put(instance, field, given.pop(field) if field in given else self.fresh(default))
        written = next((c.namespace["__post_init__"] for c in instance.cls.cached_mro if isinstance(c, ClassValue) and "__post_init__" in c.namespace), None)  # type: ignore[union-attr]
        if isinstance(written, FunctionValue):
            from mblint.evaluate.calls import call
            from mblint.evaluate.operators import machine_frame

            call(self.machine, BoundMethod(written, instance), [], given, None, machine_frame(self.machine))
            return
        self._run_constructor(name, "post", instance, given)
        self._name_rope_type(instance)

    def _name_rope_type(self, instance: Instance) -> None:
        """The check of rotary settings at the end of construction also gives them their type."""
        parameters = instance.attrs.get("rope_parameters")
        if not isinstance(parameters, dict) or not parameters:
            return
        if any("v" in self.records.get(cls.name, ()) for cls in instance.cls.cached_mro if isinstance(cls, ClassValue)):  # type: ignore[union-attr]
            return
        kinds = self._peek(instance, "layer_types", None)
        if not (isinstance(kinds, list) and set(parameters) <= {kind for kind in kinds if isinstance(kind, str)}):
            parameters.setdefault("rope_type", parameters.get("type", "default"))

    def _constructor(self, name: str | None, kind: str) -> tuple[str | None, list[Any] | None]:
        """The nearest class upwards that has a constructor of its own: (its name, [parameters, steps])."""
        while name is not None:
            record = self.records[name]
            if kind in record:
                return name, record[kind]
            name = record.get("b")
        return None, None

    def _run_constructor(self, name: str | None, kind: str, instance: Instance, given: dict[str, Any]) -> None:
        owner, constructor = self._constructor(name, kind)
        if owner is None or constructor is None:
            self._finish(instance, given)
            return
        parameters, steps = constructor
        variables: dict[str, Any] = {"c": instance}
        for parameter in parameters:
            if parameter[0] in given:
                variables[parameter[0]] = given.pop(parameter[0])
            elif len(parameter) > 2:
                variables[parameter[0]] = Unknown(f"the default of {parameter[0]} is computed")
            else:
                variables[parameter[0]] = self.fresh(parameter[1]) if len(parameter) > 1 else None
        variables["kw"] = self.machine.born(given)

        def base(extra: dict[str, Any]) -> None:
            self._run_constructor(self.records[owner].get("b"), kind, instance, {**variables["kw"], **extra})

        run_steps(self, instance, steps, variables, base)

    def put(self, instance: Instance, name: str, value: Any) -> None:
        """Set an attribute, under whatever name it is really kept."""
        plan = instance.cls.plan if instance.cls is not None else None
        if plan is not None and name in plan:
            from mblint.evaluate.calls import call
            from mblint.evaluate.operators import machine_frame

            if plan[name] is not None:
                call(self.machine, plan[name], [instance, value], {}, None, machine_frame(self.machine))
                for written in [key for key, write in instance.origin.items() if write.site is None]:
                    del instance.origin[written]
            return
        instance.attrs[name] = value

    # --- the common base class -----------------------------------------------------------------------------------------

    def _finish(self, instance: Instance, given: dict[str, Any]) -> None:
        """The constructor of the common base class: dtype, rotary embedding, and every other key as an attribute."""
        base = self.table["base"]
        attrs = instance.attrs
        if not self.post_style or instance.cls is self.open:
            for field, default in base["fields"].items():
                if field == "output_attentions":
                    attrs["_output_attentions"] = given.pop(field, default)
                elif field != "num_labels":
                    self.put(instance, field, given.pop(field) if field in given else self.fresh(default))
        legacy = given.pop("torch_dtype", None)
        dtype = attrs.get("dtype")
        if dtype is None and legacy is not None:
            dtype = legacy
        attrs["dtype"] = External(f"torch.{dtype}") if isinstance(dtype, str) else dtype
        count = given.pop("num_labels", None)
        if attrs.get("id2label") is None:
            self.put(instance, "num_labels", count if count is not None else 2)
        elif isinstance(attrs["id2label"], dict):
            attrs["id2label"] = {int(k) if isinstance(k, str) and k.isdigit() else k: v for k, v in attrs["id2label"].items()}
        if base["rope"]:
            given = self._rope(instance, given)
        for name, default in base["generation"].items():
            if base["sets_generation"]:
                self.put(instance, name, given.pop(name) if name in given else self.fresh(default))
            else:
                given.pop(name, None)
        attrs["_name_or_path"] = given.pop("name_or_path", "")
        attrs["_commit_hash"] = given.pop("_commit_hash", None)
        attrs.setdefault("_output_attentions", given.pop("output_attentions", False))
        attrs["_attn_implementation_internal"] = given.pop("attn_implementation", None)
        if self.post_style:
            attrs["_experts_implementation_internal"] = given.pop("experts_implementation", None)
        else:
            attrs["transformers_version"] = given.pop("transformers_version", None)
        for key, value in given.items():
            if key not in INTERNAL:
                self.put(instance, key, value)
        if base["sets_generation"]:
            attrs.setdefault("tf_legacy_loss", False)
            attrs.setdefault("use_bfloat16", False)

    def _rope(self, instance: Instance, given: dict[str, Any]) -> dict[str, Any]:
        """Keys of rotary embeddings, old or new, as one dict `rope_parameters`."""
        owner, steps = self._rope_steps(instance)
        has = "rope_parameters" in instance.attrs
        if not has and not (given.get("rope_scaling") and given.get("rope_theta")):
            return given
        if any(type(given.get(key)) is Unknown for key in ("rope_scaling", "rope_theta", "partial_rotary_factor")):
            instance.attrs["rope_parameters"] = Unknown("rotary embedding settings that are not known")
            return given
        given = self.machine.born(dict(given))
        if owner is not None:
            run_steps(self, instance, steps, {"c": instance, "kw": given})
            return given
        scaling = given.pop("rope_scaling", None)
        parameters = scaling or instance.attrs.get("rope_parameters")
        if type(parameters) is Unknown:
            return given
        parameters = parameters if parameters is not None else self.machine.born({})
        instance.attrs["rope_parameters"] = parameters
        if not isinstance(parameters, dict):
            instance.attrs["rope_parameters"] = Unknown("rotary embedding settings in an unusual form")
            return given
        theta = given.pop("rope_theta", MISSING)
        if theta is MISSING:
            theta = self._peek(instance, "rope_theta", MISSING)
        if theta is MISSING:
            theta = self._peek(instance, "default_theta", 10_000.0)
        parameters.setdefault("rope_theta", theta)
        factor = given.get("partial_rotary_factor", self._peek(instance, "partial_rotary_factor", None))
        if factor is not None:
            parameters.setdefault("partial_rotary_factor", factor)
        self.standardize_rope(instance)
        return given

    def _rope_steps(self, instance: Instance) -> tuple[str | None, list[Any]]:
        for cls in instance.cls.cached_mro if instance.cls is not None else ():
            record = self.record_of(cls) if isinstance(cls, ClassValue) else None
            if record is not None and "rope" in record:
                return cls.name, record["rope"]  # type: ignore[union-attr]
        return None, []

    def _peek(self, instance: Instance, name: str, default: Any) -> Any:
        """getattr(instance, name, default)"""
        from mblint.evaluate.operators import machine_frame

        if name in instance.attrs and not (instance.cls is not None and instance.cls.plan and name in instance.cls.plan):
            return instance.attrs[name]
        marker = Builtin("missing", lambda *_: None)
        found = get_attribute(self.machine, instance, name, None, machine_frame(self.machine), marker)
        return default if found is marker else found

    def standardize_rope(self, instance: Instance) -> None:
        """Complete `rope_parameters`: its type, and the base in every part where layers differ."""
        parameters = instance.attrs.get("rope_parameters") or self.machine.born({})
        theta = self._peek(instance, "rope_theta", None)
        factor = self._peek(instance, "partial_rotary_factor", None)
        kinds = self._peek(instance, "layer_types", None)
        if not isinstance(parameters, dict) or type(kinds) is Unknown or not (parameters or theta):
            return
        by_layer = isinstance(kinds, list) and parameters and set(parameters) <= {k for k in kinds if isinstance(k, str)}
        parts = [parameters.get(kind) for kind in dict.fromkeys(kinds)] if by_layer and isinstance(kinds, list) else [parameters]
        for part in parts:
            if not isinstance(part, dict):
                instance.attrs["rope_parameters"] = Unknown("rotary embedding settings in an unusual form")
                return
            part.setdefault("rope_type", part.get("type", "default"))
            part.setdefault("rope_theta", theta)
            if factor is not None:
                part["partial_rotary_factor"] = factor
            if part["rope_type"] in SCALED_ROPE:
                own = self._peek(instance, "original_max_position_embeddings", MISSING) if not by_layer else MISSING
                if own is not MISSING:
                    part["original_max_position_embeddings"] = own
                else:
                    part.setdefault("original_max_position_embeddings", self._peek(instance, "max_position_embeddings", None))
        instance.attrs["rope_parameters"] = parameters

    def to_dict(self, value: Any, depth: int = 0) -> Any:
        """config.to_dict()"""
        if isinstance(value, Instance):
            if value.cls is None or depth > 10:
                return Unknown(value.reason or "a configuration that is not known")
            made = {key: self.to_dict(inner, depth + 1) for key, inner in value.attrs.items() if key not in INTERNAL}
            if "_output_attentions" in made:
                made["output_attentions"] = made.pop("_output_attentions")
            if isinstance(made.get("dtype"), External):
                made["dtype"] = made["dtype"].name.rpartition(".")[2]
            model_type = value.cls.namespace.get("model_type")
            if model_type:
                made["model_type"] = model_type
            made["transformers_version"] = self.table["version"]
            if depth:
                del made["transformers_version"]
            return self.machine.born(made)
        return copy_value(self.machine, value)

    def text_config(self, instance: Instance, kwargs: dict[str, Any]) -> Any:
        """config.get_text_config()"""
        encoder, decoder = kwargs.get("encoder"), kwargs.get("decoder")
        names = TEXT_CONFIGS if encoder == decoder else TEXT_CONFIGS[1:] if decoder else TEXT_CONFIGS[:1]
        found = [self._peek(instance, name, None) for name in names]
        if any(type(value) is Unknown for value in found):
            return Unknown("which part of the configuration is for text")
        held = [value for value in found if value is not None]
        return held[0] if len(held) == 1 else instance if not held else Unknown("which part of the configuration is for text")

    def _config_of(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        """AutoConfig.for_model(model_type, **values)"""
        model_type = args[0] if args else kwargs.get("model_type")
        cls = self.class_of_type(model_type) if isinstance(model_type, str) else None
        if cls is None:
            return self.build_open({k: v for k, v in kwargs.items() if k is not None}, True)
        return self.build(cls, kwargs)

    def _update(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        if len(args) == 2 and isinstance(args[1], dict):
            for key, value in args[1].items():
                self.put(args[0], key, value)
            return None
        return Unknown("an update that is not known")

    def _from_dict(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        if len(args) == 2 and isinstance(args[1], dict) and isinstance(args[0], ClassValue):
            return self.build(args[0], {**args[1], **kwargs})
        return m.new_instance(None, "a configuration from a dict that is not known")

    def _from_pretrained(self, m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        if len(args) == 2 and isinstance(args[0], ClassValue) and self.load is not None:
            return self.load(args[0], args[1], kwargs)
        return m.new_instance(None, "a configuration that is not known")
