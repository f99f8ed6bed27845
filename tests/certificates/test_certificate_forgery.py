"""Certificates that were changed: every field, every entry, every type; none of them passes."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linear_models import desk, nonnegative
from mutations import put

import bellweight as bw
from bellweight.basis import ClippedProducts
from bellweight.models import Law
from bellweight.policies import DualSoftmax, Support
from bellweight.problems.computers import computer_ring

ODD: list[Any] = [
    None, True, "text", "1.0", [], [1.0], {}, {"a": 1}, 10**400, -(10**30), 1e308, -1e308,
    math.inf, -math.inf, math.nan, -1, 0, 0.5, 3,
]  # fmt: skip
FIELDS = [field.name for field in dataclasses.fields(bw.Certificate)]
NUMBERS = ["bound", "value", "cost"]


def tabular() -> tuple[bw.Certificate, Any]:
    queue = bw.problems.single_queue(capacity=12, discount=0.9)
    result = bw.solve(queue, bw.Polynomial(2), bw.DIA(target=bw.Fixed("uniform")), judge=False)
    return bw.certify(queue, result), queue


def estimated() -> tuple[bw.Certificate, Any]:
    model = desk()
    return bw.certify(model, bw.solve(model, bw.Affine(), bw.Fixed()), episodes=40), model


def unproven() -> tuple[bw.Certificate, Any]:
    network = bw.problems.QueueNetwork(
        arrivals=[0.2, 0.0], services=[0.35, 0.3], routes=[1, None], groups=[[0, 1]]
    )
    model = network.model(discount=0.9)
    rows = bw.SampledRows(bw.sample_states(model, 60, seed=1))
    result = bw.solve(model, bw.Polynomial(2), bw.Fixed(), rows=rows)
    return bw.certify(model, result, episodes=20), model


def local() -> tuple[bw.Certificate, Any]:
    network = bw.problems.QueueNetwork(
        arrivals=[0.2, 0.0], services=[0.35, 0.3], routes=[1, None], groups=[[0, 1]]
    )
    model = network.model(discount=0.9)
    result = bw.solve(model, bw.PiecewiseLinear([1, 3]), bw.Fixed(), rows=bw.LocalRows())
    return bw.certify(model, result, episodes=20), model


def factored() -> tuple[bw.Certificate, Any]:
    model = computer_ring(2, broken=0.2, compiled=False)
    basis = bw.Stacked(bw.Affine(), ClippedProducts([(0, 1)], [1]))
    result = bw.solve(model, basis, bw.Fixed(), judge=False)
    return bw.certify(model, result, bw.Uniform(), episodes=20), model


def step() -> tuple[bw.Certificate, Any]:
    model = bw.StepModel(
        dimension=1, actions=2, discount=0.5, lower=0, upper=4, vectorised=True,
        step=lambda states, action, noise: np.clip(states + action - noise, 0.0, 4.0),
        cost=lambda states, action: states[:, 0] + 2.0 * action,
        bends=lambda action, noise: [noise[0] - action, 4.0 + noise[0] - action],
        noise=Law([0.0, 1.0], [0.5, 0.5]), initial=[Law([0.0, 2.0], [0.5, 0.5])], cost_growth=9.0,
    )  # fmt: skip
    rows = bw.SampledRows(np.linspace(0.0, 4.0, 9)[:, None])
    result = bw.solve(model, bw.PiecewiseLinear([1.0, 2.5]), bw.Fixed(), rows=rows, judge=False)
    return bw.certify(model, result, bw.Uniform(), episodes=4, jobs=1), model


MADE = {
    "tabular": tabular, "estimated": estimated, "unproven": unproven, "local": local,
    "factored": factored, "step": step,
}  # fmt: skip


@pytest.fixture(scope="module", params=MADE)
def made(request: pytest.FixtureRequest) -> tuple[bw.Certificate, Any]:
    found: tuple[bw.Certificate, Any] = MADE[request.param]()
    return found


def entries(record: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a record, lists by their first and last entry."""
    if path:
        yield path
    if isinstance(record, dict):
        for key in record:
            yield from entries(record[key], (*path, key))
    elif isinstance(record, list) and record:
        for k in {0, len(record) - 1}:
            yield from entries(record[k], (*path, k))


