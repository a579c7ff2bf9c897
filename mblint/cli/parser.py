"""An argument parser whose mistakes are one line with a remedy."""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

from mblint.errors import UserError


class Parser(argparse.ArgumentParser):
    """Like argparse's, but options are never abbreviated and an error names the nearest right word."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Raise UserError in place of printing the whole usage."""
        if match := re.match(r"unrecognized arguments: (.*)", message):
            raise UserError(*self._unknown(match[1].split()[0]))
        message = re.sub(r"^argument ", "", message).replace("the following arguments are required", "missing")
        if match := re.search(r"invalid choice: '?([^' ]*)'? \(choose from (.*)\)", message):
            message = f"{message.partition(':')[0]}: {match[1]!r} is not one of {match[2]}"
        has_remedy = message.endswith("?") or "for example" in message
        raise UserError(message, "" if has_remedy else f"see `{self.prog} --help`")

    def parse_mixed(self, words: list[str]) -> argparse.Namespace:
        """Paths and options in any order; what follows `--` are paths, which argparse forgets when it mixes."""
        if "--" not in words:
            return self.parse_intermixed_args(words)
        end = words.index("--")
        args, rest = self.parse_intermixed_args(words[:end]), words[end + 1 :]
        if rest and not isinstance(getattr(args, "paths", None), list):
            self.error(f"unrecognized arguments: {rest[0]}")
        if rest:
            args.paths = [*args.paths, *(f"./{word}" if word == "-" else word for word in rest)]
        return args

    def _unknown(self, word: str) -> tuple[str, str]:
        from mblint.ruleset.suggest import closest

        option = word.partition("=")[0]
        if not option.startswith("-"):
            return f"unexpected argument {word!r}", f"see `{self.prog} --help`"
        near = closest(option, self._option_string_actions)
        return f"unknown option {option}", f"did you mean {near}?" if near else f"see `{self.prog} --help`"


def positive(text: str) -> int:
    """A whole number from 1, for `--world-size` and the like."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def gpu(text: str) -> str:
    """A GPU type in the spelling that rules use."""
    from mblint.settings import gpu_type

    try:
        return gpu_type(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def key_value(text: str) -> tuple[str, str]:
    """`model.tensor_model_parallel_size=8` as its two sides; the value stays text."""
    key, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_][\w]*(\.[\w]+)*", key.strip()):
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE, for example model.tensor_model_parallel_size=8")
    return key.strip(), value


class Words(argparse.Action):
    """Comma-separated words; the option may be repeated, and the lists add up."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        given = getattr(namespace, self.dest) or []
        words = [word for word in re.split(r"[,\s]+", values) if word]
        setattr(namespace, self.dest, [*given, *words])
