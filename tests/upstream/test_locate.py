"""Which source wins, and that nothing is run to find out."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from mblint.errors import UserError
from mblint.upstream.cache import copy_name, upstream_folder
from mblint.upstream.locate import Upstream, assumed_versions, is_version, locate
from tests.helpers_upstream import put_copy, write_package


def _environment(prefix: Path, bridge: str | None = "0.6.0", core: str | None = "0.19.0") -> Path:
    site = prefix / "lib" / "python3.12" / "site-packages"
    site.mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").symlink_to(sys.executable)
    for package, version in (("bridge", bridge), ("core", core)):
        if version:
            write_package(site, package, version)
    return site


def _bridge_checkout(folder: Path, core: str | None = "0.20.0") -> Path:
    write_package(folder / "src", "bridge", "0.7.0")
    (folder / "src/megatron/bridge/recipes").mkdir()
    if core:
        write_package(folder / "3rdparty" / "Megatron-LM", "core", core)
    return folder


def test_nothing_at_all_is_the_snapshot(bare_environment: Path) -> None:
    found = locate()
    assert (found.kind, found.roots, found.bridge, found.core) == ("snapshot", (), "0.6.2", "0.19.2")
    assert found.pair == "shipped snapshot of megatron-bridge 0.6.2 + megatron-core 0.19.2"


def test_a_setting_that_names_the_shipped_release_holds_where_nothing_was_fetched(bare_environment: Path) -> None:
    release = locate().bridge
    assert release is not None
    found = locate(setting=release)
    assert (found.kind, found.bridge) == ("snapshot", release)
    with pytest.raises(UserError, match=f"mblint upstream fetch {release}"):
        locate(release)  # asked for on the command line
    with pytest.raises(UserError, match="is not fetched"):
        locate(setting=f"{release},0.1.0")  # with another core it is not the shipped one


def test_the_order(bare_environment: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each better source beats all that come after it."""
    put_copy("0.5.0", "0.18.0")
    put_copy("0.5.1", "0.18.0")
    found = locate()
    assert (found.kind, found.bridge, found.core) == ("cache", "0.5.1", "0.18.0")

    _environment(bare_environment / ".venv")
    assert (locate().kind, locate().bridge) == ("environment", "0.6.0")
    _environment(tmp_path / "active", bridge="0.6.1")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    assert locate().bridge == "0.6.1"
    _environment(tmp_path / "other", bridge="0.4.2", core="0.17.1")
    assert locate(python=str(tmp_path / "other")).bridge == "0.4.2"
    assert locate(python=str(tmp_path / "other" / "bin" / "python")).bridge == "0.4.2"

    checkout = _bridge_checkout(tmp_path / "Megatron-Bridge")
    tree = locate(paths=[checkout / "src/megatron/bridge/recipes"])
    assert (tree.kind, tree.bridge, tree.core, tree.core_kind) == ("tree", "0.7.0", "0.20.0", "tree")
    assert tree.roots == (checkout / "src", checkout / "3rdparty/Megatron-LM")

    setting = locate(setting="0.5.0", paths=[checkout])
    assert (setting.kind, setting.bridge) == ("cache", "0.5.0")
    given = locate(str(checkout), setting="0.5.0")
    assert (given.kind, given.bridge) == ("given", "0.7.0")
    assert locate("none", setting="0.5.0").kind == "snapshot"


def test_a_checkout_is_recognised_from_any_of_its_folders(bare_environment: Path, tmp_path: Path) -> None:
    checkout = _bridge_checkout(tmp_path / "mb")
    (checkout / "examples/models").mkdir(parents=True)
    for place in (
        checkout,
        checkout / "src",
        checkout / "examples/models",
        checkout / "src/megatron/bridge/a.py",
    ):
        assert locate(paths=[place]).bridge_root == checkout / "src", place


