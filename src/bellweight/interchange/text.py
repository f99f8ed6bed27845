"""What the text formats of model checkers share: lines with their numbers, names of actions."""

from __future__ import annotations

import os
import re
import warnings
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
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
NO_LABEL = "__NOLABEL__"  # how Storm writes that a choice has no name
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

    def line_of(self, row: int, counts: Callable[[str], bool]) -> int:
        """Return the number of a line: of those that count, the one after `row` others.

        The file is read again, so that no line has to be remembered while all is well.
        """
        for text in self:
            row -= counts(text)
            if row < 0:
                break
        return self.number

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

    def choice_name(self, name: str, choice: int) -> str:
        """Return what a choice goes by: a0, a1, ... where it has no name, or a number."""
        return f"a{choice}" if name in ("", NO_LABEL) or name.isdecimal() else name


def settled_actions(
    state: Any, choice: Any, code: Any, names: list[str], order: Sequence[str] | None
) -> tuple[Any, tuple[str, ...] | None]:
    """Return the action index of each choice, and the labels of actions.

    Entry i says that choice[i] of state[i] has the name names[code[i]]. Names a0, a1, ... are the
    indices themselves, if all are like that and no order is given; else indices are places in the
    order, followed by names it does not have. Several choices of one state with the same name are
    told apart: go, go_2, go_3.
    """
    code, names = _told_apart(state, choice, code, names)
    numbered = [_NUMBERED.fullmatch(name) for name in names]
    if not order and all(numbered):
        numbers = np.array([int(match[1]) for match in numbered if match], dtype=np.int32)
        return numbers[code], None
    index = {name: number for number, name in enumerate(order or ())}
    for name in names:
        index.setdefault(name, len(index))
    return np.array([index[name] for name in names], dtype=np.int32)[code], tuple(index)


def _told_apart(state: Any, choice: Any, code: Any, names: list[str]) -> tuple[Any, list[str]]:
    """Return codes and names such that no two choices of a state have the same name."""
    by_name = np.lexsort((choice, code, state))
    x, k, c = state[by_name], choice[by_name], code[by_name]
    again = np.append(False, (x[1:] == x[:-1]) & (c[1:] == c[:-1]) & (k[1:] != k[:-1]))
    if not again.any():
        return code, names
    place = np.arange(len(again))
    rank = np.cumsum(again)
    rank -= np.maximum.accumulate(np.where(again, 0, rank))
    told, names, code = dict[tuple[int, int], int](), list(names), code.copy()
    for i in place[rank > 0]:
        key = int(c[i]), int(rank[i])
        if key not in told:
            told[key] = len(names)
            names.append(_unused(names[key[0]], key[1] + 1, names))
        code[by_name[i]] = told[key]
    return code, names


def _unused(name: str, number: int, names: list[str]) -> str:
    found = f"{name}_{number}"
    while found in names:
        found += "_"
    return found


def action_name(model: TabularModel, action: int) -> str:
    """Return the name of an action in a file: its label, or a0, a1, ..."""
    if model.action_labels is None:
        return f"a{action}"
    return re.sub(r"\W+", "_", model.action_labels[action])


def state_words(model: TabularModel) -> Iterator[list[str]]:
    """Yield the labels of each state, which are the words of its name, `init` among them."""
    names = model.state_labels or repeat("", model.n_states)
    starts = model.initial > 0.0
    for name, start in zip(names, starts, strict=True):
        yield [INIT] * bool(start) + [word for word in name.split() if word != INIT]


def warn_of_unequal_starts(model: TabularModel) -> None:
    """Warn where a file cannot hold the initial distribution."""
    chances = model.initial[model.initial > 0.0]
    if chances.max() - chances.min() > tolerances.PROBABILITY:
        warnings.warn(
            "the file marks initial states and cannot hold their probabilities, which differ: pass "
            "initial= when you read it",
            BellweightWarning,
            stacklevel=3,
        )


class StateLabels:
    """The labels of states as they are read: words of their names, and which are initial."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._known: dict[str, str] = {}
        self._marked = array("i")

    def add(self, state: int, words: Sequence[str]) -> None:
        """Note the labels of a state."""
        if INIT in words:
            self._marked.append(state)
        name = " ".join(word for word in words if word != INIT)
        if name:
            self._names[state] = self._known.setdefault(name, name)

    def settle(self, initial: Any, n_states: int) -> tuple[tuple[str, ...] | None, FloatArray]:
        """Return the names of states, and the initial distribution.

        Where none is given it is uniform over the states marked `init`, over all if there are none.
        """
        labels = None
        if self._names:
            labels = tuple(self._names.get(state, "") for state in range(n_states))
        if initial is None and self._marked:
            marked = np.unique(np.frombuffer(self._marked, dtype=np.int32))
            law = np.zeros(n_states)
            law[marked] = 1.0 / len(marked)
            return labels, checks.float_array(law, "initial", (n_states,))
        return labels, initial_law(initial, n_states, labels)
