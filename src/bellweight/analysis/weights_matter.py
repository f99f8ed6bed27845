"""Do the weights matter here? The program over all mixtures of some candidate weights.

The program sees weights only through their moments, and its optimal value

    v(m) = max { m' coef : coef feasible }

is convex and piecewise linear in them. Let m_1, ..., m_V be the candidates' moments. One vector of
coefficients is optimal for *every* mixture of the candidates if and only if

    v(average of m_i) = average of v(m_i),

and then any coef that is optimal for the average is one: m_i' coef <= v(m_i) for every i, so equal
averages leave equality everywhere. One more program therefore decides the question. On the segment
between two candidates the linear pieces of v are found one by one: where the lines of two pieces
meet, either v is on them, or there is another piece in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from bellweight.backends import Iterate, Point, Setup
from bellweight.basis import Basis
from bellweight.common import checks, identity, tolerances
from bellweight.common.checks import FloatArray
from bellweight.common.status import ArgumentError, Status
from bellweight.evaluation.evaluate import Comparison, compare
from bellweight.models import Model
from bellweight.simulation import Simulation
from bellweight.solve import Result, Rows, looped
from bellweight.weights.loop import Method
from bellweight.weights.methods import PIA, Fixed, FromPolicy
from bellweight.weights.plan import SolveSettings


@dataclass(frozen=True)
class Change:
    """A basis function whose coefficient is not the same for all candidates, and its range."""

    name: str
    lowest: float
    highest: float


@dataclass(frozen=True, eq=False)
class WeightEffect:
    """What the weights of V candidates, and all their mixtures, make of the value function.

    `matters` is False when one coefficient vector, `common` (K,), is optimal for all of them;
    otherwise `common` is the one that is optimal for their average. `same_weights` says that the
    candidates' moments hardly differ, so that nothing is compared. `shortfall` (V,) is what
    `common` gives up of each candidate's optimum `objective` (V,). `changes` lists what differs
    between the candidates' own coefficients `coef` (V, K), what moves the value most first.
    `distinct` counts the coefficient vectors met along all segments between candidates, at least
    where `complete` is off. `costs` are those of the candidates' greedy policies, exact on tabular
    models, and `lowest` to `highest` their range, with the policies met in between; all None where
    nothing was asked for. `proven` is off when a program was not solved to the end.
    """

    matters: bool
    same_weights: bool
    names: tuple[str, ...]
    moments: FloatArray
    coef: FloatArray
    objective: FloatArray
    common: FloatArray
    shortfall: FloatArray
    changes: tuple[Change, ...]
    distinct: int
    complete: bool
    costs: tuple[float, ...] | None
    lowest: float | None
    highest: float | None
    comparison: Comparison | None
    proven: bool

    def __str__(self) -> str:
        doubt = "" if self.proven else " (not proven: a program was not solved to the end)"
        if self.same_weights:
            first = "nothing to compare: the candidates have the same moments; try other weights"
        elif not self.matters:
            first = (
                "the weights do not matter here: one value function is optimal for all of them"
                f" ({', '.join(self.names)}, and every mixture)"
            )
        else:
            first = f"they matter: {self._difference()}"
        return f"{first}{doubt}\n{self._cost_line()}"

    def _difference(self) -> str:
        worst = int(np.argmax(self.shortfall))
        count = f"{'' if self.complete else 'at least '}{self.distinct}"
        terms = ", ".join(f"{c.name} ({c.lowest:.4g} to {c.highest:.4g})" for c in self.changes[:3])
        return (
            f"{count} value functions are optimal for some of them, none for all; the one for the "
            f"average reaches {self.objective[worst] - self.shortfall[worst]:,.4g} for "
            f"{self.names[worst]}, not {self.objective[worst]:,.4g}; what differs most: {terms}"
        )

    def _cost_line(self) -> str:
        if self.lowest is None or self.highest is None:
            return "cost of the policies: not asked for (episodes=...)"
        if self.highest - self.lowest <= tolerances.SAME_COST * abs(self.highest):
            return f"cost of the policies: {self.highest:,.6g} for all"
        if self.comparison is not None:
            clear = any(gap.is_clear for gap in self.comparison.differences.values())
            doubt = "beyond" if clear else "within"
            return (
                f"cost of the policies: {self.lowest:,.6g} to {self.highest:,.6g}, simulated, a "
                f"difference {doubt} the noise of the paired simulation"
            )
        ties = "" if self.matters else "; ties, or other optimal value functions, make the range"
        return f"cost of the policies: {self.lowest:,.6g} to {self.highest:,.6g}{ties}"


Candidate = Method | Result
Candidates = Mapping[str, Candidate] | Iterable[Candidate]


def weights_matter(
    model: Model,
    basis: Basis,
    candidates: Candidates | None = None,
    *,
    rows: Rows | None = None,
    simulation: Simulation | None = None,
    n: int = 30,
    episodes: int | None = None,
    horizon: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
) -> WeightEffect:
    """Say whether the choice among some weights can change the value function.

    `candidates` are methods or results, by name or not: by default the initial distribution, the
    occupancy of the uniform policy, and PIA's weights (all phases, when they cycle). `n` limits the
    programs solved on each segment between two candidates. With `episodes`, the candidates'
    policies are compared by paired simulation where their costs cannot be computed. `rows`,
    `simulation`, `seed` and `jobs` are as in `solve`.
    """
    limit = checks.count(n, "n")
    settings = SolveSettings(
        model=model, basis=basis, rows=rows, simulation=simulation, seed=seed, jobs=jobs
    )
    setup = settings.setup()
    points = _points(setup, settings, _named(candidates))
    iterates = {name: setup.iterate(point) for name, point in points.items()}
    middle = setup.iterate(_mixture(list(points.values())))
    segments = [_Segment(setup, *ends) for ends in combinations(iterates.values(), 2)]
    for segment in segments:
        segment.explore(limit)
    complete = all(segment.complete for segment in segments)
    between = [met for segment in segments for met in segment.met]
    met = _distinct([*iterates.values(), middle, *between])
    comparison = None
    if episodes is not None and not setup.is_exact:
        policies = {name: iterate.greedy for name, iterate in iterates.items()}
        comparison = compare(model, policies, episodes, horizon=horizon, seed=seed, jobs=jobs)
    return _effect(setup, iterates, middle, met, complete, comparison)


def _effect(
    setup: Setup,
    iterates: Mapping[str, Iterate],
    middle: Iterate,
    met: list[Iterate],
    complete: bool,
    comparison: Comparison | None,
) -> WeightEffect:
    ends = list(iterates.values())
    common = middle.solution.coef
    shortfall = np.array([_shortfall(end, common) for end in ends])
    margin = np.array([_margin(end, common) for end in ends])
    costs, reached = None, []
    if comparison is not None:
        costs = tuple(found.mean for found in comparison.evaluations.values())
        reached = list(costs)
    elif setup.is_exact:
        costs = tuple(setup.cost(end.greedy).mean for end in ends)
        reached = [*costs, *(setup.cost(one.greedy).mean for one in met)]
    moments = np.array([end.moments for end in ends])
    return WeightEffect(
        same_weights=bool(
            (
                np.ptp(moments, axis=0)
                <= tolerances.SAME_COEFFICIENTS * np.abs(moments).max(axis=0)
            ).all()
        ),
        matters=bool((shortfall > margin).any()),
        names=tuple(iterates),
        moments=moments,
        coef=np.array([end.solution.coef for end in ends]),
        objective=np.array([end.solution.objective for end in ends]),
        common=common,
        shortfall=np.maximum(shortfall, 0.0),
        changes=_changes(setup, ends),
        distinct=len(met),
        complete=complete,
        costs=costs,
        lowest=min(reached, default=None),
        highest=max(reached, default=None),
        comparison=comparison,
        proven=all(one.solution.status is Status.OPTIMAL for one in [*ends, middle]),
    )


def _named(candidates: Candidates | None) -> dict[str, Candidate]:
    if candidates is None:
        return {"initial": Fixed(), "where random actions lead": FromPolicy(), "PIA": PIA()}
    if isinstance(candidates, Mapping):
        named = dict(candidates)
    elif isinstance(candidates, Iterable) and not isinstance(candidates, str):
        named = {f"{_kind(one)} {k}": one for k, one in enumerate(candidates, start=1)}
    else:
        raise ArgumentError(f"candidates is {candidates!r}, expected methods or results")
    for name, one in named.items():
        if not isinstance(one, Method | Result):
            raise ArgumentError(f"candidate {name} is {one!r}, expected a method or a result")
    if not named:
        raise ArgumentError("candidates is empty, expected at least one method or result")
    return named


def _kind(candidate: Candidate) -> str:
    return type(candidate.method if isinstance(candidate, Result) else candidate).__name__


def _points(
    setup: Setup, settings: SolveSettings, candidates: Mapping[str, Candidate]
) -> dict[str, Point]:
    """Return every candidate's weights, and those of each phase where they cycle."""
    points = {}
    for name, candidate in candidates.items():
        found = _found(setup, settings, name, candidate)
        for k, point in enumerate(found, start=1):
            points[name if len(found) == 1 else f"{name} phase {k}"] = point
    if len(points) < 2:
        raise ArgumentError("there is only one candidate, expected two or more to compare")
    return points


