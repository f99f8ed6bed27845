"""Information relaxation: a bound below the optimum with a stated confidence."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.certificates import relaxation, relaxed_bound
from bellweight.certificates.relaxation import _distinct
from bellweight.problems.queue_network import QueueNetwork

UPPER = 6


@pytest.fixture(scope="module")
def small() -> tuple[bw.EventModel, bw.Result, float]:
    """Two queues with one server, their optimum, and the optimal values as a value function."""
    net = QueueNetwork([0.2, 0.2], [0.5, 0.4], routes=(None, None), groups=((0, 1),))
    model = net.model(discount=0.8, initial=(2, 1), upper=UPPER)
    table = model.to_tabular()
    best = bw.exact.optimal(table).values
    result = bw.solve(model, bw.Polynomial(2), bw.Fixed(), rows=bw.program.LocalRows(), judge=False)
    return model, result, float(table.initial @ best)


def test_the_bound_is_below_the_optimum_and_close(small) -> None:
    model, result, optimum = small
    found = relaxed_bound(model, result, paths=80, horizon=30, seed=1)
    assert found.kind == "estimated"
    assert 0.9 * optimum < found.bound < found.mean <= optimum + 2.0 * found.half_width
    # What the program proves is a bound, too; knowing more than a policy can is worth less here.
    assert found.mean > result.lower_bound


def test_the_confidence_is_what_is_stated(small) -> None:
    """With one action and no value function a path's least total is its cost: nothing to spare."""
    _, result, _ = small
    one = QueueNetwork([0.3, 0.0], [0.4, 0.3], routes=(1, None), groups=((0,), (1,)))
    options = {"discount": 0.8, "initial": (2, 1), "compiled": False}
    table = one.model(upper=9, **options).to_tabular()
    cost = float(table.initial @ bw.exact.policy_value(table, bw.Uniform(), horizon=5))
    zero = replace(result, coef=np.zeros_like(result.coef))
    model = one.model(**options)
    bounds = [
        relaxed_bound(model, zero, paths=30, horizon=5, confidence=0.8, seed=seed, jobs=1).bound
        for seed in range(40)
    ]
    # 32 of 40 on average; fewer than 24 or all 40 would be rarer than one in five hundred.
    assert 24 <= (np.array(bounds) <= cost).sum() <= 39


def test_a_step_model_with_a_finite_law_has_a_bound() -> None:
    demand = bw.Law([0.0, 1.0, 2.0], [0.3, 0.4, 0.3])

    def step(state: Any, action: Any, noise: Any) -> Any:
        return (max(0.0, min(8.0, state[0] + action) - noise[0]),)

    def cost(state: Any, action: Any, noise: Any) -> float:
        return action + 0.5 * state[0] + 4.0 * max(0.0, noise[0] - min(8.0, state[0] + action))

    def model(noise: Any, *, whole: bool) -> bw.StepModel:
        return bw.StepModel(
            dimension=1, actions=3, step=step, cost=cost, noise=noise, discount=0.8,
            initial=(2.0,), lower=0.0, upper=8.0, integer=whole, compiled=False,
        )  # fmt: skip

    store = model(demand, whole=True)
    table = store.to_tabular(grid=9)
    optimum = float(table.initial @ bw.exact.optimal(table).values)
    rows = bw.SampledRows(np.arange(9.0)[:, None])
    result = bw.solve(store, bw.Polynomial(3), bw.Fixed(), rows=rows, judge=False)
    found = relaxed_bound(store, result, paths=40, horizon=25, seed=1, jobs=1)
    assert 0.85 * optimum < found.bound < optimum


ORDERS = 3


def stocked(noise: Any, **options: Any) -> bw.StepModel:
    """Real-valued stock of at most 4 with demand that is drawn; the excess is lost."""

    def step(states: Any, action: int, noise: Any) -> Any:
        return np.maximum(np.minimum(states + action, 4.0) - noise, 0.0)

    def cost(states: Any, action: int, noise: Any) -> Any:
        lost = np.maximum(noise - np.minimum(states + action, 4.0), 0.0)
        return action + 0.5 * states[:, 0] + 4.0 * lost[:, 0]

    given: dict[str, Any] = {
        "dimension": 1, "actions": ORDERS, "step": step, "cost": cost, "noise": noise,
        "discount": 0.7, "initial": (1.0,), "lower": 0.0, "upper": 4.0, "quadrature": 16,
        "vectorised": True,
    }  # fmt: skip
    return bw.StepModel(**{**given, **options})


def demand_of(rng: np.random.Generator, n: int) -> Any:
    return rng.uniform(0.0, 2.0, (n, 1))


