"""Transitions as rows of a table: CSV files, and data frames of pandas or Polars.

Columns are `state`, `action`, `next`, `probability` and `cost`, or `reward` in place of `cost`.
States and actions are names or numbers; numbers 0, 1, ... are indices. Rows of one pair may differ
in cost: it is averaged. A table holds neither discount nor initial distribution.
"""

from __future__ import annotations

import csv
import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from bellweight.common import files, optional
from bellweight.common.status import FileError, ModelError
from bellweight.interchange.assembly import (
    Transitions,
    assembled,
    given_cost,
    initial_law,
    pair_of_transition,
    tabular,
    unique_names,
)
from bellweight.models import TabularModel
from bellweight.models.tabular import Sense

_COLUMNS = ("state", "action", "next", "probability")
_BLOCK = 100_000  # rows written at a time


def from_frame(
    frame: Any,
    discount: float,
    initial: Any = None,
    *,
    states: Sequence[str] | None = None,
    actions: Sequence[str] | None = None,
    name: str = "table of transitions",
) -> TabularModel:
    """Return the model of a pandas or Polars frame, or of a dictionary of columns.

    `initial` is a distribution (S,), or one state by name or index; uniform by default. `states`
    and `actions` give the order of names, which is else the order in which they first appear.
    Errors name the row, the first being row 0.
    """
    sense = _sense_of(_names_of(frame), "the table")
    cost_name = "cost" if sense == "min" else "reward"
    state_names, action_names = _Names(states, "state"), _Names(actions, "action")
    state = state_names.codes(_column(frame, "state"))
    action = action_names.codes(_column(frame, "action"))
    rows = Transitions(
        state,
        action,
        state_names.codes(_column(frame, "next")),
        _numbers(_column(frame, "probability"), "probability"),
        _numbers(_column(frame, cost_name), cost_name),
    )
    return _model(rows, state_names, action_names, discount, initial, sense, name, _row)


def to_frame(model: TabularModel, kind: str | None = None) -> Any:
    """Return one row for each transition: a frame of `"pandas"` or `"polars"`, or `"columns"`.

    None is pandas where it is installed and a dictionary of arrays where not. A reward model has
    the column `reward`. States and actions go by their labels where these are unique.
    """
    model = tabular(model)
    pair = pair_of_transition(model)
    state, action = model.pair_state[pair], model.pair_action[pair]
    columns = {
        "state": _named(state, unique_names(model.state_labels)),
        "action": _named(action, unique_names(model.action_labels)),
        "next": _named(model.transition.indices, unique_names(model.state_labels)),
        "probability": model.transition.data.copy(),
        "reward" if model.sense == "max" else "cost": given_cost(model)[pair],
    }
    return optional.data_frame(columns, kind)


def read_csv(
    path: str | os.PathLike[str],
    discount: float,
    initial: Any = None,
    *,
    states: Sequence[str] | None = None,
    actions: Sequence[str] | None = None,
) -> TabularModel:
    """Return the model of a CSV file with a header; as `from_frame`, and errors name the line."""
    source = Path(path)
    state_names, action_names = _Names(states, "state"), _Names(actions, "action")
    rows, lines, sense = _read_rows(source, state_names, action_names)

    def where(row: int) -> str:
        return f"{source}, line {lines[row]}"

    return _model(rows, state_names, action_names, discount, initial, sense, source.stem, where)


def write_csv(model: TabularModel, path: str | os.PathLike[str]) -> Path:
    """Write one line for each transition, numbers with all their digits."""
    model = tabular(model)
    cost = given_cost(model)
    states = _texts(unique_names(model.state_labels), model.n_states)
    actions = _texts(unique_names(model.action_labels), model.n_actions)
    last = "reward" if model.sense == "max" else "cost"

    def write(stream: BinaryIO) -> None:
        stream.write(f"{','.join(_COLUMNS)},{last}\n".encode())
        for first in range(0, model.transition.nnz, _BLOCK):
            stream.write(_lines(model, cost, states, actions, first).encode())

    return files.write_whole(path, write)


class _Names:
    """Numbers for names: a given order, or that of first appearance."""

    def __init__(self, given: Sequence[str] | None, what: str) -> None:
        self.given, self.what = given, what
        self.index: dict[Any, int] = {str(n): i for i, n in enumerate(given or ())}
        self.largest = -1  # of indices given as whole numbers

    def codes(self, values: Any) -> Any:
        """Return the index of each value of a column."""
        if values.dtype.kind in "iu" and self.given is None and not self.index:
            if len(values) and values.min() < 0:
                row = int(np.argmax(values < 0))
                raise ModelError(f"row {row}: the {self.what} is {values[row]}, expected 0 or more")
            self.largest = max(self.largest, int(values.max(initial=-1)))
            return values
        if self.largest >= 0:
            raise ModelError(f"some columns name a {self.what} and others number it: do either")
        found = np.fromiter(
            (self.number(str(v)) for v in values), dtype=np.int32, count=len(values)
        )
        self._refuse_unknown(found, values)
        return found

    def number(self, name: str) -> int:
        """Return the index of a name; one that is not in the given order has -1."""
        if self.given is not None:
            return self.index.get(name, -1)
        return self.index.setdefault(name, len(self.index))

    def settle(self) -> tuple[int, tuple[str, ...] | None, Any]:
        """Return the count, the labels, and new indices for the numbers given out, if any.

        Names that are the numbers 0, 1, ... are indices themselves.
        """
        if self.largest >= 0:
            return self.largest + 1, None, None
        names = tuple(self.index)
        if self.given is None and all(name.isdecimal() and name.isascii() for name in names):
            numbers = np.array([int(name) for name in names])
            top = int(numbers.max(initial=-1)) + 1
            if len(set(numbers.tolist())) == len(names) and top <= 2 * len(names) + 100:
                return top, None, numbers.astype(np.int32)
        return len(names), names, None

    def _refuse_unknown(self, found: Any, values: Any) -> None:
        if self.given is not None and (found < 0).any():
            row = int(np.argmax(found < 0))
            raise ModelError(
                f"row {row}: the {self.what} {values[row]!r} is not one of those given"
            )


