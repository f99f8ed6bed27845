"""Conformance checks of event models."""

from __future__ import annotations

from typing import Any

import numpy as np

from bellweight.common.checks import FloatArray, IntArray, first_index
from bellweight.common.status import ModelError, PolicyError
from bellweight.common.streams import stream_keys
from bellweight.models import EventModel, FunctionModel
from bellweight.models.function_checks import check_in_place, naming
from bellweight.policies import Policy, Rule, Uniform
from bellweight.simulation import EventRollout
from bellweight.testing.report import Report
from bellweight.testing.rules import check_whole_actions

_SAMPLE = 512


def check_events(model: EventModel) -> Report:
    """Check an event model on visited states: costs, probabilities, moves."""
    states = visited_states(model)
    mask = model.admissible_mask(states)
    number, action = np.nonzero(mask)
    # `expand` raises on faults, and names the state and action.
    _, chance, successor = model.expand(states[number], action)
    above = (model.upper >= 0) & (successor > model.upper)
    wrong = first_index(above.any(axis=2) & (chance > 0.0))
    if wrong is not None:
        pair, event = wrong
        raise ModelError(
            f"in state {states[number[pair]].tolist()}, action {action[pair]} "
            f"({model.label(int(action[pair]))}): event {model.events[event]} leads to "
            f"{successor[wrong].tolist()}, expected at most {model.upper.tolist()}: correct move"
        )
    if callable(model.move):
        _check_whole_moves(model, states[number], action, chance)
    possible = chance > 0.0
    moves = (successor != states[number][:, None, :]).any(axis=2) & possible
    if possible.any() and not moves.any():
        raise ModelError(
            f"no event changes the state in any of the {len(states):,} states visited, of which "
            f"{states[0].tolist()} is the first: let move change `state` in place, as in "
            "state[0] += 1, and give upper bounds that leave room for it"
        )
    notes = () if possible.any() else ("no event has a chance in any state visited",)
    checked = (
        f"{len(states):,} states visited by the uniform policy, {len(number):,} pairs",
        "costs are finite, event probabilities are distributions, successors are states",
    )
    return Report(model.name, checked, notes)


def check_event_policy(policy: Policy, model: FunctionModel, subject: str) -> Report:
    """Check that a policy of an event model takes admissible actions."""
    states = visited_states(model)
    mask = model.admissible_mask(states)
    if isinstance(policy, Rule):
        check_whole_actions(policy, states)
    bound, rng = policy.on(model), np.random.default_rng(0)
    for state, allowed in zip(states, mask, strict=True):
        action = bound.action(state, rng)
        if not (0 <= action < model.n_actions and allowed[action]):
            raise PolicyError(
                f"the action in state {state.tolist()} is {action}, expected one of "
                f"{np.flatnonzero(allowed).tolist()}: return an admissible action"
            )
    return Report(subject, (f"actions are admissible in {len(states):,} visited states",))


def visited_states(model: FunctionModel) -> IntArray:
    """Return distinct states, initial ones and ones that the uniform policy visits."""
    keys = stream_keys(0)
    rollout = EventRollout.of(model, Uniform().compiled(model))
    later = rollout.state_block(0, _SAMPLE, 0, keys)
    return np.unique(np.vstack([model.sample_initial(0, _SAMPLE, keys[0]), later]), axis=0)


class _NotWholeError(Exception):
    """A number that is not whole was written into a state."""


class _Watched(np.ndarray[Any, np.dtype[np.int64]]):
    """A state that refuses numbers with a fraction."""

    def __setitem__(self, place: Any, value: Any) -> None:
        given = np.asarray(value)
        if (given != np.rint(given)).any():
            raise _NotWholeError(given.tolist())
        super().__setitem__(place, value)


def _check_whole_moves(
    model: EventModel, states: IntArray, action: IntArray, chance: FloatArray
) -> None:
    """Check that `move` writes, and writes whole numbers: the compiled loops cut off fractions."""
    for pair, event in np.argwhere(chance > 0.0).tolist():
        state, chosen = states[pair], int(action[pair])
        given = {
            "state": state.copy().view(_Watched), "action": chosen, "event": event,
            "parameters": model.numbers.given,
        }  # fmt: skip
        try:
            with naming(state):
                check_in_place(model.move, "move", given)
        except _NotWholeError as found:
            raise ModelError(
                f"in state {state.tolist()}, action {chosen} ({model.label(chosen)}): event "
                f"{model.events[event]} writes {found} into the state, expected whole numbers: "
                "round them in move"
            ) from None
