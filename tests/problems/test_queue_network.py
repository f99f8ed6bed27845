"""The paper's network, the general builder, and the baseline policies."""

from __future__ import annotations

from functools import cache
from itertools import permutations, product
from typing import Any

import event_models as em
import numpy as np
import pytest

import bellweight as bw
from bellweight.problems.queue_network import QueueNetwork

UNIT = 11.5
PAPER = QueueNetwork()
GROUPS = ((0, 2, 7), (1, 5), (3, 4, 6))


@cache
def paper_model() -> bw.EventModel:
    """The paper's network; as plain Python, since only its data matter here."""
    return PAPER.model(compiled=False)


def some_states(n: int, dimension: int) -> em.IntArray:
    """Random states with many empty queues and many ties."""
    rng = np.random.default_rng(5)
    scale = rng.choice([1, 2, 4, 30], size=(n, 1))
    return rng.integers(0, scale + 1, size=(n, dimension))


def test_data_of_the_paper() -> None:
    model = paper_model()
    assert model.n_actions == 18
    assert model.n_events == 10
    assert model.discount == 0.995
    assert model.initial == bw.models.Geometric(0.9)
    assert (model.upper == -1).all()
    table, jumps = np.array(model.probability), np.array(model.move)
    service = np.array([4, 2, 3, 3.1, 3, 2.2, 3, 2.5]) / UNIT
    assert np.allclose(table[:, :2], 1.0 / UNIT)
    for action, served in enumerate(product(*GROUPS)):
        expected = np.where(np.isin(np.arange(8), served), service, 0.0)
        assert np.allclose(table[action, 2:], expected)
        assert model.label(action) == "serve " + " ".join(str(i + 1) for i in served)
    following = {0: 1, 1: 2, 2: None, 3: 4, 4: 5, 5: 6, 6: 7, 7: None}
    arrivals = np.zeros((2, 8))
    arrivals[0, 0] = arrivals[1, 3] = 1
    assert np.array_equal(jumps[:2], arrivals)
    for queue, onward in following.items():
        expected = -np.eye(8)[queue]
        if onward is not None:
            expected += np.eye(8)[onward]
        assert np.array_equal(jumps[2 + queue], expected)
    assert table.sum(axis=1).max() < 1.0
    assert model.cost_growth == pytest.approx(2 / UNIT)


def test_the_cost_is_the_number_of_jobs() -> None:
    states = some_states(50, 8)
    cost, chances, successors = paper_model().expand(states, np.zeros(50, dtype=np.int64))
    assert np.array_equal(cost, states.sum(axis=1))
    # Serving an empty queue does nothing.
    idle = states[:, 0] == 0
    assert idle.sum() > 5
    assert (chances[:, 2] > 0.0).all()
    assert np.array_equal(successors[idle, 2], states[idle])
    busy = successors[~idle, 2] - states[~idle]
    assert (busy == [-1, 1, 0, 0, 0, 0, 0, 0]).all()


def test_initial_moments_of_the_paper() -> None:
    found = paper_model().initial_moments(bw.Polynomial(2).words(8))
    assert found is not None
    mean, square = 9.0, 0.9 * 1.9 / 0.01
    assert np.allclose(found[1:9], mean)
    words = bw.Polynomial(2).words(8)
    for value, word in zip(found[9:], words[9:], strict=True):
        assert value == pytest.approx(square if word[0] == word[1] else mean**2)


def scores_policy(
    network: QueueNetwork, state: Any, score: Any, groups: Any = GROUPS
) -> tuple[int, ...]:
    """For each group, the queue with jobs of largest score, the first among equals."""
    chosen = []
    for group in groups:
        waiting = [i for i in group if state[i] > 0] or list(group)
        best = max(score(i) for i in waiting)
        chosen.append(next(i for i in waiting if score(i) == best))
    return tuple(chosen)


def act(rule: bw.Rule, state: Any) -> int:
    """What a rule does, by its plain function."""
    assert callable(rule.fn)
    return int(rule.fn(state, np.asarray(rule.parameters)))


def test_longest_queue() -> None:
    rule = PAPER.longest_queue()
    for state in some_states(400, 8):
        expected = scores_policy(PAPER, state, lambda i, state=state: state[i])
        assert PAPER.allocations[act(rule, state)] == expected


def test_max_pressure() -> None:
    rule = PAPER.max_pressure()
    service, routes = PAPER.services, PAPER.routes

    def pressure(state: Any, i: int) -> float:
        onward = routes[i]
        return service[i] * (state[i] - (0 if onward is None else state[onward]))

    for state in some_states(400, 8):
        expected = scores_policy(PAPER, state, lambda i, state=state: pressure(state, i))
        assert PAPER.allocations[act(rule, state)] == expected


