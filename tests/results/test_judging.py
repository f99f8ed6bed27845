"""What a policy costs beside acting at random and beside the target, and when that is warned of."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import cli_runs
import numpy as np
import pytest
from event_models import functions_of, line, network

import bellweight as bw
from bellweight.backends import backend_of
from bellweight.report.document import result_document
from bellweight.results import judgement


def two_warehouses() -> bw.LinearModel:
    """Two warehouses with orders, waiting demand and a transfer from the first to the second.

    Serving costs nothing now and saves nothing in one step, stock costs every day: an affine value
    cannot say that stock is of use while demand waits, so nothing is ever ordered.
    """
    made = bw.LinearBuilder(discount=0.95, name="two warehouses")
    stock = [made.state(f"stock {k}", upper=30, initial=bw.Law.certain(5)) for k in (1, 2)]
    waiting = [made.state(f"waiting {k}", upper=10, initial=bw.Law.certain(2)) for k in (1, 2)]
    order = [made.action(f"order {k}", upper=5) for k in (1, 2)]
    serve = [made.action(f"serve {k}", upper=5) for k in (1, 2)]
    transfer = made.action("transfer", upper=5)
    demand = [made.noise(f"demand {k}", bw.Law.poisson(2.0, 6)) for k in (1, 2)]
    made.require(serve[0] + transfer <= stock[0])
    made.require(serve[1] <= stock[1])
    made.follow(stock[0], stock[0] - serve[0] - transfer + order[0])
    made.follow(stock[1], stock[1] - serve[1] + transfer + order[1])
    for k in (0, 1):
        made.require(serve[k] <= waiting[k])
        made.follow(waiting[k], waiting[k] - serve[k] + demand[k])
    prices = 2 * (order[0] + order[1]) + transfer
    made.cost(stock[0] + stock[1] + 5 * (waiting[0] + waiting[1]) + prices)
    return made.build()


def repair_desk() -> bw.LinearModel:
    """A desk where the affine value is right: sending jobs away costs more than it saves."""
    desk = bw.LinearBuilder(discount=0.9, name="desk")
    jobs = desk.state("jobs", upper=40, initial=bw.Law.certain(5))
    own = desk.action("own", upper=6)
    sent = desk.action("sent", upper=3)
    new = desk.noise("new", bw.Law.poisson(2.0, 6))
    desk.require(own + sent <= jobs)
    desk.follow(jobs, jobs - own - sent + new)
    desk.cost(2 * jobs + 9 * sent)
    return desk.build()


ROWS = bw.SampledRows([(i, j) for i in range(6) for j in range(6)])


def solved(*given: Any, **options: Any) -> tuple[bw.Result, list[str]]:
    """Solve, and return the result with what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = bw.solve(*given, **options)
    assert [str(one.message) for one in caught] == list(result.warnings)
    assert all(one.category is bw.errors.BellweightWarning for one in caught)
    return result, list(result.warnings)


@pytest.fixture(scope="module")
def warehouses() -> tuple[bw.Result, list[str]]:
    """What DIA finds for the two warehouses."""
    return solved(two_warehouses(), bw.Affine(), bw.DIA(), simulation=bw.Simulation(50))


def test_a_linear_policy_worse_than_random_is_warned_of(
    warehouses: tuple[bw.Result, list[str]],
) -> None:
    result, notes = warehouses
    found = result.judgement
    assert result.status is bw.Status.CONVERGED
    assert found is not None
    assert found.random is not None
    assert found.minus_random is not None
    assert found.cost.mean > 1.5 * found.random.mean
    assert found.minus_random.mean > found.minus_random.half_width > 0.0
    assert found.target is None
    assert found.target_is_random
    worse = [note for note in notes if note.startswith("the policy is worse than acting at random")]
    assert len(worse) == 1
    assert "Auto()" in worse[0]
    assert "Auto()" in str(result).rsplit("next ", maxsplit=1)[1]


