"""Random streams: the t-th number of a stream is a function of (key, t), nothing is carried along.

Each episode has its own streams, derived from the seed, so results do not depend on who computes
what in which order. The numbers themselves are drawn in `compiled.py`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bellweight.common import checks

Keys = npt.NDArray[np.uint64]


def derived_seed(seed: int, *path: int) -> int:
    """Return the seed of a branch: different paths from one seed lead to unrelated streams."""
    return int(np.random.SeedSequence(seed, spawn_key=path).generate_state(1)[0])


def stream_keys(seed: int, *branch: int) -> Keys:
    """Return the base keys of the initial, action and event streams.

    Each `branch` of a seed has streams of its own, independent of those of the seed itself.
    """
    sequence = np.random.SeedSequence(checks.count(seed, "seed", least=0), spawn_key=branch)
    return sequence.generate_state(3, np.uint64).astype(np.uint64)
