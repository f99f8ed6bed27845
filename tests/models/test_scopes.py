"""Declared scopes of event models: functions, admissible actions, tails."""

from __future__ import annotations

import numpy as np
import pytest

import bellweight as bw
from bellweight.models import Scopes
from bellweight.program import AllRows, solve_alp

UPPER = 4


def cost(state: np.ndarray, action: int) -> float:
    return 1.0 * state[0] + 2.0 * state[1] + 0.5 * min(state[0], state[1]) + 0.1 * action


def chance(state: np.ndarray, action: int, event: int) -> float:
    if event == 0:
        return 0.2
    if event == 1:
        return 0.15 * min(state[0], 2) if action == 0 else 0.0
    return 0.3 if action == 1 else 0.1


def move(state: np.ndarray, event: int) -> None:
    if event == 0:
        state[0] += 1
    elif event == 1:
        state[0] -= 1
        state[1] += 1
    elif state[1] > 0:
        state[1] -= 1


def admissible(state: np.ndarray, action: int) -> bool:
    return action == 0 or state[1] > 0


def build(scopes: Scopes, upper: int | None = UPPER) -> bw.EventModel:
    return bw.EventModel(
        dimension=2, actions=["first", "second"], events=["in", "on", "out"], cost=cost,
        probability=chance, move=move, admissible=admissible, discount=0.9, initial=(1, 1),
        upper=upper, compiled=False, scopes=scopes,
    )  # fmt: skip


RIGHT = Scopes(
    cost=[(0,), (0, 1)],
    chance=[(), (0,), ()],
    move=[(0,), (0, 1), (1,)],
    admissible=(1,),
    tail=2,
)


def test_functions_and_rules_give_the_program_of_all_rows() -> None:
    model = build(RIGHT)
    basis = bw.Polynomial(2)
    table = model.to_tabular()
    listed = AllRows().on(table, basis)
    moments = listed.moments(np.full(table.n_states, 1.0 / table.n_states))
    rows = bw.LocalRows().on(model, basis)
    found, wanted = solve_alp(rows, moments), solve_alp(listed, moments)
    assert found.objective == pytest.approx(wanted.objective, rel=1e-8)
    states, actions = rows.support_of(np.arange(rows.n_pairs))
    assert all(admissible(x, a) for x, a in zip(states, actions, strict=True))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cost": [(0,), (1,)]}, r"scopes.cost"),
        ({"chance": [(), (), ()]}, r"scopes.chance\[1\]: the chance of event 1 \(on\)"),
        ({"move": [(0,), (0,), (1,)]}, r"scopes.move\[1\]"),
        ({"admissible": (0,)}, r"scopes.admissible"),
        ({"admissible": None}, r"scopes.admissible is missing"),
        ({"move": None}, r"scopes.move is missing"),
        ({"choices": (3,)}, r"makes 3 actions, expected 2"),
    ],
)
def test_a_wrong_declaration_is_refused(change: dict, message: str) -> None:
    with pytest.raises(bw.BellweightError, match=message):
        build(Scopes(**{**vars(RIGHT), **change}))


def test_what_is_no_scopes_is_refused() -> None:
    with pytest.raises(bw.BellweightError, match=r"scopes is 'all', expected Scopes\("):
        build("all")  # type: ignore[arg-type]


def test_the_cost_must_be_affine_beyond_the_tail() -> None:
    # The smaller of two endless queues is not affine in either beyond any value of it.
    with pytest.raises(bw.BellweightError, match=r"scopes.tail\[0\] is 2.*not affine"):
        build(RIGHT, upper=None)


def test_a_tail_with_a_fraction_is_not_rounded() -> None:
    with pytest.raises(bw.BellweightError, match=r"scopes.tail is 1.5, expected whole numbers"):
        build(Scopes(**{**vars(RIGHT), "tail": 1.5}))
