"""Print the completion script of a shell."""

from __future__ import annotations

import argparse

SHELLS = ("bash", "zsh", "fish")

EPILOG = """examples:
  eval "$(mblint completion bash)"                                             in ~/.bashrc
  eval "$(mblint completion zsh)"                                              in ~/.zshrc, after compinit
  mblint completion fish > ~/.config/fish/completions/mblint.fish
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The shell."""
    parser.add_argument("shell", choices=SHELLS, help="whose script is printed")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    from importlib import import_module

    print(import_module(f"mblint.completion.{args.shell}").script(), end="")
    return 0