def test_static_priorities() -> None:
    rules = PAPER.static_priorities()
    assert len(rules) == 72
    orders = {sum(parts, ()) for parts in product(*(permutations(group) for group in GROUPS))}
    assert set(rules) == orders
    states = some_states(60, 8)
    decisions = set()
    for order, rule in rules.items():
        made = tuple(act(rule, state) for state in states)
        decisions.add(made)
        rank = {queue: place for place, queue in enumerate(order)}
        for state, action in zip(states, made, strict=True):
            expected = scores_policy(PAPER, state, lambda i, rank=rank: -rank[i])
            assert PAPER.allocations[action] == expected
    assert len(decisions) == 72


def test_last_buffer_first() -> None:
    rule = PAPER.last_buffer_first()
    full = np.ones(8, dtype=np.int64)
    # Queues 8 and 3 are both last: the later, 8, goes first; 2 before 6; 7 before 5 before 4.
    assert PAPER.allocations[act(rule, full)] == (7, 1, 6)
    ladder = [
        ({7: 0}, (2, 1, 6)),
        ({1: 0}, (7, 5, 6)),
        ({6: 0}, (7, 1, 4)),
        ({2: 0, 7: 0}, (0, 1, 6)),
    ]
    for emptied, expected in ladder:
        state = full.copy()
        state[list(emptied)] = 0
        assert PAPER.allocations[act(rule, state)] == expected
    priorities = PAPER.static_priorities()
    same = priorities[(7, 2, 0, 1, 5, 6, 4, 3)]
    assert all(act(rule, state) == act(same, state) for state in some_states(200, 8))


def test_rules_share_their_compiled_code_and_act_as_written() -> None:
    model = em.network()
    rules = {
        "longest": em.NETWORK.longest_queue(),
        "pressure": em.NETWORK.max_pressure(),
        "last": em.NETWORK.last_buffer_first(),
        "priority": em.NETWORK.static_priority((3, 1, 0, 2)),
    }
    sources = {rule.compiled(model).loops.source for rule in rules.values()}
    assert len(sources) == 1
    for rule in rules.values():
        bound = rule.on(model)
        for state in em.network_truth().states[::7]:
            assert bound.action(state) == act(rule, state)


def test_baselines_cost_what_they_cost_in_the_enumerated_model() -> None:
    model, tabular = em.network(), em.network().to_tabular()
    for rule in (em.NETWORK.longest_queue(), em.NETWORK.last_buffer_first()):
        found = bw.evaluate(model, rule, 8_000, horizon=60, seed=3)
        exact = float(tabular.initial @ bw.exact.policy_value(tabular, rule, 60))
        assert abs(found.mean - exact) <= 2.0 * found.half_width
        assert found.half_width < 0.03 * exact


def test_one_queue_against_a_closed_form() -> None:
    # One queue, always served, that never empties within the horizon: the expected cost after t
    # steps is x + t (arrival - service).
    model = bw.problems.queue_network(
        arrivals=[0.3], services=[0.2], routes=[None], groups=[[0]], discount=0.9, initial=(200,),
        compiled=False, upper=1_000,
    )  # fmt: skip
    tabular = model.to_tabular()
    value = float(tabular.initial @ bw.exact.policy_value(tabular, bw.Uniform()))
    assert value == pytest.approx(200.0 / 0.1 + 0.1 * 0.9 / 0.1**2, rel=1e-9)


def test_one_queue_that_empties_against_a_closed_form() -> None:
    # v(x) = x / (1 - a) + a (p - q) / (1 - a)^2 + B z^x, z < 1 the root of
    # 1 = a (p z + q / z + 1 - p - q), and B from the balance at the empty queue.
    p, q, a = 0.2, 0.3, 0.9
    roots = np.roots([a * p, a * (1.0 - p - q) - 1.0, a * q])
    z = float(roots[np.abs(roots) < 1.0][0])
    shift = a * (p - q) / (1.0 - a) ** 2
    # v(0) = a (p v(1) + (1 - p) v(0)), cost zero.
    b = (a * p / (1.0 - a) - shift * (1.0 - a)) / (1.0 - a * (1.0 - p) - a * p * z)
    model = bw.problems.queue_network(
        arrivals=[p], services=[q], routes=[None], groups=[[0]], discount=a, initial="empty",
        compiled=False, upper=400,
    )  # fmt: skip
    values = bw.exact.policy_value(model.to_tabular(), bw.Uniform())
    x = np.arange(50)
    assert np.allclose(values[:50], x / (1.0 - a) + shift + b * z**x, rtol=1e-9)


def test_a_tandem_line() -> None:
    network = QueueNetwork((0.2, 0.0), (0.3, 0.25), (1, None), ((0,), (1,)))
    model = network.model(discount=0.9, initial=(3, 1), compiled=False, upper=12)
    assert model.n_actions == 1
    assert model.label(0) == "serve 1 2"
    assert_tandem(model.to_tabular())
    assert network.last_buffer_first().on(model).action((1, 1)) == 0


