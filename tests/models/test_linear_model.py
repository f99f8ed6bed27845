"""Linear models: laws, the builder, validation, files, enumeration."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear_models import shop
from scipy.stats import poisson as scipy_poisson

import bellweight as bw
from bellweight.models.enumerate import all_pairs, all_states

# Laws


def test_poisson_is_conditioned_on_its_limit() -> None:
    law = bw.Law.poisson(5.0, 15)
    mass = scipy_poisson.pmf(np.arange(16), 5.0)
    np.testing.assert_allclose(law.chances, mass / mass.sum(), rtol=1e-13)
    assert law.mean == pytest.approx(4.99921372, abs=1e-8)


def test_poisson_with_a_large_mean_does_not_overflow() -> None:
    law = bw.Law.poisson(2_000.0, 6_000)
    assert law.mean == pytest.approx(2_000.0, rel=1e-12)


@given(seed=st.integers(0, 2**32), n=st.integers(1, 5))
def test_draws_follow_the_law_and_do_not_depend_on_the_block(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    laws = [bw.Law(np.sort(rng.normal(size=k)), rng.dirichlet(np.ones(k))) for k in range(1, n + 1)]
    vector = bw.models.Independent(laws)
    key = np.uint64(seed)
    drawn = vector.sample(0, 4_000, key)
    np.testing.assert_array_equal(drawn[1_000:1_010], vector.sample(1_000, 1_010, key))
    spread = drawn.std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(drawn.mean(axis=0) - vector.mean) <= 6.0 * spread + 1e-12).all()
    outcomes, chances = vector.outcomes()
    np.testing.assert_allclose(chances @ outcomes, vector.mean, atol=1e-12)
    assert chances.sum() == pytest.approx(1.0)


# The builder


def test_the_builder_makes_the_matrices_of_the_mathematics() -> None:
    store = bw.LinearBuilder(discount=0.9, name="store")
    stock = store.states("stock", ["a", "b"], upper={"a": 9, "b": 7}, initial=bw.Law.certain(1))
    order = store.actions("order", ["a", "b"], [1, 2], upper=3)
    demand = store.noise("demand", bw.Law.poisson(1.0, 4))
    store.require(sum(order.values()) <= 4 + stock["a"], "truck")
    store.require(stock["b"] - order["b", 2] >= 0)
    store.follow(stock["a"], stock["a"] + order["a", 1] + 2 * order["a", 2] - demand)
    store.follow(stock["b"], 3)
    store.cost(2.0 * stock["a"] - order["b", 1] + 7)
    store.cost(stock["a"])
    store.prefer(order["a", 2] - 1)
    model = store.build()
    assert model.state_names == ("stock[a]", "stock[b]")
    assert model.action_names == ("order[a, 1]", "order[a, 2]", "order[b, 1]", "order[b, 2]")
    np.testing.assert_array_equal(model.state_cost, [3.0, 0.0])
    np.testing.assert_array_equal(model.action_cost, [0.0, 0.0, -1.0, 0.0])
    assert model.constant_cost == 7.0
    np.testing.assert_array_equal(model.state_rows.toarray(), [[-1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(model.row_upper, [4.0, np.inf])
    np.testing.assert_array_equal(model.row_lower, [-np.inf, 0.0])
    np.testing.assert_allclose(model.drift, [-bw.Law.poisson(1.0, 4).mean, 3.0])
    following = model.expected_next([[5.0, 2.0]], [[1.0, 1.0, 0.0, 0.0]])
    np.testing.assert_allclose(following, [[8.0 - bw.Law.poisson(1.0, 4).mean, 3.0]])
    np.testing.assert_array_equal(model.preference, [0.0, 1.0, 0.0, 0.0])
    assert model.row_names == ("truck", "constraint 2")


def misbuilt(kind: str) -> None:
    store = bw.LinearBuilder(discount=0.9)
    stock = store.state("stock", upper=9, initial=bw.Law.certain(1))
    order = store.action("order", upper=3)
    demand = store.noise("demand", bw.Law.poisson(1.0, 4))
    {
        "no follow": store.build,
        "two follows": lambda: (store.follow(stock, stock), store.follow(stock, order)),
        "follow of an action": lambda: store.follow(order, stock),
        "follow of a sum": lambda: store.follow(stock + order, stock),
        "product": lambda: stock * order,
        "random cost": lambda: store.cost(demand),
        "random constraint": lambda: store.require(order <= demand),
        "no comparison": lambda: store.require(stock + order),  # type: ignore[arg-type]
        "comparison of numbers": lambda: store.require(True),
        "same name": lambda: store.state("stock", upper=1, initial=bw.Law.certain(0)),
        "not a law": lambda: store.noise("other", 3.0),  # type: ignore[arg-type]
        "empty index": lambda: store.actions("many", []),
        "missing index": lambda: store.actions("many", ["a"], upper={"b": 1}),
        "strictly below": lambda: store.require(stock < 3),
        "strictly above": lambda: store.require(stock > 3),
        "two comparisons": lambda: store.require(1 <= stock <= 3),
        "text": lambda: store.cost("stock"),  # type: ignore[arg-type]
        "another builder": lambda: (
            store.follow(stock, bw.LinearBuilder(0.9).action("x")),
            store.build(),
        ),
    }[kind]()


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("no follow", "the next stock is not given"),
        ("two follows", "given twice"),
        ("follow of an action", "not a state variable"),
        ("follow of a sum", "single variable"),
        ("product", "not linear"),
        ("random cost", "demand, which is random"),
        ("random constraint", "demand is not known"),
        ("no comparison", "expected a comparison"),
        ("comparison of numbers", "expected a comparison"),
        ("same name", "already a state variable called stock"),
        ("not a law", "expected a Law"),
        ("empty index", "empty index set"),
        ("missing index", "nothing is given for index 'a'"),
        ("strictly below", "write <="),
        ("strictly above", "write >="),
        ("two comparisons", "as two constraints"),
        ("text", "neither a number nor"),
        ("another builder", "belongs to another builder"),
    ],
)
def test_builder_mistakes_are_explained(kind: str, text: str) -> None:
    with pytest.raises(bw.errors.ModelError, match=text):
        misbuilt(kind)


# Validation


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"state_cost": []}, "0 state and 1 action variables"),
        ({"discount": 1.0}, "strictly between 0 and 1"),
        ({"state_upper": np.inf}, "expected finite"),
        ({"state_lower": 7}, r"^stock has bounds 7 to 6, expected lower <= upper"),
        ({"state_upper": 6.5}, "state_upper contains 6.5, expected whole"),
        ({"next_state": [[0.5]]}, "next_state contains 0.5, expected whole"),
        ({"noise": bw.models.Independent([bw.Law([0.5], [1.0])])}, "noise contains 0.5"),
        ({"next_action": [[1.0, 2.0]]}, "next_action has shape"),
        ({"drift": [0.0]}, r"drift\[0\] is 0, but the noise has mean -1"),
        ({"row_upper": -1.0}, "no action meets the constraint space"),
        ({"row_upper": 5.0}, "where stock = 6"),
        ({"row_lower": 4.0, "action_upper": 3}, "where zero in every variable"),
        ({"row_lower": 9.0}, "row_lower above row_upper"),
        ({"first_cost": 3.0}, "cost_growth is not given: give both first_cost and cost_growth"),
        ({"first_cost": -1.0, "cost_growth": 0.0}, "first_cost is -1.0, expected a number of at"),
        ({"initial": bw.models.Independent([bw.Law.certain(7)])}, "outside its box"),
        ({"initial": "stock"}, "expected Independent laws or Sampled"),
        ({"noise": 3}, "expected Independent laws or Sampled"),
        ({"state_names": ("a", "b")}, "expected 1"),
        ({"preference": [1.0, 2.0]}, "preference has shape"),
        ({"action_cost": [np.nan]}, "finite"),
        ({"state_upper": [np.nan]}, "NaN"),
    ],
)
def test_wrong_data_are_refused(changes: dict[str, object], text: str) -> None:
    with pytest.raises(bw.errors.ModelError, match=text):
        shop(**changes)


def test_continuous_variables_need_no_whole_numbers() -> None:
    model = shop(state_upper=6.5, next_state=[[0.5]], integer_states=False, integer_actions=False)
    assert not model.is_integral


def noisy(states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Lose each unit of stock with probability 1/2: the mean depends on the state."""
    return -rng.binomial(states.astype(int), 0.5).astype(float)


