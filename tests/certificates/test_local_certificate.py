"""Certificates over all states of models with local structure, and their own check."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import bellweight as bw
from bellweight.basis import ClippedProducts
from bellweight.certificates.local_check import proof_of
from bellweight.certificates.record import Record
from bellweight.problems.computers import computer_ring
from bellweight.problems.queue_network import QueueNetwork
from bellweight.program import LocalRows

CRISS_CROSS = QueueNetwork(
    [0.1, 0.1, 0.0], [0.35, 0.3, 0.2], routes=(2, None, None), groups=((0, 1), (2,))
)
RULE = CRISS_CROSS.static_priority((1, 0, 2))
BASIS = bw.Stacked(bw.PiecewiseLinear([1, 2, 4]), ClippedProducts([(0, 1)], [2]))


@pytest.fixture(scope="module")
def model() -> bw.EventModel:
    return CRISS_CROSS.model(discount=0.95, initial="geometric", decay=0.5)


@pytest.fixture(scope="module")
def result(model: bw.EventModel) -> bw.Result:
    return bw.solve(model, BASIS, bw.Fixed(), rows=LocalRows(), judge=False)


@pytest.fixture(scope="module")
def certificate(model: bw.EventModel, result: bw.Result) -> bw.Certificate:
    return bw.certify(model, result, RULE, episodes=2_000)


def test_the_value_is_proven_over_all_states(
    result: bw.Result, certificate: bw.Certificate
) -> None:
    assert certificate.kind == "exact"
    assert certificate.confidence == 0.95
    assert certificate.value == pytest.approx(result.objective, rel=1e-9)
    assert result.lower_bound == certificate.value < result.objective
    assert certificate.bound == pytest.approx(certificate.cost - certificate.value)
    assert "over all states" in str(certificate)


def test_the_value_is_below_the_optimum_of_large_truncations(certificate: bw.Certificate) -> None:
    table = CRISS_CROSS.model(0.95, "geometric", 0.5, upper=14).to_tabular()
    optimum = float(table.initial @ bw.exact.optimal(table).values)
    assert 0.8 * optimum < certificate.value < optimum


def test_it_is_verified_by_other_code(
    model: bw.EventModel, certificate: bw.Certificate, tmp_path
) -> None:
    checked = bw.verify(model, certificate, RULE)
    assert checked.passed, str(checked)
    certificate.save(tmp_path / "certificate.json")
    assert bw.verify(model, tmp_path / "certificate.json", RULE).passed
    assert not bw.verify(model, tmp_path / "certificate.json").passed


@pytest.mark.parametrize("change", ["value", "table", "slope"])
def test_a_forged_one_fails(model: bw.EventModel, certificate: bw.Certificate, change: str) -> None:
    record = {**certificate.record}
    tables = [{**table, "values": list(table["values"])} for table in record["tables"]]
    record["tables"] = tables
    value = certificate.value
    if change == "value":
        value += 0.01
    elif change == "table":
        tables[1]["values"][0] += 0.5
    else:
        tables[1]["values"][-1] += 1.0
    forged = replace(certificate, record=record, value=value, bound=certificate.cost - value)
    assert not bw.verify(model, forged.sealed(), RULE).passed


def test_what_is_lowered_is_what_the_worst_row_needs(
    model: bw.EventModel, certificate: bw.Certificate
) -> None:
    """Without costs at one queue the same tables violate rows, and the proof lowers them."""
    assert model.structure is not None
    proof = proof_of(model.structure, Record(certificate.record))
    assert abs(proof.violation) <= 1e-9 * certificate.value
    record = {**certificate.record}
    record["tables"] = [
        {**table, "values": (1.0 + 0.01 * (not table["scope"])) * np.array(table["values"])}
        for table in record["tables"]
    ]
    raised = record["tables"][0]["values"] = record["tables"][0]["values"].tolist()
    for table in record["tables"][1:]:
        table["values"] = list(table["values"])
    lowered = proof_of(model.structure, Record(record))
    added = raised[0] - certificate.record["tables"][0]["values"][0]
    assert lowered.violation == pytest.approx(0.05 * added, rel=1e-6)
    assert lowered.value == pytest.approx(proof.value, rel=1e-9)


def test_a_value_function_that_grows_too_fast_is_refused_with_the_row(
    model: bw.EventModel, result: bw.Result
) -> None:
    steep = np.array(result.coef)
    steep[result.names.index("x2")] += 30.0
    certificate = bw.certify(
        model, replace(result, coef=steep), CRISS_CROSS.longest_queue(), episodes=100
    )
    assert certificate.kind == "unproven"
    # Only the discounted slope counts: (1 - 0.95) 30 a step, less what the program left open.
    words = r"from state \[\d+, 5, \d+\] on with action \d .serve.*each further unit of x2 adds 1"
    assert re.search(words, certificate.reason)
    assert bw.verify(model, certificate).passed


def test_a_certificate_of_a_factored_model_is_verified() -> None:
    n = 3
    ring = computer_ring(n, broken=0.2, compiled=False)
    basis = bw.Stacked(bw.Affine(), ClippedProducts([(0, 1), (1, 2), (0, 2)], [1]))
    solved = bw.solve(ring, basis, bw.Fixed(), judge=False)
    certificate = bw.certify(ring, solved, bw.Uniform(), episodes=20)
    assert certificate.kind == "exact"
    assert bw.verify(ring, certificate).passed, str(bw.verify(ring, certificate))
    tables = [dict(table) for table in certificate.record["tables"]]
    tables[1]["values"] = [tables[1]["values"][0], tables[1]["values"][1] + 0.1]
    forged = replace(certificate, record={**certificate.record, "tables": tables})
    assert not bw.verify(ring, forged.sealed()).passed


def test_a_basis_that_is_not_local_proves_nothing(model: bw.EventModel) -> None:
    states = bw.sample_states(model, 300, seed=1)
    result = bw.solve(model, bw.Polynomial(2), bw.Fixed(), rows=bw.SampledRows(states), judge=False)
    certificate = bw.certify(model, result, CRISS_CROSS.longest_queue(), episodes=100)
    assert certificate.kind == "unproven"
    assert bw.verify(model, certificate).passed


def test_slopes_have_room_for_the_wider_error_bounds_of_the_verifier() -> None:
    model = bw.problems.queue_network()
    result = bw.solve(model, bw.PiecewiseLinear([1, 2, 4, 8]), bw.Fixed(), judge=False)
    certificate = bw.certify(model, result, episodes=2, jobs=1)
    assert certificate.value == pytest.approx(result.objective, rel=1e-8)
    checked = bw.verify(model, certificate)
    assert checked.passed, str(checked)
