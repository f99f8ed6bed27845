"""Pieces and what is done with them: order, sums, and arguments that each piece has for itself."""

from __future__ import annotations

import threading
from typing import Any

import joblib
import numpy as np
import pytest

import bellweight as bw
from bellweight.common import threads
from bellweight.common.workers import Pieces, Ranges, in_order, limited


class Sum(str):
    """Shows in which order parts were added."""

    def __add__(self, other: str) -> Sum:
        return Sum(f"({self}{other})")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [("a", "a"), ("ab", "(ab)"), ("abc", "((ab)c)"), ("abcdefg", "(((ab)(cd))((ef)g))")],
)
def test_neighbours_are_added_first(parts: str, expected: str) -> None:
    for jobs in (1, 2, 5):
        assert Pieces(parts).total(Sum, jobs=jobs) == expected


def test_each_piece_gets_its_own_part() -> None:
    pieces = Ranges(["a", "b", "c"], [0, 2, 3])
    numbers = pieces.split(np.arange(6))

    def told(piece: str, own: Any, shared: str, only: int) -> str:
        return f"{piece}{own.tolist()}{shared}{only}"

    expected = ["a[0, 1]x7", "b[2]x7", "c[3, 4, 5]x7"]
    for jobs in (1, 2):
        assert pieces.map(told, numbers, "x", Pieces([7]), jobs=jobs) == expected
        made = pieces.each(told, numbers, "x", Pieces([7]), jobs=jobs)
        assert made.map(str.upper, jobs=jobs) == [one.upper() for one in expected]


def test_joblib_may_say_how_many_workers_there_are() -> None:
    def who(_: int) -> int:
        barrier.wait(timeout=60)
        return threading.get_ident()

    barrier = threading.Barrier(2)
    with joblib.parallel_config(n_jobs=2):
        assert len(set(in_order(who, [(k,) for k in range(4)], None))) == 2
        barrier = threading.Barrier(1)
        assert set(in_order(who, [(k,) for k in range(4)], 1)) == {threading.get_ident()}
        with limited(1):
            assert set(in_order(who, [(k,) for k in range(4)], None)) == {threading.get_ident()}
    with pytest.raises(bw.errors.BellweightError):
        list(in_order(who, [(0,)], 0))


def test_the_last_one_to_leave_lifts_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a thread that is done would give the others more threads in the middle."""
    said: list[str] = []

    class Limit:
        def __enter__(self) -> None:
            said.append("one")

        def __exit__(self, *problem: object) -> None:
            said.append("many")

    class Controller:
        def limit(self, *, limits: int) -> Limit:
            assert limits == 1
            return Limit()

    monkeypatch.setattr(threads, "_controller", Controller)
    first, second = threads.one_thread(), threads.one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert said == ["one"]
    second.__exit__(None, None, None)
    assert said == ["one", "many"]
    with pytest.raises(ValueError, match="inside"), threads.one_thread():
        raise ValueError("inside")
    assert said == ["one", "many"] * 2
