"""Portfolios: races that drop the worse and keep the best, and a race that tells the truth."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import event_models as em
import numpy as np
import pytest
from cli_runs import failure

import bellweight as bw
from bellweight.cli.main import run
from bellweight.common.checks import FloatArray
from bellweight.common.streams import derived_seed, stream_keys
from bellweight.evaluation.race import SimulatedRace
from bellweight.plans import search
from bellweight.plans.portfolio import default_regularisations, portfolio
from bellweight.plans.resampling import redrawn
from bellweight.simulation import BLOCK

QUADRATIC = bw.Polynomial(2)
SMALL = bw.Simulation(200, 60)


@dataclass(frozen=True)
class Made:
    """Episodes made up: a mean, luck that all share, and luck of its own."""

    mean: float
    own: int
    spread: float = 1.0

    def block(self, first: int, last: int, horizon: int, keys: Any) -> FloatArray:
        shared = np.random.default_rng([int(keys[0]), first]).normal(size=last - first)
        own = np.random.default_rng([int(keys[1]), first, self.own]).normal(size=last - first)
        return np.asarray(self.mean + 10.0 * shared + self.spread * own)


def run_of(
    rollouts: dict[str, Made], budget: int, seed: int, confidence: float = 0.95
) -> bw.evaluation.Race:
    return SimulatedRace(rollouts, 1, seed, 1).run(budget, confidence, None, lambda _: None)


def rows_of(n: int = 80) -> bw.SampledRows:
    return bw.SampledRows(bw.sample_states(em.network(), n, seed=5))


def rules() -> dict[str, bw.policies.Policy]:
    network = em.NETWORK
    return {"last buffer": network.last_buffer_first(), "longest": network.longest_queue()}


def test_the_best_wins_and_clear_losers_cost_only_a_look() -> None:
    made = {"best": Made(0.0, 1), "close": Made(0.05, 2), "far": Made(3.0, 3)}
    found = run_of(made, 200_000, seed=1)
    assert found.winner == "best"
    episodes = {standing.name: standing.episodes for standing in found.standings}
    assert episodes["far"] == BLOCK
    assert episodes["best"] > 8 * BLOCK
    assert found.episodes == sum(episodes.values()) <= 200_000


def test_the_best_is_dropped_no_more_often_than_stated() -> None:
    """Five policies nearly alike: at a level of 80 % the best may be lost in a fifth of races."""
    made = {"best": Made(0.0, 0)} | {f"p{k}": Made(0.01, k) for k in range(1, 5)}
    dropped = 0
    for seed in range(100):
        found = run_of(made, 40_000, seed, confidence=0.8)
        dropped += any(s.name == "best" and s.dropped for s in found.standings)
    assert dropped <= 20


def test_a_dropped_policy_is_behind_and_an_undecided_one_is_named() -> None:
    made = {"a": Made(0.0, 1), "b": Made(1e-6, 2), "c": Made(1.0, 3)}
    found = run_of(made, 20_000, seed=3)
    assert len(found.undecided) == 1
    assert {found.winner, *found.undecided} == {"a", "b"}
    last = found.standings[-1]
    assert (last.name, last.dropped) == ("c", True)
    assert last.behind.mean == pytest.approx(1.0, abs=0.2)


def test_policies_that_act_alike_count_once() -> None:
    found = run_of({"a": Made(0.0, 1), "twin": Made(0.0, 1), "b": Made(1.0, 2)}, 50_000, seed=1)
    assert [s.name for s in found.standings] == ["a", "b"]
    assert found.standings[0].alike == ("twin",)


def test_a_race_is_the_same_for_any_number_of_workers() -> None:
    policies = {**rules(), "uniform": bw.Uniform()}
    one, two = (
        bw.evaluation.race(em.network(), policies, 9_000, horizon=40, seed=2, jobs=jobs)
        for jobs in (1, 2)
    )
    assert one == two


def test_enumerated_models_are_ranked_by_exact_cost(small_queue: bw.TabularModel) -> None:
    best = bw.exact.optimal(small_queue)
    policies = {"uniform": bw.Uniform(), "optimal": best.policy, "again": best.policy}
    found = bw.evaluation.race(small_queue, policies, 1)
    assert found.winner == "optimal"
    assert found.standings[0].alike == ("again",)
    assert found.standings[0].mean == pytest.approx(small_queue.initial @ best.values)
    assert found.episodes == 0


def test_a_race_needs_episodes_for_a_first_look() -> None:
    with pytest.raises(bw.errors.ArgumentError, match=f"at least {2 * BLOCK:,}"):
        bw.evaluation.race(em.network(), rules(), 2 * BLOCK - 1)
    for wrong in ({}, [bw.Uniform()]):
        with pytest.raises(bw.errors.ArgumentError, match="expected at least one name"):
            bw.evaluation.race(em.network(), wrong, 10_000)  # type: ignore[arg-type]
    with pytest.raises(bw.errors.ModelError, match="expected a TabularModel"):
        bw.evaluation.race("model", rules(), 10_000)  # type: ignore[arg-type]


def test_on_an_enumerated_model_nobody_alone_is_better(queue: bw.TabularModel) -> None:
    race = bw.solve(queue, bw.Polynomial(3), bw.Auto())
    alone = [
        bw.solve(queue, bw.Polynomial(3), method).cost.mean
        for method in (bw.Fixed(), bw.FromPolicy(), bw.PIA(), bw.DIA())
    ]
    assert race.cost.mean <= min(cost for cost in alone if cost is not None) + 1e-9
    truth = float(queue.initial @ bw.exact.policy_value(queue, race.policy))
    assert race.cost.mean == pytest.approx(truth, rel=1e-12)
    assert race.evaluation is None
    assert race.cost.half_width == 0.0
    assert race.winner in str(race)


def test_only_bounds_that_can_matter_are_proven(
    small_queue: bw.TabularModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    proven, kind = [], type(bw.weights.SolveSettings(model=small_queue, basis=QUADRATIC).setup())
    prove = kind.proven

    def counted(self: Any, *given: Any) -> Any:
        proven.append(self.regularisation)
        return prove(self, *given)

    monkeypatch.setattr(kind, "proven", counted)
    smooth = {f"smooth {d:g}": bw.plans.Candidate(bw.Fixed(), d) for d in (1e-3, 2e-3, 3e-3)}
    race = bw.solve(small_queue, QUADRATIC, bw.Auto({"plain": bw.DIA(), **smooth}))
    assert race.result is not None
    assert proven == [0.0, race.result.regularisation]
    again = bw.solve(
        small_queue, QUADRATIC, race.result.method, regularisation=race.result.regularisation
    )
    assert race.result.lower_bound == pytest.approx(again.lower_bound, rel=1e-9)


def test_nothing_is_tried_after_a_policy_that_is_proven_optimal(
    small_queue: bw.TabularModel,
) -> None:
    candidates = {
        "bound": bw.plans.Candidate(bw.Fixed()),
        "again": bw.plans.Candidate(bw.Fixed(), 1e-9),
        "never": bw.plans.Candidate(bw.PIA()),
    }
    race = bw.solve(small_queue, bw.Indicator(), bw.Auto(candidates))
    assert any("is proven optimal: 2." in note for note in race.notes)


def test_brought_policies_take_part_and_the_winner_is_named() -> None:
    model = em.network()
    optimal = bw.exact.optimal(model.to_tabular()).policy
    chosen = {tuple(s): optimal.on(model.to_tabular()).action(i) for i, s in
              enumerate(em.network_truth().states.tolist())}  # fmt: skip
    table = np.array([chosen[tuple(s)] for s in em.network_truth().states.tolist()], dtype=float)

    def look_up(state: Any, parameters: Any) -> int:
        place = 0
        for i in range(4):
            place = place * 5 + state[i]
        return int(parameters[place])

    candidates = {
        "mine": bw.Rule(look_up, table),
        "Fixed": bw.Fixed(),
        "found before": bw.solve(model, QUADRATIC, bw.FromPolicy(), rows=rows_of(),
                                 simulation=SMALL),
        **rules(),
    }  # fmt: skip
    plan = bw.Auto(candidates, budget=60_000, rounds=1)
    race = bw.solve(model, QUADRATIC, plan, rows=rows_of(), simulation=SMALL)
    costs = {s.name: s.mean for s in race.standings}
    assert set(candidates) <= set(costs) | {a for s in race.standings for a in s.alike}
    optimum = float(model.to_tabular().initial @ bw.exact.optimal(model.to_tabular()).values)
    assert race.cost.mean <= 1.01 * optimum + race.cost.half_width
    assert race.winner == "mine"


def test_what_the_user_has_gives_way_only_to_better_beyond_doubt() -> None:
    """A policy and its twin by other means: cheaper by luck is not enough."""
    found = bw.solve(em.network(), QUADRATIC, bw.Fixed(), rows=rows_of(), simulation=SMALL)
    nearly = replace(found.policy, coef=found.policy.coef * np.linspace(1.0, 1.02, 15))
    race = bw.solve(
        em.network(), QUADRATIC, bw.Auto({"Fixed": bw.Fixed()}, {"mine": nearly}, budget=20_000),
        rows=rows_of(), simulation=SMALL,
    )  # fmt: skip
    undecided = {race.races[-1].winner, *race.races[-1].undecided}
    assert "mine" not in undecided or race.winner == "mine"
    worse = bw.Auto({"Fixed": bw.Fixed()}, {"mine": bw.Uniform()}, budget=20_000)
    race = bw.solve(em.network(), QUADRATIC, worse, rows=rows_of(), simulation=SMALL)
    assert race.winner != "mine"


def test_the_reported_cost_comes_from_fresh_random_numbers() -> None:
    plan = bw.Auto({"Fixed": bw.Fixed(), "Random": bw.FromPolicy()}, budget=20_000, rounds=0)
    race = bw.solve(em.network(), QUADRATIC, plan, rows=rows_of(), simulation=SMALL, seed=7)
    found = race.evaluation
    assert found is not None
    assert found.episodes == 4_000
    again = bw.evaluate(em.network(), race.policy, 4_000, horizon=60, seed=found.seed)
    assert again.mean == race.cost.mean
    used = {derived_seed(7, purpose, number) for purpose in (0, 2) for number in range(3)}
    assert found.seed not in {7, *used}
    assert race.result is not None
    assert race.result.policy.coef.tolist() == race.policy.coef.tolist()  # type: ignore[attr-defined]


def test_selection_flatters_the_winner_and_fresh_numbers_do_not() -> None:
    """Twenty policies of the same mean: the winner's race cost is low, its fresh cost is not."""
    flattery, fresh = [], []
    for seed in range(30):
        made = {f"p{k}": Made(0.0, k, spread=5.0) for k in range(20)}
        found = run_of(made, 20 * BLOCK, seed)
        flattery.append(found.standings[0].mean - np.mean([s.mean for s in found.standings]))
        keys = stream_keys(derived_seed(seed, 1))
        episodes = {n: rollout.block(0, BLOCK, 1, keys).mean() for n, rollout in made.items()}
        fresh.append(episodes[found.winner] - np.mean(list(episodes.values())))
    assert np.mean(flattery) < -0.2
    assert abs(np.mean(fresh)) < 0.1