def test_visits_outside_the_box_are_warned_of(warehouses: tuple[bw.Result, list[str]]) -> None:
    result, notes = warehouses
    assert result.judgement is not None
    outside = result.judgement.outside
    assert outside is not None
    assert outside.share > 0.5
    assert outside.variable in ("waiting 1", "waiting 2")
    assert outside.reached > outside.upper == 10.0
    (note,) = [note for note in notes if "outside the box" in note]
    assert f"{100.0 * outside.share:.3g} %" in note
    assert f"{outside.variable} reaches {outside.reached:g}" in note
    assert "PricedRows" in note
    wide = bw.program.PricedRows(upper=1_000)
    inside, fewer = solved(two_warehouses(), bw.Affine(), bw.Fixed(), rows=wide)
    assert inside.judgement is not None
    assert inside.judgement.outside is None
    assert not [note for note in fewer if "outside the box" in note]


def test_an_event_policy_worse_than_random_is_warned_of() -> None:
    # A constant value looks one step ahead only, so nobody is ever served.
    result, notes = solved(line(), bw.Polynomial(0), bw.Fixed(), rows=ROWS)
    assert result.judgement is not None
    assert result.cost.mean == result.judgement.cost.mean
    assert len(notes) == 1
    assert notes[0].startswith("the policy is worse than acting at random")
    assert ", acting at random " in notes[0]
    assert "more constraint states" in notes[0]


def test_a_tabular_policy_worse_than_random_is_warned_of(queue: bw.TabularModel) -> None:
    top = np.eye(queue.n_states)[-1]
    result, notes = solved(queue, bw.Polynomial(2), bw.Fixed(top))
    found = result.judgement
    assert found is not None
    assert found.is_exact
    assert found.random is not None
    uniform = float(queue.initial @ bw.exact.policy_value(queue, bw.Uniform()))
    assert found.random.mean == pytest.approx(uniform, rel=1e-12)
    assert found.cost.mean == result.cost.mean
    assert found.minus_random == bw.evaluation.Difference(found.cost.mean - found.random.mean, 0.0)
    assert len(notes) == 1
    assert notes[0].startswith("the policy is worse than acting at random")


@pytest.mark.parametrize("method", [bw.DIA(), bw.Fixed(), bw.PIA()], ids=str)
def test_good_policies_are_not_warned_of(queue: bw.TabularModel, method: bw.weights.Method) -> None:
    settings = {"simulation": bw.Simulation(200)}
    for given in (
        ((queue, bw.Polynomial(2), method), {}),
        ((line(), bw.Polynomial(1), method), {"rows": ROWS, **settings}),
        ((repair_desk(), bw.Affine(), method), settings),
    ):
        result, notes = solved(*given[0], **given[1])
        assert notes == []
        assert result.judgement is not None
        assert result.judgement.minus_random is not None
        assert result.judgement.minus_random.mean < -result.judgement.minus_random.half_width
        assert result.cost.mean == result.judgement.cost.mean
        assert "the policy costs" in str(result)


def test_numbers_are_those_of_compare_whatever_the_jobs() -> None:
    few, many = (
        bw.solve(line(), bw.Polynomial(1), bw.Fixed(), rows=ROWS, seed=3, jobs=jobs).judgement
        for jobs in (1, 2)
    )
    assert few is not None
    assert few == many
    other = bw.solve(line(), bw.Polynomial(1), bw.Fixed(), rows=ROWS, seed=4)
    assert other.judgement != few
    told = bw.compare(
        line(), {"policy": other.policy, "random": bw.Uniform()}, few.episodes, baseline="random",
        horizon=few.horizon, seed=few.seed,
    )  # fmt: skip
    assert few.seed != 3
    assert (few.cost.mean, few.cost.half_width) == (
        told.evaluations["policy"].mean, told.evaluations["policy"].half_width,
    )  # fmt: skip
    assert few.minus_random == told.differences["policy"]
    assert few.tail_bound == told.evaluations["policy"].tail_bound


