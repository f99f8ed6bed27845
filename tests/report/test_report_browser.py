"""Reports in a real browser: charts draw, tooltips and keys answer, nothing foreign runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from event_models import network
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

import bellweight as bw
from bellweight.reproduce import demo
from bellweight.reproduce.demo import network_part

HOSTILE = (
    "</script><script>window.hacked = 1</script>"
    "<img src=x onerror='window.hacked = 2'>"
    "<a href='javascript:window.hacked = 3'>click</a>"
    "\"><svg onload='window.hacked = 4'>%{x}$x$"
)
STATES = ("new", "good", "fair", "worn", "poor", "quite broken")
DARK_GROUND = "rgb(20, 24, 29)"
PATIENCE = 120_000  # milliseconds


def chromium() -> str:
    """The browser that the Makefile found, or one on the path; never none."""
    names = [os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"]
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    assert found, "no Chromium: run make browser, or name one in CHROMIUM"
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=chromium(),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield started
        started.close()


@dataclass
class Visit:
    """An open page, with everything it complained about or asked for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


Open = Callable[..., Visit]
Read = Callable[[str], Visit]


def opener(browser: Browser, opened: list[BrowserContext]) -> Open:
    """Return what opens a page and waits until it is drawn, which takes long on a busy machine."""

    def open_page(path: Path, *, width: int = 1_100, scheme: str = "light") -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        context.set_default_timeout(PATIENCE)
        opened.append(context)
        found = Visit(context.new_page())
        found.page.on("console", lambda message: found.complaints.append(message.text))
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.goto(path.as_uri())
        found.page.wait_for_selector("html[data-ready=true]")
        return found

    return open_page


@pytest.fixture
def visit(browser: Browser) -> Iterator[Open]:
    opened: list[BrowserContext] = []
    yield opener(browser, opened)
    for context in opened:
        context.close()


@pytest.fixture(scope="module")
def read(browser: Browser, pages: Callable[[str], Path]) -> Iterator[Read]:
    """Pages by their kind, each opened once: for tests that only look at them."""
    opened: list[BrowserContext] = []
    open_page, known = opener(browser, opened), dict[str, Visit]()

    def page_of(kind: str) -> Visit:
        if kind not in known:
            known[kind] = open_page(pages(kind))
        return known[kind]

    yield page_of
    for context in opened:
        context.close()


def grid_model() -> bw.TabularModel:
    """A random walk on a small grid, with state vectors in the plane."""
    side = 6
    vectors = np.array([(i, j) for i in range(side) for j in range(side)], dtype=float)
    n = len(vectors)
    right = np.array([min(i + 1, side - 1) * side + j for i in range(side) for j in range(side)])
    home = np.zeros(n, dtype=int)
    transition = np.zeros((2, n, n))
    transition[0, np.arange(n), right] = 1.0
    transition[1, np.arange(n), home] = 1.0
    cost = np.column_stack([vectors.sum(axis=1), vectors.sum(axis=1) + 3.0])
    return bw.TabularModel.from_arrays(
        cost, transition, 0.9, np.full(n, 1.0 / n), state_vectors=vectors,
        action_labels=["go on", "go home"],
    )  # fmt: skip


def tabular_result() -> bw.Result:
    return bw.solve(bw.problems.single_queue(capacity=200), bw.Polynomial(2), bw.DIA())


def write_result(path: Path) -> None:
    bw.report(tabular_result(), path)


def write_grid(path: Path) -> None:
    bw.report(bw.solve(grid_model(), bw.Polynomial(1), bw.PIA()), path)


def write_events(path: Path) -> None:
    model = network()
    rows = bw.SampledRows(bw.sample_states(model, 200, seed=1))
    found = bw.solve(
        model, bw.Polynomial(2), bw.DIA(), rows=rows, simulation=bw.Simulation(200), seed=2
    )
    bw.report(found, path, episodes=200)


def write_kinks(path: Path) -> None:
    """Basis functions with long names."""
    model = network()
    rows = bw.SampledRows(bw.sample_states(model, 200, seed=1))
    basis = bw.PiecewiseLinear([1.125, 2.375])
    found = bw.solve(
        model, basis, bw.Fixed(), rows=rows, simulation=bw.Simulation(200), seed=2, judge=False
    )
    bw.report(found, path, episodes=200)


