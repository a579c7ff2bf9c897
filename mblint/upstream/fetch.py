"""Bring the source of a pair of releases into the user's cache folder.

The download is pip's: it knows the user's index, proxy, certificates and credentials, and it checks the
pinned hashes. The pip of this environment is taken, else the one that Python carries for `ensurepip`, else
one on the search path. Wheels for CPython 3.12 on Linux are asked for whatever runs mblint, since only
their Python files are used. Nothing of what is downloaded is run.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from mblint.errors import UserError
from mblint.upstream.cache import (
    Copy,
    copy_name,
    discard,
    read_copy,
    settle,
    sweep,
    upstream_folder,
    work_folder,
)
from mblint.upstream.releases import DEFAULT_BRIDGE, known_core, known_hash
from mblint.upstream.unpack import unpack_source
from mblint.upstream.versions import package_version

PYTHONS = ("3.12", "3.13", "3.11")
"""CPython versions to ask wheels for, in order: all releases so far have one for 3.12."""

PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_24_x86_64", "manylinux2014_x86_64")

_VERSION = re.compile(r"^[0-9][A-Za-z0-9.!+_-]*$")

Say = Callable[[str], None]


def fetch(
    bridge: str | None = None,
    core: str | None = None,
    *,
    wheels: Path | None = None,
    force: bool = False,
    say: Say = lambda line: None,
) -> Copy:
    """Download, verify and unpack a pair; gives the copy that is in place afterwards.

    `bridge` is a version, `latest`, or None for the newest release that mblint knows; `core` a version or
    None for the one it was released with. With `wheels`, a folder of wheel files is used and no index. A
    copy that is there already is not fetched again unless `force`. Raises UserError with one line for
    everything that can go wrong.
    """
    bridge = bridge or DEFAULT_BRIDGE
    for name, version in (("megatron-bridge", bridge), ("megatron-core", core)):
        if version is not None and version != "latest" and not _VERSION.match(version):
            raise UserError(f"{version!r} is not a version of {name}", "for example 0.6.2")
    if bridge != "latest":
        wanted = core or known_core(bridge)
        there = read_copy(upstream_folder() / copy_name(bridge, wanted)) if wanted and wanted != "latest" else None
        if there is not None and not force:
            say(f"megatron-bridge {there.bridge} + megatron-core {there.core} is there already")
            return there
    sweep()
    folder = work_folder()
    try:
        return _fetch_into(folder, bridge, core, wheels, force, say)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fetch_into(folder: Path, bridge: str, core: str | None, wheels: Path | None, force: bool, say: Say) -> Copy:
    downloads, tree = folder / "wheels", folder / "tree"
    downloads.mkdir()
    tree.mkdir()
    bridge_wheel, bridge_ok = _download("megatron-bridge", bridge, downloads, wheels, say)
    unpack_source(bridge_wheel, tree)
    bridge_version = _unpacked_version(tree, "bridge", bridge_wheel)

    requirement = core or known_core(bridge_version) or _required_core(tree)
    core_wheel, core_ok = _download("megatron-core", requirement, downloads, wheels, say)
    unpack_source(core_wheel, tree)
    core_version = _unpacked_version(tree, "core", core_wheel)
    if core is None and known_core(bridge_version) is None:
        say(f"megatron-bridge {bridge_version} is not known to this mblint; paired with core {core_version}")

    copy = Copy(
        path=tree,
        bridge=bridge_version,
        core=core_version,
        verified=bridge_ok and core_ok,
        wheels={wheel.name: _sha256(wheel) for wheel in (bridge_wheel, core_wheel)},
    )
    if force:
        discard(upstream_folder() / copy_name(copy.bridge, copy.core))
    return settle(tree, copy)


def _unpacked_version(tree: Path, package: str, wheel: Path) -> str:
    """The version that names the copy: the file name's, which is what the index served and was asked for."""
    if not (tree / "megatron" / package / "__init__.py").is_file():
        raise UserError(f"{wheel.name} holds no megatron/{package}: not a release of megatron-{package}")
    return wheel.name.split("-")[1] or package_version(tree, package) or "unknown"