def rejected(certificate: bw.Certificate, model: Any) -> bool:
    try:
        return not bw.verify(model, certificate).passed
    except bw.BellweightError:
        return True


def differs(one: Any, other: Any) -> bool:
    return type(one) is not type(other) or one != other


def moved(value: Any) -> Any:
    """A value of the same type, and another one."""
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, bool) or value is None:
        return 1.0
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return 1.001 * value + 1e-3
    if isinstance(value, dict):
        return {**value, "more": 1.0}
    return [*value, value[-1] if value else 1.0]


def test_true_ones_pass(made: tuple[bw.Certificate, Any], tmp_path: Path) -> None:
    certificate, model = made
    found = bw.verify(model, certificate)
    assert found.passed, str(found)
    certificate.save(tmp_path / "c.json")
    assert bw.verify(model, tmp_path / "c.json").passed
    assert bw.Certificate.load(tmp_path / "c.json") == certificate


def test_every_field_that_is_changed_is_noticed(made: tuple[bw.Certificate, Any]) -> None:
    certificate, model = made
    for name in FIELDS:
        for value in [moved(getattr(certificate, name)), *ODD]:
            if differs(value, getattr(certificate, name)):
                assert rejected(replace(certificate, **{name: value}), model), (name, value)


def test_every_entry_of_the_record_that_is_changed_is_noticed(
    made: tuple[bw.Certificate, Any],
) -> None:
    certificate, model = made
    for path in entries(certificate.record):
        old: Any = certificate.record
        for key in path:
            old = old[key]
        for value in [moved(old), *ODD]:
            if differs(value, old):
                record = put(certificate.record, path, value)
                assert rejected(replace(certificate, record=record), model), (path, value)


def test_files_with_every_odd_value_end_in_named_errors(
    made: tuple[bw.Certificate, Any], tmp_path: Path
) -> None:
    certificate, model = made
    certificate.save(tmp_path / "c.json")
    document = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    path = tmp_path / "changed.json"
    for name in document:
        for value in ODD:
            if not differs(value, document[name]):
                continue
            path.write_text(json.dumps({**document, name: value}), encoding="utf-8")
            with contextlib.suppress(bw.errors.FileError):
                bw.Certificate.load(path)
            with contextlib.suppress(bw.errors.FileError):
                assert not bw.verify(model, path).passed, (name, value)
        path.write_text(
            json.dumps({k: v for k, v in document.items() if k != name}), encoding="utf-8"
        )
        with pytest.raises(bw.errors.FileError):
            bw.Certificate.load(path)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "1" + "0" * 400, "1" * 5_000])
def test_numbers_beyond_all_bounds_are_refused(number: str, tmp_path: Path) -> None:
    certificate, model = tabular()
    path = tmp_path / "c.json"
    certificate.save(path)
    text = path.read_text(encoding="utf-8")
    for name in NUMBERS:
        claimed = f'"{name}": {json.dumps(getattr(certificate, name))}'
        assert claimed in text
        path.write_text(text.replace(claimed, f'"{name}": {number}'), encoding="utf-8")
        with pytest.raises(bw.errors.FileError):
            bw.Certificate.load(path)
        forged = bw.verify(model, path) if len(number) < 4_000 else None
        assert forged is None or not forged.passed


def test_one_infinite_claim_does_not_carry_the_others() -> None:
    certificate, model = tabular()
    forged = replace(certificate, value=math.inf, cost=5.0, bound=0.0)
    found = bw.verify(model, forged)
    assert not found.passed
    assert "finite" in " ".join(str(found).split())
    with pytest.raises(bw.errors.ArgumentError, match="finite"):
        forged.sealed()


