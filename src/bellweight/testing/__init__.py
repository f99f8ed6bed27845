"""Conformance checks that users run on their own models, bases and policies.

    bw.testing.check_model(model)
    bw.testing.check_basis(basis, model)
    bw.testing.check_policy(policy, model)

Each looks for what the solver relies on and raises the matching error, which says what is wrong,
where, what was found and what to do. Otherwise it returns a short report of what was looked at,
with notes on what is allowed but worth knowing.
"""

from __future__ import annotations

import inspect
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from bellweight.basis import Basis
from bellweight.common.checks import BoolArray, FloatArray, IntArray, Matrix, first_index
from bellweight.common.status import BasisError, ModelError, PolicyError
from bellweight.common.streams import stream_keys
from bellweight.evaluation.occupancy import policy_chain
from bellweight.models import EventModel, LinearModel, TabularModel
from bellweight.models.compile import check_in_place, naming
from bellweight.policies.policy import Model, Policy, Rule, Uniform, checked_probabilities
from bellweight.program import conditioning
from bellweight.program.priced_rows import LinearRows, PricedRows
from bellweight.program.rows import EventRows, TabularRows
from bellweight.simulation.episodes import EventRollout
from bellweight.testing.linear import LinearSample, check_linear, check_linear_policy
from bellweight.testing.report import Report

__all__ = ["Report", "check_basis", "check_model", "check_policy"]

_SAMPLE = 512
_COST_RANGE = 1e9
_SAME = 1e-12


def check_model(model: Model) -> Report:
    """Check that a model is one: data or functions, values, kernels, and for data its file."""
    if isinstance(model, TabularModel):
        return _check_tabular(model)
    if isinstance(model, EventModel):
        return _check_events(model)
    if isinstance(model, LinearModel):
        return check_linear(model)
    raise ModelError(
        f"model is {type(model).__name__}, expected a TabularModel, EventModel or LinearModel: "
        "build one with TabularModel.from_arrays or LinearBuilder"
    )


def check_basis(basis: Basis, model: Model) -> Report:
    """Check that a basis suits a model: shapes, repeatability, bounds, the constant in its span."""
    if not isinstance(basis, Basis):
        raise BasisError(f"basis is {basis!r}, expected a basis such as Polynomial(3)")
    check_model(model)
    points = _points_of(model)
    _check_functions(basis.on(points.copy()), points)
    rows = _rows_of(model, basis, points)
    rows.constant()
    names = rows.names
    if len(names) != rows.n_basis:
        raise BasisError(f"{len(names)} names for {rows.n_basis} functions: give one name for each")
    notes = []
    if not rows.is_sparse:
        kept = conditioning.independent_columns(rows.triangle(None))
        dropped = [names[k] for k in np.setdiff1d(np.arange(rows.n_basis), kept)]
        if dropped:
            notes.append(
                f"depends on earlier functions and will be dropped: {', '.join(dropped[:5])}"
            )
    checked = (
        f"{rows.n_basis} functions, finite in {len(points):,} states",
        "the same for one state as for many, and when called again; states are left alone",
        "the constant is in the span",
        "names and bounds",
    )
    return Report(f"{type(basis).__name__} on {model.name}", checked, tuple(notes))


def check_policy(policy: Policy, model: Model) -> Report:
    """Check that a policy acts on a model: a distribution in every state, admissible actions."""
    if not isinstance(policy, Policy):
        raise PolicyError(f"policy is {policy!r}, expected a bellweight policy: use Table or Rule")
    check_model(model)
    subject = f"{type(policy).__name__} on {model.name}"
    if isinstance(model, EventModel):
        return _check_event_policy(policy, model, subject)
    if isinstance(model, LinearModel):
        return check_linear_policy(policy, model, subject)
    if isinstance(policy, Rule):
        _check_whole_actions(policy, model.states.astype(np.int64))
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


