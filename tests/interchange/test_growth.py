"""The table of borders, on small models: it runs, and memory does not jump."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
borders: Any = __import__("borders")

PASSAGES = [(name, way) for name, ways in borders.BORDERS.items() for way in ways]
STATES = 4_000


@pytest.mark.parametrize(("name", "way"), PASSAGES)
def test_memory_of_a_passage(name: str, way: str, tmp_path: Path) -> None:
    """At most three times the model, and what blocks of text take; traced, not resident."""
    prepare, passage = borders.BORDERS[name][way]
    passage(prepare(borders.random_model(10), tmp_path), tmp_path)
    tracemalloc.start()
    model = borders.random_model(STATES)
    size = borders.model_bytes(model)
    given = prepare(model, tmp_path)
    del model
    tracemalloc.reset_peak()
    passage(given, tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    spare = 8_000_000 if way == "write" else 1_000_000  # a block of lines; buffers
    assert peak <= 3.0 * size + spare, f"{peak / size:.2f} times the model"


def test_the_exponent_of_a_power_is_its_exponent() -> None:
    sizes = [10, 100, 1000]
    assert borders.exponent(sizes, [3.0 * n**1.5 for n in sizes]) == pytest.approx(1.5)


def test_the_models_it_measures_are_as_it_says() -> None:
    model = borders.random_model(100)
    assert (model.n_states, model.n_pairs, model.transition.nnz) == (100, 200, 1000)
    assert model.transition.indices.dtype == np.int32
    assert borders.model_bytes(model) == 1000 * 12 + 201 * 4 + 200 * 8 * 3 + 100 * 8
