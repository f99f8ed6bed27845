"""Distinct states are the first ones drawn, each once."""

from __future__ import annotations

import numpy as np

import bellweight as bw
from bellweight.common.streams import stream_keys
from bellweight.simulation import sampling
from tests import event_models as em


def test_distinct_states_are_the_first_of_each_kind() -> None:
    model = em.NETWORK.model(decay=0.6)
    found = bw.sample_states(model, 3_000, seed=4)
    drawn = model.sample_initial(0, 200_000, stream_keys(4, sampling._SAMPLING)[0])
    _, places = np.unique(drawn, axis=0, return_index=True)
    assert np.array_equal(found, drawn[np.sort(places)][:3_000])


def test_states_drawn_in_parts_are_the_same(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    model = em.NETWORK.model(decay=0.6)
    whole = bw.sample_states(model, 3_000, seed=5)
    monkeypatch.setattr(sampling, "_MOST_DRAWN", 257)
    assert np.array_equal(bw.sample_states(model, 3_000, seed=5), whole)
