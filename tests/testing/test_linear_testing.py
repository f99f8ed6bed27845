"""The public conformance checks of linear models pass what is right and name what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

import bellweight as bw
from bellweight.policies.linear_actions import Chooser, Worker
from bellweight.testing import check_basis, check_model, check_policy


class Parts(NamedTuple):
    """A model in the making, with its variables."""

    shop: bw.LinearBuilder
    stock: Any
    order: Any


def parts(demand: bw.Law | None = None) -> Parts:
    """A shop that orders what it sells later; what is ordered beyond the shelf is not allowed."""
    shop = bw.LinearBuilder(discount=0.9, name="shop")
    stock = shop.state("stock", upper=20, initial=bw.Law.certain(10))
    order = shop.action("order", upper=8)
    sold = shop.noise("sold", demand or bw.Law.poisson(3, 6))
    shop.require(stock + order <= 20, "shelf")
    shop.follow(stock, stock + order - sold)
    shop.cost(2.0 * stock + 5.0 * order)
    return Parts(shop, stock, order)


def shop() -> bw.LinearModel:
    return parts().shop.build()


def sampled(fn: Callable[..., Any], mean: float = -3.0) -> bw.LinearModel:
    """The shop with a noise function in place of a law."""
    return replace(shop(), noise=bw.models.Sampled(fn, [mean]), noise_matrix=[[1.0]], drift=None)


def sales(states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return -rng.integers(0, 7, size=(len(states), 1)).astype(float)


@pytest.mark.parametrize("size", ["tiny", "small", pytest.param("large", marks=pytest.mark.slow)])
def test_the_clinics_are_in_order(size: str) -> None:
    model = bw.problems.scheduling(size)
    report = check_model(model)
    assert report.subject == f"{size} clinic"
    for kernel in ("random_action", "greedy_action", "price"):
        assert any(f"kernels.{kernel}" in text for text in report.checked)
    assert "saving and loading gives the same model" in report.checked
    assert check_policy(model, bw.Uniform()).notes == ("chooses at random",)


def test_a_model_without_kernels_is_in_order() -> None:
    report = check_model(shop())
    assert not any("kernels" in text for text in report.checked)
    assert "1 state and 1 action variables, 1 constraints" in report.checked


def test_the_note_on_the_box_says_how_far_simulated_states_go() -> None:
    inside = bw.LinearBuilder(discount=0.9)
    level = inside.state("level", upper=4, initial=bw.Law.uniform(0, 4))
    step = inside.action("step", upper=1)
    inside.follow(level, 2 + step)
    inside.cost(level)
    assert check_model(inside.build()).notes == ()
    # Orders of at most 8 and sales of 9 at least: the stock falls without end.
    (note,) = check_model(parts(bw.Law.uniform(9, 9)).shop.build()).notes
    assert "stock reaches -" in note
    assert "its box is 0 to 20" in note


def test_a_state_without_an_action_is_named() -> None:
    # The stock may reach 21, and then no order brings it back below 20.
    with pytest.raises(
        bw.errors.ModelError, match=r"no action is admissible in the state where stock ="
    ):
        check_model(parts(bw.Law.certain(-1)).shop.build())


def test_two_constraints_that_exclude_each_other_are_found_in_the_box() -> None:
    made, stock, order = parts()
    made.require(order >= 0.5 * stock - 4.0, "at least")
    made.require(order <= 0.25 * stock, "at most")
    with pytest.raises(
        bw.errors.ModelError, match=r"no action is admissible in the state where stock"
    ):
        check_model(made.build())


def test_a_cheapest_action_without_end_is_refused() -> None:
    made = bw.LinearBuilder(discount=0.9)
    level = made.state("level", upper=4, initial=bw.Law.certain(0))
    sell = made.action("sell")
    made.follow(level, level)
    made.cost(level - sell)
    with pytest.raises(
        bw.errors.ModelError, match=r"UNBOUNDED\): give the action variables bounds"
    ):
        check_model(made.build())


def test_where_no_random_action_is_known_paths_take_least_actions() -> None:
    made, stock, order = parts(bw.Law.uniform(0, 4))
    made.require(stock + order >= 4, "never short")
    model = made.build()
    with pytest.raises(bw.errors.PolicyError, match="a random action is known only where"):
        bw.evaluate(model, bw.Uniform(), 10)
    report = check_model(model)
    assert report.notes[0].startswith("Uniform() cannot act, simulated paths take least actions:")


def test_a_model_changed_behind_its_back_is_found_out() -> None:
    model = shop()
    model.row_upper.setflags(write=True)
    model.row_upper[0] = -1.0
    with pytest.raises(bw.errors.ModelError, match="no action meets the constraint shelf"):
        check_model(model)


@dataclass(frozen=True, eq=False, kw_only=True)
class Optimist(bw.LinearModel):
    """Expects other next states than it has."""

    def expected_next(self, states: Any, actions: Any) -> np.ndarray:
        return super().expected_next(states, actions) + 0.5


def test_an_expected_next_state_that_the_simulation_contradicts() -> None:
    fields = {name: getattr(shop(), name) for name in shop().__dataclass_fields__}
    with pytest.raises(
        bw.errors.ModelError, match=r"next values of stock exceed expected_next by -0\.[45]"
    ):
        check_model(Optimist(**fields))


def test_rare_events_do_not_contradict_their_mean() -> None:
    rare = bw.Law([0.0, 5.0], [1.0 - 1e-6, 1e-6])
    assert check_model(parts(rare).shop.build())


def test_a_noise_function_is_compared_with_its_mean() -> None:
    report = check_model(sampled(sales))
    assert any("the noise has its declared mean at 8 pairs" in text for text in report.checked)
    assert report.notes[0] == "its noise or initial states are a function: it cannot be saved"


def drifting(states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    # Right at the initial state without orders, where the constructor looks; wrong elsewhere.
    return sales(states, actions, rng) * (1.0 + actions)


def halves(states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return sales(states, actions, rng) + rng.choice([-0.5, 0.5], size=(len(states), 1))


def meddling(states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    drawn = sales(states, actions, rng)
    if actions.flags.writeable and len(states) > 1_000:
        states += 1.0
    return drawn


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (drifting, r"noise declares mean -3 for component 0, but 4,000 draws in the state"),
        (halves, r"stock is -?[0-9]+\.5 in a simulated state, expected a whole number"),
        (meddling, r"the noise function changes the states or actions it is given"),
    ],
)
def test_noise_functions_that_do_not_conform(fn: Callable[..., Any], message: str) -> None:
    with pytest.raises(bw.errors.ModelError, match=message):
        check_model(sampled(fn))


def mixed(values: list[float]) -> bw.LinearModel:
    """One state variable of whole numbers, one real one, and a real action."""
    return bw.LinearModel(
        state_cost=[1.0, 1.0],
        action_cost=[2.0],
        next_state=[[0.0, 0.0], [0.0, 0.5]],
        next_action=[[0.0], [1.0]],
        noise=bw.models.Independent([bw.Law(values, [0.5, 0.5])]),
        noise_matrix=[[1.0], [0.0]],
        initial=bw.models.Independent([bw.Law.certain(1), bw.Law.certain(0.5)]),
        discount=0.9,
        state_upper=5.0,
        action_upper=1.0,
        integer_states=[True, False],
        integer_actions=False,
        state_names=("whole", "real"),
    )


def test_whole_states_stay_whole_beside_real_ones() -> None:
    assert check_model(mixed([1.0, 2.0])).notes == ()
    with pytest.raises(bw.errors.ModelError, match=r"noise contains 1\.5, expected whole"):
        check_model(mixed([1.5, 2.5]))


def test_fractional_initial_states_are_refused() -> None:
    initial = bw.models.Sampled(lambda n, rng: rng.integers(0, 21, size=(n, 1)) / 2.0, [5.0])
    with pytest.raises(bw.errors.ModelError, match=r"stock the value [0-9]+\.5"):
        check_model(replace(shop(), initial=initial))


class Right(bw.models.Kernels):
    """Correct kernels of the shop."""

    def greedy_action(self, action_price: Any, tie_price: Any) -> Any:
        return lambda states: self.best(states, action_price, tie_price)

    @staticmethod
    def best(states: np.ndarray, price: np.ndarray, tie: np.ndarray) -> np.ndarray:
        most = np.minimum(8.0, 20.0 - states)
        return most if price[0] < 0.0 or (price[0] == 0.0 and tie[0] < 0.0) else np.zeros_like(most)

    def random_action(self) -> Any:
        return lambda states, keys, step: np.minimum(8.0, 20.0 - states)

    def price(self, state_price: Any, action_price: Any, lower: Any, upper: Any) -> Any:
        pairs = [
            (s, a) for s in range(int(lower[0]), int(upper[0]) + 1) for a in (0, min(8, 20 - s))
        ]
        best = min(pairs, key=lambda pair: state_price[0] * pair[0] + action_price[0] * pair[1])
        return np.array([float(best[0])]), np.array([float(best[1])])


class GreedyTooMuch(Right):
    def greedy_action(self, action_price: Any, tie_price: Any) -> Any:
        return lambda states: self.best(states, action_price, tie_price) + 0.5


class GreedyLazy(Right):
    def greedy_action(self, action_price: Any, tie_price: Any) -> Any:
        return lambda states: np.zeros((len(states), 1))


class GreedyFlat(Right):
    def greedy_action(self, action_price: Any, tie_price: Any) -> Any:
        return lambda states: np.zeros(len(states))


class RandomTooMuch(Right):
    def random_action(self) -> Any:
        return lambda states, keys, step: np.full((len(states), 1), 8.0)


class RandomFickle(Right):
    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def random_action(self) -> Any:
        return lambda states, keys, step: np.floor(
            self.rng.random((len(states), 1)) * (np.minimum(8.0, 20.0 - states) + 1.0)
        )


class PriceNear(Right):
    def price(self, state_price: Any, action_price: Any, lower: Any, upper: Any) -> Any:
        return super().price(state_price, action_price, lower, upper - 1.0)


class PriceOutside(Right):
    def price(self, state_price: Any, action_price: Any, lower: Any, upper: Any) -> Any:
        return np.array([-1.0]), np.array([0.0])


class PriceWrong(Right):
    def price(self, state_price: Any, action_price: Any, lower: Any, upper: Any) -> Any:
        return np.array([20.0]), np.array([1.0])


def with_kernels(kernels: Any) -> bw.LinearModel:
    return replace(shop(), kernels=kernels, preference=[1.0])


def test_kernels_that_conform_are_all_named() -> None:
    report = check_model(with_kernels(Right()))
    assert sum(text.startswith("kernels.") for text in report.checked) == 3
    assert "a file does not keep its kernels, Right" in report.notes
    none = check_model(with_kernels(bw.models.Kernels()))
    assert not any("kernels" in text for text in none.checked)


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        (
            GreedyTooMuch(),
            r"kernels.greedy_action in the state where .* order is 0.5",
        ),
        (
            GreedyLazy(),
            r"kernels.greedy_action finds .* price -?0, the general solver one at -",
        ),
        (
            GreedyFlat(),
            r"kernels.greedy_action has shape \(20,\) for 20 states",
        ),
        (
            RandomTooMuch(),
            r"kernels.random_action in the state where stock = (1[3-9]|20) .* shelf is 2[1-8]",
        ),
        (
            RandomFickle(),
            r"kernels.random_action takes .* on the same stream .* draw from",
        ),
        (PriceNear(), r"kernels.price finds a pair at price .* the general solver one at"),
        (PriceOutside(), r"a state with stock = -1, expected 0 to 20: keep to the box"),
        (PriceWrong(), r"action of kernels.price in the state where stock = 20 .* shelf is 21"),
        ("fast", r"kernels is 'fast', expected an object of a subclass of Kernels"),
    ],
)
def test_kernels_that_do_not_conform(kernels: Any, message: str) -> None:
    with pytest.raises(bw.errors.ModelError, match=message):
        check_model(with_kernels(kernels))


@pytest.mark.parametrize("basis", [bw.Affine(), bw.Polynomial(1), bw.Affine(lower=[-np.inf, 0.0])])
def test_affine_bases_are_in_order(basis: bw.bases.Basis) -> None:
    report = check_basis(shop(), basis)
    assert report.checked[0].startswith("2 functions, finite in ")
    assert report.notes == ()


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (bw.Polynomial(2), "needs an affine value function"),
        (bw.Polynomial(0), "needs an affine value function"),
        (
            bw.Custom(lambda s: np.column_stack([np.ones(len(s)), s])),
            "needs an affine value function",
        ),
        (bw.Affine(lower=[0.0]), r"lower bound has shape \(1,\), expected \(2,\)"),
        (bw.Affine(lower=1.0, upper=0.0), "exceeds its upper"),
    ],
)
def test_other_bases_are_refused(basis: bw.bases.Basis, message: str) -> None:
    with pytest.raises(bw.errors.BasisError, match=message):
        check_basis(shop(), basis)


def test_a_variable_that_cannot_move_is_noted() -> None:
    made = parts().shop
    extra = made.state("extra", upper=3, lower=3, initial=bw.Law.certain(3))
    made.follow(extra, extra)
    notes = check_basis(made.build(), bw.Affine()).notes
    assert notes == ("depends on earlier functions and will be dropped: extra",)


def test_solved_policies_are_in_order() -> None:
    model = bw.problems.scheduling("tiny")
    result = bw.solve(model, bw.Affine(), bw.Fixed(), judge=False)
    assert check_policy(model, result.policy).notes == ()
    softmax = bw.policies.DualSoftmax(result.support, bw.Uniform(), 0.1, 0.1)
    assert check_policy(model, softmax).notes == ("chooses at random",)
    assert check_policy(model, bw.Rule(lambda states: np.zeros((len(states), 6)))).checked
    wrong = replace(result.support, actions=result.support.actions + 9.0)
    with pytest.raises(
        bw.errors.PolicyError, match=r"policy's action in the state where .* not admissib"
    ):
        check_policy(model, bw.policies.DualSoftmax(wrong, bw.Uniform(), 0.1, 1e-9))


@dataclass(frozen=True, eq=False)
class Scripted(bw.policies.Policy):
    """Whatever its function says, unchecked."""

    fn: Any = None

    def probabilities(self, model: bw.TabularModel) -> np.ndarray:
        raise NotImplementedError

    def chooser(self, model: bw.LinearModel) -> Chooser:
        return ScriptedChooser(model, self.fn)


@dataclass(frozen=True, eq=False)
class ScriptedChooser(Chooser):
    fn: Any

    def worker(self) -> Worker:
        return lambda states, keys, step: (self.fn(states), None)


class Alternating:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, states: np.ndarray) -> np.ndarray:
        self.calls += 1
        return np.zeros((len(states), 1)) + (self.calls % 2) * (states <= 12.0)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (bw.Rule(lambda s: np.full((len(s), 1), 8.0)), r"the rule's action .* shelf is 2[1-8]"),
        (bw.Rule(lambda s: np.full((len(s), 1), 0.5)), r"order is 0.5, expected .* whole number"),
        (bw.Rule(lambda s: np.zeros((len(s), 2))), r"returned shape \([0-9]+, 2\)"),
        (bw.Rule(lambda s: None), r"the rule failed on states \(n, d\)|returned shape \(\)"),
        (
            bw.Rule(lambda s: 1.0 * (s < s.mean())),
            r"\[1.0\] among others and \[0.0\] when .* alone",
        ),
        (bw.TablePolicy([0]), r"TablePolicy is not a policy for linear models"),
        (bw.Greedy(bw.Affine(), np.zeros(5)), r"5 coefficients for a linear model of 1 state"),
        (Scripted(lambda s: np.full((len(s), 1), -1.0)), r"policy's action .* order is -1"),
        (Scripted(lambda s: np.zeros(len(s))), r"the policy's action has shape \([0-9]+,\)"),
        (Scripted(Alternating()), r"\[1.0\] at first and \[0.0\] on the same stream"),
    ],
)
def test_policies_that_do_not_conform(policy: bw.policies.Policy, message: str) -> None:
    with pytest.raises(bw.errors.PolicyError, match=message):
        check_policy(shop(), policy)


def test_what_is_no_model_basis_or_policy_is_refused() -> None:
    with pytest.raises(
        bw.errors.ModelError, match=r"model is dict, expected .* or LinearModel: build"
    ):
        check_model({})
    with pytest.raises(bw.errors.BasisError, match="basis is 3"):
        check_basis(shop(), 3)
    with pytest.raises(bw.errors.PolicyError, match="policy is 'x'"):
        check_policy(shop(), "x")
