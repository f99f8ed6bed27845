"""Blocks of episodes on threads, processes and a Dask cluster: the same numbers to the last bit."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import event_models as em
import joblib
import numpy as np
import pytest
from distributed import Client, LocalCluster

import bellweight as bw
from bellweight.backends import simulated_occupancy
from bellweight.evaluation.evaluate import rollout_of
from bellweight.simulation import BLOCK, Episodes, episode_costs, run_blocks

HORIZON = 30
EPISODES = 5 * BLOCK + 123


def greedy() -> bw.Greedy:
    """A policy with everything that has to travel: coefficients, and a dual that decides ties."""
    rng = np.random.default_rng(3)
    support = em.random_support(rng, em.network_truth(), 200)
    return bw.Greedy(bw.Polynomial(2), rng.integers(0, 5, size=15).astype(float), support)


def costs_of(policy: bw.policies.Policy, jobs: int | None = None) -> em.FloatArray:
    rollout = rollout_of(em.network(), policy)
    return episode_costs(rollout, 0, EPISODES, HORIZON, seed=5, jobs=jobs)


@dataclass(frozen=True)
class Told:
    """A rollout that tells a folder who works on which block, and may take its time.

    While the folder holds a file of this name, the block `deadly` kills the process it runs in.
    """

    rollout: Episodes
    folder: Path
    pause: float = 0.0

    def block(self, first: int, last: int, horizon: int, keys: Any) -> Any:
        (self.folder / f"{first}-{os.getpid()}-{time.monotonic_ns()}").touch()
        time.sleep(self.pause)
        if (self.folder / f"deadly {first}").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return self.rollout.block(first, last, horizon, keys)


def told(folder: Path) -> list[tuple[int, int]]:
    """Which blocks were begun, and by which process."""
    names = [entry.name.split("-") for entry in folder.glob("*-*-*")]
    return [(int(first), int(process)) for first, process, _ in names]


def telling(monkeypatch: pytest.MonkeyPatch, folder: Path, pause: float) -> None:
    """Make `evaluate` tell who works on what."""
    monkeypatch.setattr(
        sys.modules["bellweight.evaluation.evaluate"],
        "rollout_of",
        lambda model, policy: Told(rollout_of(model, policy), folder, pause),
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    ) as running:
        yield running


@pytest.fixture
def dask(cluster: LocalCluster) -> Iterator[Client]:
    """A client of the cluster; a cluster that lost a worker gets it back first."""
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


def test_threads_give_the_same_costs() -> None:
    one = costs_of(greedy(), jobs=1)
    for jobs in (2, 3):
        assert np.array_equal(one, costs_of(greedy(), jobs=jobs))


def test_processes_give_the_same_costs(tmp_path: Path) -> None:
    policies = [greedy(), bw.Uniform(), bw.policies.DualSoftmax(em_support(), greedy(), 0.3, 0.3)]
    here = [costs_of(policy, jobs=1) for policy in policies]
    with joblib.parallel_config(backend="loky"):
        away = [costs_of(policy, jobs=2) for policy in policies]
        rollout = Told(rollout_of(em.network(), greedy()), tmp_path)
        episode_costs(rollout, 0, EPISODES, 2, 0, 2)
    for near, far in zip(here, away, strict=True):
        assert np.array_equal(near, far)
    assert len(told(tmp_path)) == 6
    assert os.getpid() not in {process for _, process in told(tmp_path)}


def em_support() -> bw.policies.Support:
    return em.random_support(np.random.default_rng(4), em.network_truth(), 100)


def test_a_cluster_gives_the_same_costs(dask: Client, tmp_path: Path) -> None:
    policies = [greedy(), bw.Uniform(), bw.policies.DualSoftmax(em_support(), greedy(), 0.3, 0.3)]
    here = [costs_of(policy, jobs=1) for policy in policies]
    with joblib.parallel_config(backend="dask"):
        away = [costs_of(policy) for policy in policies]
        rollout = Told(rollout_of(em.network(), greedy()), tmp_path, pause=0.2)
        episode_costs(rollout, 0, EPISODES, 2, 0)
    for near, far in zip(here, away, strict=True):
        assert np.array_equal(near, far)
    processes = {process for _, process in told(tmp_path)}
    assert len(processes) == 2
    assert os.getpid() not in processes


def test_a_cluster_gives_the_same_moments_states_and_solution(dask: Client) -> None:
    model, policy = em.network(), greedy()
    setting = bw.Simulation(episodes=3_000, horizon=80)

    def answers() -> list[Any]:
        moments = simulated_occupancy(model, policy, bw.Polynomial(2), setting, seed=6)
        states = bw.sample_states(model, 200, policy, seed=6)
        rows = bw.SampledRows(states)
        result = bw.solve(model, bw.Affine(), bw.DIA(), rows=rows, simulation=setting, seed=6)
        return [moments.moments, moments.standard_error, states, result.coef, result.moments]

    here = answers()
    with joblib.parallel_config(backend="dask"):
        away = answers()
    for near, far in zip(here, away, strict=True):
        assert np.array_equal(near, far)


def kill_one_worker(folder: Path, killed: list[int]) -> None:
    """Wait until two blocks are under way, then end one of the processes that work on them."""
    deadline = time.monotonic() + 120.0
    while time.monotonic() < deadline:
        if len(told(folder)) >= 2:
            victim = told(folder)[0][1]
            assert victim != os.getpid()
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)
            return
        time.sleep(0.02)


def test_a_worker_of_a_cluster_that_dies_changes_nothing(
    dask: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = bw.evaluate(em.network(), greedy(), EPISODES, horizon=HORIZON, seed=5, jobs=1)
    telling(monkeypatch, tmp_path, pause=0.5)
    killed: list[int] = []
    killer = threading.Thread(target=kill_one_worker, args=(tmp_path, killed))
    killer.start()
    with joblib.parallel_config(backend="dask"):
        found = bw.evaluate(em.network(), greedy(), EPISODES, horizon=HORIZON, seed=5)
    killer.join()
    assert found == expected
    # The one that died had begun a block, and another process began the same block again.
    lost = {first for first, process in told(tmp_path) if process == killed[0]}
    begun = [first for first, _ in told(tmp_path)]
    assert len(begun) > len(set(begun)) == 6
    assert any(begun.count(first) > 1 for first in lost)


def test_a_local_worker_that_dies_is_named_and_its_work_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    telling(monkeypatch, tmp_path, pause=0.3)
    deadly = tmp_path / f"deadly {3 * BLOCK}"
    deadly.touch()
    with joblib.parallel_config(backend="loky"), pytest.raises(bw.errors.WorkerError) as caught:
        bw.evaluate(em.network(), greedy(), EPISODES, horizon=HORIZON, seed=5, jobs=2)
    done = caught.value.finished
    assert f"a worker process died after {len(done)} of 6 blocks" in str(caught.value)
    assert "resume" in str(caught.value)
    assert 1 <= len(done) <= 5
    assert (3 * BLOCK, 4 * BLOCK) not in done
    deadly.unlink()
    for entry in tmp_path.glob("*-*-*"):
        entry.unlink()
    found = bw.evaluate(
        em.network(), greedy(), EPISODES, horizon=HORIZON, seed=5, jobs=2, resume=done
    )
    begun = sorted(first for first, _ in told(tmp_path))
    assert begun == sorted({k * BLOCK for k in range(6)} - {first for first, _ in done})
    # What was done for one seed is of no use for another.
    with pytest.raises(bw.errors.ArgumentError, match="finished blocks belong to another run"):
        bw.evaluate(em.network(), greedy(), EPISODES, horizon=HORIZON, seed=6, resume=done)
    monkeypatch.undo()
    assert found == bw.evaluate(em.network(), greedy(), EPISODES, horizon=HORIZON, seed=5)
    # New processes take the place of the dead ones.
    with joblib.parallel_config(backend="loky"):
        assert np.array_equal(costs_of(greedy(), jobs=2), costs_of(greedy(), jobs=1))


def test_an_error_in_a_process_names_state_and_action() -> None:
    def cost(state: Any) -> float:
        return np.nan if state[1] == 2 else 1.0

    model, _ = em.random_grid(7, cost=cost, initial=(0, 0))
    with (
        joblib.parallel_config(backend="loky"),
        pytest.raises(
            bw.errors.ModelError, match=r"in state \[\d, 2\], action \d.*cost is not finite"
        ),
    ):
        bw.evaluate(model, bw.Uniform(), 40, horizon=40, seed=1, jobs=2)


def test_number_of_workers_is_checked() -> None:
    with pytest.raises(bw.errors.ArgumentError, match="jobs is 0"):
        run_blocks(lambda first, last: 0, 0, 10, jobs=0)
