"""The corollary's bound is rounded up: compared with its terms in rational arithmetic."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.certificates.fields import checksum


def _model(seed: int) -> bw.TabularModel:
    """A random model of seven states and two actions, with numbers that are no round ones."""
    rng = np.random.default_rng(seed)
    n = 7
    return bw.TabularModel.from_pairs(
        rng.uniform(0.0, 10.0, size=2 * n), rng.dirichlet(np.ones(n), size=2 * n),
        np.repeat(np.arange(n), 2), np.tile([0, 1], n), 0.99, np.full(n, 1.0 / n),
    )  # fmt: skip


def _exact_terms(model: Any, result: Any, certificate: Any) -> tuple[Fraction, Fraction]:
    """Return the weighted and the largest residual of the certificate's coefficients, exactly."""
    features = np.asarray(result.basis(model.states), dtype=float)
    coef = [Fraction(c) for c in certificate.record["coef"]]
    values = [
        sum((Fraction(float(f)) * c for f, c in zip(row, coef, strict=True)), Fraction(0))
        for row in features
    ]
    transition, discount = model.transition.toarray(), Fraction(model.discount)
    losses = []
    for x in range(model.n_states):
        own = model.admissible_actions(x).tolist()
        pair = int(model.pair_start[x]) + own.index(result.policy.action(x))
        ahead = sum((Fraction(float(p)) * v for p, v in zip(transition[pair], values, strict=True)),
                    Fraction(0))  # fmt: skip
        losses.append(Fraction(float(model.cost[pair])) + discount * ahead - values[x])
    weights = [Fraction(w) for w in certificate.record["weights"]]
    weighted = sum((w * loss for w, loss in zip(weights, losses, strict=True)), Fraction(0))
    return weighted, max(losses)


@pytest.mark.parametrize("seed", range(12))
def test_no_term_is_below_its_exact_value(seed: int) -> None:
    model = _model(seed)
    result = bw.solve(model, bw.Polynomial(2), bw.Fixed("uniform"), judge=False)
    certificate = bw.certify(model, result)
    weighted, largest = _exact_terms(model, result, certificate)
    assert certificate.weighted_residual is not None
    assert certificate.residual_sup is not None
    assert certificate.greedy_bound is not None
    assert Fraction(certificate.weighted_residual) >= weighted
    assert Fraction(certificate.residual_sup) >= largest
    terms = (certificate.mismatch, certificate.disagreement)
    mismatch, disagreement = (Fraction(float(term or 0.0)) for term in terms)
    left = 1 - Fraction(model.discount)
    total = (weighted + largest * (mismatch + 2 * (1 - left) * disagreement / left)) / left
    assert Fraction(certificate.greedy_bound) >= total
    # The margin is for rounding, not for comfort.
    assert certificate.weighted_residual == pytest.approx(float(weighted), rel=1e-9, abs=1e-11)
    assert certificate.residual_sup == pytest.approx(float(largest), rel=1e-9)
    assert bw.verify(model, certificate).passed


@pytest.mark.parametrize("share", [1e-6, 1e-3])
def test_a_smaller_claim_is_refused(share: float) -> None:
    model = _model(0)
    certificate = bw.certify(
        model, bw.solve(model, bw.Polynomial(2), bw.Fixed("uniform"), judge=False)
    )
    for term in ("weighted_residual", "residual_sup", "greedy_bound"):
        smaller = getattr(certificate, term) * (1.0 - share)
        forged = replace(certificate, **{term: smaller})
        forged = replace(forged, checksum=checksum(forged.content))
        found = bw.verify(model, forged)
        assert term in [check.term for check in found.checks if not check.passed]
