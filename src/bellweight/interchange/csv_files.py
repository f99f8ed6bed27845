"""Transitions as lines of a CSV file: the columns are those of `frames.py`."""

from __future__ import annotations

import csv
import os
import re
import warnings
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from bellweight.common import files
from bellweight.common.blocks import blocks
from bellweight.common.status import BellweightWarning, FileError
from bellweight.interchange.assembly import Transitions, given_cost, tabular
from bellweight.interchange.frames import COLUMNS, named_model, sense_of, table_names
from bellweight.interchange.names import Names, numbered
from bellweight.interchange.text import no_text, opened, warn_of_vectors
from bellweight.models import TabularModel
from bellweight.models.tabular import Sense

_BLOCK = 20_000  # rows written at a time
_FIELD = re.compile(r'\s*("(?:[^"]|"")*"|[^,]*)\s*(,|$)')


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
    state_names, action_names = Names(states, "state"), Names(actions, "action")
    header = _header(source)
    sense = sense_of(header, str(source))
    quoted = _quoted_columns(source, header)
    if "state" in quoted or "next" in quoted:
        state_names.take_as_text()
    if "action" in quoted:
        action_names.take_as_text()
    rows = numbered(
        lambda: _read_rows(source, state_names, action_names, sense), state_names, action_names
    )

    def where(row: int) -> str:
        return f"{source}, line {_line_of(source, row)}"

    return named_model(
        rows, state_names, action_names, discount, initial, sense, source.stem, where
    )


def write_csv(model: TabularModel, path: str | os.PathLike[str]) -> Path:
    """Write one line for each transition, numbers with all their digits."""
    model = tabular(model)
    warn_of_vectors(model)
    cost = given_cost(model)
    states = _texts(model.state_labels, model.n_states, "state")
    actions = _texts(model.action_labels, model.n_actions, "action")
    last = "reward" if model.sense == "max" else "cost"

    rows = blocks(model.transition.nnz, _BLOCK)
    lines = (_lines(model, cost, states, actions, part) for part in rows)
    return files.write_parts(path, chain([f"{','.join(COLUMNS)},{last}\n"], lines))


def _read_rows(source: Path, states: Names, actions: Names, sense: Sense) -> Transitions:
    """Return the rows of a file."""
    state, action, successor = array("i"), array("i"), array("i")
    probability, cost = array("d"), array("d")
    wanted = (*COLUMNS, "cost" if sense == "min" else "reward")
    header = _header(source)
    places = [header.index(name) for name in wanted]
    for line, fields in _fields(source, len(header)):
        x, a, y, p, c = (fields[place].strip() for place in places)
        if not (x and a and y):
            raise FileError(f"{source}, line {line}: state, action or next is empty")
        state.append(states.number(x))
        action.append(actions.number(a))
        successor.append(states.number(y))
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
    names = next((fields for _, fields in _records(source)), [])
    if not names:
        raise FileError(f"{source} is empty (line 1): expected the names of columns")
    other = next((mark for mark in ";\t|" if len(names) == 1 and mark in names[0]), None)
    if other is not None:
        raise FileError(
            f"{source}, line 1: columns are separated by {other!r}, expected commas: save it with "
            "commas between columns and points in numbers"
        )
    return names


def _quoted_columns(source: Path, header: list[str]) -> set[str]:
    """Return the columns that are in quotes in the first row; numbers there are names."""
    lines = [line for line, _ in islice(_records(source), 2)]
    with opened(source) as stream:
        text = "".join(islice(stream, lines[0], lines[-1])).strip() if lines else ""
    starts = [field.startswith('"') for field, _ in _FIELD.findall(text)]
    return {name for name, start in zip(header, starts, strict=False) if start}


def _fields(source: Path, count: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows below the header, each with its line."""
    for line, fields in islice(_records(source), 1, None):
        if len(fields) != count:
            raise FileError(f"{source}, line {line}: {len(fields)} fields, expected {count}")
        yield line, fields


def _line_of(source: Path, row: int) -> int:
    """Return the line of a row; the file is read again, as only errors need lines."""
    return next(islice(_records(source), row + 1, None))[0]


def _records(source: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the fields of everything but empty lines, the header first."""
    with opened(source) as stream:
        reader = csv.reader(stream)
        try:
            first = True
            for fields in reader:
                if fields:
                    yield reader.line_num, [f.strip() for f in fields] if first else fields
                    first = False
        except UnicodeDecodeError:
            raise no_text(source) from None
        except csv.Error as problem:
            raise FileError(f"{source}, line {reader.line_num}: {problem}") from None


def _texts(labels: tuple[str, ...] | None, count: int, what: str) -> Sequence[Any]:
    """Return what stands for each state or action in a CSV file."""
    names = table_names(labels)
    if names is None and labels is not None:
        warnings.warn(
            f"the {what} labels are not all different, so the file has numbers in their place",
            BellweightWarning,
            stacklevel=3,
        )
    return range(count) if names is None else [_quoted(name) for name in names]


def _quoted(text: str) -> str:
    """Return a name as a field; a number is put in quotes, or it would be read as an index."""
    needs_quotes = text.isdecimal() or any(letter in text for letter in ',"\r\n')
    return '"' + text.replace('"', '""') + '"' if needs_quotes else text


def _lines(
    model: TabularModel, cost: Any, states: Sequence[Any], actions: Sequence[Any], part: slice
) -> str:
    rows = model.transition
    pair = np.searchsorted(rows.indptr, np.arange(part.start, part.stop), side="right") - 1
    parts: Iterable[tuple[Any, ...]] = zip(
        model.pair_state[pair].tolist(),
        model.pair_action[pair].tolist(),
        rows.indices[part].tolist(),
        rows.data[part].tolist(),
        cost[pair].tolist(),
        strict=True,
    )
    return "".join(f"{states[x]},{actions[a]},{states[y]},{p!r},{c!r}\n" for x, a, y, p, c in parts)