@pytest.mark.parametrize(
    ("noise", "horizon", "share"),
    [(bw.models.Interval(0.0, 2.0), 8, 0.92), (demand_of, 5, 0.75)],
    ids=["law", "sampler"],
)
def test_real_valued_states_and_noise_that_is_drawn(noise: Any, horizon: int, share: float) -> None:
    """The optimum is that of a fine grid, on which it changes by 1e-3 from 81 to 161 points."""
    table = stocked(bw.models.Interval(0.0, 2.0)).to_tabular(grid=81)
    optimum = float(table.initial @ bw.exact.optimal(table).values)
    model = stocked(noise, draws=16)
    rows = bw.SampledRows(np.linspace(0.0, 4.0, 17)[:, None])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bw.errors.BellweightWarning)
        result = bw.solve(model, bw.Polynomial(3), bw.Fixed(), rows=rows, judge=False)
    found = relaxed_bound(model, result, paths=30, horizon=horizon, seed=1, jobs=1)
    assert share * optimum < found.bound < optimum + 0.01
    with pytest.raises(bw.BellweightError, match=r"reaches \d+ states.*bends= and lipschitz="):
        _with_few_successors(model, result)


def _with_few_successors(model: bw.StepModel, result: bw.Result) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relaxation, "_MOST_SUCCESSORS", 1_000)
        relaxed_bound(model, result, paths=30, horizon=16, jobs=1)


def test_nodes_that_a_step_draws_leave_no_bias() -> None:
    """With one action, and any value function, the mean is the cost under the law itself."""
    model = stocked(bw.models.Exponential(1.5), actions=1, quadrature=2)
    rows = bw.SampledRows(np.linspace(0.0, 4.0, 9)[:, None])
    result = bw.solve(model, bw.Polynomial(2), bw.Fixed(), rows=rows, judge=False)
    found = relaxed_bound(model, result, paths=200, horizon=4, seed=2, jobs=1)
    # Nothing is ordered: stock 1, 0.5 a step while it lasts; what demand exceeds it by costs 4.
    rng, total = np.random.default_rng(0), np.zeros(100_000)
    stock = np.ones(len(total))
    for t in range(4):
        demand = rng.exponential(1.5, len(total))
        total += 0.7**t * (0.5 * stock + 4.0 * np.maximum(demand - stock, 0.0))
        stock = np.maximum(stock - demand, 0.0)
    assert abs(found.mean - total.mean()) < 2.0 * found.half_width
    assert found.half_width < 0.08 * total.mean()
    assert np.abs(result.coef[1:]).max() > 0.1


