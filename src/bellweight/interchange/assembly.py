"""From a list of transitions to a tabular model, with errors that name the row.

Everything that reads single transitions ends here. A row r of the list is

    state[r]    action[r]    successor[r]    probability[r]    cost[r]

Rows of one pair may stand apart; repeated successors are merged. The cost of a pair is the average
over its successors, sum_j p_j c_j; where all its rows have the same cost it is that cost, to the
last digit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bellweight.common import checks, tolerances
from bellweight.common.blocks import blocks
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import ArgumentError, ModelError
from bellweight.models import TabularModel
from bellweight.models.tabular import OwnRows

_SPARE_INDICES = 10  # of actions that no state has
BLOCK = 1 << 18
"""Rows looked at together: masks as long as the list would cost memory."""


@dataclass
class Transitions:
    """Columns (n,) of transitions; indices may be of any whole type, costs of reward models too.

    Columns are `owned` where nobody else uses them; then the model may keep them.
    """

    state: Any
    action: Any
    successor: Any
    probability: FloatArray
    cost: FloatArray
    owned: bool = True


def tabular(model: Any) -> TabularModel:
    """Return a model whose states are listed, or say what to do with another."""
    if not isinstance(model, TabularModel):
        raise ModelError(
            f"model is {type(model).__name__}, expected a TabularModel: other packages list their "
            "states, so call model.to_tabular() first"
        )
    return model


def assembled(
    rows: Transitions,
    n_states: int,
    discount: float,
    initial: FloatArray,
    where: Callable[[int], str],
    *,
    tolerance: float = tolerances.PROBABILITY,
    **options: Any,
) -> TabularModel:
    """Return the model of a list of transitions; `where` names a row of the list in errors.

    Rows of probabilities whose sum is off by more than rounding and at most by `tolerance` are
    divided by it. `options` are those of `TabularModel.from_pairs`. The columns of the list are
    released on the way, so that they take no memory beside the model.
    """
    _check_numbers(rows, where)
    order = _order(rows)
    state, action = _taken(rows, "state", order), _taken(rows, "action", order)
    start = _pair_starts(state, action)
    pair_state, pair_action = state[start], action[start]
    del state, action
    successor = _taken(rows, "successor", order)
    _check_states(pair_state, successor, n_states, order, where, options.get("state_labels"))
    probability = _taken(rows, "probability", order)
    cost = _averages(probability, _taken(rows, "cost", None), start, order)
    sums = np.add.reduceat(probability, start)
    worst = _worst(sums)
    if abs(sums[worst] - 1.0) > tolerance:
        off = int(np.argmax(np.abs(sums - 1.0) > tolerance))
        first = int(start[off])
        raise ModelError(
            f"{where(first if order is None else int(order[first]))}: the probabilities of state "
            f"{pair_state[off]}, action {pair_action[off]} (it begins there) sum to "
            f"{sums[off]:.12g}, expected 1: add the missing successor or correct them"
        )
    if abs(sums[worst] - 1.0) > tolerances.PROBABILITY:
        probability = _scaled(probability, sums, start)
    kind = sparse.csr_array if order is None and not rows.owned else OwnRows
    transition = kind(
        (probability, successor, np.append(start, start.dtype.type(len(probability)))),
        shape=(len(start), n_states),
    )
    del order, successor, probability, sums, start
    return TabularModel.from_pairs(
        cost, transition, pair_state, pair_action, discount, initial, **options
    )


def _averages(
    probability: FloatArray, cost: FloatArray, start: IntArray, order: IntArray | None
) -> FloatArray:
    """Return the average cost of each pair over its rows, which begin at `start`.

    Only costs are still in the order of the list.
    """
    found = np.empty(len(start))
    for part in blocks(len(start), BLOCK):
        stop = start[part.stop] if part.stop < len(start) else len(cost)
        rows, begin = slice(start[part.start], stop), start[part] - start[part.start]
        own = cost[rows] if order is None else cost[order[rows]]
        least = np.minimum.reduceat(own, begin)
        is_one = least == np.maximum.reduceat(own, begin)
        average = np.add.reduceat(probability[rows] * own, begin)
        # The probabilities of a pair may add up to 1 - 1e-16; that must not change its only cost.
        found[part] = np.where(is_one, least, average)
    return found


def initial_law(initial: Any, n_states: int, names: Any = None) -> FloatArray:
    """Return the initial distribution: None is uniform, a state (index or name) is certain."""
    if n_states == 0:
        raise ModelError("the model is empty, expected at least one state")
    if initial is None:
        return np.full(n_states, 1.0 / n_states)
    if isinstance(initial, str):
        known = [str(name) for name in range(n_states)] if names is None else list(names)
        if initial not in known:
            raise ArgumentError(f"initial is {initial!r}, expected the name of a state")
        initial = known.index(initial)
    if checks.is_whole(initial):
        if not 0 <= initial < n_states:
            raise ArgumentError(f"initial is {initial}, expected a state from 0 to {n_states - 1}")
        law = np.zeros(n_states)
        law[initial] = 1.0
        return law
    return checks.float_array(initial, "initial", (n_states,))


def are_near(largest: int, count: int) -> bool:
    """Return whether so many different numbers up to the largest may be indices with gaps."""
    return largest < 2 * count + _SPARE_INDICES


def unique_names(labels: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return labels that can stand for what they name: all different and none empty."""
    usable = labels is not None and len(set(labels)) == len(labels) and "" not in labels
    return labels if usable else None


