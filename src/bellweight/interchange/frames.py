"""Transitions as rows of a table: CSV files, and data frames of pandas or Polars.

Columns are `state`, `action`, `next`, `probability` and `cost`, or `reward` in place of `cost`.
States and actions are names or numbers. Numbers 0, 1, ... are indices; other numbers, such as 1, 2,
... or 1001, 1005, are names in their order. Rows of one pair may differ in cost: it is averaged. A
table holds neither discount nor initial distribution.
"""

from __future__ import annotations

import csv
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
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
_BLOCK = 20_000  # rows written at a time
_DIGITS = 9  # indices are below 2^31


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

    def read() -> Transitions:
        state, successor = state_names.codes(_column(frame, "state"), _column(frame, "next"))
        (action,) = action_names.codes(_column(frame, "action"))
        return Transitions(
            state,
            action,
            successor,
            _numbers(_column(frame, "probability"), "probability"),
            _numbers(_column(frame, cost_name), cost_name),
            owned=False,
        )

    rows = _numbered(read, state_names, action_names)
    return _model(
        rows, state_names, action_names, discount, initial, sense, name, lambda row: f"row {row}"
    )


def to_frame(model: TabularModel, kind: str | None = None) -> Any:
    """Return one row for each transition: a frame of `"pandas"` or `"polars"`, or `"columns"`.

    None is pandas where it is installed and a dictionary of arrays where not. A reward model has
    the column `reward`. States and actions go by their labels where these are unique.
    """
    return optional.data_frame(_columns(tabular(model)), kind)


def _columns(model: TabularModel) -> Iterator[tuple[str, Any]]:
    """Yield one column after the other, so that no two stand in memory at once."""
    pair = pair_of_transition(model)
    states, actions = unique_names(model.state_labels), unique_names(model.action_labels)
    yield "state", _named(model.pair_state.astype(np.int32)[pair], states)
    yield "action", _named(model.pair_action.astype(np.int32)[pair], actions)
    yield "next", _named(model.transition.indices, states)
    yield "probability", model.transition.data.copy()
    yield "reward" if model.sense == "max" else "cost", given_cost(model)[pair]


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
    sense = _sense_of(_header(source), str(source))
    rows = _numbered(
        lambda: _read_rows(source, state_names, action_names, sense), state_names, action_names
    )

    def where(row: int) -> str:
        return f"{source}, line {_line_of(source, row)}"

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


class _NoIndicesError(Exception):
    """Numbers are no indices: `names` must give out numbers for names."""

    def __init__(self, names: _Names) -> None:
        self.names = names


class _Names:
    """Indices of states or actions: numbers as they stand, a given order, or one per new name."""

    def __init__(self, given: Sequence[str] | None, what: str) -> None:
        self.given, self.what = given, what
        self.are_indices = given is None
        self.forget()

    def forget(self) -> None:
        """Begin again."""
        self.index: dict[str, int] = {str(n): i for i, n in enumerate(self.given or ())}
        self.largest = -1

    def codes(self, *columns: Any) -> list[Any]:
        """Return the index of each value of some columns."""
        whole = [values.dtype.kind in "iu" for values in columns]
        if all(whole) and self.are_indices:
            for values in columns:
                self._refuse_negative(values)
                self.largest = max(self.largest, int(values.max(initial=-1)))
            return list(columns)
        found = []
        for values in columns:
            each = (self.number(str(value).strip()) for value in values)
            found.append(np.fromiter(each, dtype=np.int32, count=len(values)))
            self._refuse_unknown(found[-1], values)
        if any(whole) and not all(whole) and not all(name.isdecimal() for name in self.index):
            raise ModelError(f"some columns name a {self.what} and others number it: do either")
        return found

    def number(self, name: str) -> int:
        """Return the index of a name; one that is not in the given order has -1."""
        if self.are_indices:
            if not name.isdecimal() or not name.isascii() or not _is_short(name):
                raise _NoIndicesError(self)
            number = int(name)
            self.largest = max(self.largest, number)
            return number
        if self.given is not None:
            return self.index.get(name, -1)
        return self.index.setdefault(name, len(self.index))

    def check_indices(self, used: Any, *, all_of_them: bool) -> None:
        """Complain where the numbers in use are not 0, 1, ...: all of them, or half and more."""
        if self.are_indices and len(used):
            count = self.largest + 1
            dense = count <= 2 * len(used) + 100
            found = int((np.bincount(used, minlength=count) > 0).sum()) if dense else 0
            if found < count and (all_of_them or count > 2 * found + 100):
                raise _NoIndicesError(self)

    def settle(self) -> tuple[int, tuple[str, ...] | None, Any]:
        """Return the count, the labels, and new indices for the numbers given out, if any.

        Names that are numbers stand in their order.
        """
        if self.are_indices:
            return self.largest + 1, None, None
        names = tuple(self.index)
        if self.given is not None or not all(n.isdecimal() and n.isascii() for n in names):
            return len(names), names, None
        order = sorted(range(len(names)), key=lambda i: (int(names[i]), names[i]))
        place = np.empty(len(names), dtype=np.int32)
        place[order] = np.arange(len(names), dtype=np.int32)
        return len(names), tuple(names[i] for i in order), place

    def _refuse_negative(self, values: Any) -> None:
        if len(values) and values.min() < 0:
            row = int(np.argmax(values < 0))
            raise ModelError(f"row {row}: the {self.what} is {values[row]}, expected 0 or more")

    def _refuse_unknown(self, found: Any, values: Any) -> None:
        if self.given is not None and (found < 0).any():
            row = int(np.argmax(found < 0))
            raise ModelError(
                f"row {row}: the {self.what} {values[row]!r} is not one of those given"
            )


