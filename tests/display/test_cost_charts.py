"""Charts of costs and bounds."""

from __future__ import annotations

from bellweight.display.cost_charts import Between, gap_chart


def test_a_cost_of_short_episodes_below_the_bound_is_drawn() -> None:
    """A bound holds for all time, so that a few steps may cost far less."""
    rows = [Between("ours", 30.0, 1.0, 220.0), Between("Acting at random", 4000.0, 5.0)]
    shown = gap_chart(rows).x_range
    assert shown is not None
    assert shown[0] < 29.0
    assert 220.0 < shown[1] < 4000.0
