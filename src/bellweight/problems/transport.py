"""Bookings as a transportation problem, compiled: the fast paths of the clinic.

Classes i with y_i patients, options j (the days, and diversion last) with free places, a price for
putting a patient of class i into option j, and waiting at price zero:

    min sum_ij price_ij f_ij   s.t.   sum_j f_ij <= y_i,   sum_i f_ij <= free_j,   f >= 0.

Successive shortest paths solve it exactly: patients are added along the cheapest path that may move
patients of other classes between options, for as long as that path has a negative price. Only
classes are nodes, so a path is found in a few operations; a whole bundle of patients moves at once.

The prices carry the tie rule: a multiple of the tie prices is added that is too small to outweigh
any difference beyond one part in 10^9 of the largest price.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bellweight.common import files, tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.compiled import compiled, draw, mix
from bellweight.common.streams import Keys
from bellweight.models import Kernels

_TIE_SHARE = tolerances.SAME_PRICE
_ROUNDING = tolerances.SUMS


@files.storable("BookingKernels")
@dataclass(frozen=True)
class BookingKernels(Kernels):
    """States are places taken per day, then patients waiting per class.

    Actions are bookings by class and day, then diversions by class.
    """

    n_classes: int
    n_days: int
    capacity: int
    diversion: int

    def greedy_action(
        self, action_price: FloatArray, tie_price: FloatArray
    ) -> Callable[[FloatArray], FloatArray]:
        largest, spread = np.abs(action_price).max(), np.abs(tie_price).max()
        small = _TIE_SHARE * max(float(largest), 1e-300) / max(float(spread), 1e-300)
        price = self._table(action_price + small * tie_price)
        order, buffer = _order(price), _Buffer(len(action_price))

        def act(states: FloatArray) -> FloatArray:
            actions = buffer.rows(len(states))
            _book_all(states, price, order, self.capacity, self.diversion, actions)
            return actions

        return act

    def random_action(self) -> Callable[[FloatArray, Keys, int], FloatArray]:
        buffer = _Buffer(self.n_classes * (self.n_days + 1))

        def act(states: FloatArray, keys: Keys, step: int) -> FloatArray:
            actions = buffer.rows(len(states))
            _random_all(states, keys, step, self.n_classes, self.capacity, self.diversion, actions)
            return actions

        return act

    def price(
        self,
        state_price: FloatArray,
        action_price: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
    ) -> tuple[FloatArray, FloatArray] | None:
        """Price over a box that begins at zero and lets every day fill up."""
        days, classes = state_price[: self.n_days], state_price[self.n_days :]
        if lower.any() or (upper[: self.n_days] != self.capacity).any():
            return None
        # A day whose booked places pay is full: a new booking then displaces one of them. A class
        # whose waiting patients cost has only patients that are booked: each booking adds one.
        price = self._table(action_price)
        price[:, : self.n_days] -= np.minimum(days, 0.0)
        price += np.maximum(classes, 0.0)[:, None]
        state = np.append(np.zeros(self.n_days), upper[self.n_days :])
        actions = np.zeros((1, len(action_price)))
        _book_all(state[None], price, _order(price), self.capacity, self.diversion, actions)
        booked = actions[0, : self.n_classes * self.n_days].reshape(self.n_classes, -1)
        used = booked.sum(axis=1) + actions[0, self.n_classes * self.n_days :]
        full = np.where(days < 0.0, self.capacity - booked.sum(axis=0), 0.0)
        waiting = np.where(classes < 0.0, upper[self.n_days :], used)
        return np.append(full, waiting), actions[0]

    def _table(self, price: FloatArray) -> FloatArray:
        """Return action prices as a table (classes, days + 1), diversion last."""
        cut = self.n_classes * self.n_days
        return np.column_stack([price[:cut].reshape(self.n_classes, -1), price[cut:]])


class _Buffer:
    """A reused array of actions: allocating memory would take longer than the booking."""

    def __init__(self, width: int) -> None:
        self._rows = np.zeros((0, width))

    def rows(self, n: int) -> FloatArray:
        if len(self._rows) < n:
            self._rows = np.zeros((n, self._rows.shape[1]))
        return self._rows[:n]


def _order(price: FloatArray) -> IntArray:
    """Return each class's options from the cheapest to the dearest."""
    return np.argsort(price, axis=1, kind="stable").astype(np.int64)