def test_deep_and_broken_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    for text in (
        "[" * 100_000,
        '{"bellweight_certificate": true}',
        '{"bellweight_certificate": 2}',
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(bw.errors.FileError):
            bw.Certificate.load(path)
    path.write_bytes(b"\xff\xfe{")
    with pytest.raises(bw.errors.FileError):
        bw.Certificate.load(path)
    with pytest.raises(bw.errors.FileError, match="cannot read"):
        bw.Certificate.load(tmp_path)


# Whoever changes a certificate can compute the checksum again


def forged(certificate: bw.Certificate, **changes: Any) -> bw.Certificate:
    return replace(certificate, **changes).sealed()


PROVEN = [
    "bound", "greedy_bound", "weighted_residual", "residual_sup", "mismatch", "disagreement",
    "kind", "reason", "value", "value_kind", "cost", "confidence", "evidence", "model_digest",
    "tolerance", "seed", "episodes", "horizon",
]  # fmt: skip
STATED = {
    "local": PROVEN,
    "factored": PROVEN,
    "step": PROVEN,
    "tabular": [
        "bound", "greedy_bound", "weighted_residual", "residual_sup", "mismatch", "disagreement",
        "kind", "reason", "value", "value_kind", "cost", "violation", "repair", "confidence",
        "evidence", "model_digest", "tolerance", "seed", "episodes", "horizon",
    ],
    "estimated": [
        "bound", "greedy_bound", "weighted_residual", "residual_sup", "mismatch", "disagreement",
        "kind", "reason", "value", "value_kind", "cost", "violation", "repair", "confidence",
        "evidence", "model_digest", "tolerance", "seed", "episodes", "horizon",
    ],
    "unproven": [
        "bound", "greedy_bound", "weighted_residual", "residual_sup", "mismatch", "disagreement",
        "kind", "reason", "value_kind", "violation", "repair", "confidence", "model_digest",
        "tolerance",
    ],
}  # fmt: skip
OTHER = {
    "kind": "exact",
    "value_kind": "estimated",
    "confidence": 0.9,
    "episodes": 41,
    "horizon": 77,
}


@pytest.mark.parametrize("kind", MADE)
def test_a_new_checksum_does_not_save_a_changed_field(kind: str) -> None:
    certificate, model = MADE[kind]()
    for name in STATED[kind]:
        value = OTHER.get(name, moved(getattr(certificate, name)))
        if name == "kind" and certificate.kind == "exact":
            value = "estimated"
        assert not bw.verify(model, forged(certificate, **{name: value})).passed, name
    unchecked = set(FIELDS) - set(STATED[kind]) - {"record", "checksum"}
    told = " ".join(bw.verify(model, certificate).notes)
    for name in unchecked:
        assert name in told, f"{name} is neither checked nor said not to be"


@pytest.mark.parametrize(
    ("entry", "change"),
    [
        ("coef", lambda old: [old[0], old[1] + 1e-3, *old[2:]]),
        ("coef", lambda old: [*old, 1.0]),
        ("solved", lambda old: [old[0] + 1.0, *old[1:]]),
        ("basis", lambda old: {**old, "exponents": old["exponents"][::-1]}),
        ("basis", lambda old: {"kind": "unknown", "reason": "too large"}),
        ("moments", lambda old: [old[0], old[1] + 1e-3, *old[2:]]),
        ("weights", lambda old: old[::-1]),
        ("policy", lambda old: {"kind": "uniform"}),
        ("policy", lambda old: {"kind": "actions", "actions": old["actions"][::-1]}),
        ("policy", lambda old: {"kind": "actions", "actions": [9] * 13}),
        ("generated", lambda old: {"kind": "uniform"}),
        ("generated", lambda old: {**old, "smoothing_mass": 0.7}),
        ("names", lambda old: old[:-1]),
        ("method", lambda old: 3),
    ],
)
def test_a_new_checksum_does_not_save_a_changed_record(entry: str, change: Any) -> None:
    certificate, model = tabular()
    record = {**certificate.record, entry: change(certificate.record[entry])}
    assert not bw.verify(model, forged(certificate, record=record)).passed


def test_probabilities_that_are_a_little_short_are_made_whole() -> None:
    model = tabular()[1]
    policy = bw.TablePolicy(np.eye(1, model.n_actions)[[0] * model.n_states] * (1.0 - 9e-9))
    found = bw.certify(model, bw.solve(model, bw.Polynomial(2), bw.Fixed()), policy)
    exact = model.initial @ bw.exact.policy_value(
        model, bw.TablePolicy(np.zeros(13, dtype=np.int64))
    )
    assert found.cost == pytest.approx(exact, rel=1e-13)
    assert bw.verify(model, found).passed


def test_weights_miss_a_sum_of_one_by_what_rows_miss_in_every_step() -> None:
    chances = np.full((2, 2), 0.5) * (1.0 - 4e-9)
    model = bw.TabularModel.from_arrays([[1.0], [2.0]], [chances], 0.99, [0.5, 0.5])
    found = bw.certify(model, bw.solve(model, bw.Polynomial(1), bw.DIA()))
    assert found.greedy_bound is not None
    assert bw.verify(model, found).passed


def test_values_beyond_all_numbers_do_not_hide_the_rows_that_fail() -> None:
    # The 64th power of a far state times a huge coefficient is infinite: its row says nothing.
    model = bw.problems.single_queue(initial="empty")
    result = bw.solve(model, bw.Polynomial(2), bw.Fixed("initial"), judge=False)
    found = bw.certify(model, result, bw.Uniform())
    raised = 0.99 * found.cost - found.value
    old = found.record
    record = {
        **old, "names": [*old["names"], "x^64"], "moments": [*old["moments"], 0.0],
        "basis": {"kind": "monomials", "exponents": [*old["basis"]["exponents"], [64]]},
        "coef": [old["coef"][0] + raised, *old["coef"][1:], 9e99], "solved": [*old["solved"], 0.0],
        "rest": [*old["rest"], 0.0],
    }  # fmt: skip
    value = found.value + raised
    claim = forged(
        found, value=value, bound=found.cost - value, repair=old["solved"][0] - value, record=record
    )
    checked = bw.verify(model, claim)
    assert not checked.passed
    assert "too large" in str(checked)


def test_what_rounding_takes_from_coefficients_is_recorded_and_is_no_more(tmp_path: Path) -> None:
    model = bw.problems.single_queue(capacity=4_999, initial="reverse")
    result = bw.solve(model, bw.Polynomial(8), bw.DIA(), judge=False)
    found = bw.certify(model, result)
    coef, rest = np.array(found.record["coef"]), np.array(found.record["rest"])
    found.save(tmp_path / "c.json")
    assert bw.verify(model, tmp_path / "c.json").passed
    assert found.value == result.lower_bound
    raised = [float(rest[0] + 1.0 + 2.0**-52 * abs(coef[0])), *rest[1:].tolist()]
    record = {**found.record, "rest": raised}
    checked = bw.verify(model, forged(found, record=record))
    assert "record.rest is more than" in str(checked)


def test_what_rounding_may_hide_is_taken_from_the_value_over_a_box() -> None:
    # The same huge slope up and down: what is left of other terms beside them is not known.
    certificate, model = step()
    record = certificate.record
    line = {"kind": "coordinate", "index": [0], "weight": [1.0], "number": 0.0}
    record = {
        **record, "names": ["up", "down", *record["names"]],
        "terms": [line, line, *record["terms"]], "coef": [1e12, -1e12, *record["coef"]],
        "moments": [0.0, 0.0, *record["moments"]],
    }  # fmt: skip
    checked = bw.verify(model, forged(certificate, record=record))
    found = {check.term: check.found for check in checked.checks}
    assert found["value"] < certificate.value - 0.01
    assert not checked.passed


@pytest.mark.parametrize("kind", ["tabular", "estimated", "local", "step"])
def test_no_policy_costs_less_than_the_value(kind: str) -> None:
    certificate, model = MADE[kind]()
    below = certificate.value - 0.1
    assert not bw.verify(
        model, forged(certificate, cost=below, bound=below - certificate.value)
    ).passed


@pytest.mark.parametrize("kind", ["estimated", "local", "factored", "step"])
def test_a_cost_that_was_not_simulated_is_found_out(kind: str) -> None:
    certificate, model = MADE[kind]()
    for share in (0.5, 0.999, 1.001):
        cost = certificate.value + share * (certificate.cost - certificate.value)
        claim = forged(certificate, cost=cost, bound=cost - certificate.value)
        failed = {check.term for check in bw.verify(model, claim).checks if not check.passed}
        assert failed == {"cost", "bound"}


def test_a_huge_negative_value_does_not_loosen_the_cost() -> None:
    certificate, model = tabular()
    low = [-1e12, *certificate.record["coef"][1:]]
    record = {k: v for k, v in certificate.record.items() if k not in ("weights", "generated")}
    value = certificate.value - certificate.record["coef"][0] - 1e12
    base = forged(
        replace(certificate, **dict.fromkeys(CORO)), value=value, repair=certificate.value - value,
        bound=certificate.cost - value, record={**record, "coef": low},
    )  # fmt: skip
    assert bw.verify(model, base).passed, str(bw.verify(model, base))
    assert not bw.verify(model, forged(base, cost=0.999 * base.cost)).passed


def chain_of_three(cost: list[list[float]]) -> bw.TabularModel:
    """From the first state to the second and on to the third, which stays."""
    moves = np.zeros((2, 3, 3))
    moves[:, [0, 1, 2], [1, 2, 2]] = 1.0
    return bw.TabularModel.from_arrays(np.array(cost), moves, 0.9, np.eye(3)[0])


def apart(cost: list[list[float]]) -> bw.TabularModel:
    """Three states, none of which is left."""
    moves = np.eye(3)[None].repeat(2, 0)
    return bw.TabularModel.from_arrays(np.array(cost), moves, 0.9, np.eye(3)[0])


def exact_cost(model: bw.TabularModel, state: int) -> Fraction:
    """What the second action costs from a state on, where moves are certain."""
    pair, discount = 2 * state + 1, Fraction(model.discount)
    paid, following = Fraction(float(model.cost[pair])), int(model.transition.indices[pair])
    if following == state:
        return paid / (1 - discount)
    return paid + discount * exact_cost(model, following)


@pytest.mark.parametrize(
    "model",
    [
        chain_of_three([[1e9, 1e9], [1.0 - 1e9 / 0.9, 2.0 - 1e9 / 0.9], [1.0, 3.0]]),
        apart([[1.0, 2.0], [1e12, 2e12], [1.0, 3.0]]),
    ],
    ids=["costs that cancel", "costs elsewhere"],
)
def test_numbers_that_cancel_or_count_nowhere_carry_no_claim(model: bw.TabularModel) -> None:
    result = bw.solve(model, bw.Indicator(), bw.Fixed("uniform"), judge=False)
    policy = bw.TablePolicy(np.ones(3, dtype=np.int64))
    found = bw.certify(model, result, policy)
    assert bw.verify(model, found).passed, str(bw.verify(model, found))
    assert Fraction(found.cost) >= exact_cost(model, 0)
    for share in (1.0, 1e-3, 1e-5):
        cost = found.cost - share * (found.cost - found.value)
        claim = forged(found, cost=cost, bound=cost - found.value)
        failed = {check.term for check in bw.verify(model, claim).checks if not check.passed}
        assert failed == {"cost", "bound"}, share
        value = found.value + share * (found.cost - found.value)
        claim = forged(found, value=value, bound=found.cost - value)
        assert not bw.verify(model, claim).passed, share


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_coefficients_that_are_no_numbers_are_refused(kind: str, number: float) -> None:
    results: list[bw.Result] = []
    solve = bw.solve

    def kept(*given: Any, **more: Any) -> bw.Result:
        results.append(solve(*given, **more))
        return results[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bw, "solve", kept)
        model = MADE[kind]()[1]
    spoilt = replace(results[-1], coef=np.append(results[-1].coef[:-1], number))
    with pytest.raises(bw.errors.ArgumentError, match="not finite"):
        bw.certify(model, spoilt, bw.Uniform(), episodes=20)


def test_coefficients_beyond_all_numbers_prove_nothing() -> None:
    model = factored()[1]
    basis = bw.Stacked(bw.Affine(), ClippedProducts([(0, 1)], [1]))
    result = bw.solve(model, basis, bw.Fixed(), judge=False)
    spoilt = replace(result, coef=np.append(result.coef[:-1], 1e308))
    with pytest.raises(bw.errors.ArgumentError, match="too large"):
        bw.certify(model, spoilt, bw.Uniform(), episodes=20)


CORO = ["greedy_bound", "weighted_residual", "residual_sup", "mismatch", "disagreement"]


# Linear models


def two_greedy(model: bw.LinearModel) -> tuple[bw.Result, bw.Greedy]:
    result = bw.solve(model, bw.Affine(), bw.Fixed())
    other = bw.Greedy(basis=bw.Affine(), coef=np.zeros(2), model=model)
    return result, other


def test_another_greedy_policy_is_checked_against_itself() -> None:
    model = desk()
    result, other = two_greedy(model)
    own = bw.certify(model, result, episodes=40)
    found = bw.certify(model, result, other, episodes=40)
    assert abs(found.cost - own.cost) > 1.0
    assert bw.verify(model, found).passed, str(bw.verify(model, found))
    swapped = {**found.record, "policy": own.record["policy"]}
    assert not bw.verify(model, forged(found, record=swapped)).passed


def test_what_decides_ties_is_recorded() -> None:
    model = desk()
    result = bw.solve(model, bw.Affine(), bw.Fixed())
    for wish in ([1.0, 0.0], [0.0, 1.0]):
        policy = replace(result.policy, preference=np.array(wish))
        found = bw.certify(model, result, policy, episodes=20)
        assert found.record["policy"]["preference"] == wish
        assert bw.verify(model, found).passed


def test_random_and_softmax_policies_are_verified() -> None:
    model = bw.problems.scheduling("tiny")
    result = bw.solve(model, nonnegative(model), bw.Fixed(), judge=False)
    softmax = bw.policies.DualSoftmax(result.support, bw.Uniform(), 1.0, 0.5)
    for policy in (bw.Uniform(), softmax):
        found = bw.certify(model, result, policy, episodes=20)
        assert found.kind == "estimated"
        assert bw.verify(model, found).passed, str(bw.verify(model, found))


def test_a_rule_cannot_be_recorded_and_is_given_to_verify() -> None:
    model = desk()
    result = bw.solve(model, bw.Affine(), bw.Fixed())

    def rule(most: int) -> bw.Rule:
        return bw.Rule(
            lambda states: np.column_stack([np.minimum(states[:, 0], most), 0 * states[:, 0]])
        )

    certificate = bw.certify(model, result, rule(4), episodes=20)
    found = bw.verify(model, certificate)
    assert not found.passed
    assert "a Rule with functions of its own, which a certificate" in " ".join(str(found).split())
    assert bw.verify(model, certificate, rule(4)).passed
    other = bw.verify(model, certificate, rule(5))
    assert not other.passed
    assert "not the one that the certificate is about" in " ".join(str(other).split())
    with pytest.raises(bw.errors.ArgumentError, match="leave it out"):
        bw.verify(model, bw.certify(model, result, episodes=20), rule(4))


# Policies of event models


def test_every_policy_that_is_recorded_is_simulated_again() -> None:
    network = bw.problems.QueueNetwork(
        arrivals=[0.2, 0.0], services=[0.35, 0.3], routes=[1, None], groups=[[0, 1]]
    )
    model = network.model(discount=0.9)
    result = bw.solve(model, bw.PiecewiseLinear([1, 3]), bw.Fixed(), rows=bw.LocalRows())
    near = np.array([[1, 0], [0, 1], [1, 1], [2, 1]])
    dual = Support(near, np.array([1, 0, 1, 0]), np.array([0.5, 1.0, 2.0, 1.0]))
    several = np.array([result.coef, 0.5 * result.coef])
    policies = [
        bw.Uniform(),
        bw.Greedy(basis=result.basis, coef=result.coef),
        bw.Greedy(basis=result.basis, coef=several),
        bw.Greedy(basis=bw.Polynomial(2), coef=np.arange(6.0), dual=dual),
        DualSoftmax(dual, bw.Greedy(basis=result.basis, coef=result.coef), 0.3, 0.1),
        DualSoftmax(dual, bw.Uniform(), 0.3, 0.1, extend=2.0),
    ]
    for policy in policies:
        certificate = bw.certify(model, result, policy, episodes=20)
        found = bw.verify(model, certificate)
        assert found.passed, (policy, str(found))
        again = certificate.record["policy"]
        others = {
            "kind": "greedy" if again["kind"] == "uniform" else "uniform",
            "coef": np.negative(again.get("coef", 0.0)).tolist(),
            "target": {"kind": "uniform" if isinstance(policy.target, bw.Greedy) else "greedy"}
            if isinstance(policy, DualSoftmax) else None,
            "temperature": 100.0,
            "extend": 3.0,
        }  # fmt: skip
        for name in sorted(set(others) & set(again)):
            changed = {**certificate.record, "policy": {**again, name: others[name]}}
            wrong = bw.verify(model, forged(certificate, record=changed))
            assert not wrong.passed, (policy, name)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("values", [-0.5, 0.25]),
        ("actions", [1, 7]),
        ("actions", [1, -1]),
        ("states", [[0, 1], [2, -1]]),
        ("states", [[0, 1], [2, 1.5]]),
        ("temperature", 0.0),
        ("target", {"kind": "rule"}),
    ],
)
def test_a_softmax_that_cannot_act_is_refused(entry: str, value: Any) -> None:
    model = local()[1]
    result = bw.solve(model, bw.PiecewiseLinear([1, 3]), bw.Fixed(), rows=bw.LocalRows())
    dual = Support(np.array([[0, 1], [2, 1]]), np.array([1, 1]), np.array([0.5, 0.25]))
    softmax = DualSoftmax(dual, bw.Uniform(), 0.3, 0.1)
    certificate = bw.certify(model, result, softmax, episodes=20)
    policy = {**certificate.record["policy"], entry: value}
    record = {**certificate.record, "policy": policy}
    assert not bw.verify(model, forged(certificate, record=record)).passed


