"""Conformance checks of tabular models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from bellweight.common import tolerances
from bellweight.common.checks import BoolArray, FloatArray, first_index
from bellweight.common.status import ModelError, PolicyError
from bellweight.exact.occupancy import policy_chain
from bellweight.models import TabularModel
from bellweight.policies import Policy, Rule, Uniform, checked_probabilities
from bellweight.testing.report import Report, read_back
from bellweight.testing.rules import check_whole_actions

_SAMPLE = 512
_COST_RANGE = 1e9


def check_tabular(model: TabularModel) -> Report:
    """Check a tabular model: its data, its file, and that its equations can be solved."""
    # Building it again repeats the validation: arrays may have been changed since.
    replace(model)
    read_back(model)
    chain, cost = policy_chain(model, Uniform())
    values = chain.values(cost)
    error = np.abs(chain.residual(values, cost, transposed=False))
    worst = int(np.argmax(error))
    limit = tolerances.SAME_COST * float(np.abs(model.cost).max())
    if not error[worst] <= limit:
        raise ModelError(
            f"the value of the uniform policy misses its equation by {error[worst]:.3g} in "
            f"{model.state_name(worst)}, expected at most {limit:.3g}: bring the costs closer "
            "together or lower the discount"
        )
    checked = (
        f"{model.n_states:,} states, {model.n_pairs:,} sorted pairs, every state has an action",
        "costs are finite, transition rows and the initial distribution are distributions",
        "saving and loading gives the same model",
        "the value of the uniform policy solves its equation",
    )
    return Report(model.name, checked, _tabular_notes(model))


def _tabular_notes(model: TabularModel) -> tuple[str, ...]:
    notes = []
    lost = np.flatnonzero(~_reachable(model))
    if len(lost):
        notes.append(
            f"{len(lost):,} states cannot be reached from the initial distribution, the first is "
            f"{model.state_name(int(lost[0]))}"
        )
    sizes = np.abs(model.cost[model.cost != 0.0])
    if len(sizes) and sizes.max() > _COST_RANGE * sizes.min():
        notes.append(f"costs range from {sizes.min():.3g} to {sizes.max():.3g}")
    return tuple(notes)


def _reachable(model: TabularModel) -> BoolArray:
    """Return which states (S,) can be reached from the initial distribution."""
    links = sparse.csr_array(
        (np.ones(model.n_pairs), model.pair_state, np.arange(model.n_pairs + 1)),
        shape=(model.n_pairs, model.n_states),
    ).T @ (model.transition > 0.0)
    forward = sparse.csr_array(links).T
    reached = model.initial > 0.0
    while True:
        following = reached | (forward @ reached.astype(np.float64) > 0.0)
        if np.array_equal(following, reached):
            return reached
        reached = following


def check_tabular_policy(policy: Policy, model: TabularModel, subject: str) -> Report:
    """Check a policy of a tabular model: a distribution in every state, and actions from it."""
    if isinstance(policy, Rule):
        check_whole_actions(policy, policy.states_of(model))
    chances = checked_probabilities(model, policy)
    again = checked_probabilities(model, policy)
    changed = first_index(chances != again)
    if changed is not None:
        raise PolicyError(
            f"the probability of {model.pair_name(changed[0])} is {chances[changed]} at first and "
            f"{again[changed]} when asked again, expected the same: take randomness from the rng "
            "argument of action, not from inside the policy"
        )
    _check_actions(policy.on(model), model, chances)
    mixed = int((np.maximum.reduceat(chances, model.pair_start[:-1]) < 1.0).sum())
    checked = (
        f"a distribution over the admissible actions in each of {model.n_states:,} states",
        "the same when asked again",
        "action draws only actions of positive probability",
    )
    notes = (f"chooses at random in {mixed:,} states",) if mixed else ()
    return Report(subject, checked, notes)


def _check_actions(policy: Policy, model: TabularModel, chances: FloatArray) -> None:
    """Check that `action` draws actions that the probabilities allow."""
    rng = np.random.default_rng(0)
    for x in np.unique(np.linspace(0, model.n_states - 1, _SAMPLE).astype(np.int64)):
        pairs = slice(model.pair_start[x], model.pair_start[x + 1])
        possible = model.pair_action[pairs][chances[pairs] > 0.0]
        action = policy.action(int(x), rng)
        if action not in possible:
            raise PolicyError(
                f"action({x}) returned {action} in {model.state_name(int(x))}, expected one of "
                f"{possible.tolist()}, the actions of positive probability: let action and "
                "probabilities agree"
            )
