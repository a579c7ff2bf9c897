"""Find, read and check the settings file.

A wrong key or value ends the run with its place and the nearest right one: a linter that runs with fewer
rules than its user believes is worse than none.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from mblint import settings as model
from mblint.errors import SettingsError
from mblint.settings import Assumed, Launch, Settings, adapter, key_spelling
from mblint.shown import neutral

MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class Loaded:
    """Settings, and where they stand."""

    settings: Settings
    path: Path | None = None
    """The file that was read; None when there is none and the defaults hold."""
    root: Path = field(default_factory=Path.cwd)
    """Folder that relative names in the settings start from: the file's, else the project's."""
    lines: dict[tuple[str | int, ...], int] = field(default_factory=dict)

    def place(self, *keys: str | int) -> str:
        """`pyproject.toml:12` of a key such as `("select", 0)`, for messages about its meaning."""
        if self.path is None:
            return "settings"
        return f"{shown_path(self.path)}:{_nearest_line(self.lines, keys)}"


def shown_path(path: Path) -> str:
    """Relative to the working folder where it is below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def find_settings(start: Path) -> tuple[Path | None, Path]:
    """The settings file for a folder, and the project's root.

    The first folder upwards with an mblint.toml, or with a pyproject.toml that has a `[tool.mblint]` table;
    the search ends at the root of the repository, so that nothing outside a checkout decides how it is
    judged.
    """
    start = start.absolute()
    for folder in (start, *start.parents):
        for name in ("mblint.toml", ".mblint.toml"):
            if (folder / name).is_file():
                return folder / name, folder
        project = folder / "pyproject.toml"
        if project.is_file() and _mentions_mblint(project):
            return project, folder
        if (folder / ".git").exists():
            return None, folder
    return None, start


def _mentions_mblint(path: Path) -> bool:
    """Whether the table is there at all; a pyproject.toml without it is not ours to complain about."""
    try:
        data = path.read_bytes()
    except OSError:
        return False
    if b"mblint" not in data:
        return False
    import tomllib

    try:
        tool = tomllib.loads(data.decode("utf-8")).get("tool")
    except (ValueError, RecursionError):
        return re.search(rb"^\s*\[+\s*tool\s*\.\s*mblint", data, re.MULTILINE) is not None
    return isinstance(tool, dict) and "mblint" in tool


def load_settings(config: Path | None = None, start: Path | None = None, *, isolated: bool = False) -> Loaded:
    """The settings of a run: the named file, else the one found from `start` (the working folder) upwards.

    `isolated` takes the defaults. Raises SettingsError.
    """
    start = start or Path.cwd()
    found, root = find_settings(start)
    if isolated:
        return Loaded(Settings(), None, root)
    if config is not None:
        if not config.is_file():
            raise SettingsError(f"{config}: there is no such settings file")
        found, root = config.absolute(), config.absolute().parent
    if found is None:
        return Loaded(Settings(), None, root)
    return _read(found, root)


def _read(path: Path, root: Path) -> Loaded:
    shown = shown_path(path)
    try:
        with path.open("rb") as handle:
            data = handle.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise SettingsError(f"{shown}: larger than {MAX_BYTES // 1_000_000} MB, not read")
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise SettingsError(f"{shown}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{shown}: not UTF-8 text (byte {error.start})") from None
    loaded = read_text(text, path, root)
    _check_version(loaded)
    return loaded


def read_text(text: str, path: Path, root: Path) -> Loaded:
    """The settings of a file's text, which may be that of another revision. Raises SettingsError."""
    import tomllib

    shown = shown_path(path)
    try:
        data: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(_toml_error(shown, text, str(error))) from None
    except RecursionError:
        raise SettingsError(f"{shown}: nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits
        raise SettingsError(f"{shown}: cannot be read: {error}") from None

    prefix: tuple[str | int, ...] = ()
    if path.name == "pyproject.toml":
        prefix = ("tool", "mblint")
    elif isinstance(data.get("tool"), dict) and "mblint" in data["tool"]:
        prefix = ("tool", "mblint")  # the same text works in either file
    for key in prefix:
        data = data.get(key, {})
    from mblint.read.toml_lines import key_lines

    lines = {keys[len(prefix) :]: line for keys, line in key_lines(text).items() if keys[: len(prefix)] == prefix}
    return Loaded(_validated(data, shown, lines), path, root, lines)


def _validated(data: dict[str, Any], shown: str, lines: dict[tuple[str | int, ...], int]) -> Settings:
    """Check the table of a settings file. A text that was found right before is taken from the cache."""
    try:
        text = json.dumps(data, default=str, sort_keys=True)
    except (RecursionError, ValueError):
        raise SettingsError(f"{shown}: nested too deeply") from None
    remembered = _Remembered(text)
    settings = remembered.load()
    if settings is not None:
        return settings
    check = adapter()
    from pydantic import ValidationError

    try:
        # As JSON, because strict checking takes a table for a dataclass only there.
        settings = check.validate_json(text)
    except ValidationError as error:
        raise SettingsError("\n".join(_explained(shown, lines, error))) from None
    remembered.store(settings)
    return settings


class _Remembered:
    """Settings that were validated before, by their text and by this very code."""

    def __init__(self, text: str) -> None:
        import hashlib

        from mblint.upstream.cache import cache_folder

        code = os.stat(model.__file__)
        seed = f"{code.st_size} {code.st_mtime_ns} {text}"
        self.path = cache_folder() / "settings" / f"{hashlib.sha256(seed.encode()).hexdigest()[:32]}.json"

    def load(self) -> Settings | None:
        try:
            with open(self.path, encoding="utf-8") as handle:
                data = json.load(handle)
            return _built(data)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def store(self, settings: Settings) -> None:
        """Write and rename, so that a reader sees all or nothing; a cache that cannot be written is no
        failure.
        """
        import contextlib
        import tempfile

        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=self.path.parent, suffix=".new", delete=False) as handle:
                json.dump(asdict(settings), handle)
            os.replace(handle.name, self.path)


