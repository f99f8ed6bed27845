"""Event models: who they are, and moves that move nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.common import identity


def build(**changes: Any) -> bw.EventModel:
    data: dict[str, Any] = {
        "dimension": 1, "actions": 2, "events": ["up", "down"], "cost": priced(1.0),
        "probability": [[0.3, 0.2], [0.3, 0.4]], "move": step, "discount": 0.9, "upper": 9,
        "compiled": False,
    }  # fmt: skip
    return bw.EventModel(**{**data, **changes})


def step(state: Any, event: Any) -> None:
    if event == 0:
        state[0] += 1
    elif state[0] > 0:
        state[0] -= 1


def priced(price: float) -> Callable[..., float]:
    def cost(state: Any) -> float:
        return price * state[0]

    return cost


def by_default(price: float) -> Callable[..., float]:
    def scaled(x: Any, scale: float = price) -> float:
        return scale * x

    def cost(state: Any) -> float:
        return scaled(state[0])

    return cost


def by_keyword(price: float) -> Callable[..., float]:
    def scaled(x: Any, *, scale: float = price) -> float:
        return scale * x

    def cost(state: Any) -> float:
        return scaled(state[0])

    return cost


def by_call(price: float) -> Callable[..., float]:
    inner = priced(price)

    def cost(state: Any) -> float:
        return inner(state)

    return cost


def by_table(price: float) -> Callable[..., float]:
    prices = np.zeros(2_000)
    prices[1_000] = price

    def cost(state: Any) -> float:
        return prices[1_000 + state[0] * 0]

    return cost


def plain(state: Any) -> float:
    return 2.0 * state[0]


def documented(state: Any) -> float:
    """Say what it costs."""
    return 2.0 * state[0]  # and why


def starting(most: int) -> Callable[..., None]:
    def initial(state: Any, u: Any) -> None:
        state[0] = int(u[0] * most)

    return initial


@pytest.mark.parametrize("make", [priced, by_default, by_keyword, by_call, by_table])
def test_the_digest_sees_what_a_function_refers_to(make: Callable[..., Any]) -> None:
    assert build(cost=make(1.0)).digest == build(cost=make(1.0)).digest
    assert build(cost=make(1.0)).digest != build(cost=make(2.0)).digest


@pytest.mark.parametrize(
    ("make", "compiled"),
    [(by_default, False), (by_default, True), (by_keyword, False)],  # Numba has no such keywords
)
def test_defaults_have_the_value_of_the_definition(make: Any, compiled: bool) -> None:
    model = build(cost=make(2.5), compiled=compiled)
    cost, _, _ = model.expand(np.array([[3]]), np.array([0]))
    assert cost.tolist() == [7.5]


def test_a_docstring_does_not_make_another_model() -> None:
    digests = {build(cost=cost).digest.partition(":")[0] for cost in (plain, documented)}
    assert digests == {"v2"}

    def renamed(function: Any) -> Any:
        function.__name__ = "cost"
        return function

    assert build(cost=renamed(plain)).digest == build(cost=renamed(documented)).digest


def test_initial_functions_and_data_count() -> None:
    same = {build(initial=starting(3)).digest for _ in range(2)}
    assert len(same) == 1
    changes: list[dict[str, Any]] = [
        {"initial": starting(4)}, {"initial": bw.models.Geometric(0.5)}, {"initial": (2,)},
        {"upper": 8}, {"discount": 0.8}, {"probability": [[0.3, 0.2], [0.3, 0.3]]},
        {"move": [[1], [-1]]}, {"initial_draws": 2},
    ]  # fmt: skip
    assert len(same | {build(**change).digest for change in changes}) == 9


def test_rules_are_told_apart_by_what_they_refer_to() -> None:
    def rule(limit: int) -> bw.Rule:
        def fn(state: Any) -> int:
            return int(state[0] > limit)

        return bw.Rule(fn)

    assert identity.same(rule(1), rule(1))
    assert not identity.same(rule(1), rule(2))


# ---- moves that move nothing -----------------------------------------------------------------


def returning(state: Any, event: Any) -> Any:
    new = state.copy()
    new[0] += 1
    return new


def sometimes(state: Any, event: Any) -> Any:
    if state[0] > 3:
        return state
    state[0] += 1
    return None


def returning_number(state: Any) -> int:
    return state[0] + 1


def handing_on(state: Any, event: Any) -> None:
    return step(state, event)


def forgetful(state: Any, event: Any) -> None:
    new = state.copy()
    new[0] += 1


def resting(state: Any, event: Any) -> None:
    if event == 0:
        state[0] += 1


IN_PLACE = r"returns .*, expected nothing: it must change `state` in place, as in state\[0\] \+= 1"


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("move", [returning, returning_number])
def test_a_move_that_returns_a_state_is_refused(move: Any, compiled: bool) -> None:
    with pytest.raises(
        bw.errors.ModelError, match=rf"move function '{move.__name__}' .*{IN_PLACE}"
    ):
        build(move=move, compiled=compiled)


def test_a_move_that_returns_a_state_here_and_there_is_found_by_check_model() -> None:
    model = build(move=sometimes)
    with pytest.raises(bw.errors.ModelError, match=rf"move function 'sometimes' .*{IN_PLACE}"):
        bw.testing.check_model(model)


@pytest.mark.parametrize("compiled", [False, True])
def test_an_initial_function_that_returns_a_state_is_refused(compiled: bool) -> None:
    def initial(state: Any, u: Any) -> float:
        return u[0]

    with pytest.raises(bw.errors.ModelError, match=rf"initial function 'initial' .*{IN_PLACE}"):
        build(initial=initial, compiled=compiled)


def test_a_move_may_hand_on_to_another_function() -> None:
    bw.testing.check_model(build(move=handing_on))


@pytest.mark.parametrize("move", [forgetful, [[0], [0]]], ids=["function", "jumps"])
def test_a_model_in_which_nothing_ever_moves_is_not_in_order(move: Any) -> None:
    with pytest.raises(
        bw.errors.ModelError, match=r"no event changes the state in any .*\[0\] is the fi"
    ):
        bw.testing.check_model(build(move=move))


def test_one_event_that_moves_nothing_is_fine() -> None:
    assert "in order" in str(bw.testing.check_model(build(move=resting)))


def test_a_model_without_events_is_noted() -> None:
    report = bw.testing.check_model(build(probability=[[0.0, 0.0], [0.0, 0.0]]))
    assert report.notes == ("no event has a chance in any state visited",)
