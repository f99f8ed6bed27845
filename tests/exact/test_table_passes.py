"""Large tables in blocks: threads and a cluster say the same, to the bit; if a worker dies, too."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from distributed import Client, LocalCluster
from scipy import sparse

import bellweight as bw
from bellweight.common import workers
from bellweight.exact import occupancy, table_passes
from bellweight.exact.occupancy import exact_occupancy
from bellweight.exact.table_passes import ChainPasses, MixedPasses, TablePasses
from bellweight.program import (
    AllRows,
    PenaltyProgram,
    all_rows,
    features,
    listed_rows,
    table_blocks,
)
from bellweight.program.row_blocks import RowPieces
from bellweight.program.table_blocks import TableBlock, cut, table_pieces

BASIS = bw.Polynomial(2)
N_STATES = 70_000  # features are computed for 32,768 states at a time


def made(n_states: int, *, near: bool = False, n_actions: int = 2) -> bw.TabularModel:
    """Return a model with random successors, all of them or only those within 50 states."""
    rng = np.random.default_rng(3)
    n_pairs = n_states * n_actions
    own = np.repeat(np.arange(n_states), n_actions)
    after = rng.integers(n_states, size=(n_pairs, 3))
    if near:
        after = np.clip(own[:, None] + rng.integers(-50, 51, size=(n_pairs, 3)), 0, n_states - 1)
    entries = (rng.dirichlet(np.ones(3), size=n_pairs).ravel(), after.ravel())
    matrix = sparse.csr_array(
        (*entries, np.arange(0, 3 * n_pairs + 1, 3)), shape=(n_pairs, n_states)
    )
    matrix.sum_duplicates()
    return bw.TabularModel.from_pairs(
        rng.random(n_pairs), matrix, own, np.tile(np.arange(n_actions), n_states), 0.3,
        rng.dirichlet(np.ones(n_states)), state_vectors=rng.random((n_states, 2)),
    )  # fmt: skip


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count small tables as large: they are cut into four blocks."""
    monkeypatch.setattr(table_blocks, "_FEW_TRANSITIONS", 1 << 9)
    monkeypatch.setattr(table_blocks, "_MANY_BLOCKS", 4)
    monkeypatch.setattr(features, "_FEW_ENTRIES", 1 << 10)
    monkeypatch.setattr(occupancy, "_LARGE", 1 << 10)


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send even small tables to a cluster, and keep no features."""
    monkeypatch.setattr(table_passes, "_FAR_TRANSITIONS", 0)
    monkeypatch.setattr(listed_rows, "_CACHED_ENTRIES", 0)
    monkeypatch.setattr(all_rows, "_KEPT_SHARE", 0.0)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    ) as running:  # fmt: skip
        yield running


@pytest.fixture
def dask(cluster: LocalCluster) -> Iterator[Client]:
    """A client of the cluster; a cluster that lost a worker gets it back first."""
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=120)
        yield client


def mixed(model: bw.TabularModel) -> Any:
    """Return the chances of a policy that leaves out every fifth state's first action."""
    chances = np.full(model.n_pairs, 0.5)
    chances[::10], chances[1::10] = 0.0, 1.0
    return chances


def answers(model: bw.TabularModel) -> dict[str, Any]:
    """Return everything that goes through a table in blocks."""
    rows = AllRows().on(model, BASIS)
    best = bw.exact.optimal(model)
    even = exact_occupancy(model, bw.Uniform())
    found = PenaltyProgram(rows, 0.1).solve(rows.moments(model.initial))
    return {
        "optimal": best.values,
        "pairs": best.policy.actions(np.arange(model.n_states)),
        "even": even.weights,
        "greedy": exact_occupancy(model, best.policy).weights,
        "value": bw.exact.policy_value(model, bw.Uniform()),
        "moments": rows.moments(even.weights),
        "regularised": found.coef,
        "dual": found.dual,
    }


def test_states_are_cut_where_transitions_are_even(blocks: None) -> None:
    ends = np.concatenate([[0], np.cumsum(np.arange(200))])
    states = cut(ends)
    assert len(states) == 4
    assert states[0].start == 0
    assert states[-1].stop == 200
    sizes = [int(ends[some.stop] - ends[some.start]) for some in states]
    assert max(sizes) - min(sizes) <= 2 * 200
    assert cut(np.array([0, 5_000])) == [slice(0, 1)]
    # Rows without entries at both ends belong to a block as well.
    lopsided = cut(np.concatenate([np.zeros(5), np.arange(0, 8_000, 1_000), np.full(5, 7_000)]))
    assert (lopsided[0].start, lopsided[-1].stop) == (0, 17)