def test_pia_brings_its_iterates() -> None:
    plan = bw.Auto({"PIA": bw.PIA()}, budget=60_000, rounds=0)
    race = bw.solve(
        em.network(), QUADRATIC, plan, rows=rows_of(), simulation=SMALL, stop=bw.Stop(1e-300, 3)
    )
    names = {s.name for s in race.standings} | {a for s in race.standings for a in s.alike}
    assert names == {"PIA", "PIA, iterate 0", "PIA, iterate 1"}


def test_the_default_portfolio_has_every_kind_of_candidate() -> None:
    setup = bw.weights.SolveSettings(model=em.network(), basis=QUADRATIC, rows=rows_of()).setup()
    deltas = default_regularisations(setup)
    candidates = portfolio(deltas)
    kinds = {type(candidate.method) for candidate in candidates.values()}
    assert kinds == {bw.Fixed, bw.FromPolicy, bw.PIA, bw.DIA}
    assert {c.regularisation for c in candidates.values()} == {0.0, *deltas}
    assert len(deltas) >= 3
    assert all(delta > 0.0 for delta in deltas)


def test_linear_models_race_too() -> None:
    model = bw.problems.scheduling("tiny")
    plan = bw.Auto([bw.Fixed(), bw.FromPolicy(), bw.FromPolicy()], budget=8_000)
    race = bw.solve(model, bw.Affine(), plan, simulation=bw.Simulation(64, 100))
    names = {s.name for s in race.standings} | {a for s in race.standings for a in s.alike}
    assert names == {"Fixed", "FromPolicy", "FromPolicy #2"}


