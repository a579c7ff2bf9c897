"""What is known of the standard library, as far as configuration code uses it."""

from __future__ import annotations

import math
import os.path
import posixpath
import re
from collections.abc import Callable
from typing import Any

from mblint.evaluate.copying import copy_value
from mblint.evaluate.iteration import iterate
from mblint.evaluate.machine import Limits, Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import (
    MISSING,
    Builtin,
    ClassValue,
    External,
    Field,
    FunctionValue,
    Instance,
    KnownIterator,
    Partial,
    Property,
    TrackedDict,
    VersionValue,
)

Library = Callable[[Machine, list[Any], dict[str, Any], Any, Any], Any]
CALLS: dict[str, Library] = {}

ALIASES: dict[str, str] = {
    "dataclasses.field": "dataclasses.field",
    "os.path": "os.path",
    "posixpath.join": "os.path.join",
    "typing.OrderedDict": "collections.OrderedDict",
    "torch.nn.functional": "torch.nn.functional",
    "packaging.version.parse": "packaging.version.Version",
}

CONSTANTS: dict[str, Any] = {
    "typing.TYPE_CHECKING": False,
    "math.inf": math.inf,
    "math.pi": math.pi,
    "math.e": math.e,
    "os.sep": "/",
    "os.linesep": "\n",
    "sys.maxsize": 2**63 - 1,
    "sys.platform": "linux",
    "sys.argv": Unknown("the command line is not known"),
    "sys.version_info": (3, 12, 0, "final", 0),
    "signal.SIGINT": 2,
    "signal.SIGUSR1": 10,
    "signal.SIGUSR2": 12,
    "signal.SIGTERM": 15,
    "signal.SIGKILL": 9,
    "logging.DEBUG": 10,
    "logging.INFO": 20,
    "logging.WARNING": 30,
    "logging.ERROR": 40,
    "logging.CRITICAL": 50,
    "string.ascii_lowercase": "abcdefghijklmnopqrstuvwxyz",
    "http.HTTPStatus": External("http.HTTPStatus"),
}


def library(*names: str) -> Callable[[Library], Library]:
    def register(function: Library) -> Library:
        for name in names:
            CALLS[name] = function
        return function

    return register


def known(values: list[Any]) -> Unknown | None:
    """The first value that is not plain, as Unknown."""
    for value in values:
        if type(value) is Unknown:
            return Unknown(value.reason, value.span)
        if isinstance(value, (Instance, External)):
            return Unknown(getattr(value, "reason", "") or "an object")
    return None


# --- math ----------------------------------------------------------------------------------------------------------


def _math(name: str) -> None:
    function = getattr(math, name)

    def compute(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        unknown = known(args)
        if unknown is not None:
            return unknown
        if any(isinstance(a, int) and a.bit_length() > 4096 for a in args) or (name in ("factorial", "comb", "perm") and max(args) > 5000):
            return Unknown("a number too large to compute")
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError, OverflowError) as error:
            return machine.implicit(type(error), str(error), site, frame)

    CALLS[f"math.{name}"] = compute


for _name in (
    "ceil floor sqrt log log2 log10 exp pow gcd lcm isclose isnan isinf fabs trunc sin cos prod factorial comb copysign fmod isfinite".split()
):
    _math(_name)


