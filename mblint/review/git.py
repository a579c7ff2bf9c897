"""What is asked of git. The work tree is never touched: contents are read as blobs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mblint.errors import UserError

TIMEOUT_SECONDS = 60


class GitError(UserError):
    """Git is not there, this is no repository, or a revision does not exist."""


@dataclass(frozen=True, slots=True)
class Change:
    """One changed file: `path` now (None: deleted), `before` at the base (None: new); relative to the top folder."""

    path: str | None
    before: str | None


class Repository:
    """A git work tree. `top` is its root folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.top = Path(self._run("rev-parse", "--show-toplevel").rstrip("\n"))

    def _run(self, *args: str, binary: bool = False, check: bool = True) -> str:
        data = self.output(*args, check=check)
        return data.decode("utf-8", "surrogateescape")

    def output(self, *args: str, check: bool = True) -> bytes:
        """The output of a git command. Raises GitError with git's own last line."""
        command = ["git", "-c", "core.quotepath=off", *args]
        environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
        try:
            done = subprocess.run(command, cwd=self.folder, capture_output=True, timeout=TIMEOUT_SECONDS, env=environment, check=False)
        except FileNotFoundError:
            raise GitError("git was not found", "reviewing a change needs git on PATH") from None
        except subprocess.TimeoutExpired:
            raise GitError(f"git {args[0]} took more than {TIMEOUT_SECONDS} s", "check the repository") from None
        if done.returncode and check:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise GitError(f"git {args[0]}: {said[-1] if said else 'failed'}", "is this a git repository with that revision?")
        return done.stdout

    def commit(self, revision: str) -> str:
        """The commit of a revision. Raises GitError; tells what a shallow clone lacks."""
        if revision.startswith("-"):
            raise GitError(f"{revision!r} is not a revision", "for example origin/main")
        try:
            return self._run("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").strip()
        except GitError:
            shallow = self._run("rev-parse", "--is-shallow-repository", check=False).strip() == "true"
            hint = "this is a shallow clone: fetch the base too (fetch-depth: 0)" if shallow else "check its spelling, or fetch it"
            raise GitError(f"there is no revision {revision}", hint) from None

    def merge_base(self, one: str, other: str) -> str | None:
        """The best common ancestor, None when there is none at hand."""
        text = self._run("merge-base", one, other, check=False).strip()
        return text or None

    def default_branch(self) -> str | None:
        """The default branch of the remote, else a local main or master."""
        head = self._run("symbolic-ref", "--quiet", "refs/remotes/origin/HEAD", check=False).strip()
        for name in filter(None, [head, "origin/main", "origin/master", "main", "master"]):
            if self._run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False).strip():
                return name
        return None

    def base(self, wanted: str) -> str:
        """The commit that `--base wanted` means. `auto`: HEAD in a pre-commit run, the pull request's base under GitHub
        Actions, else the merge base with the default branch. Raises GitError."""
        if wanted != "auto":
            return self.commit(wanted)
        if os.environ.get("PRE_COMMIT"):
            source = os.environ.get("PRE_COMMIT_FROM_REF")
            return self.commit(source or "HEAD")
        if os.environ.get("GITHUB_BASE_REF"):
            name = f"origin/{os.environ['GITHUB_BASE_REF']}"
            commit = self.commit(name)
            return self.merge_base(commit, "HEAD") or commit
        branch = self.default_branch()
        if branch is None:
            raise GitError("--base auto found no default branch", "name the revision, for example --base HEAD~1")
        commit = self.commit(branch)
        base = self.merge_base(commit, "HEAD")
        if base is None:
            raise GitError(f"no common ancestor with {branch} is at hand", "fetch more history (fetch-depth: 0), or name the revision")
        head = self.commit("HEAD")
        if base == head and not self.changes(base):
            return self.commit("HEAD~1") if self._run("rev-parse", "--verify", "--quiet", "HEAD~1", check=False).strip() else base
        return base

    def changes(self, base: str, other: str | None = None) -> list[Change]:
        """Files that differ between a commit and the work tree (or another commit), untracked ones too; renames are followed."""
        args = ["diff", "--name-status", "-z", "-M", base] + ([other] if other else [])
        fields = self.output(*args, "--").split(b"\0")
        found: list[Change] = []
        index = 0
        while index < len(fields) - 1:
            status = fields[index].decode()
            name = os.fsdecode(fields[index + 1])
            index += 2
            if status[:1] in ("R", "C"):
                new = os.fsdecode(fields[index])
                index += 1
                found.append(Change(new, name))
            elif status == "A":
                found.append(Change(name, None))
            elif status == "D":
                found.append(Change(None, name))
            else:
                found.append(Change(name, name))
        if other is None:
            for raw in self.output("ls-files", "--others", "--exclude-standard", "--full-name", "-z", ":/").split(b"\0"):
                if raw:
                    found.append(Change(os.fsdecode(raw), None))
        return found

    def blob(self, commit: str, path: str) -> bytes:
        """The content of a file at a commit."""
        return self.output("cat-file", "blob", f"{commit}:{path}")

    def words(self, base: str, other: str = "HEAD") -> str:
        """What the change says of itself: commit messages since the base, and the branch's name."""
        messages = self._run("log", "--format=%B", f"{base}..{other}", check=False)
        branch = self._run("rev-parse", "--abbrev-ref", "HEAD", check=False).strip()
        return f"{branch}\n{messages}"


def repository(folder: Path) -> Repository:
    """The repository around a folder. Raises GitError."""
    return Repository(folder if folder.is_dir() else folder.parent)


def overlay_at(repo: Repository, commit: str, changes: Sequence[Change]) -> dict[str, bytes | None]:
    """Absolute path -> content at the commit, None where there was no such file; for the changed Python and YAML files."""
    found: dict[str, bytes | None] = {}
    for change in changes:
        if change.path is not None and _concerns(change.path) and change.before != change.path:
            found[str(repo.top / change.path)] = None
        if change.before is not None and _concerns(change.before):
            found[str(repo.top / change.before)] = repo.blob(commit, change.before)
    return found


def _concerns(path: str) -> bool:
    return path.endswith((".py", ".yaml", ".yml", ".sh", ".sbatch", ".slurm"))
