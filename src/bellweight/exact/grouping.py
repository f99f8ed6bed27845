"""Groups of states, which move with each other: they carry corrections over long distances.

A sweep through the states (`passes.sweep`) corrects what neighbours know of each other; what
reaches over a whole grid takes as many sweeps as the grid is long. So states between which a chain
moves often are grouped in fours, pairs of pairs. The mean of a group's rows, its columns summed, is
a chain of groups with the same discount. The means of a residual go there and are solved for in the
same way, down to a few hundred groups, which are eliminated; the answer of a group is added to each
of its states (Notay, Aggregation-based algebraic multigrid for convection-diffusion equations,
2012). For a transpose sums go to the groups, and answers are shared out among the states.

Means and shares are weighted by how much a chain that begins anywhere is in each state of a group,
its presence. Where it mostly leaves one of two states at once, equal weights would let the groups
drift the wrong way. Presence is the solution of such a system itself: presence = inflow + discount
matrix' presence, the same inflow to all states. Two sweeps show it between neighbours. What comes
from far away the groups themselves carry, which makes better groups (`GroupedSweep.improved`;
Horton and Leutenegger, A multi-level solution algorithm for steady-state Markov chains, 1994).

Where groups have nearly as many transitions as states, as on random graphs, there are none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bellweight.common.checks import FloatArray, IntArray
from bellweight.exact.elimination import Band, Factors
from bellweight.exact.passes import merge, pair, sweep

SWEEP = 2.3  # passes in the time of one sweep, forwards and backwards
_FEW = 300  # states that are eliminated
_PRESENCE_SWEEPS = 2  # through the equations of presence, at each size of groups
_SHRUNK = 0.4  # of the transitions that groups may be left with
_FURTHER = 1.4  # times their answer: what is constant in each group falls short


class GroupedSweep:
    """Solves x = constant + discount matrix x about: groups of states first, then one sweep.

    It is a linear function of the constant, so GMRES takes it as a preconditioner. `passes` is what
    it costs, in passes over the matrix. `presence` (S,) is what is known of it beforehand, `inflow`
    (S,) what enters each state.
    """

    def __init__(
        self,
        matrix: sparse.csr_array,
        discount: float,
        *,
        is_transposed: bool,
        presence: FloatArray | None = None,
        inflow: FloatArray | None = None,
    ) -> None:
        n = matrix.shape[0]
        self._matrix, self._discount, self._is_transposed = matrix, discount, is_transposed
        self._pivots = 1.0 / (1.0 - discount * matrix.diagonal())
        self._inflow = np.full(n, 1.0 - discount) if inflow is None else inflow
        self.presence = np.ones(n) if presence is None else np.array(presence)
        self._factors: Factors | None = None
        self._groups: Groups | None = None
        self._coarser: GroupedSweep | None = None
        self.passes = SWEEP
        if n <= _FEW:
            self._factors = Band.as_numbered(matrix).factors(matrix, discount)
            return
        self._back = sparse.csr_array(matrix.T)
        self._spread_presence(self.presence)
        pairs = Groups.pairs(matrix, self._back, self.presence, is_transposed)
        found = Groups.pairs(
            pairs.matrix, sparse.csr_array(pairs.matrix.T), pairs.presence, is_transposed
        ).of(pairs)
        share = found.matrix.nnz / max(1, matrix.nnz)
        if share <= _SHRUNK:
            self._groups = found
            self._coarser = GroupedSweep(
                found.matrix,
                discount,
                is_transposed=is_transposed,
                presence=found.presence,
                inflow=_sums(found.group, self._inflow, len(found.presence)),
            )
            self.passes += share * (2.0 * self._coarser.passes + 1.0)

    @property
    def has_groups(self) -> bool:
        """Whether there is more than sweeps."""
        return self._groups is not None

    def improved(self) -> GroupedSweep:
        """Return the same with groups that are weighted by what these say of the presence."""
        return GroupedSweep(
            self._matrix,
            self._discount,
            is_transposed=self._is_transposed,
            presence=self._carried_presence(),
        )

    def _carried_presence(self) -> FloatArray:
        """Return the presence (S,) after that of the groups is known."""
        if self._factors is not None:
            found = self._factors(self._inflow, not self._is_transposed)
            return np.maximum(found, self._inflow)  # which rounding may undercut
        if self._groups is None or self._coarser is None:
            return self.presence
        x = self._coarser._carried_presence()[self._groups.group] * self._groups.share
        self._spread_presence(x)
        return x

    def _spread_presence(self, x: FloatArray) -> None:
        """Sweep through the equations of presence, in place."""
        flow = self._matrix if self._is_transposed else self._back
        entries = flow.indptr, flow.indices, flow.data
        for _ in range(_PRESENCE_SWEEPS):
            sweep(*entries, self._discount, self._pivots, self._inflow, x)

    def __call__(self, constant: FloatArray) -> FloatArray:
        if self._factors is not None:
            return self._factors(constant, False)
        if self._groups is None or self._coarser is None:
            x = np.zeros(len(constant))
        else:
            answer = self._coarser._twice(self._groups.gathered(constant))
            x = self._groups.spread(_FURTHER * answer)
        self.sweep(constant, x)
        return x

    def sweep(self, constant: FloatArray, x: FloatArray) -> None:
        """Solve each state's own equation in x, in place: forwards, then backwards."""
        entries = self._matrix.indptr, self._matrix.indices, self._matrix.data
        sweep(*entries, self._discount, self._pivots, constant, x)

    def _twice(self, constant: FloatArray) -> FloatArray:
        """Return the answer with what it leaves solved for once more."""
        x = self(constant)
        if self._factors is None:
            x += self(constant + self._discount * (self._matrix @ x) - x)
        return x


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each state (S,), its share of it, and the chain of the groups (G, G)."""

    group: IntArray
    share: FloatArray
    presence: FloatArray  # of the groups
    matrix: sparse.csr_array
    is_transposed: bool

    @classmethod
    def pairs(
        cls,
        matrix: sparse.csr_array,
        back: sparse.csr_array,
        presence: FloatArray,
        is_transposed: bool,
    ) -> Groups:
        """Pair the states of a chain, given with its transpose."""
        n = matrix.shape[0]
        group, members = np.full(n, -1), np.full((2, n), -1)
        entries = matrix.indptr, matrix.indices, matrix.data
        n_groups = pair(*entries, back.indptr, back.indices, back.data, group, members)
        whole = _sums(group, presence, n_groups)
        share, ones = presence / whole[group], np.ones(n)
        weights = (ones, share) if is_transposed else (share, ones)
        kind, places = matrix.indices.dtype, np.full(n_groups, -1)
        starts, columns = np.zeros(n_groups + 1, dtype=kind), np.empty(matrix.nnz, dtype=kind)
        data = np.empty(matrix.nnz)
        m = merge(*entries, *weights, group, members, places, starts, columns, data)
        found = data[:m].copy(), columns[:m].copy(), starts
        merged = sparse.csr_array(found, shape=(n_groups, n_groups))
        return cls(group, share, whole, merged, is_transposed)

    def of(self, first: Groups) -> Groups:
        """Return these groups of groups as groups of the states."""
        share = first.share * self.share[first.group]
        group = self.group[first.group]
        return Groups(group, share, self.presence, self.matrix, self.is_transposed)

    def gathered(self, constant: FloatArray) -> FloatArray:
        """Return the means (G,) of numbers (S,), or of a transpose their sums."""
        weighted = constant if self.is_transposed else constant * self.share
        return _sums(self.group, weighted, len(self.presence))

    def spread(self, answer: FloatArray) -> FloatArray:
        """Give the number of a group to its states (S,), or share it out."""
        x = answer[self.group]
        return x * self.share if self.is_transposed else x


def _sums(group: IntArray, numbers: FloatArray, n_groups: int) -> FloatArray:
    return np.asarray(np.bincount(group, numbers, n_groups), dtype=np.float64)
