"""Policies: which action, with what probability, in which state.

On a tabular model a policy is a vector of probabilities over the sorted state-action pairs
(`probabilities(model)`, vectorised); `action(state)` draws or looks up one action. A policy is a
settings object until `on(model)` binds it to its model. Acting in a state where a policy is
randomised needs a NumPy Generator: randomness is always the caller's.

Ties among greedy actions are decided, not left to rounding: more dual mass first, then the lowest
action.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist

from bellweight.basis import Basis
from bellweight.common import checks, files, tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import PolicyError
from bellweight.models import LinearModel, TabularModel
from bellweight.models.function_model import FunctionModel
from bellweight.policies.compiled import (
    SAME_MASS,
    Program,
    dual_table,
    greedy_program,
    known_program,
    rule_program,
    softmax_program,
    state_table,
    uniform_program,
)
from bellweight.policies.linear_actions import (
    Chooser,
    GreedyChooser,
    RandomChooser,
    RuleChooser,
    SoftmaxChooser,
    action_price,
)
from bellweight.policies.states import (
    looked_up,
    one_index,
    one_index_of,
    one_state,
    several_indices,
    several_states,
)
from bellweight.program.rows import TabularRows

Model = TabularModel | FunctionModel | LinearModel

_TABLE = files.stored_as("actions")
_LENT_STATES = 1_024  # states at a time, so that distances take little memory


@files.storable
@dataclass(frozen=True, eq=False)
class Support:
    """Where a dual has mass: states, action indices (n,) and positive values (n,).

    `states` are indices (n,) of a tabular model, or state vectors (n, d) of other models; `actions`
    are indices, or vectors (n, m) of a linear model.
    """

    states: Any
    actions: Any
    values: FloatArray

    def over_pairs(self, model: TabularModel) -> FloatArray:
        """Return the dual as an array (N,) over the pairs of a tabular model."""
        dual = np.zeros(model.n_pairs)
        key = model.pair_state * np.int64(model.n_actions) + model.pair_action
        wanted = self.indices(model) * np.int64(model.n_actions) + self.actions
        place = np.searchsorted(key, wanted)
        if (place >= model.n_pairs).any() or not np.array_equal(key[place], wanted):
            raise PolicyError("the dual has mass on pairs that the model lacks: use its own model")
        dual[place] = self.values
        return dual

    def indices(self, model: TabularModel) -> IntArray:
        """Return the states as indices of a tabular model, looked up when they are vectors."""
        if self.states.ndim == 1:
            return np.asarray(self.states)
        both = np.concatenate([model.states, self.states])
        place = np.unique(both, axis=0, return_inverse=True)[1].ravel()
        number = np.full(len(both), -1, dtype=np.int64)
        number[place[: model.n_states]] = np.arange(model.n_states)
        return np.asarray(number[place[model.n_states :]])

    def by_state(self, model: FunctionModel) -> tuple[IntArray, FloatArray]:
        """Return the distinct states (m, d) of an event model and their duals (m, A)."""
        if self.states.ndim == 1:
            raise PolicyError(
                "the dual belongs to a tabular model: solve the event model itself, or take "
                "Greedy(basis=..., coef=...) without a dual"
            )
        found: tuple[IntArray, FloatArray] = dual_table(
            self.states, self.actions, self.values, model.n_actions
        )
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Policy(ABC):
    """A stationary policy, possibly randomised, possibly not yet bound to a model."""

    model: Model | None = field(default=None, repr=False, compare=False, metadata=files.UNSTORED)

    @abstractmethod
    def probabilities(self, model: TabularModel) -> FloatArray:
        """Return the probability (N,) of each pair's action in its state."""

    def program(self, model: FunctionModel) -> Program:
        """Return this policy in the form that the loops of an event model take."""
        raise PolicyError(
            f"{type(self).__name__} is a policy for tabular models: give an event model a Rule, or "
            "Uniform, Greedy, DualSoftmax"
        )

    def chooser(self, model: LinearModel) -> Chooser:
        """Return this policy in the form that simulations of a linear model take."""
        raise PolicyError(
            f"{type(self).__name__} is not a policy for linear models: use Uniform, Greedy, "
            "DualSoftmax or a Rule from states (n, d) to actions (n, m)"
        )

    def on(self, model: Model) -> Self:
        """Return this policy bound to a model, ready to act."""
        return replace(self, model=model)

    def action(self, state: Any, rng: np.random.Generator | None = None) -> Any:
        """Return an action for one state; `rng` is needed where the policy is randomised.

        The state is an index for a tabular model, a vector (d,) for other models, or a number where
        d is one. The action is an index, or a vector (m,) for a linear model.
        """
        model = self._bound_model()
        if isinstance(model, FunctionModel):
            return int(self._vector_actions(model, one_state(state, model.dimension), rng)[0])
        if isinstance(model, LinearModel):
            return self._linear_actions(model, one_state(state, model.dimension), rng)[0]
        state = model.check_state(one_index(state))
        chances = self._table[model.pair_start[state] : model.pair_start[state + 1]]
        best = int(np.argmax(chances))
        if chances[best] < 1.0 - tolerances.PROBABILITY:
            if rng is None:
                raise PolicyError(
                    f"{type(self).__name__} chooses at random in {model.state_name(state)}: pass a "
                    "numpy Generator, action(state, np.random.default_rng(seed))"
                )
            sums = np.cumsum(chances)
            best = int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
        return int(model.actions(state)[best])

    def actions(self, states: Any, rng: np.random.Generator | None = None) -> Any:
        """Return an action for each of several states, as `action` does for one.

        The states are indices (n,) for a tabular model, vectors (n, d) for other models, or numbers
        (n,) where d is one. The actions are indices (n,), or vectors (n, m) for a linear model.
        """
        model = self._bound_model()
        if isinstance(model, LinearModel):
            return self._linear_actions(model, several_states(states, model.dimension), rng)
        if isinstance(model, FunctionModel):
            return self._vector_actions(model, several_states(states, model.dimension), rng)
        chosen = [self.action(state, rng) for state in several_indices(states)]
        return np.array(chosen, dtype=np.int64)

    @cached_property
    def _table(self) -> FloatArray:
        model = self._bound_model()
        assert isinstance(model, TabularModel)
        return checked_probabilities(model, self)

    @cached_property
    def _program(self) -> Program:
        model = self._bound_model()
        assert isinstance(model, FunctionModel)
        return self.program(model)

    def _vector_actions(
        self, model: FunctionModel, states: Any, rng: np.random.Generator | None
    ) -> IntArray:
        vectors = model.check_states(states, "state")
        program = self._program
        if rng is None:
            random = next((vector for vector in vectors if program.draws_in(vector)), None)
            if random is not None:
                raise PolicyError(
                    f"{type(self).__name__} chooses at random in state {random.tolist()}: pass a "
                    "numpy Generator, action(state, np.random.default_rng(seed))"
                )
        u = np.zeros(len(vectors)) if rng is None else rng.random(len(vectors))
        return program.loops.act(vectors, u, program.acting)

    @cached_property
    def _chooser(self) -> tuple[Chooser, Any]:
        model = self._bound_model()
        assert isinstance(model, LinearModel)
        chooser = self.chooser(model)
        return chooser, chooser.worker()

    def _linear_actions(
        self, model: LinearModel, states: Any, rng: np.random.Generator | None
    ) -> Any:
        if len(states) == 0:
            return np.zeros((0, model.n_action_variables))
        vectors = model.check_states(states, "state")
        chooser, choose = self._chooser
        if chooser.is_random and rng is None:
            raise PolicyError(
                f"{type(self).__name__} chooses at random: pass a numpy Generator, action(state, "
                "np.random.default_rng(seed))"
            )
        n = len(vectors)
        keys = np.zeros(n, np.uint64) if rng is None else rng.integers(1 << 63, size=n, dtype="u8")
        # A worker may use its buffer again: what is given away is a copy.
        chosen = choose(vectors, keys, 0)[0]
        return np.array(chosen, dtype=np.int64 if model.integer_actions.all() else np.float64)

    def _bound_model(self) -> Model:
        if self.model is None:
            raise PolicyError(
                f"{type(self).__name__} needs its model to act: call policy.on(model).action(state)"
            )
        return self.model