@compiled
def _book_all(
    states: FloatArray,
    price: FloatArray,
    order: IntArray,
    capacity: int,
    diversion: int,
    actions: FloatArray,
) -> None:
    n_classes, n_options = price.shape
    n_days = n_options - 1
    # Sums that differ by rounding alone must not lead to an endless cycle.
    margin = _ROUNDING * np.abs(price).max()
    free = np.zeros(n_options, dtype=np.int64)
    supply = np.zeros(n_classes, dtype=np.int64)
    flow = np.zeros((n_classes, n_options), dtype=np.int64)
    cursor = np.zeros(n_classes, dtype=np.int64)
    distance = np.zeros(n_classes)
    before = np.zeros(n_classes, dtype=np.int64)
    through = np.zeros(n_classes, dtype=np.int64)
    for row in range(states.shape[0]):
        for day in range(n_days):
            free[day] = capacity - np.int64(states[row, day])
        free[n_days] = diversion
        for i in range(n_classes):
            supply[i] = np.int64(states[row, n_days + i])
            cursor[i] = 0
        while True:
            _reach(price, supply, flow, margin, distance, before, through)
            last = _cheapest(price, order, cursor, free, margin, distance)
            if last < 0:
                break
            _move(last, order[last, cursor[last]], free, supply, flow, before, through)
        for i in range(n_classes):
            for day in range(n_days):
                actions[row, i * n_days + day] = flow[i, day]
                flow[i, day] = 0
            actions[row, n_classes * n_days + i] = flow[i, n_days]
            flow[i, n_days] = 0


@compiled
def _reach(
    price: FloatArray,
    supply: IntArray,
    flow: IntArray,
    margin: float,
    distance: FloatArray,
    before: IntArray,
    through: IntArray,
) -> None:
    """Fill in the price of reaching each class, and the way there.

    It is zero for a class with patients left, and no detour is cheaper: that would be a cycle of
    negative price. In a class without patients left, a patient of another class takes the option
    of one, who then needs a new option.
    """
    n_classes, n_options = price.shape
    exhausted = 0
    for i in range(n_classes):
        distance[i] = 0.0 if supply[i] > 0 else np.inf
        before[i] = -1
        exhausted += 1 if supply[i] == 0 else 0
    if exhausted == n_classes:
        return
    for _ in range(exhausted):
        changed = False
        for other in range(n_classes):
            if supply[other] > 0:
                continue
            for j in range(n_options):
                if flow[other, j] == 0:
                    continue
                for i in range(n_classes):
                    reached = distance[i] + price[i, j] - price[other, j]
                    if reached < distance[other] - margin:
                        distance[other] = reached
                        before[other] = i
                        through[other] = j
                        changed = True
        if not changed:
            return


@compiled
def _cheapest(
    price: FloatArray,
    order: IntArray,
    cursor: IntArray,
    free: IntArray,
    margin: float,
    distance: FloatArray,
) -> int:
    """Return the class at which the cheapest path to a free option ends, -1 if none pays."""
    n_classes, n_options = price.shape
    best, last = -margin, -1
    for i in range(n_classes):
        while cursor[i] < n_options and free[order[i, cursor[i]]] == 0:
            cursor[i] += 1
        if cursor[i] < n_options and distance[i] < np.inf:
            total = distance[i] + price[i, order[i, cursor[i]]]
            if total < best:
                best, last = total, i
    return last


@compiled
def _move(
    last: int,
    end: int,
    free: IntArray,
    supply: IntArray,
    flow: IntArray,
    before: IntArray,
    through: IntArray,
) -> None:
    """Move as many patients as possible along the path that ends with a class in an option."""
    amount = free[end]
    i = last
    while before[i] >= 0:
        amount = min(amount, flow[i, through[i]])
        i = before[i]
    amount = min(amount, supply[i])
    supply[i] -= amount
    free[end] -= amount
    i, j = last, end
    while before[i] >= 0:
        flow[i, j] += amount
        j = through[i]
        flow[i, j] -= amount
        i = before[i]
    flow[i, j] += amount


@compiled
def _random_all(
    states: FloatArray,
    keys: Keys,
    step: int,
    n_classes: int,
    capacity: int,
    diversion: int,
    actions: FloatArray,
) -> None:
    """Let each waiting patient in turn pick evenly among open days, diversion and waiting."""
    n_days = states.shape[1] - n_classes
    free = np.zeros(n_days, dtype=np.int64)
    days = np.zeros(n_days, dtype=np.int64)
    actions[:] = 0.0
    for row in range(states.shape[0]):
        # Each step has its own stream, because the number of patients is not known in advance.
        key = mix(keys[row] + np.uint64(step))
        used = 0
        n_open = 0
        for day in range(n_days):
            free[day] = capacity - np.int64(states[row, day])
            if free[day] > 0:
                days[n_open] = day
                n_open += 1
        left = diversion
        for i in range(n_classes):
            for _ in range(np.int64(states[row, n_days + i])):
                choices = n_open + 1 + (1 if left > 0 else 0)
                if choices == 1:
                    continue
                choice = np.int64(draw(key, used) * choices)
                used += 1
                if choice < n_open:
                    day = days[choice]
                    actions[row, i * n_days + day] += 1.0
                    free[day] -= 1
                    if free[day] == 0:
                        n_open -= 1
                        days[choice] = days[n_open]
                elif choice > n_open:
                    actions[row, n_classes * n_days + i] += 1.0
                    left -= 1