def steady(states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(-2, 1, size=states.shape).astype(float)


def test_a_sampler_that_contradicts_its_mean_is_refused() -> None:
    with pytest.raises(bw.errors.ModelError, match=r"noise declares mean -0.5 .* have mean -"):
        shop(noise=bw.models.Sampled(noisy, mean=[-0.5]))
    start = bw.models.Sampled(lambda n, rng: np.full((n, 1), 5.0), mean=[3.0])
    with pytest.raises(bw.errors.ModelError, match=r"initial declares mean 3 .* draws have mean 5"):
        shop(initial=start)
    shop(noise=bw.models.Sampled(steady, mean=[-1.0]))


def test_a_sampler_of_another_shape_is_refused() -> None:
    with pytest.raises(bw.errors.ModelError, match="what the sampler returned has shape"):
        shop(noise=bw.models.Sampled(lambda s, a, rng: np.zeros(len(s)), mean=[0.0]))


# Simulation


def test_a_noise_function_and_the_same_law_give_the_same_cost() -> None:
    law = bw.models.Independent([bw.Law([-2, -1, 0], [1 / 3] * 3)])
    rule = bw.Rule(lambda states: (states[:, :1] < 3).astype(float))
    by_law = bw.evaluate(shop(noise=law), rule, episodes=20_000)
    by_function = bw.evaluate(shop(noise=bw.models.Sampled(steady, [-1.0])), rule, episodes=20_000)
    assert abs(by_law.mean - by_function.mean) <= 3.0 * by_law.half_width
    again = bw.evaluate(
        shop(noise=bw.models.Sampled(steady, [-1.0])), rule, episodes=20_000, jobs=1
    )
    assert again == by_function


def test_rules_are_checked_where_they_act() -> None:
    with pytest.raises(bw.errors.PolicyError, match=r"order is 4, expected 0 to 3"):
        bw.evaluate(shop(), bw.Rule(lambda states: np.full((len(states), 1), 4.0)), episodes=10)
    with pytest.raises(bw.errors.PolicyError, match="whole number"):
        bw.evaluate(shop(), bw.Rule(lambda states: np.full((len(states), 1), 0.5)), episodes=10)
    with pytest.raises(bw.errors.PolicyError, match="returned shape"):
        bw.evaluate(shop(), bw.Rule(lambda states: np.zeros(len(states))), episodes=10)
    with pytest.raises(bw.errors.PolicyError, match="not a policy for linear models"):
        bw.evaluate(shop(), bw.TablePolicy(np.zeros(3, dtype=int)), episodes=10)


def test_uniform_actions_are_admissible_and_reach_every_value() -> None:
    model = shop()
    states = np.repeat(np.arange(7.0), 400)[:, None]
    choose = bw.Uniform().chooser(model).worker()
    actions, _ = choose(states, np.arange(len(states), dtype=np.uint64), 3)
    assert model.inadmissible(states, actions) is None
    for stock, most in ((0, 3), (5, 3), (6, 2)):
        seen = actions[states[:, 0] == stock, 0]
        np.testing.assert_array_equal(np.unique(seen), np.arange(most + 1))


# Enumeration and files


def test_enumeration_agrees_with_the_model() -> None:
    model = shop()
    with pytest.raises(bw.errors.ModelError, match="leaves the box"):
        model.to_tabular()
    table = model.to_tabular(clip=True)
    assert table.n_states == 7
    assert table.n_pairs == 6 * 4 + 3
    states = all_states(model, 100)
    number, actions = all_pairs(model, states, 100)
    np.testing.assert_allclose(table.cost, model.cost(states[number], actions))
    mean = (table.transition @ table.states)[:, 0]
    inside = (states[number] + actions)[:, 0]
    far_from_edges = (inside >= 2) & (inside <= 6)
    wanted = model.expected_next(states[number], actions)[:, 0]
    np.testing.assert_allclose(mean[far_from_edges], wanted[far_from_edges])


def test_enumeration_refuses_what_is_too_large_or_endless() -> None:
    with pytest.raises(bw.errors.ModelError, match="states, expected at most"):
        bw.problems.scheduling("small").to_tabular(clip=True)
    with pytest.raises(bw.errors.ModelError, match="order has no bound"):
        shop(action_upper=np.inf, row_upper=np.inf).to_tabular(clip=True)


def test_a_model_survives_its_file(tmp_path: Path) -> None:
    for model in (shop(), bw.problems.scheduling("tiny")):
        model.save(tmp_path / "model.npz")
        again = bw.LinearModel.load(tmp_path / "model.npz")
        assert again.digest == model.digest
        assert again.kernels == model.kernels
    with pytest.raises(bw.errors.ModelError, match="noise is a function"):
        shop(noise=bw.models.Sampled(steady, [-1.0])).save(tmp_path / "other.npz")


def test_the_digest_tells_models_apart() -> None:
    assert shop().digest == shop(name="another name").digest
    assert shop().digest != shop(row_upper=9.0).digest
    assert shop().digest != shop(initial=bw.models.Independent([bw.Law.uniform(2, 5)])).digest


def test_a_box_beyond_all_integers_is_too_large_to_be_enumerated() -> None:
    desk = bw.LinearBuilder(discount=0.9)
    stock = desk.state("stock", upper=1e30, initial=bw.Law.certain(0))
    sold = desk.action("sold", upper=3)
    desk.require(sold <= stock + 3)
    desk.follow(stock, stock)
    with pytest.raises(bw.errors.ModelError, match=r"1e\+30 states, expected at most"):
        desk.build().to_tabular()
