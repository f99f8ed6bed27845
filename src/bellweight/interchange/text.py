"""What the text formats of model checkers share: lines with their numbers, names of actions."""

from __future__ import annotations

import os
import re
import warnings
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from bellweight.common import checks
from bellweight.common.checks import FloatArray
from bellweight.common.status import BellweightWarning, FileError
from bellweight.interchange.assembly import are_near, initial_law
from bellweight.interchange.names import in_choice_order
from bellweight.interchange.notes import MARK, Notes, told_apart
from bellweight.models import TabularModel

SUM_TOLERANCE = 1e-5
"""How far a sum of probabilities may be from one in files of PRISM and Storm, as they allow."""

INIT = "init"
_GZIP = b"\x1f\x8b"  # how compressed files begin
_DIGITS = 20  # of a whole number: Python itself refuses to read thousands of them
NO_LABEL = "__NOLABEL__"  # how Storm writes that a choice has no name
_NUMBER = re.compile(r"_?(0|[1-9]\d{0,8})")


def opened(source: Path, newline: str | None = "") -> TextIO:
    """Open a file that another program may have written: UTF-8, with or without its mark."""
    try:
        return open(source, encoding="utf-8-sig", newline=newline)
    except FileNotFoundError:
        raise FileError(f"{source} does not exist: check the path") from None
    except OSError as problem:
        raise FileError(f"cannot read {source}: {problem.strerror}") from None


def no_text(source: Path) -> FileError:
    """Return the error about a file that is no UTF-8, with the line of the first wrong letter."""
    with source.open("rb") as packed:
        if packed.read(2) == _GZIP:
            return FileError(f"{source}, line 1: the file is compressed: unpack it with gunzip")
    # A wrong byte is read as a letter of its own, so that lines can be counted.
    with open(source, encoding="utf-8", errors="surrogateescape") as stream:
        for number, line in enumerate(stream, start=1):
            wrong = next((letter for letter in line if "\udc80" <= letter <= "\udcff"), None)
            if wrong is not None:
                said = f"the byte {ord(wrong) - 0xDC00:#04x} is no UTF-8: save the file as UTF-8"
                return FileError(f"{source}, line {number}: {said}")
    return FileError(f"{source} is no UTF-8: save the file as UTF-8")


class Lines:
    """The lines of a file that are neither empty nor comments, and the number of the last one."""

    def __init__(self, path: str | os.PathLike[str], comment: str) -> None:
        self.source, self.comment, self.number = Path(path), comment, 0
        self.notes = Notes()

    def __iter__(self) -> Iterator[str]:
        try:
            with opened(self.source, None) as stream:
                for self.number, line in enumerate(stream, start=1):
                    text = line.strip()
                    if text and not text.startswith(self.comment):
                        yield text
                    elif text.startswith(f"{self.comment} {MARK}"):
                        self.notes = self.noted(text.partition(MARK)[2])
        except UnicodeDecodeError:
            raise no_text(self.source) from None

    def line_of(self, row: int, counts: Callable[[str], bool]) -> int:
        """Return the number of line `row`, from 0 on, among the lines for which `counts` holds.

        The file is read again: line numbers are needed only in errors.
        """
        for text in self:
            row -= counts(text)
            if row < 0:
                break
        return self.number

    def noted(self, text: str) -> Notes:
        """Return the notes of a line, or say that they are damaged."""
        notes = Notes.read(text)
        if notes is None:
            raise self.wrong(
                "the names that Bellweight noted are damaged: delete the line, and names are as "
                "the file spells them"
            )
        return notes

    def wrong(self, said: str) -> FileError:
        """Return the error about the last line."""
        if self.number == 0:
            return FileError(f"{self.source} is empty (line 1): {said}")
        return FileError(f"{self.source}, line {self.number}: {said}")

    def whole(self, text: str, below: int) -> int:
        """Return a whole number from 0 to below - 1."""
        is_short = text.isdecimal() and text.isascii() and len(text) <= _DIGITS
        if not is_short or int(text) >= below:
            raise self.wrong(f"{text!r}, expected a whole number below {below}")
        return int(text)

    def real(self, text: str) -> float:
        """Return a number; fractions such as 1/3 are numbers too."""
        try:
            above, _, below = text.partition("/")
            return float(above) / float(below) if below else float(text)
        except (ValueError, ZeroDivisionError):
            raise self.wrong(f"{text!r}, expected a number") from None


