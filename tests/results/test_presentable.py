"""What results show of themselves: tables, frames, notebook cells, figures, and what is behind."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from event_models import network
from matplotlib.figure import Figure
from rich.console import Console

import bellweight as bw
from bellweight.backends import Point, Visited, backend_of
from bellweight.display import Column, Table, to_frame, to_html, to_latex
from bellweight.display.charts import Chart, HeatMap, Line
from bellweight.display.drawing import draw
from bellweight.display.presentable import Presentable
from bellweight.results.charts import mean_actions
from bellweight.results.cross_sections import cross_sections, shown_range, thin
from bellweight.results.summary import summary

HOSTILE = "<script>alert(1)</script>$x$&\"'"


@pytest.fixture(scope="module")
def things(queue: bw.TabularModel, result: bw.Result) -> dict[str, Presentable]:
    policies = {"ours": result.policy, "random": bw.Uniform()}
    return {
        "result": result,
        "evaluation": bw.evaluate(queue, result.policy, 100),
        "comparison": bw.compare(queue, policies, 100),
        "certificate": bw.certify(queue, result),
    }


@pytest.mark.parametrize("name", ["result", "evaluation", "comparison", "certificate"])
def test_everything_has_all_its_faces(name: str, things: dict[str, Presentable]) -> None:
    thing = things[name]
    assert "<table>" in thing._repr_html_()
    frame = thing.to_frame("columns")
    assert len({len(column) for column in frame.values()}) == 1
    assert isinstance(thing.figure(), Figure)
    with pytest.raises(bw.errors.ArgumentError, match="no picture is named 'nothing', expected"):
        thing.figure("nothing")


@pytest.mark.parametrize("name", ["result", "evaluation", "comparison", "certificate"])
@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_rich_never_cuts_a_number(name: str, width: int, things: dict[str, Presentable]) -> None:
    stream = io.StringIO()
    Console(file=stream, width=width, force_terminal=True, color_system=None).print(things[name])
    shown = stream.getvalue()
    assert "…" not in shown
    table = things[name].table()
    numbers = [
        cell
        for cells in table.cells()
        for column, cell in zip(table.shown, cells, strict=True)
        if column.right
    ]
    assert all(cell in shown for cell in numbers)


def test_frames_hold_the_numbers_themselves(
    result: bw.Result, things: dict[str, Any], queue: bw.TabularModel
) -> None:
    history = result.to_frame("columns")
    assert history["one_norm"] == [record.one_norm for record in result.history]
    assert history["iteration"] == list(range(1, len(result.history) + 1)), "as they are shown"
    compared = things["comparison"].to_frame("columns")
    assert compared["policy"] == ["ours", "random"]
    gap = things["comparison"].differences["random"]
    assert compared["difference"] == [0.0, gap.mean]
    assert compared["difference_half_width"] == [0.0, gap.half_width]
    terms = things["certificate"].to_frame("columns")
    assert dict(zip(terms["term"], terms["value"], strict=True))["bound"] == (
        things["certificate"].bound
    )
    assert things["evaluation"].to_frame("columns")["mean"] == [things["evaluation"].mean]


def test_frames_of_pandas_and_polars(result: bw.Result) -> None:
    columns = result.to_frame("columns")
    assert result.to_frame()["iteration"].tolist() == columns["iteration"]
    assert result.to_frame("polars")["objective"].to_list() == columns["objective"]
    with pytest.raises(bw.errors.ArgumentError, match="kind is 'excel'"):
        result.to_frame("excel")


def test_the_table_of_a_result_says_what_its_text_says(result: bw.Result) -> None:
    told = dict(summary(result))
    unwrapped = " ".join(str(result).split())
    assert all(" ".join(text.split()) in unwrapped for text in told.values())
    rows = {row["fact"]: row["value"] for row in result.table().rows}
    shared = {name: text for name, text in told.items() if name not in {"weights", "dual"}}
    assert shared.keys() >= {"status", "cost", "value", "next"}
    assert {name: rows.get(name) for name in shared} == shared
    assert told["dual"] in rows["dual mass"]
    assert str(result).splitlines()[0] == result.table().title


def test_a_result_without_its_model_shows_what_it_can(result: bw.Result, tmp_path: Any) -> None:
    result.save(tmp_path / "queue.npz")
    loaded = bw.Result.load(tmp_path / "queue.npz")
    assert list(loaded.pictures()) == ["gap", "convergence"]
    assert isinstance(loaded.figure(), Figure)
    with pytest.raises(bw.errors.PolicyError, match="without its model"):
        _ = loaded.visited


def test_the_residuals_seen_add_up_to_the_bound(queue: bw.TabularModel, result: bw.Result) -> None:
    seen = result.visited
    total = float(seen.share @ seen.residual) / (1.0 - queue.discount)
    assert total == pytest.approx(bw.certify(queue, result).bound, rel=1e-9)
    assert seen.share.sum() == pytest.approx(1.0)
    assert seen.cost_to_go is not None
    assert float(queue.initial @ seen.cost_to_go) == pytest.approx(result.cost.mean)


def test_a_slice_holds_what_the_model_says(queue: bw.TabularModel, result: bw.Result) -> None:
    value, policy = result.charts("value", "policy")
    assert isinstance(value, Chart)
    assert isinstance(policy, Chart)
    states = value.lines[0].x.astype(int)
    expected = result.basis(states[:, None].astype(float)) @ result.coef
    np.testing.assert_allclose(value.lines[0].y, expected, rtol=1e-9)
    np.testing.assert_allclose(value.lines[1].y, result.visited.cost_to_go[states])
    assert policy.lines[0].y.tolist() == [result.policy.action(int(state)) for state in states]
    assert policy.y_names == tuple(queue.label(a) for a in range(queue.n_actions))


def test_sampled_sight_agrees_with_the_same_model_written_out() -> None:
    model = network()
    coef = np.random.default_rng(0).standard_normal(15)
    coef[0] -= 1_000.0  # no row is violated, so there is nothing to repair
    basis = bw.Polynomial(2)
    policy = bw.Greedy(basis=basis, coef=coef)
    table = model.to_tabular()
    point = Point(basis(table.states).T @ table.initial)
    seen = backend_of(model).visited(basis, coef, point, policy, seed=3)
    whole = backend_of(table).visited(basis, coef, point, policy.on(table), seed=0)
    place = {tuple(state): k for k, state in enumerate(table.states.tolist())}
    known = [place[tuple(state)] for state in seen.states.tolist()]
    np.testing.assert_allclose(seen.value, whole.value[known], rtol=1e-9)
    np.testing.assert_allclose(seen.residual, whole.residual[known], rtol=1e-7, atol=1e-8)
    # Two thousand draws: shares are within a few standard errors of the exact occupancy.
    error = np.sqrt(whole.share[known] / 2_000)
    assert (np.abs(seen.share - whole.share[known]) < 6.0 * error + 1e-3).all()


def test_residuals_of_a_linear_model_are_those_of_its_rows() -> None:
    model = bw.problems.scheduling("tiny")
    result = bw.solve(model, bw.Affine(), bw.DIA(), simulation=bw.Simulation(200), judge=False)
    seen = result.visited
    inside = (seen.states <= model.state_upper).all(axis=1)
    assert inside.any()
    # The program is solved over every state of the box, so no row there is violated.
    assert seen.residual[inside].min() > -1e-6


def test_planes_cut_through_existing_states() -> None:
    table = network().to_tabular()
    result = bw.solve(table, bw.Polynomial(1), bw.Fixed("uniform"))
    cuts = cross_sections(result.visited)
    assert len(cuts) == 2
    for cut in cuts:
        assert cut.places is not None
        there = cut.places >= 0
        np.testing.assert_array_equal(table.states[cut.places[there]], cut.states[there])
        assert there.all()
        picture = cut.heat_map(
            "policy", "", "action", cut.actions(), result.visited.backend.action_names
        )
        assert picture.z_names is not None
        named = [picture.z_names[int(z)] for z in picture.z.ravel()]
        taken = [table.label(result.policy.action(int(k))) for k in cut.places]
        assert named == taken


def test_what_is_shown_at_first_holds_nearly_all_mass() -> None:
    positions = np.arange(50_000.0)
    mass = 0.9**positions
    low, high = shown_range(positions, mass)
    assert low == 0.0
    assert 65.0 <= high <= 130.0
    kept = thin(positions, low, high)
    assert len(kept) < 3_000
    assert set(range(int(high) + 1)) <= set(kept.tolist())
    assert kept[-1] > 49_000


def test_markup_escapes_what_users_name() -> None:
    table = Table(HOSTILE, (Column("a", HOSTILE, right=False),), ({"a": HOSTILE},), (HOSTILE,))
    html = to_html(table)
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 4
    latex = to_latex(Table("50 % & more_{x}", (Column("a", "#"),), ({"a": "±\\"},)))
    assert r"50 \% \& more\_\{x\}" in latex
    assert r"$\pm$\textbackslash{}" in latex
    assert latex.count(r"\begin{") == latex.count(r"\end{") == 2
    assert to_frame(table) == {"a": [HOSTILE]}


def test_charts_are_drawn_as_given() -> None:
    x = np.arange(3.0)
    chart = Chart(
        "k", "title", "x in jobs", "cost in $", (Line("one", x, x), Line("two", x, x, "steps")),
        "alt", log_y=True, x_range=(0.0, 5.0),
    )  # fmt: skip
    heat = HeatMap("m", "map", "a", "b", x, x, np.eye(3), "action", "alt", ("stay", "go"))
    figure = draw([chart, heat])
    first = figure.axes[0]
    low, high = first.get_xlim()  # with room for the markers at both ends
    assert -0.2 < low < 0.0
    assert 5.0 < high < 5.2
    assert first.get_yscale() == "log"
    assert first.get_ylabel() == r"cost in \$"
    assert [text.get_text() for text in first.get_legend().get_texts()] == ["one", "two"]
    assert [t.get_text() for t in figure.axes[2].get_yticklabels()] == ["stay", "go"]
    figure.savefig(io.BytesIO())


def test_numbers_of_a_chart_are_thinned_and_say_so() -> None:
    x = np.arange(1_000.0)
    chart = Chart("k", "t", "x", "y", (Line("one", x, x),), "alt")
    table = chart.numbers()
    assert len(table.rows) == 200
    assert table.notes == ("One of every 5 numbers.",)


def test_a_map_of_one_column_is_drawn() -> None:
    heat = HeatMap("m", "map", "a", "b", np.zeros(1), np.arange(3.0), np.ones((3, 1)), "", "alt")
    axes = draw([heat]).axes[0]
    assert axes.get_xlim() == (-0.5, 0.5)
    assert axes.get_ylim() == (-0.5, 2.5)


def test_thresholds_of_a_long_line_are_not_thinned_away() -> None:
    def cost(state: Any, action: Any) -> float:
        return state[0] + 2.0 * action

    def probability(action: Any, event: Any) -> float:
        return 0.45 if event == 0 else 0.3 + 0.2 * action

    def move(state: Any, event: Any) -> None:
        state[0] += 1 if event == 0 else -int(state[0] > 0)

    model = bw.EventModel(
        dimension=1, actions=["slow", "fast"], events=["in", "out"], cost=cost,
        probability=probability, move=move, discount=0.5, initial=bw.models.Geometric(0.99),
        compiled=False,
    )  # fmt: skip
    rows = bw.SampledRows(np.arange(600)[:, None])
    result = bw.solve(model, bw.Polynomial(2), bw.DIA(), rows=rows, simulation=bw.Simulation(200))
    (chart,) = result.charts("policy")
    assert isinstance(chart, Chart)
    assert np.array_equal(np.diff(chart.lines[0].x), np.ones(len(chart.lines[0].x) - 1))
    taken = [result.policy.action([int(x)]) for x in chart.lines[0].x]
    assert chart.lines[0].y.tolist() == taken


def test_small_costs_keep_their_digits() -> None:
    gap = bw.evaluation.Difference(7.4e-05, 2.0e-06)
    assert str(gap) == "+0.0000740 +- 0.0000020"
    assert str(bw.evaluation.Difference(-0.1666, 1.1)) == "-0.2 +- 1.1"


def test_a_picture_of_what_is_not_known_is_refused() -> None:
    rows = bw.SampledRows(bw.sample_states(network(), 100, seed=1))
    found = bw.solve(
        network(), bw.Polynomial(1), bw.DIA(), rows=rows, simulation=bw.Simulation(50), judge=False
    )
    with pytest.raises(bw.errors.ArgumentError, match="nothing to draw for gap"):
        found.figure("gap")


def test_variables_with_two_indices_become_a_map_with_named_axes() -> None:
    names = [f"book[class {i}, day {n}]" for i in (1, 2) for n in (1, 2, 3)]
    found, rest = mean_actions([*names, "divert[class 1]"], np.arange(7.0))
    assert isinstance(found, HeatMap)
    assert (found.x_label, found.y_label) == ("day", "class")
    assert found.z.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert "class 2 and day 3" in found.alt
    assert rest.x_names == ("divert[class 1]",)


def test_planes_of_real_numbers_stay_in_the_box() -> None:
    def step(state: Any, noise: Any) -> Any:
        return 0.5 * state[0] + noise[0], 0.5 * state[1]

    def cost(state: Any) -> float:
        return float(state[0] ** 2)

    model = bw.StepModel(
        dimension=2, actions=2, step=step, cost=cost, discount=0.5, noise=[0.2], lower=-1, upper=1,
        initial=[0.3, 0.4], compiled=False,
    )  # fmt: skip
    states = np.array([[-0.6, 0.25], [0.1, 0.25], [0.7, 0.25]])
    seen = Visited(
        backend_of(model), states, np.full(3, 1 / 3), np.zeros(3), np.zeros(3), None, bw.Uniform(),
        lambda points: points[:, 0],
    )  # fmt: skip
    (plane,) = cross_sections(seen)
    assert plane.y is not None
    assert (plane.x[0], plane.x[-1]) == (-0.6, 0.7)
    assert (plane.y[0], plane.y[-1]) == (-0.75, 1.0)
    model.check_states(plane.states)
