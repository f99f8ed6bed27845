"""Reports as files: what they say, in which order, and what happens to bad input."""

from __future__ import annotations

import io
import json
import os
import re
from dataclasses import replace
from html import unescape
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from cli_runs import failure
from event_models import line, network

import bellweight as bw
from bellweight.cli import exits
from bellweight.cli.main import run
from bellweight.common import files
from bellweight.report.comparison_page import results_page
from bellweight.report.document import result_document
from bellweight.report.sections import cut
from bellweight.report.subject import Subject


@pytest.fixture(scope="module")
def events() -> bw.Result:
    rows = bw.SampledRows(bw.sample_states(network(), 200, seed=1))
    simulation = bw.Simulation(200)
    return bw.solve(network(), bw.Polynomial(2), bw.DIA(), rows=rows, simulation=simulation, seed=2)


def body(path: Path) -> str:
    """The words of a page, without its scripts."""
    return re.sub(r"<script.*?</script>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def words(path: Path) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", re.sub('<span class="whole">|</span>', "", body(path))))


def specs(path: Path) -> list[dict[str, Any]]:
    found = re.search(
        r'<script type="application/json" id="charts">(.*?)</script>',
        path.read_text(encoding="utf-8"),
    )
    assert found
    return json.loads(found[1])


def test_a_report_tells_all_there_is_to_tell(result: bw.Result, tmp_path: Path) -> None:
    path = bw.report(result, tmp_path / "page.html")
    text = words(path)
    for heading in (
        "What was solved", "How good is the policy?", "Did the weights settle?",
        "Weights against occupancy", "Value function", "Policy", "Where the residual is largest",
        "Audit of the linear program", "Certificate", "Settings and seed",
    ):  # fmt: skip
        assert body(path).count(f">{heading}</h2>") == 1, heading
    assert result.cost is not None
    assert f"{result.cost:,.6g}" in text
    assert result.model_digest in text
    assert "CONVERGED" in text
    assert "temperature" in text
    shown = re.findall(r'<th scope="row" [^>]*data-name="iteration">(\d+)</th>', body(path))
    assert shown == [str(n + 1) for n in range(len(result.history))], "as charts number them"
    assert "greedy_bound" not in text


def test_every_chart_is_one_that_plotly_knows(
    result: bw.Result, events: bw.Result, tmp_path: Path
) -> None:
    for found in (result, events):
        path = bw.report(found, tmp_path / "page.html", episodes=100)
        charts = specs(path)
        assert len(charts) == path.read_text(encoding="utf-8").count("data-chart=")
        for chart in charts:
            go.Figure(chart)  # raises on a property that Plotly does not have


def test_warnings_stand_before_everything_else(tmp_path: Path) -> None:
    plain = line()  # nothing says what its parts look at, so nothing can be proven
    rows = bw.SampledRows(bw.sample_states(plain, 20, seed=1))
    few = bw.Simulation(200)
    events = bw.solve(plain, bw.Affine(), bw.Fixed(), rows=rows, simulation=few, judge=False)
    page = body(bw.report(events, tmp_path / "page.html", episodes=100))
    assert "No bound is proven" in page
    assert page.index("No bound is proven") < page.index("What was solved")
    stopped = bw.solve(
        bw.problems.single_queue(capacity=200), bw.Polynomial(2), bw.PIA(),
        stop=bw.Stop(max_iterations=1),
    )  # fmt: skip
    page = body(bw.report(stopped, tmp_path / "page.html"))
    assert page.index(stopped.status.message) < page.index("What was solved")


def test_the_same_result_gives_the_same_page(result: bw.Result, tmp_path: Path) -> None:
    first = bw.report(result, tmp_path / "first.html").read_bytes()
    assert bw.report(result, tmp_path / "second.html").read_bytes() == first


def test_a_given_evaluation_and_certificate_are_used(events: bw.Result, tmp_path: Path) -> None:
    evaluation = bw.Evaluation(123.456, 7.0, 10, 10, None, 1, "for a reason")
    certificate = bw.certify(network(), events, episodes=50)
    path = bw.report(events, tmp_path / "page.html", evaluation=evaluation, certificate=certificate)
    assert "123.5 ± 7.0" in words(path)


