"""Rows of sampled states: against brute force, stored and streamed, too few, too many, wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import event_models as em
import numpy as np
import pytest

import bellweight as bw
from bellweight.common import tolerances
from bellweight.program import EventRows, features
from bellweight.program import listed_rows as row_sources

STATES = em.network_truth().states
SAMPLE = STATES[np.random.default_rng(1).permutation(625)[:200]]


def bound(states: Any = SAMPLE, degree: int = 2, model: bw.EventModel | None = None) -> EventRows:
    return bw.SampledRows(states).on(model or em.network(), bw.Polynomial(degree))


def brute_rows(
    written_out: em.Truth, states: em.IntArray, degree: int, discount: float
) -> tuple[em.FloatArray, em.FloatArray, em.FloatArray]:
    """Rows, costs and the features of each row's state, for all pairs of some states in order."""
    features = np.asarray(bw.Polynomial(degree)(written_out.states.astype(float)))
    place = {tuple(state): x for x, state in enumerate(written_out.states.tolist())}
    rows, costs, here = [], [], []
    for state in states.tolist():
        x = place[tuple(state)]
        for action in np.flatnonzero(written_out.admissible[x]):
            rows.append(features[x] - discount * written_out.transition[x, action] @ features)
            costs.append(written_out.cost[x, action])
            here.append(features[x])
    return np.array(rows), np.array(costs), np.array(here)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_rows_against_brute_force(degree: int) -> None:
    expected, costs, _ = brute_rows(em.network_truth(), SAMPLE, degree, 0.9)
    found = bound(degree=degree)
    rows, cost = found.rows(np.arange(found.n_pairs))
    assert np.allclose(rows, expected, rtol=1e-12, atol=1e-12)
    assert np.array_equal(cost, costs)
    some = np.array([17, 3, 600, 3])
    assert np.array_equal(found.rows(some)[0], np.asarray(rows)[some])


def test_rows_of_a_model_with_inadmissible_actions() -> None:
    written_out = em.line_truth(cap=12)
    states = written_out.states[(written_out.states < 12).all(axis=1)]
    expected, costs, _ = brute_rows(written_out, states, 2, 0.95)
    found = bound(states, model=em.line())
    rows, cost = found.rows(np.arange(found.n_pairs))
    assert found.n_pairs == len(expected) < 3 * len(states)
    assert np.allclose(rows, expected, rtol=1e-12, atol=1e-11)
    assert np.array_equal(cost, costs)
    support, actions = found.support_of(np.arange(4))
    assert support.tolist() == [[0, 0], [0, 1], [0, 1], [0, 2]]
    assert actions.tolist() == [0, 0, 2, 0]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("streamed", [False, True])
def test_separation_against_brute_force(
    seed: int, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_sources, "_BLOCK_PAIRS", 100)  # several blocks
    if streamed:
        monkeypatch.setattr(row_sources, "_CACHED_ENTRIES", 0)
    found = bound()
    assert (found._matrix is None) == streamed
    matrix, costs, here = brute_rows(em.network_truth(), SAMPLE, 2, 0.9)
    coef = np.random.default_rng(seed).normal(size=15)
    coef[0] = 10.0 + 10.0 * seed
    slack = costs - matrix @ coef
    unit = 2.0
    size = np.abs(costs) + 0.1 * np.abs(here @ coef) + unit
    # Where terms cancel, a violation of the size of their rounding error is none.
    terms = 1.9 * np.abs(here) @ np.abs(coef)
    plain = size
    size = np.where(slack < 0.0, plain + 1e-4 * terms, plain)
    answer = found.separate(coef, unit)
    assert len(np.unique(answer.close)) == len(answer.close)
    # Each block gives as many as there are functions, and more: so many are the closest of all.
    # Rows that tie may come in any order: compare how close they are, not which they are.
    first = answer.close[:15]
    assert np.allclose((slack / size)[first], np.sort(slack / size)[:15], atol=1e-10)
    assert np.allclose(answer.close_size, size[answer.close], rtol=1e-12)
    assert not set(answer.near.tolist()) - set(np.flatnonzero(slack <= 1e-8).tolist())
    # Lowered until the worst row is violated by next to nothing: then near rows are all listed.
    lowered = coef + np.eye(15)[0] * (slack.min() + 1e-9) / 0.1
    answer, lifted = found.separate(lowered, unit), slack - (slack.min() + 1e-9)
    assert set(answer.near.tolist()) == set(np.flatnonzero(lifted <= 1e-8).tolist())
    assert 0 < len(answer.near) < len(slack)
    homogeneous = found.separate(coef, unit, homogeneous=True)
    growth = -(matrix @ coef)
    size = plain - np.abs(costs)
    relative = growth / np.where(growth < 0.0, size + 1e-4 * terms, size)
    assert np.allclose(relative[homogeneous.close[:15]], np.sort(relative)[:15], atol=1e-10)


