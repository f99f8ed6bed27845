"""A short run of the random cases, and the cases that failed once; `python -m tests.fuzz` is long.

A case that fails is run alone by `python -m tests.fuzz --case NUMBER`.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz import rational
from fuzz.cases import record
from fuzz.named import LONG, NAMED
from fuzz.run import known_lines, records
from scipy.optimize import linprog

import bellweight as bw

ROOT = Path(__file__).parent.parent
SHORT, LONGER = 60, 150
SLICE = 10
FIRST = [
    *range(0, SHORT, SLICE),
    *(pytest.param(n, marks=pytest.mark.slow) for n in range(SHORT, LONGER, SLICE)),
]
FAILED_ONCE = (
    152, 211, 272, 326, 332, 351, 426, 446, 467, 487, 517, 544, 547, 576, 634, 647, 683, 696, 710,
    711, 715, 721, 756, 771, 775, 844, 847, 863, 885, 890, 931, 965, 1035, 1074, 1091, 1221, 1334,
    1375, 1481, 1557, 1684, 1933, 1934, 1976, 2003, 2090, 2352, 2792, 2827, 2952, 3017,
    3106, 3595, 3893, 3925, 4441, 6128, 6276, 6598, 7143, 7187, 7465, 7596, 8917, 10541,
    10756, 10807, 11200, 20300, 20611, 21137, 21877, 23416, 25034, 25927, 26657,
    26027, 26970, 27557, 30987, 31727, 31776, 33481, 33955, 35506, 39147, 40975, 41221, 41322,
    42206, 47823, 49247, 50367, 56610, 58627,
    1001060, 1001194, 1001268,
)  # fmt: skip


@pytest.mark.parametrize("first", FIRST)
def test_random_cases(first: int) -> None:
    lines = [record(number) for number in range(first, first + SLICE)]
    wrong = [
        f"case {line['case']} ({line['text']}): {line['wrong']}" for line in lines if line["wrong"]
    ]
    assert not wrong, "\n".join(wrong)
    assert not [line["case"] for line in lines if line["undecided"]]


TAKE_LONG = (3216,)
"""Numbers whose rational reference takes half a minute."""


@pytest.mark.slow
@pytest.mark.parametrize("number", TAKE_LONG)
def test_numbers_that_failed_once_and_take_long(number: int) -> None:
    line = record(number)
    assert not line["wrong"]
    assert not line["undecided"]


@pytest.mark.parametrize("number", FAILED_ONCE)
def test_numbers_that_failed_once(number: int) -> None:
    line = record(number)
    assert not line["wrong"]
    assert not line["undecided"]


@pytest.mark.parametrize("name", [name for name in NAMED if name not in LONG])
def test_named_cases(name: str) -> None:
    line = record(name)
    assert not line["wrong"]
    assert not line["undecided"]


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_named_cases_that_take_seconds(name: str) -> None:
    line = record(name)
    assert not line["wrong"]
    assert not line["undecided"]


# The references themselves


@pytest.mark.parametrize("seed", range(20))
def test_the_exact_simplex_agrees_with_another_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(3, 12)), int(rng.integers(1, 4))
    table = rng.integers(-3, 4, size=(n, k)).astype(float)
    table[:, 0] = 1.0
    cost = rng.integers(0, 9, size=n).astype(float)
    moments = table.T @ rng.dirichlet(np.ones(n))
    columns, scale = rational.integers(table)
    rows = rational.Rows(columns, (Fraction(scale),) * k, *rational.integers(cost))
    found = rational.solve(rows, [Fraction(float(moment)) for moment in moments])
    other = linprog(cost, A_eq=table.T, b_eq=moments, method="highs")
    assert float(found.objective) == pytest.approx(other.fun, rel=1e-9, abs=1e-9)
    guessed = rational.solve(rows, [Fraction(float(m)) for m in moments], list(range(n)))
    assert guessed.objective == found.objective
    assert float(sum(c * Fraction(float(m)) for c, m in zip(found.coef, moments, strict=True))) == (
        pytest.approx(float(found.objective), rel=1e-12, abs=1e-12)
    )


def test_the_shortest_dual_of_four_equal_rows() -> None:
    columns, scale = rational.integers(np.ones((4, 1)))
    rows = rational.Rows(columns, (Fraction(scale),), *rational.integers(np.ones(4)))
    found = rational.least_norm(rational.solve(rows, [Fraction(2)]))
    assert found == dict.fromkeys(range(4), Fraction(1, 2))


def test_a_program_that_nothing_bounds_is_told() -> None:
    columns, scale = rational.integers(np.ones((2, 1)))
    rows = rational.Rows(columns, (Fraction(scale),), *rational.integers(np.ones(2)))
    with pytest.raises(rational.UnreachableError):
        rational.solve(rows, [Fraction(-1)])


def test_a_run_can_be_cut_and_gone_on_with(tmp_path: Path) -> None:
    output = tmp_path / "fuzz.jsonl"
    command = [sys.executable, "-m", "tests.fuzz", "--output", str(output), "--resume"]
    subprocess.run([*command, "--to", "3"], cwd=ROOT, capture_output=True, check=False)
    output.write_text(
        output.read_text(encoding="utf-8") + '{"case": 3, "fam', encoding="utf-8"
    )  # cut in the middle of a line
    told = subprocess.run(
        [*command, "--to", "5"], cwd=ROOT, capture_output=True, check=False, encoding="utf-8"
    )
    cases = [line["case"] for line in known_lines(output)]
    assert sorted(cases) == [0, 1, 2, 3, 4], told.stderr
    assert "all" in told.stdout


def test_a_case_that_computes_too_long_is_ended_and_the_next_is_run() -> None:
    found = list(records(["kinks-4000-18-empty", 8], jobs=1, limit=1.0))
    assert [kind for kind, _ in found[0]["wrong"]] == ["hang"]
    assert {line["case"] for line in found} == {"kinks-4000-18-empty", 8}


# A judge that notices nothing is worth nothing


def _spoilt(result: Any, field: str) -> Any:
    """Return the result with one thing wrong."""
    support = result.support
    if field == "lower_bound":
        return replace(result, lower_bound=result.cost.mean + abs(result.cost.mean) + 1.0)
    if field in ("objective", "cost"):
        return replace(result, **{field: getattr(result, field) * 1.001 + 0.01})
    if field == "dual":
        more = replace(support, values=support.values * 1.001)
        return replace(
            result, support=more, dual=None if result.dual is None else result.dual * 1.001
        )
    if field == "coef":
        # Other values, hence another greedy policy than the one of the result.
        coef = result.coef[::-1] * 7.0
        return replace(result, coef=coef)
    return replace(result, moments=result.moments * 1.001)


@pytest.mark.parametrize(
    ("number", "field"),
    [
        *((0, field) for field in ("lower_bound", "objective", "cost", "dual", "coef", "moments")),
        *((8, field) for field in ("objective", "dual", "moments")),
        *((19, field) for field in ("objective", "dual")),
    ],
)
def test_what_is_wrong_is_noticed(number: int, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not record(number)["wrong"]
    solve = bw.solve
    monkeypatch.setattr(bw, "solve", lambda *a, **k: _spoilt(solve(*a, **k), field))
    assert record(number)["wrong"]
