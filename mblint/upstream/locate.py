"""Which Megatron-Bridge and Megatron-Core a run judges against, and where their source is.

Nothing is imported and no interpreter is started; only folders are looked at.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mblint.errors import UserError
from mblint.upstream.versions import package_version

Kind = Literal["given", "tree", "environment", "cache", "snapshot"]

_VERSION = re.compile(r"^v?\d+\.\d+(\.\d+)*([a-z0-9.+-]*)?(,v?\d+[a-z0-9.+-]*)?$")

_SAID: dict[Kind, str] = {
    "given": "named",
    "tree": "this tree",
    "environment": "environment",
    "cache": "fetched copy",
    "snapshot": "shipped snapshot",
}


@dataclass(frozen=True, slots=True)
class Upstream:
    """The pair of releases that a run judges against.

    `roots` are the folders below which modules are found, in search order: each holds `megatron/bridge` or
    `megatron/core` (and with it `megatron/training`). Empty for the snapshot, and `core_root` is None when
    the core's source is nowhere. Versions are None where the source does not say.
    """

    kind: Kind
    bridge: str | None
    core: str | None
    bridge_root: Path | None = None
    core_root: Path | None = None
    core_kind: Kind = "snapshot"
    origin: str = ""
    """Who decided, for people: `--upstream 0.6.2`, `VIRTUAL_ENV /x`, `the tree under check`."""
    sites: tuple[Path, ...] = field(default=())
    """Site-packages of the environment that holds the source, with the versions of torch and others."""

    @property
    def roots(self) -> tuple[Path, ...]:
        """Search order for modules, without repetition."""
        found = [root for root in (self.bridge_root, self.core_root) if root is not None]
        return tuple(dict.fromkeys(found))

    @property
    def pair(self) -> str:
        """The report's last line: `megatron-bridge 0.6.2 + megatron-core 0.19.2 (fetched copy)`."""
        if self.kind == "snapshot":
            return f"shipped snapshot of megatron-bridge {self.bridge} + megatron-core {self.core}"
        bridge, core = (version or "of unknown version" for version in (self.bridge, self.core))
        if self.core_root is None:
            core = "absent"
        if self.kind == self.core_kind or self.core_root is None:
            return f"megatron-bridge {bridge} + megatron-core {core} ({_SAID[self.kind]})"
        return f"megatron-bridge {bridge} ({_SAID[self.kind]}) + megatron-core {core} ({_SAID[self.core_kind]})"

    def module_file(self, module: str) -> Path | None:
        """The source file of `megatron.bridge.x` or `megatron.core.y`, or None.

        Each package is looked up below its own root only, so that two releases never mix.
        """
        parts = module.split(".")
        if len(parts) < 2 or parts[0] != "megatron":
            return None
        root = self.bridge_root if parts[1] == "bridge" else self.core_root
        if root is None:
            return None
        base = root.joinpath(*parts)
        package, plain = base / "__init__.py", base.with_suffix(".py")
        return package if package.is_file() else plain if plain.is_file() else None


def locate(
    given: str | None = None,
    *,
    setting: str | None = None,
    setting_root: Path | None = None,
    python: str | None = None,
    paths: Iterable[Path] = (),
    project: Path | None = None,
) -> Upstream:
    """The upstream of a run, first that exists: `--upstream`, the setting, the tree, environment, cache,
    snapshot.

    `given` and `setting` are a folder, a version (`0.6.2`, or `0.6.2,0.19.0` with its core) or `none`; a
    setting's relative folder starts at `setting_root`. `paths` are what is checked, `project` the project's
    folder (default: the working folder). Raises UserError when a named source is not there; never for a
    search.
    """
    project = project or Path.cwd()
    for words, value, base in (("--upstream", given, None), ("setting upstream", setting, setting_root)):
        if value is None:
            continue
        shipped = snapshot(f"{words} {value}, not fetched")
        if words.startswith("setting") and value.strip().removeprefix("v") == shipped.bridge and not copied(shipped.bridge):
            return shipped  # a repository's setting holds on machines of people who fetched nothing, too
        return _named(value, f"{words} {value}", base, python, project)
    for found in (
        _from_tree(list(paths) or [project], python, project),
        _from_environment(python, project),
        _from_cache(),
    ):
        if found is not None:
            return found
    return snapshot("nothing else was found")


def copied(bridge: str) -> bool:
    """Whether a copy of this release was fetched."""
    from mblint.upstream.cache import find_copy

    return find_copy(bridge) is not None


def snapshot(origin: str) -> Upstream:
    """The snapshot that ships inside mblint."""
    from mblint.upstream.releases import DEFAULT_BRIDGE, known_core

    return Upstream("snapshot", DEFAULT_BRIDGE, known_core(DEFAULT_BRIDGE), origin=origin)


def is_version(text: str) -> bool:
    """Whether `--upstream TEXT` names a release and not a folder."""
    return bool(_VERSION.match(text))


def _named(value: str, origin: str, base: Path | None, python: str | None, project: Path) -> Upstream:
    value = value.strip()
    if value.lower() == "none":
        return snapshot(origin)
    if not value:
        raise UserError(f"{origin.strip()} is empty", "name a folder, a version, or none")
    if is_version(value):
        return _fetched(value, origin)
    places = [_against(Path(part).expanduser(), base) for part in value.split(os.pathsep) if part]
    for place in places:
        if not place.is_dir():
            raise UserError(f"{origin}: there is no folder {place}", "name a folder, a version, or none")
    roots = [root for place in places for root in _roots_in(place)]
    bridge = next((root for root in roots if has(root, "bridge")), None)
    if bridge is None:
        raise UserError(
            f"{origin}: no megatron/bridge in that folder",
            "name a Megatron-Bridge checkout, a site-packages folder, a fetched version, or none",
        )
    return _completed("given", bridge, roots, origin, python, project)