@pytest.mark.parametrize("near", [False, True])
def test_passes_over_blocks_are_products_with_the_table(blocks: None, near: bool) -> None:
    """Against plain NumPy; and one block says the same but for the order of sums."""
    model = made(500, near=near)
    matrix, discount, rng = model.transition, model.discount, np.random.default_rng(0)
    x, constant, chances = rng.random(500), rng.random(500), mixed(model)
    following, pairs = np.empty(500), np.empty(500, dtype=np.int64)
    assert len(table_pieces(model)) == 4

    quality = (model.cost + discount * (matrix @ x)).reshape(-1, 2)
    low, high = TablePasses(model).improve(x, following, pairs)
    np.testing.assert_allclose(following, quality.min(axis=1), rtol=1e-14)
    assert np.array_equal(pairs, 2 * np.arange(500) + quality.argmin(axis=1))
    assert (low, high) == ((following - x).min(), (following - x).max())

    def check(steps: Any, expected: Any) -> None:
        np.testing.assert_allclose(following, expected, rtol=1e-13)
        moved = following - x
        totals = [moved.min(), moved.max(), np.abs(moved).sum(), following.sum()]
        np.testing.assert_allclose(steps, totals, rtol=1e-12)

    mixer = sparse.csr_array((chances, np.arange(1_000), np.arange(0, 1_001, 2)))
    chain = sparse.csr_array(mixer @ matrix)
    steps = TablePasses(model).chain(pairs).follow(constant, discount, x, following)
    check(steps, constant + discount * (matrix[pairs] @ x))
    check(
        ChainPasses(chain).follow(constant, discount, x, following),
        constant + discount * (chain @ x),
    )
    passes = MixedPasses(model, chances)
    check(passes.follow(constant, discount, x, following), constant + discount * (chain @ x))
    check(passes.spread(constant, discount, x, following), constant + discount * (chain.T @ x))
    # A pass with other constants does not go on with those of the last one.
    steps = passes.follow(2.0 * constant, discount, x, following)
    check(steps, 2.0 * constant + discount * (chain @ x))