@files.storable
@dataclass(frozen=True)
class Uniform(Policy):
    """Every admissible action with the same probability."""

    def probabilities(self, model: TabularModel) -> FloatArray:
        counts = np.diff(model.pair_start)
        return np.repeat(1.0 / counts, counts)

    def program(self, model: FunctionModel) -> Program:
        return uniform_program(model)

    def chooser(self, model: LinearModel) -> Chooser:
        return RandomChooser(model)


@files.storable
@dataclass(frozen=True, eq=False)
class Rule(Policy):
    """A decision rule for an event model: `fn(state)` or `fn(state, parameters)`.

    It returns an action index and is compiled. Rules that differ only in their `parameters` (an
    array of numbers) share the compiled code. For a linear model, `fn(states)` maps states (n, d)
    to actions (n, m) and is not compiled. A file keeps the name but not the function.
    """

    fn: Callable[..., Any] | files.Unstored
    parameters: Any = ()

    def probabilities(self, model: TabularModel) -> FloatArray:
        fn, numbers = self._function(), self._numbers()
        takes_numbers = fn.__code__.co_argcount == 2
        states = model.states.astype(np.int64)
        chosen = [fn(state, numbers) if takes_numbers else fn(state) for state in states]
        return actions_to_probabilities(model, np.array(chosen, dtype=np.int64))

    def program(self, model: FunctionModel) -> Program:
        return rule_program(model, self._function(), self._numbers())

    def chooser(self, model: LinearModel) -> Chooser:
        return RuleChooser(model, self._function())

    def _numbers(self) -> FloatArray:
        numbers = np.array(self.parameters, dtype=np.float64).ravel()
        return numbers if len(numbers) else np.zeros(1)

    def _function(self) -> Any:
        if isinstance(self.fn, files.Unstored):
            raise PolicyError(f"the rule {self.fn.text} was not stored: build Rule(fn) again")
        return self.fn