@library("math.prod", "numpy.prod")
def _prod(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    import ast

    from mblint.evaluate.operators import binary

    items = iterate(machine, args[0], site, frame)
    if type(items) is Unknown:
        return Unknown(items.reason)
    total: Any = kwargs.get("start", 1)
    for item in items:
        total = binary(machine, ast.Mult, total, item, site, frame)
    return total


# --- os ------------------------------------------------------------------------------------------------------------


@library("os.getcwd", "os.path.abspath:.")
def _getcwd(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return "<cwd>"


@library("os.path.join")
def _join(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    unknown = known(args)
    if unknown is not None:
        return unknown
    if not all(isinstance(a, str) for a in args):
        return machine.implicit(TypeError, "os.path.join() of a value that is not a string", site, frame)
    return posixpath.join(*args)


def _path(name: str) -> None:
    function = getattr(posixpath, name)

    def compute(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        if args and isinstance(args[0], str):
            return function(*args)
        unknown = known(args)
        if unknown is not None:
            return unknown
        return machine.implicit(TypeError, f"os.path.{name}() of a value that is not a string", site, frame)

    CALLS[f"os.path.{name}"] = compute


for _name in ("basename", "dirname", "splitext", "split", "normpath", "isabs"):
    _path(_name)


@library("os.path.expanduser", "os.path.expandvars", "os.path.abspath", "os.path.realpath")
def _same_path(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    value = args[0]
    if isinstance(value, str) and value.startswith("/") and "$" not in value and "~" not in value:
        return value
    return Unknown("a path of this machine")


@library("os.path.exists", "os.path.isdir", "os.path.isfile", "os.path.lexists")
def _exists(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    """Paths that a launch names are taken to exist; the file system is never asked."""
    return machine.facts.path_exists(args[0] if args else None)


@library("os.environ.get", "os.getenv")
def _getenv(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    default = args[1] if len(args) > 1 else kwargs.get("default", kwargs.get("key_default"))
    explicit = len(args) > 1 or "default" in kwargs
    return machine.facts.read_environment(machine, args[0], default, site, frame, explicit=explicit)


@library("os.environ.setdefault")
def _setdefault(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return machine.facts.default_environment(machine, args[0], args[1] if len(args) > 1 else None, site, frame)


@library("os.environ.update")
def _environment_update(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    entries = dict(args[0]) if args and isinstance(args[0], dict) else {}
    for name, value in {**entries, **kwargs}.items():
        machine.facts.set_environment(machine, name, value, site, frame)
    return None


@library("os.environ.pop", "os.unsetenv")
def _environment_pop(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    machine.facts.set_environment(machine, args[0], MISSING, site, frame)
    return Unknown("an environment variable")


@library("os.putenv")
def _putenv(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    machine.facts.set_environment(machine, args[0], args[1], site, frame)
    return None


# --- dataclasses -----------------------------------------------------------------------------------------------------


def apply_dataclass(machine: Machine, target: Any, options: dict[str, Any]) -> Any:
    if isinstance(target, ClassValue):
        from mblint.evaluate.dataclass import make_dataclass

        make_dataclass(machine, target, options)
    return target


@library("dataclasses.dataclass")
def _dataclass(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    if args:
        return apply_dataclass(machine, args[0], kwargs)
    return Builtin("dataclass", lambda m, a, k, s, f: apply_dataclass(m, a[0], kwargs))


@library("dataclasses.field")
def _field(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    from mblint.evaluate.dataclass import field_declaration

    return field_declaration(machine, kwargs, site)


@library("dataclasses.fields")
def _fields(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    value = args[0]
    cls = value.cls if isinstance(value, Instance) else value
    if isinstance(cls, ClassValue) and cls.dataclass:
        return tuple(cls.field_map.values())
    if isinstance(cls, ClassValue):
        for base in cls.cached_mro:
            if isinstance(base, ClassValue) and base.dataclass:
                return tuple(base.field_map.values())
    unknown = known([value])
    if unknown is not None:
        return unknown
    return machine.implicit(TypeError, "must be called with a dataclass type or instance", site, frame)


@library("dataclasses.is_dataclass")
def _is_dataclass(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    value = args[0]
    cls = value.cls if isinstance(value, Instance) else value
    if isinstance(cls, ClassValue):
        return any(isinstance(base, ClassValue) and base.dataclass for base in cls.cached_mro)
    unknown = known([value])
    return unknown if unknown is not None else False


@library("dataclasses.replace", "copy.replace")
def _replace(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    from mblint.evaluate.calls import call

    source = args[0]
    if not isinstance(source, Instance) or source.cls is None:
        unknown = known([source])
        return unknown if unknown is not None else Unknown("replace() of a value that is not a dataclass")
    given = {
        name: source.attrs[name]
        for name, field in source.cls.field_map.items()
        if field.init and name in source.attrs and name not in kwargs
    }
    sites = {name: source.origin[name].site for name in given if name in source.origin}
    if site is not None:
        import ast

        from mblint.evaluate.site import Site

        if isinstance(site.node, ast.Call):
            sites.update({k.arg: Site(site.module, k.value, site.where) for k in site.node.keywords if k.arg})
    made = call(machine, source.cls, [], {**given, **kwargs}, site, frame, sites)
    if isinstance(made, Instance):
        for name in given:
            if name not in source.origin:
                made.origin.pop(name, None)
    return made


@library("dataclasses.asdict")
def _asdict(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    def convert(value: Any, depth: int) -> Any:
        if depth > 20:
            return Unknown("nested too deeply")
        if isinstance(value, Instance) and value.cls is not None and value.cls.dataclass:
            result = TrackedDict({n: convert(value.attrs[n], depth + 1) for n in value.cls.field_map if n in value.attrs})
            result.sites = {n: value.origin[n].site for n in result if n in value.origin}
            return machine.born(result)
        if isinstance(value, list):
            return machine.born([convert(v, depth + 1) for v in value])
        if isinstance(value, tuple):
            return tuple(convert(v, depth + 1) for v in value)
        if isinstance(value, dict):
            return machine.born(TrackedDict({k: convert(v, depth + 1) for k, v in value.items()}))
        return value

    return convert(args[0], 0)


# --- copy, functools, itertools, collections -------------------------------------------------------------------------


@library("numpy.array", "numpy.asarray")
def _array(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    """A small array of numbers as a list; configuration code only sums and divides them."""
    items = iterate(machine, args[0], site, frame)
    return Unknown(items.reason) if type(items) is Unknown else machine.born(list(items))


@library("copy.deepcopy")
def _deepcopy(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return copy_value(machine, args[0])


@library("copy.copy")
def _copy(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    value = args[0]
    if isinstance(value, Instance):
        made = machine.new_instance(value.cls, value.reason)
        made.attrs, made.origin = dict(value.attrs), dict(value.origin)
        return made
    if isinstance(value, (list, dict, set)):
        return machine.born(type(value)(value))
    return value


@library("functools.partial", "functools.partialmethod")
def _partial(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return Partial(args[0], tuple(args[1:]), dict(kwargs))


@library("functools.lru_cache", "functools.cache", "functools.singledispatch")
def _lru_cache(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    if args and isinstance(args[0], FunctionValue):
        return args[0]
    return Builtin("lru_cache", lambda m, a, k, s, f: a[0])


@library("functools.wraps", "functools.update_wrapper", "functools.total_ordering")
def _wraps(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    """@wraps(f): the wrapper keeps f's name."""
    original = args[0] if args else None

    def decorate(m: Machine, a: list[Any], k: dict[str, Any], s: Any, f: Any) -> Any:
        wrapper = a[0]
        if isinstance(wrapper, FunctionValue) and isinstance(original, FunctionValue):
            wrapper.name, wrapper.qualname = original.name, original.qualname
            wrapper.attrs["__wrapped__"] = original
        return wrapper

    return Builtin("wraps", decorate)


@library("functools.reduce")
def _reduce(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    from mblint.evaluate.calls import call

    items = iterate(machine, args[1], site, frame)
    if type(items) is Unknown:
        return Unknown(items.reason)
    pending = list(items)
    if len(args) > 2:
        total = args[2]
    elif pending:
        total = pending.pop(0)
    else:
        return machine.implicit(TypeError, "reduce() of empty iterable with no initial value", site, frame)
    for item in pending:
        total = call(machine, args[0], [total, item], {}, site, frame)
    return total


def _operator(name: str, symbol: str) -> None:
    import ast

    kinds = {"mul": ast.Mult, "add": ast.Add, "sub": ast.Sub, "floordiv": ast.FloorDiv, "or_": ast.BitOr}

    def compute(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        from mblint.evaluate.operators import binary

        return binary(machine, kinds[name], args[0], args[1], site, frame)

    CALLS[f"operator.{name}"] = compute


for _name in ("mul", "add", "sub", "floordiv", "or_"):
    _operator(_name, _name)


@library("operator.attrgetter")
def _attrgetter(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    def get(m: Machine, a: list[Any], k: dict[str, Any], s: Any, f: Any) -> Any:
        from mblint.evaluate.objects import get_attribute

        value = a[0]
        for part in str(args[0]).split("."):
            value = get_attribute(m, value, part, s, f)
        return value

    return Builtin("attrgetter", get) if len(args) == 1 and isinstance(args[0], str) else Unknown("attrgetter")


@library("itertools.chain")
def _chain(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    result: list[Any] = []
    for argument in args:
        items = iterate(machine, argument, site, frame)
        result.extend([Unknown(f"rest: {items.reason}")] if type(items) is Unknown else items)
    return KnownIterator(result)


@library("itertools.chain.from_iterable")
def _chain_from(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    outer = iterate(machine, args[0], site, frame)
    return Unknown(outer.reason) if type(outer) is Unknown else _chain(machine, list(outer), {}, site, frame)


@library("itertools.product")
def _product(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    import itertools

    columns = [iterate(machine, a, site, frame) for a in args]
    size = 1
    for column in columns:
        if type(column) is Unknown:
            return Unknown(column.reason)
        size *= len(column)
    if size > Limits.loop:
        return Unknown("a product too large to build")
    return KnownIterator(list(itertools.product(*columns)))  # type: ignore[arg-type]


@library("itertools.accumulate")
def _accumulate(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    import ast

    from mblint.evaluate.operators import binary

    items = iterate(machine, args[0], site, frame)
    if type(items) is Unknown:
        return Unknown(items.reason)
    result: list[Any] = []
    for item in items:
        result.append(item if not result else binary(machine, ast.Add, result[-1], item, site, frame))
    return KnownIterator(result)


class DefaultDict(TrackedDict):
    """collections.defaultdict."""

    __slots__ = ("default_factory",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.default_factory: Any = None


@library("collections.defaultdict")
def _defaultdict(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    made = DefaultDict()
    made.default_factory = args[0] if args else None
    return machine.born(made)


@library("collections.OrderedDict", "types.MappingProxyType")
def _ordered(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    from mblint.evaluate.natives import _dict

    made = TrackedDict()
    _dict(machine, made, "update", args, kwargs, site, frame)
    return machine.born(made)


@library("collections.Counter")
def _counter(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    items = iterate(machine, args[0], site, frame) if args else ()
    if type(items) is Unknown or any(type(i) is Unknown for i in items):
        return Unknown("a count of unknown values")
    made = DefaultDict()
    from mblint.evaluate.values import BuiltinClass

    made.default_factory = BuiltinClass(int)
    for item in items:
        made[item] = made.get(item, 0) + 1
    return machine.born(made)


class _Home:
    """Where a class of the standard library is."""

    def __init__(self, name: str) -> None:
        self.name = name


@library("types.SimpleNamespace")
def _simple_namespace(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    """All attributes are those that are given: another one is an AttributeError."""
    if args or None in kwargs:
        return _namespace(machine, args, {k: v for k, v in kwargs.items() if k is not None}, site, frame)
    cls = machine.memo.get("types.SimpleNamespace")
    if cls is None:
        cls = machine.memo["types.SimpleNamespace"] = ClassValue("SimpleNamespace", "SimpleNamespace", _Home("types"), (), site)  # type: ignore[arg-type]
        cls.cached_mro = (cls,)
    made = machine.new_instance(cls)
    for name, value in kwargs.items():
        machine.write(made, name, value, site, frame.trace)
    return made


@library("argparse.Namespace")
def _namespace(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    made = machine.new_instance(None, "an attribute of a namespace that was not set")
    for name, value in kwargs.items():
        machine.write(made, name, value, site, frame.trace)
    return made


# --- the rest ----------------------------------------------------------------------------------------------------------


@library("enum.auto")
def _auto(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return External("enum.auto()")


@library("contextlib.suppress")
def _suppress(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return ("suppress", tuple(args))


@library("contextlib.nullcontext")
def _nullcontext(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return KnownIterator([args[0] if args else None])


@library("typing.cast")
def _cast(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return args[1]


@library("typing.get_args")
def _get_args(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return Unknown("arguments of a type")


@library("typing.TypeVar", "typing.NewType", "typing.ParamSpec")
def _typevar(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return External("typing.Any")


@library(
    "warnings.warn", "warnings.filterwarnings", "warnings.simplefilter", "logging.debug", "logging.info", "logging.warning", "logging.error",
    "logging.critical", "logging.log", "logging.exception", "logging.basicConfig", "sys.stdout.write", "sys.stdout.flush",
    "sys.stderr.write", "atexit.register", "random.seed", "gc.collect", "gc.freeze", "gc.disable", "os.makedirs", "time.sleep",
)  # fmt: skip
def _ignored(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return None


@library("logging.getLogger")
def _logger(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return External("logging")


@library("logging.isEnabledFor", "logging.hasHandlers")
def _quiet(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return False


@library("packaging.version.Version")
def _version(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    from packaging.version import InvalidVersion, Version

    if not args or not isinstance(args[0], str):
        unknown = known(args)
        return unknown if unknown is not None else Unknown("a version that is not known")
    try:
        return VersionValue(Version(args[0]))
    except InvalidVersion:
        return Unknown(f"version {args[0]!r}")


@library("importlib.metadata.version")
def _metadata_version(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return machine.facts.package_version(args[0] if args else None)


@library("importlib.util.find_spec")
def _find_spec(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    if isinstance(args[0], str):
        return None if machine.facts.missing_package(args[0]) else External(f"spec of {args[0]}")
    return Unknown("a package that is not known")


@library("importlib.import_module")
def _import_module(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    if args and isinstance(args[0], str) and not args[0].startswith("."):
        return machine.modules.import_name(args[0])
    return Unknown("a module chosen at run time")


@library("inspect.signature")
def _signature(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    import ast

    function = getattr(args[0], "function", args[0])
    made = machine.new_instance(None, "a signature")
    node = getattr(function, "node", None)
    if isinstance(function, ClassValue):
        from mblint.evaluate.dataclass import is_hand_written

        written = is_hand_written(function)
        if written is None and function.dataclass:
            made.attrs["parameters"] = TrackedDict({name: name for name, f in function.field_map.items() if f.init})
            return made
        node = written.node if written is not None else None
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        names = [a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]
        made.attrs["parameters"] = TrackedDict({name: name for name in names if name != "self"})
        return made
    if isinstance(function, External):
        parameters = machine.facts.library_parameters(function.name)
        if parameters is not None:
            made.attrs["parameters"] = TrackedDict({name: name for name in parameters})
            return made
    return Unknown("a signature that is not known")


def _regex(name: str) -> None:
    def compute(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        unknown = known(args)
        if unknown is not None:
            return unknown
        pattern = args[0]
        if not isinstance(pattern, str) or len(pattern) > 300 or any(isinstance(a, str) and len(a) > 2000 for a in args[1:]):
            return Unknown("a regular expression too large to run")
        if re.search(r"[+*}]\)?[+*{]", pattern) or (re.search(r"\([^)]*[+*][^)]*\)[+*{]", pattern)):
            return Unknown("a regular expression that may run long")
        if name == "sub" and not isinstance(args[1], str):
            return _substitute(machine, args, site, frame)
        try:
            result = getattr(re, name)(*args, **kwargs)
        except (re.error, TypeError, IndexError, RecursionError) as error:
            return machine.implicit(ValueError, str(error), site, frame)
        return _match(machine, result) if isinstance(result, re.Match) else machine.born(result) if isinstance(result, list) else result

    CALLS[f"re.{name}"] = compute


def _substitute(machine: Machine, args: list[Any], site: Any, frame: Any) -> Any:
    """re.sub with a function that makes each replacement."""
    from mblint.evaluate.calls import call

    pieces: list[str] = []
    last = 0
    for found in re.finditer(args[0], args[2]):
        replacement = call(machine, args[1], [_match(machine, found)], {}, site, frame)
        if not isinstance(replacement, str):
            return Unknown(getattr(replacement, "reason", "a replacement that is not known"))
        pieces += [args[2][last : found.start()], replacement]
        last = found.end()
        machine.check_size(sum(map(len, pieces)))
    return "".join([*pieces, args[2][last:]])


@library("string.Formatter")
def _formatter(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    return External("string.Formatter()")


@library("string.Formatter().parse")
def _formatter_parse(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    import string

    if not isinstance(args[0], str) or len(args[0]) > 10_000:
        return Unknown("a format that is not known")
    try:
        return KnownIterator(list(string.Formatter().parse(args[0])))
    except ValueError as error:
        return machine.implicit(ValueError, str(error), site, frame)


def _match(machine: Machine, found: re.Match[str]) -> Instance:
    """A match object: group, groups, groupdict, start, end."""
    made = machine.new_instance(None, "an attribute of a match that is not known")

    def method(name: str) -> Builtin:
        def run(m: Machine, a: list[Any], k: dict[str, Any], s: Any, f: Any) -> Any:
            try:
                return getattr(found, name)(*a)
            except (IndexError, TypeError) as error:
                return m.implicit(type(error), str(error), s, f)

        return Builtin(f"match.{name}", run)

    for name in ("group", "groups", "groupdict", "start", "end", "span"):
        made.attrs[name] = method(name)
    return made


for _name in ("match", "search", "fullmatch", "sub", "split", "findall", "escape"):
    _regex(_name)


@library("json.dumps")
def _dumps(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    import json

    if kwargs and set(kwargs) - {"indent", "sort_keys"}:
        return Unknown("json text")
    try:
        return json.dumps(args[0], **kwargs)
    except (TypeError, ValueError, RecursionError):
        return Unknown("json text of objects")


@library("json.loads")
def _loads(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    import json

    if isinstance(args[0], str) and len(args[0]) < 100_000:
        try:
            return json.loads(args[0])
        except (ValueError, RecursionError) as error:
            return machine.implicit(ValueError, str(error), site, frame)
    return Unknown("json of an unknown text")


@library("ast.literal_eval")
def _literal(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    import ast

    if isinstance(args[0], str) and len(args[0]) < 10_000:
        try:
            return ast.literal_eval(args[0])
        except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
            return machine.implicit(ValueError, str(error), site, frame)
    return Unknown("a literal that is not known")


@library("pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath")
def _pathlib(machine: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
    unknown = known(args)
    if unknown is not None or not all(isinstance(a, str) for a in args):
        return unknown if unknown is not None else Unknown("a path")
    return path_object(machine, posixpath.join(*args) if args else ".")


def path_object(machine: Machine, text: str) -> Instance:
    """A pathlib.Path whose text is known."""
    made = machine.new_instance(None, "an attribute of a path that is not known")
    made.attrs["name"] = posixpath.basename(text)
    made.attrs["suffix"] = posixpath.splitext(text)[1]
    made.attrs["stem"] = posixpath.splitext(posixpath.basename(text))[0]
    made.attrs["_text"] = text
    made.attrs["exists"] = Builtin("exists", lambda m, a, k, s, f: m.facts.path_exists(text))
    made.attrs["is_dir"] = made.attrs["is_file"] = made.attrs["exists"]
    made.attrs["as_posix"] = Builtin("as_posix", lambda m, a, k, s, f: text)
    made.attrs["__fspath__"] = made.attrs["as_posix"]
    return made


__all__ = ["ALIASES", "CALLS", "CONSTANTS", "Field", "Property", "apply_dataclass", "os"]
