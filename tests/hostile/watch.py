"""Runs mblint under an audit hook, and writes down what it did that a linter has no business doing.

    python watch.py REPORT ALLOWED[os.pathsep ALLOWED ...] -- ARGUMENTS

Allowed are folders whose files may be opened; interpreter, packages and mblint itself are always among them.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig

report, folders, _, *arguments = sys.argv[1:]

import mblint  # noqa: E402

CODE = [os.path.realpath(path) for path in {*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix, os.path.dirname(mblint.__file__)}]
RULES = os.path.realpath(os.path.join(os.path.dirname(mblint.__file__), os.pardir, "rules"))
ALLOWED = [*CODE, RULES, *(os.path.realpath(path) for path in folders.split(os.pathsep)), os.path.realpath(os.devnull)]
SYSTEM = ("/etc/ld.so", "/usr/lib", "/lib", "/usr/share", "/proc/self/", "/proc/meminfo", "/sys/fs/cgroup")
"""What the interpreter itself looks at."""
MAKERS = ("dataclasses", "collections", "enum", "typing", "pydantic", "attr", "re", "functools", "cattrs", "hypothesis")
"""Modules that make code out of texts of their own."""

done: list[str] = []
busy = False


def inside(path: str, folders: list[str]) -> bool:
    return any(path == folder or path.startswith(folder + os.sep) for folder in folders)


def made_by_library() -> bool:
    """Whether text that is executed comes from a library that makes classes out of it."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.partition(".")[0] in MAKERS:
            return True
        if name.startswith("mblint"):
            return False
        frame = frame.f_back
    return False


def look(event: str, values: tuple[object, ...]) -> None:
    global busy
    if busy:
        return
    busy = True
    try:
        judge(event, values)
    finally:
        busy = False


def judge(event: str, values: tuple[object, ...]) -> None:
    if event == "open" and isinstance(values[0], (str, bytes)):
        path = os.path.realpath(os.fsdecode(values[0]))
        if not inside(path, ALLOWED) and not path.startswith(SYSTEM):
            done.append(f"opens {path}")
    elif event == "exec":
        name = os.path.realpath(values[0].co_filename) if os.path.isabs(values[0].co_filename) else values[0].co_filename  # type: ignore[attr-defined]
        if not name.startswith("<frozen ") and not inside(name, CODE) and not made_by_library():
            done.append(f"runs code of {name}")
    elif event == "subprocess.Popen":
        if os.path.basename(str(values[0])) != "git":
            done.append(f"starts {values[1]}")
    elif event.startswith(
        (
            "socket.",
            "os.exec",
            "os.system",
            "os.posix_spawn",
            "os.spawn",
            "ctypes.",
            "os.startfile",
            "os.fork",
            "pty.",
            "ftplib.",
            "urllib.",
            "http.",
        )
    ):
        done.append(f"{event} {values!r}"[:200])
    elif event in (
        "os.remove",
        "os.rename",
        "os.rmdir",
        "shutil.rmtree",
        "os.chmod",
        "os.link",
        "os.symlink",
        "os.truncate",
        "os.kill",
        "os.chown",
    ):
        paths = [os.path.realpath(os.fsdecode(value)) for value in values if isinstance(value, (str, bytes))]
        if event == "os.kill" or not all(inside(path, ALLOWED[len(CODE) + 1 :]) for path in paths):
            done.append(f"{event} {values!r}"[:200])
    elif event == "import" and values[1]:
        path = os.path.realpath(str(values[1]))
        if not inside(path, CODE):
            done.append(f"imports {path}")


sys.addaudithook(look)
from mblint.cli.main import main  # noqa: E402

code = main(arguments)
busy = True
with open(report, "w", encoding="utf-8") as handle:
    json.dump({"code": code, "done": done}, handle)
