"""A Markov decision process whose states can be enumerated.

States are 0, ..., S - 1. A *pair* is a state with one of its admissible actions; pairs are sorted
by state, then action, so that the pairs of state x are `pair_start[x]:pair_start[x + 1]`. Costs and
transitions have one entry or one sparse row per pair:

    cost (N,)    transition (N, S) CSR    pair_state (N,)    pair_action (N,)

Costs are minimised. A reward model is given with `sense="max"`: its rewards are negated here, at
the border, and every value that Bellweight reports is then a cost, minus the reward.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse

from bellweight.common import checks, files, memory
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import ModelError

_ENTRY = 12  # bytes of a transition: its probability and the state it leads to
_HASHED = 1 << 16  # numbers at a time of which a fingerprint is made

Sense = Literal["min", "max"]


@files.storable("TabularModel")
@dataclass(frozen=True, eq=False)
class TabularModel(files.Saved):
    """Sorted state-action pairs with sparse transitions: `from_pairs` and `from_arrays` make one.

    Fields are validated on construction and read-only afterwards. S states, N pairs.

    Args:
        cost: of each pair (N,); always a cost, also where rewards were given.
        transition: probabilities of the next state (N, S), sparse; every row sums to one.
        pair_state: the state of each pair (N,), rising.
        pair_action: the action of each pair (N,), rising within a state.
        discount: how much a cost one step later counts, below one.
        initial: the initial distribution (S,).
        state_vectors: coordinates of each state (S, d), which bases look at; by default its index.
        state_labels: names of the states.
        action_labels: names of the actions.
        sense: `"min"`, or `"max"` where rewards were given.
        name: for people.

    Examples:
        >>> stay, swap = np.eye(2), np.eye(2)[::-1]
        >>> bw.TabularModel.from_arrays(
        ...     cost=np.array([[0.0, 1.0], [3.0, 1.0]]),
        ...     transition=[stay, swap],
        ...     discount=0.9,
        ...     initial=[0.5, 0.5],
        ... )
        TabularModel('tabular model': 2 states, 4 pairs, 4 transitions, discount 0.9)
    """

    cost: FloatArray
    transition: sparse.csr_array
    pair_state: IntArray
    pair_action: IntArray
    discount: float
    initial: FloatArray
    state_vectors: FloatArray | None = None
    state_labels: tuple[str, ...] | None = None
    action_labels: tuple[str, ...] | None = None
    sense: str = "min"
    name: str = "tabular model"

    def __post_init__(self) -> None:
        put = object.__setattr__
        transition = _sparse_rows(self.transition, "transition")
        n_pairs, n_states = transition.shape
        if n_states == 0 or n_pairs == 0:
            raise ModelError(
                f"the model is empty: transition has shape {transition.shape}, expected at least "
                "one state with one action"
            )
        put(
            self, "pair_state", checks.index_array(self.pair_state, "pair_state", n_pairs, n_states)
        )
        put(self, "pair_action", checks.index_array(self.pair_action, "pair_action", n_pairs))
        put(self, "state_labels", _labels(self.state_labels, "state_labels", n_states, exact=True))
        # The action list may be longer than the actions in use.
        named = _labels(self.action_labels, "action_labels", self.n_actions, exact=False)
        put(self, "action_labels", named and checks.distinct(named, "action_labels"))
        self._check_order(n_states)
        put(self, "cost", self._checked_cost(n_pairs))
        largest = checks.transition_rows(
            transition, lambda row: f"row {row} ({self.pair_name(row)})"
        )
        put(self, "transition", transition)
        put(self, "discount", checks.discount_factor(self.discount))
        if self.discount * largest >= 1.0:
            raise ModelError(
                f"discount is {self.discount!r} and a transition row sums to {largest!r}, which "
                "together discount nothing: divide the rows by their sums"
            )
        initial = checks.distribution(self.initial, "initial", n_states, self.state_name)
        put(self, "initial", initial)
        checks.one_of(self.sense, "sense", ("min", "max"))
        if self.state_vectors is not None:
            vectors = np.asarray(self.state_vectors)
            vectors = vectors[:, None] if vectors.ndim == 1 else vectors
            put(self, "state_vectors", checks.float_array(vectors, "state_vectors", (n_states, -1)))

    @classmethod
    def from_pairs(
        cls,
        cost: Any,
        transition: Any,
        pair_state: Any,
        pair_action: Any,
        discount: float,
        initial: Any,
        *,
        sense: Sense = "min",
        state_vectors: Any = None,
        state_labels: Sequence[str] | None = None,
        action_labels: Sequence[str] | None = None,
        name: str = "tabular model",
    ) -> Self:
        """Build a model from one cost and one transition row per admissible pair.

        `transition` is (N, S), dense or any SciPy sparse format. Pairs are sorted by state, then
        action, without repetition, and every state has at least one. With `sense="max"`, `cost`
        holds rewards.
        """
        checks.one_of(sense, "sense", ("min", "max"))
        if sense == "max":
            cost = -checks.float_array(cost, "cost", (-1,), finite=False)
        return cls(
            cost=cost,
            transition=transition,
            pair_state=pair_state,
            pair_action=pair_action,
            discount=discount,
            initial=initial,
            state_vectors=state_vectors,
            state_labels=None if state_labels is None else tuple(state_labels),
            action_labels=None if action_labels is None else tuple(action_labels),
            sense=sense,
            name=name,
        )

    @classmethod
    def from_arrays(
        cls,
        cost: Any,
        transition: Any,
        discount: float,
        initial: Any,
        admissible: Any = None,
        **options: Any,
    ) -> Self:
        """Build a model from cost (S, A) and transition (A, S, S), or A sparse (S, S) matrices.

        `admissible` (S, A) says which actions exist in which state; costs and transitions of the
        others are not looked at. `options` are those of `from_pairs`.
        """
        costs = checks.float_array(cost, "cost", (-1, -1), finite=False)
        n_states, n_actions = costs.shape
        if n_states == 0 or n_actions == 0:
            raise ModelError(f"the model is empty: cost has shape {costs.shape}")
        _labels(options.get("action_labels"), "action_labels", n_actions, exact=True)
        allowed = _admissible(admissible, n_states, n_actions)
        matrices = _matrices(transition)
        if len(matrices) != n_actions:
            raise ModelError(
                f"transition has {len(matrices)} matrices, expected one per action ({n_actions})"
            )
        pair_state, pair_action = np.nonzero(allowed)
        for action, matrix in enumerate(matrices):
            if np.shape(matrix) != (n_states, n_states):
                raise ModelError(
                    f"transition[{action}] has shape {np.shape(matrix)}, expected "
                    f"({n_states}, {n_states})"
                )
        return cls.from_pairs(
            costs[pair_state, pair_action],
            _interleaved(matrices, pair_state, pair_action),
            pair_state,
            pair_action,
            discount,
            initial,
            **options,
        )

    @property
    def n_states(self) -> int:
        """Number of states, S."""
        return int(self.transition.shape[1])

    @property
    def n_pairs(self) -> int:
        """Number of admissible state-action pairs, N."""
        return len(self.pair_state)

    @cached_property
    def n_actions(self) -> int:
        """Length of the action list: the largest action index plus one."""
        return int(self.pair_action.max()) + 1

    @cached_property
    def pair_start(self) -> IntArray:
        """Offsets (S + 1,): the pairs of state x are pair_start[x]:pair_start[x + 1]."""
        return np.searchsorted(self.pair_state, np.arange(self.n_states + 1)).astype(np.int64)

    @cached_property
    def states(self) -> FloatArray:
        """State vectors (S, d), or the state indices (S, 1) when the model has no vectors."""
        if self.state_vectors is not None:
            return self.state_vectors
        indices = np.arange(self.n_states, dtype=np.float64)[:, None]
        indices.setflags(write=False)
        return indices

    @cached_property
    def digest(self) -> str:
        """A fingerprint of everything that decides an answer: not of names and labels."""
        rows = self.transition
        parts = (self.cost, rows.data, rows.indices, rows.indptr, self.pair_state, self.pair_action,
                 np.array([self.discount]), self.initial, self.states)  # fmt: skip
        hasher = hashlib.sha256()
        for part in parts:
            kind = np.int64 if part.dtype.kind == "i" else part.dtype
            hasher.update(str(part.shape).encode())
            for start in range(0, len(part), _HASHED):  # a copy would double the memory
                piece = np.ascontiguousarray(part[start : start + _HASHED], dtype=kind)
                hasher.update(piece.view(np.uint8).data)
        return hasher.hexdigest()

    def label(self, action: int) -> str:
        """Return the name of an action."""
        return self.action_labels[action] if self.action_labels else str(action)

    def state_name(self, state: int) -> str:
        """Return the name of a state, for messages and tables."""
        return f"state {state}" + (f" ({self.state_labels[state]})" if self.state_labels else "")

    def pair_name(self, pair: int) -> str:
        """Return the name of a pair, for messages."""
        action = int(self.pair_action[pair])
        named = f" ({self.action_labels[action]})" if self.action_labels else ""
        return f"{self.state_name(int(self.pair_state[pair]))}, action {action}{named}"

    def admissible_actions(self, state: int) -> IntArray:
        """Return the admissible actions of a state."""
        return self.pair_action[self.pair_start[state] : self.pair_start[state + 1]]

    def check_state(self, state: Any) -> int:
        """Return a state index, or say why it is not one."""
        return checks.state_index(state, self.n_states)

    def __repr__(self) -> str:
        return (
            f"TabularModel({self.name!r}: {self.n_states:,} states, {self.n_pairs:,} pairs, "
            f"{self.transition.nnz:,} transitions, discount {self.discount:g})"
        )

    def _check_order(self, n_states: int) -> None:
        state, action = self.pair_state, self.pair_action
        later = (state[1:] > state[:-1]) | ((state[1:] == state[:-1]) & (action[1:] > action[:-1]))
        wrong = checks.first_index(~later)
        if wrong is not None:
            row = wrong[0] + 1
            same = state[row] == state[row - 1] and action[row] == action[row - 1]
            problem = "repeats the pair before it" if same else "comes after a larger pair"
            raise ModelError(
                f"pair {row} ({self.pair_name(row)}) {problem}: sort the pairs by state, then "
                "action, and keep each once"
            )
        missing = np.ones(n_states, dtype=np.bool_)
        missing[state] = False
        empty = checks.first_index(missing)
        if empty is not None:
            raise ModelError(
                f"{self.state_name(empty[0])} has no action, expected at least one: add a pair "
                "(a do-nothing action if need be)"
            )

    def _checked_cost(self, n_pairs: int) -> FloatArray:
        cost = checks.float_array(self.cost, "cost", (n_pairs,), finite=False)
        bad = checks.first_index(~np.isfinite(cost))
        if bad is not None:
            raise ModelError(
                f"cost of {self.pair_name(bad[0])} is {cost[bad]}, expected a finite number: "
                "leave the pair out if the action is not admissible"
            )
        return cost


class OwnRows(sparse.csr_array):  # type: ignore[misc]
    """Rows that nobody else uses, so that a model may keep their arrays without a copy."""


def _sparse_rows(matrix: Any, name: str) -> sparse.csr_array:
    """Return float CSR rows with sorted, summed, non-zero entries; a copy, unless they are ours."""
    if not sparse.issparse(matrix):
        matrix = np.asarray(matrix)
        if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
            raise ModelError(
                f"{name} has shape {matrix.shape} and type {matrix.dtype}, expected a matrix of "
                "numbers with one row per pair and one column per state"
            )
    is_ours = isinstance(matrix, OwnRows)
    if sparse.issparse(matrix) and not is_ours:
        memory.check_fits(_ENTRY * matrix.nnz, f"a copy of {name} with {matrix.nnz:,} entries")
    rows = sparse.csr_array(matrix)
    _check_columns(rows, name)
    rows = rows if is_ours else _compact_copy(rows)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def _check_columns(rows: sparse.csr_array, name: str) -> None:
    if rows.nnz and not (rows.indices.min() >= 0 and rows.indices.max() < rows.shape[1]):
        raise ModelError(
            f"{name} has entries in the columns {rows.indices.min()} to {rows.indices.max()}, "
            f"expected 0 to {rows.shape[1] - 1}: one column per state"
        )


def _compact_copy(rows: sparse.csr_array) -> sparse.csr_array:
    """Return a float copy with indices in 32 bits where they fit: every pass reads them all."""
    kind = np.int32 if max(rows.nnz, rows.shape[1]) < 2**31 else np.int64
    indices, starts = np.array(rows.indices, dtype=kind), np.array(rows.indptr, dtype=kind)
    data = np.array(rows.data, dtype=np.float64)
    return sparse.csr_array((data, indices, starts), shape=rows.shape)


def _matrices(transition: Any) -> list[Any]:
    """Return the matrices of an array (A, S, S) or of a sequence."""
    if sparse.issparse(transition) or not isinstance(transition, Sequence | np.ndarray):
        raise ModelError(
            f"transition is {type(transition).__name__}, expected an array (actions, states, "
            "states) or a list of sparse matrices, one per action"
        )
    return list(transition)


def _interleaved(
    matrices: list[Any], pair_state: IntArray, pair_action: IntArray
) -> sparse.csr_array:
    """Return the rows (N, S) of pairs, taken from one matrix for each action.

    Every entry goes to its place at once: sparse matrices may be as large as memory allows.
    """
    counts = np.zeros(len(pair_state), dtype=np.int64)
    for action, matrix in enumerate(matrices):
        rows = _plain_rows(matrix, action)
        mine = np.flatnonzero(pair_action == action)
        counts[mine] = np.diff(rows.indptr)[pair_state[mine]]
    start = compact(np.append(0, np.cumsum(counts)))
    memory.check_fits(_ENTRY * float(start[-1]), f"a table with {start[-1]:,} transitions")
    data, indices = np.empty(start[-1]), np.empty(start[-1], dtype=np.int32)
    for action, matrix in enumerate(matrices):
        rows = _plain_rows(matrix, action)
        mine = np.flatnonzero(pair_action == action)
        if len(mine) < rows.shape[0]:
            rows = rows[pair_state[mine]]
        shift = start[mine] - rows.indptr[:-1]
        place = np.arange(rows.nnz, dtype=start.dtype)
        place += np.repeat(shift, np.diff(rows.indptr))
        data[place], indices[place] = rows.data, rows.indices
    return OwnRows((data, indices, start), shape=(len(pair_state), np.shape(matrices[0])[1]))


def compact(offsets: IntArray) -> Any:
    """Return offsets in 32 bits where they fit: SciPy gives all indices the wider of two types."""
    return offsets.astype(np.int32) if offsets[-1] < 2**31 else offsets


def _plain_rows(matrix: Any, action: int) -> sparse.csr_array:
    """Return a CSR matrix, without a copy where it is one."""
    if not sparse.issparse(matrix):
        return _sparse_rows(matrix, f"transition[{action}]")
    rows = sparse.csr_array(matrix)
    if rows.indices.dtype != np.int32:  # what lies beyond 32 bits would come back in another column
        _check_columns(rows, f"transition[{action}]")
    return rows


def _labels(labels: Any, name: str, length: int, *, exact: bool) -> tuple[str, ...] | None:
    if labels is None:
        return None
    if isinstance(labels, str) or len(labels) < length or (exact and len(labels) > length):
        raise ModelError(f"{name} has {len(labels)} entries, expected {length}: one label for each")
    return tuple(str(label) for label in labels)


def _admissible(mask: Any, n_states: int, n_actions: int) -> checks.BoolArray:
    if mask is None:
        return np.ones((n_states, n_actions), dtype=np.bool_)
    allowed = np.asarray(mask)
    if allowed.shape != (n_states, n_actions) or allowed.dtype != np.bool_:
        raise ModelError(
            f"admissible has shape {allowed.shape} and type {allowed.dtype}, expected booleans of "
            f"shape ({n_states}, {n_actions})"
        )
    empty = checks.first_index(np.asarray(~allowed.any(axis=1)))
    if empty is not None:
        raise ModelError(f"state {empty[0]} has no admissible action, expected at least one")
    return allowed
