"""Conformance checks of linear models."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from bellweight.backends.linear import BoxWatch
from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, first_index
from bellweight.common.status import ModelError, PolicyError, SolverError
from bellweight.common.streams import Keys, stream_keys
from bellweight.models import Independent, LinearModel, Sampled
from bellweight.policies import DualSoftmax, Policy, Uniform
from bellweight.policies.linear_actions import ActionProgram, Chooser, RuleChooser, Worker
from bellweight.simulation import LinearRollout
from bellweight.simulation.linear_episodes import initial_states
from bellweight.testing.kernels import check_kernels
from bellweight.testing.report import Report, read_back

_BOX_STATES = 64
_INITIAL_STATES = 64
_EPISODES = 32
_STEPS = 32
_PATH_STATES = 128
_NOISE_PAIRS = 8
_NOISE_DRAWS = 4_000
_STANDARD_ERRORS = 6.0


def check_linear(model: LinearModel) -> Report:
    """Check a linear model: actions everywhere, the noise's mean, kernels, its file."""
    # Building it again repeats the validation: arrays may have been changed since.
    replace(model)
    sample = LinearSample(model)
    for state in sample.begin:
        sample.require_action(state)
    kernels = check_kernels(sample)
    for state in sample.states:
        sample.require_action(state)
    checked = [
        f"{model.dimension} state and {model.n_action_variables} action variables, "
        f"{len(model.row_names)} constraints",
        f"an action is admissible in each of {len(sample.states):,} states of the box, of the "
        "initial distribution and of simulated paths",
        _check_noise(sample),
        *kernels,
    ]
    data = isinstance(model.noise, Independent) and isinstance(model.initial, Independent)
    if data:
        checked.append("saving and loading gives the same model")
    notes = [*_file_notes(model, data=data), *sample.notes, *_box_notes(model, sample.paths)]
    return Report(model.name, tuple(checked), tuple(notes))


@dataclass(frozen=True, eq=False)
class _Recorder(Chooser):
    """Wraps another chooser: checks the states it sees, checks and keeps its actions."""

    sample: LinearSample
    chooser: Chooser
    what: str
    actions: list[FloatArray] = field(default_factory=list)

    def worker(self) -> Worker:
        choose = self.chooser.worker()

        def recorded(states: FloatArray, keys: Keys, step: int) -> Any:
            _check_whole_states(self.model, states)
            chosen = choose(states, keys, step)
            self.sample.require_admissible(states, chosen[0], self.what)
            self.actions.append(np.array(chosen[0]))
            return chosen

        return recorded


class LinearSample:
    """States and actions of a linear model at which it is checked, always the same ones."""

    def __init__(self, model: LinearModel) -> None:
        self.model = model
        self.notes: list[str] = []
        self._keys = stream_keys(0)
        self._program = ActionProgram(model, model.action_cost, model.preference)

    @cached_property
    def begin(self) -> FloatArray:
        """States of the box and of the initial distribution."""
        first = initial_states(self.model, 0, _INITIAL_STATES, self._keys[0])
        return np.vstack([_box_states(self.model), self.model.check_states(first, "initial")])

    @cached_property
    def states(self) -> FloatArray:
        """Distinct states of the box, of the initial distribution and of simulated paths."""
        visited = self.paths.reshape(-1, self.model.dimension)
        some = np.linspace(0, len(visited) - 1, _PATH_STATES).astype(np.int64)
        stacked = np.vstack([self.begin, visited[some]])
        return stacked[np.sort(np.unique(stacked, axis=0, return_index=True)[1])]

    @property
    def paths(self) -> FloatArray:
        """The states (steps, episodes, n) of simulated paths."""
        return self._simulated[0]

    @property
    def path_actions(self) -> FloatArray:
        """The actions (steps, episodes, m) of simulated paths."""
        return self._simulated[1]

    @cached_property
    def _simulated(self) -> tuple[FloatArray, FloatArray]:
        recorder = _Recorder(self.model, self, *self._chooser())
        paths = LinearRollout(self.model, recorder).states(0, _EPISODES, _STEPS, self._keys)
        return paths, np.array(recorder.actions)

    def _chooser(self) -> tuple[Chooser, str]:
        """Return random actions, or the least ones where random ones are not known."""
        model = self.model
        own = model.kernels is not None and model.kernels.random_action() is not None
        chooser = Uniform().chooser(model)
        try:
            if not own:
                chooser.worker()(self.begin.copy(), np.zeros(len(self.begin), np.uint64), 0)
        except (PolicyError, ModelError) as problem:
            self.notes.append(
                f"Uniform() cannot act, simulated paths take least actions: {problem}"
            )
            least = ActionProgram(model, np.ones(model.n_action_variables), None)
            return RuleChooser(model, least.actions), "the least action"
        return chooser, "the action of kernels.random_action" if own else "the random action"

    def require_action(self, state: FloatArray) -> None:
        """Raise an error when no action is admissible in a state, or the cheapest is not finite."""
        try:
            self._program.action(state)
        except SolverError as problem:
            raise ModelError(
                f"the cheapest action in the state where {self.model.state_text(state)} was not "
                f"found ({problem.status.name}): give the action variables bounds or constraints"
            ) from problem

    def require_admissible(
        self,
        states: FloatArray,
        actions: FloatArray,
        what: str,
        error: type[ModelError | PolicyError] = ModelError,
    ) -> None:
        """Raise an error that names the first state in which an action is not admissible."""
        shape = (len(states), self.model.n_action_variables)
        if np.shape(actions) != shape:
            raise error(
                f"{what} has shape {np.shape(actions)} for {len(states)} states, expected {shape}: "
                "return one action vector per state"
            )
        wrong = self.model.inadmissible(states, actions)
        if wrong is not None:
            # First report a state without any admissible action: it explains the rest.
            self.require_action(states[wrong[0]])
            raise error(
                f"{what} in the state where {self.model.state_text(states[wrong[0]])} is not "
                f"admissible: {wrong[1]}: return actions that meet the bounds and constraints"
            )