def write_optimal(path: Path) -> None:
    """A machine whose states have names, and a policy that is proven to be optimal."""
    wear = np.arange(6)
    run, service, renew = np.zeros((3, 6, 6))
    np.add.at(run, (wear, wear), 0.6)
    np.add.at(run, (wear, np.minimum(wear + 1, 5)), 0.4)
    service[wear, np.maximum(wear - 2, 0)] = 1.0
    renew[:, 0] = 1.0
    cost = np.column_stack([5.0 * wear, np.full(6, 20.0), np.full(6, 30.0)])
    model = bw.TabularModel.from_arrays(
        cost, [run, service, renew], 0.95, np.eye(6)[0],
        action_labels=["run", "service", "renew"], state_labels=list(STATES),
    )  # fmt: skip
    bw.report(bw.solve(model, bw.PiecewiseLinear([1, 3]), bw.DIA()), path)


def write_linear(path: Path) -> None:
    model = bw.problems.scheduling("tiny")
    found = bw.solve(model, bw.Affine(), bw.DIA(), simulation=bw.Simulation(200), judge=False)
    bw.report(found, path, episodes=200)


def write_clinic(path: Path) -> None:
    """More variables with longer names than fit below a chart."""
    model = bw.problems.scheduling("small")
    simulation = bw.Simulation(20)
    found = bw.solve(model, bw.Affine(), bw.Fixed(), simulation=simulation, judge=False)
    bw.report(found, path, episodes=20)


def write_steps(path: Path) -> None:
    """A stock of whole units with more actions than an axis has room for."""
    n = 31
    stock, order = np.arange(n), np.arange(n)
    transition = np.zeros((n, n, n))
    after = np.minimum(stock[None, :] + order[:, None], n - 1)
    for demand, chance in ((0, 0.5), (3, 0.3), (8, 0.2)):
        for k in range(n):
            np.add.at(transition[k], (stock, np.maximum(after[k] - demand, 0)), chance)
    cost = 2.0 * order[None, :] + stock[:, None] + 40.0 * (stock[:, None] < 3)
    model = bw.TabularModel.from_arrays(
        cost, transition, 0.9, np.eye(n)[0], action_labels=[f"order {k}" for k in order]
    )
    bw.report(bw.solve(model, bw.PiecewiseLinear(4), bw.DIA()), path)


def write_comparison(path: Path) -> None:
    result = tabular_result()
    model = bw.problems.single_queue(capacity=200)
    other = bw.solve(model, bw.Polynomial(1), bw.PIA()).policy
    best = bw.exact.optimal(model).policy
    policies = {"ours": result.policy, "random": bw.Uniform(), "other": other, "best": best}
    bw.report(bw.compare(model, policies, 200), path)


def write_several(path: Path) -> None:
    model = bw.problems.single_queue(capacity=200)
    low = np.zeros(201)
    low[0] = 1.0
    methods = {
        "PIA": bw.PIA(),
        "by hand": bw.Fixed(low),
        "DIA": bw.DIA(),
        "FromPolicy": bw.FromPolicy(),
    }
    found = {name: bw.solve(model, bw.Polynomial(3), method) for name, method in methods.items()}
    bw.report(found, path, optimum=float(model.initial @ bw.exact.optimal(model).values))


def write_demo(path: Path) -> None:
    network_part._EPISODES, kept = 256, network_part._EPISODES
    try:
        demo.run().write_page(path)
    finally:
        network_part._EPISODES = kept


