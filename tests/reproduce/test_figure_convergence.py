"""The convergence figure: its curves, its verdicts and its picture."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from table2_small import TINY

import bellweight as bw
from bellweight import reproduce
from bellweight.display.figures import convergence_figure
from bellweight.reproduce import Wanted
from bellweight.reproduce.network.figure_convergence import ConvergenceFigure, FigureSettings
from bellweight.reproduce.network.runs import (
    Runner,
)

# The figure.

ARTEFACT = reproduce.find("figure-convergence")
FIGURE = FigureSettings(episodes=40, states=200, iterations=4, seed=2)


@pytest.fixture(scope="module")
def figure() -> ConvergenceFigure:
    return ARTEFACT.reproduce(FIGURE)


def test_the_curves_are_successive_differences_of_the_moments(figure: ConvergenceFigure) -> None:
    assert [curve.method for curve in figure.curves] == ["PIA", "DIA (Random)", "DIA (0.9)"]
    runner = Runner(replace(TINY, states=(150,), occupancy_episodes=40, max_iterations=5, seed=2))
    longer = runner.solve(1, 200, bw.PIA(), lambda _: None, to_the_end=True)
    steps = [entry.moment_step for entry in longer.history[1:]]
    assert figure.curves[0].differences == pytest.approx(steps[:4], rel=1e-9)
    assert all(step > 0.0 for step in figure.curves[0].differences)
    # DIA follows its target: the second iteration changes nothing at all.
    assert figure.curves[1].differences[1:] == (0.0,)
    assert figure.curves[1].stands_still == 2
    assert figure.curves[0].noise > 0.0


def test_what_the_paper_says_of_the_curves_is_judged(figure: ConvergenceFigure) -> None:
    def words(*differences: float) -> dict[str, str]:
        curves = tuple(
            replace(curve, differences=differences, noise=1.0) for curve in figure.curves
        )
        return {e.what: e.verdict.word for e in replace(figure, curves=curves).compared()}

    steady = "DIA (Random) moves steadily to a fixed point"
    assert words(5.0, 3.0, 4.0) == {
        "PIA oscillates": "matches",
        steady: "differs",
        "DIA (0.9) moves steadily to a fixed point": "differs",
    }
    assert words(5.0, 3.0, 0.0)["PIA oscillates"] == "differs"
    assert words(5.0, 3.0, 0.0)[steady] == "matches"
    assert words(5.0, 4.0, 3.0)[steady] == "differs"
    assert {e.verdict.word for e in figure.compared()} == {"matches"}


def test_the_figure_is_written_and_always_the_same(
    figure: ConvergenceFigure, tmp_path: Path
) -> None:
    paths = reproduce.write(figure, tmp_path)
    assert [path.suffix for path in paths] == [".json", ".csv", ".txt", ".tex", ".png", ".pdf"]
    assert r"\includegraphics[width=\linewidth]{figure-convergence}" in paths[3].read_text(
        encoding="utf-8"
    )
    assert paths[4].read_bytes().startswith(b"\x89PNG")
    assert paths[5].read_bytes().startswith(b"%PDF")
    first = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in reproduce.write(figure, tmp_path)] == first
    rows = list(csv.DictReader(paths[1].read_text(encoding="utf-8").splitlines()))
    assert [float(row["difference"]) for row in rows if row["method"] == "PIA"] == list(
        figure.curves[0].differences
    )
    assert "exactly zero" in paths[2].read_text(encoding="utf-8")
    assert "stands still to the last bit from iteration 2" in paths[2].read_text(encoding="utf-8")


def test_exact_zeros_have_a_line_of_their_own() -> None:
    drawn = convergence_figure({"A": [100.0, 0.5, 0.0], "B": [30.0, 20.0, 10.0]}, noise=3.0)
    axes = drawn.axes[0]
    assert axes.get_yscale() == "log"
    assert axes.get_ylabel()
    assert axes.get_xlabel() == "iteration $m$"
    heights = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
    assert (heights > 0.0).all()
    labels = {tick.get_text(): tick.get_position()[1] for tick in axes.get_yticklabels()}
    floor = labels["exactly 0"]
    assert floor < 0.5 / 10.0
    hollow = [
        line
        for line in axes.lines
        if line.get_markerfacecolor() == "white" and len(line.get_xdata())
    ]
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in hollow] == [([3], [floor])]
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert named == ["simulation noise", "A", "B"]
    markers = {line.get_marker() for line in axes.lines} - {"None", "", " "}
    assert len(markers) == 2


def test_a_figure_without_zeros_has_no_such_line() -> None:
    axes = convergence_figure({"A": [3.0, 2.0]}).axes[0]
    assert "exactly 0" not in [tick.get_text() for tick in axes.get_yticklabels()]


def test_the_figure_takes_one_number_of_states() -> None:
    with pytest.raises(bw.errors.ArgumentError, match="one number"):
        ARTEFACT.settings(Wanted(states=(1, 2)))
    found = ARTEFACT.settings(Wanted(states=(300,), quick=True, episodes=50))
    assert (found.states, found.episodes, found.iterations) == (300, 50, 8)
