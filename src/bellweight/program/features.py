"""The features of a list of states, block by block: kept, or computed whenever they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bellweight.basis import Basis
from bellweight.common.blocks import blocks
from bellweight.common.checks import FloatArray, IntArray, Matrix
from bellweight.common.status import BasisError
from bellweight.common.threads import one_thread
from bellweight.common.workers import Ranges

_BLOCK_STATES = 1 << 15
_FEW_ENTRIES = 1 << 22  # a pass over fewer ends before a second thread has begun
_MOST_ENTRIES = 1 << 25  # of a piece, which is sent in one message
_MANY_PIECES = 8  # enough to keep a few workers busy to the end


@dataclass(frozen=True, eq=False)
class Features:
    """A fitted basis, the points (S, d) of the states, and their features (S, K) where kept."""

    basis: Basis
    points: Any
    kept: Matrix | None = None

    def at(self, states: IntArray | slice) -> Matrix:
        """Return the features (n, K) of some states."""
        if self.kept is not None:
            return self.kept[states]
        points = self.points[states]
        features = self.basis(np.asarray(points, dtype=np.float64))
        data = features.data if sparse.issparse(features) else features
        if not np.isfinite(data).all():
            dense = features.toarray() if sparse.issparse(features) else features
            bad = np.argwhere(~np.isfinite(dense))[0]
            raise BasisError(
                f"basis function {bad[1]} is not finite at state {points[bad[0]].tolist()}: "
                "change the function there"
            )
        return features

    def blocks(self) -> Iterator[tuple[slice, Matrix]]:
        """Go through all states: ranges of them, and their features."""
        for states in blocks(len(self.points), _BLOCK_STATES):
            yield states, self.at(states)

    def pieces(self, n_entries: int) -> Ranges:
        """Return ranges of states as pieces; all their features have so many entries."""
        n = max(min(_MANY_PIECES, n_entries // _FEW_ENTRIES), -(-n_entries // _MOST_ENTRIES), 1)
        # Of whole blocks: a function of many states may round otherwise where they are others.
        n_whole = -(-len(self.points) // _BLOCK_STATES)
        ranges = list(blocks(len(self.points), -(-n_whole // n) * _BLOCK_STATES))
        parts = [
            Features(self.basis, self.points[some], None if self.kept is None else self.kept[some])
            for some in ranges
        ]
        pieces = Ranges(parts, [some.start for some in ranges], by_threads=True)
        return pieces if self.kept is None else pieces.staying()  # what is kept is quick


def alone(features: Features, work: Callable[..., Any], *given: Any) -> Any:
    """Return work(features, *given), with linear algebra as it is in one thread."""
    with one_thread():
        return work(features, *given)


def values_of(features: Features, coef: FloatArray) -> FloatArray:
    """Return the values (S,) of coefficients."""
    return np.concatenate([np.asarray(block @ coef) for _, block in features.blocks()])


def terms_of(features: Features, coef: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return values (S,) and the sizes (S,) of their terms, from one look at the features."""
    size = np.abs(coef)
    parts = [
        (np.asarray(block @ coef), np.asarray(abs(block) @ size)) for _, block in features.blocks()
    ]
    values, terms = zip(*parts, strict=True)
    return np.concatenate(values), np.concatenate(terms)


def moments_of(features: Features, weights: FloatArray) -> FloatArray:
    """Return Phi' weights (K,) of these states."""
    return np.asarray(sum(block.T @ weights[states] for states, block in features.blocks()))
