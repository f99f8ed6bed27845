"""Certificates: never below the loss, exact identities, files, verification, honesty elsewhere."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_models import desk, nonnegative

import bellweight as bw
from bellweight.certificates.certifying import generating_policy
from bellweight.certificates.reachable_box import reachable_box
from bellweight.cli import exits
from bellweight.cli.main import run
from bellweight.program import TabularRows

METHODS = [
    bw.Fixed(),
    bw.Fixed("uniform"),
    bw.FromPolicy(),
    bw.PIA(),
    bw.DIA(),
    bw.DIA(temperature=5.0, smoothing_mass=5.0),
]


def solved(model: bw.TabularModel, basis: bw.bases.Basis, method: bw.weights.Method) -> bw.Result:
    return bw.solve(model, basis, method, stop=bw.Stop(max_iterations=20), judge=False)


@settings(max_examples=100)
@given(problem=strategies.problems(), method=st.sampled_from(METHODS), seed=st.integers(0, 2**32))
def test_bounds_are_never_below_the_true_loss(
    problem: tuple[bw.TabularModel, bw.bases.Basis, np.ndarray],
    method: bw.weights.Method,
    seed: int,
) -> None:
    model, basis, _ = problem
    result = solved(model, basis, method)
    certificate = bw.certify(model, result)
    optimal = bw.exact.optimal(model).values
    scale = float(np.abs(model.cost).max()) / (1.0 - model.discount) + 1.0
    assert result.cost is not None
    loss = result.cost.mean - model.initial @ optimal
    assert certificate.kind == "exact"
    assert certificate.bound is not None
    assert certificate.bound >= loss - 1e-9 * scale
    assert abs(certificate.bound - (certificate.cost - certificate.value)) <= 1e-8 * scale
    assert certificate.value <= model.initial @ optimal + 1e-9 * scale
    assert certificate.greedy_bound is not None
    assert certificate.greedy_bound >= loss - 1e-9 * scale
    # Any other stationary policy has a certificate too.
    rng = np.random.default_rng(seed)
    matrix = np.zeros((model.n_states, model.n_actions))
    matrix[model.pair_state, model.pair_action] = rng.random(model.n_pairs) + 1e-3
    other = bw.TablePolicy(matrix / matrix.sum(axis=1, keepdims=True))
    found = bw.certify(model, result, other)
    true_loss = model.initial @ (bw.exact.policy_value(model, other) - optimal)
    assert found.bound is not None
    assert found.bound >= true_loss - 1e-9 * scale
    assert found.greedy_bound is None


@settings(max_examples=40)
@given(problem=strategies.problems())
def test_the_terms_of_converged_runs(
    problem: tuple[bw.TabularModel, bw.bases.Basis, np.ndarray],
) -> None:
    model, basis, _ = problem
    method = bw.DIA(temperature=20.0, smoothing_mass=20.0)
    result = bw.solve(model, basis, method, stop=bw.Stop(tol=1e-10, max_iterations=60), judge=False)
    if result.status is not bw.Status.CONVERGED:
        return
    certificate = bw.certify(model, result)
    scale = float(np.abs(model.cost).max()) / (1.0 - model.discount) + 1.0
    assert certificate.mismatch is not None
    assert certificate.mismatch <= 1e-8
    # Only states without dual mass contribute to the weighted residual.
    values = TabularRows(model, result.basis).values(result.coef)
    slack = model.cost + model.discount * (model.transition @ values) - values[model.pair_state]
    greedy = result.policy.probabilities(model)
    loss = np.add.reduceat(greedy * slack, model.pair_start[:-1])
    assert result.dual is not None
    mass = np.add.reduceat(result.dual, model.pair_start[:-1])
    assert result.weights is not None
    without = float(result.weights @ np.where(mass > 0.0, 0.0, loss))
    assert certificate.weighted_residual == pytest.approx(without, abs=1e-7 * scale)


@settings(max_examples=40)
@given(model=strategies.models(), data=st.data())
def test_an_indicator_basis_with_positive_weights_loses_nothing(
    model: bw.TabularModel, data: st.DataObject
) -> None:
    result = bw.solve(model, bw.Indicator(), bw.Fixed("uniform"), judge=False)
    scale = float(np.abs(model.cost).max()) / (1.0 - model.discount) + 1.0
    assert bw.certify(model, result).bound == pytest.approx(0.0, abs=1e-8 * scale)


def test_violated_coefficients_are_repaired_first(small_queue: bw.TabularModel) -> None:
    result = bw.solve(small_queue, bw.Polynomial(2), bw.Fixed())
    lifted = result.coef + np.array([10.0, 0.0, 0.0])
    certificate = bw.certify(small_queue, replace(result, coef=lifted))
    plain = bw.certify(small_queue, result)
    assert certificate.violation == pytest.approx(10.0 * (1.0 - small_queue.discount))
    assert certificate.bound == pytest.approx(plain.bound)


def test_methods_without_smoothing_have_no_disagreement(small_queue: bw.TabularModel) -> None:
    for method in (bw.Fixed(), bw.FromPolicy(), bw.PIA()):
        certificate = bw.certify(small_queue, bw.solve(small_queue, bw.Polynomial(2), method))
        assert certificate.disagreement == 0.0
    dia = bw.solve(small_queue, bw.Polynomial(2), bw.DIA(target=bw.Fixed("uniform")))
    assert bw.certify(small_queue, dia).disagreement > 0.0  # type: ignore[operator]
    generated = generating_policy(dia)
    assert isinstance(generated, bw.policies.DualSoftmax)


# Files and verification


@pytest.fixture
def written(small_queue: bw.TabularModel, tmp_path: Path) -> Path:
    result = bw.solve(
        small_queue, bw.Polynomial(3), bw.DIA(target=bw.Fixed("uniform")), judge=False
    )
    path = tmp_path / "certificate.json"
    bw.certify(small_queue, result).save(path)
    return path


def changed(path: Path, change: Any) -> Path:
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    other = path.with_name("changed.json")
    other.write_text(json.dumps(document), encoding="utf-8")
    return other


def test_a_true_certificate_passes(written: Path, small_queue: bw.TabularModel) -> None:
    found = bw.verify(small_queue, written)
    assert found.passed, str(found)
    assert {check.term for check in found.checks} >= {
        "model", "kind", "violation", "value", "cost", "bound", "weighted_residual",
        "residual_sup", "mismatch", "disagreement", "greedy_bound",
    }  # fmt: skip
    again = bw.Certificate.load(written)
    assert bw.verify(small_queue, again).passed


@pytest.mark.parametrize("number", range(4))
def test_a_changed_coefficient_fails(
    number: int, written: Path, small_queue: bw.TabularModel
) -> None:
    def change(document: dict[str, Any]) -> None:
        document["record"]["coef"][number] *= 1.0 + 1e-4

    assert not bw.verify(small_queue, changed(written, change)).passed


@pytest.mark.parametrize(
    "term",
    ["bound", "greedy_bound", "weighted_residual", "residual_sup", "mismatch", "disagreement",
     "value", "cost", "violation"],
)  # fmt: skip
def test_a_changed_term_fails(term: str, written: Path, small_queue: bw.TabularModel) -> None:
    def change(document: dict[str, Any]) -> None:
        document[term] = document[term] * 0.99 - 1e-3

    assert not bw.verify(small_queue, changed(written, change)).passed


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(kind="estimated"),
        lambda d: d.update(greedy_bound=None),
        lambda d: d["record"].pop("policy"),
        lambda d: d["record"]["policy"].update(kind="actions", actions=[9] * 31),
        lambda d: d["record"]["weights"].reverse(),
        lambda d: d["record"]["generated"].update(smoothing_mass=0.2),
        lambda d: d["record"]["coef"].append(1.0),
        lambda d: d.update(bound=float("nan")),
    ],
)
def test_other_tampering_fails(change: Any, written: Path, small_queue: bw.TabularModel) -> None:
    assert not bw.verify(small_queue, changed(written, change)).passed


def test_another_model_fails_and_cannot_be_certified(
    written: Path, small_queue: bw.TabularModel
) -> None:
    other = bw.problems.single_queue(capacity=30, discount=0.94)
    found = bw.verify(other, written)
    assert not found.passed
    assert len(found.checks) == 1
    result = bw.solve(small_queue, bw.Polynomial(2), bw.Fixed())
    with pytest.raises(bw.errors.ArgumentError, match="another model"):
        bw.certify(other, result)


def test_files_that_are_no_certificates_are_refused(tmp_path: Path) -> None:
    for text in ("{}", "[1]", "no json", '{"bellweight_certificate": 1, "bound": 3}'):
        path = tmp_path / "some.json"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(bw.errors.FileError):
            bw.Certificate.load(path)
    with pytest.raises(bw.errors.FileError, match="cannot read"):
        bw.Certificate.load(tmp_path / "missing.json")


def test_every_basis_can_be_verified(small_queue: bw.TabularModel) -> None:
    def waves(states: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones(len(states)), states, np.cos(states / 5.0)])

    groups = np.arange(31) // 4
    for basis in (bw.Affine(), bw.Indicator(groups), bw.Indicator(), bw.Custom(waves)):
        for method in (bw.Fixed(), bw.PIA(), bw.DIA()):
            result = solved(small_queue, basis, method)
            found = bw.verify(small_queue, bw.certify(small_queue, result))
            assert found.passed, str(found)


def test_an_inadmissible_policy_has_no_certificate(two_states: bw.TabularModel) -> None:
    result = bw.solve(two_states, bw.Affine(), bw.Fixed())
    with pytest.raises(bw.errors.PolicyError, match="not admissible"):
        bw.certify(two_states, result, bw.TablePolicy(np.array([0, 7])))


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    queue = ["single_queue", "--option", "capacity=40"]
    saved, path = tmp_path / "r.npz", tmp_path / "c.json"
    assert run(["solve", *queue, "--method", "dia", "--save", str(saved)]) == exits.DONE
    model = ["--model", *queue]
    assert run(["certify", str(saved), *model, "--out", str(path)]) == exits.DONE
    printed = capsys.readouterr().out
    assert str(bw.Certificate.load(path).gap) in printed
    assert "so at most" in " ".join(printed.split())
    assert run(["verify", str(path), *model]) == exits.DONE
    assert capsys.readouterr().out.startswith("PASS")
    other = changed(path, lambda d: d.update(bound=0.0))
    assert run(["verify", str(other), *model]) == exits.NOT_VERIFIED
    assert capsys.readouterr().out.startswith("FAIL")


# Where states cannot be listed


def test_sampled_rows_are_unproven_with_evidence() -> None:
    model = bw.problems.queue_network()
    rows = bw.SampledRows(bw.sample_states(model, 600, seed=1))
    result = bw.solve(
        model, bw.Polynomial(2), bw.Fixed(), rows=rows, simulation=bw.Simulation(50, 1_379)
    )
    certificate = bw.certify(model, result, episodes=50)
    assert certificate.kind == "unproven"
    assert certificate.bound is None
    assert certificate.greedy_bound is None
    assert "not a bound" in certificate.reason
    assert certificate.evidence["along rays"] > 0.0
    assert certificate.evidence["on fresh states"] >= 0.0


def test_the_clinic_is_certified_over_all_reachable_states() -> None:
    model = bw.problems.scheduling("small")
    lower, upper = reachable_box(model)
    np.testing.assert_array_equal(lower, np.zeros(33))
    np.testing.assert_array_equal(upper, np.append(np.full(30, 10.0), np.full(3, np.inf)))
    result = bw.solve(model, nonnegative(model), bw.Fixed())
    certificate = bw.certify(model, result, episodes=64)
    assert certificate.kind == "estimated"
    assert certificate.confidence == 0.95
    assert certificate.violation == pytest.approx(0.0, abs=1e-8)
    assert certificate.value == pytest.approx(2_759.5433, abs=1e-3)
    assert certificate.bound == pytest.approx(certificate.cost - certificate.value)
    found = bw.verify(model, certificate)
    assert found.passed, str(found)
    assert not bw.verify(model, replace(certificate, bound=100.0)).passed


def test_a_linear_model_without_a_bound_on_its_costs_is_unproven() -> None:
    model = replace(bw.problems.scheduling("tiny"), first_cost=None, cost_growth=None)
    result = bw.solve(model, nonnegative(model), bw.Fixed(), judge=False)
    certificate = bw.certify(model, result, episodes=20)
    assert certificate.kind == "unproven"
    assert "after the horizon" in certificate.reason


def test_estimated_certificates_cover_the_exact_one() -> None:
    # A model that never leaves its box is both linear and a table.
    desk = bw.LinearBuilder(discount=0.8, name="desk")
    jobs = desk.state("jobs", upper=8, initial=bw.Law.uniform(0, 8))
    done = desk.action("done", upper=4)
    new = desk.noise("new", bw.Law([0, 1, 2, 3], [0.1, 0.3, 0.4, 0.2]))
    desk.require(jobs - done <= 5)
    desk.require(done <= jobs)
    desk.follow(jobs, jobs - done + new)
    desk.cost(2 * jobs + 3 * done)
    model = desk.build(first_cost=28.0, cost_growth=0.0)
    table = model.to_tabular()
    result = bw.solve(model, bw.Affine(), bw.Fixed())
    actions = np.array([result.policy.action(state)[0] for state in table.states])
    exact = table.initial @ bw.exact.policy_value(table, bw.TablePolicy(actions.astype(np.int64)))
    value = result.coef[0] + result.coef[1] * table.initial @ table.states[:, 0]
    covered = sum(
        bw.certify(model, result, episodes=100, seed=seed).bound >= exact - value - 1e-9  # type: ignore[operator]
        for seed in range(100)
    )
    assert covered >= 88


# The bounds of the primal algorithm


@settings(max_examples=60)
@given(problem=strategies.problems(), method=st.sampled_from(METHODS))
def test_the_bounds_behind_pia_hold(
    problem: tuple[bw.TabularModel, bw.bases.Basis, np.ndarray], method: bw.weights.Method
) -> None:
    model, basis, _ = problem
    bounds = bw.certificates.pia_bounds(model, solved(model, basis, method))
    assert bounds.hold, bounds
    assert model.discount - 1e-12 <= bounds.beta < 1.0


def test_a_lyapunov_function_found_is_at_least_as_good_as_the_constant(
    small_queue: bw.TabularModel,
) -> None:
    result = bw.solve(small_queue, bw.Polynomial(3), bw.PIA())
    found = bw.certificates.pia_bounds(small_queue, result)
    constant = bw.certificates.pia_bounds(small_queue, result, lyapunov=[1.0, 0.0, 0.0, 0.0])
    assert constant.beta == pytest.approx(small_queue.discount)
    assert found.approximation_bound <= constant.approximation_bound * (1.0 + 1e-9)
    assert found.hold
    assert constant.hold


def test_what_is_no_lyapunov_function_is_refused_with_a_state(
    small_queue: bw.TabularModel,
) -> None:
    result = bw.solve(small_queue, bw.Polynomial(1), bw.Fixed())
    with pytest.raises(bw.errors.ArgumentError, match="is 0 in state 0"):
        bw.certificates.pia_bounds(small_queue, result, lyapunov=[0.0, 1.0])
    with pytest.raises(bw.errors.ArgumentError, match="does not fall in"):
        bw.certificates.pia_bounds(small_queue, result, lyapunov=[1e-6, 1.0])


def test_coefficients_that_no_certificate_holds_leave_the_loss_unproven() -> None:
    moves = np.array([np.eye(3)[[1, 2, 0]], np.eye(3)[[0, 0, 1]]])
    cost = np.array([[1.0, 2.0], [3.0, 1.0], [0.0, 2.0]])
    model = bw.TabularModel.from_arrays(cost, moves, 0.9, np.array([1.0, 0.0, 0.0]))
    basis = bw.Custom(lambda states: np.column_stack([np.ones(len(states)), 1e-120 * states]))
    result = bw.solve(model, basis, bw.Fixed("uniform"), judge=False)
    certificate = bw.certify(model, result)
    assert certificate.kind == certificate.value_kind == "unproven"
    assert certificate.bound is None
    assert "beyond what a certificate may hold" in certificate.reason
    assert certificate.cost == result.cost.mean
    assert bw.verify(model, certificate).passed
    claimed = replace(certificate, bound=1.0, reason="").sealed()
    failed = {check.term for check in bw.verify(model, claimed).checks if not check.passed}
    assert failed == {"bound", "reason"}


def test_long_episodes_are_fewer_by_default() -> None:
    """At discount 0.9999 ten thousand took many minutes, in `certify` and again in `verify`."""
    model = replace(desk(), discount=0.9999)
    certificate = bw.certify(model, bw.solve(model, bw.Affine(), bw.Fixed(), judge=False))
    assert certificate.episodes == 8
    assert certificate.horizon is not None
    assert certificate.bound is not None
    assert certificate.bound <= 0.5 * float(certificate.cost or 0.0)
    assert bw.verify(model, certificate).passed
