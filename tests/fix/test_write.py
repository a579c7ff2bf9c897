"""Writing fixed files: whole or not at all, and only where it is allowed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mblint.fix import write
from mblint.fix.write import NewText, WriteRefused, decode, read_source, write_file, write_files

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX file modes and links")


def replace(path: Path, root: Path, old: str, new: str) -> None:
    source = read_source(str(path))
    assert old in source.text
    write_file(NewText(str(path), source.text.replace(old, new), source.digest), str(root))


def refusal(path: Path, root: Path) -> str:
    source = read_source(str(path))
    before = path.read_bytes()
    with pytest.raises(WriteRefused) as caught:
        write_file(NewText(str(path), source.text + "# new\n", source.digest), str(root))
    assert path.read_bytes() == before
    assert sorted(p.name for p in path.parent.iterdir() if p.name.endswith(write.TEMPORARY_SUFFIX)) == []
    return str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        b"x = 1\n",
        b"x = 1\r\ny = 2\r\n",
        b"\xef\xbb\xbfx = 1\n",
        "# -*- coding: latin-1 -*-\nx = 1  # caf\xe9\n".encode("latin-1"),
        "# coding: cp1252\nx = 1  # \u20ac\r\n".encode("cp1252"),
        "x = 1  # \u00e9\u4e2d\U0001f600".encode(),
        b"x = 1\x0c\r\rz\n",
    ],
)
def test_every_byte_but_the_changed_ones_survives(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "r.py"
    file.write_bytes(data)
    replace(file, tmp_path, "x = 1", "x = 22")
    assert file.read_bytes() == data.replace(b"x = 1", b"x = 22")


@posix
def test_the_mode_is_kept(tmp_path: Path) -> None:
    for mode in (0o644, 0o600, 0o755, 0o664, 0o4755):
        file = tmp_path / f"r{mode:o}.py"
        file.write_text("x = 1\n")
        file.chmod(mode)
        replace(file, tmp_path, "1", "2")
        assert file.stat().st_mode & 0o7777 == mode


@posix
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
def test_the_owner_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "r.py"
    file.write_text("x = 1\n")
    os.chown(file, 1234, 4321)
    replace(file, tmp_path, "1", "2")
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 4321)


@posix
def test_a_link_inside_the_project_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "deep" / "real.py"
    real.parent.mkdir()
    real.write_text("x = 1\n")
    link = tmp_path / "link.py"
    link.symlink_to(real)
    replace(link, tmp_path, "1", "2")
    assert link.is_symlink() and real.read_text() == "x = 2\n"


@posix
def test_nothing_is_written_outside_of_the_project(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    outside = tmp_path / "outside.py"
    outside.write_text("x = 1\n")
    (root / "link.py").symlink_to(outside)
    (root / "folder").symlink_to(tmp_path)
    sibling = tmp_path / "project2"
    sibling.mkdir()
    (sibling / "r.py").write_text("x = 1\n")
    for path in (
        outside,
        root / "link.py",
        root / "folder" / "outside.py",
        root / ".." / "outside.py",
        sibling / "r.py",
    ):
        assert "outside of the project" in refusal(path, root)


@posix
def test_a_read_only_file_is_left_alone_even_for_root(tmp_path: Path) -> None:
    file = tmp_path / "r.py"
    file.write_text("x = 1\n")
    file.chmod(0o444)
    assert "read-only" in refusal(file, tmp_path)


@posix
def test_a_hard_linked_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "r.py"
    file.write_text("x = 1\n")
    os.link(file, tmp_path / "other.py")
    assert "hard links" in refusal(file, tmp_path)


def test_a_file_that_was_changed_meanwhile_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "r.py"
    file.write_text("x = 1\n")
    source = read_source(str(file))
    file.write_text("x = 5\n")
    outcome = write_files([NewText(str(file), "x = 2\n", source.digest)], str(tmp_path))
    assert outcome[0].refused is not None and "changed since" in outcome[0].refused
    assert file.read_text() == "x = 5\n"

    # Also when it changes while the new text is being written.
    digest, fsync = read_source(str(file)).digest, os.fsync

    def meddle(handle: int) -> None:
        fsync(handle)
        file.write_text("x = 6\n")

    monkeypatch.setattr(os, "fsync", meddle)
    outcome = write_files([NewText(str(file), "x = 2\n", digest)], str(tmp_path))
    assert outcome[0].refused is not None and "changed since" in outcome[0].refused
    assert file.read_text() == "x = 6\n"
    assert [path.name for path in tmp_path.iterdir()] == ["r.py"]


def test_a_character_that_the_encoding_lacks_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "r.py"
    file.write_bytes("# coding: latin-1\nx = 'é'\n".encode("latin-1"))
    source = read_source(str(file))
    with pytest.raises(WriteRefused, match="iso-8859-1 lacks"):
        write_file(NewText(str(file), source.text.replace("é", "中"), source.digest), str(tmp_path))
    assert read_source(str(file)).text == source.text


def test_one_refused_file_does_not_stop_the_others(tmp_path: Path) -> None:
    changes = []
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text("x = 1\n")
        changes.append(NewText(str(tmp_path / name), "x = 2\n", read_source(str(tmp_path / name)).digest))
    (tmp_path / "b.py").unlink()
    outcome = write_files(changes, str(tmp_path))
    assert [bool(entry.refused) for entry in outcome] == [False, True, False]
    assert (tmp_path / "c.py").read_text() == "x = 2\n"


@pytest.mark.parametrize("name", ["fsync", "replace", "fdopen"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device"), MemoryError()])
def test_an_interrupt_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: BaseException
) -> None:
    file = tmp_path / "r.py"
    file.write_text("x = 1\n")
    change = NewText(str(file), "x = 2\n", read_source(str(file)).digest)

    def fail(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, name, fail)
        with pytest.raises((KeyboardInterrupt, MemoryError, WriteRefused)):
            write_file(change, str(tmp_path))
    assert file.read_text() == "x = 1\n"
    assert [path.name for path in tmp_path.iterdir()] == ["r.py"]


def test_odd_names_are_written(tmp_path: Path) -> None:
    for name in ("with space.py", "n\u00e4me.py", "-dash.py", "a'b\"c.py"):
        (tmp_path / name).write_text("x = 1\n")
        replace(tmp_path / name, tmp_path, "1", "2")
        assert (tmp_path / name).read_text() == "x = 2\n"


def test_other_files_are_utf8_whatever_they_say() -> None:
    assert decode("/a.yaml", "# coding: latin-1\na: é\n".encode()).text.endswith("é\n")
    with pytest.raises(SyntaxError):
        decode("/a.py", b"# coding: no-such-thing\n")


WRITER = """
import sys
from mblint.fix.write import NewText, read_source, write_files
root, count = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
for turn in range(1, 1000):
    changes = []
    for number in range(count):
        path = f"{root}/recipe_{number}.py"
        source = read_source(path)
        size = 2000 + 37 * ((turn + number) % 50)
        changes.append(NewText(path, f"BEGIN {turn}\\n" + "x = 1\\n" * size + f"END {turn}\\n", source.digest))
    for entry in write_files(changes, root):
        assert entry.refused is None, entry
"""


@posix
def test_a_kill_in_the_middle_of_200_files_damages_none(tmp_path: Path) -> None:
    count, generator = 200, random.Random(7)
    for number in range(count):
        (tmp_path / f"recipe_{number}.py").write_text("BEGIN 0\n" + "x = 1\n" * 2000 + "END 0\n")
    turns = set()
    for _ in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(count)],
            stdout=subprocess.PIPE,
            env={**os.environ},
        )
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        time.sleep(generator.uniform(0.05, 1.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        for number in range(count):
            text = (tmp_path / f"recipe_{number}.py").read_text()
            first, last = text.split("\n", 1)[0], text[:-1].rsplit("\n", 1)[1]
            assert first.split()[0] == "BEGIN" and last == first.replace("BEGIN", "END")
            assert set(text.split("\n")[1:-2]) == {"x = 1"}
            turns.add(first)
    litter = [path.name for path in tmp_path.iterdir() if not path.name.startswith("recipe_")]
    assert len(litter) <= 6  # at most the one file that each killed process had open
    assert all(name.startswith(".recipe_") and name.endswith(write.TEMPORARY_SUFFIX) for name in litter)
    assert len(turns) > 1  # it was really writing
