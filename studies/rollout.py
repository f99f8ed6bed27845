"""Rollout of the best static priority on the eight-queue network, beside that priority.

`python -m studies.rollout --out FOLDER --blocks N` simulates both policies on the same random
numbers in blocks of a few episodes. Every block is a file: a run that was cut goes on where it
stopped, and more blocks narrow the interval. The cost is that of the first `--steps` steps.
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
from bellweight.backends import backend_of
from bellweight.common import files
from bellweight.problems.queue_network import QueueNetwork
from bellweight.simulation import episode_costs, mean_and_half_width

BEST_ORDER = (2, 7, 0, 1, 5, 6, 4, 3)
"""The best of the 72 static priorities, queues from 0."""


def block_of(given: argparse.Namespace, number: int) -> dict[str, Any]:
    """Simulate one block; return the costs of both policies and the seconds of a decision."""
    network = QueueNetwork()
    model, base = network.model(), network.static_priority(BEST_ORDER)
    rollout = bw.Rollout(base, paths=given.paths, horizon=given.horizon, clear=given.clear)
    first, last = number * given.episodes, (number + 1) * given.episodes
    costs, seconds = {}, {}
    for name, policy in {"base": bw.Rollout(base, paths=0), "rollout": rollout}.items():
        laid_out = backend_of(model).episodes(policy)
        laid_out.block(first, first + 1, 1, np.zeros(3, dtype=np.uint64))  # compiled before timing
        begun = time.process_time()
        costs[name] = episode_costs(laid_out, first, last, given.steps, given.seed, 1).tolist()
        seconds[name] = time.process_time() - begun
    decisions = given.episodes * given.steps
    return {**costs, "seconds_per_decision": seconds["rollout"] / decisions}


def told(found: Sequence[dict[str, Any]]) -> str:
    """Return the paired difference and the time of a decision in words."""
    base = np.concatenate([block["base"] for block in found])
    changed = np.concatenate([block["rollout"] for block in found])
    mean, width = mean_and_half_width(changed - base)
    each = 1e3 * float(np.mean([block["seconds_per_decision"] for block in found]))
    verdict = "clear of zero" if abs(mean) > width else "not clear of zero"
    return (
        f"{len(base)} episodes: base {base.mean():,.1f}, rollout {changed.mean():,.1f}, paired "
        f"difference {mean:+,.2f} +- {width:,.2f} ({verdict}), {each:.2f} ms of CPU time a decision"
    )


def main(words: Sequence[str] | None = None) -> int:
    """Run the blocks that are missing, then tell what all of them say."""
    parser = argparse.ArgumentParser("python -m studies.rollout", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("rollout"), help="where the blocks go")
    for name, usual in {"blocks": 100, "episodes": 4, "steps": 1_000, "paths": 256, "seed": 0,
                        "horizon": 300}.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--clear", type=float, default=2.0)
    given = parser.parse_args(words)
    settings = {k: v for k, v in vars(given).items() if k not in ("out", "blocks")}
    given.out.mkdir(parents=True, exist_ok=True)
    found = []
    for number in range(given.blocks):
        path = given.out / f"block-{number:04d}.json"
        if path.exists():
            block = json.loads(path.read_text(encoding="utf-8"))
            if block["settings"] != settings:
                print(f"error: {path} is of a run with other settings: choose another folder")
                return 2
        else:
            block = {"settings": settings, **block_of(given, number)}
            files.write_json(path, block)
        found.append(block)
        if number > 0:
            print(told(found), file=sys.stderr, flush=True)
    print(told(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