def _found(setup: Setup, settings: SolveSettings, name: str, candidate: Candidate) -> list[Point]:
    if isinstance(candidate, Method):
        outcome = looped(setup, candidate, settings).outcome
        return [one.point for one in outcome.phases or (outcome.iterate,)]
    same_model = candidate.model_digest == setup.model.digest
    # The weights of a result are moments of its basis, and other bases may have the same names.
    if not (same_model and identity.same(candidate.basis, setup.basis)):
        raise ArgumentError(
            f"candidate {name} is the result of another model or basis: solve it again with these"
        )
    return [Point(one.moments, one.weights) for one in candidate.phases or (candidate,)]


def _mixture(points: list[Point], shares: FloatArray | None = None) -> Point:
    """Return the weighted average of some weights, the plain one by default."""
    parts = np.full(len(points), 1.0 / len(points)) if shares is None else shares
    moments = parts @ np.array([point.moments for point in points])
    weights = [point.weights for point in points if point.weights is not None]
    if len(weights) < len(points):
        return Point(moments)
    return Point(moments, parts @ np.array(weights))


def _shortfall(iterate: Iterate, coef: FloatArray) -> float:
    """Return what coefficients give up of the optimum for an iterate's weights."""
    return iterate.solution.objective - float(iterate.moments @ coef)


