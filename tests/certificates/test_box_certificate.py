"""Certificates over the whole box of a step model, and their own check."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.certificates import certifying
from bellweight.models import Interval, Law, Lipschitz

DEMAND = Law([0.0, 1.0, 2.5], [0.25, 0.5, 0.25])
ROWS = bw.SampledRows(np.linspace(-2.0, 6.0, 17)[:, None])
BASIS = bw.PiecewiseLinear([-1.0, 0.5, 2.0, 4.0])


def step(states: Any, action: int, noise: Any) -> Any:
    return np.clip(states + 1.5 * action - noise, -2.0, 6.0)


def cost(states: Any, action: int, noise: Any) -> Any:
    after = (states + 1.5 * action - noise)[:, 0]
    return 2.0 * action + np.maximum(after, 0.0) + 9.0 * np.maximum(-after, 0.0)


def bends(action: int, noise: Any) -> list[float]:
    return [end - 1.5 * action + noise[0] for end in (-2.0, 0.0, 6.0)]


def inventory(**options: Any) -> bw.StepModel:
    given: dict[str, Any] = {
        "dimension": 1, "actions": 3, "step": step, "cost": cost, "discount": 0.5, "noise": DEMAND,
        "initial": [Law([0.0, 1.0], [0.5, 0.5])], "lower": -2, "upper": 6, "vectorised": True,
        "cost_growth": 30.0, "quadrature": 4, "bends": bends,
    }  # fmt: skip
    return bw.StepModel(**{**given, **options})


def made(**options: Any) -> tuple[bw.StepModel, bw.Result, bw.Certificate]:
    model = inventory(**options)
    result = bw.solve(model, BASIS, bw.Fixed(), rows=ROWS, judge=False)
    return model, result, bw.certify(model, result, bw.Uniform(), episodes=4, jobs=1)


@pytest.fixture(scope="module")
def proven() -> tuple[bw.StepModel, bw.Result, bw.Certificate]:
    return made()


def test_certificate_gap_and_result_agree(proven: Any) -> None:
    model, result, certificate = proven
    gap = result.gap(model, bw.Uniform(), episodes=4, jobs=1)
    assert (certificate.kind, certificate.value_kind, certificate.confidence) == (
        "exact", "exact", 0.95,
    )  # fmt: skip
    assert certificate.value == result.lower_bound == gap.lower_bound
    assert gap == certificate.gap
    assert "declared bends" in gap.proof
    # On the lattice of half numbers the model is a finite one, whose optimum is known.
    table = inventory().to_tabular(grid=17)
    optimum = float(table.initial @ bw.exact.optimal(table).values)
    assert 0.8 * optimum < certificate.value <= optimum + 1e-9


def test_it_is_verified_by_other_code(proven: Any, tmp_path: Any) -> None:
    model, _, certificate = proven
    certificate.save(tmp_path / "certificate.json")
    checked = bw.verify(model, tmp_path / "certificate.json")
    assert checked.passed, str(checked)
    assert "proven here: the optimum lies between 6.94" in str(checked.notes)


def higher(certificate: bw.Certificate, by: float) -> bw.Certificate:
    """The same with a constant that is raised, as nothing can prove it."""
    coef = [certificate.record["coef"][0] + by, *certificate.record["coef"][1:]]
    value = certificate.value + by
    bound = None if certificate.bound is None else certificate.cost - value
    record = {**certificate.record, "coef": coef}
    return replace(certificate, value=value, bound=bound, record=record)


@pytest.mark.parametrize("change", ["constant", "slope", "kink", "value", "kind", "reason"])
def test_a_forged_one_fails(proven: Any, change: str) -> None:
    model, _, certificate = proven
    record, terms = certificate.record, [dict(term) for term in certificate.record["terms"]]
    if change == "constant":
        forged = higher(certificate, 0.01)
    elif change == "slope":
        coef = [*record["coef"][:-1], record["coef"][-1] + 0.5]
        forged = replace(certificate, record={**record, "coef": coef})
    elif change == "kink":
        terms[3]["number"] -= 1.0
        terms[3]["weight"] = [2.0]
        forged = replace(certificate, record={**record, "terms": terms})
    else:
        other = {"value": certificate.value + 0.01, "kind": "estimated", "reason": "trust me"}
        forged = replace(certificate, **{change: other[change]})
    assert not bw.verify(model, forged.sealed()).passed


@pytest.mark.filterwarnings("ignore:the lower bound is")
def test_nodes_that_stand_for_a_law_prove_nothing_about_the_loss() -> None:
    model, result, certificate = made(noise=Interval(0.0, 2.5))
    assert (certificate.kind, certificate.value_kind) == ("unproven", "estimated")
    assert certificate.value == result.lower_bound
    gap = result.gap(model, bw.Uniform(), episodes=4, jobs=1)
    assert gap == certificate.gap
    assert (gap.kind, gap.lower_bound_kind) == ("unproven", "estimated")
    assert "4 quadrature nodes" in gap.proof
    assert bw.verify(model, certificate).passed, str(bw.verify(model, certificate))
    assert not bw.verify(model, higher(certificate, 0.01).sealed()).passed
    claimed = replace(certificate, value_kind="exact")
    assert not bw.verify(model, claimed.sealed()).passed


@pytest.mark.filterwarnings("ignore:the lower bound is")
def test_of_lipschitz_constants_it_says_what_is_not_independent() -> None:
    model, result, certificate = made(bends=None, lipschitz=Lipschitz(1.0, 9.0))
    assert certificate.value == result.lower_bound
    checked = bw.verify(model, certificate)
    assert checked.passed, str(checked)
    assert "found by the code of certify" in str(checked.notes)
    assert not bw.verify(model, higher(certificate, 0.01).sealed()).passed
    solved = [certificate.record["solved"][0] + 0.01, *certificate.record["solved"][1:]]
    raised = replace(certificate, record={**certificate.record, "solved": solved})
    assert bw.verify(model, raised.sealed()).passed  # the repair takes it back
    steep = [*solved[:-1], solved[-1] + 0.5]
    forged = replace(certificate, record={**certificate.record, "solved": steep})
    assert not bw.verify(model, forged.sealed()).passed


@pytest.mark.filterwarnings("ignore:the lower bound is")
def test_without_a_declaration_no_claim_passes(
    proven: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certifying, "_FRESH", 10)
    model, _, unproven = made(bends=None, cost_growth=None)
    assert unproven.value_kind == "unproven"
    assert bw.verify(model, unproven).passed
    claimed = replace(proven[2], model_digest=model.digest)
    assert not bw.verify(model, claimed.sealed()).passed
    # What is declared but gives no bound is said.
    model, _, refused = made(initial=[Interval(0.0, 1.0)], cost_growth=None)
    assert refused.reason.startswith("nothing is proven over the box: the first states")
    assert bw.verify(model, refused).passed


def test_without_a_bound_on_the_tail_the_value_is_still_proven() -> None:
    model, result, certificate = made(cost_growth=None)
    assert (certificate.kind, certificate.value_kind) == ("unproven", "exact")
    assert certificate.value == result.lower_bound == certificate.gap.lower_bound
    assert bw.verify(model, certificate).passed, str(bw.verify(model, certificate))
    assert not bw.verify(model, higher(certificate, 0.01).sealed()).passed
