"""Small stand-ins for upstream's source tree and wheels, written for the tests."""

from __future__ import annotations

import zipfile
from pathlib import Path

from mblint.upstream.cache import Copy, settle, work_folder


def write_package(root: Path, package: str, version: str) -> Path:
    """A `megatron.<package>` below `root` that says its version as upstream does."""
    folder = root / "megatron" / package
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    major, minor, patch = version.split(".")
    (folder / "package_info.py").write_text(
        f"MAJOR = {major}\nMINOR = {minor}\nPATCH = {patch}\nPRE_RELEASE = ''\nimport os\nraise RuntimeError('must never be run')\n"
    )
    return root


def wheel(
    folder: Path,
    package: str,
    version: str,
    *,
    requires: tuple[str, ...] = (),
    extra: dict[str, str] | None = None,
) -> Path:
    """A wheel of `megatron-<package>` as an index serves it; `extra` adds members."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"megatron_{package}"
    tag = "py3-none-any" if package == "bridge" else "cp312-cp312-manylinux_2_28_x86_64"
    path = folder / f"{name}-{version}-{tag}.whl"
    major, minor, patch = version.split(".")
    metadata = [
        "Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {r}" for r in requires),
    ]  # fmt: skip
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"megatron/{package}/__init__.py", "")
        archive.writestr(f"megatron/{package}/package_info.py", f"MAJOR = {major}\nMINOR = {minor}\nPATCH = {patch}\n")
        archive.writestr(f"megatron/{package}/helpers.so", "binary")
        archive.writestr(f"{info}/METADATA", "\n".join(metadata) + "\n\n")
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr(f"{info}/RECORD", "")
        for member, text in (extra or {}).items():
            archive.writestr(member, text)
    return path


def put_copy(bridge: str, core: str, verified: bool = True) -> Path:
    """A fetched pair in the cache folder that the environment names; gives its folder."""
    work = work_folder()
    folder = work / "tree"
    write_package(folder, "bridge", bridge)
    write_package(folder, "core", core)
    path = settle(folder, Copy(folder, bridge, core, verified, {"a.whl": "0"})).path
    work.rmdir()
    return path


def index(folder: Path, wheels: list[Path]) -> str:
    """A package index of plain files; gives its URL."""
    pages: dict[str, list[Path]] = {}
    for path in wheels:
        pages.setdefault(path.name.split("-")[0].replace("_", "-"), []).append(path)
    for name, files in pages.items():
        page = folder / "simple" / name
        page.mkdir(parents=True, exist_ok=True)
        links = "".join(f'<a href="{file.as_uri()}">{file.name}</a>\n' for file in files)
        (page / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")
    return (folder / "simple").as_uri()
