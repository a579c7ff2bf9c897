"""`python -m mblint` and the console script."""

from __future__ import annotations

import sys

if __name__ == "__main__" and not sys.flags.safe_path and sys.path:
    # `python -m` puts the working folder first on the path: what is checked there is not to be imported.
    del sys.path[0]


def main() -> int:
    """Run the command line and return its exit code; `--version` is answered before anything large is imported."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from mblint.cli.version import short_lines

        print("\n".join(short_lines()))
        return 0
    from mblint.cli.main import main as run
    from mblint.garbage import collect_rarely

    collect_rarely()
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