def test_a_checkout_without_its_submodule_takes_the_core_from_elsewhere(bare_environment: Path, tmp_path: Path) -> None:
    checkout = _bridge_checkout(tmp_path / "mb", core=None)
    alone = locate(paths=[checkout])
    assert (alone.core_root, alone.core) == (None, None)
    assert alone.pair == "megatron-bridge 0.7.0 + megatron-core absent (this tree)"
    put_copy("0.6.2", "0.19.2")
    found = locate(paths=[checkout])
    assert (found.core, found.core_kind) == ("0.19.2", "cache")
    assert found.pair == "megatron-bridge 0.7.0 (this tree) + megatron-core 0.19.2 (fetched copy)"
    _environment(bare_environment / ".venv", bridge=None, core="0.19.0")
    found = locate(paths=[checkout])
    assert (found.core, found.core_kind) == ("0.19.0", "environment")


def test_two_releases_never_mix(bare_environment: Path, tmp_path: Path) -> None:
    """A bridge module is not taken from the environment that only lends the core."""
    checkout = _bridge_checkout(tmp_path / "mb", core=None)
    site = _environment(bare_environment / ".venv")
    (site / "megatron/bridge/only_there.py").write_text("")
    found = locate(paths=[checkout])
    assert found.core_root == site
    assert found.module_file("megatron.bridge.only_there") is None
    assert found.module_file("megatron.bridge") == checkout / "src/megatron/bridge/__init__.py"
    assert found.module_file("megatron.core.package_info") == site / "megatron/core/package_info.py"
    assert found.module_file("torch.nn") is None


@pytest.mark.parametrize("how", ["direct_url", "pth"])
def test_editable_installs_are_followed(bare_environment: Path, tmp_path: Path, how: str) -> None:
    checkout = _bridge_checkout(tmp_path / "my checkout")
    site = _environment(bare_environment / ".venv", bridge=None, core=None)
    if how == "direct_url":
        info = site / "megatron_bridge-0.7.0.dist-info"
        info.mkdir()
        data = {"url": checkout.as_uri(), "dir_info": {"editable": True}}
        (info / "direct_url.json").write_text(json.dumps(data))
    else:
        (site / "_megatron.pth").write_text(f"import evil_hook\n{checkout / 'src'}\n")
    found = locate()
    assert (found.kind, found.bridge, found.bridge_root) == ("environment", "0.7.0", checkout / "src")
    assert found.core_root == checkout / "3rdparty/Megatron-LM"


def test_packages_beside_the_source_are_known(bare_environment: Path) -> None:
    site = _environment(bare_environment / ".venv")
    for name in ("torch-2.9.1", "transformer_engine-2.14.0", "Some.Thing-1.0"):
        (site / f"{name}.dist-info").mkdir()
    versions = assumed_versions(locate())
    assert versions == {"torch": "2.9.1", "transformer-engine": "2.14.0", "some-thing": "1.0"}
    assert assumed_versions(locate("none")) == {}


def test_a_named_folder_may_be_any_part_of_a_source(bare_environment: Path, tmp_path: Path) -> None:
    checkout = _bridge_checkout(tmp_path / "mb")
    for place in (checkout, checkout / "src", checkout / "src/megatron/bridge"):
        found = locate(str(place))
        assert (found.bridge, found.core, found.kind) == ("0.7.0", "0.20.0", "given"), place
    prefix = tmp_path / "env"
    site = _environment(prefix)
    for place in (prefix, site):
        assert (locate(str(place)).bridge, locate(str(place)).core) == ("0.6.0", "0.19.0")
    core = write_package(tmp_path / "Megatron-LM", "core", "0.21.0")
    both = locate(f"{checkout / 'src'}{os.pathsep}{core}")
    assert (both.bridge, both.core) == ("0.7.0", "0.20.0")  # its own comes first


