"""What is asked of git. The work tree is never touched: contents are read as blobs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mblint.errors import UserError

TIMEOUT_SECONDS = 120
GITLINK = b"160000"
SUFFIXES = (".py", ".yaml", ".yml", ".sh", ".sbatch", ".slurm", ".toml")
"""Files whose content can change what a launch resolves to."""

_OF_HOOKS = frozenset(
    {
        "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR",
        "GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_NAMESPACE",
    }
)  # fmt: skip
"""Variables that git sets for its hooks; with another working folder they would lead astray."""


class GitError(UserError):
    """Git is not there, this is no repository, or a revision does not exist."""


@dataclass(frozen=True, slots=True)
class Change:
    """One changed file, as absolute paths: `path` now (None: deleted), `before` at the base (None: new), and its content
    there (None: not a file that matters)."""

    path: str | None
    before: str | None
    content: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Message:
    """A commit's message and the files that it touched, relative to the top folder."""

    text: str
    files: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Entry:
    before: str | None
    path: str | None
    modes: tuple[bytes, bytes]
    blob: str


class Repository:
    """A git work tree. `top` is its root folder. Raises GitError where there is none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder if folder.is_dir() else folder.parent
        self.top = Path(self._run("rev-parse", "--show-toplevel").rstrip("\n"))

    def _run(self, *args: str, check: bool = True) -> str:
        return os.fsdecode(self.output(*args, check=check))

    def output(self, *args: str, check: bool = True, stdin: bytes | None = None) -> bytes:
        """The output of a git command. Raises GitError with git's own last line."""
        command = [
            "git",
            "-c",
            "core.quotepath=off",
            "-c",
            "core.fsmonitor=false",
            "-c",
            "log.showSignature=false",
            "-c",
            "core.hooksPath=/dev/null",
            "--no-pager",
            *args,
        ]
        environment = {name: value for name, value in os.environ.items() if name not in _OF_HOOKS}
        environment.update({"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"})
        try:
            done = subprocess.run(
                command, cwd=self.folder, input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
                capture_output=True, timeout=TIMEOUT_SECONDS, env=environment, check=False,
            )  # fmt: skip
        except (FileNotFoundError, PermissionError):
            raise GitError("git was not found", "reviewing a change needs git on PATH") from None
        except subprocess.TimeoutExpired:
            raise GitError(f"git {args[0]} took more than {TIMEOUT_SECONDS} s", "check the repository") from None
        if done.returncode and check:
            raise self._problem(args[0], done.stderr.decode("utf-8", "replace"))
        return done.stdout

    def _problem(self, command: str, said: str) -> GitError:
        if "dubious ownership" in said:
            return GitError(f"git does not trust {self.folder}, which belongs to somebody else", "see git's safe.directory setting")
        if "not a git repository" in said:
            return GitError(f"{self.folder} is not in a git repository", "a change is reviewed against a git revision; leave --base out")
        if "must be run in a work tree" in said:
            return GitError(f"{self.folder} is a bare repository", "run in a work tree")
        lines = [line for line in said.strip().splitlines() if line.strip()]
        missing = "missing blob" in said or "unable to read" in said or "bad object" in said or "could not get object" in said
        hint = "objects are missing: fetch them (git fetch --unshallow)" if missing else "check the repository and the revision"
        return GitError(f"git {command}: {lines[-1] if lines else 'failed'}", hint)

    # --- revisions -------------------------------------------------------------------------------------------------

    def commit(self, revision: str) -> str:
        """The commit of a revision. Raises GitError; tells what a shallow clone lacks."""
        if revision.startswith("-") or "\0" in revision or not revision.strip():
            raise GitError(f"{revision!r} is not a revision", "for example origin/main")
        found = self._resolved(revision)
        if found is None:
            hint = (
                "this is a shallow clone: fetch the base too (git fetch --unshallow; in GitHub Actions fetch-depth: 0)"
                if self.shallow()
                else "check its spelling, or fetch it"
            )
            raise GitError(f"there is no revision {revision}", hint)
        return found

    def _resolved(self, revision: str) -> str | None:
        return self._run("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", check=False).strip() or None

    def shallow(self) -> bool:
        """Whether history is cut off."""
        return self._run("rev-parse", "--is-shallow-repository", check=False).strip() == "true"

    def empty_tree(self) -> str:
        """The tree that a repository starts from."""
        return self._run("hash-object", "-t", "tree", "--stdin").strip()

    def merge_base(self, one: str, other: str) -> str | None:
        """The best common ancestor, None when there is none at hand."""
        return self._run("merge-base", one, other, check=False).strip() or None

    def default_branch(self) -> str | None:
        """The default branch of the remote, else a local main or master."""
        head = self._run("symbolic-ref", "--quiet", "refs/remotes/origin/HEAD", check=False).strip()
        for name in filter(None, [head, "origin/main", "origin/master", "main", "master"]):
            if self._resolved(name):
                return name
        return None

    def base(self, wanted: str) -> str:
        """The commit (or, before the first commit, the empty tree) that `--base wanted` means.

        `auto`: HEAD in a pre-commit run (or the start of the pushed range), the pull request's base under GitHub Actions, else the
        merge base with the default branch; on that branch itself HEAD if something is not committed, else its parent. Raises
        GitError.
        """
        if wanted != "auto":
            return self.commit(wanted)
        head = self._resolved("HEAD")
        if head is None:
            return self.empty_tree()
        if os.environ.get("PRE_COMMIT"):
            source = os.environ.get("PRE_COMMIT_FROM_REF") or os.environ.get("PRE_COMMIT_SOURCE")
            return self.commit(source) if source and set(source) != {"0"} else head
        if os.environ.get("GITHUB_BASE_REF"):
            return self._pull_request_base(os.environ["GITHUB_BASE_REF"], head)
        branch = self.default_branch()
        if branch is None:
            raise GitError("--base auto found no default branch", "name the revision, for example --base HEAD~1")
        base = self.merge_base(self.commit(branch), head)
        if base is None:
            hint = "fetch more history (git fetch --unshallow), or name the revision" if self.shallow() else "name the revision"
            raise GitError(f"--base auto found no common ancestor with {branch}", hint)
        if base == head and not self.output("status", "--porcelain", "--untracked-files=all", "-z"):
            return self._resolved("HEAD~1") or (head if self.shallow() else self.empty_tree())
        return base

    def _pull_request_base(self, name: str, head: str) -> str:
        branch = self._resolved(f"refs/remotes/origin/{name}") or self._resolved(name)
        if branch is not None:
            found = self.merge_base(branch, head)
            if found is not None:
                return found
        # actions/checkout checks out the merge of base and pull request: its first parent is the base.
        first, second = self._resolved("HEAD^1"), self._resolved("HEAD^2")
        if first is not None and second is not None:
            return first
        if branch is not None:
            return branch
        raise GitError(f"the pull request's base {name} is not at hand", "check out with fetch-depth: 0 (2 is enough for a merge commit)")

    # --- what changed -----------------------------------------------------------------------------------------------

    def changes(self, base: str, other: str | None = None) -> list[Change]:
        """Files that differ between a commit and the work tree (or another commit), untracked ones too; renames are followed,
        submodules entered."""
        entries = self._entries(base, other)
        contents = self._contents([e.blob for e in entries if e.before is not None and _matters(e.before) and e.modes[0] != GITLINK])
        found: list[Change] = []
        for entry in entries:
            if GITLINK in entry.modes:
                found += self._submodule(entry)
                continue
            content = contents.get(entry.blob) if entry.before is not None and _matters(entry.before) else None
            found.append(Change(self._absolute(entry.path), self._absolute(entry.before), content))
        if other is None:
            for raw in self.output("ls-files", "--others", "--exclude-standard", "--full-name", "-z", ":/").split(b"\0"):
                if raw:
                    found.append(Change(self._absolute(os.fsdecode(raw)), None))
        return found

    def _absolute(self, name: str | None) -> str | None:
        return None if name is None else os.path.join(self.top, name)

    def _entries(self, base: str, other: str | None) -> list[_Entry]:
        args = [
            "diff",
            "--raw",
            "--no-abbrev",
            "-z",
            "-M",
            "--no-ext-diff",
            "--ignore-submodules=none",
            base,
            *([other] if other else []),
            "--",
        ]
        fields = self.output(*args).split(b"\0")
        found: list[_Entry] = []
        index = 0
        while index + 1 < len(fields):
            old_mode, new_mode, old_blob, _, status = fields[index].lstrip(b":").split(b" ")
            name = os.fsdecode(fields[index + 1])
            index += 2
            before: str | None = name
            path: str | None = name
            if status[:1] in (b"R", b"C"):
                path = os.fsdecode(fields[index])
                index += 1
                before = name if status[:1] == b"R" else None
            elif status == b"A":
                before = None
            elif status == b"D":
                path = None
            found.append(_Entry(before, path, (old_mode, new_mode), old_blob.decode()))
        return found

    def _contents(self, blobs: Sequence[str]) -> dict[str, bytes]:
        """The contents of blobs, by one process. Raises GitError for one that is missing."""
        wanted = list(dict.fromkeys(blobs))
        if not wanted:
            return {}
        data = self.output("cat-file", "--batch", stdin="".join(f"{blob}\n" for blob in wanted).encode())
        found: dict[str, bytes] = {}
        position = 0
        for blob in wanted:
            end = data.index(b"\n", position)
            words = data[position:end].split()
            if len(words) != 3:
                raise GitError(f"git has not the content of {blob[:12]}", "objects are missing: fetch them (git fetch --unshallow)")
            size = int(words[2])
            found[blob] = data[end + 1 : end + 1 + size]
            position = end + 1 + size + 1
        return found

    def _submodule(self, entry: _Entry) -> list[Change]:
        """The changes inside a submodule that is checked out; one that is not has no files to judge."""
        name = entry.path or entry.before or ""
        folder = self.top / name
        if entry.before is None or entry.path is None or not (folder / ".git").exists():
            return []
        inner = Repository(folder)
        if inner.top == self.top or inner._resolved(entry.blob) is None:
            return []
        return inner.changes(entry.blob)

    def messages(self, base: str, other: str = "HEAD") -> list[Message]:
        """The commits since the base, newest first."""
        if self._resolved(base) is None:
            return []
        data = self._run("log", "-z", "--name-only", "--no-renames", "--format=%x01%B%x02", f"{base}..{other}", "--", check=False)
        found = []
        for part in data.split("\x01")[1:]:
            text, _, names = part.partition("\x02")
            found.append(Message(text.strip(), frozenset(name.strip("\n") for name in names.split("\0") if name.strip("\n"))))
        return found

    def branch(self) -> str:
        """The current branch's name; under GitHub Actions that of the pull request; "" when HEAD is detached."""
        name = os.environ.get("GITHUB_HEAD_REF") if os.environ.get("GITHUB_BASE_REF") else None
        return name or self._run("symbolic-ref", "--quiet", "--short", "HEAD", check=False).strip()


def overlay_of(changes: Sequence[Change]) -> dict[str, bytes | None]:
    """Absolute path -> content at the base, None where there was no such file; for the changed files that matter."""
    found: dict[str, bytes | None] = {}
    for change in changes:
        if change.path is not None and change.before != change.path and _matters(change.path):
            found.setdefault(change.path, None)
        if change.before is not None and change.content is not None:
            found[change.before] = change.content
    return found


def _matters(path: str) -> bool:
    return path.endswith(SUFFIXES)
