"""What the text formats of model checkers share: lines with their numbers, names of actions."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bellweight.common import checks, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import BellweightWarning, FileError
from bellweight.interchange.assembly import initial_law
from bellweight.models import TabularModel

SUM_TOLERANCE = 1e-5
"""How far a sum of probabilities may be from one in files of PRISM and Storm, as they allow."""

INIT = "init"
_NUMBERED = re.compile(r"a(\d+)")


class Lines:
    """The lines of a file that are neither empty nor comments, and the number of the last one."""

    def __init__(self, path: str | os.PathLike[str], comment: str) -> None:
        self.source, self.comment, self.number = Path(path), comment, 0

    def __iter__(self) -> Iterator[str]:
        try:
            with open(self.source, encoding="utf-8") as stream:
                for self.number, line in enumerate(stream, start=1):
                    text = line.strip()
                    if text and not text.startswith(self.comment):
                        yield text
        except FileNotFoundError:
            raise FileError(f"{self.source} does not exist: check the path") from None
        except (OSError, UnicodeDecodeError) as problem:
            raise FileError(f"cannot read {self.source}: {problem}") from None

    def wrong(self, said: str) -> FileError:
        """Return the error about the last line."""
        return FileError(f"{self.source}, line {self.number}: {said}")

    def whole(self, text: str, below: int) -> int:
        """Return a whole number from 0 to below - 1."""
        if not (text.isdecimal() and text.isascii() and int(text) < below):
            raise self.wrong(f"{text!r}, expected a whole number below {below}")
        return int(text)

    def real(self, text: str) -> float:
        """Return a number; fractions such as 1/3 are numbers too."""
        try:
            above, _, below = text.partition("/")
            return float(above) / float(below) if below else float(text)
        except (ValueError, ZeroDivisionError):
            raise self.wrong(f"{text!r}, expected a number") from None


class ActionNames:
    """Indices of actions by name; `a0`, `a1`, ... and plain numbers are the indices themselves."""

    def __init__(self, order: Sequence[str] | None) -> None:
        self.index = {name: number for number, name in enumerate(order or ())}

    def settle(self, codes: Any, names: list[str]) -> tuple[Any, tuple[str, ...] | None]:
        """Return action indices for codes, which number the names, and the labels."""
        numbered = [_NUMBERED.fullmatch(name) for name in names]
        if not self.index and all(numbered):
            order = np.array([int(match[1]) for match in numbered if match], dtype=np.int32)
            return order[codes], None
        for name in names:
            self.index.setdefault(name, len(self.index))
        order = np.array([self.index[name] for name in names], dtype=np.int32)
        return order[codes], tuple(self.index)


def action_name(model: TabularModel, action: int) -> str:
    """Return the name of an action in a file: its label, or a0, a1, ..."""
    if model.action_labels is None:
        return f"a{action}"
    return re.sub(r"\W+", "_", model.action_labels[action])


def state_words(model: TabularModel) -> list[list[str]]:
    """Return the labels of each state, which are the words of its name, `init` among them."""
    names = model.state_labels or ("",) * model.n_states
    starts = model.initial > 0.0
    some = float(model.initial[starts][0])
    if np.abs(model.initial[starts] - some).max() > tolerances.PROBABILITY:
        warnings.warn(
            "the file marks initial states and cannot hold their probabilities, which differ: pass "
            "initial= when you read it",
            BellweightWarning,
            stacklevel=4,
        )
    return [
        [INIT] * bool(start) + [word for word in name.split() if word != INIT]
        for name, start in zip(names, starts, strict=True)
    ]


def labels_and_initial(
    words: dict[int, list[str]], initial: Any, n_states: int
) -> tuple[tuple[str, ...] | None, FloatArray]:
    """Return names of states made of their labels, and the initial distribution.

    Where none is given it is uniform over the states marked `init`, or over all if there are none.
    """
    names = tuple(
        " ".join(word for word in words.get(state, ()) if word != INIT) for state in range(n_states)
    )
    labels = names if any(names) else None
    marked = [state for state, found in words.items() if INIT in found]
    if initial is None and marked:
        law = np.zeros(n_states)
        law[marked] = 1.0 / len(marked)
        return labels, checks.float_array(law, "initial", (n_states,))
    return labels, initial_law(initial, n_states, labels)
