"""DIA over a grid of settings: each point is what a run of its own finds."""

from __future__ import annotations

import event_models as em
import numpy as np
import pytest

import bellweight as bw
from bellweight.display import to_csv, to_text

BASIS = bw.Polynomial(3)
TEMPERATURES = (0.1, 10.0)
MASSES = (0.01, 1.0, 100.0)
STEPS = (1.0, 0.5)


@pytest.fixture(scope="module")
def queue() -> bw.TabularModel:
    return bw.problems.single_queue(capacity=299)


@pytest.fixture(scope="module")
def found(queue: bw.TabularModel) -> bw.analysis.Sensitivity:
    return bw.analysis.sensitivity(queue, BASIS, TEMPERATURES, MASSES, STEPS)


def test_every_point_is_what_a_run_of_its_own_finds(
    found: bw.analysis.Sensitivity, queue: bw.TabularModel
) -> None:
    assert len(found.settings) == 12
    for setting in (found.settings[0], found.settings[3], found.settings[-1]):
        method = bw.DIA(
            temperature=setting.temperature,
            smoothing_mass=setting.smoothing_mass,
            step_size=setting.step_size,
        )
        alone = bw.solve(queue, BASIS, method)
        assert setting.status is alone.status
        assert setting.iterations == len(alone.history)
        assert setting.cost.mean == pytest.approx(alone.cost.mean)
        assert setting.cost.half_width == 0.0
        assert setting.mismatch == pytest.approx(alone.reported.one_norm, abs=1e-8)


def test_more_smoothing_moves_the_weights_away_from_the_greedy_policy(
    found: bw.analysis.Sensitivity,
) -> None:
    distance = found.grid("greedy_mismatch")
    assert distance.shape == (3, 2)
    assert (np.diff(distance, axis=0) > 0.0).all()
    assert np.allclose(distance, found.grid("greedy_mismatch", 0.5), atol=1e-6)
    assert (found.grid("iterations", 0.5) > found.grid("iterations", 1.0)).all()
    assert found.best.cost.mean == found.grid("cost").min()


def test_the_table_and_the_picture(found: bw.analysis.Sensitivity) -> None:
    text = to_text(found.table())
    assert "±" not in text
    assert "every run converged" in text
    lines = to_csv(found.table()).splitlines()
    assert len(lines) == 13
    figure = found.figure("queue")
    maps = [axes for axes in figure.axes if axes.get_xlabel() == "temperature"]
    assert len(maps) == 6
    assert [tick.get_text() for tick in maps[0].get_yticklabels()] == ["0.01", "1", "100"]
    assert all(len(axes.texts) == 6 for axes in maps)


def test_a_target_that_is_a_method_is_run_once(
    queue: bw.TabularModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[bw.weights.Method] = []
    first = bw.Fixed.first

    def counted(self: bw.Fixed, setup: object) -> object:
        runs.append(self)
        return first(self, setup)  # type: ignore[arg-type]

    monkeypatch.setattr(bw.Fixed, "first", counted)
    found = bw.analysis.sensitivity(queue, BASIS, [0.1, 1.0], [0.1], target=bw.Fixed("uniform"))
    assert len(runs) == 1
    assert len(found.settings) == 2


def test_runs_that_do_not_converge_are_counted(queue: bw.TabularModel) -> None:
    found = bw.analysis.sensitivity(
        queue, BASIS, [10.0], [1.0], (0.01,), stop=bw.Stop(max_iterations=2)
    )  # fmt: skip
    assert found.settings[0].status is bw.Status.ITERATION_LIMIT
    assert found.settings[0].mismatch > 1e-6
    assert "1 of 1 runs did not converge" in to_text(found.table())


def test_event_models_are_simulated_with_an_interval() -> None:
    rows = bw.SampledRows(bw.sample_states(em.network(), 80, seed=2))
    found = bw.analysis.sensitivity(
        em.network(), bw.Polynomial(2), [0.1], [0.1, 1.0], rows=rows,
        simulation=bw.Simulation(100), stop=bw.Stop(max_iterations=5), episodes=50, horizon=50,
    )  # fmt: skip
    assert all(setting.cost.half_width > 0.0 for setting in found.settings)
    assert "±" in to_text(found.table())
    assert "simulated" in found.table().notes[0]


def test_bad_grids_are_refused(queue: bw.TabularModel) -> None:
    with pytest.raises(bw.errors.ArgumentError, match="temperatures is empty"):
        bw.analysis.sensitivity(queue, BASIS, [], [0.1])
    with pytest.raises(bw.errors.ArgumentError, match="smoothing_masses has repetitions"):
        bw.analysis.sensitivity(queue, BASIS, [0.1], [0.1, 0.1])
    with pytest.raises(bw.errors.ArgumentError, match="temperature is -1"):
        bw.analysis.sensitivity(queue, BASIS, [-1.0], [0.1])
    found = bw.analysis.sensitivity(queue, BASIS, [0.1], [0.1])
    with pytest.raises(bw.errors.ArgumentError, match=r"step_size is 0\.3"):
        found.grid("cost", 0.3)


@pytest.mark.parametrize("name", ["nope", "status", 5])
def test_the_grid_of_what_is_no_number_is_refused(
    found: bw.analysis.Sensitivity, name: str
) -> None:
    with pytest.raises(bw.errors.ArgumentError, match=r"name is .* one of 'temperature'"):
        found.grid(name)