def _is_short(name: str) -> bool:
    return len(name) <= _DIGITS and (name[0] != "0" or name == "0")


def _numbered(read: Callable[[], Transitions], states: _Names, actions: _Names) -> Transitions:
    """Return the transitions; what turns out not to be an index is read again as a name."""
    while True:
        states.forget()
        actions.forget()
        try:
            rows = read()
            states.check_indices(rows.state, all_of_them=True)
            actions.check_indices(rows.action, all_of_them=False)
            return rows
        except _NoIndicesError as found:
            found.names.are_indices = False


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


def _read_rows(source: Path, states: _Names, actions: _Names, sense: Sense) -> Transitions:
    """Return the rows of a file."""
    state, action, successor = array("i"), array("i"), array("i")
    probability, cost = array("d"), array("d")
    wanted = (*_COLUMNS, "cost" if sense == "min" else "reward")
    header = _header(source)
    places = [header.index(name) for name in wanted]
    for line, fields in _fields(source, len(header)):
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
    if not state:
        raise FileError(f"{source} has no rows below its header, expected transitions")
    return Transitions(
        np.frombuffer(state, dtype=np.int32),
        np.frombuffer(action, dtype=np.int32),
        np.frombuffer(successor, dtype=np.int32),
        np.frombuffer(probability),
        np.frombuffer(cost),
    )


def _header(source: Path) -> list[str]:
    return next((fields for _, fields in _records(source)), [])


def _fields(source: Path, count: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows below the header, each with its line."""
    for line, fields in islice(_records(source), 1, None):
        if len(fields) != count:
            raise FileError(f"{source}, line {line}: {len(fields)} fields, expected {count}")
        yield line, fields


def _line_of(source: Path, row: int) -> int:
    """Return the line of a row; the file is read again, so that no line has to be remembered."""
    return next(islice(_records(source), row + 1, None))[0]


def _records(source: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the fields of everything but empty lines, the header first."""
    with _opened(source) as stream:
        reader = csv.reader(stream)
        try:
            first = True
            for fields in reader:
                if fields:
                    yield reader.line_num, [f.strip() for f in fields] if first else fields
                    first = False
        except (csv.Error, UnicodeDecodeError) as problem:
            raise FileError(f"{source}, line {reader.line_num + 1}: {problem}") from None


def _opened(source: Path) -> Any:
    try:
        return open(source, encoding="utf-8-sig", newline="")
    except FileNotFoundError:
        raise FileError(f"{source} does not exist: check the path") from None
    except OSError as problem:
        raise FileError(f"cannot read {source}: {problem.strerror}") from None


def _named(indices: Any, names: tuple[str, ...] | None) -> Any:
    return indices.copy() if names is None else np.array(names, dtype=object)[indices]


def _texts(names: tuple[str, ...] | None, count: int) -> Sequence[Any]:
    """Return what stands for each state or action in a CSV file."""
    return range(count) if names is None else [_quoted(name) for name in names]


def _quoted(text: str) -> str:
    needs_quotes = any(letter in text for letter in ',"\r\n') or text != text.strip()
    return '"' + text.replace('"', '""') + '"' if needs_quotes else text


def _lines(
    model: TabularModel, cost: Any, states: Sequence[Any], actions: Sequence[Any], first: int
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