def test_a_relative_folder_in_the_settings_starts_at_the_file(bare_environment: Path, tmp_path: Path) -> None:
    _bridge_checkout(tmp_path / "repo" / "third" / "mb")
    found = locate(setting="third/mb", setting_root=tmp_path / "repo")
    assert found.bridge == "0.7.0"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("0.4.9", "megatron-bridge 0.4.9 is not fetched; run `mblint upstream fetch 0.4.9`"),
        ("0.6.2,0.18.0", "run `mblint upstream fetch 0.6.2 --core 0.18.0`"),
        ("nowhere/at/all", "there is no folder"),
        ("empty", "no megatron/bridge in that folder"),
        ("", "is empty"),
    ],
)
def test_a_named_source_that_is_not_there_is_an_error_with_a_remedy(bare_environment: Path, given: str, words: str) -> None:
    (bare_environment / "empty").mkdir()
    with pytest.raises(UserError) as caught:
        locate(given)
    assert words in str(caught.value)
    assert str(caught.value).startswith("--upstream")


def test_a_named_version_prefers_the_core_it_was_released_with(bare_environment: Path) -> None:
    put_copy("0.6.0", "0.19.2")
    assert locate("0.6.0").core == "0.19.2"
    put_copy("0.6.0", "0.19.0")
    assert locate("0.6.0").core == "0.19.0"
    assert locate("v0.6.0,0.19.2").core == "0.19.2"


@pytest.mark.parametrize("python", ["/nowhere/bin/python", "no-such-python"])
def test_a_python_that_is_not_there_is_an_error(bare_environment: Path, python: str) -> None:
    with pytest.raises(UserError, match="does not exist"):
        locate(python=python)


def test_a_python_without_packages_is_an_error(bare_environment: Path) -> None:
    (bare_environment / "bin").mkdir()
    program = bare_environment / "bin" / "python"
    program.write_text("#!/bin/sh\ntouch ran\n")
    program.chmod(0o755)
    with pytest.raises(UserError, match="no site-packages"):
        locate(python=str(program))
    assert not (bare_environment / "ran").exists()


def test_a_broken_source_has_no_version_and_no_crash(bare_environment: Path, tmp_path: Path) -> None:
    root = write_package(tmp_path / "odd", "bridge", "1.2.3")
    for text in ("MAJOR = (", "\0", "MAJOR = 'a'\n", "(" * 5_000, "MAJOR = 1\n"):
        (root / "megatron/bridge/package_info.py").write_text(text)
        found = locate(str(root))
        assert found.bridge is None
        assert "megatron-bridge of unknown version" in found.pair
    (root / "megatron_bridge-1.2.4.dist-info").mkdir()
    assert locate(str(root)).bridge == "1.2.4"


def test_a_half_copy_is_not_used(bare_environment: Path) -> None:
    whole = put_copy("0.6.2", "0.19.2")
    half = upstream_folder() / copy_name("9.9.9", "9.9.9")
    (half / "megatron" / "bridge").mkdir(parents=True)
    (upstream_folder() / "readme.txt").write_text("")
    assert locate().bridge_root == whole


def test_words_for_versions() -> None:
    assert all(is_version(text) for text in ("0.6.2", "v0.6.2", "0.7.0rc1", "0.6.2,0.19.0", "0.16.0rc0.dev1"))
    assert not any(is_version(text) for text in ("none", "./0.6.2", "/x/0.6.2", "0.6.2/src", "latest", "6"))


def test_a_fetched_copy_that_is_checked_itself_is_judged_by_itself(bare_environment: Path) -> None:
    old = put_copy("0.5.1", "0.18.0")
    put_copy("0.6.2", "0.19.2")
    found = locate(paths=[old / "megatron" / "bridge" / "__init__.py"])
    assert found.pair == "megatron-bridge 0.5.1 + megatron-core 0.18.0 (fetched copy)"
    assert found.bridge_root == old


def test_roots_are_not_repeated() -> None:
    same = Upstream("cache", "1", "2", Path("/a"), Path("/a"), "cache")
    assert same.roots == (Path("/a"),)