def _box_states(model: LinearModel) -> FloatArray:
    """Return states of the box, its two extreme corners first, that the constraints allow."""
    share = np.random.default_rng(0).random((_BOX_STATES, model.dimension))
    share[:2] = [[0.0], [1.0]]
    low, width = model.state_lower, model.state_upper - model.state_lower
    whole = np.minimum(np.floor(share * (width + 1.0)), width)
    states = low + np.where(model.integer_states, whole, share * width)
    # A constraint without actions says which states there are.
    bare = np.asarray(abs(model.action_rows).sum(axis=1)).ravel() == 0.0
    values = np.asarray((model.state_rows @ states.T).T)
    meets = (values >= model.row_lower) & (values <= model.row_upper)
    return states[(meets | ~bare).all(axis=1)]


def _check_whole_states(model: LinearModel, states: FloatArray) -> None:
    """Check that simulated states are finite, and whole numbers where they must be."""
    wrong = first_index(~np.isfinite(states) | model.integer_states & (states != np.round(states)))
    if wrong is not None:
        raise ModelError(
            f"{model.state_names[wrong[-1]]} is {states[wrong]:g} in a simulated state, expected a "
            "whole number: let the noise be whole numbers, or use integer_states=False"
        )


def _check_noise(sample: LinearSample) -> str:
    """Check the random part of the transition; return what was checked."""
    if isinstance(sample.model.noise, Independent):
        _check_simulated_mean(sample, sample.model.noise)
        return "simulated next states are whole where they must be and have the expected mean"
    states, actions = (
        part.reshape(-1, part.shape[-1]) for part in (sample.paths, sample.path_actions)
    )
    pairs = np.linspace(0, len(states) - 1, _NOISE_PAIRS).astype(np.int64)
    for pair in pairs:
        _check_drawn_noise(sample.model, states[pair], actions[pair], int(pair))
    return f"the noise has its declared mean at {len(pairs)} pairs, next states are whole numbers"


def _check_simulated_mean(sample: LinearSample, noise: Independent) -> None:
    """Compare the mean of simulated next states with `expected_next`."""
    model = sample.model
    expected = [
        model.expected_next(states, actions)
        for states, actions in zip(sample.paths[:-1], sample.path_actions[:-1], strict=True)
    ]
    gap = (sample.paths[1:] - expected).reshape(-1, model.dimension)
    laws = noise.laws
    spread = np.array([law.chances @ (law.values - law.mean) ** 2 for law in laws])
    error = np.sqrt((model.noise_matrix**2) @ spread / len(gap))
    rounding = tolerances.SAME_COST * (1.0 + np.abs(sample.paths).max())
    wrong = first_index(np.abs(gap.mean(axis=0)) > _STANDARD_ERRORS * error + rounding)
    if wrong is not None:
        k = wrong[0]
        raise ModelError(
            f"simulated next values of {model.state_names[k]} exceed expected_next by "
            f"{gap[:, k].mean():g} on average over {len(gap):,} steps, expected 0 within "
            f"{_STANDARD_ERRORS * error[k]:.3g}: let expected_next and the transition agree"
        )