def test_nothing_is_violated_at_a_solution() -> None:
    result = bw.solve(em.network(), bw.Polynomial(2), bw.Fixed(), rows=bw.SampledRows(STATES))
    matrix, costs, here = brute_rows(em.network_truth(), STATES, 2, 0.9)
    size = np.abs(costs) + 0.1 * np.abs(here @ result.coef) + 1.0
    assert ((costs - matrix @ result.coef) / size).min() >= -tolerances.FEASIBILITY
    # Raised by one, the value violates a tight row by one minus the discount.
    lifted = result.coef + np.eye(15)[0]
    first = bound(STATES).separate(lifted, 1.0).close[0]
    assert costs[first] - matrix[first] @ lifted == pytest.approx(-0.1, rel=1e-6)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_streamed_rows_equal_stored_rows(degree: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = bound(degree=degree)
    before = bw.solve(em.network(), bw.Polynomial(degree), bw.Fixed(), rows=bw.SampledRows(STATES))
    monkeypatch.setattr(row_sources, "_CACHED_ENTRIES", 0)
    monkeypatch.setattr(row_sources, "_BLOCK_PAIRS", 64)
    monkeypatch.setattr(features, "_BLOCK_STATES", 32)
    streamed = bound(degree=degree)
    assert stored._matrix is not None
    assert stored._cache is not None
    assert streamed._matrix is None
    assert streamed._cache is None
    assert streamed.n_bytes < stored.n_bytes
    every = np.arange(stored.n_pairs)
    assert np.array_equal(stored.rows(every)[0], streamed.rows(every)[0])
    coef = np.random.default_rng(degree).normal(size=stored.n_basis)
    block = slice(0, len(SAMPLE))
    for near, far in zip(stored.slacks(coef, block), streamed.slacks(coef, block), strict=True):
        assert np.allclose(near, far, rtol=1e-11, atol=1e-11)
    after = bw.solve(em.network(), bw.Polynomial(degree), bw.Fixed(), rows=bw.SampledRows(STATES))
    assert after.status is bw.Status.CONVERGED
    assert after.objective == pytest.approx(before.objective, rel=1e-9)
    assert np.allclose(before.coef, after.coef, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n", [15, 20])
def test_too_few_rows_are_unbounded_and_bounds_cure_it(n: int) -> None:
    rows = bw.SampledRows(bw.sample_states(em.network(), n, seed=2))
    with pytest.raises(bw.errors.SolverError, match="unbounded") as caught:
        bw.solve(em.network(), bw.Polynomial(2), bw.Fixed(), rows=rows)
    assert caught.value.status is bw.Status.UNBOUNDED
    assert (
        "add constraint states or price over a larger box, or put bounds on the coefficients"
        in str(caught.value)
    )
    assert "grows without limit along" in str(caught.value)
    basis = bw.Polynomial(2, lower=-50.0, upper=50.0)
    cured = bw.solve(em.network(), basis, bw.Fixed(), rows=rows, judge=False)
    assert cured.status is bw.Status.CONVERGED
    assert np.abs(cured.coef).max() == pytest.approx(50.0)
    more = bw.SampledRows(bw.sample_states(em.network(), 300, seed=2))
    enough = bw.solve(em.network(), bw.Polynomial(2), bw.Fixed(), rows=more)
    assert enough.status is bw.Status.CONVERGED


@pytest.mark.parametrize(("n", "seed"), [(3, 1), (8, 2), (14, 1)])
def test_fewer_states_than_functions_do_not_make_functions_dependent(n: int, seed: int) -> None:
    rows = bw.SampledRows(bw.sample_states(em.network(), n, seed=seed))
    found = f"{n} sampled states do not tell the 15 basis functions apart"
    with pytest.raises(bw.errors.SolverError, match=found) as caught:
        bw.solve(em.network(), bw.Polynomial(2), bw.Fixed(), rows=rows)
    assert caught.value.status is bw.Status.UNBOUNDED
    assert "try: add constraint states" in str(caught.value)


def test_functions_that_no_row_tells_apart_but_the_weights_do() -> None:
    model = sink(upper=None, initial=bw.models.Geometric(0.5))
    with pytest.raises(
        bw.errors.SolverError, match=r"the weights tell basis function 1 \(x\)"
    ) as caught:
        bw.solve(model, bw.Affine(), bw.Fixed(), rows=bw.SampledRows([[0]]))
    assert caught.value.status is bw.Status.UNBOUNDED


def test_functions_alike_in_every_state_are_dropped() -> None:
    rows = bw.SampledRows([[0], [1]])
    with pytest.warns(
        bw.errors.BellweightWarning, match=r"1 of 3 basis functions .* dropped .*: x\^2"
    ):
        result = bw.solve(sink(upper=1, initial=(1,)), bw.Polynomial(2), bw.Fixed(), rows=rows)
    # One unit of cost, and one more in each step with probability 0.5.
    assert result.objective == pytest.approx(1.0 / (1.0 - 0.5 * 0.9))


def sink(upper: int | None, initial: Any) -> bw.EventModel:
    """One coordinate that costs what it is and falls to zero in the end."""

    def cost(state: Any) -> float:
        return state[0]

    return bw.EventModel(
        dimension=1, actions=1, events=1, cost=cost, probability=[[0.5]], move=[[-1]],
        discount=0.9, initial=initial, upper=upper, compiled=False,
    )  # fmt: skip


def test_weights_far_from_the_sample_are_unbounded() -> None:
    near = STATES[STATES.sum(axis=1) <= 3]
    moments = np.asarray(bw.Polynomial(2)(np.full((1, 4), 4.0)))[0]
    with pytest.raises(bw.errors.SolverError) as caught:
        bw.solve(
            em.network(), bw.Polynomial(2), bw.Fixed(moments=moments), rows=bw.SampledRows(near)
        )
    assert caught.value.status is bw.Status.UNBOUNDED


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ([[0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 0, 1]], "1 repetitions among 3.*np.unique"),
        ([[0, 0, 0, 1], [1, -1, 0, 0]], r"states\[1\] is \[1, -1, 0, 0\]"),
        ([[0, 0, 0, 0.5]], r"states\[0\] is \[0.0, 0.0, 0.0, 0.5\]: .* expected a whole number"),
        (
            [[0, 0, 0, 1], [0, 5, 0, 0]],
            r"states\[1\] is \[0, 5, 0, 0\]: coordinate 1 lies outside \[0, 4\]",
        ),
        ([[0, np.nan, 0, 0]], r"states\[0\] is \[0.0, nan"),
        ([[0, np.inf, 0, 0]], r"states\[0\] is \[0.0, inf"),
        ([[0, 0, 0]], r"shape \(1, 3\), expected \(n, 4\)"),
        (np.zeros((0, 4)), r"shape \(0, 4\)"),
        ([[[0, 0, 0, 0]]], r"shape \(1, 1, 4\)"),
        ([["a", "b", "c", "d"]], "states is not an array of numbers"),
    ],
)
def test_states_that_are_none(states: Any, message: str) -> None:
    with pytest.raises(bw.errors.ModelError, match=message):
        bound(states)


