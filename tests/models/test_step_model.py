"""Step models: rows, simulation and greedy actions against plain NumPy, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

import bellweight as bw
from bellweight.common.streams import stream_keys
from bellweight.models import Exponential, Gamma, Interval, Law, Normal
from bellweight.models.kernels.noise_draws import normal_quantile
from bellweight.models.noise import laid_out, law_draws, spread_draws

ORDERS = np.arange(0.0, 4.0)
DEMAND = Law([0.0, 1.0, 2.5], [0.2, 0.5, 0.3])


def step(state: Any, action: int, noise: Any) -> float:
    return min(max(state[0] + ORDERS[action] - noise[0], -2.0), 6.0)


def cost(state: Any, action: int, noise: Any, parameters: Any) -> float:
    after = state[0] + ORDERS[action] - noise[0]
    return parameters["order"] * ORDERS[action] + max(after, 0.0) + 9.0 * max(-after, 0.0)


def inventory(**options: Any) -> bw.StepModel:
    given: dict[str, Any] = {
        "dimension": 1, "actions": [f"order {a:g}" for a in ORDERS], "step": step, "cost": cost,
        "discount": 0.9, "noise": DEMAND, "initial": 1.0, "lower": -2, "upper": 6,
        "parameters": {"order": 2.0}, "name": "inventory",
    }  # fmt: skip
    return bw.StepModel(**{**given, **options})


@pytest.fixture(scope="module")
def model() -> bw.StepModel:
    return inventory()


def by_hand(states: np.ndarray, price: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """Expected costs (n, A) and successors (n, A, N)."""
    raw = states[:, :1, None] + ORDERS[None, :, None] - DEMAND.values[None, None, :]
    paid = np.maximum(raw, 0.0) + 9.0 * np.maximum(-raw, 0.0)
    return paid @ DEMAND.chances + price * ORDERS, np.clip(raw, -2.0, 6.0)


@pytest.mark.parametrize(
    "basis",
    [
        bw.Polynomial(3),
        bw.PiecewiseLinear([0.0, 2.5]),
        bw.Stacked(bw.Affine(), bw.Radial([[1.0], [3.0]], 1.5)),
    ],
    ids=["polynomial", "kinks", "bumps"],
)
def test_rows_are_those_computed_by_hand(model: bw.StepModel, basis: Any) -> None:
    states = np.linspace(-2.0, 6.0, 17)[:, None]
    rows = bw.SampledRows(states).on(model, basis)
    costs, after = by_hand(states)
    features = basis.on(states)
    ahead = np.asarray(features(after.reshape(-1, 1))).reshape(*after.shape, -1)
    expected = np.einsum("xank,n->xak", ahead, DEMAND.chances)
    wanted = np.asarray(features(states))[:, None, :] - 0.9 * expected
    found, found_cost = rows.rows(np.arange(rows.n_pairs))
    np.testing.assert_allclose(found, wanted.reshape(len(found), -1), atol=1e-12)
    np.testing.assert_allclose(found_cost, costs.ravel(), atol=1e-12)


def test_greedy_actions_and_costs_of_episodes_are_those_by_hand(model: bw.StepModel) -> None:
    basis, coef = bw.PiecewiseLinear([0.0, 2.0]), np.array([3.0, -4.0, 5.0, 1.0])
    policy = bw.Greedy(basis=basis, coef=coef).on(model)
    states = np.linspace(-2.0, 6.0, 41)[:, None]
    costs, after = by_hand(states)
    values = (np.asarray(basis(after.reshape(-1, 1))) @ coef).reshape(after.shape)
    quality = costs + 0.9 * values @ DEMAND.chances
    chosen = policy.actions(states)
    assert quality[np.arange(41), chosen] == pytest.approx(quality.min(axis=1), abs=1e-9)
    assert [policy.action(x) for x in states[:5]] == chosen[:5].tolist()
    # The cost of a policy is the solution of linear equations on the lattice of half numbers.
    grid = np.arange(-2.0, 6.25, 0.5)[:, None]
    acts = policy.actions(grid)
    costs, after = by_hand(grid)
    chain = np.zeros((len(grid), len(grid)))
    for x, a in enumerate(acts):
        for y, p in zip(after[x, a], DEMAND.chances, strict=True):
            chain[x, round((y + 2.0) * 2)] += p
    exact = np.linalg.solve(np.eye(len(grid)) - 0.9 * chain, costs[np.arange(len(grid)), acts])
    found = bw.evaluate(model, policy, episodes=20_000, horizon=150, seed=3)
    assert abs(found.mean - exact[6]) < 1.5 * found.half_width


def kinked(state: Any, features: Any) -> None:
    features[0] = 1.0
    features[1] = state[0]
    features[2] = max(state[0] - 1.0, 0.0) ** 2


def test_a_function_of_one_state_is_a_basis(model: bw.StepModel) -> None:
    basis, states = bw.Custom(kinked, ["1", "x", "square"]), np.linspace(-2.0, 6.0, 9)[:, None]
    np.testing.assert_allclose(basis(states)[:, 2], np.maximum(states[:, 0] - 1.0, 0.0) ** 2)
    found = bw.SampledRows(states).on(model, basis).rows(np.arange(36))[0]
    after = by_hand(states)[1]
    ahead = basis(after.reshape(-1, 1)).reshape(*after.shape, 3)
    wanted = basis(states)[:, None, :] - 0.9 * np.einsum("xank,n->xak", ahead, DEMAND.chances)
    np.testing.assert_allclose(found, wanted.reshape(36, 3), atol=1e-12)


def test_solving_without_rows_says_what_it_took(model: bw.StepModel) -> None:
    result = bw.solve(
        model, bw.PiecewiseLinear(5), bw.DIA(), simulation=bw.Simulation(episodes=100), judge=False
    )
    assert "all over the box" in str(result)
    assert "(1 dimension, " in str(result)
    rows = bw.SampledRows(np.arange(-2.0, 6.25, 0.25)[:, None]).on(model, result.basis)
    assert rows.separate(result.coef, 1.0).violation < 0.5
    assert bw.testing.check_model(model).checked


def test_auto_races_and_draws_states_again_without_rows(model: bw.StepModel) -> None:
    plan = bw.Auto({"Fixed": bw.Fixed()}, budget=12_000, rounds=1)
    short = bw.Simulation(episodes=100, horizon=20)
    race = bw.solve(model, bw.PiecewiseLinear([0.0, 2.5]), plan, simulation=short)
    assert "Round 1: constraint states of" in str(race)
    assert race.policy.action(1.0) in range(4)


def test_a_parameter_changes_costs_and_compiles_nothing(model: bw.StepModel) -> None:
    dearer = model.with_parameters(order=5.0)
    assert dearer.source == model.source
    assert dearer.digest != model.digest
    states = np.array([[0.5], [2.0]])
    found = dearer.expand(np.repeat(states, 4, axis=0), np.tile(np.arange(4), 2))[0]
    np.testing.assert_allclose(found, by_hand(states, 5.0)[0].ravel(), atol=1e-12)
    with pytest.raises(bw.errors.ModelError, match=r"no parameter 'ordr', expected order"):
        model.with_parameters(ordr=1.0)


def test_normal_quantiles_are_those_of_scipy() -> None:
    points = np.concatenate([np.logspace(-300, -1, 60), np.linspace(0.01, 0.99, 99)])
    assert [normal_quantile(p) for p in points] == pytest.approx(ndtri(points).tolist(), rel=1e-13)


LAWS = {
    "normal": (Normal(1.0, 2.0), stats.norm(1.0, 2.0)),
    "cut": (Normal(6.0, 3.5, 0.0, 10.0), stats.truncnorm(-6 / 3.5, 4 / 3.5, 6.0, 3.5)),
    "gamma": (Gamma(2.5, 1.5), stats.gamma(2.5, scale=1.5)),
    "small gamma": (Gamma(0.4), stats.gamma(0.4)),
    "exponential": (Exponential(3.0), stats.expon(scale=3.0)),
    "interval": (Interval(-1.0, 2.0), stats.uniform(-1.0, 3.0)),
}


@pytest.mark.parametrize("name", LAWS)
def test_laws_have_the_moments_and_the_distribution_that_they_claim(name: str) -> None:
    law, truth = LAWS[name]
    nodes, weights = law.quadrature(24)
    assert weights.sum() == pytest.approx(1.0)
    for power in (1, 2, 3):
        assert weights @ nodes**power == pytest.approx(truth.moment(power), rel=1e-9, abs=1e-9)
    drawn = law_draws(laid_out([law]), 20_000, stream_keys(5)[0])[:, 0]
    assert stats.kstest(drawn, truth.cdf).pvalue > 1e-4
    points = np.linspace(0.01, 0.99, 9)
    assert law.quantiles(points) == pytest.approx(truth.ppf(points), rel=1e-9)


def test_spread_draws_meet_every_part_of_each_law_once() -> None:
    coin = Law([3.0, 7.0, 8.0], [0.25, 0.0, 0.75])
    drawn = spread_draws([Interval(0.0, 8.0), coin], 8, np.random.default_rng(1))
    assert sorted(np.floor(drawn[:, 0])) == list(range(8))
    assert sorted(drawn[:, 1]) == [3.0] * 2 + [8.0] * 6
    assert not np.array_equal(np.argsort(drawn[:, 0]), np.argsort(drawn[:, 1], kind="stable"))


def far(state: Any, action: int, noise: Any) -> float:
    return state[0] + 1.0


def broken(state: Any, action: int, noise: Any) -> float:
    return np.nan if noise[0] > 0.5 else state[0]


def long(state: Any, action: int, noise: Any) -> Any:
    return state[0], state[0]


def silent(state: Any, action: int, noise: Any) -> Any:
    state[0] = 1.0


def still(state: Any) -> float:
    return state[0]


def changing(state: Any, action: int, noise: Any) -> float:
    state[0] = min(max(state[0] + ORDERS[action] - noise[0], -2.0), 6.0)
    return state[0]


def filling(state: Any, noise: Any, successor: Any) -> None:
    noise[0] += 1.0
    successor[0] = state[0]


def spoiled(state: Any, noise: Any) -> float:
    return np.nan if noise[0] == 0.0 else 1.0


def never(state: Any, action: int) -> bool:
    return state[0] > 1.5


def worded(state: Any) -> Any:
    return "much"


def unpaid(state: Any) -> None:
    """Forget to return anything."""


def own_numbers(rng: np.random.Generator) -> float:
    return float(OWN.random())


def two_numbers(rng: np.random.Generator) -> Any:
    return rng.random(2)


def fraction(rng: np.random.Generator) -> float:
    return 0.5


def growing(rng: np.random.Generator) -> Any:
    return rng.random(rng.integers(1, 9))


def failing(rng: np.random.Generator) -> float:
    return 1.0 / 0.0


OWN = np.random.default_rng(0)


BAD: list[tuple[dict[str, Any], str]] = [
    (
        {"step": far, "upper": 1.5},
        r"in state \[1\], action 0 \(order 0\), noise \[.*\]: .*out of the box between lower "
        r"and upper: \[2\] \(coordinate 0 has to be in \[-2, 1.5\], it is 0.5 outside\)",
    ),
    ({"actions": ["a", "b", "a", "c"]}, r"actions\[2\] is 'a', as actions\[0\] is"),
    ({"step": broken, "lower": None}, r"action 0 \(order 0\), noise \[1\]: the next state is"),
    ({"step": long}, r"returns \(.*\), expected the next state, 1 numbers"),
    ({"step": silent}, r"returns nothing, expected the next state"),
    ({"step": still}, r"'still' \(test_step_model.py, line \d+\) returns the state it was given"),
    ({"noise": ["normal"]}, r"noise\[0\] is 'normal', expected a law"),
    ({"noise": []}, r"noise is an empty list"),
    ({"initial": [1.0, 2.0]}, r"initial has 2 coordinates, expected 1"),
    (
        {"initial": 7.0},
        r"outside the state space \(coordinate 0 .*, it is 1 outside\)",
    ),
    ({"actions": 5}, r"with action 4 and noise .*IndexError"),
    ({"lower": [0, 1]}, r"lower has 2 entries, expected 1"),
    ({"lower": 7}, r"expected lower <= upper"),
    ({"integer": "yes"}, r"integer is 'yes'"),
    ({"integer": True}, r"declared whole|fraction"),
    ({"parameters": {}}, r"parameters\['order'\]"),
    ({"step": changing}, r"'changing' \(test_step_model.py, line \d+\).* changes the state"),
    ({"step": filling}, r"'filling' .* changes the noise it is given"),
    ({"cost": spoiled}, r"state \[1\], action 0 \(order 0\), noise \[0\]: the cost is not"),
    ({"admissible": never}, r"in state \[1\]: no action is admissible"),
    ({"initial": ["one"]}, r"initial\[0\] is 'one', expected a law"),
    ({"step": worded}, r"'worded' .* returns 'much', expected the next state"),
    ({"cost": unpaid}, r"cost function 'unpaid' \(.*, line \d+\) returns nothing, expected a num"),
    ({"cost": long}, r"cost function 'long' .* returns \(.*\), expected a number"),
    ({"admissible": worded}, r"admissible function 'worded' .* returns 'much', expected True or"),
    ({"initial": own_numbers}, r"the initial sampler gave .* for the same generator"),
    ({"initial": two_numbers}, r"the initial sampler returned 2 numbers, expected 1"),
    ({"initial": fraction, "integer": True}, r"sampler returned \[0.5\], but integer= declares"),
    ({"initial": 0.5, "integer": True}, r"initial\[0\] is 0.5, but integer= declares"),
    ({"initial": Normal(1.0, 0.1), "integer": True}, r"initial\[0\] is Normal.*, but integer="),
    ({"noise": growing}, r"the noise sampler returned vectors of shapes \(\d,\) and \(\d,\)"),
    ({"noise": failing}, r"the noise sampler fails \(ZeroDivisionError"),
    ({"noise": lambda: 1.0}, r"the noise sampler takes \(\), expected \(rng\)"),
    ({"actions": True}, r"actions is True, expected how many"),
    ({"actions": 0}, r"actions is 0, expected a whole number of at least 1"),
    ({"lipschitz": (1.0, 9.0)}, r"lipschitz is \(1.0, 9.0\), expected Lipschitz\(step="),
    ({"bends": [0.0]}, r"bends is \[0.0\], expected a function of action, noise and parameters"),
    ({"bends": worded}, r"bends is <function worded.*, expected a function of action"),
]


@pytest.mark.parametrize(("change", "words"), BAD, ids=[words[:24] for _, words in BAD])
def test_bad_input_is_refused_with_its_place(change: dict[str, Any], words: str) -> None:
    with pytest.raises(bw.BellweightError, match=words):
        inventory(compiled=False, **change)


def test_a_law_that_does_not_sum_to_one_is_refused() -> None:
    with pytest.raises(bw.errors.ModelError, match=r"chances sums? to 0.9"):
        inventory(noise=Law([0.0, 1.0], [0.5, 0.4]), compiled=False)


def test_states_of_the_wrong_length_or_outside_are_refused() -> None:
    model = inventory(compiled=False)
    policy = bw.Greedy(basis=bw.Affine(), coef=np.array([0.0, 1.0])).on(model)
    for state, words in {
        (1.0, 2.0): "policy.action takes one state, got a list of 2",
        (7.0,): r"coordinate 0 lies outside \[-2, 6\]",
        (np.nan,): "finite|NaN|nan",
    }.items():
        with pytest.raises(bw.BellweightError, match=words):
            policy.action(np.array(state))
    with pytest.raises(bw.errors.ModelError, match=r"shape \(1, 2\), expected \(n, 1\)"):
        bw.SampledRows([[1.0, 2.0]]).on(model, bw.Affine())
    assert policy.action(1) == policy.action(1.0) == policy.action([1.0])


def test_what_only_other_states_show_is_found_by_check_model() -> None:
    """A step that leaves the box far from where episodes begin, and a form that changes."""

    def leaving(state: Any, action: int, noise: Any) -> float:
        return 9.0 if state[0] > 5.0 else max(state[0] - noise[0], -2.0)

    model = inventory(step=leaving, compiled=False)
    with pytest.raises(bw.errors.ModelError, match=r"in state .*, noise .*out of the box"):
        bw.testing.check_model(model)
    with pytest.raises(bw.errors.ModelError, match=r"wrong length"):
        inventory(step=late_enough, compiled=False)


def late_enough(state: Any, action: int, noise: Any) -> Any:
    return (min(max(state[0] - noise[0], -2.0), 6.0),) if action < 2 else (1.0, 1.0)


def test_a_result_gives_the_value_of_a_state_and_is_saved_with_what_was_found() -> None:
    model, basis = inventory(compiled=False), bw.PiecewiseLinear([0.0, 2.0])
    rows = bw.SampledRows(np.linspace(-2.0, 6.0, 17)[:, None])
    few = bw.Simulation(episodes=4, horizon=10)
    result = bw.solve(
        model, basis, bw.PIA(), rows=rows, simulation=few, judge=False,
        stop=bw.Stop(max_iterations=2),
    )  # fmt: skip
    wanted = float((basis(np.array([[1.5]])) @ result.coef)[0])
    assert result.value(1.5) == result.value([1.5]) == pytest.approx(wanted)
    with pytest.raises(bw.BellweightError, match="outside"):
        result.value(7.0)
    with pytest.raises(bw.BellweightError, match=r"result.value takes one state, got a list of 2"):
        result.value([1.0, 2.0])


def test_results_are_saved_resumed_compared_and_certified(tmp_path: Any) -> None:
    model, basis = inventory(compiled=False, cost_growth=30.0), bw.PiecewiseLinear([0.0, 2.0])
    rows = bw.SampledRows(np.linspace(-2.0, 6.0, 9)[:, None])
    few = bw.Simulation(episodes=4, horizon=10)
    settings: dict[str, Any] = {"rows": rows, "simulation": few, "judge": False}
    stop = bw.Stop(max_iterations=1)
    result = bw.solve(model, basis, bw.DIA(), **settings, stop=stop)
    result.save(tmp_path / "result.npz")
    loaded = bw.Result.load(tmp_path / "result.npz", model=model)
    assert loaded.evidence == result.evidence
    assert loaded.policy.action(1.0) == result.policy.action(1.0)
    again = bw.solve(model, basis, bw.DIA(), **settings, stop=stop, resume=tmp_path / "result.npz")
    assert again.history[0].objective == pytest.approx(result.objective, rel=1e-12)
    paired = bw.compare(model, {"a": result.policy, "b": loaded.policy}, episodes=4, horizon=10)
    assert [gap.mean for gap in paired.differences.values()] == [0.0, 0.0]
    certificate = bw.certify(model, result, episodes=4)
    assert certificate.kind == "unproven"
    assert any("over the whole box, at (" in where for where in certificate.evidence)
    assert bw.verify(model, certificate).passed


def test_functions_need_not_think_of_actions_that_cannot_be_taken() -> None:
    def careful(state: Any, action: int, noise: Any) -> float:
        if action == 0:
            raise ValueError("nobody orders nothing")
        return min(max(state[0] + ORDERS[action] - noise[0], -2.0), 6.0)

    def something(state: Any, action: int) -> bool:
        return action > 0

    model = inventory(step=careful, admissible=something, compiled=False)
    assert model.admissible_mask(np.array([[1.0]])).tolist() == [[False, True, True, True]]


class Simulator:
    """What somebody already has: methods."""

    def start(self, rng: np.random.Generator) -> float:
        return float(rng.uniform(0.0, 2.0))

    def demand(self, rng: np.random.Generator) -> float:
        return float(rng.choice(DEMAND.values, p=DEMAND.chances))


def test_methods_draw_first_states_and_noise() -> None:
    simulator = Simulator()
    model = inventory(initial=simulator.start, noise=simulator.demand, draws=20, compiled=False)
    first = model.sample_initial(0, 50, np.uint64(1))
    assert 0.0 <= first.min() < 0.5
    assert 1.5 < first.max() <= 2.0
    assert set(model.nodes[:, 0]) <= set(DEMAND.values)


def anywhere(rng: np.random.Generator) -> float:
    return float(rng.uniform(0.0, 2.0))


def low(rng: np.random.Generator) -> float:
    return float(rng.uniform(0.0, 0.5))


def with_a_rare_one(rng: np.random.Generator) -> float:
    drawn = float(rng.uniform(0.0, 2.0))
    return drawn if drawn < 2.0 - 1e-9 else 5.0


def test_models_with_other_samplers_are_other_models() -> None:
    models = [inventory(initial=start, compiled=False) for start in (anywhere, low)]
    models += [inventory(noise=noise, compiled=False) for noise in (anywhere, with_a_rare_one)]
    assert len({model.digest for model in models}) == 4
    assert models[0].digest == inventory(initial=anywhere, compiled=False).digest
    rows = bw.SampledRows(np.linspace(-2.0, 6.0, 9)[:, None])
    result = bw.solve(models[0], bw.PiecewiseLinear([1.0]), bw.Fixed(), rows=rows, judge=False)
    with pytest.raises(bw.errors.ArgumentError, match="belongs to another model"):
        bw.certify(models[1], result, episodes=10)


def test_a_sampler_must_use_its_generator_only() -> None:
    own = np.random.default_rng(0)
    with pytest.raises(bw.errors.ModelError, match=r"noise sampler gave .* for the same generator"):
        inventory(noise=lambda rng: own.normal(size=1), compiled=False)


def test_a_sampler_gives_the_same_rows_and_episodes_again() -> None:
    def demand(rng: np.random.Generator, n: int) -> Any:
        return rng.choice(DEMAND.values, p=DEMAND.chances, size=(n, 1))

    first, again = (inventory(noise=demand, draws=200, compiled=False) for _ in range(2))
    np.testing.assert_array_equal(first.nodes, again.nodes)
    assert first.are_draws
    assert not np.array_equal(first.nodes, first.with_draws(1).nodes)
    costs = [
        bw.evaluate(m, bw.Uniform(), episodes=8, horizon=20, seed=1).mean for m in (first, again)
    ]
    assert costs[0] == costs[1]
