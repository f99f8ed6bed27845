"""Indices of states and actions in tables: numbers are indices, and each new name gets one."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bellweight.common import checks
from bellweight.common.blocks import blocks
from bellweight.common.status import ModelError
from bellweight.interchange.assembly import BLOCK, Transitions, are_near, next_rows

_DIGITS = 9  # indices are below 2^31


class NoIndicesError(Exception):
    """The numbers of a column are not indices: `names` must take them as names."""

    def __init__(self, names: Names) -> None:
        self.names = names


class Names:
    """Indices of states or actions: the numbers themselves, a given order, or one per new name."""

    def __init__(self, given: Sequence[str] | None, what: str) -> None:
        self.given, self.what = given, what
        self.are_indices, self.are_text = given is None, False
        if given is not None:
            checks.distinct([str(name) for name in given], f"{what}s")
        self.forget()

    def take_as_text(self) -> None:
        """Take numbers as names: they came as text."""
        self.are_indices, self.are_text = False, True

    def forget(self) -> None:
        """Begin again."""
        self.index: dict[str, int] = {str(n): i for i, n in enumerate(self.given or ())}
        self.largest = -1

    def codes(self, *columns: Any) -> list[Any]:
        """Return the index of each value of some columns."""
        whole = [values.dtype.kind in "iu" for values in columns]
        if any(len(values) and isinstance(values[0], str) for values in columns):
            self.take_as_text()
        if all(whole) and self.are_indices:
            for values in columns:
                self._refuse_negative(values)
                self.largest = max(self.largest, int(values.max(initial=-1)))
            return list(columns)
        found = []
        for values in columns:
            each = (self.number(str(value).strip()) for value in values)
            found.append(np.fromiter(each, dtype=np.int32, count=len(values)))
            self._refuse_unknown(found[-1], values)
        if any(whole) and not all(whole) and not all(name.isdecimal() for name in self.index):
            raise ModelError(f"some columns name a {self.what} and others number it: do either")
        return found

    def number(self, name: str) -> int:
        """Return the index of a name; one that is not in the given order has -1."""
        if self.are_indices:
            if not name.isdecimal() or not name.isascii() or not _is_short(name):
                raise NoIndicesError(self)
            number = int(name)
            self.largest = max(self.largest, number)
            return number
        if self.given is not None:
            return self.index.get(name, -1)
        return self.index.setdefault(name, len(self.index))

    def check_indices(self, used: Any, *, all_of_them: bool) -> None:
        """Complain where the numbers in use are not 0, 1, ...: all of them, or about half."""
        if self.are_indices and len(used):
            dense = are_near(self.largest, len(used))
            found = int((np.bincount(used) > 0).sum()) if dense else 0
            if found <= self.largest and (all_of_them or not are_near(self.largest, found)):
                raise NoIndicesError(self)

    def settle(self, used: Any, state: Any = None) -> tuple[int, tuple[str, ...] | None, Any]:
        """Return the count, the labels, and new indices for the numbers given out, if any.

        Names that are numbers are sorted as numbers; numbers given as text only if they are 0, 1,
        ... Other names keep the order in which they first appear in the column used. Where the
        states of its rows are given, a name comes before those that follow it in the rows of any
        state.
        """
        if self.are_indices:
            return self.largest + 1, None, None
        names = tuple(self.index)
        if self.given is not None:
            return len(names), names, None
        if self._are_numbers(names):
            order = sorted(range(len(names)), key=lambda i: (*_size(names[i]), names[i]))
        elif state is None:
            order = _first_seen(used, len(names))
        else:
            order = in_choice_order(state, used, len(names))
        place = np.empty(len(names), dtype=np.int32)
        place[order] = np.arange(len(names), dtype=np.int32)
        return len(names), tuple(names[i] for i in order), place

    def _are_numbers(self, names: tuple[str, ...]) -> bool:
        if self.are_text:
            return self.index.keys() == set(map(str, range(len(names))))
        return all(name.isdecimal() and name.isascii() for name in names)

    def _refuse_negative(self, values: Any) -> None:
        if len(values) and values.min() < 0:
            row = int(np.argmax(values < 0))
            raise ModelError(f"row {row}: the {self.what} is {values[row]}, expected 0 or more")

    def _refuse_unknown(self, found: Any, values: Any) -> None:
        if self.given is not None and (found < 0).any():
            row = int(np.argmax(found < 0))
            raise ModelError(
                f"row {row}: the {self.what} {values[row]!r} is not one of those given"
            )


def _first_seen(used: Any, count: int) -> list[int]:
    """Return the numbers below count as they first appear in a column; those that do not, last."""
    first = np.full(count, len(used), dtype=np.int32)
    first[used[::-1]] = np.arange(len(used) - 1, -1, -1, dtype=np.int32)
    order: list[int] = np.argsort(first, kind="stable").tolist()
    return order


def in_choice_order(state: Any, code: Any, count: int) -> list[int]:
    """Return the codes 0, ..., count - 1 in an order that no state's rows contradict.

    Of several such orders it is the one closest to the codes themselves, and where there is none it
    is the codes.
    """
    after: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for one, next_one in _successions(state, code, count):
        after[one].append(next_one)
        waits[next_one] += 1
    ready = [number for number in range(count) if waits[number] == 0]
    found = []
    while ready:
        found.append(heapq.heappop(ready))
        for number in after[found[-1]]:
            waits[number] -= 1
            if waits[number] == 0:
                heapq.heappush(ready, number)
    return found if len(found) == count else list(range(count))


def _successions(state: Any, code: Any, count: int) -> list[tuple[int, int]]:
    """Return each two codes of which one follows the other in rows of one state."""
    found = [np.zeros(0, dtype=np.int64)]
    for part in blocks(len(state) - 1, BLOCK):
        after = next_rows(part)
        first, second = code[part].astype(np.int64), code[after]
        change = (state[part] == state[after]) & (first != second)
        found.append(np.unique(first[change] * count + second[change]))
    return [divmod(both, count) for both in np.unique(np.concatenate(found)).tolist()]


def _size(name: str) -> tuple[int, str]:
    """Return what sorts the digits of numbers by size, however many there are."""
    digits = name.lstrip("0")
    return len(digits), digits


def _is_short(name: str) -> bool:
    return len(name) <= _DIGITS and (name[0] != "0" or name == "0")


def numbered(read: Callable[[], Transitions], states: Names, actions: Names) -> Transitions:
    """Return the transitions; what turns out not to be an index is read again as a name."""
    while True:
        states.forget()
        actions.forget()
        try:
            rows = read()
            states.check_indices(rows.state, all_of_them=True)
            actions.check_indices(rows.action, all_of_them=False)
            return rows
        except NoIndicesError as found:
            found.names.are_indices = False
