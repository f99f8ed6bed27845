"""Environments without a table: tried in every state, or as step models of their state vector."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import bellweight as bw
from bellweight.interchange import from_gymnasium, policy_for_gymnasium


class Corridor(gymnasium.Env[Any, Any]):
    """Five cells; 0 goes left, 1 goes right, the last cell ends the episode with reward 10.

    With `slip`, a step goes the other way with that chance. `counting` pays more with time, which
    is no part of the state. `stray` draws from a generator of its own.
    """

    def __init__(self, slip: float = 0.0, counting: bool = False, stray: bool = False) -> None:
        self.observation_space, self.action_space = spaces.Discrete(5), spaces.Discrete(2)
        self.slip, self.counting, self.time = slip, counting, 0
        self.own = np.random.default_rng(1) if stray else None
        self.s = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.s, self.time = int(self.np_random.integers(2)), 0
        return self.s, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        assert action in (0, 1)
        rng = self.np_random if self.own is None else self.own
        slips = self.slip > 0.0 and rng.random() < self.slip
        self.s = min(max(self.s + (1 if (action == 1) != slips else -1), 0), 4)
        self.time += 1
        reward = 10.0 if self.s == 4 else -1.0
        return self.s, reward + self.counting * self.time, self.s == 4, False, {}


class Settable(Corridor):
    """The same with a method, and a state that cannot be assigned to."""

    def __init__(self) -> None:
        super().__init__()
        self.state = 0

    def set_state(self, state: int) -> None:
        self.s = self.state = state

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        found = super().reset(seed=seed)
        self.state = self.s
        return found

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        found = super().step(action)
        self.state = self.s
        return found


class Drift(gymnasium.Env[Any, Any]):
    """A point that moves by 0.1 to either side and by a normal number; the cost is its square."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-100.0, 100.0, (1,), dtype=np.float64)
        self.action_space = spaces.Discrete(2, start=3)
        self.state = np.zeros(1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = np.ones(1)
        return self.state.copy(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = -float(self.state[0] ** 2)
        moved = self.state[0] + (0.1 if action == 4 else -0.1)
        self.state = np.array([moved + 0.2 * self.np_random.normal()])
        return self.state.copy(), reward, False, False, {}


@pytest.mark.parametrize("kind", [Corridor, Settable])
def test_a_discrete_environment_is_tried_in_every_state(kind: Any) -> None:
    """From cell x the way is 4 - x steps: -1 for all but the last, 10 for that, discounted."""
    env = kind()
    model = from_gymnasium(env, 0.9)
    assert (model.n_states, model.n_actions) == (6, 2)
    best = bw.exact.optimal(model)
    ways = [-sum(0.9**k for k in range(3 - x)) + 10 * 0.9 ** (3 - x) for x in range(4)]
    np.testing.assert_allclose(-best.values[:4], ways, atol=1e-9)
    np.testing.assert_allclose(model.initial[:2], 0.5, atol=0.05)
    act = policy_for_gymnasium(best.policy)
    state, _ = env.reset(seed=3)
    total, factor, ended = 0.0, 1.0, False
    first = state
    while not ended:
        state, reward, ended, _, _ = env.step(act(state))
        total, factor = total + factor * reward, factor * 0.9
    assert total == pytest.approx(ways[first], abs=1e-9)


def test_random_steps_need_draws_and_become_frequencies() -> None:
    env = Corridor(slip=0.5)
    with pytest.raises(bw.BellweightError, match="steps are random: pass draws=1000"):
        from_gymnasium(env, 0.9)
    model = from_gymnasium(env, 0.9, draws=400)
    chances = model.transition.toarray()[2]
    assert chances[0] + chances[2] == pytest.approx(1.0)
    assert abs(chances[0] - 0.5) < 4 * 0.5 / np.sqrt(400)


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (lambda: Corridor(counting=True), "not all that decides a step"),
        (lambda: Corridor(slip=0.5, stray=True), "elsewhere than np_random"),
        (lambda: gymnasium.make("CartPole-v1"), 'cannot be listed: pass kind="step"'),
        (lambda: gymnasium.make("Blackjack-v1"), "no table P of its transitions"),
        (lambda: "CartPole-v1", "expected an environment of Gymnasium"),
    ],
)
def test_what_cannot_be_tried_is_refused_with_the_reason(env: Any, said: str) -> None:
    with pytest.raises(bw.BellweightError, match=said):
        from_gymnasium(env(), 0.9)


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (lambda: gymnasium.make("Pendulum-v1"), r"the actions of PendulumEnv are Box.*Discrete"),
        (lambda: gymnasium.make("Blackjack-v1"), "BlackjackEnv cannot be set to a state"),
        (Corridor, "expected a vector"),
    ],
)
def test_what_is_no_step_model_is_refused_with_the_reason(env: Any, said: str) -> None:
    with pytest.raises(bw.BellweightError, match=said):
        from_gymnasium(env(), 0.9, kind="step")


