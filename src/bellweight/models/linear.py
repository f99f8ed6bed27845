"""A Markov decision process of vectors, given by matrices.

States s (n,) and actions a (m,) are vectors, of whole numbers unless said otherwise, and
everything that matters about them is linear:

    admissible     row_lower <= state_rows s + action_rows a <= row_upper,
                   action_lower <= a <= action_upper
    cost           state_cost' s + action_cost' a + constant_cost
    next state     next_state s + next_action a + noise_matrix w,   w random,
    its mean       next_state s + next_action a + drift

The box state_lower <= s <= state_upper says which states have a Bellman row. A simulated state may
leave it. With an affine value function the most violated row and the greedy action are both
answers of linear programs over integers, so no state is ever enumerated.

`LinearBuilder` makes the matrices from named variables.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from bellweight.common import checks, files, identity, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import ModelError
from bellweight.common.streams import Keys
from bellweight.models.enumerate import to_tabular
from bellweight.models.laws import Independent, Sampled, contradiction
from bellweight.models.linear_checks import check_every_row, check_initial, check_whole_numbers
from bellweight.models.tabular import TabularModel


class Kernels:
    """Compiled code that a problem registers to find actions; a method may return None.

    `greedy_action` and `random_action` return functions for the use of one thread, which may keep
    buffers: what such a function returns is valid until it is called again.
    """

    def greedy_action(
        self, action_price: FloatArray, tie_price: FloatArray
    ) -> Callable[[FloatArray], FloatArray] | None:
        """Return a function from states (n, d) to the cheapest admissible actions (n, m).

        It minimises action_price' a, and tie_price' a among equals.
        """
        return None

    def random_action(self) -> Callable[[FloatArray, Keys, int], FloatArray] | None:
        """Return a function from states (n, d), their streams (n,) and the step to actions."""
        return None

    def price(
        self,
        state_price: FloatArray,
        action_price: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return the state in the box and the action of least state_price' s + action_price' a."""
        return None


