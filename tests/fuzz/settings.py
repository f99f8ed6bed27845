"""Random bases and methods that fit a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import bellweight as bw

from .tabular import Rng, law, pick

Floats = NDArray[np.float64]


class Listed:
    """Features given as a table over the states of a model, which are looked up."""

    def __init__(self, states: Floats, table: Floats) -> None:
        self.places = {tuple(state): x for x, state in enumerate(states.tolist())}
        self.table = table

    def __call__(self, states: Floats) -> Floats:
        return self.table[[self.places[tuple(state)] for state in np.asarray(states).tolist()]]


def basis(rng: Rng, model: bw.TabularModel) -> tuple[bw.bases.Basis, str]:
    """Return a basis whose span contains the constant, and what it is."""
    n, d = model.n_states, model.states.shape[1]
    kinds = ["polynomial"] * 4 + ["affine", "indicator", "hinges", "even", "radial", "fourier"]
    kinds += ["separable", "stacked", "plain", "scaled", "dependent", "nearly", "nearly", "twice"]
    if d > 1:
        kinds += ["product"] * 2
    kind = pick(rng, kinds)
    few = min(n, 9)
    if kind == "polynomial":
        degree = int(rng.integers(1, 9 if d == 1 else 4))
        return bw.Polynomial(degree), f"Polynomial({degree})"
    if kind == "affine":
        return bw.Affine(), "Affine()"
    if kind == "indicator":
        return _indicator(rng, n)
    if kind == "hinges" and d == 1 and n > 4:
        count = int(rng.integers(1, min(n - 2, 12)))
        kinks = np.unique(np.geomspace(1.0, n - 2.0, count))
        return bw.PiecewiseLinear(
            kinks.tolist()
        ), f"PiecewiseLinear(geomspace(1, {n - 2}, {count}))"
    if kind in ("even", "hinges"):
        count = int(rng.integers(1, few))
        return bw.PiecewiseLinear(count), f"PiecewiseLinear({count})"
    if kind == "radial":
        count, width = int(rng.integers(2, few + 1)), pick(rng, (None, 1.0, 0.1 * n))
        return bw.Radial(count, width, seed=int(rng.integers(99))), f"Radial({count}, {width})"
    if kind == "fourier":
        count, seed = int(rng.integers(1, 7)), pick(rng, (None, 0, 1))
        return bw.Fourier(count, seed=seed), f"Fourier({count}, seed={seed})"
    if kind == "separable":
        degree = int(rng.integers(1, 5))
        return bw.Separable(bw.Polynomial(degree)), f"Separable(Polynomial({degree}))"
    if kind == "product":
        degree = int(rng.integers(1, 3))
        return bw.Product(bw.Polynomial(degree)), f"Product(Polynomial({degree}))"
    if kind == "stacked":
        degree, count = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        stack = bw.Stacked(bw.Polynomial(degree), bw.Fourier(count), bw.PiecewiseLinear(count))
        return stack, f"Stacked(Polynomial({degree}), Fourier({count}), PiecewiseLinear({count}))"
    return _custom(rng, model, kind)


def _indicator(rng: Rng, n: int) -> tuple[bw.bases.Basis, str]:
    if rng.random() < 0.4 and n <= 30:
        return bw.Indicator(), "Indicator()"
    count = int(rng.integers(1, min(n, 12) + 1))
    groups = np.concatenate([np.arange(count), rng.integers(count, size=n - count)])
    return bw.Indicator(rng.permutation(groups)), f"Indicator({count} groups)"


def _custom(rng: Rng, model: bw.TabularModel, kind: str) -> tuple[bw.bases.Basis, str]:
    """Return random columns: plain, badly scaled, dependent, nearly dependent or repeated."""
    n = model.n_states
    count = int(rng.integers(1, min(n, 6)))
    table = rng.normal(size=(n, count))
    if rng.random() < 0.5:
        table = rng.integers(-3, 4, size=(n, count)).astype(float)
    text = f"{count} {kind} columns"
    if kind == "scaled":
        table = table * 10.0 ** rng.uniform(-8.0, 12.0, size=count)
    if kind == "twice":
        table = np.column_stack([table, table[:, rng.integers(count, size=2)]])
    if kind == "dependent":
        table = np.column_stack([table, table @ rng.integers(-2, 3, size=(count, 2))])
    if kind == "nearly":
        size = 10.0 ** rng.uniform(-15.0, -4.0)
        made = table @ rng.integers(-2, 3, size=(count, 1)) + rng.normal(size=(1, 1))
        made = made * (1.0 + size * rng.normal(size=(n, 1)))
        table, text = np.column_stack([table, made]), f"{text}, perturbed by {size:.1e}"
    table = np.column_stack([np.ones(n), table])
    if rng.random() < 0.2 and (table == np.round(table)).all():
        # The constant need not be a column of its own, it must only be in the span.
        table[:, 0] = table[:, 0] - table[:, 1]
        text += ", constant in the span"
    return bw.Custom(Listed(model.states, table)), text


def method(rng: Rng, model: bw.TabularModel) -> tuple[Any, str]:
    """Return a method and what it is."""
    kind = pick(rng, ["initial"] * 5 + ["uniform", "given", "policy", "PIA", "PIA", "DIA", "DIA"])
    if kind in ("initial", "uniform"):
        return bw.Fixed(kind), f'Fixed("{kind}")'
    if kind == "given":
        return bw.Fixed(law(rng, model.n_states)), "Fixed(given)"
    if kind == "policy":
        actions = [int(pick(rng, model.admissible_actions(x))) for x in range(model.n_states)]
        chosen = pick(rng, (bw.Uniform(), bw.TablePolicy(np.array(actions))))
        return bw.FromPolicy(chosen), f"FromPolicy({type(chosen).__name__})"
    step = float(pick(rng, (1.0, 1.0, 0.5, 0.2)))
    start = pick(rng, ("initial", "uniform"))
    if kind == "PIA":
        cycles = pick(rng, ("best", "best", "average"))
        text = f'PIA(step_size={step}, start="{start}", cycles="{cycles}")'
        return bw.PIA(step_size=step, start=start, cycles=cycles), text
    mass, temperature = (float(10.0 ** rng.uniform(-2.0, 0.5)) for _ in range(2))
    found = bw.DIA(smoothing_mass=mass, temperature=temperature, step_size=step, start=start)
    return found, f'DIA(mass {mass:.3g}, temperature {temperature:.3g}, step {step}, "{start}")'
