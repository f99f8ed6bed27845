"""The figures of the single queue and of the network: what is drawn, and what it says."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight import reproduce
from bellweight.display.network_figure import Node, Outside, network_figure
from bellweight.display.panels import Panel, panel_figure
from bellweight.exact.occupancy import exact_occupancy
from bellweight.problems import QueueNetwork
from bellweight.reproduce import Settings, Wanted
from bellweight.reproduce.network.figure_network import NetworkFigure
from bellweight.reproduce.paper import TABLE1
from bellweight.reproduce.queue import curves, figure_occupancy, figure_queue
from bellweight.reproduce.queue.curves import Column
from bellweight.reproduce.queue.figure_occupancy import OccupancyFigure, elsewhere
from bellweight.reproduce.queue.figure_queue import QueueFigure
from bellweight.reproduce.verdicts import Word

DIFFERS = "Geometric: DIA (Random) is accurate where its policy spends its time"


def reproduced(name: str) -> Any:
    artefact = reproduce.find(name)
    return artefact.reproduce(artefact.settings(Wanted(quick=True)))


@pytest.fixture(scope="module")
def queue() -> QueueFigure:
    """The figure at full size; everything in it is exact."""
    return reproduced("figure-queue")


@pytest.fixture(scope="module")
def occupancy(queue: QueueFigure) -> OccupancyFigure:
    return OccupancyFigure(queue.columns, settings=Settings())


def column(figure: QueueFigure | OccupancyFigure, initial: str) -> Column:
    return next(column for column in figure.columns if column.initial == initial)


def swapped(found: Column, one: str, other: str) -> Column:
    """A column with the names of two policies exchanged."""
    names = {one: other, other: one}
    curves = tuple(replace(c, policy=names.get(c.policy, c.policy)) for c in found.curves)
    return replace(found, curves=curves)


# Cost-to-go and actions.


def test_every_policy_of_table_1_is_there(queue: QueueFigure) -> None:
    assert queue.complete
    for found in queue.columns:
        assert [curve.policy for curve in found.curves] == list(TABLE1[found.initial])
        assert len(found.window) == 61
    assert [int(found.window[0]) for found in queue.columns] == [0, 0, 49_939]
    assert queue.columns[2].window[-1] == 49_999


def test_thresholds_are_those_of_the_policies(queue: QueueFigure) -> None:
    changes = figure_queue.changes
    optimal = [(0, 0.0), (1, 0.2), (2, 0.4), (28, 0.6), (49_998, 0.4)]
    for found in queue.columns:
        assert np.array(changes(found["Optimal"])) == pytest.approx(np.array(optimal))
        constant = np.array(changes(found["Fixed 0.999"]))
        assert constant == pytest.approx(np.array([(0, 0.0), (1, 0.6)]))
    empty = column(queue, "empty")["PIA"]
    assert np.array(changes(empty)[:3]) == pytest.approx(np.array([(0, 0.0), (1, 0.2), (3, 0.4)]))


def test_approximations_are_below_and_policies_above_the_optimum(queue: QueueFigure) -> None:
    for found in queue.columns:
        best = found["Optimal"].true
        scale = 1e-6 * best.max()
        for curve in found.curves:
            # Beyond the states with weight a cubic goes far down; its rounding is relative to that.
            allowed = scale + 1e-9 * np.abs(curve.approximate)
            assert (curve.approximate <= best + allowed).all()
            assert (curve.true >= best - scale).all()


def test_the_papers_statements_on_accuracy_are_judged(queue: QueueFigure) -> None:
    words = {entry.what: entry.verdict.word for entry in queue.compared()}
    assert len(words) == 8
    assert {what for what, word in words.items() if word is not Word.MATCHES} == {DIFFERS}
    verdict = next(e.verdict for e in queue.compared() if e.what == DIFFERS)
    assert "Fixed 0.9 is closer" in verdict.reason
    assert "over the weights of DIA (Random) it is the other way round" in verdict.reason


def test_the_statements_fail_when_the_numbers_do(queue: QueueFigure) -> None:
    columns = [swapped(found, "Fixed 0.9", "Fixed 0.999") for found in queue.columns]
    words = [entry.verdict.word for entry in figure_queue.compared(columns)]
    assert words[:2] == [Word.DIFFERS, Word.DIFFERS]
    empty = swapped(column(queue, "empty"), "PIA", "Fixed 0.999")
    entry = figure_queue.compared([empty])[2]
    assert entry.verdict.word is Word.DIFFERS
    assert "over the weights of PIA it is the other way round" in entry.verdict.reason
    # Without that excuse there is no reason to give.
    curves = tuple(replace(curve, weights=curve.occupancy) for curve in empty.curves)
    entry = figure_queue.compared([replace(empty, curves=curves)])[2]
    assert "no reason is known" in entry.verdict.reason


def test_the_drawn_numbers_are_in_the_files(queue: QueueFigure, tmp_path: Path) -> None:
    paths = {path.suffix: path for path in reproduce.write(queue, tmp_path)}
    assert set(paths) == {".json", ".csv", ".txt", ".tex", ".png", ".pdf"}
    rows = list(csv.DictReader(paths[".csv"].read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 3 * 7 * 61
    row = next(r for r in rows if (r["initial"], r["policy"], r["state"]) == ("empty", "PIA", "7"))
    curve = column(queue, "empty")["PIA"]
    assert float(row["true"]) == curve.true[7]
    assert float(row["approximate"]) == curve.approximate[7]
    assert "0.4 from 3" in paths[".txt"].read_text(encoding="utf-8")


def test_the_panels_show_what_the_rows_say(queue: QueueFigure) -> None:
    figure = queue.figure()
    axes = figure.axes
    assert len(axes) == 9
    shown = curves.DRAWN
    legend = figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == list(shown)
    assert all(len(panel.lines) == len(shown) for panel in axes)
    line = axes[4].lines[3]  # second row, Empty-System, PIA
    assert list(line.get_ydata()) == list(column(queue, "empty")["PIA"].true[:61])
    assert [panel.get_ylabel() for panel in axes[::3]] == [
        "approximate cost-to-go",
        "true cost-to-go",
        "service rate (per period)",
    ]
    # Weights at the bottom leave the approximation at the top far below what is drawn.
    assert "Fixed 0.9: below" in axes[2].texts[0].get_text()
    assert not axes[5].texts


# Occupancies.


def test_occupancies_are_distributions_and_distances_shares(occupancy: OccupancyFigure) -> None:
    for found in occupancy.columns:
        assert elsewhere(found, "Optimal") == 0.0
        for curve in found.curves:
            assert curve.occupancy.sum() == pytest.approx(1.0, abs=1e-9)
            assert 0.0 <= elsewhere(found, curve.policy) <= 1.0
    model = bw.problems.single_queue(initial="empty")
    constant = exact_occupancy(model, bw.TablePolicy(np.minimum(np.arange(50_000), 1) * 3))
    weights = column(occupancy, "empty")["Fixed 0.999"].occupancy
    assert np.abs(weights - constant.weights).sum() < 1e-9


def test_the_papers_statements_on_occupancies_hold_but_for_one(occupancy: OccupancyFigure) -> None:
    words = [entry.verdict.word for entry in occupancy.compared()]
    # From an empty queue the adaptive methods spend an eighth of their time elsewhere.
    assert words == [Word.MATCHES, Word.MATCHES, Word.MATCHES, Word.DIFFERS, Word.MATCHES]
    empty = column(occupancy, "empty")
    assert elsewhere(empty, "PIA") == pytest.approx(0.1292, abs=1e-4)
    assert elsewhere(column(occupancy, "reverse"), "Fixed 0.9") == pytest.approx(0.645, abs=1e-3)


def test_the_statements_on_occupancies_can_fail(occupancy: OccupancyFigure) -> None:
    exchanged = [swapped(found, "Fixed 0.999", "PIA") for found in occupancy.columns]
    words = [entry.verdict.word for entry in figure_occupancy.compared(exchanged)]
    assert words == [Word.MATCHES, Word.MATCHES, Word.DIFFERS, Word.DIFFERS, Word.MATCHES]
    # From an empty queue, short queues are all that is ever visited.
    here = {found.initial: found for found in occupancy.columns}
    full = replace(here["empty"], initial="reverse")
    entries = figure_occupancy.compared([here["geometric"], here["empty"], full])
    assert entries[-1].verdict.word is Word.DIFFERS
    # Fixed 0.9 is far from the optimum nowhere but in the full system.
    assert entries[0].verdict.word is Word.DIFFERS


def test_the_occupancy_figure_has_three_log_panels(occupancy: OccupancyFigure) -> None:
    axes = occupancy.figure().axes
    assert [panel.get_yscale() for panel in axes] == ["log"] * 3
    assert [panel.get_title(loc="left") for panel in axes] == [
        "Geometric",
        "Empty-System",
        "Reverse-Geometric",
    ]


# The network.


def test_the_network_is_the_papers() -> None:
    found = reproduced("figure-network")
    assert [entry.verdict.word for entry in found.compared()] == [Word.MATCHES] * 4
    assert [row["next"] for row in found.rows().rows] == [
        "2",
        "3",
        "out",
        "5",
        "6",
        "7",
        "8",
        "out",
    ]


def test_another_network_is_noticed() -> None:
    groups = ((0, 2), (1, 5), (3, 4, 6, 7))
    other = NetworkFigure(QueueNetwork(groups=groups), 0.99, 44, settings=Settings())
    words = [entry.verdict.word for entry in other.compared()]
    assert words == [Word.DIFFERS, Word.MATCHES, Word.DIFFERS, Word.DIFFERS]


def test_the_picture_names_every_queue_and_draws_every_route() -> None:
    found = reproduced("figure-network")
    axes = found.figure().axes[0]
    texts = [text.get_text() for text in axes.texts]
    assert [text for text in texts if text.isdigit()] == [str(i) for i in range(1, 9)]
    assert texts.count("done") == 2
    assert [text for text in texts if text.startswith("server")] == [
        f"server {k}" for k in (1, 2, 3)
    ]
    arrows = [patch for patch in axes.patches if type(patch).__name__ == "FancyArrowPatch"]
    assert len(arrows) == 6 + 2 + 2
    assert "shared" not in found.caption
    assert "8 queues" in found.caption


# Drawing plain data.


def test_a_network_is_drawn_from_names_alone() -> None:
    nodes = [Node("a", 0, 0), Node("b", 1, 0, "0.5", note_left=True)]
    ways = [Outside("a", "left", "in", enters=True), Outside("b", "right", "out", enters=False)]
    axes = network_figure(nodes, [("a", "b")], ways, {"one": ["a"], "two": ["b"]}).axes[0]
    assert {text.get_text() for text in axes.texts} >= {"a", "b", "0.5", "in", "out", "one", "two"}


def test_steps_do_not_hide_each_other() -> None:
    flat = np.zeros(10)
    panel = Panel("t", "x", "y", np.arange(10), {"a": flat, "b": flat}, levels=(0.0, 1.0))
    lines = panel_figure([[panel]]).axes[0].lines
    assert lines[0].get_ydata()[0] != lines[1].get_ydata()[0]
    assert lines[0].get_marker() != lines[1].get_marker()
    assert lines[0].get_color() != lines[1].get_color()


@pytest.mark.parametrize("name", ["figure-queue", "figure-occupancy", "figure-network"])
def test_wrong_settings_are_refused(name: str) -> None:
    with pytest.raises(bw.errors.ArgumentError, match=f"episodes does not go with {name}"):
        reproduce.find(name).settings(Wanted(episodes=9))
