"""Policies for other programs: a table as CSV or JSON, or a Python file with one function.

The table has a row for each state and action with a positive probability:

    state    action    probability

States and actions go by their labels where these are unique, else by number.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bellweight.backends import backend_of
from bellweight.common import checks, files, optional
from bellweight.common.status import ArgumentError, FileError, PolicyError
from bellweight.interchange.assembly import tabular, unique_names
from bellweight.interchange.text import no_text
from bellweight.models import TabularModel
from bellweight.policies import (
    Greedy,
    HasPolicy,
    Policy,
    TablePolicy,
    checked_probabilities,
    policy_of,
)

_COLUMNS = ("state", "action", "probability")
_ENDINGS = (".csv", ".json", ".py")


def policy_columns(policy: Policy | HasPolicy, states: Any = None) -> dict[str, list[Any]]:
    """Return the table of a policy on all states of its model, or on the states given.

    The policy is bound to its model (`policy.on(model)`), as those of results are; a result will do
    in its place. States given are as `policy.actions` takes them; where a model's states cannot be
    listed, the policy must not be randomised there.
    """
    policy = _with_model(policy)
    model: Any = policy.model
    if states is not None and not backend_of(model).lists_states:
        return _columns_on(policy, model, states)
    model = tabular(model)
    chances = checked_probabilities(model, policy)
    taken = np.flatnonzero(chances > 0.0)
    if states is not None:
        listed = [model.check_state(state) for state in np.ravel(states).tolist()]
        taken = taken[np.isin(model.pair_state[taken], listed)]
    return {
        "state": _named(model.pair_state[taken], unique_names(model.state_labels)),
        "action": _named(model.pair_action[taken], unique_names(model.action_labels)),
        "probability": chances[taken].tolist(),
    }


def _columns_on(policy: Policy, model: Any, states: Any) -> dict[str, list[Any]]:
    """Return the table on states that are vectors; of a linear model actions are vectors too."""
    backend, actions = backend_of(model), policy.actions(states).tolist()
    keys = [tuple(s) if isinstance(s, list) else s for s in np.asarray(states).tolist()]
    if actions and not isinstance(actions[0], list):
        names = {action: backend.action_text(action) for action in set(actions)}
        if unique_names(tuple(names.values())):
            actions = [names[action] for action in actions]
    return {"state": keys, "action": actions, "probability": [1.0] * len(keys)}


def policy_frame(policy: Policy | HasPolicy, states: Any = None, kind: str | None = None) -> Any:
    """Return the table of a policy as a frame of `"pandas"` or `"polars"`, or as `"columns"`."""
    return optional.data_frame(policy_columns(policy, states), kind)


def write_policy(
    policy: Policy | HasPolicy, path: str | os.PathLike[str], states: Any = None
) -> Path:
    """Write a policy by the ending of the file: `.csv`, `.json`, or `.py`.

    The Python file needs nothing but Python: it has one function, `action(state)`, or
    `probabilities(state)` where the policy is randomised. Of a model whose states cannot be listed,
    give the `states` to write; without them a JSON file holds the coefficients of the value
    function and the names of its terms.
    """
    target = Path(path)
    ending = checks.one_of(target.suffix.lower(), "the ending of the file", _ENDINGS)
    policy = _with_model(policy)
    model: Any = policy.model
    if states is None and not backend_of(model).lists_states:
        if ending != ".json" or not isinstance(policy, Greedy):
            raise PolicyError(
                "the states of the model cannot be listed: give states=, or write the coefficients "
                "of a greedy policy to a .json file"
            )
        return files.write_json(target, _coefficients(policy))
    columns = policy_columns(policy, states)
    if ending == ".json":
        return files.write_json(target, columns)
    text = _csv_text(columns) if ending == ".csv" else _python_text(columns)
    return files.write_text(target, text)


def read_policy(path: str | os.PathLike[str], model: TabularModel) -> TablePolicy:
    """Return the policy of a table, CSV or JSON, that has a row for every state of the model.

    Errors name the line of a CSV file, and the entry of a JSON file, the first being 0.
    """
    model = tabular(model)
    source = Path(path)
    states = _index(unique_names(model.state_labels), model.n_states)
    actions = _index(unique_names(model.action_labels), model.n_actions)
    table = np.zeros((model.n_states, model.n_actions))
    for where, (state, action, chance) in _rows(source):
        try:
            table[states[str(state)], actions[str(action)]] += float(chance)
        except (KeyError, OverflowError, TypeError, ValueError):
            raise FileError(
                f"{source}, {where}: state {state!r}, action {action!r}, probability {chance!r}: "
                "expected a state and an action of the model and a number"
            ) from None
    policy = TablePolicy(table, model=model)
    checked_probabilities(model, policy)
    return policy


def _with_model(policy: Policy | HasPolicy) -> Policy:
    """Return a policy, or that of a result, that knows its model."""
    found = policy_of(policy)
    if found.model is None:
        raise PolicyError("the policy has no model: pass policy.on(model)")
    return found


def _named(indices: Any, names: tuple[str, ...] | None) -> list[Any]:
    return indices.tolist() if names is None else [names[index] for index in indices]


def _index(names: tuple[str, ...] | None, count: int) -> dict[str, int]:
    return {str(name): number for number, name in enumerate(names or range(count))}


def _coefficients(policy: Greedy) -> dict[str, Any]:
    dimension = len(backend_of(policy.model).variables)
    names = policy.basis.function_names(dimension)
    return {"functions": list(names), "coefficients": np.asarray(policy.coef).tolist()}


def _csv_text(columns: dict[str, list[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _python_text(columns: dict[str, list[Any]]) -> str:
    rows = list(zip(*columns.values(), strict=True))
    if all(chance == 1.0 for _, _, chance in rows):
        name, said = "action", "Return the action to take in a state."
        entries = [f"    {state!r}: {action!r},\n" for state, action, _ in rows]
    else:
        name, said = "probabilities", "Return the probability of each action in a state."
        found: dict[Any, dict[Any, float]] = {}
        for state, action, chance in rows:
            found.setdefault(state, {})[action] = chance
        entries = [f"    {state!r}: {chances!r},\n" for state, chances in found.items()]
    vectors = any(isinstance(state, tuple) for state, _, _ in rows)
    key = "tuple(state)" if vectors else "state"  # lists and arrays are vectors too
    return (
        f'"""A policy as a table: {name}(state)."""\n\n_TABLE = {{\n{"".join(entries)}}}\n\n\n'
        f'def {name}(state):\n    """{said}"""\n    return _TABLE[{key}]\n'
    )


def _rows(source: Path) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield where each row stands in a file, and the row."""
    ending = source.suffix.lower()
    if ending not in (".csv", ".json"):
        raise ArgumentError(f"{source} is no table, expected a file .csv or .json")
    try:
        text = source.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise no_text(source) from None
    except OSError as problem:
        raise FileError(f"cannot read {source}: {problem.strerror}") from None
    try:
        yield from _json_rows(text) if ending == ".json" else _csv_rows(text, source)
    except (KeyError, TypeError, ValueError, RecursionError, csv.Error) as problem:
        said = f"no {problem}" if isinstance(problem, KeyError) else str(problem)
        raise FileError(f"{source} is no table of state, action, probability: {said}") from None


def _csv_rows(text: str, source: Path) -> Iterator[tuple[str, tuple[Any, ...]]]:
    reader = csv.reader(io.StringIO(text, newline=""))
    header = [name.strip() for name in next(reader, [])]
    places = {name: place for place, name in enumerate(header)}
    wanted = [places[name] for name in _COLUMNS]
    for fields in reader:
        if fields:
            line = f"line {reader.line_num}"
            if len(fields) != len(header):
                raise FileError(f"{source}, {line}: {len(fields)} fields, expected {len(header)}")
            yield line, tuple(fields[place] for place in wanted)


def _json_rows(text: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
    columns = json.loads(text)
    rows = zip(*(columns[name] for name in _COLUMNS), strict=True)
    for number, row in enumerate(rows):
        yield f"entry {number}", row
