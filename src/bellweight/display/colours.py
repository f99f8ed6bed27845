"""Colours for things without an order."""

from __future__ import annotations

from bellweight.display.charts import COLOURS


def colours_of(n: int) -> list[str]:
    """Return n colours: distinct ones while there are enough, then from dark to light."""
    if n <= len(COLOURS):
        return list(COLOURS[:n])
    import numpy as np
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in colormaps["cividis"](np.linspace(0.0, 1.0, n))]