@files.storable("LinearModel")
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LinearModel(files.Saved, files.Changed):
    """States and actions are vectors, and all that matters about them is linear: pure data.

    `LinearBuilder` makes one from equations. Sizes: d state and m action variables, k noise
    variables, p constraints; one number stands for a whole vector. The mathematics is at the top of
    this module.

    Args:
        state_cost: cost per unit of each state variable (d,).
        action_cost: cost per unit of each action variable (m,).
        next_state: the next state's part that comes from the state (d, d).
        next_action: its part that comes from the action (d, m).
        noise: `Independent` laws (k,), or `Sampled`, a function with a claimed mean.
        initial: the first state's law, in the same way (d,).
        discount: how much a cost one step later counts, below one.
        state_upper: largest state (d,).
        state_lower: least state (d,).
        action_lower: least action (m,).
        action_upper: largest action (m,).
        state_rows: the constraints' part of the state (p, d).
        action_rows: their part of the action (p, m).
        row_lower: least value of each constraint (p,).
        row_upper: largest value of each constraint (p,).
        noise_matrix: how noise enters the next state (d, k); the identity by default.
        drift: the mean of the noise's part of the next state (d,); by default that of the laws.
        constant_cost: per step.
        integer_states: which state variables are whole numbers (d,).
        integer_actions: which action variables are whole numbers (m,).
        state_names: one for each.
        action_names: one for each.
        row_names: one for each.
        preference: breaks ties among greedy actions (m,): the smaller preference' a the better. By
            default the lexicographically smallest optimal action is taken.
        first_cost: with `cost_growth`, says that the expected |cost| of step t is at most
            first_cost + cost_growth t under every policy. Without them the tail of a simulated cost
            has no bound.
        cost_growth: see `first_cost`.
        kernels: compiled code that finds actions in place of a solver.
        name: for people.

    Examples:
        >>> bw.problems.scheduling("tiny").dimension
        4
    """

    state_cost: Any
    action_cost: Any
    next_state: Any
    next_action: Any
    noise: Independent | Sampled
    initial: Independent | Sampled
    discount: float
    state_upper: Any
    state_lower: Any = 0.0
    action_lower: Any = 0.0
    action_upper: Any = np.inf
    state_rows: Any = None
    action_rows: Any = None
    row_lower: Any = -np.inf
    row_upper: Any = np.inf
    noise_matrix: Any = None
    drift: Any = None
    constant_cost: float = 0.0
    integer_states: Any = True
    integer_actions: Any = True
    state_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    row_names: tuple[str, ...] = ()
    preference: Any = None
    first_cost: float | None = None
    cost_growth: float | None = None
    kernels: Kernels | None = None
    name: str = "linear model"

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "state_cost", checks.float_array(self.state_cost, "state_cost", (-1,)))
        put(self, "action_cost", checks.float_array(self.action_cost, "action_cost", (-1,)))
        n, m = self.dimension, self.n_action_variables
        if n == 0 or m == 0:
            raise ModelError(f"the model has {n} state and {m} action variables, expected some")
        put(self, "discount", checks.discount_factor(self.discount))
        self._check_tail()
        for kind, count in (("state", n), ("action", m)):
            self._put_bounds(kind, count)
        put(self, "next_state", _matrix(self.next_state, "next_state", (n, n)))
        put(self, "next_action", _matrix(self.next_action, "next_action", (n, m)))
        self._put_rows(n, m)
        self._put_noise(n)
        check_initial(self)
        if isinstance(self.kernels, files.Unstored):
            # A file keeps only kernels that are data; without them the general solver answers.
            put(self, "kernels", None)
        elif self.kernels is not None and not isinstance(self.kernels, Kernels):
            raise ModelError(
                f"kernels is {self.kernels!r}, expected an object of a subclass of Kernels"
            )
        if self.preference is not None:
            put(self, "preference", checks.float_array(self.preference, "preference", (m,)))
        for kind, count in (("state", n), ("action", m), ("row", len(self.row_upper))):
            put(self, f"{kind}_names", _names(getattr(self, f"{kind}_names"), kind, count))
        check_whole_numbers(self)
        check_every_row(self)
        _ = self.digest

    @property
    def dimension(self) -> int:
        """Number of state variables."""
        return len(self.state_cost)

    @property
    def n_action_variables(self) -> int:
        """Number of action variables."""
        return len(self.action_cost)

    def __repr__(self) -> str:
        return (
            f"LinearModel({self.name!r}: {self.dimension} state and {self.n_action_variables} "
            f"action variables, discount {self.discount:g})"
        )

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the data, and of functions as they are when the model is built."""
        apart = ("name", "kernels", "first_cost", "cost_growth")
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in apart}
        tail = None if self.first_cost is None else (self.first_cost, self.cost_growth)
        # The last two share a name, as in files of format 1: these know their model by this digest.
        return identity.digest(given | {"cost_bound": tail})

    @classmethod
    def from_format_1(cls, stored: dict[str, Any]) -> dict[str, Any]:
        """Take the declared bound on costs apart."""
        level, growth = stored.pop("cost_bound", None) or (None, None)
        return {**stored, "first_cost": level, "cost_growth": growth}

    @property
    def initial_mean(self) -> FloatArray:
        """The expected initial state (n,)."""
        return np.asarray(self.initial.mean)

    @cached_property
    def is_integral(self) -> bool:
        """Whether all variables are whole numbers."""
        return bool(self.integer_states.all() and self.integer_actions.all())

    def expected_next(self, states: Any, actions: Any) -> FloatArray:
        """Return the expected next states (N, n) of states (N, n) and actions (N, m)."""
        return np.asarray(
            (self.next_state @ np.asarray(states, dtype=np.float64).T).T
            + (self.next_action @ np.asarray(actions, dtype=np.float64).T).T
            + self.drift
        )

    def cost(self, states: Any, actions: Any) -> FloatArray:
        """Return the costs (N,) of a step."""
        return np.asarray(states @ self.state_cost + actions @ self.action_cost) + (
            self.constant_cost
        )

    def check_states(self, states: Any, name: str = "states") -> FloatArray:
        """Return states (N, n) as numbers, or say what is wrong with them."""
        array = checks.float_array(np.atleast_2d(states), name, (-1, self.dimension))
        fractional = self.integer_states & (array != np.round(array))
        wrong = checks.first_index(fractional)
        if wrong is not None:
            raise ModelError(
                f"{self.state_names[wrong[1]]} is {array[wrong]} in {name}, expected a whole number"
            )
        return array

    def inadmissible(self, states: FloatArray, actions: FloatArray) -> tuple[int, str] | None:
        """Return the first state whose action is not admissible, and what it violates; or None."""
        rows, whole = self.row_values(states, actions), self.integer_actions
        for values, low, high, integer, names in (
            (actions, self.action_lower, self.action_upper, whole, self.action_names),
            (rows, self.row_lower, self.row_upper, False, self.row_names),
        ):
            margin = tolerances.CONSTRAINT * (1.0 + np.abs(values))
            outside = (values < low - margin) | (values > high + margin) | ~np.isfinite(values)
            outside |= np.asarray(integer) & (
                np.abs(values - np.round(values)) > tolerances.CONSTRAINT
            )
            wrong = checks.first_index(outside)
            if wrong is not None:
                k = wrong[1]
                return wrong[0], (
                    f"{names[k]} is {values[wrong]:g}, expected {low[k]:g} to {high[k]:g}"
                    + (" and a whole number" if np.any(np.asarray(integer)) else "")
                )
        return None

    def row_values(self, states: FloatArray, actions: FloatArray) -> FloatArray:
        """Return the left-hand sides (N, c) of the constraints."""
        return np.asarray((self.state_rows @ states.T).T + (self.action_rows @ actions.T).T)

    def state_text(self, state: FloatArray) -> str:
        """Return a state as text, its zero entries left out."""
        parts = [
            f"{name} = {value:g}"
            for name, value in zip(self.state_names, state, strict=True)
            if value != 0.0
        ]
        return ", ".join(parts) if parts else "zero in every variable"

    def to_tabular(self, *, clip: bool = False, max_pairs: int = 2_000_000) -> TabularModel:
        """Enumerate the box: a `TabularModel` with these states, actions and transitions.

        A next state outside the box is an error, or with `clip` is moved to the box's edge, which
        makes another model: its expected next state is not affine.
        """
        return to_tabular(self, clip=clip, max_pairs=max_pairs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to an `.npz` file, whole or not at all."""
        for role in ("noise", "initial"):
            if isinstance(getattr(self, role), Sampled):
                raise ModelError(f"{role} is a function, which a file cannot hold: use Independent")
        super().save(path)

    def check_noise(
        self, states: FloatArray, actions: FloatArray, rng: np.random.Generator
    ) -> None:
        """Raise an error when the noise drawn for these pairs contradicts the declared mean."""
        assert isinstance(self.noise, Sampled)
        drawn = self.noise.drawn(len(states), rng, states, actions)
        found = contradiction(drawn, np.asarray(self.noise.mean))
        if found is not None:
            raise ModelError(
                f"noise declares mean {self.noise.mean[found[0]]:g} for component {found[0]}, but "
                f"{len(states):,} draws in the state {states[0].tolist()} have mean {found[1]:g}: "
                "the expected next state must be affine in state and action; correct the mean"
            )

    def _check_tail(self) -> None:
        pair = {"first_cost": self.first_cost, "cost_growth": self.cost_growth}
        missing = [name for name, value in pair.items() if value is None]
        if len(missing) == 1:
            raise ModelError(f"{missing[0]} is not given: give both {' and '.join(pair)}, or none")
        for name, value in pair.items():
            if value is not None and not 0.0 <= value < np.inf:
                raise ModelError(f"{name} is {value}, expected a number of at least 0")

    def _put_bounds(self, kind: str, count: int) -> None:
        put = object.__setattr__
        low = _spread(getattr(self, f"{kind}_lower"), f"{kind}_lower", count)
        high = _spread(getattr(self, f"{kind}_upper"), f"{kind}_upper", count)
        integer = np.broadcast_to(np.asarray(getattr(self, f"integer_{kind}s"), bool), (count,))
        put(self, f"integer_{kind}s", integer)
        names = _names(getattr(self, f"{kind}_names"), kind, count)
        wrong = checks.first_index(low > high)
        if wrong is not None:
            k = wrong[0]
            raise ModelError(
                f"{names[k]} has bounds {low[k]:g} to {high[k]:g}, expected lower <= upper"
            )
        finite = np.isfinite(low) & (np.isfinite(high) if kind == "state" else True)
        open_ended = checks.first_index(~finite)
        if open_ended is not None:
            raise ModelError(
                f"{names[open_ended[0]]} has bounds {low[open_ended]:g} to "
                f"{high[open_ended]:g}, expected finite ones: rows are priced over a box"
            )
        put(self, f"{kind}_lower", low)
        put(self, f"{kind}_upper", high)

    def _put_rows(self, n: int, m: int) -> None:
        put = object.__setattr__
        given = self.action_rows if self.action_rows is not None else self.state_rows
        count = 0 if given is None else given.shape[0] if sparse.issparse(given) else len(given)
        for name, width in (("state_rows", n), ("action_rows", m)):
            value = getattr(self, name)
            value = np.zeros((count, width)) if value is None else value
            put(self, name, _matrix(value, name, (count, width)))
        put(self, "row_lower", _spread(self.row_lower, "row_lower", count))
        put(self, "row_upper", _spread(self.row_upper, "row_upper", count))
        wrong = checks.first_index(self.row_lower > self.row_upper)
        if wrong is not None:
            raise ModelError(f"constraint {wrong[0]} has row_lower above row_upper: exchange them")

    def _put_noise(self, n: int) -> None:
        put = object.__setattr__
        if not isinstance(self.noise, Independent | Sampled):
            raise ModelError(f"noise is {self.noise!r}, expected Independent laws or Sampled")
        k = len(np.asarray(self.noise.mean))
        matrix = np.eye(n) if self.noise_matrix is None else self.noise_matrix
        put(self, "noise_matrix", _matrix(matrix, "noise_matrix", (n, k)))
        mean = np.asarray(self.noise_matrix @ np.asarray(self.noise.mean)).ravel()
        drift = mean if self.drift is None else checks.float_array(self.drift, "drift", (n,))
        put(self, "drift", drift)
        wrong = checks.first_index(
            np.abs(drift - mean) > tolerances.DECLARED * np.maximum(1.0, np.abs(mean))
        )
        if wrong is not None:
            raise ModelError(
                f"drift[{wrong[0]}] is {drift[wrong]:g}, but the noise has mean {mean[wrong]:g}: "
                "correct one of them, or leave drift out"
            )


def _matrix(value: Any, name: str, shape: tuple[int, int]) -> sparse.csr_array:
    dense = value.toarray() if sparse.issparse(value) else value
    return sparse.csr_array(checks.float_array(dense, name, shape))


def _spread(value: Any, name: str, count: int) -> FloatArray:
    if np.ndim(value) == 0:
        value = np.full(count, value)
    array = checks.float_array(value, name, (count,), finite=False)
    if np.isnan(array).any():
        raise ModelError(f"{name} contains NaN, expected numbers or infinity")
    return array


def _names(given: Any, kind: str, count: int) -> tuple[str, ...]:
    names = (
        tuple(f"{kind} {k}" for k in range(count)) if len(given) == 0 else tuple(map(str, given))
    )
    if len(names) != count or len(set(names)) != count:
        raise ModelError(f"{kind}_names has {len(set(names))} distinct names, expected {count}")
    return names
