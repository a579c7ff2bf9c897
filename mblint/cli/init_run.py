"""The work of `mblint init`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from mblint.errors import UserError
from mblint.init.detect import HOOKS_FILE, WORKFLOW_FILE, Found, detect
from mblint.init.files import Planned, Wanted, plan_hook, plan_settings, plan_workflow
from mblint.report.model import count_of
from mblint.settings_file import project_root, shown_path
from mblint.shown import neutral

PARTS = ("settings", "hook", "workflow")


def run(args: argparse.Namespace) -> int:
    """Look around, agree on what to write, write it, and say what comes next."""
    folder = args.folder or Path.cwd()
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder", "name the folder of the repository")
    chosen = {part: getattr(args, part) for part in PARTS}
    asks = not args.yes and all(choice is None for choice in chosen.values())
    if asks and not args.dry_run and not sys.stdin.isatty():
        raise UserError(
            "`mblint init` asks, and standard input is no terminal", "add --yes, or choose with --settings, --hook and --workflow"
        )
    found = detect(project_root(folder))
    _say(_seen(found))
    wanted = Wanted(_release(args, found), args.gpu or found.gpu, args.world_size)
    plans: list[Planned] = []
    for part in PARTS:
        there = _there(part, found)
        if there is not None:
            if chosen[part] is not False:
                _say(f"{part}: {there}, left as it is")
            continue
        if chosen[part] is False:
            continue
        if chosen[part] is None and not asks and not _fits(part, args, found):
            if args.yes:
                _say(f"{part}: not written, nothing here says that this repository is on GitHub; `mblint init --{part}` writes it")
            continue
        plan = _PLANNERS[part](found, wanted)
        if asks and not args.dry_run and not _agreed(plan, found):
            continue
        plans.append(plan)
    for plan in plans:
        _do(plan, found, args.dry_run)
    if not plans:
        _say("Nothing was written.")
    elif not args.dry_run:
        _say("")
        _say(_next(found, wanted))
    return 0


def _planned_hook(found: Found, wanted: Wanted) -> Planned:
    return plan_hook(found)


_PLANNERS: dict[str, Callable[[Found, Wanted], Planned]] = {"settings": plan_settings, "hook": _planned_hook, "workflow": plan_workflow}


def _say(text: str) -> None:
    print(text)


def _release(args: argparse.Namespace, found: Found) -> str | None:
    """The release to name in the settings; none where the source is part of the repository itself."""
    from mblint.upstream.locate import is_version
    from mblint.upstream.releases import DEFAULT_BRIDGE

    if args.upstream is not None:
        if not is_version(args.upstream):
            raise UserError(f"--upstream {args.upstream!r} is not a release", "for example 0.6.2; a folder is set in the settings by hand")
        return str(args.upstream).removeprefix("v")
    if any((found.root / part / "megatron" / "bridge" / "__init__.py").is_file() for part in ("", "src")):
        return None
    return found.release or DEFAULT_BRIDGE


def _seen(found: Found) -> str:
    lines = [neutral(str(found.root))]
    if found.recipe_count:
        lines.append(f"  {count_of(found.recipe_count, 'recipe')} in {count_of(len(found.recipes), 'file')}")
    if found.scripts:
        lines.append(f"  {count_of(len(found.scripts), 'launch script')}")
    if not found.recipe_count and not found.scripts:
        lines.append("  no recipe and no launch script yet; a recipe is a function that returns a ConfigContainer")
    elif found.folders != ["."]:
        lines[-1] += f", all below {', '.join(neutral(folder) + '/' for folder in found.folders)}"
    if found.release:
        lines.append(f"  megatron-bridge {found.release}, by {found.release_from}")
    return "\n".join(lines)


def _there(part: str, found: Found) -> str | None:
    """In words, what of mblint is there already."""
    if part == "settings" and found.settings is not None:
        return f"{neutral(shown_path(found.settings))} has them"
    if part == "hook" and found.hooks:
        return f"{HOOKS_FILE} has it"
    if part == "workflow" and found.workflow is not None:
        return f"{neutral(found.workflow.relative_to(found.root).as_posix())} runs mblint"
    if part == "workflow" and (found.root / WORKFLOW_FILE).exists():
        return f"{WORKFLOW_FILE} is there"
    return None


def _fits(part: str, args: argparse.Namespace, found: Found) -> bool:
    """Whether `--yes` writes it: a workflow is for repositories on GitHub."""
    return bool(args.yes or args.dry_run) and (part != "workflow" or found.on_github)


def _agreed(plan: Planned, found: Found) -> bool:
    """Ask about one file. Anything but yes is no."""
    name = neutral(plan.path.relative_to(found.root).as_posix())
    default = plan.what != "workflow" or found.on_github
    print(f"\n{_head(plan, found)}\n{_indented(plan.added)}")
    prompt = f"{'Add this to' if plan.old is not None else 'Write'} {name}? [{'Y/n' if default else 'y/N'}] "
    try:
        answer = input(prompt).strip().lower()
    except EOFError:
        raise UserError("no answer", "add --yes, or choose with --settings, --hook and --workflow") from None
    return answer in ("y", "yes") or (not answer and default)


def _head(plan: Planned, found: Found) -> str:
    name = neutral(plan.path.relative_to(found.root).as_posix())
    return f"{name} (added to what is there)" if plan.old is not None else f"{name} (new)"


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" if line else "\n" for line in text.splitlines())


def _do(plan: Planned, found: Found, dry: bool) -> None:
    if dry:
        print(f"\n{_head(plan, found)}\n{_indented(plan.added)}", end="")
        return
    name = neutral(plan.path.relative_to(found.root).as_posix())
    if plan.old is None:
        _create(plan, name)
        print(f"wrote {name}")
        return
    from mblint.fix.write import NewText, WriteRefused, digest_of, write_file

    try:
        write_file(NewText(str(plan.path), plan.text, digest_of(plan.old.encode("utf-8"))), str(found.root))
    except WriteRefused as refused:
        raise UserError(str(refused)) from None
    print(f"added to {name}")


def _create(plan: Planned, name: str) -> None:
    """Write a file that is not there; one that came meanwhile is left alone. Raises UserError."""
    try:
        plan.path.parent.mkdir(parents=True, exist_ok=True)
        with open(plan.path, "x", encoding="utf-8", newline="\n") as handle:
            handle.write(plan.text)
    except FileExistsError:
        raise UserError(f"{name} is there already", "nothing was changed in it") from None
    except OSError as error:
        raise UserError(f"{name} cannot be written: {error.strerror or error}", "check the folder's permissions") from None


def _next(found: Found, wanted: Wanted) -> str:
    from mblint.upstream.cache import find_copy

    lines = ["Next:"]
    if wanted.upstream is not None and find_copy(wanted.upstream, None) is None:
        lines.append(f"  mblint upstream fetch {wanted.upstream}     once on each machine; the only command that uses the network")
    where = "" if not found.folders or found.folders == ["."] else " " + " ".join(found.folders)
    lines.append(f"  mblint check{where}")
    if (found.root / HOOKS_FILE).exists():
        lines.append("  pre-commit install")
    lines.append("  mblint check --write-baseline     where there are findings that have to wait")
    return "\n".join(lines)
