"""Whether two tabular models hold the same numbers, to the last digit."""

from __future__ import annotations

import numpy as np

import bellweight as bw


def assert_same(first: bw.TabularModel, second: bw.TabularModel) -> None:
    """Everything but names, labels, sense and initial distribution."""
    assert first.discount == second.discount
    for name in ("cost", "pair_state", "pair_action"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    for name in ("data", "indices", "indptr"):
        got = getattr(first.transition, name)
        np.testing.assert_array_equal(got, getattr(second.transition, name))
    assert first.transition.shape == second.transition.shape