def test_results_side_by_side(queue: bw.TabularModel, result: bw.Result, tmp_path: Path) -> None:
    other = bw.solve(queue, bw.Polynomial(2), bw.Fixed("uniform"))
    best = float(queue.initial @ bw.exact.optimal(queue).values)
    path = bw.report({"ours": result, "by hand": other}, tmp_path / "page.html", optimum=best)
    text = words(path)
    assert other.cost is not None
    assert f"{100.0 * (other.cost.mean - best) / best:.2f}" in text
    assert "optimal cost, exact" in json.dumps(specs(path))


def test_simulated_results_side_by_side_are_paired(events: bw.Result, tmp_path: Path) -> None:
    path = bw.report({"a": events, "b": events}, tmp_path / "page.html", episodes=100)
    assert "Paired differences" in words(path)
    # The same policy twice: its row ends with a difference of exactly zero.
    assert re.search(r"\sb\s+[\d.]+ ± [\d.]+\s+[\d.]+\s+\+0\s", words(path))


def test_a_comparison_that_is_given_is_not_simulated_again(
    events: bw.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = {"a": events, "b": events}
    policies = {name: found.policy for name, found in both.items()}
    given = bw.compare(network(), policies, 123, seed=9)

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the comparison was given")

    # `bellweight.report` is the function; its module has to be asked for by name.
    monkeypatch.setattr(import_module("bellweight.report.write"), "compare", never)
    page = bw.report(both, tmp_path / "page.html", evaluation=given, episodes=100)
    assert "123 episodes" in words(page)
    # What is given is checked all the same: results of different models make no page together.
    other = bw.solve(bw.problems.single_queue(capacity=9), bw.Polynomial(1), bw.Fixed())
    with pytest.raises(bw.errors.ArgumentError, match="belong to different models"):
        bw.report({"a": events, "b": other}, tmp_path / "page.html", evaluation=given)


def test_what_is_said_of_the_end_of_a_run_is_about_its_last_iterate(
    queue: bw.TabularModel, tmp_path: Path
) -> None:
    """A difference of zero has no place on the log axis, but it is how the run ended."""
    settled = bw.solve(queue, bw.Polynomial(2), bw.PIA())
    assert settled.history[-1].one_norm == 0.0
    assert settled.history[0].one_norm
    page = bw.report({"PIA": settled}, tmp_path / "page.html")
    assert "PIA: 0 at last." in body(page)
    assert "nor are differences of exactly zero" in body(page)


def test_a_page_of_a_result_without_its_model_says_so(result: bw.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "queue.npz")
    loaded = bw.Result.load(tmp_path / "queue.npz")
    assert "loaded without its model" in words(bw.report(loaded, tmp_path / "page.html"))


def test_a_page_stays_small_however_many_functions_there_are(tmp_path: Path) -> None:
    model = bw.problems.single_queue(capacity=1_500)
    result = bw.solve(model, bw.Indicator(), bw.Fixed("uniform"))
    path = bw.report(result, tmp_path / "page.html")
    assert "The first 300 of 1,501 rows." in words(path)
    assert path.stat().st_size < 8_000_000


def test_one_state_one_action(tmp_path: Path) -> None:
    model = bw.TabularModel.from_arrays([[2.0]], [[[1.0]]], 0.5, [1.0])
    result = bw.solve(model, bw.Indicator(), bw.Fixed("initial"))
    text = words(bw.report(result, tmp_path / "page.html"))
    assert "no policy is cheaper" in text
    assert result.cost.mean == pytest.approx(4.0)


def test_bad_arguments(result: bw.Result, events: bw.Result, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    other = bw.problems.single_queue(capacity=100)
    for problem, call in {
        "expected a Result": lambda: bw.report({}, page),
        "belongs to another model": lambda: bw.report(result, page, model=other),
        "takes an Evaluation": lambda: bw.report(
            result, page, evaluation=bw.evaluation.Comparison({}, {}, "")
        ),
        "expected a Result of solve": lambda: bw.report({"a": 3}, page),  # type: ignore[dict-item]
        "episodes is 1": lambda: bw.report(events, page, episodes=1),
    }.items():
        with pytest.raises(bw.BellweightError, match=problem):
            call()
        assert not page.exists()


def test_no_half_written_page_is_left(
    result: bw.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    page.write_text("what was there before", encoding="utf-8")

    class Full(io.BytesIO):
        def writelines(self, lines: object) -> None:
            raise OSError(28, "No space left on device")

    def opened(handle: int, mode: str) -> Full:
        os.close(handle)
        return Full()

    monkeypatch.setattr(files.os, "fdopen", opened)
    with pytest.raises(bw.errors.FileError, match="No space left"):
        bw.report(result, page)
    assert page.read_text(encoding="utf-8") == "what was there before"
    assert os.listdir(tmp_path) == ["page.html"]


def save_newer(result: bw.Result, path: Path) -> None:
    """Save a result as a later version of Bellweight would."""
    result.save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(str(arrays["bellweight"]))
    header["format"] = files.FORMAT + 1
    arrays["bellweight"] = np.array(json.dumps(header))
    np.savez(path, **arrays)


def test_the_command_line_names_what_is_wrong(
    result: bw.Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, page = tmp_path / "queue.npz", tmp_path / "page.html"
    result.save(saved)
    damaged, newer = tmp_path / "damaged.npz", tmp_path / "newer.npz"
    damaged.write_bytes(saved.read_bytes()[:200])
    save_newer(result, newer)
    model = tmp_path / "model.npz"
    bw.problems.single_queue(capacity=5).save(model)
    cases = {
        ("missing.npz",): "does not exist",
        (str(damaged),): "damaged",
        (str(newer),): "update Bellweight",
        (str(model),): "holds a TabularModel, expected a Result or Comparison",
        (str(saved), "--out", str(tmp_path / "no" / "page.html")): "does not exist: make it",
        (str(saved), "--model", str(model)): "belongs to another model",
        (str(saved), "--certificate", "missing.json"): "missing.json does not exist",
    }
    for words_given, problem in cases.items():
        out = [] if "--out" in words_given else ["--out", str(page)]
        code, line = failure(["report", *words_given, *out], capsys)
        assert code == exits.BAD_INPUT
        assert problem in line
        assert not page.exists()


def test_the_command_line_from_solve_to_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = ["single_queue", "--option", "capacity=100"]
    for method in ("pia", "dia"):
        saved = ["--method", method, "--save", f"{method}.npz"]
        assert run(["solve", *model, *saved]) == exits.DONE
    about = ["--model", *model]
    both = ["pia.npz", "dia.npz"]
    compare = ["compare", *both, *about, "--episodes", "50", "--random", "--save", "both.npz"]
    assert run(compare) == exits.DONE
    assert "random" in capsys.readouterr().out
    certify = ["certify", "dia.npz", *about, "--out", "dia.json"]
    assert run(certify) == exits.DONE
    for given in (
        ["both.npz"],
        [*both, *about],
        ["dia.npz"],
        ["dia.npz", *about, "--certificate", "dia.json", "--title", "My & queue"],
    ):
        assert run(["report", *given, "--out", "page.html"]) == exits.DONE
        assert "written to page.html" in capsys.readouterr().out
    assert "My & queue" in words(tmp_path / "page.html")


def test_a_regularised_result_shows_bounds_that_hold(tmp_path: Path) -> None:
    model = bw.problems.single_queue(capacity=300)
    result = bw.solve(model, bw.Polynomial(3), bw.DIA(), regularisation=1.0)
    best = bw.exact.optimal(model).values
    assert (result.visited.value <= best + 1e-7 * np.abs(best)).all()
    assert (result.visited.residual >= -1e-9).all()
    assert "regularisation" in words(bw.report(result, tmp_path / "page.html"))


def test_an_estimated_gap_is_told_with_its_confidence(tmp_path: Path) -> None:
    model = bw.problems.scheduling("tiny")
    result = bw.solve(model, bw.Affine(), bw.DIA(), simulation=bw.Simulation(200), judge=False)
    certificate = bw.certify(model, result, episodes=100)
    assert certificate.bound is not None
    text = words(bw.report(result, tmp_path / "page.html", certificate=certificate, episodes=100))
    assert f"cheaper by more than {certificate.bound:,.0f}" in text
    assert "with 95 % confidence" in text
    assert "the cost after them has no useful bound" in text  # it is above the cost


def test_a_cycle_shows_its_phases(tmp_path: Path) -> None:
    successor = np.array([[0, 2], [4, 1], [2, 4], [1, 2], [4, 3]])
    model = bw.TabularModel.from_arrays(
        cost=[[22.0, 19.0], [3.0, 0.0], [12.0, 15.0], [10.0, 28.0], [26.0, 27.0]],
        transition=[np.eye(5)[successor[:, action]] for action in (0, 1)],
        discount=0.9,
        initial=np.eye(5)[0],
    )
    result = bw.solve(model, bw.Polynomial(2), bw.PIA())
    if not result.phases:  # found by trying degrees: the page must show what there is
        result = next(
            r for d in (1, 3) if (r := bw.solve(model, bw.Polynomial(d), bw.PIA())).phases
        )
    text = words(bw.report(result, tmp_path / "page.html"))
    assert "Phases of the cycle" in text
    assert all(f"{phase.cost:,.6g}" in text for phase in result.phases)


def test_states_spread_over_thousands_of_values(tmp_path: Path) -> None:
    desk = bw.LinearBuilder(discount=0.5)
    stock = desk.state("stock", upper=10_000, initial=bw.Law.uniform(0, 9_000))
    sold = desk.action("sold", upper=5)
    desk.require(sold <= stock)
    desk.follow(stock, stock - sold)
    desk.cost(stock - 2 * sold)
    model = desk.build()
    few = bw.Simulation(50)
    result = bw.solve(model, bw.Affine(), bw.Fixed("initial"), simulation=few, judge=False)
    assert "Mean action over the visits" in words(
        bw.report(result, tmp_path / "page.html", episodes=50)
    )


def test_what_would_be_ignored_or_mixed_up_is_refused(
    queue: bw.TabularModel, result: bw.Result, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    other = bw.solve(bw.problems.single_queue(capacity=50), bw.Polynomial(2), bw.DIA())
    foreign = bw.certify(queue, bw.solve(queue, bw.Polynomial(1), bw.DIA()))
    compared = bw.compare(queue, {"a": result.policy}, 20)
    for problem, call in {
        "different models": lambda: bw.report({"a": result, "b": other}, page),
        "certificate is about another result": lambda: bw.report(result, page, certificate=foreign),
        "one result takes no optimum": lambda: bw.report(result, page, optimum=1.0),
        "takes no certificate": lambda: bw.report({"a": result}, page, certificate=foreign),
        "takes no model: leave it out": lambda: bw.report(compared, page, model=queue),
    }.items():
        with pytest.raises(bw.errors.ArgumentError, match=problem):
            call()
    bw.report(compared, page)
    assert "1 policy met the same" in words(page)
    assert "Differences to" not in words(page)


def test_a_result_whose_basis_was_not_stored_is_still_reported(
    queue: bw.TabularModel, tmp_path: Path
) -> None:
    def features(states: Any) -> Any:
        return np.column_stack([np.ones(len(states)), states])

    bw.solve(queue, bw.Custom(features), bw.DIA()).save(tmp_path / "a.npz")
    loaded = bw.Result.load(tmp_path / "a.npz", model=queue)
    text = words(bw.report(loaded, tmp_path / "page.html"))
    assert "The states cannot be shown" in text
    assert "Audit of the linear program" in text


def test_a_loss_has_no_share_of_a_cost_of_zero(result: bw.Result) -> None:
    free = replace(result, cost=bw.evaluation.Estimate(0.0), lower_bound=-2.0)
    page = results_page({"free": Subject(free)}, None, None, None, ())
    assert "lower bound" in page
    assert "loss at most" not in page


class Given(bw.weights.Method):
    """A method of a user, which a file cannot hold."""

    def first(self, setup: Any) -> Any:
        return setup.named_point("uniform", "weights")


def test_a_method_that_was_not_stored_goes_by_its_name(
    queue: bw.TabularModel, tmp_path: Path
) -> None:
    bw.solve(queue, bw.Polynomial(2), Given()).save(tmp_path / "a.npz")
    loaded = bw.Result.load(tmp_path / "a.npz", model=queue)
    assert result_document(loaded)["method"] == "Given()"
    for subject in (loaded, {"one": loaded, "two": loaded}):
        text = words(bw.report(subject, tmp_path / "page.html"))
        assert "Given()" in text
        assert "placeholder" not in text
        assert "digest =" not in text


def test_nothing_is_made_of_rounding_errors(tmp_path: Path) -> None:
    model = bw.problems.single_queue(capacity=20)
    result = bw.solve(model, bw.Indicator(), bw.Fixed("uniform"))
    text = words(bw.report(result, tmp_path / "page.html"))
    assert "no policy is cheaper" in text
    assert "there is no residual" in text
    assert "part of the sum" not in text


def test_a_long_state_is_cut_after_a_comma() -> None:
    state = ", ".join(f"booked[day {k}] = 5" for k in range(1, 31))
    assert cut(state, 60) == "booked[day 1] = 5, booked[day 2] = 5, booked[day 3] = 5, …"
    assert cut("x" * 80, 60) == "x" * 58 + "…"
    assert cut("short, enough", 60) == "short, enough"
