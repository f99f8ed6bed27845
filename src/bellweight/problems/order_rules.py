"""Rules of thumb for ordering: up to a level, perhaps with a cap."""

from __future__ import annotations

from typing import Any

import numpy as np

from bellweight.policies import Rule


def base_stock(level: float, most: float, unit: float = 1.0) -> Rule:
    """Return the rule that orders up to a level, but never more than `most` at once.

    It counts the inventory position, the sum of all coordinates of the state: stock of all ages,
    orders under way, customers who wait as negative stock. A `most` below what the model allows
    makes it a capped base-stock policy (Xin, "Understanding the performance of capped base-stock
    policies in lost-sales inventory models", Operations Research 2021).
    """
    return Rule(_up_to, [level, unit, most])


def _up_to(state: Any, parameters: Any) -> int:
    wanted = min(max(parameters[0] - state.sum(), 0.0), parameters[2])
    return int(np.floor(wanted / parameters[1] + 0.5))