def _model(
    rows: Transitions,
    states: _Names,
    actions: _Names,
    discount: float,
    initial: Any,
    sense: Sense,
    name: str,
    where: Any,
) -> TabularModel:
    n_states, state_labels, state_order = states.settle()
    _, action_labels, action_order = actions.settle()
    if state_order is not None:
        rows.state, rows.successor = state_order[rows.state], state_order[rows.successor]
    if action_order is not None:
        rows.action = action_order[rows.action]
    return assembled(
        rows,
        n_states,
        discount,
        initial_law(initial, n_states, state_labels),
        where,
        sense=sense,
        state_labels=state_labels,
        action_labels=action_labels,
        name=name,
    )


def _row(row: int) -> str:
    return f"row {row}"


def _names_of(frame: Any) -> list[str]:
    names = frame.columns if hasattr(frame, "columns") else frame
    return [str(name) for name in names]


def _sense_of(names: list[str], what: str) -> Sense:
    missing = [name for name in _COLUMNS if name not in names]
    if missing or ("cost" in names) == ("reward" in names):
        lacking = missing[0] if missing else "either cost or reward"
        raise ModelError(
            f"{what} has the columns {', '.join(names)}, expected state, action, next, probability "
            f"and cost (or reward): add {lacking}"
        )
    return "min" if "cost" in names else "max"


def _column(frame: Any, name: str) -> Any:
    column = frame[name]
    return column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)


def _numbers(values: Any, name: str) -> Any:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        for row, value in enumerate(values):
            try:
                float(value)
            except (TypeError, ValueError):
                raise ModelError(f"row {row}: the {name} is '{value}', expected a number") from None
        raise


def _read_rows(source: Path, states: _Names, actions: _Names) -> tuple[Transitions, Any, Sense]:
    """Return the rows of a file with the line that each stands on, and its sense."""
    state, action, successor = array("i"), array("i"), array("i")
    probability, cost, lines = array("d"), array("d"), array("i")
    with _opened(source) as stream:
        reader = csv.reader(stream)
        header = [name.strip() for name in next(reader, [])]
        sense = _sense_of(header, str(source))
        wanted = (*_COLUMNS, "cost" if sense == "min" else "reward")
        places = [header.index(name) for name in wanted]
        for line, fields in _fields(source, reader, len(header)):
            x, a, y, p, c = (fields[place] for place in places)
            state.append(states.number(x.strip()))
            action.append(actions.number(a.strip()))
            successor.append(states.number(y.strip()))
            try:
                probability.append(float(p))
                cost.append(float(c))
            except ValueError:
                raise FileError(
                    f"{source}, line {line}: probability and {wanted[-1]} are {p!r} and {c!r}, "
                    "expected numbers"
                ) from None
            if min(state[-1], action[-1], successor[-1]) < 0:
                raise FileError(f"{source}, line {line}: a name that is not one of those given")
            lines.append(line)
    if not lines:
        raise FileError(f"{source} has no rows below its header, expected transitions")
    rows = Transitions(
        np.frombuffer(state, dtype=np.int32),
        np.frombuffer(action, dtype=np.int32),
        np.frombuffer(successor, dtype=np.int32),
        np.frombuffer(probability),
        np.frombuffer(cost),
    )
    return rows, lines, sense


def _fields(source: Path, reader: Any, count: int) -> Iterator[tuple[int, list[str]]]:
    try:
        for fields in reader:
            if not fields:
                continue
            if len(fields) != count:
                raise FileError(
                    f"{source}, line {reader.line_num}: {len(fields)} fields, expected {count}"
                )
            yield reader.line_num, fields
    except (csv.Error, UnicodeDecodeError) as problem:
        raise FileError(f"{source}, line {reader.line_num}: {problem}") from None


def _opened(source: Path) -> Any:
    try:
        return open(source, encoding="utf-8-sig", newline="")
    except FileNotFoundError:
        raise FileError(f"{source} does not exist: check the path") from None
    except OSError as problem:
        raise FileError(f"cannot read {source}: {problem.strerror}") from None


def _named(indices: Any, names: tuple[str, ...] | None) -> Any:
    return indices.copy() if names is None else np.array(names, dtype=object)[indices]


def _texts(names: tuple[str, ...] | None, count: int) -> list[str]:
    """Return names as CSV fields."""
    return [_quoted(name) for name in (map(str, range(count)) if names is None else names)]


def _quoted(text: str) -> str:
    needs_quotes = any(letter in text for letter in ',"\r\n') or text != text.strip()
    return '"' + text.replace('"', '""') + '"' if needs_quotes else text


def _lines(
    model: TabularModel, cost: Any, states: list[str], actions: list[str], first: int
) -> str:
    rows = model.transition
    last = min(first + _BLOCK, rows.nnz)
    pair = np.searchsorted(rows.indptr, np.arange(first, last), side="right") - 1
    parts: Iterable[tuple[Any, ...]] = zip(
        model.pair_state[pair].tolist(),
        model.pair_action[pair].tolist(),
        rows.indices[first:last].tolist(),
        rows.data[first:last].tolist(),
        cost[pair].tolist(),
        strict=True,
    )
    return "".join(f"{states[x]},{actions[a]},{states[y]},{p!r},{c!r}\n" for x, a, y, p, c in parts)