def test_a_run_that_was_cut_goes_on(small, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, result, _ = small
    kept, given = tmp_path / "paths.json", {"paths": 40, "horizon": 8, "seed": 3, "jobs": 1}
    whole = relaxed_bound(model, result, **given)
    least, run = relaxation._Paths.least, []

    def cut(self: Any, number: int, start: Any) -> float:
        if number == 19:
            raise KeyboardInterrupt
        return least(self, number, start)

    def counted(self: Any, number: int, start: Any) -> float:
        run.append(number)
        return least(self, number, start)

    monkeypatch.setattr(relaxation._Paths, "least", cut)
    with pytest.raises(KeyboardInterrupt):
        relaxed_bound(model, result, kept_in=kept, **given)
    monkeypatch.setattr(relaxation._Paths, "least", counted)
    assert relaxed_bound(model, result, kept_in=kept, **given) == whole
    assert run == list(range(16, 40))
    assert relaxed_bound(model, result, kept_in=kept, **{**given, "paths": 48}).paths == 48
    assert run == list(range(16, 48))
    with pytest.raises(bw.BellweightError, match="blocks of another model, value function, seed"):
        relaxed_bound(model, result, kept_in=kept, **{**given, "seed": 4})
    with pytest.raises(bw.BellweightError, match="holds no blocks that a run has kept"):
        relaxed_bound(model, result, kept_in=tmp_path, **given)
    run.clear()
    with pytest.raises(bw.BellweightError, match=r"cannot write .*check the folder"):
        relaxed_bound(model, result, kept_in=tmp_path / "none" / "paths.json", **given)
    assert run == []
    huge = f'{{"of": "", "blocks": {{"0-1": [1{"0" * 400}]}}}}'
    for text in ("{}", "[" * 100_000, huge):
        kept.write_text(text, encoding="utf-8")
        with pytest.raises(bw.BellweightError, match="holds no blocks that a run has kept"):
            relaxed_bound(model, result, kept_in=kept, **given)


def criss_cross() -> QueueNetwork:
    """Three queues, lambda 0.6, mu 2, 1, 2."""
    unit = 0.6 + 0.6 + 2.0 + 2.0
    rates = [rate / unit for rate in (0.6, 0.6, 0.0, 2.0, 1.0, 2.0)]
    return QueueNetwork(rates[:3], rates[3:], routes=(2, None, None), groups=((0, 1), (2,)))


def test_a_cubic_value_function_gets_close_on_a_criss_cross_network() -> None:
    """Smaller and with a lower discount than in the slow test."""
    model = criss_cross().model(discount=0.9, initial=(2, 2, 0), upper=5, compiled=False)
    table = model.to_tabular()
    optimum = float(table.initial @ bw.exact.optimal(table).values)
    rows = bw.SampledRows(table.states.astype(np.int64))
    result = bw.solve(model, bw.Polynomial(3), bw.Fixed(), rows=rows, judge=False)
    found = relaxed_bound(model, result, paths=40, horizon=45, seed=1)
    assert 0.9 * optimum < found.bound < optimum
    assert found.mean > 0.96 * optimum


@pytest.mark.slow
def test_endless_queues_of_the_criss_cross_network_at_discount_098() -> None:
    """The optimum is that of queues of at most 22: 122.05, and 122.06 with at most 30."""
    table = criss_cross().model(discount=0.98, initial="empty", upper=22).to_tabular()
    optimum = float(table.initial @ bw.exact.optimal(table).values)
    model = criss_cross().model(discount=0.98, initial="empty")
    states = np.stack(np.meshgrid(*[np.arange(13)] * 3), axis=-1).reshape(-1, 3)
    rows = bw.SampledRows(states)
    result = bw.solve(model, bw.Polynomial(3), bw.Fixed(), rows=rows, judge=False)
    found = relaxed_bound(model, result, paths=30, seed=1)
    assert 0.96 * optimum < found.bound < optimum


def test_it_does_not_depend_on_the_blocks(small) -> None:
    model, result, _ = small
    one = relaxed_bound(model, result, paths=30, horizon=20, seed=3, jobs=1)
    two = relaxed_bound(model, result, paths=30, horizon=20, seed=3, jobs=2)
    assert one == two


def test_bad_input_is_refused(small, monkeypatch: pytest.MonkeyPatch) -> None:
    model, result, _ = small
    with pytest.raises(bw.BellweightError, match="at least 30"):
        relaxed_bound(model, result, paths=10)
    with pytest.raises(bw.BellweightError, match=r"paths is 200, expected at least 1,000"):
        relaxed_bound(model, result, paths=200, confidence=0.999)
    with pytest.raises(bw.BellweightError, match="below least_cost"):
        relaxed_bound(model, result, paths=30, horizon=5, least_cost=1.0)
    with pytest.raises(bw.BellweightError, match="least_cost is nan, expected a finite number"):
        relaxed_bound(model, result, paths=30, horizon=5, least_cost=np.nan)
    with pytest.raises(bw.BellweightError, match="result is int, expected what solve returned"):
        relaxed_bound(model, 3, paths=30)  # type: ignore[arg-type]
    wide = QueueNetwork([0.1] * 3, [0.3] * 3, routes=(None,) * 3, groups=((0, 1, 2),))
    with pytest.raises(bw.BellweightError, match="6 coefficients, and its basis 10"):
        relaxed_bound(wide.model(discount=0.8, compiled=False), result, paths=30)
    monkeypatch.setattr(relaxation, "_MOST_SUCCESSORS", 40)
    with pytest.raises(bw.BellweightError, match=r"reaches \d+ states.*path_bound"):
        relaxed_bound(model, result, paths=30, horizon=20)
    with pytest.raises(bw.BellweightError, match="expected an event, step or factored model"):
        relaxed_bound(bw.problems.single_queue(capacity=5), result)


def test_states_below_zero_are_told_apart() -> None:
    states = np.array([[-3, 2], [4, -1], [-3, 2], [0, 0], [-3, -1]])
    distinct, place = _distinct(states)
    assert (distinct[place] == states).all()
    assert len(distinct) == 4


def test_real_states_that_differ_by_the_order_of_additions_are_one() -> None:
    states = np.array([[0.1 + 0.2 - 0.3, 7.0], [0.1 - 0.3 + 0.2, 7.0], [1e-9, 7.0]])
    assert states[0, 0] != states[1, 0]
    distinct, place = _distinct(states)
    assert (len(distinct), place[0] == place[1], place[1] == place[2]) == (2, True, False)
