"""Saved files with one thing changed: reading and showing them ends well or in a named error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linear_models import desk
from mutations import put

import bellweight as bw

ODD: list[Any] = [
    None, True, "text", [], {}, {"a": 1}, 10**400, -(10**30), 1e308, float("nan"), float("inf"),
    -1, 0, 0.5, {"array": "array0"}, {"tuple": []}, {"dict": {}}, {"array": []}, {"status": 3},
    {"type": []}, {"csr": 1, "shape": 2}, {"type": "Unstored", "fields": {"text": 1}},
    {"type": "Uniform", "fields": {}},
]  # fmt: skip


def tabular() -> bw.TabularModel:
    return bw.problems.single_queue(capacity=6, discount=0.9)


def result(path: Path) -> None:
    found = bw.solve(tabular(), bw.Polynomial(2), bw.DIA(target=bw.TablePolicy(np.full(7, 1))))
    found.save(path)


def comparison(path: Path) -> None:
    bw.compare(tabular(), {"one": bw.Uniform(), "two": bw.TablePolicy(np.zeros(7, int))}, 20).save(
        path
    )


def league(path: Path) -> None:
    candidates = {"fixed": bw.Fixed(), "pia": bw.PIA()}
    bw.solve(tabular(), bw.Polynomial(2), bw.Auto(candidates=candidates)).save(path)


def shown(found: Any) -> None:
    str(found)
    repr(found)
    if hasattr(found, "table"):
        str(found.table())
    if isinstance(found, bw.Result):
        found.policy.action(0)


SAVED: dict[str, tuple[Callable[[Path], Any], Callable[..., Any]]] = {
    "result": (result, bw.Result.load),
    "comparison": (comparison, bw.evaluation.Comparison.load),
    "league": (league, bw.plans.RaceResult.load),
    "tabular model": (lambda path: tabular().save(path), bw.TabularModel.load),
    "linear model": (lambda path: desk().save(path), bw.LinearModel.load),
}


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in the tree of a file; of a list only the first and the last entry."""
    if path:
        yield path
    if isinstance(node, dict):
        for key in node:
            yield from places(node[key], (*path, key))
    elif isinstance(node, list) and node:
        for k in sorted({0, len(node) - 1}):
            yield from places(node[k], (*path, k))


def odd_arrays(array: np.ndarray) -> Iterator[np.ndarray]:
    yield np.array(["text"] * max(1, len(np.atleast_1d(array))))
    yield array[:-1] if array.ndim and len(array) else np.zeros(3)
    yield np.zeros((2, 3, 4))
    yield np.zeros(0)
    if array.dtype.kind in "fiu" and array.size:
        for value in (np.nan, np.inf, -1e30, 1e308, -1.0):
            changed = array.astype(np.float64)
            changed.flat[0] = value
            yield changed
        yield np.full(array.shape, np.iinfo(np.int64).max if array.dtype.kind in "iu" else -7.0)
        yield array.astype(bool)


@pytest.mark.parametrize("kind", SAVED)
def test_only_named_errors_come_out(kind: str, tmp_path: Path) -> None:
    make, load = SAVED[kind]
    path, other = tmp_path / "saved.npz", tmp_path / "changed.npz"
    make(path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(str(arrays.pop("bellweight")))
    shown(load(path))
    bad: list[str] = []

    def attempt(told: str, header: Any, arrays: dict[str, Any]) -> None:
        np.savez(other, bellweight=np.array(json.dumps(header)), **arrays)
        try:
            shown(load(other))
        except bw.BellweightError:
            pass
        except Exception as problem:
            bad.append(f"{told}: {type(problem).__name__}: {problem}")

    for number, place in enumerate(places(header)):
        # Deep down the types repeat: there each place takes its turn with some of the values.
        for value in ODD if len(place) <= 2 else ODD[number % 5 :: 5]:
            attempt(f"{place} = {str(value)[:30]}", put(header, place, value), arrays)
    for name, array in arrays.items():
        for changed in odd_arrays(array):
            attempt(f"{name}: {changed.dtype} {changed.shape}", header, {**arrays, name: changed})
        attempt(f"{name} left out", header, {n: a for n, a in arrays.items() if n != name})
    assert not bad, f"{len(bad)}:\n" + "\n".join(bad[:40])
