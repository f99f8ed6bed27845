"""The study of the rollout: gains against exact ones, blocks that are resumed."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.problems.queue_network import QueueNetwork
from studies import rollout as study

NET = QueueNetwork([0.15, 0.15], [0.5, 0.2], routes=(None, None), groups=((0, 1),))
OPTIONS = {"discount": 0.9, "initial": (3, 2), "compiled": False}
SLOW_FIRST = NET.static_priority((1, 0))


@pytest.fixture(scope="module")
def paths() -> study.Paths:
    return study.Paths(NET.model(**OPTIONS), SLOW_FIRST)


def test_gains_are_those_of_exact_values(paths: study.Paths) -> None:
    table = NET.model(upper=20, **OPTIONS).to_tabular()
    policy = bw.TablePolicy(np.where(table.states[:, 1] > 0, 1, 0))
    value = bw.exact.policy_value(table, policy).reshape(21, 21)
    exact = 0.9 * (0.5 * (value[2, 2] - value[3, 2]) - 0.2 * (value[3, 1] - value[3, 2]))
    n = 400
    states, first, second = np.tile([3, 2], (n, 1)), np.zeros(n, int), np.ones(n, int)
    found = paths.gains(states, first, second, 60, [1])
    error = found.std(ddof=1) / np.sqrt(n)
    assert abs(found.mean() - exact) < 4.0 * error
    assert exact < -8.0 * error  # not just anything near zero


def test_decisions_that_are_the_bases_own_gain_nothing(paths: study.Paths) -> None:
    given = Namespace(seed=0, steps=10, pairs=2, follow=5)
    same = study.episode(paths, bw.Rollout(SLOW_FIRST, paths=0), 0, given)
    assert same["gain"] == same["decisions_changed"] == 0.0
    other = study.episode(paths, NET.static_priority((0, 1)), 0, given)
    assert other["decisions_changed"] > 0.0
    assert other["gain"] < 0.0


def test_blocks_are_resumed_and_not_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run: list[int] = []

    def episode(paths: Any, policy: Any, number: int, given: Namespace) -> dict[str, float]:
        run.append(number)
        return {"gain": -10.0 - number, "decisions_changed": 0.1, "seconds_per_decision": 0.01}

    monkeypatch.setattr(study, "Paths", lambda model, base: None)
    monkeypatch.setattr(study, "episode", episode)
    words = ["--out", str(tmp_path), "--steps", "7"]
    assert study.main([*words, "--blocks", "2"]) == 0
    assert study.main([*words, "--blocks", "4"]) == 0
    assert run == [0, 1, 2, 3]
    assert "4 episodes: the rollout costs -11.50 +- 2.05 more" in capsys.readouterr().out
    assert study.main([*words, "--blocks", "4", "--seed", "1"]) == 2
    assert "other settings" in capsys.readouterr().out
