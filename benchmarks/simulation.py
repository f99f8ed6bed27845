"""`evaluate` with two workers against one: 200,000 episodes of 343 steps on 50,000 states.

The policy is the optimal one. The time is that of the whole call, with the layout of the model and
the tail bound, which do not gain from a second worker.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from measure import Line
from second_core import two_against_one

import bellweight as bw

TITLE = "Simulating the queue"
FIGURES = {
    "simulation": "million steps a second, two workers against one",
}

EPISODES, HORIZON = 200_000, 343
REPEATS = 10
TARGET = 1.7


def run() -> list[Line]:
    """Return the one line of this benchmark."""
    model = bw.problems.single_queue()
    policy = bw.exact.optimal(model).policy
    bw.evaluate(model, policy, episodes=4_096, horizon=HORIZON, jobs=2)  # compiles
    evaluate = partial(bw.evaluate, model, policy, EPISODES, horizon=HORIZON, seed=1)
    line = evaluated("simulation", REPEATS, evaluate, TARGET)
    if line.skipped:
        return [line]
    steps = EPISODES * HORIZON / 1e6
    return [replace(line, ours=steps / line.ours, unit="M/s", peer=steps / line.peer)]


def evaluated(
    name: str, repeats: int, evaluate: partial[bw.evaluation.Evaluation], target: float
) -> Line:
    """Compare an evaluation by two workers with the same one by one worker."""

    def differ(two: bw.evaluation.Evaluation, one: bw.evaluation.Evaluation) -> str:
        return "" if one == two else f"two workers give {two.mean}, one {one.mean}"

    two, one = partial(evaluate, jobs=2), partial(evaluate, jobs=1)
    return two_against_one(name, repeats, two, one, target, differ)
