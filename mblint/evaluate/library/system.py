"""os, sys, pathlib, logging: paths are texts, the environment is declared, the file system is never asked."""

from __future__ import annotations

import posixpath
from pathlib import PurePosixPath
from typing import Any

from mblint.evaluate.library.objects import library_class
from mblint.evaluate.library.registry import CALLS, Args, Kwargs, known, library
from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, REST, Builtin, External, Instance

CONSTANTS: dict[str, Any] = {
    "os.sep": "/",
    "os.pathsep": ":",
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
    "http.HTTPStatus": External("http.HTTPStatus"),
}


@library("os.getcwd")
def _getcwd(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return "<cwd>"


@library("os.path.join")
def _join(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    texts = [_fspath(a) for a in args]
    unknown = known(texts)
    if unknown is not None:
        shown = "/".join(t if isinstance(t, str) else "?" for t in texts)
        return Unknown(unknown.reason, unknown.span, shown)
    if not all(isinstance(text, str) for text in texts):
        return machine.implicit(TypeError, "expected str, bytes or os.PathLike object, not " + type(texts[0]).__name__, site, frame)
    return posixpath.join(*texts)


def _fspath(value: Any) -> Any:
    return value.attrs["_text"] if isinstance(value, Instance) and "_text" in value.attrs else value


def _path(name: str) -> None:
    function = getattr(posixpath, name)

    def compute(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
        texts = [_fspath(a) for a in args]
        if texts and all(isinstance(text, str) for text in texts):
            return function(*texts)
        unknown = known(texts)
        if unknown is not None:
            return unknown
        return machine.implicit(TypeError, f"os.path.{name}() of a value that is not a string", site, frame)

    CALLS[f"os.path.{name}"] = compute


for _name in ("basename", "dirname", "splitext", "split", "normpath", "isabs", "relpath"):
    _path(_name)


@library("os.path.expanduser", "os.path.expandvars", "os.path.abspath", "os.path.realpath")
def _same_path(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    value = _fspath(args[0])
    if isinstance(value, str) and value.startswith("/") and "$" not in value and "~" not in value:
        return value
    return Unknown("a path of this machine", partial=value if isinstance(value, str) else None)


@library("os.fspath")
def _to_text(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    value = _fspath(args[0])
    return value if isinstance(value, str) else Unknown("a path")


@library(
    "os.path.exists", "os.path.isdir", "os.path.isfile", "os.path.lexists",
    "multistorageclient.os.path.exists", "multistorageclient.os.path.isdir", "multistorageclient.os.path.isfile",
)  # fmt: skip
def _exists(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    """Paths that a launch names are taken to exist; the file system is never asked."""
    return machine.facts.path_exists(_fspath(args[0]) if args else None)


# --- the environment -------------------------------------------------------------------------------------------------


@library("os.environ.get", "os.getenv")
def _getenv(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    default = args[1] if len(args) > 1 else kwargs.get("default")
    explicit = len(args) > 1 or "default" in kwargs
    return machine.facts.read_environment(machine, args[0], default, site, frame, explicit=explicit)


@library("os.environ.setdefault")
def _setdefault(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return machine.facts.default_environment(machine, args[0], args[1] if len(args) > 1 else None, site, frame)


@library("os.environ.update")
def _environment_update(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    entries = dict(args[0]) if args and isinstance(args[0], dict) else {}
    for name, value in {**entries, **kwargs}.items():
        machine.facts.set_environment(machine, name, value, site, frame)
    return None


@library("os.environ.pop", "os.unsetenv")
def _environment_pop(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    machine.facts.set_environment(machine, args[0], MISSING, site, frame)
    return Unknown("an environment variable")


@library("os.putenv")
def _putenv(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    machine.facts.set_environment(machine, args[0], args[1], site, frame)
    return None


@library("os.environ.copy")
def _environment_copy(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return Unknown("the environment")


# --- objects ---------------------------------------------------------------------------------------------------------


def _namespace(dotted: str) -> None:
    def make(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
        """All attributes are those that are given: another one is an AttributeError."""
        cls = library_class(machine, dotted) if not args and REST not in kwargs else None
        made = machine.new_instance(cls, "" if cls is not None else "a namespace with attributes that are not known")
        for name, value in kwargs.items():
            if name is not REST:
                machine.write(made, name, value, site, frame.trace)
        return made

    CALLS[dotted] = make


_namespace("types.SimpleNamespace")
_namespace("argparse.Namespace")


IGNORED = (
    "warnings.warn warnings.filterwarnings warnings.simplefilter logging.debug logging.info logging.warning logging.error "
    "logging.critical logging.log logging.exception logging.basicConfig logging.setLevel logging.addHandler sys.stdout.write "
    "sys.stdout.flush sys.stderr.write atexit.register random.seed gc.collect gc.freeze gc.disable os.makedirs time.sleep"
)
"""Functions whose effect does not matter to a configuration."""


@library(*IGNORED.split())
def _ignored(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return None


@library("sys.exit", "os._exit")
def _exit(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    from mblint.evaluate.control import fail
    from mblint.evaluate.values import ExceptionValue

    fail(machine, ExceptionValue(SystemExit, tuple(args)), site, frame)
    return Unknown("the program has ended")


@library("logging.getLogger")
def _logger(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return External("logging")


@library("logging.isEnabledFor", "logging.hasHandlers")
def _quiet(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return False


@library("pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath")
def _pathlib(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    texts = [_fspath(a) for a in args]
    unknown = known(texts)
    if unknown is not None or not all(isinstance(text, str) for text in texts):
        return unknown if unknown is not None else Unknown("a path")
    return path_object(machine, str(PurePosixPath(*texts)))


def path_object(machine: Machine, text: str) -> Instance:
    """A pathlib.Path whose text is known."""
    made = machine.new_instance(None, "an attribute of a path that is not known")
    attrs = made.attrs
    attrs["name"] = posixpath.basename(text)
    attrs["suffix"] = posixpath.splitext(text)[1]
    attrs["stem"] = posixpath.splitext(posixpath.basename(text))[0]
    attrs["_text"] = text
    attrs["exists"] = Builtin("exists", lambda m, a, k, s, f: m.facts.path_exists(text))
    attrs["is_dir"] = attrs["is_file"] = attrs["exists"]
    attrs["as_posix"] = Builtin("as_posix", lambda m, a, k, s, f: text)
    attrs["__fspath__"] = attrs["as_posix"]
    attrs["is_absolute"] = Builtin("is_absolute", lambda m, a, k, s, f: posixpath.isabs(text))
    attrs["joinpath"] = attrs["__truediv__"] = Builtin("joinpath", lambda m, a, k, s, f: _pathlib(m, [text, *a], k, s, f))
    if posixpath.isabs(text):
        attrs["resolve"] = attrs["absolute"] = attrs["expanduser"] = Builtin("resolve", lambda m, a, k, s, f: made)
    parent = posixpath.dirname(text)
    attrs["parent"] = made if parent == text else path_object(machine, parent) if parent else Unknown("the folder of a relative path")
    return made
