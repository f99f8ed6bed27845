"""Finished blocks of a long run, kept in a file so that an interrupted run can go on."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

from bellweight.common import files, identity
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError


class KeptBlocks(dict[tuple[int, int], FloatArray]):
    """The numbers (last - first,) of blocks of episodes or paths, by their range, and their file.

    `label` tells which run they belong to: a file of another run is refused. Numbers are written
    with all their digits, so that a resumed run gives the same bits.
    """

    def __init__(self, path: str | os.PathLike[str], label: str) -> None:
        super().__init__()
        self._path, self._label = Path(path), label
        if self._path.exists():
            self._read()
        self._write()  # raises now, before the work, if the file cannot be written

    def keep(self, edge: tuple[int, int], numbers: FloatArray) -> None:
        """Add a block, and write the file whole or not at all."""
        self[edge] = numbers
        self._write()

    def _write(self) -> None:
        blocks = {f"{first}-{last}": found.tolist() for (first, last), found in self.items()}
        files.write_text(self._path, json.dumps({"of": self._label, "blocks": blocks}))

    def _read(self) -> None:
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            label, blocks = found["of"], found["blocks"]
            for name, numbers in blocks.items():
                first, last = map(int, name.split("-"))
                self[first, last] = np.array(numbers, dtype=np.float64).reshape(last - first)
        except (OSError, *files.DAMAGE) as problem:
            raise ArgumentError(
                f"{self._path} holds no blocks that a run has kept ({problem}): name another file"
            ) from None
        if label != self._label:
            doubt = identity.doubt(str(label), self._label)
            raise ArgumentError(
                f"{self._path} holds blocks of another model, value function, seed or horizon"
                f"{doubt}: name another file"
            )