def test_plans_may_be_candidates_and_failures_are_told(small_queue: bw.TabularModel) -> None:
    class Failing(bw.weights.Method):
        def first(self, setup: Any) -> Any:
            raise bw.errors.ArgumentError("no weights here: bring some")

    candidates = {"bad": Failing(), "resampled": bw.Resampled(), "Fixed": bw.Fixed()}
    race = bw.solve(small_queue, bw.Polynomial(1), bw.Auto(candidates))
    assert race.winner == "Fixed"
    assert set(race.failed) == {"bad", "resampled"}
    assert "no weights here" in str(race)
    with pytest.raises(
        bw.errors.ArgumentError, match="no candidate led to a policy: bad: no weights"
    ):
        bw.solve(small_queue, bw.Polynomial(1), bw.Auto({"bad": Failing()}))


def test_a_league_can_be_saved_and_its_policy_acts(tmp_path: Path) -> None:
    plan = bw.Auto({"Fixed": bw.Fixed()}, budget=30_000, rounds=1)
    race = bw.solve(em.network(), QUADRATIC, plan, rows=rows_of(), simulation=SMALL)
    race.save(tmp_path / "race.npz")
    again = bw.plans.RaceResult.load(tmp_path / "race.npz", em.network())
    assert str(again) == str(race)
    assert again.races == race.races
    acting = again.policy if isinstance(again.policy, bw.Greedy) else None
    if acting is not None:
        assert acting.action([1, 2, 0, 1]) == race.policy.action([1, 2, 0, 1])
    if again.result is not None:
        assert again.result.policy.action([1, 2, 0, 1]) in range(4)