def _built(data: dict[str, Any]) -> Settings:
    """Settings from what `asdict` made of them."""

    def tuples(value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    def plain(table: dict[str, Any]) -> dict[str, Any]:
        return {key: value if key == "set" else tuples(value) for key, value in table.items()}

    known = plain(data)
    known["assume"] = Assumed(**data["assume"])
    known["launches"] = tuple(Launch(**plain(launch)) for launch in data["launches"])
    known["per_file_ignores"] = {key: tuple(value) for key, value in data["per_file_ignores"].items()}
    return Settings(**known)


def _toml_error(shown: str, text: str, message: str) -> str:
    """tomllib puts the place at the end of its sentence."""
    match = re.search(r"^(.*?) \(at (?:line (\d+), column (\d+)|end of document)\)$", message, re.DOTALL)
    if match is None:
        return f"{shown}: not valid TOML: {message}"
    line = match[2] or text.count("\n") + 1
    return f"{shown}:{line}: not valid TOML: {match[1]}"


def _explained(shown: str, lines: dict[tuple[str | int, ...], int], error: Any) -> Iterable[str]:
    """Pydantic's report as one line a mistake: place, key, what is wrong, remedy."""
    said = set()
    for detail in sorted(error.errors(), key=lambda detail: _nearest_line(lines, detail["loc"])):
        keys = detail["loc"]
        if detail["type"] != "missing":
            # pydantic adds the tried type of a union, or "[key]"; where no line is known all is kept
            keys = next((keys[:n] for n in range(len(keys), 0, -1) if keys[:n] in lines), keys)
        # a key may hold anything, line ends and escape codes too
        sentence = neutral(f"{shown}:{_nearest_line(lines, keys)}: {_sentence(keys, detail)}")
        if sentence not in said:
            said.add(sentence)
            yield sentence


def _nearest_line(lines: dict[tuple[str | int, ...], int], keys: tuple[str | int, ...]) -> int:
    while keys and keys not in lines:
        keys = keys[:-1]
    return lines.get(keys, 1)


def _sentence(keys: tuple[str | int, ...], detail: Any) -> str:
    from mblint.ruleset.suggest import closest

    name = _dotted(keys)
    kind, value = detail["type"], detail["input"]
    expected = {
        "string_type": 'a string, such as "text"',
        "int_type": "a whole number",
        "bool_type": "true or false",
        "tuple_type": "an array",
        "dict_type": "a table",
        "dataclass_type": "a table",
    }
    if kind == "unexpected_keyword_argument":
        near = closest(str(keys[-1]), known := _keys_of(keys[:-1]))
        return f"unknown key `{name}`; " + (f"did you mean `{near}`?" if near else f"keys are {', '.join(known)}")
    if kind == "literal_error":
        near = closest(str(value), re.findall(r"'([^']*)'", detail["ctx"]["expected"]))
        return f"`{name}` is {value!r}, must be {detail['ctx']['expected']}" + (f"; did you mean {near!r}?" if near else "")
    if kind == "missing":
        return f"`{_dotted(keys[:-1])}` has no `{keys[-1]}`"
    if kind == "value_error":
        return f"`{name}`: {detail['ctx']['error']}"
    if kind in expected:
        return f"`{name}` is {_short(value)}, must be {expected[kind]}"
    return f"`{name}`: {detail['msg']}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _dotted(keys: tuple[str | int, ...]) -> str:
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text or "mblint"


def _keys_of(table: tuple[str | int, ...]) -> list[str]:
    """The keys that a table may have."""
    kind: Any = {"launches": Launch, "assume": Assumed}.get(str(table[0])) if table else Settings
    return [key_spelling(each.name) for each in fields(kind or Settings)]


def _check_version(loaded: Loaded) -> None:
    """Raise SettingsError when another mblint is asked for."""
    wanted = loaded.settings.required_version
    if wanted is None:
        return
    from packaging.specifiers import SpecifierSet

    from mblint import __version__

    specifier = SpecifierSet(wanted if wanted[:1] in "<>=!~" else f"=={wanted}")
    if not specifier.contains(__version__, prereleases=True):
        raise SettingsError(
            f"{loaded.place('required-version')}: this is mblint {__version__}, required is {wanted}",
            f"install mblint {specifier}",
        )


def project_root(start: Path | None = None) -> Path:
    """The repository's root, else the folder itself."""
    start = (start or Path.cwd()).absolute()
    return next((folder for folder in (start, *start.parents) if os.path.exists(folder / ".git")), start)
