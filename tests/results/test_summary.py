"""What is printed of a result, short texts of objects, and results in the place of policies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bellweight as bw
from bellweight.results.judgement import judge
from bellweight.results.summary import dual_text, value_text


@pytest.fixture(scope="module")
def result(small_queue: bw.TabularModel) -> bw.Result:
    return bw.solve(small_queue, bw.Polynomial(2), bw.DIA())


@pytest.fixture(scope="module")
def small_queue() -> bw.TabularModel:
    return bw.problems.single_queue(capacity=30)


def test_a_result_fits_a_screen(result: bw.Result) -> None:
    lines = str(result).splitlines()
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 80
    names = [line[:12].strip() for line in lines[1:]]
    assert names.index("cost") < names.index("at random") < names.index("weights")
    assert names[-1] in {"next", ""}


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "DIA follows its target here, and its weights are those of the target's occupancy"),
        (0.25, "decides on 25 % of visits; on the others DIA follows its target"),
        (1.0, "decides on all visits"),
    ],
)
def test_the_share_of_the_dual_is_said_in_words(share: float, words: str) -> None:
    assert words in dual_text(share)


def test_texts_of_objects_are_short(small_queue: bw.TabularModel, result: bw.Result) -> None:
    things = [
        small_queue, bw.problems.scheduling("small"), result, result.policy, result.generated,
        bw.TablePolicy(np.zeros(31, dtype=int)), bw.Fixed(np.ones(31) / 31), bw.Auto(),
        bw.SampledRows(np.zeros((300, 2))), bw.certify(small_queue, result),
        bw.Stacked(bw.Polynomial(1), bw.Fourier(30)), bw.PiecewiseLinear(range(1, 30)),
    ]  # fmt: skip
    for thing in things:
        assert len(repr(thing)) <= 120
        assert "\n" not in repr(thing)
        assert "array(" not in repr(thing)


def test_texts_name_what_is_not_usual() -> None:
    assert repr(bw.Polynomial(3)) == "Polynomial(degree=3)"
    assert repr(bw.DIA()) == "DIA()"
    assert repr(bw.DIA(temperature=0.5)) == "DIA(temperature=0.5)"
    assert repr(bw.Stop(max_iterations=7)) == "Stop(max_iterations=7)"


def test_results_stand_for_their_policies(small_queue: bw.TabularModel, result: bw.Result) -> None:
    plain = bw.evaluate(small_queue, result.policy, 50, seed=3)
    assert bw.evaluate(small_queue, result, 50, seed=3) == plain
    found = bw.compare(small_queue, {"ours": result, "any": bw.Uniform()}, 50, seed=3)
    assert found.evaluations["ours"] == plain


def test_what_is_no_policy_gets_one_short_line(small_queue: bw.TabularModel) -> None:
    for wrong in (np.zeros(10_000), [1] * 500, small_queue, "greedy", None):
        with pytest.raises(bw.errors.PolicyError, match="expected a bellweight policy") as caught:
            bw.evaluate(small_queue, wrong)  # type: ignore[arg-type]
        assert len(str(caught.value)) < 220


def test_no_better_than_the_target_is_a_warning(
    small_queue: bw.TabularModel, result: bw.Result
) -> None:
    setup = bw.weights.SolveSettings(model=small_queue, basis=bw.Polynomial(2)).setup()
    found, notes = judge(setup, result.policy, target=result.policy)
    assert found.minus_target is not None
    assert found.minus_target.mean == 0.0
    assert len(notes) == 1
    assert "costs as much as the target of its method" in notes[0]
    assert "act by the target itself" in notes[0]


def test_a_gap_is_found_without_asking_for_certificates_first(
    small_queue: bw.TabularModel, result: bw.Result
) -> None:
    assert "so at most" in " ".join(str(result.gap(small_queue)).split())


def test_what_cannot_win_is_not_tried(small_queue: bw.TabularModel) -> None:
    exact = bw.solve(small_queue, bw.Indicator(), bw.Auto())
    assert any("is proven optimal" in note for note in exact.notes)
    told = bw.solve(small_queue, bw.Polynomial(2), bw.Auto(regularisations=[1e3, 1e4, 1e5]))
    tried = {name for s in told.standings for name in (s.name, *s.alike)}
    assert "Fixed, smoothed by 1000" in tried | {told.winner}
    assert not any("100000" in name for name in tried)
    assert any("less smoothing was better" in note for note in told.notes)


def test_what_rounding_left_of_a_zero_is_not_shown(result: bw.Result) -> None:
    """A tiny coefficient is shown where it matters, as that of a high power far away may."""
    left = replace(result, coef=np.array([5.0, -2.0, 3e-32]))
    assert value_text(left) == "5 - 2 x"
    assert value_text(replace(result, coef=np.array([-5.0, 0.0, 3e-9]))) == "-5 + 3e-09 x^2"
    assert value_text(replace(result, coef=np.zeros(3))) == "0"