@files.storable
@dataclass(frozen=True, eq=False)
class Table(Policy):
    """A policy given as numbers.

    `entries` is either one action index per state (S,), or a matrix of probabilities (S, A).
    """

    entries: Any

    def probabilities(self, model: TabularModel) -> FloatArray:
        entries = np.asarray(self.entries)
        if entries.ndim == 1 and entries.dtype.kind in "iu":
            return actions_to_probabilities(model, entries.astype(np.int64))
        shape = (model.n_states, model.n_actions)
        matrix = checks.float_array(entries, "policy table", shape, PolicyError)
        chances = matrix[model.pair_state, model.pair_action]
        stray = checks.first_index(np.abs(matrix.sum(axis=1) - by_state(model, chances)) > 1e-12)
        if stray is not None:
            raise PolicyError(
                f"the policy table gives probability to an inadmissible action in "
                f"{model.state_name(stray[0])}: set it to zero"
            )
        return chances

    def action(self, state: Any, rng: np.random.Generator | None = None) -> Any:
        entries = np.asarray(self.entries)
        if self.model is None and entries.ndim == 1:
            return int(entries[one_index_of(state, len(entries))])
        return super().action(state, rng)

    def actions(self, states: Any, rng: np.random.Generator | None = None) -> Any:
        entries = np.asarray(self.entries)
        if self.model is None and entries.ndim == 1:
            return looked_up(entries, states)
        return super().actions(states, rng)