@pytest.mark.parametrize("near", [False, True])
def test_blocks_move_no_more_than_last_digits(monkeypatch: pytest.MonkeyPatch, near: bool) -> None:
    model = made(2_000, near=near)
    whole = answers(model)
    with monkeypatch.context() as patched:
        patched.setattr(table_blocks, "_FEW_TRANSITIONS", 1 << 9)
        patched.setattr(features, "_FEW_ENTRIES", 1 << 10)
        cut_up = answers(made(2_000, near=near))
    for name, found in cut_up.items():
        np.testing.assert_allclose(found, whole[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_workers_say_the_same(blocks: None, far: None, dask: Client) -> None:
    """Each time with a new model, so that nothing is left from the time before."""
    with joblib.parallel_config(n_jobs=1):
        one = answers(made(N_STATES))
    pieces = AllRows().on(made(N_STATES), BASIS)._feature_pieces
    assert pieces is not None
    assert len(pieces) == 3
    with joblib.parallel_config(n_jobs=2):
        two = answers(made(N_STATES))
    with joblib.parallel_config(backend="loky", n_jobs=2):
        processes = answers(made(N_STATES))  # threads, to which nothing is sent
    with joblib.parallel_config(backend="dask"):
        model = made(N_STATES)
        away = answers(model)
        held = table_pieces(model)._sent_to(dask)
        exact_occupancy(model, bw.Uniform())
        assert table_pieces(model)._sent_to(dask) is held  # sent once for everything
    assert all(dask.who_has(held).values())
    for other in (two, processes, away):
        assert same(one, other)


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


@dataclass(frozen=True, eq=False)
class SlowBlock(TableBlock):
    """A block that leaves a file when it is worked on, and takes its time until a worker died."""

    folder: Path

    def _told(self) -> None:
        if not (self.folder / "killed").exists():
            (self.folder / f"{self.first}-{os.getpid()}-{time.monotonic_ns()}").touch()
            time.sleep(0.3)

    def here(self, values: Any) -> Any:
        self._told()
        return super().here(values)

    @property
    def reach(self) -> tuple[int, int]:  # type: ignore[override]
        self._told()
        return int(self.transition.indices.min()), int(self.transition.indices.max()) + 1


def kill_one(folder: Path, after: int, killed: list[int]) -> None:
    """Kill the worker that began last, when so many blocks have been begun."""
    deadline = time.monotonic() + 120.0
    while time.monotonic() < deadline:
        begun = sorted(folder.iterdir(), key=lambda entry: int(entry.name.split("-")[2]))
        if len(begun) >= after:
            killed.append(int(begun[-1].name.split("-")[1]))
            os.kill(killed[0], signal.SIGKILL)
            (folder / "killed").touch()
            return
        time.sleep(0.02)


def regularised(model: bw.TabularModel) -> Any:
    rows = AllRows().on(model, BASIS)
    return PenaltyProgram(rows, 0.1).solve(rows.moments(model.initial)).coef


WORKS: dict[str, Callable[[bw.TabularModel], Any]] = {
    "optimal": lambda model: bw.exact.optimal(model).values,
    "occupancy": lambda model: exact_occupancy(model, bw.Uniform()).weights,
    "value": lambda model: bw.exact.policy_value(model, bw.Uniform()),
    "regularised": regularised,
}


@pytest.mark.parametrize("name", WORKS)
def test_a_worker_that_dies_in_a_pass_changes_nothing(
    name: str, blocks: None, far: None, dask: Client, tmp_path: Path
) -> None:
    expected = WORKS[name](made(2_000))
    model = made(2_000)
    usual = table_pieces(model)
    slow = [
        SlowBlock(*(getattr(block, field.name) for field in fields(block)), tmp_path)
        for block in usual._pieces
    ]
    table_blocks._known[model] = RowPieces(slow, usual.starts, by_threads=True)
    killed: list[int] = []
    # The second pass has begun, so workers hold what the first one left with them.
    killer = threading.Thread(target=kill_one, args=(tmp_path, len(slow) + 3, killed))
    killer.start()
    with joblib.parallel_config(backend="dask"):
        found = WORKS[name](model)
        killer.join()
    assert killed
    assert killed[0] != os.getpid()
    assert np.array_equal(found, expected)


def test_joblib_says_how_many_threads(blocks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Pool(workers.ThreadPoolExecutor):  # type: ignore[name-defined,misc]
        def __init__(self, n: int) -> None:
            asked.append(n)
            super().__init__(n)

    monkeypatch.setattr(workers, "ThreadPoolExecutor", Pool)
    model = made(2_000)
    with joblib.parallel_config(n_jobs=3):
        bw.exact.optimal(model)
        bw.exact.policy_value(model, bw.Uniform())
    assert set(asked) == {3}
    asked.clear()
    with joblib.parallel_config(n_jobs=1):
        bw.exact.optimal(model)
    assert not asked
    bw.solve(model, BASIS, bw.DIA(), jobs=2, judge=False)
    assert set(asked) == {2}


def test_passes_that_are_not_worth_the_way_stay_here(
    blocks: None, dask: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows go to the cluster; short passes of exact answers and of kept features do not."""
    sent: list[str] = []
    usual = workers.Pieces._on_cluster

    def noticed(pieces: Any, client: Any, work: Any, *given: Any) -> Any:
        sent.append(work.__name__)
        return usual(pieces, client, work, *given)

    monkeypatch.setattr(workers.Pieces, "_on_cluster", noticed)
    monkeypatch.setattr(features, "_BLOCK_STATES", 500)
    model = made(2_000)
    rows = AllRows().on(model, BASIS)
    expected = WORKS["optimal"](model), WORKS["occupancy"](model), rows.moments(model.initial)
    with joblib.parallel_config(backend="dask"):
        found = WORKS["optimal"](model), WORKS["occupancy"](model), rows.moments(model.initial)
        assert not sent
        rows.separate(np.ones(rows.n_basis), 1.0)
        assert set(sent) == {"closest_in"}
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


def test_small_tables_are_one_block() -> None:
    model = made(500)
    assert len(cut(model.transition.indptr)) == 1
    with joblib.parallel_config(n_jobs=2):
        bw.exact.optimal(model)
        exact_occupancy(model, bw.Uniform())
    assert model not in table_blocks._known