def test_the_violation_of_a_linear_model_is_proven_by_multipliers() -> None:
    certificate, model = estimated()
    assert certificate.record["multipliers"] is not None
    assert any(note.startswith("independent") for note in bw.verify(model, certificate).notes)
    for change in (
        lambda old: [0.0] * len(old),
        lambda old: [-y for y in old],
        lambda old: [y + 1.0 for y in old],
    ):
        record = {**certificate.record, "multipliers": change(certificate.record["multipliers"])}
        assert not bw.verify(model, forged(certificate, record=record)).passed


def test_multipliers_bound_the_slack_of_every_pair() -> None:
    from bellweight.certificates.weak_duality import least_slack

    model = desk()
    table = model.to_tabular()
    rng = np.random.default_rng(1)
    box = model.state_lower, model.state_upper
    for _ in range(50):
        coef, multipliers = 5.0 * rng.standard_normal(2), 3.0 * rng.standard_normal(2)
        values = coef[0] + coef[1] * table.states[:, 0]
        slack = table.cost + table.discount * (table.transition @ values)
        slack -= values[table.pair_state]
        assert least_slack(model, coef, box, multipliers) <= slack.min() + 1e-12


def test_the_clinic_with_endless_backlogs_is_proven_by_multipliers() -> None:
    model = bw.problems.scheduling("small")
    result = bw.solve(model, nonnegative(model), bw.Fixed())
    certificate = bw.certify(model, result, episodes=16)
    assert certificate.kind == "estimated"
    assert certificate.record["multipliers"] is not None
    assert bw.verify(model, certificate).passed, str(bw.verify(model, certificate))


