"""A known command line, cut up as argparse does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import External

if TYPE_CHECKING:
    from mblint.evaluate.library.arguments import Option

CONSTANTS = {"store_true": True, "store_false": False}


def passed(
    options: Sequence[Option | None], words: Sequence[Any], convert: Callable[[Option, Any], Any]
) -> tuple[dict[str, Any], list[Any]]:
    """Destination -> value for each option that is given, and the words that belong to none.

    A word that is not known is the value of the option before it, or a word of its own; it names no option.
    """
    if any(option is None for option in options):
        return {}, [Unknown("words of a parser that is not known", many=True)]
    named = {name: option for option in options if option is not None and not option.positional for name in option.names}
    places = [option for option in options if option is not None and option.positional]
    found: dict[str, Any] = {}
    rest: list[Any] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if not isinstance(word, str) or not word.startswith("-") or word == "-" or _is_number(word):
            rest.append(word)
            continue
        if word == "--":
            rest += words[at:]
            break
        name, equals, inline = word.partition("=")
        option = named.get(word) or named.get(name) or _abbreviated(named, name)
        if option is None and name.startswith("--no-") and _negates(named.get("--" + name[5:])):
            found[named["--" + name[5:]].dest] = False
            continue
        if option is None:
            rest.append(word)
            continue
        if equals and word not in named:
            values: list[Any] = [inline]
        else:
            values = list(_values(words, at, option))
            at += len(values)
        _store(found, option, values, convert)
    return found, _positional(found, places, rest, convert)


def _values(words: Sequence[Any], at: int, option: Option) -> Sequence[Any]:
    most = 0 if _is_flag(option) else _most(option.nargs, len(words))
    end = at
    while end < len(words) and end - at < most:
        word = words[end]
        if isinstance(word, str) and word.startswith("-") and word != "-" and not _is_number(word):
            break
        end += 1
    return words[at:end]


def _is_flag(option: Option) -> bool:
    action = option.action
    return action in (*CONSTANTS, "store_const", "append_const", "count", "help", "version") or isinstance(action, External)


def _most(nargs: Any, length: int) -> int:
    if isinstance(nargs, int):
        return nargs
    return {None: 1, "?": 1}.get(nargs, length)


def _store(found: dict[str, Any], option: Option, values: list[Any], convert: Callable[[Option, Any], Any]) -> None:
    action, dest = option.action, option.dest
    if isinstance(action, str) and action in CONSTANTS:
        found[dest] = CONSTANTS[action]
    elif _negates(option):
        found[dest] = True
    elif action in ("store_const", "append_const"):
        found[dest] = option.const if action == "store_const" else Unknown(f"{dest} is collected from constants")
    elif action not in ("store", "append", "extend"):
        found[dest] = Unknown(f"{dest} is made by an action that is not evaluated")
    elif isinstance(option.nargs, int) or option.nargs in ("*", "+"):
        made = [convert(option, value) for value in values]
        found[dest] = [*found.get(dest, ()), *made] if action == "extend" else made
    elif not values:
        found[dest] = option.const if option.nargs == "?" else Unknown(f"{dest} is given without a value")
    else:
        value = convert(option, values[0])
        found[dest] = [*(found.get(dest) or ()), value] if action == "append" else value


def _positional(found: dict[str, Any], places: Sequence[Option], rest: list[Any], convert: Callable[[Option, Any], Any]) -> list[Any]:
    """Hand the words without an option to the positional arguments, in order; those that are left."""
    for option in places:
        plain = [index for index, word in enumerate(rest) if not isinstance(word, str) or not word.startswith("-")]
        wanted = plain[: _most(option.nargs, len(rest))]
        if not wanted:
            continue
        values = [convert(option, rest[index]) for index in wanted]
        found[option.dest] = values[0] if option.nargs in (None, "?") else values
        rest = [word for index, word in enumerate(rest) if index not in wanted]
    return rest


def _negates(option: Option | None) -> bool:
    return option is not None and isinstance(option.action, External) and option.action.name == "argparse.BooleanOptionalAction"


def _abbreviated(named: dict[str, Option], name: str) -> Option | None:
    matches = {option.dest: option for known, option in named.items() if name.startswith("--") and known.startswith(name)}
    return next(iter(matches.values())) if len(matches) == 1 else None


def _is_number(word: str) -> bool:
    return bool(word[1:]) and word[1:].replace(".", "", 1).isdigit()
