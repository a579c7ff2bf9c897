"""argparse: a parser gives what the command line says (`World.argv`); where nobody knows it, the defaults of its options.

A default is the value that holds unless somebody passes the option; `Machine.argument_reads` counts the parsers that
were asked. Without a command line, what has no default, and positional arguments, are unknown.
"""

from __future__ import annotations

from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.library.objects import library_class
from mblint.evaluate.library.registry import Args, Kwargs, library
from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown, rest
from mblint.evaluate.values import MISSING, Builtin, External, Instance

SUPPRESS = "argparse.SUPPRESS"
FLAGS = {"store_true": False, "store_false": True}
WITHOUT_VALUE = frozenset({"help", "version"})


class Option:
    """One argument of a parser. `default` is MISSING when none is given."""

    __slots__ = ("action", "const", "convert", "default", "dest", "names", "nargs", "positional", "required", "site")

    def __init__(
        self,
        dest: str,
        action: Any,
        default: Any,
        convert: Any,
        positional: bool,
        required: Any,
        site: Any,
        names: tuple[str, ...] = (),
        nargs: Any = None,
        const: Any = None,
    ) -> None:
        self.names, self.nargs, self.const = names, nargs, const
        self.dest = dest
        self.action = action
        self.default = default
        self.convert = convert
        self.positional = positional
        self.required = required
        self.site = site


class Parser:
    """argparse.ArgumentParser, or a group of one, which shares its options."""

    def __init__(self, options: list[Any], defaults: dict[Any, Any]) -> None:
        self.options = options
        self.defaults = defaults

    def attribute(self, machine: Machine, name: str, site: Any, frame: Any, default: Any) -> Any:
        method = _METHODS.get(name)
        if method is None:
            return Unknown(f"{name} of an argument parser", site.span() if site else None)
        return Builtin(f"ArgumentParser.{name}", lambda m, a, k, s, f: method(self, m, a, k, s, f))


