"""Runs that end early keep what they have, and go on to the same answer."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import bellweight as bw

METHOD = bw.DIA(step_size=0.6, temperature=1.0, smoothing_mass=1.0)
BASIS = bw.Polynomial(3)


def interrupt_at(iteration: int) -> Callable[[bw.weights.HistoryEntry], None]:
    def watch(record: bw.weights.HistoryEntry) -> None:
        if record.iteration == iteration:
            raise KeyboardInterrupt

    return watch


def assert_same_end(resumed: bw.Result, whole: bw.Result) -> None:
    assert resumed.status is whole.status is bw.Status.CONVERGED
    assert len(resumed.history) == len(whole.history)
    assert [r.iteration for r in resumed.history] == list(range(len(whole.history)))
    np.testing.assert_allclose(resumed.weights, whole.weights, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(resumed.coef, whole.coef, rtol=1e-6)
    assert resumed.cost.mean == pytest.approx(whole.cost.mean, rel=1e-9)
    for one, other in zip(resumed.history, whole.history, strict=True):
        assert one.sup_norm == pytest.approx(other.sup_norm, rel=1e-5, abs=1e-11)
        assert one.objective == pytest.approx(other.objective, rel=1e-9)


@pytest.fixture
def whole(small_queue: bw.TabularModel) -> bw.Result:
    result = bw.solve(small_queue, BASIS, METHOD)
    assert len(result.history) > 8
    return result


@pytest.mark.parametrize("iteration", [0, 1, 5])
def test_an_interrupted_run_returns_its_last_iterate_and_resumes(
    iteration: int, small_queue: bw.TabularModel, whole: bw.Result
) -> None:
    part = bw.solve(small_queue, BASIS, METHOD, progress=interrupt_at(iteration))
    assert part.status is bw.Status.INTERRUPTED
    assert len(part.history) == iteration + 1
    assert part.reported is part.history[-1]
    assert part.objective == pytest.approx(float(part.moments @ part.coef), rel=1e-12)
    assert_same_end(bw.solve(small_queue, BASIS, METHOD, resume=part), whole)


def test_a_run_interrupted_twice_resumes_through_files(
    small_queue: bw.TabularModel, whole: bw.Result, tmp_path: Path
) -> None:
    first = bw.solve(small_queue, BASIS, METHOD, progress=interrupt_at(2))
    first.save(tmp_path / "first.npz")
    second = bw.solve(
        small_queue, BASIS, METHOD, resume=tmp_path / "first.npz", progress=interrupt_at(4)
    )
    assert second.status is bw.Status.INTERRUPTED
    assert len(second.history) == 5
    second.save(tmp_path / "second.npz")
    assert_same_end(bw.solve(small_queue, BASIS, METHOD, resume=tmp_path / "second.npz"), whole)


@pytest.mark.usefixtures("interruptible")
def test_a_real_signal_in_the_middle_of_an_iteration(
    small_queue: bw.TabularModel, whole: bw.Result
) -> None:
    part = bw.solve(small_queue, BASIS, Signalling(at=4, step_size=0.6))
    assert part.status is bw.Status.INTERRUPTED
    # The fifth iteration was under way: four are complete.
    assert len(part.history) == 4
    np.testing.assert_allclose(part.objective, whole.history[3].objective, rtol=1e-12)


_calls = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Signalling(bw.DIA):
    """DIA that sends its own process a SIGINT in one iteration, before that is complete."""

    temperature: float = 1.0
    smoothing_mass: float = 1.0
    at: int = 0

    def prepare(self, setup: object) -> Signalling:
        global _calls  # noqa: PLW0603
        _calls = 0
        return self

    def generate(self, iterate: bw.weights.Iterate) -> bw.policies.Policy:
        global _calls  # noqa: PLW0603
        _calls += 1
        if _calls == self.at + 1:
            signal.raise_signal(signal.SIGINT)
        return super().generate(iterate)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_before_anything_is_done_is_passed_on(small_queue: bw.TabularModel) -> None:
    with pytest.raises(KeyboardInterrupt):
        bw.solve(small_queue, BASIS, Signalling(at=0))


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_the_target_is_computed_stops_the_run(
    small_queue: bw.TabularModel,
) -> None:
    """An interrupted target must not be taken for a finished one."""
    with pytest.raises(KeyboardInterrupt):
        bw.solve(small_queue, BASIS, bw.DIA(target=Signalling(at=2)))
    with pytest.raises(KeyboardInterrupt):
        bw.solve(small_queue, BASIS, bw.PIA(start=Signalling(at=2)))


@pytest.mark.usefixtures("interruptible")
def test_control_c_from_outside_ends_with_a_usable_result(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        textwrap.dedent(
            """
            import time, pathlib, bellweight as bw
            queue = bw.problems.single_queue(capacity=30, discount=0.95)

            def watch(record):
                pathlib.Path("started").touch()
                time.sleep(0.2)

            result = bw.solve(queue, bw.Polynomial(3), bw.DIA(step_size=0.01),
                              stop=bw.Stop(max_iterations=10_000), progress=watch)
            result.save("result.npz")
            """
        ),
        encoding="utf-8",
    )
    run = subprocess.Popen([sys.executable, str(script)], cwd=tmp_path)
    try:
        give_up = time.monotonic() + 60.0
        while not (tmp_path / "started").exists():
            assert run.poll() is None
            assert time.monotonic() < give_up
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=60.0) == 0
    finally:
        run.kill()
    result = bw.Result.load(tmp_path / "result.npz")
    assert result.status is bw.Status.INTERRUPTED
    assert result.policy.action(5) in range(5)


def test_the_iteration_limit_is_kept_and_resumed(
    small_queue: bw.TabularModel, whole: bw.Result
) -> None:
    part = bw.solve(small_queue, BASIS, METHOD, stop=bw.Stop(max_iterations=3))
    assert part.status is bw.Status.ITERATION_LIMIT
    assert len(part.history) == 3
    assert_same_end(bw.solve(small_queue, BASIS, METHOD, resume=part), whole)


def test_the_time_limit_lets_the_first_iteration_finish_and_is_resumed(
    small_queue: bw.TabularModel, whole: bw.Result
) -> None:
    part = bw.solve(small_queue, BASIS, METHOD, stop=bw.Stop(max_seconds=1e-9))
    assert part.status is bw.Status.TIME_LIMIT
    assert len(part.history) == 1
    assert_same_end(bw.solve(small_queue, BASIS, METHOD, resume=part), whole)


def test_a_finished_run_resumes_to_itself(small_queue: bw.TabularModel, whole: bw.Result) -> None:
    again = bw.solve(small_queue, BASIS, METHOD, resume=whole)
    assert_same_end(again, whole)
    assert again.seconds > whole.seconds


def test_a_cycling_run_resumes_from_its_reported_phase(
    cycling_of_three: bw.TabularModel,
) -> None:
    cycling = bw.solve(cycling_of_three, bw.Polynomial(3), bw.PIA())
    again = bw.solve(cycling_of_three, bw.Polynomial(3), bw.PIA(), resume=cycling)
    assert again.status is bw.Status.CYCLING
    assert again.cost.mean == pytest.approx(cycling.cost.mean, rel=1e-12)


def test_resume_refuses_another_model_basis_or_method(
    small_queue: bw.TabularModel, whole: bw.Result, tmp_path: Path
) -> None:
    other = bw.problems.single_queue(capacity=30, discount=0.9)
    with pytest.raises(bw.errors.ArgumentError, match=r"resume is the result of another model"):
        bw.solve(other, BASIS, METHOD, resume=whole)
    found = (
        r"resume has 4 basis functions, the basis 3; function 3 is x\^3 in resume, missing in the "
        "basis: use the same basis"
    )
    with pytest.raises(bw.errors.ArgumentError, match=found):
        bw.solve(small_queue, bw.Polynomial(2), METHOD, resume=whole)
    with pytest.raises(
        bw.errors.ArgumentError, match=r"resume is a result of DIA, the method is PIA"
    ):
        bw.solve(small_queue, BASIS, bw.PIA(), resume=whole)
    with pytest.raises(bw.errors.FileError, match=r"nothing\.npz does not exist: check the path"):
        bw.solve(small_queue, BASIS, METHOD, resume=tmp_path / "nothing.npz")


def test_a_smaller_tolerance_is_reached_by_resuming(
    small_queue: bw.TabularModel, whole: bw.Result
) -> None:
    finer = bw.solve(small_queue, BASIS, METHOD, resume=whole, stop=bw.Stop(tol=1e-12))
    assert finer.status is bw.Status.CONVERGED
    assert finer.reported.sup_norm <= 1e-12 < whole.reported.sup_norm
