"""Rows between sampled states: what a search finds, and what declarations prove."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import bellweight as bw
from bellweight.basis import Hinge, Located
from bellweight.models import Interval, Law, Lipschitz
from bellweight.program.box_proof import no_bound, repaired_in_box, violation_in_box
from bellweight.program.box_search import worst_row

ORDERS = np.arange(0.0, 4.0)
DEMAND = Law([0.0, 1.0, 2.5], [0.2, 0.5, 0.3])
KINKS = (-1.0, 0.5, 2.0, 4.0)
COEF = np.array([20.0, -3.0, 4.0, 2.5, -1.0, 3.0])


def step(state: Any, action: int, noise: Any) -> float:
    return min(max(state[0] + ORDERS[action] - noise[0], -2.0), 6.0)


def cost(state: Any, action: int, noise: Any) -> float:
    after = state[0] + ORDERS[action] - noise[0]
    return 2.0 * ORDERS[action] + max(after, 0.0) + 9.0 * max(-after, 0.0)


def bends(action: int, noise: Any) -> list[float]:
    return [end - ORDERS[action] + noise[0] for end in (-2.0, 0.0, 6.0)]


def inventory(**options: Any) -> bw.StepModel:
    given: dict[str, Any] = {
        "dimension": 1, "actions": [f"order {a:g}" for a in ORDERS], "step": step, "cost": cost,
        "discount": 0.9, "noise": DEMAND, "initial": 1.0, "lower": -2, "upper": 6,
        "compiled": False,
    }  # fmt: skip
    return bw.StepModel(**{**given, **options})


def rows_of(model: bw.StepModel) -> Any:
    return bw.SampledRows([[0.0], [1.0]]).on(model, bw.PiecewiseLinear(KINKS))


def by_hand(states: np.ndarray) -> np.ndarray:
    """Slacks (n, A), from the formula."""
    basis = bw.PiecewiseLinear(KINKS)
    raw = states[:, None, None] + ORDERS[:, None] - DEMAND.values
    paid = (np.maximum(raw, 0.0) + 9.0 * np.maximum(-raw, 0.0)) @ DEMAND.chances + 2.0 * ORDERS
    after = np.clip(raw, -2.0, 6.0)
    ahead = (np.asarray(basis(after.reshape(-1, 1))) @ COEF).reshape(after.shape) @ DEMAND.chances
    return paid + 0.9 * ahead - (np.asarray(basis(states[:, None])) @ COEF)[:, None]


@pytest.fixture(scope="module")
def worst() -> float:
    """The largest violation on a grid that holds every bend: multiples of a half and finer."""
    return float(-by_hand(np.linspace(-2.0, 6.0, 16_001)).min())


def test_declared_bends_give_the_largest_violation_itself(worst: float) -> None:
    model = inventory(bends=bends)
    found = violation_in_box(rows_of(model), model, COEF)
    assert found is not None
    assert worst <= found <= worst + 1e-9


def test_lipschitz_constants_give_a_bound_on_it(worst: float) -> None:
    model = inventory(lipschitz=Lipschitz(step=1.0, cost=9.0))
    found = violation_in_box(rows_of(model), model, COEF)
    assert found is not None
    assert worst <= found <= worst + 0.05


@pytest.mark.parametrize("declared", [{"bends": bends}, {"lipschitz": Lipschitz(1.0, 9.0)}])
def test_values_that_are_no_numbers_prove_nothing(declared: dict[str, Any]) -> None:
    model = inventory(**declared)
    for number in (np.nan, np.inf, 1e308):
        coef = np.append(COEF[:-1], number)
        assert violation_in_box(rows_of(model), model, coef) is None
        assert violation_in_box(rows_of(model), model, -coef) is None


def test_states_that_fill_a_box_do_not_leave_it_by_rounding() -> None:
    # -3 + (7.3 - -3) is a number above 7.3.
    assert -3.0 + (7.3 - -3.0) > 7.3
    model = inventory(lower=-3.0, upper=7.3)
    assert model.spread_states(8).max() == 7.3


def test_the_search_finds_it_and_says_where(worst: float) -> None:
    model = inventory()
    found = worst_row(rows_of(model), model, COEF)
    assert found.violation == pytest.approx(worst, abs=0.01)
    slack = by_hand(np.array(found.state))[0, found.action]
    assert found.violation == pytest.approx(-slack, abs=1e-9)


@pytest.mark.filterwarnings("ignore:the lower bound is")
def test_a_result_says_what_is_proven_and_what_was_found() -> None:
    states = np.linspace(-2.0, 6.0, 9)[:, None]
    basis = bw.PiecewiseLinear(KINKS)
    solved = {}
    for name, options in {
        "finite": {"bends": bends},
        "nodes": {"bends": bends, "noise": Interval(0.0, 2.5), "quadrature": 6},
        "nothing": {},
    }.items():
        model = inventory(**options)
        solved[name] = bw.solve(model, basis, bw.Fixed(), rows=bw.SampledRows(states), judge=False)
    exact = solved["finite"]
    assert (exact.lower_bound_kind, solved["nodes"].lower_bound_kind) == ("exact", "estimated")
    assert "6 quadrature nodes" in solved["nodes"].lower_bound_reason
    assert (solved["nothing"].lower_bound, solved["nothing"].lower_bound_kind) == (None, "unproven")
    # On the lattice of half numbers the model is a finite one, whose optimum is known.
    lattice = inventory().to_tabular(grid=17)
    optimum = lattice.initial @ bw.exact.optimal(lattice).values
    assert 0.5 * optimum < exact.lower_bound <= optimum + 1e-9
    for result in solved.values():
        assert result.evidence is not None
        assert "search" in str(result)
        assert "over the whole box" in " ".join(str(result).split())
    drop = exact.objective - exact.lower_bound
    assert exact.evidence.violation <= 0.1 * drop + 1e-6


def wide(state: Any, action: int, noise: Any) -> Any:
    first = 0.5 * state[0] + 0.2 * state[1] + 0.1 * noise[0] - 0.2 * action
    return min(max(first, -1.0), 1.0), min(max(0.6 * state[1] - noise[0], -1.0), 1.0)


def bowl(state: Any, action: int) -> float:
    return abs(state[0]) + 0.5 * abs(state[1]) + 0.1 * action


def test_two_dimensions_are_proven_by_lipschitz_constants() -> None:
    model = bw.StepModel(
        dimension=2, actions=2, step=wide, cost=bowl, discount=0.7, lower=-1, upper=1,
        noise=Law([-0.3, 0.3], [0.5, 0.5]), initial=[0.2, -0.1], compiled=False,
        lipschitz=Lipschitz(step=0.7, cost=1.5),
    )  # fmt: skip
    coef = np.array([0.1, -0.3, 0.2, 0.6, -0.1])
    rows = bw.SampledRows([[0.0, 0.0], [0.5, 0.5]]).on(model, bw.PiecewiseLinear([0.0]))
    side = np.linspace(-1.0, 1.0, 21)
    states = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    seen = float(-rows.slacks_at(states, coef).min())
    found = violation_in_box(rows, model, coef)
    assert found is not None
    assert seen <= found <= seen + 0.15


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bends": lambda action, noise: [0.0]}, r"bends declares none between .* no line there"),
        ({"bends": lambda action, noise: ["a"]}, r"bends returns \['a'\] for action .* of states"),
        ({"lipschitz": Lipschitz(1.0, 1.0)}, r"lipschitz.cost is 1, but between the states"),
        ({"lipschitz": Lipschitz(0.5, 9.0)}, r"lipschitz.step is 0.5, but between the states"),
    ],
)
def test_a_declaration_that_samples_contradict_is_refused(change: Any, words: str) -> None:
    with pytest.raises(bw.errors.ModelError, match=words):
        inventory(**change)


@pytest.mark.filterwarnings("ignore:expectations are averages")
def test_draws_report_the_error_that_they_bring() -> None:
    def demand(rng: np.random.Generator, n: int) -> Any:
        return rng.choice(DEMAND.values, p=DEMAND.chances, size=(n, 1))

    states = np.linspace(-2.0, 6.0, 9)[:, None]
    errors, moved = [], []
    exact = bw.solve(
        inventory(), bw.PiecewiseLinear(KINKS), bw.Fixed(), rows=bw.SampledRows(states),
        judge=False,
    ).objective  # fmt: skip
    for seed in range(4):
        model = inventory(noise=demand, draws=24, draws_seed=10 * seed)
        result = bw.solve(
            model, bw.PiecewiseLinear(KINKS), bw.Fixed(), rows=bw.SampledRows(states), judge=False
        )
        assert result.evidence is not None
        assert result.evidence.draws_error is not None
        errors.append(result.evidence.draws_error)
        moved.append(abs(result.objective - exact))
    # An estimate of a difference of two sets: of the size of what one set is off.
    assert 0.3 * np.mean(moved) < np.mean(errors) < 6.0 * np.mean(moved)
    assert any("another set of draws moves" in text for text in result.warnings)


def test_far_from_zero_the_rounding_of_states_is_counted() -> None:
    """Against the largest violation in rational arithmetic: no float may be below it."""
    rng = np.random.default_rng(1)
    for far, allowed in ((1e6, 1e-5), (1e6, 1e-5), (1e9, 1e-2), (-1e9, 1e-2)):
        orders, values = rng.random(3) * 3.0, rng.random(3) * 3.0
        kinks = np.sort(far + 8.0 * rng.random(4))
        coef = np.concatenate([[10.0 * rng.normal(), 0.0], 5.0 * rng.normal(size=4)])
        model = _far_inventory(far, orders, Law(values, [0.25, 0.5, 0.25]))
        rows = bw.SampledRows([[far], [far + 1.0]]).on(model, bw.PiecewiseLinear(kinks.tolist()))
        found = violation_in_box(rows, model, coef)
        assert found is not None
        exact = _exact_violation(far, orders, values, kinks, coef)
        assert exact <= Fraction(found) <= exact + Fraction(allowed)


def _far_inventory(far: float, orders: np.ndarray, law: Law) -> bw.StepModel:
    low, high, best = far, far + 8.0, far + 2.0

    def far_step(state: Any, action: int, noise: Any) -> float:
        return min(max(state[0] + orders[action] - noise[0], low), high)

    def far_cost(state: Any, action: int, noise: Any) -> float:
        return 2.0 * orders[action] + abs(state[0] + orders[action] - noise[0] - best)

    def far_bends(action: int, noise: Any) -> list[float]:
        return [end - orders[action] + noise[0] for end in (low, best, high)]

    return bw.StepModel(
        dimension=1, actions=3, step=far_step, cost=far_cost, discount=0.9, noise=law,
        initial=far + 1.0, lower=low, upper=high, compiled=False, bends=far_bends,
    )  # fmt: skip


def _exact_violation(
    far: float, orders: np.ndarray, values: np.ndarray, kinks: np.ndarray, coef: np.ndarray
) -> Fraction:
    low, high, best = Fraction(far), Fraction(far) + 8, Fraction(far) + 2
    c, ks = list(map(Fraction, coef)), list(map(Fraction, kinks))
    law = list(zip(map(Fraction, values), map(Fraction, (0.25, 0.5, 0.25)), strict=True))

    def value(x: Fraction) -> Fraction:
        return (
            c[0]
            + c[1] * x
            + sum(a * max(x - k, Fraction(0)) for a, k in zip(c[2:], ks, strict=True))
        )

    def slack(x: Fraction, order: Fraction) -> Fraction:
        raw = [(x + order - noise, chance) for noise, chance in law]
        paid = sum(p * (2 * order + abs(y - best)) for y, p in raw)
        ahead = sum(p * value(min(max(y, low), high)) for y, p in raw)
        return paid + Fraction(0.9) * ahead - value(x)

    slacks = []
    for order in map(Fraction, orders):
        turns = [end - order + noise for noise, _ in law for end in (low, best, high, *ks)]
        turns += [low, high, *ks]
        slacks += [slack(x, order) for x in turns if low <= x <= high]
    return -min(slacks)


def test_many_coordinates_are_no_trouble() -> None:
    """Corners of a box of thirty coordinates would be a thousand million."""

    def still(state: Any, action: int, successor: Any) -> None:
        successor[:] = 0.5 * state

    def total(state: Any) -> float:
        return float(np.abs(state).sum())

    model = bw.StepModel(
        dimension=30, actions=1, step=still, cost=total, discount=0.5, lower=-1, upper=1,
        initial=[0.5] * 30, compiled=False, lipschitz=Lipschitz(step=0.5, cost=30.0),
    )  # fmt: skip
    rows = bw.SampledRows(np.vstack([np.zeros(30), np.eye(30)])).on(model, bw.PiecewiseLinear([]))
    found = violation_in_box(rows, model, np.append(-100.0, np.zeros(30)))
    assert found is not None
    assert -50.0 <= found <= 0.0


PLANE_NOISE = Law([-0.25, 0.125, 0.375], [0.25, 0.5, 0.25])


def plane(far: float = 0.0, **options: Any) -> bw.StepModel:
    """Two coordinates, both cut at the box, whose step and cost bend on lines."""
    low, high = far - 1.0, far + 1.0

    def turned(state: Any, action: int, noise: Any) -> Any:
        first = far + 0.5 * (state[0] - far) + 0.25 * (state[1] - far) - 0.25 * action + noise[0]
        second = state[1] - 0.5 * (state[0] - far) - noise[0]
        return min(max(first, low), high), min(max(second, low), high)

    def paid(state: Any, action: int, noise: Any) -> float:
        return abs(state[0] - far - noise[0]) + 0.5 * max(state[1] - state[0], 0.0) + 0.125 * action

    def lines(action: int, noise: Any) -> list[tuple[float, float, float]]:
        found = [(1.0, 0.0, far + noise[0]), (-1.0, 1.0, 0.0)]
        for end in (-1.0, 1.0):
            found.append((0.5, 0.25, 0.75 * far + end + 0.25 * action - noise[0]))
            found.append((-0.5, 1.0, 0.5 * far + end + noise[0]))
        return found

    given: dict[str, Any] = {
        "dimension": 2, "actions": 2, "step": turned, "cost": paid, "discount": 0.75,
        "lower": low, "upper": high, "noise": PLANE_NOISE, "initial": [far + 0.25, far - 0.125],
        "compiled": False, "bends": lines,
    }  # fmt: skip
    return bw.StepModel(**{**given, **options})


def exact_in_plane(far: float, kinks: list[float], total: float, coef: np.ndarray) -> Fraction:
    """The largest violation: all lines on which the slack may bend, met two by two."""
    F, c, total_at = Fraction(far), list(map(Fraction, coef)), Fraction(total)
    law = list(
        zip(map(Fraction, PLANE_NOISE.values), map(Fraction, (0.25, 0.5, 0.25)), strict=True)
    )
    ks, half, quarter = list(map(Fraction, kinks)), Fraction(1, 2), Fraction(1, 4)

    def value(x: Fraction, y: Fraction) -> Fraction:
        bent = [max(x - k, Fraction(0)) for k in ks] + [max(y - k, Fraction(0)) for k in ks]
        features = [Fraction(1), x, y, *bent, max(x + y - total_at, Fraction(0))]
        return sum((a * b for a, b in zip(c, features, strict=True)), Fraction(0))

    def slack(x: Fraction, y: Fraction, action: int) -> Fraction:
        g = -value(x, y)
        for w, p in law:
            first = F + half * (x - F) + quarter * (y - F) - quarter * action + w
            second = y - half * (x - F) - w
            after = [min(max(z, F - 1), F + 1) for z in (first, second)]
            paid = abs(x - F - w) + half * max(y - x, Fraction(0)) + Fraction(action, 8)
            g += p * (paid + Fraction(3, 4) * value(*after))
        return g

    worst = None
    for action in (0, 1):
        lines = [(1, 0, z) for z in (F - 1, F + 1, *ks)] + [(0, 1, z) for z in (F - 1, F + 1, *ks)]
        lines += [(1, 1, total_at), (-1, 1, Fraction(0))]
        for w, _ in law:
            lines.append((1, 0, F + w))
            first = (half, quarter, quarter * F - quarter * action + w)
            second = (-half, Fraction(1), half * F - w)
            for z in (F - 1, F + 1, *ks):
                lines += [(p, q, z - r) for p, q, r in (first, second)]
            # The sum of next coordinates meets its kink where none, one or both are cut.
            ends = [(Fraction(0), Fraction(0), end) for end in (F - 1, F + 1)]
            pairs = [(one, other) for one in (first, *ends) for other in (second, *ends)]
            lines += [(a[0] + b[0], a[1] + b[1], total_at - a[2] - b[2]) for a, b in pairs]
        lines = list(dict.fromkeys(line for line in lines if line[0] or line[1]))
        for n, (a, b, r) in enumerate(lines):
            for d, e, s in lines[:n]:
                area = a * e - b * d
                if not area:
                    continue
                x, y = Fraction(r * e - b * s) / area, Fraction(a * s - r * d) / area
                if F - 1 <= x <= F + 1 and F - 1 <= y <= F + 1:
                    found = -slack(x, y, action)
                    worst = found if worst is None else max(worst, found)
    assert worst is not None
    return worst


@pytest.mark.parametrize(("far", "allowed"), [(0.0, 1e-4), (1e6, 1e-4), (1e9, 0.05)])
def test_lines_in_the_plane_give_the_largest_violation(far: float, allowed: float) -> None:
    """Against rational arithmetic, with kinks of coordinates and of their sum; none is below it."""
    rng = np.random.default_rng(int(far) % 1000 + 3)
    model, kinks, total = plane(far), [far - 0.5, far + 0.25], 2.0 * far + 0.375
    basis = bw.Stacked(
        bw.PiecewiseLinear(kinks), bw.bases.Located([bw.bases.Hinge((0, 1), total)])
    )  # fmt: skip
    coef = np.concatenate([[0.0, 0.0, 0.0], rng.normal(size=5)])
    rows = bw.SampledRows([[far, far], [far + 0.5, far + 0.5]]).on(model, basis)
    found = violation_in_box(rows, model, coef)
    assert found is not None
    exact = exact_in_plane(far, kinks, total, coef)
    assert exact <= Fraction(found) <= exact + Fraction(allowed)


def test_a_line_that_is_left_out_is_found() -> None:
    def some(action: int, noise: Any) -> list[tuple[float, float, float]]:
        return [(1.0, 0.0, noise[0]), (-1.0, 1.0, 0.0)]

    with pytest.raises(bw.errors.ModelError, match=r"bends declares none between .* no line there"):
        plane(bends=some)
    with pytest.raises(bw.errors.ModelError, match=r"expected a list of lines, 3 numbers each"):
        plane(bends=lambda action, noise: [0.5])


@pytest.mark.filterwarnings("ignore:the lower bound is")
def test_a_result_in_the_plane_is_proven_or_says_why_not() -> None:
    model = plane()
    rows = bw.SampledRows(bw.sample_states(model, 49, how="grid"))
    solved = [
        bw.solve(model, basis, bw.Fixed(), rows=rows, judge=False)
        for basis in (bw.PiecewiseLinear([-0.5, 0.0, 0.5]), bw.Polynomial(2))
    ]
    assert (solved[0].lower_bound_kind, solved[1].lower_bound_kind) == ("exact", "unproven")
    assert "not piecewise linear" in " ".join(str(solved[1]).split())
    # Interpolating a convex value between points gives more, and finer grids less of it.
    grid = model.to_tabular(grid=33)
    optimum = float(grid.initial @ bw.exact.optimal(grid).values)
    assert 0.5 * optimum < solved[0].lower_bound < optimum + 0.01


def test_what_is_constant_on_the_sample_alone_repairs_nothing() -> None:
    """The hinges differ by one from 0 on, where the sampled states lie; the box begins at -2."""
    model = inventory(bends=bends)
    hinges = Located([Hinge((0,), -1.0), Hinge((0,), 0.0)])
    rows = bw.SampledRows([[0.0], [1.0], [2.0]]).on(model, hinges)
    assert repaired_in_box(rows, model, np.array([30.0, 0.0])) is None
    assert no_bound(rows, model) == "the basis has no constant function of its own"


def test_a_repair_moves_the_constant_and_no_other_function() -> None:
    model = inventory(bends=bends)
    found = repaired_in_box(rows_of(model), model, COEF)
    assert found is not None
    assert np.array_equal(found.coef[1:], COEF[1:])
    assert found.coef[0] == pytest.approx(COEF[0] - found.violation / 0.1)
