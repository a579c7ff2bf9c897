"""A wheel is unpacked only when no member could harm."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest

from mblint.errors import UserError
from mblint.upstream import unpack
from mblint.upstream.unpack import unpack_source
from tests.helpers_upstream import wheel


def _names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_only_source_and_metadata_are_written(tmp_path: Path) -> None:
    path = wheel(
        tmp_path, "bridge", "0.6.2",
        extra={
            "megatron/bridge/recipes/a.py": "x = 1\n",
            "megatron/bridge/data.json": "{}",
            "scripts/run.py": "boom",
            "megatron_bridge-0.6.2.dist-info/licenses/LICENSE": "text",
            "megatron_bridge-0.6.2.data/scripts/tool": "boom",
        },
    )  # fmt: skip
    out = tmp_path / "out"
    count = unpack_source(path, out)
    assert _names(out) == {
        "megatron/bridge/__init__.py",
        "megatron/bridge/package_info.py",
        "megatron/bridge/recipes/a.py",
        "megatron_bridge-0.6.2.dist-info/METADATA",
        "megatron_bridge-0.6.2.dist-info/WHEEL",
        "megatron_bridge-0.6.2.dist-info/licenses/LICENSE",
    }
    assert count == len(_names(out))
    assert (out / "megatron/bridge/recipes/a.py").read_text() == "x = 1\n"


@pytest.mark.parametrize(
    "name",
    [
        "../evil.py",
        "megatron/../../evil.py",
        "/etc/evil.py",
        "megatron/bridge/..\\..\\evil.py",
        "C:/evil.py",
        "megatron//evil.py",
        "megatron/./evil.py",
        "megatron/evil\n.py",
        "megatron/evil\x1b[31m.py",
    ],
)
def test_a_name_that_leaves_the_folder_refuses_the_whole_wheel(tmp_path: Path, name: str) -> None:
    path = wheel(tmp_path, "bridge", "0.6.2", extra={name: "boom"})
    out = tmp_path / "deep" / "out"
    with pytest.raises(UserError, match="unsafe name"):
        unpack_source(path, out)
    assert not list(tmp_path.rglob("evil*"))
    assert not out.exists()


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK])
def test_links_and_devices_are_refused(tmp_path: Path, kind: int) -> None:
    path = wheel(tmp_path, "bridge", "0.6.2")
    with zipfile.ZipFile(path, "a") as archive:
        member = zipfile.ZipInfo("megatron/bridge/link.py")
        member.create_system = 3
        member.external_attr = (kind | 0o777) << 16
        archive.writestr(member, "/etc/passwd")
    with pytest.raises(UserError, match="link or a device"):
        unpack_source(path, tmp_path / "out")


@pytest.mark.parametrize("twin", ["megatron/bridge/__init__.py", "megatron/Bridge/__INIT__.py"])
def test_a_name_twice_is_refused_also_in_another_case(tmp_path: Path, twin: str) -> None:
    path = wheel(tmp_path, "bridge", "0.6.2")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning) if twin.islower() else _nothing():
        archive.writestr(twin, "boom")
    with pytest.raises(UserError, match="twice"):
        unpack_source(path, tmp_path / "out")


def _nothing():  # type: ignore[no-untyped-def]
    import contextlib

    return contextlib.nullcontext()


def test_a_bomb_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "MAX_FILE_BYTES", 100_000)
    path = tmp_path / "bomb-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("megatron/bridge/big.py", " " * 200_000)
    with pytest.raises(UserError, match=r"big\.py"):
        unpack_source(path, tmp_path / "out")


def test_the_total_is_bounded_whatever_the_archive_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "MAX_TOTAL_BYTES", 150_000)
    path = tmp_path / "bomb-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"megatron/bridge/part{number}.py", " " * 90_000)
    with pytest.raises(UserError, match="more than source code needs"):
        unpack_source(path, tmp_path / "out")


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "MAX_MEMBERS", 3)
    with pytest.raises(UserError, match="not unpacked"):
        unpack_source(wheel(tmp_path, "bridge", "0.6.2"), tmp_path / "out")


@pytest.mark.parametrize("damage", ["empty", "text", "truncated", "flipped"])
def test_a_damaged_wheel_is_one_clear_line(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "megatron_bridge-1.0.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("megatron/bridge/a.py", "x = 1\n" * 5_000)
    data = path.read_bytes()
    path.write_bytes(
        {"empty": b"", "text": b"<html>not found</html>", "truncated": data[: len(data) // 2],
         "flipped": data[:45] + bytes(byte ^ 0xFF for byte in data[45:60]) + data[60:]}[damage]
    )  # fmt: skip
    with pytest.raises(UserError) as caught:
        unpack_source(path, tmp_path / "out")
    assert path.name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_existing_file_is_never_written_through(tmp_path: Path) -> None:
    """A link that waits in the target folder is not followed."""
    victim = tmp_path / "victim.py"
    victim.write_text("mine")
    out = tmp_path / "out"
    (out / "megatron" / "bridge").mkdir(parents=True)
    (out / "megatron" / "bridge" / "package_info.py").symlink_to(victim)
    with pytest.raises(UserError, match="cannot be unpacked"):
        unpack_source(wheel(tmp_path, "bridge", "0.6.2"), out)
    assert victim.read_text() == "mine"