@library("argparse.ArgumentParser")
def _parser(machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    options: list[Any] = machine.born([])
    defaults: dict[Any, Any] = machine.born({})
    parents = kwargs.get("parents", ())
    for parent in parents if isinstance(parents, (list, tuple)) else ():
        if isinstance(parent, Parser):
            options.extend(parent.options)
            defaults.update(parent.defaults)
    return Parser(options, defaults)


def _add_argument(parser: Parser, machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    names = [name for name in args if isinstance(name, str)]
    if len(names) != len(args) or any(type(value) is Unknown for value in (kwargs.get("dest"), kwargs.get("action"))):
        machine.touch_end(parser.options)
        parser.options.append(None)  # an option of which nobody knows where it goes
        return Unknown("an argument whose name is not known")
    positional = not names or not names[0].startswith("-")
    dest = kwargs.get("dest") or _destination(names)
    action = kwargs.get("action", "store")
    default = kwargs.get("default", MISSING)
    if default is MISSING:
        default = parser.defaults.get(dest, MISSING)
    if default is MISSING and isinstance(action, str):
        default = FLAGS.get(action, MISSING)
    required = kwargs.get("required", False)
    if positional:
        required = kwargs.get("nargs") not in ("?", "*")
    machine.touch_end(parser.options)
    shape = (tuple(names), kwargs.get("nargs"), kwargs.get("const"))
    parser.options.append(Option(dest, action, default, kwargs.get("type"), positional, required, site, *shape))
    return Unknown("an argument of a parser")


def _destination(names: list[str]) -> str:
    """The attribute that an argument is stored under: its first long name, else its first name."""
    if not names:
        return ""
    if not names[0].startswith("-"):
        return names[0]
    chosen = next((name for name in names if name.startswith("--")), names[0])
    return chosen.lstrip("-").replace("-", "_")


def _group(parser: Parser, machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return Parser(parser.options, parser.defaults)


def _set_defaults(parser: Parser, machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    for name, value in kwargs.items():
        machine.touch_entry(parser.defaults, name)
        parser.defaults[name] = value
        for index, option in enumerate(parser.options):
            if option is not None and option.dest == name:
                machine.touch(parser.options)
                shape = (option.names, option.nargs, option.const)
                parser.options[index] = Option(
                    option.dest, option.action, value, option.convert, option.positional, option.required, site, *shape
                )
    return None


def _get_default(parser: Parser, machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    for option in parser.options:
        if option is not None and option.dest == args[0]:
            return option.default if option.default is not MISSING else None
    return parser.defaults.get(args[0])


def _parse(parser: Parser, machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    given = args[0] if args else kwargs.get("args")
    target = args[1] if len(args) > 1 else kwargs.get("namespace")
    words = None
    if given is not None and not (isinstance(given, (list, tuple)) and not given):
        words = Unknown("given on a command line that is not evaluated")
    space = target if isinstance(target, Instance) else machine.new_instance(library_class(machine, "argparse.Namespace"))
    for name, value in parser.defaults.items():
        if name not in space.attrs:
            machine.write(space, name, value if words is None else Unknown(words.reason), site, frame.trace)
    machine.argument_reads += 1
    passed, _ = _passed(parser, machine, given, frame)
    for option in parser.options:
        if option is None:
            space = machine.new_instance(None, "an argument whose name is not known")
            return space
        if option.action in WITHOUT_VALUE or (option.dest in space.attrs and space is target):
            continue
        value = (
            passed[option.dest] if option.dest in passed else _value_of(machine, option, frame) if words is None else Unknown(words.reason)
        )
        if value is not MISSING:
            machine.write(space, option.dest, value, option.site, frame.trace)
    return space


def _passed(parser: Parser, machine: Machine, given: Any, frame: Any) -> tuple[dict[str, Any], list[Any] | None]:
    """What the command line says of the options, and its other words; None for these where it is not known."""
    words = machine.facts.argv
    if given is not None or words is None:
        return {}, None
    machine.env_read_count += 1  # another launch has another command line
    from mblint.evaluate.library.command_line import passed

    return passed(parser.options, words, lambda option, text: _converted(machine, option, text, frame))


def _converted(machine: Machine, option: Option, text: Any, frame: Any) -> Any:
    """A word of the command line as the value of an option."""
    if not isinstance(text, str) or option.convert is None:
        return text
    if isinstance(option.convert, External):
        return Unknown(f"the type of {option.dest} is not evaluated")
    return call(machine, option.convert, [text], {}, option.site, frame)


def _value_of(machine: Machine, option: Option, frame: Any) -> Any:
    """The value of an option that nobody passes; MISSING when there is none then."""
    default = option.default
    if isinstance(default, External) and default.name == SUPPRESS:
        return Unknown(f"{option.dest} is there only when it is passed")
    if option.positional and option.required:
        return Unknown(f"{option.dest} is given on the command line", option.site.span() if option.site else None)
    if option.required is True or type(option.required) is Unknown:
        return Unknown(f"--{option.dest.replace('_', '-')} is given on the command line", option.site.span() if option.site else None)
    if default is MISSING:
        return None
    if isinstance(default, str) and option.convert is not None and option.action in ("store", "append"):
        # Defaults that are texts go through `type`, as words of the command line do.
        if isinstance(option.convert, External):
            return Unknown(f"the type of {option.dest} is not evaluated")
        return call(machine, option.convert, [default], {}, option.site, frame)
    return default


def _parse_known(parser: Parser, machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    space = _parse(parser, machine, args, kwargs, site, frame)
    given = args[0] if args else kwargs.get("args")
    if isinstance(given, (list, tuple)) and not given:
        return (space, machine.born([]))
    _, others = _passed(parser, machine, given, frame)
    if others is not None:
        return (space, machine.born(others))
    return (space, machine.born([rest("words of the command line that the parser does not know")]))


def _subparsers(parser: Parser, machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    """Which of the commands is chosen is not known, so no option of theirs has a value."""
    dest = kwargs.get("dest")
    machine.touch_end(parser.options)
    if isinstance(dest, str):
        parser.options.append(Option(dest, "store", MISSING, None, True, True, site))
    commands = machine.new_instance(None, "a command of the command line")
    commands.attrs["add_parser"] = Builtin("add_parser", lambda m, a, k, s, f: Parser(m.born([]), m.born({})))
    parser.options.append(None)
    return commands


def _nothing(parser: Parser, machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    return None


def _error(parser: Parser, machine: Machine, args: Args, kwargs: Kwargs, site: Any, frame: Any) -> Any:
    from mblint.evaluate.control import fail
    from mblint.evaluate.values import ExceptionValue

    fail(machine, ExceptionValue(SystemExit, (2,)), site, frame)
    return Unknown("the program has ended")


_METHODS: dict[str, Any] = {
    "add_argument": _add_argument,
    "add_argument_group": _group,
    "add_mutually_exclusive_group": _group,
    "set_defaults": _set_defaults,
    "get_default": _get_default,
    "parse_args": _parse,
    "parse_known_args": _parse_known,
    "parse_intermixed_args": _parse,
    "add_subparsers": _subparsers,
    "print_help": _nothing,
    "print_usage": _nothing,
    "error": _error,
    "exit": _error,
}

__all__ = ["Option", "Parser"]