def _against(path: Path, base: Path | None) -> Path:
    return (base / path if base is not None else path).absolute()


def _fetched(value: str, origin: str) -> Upstream:
    from mblint.upstream.cache import copies, find_copy

    bridge, _, core = (part.strip().removeprefix("v") for part in value.partition(","))
    copy = find_copy(bridge, core or None)
    if copy is None:
        wanted = f"megatron-bridge {bridge}" + (f" with megatron-core {core}" if core else "")
        there = ", ".join(f"{each.bridge} with core {each.core}" for each in copies())
        command = f"mblint upstream fetch {bridge}" + (f" --core {core}" if core else "")
        raise UserError(
            f"{origin}: {wanted} is not fetched" + (f" (fetched: {there})" if there else ""),
            f"run `{command}`",
        )
    return Upstream("cache", copy.bridge, copy.core, copy.path, copy.path, "cache", origin)


def _roots_in(place: Path) -> Iterator[Path]:
    """Folders that can hold `megatron/` when the user names `place`: a checkout, its parts, an
    environment.
    """
    if place.name == "bridge" and place.parent.name == "megatron":
        place = place.parent.parent
    yield from (
        place,
        place / "src",
        place / "3rdparty" / "Megatron-LM",
        place.parent / "3rdparty" / "Megatron-LM",
    )
    if (place / "pyvenv.cfg").is_file() or (place / "bin" / "python").exists():
        from mblint.upstream.environments import site_folders, source_roots

        yield from source_roots(site_folders(str(place)))
    elif place.name in ("site-packages", "dist-packages"):
        from mblint.upstream.environments import source_roots

        yield from source_roots([place])


def has(root: Path, package: str) -> bool:
    """Whether `root` holds the source of `megatron.<package>`."""
    return (root / "megatron" / package / "__init__.py").is_file()


def _from_tree(paths: list[Path], python: str | None, project: Path) -> Upstream | None:
    """The checkout (or unpacked package) that the checked paths are part of."""
    from mblint.upstream.cache import read_copy

    seen: set[Path] = set()
    for path in paths:
        start = path.absolute()
        for folder in (start, *start.parents):
            if folder in seen:
                break
            seen.add(folder)
            for root in (folder / "src", folder):
                if has(root, "bridge"):
                    if (copy := read_copy(root)) is not None:
                        origin = f"the fetched copy under check, {folder}"
                        return Upstream("cache", copy.bridge, copy.core, root, root, "cache", origin)
                    nearby = [
                        root,
                        folder / "3rdparty" / "Megatron-LM",
                        root.parent / "3rdparty" / "Megatron-LM",
                    ]
                    return _completed("tree", root, nearby, f"the tree under check, {folder}", python, project)
    return None


def _from_environment(python: str | None, project: Path) -> Upstream | None:
    for name, sites in _environments(python, project):
        from mblint.upstream.environments import source_roots

        roots = list(source_roots(sites))
        bridge = next((root for root in roots if has(root, "bridge")), None)
        if bridge is not None:
            nearby = [*roots, bridge.parent / "3rdparty" / "Megatron-LM"]
            return _completed("environment", bridge, nearby, name, None, project, tuple(sites))
    return None


def _environments(python: str | None, project: Path) -> Iterator[tuple[str, list[Path]]]:
    from mblint.upstream.environments import current_environments, site_folders

    if python is not None:
        yield f"--python {python}", site_folders(python)
    else:
        yield from current_environments(project)


def _from_cache() -> Upstream | None:
    from mblint.upstream.cache import copies

    newest = next(iter(copies()), None)
    if newest is None:
        return None
    return Upstream("cache", newest.bridge, newest.core, newest.path, newest.path, "cache", "newest fetched copy")


def _completed(
    kind: Kind,
    bridge: Path,
    nearby: list[Path],
    origin: str,
    python: str | None,
    project: Path,
    sites: tuple[Path, ...] = (),
) -> Upstream:
    """Find the core for a bridge: beside it, else in the environment, else in a fetched copy."""
    core = next((root for root in nearby if has(root, "core")), None)
    core_kind = kind
    if not sites and bridge.name in ("site-packages", "dist-packages"):
        sites = (bridge,)
    if core is None and kind != "environment":
        from mblint.upstream.environments import source_roots

        for _, folders in _environments(python, project):
            core = next((root for root in source_roots(folders) if has(root, "core")), None)
            if core is not None:
                core_kind, sites = "environment", sites or tuple(folders)
                break
    bridge_version = package_version(bridge, "bridge")
    if core is None:
        from mblint.upstream.cache import copies, find_copy

        copy = (find_copy(bridge_version) if bridge_version else None) or next(iter(copies()), None)
        if copy is not None:
            core, core_kind = copy.path, "cache"
    core_version = package_version(core, "core") if core is not None else None
    return Upstream(kind, bridge_version, core_version, bridge, core, core_kind, origin, sites)


def assumed_versions(upstream: Upstream) -> dict[str, str]:
    """Versions of the packages installed beside the source (`torch`, `transformer-engine`, ...), by
    normalised name.

    Empty when the source does not come from an environment: then nothing is known of what will be installed.
    """
    from mblint.upstream.versions import distributions

    return distributions(upstream.sites)
