"""Simulating a greedy policy of eight queues: the general code against code written for them only.

One thread each, the same quadratic value function, the same random numbers, the same costs. The
second line is the same simulation through `evaluate` with two workers against one.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from hand_network import greedy_costs
from measure import Line, take_turns
from simulation import evaluated

import bellweight as bw
from bellweight.common.streams import stream_keys
from bellweight.evaluation.evaluate import rollout_of

TITLE = "Simulating the network"
FIGURES = {
    "network": "million steps a second, against code for this network only",
    "network.workers": "`evaluate`, two workers against one",
}

EPISODES, HORIZON, REPEATS = 1_024, 1_379, 7


def run() -> list[Line]:
    """Return the two lines of this benchmark."""
    model = bw.problems.queue_network()
    policy, linear, quadratic = value_function()
    return [against_hand(model, policy, linear, quadratic), two_workers(model, policy)]


def value_function() -> tuple[bw.Greedy, np.ndarray, np.ndarray]:
    """Return the greedy policy of some convex quadratic function, and its parts."""
    rng = np.random.default_rng(0)
    square = rng.random((8, 8))
    quadratic = 0.5 * (square + square.T) + 3.0 * np.eye(8)
    linear = 20.0 * rng.random(8)
    basis = bw.Polynomial(2)
    coef = np.zeros(len(basis.words(8)))
    for k, word in enumerate(basis.words(8)):
        if len(word) == 1:
            coef[k] = linear[word[0]]
        elif len(word) == 2:
            coef[k] = quadratic[word] * (1.0 if word[0] == word[1] else 2.0)
    return bw.Greedy(basis=basis, coef=coef), linear, quadratic


def against_hand(
    model: bw.EventModel, policy: bw.Greedy, linear: np.ndarray, quadratic: np.ndarray
) -> Line:
    """Compare one thread of each."""
    keys = stream_keys(1)
    rollout = rollout_of(model, policy)
    costs = np.zeros(EPISODES)

    def by_hand() -> np.ndarray:
        greedy_costs(0, EPISODES, HORIZON, keys, model.discount, linear, quadratic, costs)
        return costs

    general = partial(rollout.block, 0, EPISODES, HORIZON, keys)
    general(), by_hand()  # compile
    (ours, found), (peer, expected) = take_turns(REPEATS, general, by_hand)
    steps = EPISODES * HORIZON / 1e6
    error = float(np.abs(found - expected).max())
    return Line(
        "network",
        steps / ours,
        "M/s",
        peer=steps / peer,
        ratio=peer / ours,
        target=0.25,
        notes=("million greedy steps per second, one thread; the peer is written by hand",),
        wrong="" if error <= 1e-9 * expected.max() else f"costs differ by {error:.3g}",
    )


def two_workers(model: bw.EventModel, policy: bw.Greedy) -> Line:
    """Compare two workers with one."""
    evaluate = partial(bw.evaluate, model, policy, 8 * EPISODES, horizon=HORIZON, seed=1)
    return evaluated("network.workers", 4, evaluate, 1.7)