@files.storable
@dataclass(frozen=True, eq=False)
class Greedy(Policy):
    """The action of least cost plus discounted approximate value (eq. greedy_policy_from_alp).

    Coefficients (J, K) stand for the largest of J value functions (see `PointwiseMaximum`).
    `dual` decides ties; in a linear model the model's `preference` does, or the one given here.
    `table` (S,) holds the finished actions, so that a loaded policy can act without its model.
    With `trust_dual` the search is skipped in states with dual mass, where the action of most mass
    is greedy already: by complementary slackness, and in a regularised program because its row is
    the most violated one. The dual must be that of the coefficients, as in a result.
    """

    basis: Basis
    coef: FloatArray
    dual: Support | None = None
    # Both follow from the rest and the model.
    table: IntArray | None = field(default=None, compare=False, metadata=_TABLE)
    model_digest: str | None = field(default=None, compare=False)
    preference: FloatArray | None = None
    trust_dual: bool = False

    @classmethod
    def from_values(
        cls,
        rows: TabularRows,
        coef: FloatArray,
        dual: Support | None = None,
        *,
        trust_dual: bool = False,
    ) -> Greedy:
        """Return the greedy policy of coefficients, tabulated."""
        model = rows.model
        mass = None if dual is None else dual.over_pairs(model)
        pieces = np.atleast_2d(coef)
        values = np.max([rows.values(piece) for piece in pieces], axis=0)
        noise = rows.n_basis * np.max([rows.value_terms(piece) for piece in pieces], axis=0)
        actions = greedy_actions(model, values, mass, noise=noise, trust_dual=trust_dual)
        return cls(
            basis=rows.basis,
            coef=coef,
            dual=dual,
            table=actions,
            model_digest=model.digest,
            trust_dual=trust_dual,
            model=model,
        )

    def on(self, model: Model) -> Greedy:
        if not isinstance(model, TabularModel):
            return replace(self, model=model)
        rows = TabularRows(model, self.basis)
        return Greedy.from_values(rows, self.coef, self.dual, trust_dual=self.trust_dual)

    def program(self, model: FunctionModel) -> Program:
        if self.dual is None:
            return greedy_program(model, self.basis, self.coef)
        states, duals = self.dual.by_state(model)
        searched = greedy_program(model, self.basis, self.coef, state_table(states, duals))
        return known_program(searched, model, states, duals) if self.trust_dual else searched

    def chooser(self, model: LinearModel) -> Chooser:
        if self.trust_dual:
            raise PolicyError(
                "trust_dual does not go with a linear model, whose ties are decided by preference: "
                "leave it out"
            )
        if self.coef.shape != (model.dimension + 1,):
            raise PolicyError(
                f"{self.coef.size} coefficients for a linear model of {model.dimension} state "
                "variables, expected one more than variables: use its own result"
            )
        return GreedyChooser(model, action_price(model, self.coef), self.preference)

    def probabilities(self, model: TabularModel) -> FloatArray:
        known = self.model_digest == model.digest
        actions = self.table if known else self.on(model).table
        assert actions is not None
        return actions_to_probabilities(model, actions)

    def action(self, state: Any, rng: np.random.Generator | None = None) -> Any:
        if self.table is None:
            return super().action(state, rng)
        return int(self.table[one_index_of(state, len(self.table))])

    def actions(self, states: Any, rng: np.random.Generator | None = None) -> Any:
        if self.table is None:
            return super().actions(states, rng)
        return looked_up(self.table, states)


@files.storable
@dataclass(frozen=True, eq=False)
class DualPolicy(Policy):
    """The normalised dual (eq. dual_fluid_policy); `elsewhere` acts in states without dual mass."""

    dual: Support
    elsewhere: Policy = field(default_factory=Uniform)

    def probabilities(self, model: TabularModel) -> FloatArray:
        dual = self.dual.over_pairs(model)
        mass = by_state(model, dual)[model.pair_state]
        other = self.elsewhere.probabilities(model)
        return np.where(mass > 0.0, dual / np.where(mass > 0.0, mass, 1.0), other)


