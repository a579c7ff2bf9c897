"""Dispatch: find the command, run it, and turn whatever happens into an exit code.

0 clean, 1 findings at or above `--fail-on`, 2 usage or settings, 3 internal error, 4 nothing to check;
130 interrupted, 141 the reader of the output went away (as the shell itself counts the two signals).
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence

from mblint.errors import UserError

COMMANDS: dict[str, str] = {
    "check": "judge recipes and launches",
    "explain": "show what a recipe resolves to, and who set each value",
    "estimate": "estimate the memory of a launch",
    "suggest": "find the cheapest way out for a launch that does not fit",
    "diagnose": "say from a failed run's log what went wrong and what mends it",
    "diff": "show what a change does to every recipe",
    "report": "show all launches of a repository at a glance",
    "server": "serve an editor: findings while typing, hovers, fixes, completion",
    "rule": "explain one rule",
    "rules": "list all rules",
    "upstream": "fetch, list and remove the Megatron-Bridge source that is judged against",
    "settings": "show the settings that hold here",
    "init": "set mblint up in a repository: settings, commit hook, workflow",
    "completion": "print the completion script of a shell",
}
"""Name -> what it does; each is a module of this package with `configure(parser)` and `run(args)`."""

EPILOG = """examples:
  mblint check                                  judge every recipe below this folder
  mblint check recipes/my_70b.py --world-size 64 --gpu h100
  mblint check recipes/ --set model.pipeline_model_parallel_size=4
  mblint explain recipes/my_70b.py --key 'model.*parallel*'
  mblint rule MB203                             what a rule means, with examples
  mblint upstream fetch 0.6.2                   the source that `check` judges against
  mblint init                                   settings, commit hook and workflow for a repository

exit codes: 0 clean, 1 findings, 2 wrong usage or settings, 3 internal error, 4 nothing to check
"""

INTERNAL_ERROR = 3
INTERRUPTED = 130
PIPE_CLOSED = 141


def main(arguments: Sequence[str]) -> int:
    """Run `mblint ARGUMENTS`; prints, and returns the exit code. Never raises."""
    _tolerant_streams()
    try:
        code = _dispatch(list(arguments))
        sys.stdout.flush()
        return code
    except SystemExit as end:  # argparse, after it printed help
        return _flushed(end.code if isinstance(end.code, int) else 0)
    except UserError as error:
        return _complain(error)
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        return _pipe_closed()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            _say(f"error: output cannot be written: {error.strerror}")
            _silence()
            return INTERNAL_ERROR
        return _internal(error)
    except Exception as error:
        return _internal(error)


def _dispatch(arguments: list[str]) -> int:
    name = next((word for word in arguments if not word.startswith("-")), None)
    if name is None or arguments[0] != name:
        return _without_command(arguments)
    if name not in COMMANDS:
        raise UserError(*_unknown_command(name))
    module = importlib.import_module(f"mblint.cli.{name}")
    from mblint.cli.parser import Parser

    parser = Parser(prog=f"mblint {name}", description=(module.__doc__ or "").strip(), epilog=module.EPILOG)
    module.configure(parser)
    args = parser.parse_mixed(arguments[1:]) if _mixes(module) else parser.parse_args(arguments[1:])
    result: int = module.run(args)
    return result


def _mixes(module: object) -> bool:
    """Commands without sub-commands take paths and options in any order."""
    return not getattr(module, "HAS_SUBCOMMANDS", False)


def _without_command(arguments: list[str]) -> int:
    """`mblint`, `mblint --help`, `mblint --version [-v]`."""
    import argparse

    from mblint.cli.parser import Parser

    width = max(map(len, COMMANDS))
    names = "\n".join(f"  {name:<{width}}  {what}" for name, what in COMMANDS.items())
    parser = Parser(
        prog="mblint",
        usage="mblint COMMAND [OPTIONS] [ARGUMENTS]",
        description="A static linter for Megatron-Bridge training configurations: "
        f"judges a launch before it queues.\n\ncommands:\n{names}\n\n`mblint COMMAND --help` tells more.",
        epilog=EPILOG,
    )
    parser.add_argument("-V", "--version", action="store_true", help="show the version; with -v also what is judged against here")
    parser.add_argument("-v", "--verbose", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.version:
        from mblint.cli.version import long_lines, short_lines

        print("\n".join(long_lines() if args.verbose else short_lines()))
        return 0
    parser.print_help()
    return 2 if not arguments else 0


def _unknown_command(name: str) -> tuple[str, str]:
    from mblint.ruleset.suggest import closest

    if os.path.exists(name):
        return f"{name!r} is a path, not a command", f"did you mean `mblint check {name}`?"
    near = closest(name, COMMANDS)
    return (
        f"unknown command {name!r}",
        f"did you mean {near!r}?" if near else f"commands: {', '.join(COMMANDS)}",
    )


def _complain(error: UserError) -> int:
    for line in str(error).splitlines():
        _say(f"error: {line}")
    return _flushed(error.exit_code)


def _internal(error: BaseException) -> int:
    from mblint.crash import one_line, write_report

    report = write_report(error)
    where = f"; please report it with {report}" if report else ""
    _say(f"internal error: {one_line(error)}{where}")
    return _flushed(INTERNAL_ERROR)


def _flushed(code: int) -> int:
    """The code, once all output is out; the interpreter's own flush at exit would print a traceback."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _pipe_closed()
    except OSError:
        _silence()
    return code


def _pipe_closed() -> int:
    _silence()
    return PIPE_CLOSED


def _silence() -> None:
    """Send what is still buffered nowhere."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return


def _say(line: str) -> None:
    from mblint.shown import neutral

    try:
        print(f"mblint: {neutral(line)}", file=sys.stderr)
    except OSError:
        return


def _tolerant_streams() -> None:
    """A file name or a message that the terminal's encoding lacks is shown escaped instead of ending the
    run.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
