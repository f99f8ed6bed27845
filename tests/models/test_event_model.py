"""Event models are what their functions say: against a naive enumeration, in every form."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from typing import Any

import event_models as em
import numpy as np
import pytest
from scipy import stats

import bellweight as bw
from bellweight.evaluation.evaluate import rollout_of
from bellweight.models import events
from bellweight.simulation import episode_costs

SEEDS = range(20)
DRAWS = 1_000
GRID = 7  # a random model with three actions and three events, some of them inadmissible


def assert_same_process(tabular: bw.TabularModel, written_out: em.Truth) -> None:
    assert np.array_equal(tabular.state_vectors, written_out.states)
    state, action = np.nonzero(written_out.admissible)
    assert np.array_equal(tabular.pair_state, state)
    assert np.array_equal(tabular.pair_action, action)
    assert np.array_equal(tabular.cost, written_out.cost[state, action])
    assert np.allclose(
        tabular.transition.toarray(), written_out.transition[state, action], rtol=0, atol=1e-15
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", [em.random_grid, em.random_jumps])
def test_enumeration_of_random_models(kind: Any, seed: int) -> None:
    model, written_out = kind(seed)
    assert_same_process(model.to_tabular(), written_out)


@pytest.mark.parametrize("build", [em.network, em.network_as_functions])
def test_enumeration_of_the_compiled_network(build: Any) -> None:
    assert_same_process(build().to_tabular(), em.network_truth())


def test_an_impossible_event_may_lead_anywhere() -> None:
    def cost(state: Any) -> float:
        return 1.0 * state[0]

    def probability(state: Any, event: Any) -> float:
        return 0.0 if event == 1 and state[0] == 0 else 0.25

    def move(state: Any, event: Any) -> None:
        state[0] += 1 - 2 * event

    model = bw.EventModel(
        dimension=1, actions=1, events=["up", "down"], cost=cost, probability=probability,
        move=move, discount=0.5, upper=2, compiled=False,
    )  # fmt: skip
    expected = [[0.75, 0.25, 0.0], [0.25, 0.5, 0.25], [0.0, 0.25, 0.75]]
    assert np.array_equal(model.to_tabular().transition.toarray(), expected)
    values = bw.evaluate(model, bw.Greedy(bw.Polynomial(2), np.ones(3)), 50, horizon=20, seed=1)
    assert values.mean > 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_initial_probabilities_are_those_of_the_sampler(seed: int) -> None:
    model, written_out = em.random_grid(seed)
    n = 4_000
    drawn = model.sample_initial(0, n, np.uint64(seed))
    mass = model.to_tabular().initial
    seen = [int((drawn == state).all(axis=1).sum()) for state in written_out.states]
    assert stats.chisquare(seen, n * mass).pvalue > 1e-5


# The quadratic has loops of its own, and each kind of loop takes seconds to compile.
@pytest.mark.parametrize("degree", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_data_and_functions_give_the_same_rows_and_slacks(degree: int) -> None:
    basis = bw.Polynomial(degree)
    states = em.network_truth().states
    data, functions = (
        bw.SampledRows(states).on(model, basis)
        for model in (em.network(), em.network_as_functions())
    )
    every = np.arange(data.n_pairs)
    rows, costs = data.rows(every)
    other_rows, other_costs = functions.rows(every)
    assert np.array_equal(rows, other_rows)
    assert np.array_equal(costs, other_costs)
    coef = np.random.default_rng(degree).normal(size=data.n_basis)
    data._matrix = functions._matrix = None  # compute the slacks from the model
    block = slice(0, len(states))
    near, far = (rows.slacks(coef, block)[0] for rows in (data, functions))
    np.testing.assert_allclose(near, far, rtol=1e-12, atol=1e-12 * np.abs(far).max())


def network_policies() -> dict[str, bw.policies.Policy]:
    rng = np.random.default_rng(3)
    support = em.random_support(rng, em.network_truth(), 200)
    quadratic = bw.Greedy(bw.Polynomial(2), rng.integers(0, 5, size=15).astype(float), support)
    return {
        "uniform": bw.Uniform(),
        "linear": bw.Greedy(bw.Affine(), np.array([0.0, 3.0, 1.0, 2.0, 1.0])),
        "quadratic": quadratic,
        "cubic": bw.Greedy(bw.Polynomial(3), rng.normal(size=35)),
        "softmax of uniform": bw.policies.DualSoftmax(support, bw.Uniform(), 0.5, 0.3),
        "softmax of greedy": bw.policies.DualSoftmax(support, quadratic, 0.5, 0.3),
        "softmax lent": bw.policies.DualSoftmax(support, quadratic, 0.5, 0.3, extend=2.5),
    }


@pytest.mark.parametrize("name", network_policies())
def test_data_and_functions_give_the_same_simulation(name: str) -> None:
    policy = network_policies()[name]
    found = [
        episode_costs(rollout_of(replace(model, compiled=False), policy), 0, 12, 40, seed=4, jobs=1)
        for model in (em.network(), em.network_as_functions())
    ]
    assert np.array_equal(found[0], found[1])
    assert np.unique(found[0]).size > 10


FORMS = [
    *(("data", name) for name in network_policies()),
    ("functions", "quadratic"),
    *(
        pytest.param("functions", name, marks=pytest.mark.slow)
        for name in network_policies()
        if name != "quadratic"
    ),
]


@pytest.mark.parametrize(("form", "name"), FORMS)
def test_the_slow_path_gives_the_same_numbers(form: str, name: str) -> None:
    policy = network_policies()[name]
    fast = em.network() if form == "data" else em.network_as_functions()
    slow = replace(fast, compiled=False)
    compiled, plain = (
        episode_costs(rollout_of(model, policy), 0, 4, 15, seed=4, jobs=1) for model in (fast, slow)
    )
    assert np.allclose(compiled, plain, rtol=1e-13, atol=0.0)


def assert_greedy(model: bw.EventModel, written_out: em.Truth, degree: int, seed: int) -> int:
    """Compare the loop's greedy actions with brute force; return how many states have ties."""
    rng = np.random.default_rng(seed)
    basis = bw.Polynomial(degree)
    features = np.asarray(basis(written_out.states.astype(float)))
    coef = rng.integers(-2, 3, size=features.shape[1]).astype(float)
    support = em.random_support(rng, written_out, len(written_out.states) // 2)
    values = features @ coef
    for dual in (None, support):
        policy = bw.Greedy(basis, coef, dual).on(model)
        mass = None if dual is None else em.mass_of(dual, written_out)
        chosen = [policy.action(state) for state in written_out.states]
        assert chosen == written_out.greedy(values, model.discount, mass)
    quality = np.sort(written_out.qualities(values, model.discount), axis=1)
    return int((quality[:, 0] == quality[:, 1]).sum()) if quality.shape[1] > 1 else 0


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", [em.random_grid, em.random_jumps])
def test_greedy_actions_of_random_models(kind: Any, degree: int) -> None:
    ties = sum(assert_greedy(*kind(seed), degree, seed) for seed in SEEDS)
    assert ties > 20


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_greedy_actions_by_independent_choices(degree: int) -> None:
    model = em.network()
    assert len(model.loops.data.option_start) - 1 == 2
    assert assert_greedy(model, em.network_truth(), degree, seed=degree) > 50


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_greedy_actions_with_inadmissible_ones_and_costs_per_action(degree: int) -> None:
    model, written_out = em.line(), em.line_truth(cap=7)
    rng = np.random.default_rng(degree)
    basis = bw.Polynomial(degree)
    features = np.asarray(basis(written_out.states.astype(float)))
    inside = np.flatnonzero((written_out.states < 7).all(axis=1))
    for _ in range(4):
        coef = rng.integers(-2, 5, size=features.shape[1]).astype(float)
        policy = bw.Greedy(basis, coef).on(model)
        best = written_out.greedy(features @ coef, model.discount)
        chosen = [policy.action(written_out.states[x]) for x in inside]
        assert chosen == [best[x] for x in inside]


def test_greedy_actions_equal_those_of_the_enumerated_model() -> None:
    # Coefficients of a real solution, on which complementary slackness makes ties certain.
    model, states = em.network(), em.network_truth().states
    result = bw.solve(model, bw.Polynomial(2), bw.Fixed(), rows=bw.SampledRows(states))
    tabular = model.to_tabular()
    enumerated = result.policy.on(tabular)
    assert isinstance(enumerated, bw.Greedy)
    assert enumerated.table is not None
    acted = [result.policy.action(state) for state in states]
    assert acted == enumerated.table.tolist()


@pytest.mark.parametrize("form", ["data", "functions"])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_qualities_that_differ_by_rounding_are_ties(degree: int, form: str) -> None:
    # 0.1 + 0.2 and 0.3 of the same event: the same to whoever does not look at the last bit.
    def cost(state: Any) -> float:
        return 0.7 * state[0]

    def probability(state: Any, action: Any, event: Any) -> float:
        if event == 2:
            return 0.05
        return (0.3 if event == 0 else 0.0) if action == 1 else 0.1 + 0.1 * event

    chances = [[probability(None, action, event) for event in range(3)] for action in range(3)]
    model = bw.EventModel(
        dimension=1, actions=3, events=3, cost=cost, move=[[1], [1], [-1]], discount=0.9,
        probability=np.array(chances) if form == "data" else probability, compiled=False,
    )  # fmt: skip
    basis, rng = bw.Polynomial(degree), np.random.default_rng(degree)
    states = np.arange(40)[:, None]
    middle = bw.policies.Support(states, np.ones(40, dtype=np.int64), np.ones(40))
    for _ in range(5):
        coef = rng.normal(size=degree + 1)
        undecided, decided = (bw.Greedy(basis, coef, dual).on(model) for dual in (None, middle))
        assert {undecided.action(state) for state in states} == {0}
        assert {decided.action(state) for state in states} == {1}


def test_masses_that_differ_by_rounding_go_to_the_lowest_action() -> None:
    model, _ = em.random_jumps(1)
    states = np.array([[0] * model.dimension] * 2)
    flat = bw.Polynomial(0)
    support = bw.policies.Support(states, np.array([1, 2]), np.array([0.3, 0.1 + 0.2]))
    assert support.values[0] != support.values[1]
    policy = bw.Greedy(flat, np.zeros(1), support)
    assert policy.on(model).action(states[0]) == 1
    assert policy.on(model.to_tabular()).action(0) == 1


def act_on_a_grid_of_draws(
    policy: bw.policies.Policy, model: bw.EventModel, state: Any
) -> em.FloatArray:
    """The share of each action over evenly spaced uniform numbers: its probability, exactly."""
    form, n = policy.compiled(model), DRAWS
    actions = form.loops.act(np.tile(state, (n, 1)), (np.arange(n) + 0.5) / n, form.acting)
    return np.bincount(actions, minlength=model.n_actions) / n


@pytest.mark.parametrize("target", ["uniform", "greedy"])
def test_softmax_of_the_dual_has_the_probabilities_of_the_enumerated_model(target: str) -> None:
    model, written_out = em.random_grid(GRID)
    rng = np.random.default_rng(8)
    support = em.random_support(rng, written_out, 6)
    greedy = bw.Greedy(bw.Polynomial(2), rng.normal(size=6), support)
    policy = bw.policies.DualSoftmax(
        support, bw.Uniform() if target == "uniform" else greedy, 0.4, 0.5
    )
    tabular = model.to_tabular()
    exact = np.zeros(written_out.admissible.shape)
    exact[tabular.pair_state, tabular.pair_action] = policy.probabilities(tabular)
    touched = em.mass_of(support, written_out).sum(axis=1) > 0.0
    assert 3 <= touched.sum() < len(touched)
    for x, state in enumerate(written_out.states):
        shares = act_on_a_grid_of_draws(policy, model, state)
        # Each action has at most three intervals of draws, with an error of 1/n at either end.
        assert np.abs(shares - exact[x]).max() <= 6 / DRAWS


def test_acting_with_a_generator_draws_from_the_same_probabilities() -> None:
    model, written_out = em.random_grid(GRID)
    support = em.random_support(np.random.default_rng(8), written_out, 6)
    tabular = model.to_tabular()
    rng = np.random.default_rng(5)
    for policy in (bw.Uniform(), bw.policies.DualSoftmax(support, bw.Uniform(), 0.4, 0.5)):
        chances = policy.probabilities(tabular)
        for x in np.unique(support.indices(tabular))[:2]:
            pairs = slice(tabular.pair_start[x], tabular.pair_start[x + 1])
            drawn = [policy.on(model).action(written_out.states[x], rng) for _ in range(500)]
            seen = [drawn.count(int(action)) for action in tabular.admissible_actions(int(x))]
            assert sum(seen) == 500
            assert stats.chisquare(seen, 500 * chances[pairs]).pvalue > 1e-6


def test_acting_at_random_needs_a_generator() -> None:
    model, written_out = em.random_grid(GRID)
    support = em.random_support(np.random.default_rng(8), written_out, 6)
    policy = bw.policies.DualSoftmax(support, bw.Greedy(bw.Affine(), np.ones(3)), 0.4, 0.5).on(
        model
    )
    with pytest.raises(
        bw.errors.PolicyError, match=r"chooses at random in state \[.*numpy Generator"
    ):
        policy.action(support.states[0])
    outside = next(
        state for state in written_out.states if not (support.states == state).all(axis=1).any()
    )
    assert policy.action(outside) in range(3)


def test_uniform_gives_each_admissible_action_the_same_share() -> None:
    model, written_out = em.random_grid(GRID)
    for x, state in enumerate(written_out.states):
        shares = act_on_a_grid_of_draws(bw.Uniform(), model, state)
        allowed = written_out.admissible[x]
        assert np.abs(shares - allowed / allowed.sum()).max() <= 2 / DRAWS


def test_a_policy_found_on_the_event_model_acts_on_the_enumerated_one() -> None:
    model, written_out = em.random_grid(GRID)
    support = em.random_support(np.random.default_rng(2), written_out, 6)
    tabular = model.to_tabular()
    mass = em.mass_of(support, written_out)
    assert np.array_equal(support.over_pairs(tabular), mass[written_out.admissible])
    stray = bw.policies.Support(np.array([[9, 9]]), np.array([0]), np.ones(1))
    with pytest.raises(bw.errors.PolicyError, match="pairs that the model lacks"):
        stray.over_pairs(tabular)


def test_digest_belongs_to_the_model_and_not_to_how_it_runs() -> None:
    model, _ = em.random_grid(3)
    same, other = em.random_grid(3, name="another name")[0], em.random_grid(4)[0]
    assert model.digest == same.digest
    assert model.digest != other.digest
    assert model.digest != em.random_grid(3, initial=(0, 1))[0].digest
    network = em.network()
    assert network.digest == replace(network, compiled=False).digest


def test_repr_and_labels() -> None:
    model = em.network()
    assert "dimension 4, 4 actions, 6 events" in repr(model)
    assert model.label(0) == "serve 1 2"
    assert model.label(3) == "serve 4 3"


def test_the_documentation_lists_the_arguments_of_every_function() -> None:
    text = inspect.getdoc(bw.EventModel) or ""
    listed = {}
    for roles, names in re.findall(r"^    (\w+(?:, \w+)*)  +(\w+(?:, \w+)*)$", text, re.MULTILINE):
        listed |= {role: tuple(names.split(", ")) for role in roles.split(", ")}
    accepted = {role: names for role, names in events._ARGUMENTS.items() if role != "rule"}
    assert listed == accepted
