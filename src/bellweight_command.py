"""The command's entry point: a module that imports nothing, so that Ctrl-C is heard from the start.

Loading Bellweight takes a second. It stands outside the package because entering the package is
what loads it.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Load the command line and run it."""
    try:
        from bellweight.cli import main as command
    except KeyboardInterrupt:
        print("\ninterrupted: nothing was finished", file=sys.stderr)
        sys.exit(130)  # bellweight.cli.exits.INTERRUPTED, which is not loaded yet
    command()


if __name__ == "__main__":
    main()