def test_whole_numbers_of_any_type_are_states() -> None:
    for kind in (np.int8, np.uint16, np.float32, np.float64):
        assert np.array_equal(bound(SAMPLE.astype(kind)).states, SAMPLE)
    assert bound([1, 2, 3, 4]).states.tolist() == [[1, 2, 3, 4]]


@pytest.mark.slow
def test_two_million_rows_fit_in_two_gigabytes() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", TWO_MILLION], capture_output=True, encoding="utf-8", check=True
    )
    print(answer.stdout)
    found = json.loads(answer.stdout)
    assert found["rows"] >= 2_000_000
    assert found["stored"] is False
    assert found["pass_seconds"] < 30.0
    assert found["held_gigabytes"] < 0.01
    assert found["solved"] == "CONVERGED"
    assert found["peak_gigabytes"] < 2.0


TWO_MILLION = """
import json, resource, time
import numpy as np
import bellweight as bw

model = bw.problems.queue_network()
began = time.perf_counter()
states = bw.sample_states(model, 111_112, seed=1)
sampling = time.perf_counter() - began
began = time.perf_counter()
rows = bw.SampledRows(states).on(model, bw.Polynomial(2))
binding = time.perf_counter() - began
coef = np.concatenate([[100.0], np.full(8, 20.0), np.full(36, 0.1)])
rows.separate(coef, 1.0)
began = time.perf_counter()
rows.separate(coef, 1.0)
seconds = time.perf_counter() - began
peak_rows = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
held, n_rows, stored = rows.n_bytes, rows.n_pairs, rows._matrix is not None
del rows
began = time.perf_counter()
result = bw.solve(model, bw.Polynomial(2), bw.Fixed(), rows=bw.SampledRows(states))
solving = time.perf_counter() - began
print(json.dumps({
    "rows": n_rows, "stored": stored, "held_gigabytes": held / 2**30,
    "pass_seconds": seconds, "sampling_seconds": sampling,
    "binding_seconds": binding, "peak_gigabytes_rows": peak_rows / 2**20,
    "solve_seconds": solving, "passes": result.reported.passes, "solved": result.status.name,
    "peak_gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
}))
"""


