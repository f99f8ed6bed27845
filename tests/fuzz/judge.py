"""What is checked of a result on a tabular model, each finding a kind and a sentence."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

import bellweight as bw

from .program import (
    DUAL,
    SUMS,
    Findings,
    Listed,
    check_dual,
    check_objective,
    equation_error,
    largest_error,
    solved,
    typical,
)
from .rational import Exact, Rows, UndecidedError, bellman_rows, moments_of, solve
from .values import Exactly, Numbers, approximate_values, optimal_values, policy_values

Floats = NDArray[np.float64]

BOUND = 1e-12  # a bound may be above the truth by this share: the rounding of the number itself
USEFUL = 1e-4  # loss of a lower bound that a user would not notice
TWICE = 1e-27  # a rounding error of a rounding error, each of a sum of some forty terms
ROUNDED = 4e-15  # columns this close to dependent cannot be told from dependent ones
ROUNDINGS = 40  # of the features that are tried
_ENDS = {"CONVERGED", "CYCLING", "ITERATION_LIMIT"}
_COLD = 300  # rows up to which the exact program starts without a guess


def features_of(model: bw.TabularModel, basis: bw.bases.Basis) -> Floats:
    """Return the features (S, K) as the basis computes them."""
    found: Any = basis.on(model.states)(model.states)
    return np.asarray(found.toarray() if sparse.issparse(found) else found, dtype=np.float64)


def judge(
    model: bw.TabularModel,
    basis: bw.bases.Basis,
    method: Any,
    regularisation: float = 0.0,
) -> Findings:
    """Solve the model and check everything that the result says."""
    found = Findings()
    stop = bw.Stop(max_iterations=60)
    result = solved(found, model, basis, method, regularisation=regularisation, stop=stop)
    if result is not None:
        _Judge(model, basis, method, result, found).run()
    return found


class _Judge:
    def __init__(self, model: Any, basis: Any, method: Any, result: Any, found: Findings) -> None:
        self.model, self.result, self.found, self.method = model, result, found, method
        self.features = features_of(model, basis)
        self.exactly = Exactly.of(model)
        self.weights = np.asarray(result.weights)
        self.rows: Rows = bellman_rows(model, self.features)
        self.moments = moments_of(self.features, self.weights)
        self.values = approximate_values(self.features, result.coef)
        self.quality = self.exactly.qualities(self.values)
        # Where the truth is zero, a number this small is zero: a typical cost, rounded.
        self.zero = 1e-14 * typical(model.cost) / (1.0 - model.discount)

    def run(self) -> None:
        result, found = self.result, self.found
        name = result.status.name
        if name == "INACCURATE":
            # What coefficients of doubles cannot carry is no fault when it is said.
            causes = "rounding", "by how much was not found"
            said = any(cause in note for note in result.warnings for cause in causes)
            found.check(said, "INACCURATE", str(result.audit))
        else:
            found.check(name in _ENDS, f"status {name}", result.status.message)
        self._weights()
        try:
            self.best, self.off = optimal_values(self.exactly)
        except UndecidedError as problem:
            found.undecided.append(str(problem))
            return
        self._policy()
        self._bounds()
        self._certificate()
        try:
            truth = self._truth()
        except UndecidedError as problem:
            found.undecided.append(str(problem))
            return
        if result.regularisation > 0.0:
            self._penalty()
        else:
            if self._says_what_is_given_up(truth):
                found.notes.append("given up, said")
                return
            check_objective(found, result, truth, self.zero)
            self._bound_is_useful(truth)
            listed = Listed(
                self.rows, self.exactly.cost, self.moments, self.model.discount, self.zero
            )
            check_dual(found, result, listed, np.asarray(result.dual), truth)

    def _truth(self) -> Exact:
        """Return the exact optimum, or one that rounding of the functions' values makes of it.

        Which of those a program in double precision finds is chance.
        """
        truth = self._own_truth()
        if self._agrees(truth):
            return truth
        rng, kept = np.random.default_rng(0), self._kept()
        rounded = (self.features != np.round(self.features)).any(axis=0)
        for _ in range(ROUNDINGS):
            towards = self.features + rng.choice([-1.0, 0.0, 1.0], size=self.features.shape)
            features = np.where(rounded, np.nextafter(self.features, towards), self.features)
            rows = bellman_rows(self.model, features)
            try:
                other = self._optimum(kept, rows, moments_of(features, self.weights))
            except UndecidedError:
                continue
            if self._agrees(other):
                self.found.notes.append(f"decided by rounding: {float(truth.objective):.6g}")
                return other
        return truth

    def _agrees(self, truth: Exact) -> bool:
        off = abs(float(Fraction(self.result.objective) - truth.objective))
        return off <= largest_error(truth, self.zero)

    def _own_truth(self) -> Exact:
        """Return the exact optimum; functions that were dropped are left out where that is right.

        That is so where they depend on others up to rounding.
        """
        lengths = np.linalg.norm(self.features, axis=0)
        truth = self._optimum(np.arange(len(lengths)))
        kept = self._kept()
        if len(kept) == len(lengths):
            return truth
        unit = self.features / np.where(lengths > 0.0, lengths, 1.0)
        sizes = np.linalg.svd(unit, full_matrices=False)[1]
        if sizes[-1] > ROUNDED * sizes[0]:
            return truth
        dropped = self._optimum(kept)
        off = [abs(float(t.objective) - self.result.objective) for t in (truth, dropped)]
        if off[0] <= off[1]:
            return truth
        self.found.notes.append("dependent up to rounding")
        return dropped

    def _kept(self) -> Any:
        """Return the functions that were not dropped, as the result says."""
        said = [re.search(r"dropped \(coefficient zero\): (.*)", t) for t in self.result.warnings]
        text = next((found[1] for found in said if found), "")
        if text.endswith(", ...") and self.result.coef.any():
            return np.flatnonzero(self.result.coef)
        kept = []
        for k, name in enumerate(self.result.names):  # names may contain commas themselves
            if f"{text}, ".startswith(f"{name}, "):
                text = text[len(name) + 2 :]
            else:
                kept.append(k)
        return np.array(kept, dtype=np.int64)

    def _says_what_is_given_up(self, truth: Exact) -> bool:
        """Return whether the result names, rightly, what its objective is short of."""
        for text in self.result.warnings:
            amount = re.search(r"given up: about ([-+.e0-9]+)\)", text)
            if amount and self.result.objective < float(truth.objective):
                short = float(truth.objective) - self.result.objective
                return abs(short - float(amount[1])) <= 0.25 * short + self.zero
            if "by how much was not found" in text:
                return bool(self.result.status.name == "INACCURATE")
        return False

    def _optimum(
        self, kept: Any, rows: Rows | None = None, moments: list[Fraction] | None = None
    ) -> Exact:
        rows, moments = rows or self.rows, moments or self.moments
        scales = tuple(rows.scales[k] for k in kept)
        part = Rows(rows.columns[:, kept], scales, rows.cost, rows.cost_scale)
        likely = None
        if self.model.n_pairs > _COLD:
            likely = _guess(self.model, self.features[:, kept], self.weights)
        return solve(part, [moments[k] for k in kept], likely)

    def _weights(self) -> None:
        """Weights are a distribution, and those that the method asks for."""
        found, weights, model = self.found, self.weights, self.model
        off = abs(float(weights.sum()) - 1.0)
        found.check(weights.min() >= 0.0 and off <= 1e-8, "weights", f"sum off by {off:.2g}")
        moments = np.array([float(moment) for moment in self.moments])
        terms = np.abs(self.features).T @ weights
        wrong = np.abs(self.result.moments - moments) > 1e-12 * terms + 1e-300
        found.check(not wrong.any(), "moments", f"moments {np.flatnonzero(wrong)} are others")
        if isinstance(self.method, bw.Fixed):
            named = {
                "initial": model.initial,
                "uniform": np.full(model.n_states, 1 / model.n_states),
            }
            given = self.method.weights
            wanted = named[given] if isinstance(given, str) else given
            same = np.array_equal(weights, wanted)
            found.check(same, "weights", "are not those that were given")
        target = self._target()
        if target is not None:
            gap = float(np.abs(_occupancy(model, target) - weights).max())
            allowed = 2e-8 if isinstance(self.method, bw.FromPolicy) else 1e-6
            found.check(gap <= allowed, "weights", f"differ from the occupancy by {gap:.2g}")

    def _target(self) -> Floats | None:
        """Return the policy whose occupancy the weights must be, as chances of pairs."""
        model, method, result = self.model, self.method, self.result
        if isinstance(method, bw.FromPolicy):
            if isinstance(method.policy, bw.Uniform):
                return _even(model)
            return (model.pair_action == method.policy.entries[model.pair_state]).astype(float)
        if result.status.name != "CONVERGED":
            return None
        if isinstance(method, bw.PIA):
            chances = np.zeros(model.n_pairs)
            chances[self._pairs()] = 1.0
            return chances
        if isinstance(method, bw.DIA):
            return _softmax(model, result.dual, method.temperature, method.smoothing_mass)
        return None

    def _pairs(self) -> list[int]:
        model = self.model
        taken = []
        for x in range(model.n_states):
            own = model.admissible_actions(x).tolist()
            taken.append(int(model.pair_start[x]) + own.index(self.result.policy.action(x)))
        return taken

    def _policy(self) -> None:
        """The policy is greedy, and its cost is its cost."""
        exactly, model = self.exactly, self.model
        pairs = np.array(self._pairs())
        quality, rounded = self.quality, self.quality.floats()
        least = np.minimum.reduceat(quality.parts, model.pair_start[:-1])
        gaps = Numbers(quality.parts[pairs] - least, quality.scale).floats()
        largest = np.maximum.reduceat(np.abs(rounded), model.pair_start[:-1])
        made_of = np.abs(self.features) @ np.abs(self.result.coef)
        reached = model.transition[pairs] @ made_of
        terms = largest + np.abs(model.cost[pairs]) + reached
        nonzero = np.abs(model.cost[model.cost != 0.0])
        least_cost = 1e-14 * float(nonzero.min(initial=1.0))
        for x in np.flatnonzero(gaps > 3e-12 * terms + least_cost)[:3]:
            text = f"state {x}: worse by {gaps[x]:.3g} of {largest[x]:.3g}"
            self.found.check(False, "greedy", text)
        values = policy_values(exactly, pairs)
        self.cost = exactly.initial @ values
        scale = float(exactly.initial @ values.sizes()) + 1e-300
        off = abs(float(Fraction(self.result.cost.mean) - self.cost))
        chances = np.zeros(model.n_pairs)
        chances[pairs] = 1.0
        paid = _occupancy(model, chances) @ np.abs(model.cost[pairs])
        self.gross = float(paid) / (1.0 - model.discount)  # costs and gains may cancel
        self.found.check(
            off <= SUMS * scale + self.zero, "cost", f"off by {off:.3g} of {scale:.3g}"
        )

    def _bounds(self) -> None:
        """The lower bound is below the optimal cost, the violation is not understated."""
        exactly, result = self.exactly, self.result
        self.optimum = exactly.initial @ self.best
        self.scale = float(exactly.initial @ self.best.sizes())
        above = float(Fraction(result.lower_bound) - self.optimum - self.off)
        self.found.check(
            above <= BOUND * self.scale,
            "lower_bound above optimum",
            f"{result.lower_bound:.15g} above {float(self.optimum):.15g} by {above:.3g}",
        )
        slack = self.quality - self.values[self.model.pair_state]
        place = min(range(self.model.n_pairs), key=lambda pair: slack.parts[pair])
        worst = max(-slack.fraction(place), Fraction(0))
        size = abs(float(self.values.fraction(self.model.pair_state[place])))
        size += abs(self.model.cost[place])
        claimed = result.audit.violation
        terms = float(np.max(np.abs(self.features) @ np.abs(result.coef)))
        understated = float(worst) - claimed
        allowed = 1e-13 * (terms + size) + 1e-6 * claimed
        self.found.check(
            understated <= allowed, "violation", f"is {float(worst):.3g}, said {claimed:.3g}"
        )

    def _certificate(self) -> None:
        model, result, found = self.model, self.result, self.found
        try:
            certificate = bw.certify(model, result)
        except Exception as problem:
            found.check(False, "certify", f"{type(problem).__name__}: {problem}"[:300])
            return
        scale = self.scale + abs(float(self.cost))
        loss = float(self.cost - self.optimum)
        allowed = BOUND * scale + float(self.off)
        for term in ("bound", "greedy_bound"):
            claimed = getattr(certificate, term)
            if claimed is not None:
                text = f"{claimed:.12g} below the loss {loss:.12g}"
                found.check(loss - claimed <= allowed, f"certificate {term}", text)
        above = float(Fraction(certificate.value) - self.optimum)
        found.check(above <= allowed, "certificate value", f"above the optimum by {above:.3g}")
        more, allowed = float(Fraction(certificate.cost) - self.cost), SUMS * scale + self.zero
        # It may be rounded up, also by what rounding may bring to states of much larger costs.
        far = TWICE * float(np.abs(model.cost).max()) / (1.0 - model.discount) ** 3
        right = -allowed <= more <= allowed + SUMS * self.gross + far
        found.check(right, "certificate cost", f"off by {more:.3g} of {scale:.3g}")
        checked = bw.verify(model, certificate)
        failed = [f"{c.term} {c.claimed}, {c.found}" for c in checked.checks if not c.passed]
        found.check(checked.passed, "verify", f"refuses {failed}")

    def _bound_is_useful(self, truth: Exact) -> None:
        """Where the weights are the initial law, the bound is the objective or nearly so."""
        result, objective = self.result, float(truth.objective)
        if result.status.name == "INACCURATE" or not np.array_equal(
            self.weights, self.model.initial
        ):
            return
        # Coefficients far larger than the values, as functions that nearly depend need them, carry
        # rounding errors that a bound must pay for; more than one per cent must be said.
        terms = float((np.abs(self.features) @ np.abs(result.coef)).max(initial=0.0))
        costly = terms > 1e6 * abs(objective)
        share = 0.01 if costly else USEFUL
        allowed = share * abs(objective) + 1e-7 * float(truth.size) + 1e5 * self.zero
        said = [note for note in result.warnings if "lower bound" in note]
        if costly and said:
            self.found.notes.append("loose bound, said")
            return
        text = f"{result.lower_bound:.10g}, objective {objective:.10g}; {said}"
        self.found.check(objective - result.lower_bound <= allowed, "lower_bound loose", text)

    def _penalty(self) -> None:
        """The optimality conditions of the regularised program, on the coefficients themselves."""
        result, found = self.result, self.found
        if result.status.name == "INACCURATE":
            return
        slack = self.quality - self.values[self.model.pair_state]
        wanted = np.maximum(-slack.floats(), 0.0) / result.regularisation
        mass = 1.0 / (1.0 - self.model.discount)
        terms = float(np.max(np.abs(self.features) @ np.abs(result.coef)))
        noise = 1e-12 * terms / result.regularisation
        off = float(np.abs(wanted - result.dual).max())
        found.check(off <= DUAL * mass + noise, "penalty dual", f"off by {off:.3g} of {mass:.3g}")
        off = abs(float(result.dual.sum()) - mass)
        found.check(off <= DUAL * mass + noise, "penalty mass", f"off by {off:.3g} of {mass:.3g}")
        listed = Listed(self.rows, self.exactly.cost, self.moments, self.model.discount, self.zero)
        off = equation_error(listed, np.asarray(result.dual))
        found.check(off <= DUAL, "penalty equations", f"off by {off:.3g} relative")


def _even(model: bw.TabularModel) -> Floats:
    counts = np.diff(model.pair_start)
    return np.repeat(1.0 / counts, counts)


def _softmax(model: Any, dual: Floats, temperature: float, smoothing_mass: float) -> Floats:
    """Return the target-guided softmax of a dual whose target is to act at random."""
    chances = _even(model)
    for x in range(model.n_states):
        pairs = slice(model.pair_start[x], model.pair_start[x + 1])
        part = dual[pairs]
        share = part.sum() / (part.sum() + smoothing_mass)
        weight = np.exp((part - part.max()) / temperature)
        chances[pairs] = share * weight / weight.sum() + (1.0 - share) * chances[pairs]
    return chances


def _occupancy(model: Any, chances: Floats) -> Floats:
    mixer = np.zeros((model.n_states, model.n_pairs))
    mixer[model.pair_state, np.arange(model.n_pairs)] = chances
    matrix = np.eye(model.n_states) - model.discount * (mixer @ model.transition.toarray())
    start = (1.0 - model.discount) * model.initial
    found = np.linalg.solve(matrix.T, start)
    return np.asarray(found + np.linalg.solve(matrix.T, start - matrix.T @ found))


def _guess(model: Any, features: Floats, weights: Floats) -> list[int]:
    """Return rows, those that are likely to be in the optimal basis first, by another solver."""
    lengths = np.linalg.norm(features, axis=0)
    scaled = features / np.where(lengths > 0.0, lengths, 1.0)
    left, size, _ = np.linalg.svd(scaled, full_matrices=False)
    inner = left[:, size > 1e-13 * size[0]] * np.sqrt(len(features))
    rows = inner[model.pair_state] - model.discount * (model.transition @ inner)
    unit = typical(model.cost)
    answer = linprog(
        -(inner.T @ weights), A_ub=rows, b_ub=model.cost / unit, bounds=(None, None),
        method="highs-ds",
    )  # fmt: skip
    if answer.status != 0:
        return []
    # Multipliers are negative; rows without one follow by their slack.
    return [int(pair) for pair in np.lexsort((answer.slack, answer.ineqlin.marginals))]