KINDS = {
    "result": (write_result, 6),
    "grid": (write_grid, 7),
    "events": (write_events, 5),
    "kinks": (write_kinks, 4),
    "optimal": (write_optimal, 4),
    "linear": (write_linear, 5),
    "clinic": (write_clinic, 5),
    "steps": (write_steps, 5),
    "comparison": (write_comparison, 2),
    "several": (write_several, 4),
    "demo": (write_demo, 5),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("pages")

    def page_of(kind: str) -> Path:
        path = folder / f"{kind}.html"
        if not path.exists():
            KINDS[kind][0](path)
        return path

    return page_of


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_loads_quietly_and_every_chart_draws(
    kind: str, pages: Callable[[str], Path], read: Read
) -> None:
    path, found = pages(kind), read(kind)
    assert found.complaints == []
    assert found.requests == [path.as_uri()]
    charts = found.page.locator("[data-chart]")
    assert charts.count() >= KINDS[kind][1]
    for number in range(charts.count()):
        chart = charts.nth(number)
        assert chart.get_attribute("data-drawn") == "true"
        drawn = chart.locator(".scatterlayer .trace, .heatmaplayer image")
        assert drawn.count() >= 1, chart.get_attribute("aria-label")
        assert chart.bounding_box()["width"] > 300
    assert path.stat().st_size < 8_000_000


def test_the_policy_of_a_plane_is_drawn_in_distinct_colours(read: Read) -> None:
    page = read("grid").page
    key = page.locator("[data-key=policy-x1-x2] .key li")
    assert set(key.all_text_contents()) == {"go on", "go home"}
    fills = key.locator("rect").evaluate_all("all => all.map((one) => one.getAttribute('fill'))")
    assert len(set(fills)) == 2


COUNTS = """() => [...document.querySelectorAll("[data-chart]")].map((place) => ({
  key: place.closest("figure").dataset.key,
  points: place.data.map((one) => one.type === "heatmap"
    ? one.z.flat().filter((z) => z !== null).length
    : new Set(one.x.filter((x, k) => x !== null && one.y[k] !== null)).size),
  rows: place.data.reduce((sum, one) => sum
    + (Array.isArray(one.marker?.color) ? one.x.length : 0), 0),
}))"""


@pytest.mark.parametrize("kind", KINDS)
def test_no_chart_has_fewer_than_three_points(kind: str, read: Read) -> None:
    for chart in read(kind).page.evaluate(COUNTS):
        assert max(chart["rows"], *chart["points"]) >= 3, chart


def test_a_chart_of_many_actions_is_no_taller_than_others(read: Read) -> None:
    page = read("steps").page
    heights = page.locator("[data-chart]").evaluate_all("all => all.map((one) => one.clientHeight)")
    assert max(heights) <= 400
    named = page.locator("[data-key=policy] .ytick text").all_text_contents()
    taken = page.evaluate("document.querySelector('[data-key=policy] .chart').data[0].y")
    assert {f"order {round(min(taken))}"} <= set(named)
    assert 2 <= len(named) <= 12


CUT_WORDS = """() => [...document.querySelectorAll("[data-chart]")].flatMap((place) => {
  const frame = place.getBoundingClientRect();
  return [...place.querySelectorAll("svg.main-svg text")].filter((one) => {
    const box = one.getBoundingClientRect();
    return box.width > 0 && (box.left < frame.left - 2 || box.right > frame.right + 2
      || box.top < frame.top - 2 || box.bottom > frame.bottom + 2);
  }).map((one) => `${place.closest("figure").dataset.key}: ${one.textContent}`);
})"""


@pytest.mark.parametrize("kind", KINDS)
def test_no_word_of_a_chart_is_cut_on_a_desk(kind: str, read: Read) -> None:
    assert read(kind).page.evaluate(CUT_WORDS) == []


COLOURS = """() => [...document.querySelectorAll("[data-chart]")].flatMap((place) =>
  place.data.flatMap((one) => Array.isArray(one.marker?.color)
    ? one.customdata.map((name, k) => [name[0], one.marker.color[k]])
    : one.type === "scatter" && one.opacity === undefined && one.line.dash !== "dot"
      && one.marker.symbol !== "line-ns-open" ? [[one.name, one.line.color]] : []))"""


@pytest.mark.parametrize("kind", ["several", "demo", "comparison"])
def test_a_policy_has_one_colour_on_the_whole_page(kind: str, read: Read) -> None:
    found = read(kind).page.evaluate(COLOURS)
    colours: dict[str, set[str]] = {}
    for name, colour in found:
        colours.setdefault(name, set()).add(colour)
    assert len(colours) >= 3
    assert all(len(used) == 1 for used in colours.values()), colours


ACTION_COLOURS = """() => [...document.querySelectorAll(".key li:not(:has(button))")].map((item) =>
  [item.textContent, item.querySelector("rect").getAttribute("fill")])"""


def test_an_action_has_one_colour_on_the_whole_page(read: Read) -> None:
    found = read("demo").page.evaluate(ACTION_COLOURS)
    assert len(found) > len(dict(found)) >= 3  # some actions occur on both maps
    assert all(dict(found)[name] == colour for name, colour in found)


@pytest.mark.parametrize("width", [390, 1_100])
def test_every_named_state_is_named_and_no_marker_is_cut(
    width: int, pages: Callable[[str], Path], visit: Open
) -> None:
    page = visit(pages("optimal"), width=width).page
    for key in ("weights-0", "value", "policy"):
        ticks = page.locator(f"[data-key={key}] .xtick text").all_text_contents()
        assert [tick.replace("\N{NO-BREAK SPACE}", " ") for tick in ticks] == list(STATES)
        ends = page.evaluate(
            f"""(() => {{ const place = document.querySelector("[data-key={key}] .chart");
            return [place.layout.xaxis.range, place.data[0].x]; }})()"""
        )
        assert ends[0][0] < min(ends[1]) <= max(ends[1]) < ends[0][1]
    said = page.locator("[data-key=policy] figcaption").text_content()
    assert said == "In the states shown: run from new, service from fair, renew from worn."


def test_a_proven_optimum_is_told_in_a_sentence(read: Read) -> None:
    """Cost and bound are one point: a chart of it would have two."""
    page = read("optimal").page
    assert page.locator("[data-key=gap]").count() == 0
    said = page.locator("section[aria-labelledby=cost]").text_content() or ""
    assert "DIA costs 100.335; no policy costs less than 100.335." in said


def test_the_key_has_the_colours_of_the_lines_on_a_dark_ground(
    pages: Callable[[str], Path], visit: Open
) -> None:
    page = visit(pages("optimal"), scheme="dark").page
    figure = page.locator("[data-key=value]")
    stroke = "all => all.map((one) => getComputedStyle(one).stroke)"
    key = figure.locator(".key path").evaluate_all(stroke)
    lines = figure.locator(".scatterlayer .js-line").evaluate_all(stroke)
    assert key == lines
    assert len(set(key)) == 2


def test_numbers_far_off_are_named_at_the_edge(read: Read) -> None:
    page = read("demo").page
    notes = page.locator("[data-key=gap]").first.locator(".annotation-text").all_text_contents()
    assert "◀ -332" in notes
    assert "229 ▶" in notes


@pytest.mark.parametrize("kind", KINDS)
def test_no_heading_stands_twice(kind: str, read: Read) -> None:
    headings = read(kind).page.locator("h1, h2, h3").all_text_contents()
    assert len(set(headings)) == len(headings), headings


def test_tooltips_tell_the_numbers(pages: Callable[[str], Path], visit: Open) -> None:
    page = visit(pages("result")).page
    cost = tabular_result().cost.mean
    chart = page.locator("[data-key=gap] .chart")
    chart.scroll_into_view_if_needed()
    points = chart.locator(".scatterlayer .trace .points path")
    box = points.last.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2 - 3, box["y"] + box["height"] / 2)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    shown = chart.locator(".hoverlayer .hovertext")
    shown.first.wait_for()
    assert f"{cost:,.6g}" in (shown.first.text_content() or "")
    assert "DIA" in (shown.first.text_content() or "")


