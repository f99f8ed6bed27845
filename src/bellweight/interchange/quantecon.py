"""QuantEcon's `DiscreteDP`, in its product form and its form of state-action pairs.

QuantEcon maximises the rewards R; a pair with R = -inf is inadmissible. It has no initial
distribution.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from bellweight.common import checks, optional
from bellweight.common.status import ArgumentError
from bellweight.interchange.assembly import initial_law, tabular
from bellweight.models import TabularModel


def from_quantecon(
    problem: Any, initial: Any = None, *, name: str = "QuantEcon model"
) -> TabularModel:
    """Return the model of a `DiscreteDP` of either form, its pairs with R = -inf left out.

    `initial` is a distribution (S,) or one state; uniform over the states by default.
    """
    missing = [key for key in ("R", "Q", "beta", "num_states") if not hasattr(problem, key)]
    if missing:
        raise ArgumentError(
            f"problem is {type(problem).__name__} and has no {missing[0]}, expected a "
            "quantecon.markov.DiscreteDP"
        )
    rewards = np.asarray(problem.R, dtype=np.float64)
    labels = None
    if rewards.ndim == 2:
        if (rewards[:, -1] == -np.inf).all():  # labels keep an action that no state has
            labels = [str(action) for action in range(rewards.shape[1])]
        pair_state, pair_action = np.nonzero(rewards != -np.inf)
        rewards = rewards[pair_state, pair_action]
        transition = np.asarray(problem.Q)[pair_state, pair_action]
    else:
        kept = np.flatnonzero(rewards != -np.inf)
        pair_state, pair_action = problem.s_indices, problem.a_indices
        transition = problem.Q
        if len(kept) < len(rewards):
            rewards, transition = rewards[kept], transition[kept]
            pair_state, pair_action = pair_state[kept], pair_action[kept]
    return TabularModel.from_pairs(
        rewards,
        transition,
        pair_state,
        pair_action,
        float(problem.beta),
        initial_law(initial, problem.num_states),
        sense="max",
        action_labels=labels,
        name=name,
    )


def to_quantecon(model: TabularModel, form: str = "pairs", *, sparse_rows: bool = True) -> Any:
    """Return a model as a `DiscreteDP` with rewards that are minus the costs.

    `form` is `"pairs"` or `"product"`. Pairs keep their transitions sparse unless `sparse_rows` is
    off; the product form is dense, Q (S, A, S), with R = -inf and Q = 0 where an action is not
    admissible.
    """
    markov = optional.package("quantecon").markov
    checks.one_of(form, "form", ("pairs", "product"))
    model = tabular(model)
    if form == "pairs":
        rows = sparse.csr_matrix(model.transition)
        return markov.DiscreteDP(
            -model.cost,
            rows if sparse_rows else rows.toarray(),
            model.discount,
            model.pair_state.copy(),
            model.pair_action.copy(),
        )
    shape = (model.n_states, max(model.n_actions, len(model.action_labels or ())))
    rewards, transition = np.full(shape, -np.inf), np.zeros((*shape, model.n_states))
    rewards[model.pair_state, model.pair_action] = -model.cost
    transition[model.pair_state, model.pair_action] = model.transition.toarray()
    return markov.DiscreteDP(rewards, transition, model.discount)
