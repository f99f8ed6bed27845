"""The command of the study: `python -m studies.beyond --out FOLDER`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bellweight.cli import exits
from bellweight.common.status import BellweightError
from bellweight.display import to_text
from bellweight.reproduce import folder
from bellweight.reproduce.artefact import Wanted
from studies.beyond.study import STUDY


def main(words: Sequence[str] | None = None) -> int:
    """Run the study, write it into a folder, print its tables, and return the exit code."""
    parser = argparse.ArgumentParser("python -m studies.beyond", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("beyond"), help="where the files go")
    parser.add_argument("--quick", action="store_true", help="a small version in a few minutes")
    for name in ("episodes", "samples", "states", "jobs"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    wanted = Wanted(
        episodes=given.episodes,
        samples=given.samples,
        states=None if given.states is None else (given.states,),
        quick=given.quick,
        folder=given.out,
        seed=given.seed,
        jobs=given.jobs,
    )
    try:
        settings = STUDY.settings(wanted)
        folder.make(given.out)
        found = STUDY.reproduce(settings, _tell, lambda so_far: folder.write(so_far, given.out))
    except BellweightError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return exits.BAD_INPUT
    except KeyboardInterrupt:
        print(f"interrupted: the same command goes on with {given.out}", file=sys.stderr)
        return exits.INTERRUPTED
    print("\n".join(to_text(table) for table in found.tables()))
    print(f"written to {given.out}")
    return exits.DONE


def _tell(text: str, share: float) -> None:
    print(f"{share:4.0%} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
