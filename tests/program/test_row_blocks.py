"""Passes over rows in blocks: threads, processes and a Dask cluster say the same, bit for bit."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import event_models as em
import joblib
import numpy as np
import pytest
from distributed import Client, LocalCluster

import bellweight as bw
from bellweight.common import workers
from bellweight.common.checks import IntArray
from bellweight.common.workers import Pieces
from bellweight.models.kernels.layouts import Scale
from bellweight.program import AllRows, ListedRows, listed_rows, row_blocks, table_blocks
from bellweight.program.row_blocks import RowBlock
from bellweight.program.sampled_rows import EventRows

BASIS = bw.Polynomial(2)


@pytest.fixture(params=["sampled", "table"])
def rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ListedRows:
    """Rows in a dozen blocks, none of them stored."""
    monkeypatch.setattr(listed_rows, "_CACHED_ENTRIES", 0)
    monkeypatch.setattr(listed_rows, "_PIECE_PAIRS", 300)
    monkeypatch.setattr(table_blocks, "_MOST_TRANSITIONS", 1_000)
    monkeypatch.setattr(EventRows, "_piece_times", 1)
    if request.param == "table":
        return AllRows().on(em.network().to_tabular(), BASIS)
    return bw.SampledRows(em.network_truth().states.astype(np.int64)).on(em.network(), BASIS)


def coefficients() -> list[em.FloatArray]:
    rng = np.random.default_rng(1)
    return [np.zeros(15), rng.normal(size=15), np.eye(15)[0] * 1e3]


def answers(rows: ListedRows) -> list[Any]:
    """All that a pass can say."""
    found: list[Any] = []
    for coef in coefficients():
        part = rows.separate(coef, 1.0)
        found += [part.close, part.close_size, part.near, np.array(part.violation)]
        found.append(np.concatenate([slack for _, slack in rows.all_slacks(coef)]))
    keys = np.arange(1, rows.n_pairs, 3)
    found.append(rows.weighed(keys, 1.0 / keys, rows.coordinates(None)))
    return found


def same(first: list[Any], second: list[Any]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_scans_of_one_block_do_not_disturb_each_other(
    rows: ListedRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block that is scanned in parts keeps its arrays from one part to the next."""
    block, scale = rows.block(slice(0, 40)), Scale(rows.discount, 1.0, 0.0, False)
    for coef in coefficients():
        asked = rows.asked(coef, sizes=True)
        (whole,) = block.closest(asked, scale, 10_000) or []
        with monkeypatch.context() as patched:
            patched.setattr(row_blocks, "_SCANNED_PAIRS", 40)
            assert row_blocks.states_scanned(block.pair_starts()) <= 12
            parts = block.closest(asked, scale, 10_000) or []
        # Scans with a clearly violated row leave out the rows that may be tight.
        fields = ("keys", "relative", "size") + (("near",) if whole.violation <= 0.0 else ())
        for field in fields:
            joined = np.concatenate([getattr(part, field) for part in parts])
            assert np.array_equal(np.sort(joined), np.sort(getattr(whole, field)))


def test_a_pass_finds_what_all_slacks_say(rows: ListedRows) -> None:
    """Against plain NumPy over all rows at once."""
    assert len(rows._pieces) > 4
    matrix, cost = rows.rows(np.arange(rows.n_pairs))
    for coef in coefficients():
        slack = cost - np.asarray(matrix) @ coef
        counts = np.diff(rows.pair_start)
        level = np.repeat(np.abs(rows.values(coef)), counts) * (1.0 - rows.discount)
        relative = slack / (np.abs(cost) + level + 1.0)
        found = rows.separate(coef, 1.0)
        assert found.violation == pytest.approx(max(0.0, -slack.min()), abs=1e-9)
        worst = np.sort(relative)[: len(found.close)]
        if len(found.close) == rows.n_pairs:
            continue
        np.testing.assert_allclose(relative[found.close][:10], worst[:10], rtol=1e-6, atol=1e-9)
        homogeneous = rows.separate(coef, 1.0, homogeneous=True)
        growth = np.asarray(matrix) @ coef
        assert homogeneous.violation == pytest.approx(max(0.0, growth.max()), abs=1e-9)


def test_sums_over_rows_are_those_of_the_rows(rows: ListedRows) -> None:
    """Also where some blocks have none of them, and of none at all."""
    coordinates = rows.coordinates(None)
    for keys in (np.arange(0, rows.n_pairs, 2), np.arange(5, 50), np.arange(0)):
        weights = np.sqrt(keys + 1.0)
        inner = np.asarray(coordinates.rows(rows.rows(keys)[0]))
        found = rows.weighed(keys, weights, coordinates)
        np.testing.assert_allclose(found[:, :-1], inner.T @ inner, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found[:, -1], inner.T @ weights, rtol=1e-9, atol=1e-9)


def test_threads_and_processes_say_the_same(rows: ListedRows) -> None:
    rows.jobs = 1
    one = answers(rows)
    rows.jobs = 3
    assert same(one, answers(rows))
    with joblib.parallel_config(backend="loky"):
        assert same(one, answers(rows))


def test_sizes_of_terms_are_those_of_the_features(rows: ListedRows) -> None:
    coef = coefficients()[1]
    counts = np.diff(rows.pair_start)
    here = np.abs(BASIS(rows._points.astype(np.float64))) @ np.abs(coef)
    ahead = rows.all_terms(coef) - np.repeat(here, counts)
    assert (ahead >= 0.0).all()
    if not rows.is_complete:  # sampled rows take the size here for that of what follows
        np.testing.assert_allclose(ahead, rows.discount * np.repeat(here, counts), rtol=1e-12)