def _check_drawn_noise(
    model: LinearModel, state: FloatArray, action: FloatArray, seed: int
) -> None:
    """Check a noise function at one pair: its mean, whole next states, arguments left alone."""
    assert isinstance(model.noise, Sampled)
    states, actions = np.tile(state, (_NOISE_DRAWS, 1)), np.tile(action, (_NOISE_DRAWS, 1))
    rng = np.random.default_rng(seed)
    model.check_noise(states, actions, rng)
    drawn = model.noise.drawn(_NOISE_DRAWS, rng, states, actions)
    if (states != state).any() or (actions != action).any():
        raise ModelError(
            f"the noise function changes the states or actions it is given in the state where "
            f"{model.state_text(state)}: work on a copy"
        )
    certain = model.next_state @ state + model.next_action @ action
    _check_whole_states(model, certain + (model.noise_matrix @ drawn.T).T)


def _file_notes(model: LinearModel, *, data: bool) -> list[str]:
    """Check that a model survives its file; return what the file does not keep."""
    if not data:
        return ["its noise or initial states are a function: it cannot be saved"]
    loaded = read_back(model)
    if model.kernels is not None and loaded.kernels is None:
        return [f"a file does not keep its kernels, {type(model.kernels).__name__}"]
    return []


def _box_notes(model: LinearModel, paths: FloatArray) -> list[str]:
    """Say by how much simulated states leave the box of the rows."""
    seen = BoxWatch((model.state_lower, model.state_upper))
    seen.see(paths.reshape(-1, model.dimension))
    found = seen.outside(model.state_names)
    if found is None:
        return []
    return [
        f"simulated states leave the box of the rows in {100.0 * found.share:.3g} % of "
        f"{seen.visits:,} steps: {found.variable} reaches {found.reached:g}, its box is "
        f"{found.lower:g} to {found.upper:g}"
    ]


def check_linear_policy(policy: Policy, model: LinearModel, subject: str) -> Report:
    """Check a policy on a linear model: shapes, admissible actions, repeatability."""
    sample, chooser = LinearSample(model), policy.chooser(model)
    states = sample.states
    if isinstance(policy, DualSoftmax):
        # Only in these states does it differ from its target.
        states = np.vstack([model.check_states(policy.dual.states, "the dual"), states])
    keys = np.arange(len(states), dtype=np.uint64)
    chosen = []
    for choose in (chooser.worker(), chooser.worker()):
        chosen.append(np.array(choose(states.copy(), keys, 0)[0]))
        sample.require_admissible(states, chosen[-1], "the policy's action", PolicyError)
    changed = first_index((chosen[0] != chosen[1]).any(axis=1))
    if changed is not None:
        raise PolicyError(
            f"the action in the state where {model.state_text(states[changed])} is "
            f"{chosen[0][changed].tolist()} at first and {chosen[1][changed].tolist()} on the same "
            "stream, expected the same: let it depend on the state and the stream only"
        )
    if isinstance(chooser, RuleChooser):
        _check_alone(chooser, states, chosen[0])
    checked = (
        f"actions are admissible in {len(states):,} states",
        "the same when asked again on the same streams",
    )
    return Report(subject, checked, ("chooses at random",) if chooser.is_random else ())


def _check_alone(chooser: RuleChooser, states: FloatArray, actions: FloatArray) -> None:
    """Check that a rule's action in a state does not depend on the other states given with it."""
    choose, key = chooser.worker(), np.zeros(1, np.uint64)
    for state, action in zip(states, actions, strict=True):
        alone = choose(state[None], key, 0)[0][0]
        if not np.allclose(alone, action, rtol=tolerances.REPEATED, atol=0.0):
            raise PolicyError(
                f"the rule's action in the state where {chooser.model.state_text(state)} is "
                f"{action.tolist()} among others and {alone.tolist()} when asked for alone, "
                "expected the same: let each row depend on its state only"
            )
