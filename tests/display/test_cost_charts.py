"""Charts of costs and bounds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from bellweight.display.charts import Chart, Line, palette_of
from bellweight.display.colours import COLOURS
from bellweight.display.cost_charts import Between, gap_chart
from bellweight.display.drawing import draw


def test_a_cost_of_short_episodes_below_the_bound_is_drawn() -> None:
    """A bound holds for all time, so that a few steps may cost far less."""
    rows = [Between("ours", 30.0, 1.0, 220.0), Between("Acting at random", 4000.0, 5.0)]
    shown = gap_chart(rows).x_range
    assert shown is not None
    assert shown[0] < 29.0
    assert 220.0 < shown[1] < 4000.0


def test_a_gap_that_is_rounding_does_not_set_the_scale() -> None:
    found = [Between("ours", 100.0, None, 100.0 - 1e-11), Between("ours too", 100.0, None, 99.9999)]
    for rows in (found, [*found, Between("Acting at random", 4000.0)]):
        low, high = gap_chart(rows).x_range or (0.0, 0.0)
        assert 0.05 < high - low < 1.0
        assert low < 99.9999
        assert high > 100.0


def test_what_comes_back_has_the_first_colours() -> None:
    """The policy and the program, which are in many charts, are told apart best."""
    x = np.arange(4.0)
    once = Chart("a", "", "", "", (Line("policy", x, x), Line("once", x, x)), "")
    often = Chart("b", "", "", "", (Line("policy", x, x), Line("program", x, x)), "")
    palette = palette_of([once, often, often])
    found = [palette.of(name).colour for name in ("policy", "program", "once")]
    assert found == list(COLOURS[:3])


def test_no_name_and_no_key_is_cut_in_a_picture() -> None:
    """Long names take several lines, and the key stays inside."""
    long = "Acting at random (the target)"
    figure = draw([gap_chart([Between("ours", 30_000.0, 1.0, 220.0), Between(long, 40_000.0)])])
    figure.canvas.draw()
    (axes,) = figure.axes
    assert long in {tick.get_text().replace("\n", " ") for tick in axes.get_yticklabels()}
    ticks = [tick.get_window_extent() for tick in axes.get_xticklabels()]
    assert all(a.x1 < b.x0 for a, b in pairwise(ticks))
    key = axes.get_legend()
    assert key is not None
    box = key.get_window_extent()
    assert box.y1 <= axes.xaxis.label.get_window_extent().y0
    assert box.x0 >= 0.0
    assert box.x1 <= figure.bbox.x1
