"""The rows that the master program holds, in fixed coordinates.

Bounds on coefficients are rows, too: they come first, in the order of `IndependentFunctions`, and
the Bellman rows after them in the order of their keys.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from bellweight.common.checks import BoolArray, FloatArray, IntArray, Matrix
from bellweight.common.doubled import Doubled, doubled, stacked
from bellweight.program.conditioning import Coordinates
from bellweight.program.master import MasterLp
from bellweight.program.row_source import RowSource
from bellweight.program.solution import cost_unit

_MAX_ROWS = 20_000
_SMALL_MOMENTS = 1e-4  # unit of the moments of sparse functions


class WorkingSet:
    """The master program of a row source with the rows `keys`; it grows and stays warm.

    `lp` is the master to use, without rows; by default that of the plain program.
    """

    def __init__(
        self,
        rows: RowSource,
        coordinates: Coordinates,
        keys: IntArray,
        lp: MasterLp | None = None,
    ) -> None:
        self.rows = rows
        self.coordinates = coordinates
        raw, cost = rows.rows(keys)
        if lp is None:
            # Functions of single states may have tiny moments; the solver takes moments below its
            # tolerance for zero.
            moment_unit = _SMALL_MOMENTS if rows.is_sparse else 1.0
            lp = MasterLp(coordinates.rank, cost_unit(cost), moment_unit)
        self.lp = lp
        self.bound_rows, self.bound_cost = rows.functions.bounds(coordinates)
        self.raw_bounds = rows.functions.raw_bounds
        self.lp.add(self.bound_rows, self.bound_cost)
        self.keys = np.zeros(0, dtype=np.int64)
        self._load(keys, coordinates.rows(raw), cost)

    @property
    def cost_unit(self) -> float:
        """A typical cost, which the master is scaled by."""
        return self.lp.cost_unit

    @property
    def n_bounds(self) -> int:
        """Number of bounds on coefficients."""
        return len(self.bound_cost)

    def contains(self, keys: IntArray) -> BoolArray:
        """Return which keys are rows of the master program already."""
        return np.isin(keys, self.keys)

    def add(self, keys: IntArray) -> None:
        """Add rows to the master program."""
        raw, cost = self.rows.rows(keys)
        self._load(keys, self.coordinates.rows(raw), cost)

    def _load(self, keys: IntArray, rows: Matrix, cost: FloatArray) -> None:
        """Put rows (n, rank) with their costs (n,) into the master."""
        self.lp.add(rows, cost)
        self.keys = np.append(self.keys, keys)

    def trim(self, needed: IntArray) -> None:
        """Forget rows when there are too many, keeping the needed positions and the newest."""
        if len(self.keys) > _MAX_ROWS:
            newest = np.arange(len(self.keys) - _MAX_ROWS // 2, len(self.keys))
            wanted = np.union1d(needed[needed >= 0], newest)
            n = self.n_bounds
            self.lp.keep(np.concatenate([np.arange(n), wanted + n]))
            self.keys = self.keys[wanted]

    def rows_at(self, positions: IntArray) -> tuple[Matrix, FloatArray]:
        """Return rows of the master in its coordinates, bounds first, with their costs."""
        bounds = positions[positions < self.n_bounds]
        raw, cost = self.rows.rows(self._keys_at(positions))
        rows = self.coordinates.rows(raw)
        if len(bounds) == 0:
            return rows, cost
        stack = sparse.vstack if sparse.issparse(rows) else np.vstack
        return stack([self.bound_rows[bounds], rows]), np.append(self.bound_cost[bounds], cost)

    def exact_rows_at(self, positions: IntArray) -> Doubled:
        """Return rows (n, K) of the master, bounds first, to twice the digits."""
        bounds = self.raw_bounds[positions[positions < self.n_bounds]]
        return stacked(doubled(bounds), self.rows.exact_rows(self._keys_at(positions)))

    def _keys_at(self, positions: IntArray) -> IntArray:
        return self.keys[positions[positions >= self.n_bounds] - self.n_bounds]
