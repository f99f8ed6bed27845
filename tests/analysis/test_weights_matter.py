"""Do the weights matter here? Known cases where they do and where they do not."""

from __future__ import annotations

import event_models as em
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import models

import bellweight as bw
from bellweight.backends import Point
from bellweight.problems.single_queue import geometric


def test_with_indicators_and_full_weights_they_do_not_matter() -> None:
    model = bw.problems.scheduling("tiny").to_tabular(clip=True)
    probe = bw.analysis.weights_matter(
        model, bw.Indicator(), [bw.Fixed("uniform"), bw.FromPolicy()]
    )
    assert not probe.matters
    assert probe.proven
    assert probe.complete
    assert probe.distinct == 1
    assert probe.changes == ()
    best = bw.exact.optimal(model)
    assert np.allclose(probe.common, best.values, rtol=1e-9)
    assert probe.lowest == pytest.approx(float(model.initial @ best.values))
    first, second = str(probe).splitlines()
    assert first.startswith(
        "the weights do not matter here: one value function is optimal for all of them"
    )
    assert second.endswith("12,387.1 for all")


def test_on_the_queue_they_do() -> None:
    queue = bw.problems.single_queue(initial="geometric")
    candidates = {
        "0.9": bw.Fixed(geometric(queue.n_states, 0.9)),
        "0.999": bw.Fixed(geometric(queue.n_states, 0.999)),
    }
    probe = bw.analysis.weights_matter(queue, bw.Polynomial(3), candidates, n=5)
    assert probe.matters
    assert probe.distinct > 2
    assert not probe.complete
    assert [change.name for change in probe.changes][:2] == ["x^3", "x^2"]
    results = [bw.solve(queue, bw.Polynomial(3), method) for method in candidates.values()]
    assert probe.costs == pytest.approx([result.cost.mean for result in results])
    assert probe.lowest is not None
    assert probe.highest is not None
    assert probe.lowest <= min(probe.costs) < max(probe.costs) <= probe.highest
    first, second = str(probe).splitlines()
    assert first.startswith("they matter: at least")
    assert second.startswith("cost of the policies: 38")
    # Results instead of methods give the same answer.
    again = bw.analysis.weights_matter(queue, bw.Polynomial(3), results, n=1)
    assert again.names == ("Fixed 1", "Fixed 2")
    assert np.allclose(again.shortfall, probe.shortfall, rtol=1e-6, atol=1e-3)


def test_phases_of_a_cycle_are_candidates_of_their_own() -> None:
    model = bw.problems.scheduling("tiny").to_tabular(clip=True)
    probe = bw.analysis.weights_matter(model, bw.Polynomial(1))
    assert probe.names == ("initial", "where random actions lead", "PIA phase 1", "PIA phase 2")
    assert probe.matters
    assert probe.complete
    assert probe.distinct == 2
    assert probe.costs == pytest.approx([12_391.905, 12_391.905, 30_616.839, 12_391.905])
    assert "2 value functions are optimal for some of them, none for all" in str(probe)


@pytest.mark.filterwarnings("ignore::bellweight.errors.BellweightWarning")
def test_in_the_clinic_all_good_weights_have_one_value_function() -> None:
    clinic = bw.problems.scheduling("small")
    basis = bw.Affine(lower=np.append(-np.inf, np.zeros(clinic.dimension)))
    methods = {"initial": bw.Fixed(), "Random": bw.FromPolicy(), "DIA": bw.DIA()}
    few = bw.Simulation(64, 688)
    probe = bw.analysis.weights_matter(
        clinic, basis, methods, simulation=few, episodes=16, horizon=100
    )
    assert not np.allclose(probe.moments[0], probe.moments[1], rtol=0.1)
    assert not probe.matters
    assert not probe.same_weights
    assert probe.comparison is not None
    assert probe.comparison.differences["DIA"].mean == pytest.approx(0.0, abs=1e-6)
    # DIA follows its target here: no visit meets dual mass, and its moments are those of Random.
    alike = {"Random": bw.FromPolicy(), "DIA": bw.DIA()}
    silent = bw.analysis.weights_matter(clinic, basis, alike, simulation=few)
    assert silent.same_weights
    assert not silent.matters
    assert str(silent).startswith("nothing to compare")
    assert silent.costs is None
    assert "not asked for" in str(silent)


def test_event_models_work_through_sampled_rows() -> None:
    rows = bw.SampledRows(bw.sample_states(em.network(), 80, seed=2))
    probe = bw.analysis.weights_matter(
        em.network(), bw.Polynomial(2), {"start": bw.Fixed(), "Random": bw.FromPolicy()},
        rows=rows, simulation=bw.Simulation(200), episodes=100, horizon=50,
    )  # fmt: skip
    assert probe.matters
    assert probe.comparison is not None
    assert set(probe.comparison.evaluations) == {"start", "Random"}
    assert "simulated" in str(probe)


@given(models(), st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_the_answer_holds_for_random_mixtures(model: bw.TabularModel, seed: int) -> None:
    basis = bw.Polynomial(1)
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(model.n_states), size=3)
    probe = bw.analysis.weights_matter(model, basis, [bw.Fixed(one) for one in weights])
    setup = bw.weights.SolveSettings(model=model, basis=basis).setup()
    shares = rng.dirichlet(np.ones(3), size=5)
    optimum = np.array(
        [setup.iterate(Point(moments)).solution.objective for moments in shares @ probe.moments]
    )
    reached = shares @ probe.moments @ probe.common
    scale = 1e-7 * (1.0 + np.abs(optimum).max())
    assert (reached <= optimum + scale).all()
    # The optimal value is convex, so mixtures of the optima are never below it.
    assert (optimum <= shares @ probe.objective + scale).all()
    if not probe.matters:
        assert np.allclose(reached, optimum, rtol=1e-6, atol=scale)


def test_bad_candidates_are_named() -> None:
    model = bw.problems.scheduling("tiny").to_tabular(clip=True)
    basis = bw.Polynomial(1)
    with pytest.raises(bw.errors.ArgumentError, match="only one candidate"):
        bw.analysis.weights_matter(model, basis, [bw.Fixed()])
    with pytest.raises(bw.errors.ArgumentError, match="candidates is empty"):
        bw.analysis.weights_matter(model, basis, [])
    with pytest.raises(bw.errors.ArgumentError, match="candidate odd is 3"):
        bw.analysis.weights_matter(model, basis, {"odd": 3})  # type: ignore[dict-item]
    with pytest.raises(bw.errors.ArgumentError, match="candidates is 'Fixed'"):
        bw.analysis.weights_matter(model, basis, "Fixed")  # type: ignore[arg-type]
    other = bw.solve(model, bw.Polynomial(2), bw.Fixed())
    with pytest.raises(bw.errors.ArgumentError, match="another model or basis"):
        bw.analysis.weights_matter(model, basis, [bw.Fixed(), other])