def test_linear_numbers_are_those_of_compare_whatever_the_jobs() -> None:
    model = bw.problems.scheduling("small")
    settings: dict[str, Any] = {"simulation": bw.Simulation(20), "seed": 5}
    found = [solved(model, bw.Affine(lower=0.0), bw.Fixed(), jobs=n, **settings) for n in (1, 2)]
    (one, _), (two, _) = found
    assert one.judgement is not None
    assert one.judgement == two.judgement
    told = bw.evaluate(
        model, one.policy, one.judgement.episodes, horizon=one.judgement.horizon,
        seed=one.judgement.seed,  # type: ignore[arg-type]
    )  # fmt: skip
    assert told.mean == one.judgement.cost.mean


def test_without_judging_nothing_is_simulated(
    monkeypatch: pytest.MonkeyPatch, queue: bw.TabularModel
) -> None:
    def forbidden(*_: Any, **__: Any) -> Any:
        raise AssertionError("judged")

    monkeypatch.setattr(judgement, "judge", forbidden)
    result, notes = solved(line(), bw.Polynomial(0), bw.Fixed(), rows=ROWS, judge=False)
    assert (result.cost, result.judgement, notes) == (None, None, [])
    exact, _ = solved(queue, bw.Polynomial(2), bw.Fixed(), judge=False)
    assert exact.cost is not None
    assert exact.judgement is None
    bw.solve(queue, bw.Polynomial(2), bw.plans.SmoothedALP(budget=1.0), judge=False)
    with pytest.raises(bw.errors.ArgumentError, match="judge is 'no'"):
        bw.solve(queue, bw.Polynomial(2), bw.Fixed(), judge="no")  # type: ignore[call-overload]


def test_plans_are_judged_once_and_not_the_solves_they_are_made_of(
    monkeypatch: pytest.MonkeyPatch, queue: bw.TabularModel
) -> None:
    calls: list[Any] = []
    judge = judgement.judge

    def counted(*given: Any, **options: Any) -> Any:
        calls.append(given)
        return judge(*given, **options)

    monkeypatch.setattr(judgement, "judge", counted)
    maximum = bw.plans.PointwiseMaximum(methods=[bw.Fixed(), bw.FromPolicy()])
    plans = [
        bw.solve(queue, bw.Polynomial(1), bw.Enriched(functions=4)),
        bw.solve(queue, bw.Polynomial(2), maximum),
        bw.solve(line(), bw.Polynomial(1), bw.Resampled(rounds=1, episodes=64), rows=ROWS),
        smoothed := bw.solve(queue, bw.Polynomial(2), bw.plans.SmoothedALP(budget=1.0)),
    ]
    # The policy that each returns, and no other.
    assert all(given[1] is plan.policy for given, plan in zip(calls, plans, strict=True))
    assert smoothed.judgement is not None
    assert smoothed.judgement.target_is_random


def test_the_target_is_compared_with(queue: bw.TabularModel) -> None:
    best = bw.exact.optimal(queue)
    result, notes = solved(queue, bw.Polynomial(1), bw.DIA(target=best.policy))
    found = result.judgement
    assert found is not None
    assert found.target is not None
    assert found.target.mean == pytest.approx(float(queue.initial @ best.values), rel=1e-10)
    assert found.minus_target is not None
    assert found.minus_target.mean > 0.0
    assert len(notes) == 1
    assert notes[0].startswith("the policy is worse than the target of its method")
    assert "target      " in str(result)


def test_a_target_given_as_a_method_is_its_greedy_policy(queue: bw.TabularModel) -> None:
    first = bw.solve(queue, bw.Polynomial(3), bw.Fixed())
    result = bw.solve(queue, bw.Polynomial(3), bw.DIA(target=bw.Fixed()))
    assert result.judgement is not None
    assert result.judgement.target is not None
    assert result.judgement.target.mean == pytest.approx(first.cost.mean, rel=1e-12)


def test_nearly_optimal_policies_are_not_held_against_their_target(
    queue: bw.TabularModel,
) -> None:
    target = bw.exact.optimal(queue).policy
    result, notes = solved(queue, bw.Indicator(), bw.DIA(target=target, start="uniform"))
    assert result.cost is not None
    assert result.lower_bound is not None
    assert result.cost.mean - result.lower_bound <= 1e-3 * result.cost.mean
    assert notes == []


