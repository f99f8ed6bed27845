"""Colours of Okabe and Ito, which people with any colour vision can tell apart."""

from __future__ import annotations

BLACK, BLUE, RED, GREEN = "#000000", "#0072B2", "#D55E00", "#009E73"
PURPLE, ORANGE, SKY = "#CC79A7", "#E69F00", "#56B4E9"
COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY)


def colours_of(n: int) -> list[str]:
    """Return n colours: distinct ones while there are enough, then from dark to light."""
    if n <= len(COLOURS):
        return list(COLOURS[:n])
    import numpy as np
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in colormaps["cividis"](np.linspace(0.0, 1.0, n))]
