"""The numbers that the paper prints, to compare with and never to compute from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Printed:
    """A simulated cost as printed: mean and 95 % half-width."""

    mean: float
    half_width: float


TABLE1_HORIZON = 343
TABLE1_EPISODES = 1_000_000

TABLE1: Mapping[str, Mapping[str, Printed]] = {
    "geometric": {
        "Optimal": Printed(391.23, 0.76),
        "Fixed 0.9": Printed(393.81, 0.80),
        "Fixed 0.999": Printed(517.26, 0.74),
        "PIA": Printed(393.77, 0.79),
        "DIA (Random)": Printed(394.89, 0.81),
        "DIA (0.9)": Printed(393.77, 0.79),
        "Random": Printed(394.89, 0.81),
    },
    "empty": {
        "Optimal": Printed(117.12, 0.09),
        "Fixed 0.9": Printed(117.12, 0.09),
        "Fixed 0.999": Printed(228.76, 0.13),
        "PIA": Printed(118.78, 0.11),
        "DIA (Random)": Printed(118.78, 0.11),
        "DIA (0.9)": Printed(118.78, 0.11),
        "Random": Printed(118.78, 0.11),
    },
    "reverse": {
        "Optimal": Printed(2_496_721.59, 1.03),
        "Fixed 0.9": Printed(2_497_280.50, 0.67),
        "Fixed 0.999": Printed(2_496_725.38, 1.04),
        "PIA": Printed(2_496_725.38, 1.04),
        "DIA (Random)": Printed(2_496_725.38, 1.04),
        "DIA (0.9)": Printed(2_496_725.38, 1.04),
        "Random": Printed(2_496_725.38, 1.04),
    },
}
"""Table tab:policy_comparison_single_queue: initial distribution, then policy."""
