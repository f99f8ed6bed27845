"""Rows of tables to twice the digits, against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import bellweight as bw
from bellweight.program import AllRows


def test_rows_have_twice_the_digits_whatever_the_number_of_successors() -> None:
    rng = np.random.default_rng(7)
    n, discount = 40, 0.97
    chances = rng.random((n, 3, n)) * (
        rng.random((n, 3, n)) < np.linspace(0.0, 1.0, n)[:, None, None]
    )
    chances[chances.sum(axis=2) == 0.0, 0] = 1.0  # and some have one successor only
    chances /= chances.sum(axis=2, keepdims=True)
    chances = chances.transpose(1, 0, 2)
    model = bw.TabularModel.from_arrays(rng.random((n, 3)), chances, discount, np.full(n, 1 / n))
    rows = AllRows().on(model, bw.Polynomial(4))
    keys = np.append(rng.permutation(model.n_pairs), 5)
    exact, plain = rows.exact_rows(keys), rows.rows(keys)[0]
    assert np.abs(exact.low).max() > 0.0
    features = np.asarray(rows.features(slice(None)))
    for place, key in enumerate(keys):
        entries = slice(*model.transition.indptr[key : key + 2])
        places, shares = model.transition.indices[entries], model.transition.data[entries]
        for k in range(rows.n_basis):
            here = Fraction(features[model.pair_state[key], k])
            parts = [
                Fraction(discount) * Fraction(share) * Fraction(features[place_of, k])
                for place_of, share in zip(places, shares, strict=True)
            ]
            true, size = here - sum(parts), float(here + sum(parts)) or 1.0
            found = Fraction(exact.high[place, k]) + Fraction(exact.low[place, k])
            assert abs(found - true) <= 1e-28 * size
            assert abs(Fraction(plain[place, k]) - true) <= 1e-13 * size
    assert rows.exact_rows(keys[:0]).high.shape == (0, rows.n_basis)
