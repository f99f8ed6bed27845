"""Steps that look at how the iteration goes: known limits, cycles, safeguards, files, words."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
from cli_runs import QUEUE, failure, solved
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from strategies import models

import bellweight as bw
from bellweight.backends import Point
from bellweight.backends.tabular import TabularSetup

FloatArray = NDArray[np.float64]


@pytest.fixture
def swinging() -> bw.TabularModel:
    """Three states: PIA with an affine basis goes back and forth between two policies."""
    successor = np.array([[2, 2], [1, 1], [2, 0]])
    return bw.TabularModel.from_arrays(
        cost=[[4.0, 8.0], [7.0, 3.0], [9.0, 9.0]],
        transition=[np.eye(3)[successor[:, action]] for action in (0, 1)],
        discount=0.9,
        initial=[1.0, 0.0, 0.0],
    )


def weights_of(found: bw.Result | bw.results.CyclePhase) -> FloatArray:
    assert found.weights is not None
    return found.weights


def residuals(result: bw.Result) -> list[float]:
    return [record.one_norm for record in result.history if record.one_norm is not None]


# A known limit


@dataclass(frozen=True, eq=False, kw_only=True)
class Stirring(bw.weights.IterativeMethod):
    """A policy that goes to state j with probability (mixing @ weights)[j], wherever it is.

    On a model in which action j leads to state j, the occupancy is then (1 - discount) initial +
    discount mixing @ weights: an affine map of modulus discount, whose limit is a linear system.
    """

    mixing: Any = None

    def generate(self, iterate: bw.weights.Iterate) -> bw.policies.Policy:
        chances = np.maximum(self.mixing @ iterate.weights, 0.0)
        return bw.TablePolicy(np.tile(chances / chances.sum(), (len(chances), 1)))


def free_moves(n: int) -> bw.TabularModel:
    """Every state can be reached from every state at the cost of its number."""
    return bw.TabularModel.from_arrays(
        cost=np.tile(np.arange(n, dtype=float), (n, 1)),
        transition=[np.tile(np.eye(n)[j], (n, 1)) for j in range(n)],
        discount=0.9,
        initial=np.eye(n)[0],
    )


@pytest.mark.parametrize(("n", "at_most"), [(4, 10), (20, 40)])
def test_anderson_finds_the_limit_of_an_affine_map_much_sooner(n: int, at_most: int) -> None:
    model = free_moves(n)
    rng = np.random.default_rng(n)
    # Most of what is in a state stays there, hence a slow contraction.
    staying = rng.uniform(0.5, 1.0, size=n)
    mixing = np.diag(staying) + (1.0 - staying) * rng.dirichlet(np.ones(n), size=n).T
    limit = 0.1 * np.linalg.solve(np.eye(n) - 0.9 * mixing, model.initial)
    stop = bw.Stop(tol=1e-10, max_iterations=400)
    found = {
        name: bw.solve(model, bw.Polynomial(1), Stirring(mixing=mixing, step_size=step), stop=stop)
        for name, step in (("plain", 1.0), ("anderson", bw.weights.Anderson()))
    }
    assert len(found["plain"].history) > 100
    assert len(found["anderson"].history) <= at_most
    for result in found.values():
        assert result.status is bw.Status.CONVERGED
        np.testing.assert_allclose(weights_of(result), limit, rtol=0.0, atol=1e-8)


def test_adaptive_cures_a_swing_that_no_full_step_ends(swinging: bw.TabularModel) -> None:
    sharp: dict[str, Any] = {"temperature": 0.01, "smoothing_mass": 0.01}
    limits = bw.Stop(max_iterations=60)
    plain = bw.solve(swinging, bw.Polynomial(1), bw.DIA(**sharp), stop=limits)
    cured = bw.solve(
        swinging, bw.Polynomial(1), bw.DIA(**sharp, step_size=bw.weights.Adaptive()), stop=limits
    )
    assert not plain.status.is_success
    assert cured.status is bw.Status.CONVERGED
    sizes = [record.step_size or 0.0 for record in cured.history]
    assert sizes[0] == 1.0
    assert min(sizes) < 1.0


def test_adaptive_follows_its_rule(swinging: bw.TabularModel) -> None:
    rule = bw.weights.Adaptive(first=0.8, shrink=0.5, grow=1.5, least=0.15)
    stepper = rule.stepper(None)
    moves = [
        # residual, step size afterwards
        (1.0, 0.8),
        (-0.9, 0.4),  # turned round
        (-0.8, 0.6),  # agrees and has fallen
        (-0.9, 0.3),  # has grown
        (0.8, 0.15),  # turned round
        (-0.7, 0.15),  # no less than the least
        (-0.6, 0.225),
        (0.1, 0.225),  # turned round, but a smaller step would have been slower
        *((0.1 * 0.9**k, min(1.0, 0.225 * 1.5**k)) for k in range(1, 7)),
    ]
    for residual, size in moves:
        here = np.array([0.5, 0.5])
        there = here + 0.1 * residual * np.array([1.0, -1.0])
        step = stepper.leave(Point(here, here), Point(there, there))
        assert step.step_size == pytest.approx(size)
        np.testing.assert_allclose(step.vector, here + size * (there - here))


# Cycles


def test_the_average_of_a_cycle_is_reported_with_its_residual(
    swinging: bw.TabularModel,
) -> None:
    best = bw.solve(swinging, bw.Polynomial(1), bw.PIA())
    found = bw.solve(swinging, bw.Polynomial(1), bw.PIA(cycles="average"))
    assert best.status is found.status is bw.Status.CYCLING
    assert best.average is None
    assert len(found.phases) == 2
    mean = np.mean([weights_of(phase) for phase in found.phases], axis=0)
    np.testing.assert_array_equal(weights_of(found), mean)
    assert [phase.cost.mean for phase in found.phases] == [phase.cost.mean for phase in best.phases]
    assert found.reported is found.history[-1]
    occupancy = reference.occupancy(swinging, found.policy.probabilities(swinging))
    gap = np.abs(occupancy - weights_of(found))
    assert found.reported.sup_norm == pytest.approx(gap.max(), abs=1e-12)
    assert found.reported.one_norm == pytest.approx(gap.sum(), abs=1e-12)
    assert residuals(found)[-1] < min(residuals(best)[-2:])
    assert found.average is not None
    assert found.average.cost.mean == found.cost.mean
    text = str(found)
    assert f"average     cost {found.cost:.2f}" in text
    assert f"residual {gap.max():.3g} (sup norm), {gap.sum():.3g} (1-norm)" in " ".join(
        text.split()
    )
    assert text.count("phase 1") == text.count("phase 2") == 1


def test_adaptive_settles_nearer_than_any_phase_of_the_cycle(swinging: bw.TabularModel) -> None:
    cycle = bw.solve(swinging, bw.Polynomial(1), bw.PIA())
    found = bw.solve(swinging, bw.Polynomial(1), bw.PIA(step_size=bw.weights.Adaptive()))
    nearest = min(residuals(cycle)[-2:])
    assert max(residuals(found)[-20:]) < nearest
    assert np.median(residuals(found)[-20:]) < 0.5 * nearest


def test_a_cycle_of_three_is_averaged(cycling_of_three: bw.TabularModel) -> None:
    found = bw.solve(cycling_of_three, bw.Polynomial(3), bw.PIA(cycles="average"))
    assert len(found.phases) == 3
    mean = np.mean([weights_of(phase) for phase in found.phases], axis=0)
    np.testing.assert_array_equal(weights_of(found), mean)
    best = bw.solve(cycling_of_three, bw.Polynomial(3), bw.PIA())
    assert [phase.cost.mean for phase in best.phases] == [phase.cost.mean for phase in found.phases]


def test_cycles_of_simulated_moments_are_averaged() -> None:
    model = bw.problems.scheduling("small")
    basis = bw.Affine(lower=np.append(-np.inf, np.zeros(model.dimension)))
    found = bw.solve(
        model, basis, bw.PIA(cycles="average"), simulation=bw.Simulation(episodes=64), judge=False
    )
    assert found.status is bw.Status.CYCLING
    np.testing.assert_array_equal(
        found.moments, np.mean([phase.moments for phase in found.phases], axis=0)
    )
    assert found.moments_error is not None
    assert found.cost is None
    assert found.average is not None
    assert found.average.cost.half_width > 0.0
    assert f"average     cost {found.average.cost:,.0f}"[:20] in str(found)


# Safeguards

_seen: list[FloatArray] = []


@dataclass(frozen=True, eq=False, kw_only=True)
class Seen(bw.DIA):
    """DIA that keeps all weights it meets."""

    def generate(self, iterate: bw.weights.Iterate) -> bw.policies.Policy:
        assert iterate.weights is not None
        _seen.append(iterate.weights)
        return super().generate(iterate)


@settings(max_examples=30)
@given(model=models(min_actions=2), smoothing=st.sampled_from([0.01, 0.1, 1.0]))
def test_anderson_never_ends_worse_than_the_plain_step(
    model: bw.TabularModel, smoothing: float
) -> None:
    _seen.clear()
    stop = bw.Stop(tol=1e-10, max_iterations=30)
    plain, found = (
        bw.solve(
            model,
            bw.Polynomial(1),
            Seen(step_size=step, temperature=smoothing, smoothing_mass=smoothing),
            stop=stop,
            judge=False,
        )
        for step in (1.0, bw.weights.Anderson())
    )
    worst = 1.01 * residuals(plain)[-1]
    assert found.status is bw.Status.CONVERGED or residuals(found)[-1] <= worst
    for weights in _seen:
        assert weights.min() >= 0.0
        assert weights.sum() == pytest.approx(1.0, abs=1e-9)


def line(value: float, error: float | None = None) -> Point:
    """A point with one moment beside that of the constant."""
    moments = np.array([1.0, value])
    return Point(moments, standard_error=None if error is None else np.array([0.0, error]))


def test_anderson_on_a_line_is_the_secant_method_and_errors_add_up() -> None:
    stepper = bw.weights.Anderson().stepper(None)
    first = stepper.leave(line(4.0, 0.1), line(6.0, 0.2))
    assert not first.accelerated
    np.testing.assert_allclose(first.vector, [1.0, 6.0])
    second = stepper.leave(line(6.0, 0.2), line(7.0, 0.3))
    # Residuals 2 at 4 and 1 at 6: none at 8, which is -1 times the first point, 2 times the second.
    assert second.accelerated
    np.testing.assert_allclose(second.vector, [1.0, 8.0])
    assert second.standard_error is not None
    np.testing.assert_allclose(second.standard_error, [0.0, 1.0 * 0.2 + 2.0 * 0.3])


def test_anderson_takes_a_step_back_that_made_things_worse() -> None:
    stepper = bw.weights.Anderson(growth=3.0).stepper(None)
    stepper.leave(line(4.0), line(6.0))
    stepper.leave(line(6.0), line(7.0))
    back = stepper.leave(line(8.0), line(11.5))
    assert not back.accelerated
    np.testing.assert_allclose(back.vector, [1.0, 7.0])
    # The memory is empty: the next step is a plain one too.
    after = stepper.leave(line(7.0), line(9.0))
    assert not after.accelerated
    np.testing.assert_allclose(after.vector, [1.0, 9.0])
    assert stepper.retreat() is None


def test_anderson_does_not_leave_the_simplex() -> None:
    def weights(share: float) -> Point:
        return Point(np.array([share, 1.0 - share]), np.array([share, 1.0 - share]))

    stepper = bw.weights.Anderson().stepper(None)
    stepper.leave(weights(0.4), weights(0.2))
    step = stepper.leave(weights(0.2), weights(0.1))
    assert step.accelerated
    np.testing.assert_allclose(step.vector, [0.0, 1.0], atol=1e-12)
    stepper = bw.weights.Anderson().stepper(None)
    stepper.leave(weights(0.4), weights(0.2))
    step = stepper.leave(weights(0.2), weights(0.05))  # the combination would be -0.4
    assert not step.accelerated
    np.testing.assert_allclose(step.vector, [0.05, 0.95])


def test_an_accelerated_step_to_an_unsolvable_program_is_taken_back(
    swinging: bw.TabularModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = bw.solve(swinging, bw.Polynomial(1), bw.DIA())
    solve, calls = TabularSetup.iterate, []

    def failing(setup: TabularSetup, point: Point, *limits: Any) -> bw.weights.Iterate:
        calls.append(point)
        if len(calls) == 3:
            raise bw.errors.SolverError(bw.Status.UNBOUNDED)
        return solve(setup, point, *limits)

    monkeypatch.setattr(TabularSetup, "iterate", failing)
    found = bw.solve(swinging, bw.Polynomial(1), bw.DIA(step_size=bw.weights.Anderson()))
    assert found.status is bw.Status.CONVERGED
    assert found.history[1].accelerated
    np.testing.assert_allclose(weights_of(found), weights_of(whole), atol=1e-7)
    # The third iterate is the plain step from the second.
    assert found.history[2].one_norm == pytest.approx(whole.history[2].one_norm)


def test_anderson_works_on_simulated_moments() -> None:
    model = bw.problems.scheduling("small")
    basis = bw.Affine(lower=np.append(-np.inf, np.zeros(model.dimension)))
    found = bw.solve(
        model,
        basis,
        bw.PIA(step_size=bw.weights.Anderson()),
        simulation=bw.Simulation(episodes=64),
        stop=bw.Stop(max_iterations=6),
    )
    assert any(record.accelerated for record in found.history)
    assert found.moments[0] == pytest.approx(1.0, abs=1e-9)
    assert found.moments_error is not None


# Smoothing


def test_smoothing_is_adapted_and_recorded(swinging: bw.TabularModel) -> None:
    sharp: dict[str, Any] = {"temperature": 2e-5, "smoothing_mass": 1e-5}
    rule = bw.weights.Adaptive(smoothing=True, least=1e-3)
    method = bw.DIA(**sharp, step_size=rule)
    found = bw.solve(swinging, bw.Polynomial(1), method, stop=bw.Stop(max_iterations=300))
    assert found.status is bw.Status.CONVERGED
    masses = [record.smoothing_mass or 0.0 for record in found.history]
    assert masses[0] == 1e-5
    assert all(1e-5 <= mass <= 1e-2 for mass in masses)
    last = found.reported.smoothing_mass
    assert last is not None
    assert last > 1e-5
    assert "adapted to the weights" in str(found)
    # The fixed point is the one of the recorded smoothing, with the temperature in proportion.
    again = bw.DIA(temperature=2.0 * last, smoothing_mass=last, start=found.weights)
    once = bw.solve(swinging, bw.Polynomial(1), again, stop=bw.Stop(max_iterations=1))
    assert once.status is bw.Status.CONVERGED
    assert bw.certify(swinging, found).mismatch == pytest.approx(0.0, abs=1e-7)


def test_nothing_is_called_a_cycle_while_the_smoothing_changes(swinging: bw.TabularModel) -> None:
    # So little smoothing that more of it makes no difference for a while.
    sharp: dict[str, Any] = {"temperature": 1e-5, "smoothing_mass": 1e-5}
    method = bw.DIA(**sharp, step_size=bw.weights.Adaptive(smoothing=True))
    found = bw.solve(swinging, bw.Polynomial(1), method, stop=bw.Stop(max_iterations=200))
    assert found.status is bw.Status.CONVERGED


def test_rules_are_not_certified() -> None:
    declared: dict[str, Any] = {"lipschitz": 1e-9, "discount": 0.9}
    assert bw.DIA(**declared).mode == "certified"
    for rule in (bw.weights.Adaptive(), bw.weights.Anderson()):
        method = bw.DIA(**declared, step_size=rule)
        assert method.modulus is None
        assert method.mode == "practical"


# Inputs, files, words


@dataclass(frozen=True, eq=False, kw_only=True)
class Own(bw.PIA):
    """A method with an update of its own."""

    def update(self, weights: FloatArray, occupancy: FloatArray) -> FloatArray:
        return 0.5 * weights + 0.5 * occupancy


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: bw.weights.Adaptive(first=0.0), "first is 0.0, expected a number above 0"),
        (
            lambda: bw.weights.Adaptive(shrink=1.0),
            "shrink is 1.0, expected a number above 0 and below 1",
        ),
        (lambda: bw.weights.Adaptive(shrink=-0.5), "shrink is -0.5, expected a number above 0"),
        (lambda: bw.weights.Adaptive(grow=0.9), "grow is 0.9, expected a number of at least 1"),
        (
            lambda: bw.weights.Adaptive(first=0.1, least=0.2),
            "least is 0.2, expected .* at most 0.1",
        ),
        (
            lambda: bw.weights.Anderson(memory=0),
            "memory is 0, expected a whole number of at least 1",
        ),
        (lambda: bw.weights.Anderson(step_size=2.0), "step_size is 2.0"),
        (lambda: bw.weights.Anderson(growth=0.5), "growth is 0.5, expected a number of at least 1"),
        (lambda: bw.PIA(cycles="mean"), "cycles is 'mean', expected one of 'best', 'average'"),
        (lambda: bw.PIA(step_size=None), "step_size is None, expected a positive"),  # type: ignore[arg-type]
        (
            lambda: bw.PIA(step_size=bw.weights.Adaptive(smoothing=True)),
            "such as DIA: leave it out",
        ),
        (lambda: Own(step_size=bw.weights.Anderson()), "Own has an update of its own"),
    ],
)
def test_bad_settings_are_refused(make: Any, text: str) -> None:
    with pytest.raises(bw.errors.ArgumentError, match=text):
        make()


def test_an_update_of_ones_own_decides_alone(swinging: bw.TabularModel) -> None:
    own = bw.solve(swinging, bw.Polynomial(1), Own(), stop=bw.Stop(max_iterations=5))
    half = bw.solve(
        swinging, bw.Polynomial(1), bw.PIA(step_size=0.5), stop=bw.Stop(max_iterations=5)
    )
    assert [r.one_norm for r in own.history] == [r.one_norm for r in half.history]
    assert own.history[0].step_size is None
    assert half.history[0].step_size == 0.5


@pytest.mark.parametrize(
    "method",
    [
        bw.PIA(cycles="average"),
        bw.DIA(step_size=bw.weights.Adaptive(smoothing=True, least=0.1)),
        bw.DIA(step_size=bw.weights.Anderson(memory=3)),
    ],
    ids=["average", "adaptive", "anderson"],
)
def test_files_keep_rules_records_and_averages(
    method: bw.weights.Method, swinging: bw.TabularModel, tmp_path: Path
) -> None:
    limits = bw.Stop(max_iterations=6)
    found = bw.solve(swinging, bw.Polynomial(1), method, stop=limits)
    found.save(tmp_path / "found.npz")
    loaded = bw.Result.load(tmp_path / "found.npz", model=swinging)
    assert repr(loaded.method) == repr(method)
    assert loaded.history == found.history
    assert str(loaded) == str(found)
    later = bw.solve(swinging, bw.Polynomial(1), method, stop=limits, resume=tmp_path / "found.npz")
    assert len(later.history) > len(found.history) or found.status is bw.Status.CYCLING


def test_older_records_have_no_steps(swinging: bw.TabularModel) -> None:
    record = bw.solve(swinging, bw.Polynomial(1), bw.DIA()).history[0]
    later = ("step_size", "smoothing_mass", "accelerated")
    older = {f.name: getattr(record, f.name) for f in fields(record) if f.name not in later}
    assert bw.weights.HistoryEntry(**older) == replace(
        record, step_size=None, smoothing_mass=None, accelerated=None
    )


def test_the_command_line_has_words_for_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = solved([*QUEUE, "--step-size", "anderson"], tmp_path)
    assert any(record["accelerated"] for record in document["history"])
    document = solved([*QUEUE, "--method", "pia", "--step-size", "adaptive"], tmp_path)
    assert document["history"][0]["step_size"] == 1.0
    document = solved([*QUEUE, "--method", "pia", "--cycles", "average"], tmp_path)
    assert document["average"] is None  # nothing cycles here
    capsys.readouterr()
    _, text = failure(["solve", *QUEUE, "--step-size", "fast"], capsys)
    assert "expected a number in (0, 1], adaptive or anderson" in text
    _, text = failure(["solve", *QUEUE, "--method", "fixed", "--cycles", "best"], capsys)
    assert "--cycles does not go with --method fixed" in text
