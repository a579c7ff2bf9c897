"""What is asked of git, with real repositories."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mblint.review.git import Change, GitError, Repository, overlay_of
from tests.review.history import commit, git


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("GIT_", "GITHUB_", "PRE_COMMIT"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("CI", raising=False)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "ein projekt"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "ä b.py").write_text("A = 1\n" * 20)
    (folder / "data.bin").write_bytes(b"\0")
    commit(folder, "First")
    return folder


def test_base_of_a_branch_is_where_it_left_the_default_branch(repo: Path) -> None:
    start = git(repo, "rev-parse", "HEAD")
    git(repo, "checkout", "-q", "-b", "work")
    (repo / "b.py").write_text("")
    commit(repo, "On the branch")
    assert Repository(repo).base("auto") == start


def test_base_on_the_default_branch(repo: Path) -> None:
    first = git(repo, "rev-parse", "HEAD")
    (repo / "b.py").write_text("")
    assert Repository(repo).base("auto") == first, "something is not committed"
    commit(repo, "Second")
    assert Repository(repo).base("auto") == first, "the parent of the last commit"


def test_base_before_the_first_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text("A = 1\n")
    git(tmp_path, "add", "-A")
    repository = Repository(tmp_path)
    assert repository.changes(repository.base("auto")) == [Change(str(tmp_path / "a.py"), None)]


def test_base_in_a_pre_commit_run(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(repo, "checkout", "-q", "-b", "work")
    commit(repo, "On the branch")
    head = git(repo, "rev-parse", "HEAD")
    monkeypatch.setenv("PRE_COMMIT", "1")
    assert Repository(repo).base("auto") == head
    monkeypatch.setenv("PRE_COMMIT_FROM_REF", "HEAD~1")
    assert Repository(repo).base("auto") == git(repo, "rev-parse", "HEAD~1")


def test_base_of_a_pull_request(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = git(repo, "rev-parse", "HEAD")
    git(repo, "checkout", "-q", "-b", "work")
    (repo / "b.py").write_text("B = 1\n")
    commit(repo, "On the branch")
    git(repo, "checkout", "-q", "-b", "merged", start)
    (repo / "c.py").write_text("C = 1\n")
    commit(repo, "On main")
    main = git(repo, "rev-parse", "HEAD")
    git(repo, "branch", "-f", "main", "HEAD")
    git(repo, "merge", "-q", "--no-ff", "-m", "Merge the pull request", "work")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "2", "--branch", "merged", repo.as_uri(), str(clone))
    git(clone, "checkout", "-q", "--detach")
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    assert Repository(clone).base("auto") == main, "the merge commit's first parent"
    assert {Path(change.path or "").name for change in Repository(clone).changes(main)} == {"b.py"}


def test_shallow_clone_says_what_to_fetch(repo: Path, tmp_path: Path) -> None:
    commit(repo, "Second")
    clone = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", repo.as_uri(), str(clone))
    with pytest.raises(GitError, match="shallow clone: fetch the base too"):
        Repository(clone).base("HEAD~1")
    git(clone, "checkout", "-q", "--detach")
    assert Repository(clone).base("HEAD") == git(clone, "rev-parse", "HEAD")


@pytest.mark.parametrize("revision", ["nonsense", "--output=x", "", "HEAD~99", "main:ä b.py"])
def test_a_revision_that_does_not_exist(repo: Path, revision: str) -> None:
    with pytest.raises(GitError):
        Repository(repo).base(revision)
    assert not (repo / "x").exists()


def test_no_repository_and_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GitError, match="not in a git repository"):
        Repository(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError, match="git was not found"):
        Repository(tmp_path)


def test_changes_of_every_kind(repo: Path) -> None:
    base = git(repo, "rev-parse", "HEAD")
    (repo / "ä b.py").rename(repo / "moved\tto.py")
    (repo / "neu.yaml").write_text("a: 1\n")
    git(repo, "add", "-A")
    (repo / "untracked ü.py").write_text("B = 2\n")
    (repo / "data.bin").write_bytes(b"\1")
    found = {Path(c.path).name if c.path else None: c for c in Repository(repo).changes(base)}
    assert set(found) == {"moved\tto.py", "neu.yaml", "untracked ü.py", "data.bin"}
    moved = found["moved\tto.py"]
    assert (moved.before, moved.content) == (str(repo / "ä b.py"), b"A = 1\n" * 20)
    assert found["data.bin"].content is None, "what cannot matter is not read"
    overlay = overlay_of(list(found.values()))
    assert overlay[str(repo / "ä b.py")] == b"A = 1\n" * 20
    assert overlay[str(repo / "moved\tto.py")] is None
    assert overlay[str(repo / "untracked ü.py")] is None


def test_a_deleted_file(repo: Path) -> None:
    (repo / "ä b.py").unlink()
    assert Repository(repo).changes("HEAD") == [Change(None, str(repo / "ä b.py"), b"A = 1\n" * 20)]


def test_from_a_folder_inside_and_from_a_hook(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = repo / "inner"
    inner.mkdir()
    (inner / "c.py").write_text("")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")
    monkeypatch.setenv("GIT_DIR", ".git")
    assert [change.path for change in Repository(inner).changes("HEAD")] == [str(inner / "c.py")]


def test_worktree_and_detached_head(repo: Path, tmp_path: Path) -> None:
    tree = tmp_path / "second tree"
    git(repo, "worktree", "add", "-q", "--detach", str(tree))
    (tree / "ä b.py").write_text("A = 2\n")
    repository = Repository(tree)
    assert repository.branch() == ""
    (change,) = repository.changes("HEAD")
    assert change == Change(str(tree / "ä b.py"), str(tree / "ä b.py"), b"A = 1\n" * 20)


def test_submodules_are_entered(repo: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "main")
    (other / "x.py").write_text("X = 1\n")
    commit(other, "First")
    git(repo, "submodule", "add", "-q", str(other), "sub")
    commit(repo, "Add a submodule")
    (repo / "sub" / "x.py").write_text("X = 2\n")
    commit(repo / "sub", "Second")
    commit(repo, "Move the submodule")
    repository = Repository(repo)
    (change,) = repository.changes(repository.base("HEAD~1"))
    assert change == Change(str(repo / "sub/x.py"), str(repo / "sub/x.py"), b"X = 1\n")


def test_messages_know_their_files(repo: Path) -> None:
    base = git(repo, "rev-parse", "HEAD")
    (repo / "b.py").write_text("")
    commit(repo, "Fix OOM\n\nof the 70B")
    (repo / "c d.py").write_text("")
    commit(repo, "Second")
    messages = Repository(repo).messages(base)
    assert [(m.text, set(m.files)) for m in messages] == [("Second", {"c d.py"}), ("Fix OOM\n\nof the 70B", {"b.py"})]


def test_the_work_tree_is_not_touched(repo: Path) -> None:
    (repo / "ä b.py").write_text("A = 3\n")
    git(repo, "add", "-A")
    (repo / "ä b.py").write_text("A = 4\n")
    before = git(repo, "status", "--porcelain=v2"), (repo / ".git/index").read_bytes()
    repository = Repository(repo)
    repository.changes(repository.base("HEAD"))
    assert (git(repo, "status", "--porcelain=v2"), (repo / "ä b.py").read_text()) == (before[0], "A = 4\n")
    assert sorted(path.name for path in repo.iterdir()) == [".git", "data.bin", "ä b.py"]