def test_a_claim_to_simulate_for_ever_is_refused() -> None:
    certificate, model = estimated()
    found = bw.verify(model, forged(certificate, episodes=10**15))
    assert not found.passed
    assert "not simulated again" in " ".join(str(found).split())


# The verifier's own arithmetic


def exact_queue(degree: int, initial: str) -> tuple[bw.TabularModel, bw.Certificate]:
    queue = bw.problems.single_queue(capacity=1_000, initial=initial)
    result = bw.solve(queue, bw.Polynomial(degree), bw.Fixed())
    return queue, bw.certify(queue, result)


@pytest.mark.parametrize("make", [lambda: exact_queue(3, "empty"), lambda: exact_queue(5, "empty")])
def test_what_is_found_never_lies_above_the_optimum(
    make: Callable[[], tuple[bw.TabularModel, bw.Certificate]],
) -> None:
    model, certificate = make()
    found = {check.term: check.found for check in bw.verify(model, certificate).checks}
    optimum = float(model.initial @ bw.exact.optimal(model).values)
    assert found["value"] <= optimum + 1e-12 * optimum
    assert found["cost"] >= certificate.cost


# Chances may add up to a little more than one: a huge constant must gain nothing from that


MORE = 0.5 * (1.0 + 4e-9)


def claimed_as_found(certificate: bw.Certificate, model: Any, **record: Any) -> bw.Certificate:
    """Claim whatever `verify` finds for another record."""
    claim = forged(certificate, record={**certificate.record, **record})
    found = {check.term: check.found for check in bw.verify(model, claim).checks}
    claim = forged(claim, value=found["value"], bound=claim.cost - found["value"])
    if "repair" in found:
        claim = forged(claim, repair=found["repair"])
    assert bw.verify(model, claim).passed
    return claim