def given_cost(model: TabularModel) -> FloatArray:
    """Return costs (N,) as they were given: those of a reward model are rewards."""
    return -model.cost if model.sense == "max" else model.cost


def _check_numbers(rows: Transitions, where: Callable[[int], str]) -> None:
    if len(rows.probability) == 0:
        raise ModelError("there are no transitions, expected at least one")
    chance, cost = rows.probability, rows.cost
    bad = _first(len(chance), lambda part: ~((chance[part] >= 0.0) & (chance[part] <= 1.0 + 1e-5)))
    if bad is not None:
        raise ModelError(
            f"{where(bad)}: the probability is {chance[bad]}, expected a number between 0 and 1"
        )
    bad = _first(len(cost), lambda part: ~np.isfinite(cost[part]))
    if bad is not None:
        raise ModelError(
            f"{where(bad)}: the cost is {cost[bad]}, expected a finite number: leave the pair out "
            "if the action is not admissible"
        )


def _first(n: int, holds: Callable[[slice], Any]) -> int | None:
    """Return the first of n rows for which something holds, asked block by block."""
    for part in blocks(n, BLOCK):
        mask = holds(part)
        if mask.any():
            return part.start + int(np.argmax(mask))
    return None


def _check_states(
    pair_state: Any,
    successor: Any,
    n_states: int,
    order: IntArray | None,
    where: Callable[[int], str],
    labels: Any,
) -> None:
    """Complain about a state without a pair, with a row that leads to it if there is one."""
    missing = np.ones(n_states, dtype=np.bool_)
    missing[pair_state] = False
    if not missing.any():
        return
    leads = np.flatnonzero(missing[successor])
    row = int(leads[0]) if len(leads) else None
    state = int(np.argmax(missing)) if row is None else int(successor[row])
    place = "" if row is None else f"{where(row if order is None else int(order[row]))}: "
    named = f"state {state}" + (f" ({labels[state]})" if labels else "")
    raise ModelError(
        f"{place}{named} has no action, expected at least one: add its rows, or one that leads "
        "back to it if it cannot be left"
    )


def _order(rows: Transitions) -> IntArray | None:
    """Return the order of the rows by state, then action; None where they are sorted."""

    def is_late(part: slice) -> Any:
        after, state, action = next_rows(part), rows.state, rows.action
        above = (state[part] == state[after]) & (action[part] > action[after])
        return above | (state[part] > state[after])

    if _first(len(rows.state) - 1, is_late) is None:
        return None
    order = np.lexsort((rows.action, rows.state))
    return np.asarray(order.astype(np.int32 if len(order) < 2**31 else np.int64))


def _taken(rows: Transitions, name: str, order: IntArray | None) -> Any:
    """Return a column in an order, and remove it from the list to free its memory."""
    column = getattr(rows, name)
    delattr(rows, name)
    return column if order is None else column[order]


def _pair_starts(state: Any, action: Any) -> IntArray:
    """Return the rows at which a pair begins."""
    found = [np.zeros(1, dtype=np.int64)]
    for part in blocks(len(state) - 1, BLOCK):
        after = next_rows(part)
        new = (state[part] != state[after]) | (action[part] != action[after])
        found.append(np.flatnonzero(new) + after.start)
    starts: IntArray = np.concatenate(found, dtype=np.int32 if len(state) < 2**31 else np.int64)
    return starts


def next_rows(part: slice) -> slice:
    """Return the rows of a block, each moved on by one: the row after it."""
    return slice(part.start + 1, part.stop + 1)


def _worst(sums: FloatArray) -> int:
    """Return the sum that is farthest from one."""
    least, most = int(np.argmin(sums)), int(np.argmax(sums))
    return least if 1.0 - sums[least] > sums[most] - 1.0 else most


def _scaled(probability: FloatArray, sums: FloatArray, start: IntArray) -> FloatArray:
    """Return probabilities that add up to one in every pair, unchanged where they do already."""
    divisor = np.where(np.abs(sums - 1.0) > tolerances.PROBABILITY, sums, 1.0)
    return probability / np.repeat(divisor, np.diff(np.append(start, len(probability))))