@files.storable
@dataclass(frozen=True, eq=False)
class DualSoftmax(Policy):
    """The target-guided softmax of the dual (eq. target_guided_softmax_policy).

    With m the dual mass of a state, the policy is the softmax of the state's duals at `temperature`
    with share m / (m + smoothing_mass), and the target with the rest. With `extend`, a radius, each
    state lends the share 1 - distance / radius of its dual to the states nearer than that (in the
    1-norm of state vectors, or of indices where there are none), so that the dual speaks in states
    that no row stands for.
    """

    dual: Support
    target: Policy
    temperature: float
    smoothing_mass: float
    extend: float | None = None

    def reaching(self, model: TabularModel) -> Support:
        """Return the dual as the policy uses it: with what states lend each other."""
        if self.extend is None:
            return self.dual
        states = np.asarray(model.states, dtype=np.float64)
        givers, place = np.unique(self.dual.indices(model), return_inverse=True)
        own = np.zeros((len(givers), model.n_actions))
        np.add.at(own, (place.ravel(), self.dual.actions), self.dual.values)
        mass = np.empty(model.n_pairs)
        for first in range(0, model.n_states, _LENT_STATES):
            last = min(first + _LENT_STATES, model.n_states)
            distance = cdist(states[first:last], states[givers], "cityblock")
            lent = np.maximum(1.0 - distance / self.extend, 0.0) @ own
            pairs = slice(model.pair_start[first], model.pair_start[last])
            mass[pairs] = lent[model.pair_state[pairs] - first, model.pair_action[pairs]]
        used = np.flatnonzero(mass > 0.0)
        return Support(model.pair_state[used], model.pair_action[used], mass[used])

    def probabilities(self, model: TabularModel) -> FloatArray:
        target = self.target.probabilities(model)
        reaching = self.reaching(model)
        dual = reaching.over_pairs(model)
        # Only states with dual mass differ from the target.
        touched = np.isin(model.pair_state, reaching.indices(model))
        state = model.pair_state[touched]
        part = dual[touched]
        highest = np.full(model.n_states, -np.inf)
        np.maximum.at(highest, state, part)
        # Subtracting the largest exponent of the state keeps the exponentials from overflowing.
        weight = np.exp((part - highest[state]) / self.temperature)
        total = np.bincount(state, weights=weight, minlength=model.n_states)
        mass = np.bincount(state, weights=part, minlength=model.n_states)[state]
        share = mass / (mass + self.smoothing_mass)
        mixed = np.array(target)
        mixed[touched] = share * weight / total[state] + (1.0 - share) * target[touched]
        return mixed

    def program(self, model: FunctionModel) -> Program:
        states, duals = self.dual.by_state(model)
        follow = self.target
        if isinstance(follow, Greedy) and follow.trust_dual:
            # The loops look up one dual only, and searching finds the same actions.
            follow = replace(follow, trust_dual=False)
        target = follow.program(model)
        settings = self.temperature, self.smoothing_mass, self.extend
        return softmax_program(target, model, states, duals, *settings)

    def chooser(self, model: LinearModel) -> Chooser:
        if self.extend is not None:
            raise PolicyError(
                "extend does not go with a linear model, whose actions depend on the state: leave "
                "it out"
            )
        target = self.target.chooser(model)
        if len(self.dual.values) == 0:
            return target
        dual = (self.dual.states, self.dual.actions, self.dual.values)
        return SoftmaxChooser.of(target, dual, self.temperature, self.smoothing_mass)


def greedy_actions(
    model: TabularModel,
    values: FloatArray,
    dual: FloatArray | None = None,
    *,
    noise: FloatArray | None = None,
    trust_dual: bool = False,
) -> IntArray:
    """Return the greedy action (S,) for values (S,); ties go to dual mass, then lowest action.

    `noise` (S,) is the size of the terms that the values were added up from, as in `tie_margin`.
    With `trust_dual` states with dual mass take the action of most mass, unsearched.
    """
    mass = np.zeros(model.n_pairs) if dual is None else dual
    if trust_dual:
        tied = mass > 0.0
        unknown = np.flatnonzero(by_state(model, mass)[model.pair_state] <= 0.0)
        tied[unknown] = _tied(model, values, unknown, noise)
    else:
        tied = _tied(model, values, slice(None), noise)
    mass = np.where(tied, mass, -1.0)
    top = np.maximum.reduceat(mass, model.pair_start[:-1])[model.pair_state]
    # Equal masses differ by rounding; among them the lowest action is taken.
    chosen = np.flatnonzero(tied & (mass >= top * (1.0 - SAME_MASS)))
    first = np.searchsorted(model.pair_state[chosen], np.arange(model.n_states))
    return model.pair_action[chosen[first]]


