"""The numbers that the paper prints, to compare with and never to compute from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CENT = 0.005
"""Half a unit of the last digit that the paper prints."""

ADAPTIVE = ("PIA", "DIA (Random)", "DIA (0.9)")
"""The methods that iterate, by the names of their rows."""


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

TABLE2_HORIZON = 1_379
TABLE2_STATES = 5_000
TABLE2_LARGEST_TOTAL = 193
TABLE2_LARGEST_QUEUE = 92

TABLE2: Mapping[str, Printed] = {
    "Fixed 0.9": Printed(13_906.48, 53.08),
    "Random": Printed(13_380.16, 50.77),
    "PIA": Printed(13_458.07, 50.68),
    "DIA (Random)": Printed(13_334.33, 51.25),
    "DIA (0.9)": Printed(13_195.70, 49.82),
}
"""Table tab:policy_comparison_8d_queue: costs from 40,000 episodes, one sample of states."""

TABLE2_SECONDS: Mapping[str, float] = {
    "Random": 1_574.53,
    "PIA": 13_751.61,
    "DIA (Random)": 3_660.20,
    "DIA (0.9)": 14_588.35,
}
"""The same table: seconds to generate the policy; the paper gives none for fixed weights."""

CLINIC_HORIZON = 688
CLINIC_EPISODES = 11_000


@dataclass(frozen=True)
class PrintedClinic:
    """A table of the clinic of one size: costs and seconds by the name of the row."""

    size: str
    costs: Mapping[str, Printed]
    seconds: Mapping[str, float]


CLINIC_TABLES = {
    "table3": PrintedClinic(
        "small",
        {
            "Fixed": Printed(6_011.30, 55.94),
            "Random": Printed(5_960.01, 55.59),
            "PIA": Printed(135_643.85, 909.17),
            "DIA (Random)": Printed(5_980.67, 56.01),
        },
        {"Fixed": 0.96, "Random": 10.26, "PIA": 310.84, "DIA (Random)": 155.54},
    ),
    "table4": PrintedClinic(
        "large",
        {
            "Fixed": Printed(568_112.93, 1_331.77),
            "Random": Printed(10_760.87, 140.38),
            "PIA": Printed(10_748.94, 140.42),
            "DIA (Random)": Printed(10_788.38, 140.32),
        },
        {"Fixed": 0.93, "Random": 10.42, "PIA": 308.43, "DIA (Random)": 156.00},
    ),
}
"""Tables tab:scheduling_small and tab:scheduling_large."""

TABLE5: Mapping[int, Mapping[str, Printed]] = {
    1: {"Random": Printed(29_001.42, 54.03), "DIA (Random)": Printed(29_001.42, 54.03)},
    4: {"Random": Printed(16_546.82, 52.28), "DIA (Random)": Printed(15_056.40, 43.97)},
}
"""Table tab:scheduling_full_state: the tiny clinic, by degree of the polynomials."""

TABLE5_DIFFERENCE: Mapping[int, float] = {1: 0.0, 4: 1_490.42}
"""The same table: the cost of Random minus that of DIA (Random)."""

TABLE5_PERCENT: Mapping[int, float] = {1: 0.0, 4: 9.01}
"""The same in per cent of the cost of Random."""

TABLE5_FUNCTIONS: Mapping[int, int] = {1: 5, 4: 70}
"""The same table: the number of basis functions."""

OCCUPIED_FROM = 50
"""Text on the occupancy figure: from a full system, states below this are rarely visited."""

NETWORK_GROUPS = ((1, 3, 8), (2, 6), (4, 5, 7))
NETWORK_ENTRIES = (1, 4)
NETWORK_DISCOUNT = 0.995
NETWORK_FUNCTIONS = 45
"""Appendix on the network: server groups, queues with arrivals, discount, basis functions."""
