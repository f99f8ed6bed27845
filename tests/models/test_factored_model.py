"""Factored models: rows, episodes, policies and bounds against the same model, listed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.backends import backend_of
from bellweight.models import FactoredModel, Law, Local

LEVELS = 4
WEAR = (0.2, 0.5, 0.9)
BURDEN = (2.0, 1.0, 0.5)
CREWS = ((), (0,), (1,), (2,), (0, 2))


def machine(i: int) -> Local:
    """A machine wears faster if its neighbour is worn; the crew renews it."""

    def law(neighbour: int, level: int, action: int) -> Any:
        chances = np.zeros(LEVELS)
        wear = 0.0 if i in CREWS[action] else min(1.0, WEAR[i] + 0.03 * neighbour)
        chances[0 if i in CREWS[action] else level] += 1.0 - wear
        chances[min(level + 1, LEVELS - 1)] += wear
        return chances

    return Local([(i + 1) % 3, i], law)


def shop(**options: Any) -> FactoredModel:
    given: dict[str, Any] = {
        "sizes": [LEVELS] * 3,
        "actions": [f"renew {crew}" for crew in CREWS],
        "laws": [machine(i) for i in range(3)],
        "costs": [
            *(Local([i], BURDEN[i] * np.tile(np.arange(4.0)[:, None] ** 2, 5)) for i in range(3)),
            Local([], lambda action: 4.0 * len(CREWS[action])),
        ],
        "admissible": [Local([2], lambda level, action: not (action == 4 and level == 0))],
        "discount": 0.9,
        "initial": [0, Law([0, 1], [0.5, 0.5]), 2],
        "compiled": False,
        "name": "shop",
    }
    return FactoredModel(**{**given, **options})


@pytest.fixture(scope="module")
def model() -> FactoredModel:
    return shop()


@pytest.fixture(scope="module")
def listed(model: FactoredModel) -> bw.TabularModel:
    return model.to_tabular()


def by_hand(state: tuple[int, ...], action: int) -> np.ndarray:
    """The chances of all 64 next states."""
    joint = np.ones(())
    for i in range(3):
        if i in CREWS[action]:
            own = np.eye(LEVELS)[0]
        else:
            wear = min(1.0, WEAR[i] + 0.03 * state[(i + 1) % 3])
            own = (1.0 - wear) * np.eye(LEVELS)[state[i]]
            own = own + wear * np.eye(LEVELS)[min(state[i] + 1, LEVELS - 1)]
        joint = np.multiply.outer(joint, own)
    return joint.ravel()


def test_the_listed_model_is_the_product_of_the_laws(listed: bw.TabularModel) -> None:
    transition = listed.transition.toarray()
    assert len(transition) == 64 * 5 - 16
    for pair in range(0, len(transition), 7):
        state = tuple(listed.states[listed.pair_state[pair]].astype(int))
        action = int(listed.pair_action[pair])
        np.testing.assert_allclose(transition[pair], by_hand(state, action), atol=1e-15)
        worn = sum(b * x * x for b, x in zip(BURDEN, state, strict=True))
        assert listed.cost[pair] == pytest.approx(worn + 4.0 * len(CREWS[action]))


@pytest.mark.parametrize(
    "basis",
    [
        bw.Stacked(bw.PiecewiseLinear([1.0, 2.0]), bw.Polynomial(2)),
        bw.bases.ClippedProducts([(0, 1), (1, 2)], [1, 2]),
        bw.Polynomial(3),
    ],
    ids=["kinks and squares", "pairs", "cubes"],
)
def test_rows_are_those_of_the_listed_model(
    model: FactoredModel, listed: bw.TabularModel, basis: Any
) -> None:
    """Expectations are exact though no joint successor is listed."""
    found = bw.SampledRows(listed.states).on(model, basis)
    features = np.asarray(basis.on(listed.states)(listed.states))
    wanted = features[listed.pair_state] - 0.9 * (listed.transition @ features)
    rows, cost = found.rows(np.arange(found.n_pairs))
    np.testing.assert_allclose(rows, wanted, atol=1e-12)
    np.testing.assert_allclose(cost, listed.cost, atol=1e-12)


def test_greedy_actions_are_those_of_the_listed_model(
    model: FactoredModel, listed: bw.TabularModel
) -> None:
    basis = bw.Polynomial(2)
    coef = np.random.default_rng(3).normal(size=10)
    value = np.asarray(basis(listed.states)) @ coef
    quality = listed.cost + 0.9 * (listed.transition @ value)
    chosen = bw.Greedy(basis=basis, coef=coef).on(model).actions(listed.states.astype(int))
    for x, action in enumerate(chosen):
        pairs = slice(listed.pair_start[x], listed.pair_start[x + 1])
        best = quality[pairs].min()
        own = quality[pairs][listed.pair_action[pairs] == action]
        assert own == pytest.approx(best, abs=1e-9)


def test_all_rows_by_elimination_give_the_program_of_the_listed_model(
    model: FactoredModel, listed: bw.TabularModel
) -> None:
    basis = bw.PiecewiseLinear([1.0, 2.0])
    found = bw.solve(model, basis, bw.Fixed(), judge=False)
    wanted = bw.solve(listed, basis, bw.Fixed(), judge=False)
    assert "by elimination" in found.model_size
    assert found.objective == pytest.approx(wanted.objective, rel=1e-9)
    assert found.lower_bound == pytest.approx(wanted.lower_bound, rel=1e-9)
    assert found.lower_bound <= listed.initial @ bw.exact.optimal(listed).values


def test_episodes_cost_what_the_listed_model_says(
    model: FactoredModel, listed: bw.TabularModel
) -> None:
    exact = listed.initial @ bw.exact.policy_value(listed, bw.Uniform(), horizon=30)
    found = bw.evaluate(model, bw.Uniform(), episodes=1_500, horizon=30, seed=3)
    assert abs(found.mean - exact) < 1.5 * found.half_width
    tail, _ = backend_of(model).tail(bw.Uniform(), 30)
    whole = listed.initial @ bw.exact.policy_value(listed, bw.Uniform())
    assert tail is not None
    assert whole - exact <= tail


def test_sampled_rows_and_checks_work_without_joint_events(model: FactoredModel) -> None:
    assert bw.testing.check_model(model).checked
    bw.testing.check_basis(model, bw.PiecewiseLinear([1.0, 2.0]))
    bw.testing.check_policy(model, bw.Uniform())
    rows = bw.SampledRows(model.spread_states(40))
    result = bw.solve(
        model, bw.PiecewiseLinear([1.0]), bw.DIA(), rows=rows, judge=False,
        simulation=bw.Simulation(episodes=20, horizon=20), stop=bw.Stop(max_iterations=2),
    )  # fmt: skip
    assert result.lower_bound is None


def many() -> FactoredModel:
    """Ten machines with five levels: 9.8 million states, and as many joint successors."""
    worn = np.eye(5) * 0.5 + np.eye(5)[np.minimum(np.arange(1, 6), 4)] * 0.5
    new = np.tile(np.eye(5)[0], (5, 1))
    laws = [
        Local([i], np.stack([new if a == i + 1 else worn for a in range(11)], axis=1))
        for i in range(10)
    ]
    costs = [Local([i], lambda level, action: float(level)) for i in range(10)]
    return FactoredModel(
        sizes=[5] * 10, actions=11, laws=laws, costs=costs, discount=0.9, compiled=False
    )


def test_ten_machines_need_no_list_of_joint_successors() -> None:
    model = many()
    result = bw.solve(model, bw.PiecewiseLinear([1.0, 2.0, 3.0]), bw.Fixed(), judge=False)
    assert result.lower_bound is not None
    assert result.lower_bound > 0.0
    with pytest.raises(bw.errors.ModelError, match=r"9.77e\+06 states, expected at most"):
        model.to_tabular()
    with pytest.raises(bw.BellweightError, match=r"some functions look at x1, .* together"):
        bw.SampledRows(model.spread_states(20)).on(model, bw.Radial(3))


BAD: list[tuple[dict[str, Any], str]] = [
    ({"cost_growth": -1.0}, "cost_growth is -1.0, expected a number of at least 0"),
    ({"laws": [machine(0)]}, r"laws has 1 entries, expected one for each of the 3"),
    (
        {"laws": [Local([0], lambda level, action: [0.5, 0.4, 0.0, 0.0])] * 3},
        r"laws\[0\] gives \[0.5, 0.4.*for x1 = 0, action 0 \(renew \(\)\), with the sum 0.9",
    ),
    ({"laws": [Local([0], lambda level, action: [1.0])] * 3}, r"laws\[0\].*expected 4 chances"),
    ({"laws": [Local([0, 5], lambda *given: [1.0])] * 3}, r"scope \[0, 5\], expected coordin"),
    ({"laws": [Local([0], lambda level: [1.0])] * 3}, r"laws\[0\] fails for the values \[0\]"),
    ({"costs": [Local([0], lambda level, action: np.nan)]}, r"costs\[0\] gives \[nan\] for x1 = 0"),
    ({"costs": ["level"]}, r"costs\[0\] is 'level', expected Local"),
    (
        {"admissible": [Local([1], lambda level, action: level < 3)]},
        r"admissible\[0\] allows no action where x2 = 3",
    ),
    ({"initial": [0, 0]}, r"initial has 2 coordinates, expected 3"),
    ({"initial": [0, 0, 4]}, r"takes the value 4, outside the state space"),
    ({"sizes": [4, 0, 4]}, r"sizes"),
]


@pytest.mark.parametrize(("change", "words"), BAD, ids=[words[:24] for _, words in BAD])
def test_bad_input_is_refused_with_its_place(change: dict[str, Any], words: str) -> None:
    with pytest.raises(bw.BellweightError, match=words):
        shop(**change)


def test_a_state_of_the_wrong_kind_is_refused(model: FactoredModel) -> None:
    with pytest.raises(bw.errors.ModelError, match=r"expected \(n, 3\)"):
        model.check_states([[0, 1]])
    with pytest.raises(bw.errors.ModelError, match=r"coordinate 2 lies outside \[0, 3\]"):
        model.check_states([[0, 1, 4]])