@pytest.fixture(scope="module")
def dask() -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(2, timeout=120)
        yield client


def test_a_cluster_says_the_same_and_keeps_the_blocks(rows: ListedRows, dask: Client) -> None:
    rows.jobs = 1
    here = answers(rows)
    with joblib.parallel_config(backend="dask"):
        assert same(here, answers(rows))
        held = rows._pieces._held[id(dask)]
        again = answers(rows)
        assert same(here, again)
    assert rows._pieces._held[id(dask)] is held  # sent once for all passes
    # Every block is with a worker; which one, on a busy machine, is not ours to say: an idle worker
    # may take what another has not begun.
    owners = dask.who_has(held)
    assert len(owners) == len(held)
    assert all(owners.values())


@dataclass(frozen=True, eq=False)
class SlowBlock(RowBlock):
    """A block that leaves a file behind when its part of a pass begins, and takes its time."""

    block: RowBlock
    folder: Path
    pause: float

    def pair_starts(self) -> IntArray:
        return self.block.pair_starts()

    def slacks(self, *asked: Any) -> Any:
        return self.block.slacks(*asked)

    def terms(self, *asked: Any) -> Any:
        return self.block.terms(*asked)

    def closest(self, *asked: Any) -> Any:
        (self.folder / f"{self.block.first}-{os.getpid()}-{time.monotonic_ns()}").touch()
        time.sleep(self.pause)
        return self.block.closest(*asked)


def kill_one(folder: Path, killed: list[int]) -> None:
    """Kill the worker that began a pass, in the middle of it."""
    deadline = time.monotonic() + 120.0
    while time.monotonic() < deadline and not killed:
        begun = sorted(folder.iterdir(), key=lambda entry: int(entry.name.split("-")[2]))
        if len(begun) >= 3:
            killed.append(int(begun[-1].name.split("-")[1]))
            os.kill(killed[0], signal.SIGKILL)
        time.sleep(0.02)


def test_a_worker_that_dies_in_a_pass_changes_nothing(
    dask: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(table_blocks, "_MOST_TRANSITIONS", 1_000)
    rows = AllRows().on(em.network().to_tabular(), BASIS)
    coef = coefficients()[1]
    expected = rows.separate(coef, 1.0)
    slow = [SlowBlock(block, tmp_path, 0.3) for block in rows._pieces._pieces]
    rows.__dict__["_pieces"] = Pieces(slow)
    killed: list[int] = []
    killer = threading.Thread(target=kill_one, args=(tmp_path, killed))
    killer.start()
    with joblib.parallel_config(backend="dask"):
        found = rows.separate(coef, 1.0)
        killer.join()
    assert killed
    assert killed[0] != os.getpid()
    assert len(list(tmp_path.iterdir())) > len(slow)  # what it was at was begun again
    assert same([*astuple(expected)], [*astuple(found)])


def test_workers_of_another_version_are_refused(
    dask: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_checked", workers.weakref.WeakSet())
    monkeypatch.setattr(bw, "__version__", "0.0.1")
    with (
        joblib.parallel_config(backend="dask"),
        pytest.raises(bw.errors.WorkerError, match=r"this process 0\.0\.1.*same versions"),
    ):
        Pieces([1, 2]).map(abs)


def dear_at_once(state: Any, action: Any) -> float:
    return 2.0 * state[0] + state[1] + 0.5 * action * state[1]


def only_where_there_is_work(state: Any, action: Any) -> bool:
    return bool(action == 0 or state[action - 1] > 0)


@pytest.mark.parametrize("kind", ["plain", "bounded", "cubic"])
def test_states_side_by_side_have_the_slacks_of_each_by_itself(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit, with costs by action, bounds and inadmissible actions; the last are few."""
    monkeypatch.setattr(listed_rows, "_CACHED_ENTRIES", 0)
    own = {"cost": dear_at_once, "admissible": only_where_there_is_work, "upper": 15}
    model = bw.EventModel(
        dimension=2, actions=3, events=3, probability=[[0.3, 0, 0], [0.3, 0.4, 0], [0.3, 0, 0.5]],
        move=[[1, 0], [-1, 1], [0, -1]], discount=0.95, initial=bw.models.Geometric(0.7),
        **(own if kind == "bounded" else {"cost": dear_at_once}),
    )  # fmt: skip
    states = np.stack(np.divmod(np.arange(200), 16), axis=1)
    rows = bw.SampledRows(states).on(model, BASIS if kind != "cubic" else bw.Polynomial(3))
    block = rows.block(slice(0, len(states)))
    for homogeneous in (False, True):
        scale = Scale(rows.discount, 1.0, 1e-9, homogeneous)
        for seed in range(3):
            coef = np.random.default_rng(seed).normal(size=rows.n_basis)
            asked = rows.asked(coef, sizes=True)
            (fast,) = block.closest(asked, scale, 20)
            (plain,) = RowBlock.closest(block, asked, scale, 20) or []
            assert plain is not None
            assert np.array_equal(fast.keys, plain.keys)
            assert fast.violation == plain.violation > 0.0
            np.testing.assert_allclose(fast.size, plain.size, rtol=1e-12)
