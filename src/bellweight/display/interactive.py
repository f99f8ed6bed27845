"""Charts as interactive figures of a web page: Plotly draws them, the page stays self-contained.

The numbers stand in the page as JSON, `charts.js` draws them in the colours of the page, light or
dark, and answers the arrow keys. Every figure has a sentence and a table for those who do not see
it; with scripts switched off these two are what is left.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from bellweight.display.charts import Chart, HeatMap, Line, Picture, name_of
from bellweight.display.colours import NEUTRAL, Palette
from bellweight.display.markup import prose, to_html
from bellweight.display.page import asset
from bellweight.display.table import Table, short_text

_DASHES = ("solid", "dash", "dashdot", "longdash")
_SWATCH_DASHES = ("", "6 3", "7 3 2 3", "11 4")
_SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
_DIGITS = 9
_MOST_LETTERS = 40
_LETTERS_A_LINE = 17  # of a name beside a narrow chart; longer ones are broken into lines
_LETTERS_ON_WIDE = 30  # the same where there is room
_LETTERS_BELOW = 60  # of all names below a chart; with more they are turned
_MOST_NAMES = 30
_MOST_HEIGHTS = 12  # names beside steps
_DECADES = 2.5, 7.0  # of a log axis on which every power of ten is named, and nothing else
_MANY = 60
_FIXED_SPACE = "\N{NO-BREAK SPACE}"
_ROW, _FRAME, _HEIGHT = 46, 80, 380  # pixels: a named row, what is around rows, other charts


def figure(picture: Picture, number: int, palette: Palette, *, headed: bool = True) -> str:
    """Return the place of a chart in a page, with its key and its text alternatives.

    With fewer than three points it is the sentence alone.
    """
    if not picture.is_worth_drawing:
        return f"<p>{prose(picture.alt)}</p>\n" if picture.alt else ""
    heading = f"<h3>{escape(picture.title)}</h3>\n" if headed else ""
    return (
        f'<figure id="chart-{number}" data-key="{escape(picture.key)}">\n{heading}'
        f"{_key(picture, palette)}"
        f'<div class="chart" data-chart="{number}" data-height="{_height(picture)}" '
        f'style="min-height:{_height(picture)}px" tabindex="0" role="application" '
        f'aria-roledescription="chart" aria-label="{escape(_label(picture), quote=True)}"></div>\n'
        f"{_caption(picture)}"
        f"{folded('Numbers', picture.numbers())}</figure>\n"
    )


def _caption(picture: Picture) -> str:
    """Return the sentence below; that of rows of numbers is read out, not shown twice."""
    if not picture.alt:
        return ""
    rows = isinstance(picture, Chart) and any(line.marks for line in picture.lines)
    hidden = ' class="spoken"' if rows else ""
    return f"<figcaption{hidden}>{prose(picture.alt)}</figcaption>\n"


def folded(words: str, table: Table) -> str:
    """Return a table that opens when these words are chosen."""
    return f"<details><summary>{escape(words)}</summary>{to_html(table)}</details>\n"


def numbers(pictures: Sequence[Picture], palette: Palette) -> str:
    """Return the element with the numbers of all charts, in the order of their places."""
    specs = [_chart(p, palette) if isinstance(p, Chart) else _map(p, palette) for p in pictures]
    # "<" never occurs, so that no text can end the element.
    text = json.dumps(specs, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="charts">{text}</script>\n'


def scripts() -> tuple[str, ...]:
    """Return what draws the charts: Plotly, then our own few lines."""
    from plotly.offline import get_plotlyjs

    return (get_plotlyjs(), asset("charts.js"))


def _label(picture: Picture) -> str:
    return f"{picture.title}. {picture.alt} Left and right arrow keys move along it."


def _height(picture: Picture) -> int:
    if isinstance(picture, Chart) and picture.y_shown is not None:
        low, high = picture.y_shown
        tall = _FRAME + round(_ROW * (high - low))
        return min(_HEIGHT, tall) if _is_steps(picture) else tall
    if isinstance(picture, HeatMap):
        return min(_HEIGHT, _FRAME + _ROW * max(3, len(picture.y)))
    return _HEIGHT


def _is_steps(chart: Chart) -> bool:
    """Whether the names beside the chart are heights, not rows with a message each."""
    return all(line.style == "steps" for line in chart.lines)


def _key(picture: Picture, palette: Palette) -> str:
    """Return what each colour and line means; a chart of one series needs no key."""
    if isinstance(picture, HeatMap):
        names = picture.z_names or ()
        items = [(_patch(palette.action(name)), name) for name in names]
        return _listed(items, buttons=False)
    if len(picture.lines) < 2:
        return ""
    items = [(_swatch(line, palette), line.label) for line in picture.lines]
    return _listed(items, buttons=True)


def _listed(items: Sequence[tuple[str, str]], *, buttons: bool) -> str:
    if not items:
        return ""
    words = [
        f'<li><button type="button" aria-pressed="true" data-line="{number}">{mark}'
        f"{escape(_cut(text))}</button></li>"
        if buttons
        else f"<li>{mark}{escape(_cut(text))}</li>"
        for number, (mark, text) in enumerate(items)
    ]
    return f'<ul class="key">{"".join(words)}</ul>\n'


def _swatch(line: Line, palette: Palette) -> str:
    """Return a piece of a line as it is drawn, with its marker."""
    colour, place = _look(line, palette)
    if line.marks:
        colour = "currentColor"
    stroke = {"band": 8, "rule": 2}.get(line.style, 2.5)
    dash = _SWATCH_DASHES[place % len(_SWATCH_DASHES)] if line.owner is not None else ""
    dash = "2 3" if line.style == "rule" else dash
    faint = ' opacity="0.45"' if line.style == "band" else ""
    if line.style == "points":
        shape = f'<circle cx="13" cy="7" r="4" fill="{colour}"/>'
    elif line.style == "ticks":
        shape = f'<path d="M13 1V13" stroke="{colour}" stroke-width="3"/>'
    else:
        shape = (
            f'<path d="M0 7H26" stroke="{colour}" stroke-width="{stroke}" '
            f'stroke-dasharray="{dash}"{faint}/>'
        )
    return f'<svg width="26" height="14" aria-hidden="true">{shape}</svg>'


def _patch(colour: str) -> str:
    return (
        '<svg width="14" height="14" aria-hidden="true">'
        f'<rect width="14" height="14" fill="{colour}"/></svg>'
    )


def _look(line: Line, palette: Palette) -> tuple[str, int]:
    if line.owner is None:
        return NEUTRAL, 0
    look = palette.of(line.owner)
    return look.colour, look.place


def _chart(chart: Chart, palette: Palette) -> dict[str, Any]:
    layout: dict[str, Any] = {
        "xaxis": _axis(chart.x_label, chart.x_names, chart.x_shown, names_x=True),
        "yaxis": _axis(chart.y_label, chart.y_names, chart.y_range, names_x=False),
        "showlegend": False,
    }
    if chart.x_names is None and _few_whole(chart):
        layout["xaxis"]["dtick"] = 1
    if chart.log_y:
        layout["yaxis"]["type"] = "log"
        layout["yaxis"]["exponentformat"] = "power"
        if _DECADES[0] <= _decades(chart) <= _DECADES[1]:
            layout["yaxis"]["dtick"] = 1  # powers of ten alone
    if chart.y_shown is not None:
        layout["yaxis"]["range"] = list(chart.y_shown)
        layout["annotations"] = [_arrow(*far) for far in chart.beyond()]
    spec = {"data": [_trace(line, chart, palette) for line in chart.lines], "layout": layout}
    if chart.y_names is not None:
        places = chart.y_places(_MOST_HEIGHTS if _is_steps(chart) else _MOST_NAMES)
        named = [chart.y_names[place] for place in places]
        layout["yaxis"]["tickvals"] = list(places)
        layout["yaxis"]["ticktext"] = [_broken(name, _LETTERS_A_LINE) for name in named]
        spec["wide"] = [_broken(name, _LETTERS_ON_WIDE) for name in named]
    return spec


def _decades(chart: Chart) -> float:
    """Return how many powers of ten the heights of a log axis span."""
    heights = np.concatenate([line.y[line.y > 0.0] for line in chart.lines])
    return float(np.log10(heights.max() / heights.min())) if len(heights) else 0.0


def _arrow(value: float, row: float, right: bool) -> dict[str, Any]:
    """Return the note at the edge for a number that lies beyond it."""
    text = short_text(value)
    return {
        "x": 1 if right else 0, "xref": "paper", "y": row, "yref": "y", "showarrow": False,
        "text": f"{text} ▶" if right else f"◀ {text}", "xanchor": "right" if right else "left",
    }  # fmt: skip


def _few_whole(chart: Chart) -> bool:
    """Return whether the positions are a few whole numbers, each of which gets a tick."""
    ends = [end for line in chart.lines if len(line.x) for end in (line.x.min(), line.x.max())]
    if not ends:
        return False
    whole = all(np.array_equal(line.x, np.round(line.x)) for line in chart.lines)
    return whole and max(ends) - min(ends) <= 12


def _trace(line: Line, chart: Chart, palette: Palette) -> dict[str, Any]:
    colour, place = _look(line, palette)
    marks = [palette.of(name).colour for name in line.marks]
    trace: dict[str, Any] = {
        "type": "scatter",
        "name": _text(line.label),
        "x": _plain(line.x),
        "y": _plain(line.y),
        "mode": "markers" if line.style in ("points", "ticks") else "lines",
        "line": {"color": colour, "width": 2, "dash": _DASHES[place % len(_DASHES)]},
        "marker": {
            "color": marks or colour,
            "size": 10 if len(line.x) <= _MANY else 4,
            "symbol": "circle" if line.marks else _SYMBOLS[place % len(_SYMBOLS)],
        },
        "hovertemplate": _hover(line, chart),
    }
    if line.style == "steps":
        trace["line"]["shape"] = "hv"
    if line.style == "rule":
        trace["line"]["dash"] = "dot"
    if line.style == "ticks":
        trace["marker"] = {"symbol": "line-ns-open", "size": 18, "color": colour,
                           "line": {"width": 3, "color": colour}}  # fmt: skip
    if line.style == "band":
        trace |= {"line": {"color": colour, "width": 12}, "opacity": 0.45, "connectgaps": False}
    elif line.is_marked:
        trace["mode"] = "lines+markers"
    if line.error is not None:
        trace["error_y" if chart.y_names is None else "error_x"] = {
            "type": "data", "array": _plain(line.error), "thickness": 1.5, "width": 5,
            "color": NEUTRAL if line.marks else colour,
        }  # fmt: skip
    names = [(chart.x_names, line.x), (chart.y_names, line.y)]
    shown = [list(map(_text, _looked_up(found, places))) for found, places in names if found]
    if shown:
        trace["customdata"] = [list(texts) for texts in zip(*shown, strict=True)]
    return trace


def _hover(line: Line, chart: Chart) -> str:
    x = "%{customdata[0]}" if chart.x_names else "%{x:,.6~g}"
    y = f"%{{customdata[{1 if chart.x_names else 0}]}}" if chart.y_names else "%{y:,.6~g}"
    if line.error is not None:
        # A half-width is that of the number, whichever axis it stands on.
        x, y = (
            (x + " ± %{error_x.array:,.4~g}", y)
            if chart.y_names
            else (x, y + " ± %{error_y.array:,.4~g}")
        )
    return f"{_text(line.label)}<br>{x}, {y}<extra></extra>"


def _looked_up(names: tuple[str, ...], places: Any) -> list[str]:
    return [name_of(place, names) for place in places.tolist()]


def _map(picture: HeatMap, palette: Palette) -> dict[str, Any]:
    trace: dict[str, Any] = {
        "type": "heatmap",
        "x": _plain(picture.x),
        "y": _plain(picture.y),
        "z": [_plain(row) for row in picture.z],
        "colorbar": {
            "title": {"text": _broken(picture.z_label, _LETTERS_A_LINE), "side": "right"},
            "separatethousands": True,
            "exponentformat": "none",
        },
        "colorscale": "Cividis",
        "hovertemplate": _map_hover(picture, "%{z:,.6~g}"),
    }
    if picture.z_names is not None:
        n = len(picture.z_names)
        names = [_text(name) for name in picture.z_names]
        places = [[None if np.isnan(z) else names[round(z)] for z in row] for row in picture.z]
        colours = [palette.action(name) for name in picture.z_names]
        steps = [[k / n, colours[k]] for k in range(n)]
        ends = [[(k + 1) / n, colours[k]] for k in range(n)]
        trace |= {
            "zmin": -0.5,
            "zmax": n - 0.5,
            "colorscale": [stop for pair in zip(steps, ends, strict=True) for stop in pair],
            "text": places,
            "hovertemplate": _map_hover(picture, "%{text}"),
        }
        trace["showscale"] = False  # the key above the map names the colours
    layout = {
        "xaxis": _axis(picture.x_label, None, None, names_x=True) | _ticks(picture.x),
        "yaxis": _axis(picture.y_label, None, None, names_x=False) | _ticks(picture.y),
    }
    return {"data": [trace], "layout": layout}


def _ticks(positions: Any) -> dict[str, Any]:
    """Return a tick for each of a few whole numbers, otherwise nothing."""
    whole = np.array_equal(positions, np.round(positions))
    return {"dtick": 1} if whole and np.ptp(positions) <= 12 else {}


def _map_hover(picture: HeatMap, z: str) -> str:
    x, y = _text(picture.x_label), _text(picture.y_label)
    return f"{x} %{{x:,.6~g}}, {y} %{{y:,.6~g}}<br>{z}<extra></extra>"


def _axis(
    label: str,
    names: tuple[str, ...] | None,
    shown: tuple[float, float] | None,
    *,
    names_x: bool,
) -> dict[str, Any]:
    axis: dict[str, Any] = {"title": {"text": _text(label)}}
    if shown is not None:
        axis["range"] = list(shown)
    if names is not None:
        places = range(0, len(names), -(-len(names) // _MOST_NAMES))
        # Plotly would break a turned name at its spaces.
        texts = [_broken(names[k], _LETTERS_A_LINE).replace(" ", _FIXED_SPACE) for k in places]
        axis |= {"tickvals": list(places), "ticktext": texts, "automargin": True}
        if names_x and sum(map(len, texts)) > _LETTERS_BELOW:
            # The last names would be left out: they reach beyond the chart until it makes room.
            axis |= {"tickangle": 30, "ticklabeloverflow": "allow"}
    else:
        axis |= {"separatethousands": True, "automargin": not names_x, "exponentformat": "none"}
    return axis


def _cut(name: str) -> str:
    """Return a name that leaves room for the chart; the whole of it is in the tooltip."""
    return name if len(name) <= _MOST_LETTERS else name[: _MOST_LETTERS - 1] + "…"


def _broken(name: str, letters: int) -> str:
    """Return a name in as few lines as these letters allow, and these about equally long."""
    lines = textwrap.wrap(_cut(name), letters) or [""]
    for shorter in range(letters - 1, 0, -1):
        tried = textwrap.wrap(_cut(name), shorter, break_long_words=False)
        if len(tried) > len(lines):
            break
        if max(map(len, tried), default=0) <= letters:
            lines = tried or lines
    return "<br>".join(map(_text, lines))


def _text(text: str) -> str:
    """Return a text that Plotly shows as it is: it reads tags, %{...} and $...$."""
    return escape(text, quote=False).replace("%{", "%&#123;").replace("$", "&#36;")


def _plain(values: Any) -> list[float | None]:
    """Return numbers with seven digits, null where there is none."""
    return [
        float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None
        for value in np.asarray(values, dtype=np.float64).tolist()
    ]