def test_a_random_environment_is_a_step_model_by_draws() -> None:
    """E[(x + 0.1 a + 0.2 z)^2] = (x + 0.1 a)^2 + 0.04, estimated from fixed draws."""
    env = Drift()
    model = from_gymnasium(env, 0.9, kind="step", draws=300)
    assert (model.dimension, model.n_nodes, model.are_draws) == (2, 300, True)
    states = np.array([[0.5, 0.0], [0.5, 1.0]])
    cost, chances, following = model.expand(states, np.array([1, 1]))
    np.testing.assert_allclose(cost, [0.25, 0.0])
    second = (chances[0] * following[0, :, 0] ** 2).sum()
    assert abs(second - (0.6**2 + 0.04)) < 4 * np.sqrt((4 * 0.36 * 0.04 + 2 * 0.04**2) / 300)
    assert (following[1] == states[1]).all(), "what has ended stays and costs nothing"
    assert env.state[0] == 0.0, "the environment that was given is left alone"


def test_the_mountain_car_is_driven_as_predicted() -> None:
    """The policy of a step model, run in the environment itself, costs what the model says."""
    env = gymnasium.make("MountainCar-v0").unwrapped
    model = from_gymnasium(env, 0.99, kind="step")
    place, speed = np.meshgrid(np.linspace(-1.2, 0.6, 15), np.linspace(-0.07, 0.07, 15))
    states = np.column_stack([place.ravel(), speed.ravel(), np.zeros(place.size)])
    states = np.vstack([states, [[0.0, 0.0, 1.0]]])
    kinks = bw.PiecewiseLinear(6)
    basis = bw.Stacked(bw.Product([kinks, kinks, bw.Polynomial(0)]), bw.Affine())
    moments = basis.on(states)(states).mean(axis=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*depend on earlier ones.*")
        result = bw.solve(
            model, basis, bw.Fixed(moments=moments), rows=bw.program.SampledRows(states),
            judge=False,
        )  # fmt: skip
    predicted = bw.evaluate(model, result.policy, episodes=10, horizon=200, seed=1)
    act = policy_for_gymnasium(result.policy)
    costs, reached = [], 0
    for episode in range(10):
        observation, _ = env.reset(seed=100 + episode)
        total = 0.0
        for step in range(200):
            observation, reward, ended, _, _ = env.step(act(observation))
            total -= 0.99**step * float(reward)
            if ended:
                reached += 1
                break
        costs.append(total)
    width = 2.0 * np.std(costs, ddof=1) / np.sqrt(len(costs))
    assert abs(np.mean(costs) - predicted.mean) <= 2.0 * (width + predicted.half_width)
    assert reached >= 5, "acting at random does not reach the top in 200 steps"


def test_where_observations_are_not_the_state_it_is_read_from_the_environment() -> None:
    env = gymnasium.make("Acrobot-v1").unwrapped
    model = from_gymnasium(env, 0.9, kind="step", initial=[0.1, 0, 0, 0])
    assert model.dimension == 5
    policy = bw.Uniform().on(model)
    observation, _ = env.reset(seed=1)
    with pytest.raises(bw.BellweightError, match="observations of AcrobotEnv are not its state"):
        policy_for_gymnasium(policy, seed=1)(observation)
    assert policy_for_gymnasium(policy, seed=1, env=env)(observation) in (0, 1, 2)


class HalfNamed(Corridor):
    """The same, with an attribute `state` that holds nothing: `s` is the state."""

    state = None


def test_an_attribute_that_holds_nothing_is_not_the_state() -> None:
    table, same = from_gymnasium(HalfNamed(), 0.9), from_gymnasium(Corridor(), 0.9)
    np.testing.assert_array_equal(table.cost, same.cost)
    assert (table.transition != same.transition).nnz == 0


def test_the_state_of_an_environment_is_read_after_its_reset() -> None:
    env = gymnasium.make("Acrobot-v1").unwrapped
    model = from_gymnasium(env, 0.9, kind="step", initial=[0.1, 0, 0, 0])
    act = policy_for_gymnasium(bw.Uniform().on(model), seed=1, env=gymnasium.make("Acrobot-v1"))
    with pytest.raises(bw.BellweightError, match=r"AcrobotEnv has no state yet: call env\.reset"):
        act(np.zeros(6))


class FromOne(Corridor):
    """The same; 1 goes left and 2 goes right."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(2, start=1)

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return super().step(action - 1)


def test_actions_are_numbered_as_the_environment_does() -> None:
    env = FromOne()
    best = bw.exact.optimal(from_gymnasium(env, 0.9)).policy
    act = policy_for_gymnasium(best, env=env)
    state, _ = env.reset(seed=1)
    for _ in range(4):
        state, _, ended, _, _ = env.step(act(state))
    assert ended
    model = from_gymnasium(Drift(), 0.9, kind="step", draws=3)
    act = policy_for_gymnasium(bw.Uniform().on(model), seed=1)
    assert {act(np.zeros(1)) for _ in range(20)} == {3, 4}