@pytest.mark.parametrize("actions", [1, 3])
def test_actions_that_make_no_difference_are_no_alarm(actions: int) -> None:
    rng = np.random.default_rng(0)
    moves = rng.dirichlet(np.ones(6), size=6)
    model = bw.TabularModel.from_arrays(
        cost=np.tile(rng.random((6, 1)), actions),
        transition=[moves] * actions,
        discount=0.9,
        initial=np.full(6, 1.0 / 6.0),
    )
    result, notes = solved(model, bw.Polynomial(1), bw.Fixed())
    assert notes == []
    assert result.judgement is not None
    assert result.judgement.minus_random is not None
    assert result.judgement.minus_random.mean == pytest.approx(0.0, abs=1e-12)


def test_rounding_is_no_better_action() -> None:
    # One action in each state; the value of the middle one is zero up to rounding.
    model = bw.TabularModel.from_arrays(
        cost=[[0.0], [-2.0], [2.0]],
        transition=[[[0.5, 0.5, 0.0], [0.1, 0.3, 0.6], [0.0, 0.7, 0.3]]],
        discount=0.95,
        initial=[0.0, 0.21315367, 0.78684633],
    )
    assert not backend_of(model).actions_matter()
    assert solved(model, bw.Affine(), bw.Fixed())[1] == []


def test_as_costly_as_random_is_told_where_better_is_possible() -> None:
    # Both states cost the same to leave by action 0 and to stay in by action 1, on average over the
    # start; only the value function could tell them apart, and the constant one does not.
    model = bw.TabularModel.from_arrays(
        cost=[[1.0, 1.0], [0.0, 2.0]],
        transition=[np.eye(2), np.eye(2)[::-1]],
        discount=0.5,
        initial=[1.0, 0.0],
    )
    result, notes = solved(model, bw.Polynomial(0), bw.Fixed())
    assert result.judgement is not None
    assert result.judgement.minus_random is not None
    assert result.judgement.minus_random.mean == 0.0
    assert len(notes) == 1
    assert "as much as acting at random" in notes[0]


def test_within_noise_is_said_to_be_noise() -> None:
    result = bw.solve(line(), bw.Polynomial(1), bw.Fixed(), rows=ROWS)
    assert result.judgement is not None
    doubtful = replace(result.judgement, minus_random=bw.evaluation.Difference(-1.0, 2.0))
    note = judgement._random_note(backend_of(line()), doubtful)
    assert note.startswith("the policy is not clearly better than acting at random")
    assert "bellweight.compare" in note
    shown = str(replace(result, judgement=doubtful))
    assert "is within noise" in shown


def test_where_no_random_action_is_known_it_is_said() -> None:
    made = bw.LinearBuilder(discount=0.9, name="even")
    stock = made.state("stock", upper=10, initial=bw.Law.certain(4))
    left, right = made.action("left", upper=3), made.action("right", upper=3)
    made.require(left == right)
    made.require(left <= stock)
    made.follow(stock, stock - left + made.noise("new", bw.Law.poisson(1.0, 3)))
    made.cost(3 * stock + right)
    result, _ = solved(made.build(), bw.Affine(), bw.Fixed())
    found = result.judgement
    assert found is not None
    assert found.random is None
    assert "a random action is known only where" in found.random_reason
    assert "at random   not known" in str(result)


def test_a_judgement_is_stored_and_old_files_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = line()
    result = bw.solve(model, bw.Polynomial(1), bw.Fixed(), rows=ROWS)
    result.save(tmp_path / "line.npz")
    loaded = bw.Result.load(tmp_path / "line.npz", model=model)
    assert loaded.judgement == result.judgement
    assert loaded.cost == result.cost
    assert str(loaded) == str(result)
    document = result_document(loaded, model)
    assert document["judgement"]["random"]["mean"] == result.judgement.random.mean  # type: ignore[union-attr]
    # A file of a version that did not judge has no such field.
    fields = dict(bw.Result.__dataclass_fields__)
    old = {name: field for name, field in fields.items() if name != "judgement"}
    monkeypatch.setattr(bw.Result, "__dataclass_fields__", old)
    result.save(tmp_path / "old.npz")
    monkeypatch.setattr(bw.Result, "__dataclass_fields__", fields)
    assert bw.Result.load(tmp_path / "old.npz").judgement is None