def test_a_league_of_another_model_is_refused(small_queue: bw.TabularModel, tmp_path: Path) -> None:
    """Also where a policy was brought, so that no result remembers the model."""
    plans = {
        "solved": bw.Auto({"Fixed": bw.Fixed()}),
        "brought": bw.Auto({"mine": bw.Uniform()}),
    }
    other = bw.problems.single_queue(capacity=30, discount=0.9)
    for name, plan in plans.items():
        path = tmp_path / f"{name}.npz"
        bw.solve(small_queue, bw.Polynomial(1), plan).save(path)
        assert bw.plans.RaceResult.load(path, small_queue).policy.model is small_queue
        with pytest.raises(bw.errors.FileError, match=f"{name}.npz belongs to another model"):
            bw.plans.RaceResult.load(path, other)


def test_time_may_run_out() -> None:
    """The first candidate and what was brought are always raced; the judgement is cut short."""
    candidates = {"a": bw.Fixed(), "b": bw.FromPolicy()}
    plan = bw.Auto(candidates, rules(), max_seconds=1e-9, budget=4_000_000)
    race = bw.solve(em.network(), QUADRATIC, plan, rows=rows_of(), simulation=SMALL)
    assert set(race.failed) == {"a", "b"}
    assert {s.name for s in race.standings} == set(rules())
    assert race.evaluation is not None
    assert race.evaluation.episodes == BLOCK
    assert len(race.races) == 1
    alone = bw.Auto(candidates, max_seconds=1e-9, budget=20_000)
    race = bw.solve(em.network(), QUADRATIC, alone, rows=rows_of(), simulation=SMALL)
    assert race.winner == "a"


