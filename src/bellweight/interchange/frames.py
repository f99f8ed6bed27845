"""Transitions as rows of a table: data frames of pandas or Polars; `csv_files.py` has the files.

Columns are `state`, `action`, `next`, `probability` and `cost`, or `reward` in place of `cost`.
States and actions are names or numbers. Numbers 0, 1, ... are indices, and those of actions may
have gaps; numbers of states such as 1, 2, ..., and numbers that are far apart such as 1001, 1005,
are names in their order. Numbers that are text, in a file those in quotes, are names. Rows of one
pair may differ in cost: it is averaged. A table holds neither discount nor initial distribution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bellweight.common import optional
from bellweight.common.status import ArgumentError, ModelError
from bellweight.interchange.assembly import (
    Transitions,
    assembled,
    given_cost,
    initial_law,
    tabular,
    unique_names,
)
from bellweight.interchange.names import Names, numbered
from bellweight.models import TabularModel
from bellweight.models.tabular import Sense

COLUMNS = ("state", "action", "next", "probability")
_MISSING = ("nan", "NaT", "<NA>", "None")  # how frames show that a cell is empty


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
    sense = sense_of(_names_of(frame), "the table")
    cost_name = "cost" if sense == "min" else "reward"
    state_names, action_names = Names(states, "state"), Names(actions, "action")

    def read() -> Transitions:
        _check_lengths(frame, (*COLUMNS, cost_name))
        state, successor = state_names.codes(_keys(frame, "state"), _keys(frame, "next"))
        (action,) = action_names.codes(_keys(frame, "action"))
        return Transitions(
            state,
            action,
            successor,
            _numbers(_column(frame, "probability"), "probability"),
            _numbers(_column(frame, cost_name), cost_name),
            owned=False,
        )

    rows = numbered(read, state_names, action_names)
    return named_model(
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
    moves = np.diff(model.transition.indptr)
    states, actions = table_names(model.state_labels), table_names(model.action_labels)
    yield "state", _named(np.repeat(model.pair_state.astype(np.int32), moves), states)
    yield "action", _named(np.repeat(model.pair_action.astype(np.int32), moves), actions)
    yield "next", _named(model.transition.indices.copy(), states)
    yield "probability", model.transition.data.copy()
    yield "reward" if model.sense == "max" else "cost", np.repeat(given_cost(model), moves)


def table_names(labels: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return labels that tables can have in place of indices; outer spaces are refused."""
    names = unique_names(labels)
    wrong = next((name for name in names or () if name != name.strip()), None)
    if wrong is not None:
        raise ModelError(
            f"the label {wrong!r} begins or ends with a space, which tables do not keep: rename it"
        )
    return names


def named_model(
    rows: Transitions,
    states: Names,
    actions: Names,
    discount: float,
    initial: Any,
    sense: Sense,
    name: str,
    where: Any,
) -> TabularModel:
    """Return the model of rows whose states and actions were given out by their names."""
    n_states, state_labels, state_order = states.settle(rows.state)
    _, action_labels, action_order = actions.settle(rows.action, rows.state)
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
    if hasattr(frame, "collect") or not (hasattr(frame, "columns") or isinstance(frame, Mapping)):
        raise ArgumentError(
            f"the table is {type(frame).__name__}, expected a frame of pandas or Polars or a "
            "dictionary of columns: a lazy frame has collect()"
        )
    return [str(name) for name in (frame if isinstance(frame, Mapping) else frame.columns)]


def _check_lengths(frame: Any, names: Sequence[str]) -> None:
    lengths = [_length(frame[name]) for name in names]
    for name, length in zip(names, lengths, strict=True):
        if length is None or length != lengths[0]:
            found = "is no list" if length is None else f"has {length} rows"
            raise ModelError(
                f"the column {name} {found}, expected one value for each row, as many as "
                f"{names[0]} has"
            )


def _length(column: Any) -> int | None:
    is_one = isinstance(column, str) or not hasattr(column, "__len__")
    return None if is_one or getattr(column, "ndim", 1) != 1 else len(column)


def sense_of(names: list[str], what: str) -> Sense:
    """Return whether the columns have costs or rewards, or say which of them is missing."""
    repeated = [name for name in (*COLUMNS, "cost", "reward") if names.count(name) > 1]
    if repeated:
        raise ModelError(
            f"{what} has several columns {repeated[0]}, expected one: rename the others"
        )
    missing = [name for name in COLUMNS if name not in names]
    if missing or ("cost" in names) == ("reward" in names):
        lacking = missing[0] if missing else "either cost or reward"
        raise ModelError(
            f"{what} has the columns {', '.join(names)}, expected state, action, next, probability "
            f"and cost (or reward): add {lacking}"
        )
    return "min" if "cost" in names else "max"


def _column(frame: Any, name: str) -> Any:
    column = frame[name]
    if hasattr(column, "to_numpy"):
        return column.to_numpy()
    values = np.asarray(column)
    # Among words NumPy would make a missing number the word nan.
    return np.asarray(column, dtype=object) if values.dtype.kind == "U" else values


def _keys(frame: Any, name: str) -> Any:
    """Return a column of states or actions, without a gap; whole numbers may come as floats."""
    values = _column(frame, name)
    if values.dtype.kind == "i" and values.itemsize >= 4:
        return values
    if values.dtype.kind in "iu":  # narrow ones do not hold what is computed with them
        return values.astype(np.int32 if values.itemsize < 4 else np.int64)
    for row, value in enumerate(values):
        if not value.strip() if isinstance(value, str) else str(value) in _MISSING:
            raise ModelError(f"row {row}: the {name} is missing, expected a name or a number")
    if values.dtype.kind == "f" and (values % 1 == 0).all():
        return values.astype(np.int64)
    return values


def _numbers(values: Any, name: str) -> Any:
    if np.iscomplexobj(values):
        raise ModelError(f"the {name} is complex, expected real numbers")
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        for row, value in enumerate(values):
            try:
                float(value)
            except (TypeError, ValueError):
                raise ModelError(f"row {row}: the {name} is '{value}', expected a number") from None
        raise


def _named(indices: Any, names: tuple[str, ...] | None) -> Any:
    return indices if names is None else np.array(names, dtype=object)[indices]