def test_a_constant_gains_nothing_from_initial_chances_above_one() -> None:
    chances = np.full((2, 2, 2), 0.5)
    model = bw.TabularModel.from_arrays([[1.0, 3.0], [2.0, 4.0]], chances, 0.9, [MORE, MORE])
    found = bw.certify(model, bw.solve(model, bw.Polynomial(1), bw.Fixed("uniform")), bw.Uniform())
    record = {**found.record, "coef": [2e9, 0.0]}
    record.pop("rest", None)
    claim = claimed_as_found(replace(found, record=record), model)
    assert claim.value < model.initial @ bw.exact.optimal(model).values


def test_rows_that_sum_to_less_have_the_residual_of_the_lowered_constant() -> None:
    chances = np.array([[0.5, 0.5], [0.5, 0.5]]) * (1.0 + np.array([[4e-9], [-4e-9]]))
    model = bw.TabularModel.from_arrays([[1.0], [1.0]], [chances], 0.9, [0.0, 1.0])
    found = bw.certify(model, bw.solve(model, bw.Polynomial(1), bw.Fixed("initial")))
    huge = forged(found, record={**found.record, "coef": [1e9, 0.0]})
    checked = {check.term: check.found for check in bw.verify(model, huge).checks}
    residual = 1.0 - (1.0 - 0.9 * (1.0 - 4e-9)) * checked["value"]
    assert checked["weighted_residual"] == pytest.approx(residual, rel=1e-5)


