"""`resume` compares what settings and bases say, in a session and through files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.common import files, identity

SIZE = 2_000


@pytest.fixture(scope="module")
def long_queue() -> bw.TabularModel:
    return bw.problems.single_queue(capacity=SIZE - 1, discount=0.9)


def table(changed: int = 0) -> Any:
    entries = np.zeros(SIZE, dtype=np.int64)
    entries[SIZE // 2] = changed
    return entries


def weights(changed: float = 1.0) -> Any:
    numbers = np.ones(SIZE)
    numbers[SIZE // 2] = changed
    return numbers / numbers.sum()


def rule(limit: int) -> bw.Rule:
    def fn(state: Any) -> int:
        return 1 if state[0] > limit else 0

    return bw.Rule(fn)


@dataclass(frozen=True, eq=False)
class Mine(bw.TablePolicy):
    """A policy that files do not know."""


METHODS: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "weights": (bw.Fixed, weights(), weights(3.0)),
    "table": (lambda t: bw.DIA(target=bw.TablePolicy(t)), table(), table(1)),
    "rule": (lambda n: bw.DIA(target=rule(n)), 3, 4),
    "parameters": (
        lambda p: bw.DIA(target=bw.Rule(rule(1).fn, parameters=p)), weights(), weights(2.0),
    ),
    "start": (lambda w: bw.DIA(start=bw.Fixed(w)), weights(), weights(3.0)),
    "policy to start from": (
        lambda t: bw.PIA(start=bw.FromPolicy(bw.TablePolicy(t))), table(), table(1),
    ),
    "method as target": (
        lambda w: bw.DIA(target=bw.PIA(start=bw.Fixed(w))), weights(), weights(3.0),
    ),
    "greedy": (
        lambda c: bw.DIA(target=bw.Greedy(bw.Polynomial(1), np.array(c))), [1.0, 2.0], [1.0, 3.0],
    ),
    "basis of a greedy target": (
        lambda n: bw.DIA(target=bw.Greedy(bw.Polynomial(n), np.zeros(2))), 1, 2,
    ),
    "policy of the user": (lambda t: bw.DIA(target=Mine(t)), table(), table(1)),
    "steps": (lambda s: bw.DIA(step_size=s), bw.weights.Adaptive(), bw.weights.Adaptive(first=0.5)),
    "numbers": (lambda t: bw.DIA(temperature=t), 0.1, 0.1 + 1e-16),
}  # fmt: skip


def finished(result: bw.Result, method: Any) -> bw.Result:
    """Return a result as if this method had found it; the loop is not what is tested here."""
    return replace(result, method=method)


@pytest.fixture(scope="module")
def base(long_queue: bw.TabularModel) -> bw.Result:
    return bw.solve(long_queue, bw.Polynomial(1), bw.Fixed())


@pytest.mark.parametrize("name", METHODS)
def test_settings_are_compared_by_value(name: str, base: bw.Result, tmp_path: Path) -> None:
    make, first, second = METHODS[name]
    finished(base, make(first)).save(tmp_path / "result.npz")
    for earlier in (make(first), bw.Result.load(tmp_path / "result.npz").method):
        assert identity.same(earlier, make(first))
        assert identity.same(make(first), earlier)
        if name != "numbers" or first != second:
            assert not identity.same(earlier, make(second))


def test_the_same_numbers_in_another_form_are_the_same() -> None:
    given = np.arange(3) / 3.0
    assert identity.same(bw.Fixed(given), bw.Fixed(given.tolist()))
    assert identity.same(bw.Fixed(tuple(given)), bw.Fixed(given))
    assert identity.same(bw.DIA(temperature=1), bw.DIA(temperature=np.float64(1.0)))
    assert not identity.same(bw.Fixed(given), bw.Fixed(given[:2]))
    assert not identity.same(bw.Fixed(given), bw.Fixed("initial"))
    assert not identity.same(bw.DIA(), bw.PIA())
    assert identity.same(float("nan"), float("nan"))


def test_a_policy_is_the_same_before_and_after_it_meets_its_model(
    long_queue: bw.TabularModel, base: bw.Result
) -> None:
    greedy = bw.Greedy(base.basis, base.coef, base.policy.dual)
    assert identity.same(bw.DIA(target=greedy), bw.DIA(target=greedy.on(long_queue)))


@pytest.mark.parametrize("through_file", [False, True])
def test_resume_refuses_a_table_that_differs_in_the_middle(
    through_file: bool, long_queue: bw.TabularModel, tmp_path: Path
) -> None:
    basis, stop = bw.Polynomial(1), bw.Stop(max_iterations=2)
    method = bw.DIA(target=bw.TablePolicy(table()))
    result: Any = bw.solve(long_queue, basis, method, stop=stop)
    if through_file:
        result.save(tmp_path / "result.npz")
        result = tmp_path / "result.npz"
    again = bw.DIA(target=bw.TablePolicy(table()))
    bw.solve(long_queue, basis, again, resume=result, stop=stop)
    with pytest.raises(
        bw.errors.ArgumentError, match=r"DIA with target=Table.*of other values.*settings"
    ):
        bw.solve(
            long_queue, basis, bw.DIA(target=bw.TablePolicy(table(1))), resume=result, stop=stop
        )


def features(power: float) -> bw.Custom:
    return bw.Custom(lambda x: np.hstack([np.ones_like(x), x, x**power]), names=["1", "x", "more"])


@pytest.mark.parametrize("through_file", [False, True])
@pytest.mark.parametrize("wrap", [lambda b: b, bw.Stacked], ids=["alone", "stacked"])
def test_resume_refuses_another_function_of_the_same_name(
    through_file: bool, wrap: Any, small_queue: bw.TabularModel, tmp_path: Path
) -> None:
    result: Any = bw.solve(small_queue, wrap(features(2.0)), bw.Fixed())
    if through_file:
        result.save(tmp_path / "result.npz")
        result = tmp_path / "result.npz"
    again = bw.solve(small_queue, wrap(features(2.0)), bw.Fixed(), resume=result)
    assert again.status is bw.Status.CONVERGED
    with pytest.raises(
        bw.errors.ArgumentError, match="another basis, though its functions have the same"
    ):
        bw.solve(small_queue, wrap(features(1.5)), bw.Fixed(), resume=result)


def test_a_function_saved_by_an_earlier_version_is_not_taken_for_another(
    small_queue: bw.TabularModel,
) -> None:
    result = bw.solve(small_queue, features(2.0), bw.Fixed())
    nameless = replace(result.basis, fn=files.Unstored("features"))
    with pytest.raises(bw.errors.ArgumentError, match="saved by an earlier version of Bellweight"):
        bw.solve(small_queue, features(2.0), bw.Fixed(), resume=replace(result, basis=nameless))


def test_certify_refuses_a_basis_that_was_exchanged(small_queue: bw.TabularModel) -> None:
    result = bw.solve(small_queue, features(2.0), bw.Fixed())
    bw.certify(small_queue, result)
    other = features(1.5).on(small_queue.states)
    with pytest.raises(bw.errors.ArgumentError, match="not the one its policy was found with"):
        bw.certify(small_queue, replace(result, basis=other))