def test_a_constant_difference_drops_nobody() -> None:
    """A cost that is huge once in thousands: until it is seen, the difference has no spread."""

    @dataclass(frozen=True)
    class Rare(Made):
        def block(self, first: int, last: int, horizon: int, keys: Any) -> FloatArray:
            return super().block(first, last, horizon, keys) + 1.0

    found = run_of({"a": Made(0.0, 1), "b": Rare(0.0, 1)}, 40_000, seed=1)
    assert found.undecided == ("b",)


def test_all_races_together_keep_the_confidence() -> None:
    plan = bw.Auto({"Fixed": bw.Fixed()}, budget=60_000, rounds=2, confidence=0.9)
    race = bw.solve(em.network(), QUADRATIC, plan, rows=rows_of(), simulation=SMALL)
    assert len(race.races) == 3
    assert sum(1.0 - race.confidence for race in race.races) == pytest.approx(0.1)


def test_the_budget_is_kept_in_every_round() -> None:
    plan = bw.Auto([bw.Fixed()], budget=2_560)
    race = bw.solve(em.network(), QUADRATIC, plan, rows=rows_of(), simulation=SMALL)
    assert race.evaluation is not None
    spent = sum(race.episodes for race in race.races) + race.evaluation.episodes
    assert spent <= 2_560
    assert "No budget was left to re-draw" in str(race)


