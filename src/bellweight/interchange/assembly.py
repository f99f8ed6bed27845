"""From a list of transitions to a tabular model, with errors that name the row.

Every border that reads single transitions ends here. A row r of the list is

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
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import ArgumentError, ModelError
from bellweight.models import TabularModel
from bellweight.models.tabular import OwnRows, compact

_SPARE_INDICES = 10  # of actions that no state has


@dataclass
class Transitions:
    """Columns (n,) of transitions; indices may be of any whole type, costs of reward models too.

    Columns are `owned` where nobody else holds them: the model may keep them then.
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
    divided by it. `options` are those of `TabularModel.from_pairs`. The list is used up: its
    columns are gone afterwards, so that they do not stand in memory beside the model.
    """
    _check_numbers(rows, where)
    order = _sort(rows)
    start = _pair_starts(rows.state, rows.action)
    pair_state, pair_action = rows.state[start], rows.action[start]
    _check_states(pair_state, rows.successor, n_states, order, where, options.get("state_labels"))
    del rows.state, rows.action
    cost = pair_averages(rows.probability, rows.cost, start)
    del rows.cost
    sums = np.add.reduceat(rows.probability, start)
    off = checks.first_index(~(np.abs(sums - 1.0) <= tolerance))
    if off is not None:
        first = int(start[off])
        raise ModelError(
            f"{where(first if order is None else int(order[first]))}: the probabilities of state "
            f"{pair_state[off]}, action {pair_action[off]} (it begins there) sum to "
            f"{sums[off]:.12g}, expected 1: add the missing successor or correct them"
        )
    del order
    probability = _scaled(rows.probability, sums, start)
    kind = OwnRows if rows.owned else sparse.csr_array
    transition = kind(
        (probability, rows.successor, compact(np.append(start, len(probability)))),
        shape=(len(start), n_states),
    )
    del rows.probability, rows.successor, probability, sums, start
    return TabularModel.from_pairs(
        cost, transition, pair_state, pair_action, discount, initial, **options
    )


def pair_averages(probability: FloatArray, cost: FloatArray, start: IntArray) -> FloatArray:
    """Return the average cost of each pair over its rows, which begin at `start`."""
    least, most = np.minimum.reduceat(cost, start), np.maximum.reduceat(cost, start)
    # The probabilities of a pair may add up to 1 - 1e-16; that must not change its only cost.
    if (least == most).all():
        return least
    return np.where(least == most, least, np.add.reduceat(probability * cost, start))


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
    if isinstance(initial, int | np.integer) and not isinstance(initial, bool):
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
    bad = checks.first_index(~((rows.probability >= 0.0) & (rows.probability <= 1.0 + 1e-5)))
    if bad is not None:
        raise ModelError(
            f"{where(bad[0])}: the probability is {rows.probability[bad]}, expected a number "
            "between 0 and 1"
        )
    bad = checks.first_index(~np.isfinite(rows.cost))
    if bad is not None:
        raise ModelError(
            f"{where(bad[0])}: the cost is {rows.cost[bad]}, expected a finite number: leave the "
            "pair out if the action is not admissible"
        )


def _check_states(
    pair_state: Any,
    successor: Any,
    n_states: int,
    order: IntArray | None,
    where: Callable[[int], str],
    labels: Any,
) -> None:
    """Complain about a state without a pair, with a row that leads to it if there is one."""
    missing = np.bincount(pair_state, minlength=n_states) == 0
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


def _sort(rows: Transitions) -> IntArray | None:
    """Sort the rows by state, then action; return the order, None where they were sorted."""
    state, action = rows.state, rows.action
    ahead = (state[1:] > state[:-1]) | ((state[1:] == state[:-1]) & (action[1:] >= action[:-1]))
    if ahead.all():
        return None
    order = np.lexsort((action, state))
    rows.state, rows.action, rows.successor = state[order], action[order], rows.successor[order]
    rows.probability, rows.cost = rows.probability[order], rows.cost[order]
    return np.asarray(order)


def _pair_starts(state: Any, action: Any) -> IntArray:
    changes = (state[1:] != state[:-1]) | (action[1:] != action[:-1])
    return np.append(0, np.flatnonzero(changes) + 1)


def _scaled(probability: FloatArray, sums: FloatArray, start: IntArray) -> FloatArray:
    """Return probabilities that add up to one in every pair, unchanged where they do already."""
    divisor = np.where(np.abs(sums - 1.0) > tolerances.PROBABILITY, sums, 1.0)
    if (divisor == 1.0).all():
        return probability
    return probability / np.repeat(divisor, np.diff(np.append(start, len(probability))))