def test_arrow_keys_walk_along_a_chart_and_are_spoken(
    pages: Callable[[str], Path], visit: Open
) -> None:
    page = visit(pages("result")).page
    page.locator("[data-key=policy] .chart").focus()
    told = []
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(300)
        told.append(page.locator("#spoken").text_content())
    assert told == ["action: 0, rate 0", "action: 1, rate 0.2", "action: 2, rate 0.4"]


def test_arrow_keys_walk_over_a_map(pages: Callable[[str], Path], visit: Open) -> None:
    page = visit(pages("grid")).page
    page.locator("[data-key=policy-x1-x2] .chart").focus()
    told = []
    for key in ("ArrowRight", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
        page.wait_for_timeout(300)
        told.append(page.locator("#spoken").text_content() or "")
    assert all("go " in text for text in told)
    assert len(set(told)) == 3


def test_everything_can_be_reached_by_keyboard(pages: Callable[[str], Path], visit: Open) -> None:
    page = visit(pages("comparison")).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName + document.activeElement.id"))
    assert {"BUTTONtheme", "SUMMARY"} <= reached
    page.locator("summary").first.press("Enter")
    assert page.locator("details[open] table").first.is_visible()


def test_dark_and_light_follow_the_system_and_the_button(
    pages: Callable[[str], Path], visit: Open
) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('.chart .xtick text')).fill"
    dark = visit(pages("result"), scheme="dark").page
    assert dark.evaluate(ground) == DARK_GROUND
    assert dark.evaluate(ink) == "rgb(230, 233, 236)"
    light = visit(pages("result")).page
    assert light.evaluate(ground) == "rgb(255, 255, 255)"
    light.locator("#theme").click()
    light.wait_for_function(f"{ground} === '{DARK_GROUND}'")
    light.wait_for_function(f"{ink} === 'rgb(230, 233, 236)'")
    light.locator("#theme").click()
    light.wait_for_function(f"{ground} === 'rgb(255, 255, 255)'")


