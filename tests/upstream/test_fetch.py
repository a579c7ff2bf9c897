"""Fetching, from an index that the test made: no network."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mblint.errors import UserError
from mblint.upstream import fetch as fetching
from mblint.upstream import releases
from mblint.upstream.cache import MARKER, copies, find_copy, read_copy, sweep, upstream_folder
from mblint.upstream.fetch import fetch
from tests.helpers_upstream import index, wheel


@pytest.fixture
def own_index(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Make the given wheels all that pip can find."""
    for name in (
        "PIP_EXTRA_INDEX_URL",
        "PIP_FIND_LINKS",
        "PIP_CONSTRAINT",
        "UV_INDEX_URL",
        "UV_DEFAULT_INDEX",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")

    def serve(*wheels: Path) -> str:
        url = index(tmp_path / "index", list(wheels))
        monkeypatch.setenv("PIP_INDEX_URL", url)
        return url

    return serve


def _pair(tmp_path: Path, bridge: str = "9.1.0", core: str = "9.5.0", **bridge_options: object) -> list[Path]:
    folder = tmp_path / "built"
    return [wheel(folder, "bridge", bridge, **bridge_options), wheel(folder, "core", core)]  # type: ignore[arg-type]


def _pin(monkeypatch: pytest.MonkeyPatch, *wheels: Path) -> None:
    """Declare these wheels known releases."""
    hashes: dict[str, dict[str, str]] = {"megatron-bridge": {}, "megatron-core": {}}
    for path in wheels:
        name, version = path.name.split("-")[:2]
        hashes[name.replace("_", "-")][version] = fetching._sha256(path)
    monkeypatch.setattr(releases, "SHA256", hashes)


def test_a_known_pair_is_fetched_and_verified(tmp_path: Path, own_index, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    pair = _pair(tmp_path)
    own_index(*pair)
    _pin(monkeypatch, *pair)
    monkeypatch.setitem(releases.CORE_OF_BRIDGE, "9.1.0", "9.5.0")
    copy = fetch("9.1.0")
    assert (copy.bridge, copy.core, copy.verified) == ("9.1.0", "9.5.0", True)
    assert copy.path == upstream_folder() / "bridge-9.1.0-core-9.5.0"
    assert (copy.path / "megatron/bridge/__init__.py").is_file()
    assert (copy.path / "megatron/core/__init__.py").is_file()
    assert not list(copy.path.rglob("*.so"))
    assert [each.name for each in upstream_folder().iterdir()] == [copy.path.name]  # no leftovers
    assert read_copy(copy.path) == copy
    assert json.loads((copy.path / MARKER).read_text())["wheels"][pair[0].name] == fetching._sha256(pair[0])


def test_what_is_there_is_not_fetched_again(tmp_path: Path, own_index, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    own_index(*_pair(tmp_path))
    first = fetch("9.1.0", "9.5.0")
    monkeypatch.setattr(fetching, "_pip_download", lambda *_: pytest.fail("asked the index again"))
    lines: list[str] = []
    assert fetch("9.1.0", "9.5.0", say=lines.append) == first
    assert "there already" in lines[0]


def test_force_replaces_a_copy(tmp_path: Path, own_index) -> None:  # type: ignore[no-untyped-def]
    own_index(*_pair(tmp_path))
    copy = fetch("9.1.0", "9.5.0")
    (copy.path / "megatron/bridge/__init__.py").write_text("changed")
    fetch("9.1.0", "9.5.0", force=True)
    assert (copy.path / "megatron/bridge/__init__.py").read_text() == ""


def test_another_file_under_a_known_name_is_refused(tmp_path: Path, own_index) -> None:  # type: ignore[no-untyped-def]
    own_index(*_pair(tmp_path, bridge="0.6.2", core="0.19.2"))
    with pytest.raises(UserError, match="not the released file"):
        fetch("0.6.2")
    assert copies() == []
    assert list(upstream_folder().iterdir()) == []


def test_a_hash_is_checked_also_when_pip_was_not_told_it(tmp_path: Path, own_index, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """`latest` may turn out to be a known release."""
    pair = _pair(tmp_path)
    own_index(*pair)
    monkeypatch.setattr(releases, "SHA256", {"megatron-bridge": {"9.1.0": "0" * 64}, "megatron-core": {}})
    with pytest.raises(UserError, match="expected 0000"):
        fetch("latest")
    assert copies() == []


def test_latest_takes_the_newest_and_the_core_that_its_metadata_asks_for(tmp_path: Path, own_index) -> None:  # type: ignore[no-untyped-def]
    built = tmp_path / "built"
    own_index(
        wheel(built, "bridge", "9.0.0"),
        wheel(built, "bridge", "9.1.0", requires=("numpy", "megatron-core[dev,mlm]<9.6.0,>=9.0.0")),
        *(wheel(built, "core", version) for version in ("9.4.0", "9.5.0", "9.6.0")),
    )
    lines: list[str] = []
    copy = fetch("latest", say=lines.append)
    assert (copy.bridge, copy.core, copy.verified) == ("9.1.0", "9.5.0", False)
    assert any("not pinned" in line for line in lines)
    assert any("not known to this mblint" in line for line in lines)


def test_an_unpinned_requirement_takes_the_newest_core(tmp_path: Path, own_index) -> None:  # type: ignore[no-untyped-def]
    built = tmp_path / "built"
    own_index(
        wheel(built, "bridge", "9.1.0", requires=("megatron-core[dev,mlm]",)),
        *(wheel(built, "core", version) for version in ("9.4.0", "9.10.0")),
    )
    assert fetch("9.1.0").core == "9.10.0"


def test_a_version_that_the_index_lacks_names_those_it_has(tmp_path: Path, own_index) -> None:  # type: ignore[no-untyped-def]
    own_index(*_pair(tmp_path))
    with pytest.raises(UserError, match=r"has no megatron-bridge==8.0.0 with a wheel; it has 9.1.0"):
        fetch("8.0.0")


def test_offline_is_one_line_with_a_remedy(own_index, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(UserError) as caught:
        fetch("9.1.0")
    assert "cannot be reached" in str(caught.value)
    assert "--wheels DIR" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert copies() == []


@pytest.mark.parametrize("bad", ["../../x", "0.6.2; rm -rf /", "-r evil.txt", "0.6.2 --index-url x", "", " 0.6"])
def test_a_version_cannot_smuggle_words_to_pip(cache: Path, bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("pip was started"))
    with pytest.raises(UserError, match="not a version"):
        fetch("9.1.0", bad or "x")
    if bad:
        with pytest.raises(UserError, match="not a version"):
            fetch(bad)


def test_wheels_from_a_folder_need_no_index(tmp_path: Path, own_index, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    _pair(tmp_path)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    copy = fetch("9.1.0", "9.5.0", wheels=tmp_path / "built")
    assert copy.core == "9.5.0"
    with pytest.raises(UserError, match=r"no wheel of megatron-bridge==8\.0\.0 in"):
        fetch("8.0.0", wheels=tmp_path / "built")


def test_an_unsafe_wheel_leaves_nothing_behind(tmp_path: Path, own_index) -> None:  # type: ignore[no-untyped-def]
    own_index(*_pair(tmp_path, extra={"../../evil.py": "boom"}))
    with pytest.raises(UserError, match="unsafe name"):
        fetch("9.1.0", "9.5.0")
    assert list(upstream_folder().iterdir()) == []
    assert not list(tmp_path.rglob("evil.py"))


def test_many_at_once_end_with_one_whole_copy(tmp_path: Path, own_index) -> None:  # type: ignore[no-untyped-def]
    own_index(*_pair(tmp_path))

    def one(_: int) -> int:
        command = [sys.executable, "-m", "mblint", "upstream", "fetch", "9.1.0", "--core", "9.5.0"]
        return subprocess.run(command, capture_output=True, check=False).returncode

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(4))) == [0, 0, 0, 0]
    assert [copy.bridge for copy in copies()] == ["9.1.0"]
    assert [each.name for each in upstream_folder().iterdir()] == ["bridge-9.1.0-core-9.5.0"]


def test_a_damaged_copy_is_not_used_and_is_replaced(tmp_path: Path, own_index) -> None:  # type: ignore[no-untyped-def]
    own_index(*_pair(tmp_path))
    copy = fetch("9.1.0", "9.5.0")
    (copy.path / MARKER).write_text("{")
    assert copies() == []
    assert find_copy("9.1.0") is None
    assert fetch("9.1.0", "9.5.0") == copy
    assert [each.bridge for each in copies()] == ["9.1.0"]


def test_leftovers_of_interrupted_runs_go_after_a_day(cache: Path) -> None:
    import os
    import time

    old, new = upstream_folder() / ".new-old", upstream_folder() / ".new-now"
    for folder in (old, new):
        (folder / "tree").mkdir(parents=True)
    long_ago = time.time() - 200_000
    os.utime(old, (long_ago, long_ago))
    sweep()
    assert not old.exists()
    assert new.exists()


def test_a_cache_that_cannot_be_written_names_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MBLINT_CACHE_DIR", str(tmp_path / "file" / "below"))
    with pytest.raises(UserError, match="set MBLINT_CACHE_DIR"):
        fetch("9.1.0", "9.5.0")
    assert copies() == []


def test_uv_users_keep_their_index(tmp_path: Path, own_index, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    url = own_index(*_pair(tmp_path))
    monkeypatch.delenv("PIP_INDEX_URL")
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"internal={url}")
    assert fetch("9.1.0", "9.5.0").bridge == "9.1.0"


def test_without_pip_the_one_that_python_carries_is_run(tmp_path: Path, own_index, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    import importlib.util

    carried = fetching._carried_pip()
    if carried is None:
        pytest.skip("this Python carries no pip")
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "pip" else real(name, *rest))
    assert fetching._pip_command() == [sys.executable, str(carried / "pip")]
    own_index(*_pair(tmp_path))
    assert fetch("9.1.0", "9.5.0").bridge == "9.1.0"


def test_without_any_pip_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util
    import shutil

    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    monkeypatch.setattr(fetching, "_carried_pip", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda *_: None)
    with pytest.raises(UserError, match="install pip, or download the two wheels elsewhere"):
        fetching._pip_command()


def test_a_project_cannot_stand_in_for_pip(tmp_path: Path, own_index, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """A folder `pip` in the working folder or on PYTHONPATH is not run."""
    own_index(*_pair(tmp_path))
    trap = tmp_path / "project"
    (trap / "pip").mkdir(parents=True)
    (trap / "pip" / "__init__.py").write_text("")
    (trap / "pip" / "__main__.py").write_text("open('trapped', 'w').close()")
    monkeypatch.chdir(trap)
    monkeypatch.setenv("PYTHONPATH", str(trap))
    assert fetch("9.1.0", "9.5.0").bridge == "9.1.0"
    assert not list(tmp_path.rglob("trapped"))


def test_every_known_bridge_has_hash_and_core() -> None:
    assert set(releases.CORE_OF_BRIDGE) == set(releases.SHA256["megatron-bridge"])
    assert set(releases.CORE_OF_BRIDGE.values()) <= set(releases.SHA256["megatron-core"])
    hashes = [value for table in releases.SHA256.values() for value in table.values()]
    assert len(set(hashes)) == len(hashes)
    assert all(len(value) == 64 and int(value, 16) for value in hashes)
    assert releases.DEFAULT_BRIDGE in releases.CORE_OF_BRIDGE


@pytest.mark.network
@pytest.mark.upstream
def test_the_real_release_is_what_was_pinned(fetched) -> None:  # type: ignore[no-untyped-def]
    folder = fetched("0.6.2")
    copy = read_copy(folder)
    assert copy is not None
    assert (copy.bridge, copy.core, copy.verified) == ("0.6.2", "0.19.2", True)
    assert (folder / "megatron/bridge/training/config.py").is_file()
    assert (folder / "megatron/core/transformer/transformer_config.py").is_file()
    assert (folder / "megatron/training").is_dir()
    assert not [path for path in folder.rglob("*") if path.suffix in {".so", ".pyc", ".sh"}]