def _margin(iterate: Iterate, coef: FloatArray) -> float:
    """Return how large a shortfall the accuracy of the answers alone may leave."""
    terms = float(np.abs(iterate.moments) @ (np.abs(coef) + np.abs(iterate.solution.coef)))
    exact = tolerances.OPTIMALITY * abs(iterate.solution.objective)
    return exact + 10.0 * tolerances.ROUNDING * terms


class _Segment:
    """The linear pieces of the optimal value between two candidates."""

    def __init__(self, setup: Setup, first: Iterate, last: Iterate) -> None:
        self.setup = setup
        self.ends = (first, last)
        self.met: list[Iterate] = []
        self.complete = False

    def explore(self, limit: int) -> None:
        """Find the pieces with at most `limit` programs, and note whether that was enough."""
        solved = 0
        open_parts = [(0.0, self.ends[0], 1.0, self.ends[1])]
        while open_parts:
            low, left, high, right = open_parts.pop()
            if self._joined(left, right):
                continue
            place = self._crossing(left, right)
            if not low < place < high:
                continue  # the lines meet at an end, up to rounding
            if solved == limit:
                return
            solved += 1
            found = self.setup.iterate(self._at(place))
            if _shortfall(found, left.solution.coef) > _margin(found, left.solution.coef):
                self.met.append(found)
                open_parts += [(low, left, place, found), (place, found, high, right)]
        self.complete = True

    @staticmethod
    def _joined(left: Iterate, right: Iterate) -> bool:
        """Whether one of two answers is optimal at both places, hence between them."""
        return any(
            _shortfall(here, there.solution.coef) <= _margin(here, there.solution.coef)
            for here, there in ((left, right), (right, left))
        )

    def _crossing(self, left: Iterate, right: Iterate) -> float:
        """Return where on the segment two answers give the same objective."""
        gap = right.solution.coef - left.solution.coef
        start, end = (float(one.moments @ gap) for one in self.ends)
        return start / (start - end) if start != end else 0.0

    def _at(self, place: float) -> Point:
        points = [end.point for end in self.ends]
        return _mixture(points, np.array([1.0 - place, place]))


def _distinct(iterates: list[Iterate]) -> list[Iterate]:
    """Return iterates whose coefficients are not the same, the first of each kind."""
    size = np.max([np.abs(one.moments) for one in iterates], axis=0)
    kinds: list[Iterate] = []
    for one in iterates:
        coef = one.solution.coef
        scale = tolerances.SAME_COEFFICIENTS * float((np.abs(coef) * size).max())
        if not any((np.abs(coef - kind.solution.coef) * size).max() <= scale for kind in kinds):
            kinds.append(one)
    return kinds


def _changes(setup: Setup, iterates: list[Iterate]) -> tuple[Change, ...]:
    coef = np.array([one.solution.coef for one in iterates])
    size = np.max([np.abs(one.moments) for one in iterates], axis=0)
    low, high = coef.min(axis=0), coef.max(axis=0)
    share = (high - low) * size
    largest = float((np.abs(coef) * size).max())
    order = [
        k
        for k in np.argsort(-share, kind="stable")
        if share[k] > tolerances.SAME_COEFFICIENTS * largest
    ]
    return tuple(Change(setup.rows.names[k], float(low[k]), float(high[k])) for k in order)