def _check_tabular(model: TabularModel) -> Report:
    # Building it again repeats the validation: arrays may have been changed since.
    replace(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        model.save(path)
        if TabularModel.load(path).digest != replace(model).digest:
            raise ModelError("the model changes when saved and loaded: check its subclass")
    chain, cost = policy_chain(model, Uniform())
    values = chain.values(cost)
    error = np.abs(chain.residual(values, cost, transposed=False))
    worst = int(np.argmax(error))
    limit = 1e-9 * float(np.abs(model.cost).max())
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


def _check_events(model: EventModel) -> Report:
    states = _visited(model)
    mask = model.admissible_mask(states)
    number, action = np.nonzero(mask)
    # `expand` raises on faults, and names the state and action.
    _, chance, successor = model.expand(states[number], action)
    above = (model.upper >= 0) & (successor > model.upper)
    wrong = first_index(above.any(axis=2) & (chance > 0.0))
    if wrong is not None:
        pair, event = wrong
        raise ModelError(
            f"in state {states[number[pair]].tolist()}, action {action[pair]} "
            f"({model.label(int(action[pair]))}): event {model.events[event]} leads to "
            f"{successor[wrong].tolist()}, expected at most {model.upper.tolist()}: correct move"
        )
    if callable(model.move):
        _check_whole_moves(model, states[number], action, chance)
    possible = chance > 0.0
    moves = (successor != states[number][:, None, :]).any(axis=2) & possible
    if possible.any() and not moves.any():
        raise ModelError(
            f"no event changes the state in any of the {len(states):,} states visited, of which "
            f"{states[0].tolist()} is the first: let move change `state` in place, as in "
            "state[0] += 1, and give upper bounds that leave room for it"
        )
    notes = () if possible.any() else ("no event has a chance in any state visited",)
    checked = (
        f"{len(states):,} states visited by the uniform policy, {len(number):,} pairs",
        "costs are finite, event probabilities are distributions, successors are states",
    )
    return Report(model.name, checked, notes)


class _NotWholeError(Exception):
    """A number that is not whole was written into a state."""


class _Watched(np.ndarray[Any, np.dtype[np.int64]]):
    """A state that does not take numbers which it would have to cut off."""

    def __setitem__(self, place: Any, value: Any) -> None:
        given = np.asarray(value)
        if (given != np.rint(given)).any():
            raise _NotWholeError(given.tolist())
        super().__setitem__(place, value)


def _check_whole_moves(
    model: EventModel, states: IntArray, action: IntArray, chance: FloatArray
) -> None:
    """Check that `move` writes, and writes whole numbers: the compiled loops cut off fractions."""
    for pair, event in np.argwhere(chance > 0.0).tolist():
        state, chosen = states[pair], int(action[pair])
        given = {"state": state.copy().view(_Watched), "action": chosen, "event": event}
        try:
            with naming(state):
                check_in_place(model.move, "move", given)
        except _NotWholeError as found:
            raise ModelError(
                f"in state {state.tolist()}, action {chosen} ({model.label(chosen)}): event "
                f"{model.events[event]} writes {found} into the state, expected whole numbers: "
                "round them in move"
            ) from None


def _check_whole_actions(policy: Rule, states: IntArray) -> None:
    """Check that a rule returns whole numbers: the compiled loops cut off fractions."""
    function, numbers = policy._function(), policy._numbers()
    names = tuple(inspect.signature(function).parameters)
    for state in states:
        given = {"state": state.copy(), "parameters": numbers}
        with naming(state):
            action = function(**{name: given[name] for name in names})
        if action != np.rint(action):
            raise PolicyError(
                f"the rule returns {action} in state {state.tolist()}, expected a whole number, "
                "the index of an action: round it in the rule"
            )


def _visited(model: EventModel) -> IntArray:
    """Return distinct states, initial ones and ones that the uniform policy visits."""
    keys = stream_keys(0)
    rollout = EventRollout.of(model, Uniform().program(model))
    later = rollout.state_block(0, _SAMPLE, 0, keys)
    return np.unique(np.vstack([model.sample_initial(0, _SAMPLE, keys[0]), later]), axis=0)


def _points_of(model: Model) -> FloatArray:
    if isinstance(model, TabularModel):
        return model.states
    if isinstance(model, LinearModel):
        return LinearSample(model).states
    return _visited(model).astype(np.float64)


def _rows_of(
    model: Model, basis: Basis, points: FloatArray
) -> TabularRows | EventRows | LinearRows:
    if isinstance(model, TabularModel):
        return TabularRows(model, basis)
    if isinstance(model, LinearModel):
        return PricedRows().on(model, basis)
    return EventRows(model, basis, points.astype(np.int64))


def _check_functions(basis: Basis, points: FloatArray) -> None:
    """Check that the functions treat each state by itself, repeatably, and leave it alone."""
    given = points.copy()
    whole = _dense(basis(given))
    if not np.array_equal(given, points):
        x = int(np.argmax((given != points).any(axis=1)))
        raise BasisError(
            f"the basis changes the states it is given: state {points[x].tolist()} became "
            f"{given[x].tolist()}: work on a copy"
        )
    some = np.unique(np.linspace(0, len(points) - 1, _SAMPLE).astype(np.int64))
    pieces = np.vstack([_dense(basis(points[x : x + 1])) for x in some])
    again = _dense(basis(points[some]))
    for found, how in ((again, "when asked again"), (pieces, "when asked for alone")):
        if found.shape != (len(some), whole.shape[1]):
            raise BasisError(
                f"the basis returns shape {found.shape} for {len(some)} states {how}, expected "
                f"({len(some)}, {whole.shape[1]}): one row per state, the same columns always"
            )
        wrong = first_index(~np.isclose(found, whole[some], rtol=_SAME, atol=0.0, equal_nan=True))
        if wrong is not None:
            x, k = some[wrong[0]], wrong[1]
            raise BasisError(
                f"basis function {k} at state {points[x].tolist()} is {whole[x, k]} at first and "
                f"{found[wrong]} {how}, expected the same: let each row depend on its state only"
            )


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


def _check_event_policy(policy: Policy, model: EventModel, subject: str) -> Report:
    states = _visited(model)
    mask = model.admissible_mask(states)
    if isinstance(policy, Rule):
        _check_whole_actions(policy, states)
    bound, rng = policy.on(model), np.random.default_rng(0)
    for state, allowed in zip(states, mask, strict=True):
        action = bound.action(state, rng)
        if not (0 <= action < model.n_actions and allowed[action]):
            raise PolicyError(
                f"the action in state {state.tolist()} is {action}, expected one of "
                f"{np.flatnonzero(allowed).tolist()}: return an admissible action"
            )
    return Report(subject, (f"actions are admissible in {len(states):,} visited states",))


def _dense(features: Matrix) -> Any:
    return features.toarray() if sparse.issparse(features) else np.asarray(features)
