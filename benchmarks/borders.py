"""Every border of `bellweight.interchange`: seconds, growth and peak memory, in one table.

Each border runs in a process of its own on random models of growing size: two actions in each
state, five successors of each pair. Seconds are CPU time of the passage alone; of those below one
second the least of three counts. The exponent is the slope of log(seconds) over log(transitions); 1
is linear. Memory is the highest resident memory during the passage, less that of the process with
everything imported, as a multiple of the model's arrays: whatever is passed (the model, the arrays
or the frame of the other package) and what comes out both count. What the making of the model
leaves free in the allocator is given back first.

    python benchmarks/borders.py                           a million states, ten million transitions
    python benchmarks/borders.py --states 20000            smaller
    python benchmarks/borders.py --only "CSV read"         one border

Memory needs Linux, which can reset the highest value seen.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measure import exponent
from scipy import sparse

import bellweight as bw
from bellweight import interchange as bi

ACTIONS, SUCCESSORS = 2, 5
MOST_MEMORY = 3.0
DISCOUNT = 0.95

Passage = Callable[[Any], Any]


def random_model(n_states: int, seed: int = 1) -> bw.TabularModel:
    """Return a model of 2 n pairs and 10 n transitions."""
    rng = np.random.default_rng(seed)
    n_pairs = n_states * ACTIONS
    steps = np.arange(SUCCESSORS, dtype=np.int32) * (n_states // SUCCESSORS)
    first = rng.integers(0, n_states, n_pairs, dtype=np.int32)
    chances = rng.random((n_pairs, SUCCESSORS)) + 0.1
    chances /= chances.sum(axis=1, keepdims=True)
    successors = (first[:, None] + steps) % n_states
    rows = sparse.csr_array(
        (chances.ravel(), successors.ravel(), np.arange(n_pairs + 1, dtype=np.int32) * SUCCESSORS),
        shape=(n_pairs, n_states),
    )
    return bw.TabularModel.from_pairs(
        rng.random(n_pairs), rows,
        np.repeat(np.arange(n_states), ACTIONS), np.tile(np.arange(ACTIONS), n_states),
        DISCOUNT, np.full(n_states, 1.0 / n_states),
    )  # fmt: skip


def model_bytes(model: bw.TabularModel) -> int:
    """Return the size of the arrays of a model."""
    rows = model.transition
    parts = (rows.data, rows.indices, rows.indptr, model.cost, model.initial, model.pair_state)
    return sum(part.nbytes for part in (*parts, model.pair_action))


def _file(ending: str, write: Any, read: Callable[[Path], Any]) -> dict[str, Any]:
    """Return the two passages of a file format: each is how to prepare, and the passage."""
    return {
        "write": (lambda model, path: model, lambda model, path: write(model, path / ending)),
        "read": (
            lambda model, path: (write(model, path / ending), None)[1],
            lambda _, path: read(path / ending),
        ),
    }


def _objects(there: Passage, back: Passage) -> dict[str, Any]:
    """Return the two passages to and from an object of another package."""
    return {
        "to": (lambda model, path: model, lambda model, path: there(model)),
        "from": (lambda model, path: there(model), lambda given, path: back(given)),
    }


def _frames(kind: str) -> dict[str, Any]:
    return _objects(
        lambda model: bi.to_frame(model, kind), lambda frame: bi.from_frame(frame, DISCOUNT)
    )


BORDERS: dict[str, dict[str, Any]] = {
    "CSV": _file("m.csv", bi.write_csv, lambda path: bi.read_csv(path, DISCOUNT)),
    "PRISM": _file("m.tra", bi.write_prism, lambda path: bi.read_prism(path, DISCOUNT)),
    "DRN": _file("m.drn", bi.write_drn, lambda path: bi.read_drn(path, DISCOUNT)),
    "QuantEcon": _objects(bi.to_quantecon, bi.from_quantecon),
    "toolbox": _objects(bi.to_toolbox, lambda given: bi.from_toolbox(*given, DISCOUNT)),
    "pandas": _frames("pandas"),
    "Polars": _frames("polars"),
    "Gymnasium": _objects(bi.to_gymnasium, lambda env: bi.from_gymnasium(env, DISCOUNT)),
    "npz": _file("m.npz", bi.write_model, bw.TabularModel.load),
}


def measure(border: str, direction: str, n_states: int) -> dict[str, float]:
    """Return the CPU seconds and the memory of one passage, measured in this process."""
    prepare, passage = BORDERS[border][direction]
    with tempfile.TemporaryDirectory() as folder:
        warm = random_model(10)
        passage(prepare(warm, Path(folder)), Path(folder))  # imports what is imported late
        gc.collect()
        base = _resident("VmRSS")
        model = random_model(n_states)
        size = model_bytes(model)
        given = prepare(model, Path(folder))
        del model
        gc.collect()
        _give_back()
        _forget_peak()
        used = _seconds(passage, given, Path(folder))
        peak = _resident("VmHWM") - base
        if used < 1.0:
            used = min(used, *(_seconds(passage, given, Path(folder)) for _ in range(2)))
    return {"seconds": used, "memory": peak / size}


def _seconds(passage: Any, given: Any, folder: Path) -> float:
    begin = time.process_time()
    passage(given, folder)
    return time.process_time() - begin


def table(sizes: list[int], only: str | None = None) -> list[dict[str, Any]]:
    """Return a row for each passage, each size measured in a process of its own."""
    rows = []
    for border, passages in BORDERS.items():
        for direction in passages:
            name = f"{border} {direction}"
            if only is not None and only != name:
                continue
            found = [_in_process(border, direction, n) for n in sizes]
            seconds = [one["seconds"] for one in found]
            moves = [n * ACTIONS * SUCCESSORS for n in sizes]
            slope = exponent(moves, seconds) if len(sizes) > 1 else float("nan")
            rows.append(
                {"border": name, "seconds": seconds, "exponent": slope,
                 "memory": found[-1]["memory"]}
            )  # fmt: skip
            print(_line(rows[-1]), flush=True)
    return rows


def _line(row: dict[str, Any]) -> str:
    seconds = " ".join(f"{one:8.2f}" for one in row["seconds"])
    verdict = "" if row["memory"] <= MOST_MEMORY else f"   above {MOST_MEMORY:g}"
    return f"{row['border']:16} {seconds} {row['exponent']:9.2f} {row['memory']:8.2f}{verdict}"


def _in_process(border: str, direction: str, n_states: int) -> dict[str, float]:
    words = [sys.executable, __file__, "--one", border, direction, str(n_states)]
    done = subprocess.run(words, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        raise SystemExit(f"{border} {direction}, {n_states} states:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _resident(name: str) -> int:
    """Return a field of this process's memory in bytes: VmRSS now, VmHWM at its highest."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return 0


def _give_back() -> None:
    """Give memory that is free back to the system, where the C library can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _forget_peak() -> None:
    """Set the highest memory back to what is in use now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description="seconds, growth and memory of every border")
    parser.add_argument("--states", type=int, default=1_000_000)
    parser.add_argument("--only")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one[0], given.one[1], int(given.one[2]))))
        return
    sizes = [given.states // 16, given.states // 4, given.states]
    heads = " ".join(f"{n:8d}" for n in sizes)
    print(f"{'states':16} {heads}  exponent   memory   (CPU seconds; memory of the largest)")
    table(sizes, given.only)


if __name__ == "__main__":
    main()