def test_an_interrupt_while_judging_keeps_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("bellweight.backends.setup.episode_costs", interrupted)
    result, notes = solved(line(), bw.Polynomial(1), bw.Fixed(), rows=ROWS)
    assert result.status is bw.Status.CONVERGED
    assert (result.cost, result.judgement) == (None, None)
    assert len(notes) == 1
    assert "interrupted" in notes[0]


def test_a_policy_that_cannot_be_simulated_is_kept_with_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise bw.errors.ModelError("no action is admissible")

    monkeypatch.setattr("bellweight.backends.setup.episode_costs", broken)
    result, notes = solved(line(), bw.Polynomial(1), bw.Fixed(), rows=ROWS)
    assert result.judgement is None
    assert notes == ["the policy was not judged, because that failed: no action is admissible"]


def test_an_interrupted_run_is_not_judged() -> None:
    def stop(_: bw.weights.HistoryEntry) -> None:
        raise KeyboardInterrupt

    result = bw.solve(
        line(), bw.Polynomial(1), bw.PIA(), rows=ROWS, simulation=bw.Simulation(50), progress=stop
    )
    assert result.status is bw.Status.INTERRUPTED
    assert result.judgement is None


def test_time_of_judging_is_stated_apart() -> None:
    began = time.perf_counter()
    result = bw.solve(line(), bw.Polynomial(1), bw.Fixed(), rows=ROWS)
    passed = time.perf_counter() - began
    assert result.judgement is not None
    assert 0.0 < result.judgement.seconds <= passed - result.seconds
    (took,) = [row["value"] for row in result.table().rows if row["fact"] == "iterations"]
    assert took.endswith(f" s; judged in {result.judgement.seconds:.2f} s")


def budget(model: Any, policy: bw.policies.Policy, longest: int) -> tuple[int, int]:
    return judgement._budget(backend_of(model).judging_steps(policy), longest)


@pytest.mark.parametrize(
    ("discount", "episodes", "horizon"),
    [(0.2, 10_000, 5), (0.995, 362, 1_379), (0.99999, 8, 62_500)],
)
def test_the_budget_is_in_steps(discount: float, episodes: int, horizon: int) -> None:
    policy = bw.Greedy(basis=bw.Polynomial(0), coef=np.zeros(1))
    longest = bw.Simulation().steps(discount)
    assert budget(line(), policy, longest) == (episodes, horizon)


def test_actions_of_the_general_solver_and_plain_python_get_fewer_steps() -> None:
    warehouses = two_warehouses()
    policy = bw.Greedy(basis=bw.Affine(), coef=np.zeros(5))
    assert budget(warehouses, policy, 135) == (8, 125)
    clinic = bw.problems.scheduling("small")
    quick = bw.Greedy(basis=bw.Affine(), coef=np.zeros(34))
    assert budget(clinic, quick, 688) == (726, 688)
    plain = functions_of(network(), compiled=False)
    assert budget(plain, bw.Greedy(basis=bw.Affine(), coef=np.zeros(5)), 66) == (75, 66)


def test_the_page_shows_what_acting_at_random_costs(
    tmp_path: Path, queue: bw.TabularModel, result: bw.Result
) -> None:
    page = bw.report(result, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "acting at random, also the target" in page
    assert result.judgement is not None
    assert f"{result.judgement.random.mean:,.2f}"[:5] in page  # type: ignore[union-attr]


def test_the_command_line_judges_unless_told_not_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = cli_runs.solved(cli_runs.QUEUE, tmp_path)
    assert document["judgement"]["minus_random"]["mean"] < 0.0
    assert "\nat random   " in capsys.readouterr().out
    assert cli_runs.solved([*cli_runs.QUEUE, "--no-judge"], tmp_path)["judgement"] is None
    assert "at random" not in capsys.readouterr().out