def settled_actions(
    state: Any,
    choice: Any,
    code: Any,
    names: list[str],
    order: Sequence[str] | None,
    spelled: Callable[[str], str],
    notes: Notes,
) -> tuple[Any, tuple[str, ...] | None]:
    """Return the action index of each choice, and the labels of actions.

    Entry i says that choice[i] of state[i] has the name names[code[i]]. Without an order the notes
    decide, if they have all names; if not, names that are all whole numbers and not far apart are
    the indices. Otherwise indices are places in the order, whose names the file has as they are
    `spelled`, followed by the other names, in the order in which the states have them. Several
    choices of one state with the same name are told apart: go, go_2, go_3. One without a name goes
    by its number: a0, a1, ...
    """
    code, names = _with_names(choice, code, names)
    code, names = _told_apart(state, choice, code, names)
    noted = notes.indices(names) if order is None else None
    if noted is not None:
        return noted[code], notes.labels
    numbers = [_NUMBER.fullmatch(name) for name in names]
    if order is None and all(numbers):
        indices = np.array([int(match[1]) for match in numbers if match], dtype=np.int32)
        if are_near(int(indices.max()), len(names)):
            return indices[code], None
    labels = list(order or ())
    index = {spelled(label): place for place, label in enumerate(labels)}
    for name in (names[number] for number in in_choice_order(state, code, len(names))):
        if name not in index:
            index[name] = len(labels)
            labels.append(name)
    return np.array([index[name] for name in names], dtype=np.int32)[code], tuple(labels)


def _with_names(choice: Any, code: Any, names: list[str]) -> tuple[Any, list[str]]:
    """Return codes and names where every choice has one."""
    nameless = [number for number, name in enumerate(names) if name in ("", NO_LABEL)]
    if not nameless:
        return code, names
    others = [name for name in names if name not in ("", NO_LABEL)]
    prefix = "" if all(_NUMBER.fullmatch(name) for name in others) else "a"
    given = np.isin(code, nameless)
    index = {name: number for number, name in enumerate(names)}
    new = np.zeros(int(choice[given].max()) + 1, dtype=np.int32)
    for place in np.unique(choice[given]):
        new[place] = index.setdefault(f"{prefix}{place}", len(index))
    code = np.where(given, new[np.where(given, choice, 0)], code)
    used, first = np.unique(code, return_index=True)  # the missing name itself is gone
    used = used[np.argsort(first)]
    place = np.zeros(len(index), dtype=np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    listed = list(index)
    return place[code], [listed[number] for number in used]


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


def action_names(model: TabularModel, spelled: Callable[[str], str]) -> dict[int, str]:
    """Return the names of the actions in use as a file spells them; numbers without labels."""
    used = np.unique(model.pair_action).tolist()
    return dict(zip(used, told_apart((_action_name(model, a) for a in used), spelled), strict=True))


def _action_name(model: TabularModel, action: int) -> str:
    label = model.label(action)
    return f"a{action}" if label.strip() in ("", NO_LABEL) else label


def state_words(model: TabularModel) -> Iterator[list[str]]:
    """Yield the labels of each state, which are the words of its name, `init` among them."""
    names = model.state_labels or repeat("", model.n_states)
    starts = model.initial > 0.0
    for name, start in zip(names, starts, strict=True):
        yield [INIT] * bool(start) + [word for word in name.split() if word != INIT]


def warn_of_vectors(model: TabularModel) -> None:
    """Warn that a file has no place for vectors of states, unless they are the indices."""
    vectors = model.state_vectors
    if vectors is not None and not np.array_equal(vectors, np.arange(model.n_states)[:, None]):
        _warn(
            "the file cannot hold the vectors of states, on which bases are built: what is read "
            "from it has indices in their place"
        )


def warn_of_losses(model: TabularModel) -> None:
    """Warn where a file cannot hold the name of a state."""
    for state, name in enumerate(model.state_labels or ()):
        if INIT in name.split():
            _warn(
                f"{model.state_name(state)} has a name with the word {INIT}, which marks initial "
                "states in the file: it is left out"
            )
            return
        if name != " ".join(name.split()):
            _warn(
                f"{model.state_name(state)} has a name with more than single spaces between words, "
                "and the file has words only: they become single spaces"
            )
            return


def _warn(said: str) -> None:
    warnings.warn(said, BellweightWarning, stacklevel=4)


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

    def start_in(self, states: Sequence[int]) -> None:
        """Note initial states that are marked elsewhere."""
        self._marked.extend(states)

    def settle(
        self, initial: Any, n_states: int, noted: Sequence[float] | None
    ) -> tuple[tuple[str, ...] | None, FloatArray]:
        """Return the names of states, and the initial distribution.

        Where none is given, the states marked `init` have the probabilities that were noted, else
        the same; all states have, if none is marked.
        """
        labels = None
        if self._names:
            labels = tuple(self._names.get(state, "") for state in range(n_states))
        if initial is None and self._marked:
            marked = np.unique(np.frombuffer(self._marked, dtype=np.int32))
            law = np.zeros(n_states)
            fits = noted is not None and len(noted) == len(marked)
            law[marked] = noted if fits else 1.0 / len(marked)
            return labels, checks.float_array(law, "initial", (n_states,))
        return labels, initial_law(initial, n_states, labels)
