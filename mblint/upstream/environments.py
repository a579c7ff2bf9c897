"""The site-packages folders of a Python environment, found without running its interpreter."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from mblint.errors import UserError

MAX_PATH_FILE_BYTES = 100_000


def site_folders(python: str) -> list[Path]:
    """Site-packages of an interpreter (`.../bin/python`) or of an environment's folder.

    Raises UserError when there is no such file or it has no site-packages.
    """
    import shutil

    given = Path(python).expanduser()
    if not given.exists() and os.sep not in python and (found := shutil.which(python)):
        given = Path(found)
    if given.is_dir():
        folders = list(_of_prefix(given))
    elif given.is_file():
        folders = list(_of_interpreter(given))
    else:
        raise UserError(f"python {python!r} does not exist", "name an interpreter or the folder of an environment")
    if not folders:
        raise UserError(f"python {python!r} has no site-packages folder", "name an interpreter or an environment")
    return folders


def _of_interpreter(python: Path) -> Iterator[Path]:
    # The interpreter of a virtual environment is a link: its own place counts, not the link's target.
    prefix = python.absolute().parent.parent
    if (prefix / "pyvenv.cfg").is_file() or any(_of_prefix(prefix)):
        yield from _of_prefix(prefix)
    else:
        yield from _of_prefix(python.resolve().parent.parent)


def _of_prefix(prefix: Path) -> Iterator[Path]:
    prefix = prefix.absolute()
    yield from (folder for folder in (prefix / "Lib" / "site-packages",) if folder.is_dir())
    for lib in ("lib", "lib64", "local/lib"):
        for version in _newest_first(prefix / lib):
            yield from (
                folder
                for folder in (version / "site-packages", version / "dist-packages")
                if folder.is_dir() and not (lib == "lib64" and folder.resolve() != folder)
            )
    debian = prefix / "lib" / "python3" / "dist-packages"
    if debian.is_dir():
        yield debian
    base = _system_prefix(prefix)
    if base is not None and base != prefix:
        yield from _of_prefix(base)


def _newest_first(lib: Path) -> list[Path]:
    try:
        names = [entry.name for entry in os.scandir(lib) if re.fullmatch(r"python3\.\d+t?", entry.name)]
    except OSError:
        return []
    return [lib / name for name in sorted(names, key=lambda name: int(re.sub(r"\D", "", name[8:])), reverse=True)]


def _system_prefix(prefix: Path) -> Path | None:
    """The base installation of a virtual environment that was made with access to its packages."""
    try:
        text = (prefix / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    pairs = (line.partition("=")[::2] for line in text.splitlines() if "=" in line)
    values = {key.strip().lower(): value.strip() for key, value in pairs}
    if values.get("include-system-site-packages", "").lower() != "true" or not values.get("home"):
        return None
    return Path(values["home"]).parent


def current_environments(project: Path) -> Iterator[tuple[str, list[Path]]]:
    """What to search when no `--python` is given, in order: how to call it, and its folders.

    The active environment, the project's own `.venv` or `venv`, the environment that mblint itself runs in,
    and the first `python3` on the search path.
    """
    import shutil

    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = os.environ.get(variable)
        if prefix and os.path.isdir(prefix):
            yield f"{variable} {prefix}", list(_of_prefix(Path(prefix)))
    for name in (".venv", "venv"):
        if (project / name / "pyvenv.cfg").is_file():
            yield str(project / name), list(_of_prefix(project / name))
    yield f"python {sys.executable}", own_folders()
    found = shutil.which("python3") or shutil.which("python")
    if found and os.path.realpath(found) != os.path.realpath(sys.executable):
        yield f"python {found}", list(_of_interpreter(Path(found)))


def own_folders() -> list[Path]:
    """Where the interpreter that runs mblint imports from.

    Only absolute folders: an empty or relative entry is the working folder, which is the tree under check.
    """
    here = os.path.realpath(os.curdir)
    entries = dict.fromkeys(entry for entry in sys.path if os.path.isabs(entry) and os.path.isdir(entry))
    return [Path(entry) for entry in entries if os.path.realpath(entry) != here]


def source_roots(sites: list[Path]) -> Iterator[Path]:
    """The folders in which the environment's imports look: site-packages, and where editable installs
    point.
    """
    for site in sites:
        yield site
        yield from _path_files(site)
        yield from _editable(site)


def _path_files(site: Path) -> Iterator[Path]:
    """The folders that `*.pth` files name; their `import` lines are never run."""
    try:
        names = sorted(entry.name for entry in os.scandir(site) if entry.name.endswith(".pth"))
    except OSError:
        return
    for name in names:
        path = site / name
        try:
            if not path.is_file() or path.stat().st_size > MAX_PATH_FILE_BYTES:
                continue
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for line in lines:
            line = line.strip()
            if line and not line.startswith(("#", "import ", "import\t")) and "\0" not in line:
                folder = site / line
                if folder.is_dir():
                    yield folder


def _editable(site: Path) -> Iterator[Path]:
    """The checkouts that megatron packages were installed from in place (`direct_url.json`)."""
    from urllib.parse import unquote, urlsplit

    for info in sorted(site.glob("megatron*.dist-info")):
        try:
            with open(info / "direct_url.json", encoding="utf-8") as handle:
                data = json.loads(handle.read(MAX_PATH_FILE_BYTES))
            url = urlsplit(data["url"])
            editable = data["dir_info"].get("editable") is True
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        if editable and url.scheme == "file":
            # `file:///C:/x` on Windows; urllib.request would do it, but is slow to import
            path = unquote(url.path)
            folder = Path(path.lstrip("/") if os.name == "nt" else path)
            yield from (place for place in (folder / "src", folder) if place.is_dir())
