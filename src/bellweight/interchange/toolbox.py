"""Arrays as MDP toolboxes have them: pymdptoolbox, and MDPtoolbox for MATLAB.

Transitions are (A, S, S), an array or one matrix per action, sparse or not. Rewards are (S,),
(S, A), or (A, S, S) by successor; those by successor are averaged, R(s, a) = sum_j P_a(s, j)
R_a(s, j), as the toolboxes do. Every action is admissible in every state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError, ModelError
from bellweight.interchange.assembly import initial_law, tabular
from bellweight.models import TabularModel
from bellweight.models.tabular import Sense


def from_toolbox(
    transitions: Any,
    reward: Any,
    discount: float,
    initial: Any = None,
    *,
    sense: Sense = "max",
    **options: Any,
) -> TabularModel:
    """Return the model of toolbox arrays; `sense="min"` where `reward` holds costs.

    Arrays (S, S, A) of MATLAB become `numpy.moveaxis(array, -1, 0)`. `initial` is a distribution
    (S,) or one state; uniform by default. `options` are those of `TabularModel.from_pairs`.
    """
    matrices = _matrices(transitions)
    n_states = matrices[0].shape[0]
    for action, matrix in enumerate(matrices):
        if matrix.shape != (n_states, n_states):
            raise ModelError(
                f"transitions[{action}] has shape {matrix.shape}, expected ({n_states}, "
                f"{n_states}): arrays of MATLAB are numpy.moveaxis(array, -1, 0)"
            )
    return TabularModel.from_arrays(
        _rewards(reward, matrices),
        matrices,
        discount,
        initial_law(initial, n_states),
        sense=sense,
        **options,
    )


def to_toolbox(model: TabularModel) -> tuple[tuple[sparse.csr_matrix, ...], FloatArray]:
    """Return transitions, one sparse (S, S) matrix per action, and rewards (S, A).

    The rewards are minus the costs. A model with inadmissible actions is refused: toolboxes have
    none.
    """
    model = tabular(model)
    counts = np.diff(model.pair_start)
    if (counts < model.n_actions).any():
        state = int(np.argmax(counts < model.n_actions))
        raise ModelError(
            f"{model.state_name(state)} has {counts[state]} of {model.n_actions} actions, and a "
            "toolbox takes every action in every state: use to_quantecon, which has pairs"
        )
    rewards = (-model.cost).reshape(model.n_states, model.n_actions)
    matrices = tuple(
        sparse.csr_matrix(model.transition[action :: model.n_actions])
        for action in range(model.n_actions)
    )
    return matrices, rewards


def _matrices(transitions: Any) -> list[Any]:
    one_array = isinstance(transitions, np.ndarray) and transitions.dtype != object
    if one_array and transitions.ndim != 3:
        raise ModelError(
            f"transitions has shape {transitions.shape}, expected (actions, states, states)"
        )
    if sparse.issparse(transitions) or not isinstance(transitions, Sequence | np.ndarray):
        raise ModelError(
            f"transitions is {type(transitions).__name__}, expected an array (actions, states, "
            "states) or one matrix per action"
        )
    found = [m if sparse.issparse(m) else _array(m, "transitions") for m in transitions]
    if not found:
        raise ModelError("transitions is empty, expected one matrix per action")
    return found


def _array(values: Any, name: str) -> FloatArray:
    """Return real numbers as they are, or say that they are none."""
    try:
        if not np.iscomplexobj(values):
            return np.asarray(values, dtype=np.float64)
        problem = "complex numbers"
    except (TypeError, ValueError) as failed:
        problem = str(failed)
    raise ModelError(f"{name} is not an array of numbers ({problem}): pass real numbers")


def _rewards(reward: Any, matrices: list[Any]) -> FloatArray:
    """Return rewards (S, A)."""
    n_actions, n_states = len(matrices), matrices[0].shape[0]
    if sparse.issparse(reward):
        raise ArgumentError("reward is one sparse matrix, expected (S,), (S, A) or one per action")
    by_successor = isinstance(reward, Sequence | np.ndarray) and len(reward) == n_actions
    if by_successor and all(getattr(part, "shape", ()) == (n_states,) * 2 for part in reward):
        pairs = zip(matrices, reward, strict=True)
        return np.stack([_averaged(matrix, given) for matrix, given in pairs], axis=1)
    table = _array(reward, "reward")
    if table.shape == (n_actions, n_states, n_states):
        return _rewards(list(table), matrices)
    if table.shape == (n_states,):
        return np.repeat(table[:, None], n_actions, axis=1)
    if table.shape == (n_states, n_actions):
        return table
    raise ModelError(
        f"reward has shape {table.shape}, expected ({n_states},), ({n_states}, {n_actions}) or "
        f"({n_actions}, {n_states}, {n_states})"
    )


def _averaged(matrix: Any, reward: Any) -> FloatArray:
    """Return sum_j P(s, j) R(s, j) for each state s, sparse where one of the two is."""
    if sparse.issparse(reward):
        product = sparse.csr_array(reward).multiply(matrix)
    elif sparse.issparse(matrix):
        product = sparse.csr_array(matrix).multiply(np.asarray(reward))
    else:
        product = matrix * np.asarray(reward, dtype=np.float64)
    return np.asarray(product.sum(axis=1), dtype=np.float64).ravel()