def test_ctrl_c_keeps_what_a_race_has_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    plan = bw.Auto({"Fixed": bw.Fixed(), **rules()}, budget=60_000)
    monkeypatch.setattr(search, "redrawn", interrupted)
    race = bw.solve(em.network(), QUADRATIC, plan, rows=rows_of(), simulation=SMALL)
    assert "Interrupted" in str(race)
    assert len(race.races) == 1
    monkeypatch.setattr(search, "race", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bw.solve(em.network(), QUADRATIC, plan, rows=rows_of(), simulation=SMALL)


def test_a_regularisation_given_to_solve_is_the_one_that_is_tried(
    small_queue: bw.TabularModel,
) -> None:
    race = bw.solve(small_queue, bw.Polynomial(1), bw.Auto(), regularisation=0.25)
    names = {s.name for s in race.standings} | {a for s in race.standings for a in s.alike}
    assert {name.split("smoothed by ")[1] for name in names if "smoothed" in name} == {"0.25"}
    with pytest.raises(bw.errors.ArgumentError, match="regularisation"):
        bw.solve(small_queue, bw.Polynomial(1), bw.Auto(), regularisation=-50.0)


def test_results_of_other_models_do_not_take_part(small_queue: bw.TabularModel) -> None:
    other = bw.solve(bw.problems.single_queue(capacity=40), bw.Affine(), bw.Fixed())
    race = bw.solve(small_queue, bw.Affine(), bw.Auto([bw.Fixed()], {"other": other}))
    assert "another model" in race.failed["other"]
    assert race.winner == "Fixed"


def test_progress_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    plan = bw.Auto({"Fixed": bw.Fixed()}, budget=10_000, rounds=0)
    bw.solve(em.network(), QUADRATIC, plan, rows=rows_of(), simulation=SMALL, progress=True)
    told = capsys.readouterr().out
    assert "candidate 1 of 1: Fixed" in told
    assert "policies left" in told


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"candidates": {}}, "candidates is empty"),
        ({"candidates": []}, "candidates is empty"),
        ({"candidates": "DIA"}, "expected a list"),
        ({"candidates": {"x": 3}}, "candidate 'x' is 3"),
        ({"candidates": [bw.Auto()]}, "an Auto itself"),
        ({"candidates": [bw.plans.Candidate(bw.Auto())]}, "an Auto itself"),
        ({"regularisations": 0.1}, "regularisations"),
        ({"watch": 5}, "watch"),
        ({"budget": 0}, "budget"),
        ({"confidence": 1.0}, "confidence"),
        ({"rounds": -1}, "rounds"),
        ({"regularisations": [-1.0]}, "regularisations"),
        ({"max_seconds": 0}, "max_seconds"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(bw.errors.ArgumentError, match=words):
        bw.Auto(**settings)


def test_a_negative_regularisation_of_a_candidate_is_refused() -> None:
    with pytest.raises(bw.errors.ArgumentError, match="regularisation"):
        bw.plans.Candidate(bw.DIA(), -1.0)


def test_a_budget_too_small_for_the_candidates_is_refused_before_any_work() -> None:
    plan = bw.Auto({"Fixed": bw.Fixed()}, budget=1_000, rounds=0)
    with pytest.raises(
        bw.errors.ArgumentError, match="too few for one candidate: expected at least 1,2"
    ):
        bw.solve(em.network(), QUADRATIC, plan, rows=rows_of(), simulation=SMALL)


def test_plans_cannot_be_resumed(small_queue: bw.TabularModel) -> None:
    with pytest.raises(bw.errors.ArgumentError, match="Auto is a plan"):
        bw.solve(small_queue, QUADRATIC, bw.Auto(), resume="x.npz")


def test_redrawn_states_are_those_given_the_heaviest_and_fresh_ones() -> None:
    model = em.network()
    given = bw.sample_states(model, 60, seed=1)
    found = bw.solve(model, QUADRATIC, bw.Fixed(), rows=bw.SampledRows(given))
    states, kept, fresh = redrawn(model, given, found.policy, found.support, seed=9)
    assert np.array_equal(states[:60], given)
    assert kept == 0  # a dual lives on rows that are given already
    drawn = {tuple(s) for s in bw.sample_states(model, 60, found.policy, seed=9).tolist()}
    new = {tuple(s) for s in states[60:].tolist()}
    assert new == drawn - {tuple(s) for s in given.tolist()}
    assert fresh == len(new)
    elsewhere = bw.sample_states(model, 60, bw.Uniform(), seed=3)
    _, kept, _ = redrawn(model, elsewhere, found.policy, found.support, seed=9)
    assert kept > 0


def test_rounds_tell_how_the_cost_settles(tmp_path: Path) -> None:
    plan = bw.Resampled(rounds=2, episodes=500)
    found = bw.solve(em.network(), QUADRATIC, plan, rows=rows_of(40), simulation=SMALL)
    assert [r.change is None for r in found.rounds] == [True, False, False]
    means = [r.cost.mean for r in found.rounds]
    assert found.best == int(np.argmin(means))
    assert found.rounds[1].change is not None
    assert found.rounds[1].change.mean == pytest.approx(means[1] - means[0])
    assert found.evaluation.mean != means[found.best]
    assert "Best: round" in str(found)
    found.save(tmp_path / "rounds.npz")
    assert str(bw.plans.ResampledResult.load(tmp_path / "rounds.npz")) == str(found)


def test_only_sampled_constraint_states_can_be_redrawn(small_queue: bw.TabularModel) -> None:
    with pytest.raises(bw.errors.ArgumentError, match="re-drawn where they are a sample"):
        bw.solve(small_queue, QUADRATIC, bw.Resampled())
    for settings in ({"rounds": 0}, {"episodes": 1}, {"method": "DIA"}):
        with pytest.raises(bw.errors.ArgumentError, match=next(iter(settings))):
            bw.Resampled(**settings)  # type: ignore[arg-type]


def test_the_command_line_races_and_saves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = bw.problems.single_queue(capacity=30)
    kept, out, told = (tmp_path / name for name in ("mine.npz", "race.npz", "race.json"))
    bw.solve(model, bw.Polynomial(1), bw.Fixed()).save(kept)
    words = ["auto", "single_queue", "--option", "capacity=30", "--basis", "poly:2"]
    assert run([*words, "--with", str(kept), "--save", str(out), "--json", str(told)]) == 0
    race = bw.plans.RaceResult.load(out, model)
    assert f"Winner: {race.winner} costs" in capsys.readouterr().out
    assert "mine" in {s.name for s in race.standings}
    assert race.policy.action(3) in range(5)
    document = json.loads(told.read_text(encoding="utf-8"))
    assert (document["winner"], document["cost"]) == (race.winner, race.cost.mean)
    assert len(document["race"]) == len(race.standings)


def test_a_league_is_reported_as_a_page(
    small_queue: bw.TabularModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    candidates = {"<b>mine</b>": bw.Fixed(), "other": bw.FromPolicy()}
    race = bw.solve(small_queue, bw.Polynomial(1), bw.Auto(candidates))
    page = bw.report(race, tmp_path / "race.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;mine&lt;/b&gt;" in page
    assert "<b>mine</b>" not in page
    assert "Race of policies" in page
    race.save(tmp_path / "race.npz")
    out = tmp_path / "again.html"
    assert run(["report", str(tmp_path / "race.npz"), "--out", str(out)]) == 0
    assert "Race of policies" in out.read_text(encoding="utf-8")
    with pytest.raises(bw.errors.ArgumentError, match="takes no optimum"):
        bw.report(race, out, optimum=3.0)


def test_the_command_line_refuses_a_budget_for_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["auto", "queue_network", "--states", "50", "--budget", "100"]
    code, line = failure(words, capsys)
    assert code == 1
    assert "budget is 100 episodes, too few for 17 candidates" in line


@pytest.mark.parametrize(
    ("brought", "words"), [([1], "expected names"), ({"x": 1}, "expected a policy or a result")]
)
def test_only_policies_and_results_are_brought(brought: Any, words: str) -> None:
    with pytest.raises(bw.errors.ArgumentError, match=words):
        bw.Auto(brought=brought)


def test_a_brought_policy_needs_a_name_of_its_own(small_queue: bw.TabularModel) -> None:
    with pytest.raises(bw.errors.ArgumentError, match="'Fixed' is a candidate and brought"):
        bw.solve(small_queue, bw.Affine(), bw.Auto(brought={"Fixed": bw.Uniform()}))


def test_regularisations_that_rows_do_not_take_are_told() -> None:
    model = bw.problems.computer_ring(3, compiled=False)
    plan = bw.Auto([bw.Fixed(), bw.plans.Candidate(bw.FromPolicy(), 0.5)], budget=300)
    few = bw.Simulation(episodes=20, horizon=10)
    found = bw.solve(model, bw.Affine(), plan, rows=bw.LocalRows(), simulation=few)
    assert list(found.failed) == ["FromPolicy, smoothed by 0.5"]
    assert "expected 0 where rows are not listed" in found.failed["FromPolicy, smoothed by 0.5"]


def test_what_a_plan_found_takes_part_as_a_result_does(small_queue: bw.TabularModel) -> None:
    grown = bw.solve(small_queue, bw.Polynomial(1), bw.Enriched(functions=4))
    race = bw.solve(small_queue, bw.Affine(), bw.Auto([bw.Fixed()], {"grown": grown}))
    assert race.winner == "grown"
    assert race.cost.mean == pytest.approx(grown.cost.mean, rel=1e-9)