def test_a_constant_gains_nothing_from_noise_and_first_states_above_one() -> None:
    law = Law([0.0, 1.0], [MORE, MORE])
    model = replace(step()[1], noise=law, initial=[Law([0.0, 2.0], [MORE, MORE])])
    rows = bw.SampledRows(np.linspace(0.0, 4.0, 9)[:, None])
    result = bw.solve(model, bw.PiecewiseLinear([1.0, 2.5]), bw.Fixed(), rows=rows, judge=False)
    found = bw.certify(model, result, bw.Uniform(), episodes=4, jobs=1)
    claim = claimed_as_found(found, model, coef=[2e8, 0.0, 0.0, 0.0])
    assert claim.value < 0.01  # from a constant no more than the least cost for all time follows


def test_a_constant_gains_nothing_from_local_chances_above_one() -> None:
    law, even = Law([0, 1], [MORE, MORE]), [0.5, 0.5]
    model = bw.models.FactoredModel(
        sizes=[2, 2], actions=["a", "b"], discount=0.9, initial=[law, law], compiled=False,
        laws=[bw.models.Local([i], lambda level, action: even) for i in range(2)],
        costs=[bw.models.Local([i], lambda level, action: 1.0 + level) for i in range(2)],
    )  # fmt: skip
    result = bw.solve(model, bw.Affine(), bw.Fixed(), judge=False)
    found = bw.certify(model, result, bw.Uniform(), episodes=20)
    table = {"scope": [0], "sizes": [2], "values": [2e9, 2e9]}
    claim = claimed_as_found(found, model, tables=[table])
    assert claim.value < 20.0  # costs are at least 2 in every step
