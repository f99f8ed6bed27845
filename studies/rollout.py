"""Rollout of the best static priority on the eight-queue network: what its decisions gain.

`python -m studies.rollout --out FOLDER --blocks N` follows the rollout policy for N episodes. Every
episode is a file: a run that was cut goes on where it stopped, and more blocks narrow the interval.

Two policies cost, from a start x_0 on (the performance difference lemma, Kakade and Langford 2002),

    J_rollout - J_base = E[ sum_t discount^t gain(x_t, a_t) ],
    gain(x, a)         = Q_base(x, a) - Q_base(x, base's action),

with the states x_t and actions a_t of the rollout. Where it takes the base's own action the gain is
zero. Elsewhere the gain is simulated here: after either action the base goes on, both on the same
random numbers, none of those that the rollout decided by. So nothing is won by luck: a decision
that was wrong counts as a loss. The difference of two whole episodes has the same mean and an
interval many times as wide: later random numbers do not belong to the same jobs any more.

The simulation is plain NumPy over many pairs at once, and shares no code with the rollout.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bellweight as bw
from bellweight.common import files
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.streams import stream_keys
from bellweight.policies import Policy
from bellweight.problems.queue_network import QueueNetwork
from bellweight.reproduce.network.runs import OTHER_TIE_ORDER
from bellweight.simulation import mean_and_half_width

_START, _EVENTS, _GAINS = range(3)  # the streams of an episode


class Paths:
    """A network with jumps and a table of chances, simulated for many states at once."""

    def __init__(self, model: bw.EventModel, base: Policy) -> None:
        self.model, self.base = model, base.on(model)
        assert model.jumps is not None
        assert model.event_places is not None
        self.jumps, self.places = model.jumps, model.event_places
        self.chances = np.asarray(model.probability)

    def after(self, states: IntArray, actions: IntArray, draws: FloatArray) -> IntArray:
        """Return the next states; a number means the same event whatever the action."""
        u = draws[:, None]
        happens = (u >= self.places) & (u < self.places + self.chances[actions])
        event = happens.argmax(axis=1)
        moved = states + self.jumps[event]
        stays = ~happens.any(axis=1) | (moved < 0).any(axis=1)
        return np.where(stays[:, None], states, moved)

    def gains(
        self, states: IntArray, actions: IntArray, instead: IntArray, steps: int, seed: Any
    ) -> FloatArray:
        """Return for each state a simulated gain (n,) of an action against another one.

        The cost of a step is the number of jobs. A pair that meets stays together.
        """
        rng, discount = np.random.default_rng(seed), self.model.discount
        found = np.zeros(len(states))
        draws = rng.random(len(states))
        first, second = self.after(states, actions, draws), self.after(states, instead, draws)
        place = np.arange(len(states))
        for step in range(1, steps + 1):
            apart = (first != second).any(axis=1)
            first, second, place = first[apart], second[apart], place[apart]
            if len(place) == 0:
                break
            found[place] += discount**step * (first - second).sum(axis=1)
            draws = rng.random(len(place))
            first = self.after(first, self.base.actions(first), draws)
            second = self.after(second, self.base.actions(second), draws)
        return found


def episode(
    paths: Paths, rollout: Policy, number: int, given: argparse.Namespace
) -> dict[str, Any]:
    """Follow the rollout for one episode; return what its decisions gain, and their time."""
    key = stream_keys(given.seed, _START)[0]
    state = paths.model.sample_initial(number, number + 1, key)
    draws = np.random.default_rng([given.seed, _EVENTS, number]).random(given.steps)
    acting = rollout.on(paths.model)
    left: list[tuple[int, IntArray, int, int]] = []
    seconds = 0.0
    for step, draw in enumerate(draws):
        begun = time.process_time()
        action = int(acting.action(state[0]))
        seconds += time.process_time() - begun
        usual = int(paths.base.action(state[0]))
        if action != usual:
            left.append((step, state[0], action, usual))
        state = paths.after(state, np.array([action]), np.array([draw]))
    found = np.zeros(0)
    if left:
        when, where, chosen, usual_ones = (
            np.repeat(np.array(column), given.pairs, axis=0) for column in zip(*left, strict=True)
        )
        seed = [given.seed, _GAINS, number]
        gains = paths.gains(where, chosen, usual_ones, given.follow, seed)
        found = paths.model.discount**when * gains / given.pairs
    return {
        "gain": float(found.sum()),
        "decisions_changed": len(left) / given.steps,
        "seconds_per_decision": seconds / given.steps,
    }


def told(found: Sequence[dict[str, Any]]) -> str:
    """Return the gain and the time of a decision in words."""
    gains = np.array([block["gain"] for block in found])
    mean, width = mean_and_half_width(gains)
    each = 1e3 * float(np.mean([block["seconds_per_decision"] for block in found]))
    share = 100.0 * float(np.mean([block["decisions_changed"] for block in found]))
    verdict = "clear of zero" if abs(mean) > width else "not clear of zero"
    return (
        f"{len(gains)} episodes: the rollout costs {mean:+,.2f} +- {width:,.2f} more than the base "
        f"({verdict}), changes {share:.1f} % of the decisions, {each:.2f} ms of CPU time each"
    )


def main(words: Sequence[str] | None = None) -> int:
    """Run the blocks that are missing, then tell what all of them say."""
    parser = argparse.ArgumentParser("python -m studies.rollout", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("rollout"), help="where the blocks go")
    for name, usual in {"blocks": 30, "steps": 1_000, "paths": 256, "seed": 0, "horizon": 300,
                        "pairs": 16, "follow": 1_500}.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--clear", type=float, default=2.0)
    given = parser.parse_args(words)
    settings = {k: v for k, v in vars(given).items() if k not in ("out", "blocks")}
    given.out.mkdir(parents=True, exist_ok=True)
    network = QueueNetwork()
    base = network.static_priority(OTHER_TIE_ORDER)
    rollout = bw.Rollout(base, paths=given.paths, horizon=given.horizon, clear=given.clear)
    paths = Paths(network.model(), base)
    found = []
    for number in range(given.blocks):
        path = given.out / f"block-{number:04d}.json"
        if path.exists():
            block = json.loads(path.read_text(encoding="utf-8"))
            if block["settings"] != settings:
                print(f"error: {path} is of a run with other settings: choose another folder")
                return 2
        else:
            block = {"settings": settings, **episode(paths, rollout, number, given)}
            files.write_json(path, block)
        found.append(block)
        if number > 0:
            print(told(found), file=sys.stderr, flush=True)
    print(told(found) if len(found) > 1 else "one block has no interval: ask for more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
