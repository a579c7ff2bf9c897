"""Serve an editor over standard input and output: findings while typing, hovers, fixes, completion."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mblint.errors import UserError

EPILOG = """examples:
  mblint server                          what an editor starts; it speaks the language server protocol
  mblint server --upstream 0.6.2         judge against this release, whatever the settings say
  pip install '.[lsp]'                    what it needs, in a checkout of mblint
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """All options of the command."""
    parser.usage = "mblint server [OPTIONS]"
    parser.add_argument("--stdio", action="store_true", help="as always; some editors insist on saying it")
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings file, instead of those found above each document")
    parser.add_argument("--isolated", action="store_true", help="ignore all settings files")
    parser.add_argument("--upstream", metavar="DIR|VERSION|none", help="Megatron-Bridge source to judge against")
    parser.add_argument("--python", metavar="PATH", help="interpreter or environment with megatron-bridge installed; looked at, never run")


def run(args: argparse.Namespace) -> int:
    """Serve until the client ends it. Raises UserError where pygls is not installed."""
    try:
        import lsprotocol.types  # noqa: F401
        import pygls.lsp.server  # noqa: F401
    except ImportError as error:
        missing = error.name or "pygls"
        raise UserError(
            f"the server for editors needs {missing}, which is not installed", "pip install '.[lsp]' in a checkout of mblint"
        ) from None
    if sys.stdin.isatty():
        sys.stderr.write("mblint server talks to an editor, which starts it by itself; see docs/guide/editors.md. Ctrl-C ends it.\n")
    from mblint.server.app import serve
    from mblint.server.project import Options

    serve(Options(args.upstream, args.python, args.config, args.isolated))
    return 0
