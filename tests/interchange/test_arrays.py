"""QuantEcon and toolbox arrays, there and back, against the other package's own answers."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mdptoolbox import mdp
from quantecon.markov import DiscreteDP
from same import assert_same
from scipy import sparse
from strategies import models

import bellweight as bw
from bellweight.interchange import from_quantecon, from_toolbox, to_quantecon, to_toolbox


def product_form(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    n, m = int(rng.integers(2, 8)), int(rng.integers(1, 4))
    rewards = rng.normal(size=(n, m))
    rewards[rng.random((n, m)) < 0.3] = -np.inf
    rewards[:, 0] = rng.normal(size=n)
    chances = rng.dirichlet(np.ones(n), size=(n, m))
    chances[rewards == -np.inf] = 0.0  # nothing is kept of what cannot happen
    return rewards, chances, float(rng.uniform(0.5, 0.95))


@pytest.mark.parametrize("seed", range(200))
def test_quantecon_models_there_and_back(seed: int) -> None:
    rewards, chances, beta = product_form(np.random.default_rng(seed))
    original = DiscreteDP(rewards, chances, beta)
    model = from_quantecon(original)
    back = to_quantecon(model, "product")
    np.testing.assert_array_equal(back.R, rewards)
    np.testing.assert_array_equal(back.Q, chances)
    assert back.beta == beta
    state, action = np.nonzero(rewards > -np.inf)
    pairs = DiscreteDP(rewards[state, action], chances[state, action], beta, state, action)
    again = to_quantecon(from_quantecon(pairs), sparse_rows=False)
    for name in ("R", "Q", "s_indices", "a_indices", "beta"):
        np.testing.assert_array_equal(getattr(again, name), getattr(pairs, name))
    theirs = original.solve(method="policy_iteration").v
    np.testing.assert_allclose(-bw.exact.optimal(model).values, theirs, rtol=1e-9, atol=1e-9)


@given(models())
def test_our_models_there_and_back(model: bw.TabularModel) -> None:
    assert_same(from_quantecon(to_quantecon(model), model.initial), model)
    assert_same(from_quantecon(to_quantecon(model, "product")), model)


def test_quantecon_pairs_in_any_order_and_inadmissible_ones() -> None:
    rows = sparse.csr_matrix(np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]))
    given_pairs = DiscreteDP([5.0, -np.inf, 1.0], rows, 0.9, [1, 0, 0], [0, 1, 0])
    model = from_quantecon(given_pairs, initial=1)
    assert model.pair_state.tolist() == [0, 1]
    assert model.cost.tolist() == [-1.0, -5.0]
    assert model.initial.tolist() == [0.0, 1.0]
    with pytest.raises(bw.BellweightError, match="expected a quantecon"):
        from_quantecon(3)


@pytest.mark.parametrize("form", ["state", "pair", "successor", "sparse"])
def test_toolbox_rewards_are_averaged_as_the_toolbox_does(form: str) -> None:
    rng = np.random.default_rng(3)
    chances = rng.dirichlet(np.ones(5), size=(3, 5))
    reward = {
        "state": rng.normal(size=5),
        "pair": rng.normal(size=(5, 3)),
        "successor": rng.normal(size=(3, 5, 5)),
        "sparse": rng.normal(size=(3, 5, 5)),
    }[form]
    theirs = mdp.PolicyIteration(chances, reward, 0.9)
    theirs.run()
    if form == "sparse":
        matrices = [sparse.csr_matrix(matrix) for matrix in chances]
        model = from_toolbox(matrices, [sparse.csr_matrix(part) for part in reward], 0.9)
    else:
        model = from_toolbox(chances, reward, 0.9)
    best = bw.exact.optimal(model)
    np.testing.assert_allclose(-best.values, theirs.V, rtol=1e-9)
    assert tuple(best.policy.entries) == theirs.policy


@given(st.integers(0, 10_000))
def test_toolbox_there_and_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = from_toolbox(rng.dirichlet(np.ones(6), size=(2, 6)), rng.normal(size=(6, 2)), 0.8)
    assert_same(from_toolbox(*to_toolbox(model), model.discount), model)


def test_toolbox_errors_say_what_to_do() -> None:
    with pytest.raises(bw.BellweightError, match="moveaxis"):
        from_toolbox(np.ones((5, 5, 2)) / 2, np.ones(5), 0.9)
    with pytest.raises(bw.BellweightError, match=r"reward has shape \(4,\)"):
        from_toolbox(np.eye(3)[None], np.ones(4), 0.9)
    for wrong in ([[1], [2, 3]], "costs", np.ones(2) * 1j):
        with pytest.raises(bw.BellweightError, match="reward is not an array of numbers"):
            from_toolbox(np.eye(2)[None], wrong, 0.9)
    with pytest.raises(bw.BellweightError, match="transitions is not an array of numbers"):
        from_toolbox("PR", np.ones(2), 0.9)
    part = bw.TabularModel.from_pairs([1, 2, 3], np.eye(2)[[0, 0, 1]], [0, 0, 1], [0, 1, 0], 0.5,
                                      [1, 0])  # fmt: skip
    with pytest.raises(bw.BellweightError, match="state 1 has 1 of 2 actions"):
        to_toolbox(part)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    model = bw.problems.single_queue(capacity=3)
    for name in ("quantecon", "polars", "gymnasium"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(bw.BellweightError, match=r"pip install 'bellweight\[quantecon\]'"):
        to_quantecon(model)
    with pytest.raises(bw.BellweightError, match=r"pip install 'bellweight\[polars\]'"):
        bw.interchange.to_frame(model, "polars")