def _tied(
    model: TabularModel, values: FloatArray, pairs: IntArray | slice, noise: FloatArray | None
) -> Any:
    """Return which pairs, of all pairs of some states, are greedy within the margin of a tie."""
    quality = model.cost[pairs] + model.discount * (model.transition[pairs] @ values)
    starts = np.flatnonzero(np.diff(model.pair_state[pairs], prepend=-1))
    if len(starts) == 0:
        return np.zeros(0, dtype=np.bool_)
    best = np.minimum.reduceat(quality, starts)
    counts = np.diff(np.append(starts, len(quality)))
    return quality <= np.repeat(best, counts) + tie_margin(model, values, pairs, noise)


def tie_margin(
    model: TabularModel,
    values: FloatArray,
    pairs: IntArray | slice = slice(None),
    noise: FloatArray | None = None,
) -> FloatArray:
    """Return how much (n,) a pair's cost plus discounted next value may exceed another's in a tie.

    The margin is relative to the terms of the sum, not to the sum, which may cancel to zero; the
    second part is what rounding leaves of the values themselves. It is relative to `noise` (S,),
    the size of the terms that each value was added up from; where that is not known, to the costs
    of the state and of where the pair leads, so a huge cost elsewhere does not make ties here.
    """
    following = model.transition[pairs]
    terms = np.abs(model.cost[pairs]) + model.discount * (following @ np.abs(values))
    if noise is None:
        largest = np.maximum.reduceat(np.abs(model.cost), model.pair_start[:-1])
        nearby = (largest[model.pair_state[pairs]] + following @ largest) / (1.0 - model.discount)
    else:
        nearby = model.discount * (following @ noise)
    return np.asarray(tolerances.TIE * terms + np.finfo(float).eps * nearby)


def actions_to_probabilities(model: TabularModel, actions: IntArray) -> FloatArray:
    """Return a deterministic policy, one action per state, as probabilities over pairs."""
    if actions.shape != (model.n_states,):
        raise PolicyError(
            f"the policy has {actions.shape} actions, expected one for each of the "
            f"{model.n_states} states"
        )
    chosen = (model.pair_action == actions[model.pair_state]).astype(np.float64)
    missing = checks.first_index(by_state(model, chosen) == 0.0)
    if missing is not None:
        raise PolicyError(
            f"action {actions[missing]} is not admissible in {model.state_name(missing[0])}: "
            f"expected one of {model.actions(missing[0]).tolist()}"
        )
    return chosen


def checked_probabilities(model: TabularModel, policy: Policy) -> FloatArray:
    """Return a policy's probabilities over pairs, checked to be a distribution in every state."""
    if not isinstance(policy, Policy):
        raise PolicyError(f"policy is {policy!r}, expected a bellweight policy: wrap it in Table")
    chances = checks.float_array(
        policy.probabilities(model), "policy probabilities", (model.n_pairs,), PolicyError
    )
    bad = checks.first_index(chances < 0.0)
    if bad is not None:
        raise PolicyError(
            f"the policy gives probability {chances[bad]} to {model.pair_name(bad[0])}, expected "
            "no negative number"
        )
    totals = by_state(model, chances)
    off = checks.first_index(np.abs(totals - 1.0) > tolerances.PROBABILITY)
    if off is not None:
        raise PolicyError(
            f"the policy's probabilities in {model.state_name(off[0])} sum to {totals[off]:.12g}, "
            "expected 1"
        )
    return chances


def by_state(model: TabularModel, values: FloatArray) -> FloatArray:
    """Return the sums (S,) of values (N,) over the pairs of each state."""
    return np.add.reduceat(values, model.pair_start[:-1])
