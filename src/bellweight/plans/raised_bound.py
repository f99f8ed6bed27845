"""Let the basis grow where that raises a proven bound: for models with local structure.

With weights equal to the initial law the objective of the program over all states is a lower bound
on the cost of every policy. A function f that is not in the basis would let it grow at the rate

    | moment of f  -  dual' (row of f) |

with the coefficient of f: its price. Candidates are hinges of one coordinate and products of two
clipped coordinates; they are compared by their price per unit of slope, the dearest are added, and
the program is solved again, until the bound stops rising.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import cast

import numpy as np

from bellweight.backends import Iterate, setup_of
from bellweight.basis import Affine, Basis, ClippedProducts, Hinge, Located, Stacked
from bellweight.basis.composed import stacked_on
from bellweight.common import checks
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import ArgumentError, BellweightError
from bellweight.models import EventModel
from bellweight.policies import Greedy
from bellweight.program import EliminatedRows, LocalRows
from bellweight.weights.plan import Plan, SolveSettings

_RATE = 1e-9  # share of its terms by which the dual must miss a function's equation


@dataclass(frozen=True)
class BoundRound:
    """One round: the functions it added, by name, and the bound that is proven with them."""

    added: tuple[str, ...]
    lower_bound: float
    width: int
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class RaisedBoundResult:
    """What was found: the last `basis` and its coefficients, every round, and why it stopped."""

    basis: Basis
    coef: FloatArray
    policy: Greedy
    rounds: tuple[BoundRound, ...]
    stopped: str

    @property
    def lower_bound(self) -> float:
        """What no policy can cost less than."""
        return max(one.lower_bound for one in self.rounds)

    def __repr__(self) -> str:
        return f"<RaisedBoundResult: at least {self.lower_bound:,.6g}, {self.stopped}>"

    def __str__(self) -> str:
        lines = [
            f"round {k:2d}  bound {one.lower_bound:,.8g}  width {one.width}  {one.seconds:.1f} s  "
            f"{', '.join(one.added) or '-'}"
            for k, one in enumerate(self.rounds)
        ]
        return "\n".join([*lines, f"stopped: {self.stopped}"])


@dataclass(frozen=True, eq=False, repr=False)
class RaisedBound(Plan[RaisedBoundResult]):
    """A plan that raises a proven bound: `solve(network, PiecewiseLinear([2]), RaisedBound())`.

    At most `functions` are added, `per_round` at a time: hinges with kinks up to `last_kink`, and
    products of pairs clipped at `levels`. It stops when `patience` rounds have raised the bound by
    less than `tol` of it. Functions for which a table of the search would have more than
    `most_entries` are passed over.
    """

    functions: int = 20
    per_round: int = 4
    last_kink: int = 20
    levels: tuple[int, ...] = (1, 3)
    tol: float = 1e-5
    patience: int = 2
    most_entries: int = 1 << 17

    def __post_init__(self) -> None:
        checks.count(self.functions, "functions")
        checks.count(self.per_round, "per_round")
        checks.count(self.last_kink, "last_kink")
        checks.positive(self.tol, "tol")
        checks.count(self.patience, "patience")
        checks.count(self.most_entries, "most_entries")

    def run(self, settings: SolveSettings) -> RaisedBoundResult:
        """Solve, add the functions of the highest price, and solve again until it helps not."""
        model = settings.model
        if getattr(model, "structure", None) is None:
            raise ArgumentError(
                f"RaisedBound got {model!r}, expected an event model with declared scopes: use "
                "Enriched() for tabular models"
            )
        return _Run(self, settings, cast(EventModel, model)).until_stopped()


class _Run:
    """The state of one run."""

    def __init__(self, plan: RaisedBound, settings: SolveSettings, model: EventModel) -> None:
        self.plan = plan
        self.settings = settings
        self.model = model
        self.basis = settings.basis
        self.rounds: list[BoundRound] = []
        self._added: list[Basis] = []
        self._began = time.perf_counter()

    def until_stopped(self) -> RaisedBoundResult:
        new: list[Basis] = []
        total = 0
        while True:
            found = self._solved(new)
            total += len(new)
            reason = self._reason(total)
            new = [] if reason else self._dearest(found, self.plan.functions - total)
            if not new:
                stopped = reason or "nothing to add: the dual balances every candidate"
                return RaisedBoundResult(
                    self.basis, found.solution.coef, found.greedy, tuple(self.rounds), stopped
                )

    def _solved(self, new: list[Basis]) -> Iterate:
        dimension, settings = self.model.dimension, self.settings
        self._added += new
        if self._added:
            self.basis = stacked_on(settings.basis, Stacked(*self._added), dimension)
        setup = setup_of(
            self.model, self.basis, LocalRows(), settings.simulation, settings.seed, settings.jobs
        )
        found = setup.iterate(setup.named_point("initial", "weights"))
        bound = setup.proven(found.solution.coef, found.moments)
        if bound is None:
            raise ArgumentError(
                "no bound can be proven from the initial law: give the model an initial state, or "
                "Geometric(decay)"
            )
        assert isinstance(setup.rows, EliminatedRows)
        names = tuple(name for one in new for name in one.function_names(dimension))
        spent = time.perf_counter() - self._began
        self.rounds.append(BoundRound(names, bound.value, setup.rows.width, spent))
        if settings.progress is True:
            print(f"round {len(self.rounds) - 1:2d}  bound {bound.value:.8g}", flush=True)
        return found

    def _reason(self, total: int) -> str:
        plan = self.plan
        if total >= plan.functions:
            return f"all {plan.functions} functions are used"
        if len(self.rounds) > plan.patience:
            before = self.rounds[-1 - plan.patience].lower_bound
            last = self.rounds[-1].lower_bound
            if last - before <= plan.tol * abs(last):
                rounds = "round" if plan.patience == 1 else f"{plan.patience} rounds"
                return f"the last {rounds} raised the bound by less than {plan.tol:g} of it"
        return ""

    def _dearest(self, found: Iterate, most: int) -> list[Basis]:
        """Return the candidates of the highest price, as long as the search stays small enough."""
        prices = [(self._price(found, one, slope), one) for one, slope in self._candidates()]
        ranked = sorted((p for p in prices if p[0] > 0.0), key=lambda p: -p[0])
        chosen: list[Basis] = []
        for _, candidate in ranked:
            if len(chosen) == min(self.plan.per_round, most):
                break
            wider = Stacked(self.basis, *chosen, candidate)
            try:
                rows = LocalRows().on(self.model, wider)
            except BellweightError:  # the tables of this one would not fit into memory
                continue
            if max(order.entries for order in rows.orders) <= self.plan.most_entries:
                chosen.append(candidate)
        return chosen

    def _candidates(self) -> Iterator[tuple[Basis, float]]:
        """Yield functions that are not in the basis, with their largest slope."""
        dimension = self.model.dimension
        known = set(self.basis.function_names(dimension))
        for i in range(dimension):
            for kink in range(1, self.plan.last_kink + 1):
                yield Located([Hinge((i,), float(kink))]), 1.0
        for pair in combinations(range(dimension), 2):
            for level in self.plan.levels:
                product = ClippedProducts([pair], [level])
                if not set(product.function_names(dimension)) & known:
                    yield product, float(level)

    def _price(self, found: Iterate, candidate: Basis, slope: float) -> float:
        """Return the rate at which the objective grows with a candidate, per unit of slope."""
        if set(candidate.function_names(self.model.dimension)) & set(found.setup.rows.names):
            return 0.0
        rows, solution = found.setup.rows, found.solution
        assert isinstance(rows, EliminatedRows)
        dual = solution.dual
        entries = self._entries(rows, solution.keys, candidate)
        alone = LocalRows().on(self.model, Stacked(Affine(), candidate))
        assert alone.initial_moments is not None
        moment = float(alone.initial_moments[0][-1])
        rate = abs(moment - float(dual @ entries))
        real = rate > _RATE * (abs(moment) + float(dual @ np.abs(entries)))
        return rate / slope if real else 0.0

    def _entries(self, rows: EliminatedRows, keys: IntArray, candidate: Basis) -> FloatArray:
        """Return a candidate's entries (n,) in some rows, slopes included."""
        states, actions = rows.support_of(keys)
        entries = self._bellman(states, actions, candidate)
        for i in self.model.structure.endless:  # type: ignore[union-attr]
            slope = rows.slopes[keys] == i
            if slope.any():
                beyond = states[slope].copy()
                beyond[:, i] += 1
                entries[slope] = self._bellman(beyond, actions[slope], candidate) - entries[slope]
        return entries

    def _bellman(self, states: IntArray, actions: IntArray, candidate: Basis) -> FloatArray:
        _, chance, after = self.model.expand(np.ascontiguousarray(states), actions)
        here = np.asarray(candidate(states.astype(np.float64)))[:, 0]
        flat = after.reshape(-1, after.shape[2]).astype(np.float64)
        there = np.asarray(candidate(flat))[:, 0].reshape(chance.shape)
        drift = (chance * (there - here[:, None])).sum(axis=1)
        discount = self.model.discount
        return np.asarray((1.0 - discount) * here - discount * drift)