def assert_tandem(tabular: bw.TabularModel) -> None:
    """Jobs in the second queue leave at its rate; the first behaves as if alone."""
    states = tabular.states
    dense = tabular.transition.toarray()
    drift = dense @ states - states
    inner = (states > 0).all(axis=1) & (states < 12).all(axis=1)
    assert np.allclose(drift[inner], [0.2 - 0.3, 0.3 - 0.25])
    empty = (states == 0).all(axis=1)
    assert np.allclose(drift[empty], [0.2, 0.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"routes": (1, 5, None)}, r"routes\[1\] is 5, expected a queue from 0 to 2, or None"),
        ({"routes": (1, -1, None)}, r"routes\[1\] is -1"),
        ({"routes": (1, None)}, r"routes has 2 entries, expected one per queue \(3\)"),
        ({"groups": ((0, 1, 2), ())}, r"groups\[1\] is empty, expected at least one queue"),
        ({"groups": ((0, 1), (3,))}, r"groups\[1\] names queue 3, expected 0 to 2"),
        ({"groups": ((0,), (1,))}, "queue 2 has no server"),
        ({"groups": ((0, 1), (1, 2))}, "a queue has two servers"),
        ({"arrivals": (0.1, 0.1)}, r"arrivals has shape \(2,\), expected \(3,\)"),
        ({"arrivals": (0.1, -0.1, 0.0)}, r"arrivals\[1\] is -0.1, expected a probability"),
        ({"services": (0.1, 1.5, 0.0)}, r"services\[1\] is 1.5, expected a probability"),
        ({"services": (0.9, 0.9, 0.9)}, "sum to 1.9, expected at most 1.*divide all rates"),
        ({"services": (), "arrivals": ()}, "services is empty"),
        ({"services": (0.1, np.nan, 0.1)}, r"services\[1\] is nan"),
        ({"services": 0.5}, r"services is 0.5, expected a list: one entry for each queue"),
        ({"arrivals": None}, r"arrivals is None, expected a list"),
        ({"routes": 1}, r"routes is 1, expected a list"),
        ({"groups": 2}, r"groups is 2, expected a list: .* as in \[\[0, 1\], \[2\]\]"),
        ({"groups": [0, 1]}, r"groups\[0\] is 0, expected a list: the queues that share a server"),
    ],
)
def test_networks_that_are_none(change: dict[str, Any], message: str) -> None:
    given = {
        "arrivals": (0.1, 0.0, 0.0), "services": (0.3, 0.2, 0.2), "routes": (1, 2, None),
        "groups": ((0, 2), (1,)),
    }  # fmt: skip
    assert QueueNetwork(**given).n_queues == 3  # type: ignore[arg-type]
    with pytest.raises(bw.errors.ModelError, match=message):
        QueueNetwork(**{**given, **change})  # type: ignore[arg-type]


def test_data_given_in_part() -> None:
    with pytest.raises(bw.errors.ModelError, match="services is missing: give arrivals, services"):
        bw.problems.queue_network(arrivals=[0.1], routes=[None], groups=[[0]])
    with pytest.raises(bw.errors.ArgumentError, match="initial is 'full'"):
        bw.problems.queue_network(initial="full")


def test_orders_and_routes_that_baselines_cannot_use() -> None:
    with pytest.raises(
        bw.errors.ModelError, match=r"order is \[0, 1\], expected each queue from 0 once"
    ):
        PAPER.static_priority((0, 1))
    circle = QueueNetwork((0.1, 0.0), (0.2, 0.2), (1, 0), ((0,), (1,)))
    with pytest.raises(bw.errors.ModelError, match="route from queue 0 never leaves"):
        circle.last_buffer_first()


def test_initial_states() -> None:
    for initial, expected in (("empty", (0,) * 4), ((1,) * 4, (1,) * 4)):
        model = em.NETWORK.model(initial=initial, compiled=False)
        assert (model.sample_initial(0, 5, np.uint64(1)) == expected).all()
    decayed = em.NETWORK.model(decay=0.5, compiled=False)
    assert decayed.initial == bw.models.Geometric(0.5)


def test_a_rule_that_writes_to_the_state_does_not_change_the_system() -> None:
    def careless(state: Any) -> int:
        state[0] = 0
        return 0

    network = QueueNetwork((0.2,), (0.3,), (None,), ((0,),))
    model = network.model(discount=0.9, initial=(3,), upper=12, compiled=False)
    spoilt = bw.evaluate(model, bw.Rule(careless), 20, horizon=30, seed=1)
    assert spoilt.mean == bw.evaluate(model, bw.Uniform(), 20, horizon=30, seed=1).mean


def test_networks_of_the_same_shape_share_their_compiled_code() -> None:
    first = QueueNetwork((0.1, 0.0), (0.2, 0.3), (1, None), ((0,), (1,)))
    second = QueueNetwork((0.1, 0.0), (0.4, 0.2), (1, None), ((1,), (0,)))
    sources = {
        network.model(discount=discount, initial=initial, upper=upper).source
        for network, discount, initial, upper in (
            (first, 0.9, "geometric", None), (second, 0.8, (1, 2), 7),
            (second, 0.9, "empty", (3, 5)),
        )
    }  # fmt: skip
    assert len(sources) == 1
