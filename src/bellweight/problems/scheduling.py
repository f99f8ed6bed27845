"""The clinic of the paper: book patients of several priorities over a rolling horizon.

On each day, x_n places are taken on day n of the horizon and y_i patients of class i wait. The
clinic books a_in patients of class i on day n, diverts z_i to overtime and lets the rest wait:

    x_n + sum_i a_in <= capacity,   sum_i z_i <= diversion,   sum_n a_in + z_i <= y_i.

Booking beyond a class's target costs its penalty per day late, waiting costs it once a day,
diversion costs a price per patient. Then the horizon rolls on and new patients arrive, Poisson
conditioned on at most three times the mean.

Ties among greedy actions: the earliest day first, and waiting rather than booking late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellweight.common import checks
from bellweight.common.status import ModelError
from bellweight.models import Law, LinearBuilder, LinearModel
from bellweight.problems.transport import BookingKernels


@dataclass(frozen=True)
class _Size:
    capacity: int
    diversion: int
    horizon: int
    targets: tuple[int, ...]
    arrivals: tuple[float, ...]
    penalties: tuple[float, ...]
    diversion_costs: tuple[float, ...]
    uniform_waiting: bool = False


_SIZES = {
    "tiny": _Size(2, 1, 2, (1, 2), (2.0, 1.0), (100.0, 1.0), (200.0, 5.0), uniform_waiting=True),
    "small": _Size(10, 4, 30, (7, 14, 21), (5.0, 3.0, 2.0), (20.0, 10.0, 5.0), (100.0,) * 3),
    "large": _Size(60, 4, 30, (7, 14, 21), (10.0, 20.0, 30.0), (20.0, 10.0, 5.0), (100.0,) * 3),
}


def scheduling(
    size: str = "small",
    *,
    capacity: int | None = None,
    diversion: int | None = None,
    horizon: int | None = None,
    targets: Sequence[int] | None = None,
    arrivals: Sequence[float] | None = None,
    arrival_limits: Sequence[int] | None = None,
    penalties: Sequence[float] | None = None,
    diversion_costs: float | Sequence[float] | None = None,
    discount: float = 0.99,
) -> LinearModel:
    """Return the paper's clinic, `"tiny"`, `"small"` or `"large"`, with any parameter changed.

    `targets` are days, `arrivals` mean patients per day, `penalties` the cost of a day late or of a
    day's waiting, each by class; `arrival_limits` (three times the mean) also bound the waiting
    patients of the rows. `to_tabular(clip=True)` enumerates the tiny clinic.
    """
    usual = _SIZES[checks.one_of(size, "size", tuple(_SIZES))]
    given = {
        "capacity": capacity, "diversion": diversion, "horizon": horizon, "targets": targets,
        "arrivals": arrivals, "penalties": penalties, "diversion_costs": diversion_costs,
    }  # fmt: skip
    changed: Any = {name: value for name, value in given.items() if value is not None}
    return _clinic(f"{size} clinic", replace(usual, **changed), arrival_limits, discount)


def _clinic(
    name: str, asked: Any, arrival_limits: Sequence[int] | None, discount: float
) -> LinearModel:
    """Return the equations of a clinic with these parameters, which are checked here."""
    places = checks.count(asked.capacity, "capacity")
    overtime = checks.count(asked.diversion, "diversion", 0)
    days = range(1, checks.count(asked.horizon, "horizon", least=2) + 1)
    means = _by_class(asked.arrivals, "arrivals")
    classes = range(1, len(means) + 1)
    target, penalty, price = (
        _by_class(getattr(asked, part), part, len(means))
        for part in ("targets", "penalties", "diversion_costs")
    )
    limit = _limits(arrival_limits, means)
    law = {i: Law.poisson(means[i], limit[i]) for i in classes}
    late = {(i, n): max(n - target[i], 0.0) * penalty[i] for i in classes for n in days}

    clinic = LinearBuilder(discount=discount, name=name)
    booked = clinic.states(
        "booked", days, upper=places, initial=Law.uniform(0, places), words=["day"]
    )
    start: dict[int, Law] = law
    if asked.uniform_waiting:
        start = {i: Law.uniform(0, limit[i]) for i in classes}
    waiting = clinic.states("waiting", classes, upper=limit, initial=start, words=["class"])
    book = clinic.actions("book", classes, days, words=["class", "day"])
    divert = clinic.actions("divert", classes, words=["class"])
    arriving = clinic.noises("arriving", classes, law=law)
    stay = {i: waiting[i] - sum(book[i, n] for n in days) - divert[i] for i in classes}

    for n in days:
        clinic.require(booked[n] + sum(book[i, n] for i in classes) <= places, f"day {n}")
    clinic.require(sum(divert.values()) <= overtime, "diversion")
    for i in classes:
        clinic.require(stay[i] >= 0, f"class {i}")

    for n in days[:-1]:
        clinic.follow(booked[n], booked[n + 1] + sum(book[i, n + 1] for i in classes))
    clinic.follow(booked[days[-1]], 0)
    for i in classes:
        clinic.follow(waiting[i], stay[i] + arriving[i])
        clinic.cost(penalty[i] * stay[i] + price[i] * divert[i])
        clinic.cost(sum(late[i, n] * book[i, n] for n in days))

    # Ties: on time and early, then waiting, then late, diversion last.
    rank = {(i, n): n + (len(days) + 1) * (n > target[i]) for i in classes for n in days}
    clinic.prefer(
        sum(rank[key] * book[key] for key in book)
        + sum((len(days) + 1) * stay[i] + 3 * len(days) * divert[i] for i in classes)
    )
    dearest = {i: max(penalty[i], price[i], late[i, days[-1]]) for i in classes}
    return clinic.build(
        kernels=BookingKernels(len(classes), len(days), places, overtime),
        # Each waiting patient costs at most the dearest choice, and one more day brings its mean.
        first_cost=sum(dearest[i] * start[i].mean for i in classes),
        cost_growth=sum(dearest[i] * law[i].mean for i in classes),
    )


def _by_class(values: Any, name: str, count: int | None = None) -> dict[int, float]:
    if np.ndim(values) == 0 and count is not None:
        values = [values] * count
    array = checks.float_array(values, name, (-1 if count is None else count,))
    if len(array) == 0:
        raise ModelError(f"{name} is empty, expected one number per class of patients")
    wrong = checks.first_index(array < 0.0)
    if wrong is not None:
        raise ModelError(f"{name}[{wrong[0]}] is {array[wrong]:g}, expected no negative number")
    return {i: float(value) for i, value in enumerate(array, start=1)}


def _limits(given: Sequence[int] | None, means: dict[int, float]) -> dict[int, int]:
    if given is None:
        return {i: int(np.ceil(3.0 * mean)) for i, mean in means.items()}
    if len(given) != len(means):
        raise ModelError(f"arrival_limits has {len(given)} entries, expected {len(means)}")
    return {i: checks.count(limit, f"arrival_limits[{i - 1}]") for i, limit in enumerate(given, 1)}