CUT = """() => [...document.querySelectorAll(".wide, .key, .cards, figcaption, h1, h2, h3, p")]
  .filter((one) => one.offsetParent && !one.matches(".spoken"))
  .filter((one) => one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.className + ": " + one.textContent.slice(0, 60))"""

OUTSIDE = """() => [...document.querySelectorAll(".key, .chart svg.main-svg, table")]
  .filter((one) => one.offsetParent !== null || one.tagName === "svg")
  .filter((one) => one.getBoundingClientRect().right > window.innerWidth + 1).length"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_phone_does_not_scroll_sideways_and_nothing_is_cut(
    kind: str, pages: Callable[[str], Path], visit: Open
) -> None:
    page = visit(pages(kind), width=390).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(CUT) == []
    assert page.evaluate(OUTSIDE) == 0
    assert page.evaluate(CUT_WORDS) == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_table_is_cut_on_a_desk(kind: str, read: Read) -> None:
    assert read(kind).page.evaluate(CUT) == []


OVERLAPPING = """() => [...document.querySelectorAll("[data-chart]")].flatMap((place) => {
  const axis = place._fullLayout.xaxis;
  if (!axis.ticktext || axis.tickangle !== 30) return [];
  const boxes = [...place.querySelectorAll(".xtick text")].map((one) => one.getBBox());
  const apart = axis._length / (axis.range[1] - axis.range[0]);
  const step = axis.tickvals[1] - axis.tickvals[0];
  // Lines of turned names lie beside each other if this is more than their height.
  return boxes.filter((box) => apart * step * Math.sin(Math.PI / 6) < box.height)
    .map(() => place.closest("figure").dataset.key);
})"""


@pytest.mark.parametrize("kind", ["result", "demo", "clinic", "kinks"])
def test_on_paper_charts_are_whole_and_light(
    kind: str, pages: Callable[[str], Path], visit: Open
) -> None:
    page = visit(pages(kind), scheme="dark").page
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.wait_for_timeout(500)
    assert page.evaluate(CUT_WORDS) == []
    assert page.evaluate(OVERLAPPING) == []
    wide = "[...document.querySelectorAll('.chart svg.main-svg')].map((one) => one.clientWidth)"
    assert max(page.evaluate(wide)) <= 640
    kept = (
        "[...document.querySelectorAll('figure, table')]"
        ".map((one) => getComputedStyle(one).breakInside)"
    )
    assert set(page.evaluate(kept)) == {"avoid"}
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    ink = "getComputedStyle(document.querySelector('.chart .xtick text')).fill"
    assert page.evaluate(ink) == "rgb(27, 31, 36)"


def test_many_names_below_a_chart_are_shown_to_the_last(read: Read) -> None:
    """They are turned, and the last would reach beyond the chart if it made no room."""
    page = read("clinic").page
    named = page.evaluate(
        "document.querySelector('[data-key=value] .chart').layout.xaxis.ticktext.length"
    )
    assert named > 12
    ticks = page.locator("[data-key=value] .xtick text")
    shown = "all => all.filter((one) => getComputedStyle(one).display !== 'none').length"
    assert ticks.evaluate_all(shown) == named


def test_on_a_phone_a_number_that_heads_a_row_says_what_it_counts(
    pages: Callable[[str], Path], visit: Open
) -> None:
    page = visit(pages("result"), width=390).page
    heads = page.locator("section[aria-labelledby=convergence] > .stacked tbody th")
    told = "one => [getComputedStyle(one, '::before').content, one.textContent]"
    assert heads.first.evaluate(told) == ['"iteration"', "1"]
    named = page.locator("section[aria-labelledby=cost] > .stacked tbody th").last
    assert named.evaluate(told)[0] == "none"


def test_choosing_a_line_in_the_key_hides_it(pages: Callable[[str], Path], visit: Open) -> None:
    page = visit(pages("result")).page
    button = page.locator("[data-key=value] .key button").first
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    shown = "document.querySelector('[data-key=value] .chart').data[0].visible"
    page.wait_for_function(f"{shown} === false")
    button.click()
    page.wait_for_function(f"{shown} === true")


def hostile_model() -> bw.TabularModel:
    return bw.TabularModel.from_arrays(
        [[1.0, 3.0], [4.0, 2.0]],
        [[[0.5, 0.5], [0.5, 0.5]], [[0.9, 0.1], [0.2, 0.8]]],
        0.9,
        [0.5, 0.5],
        name=f"model {HOSTILE}",
        state_labels=[f"first {HOSTILE}", f"second {HOSTILE}"],
        action_labels=[f"stay {HOSTILE}", f"go {HOSTILE}"],
    )


def write_hostile(kind: str, path: Path) -> None:
    model = hostile_model()
    result = bw.solve(model, bw.Indicator(), bw.DIA())
    if kind == "result":
        bw.report(result, path, title=HOSTILE, about=[HOSTILE])
    elif kind == "results":
        bw.report({HOSTILE: result, "other": result}, path)
    else:
        policies = {HOSTILE: result.policy, f"{HOSTILE} 2": bw.Uniform()}
        bw.report(bw.compare(model, policies, 50), path)


@pytest.mark.parametrize("kind", ["result", "results", "comparison"])
def test_hostile_names_are_shown_and_never_run(kind: str, tmp_path: Path, visit: Open) -> None:
    path = tmp_path / "page.html"
    write_hostile(kind, path)
    found = visit(path)
    page = found.page
    for chart in page.locator("[data-chart]").all():
        chart.focus()
        page.keyboard.press("ArrowRight")
    assert page.evaluate("window.hacked") is None
    assert found.complaints == []
    assert found.requests == [path.as_uri()]
    assert page.locator("img, a[href^=javascript], main svg[onload]").count() == 0
    assert HOSTILE in page.locator("main").inner_text()


def test_a_script_that_slips_through_is_stopped_by_the_page_itself(
    pages: Callable[[str], Path], tmp_path: Path, visit: Open
) -> None:
    injected = "<script>window.hacked = 1</script><img src='http://localhost:9/x.png'>"
    path = tmp_path / "page.html"
    path.write_text(
        pages("comparison").read_text(encoding="utf-8").replace("<h1>", f"{injected}<h1>", 1),
        encoding="utf-8",
    )
    found = visit(path)
    assert found.page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in text for text in found.complaints)


def test_without_scripts_the_words_and_numbers_remain(
    pages: Callable[[str], Path], browser: Browser
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages("result").as_uri())
    assert page.locator("h1").inner_text() == "DIA on single queue"
    assert page.locator("figcaption").count() >= 6
    assert page.locator("details table").count() >= 6
    context.close()


def ready_seconds(path: Path, folder: Path) -> float:
    """When the first chart answers, in a browser that nobody watches while it loads."""
    profile = folder / "profile"
    started = subprocess.Popen(
        [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
         "--disable-background-networking", "--remote-debugging-port=0",
         f"--user-data-dir={profile}", path.as_uri()],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        time.sleep(6.0)
        port = (profile / "DevToolsActivePort").read_text(encoding="utf-8").split()[0]
        with sync_playwright() as driver:
            watched = driver.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")
            page = watched.contexts[0].pages[0]
            page.wait_for_selector("html[data-ready=true]", timeout=PATIENCE)
            found = page.evaluate("document.documentElement.dataset.interactiveAfter")
            watched.close()
    finally:
        started.terminate()
        started.wait()
    return float(found) / 1_000.0


@pytest.mark.slow
def test_the_page_of_the_large_queue_answers_within_two_seconds(
    pages: Callable[[str], Path], tmp_path: Path
) -> None:
    times = [ready_seconds(pages("demo"), tmp_path / str(turn)) for turn in range(3)]
    assert min(times) < 2.0
