"""Models are the same data on every machine: results and certificates are known by their digest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight import problems
from bellweight.models import Gamma, Interval, Normal
from bellweight.problems.single_queue import geometric


def cost(state: Any) -> float:
    return float(state[0])


def step(state: Any, action: int, noise: Any) -> float:
    return 0.5 * state[0] + noise[0]


def noisy(law: Any, **options: Any) -> bw.StepModel:
    return bw.StepModel(
        dimension=1, actions=2, step=step, cost=cost, discount=0.9, noise=law, initial=0.0,
        compiled=False, **options,
    )  # fmt: skip


def digests() -> Iterator[tuple[str, str]]:
    """The digests of shipped models, and what laws are made of."""
    for size in ("tiny", "small"):
        yield f"clinic {size}", problems.scheduling(size).digest
    for law in ("empty", "geometric", "reverse"):
        yield f"queue {law}", bw.problems.single_queue(capacity=999, initial=law).digest
    for name in ("machine_maintenance", "ageing_stock", "lost_sales", "computer_ring"):
        yield name, getattr(problems, name)().digest
    laws = {"normal": Normal(5.0, 2.0, 0.0, 10.0), "gamma": Gamma(2.0, 1.5), "even": Interval(0, 1)}
    for name, law in laws.items():
        yield name, noisy(law, quadrature=16).digest
    weights = np.random.default_rng(0).random(500)
    yield "mean", bw.Law(0.1 * np.arange(500), weights / weights.sum()).mean.hex()


@pytest.mark.timeout(600)
def test_models_do_not_depend_on_the_cpu() -> None:
    # NumPy's own code for this CPU is turned off, and OpenBLAS takes code for an old one.
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    newer = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
    changes = {"NPY_DISABLE_CPU_FEATURES": " ".join(newer), "OPENBLAS_CORETYPE": "Nehalem"}
    ended = subprocess.run(
        [sys.executable, __file__], env={**os.environ, **changes}, check=True,
        capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert json.loads(ended.stdout) == dict(digests())


def test_other_nodes_make_another_model() -> None:
    law = Normal(5.0, 2.0)
    found = [
        noisy(law).digest,
        noisy(law, quadrature=7).digest,
        noisy(Normal(5.0, 2.5)).digest,
        noisy([law] * 5, quadrature=5, draws=50).digest,
        noisy([law] * 5, quadrature=5, draws=60).digest,
        noisy([law] * 5, quadrature=5, draws=50, draws_seed=1).digest,
    ]
    assert len(set(found)) == len(found)
    assert noisy(law).digest == found[0]


@pytest.mark.parametrize(("mean", "limit"), [(0.3, 4), (5.0, 24), (5.0, 3), (900.0, 1_200)])
def test_poisson_laws_have_their_chances(mean: float, limit: int) -> None:
    from scipy.stats import poisson

    wanted = poisson.pmf(np.arange(limit + 1), mean)
    found = bw.Law.poisson(mean, limit).chances
    np.testing.assert_allclose(found, wanted / wanted.sum(), rtol=1e-11, atol=1e-300)
    assert found.sum() == pytest.approx(1.0, abs=1e-15)


def test_geometric_laws_have_their_chances() -> None:
    found = geometric(300, 0.9)
    np.testing.assert_allclose(found[1:] / found[:-1], 0.9, rtol=1e-14)
    assert found.sum() == pytest.approx(1.0, abs=1e-15)
    assert geometric(1, 0.5).tolist() == [1.0]


if __name__ == "__main__":
    print(json.dumps(dict(digests())))