def _required_core(tree: Path) -> str:
    """What the bridge's own metadata asks of megatron-core: a specifier such as `<0.17,>=0.15`, else
    `latest`.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    for metadata in tree.glob("megatron_bridge-*.dist-info/METADATA"):
        for line in metadata.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.lower().startswith("requires-dist:"):
                try:
                    requirement = Requirement(line.partition(":")[2].strip())
                except InvalidRequirement:
                    continue
                if requirement.name.replace("_", "-").lower() == "megatron-core":
                    return str(requirement.specifier) or "latest"
    return "latest"


def _sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _download(distribution: str, version: str, into: Path, wheels: Path | None, say: Say) -> tuple[Path, bool]:
    """One wheel, and whether its hash is one that mblint pins."""
    exact = bool(_VERSION.match(version)) and version != "latest"
    requirement = distribution if version == "latest" else f"{distribution}=={version}" if exact else distribution + version
    pinned = known_hash(distribution, version) if exact else None
    say(f"fetching {requirement}" + ("" if wheels is None else f" from {wheels}"))
    folder = into / distribution
    folder.mkdir()
    wheel = _pip_download(requirement, pinned, folder, wheels)
    pinned = pinned or known_hash(distribution, wheel.name.split("-")[1])
    if pinned is None:
        say(f"{wheel.name} is not a release that this mblint knows: its hash is not pinned")
    elif _sha256(wheel) != pinned:
        raise UserError(
            f"{wheel.name} is not the released file: sha256 {_sha256(wheel)}, expected {pinned}",
            "the index serves another file under that name; nothing was kept",
        )
    return wheel, pinned is not None


def _pip_download(requirement: str, pinned: str | None, into: Path, wheels: Path | None) -> Path:
    pip = _pip_command()
    listing = into / "requirement.txt"
    listing.write_text(requirement + (f" --hash=sha256:{pinned}" if pinned else "") + "\n", encoding="utf-8")
    source = [] if wheels is None else ["--no-index", "--find-links", str(wheels.absolute())]
    failure = ""
    for python in PYTHONS:
        # Of the user's own settings all hold but those that would make a plain download fail.
        command = [
            *pip, "download", "--no-deps", "--only-binary", ":all:", "--progress-bar", "off",
            "--implementation", "cp", "--python-version", python,
            *(word for platform in PLATFORMS for word in ("--platform", platform)),
            *source, "--dest", str(into), "--requirement", str(listing),
        ]  # fmt: skip
        done = _run(command, into)
        found = sorted(into.glob("*.whl"))
        if done.returncode == 0 and len(found) == 1:
            return found[0]
        failure = failure or done.stderr + done.stdout  # the first Python's words name the most versions
        if not _worth_another(done.stderr):
            break
    raise _explained(requirement, failure, wheels)


def _run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run pip in an empty folder, so that nothing of the user's project can stand in for one of its
    modules.
    """
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise UserError(f"pip cannot be started ({command[0]}): {error.strerror or error}") from None


def _environment() -> dict[str, str]:
    environment = dict(os.environ)
    environment.update(
        PIP_DISABLE_PIP_VERSION_CHECK="1",
        PIP_NO_INPUT="1",
        PIP_REQUIRE_VIRTUALENV="0",
        PIP_REQUIRE_HASHES="0",
        PIP_NO_COLOR="1",
        PYTHONWARNINGS="ignore",
    )
    environment.pop("PYTHONPATH", None)
    # Somebody who installs with uv has the index in uv's variables.
    if "PIP_INDEX_URL" not in environment:
        main = environment.get("UV_DEFAULT_INDEX") or environment.get("UV_INDEX_URL")
        if main:
            environment["PIP_INDEX_URL"] = _bare_url(main)
    if "PIP_EXTRA_INDEX_URL" not in environment:
        extra = environment.get("UV_INDEX") or environment.get("UV_EXTRA_INDEX_URL")
        if extra:
            environment["PIP_EXTRA_INDEX_URL"] = " ".join(_bare_url(url) for url in extra.split())
    return environment