@pytest.mark.parametrize(("least", "most"), [(-3, 5), (-3, 200), (-300, -2)])
def test_negative_whole_states_keep_their_sign(least: int, most: int) -> None:
    def step(state: Any, action: int, noise: Any) -> Any:
        return min(max(state[0] + action - int(noise[0]), least), most)

    def cost(state: Any, action: int) -> float:
        return abs(state[0]) + 0.5 * action

    model = bw.StepModel(
        dimension=1, actions=2, step=step, cost=cost, discount=0.9, integer=True, lower=least,
        upper=most, initial=least, noise=bw.Law([0.0, 1.0], [0.5, 0.5]), compiled=False,
    )  # fmt: skip
    states = np.arange(least, most + 1)[:, None]
    rows = bw.SampledRows(states).on(model, bw.Polynomial(2))
    found, _ = rows.support_of(np.arange(rows.n_pairs))
    assert np.array_equal(found, np.repeat(states, 2, axis=0))
    table = bw.program.AllRows().on(model.to_tabular(), bw.Polynomial(2))
    for part, wanted in zip(
        rows.rows(np.arange(rows.n_pairs)), table.rows(np.arange(table.n_pairs)), strict=True
    ):
        assert np.allclose(part, wanted, rtol=1e-12, atol=1e-9)