def _bare_url(index: str) -> str:
    """uv lets an index carry a name: `internal=https://...`."""
    name, equals, url = index.partition("=")
    return url if equals and re.fullmatch(r"[\w-]+", name) else index


def _pip_command() -> list[str]:
    """The words that start a pip. Raises UserError when there is none."""
    from importlib.util import find_spec

    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    carried = _carried_pip()
    if carried is not None:
        return [sys.executable, str(carried / "pip")]
    found = shutil.which("pip3") or shutil.which("pip")
    if found:
        return [found]
    raise UserError(
        "pip is needed to download from the package index, and there is none",
        "install pip, or download the two wheels elsewhere and run `mblint upstream fetch --wheels DIR`",
    )


def _carried_pip() -> Path | None:
    """The pip wheel that Python ships for ensurepip; a wheel can be run as it is."""
    try:
        import ensurepip
    except ImportError:  # Debian splits it off
        return None
    import sysconfig

    own = Path(ensurepip.__file__).parent / "_bundled"
    distribution = sysconfig.get_config_var("WHEEL_PKG_DIR")  # where Linux distributions put it instead
    for folder in (own, *([Path(distribution)] if distribution else [])):
        found = sorted(folder.glob("pip-*.whl"))
        if found:
            return found[-1]
    return None


def _worth_another(failure: str) -> bool:
    """Whether wheels for another Python may be there although none was found for this one."""
    return "No matching distribution" in failure and not _offline(failure) and "HASHES" not in failure


def _offline(failure: str) -> bool:
    return any(
        sign in failure
        for sign in (
            "connection error:",
            "confirming the ssl certificate",
            "Retrying (", "Max retries exceeded", "NewConnectionError", "failure in name resolution",
            "ConnectTimeoutError", "ReadTimeoutError", "ProxyError", "SSLError", "Network is unreachable",
        )
    )  # fmt: skip


def _explained(requirement: str, failure: str, wheels: Path | None) -> UserError:
    """Pip's many lines as one."""
    if "DO NOT MATCH THE HASHES" in failure:
        return UserError(
            f"what the package index serves as {requirement} is not the released file (its sha256 differs)",
            "nothing was kept; check the index, or name another version",
        )
    if wheels is not None:
        return UserError(
            f"no wheel of {requirement} in {wheels}",
            "download it where there is a network: `pip download --no-deps --only-binary :all: "
            f"--python-version 3.12 --platform {PLATFORMS[0]} {requirement}`",
        )
    versions = re.search(r"\(from versions: ([^)]*)\)", failure)
    if versions and versions[1] != "none":
        offered = versions[1].split(", ")
        newest = ", ".join(reversed(offered[-8:]))
        return UserError(f"the package index has no {requirement} with a wheel", f"it has {newest}")
    if _offline(failure):
        return UserError(
            f"the package index cannot be reached to fetch {requirement}{_reason(failure)}",
            "check the network and pip's index settings, or use `--wheels DIR`; `mblint check` works without it from the shipped snapshot",
        )
    if versions or "No matching distribution" in failure:
        return UserError(
            f"the package index has no {requirement}, or cannot be reached",
            "check the version, the network and pip's index settings, or use `--wheels DIR`",
        )
    lines = [line for line in failure.splitlines() if line.strip()]
    words = next((line for line in reversed(lines) if "ERROR" in line and "Exception:" not in line), "")
    last = words.removeprefix("ERROR:").strip() or (lines[-1] if lines else "no reason given")
    return UserError(f"pip could not download {requirement}: {last[:300]}")


def _reason(failure: str) -> str:
    match = re.search(
        r"\[Errno -?\d+\] ([^)'\"]+)|(Cannot connect to proxy)|(CERTIFICATE_VERIFY_FAILED)|(timed out)",
        failure,
    )
    return f" ({next(group for group in match.groups() if group).strip()})" if match else ""
