"""Let the basis grow where that raises a proven bound: for models with local structure.

With weights equal to the initial law the objective of the program over all states is a lower bound
on the cost of every policy. A function f that is not in the basis would let it grow at the rate

    | moment of f  -  dual' (row of f) |

with the coefficient of f: its price. Candidates are hinges of one coordinate and products of two
clipped coordinates; they are compared by their price per unit of slope, those of the highest price
are added, and the program is solved again, until the bound stops rising.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from bellweight.backends import Estimate, Iterate, backend_of
from bellweight.basis import Basis, ClippedProducts, Hinge, Located, Stacked
from bellweight.basis.composed import stacked_on
from bellweight.common import checks, files, tolerances
from bellweight.common.checks import IntArray
from bellweight.common.status import ArgumentError, BellweightError
from bellweight.display import Column, Table, number_text
from bellweight.display.charts import Chart, Line
from bellweight.display.presentable import Pictures
from bellweight.program import EliminatedRows, LocalRows
from bellweight.program.local_terms import grid_sizes, law_moments
from bellweight.results.base import ChosenResult
from bellweight.results.judgement import notes_of
from bellweight.results.result import Result
from bellweight.solve import looped
from bellweight.weights.methods import Fixed
from bellweight.weights.plan import Plan, SolveSettings


@files.storable("BoundRound")
@dataclass(frozen=True)
class BoundRound:
    """One round: the functions it added, by name, and the bound that is proven with them.

    `width` is the largest number of variables in a table of the search.
    """

    added: tuple[str, ...]
    lower_bound: float
    width: int
    seconds: float


@files.storable("RaisedBoundResult")
@dataclass(frozen=True, eq=False, repr=False)
class RaisedBoundResult(ChosenResult):
    """What was found: the `result` with the highest bound, every round, and why it stopped."""

    result: Result
    rounds: tuple[BoundRound, ...]
    stopped: str

    @property
    def cost(self) -> Estimate | None:
        """What the policy costs, None where it was not judged."""
        return None if self.judgement is None else self.judgement.cost

    @property
    def lower_bound(self) -> float:
        """What no policy can cost less than."""
        return max(one.lower_bound for one in self.rounds)

    def stored_fault(self) -> str:
        return "" if self.rounds else "there is no round"

    def table(self) -> Table:
        """Return one row for each round."""
        rows = tuple(
            {**vars(one), "round": k, "names": ", ".join(one.added) or "none"}
            for k, one in enumerate(self.rounds)
        )
        notes = (
            f"No policy costs less than {number_text(self.lower_bound)}. Stopped: {self.stopped}.",
            *(() if self.cost is None else (f"The policy costs {self.cost}.",)),
            *notes_of(self.judgement),
        )
        return Table(f"Raised bound on {self.model_name}", _COLUMNS, rows, notes)

    def pictures(self) -> Pictures:
        """Return the bound by the number of functions added."""
        return {"bound": lambda: (self._growth(),)}

    def _growth(self) -> Chart:
        counts = np.cumsum([len(one.added) for one in self.rounds]).astype(np.float64)
        bounds = np.array([one.lower_bound for one in self.rounds])
        alt = (
            f"With {int(counts[-1])} functions added the bound went from {bounds[0]:,.6g} to "
            f"{bounds[-1]:,.6g}."
        )
        lines = (Line("proven lower bound", counts, bounds),)
        names = ("functions added", "expected discounted cost")
        return Chart("bound", "The bound as the basis grows", *names, lines, alt)


_COLUMNS = (
    Column("round", "round"),
    Column("lower_bound", "lower bound", number_text),
    Column("width", "width"),
    Column("seconds", "seconds", "{:.1f}".format),
    Column("names", "added", right=False),
)


@dataclass(frozen=True, eq=False, repr=False)
class RaisedBound(Plan[RaisedBoundResult]):
    """A plan that raises a proven bound: `solve(network, PiecewiseLinear([2]), RaisedBound())`.

    At most `functions` are added, `per_round` at a time: hinges with kinks up to `last_kink`, and
    products of pairs clipped at `levels`. It stops when `patience` rounds have raised the bound by
    less than `tol` of it. Functions for which a table of the search would have more than
    `most_entries` are passed over. The seconds of `stop` are for all rounds together.
    """

    functions: int = 20
    per_round: int = 4
    last_kink: int = 20
    levels: Sequence[int] = (1, 3)
    tol: float = 1e-5
    patience: int = 2
    most_entries: int = 1 << 17

    def __post_init__(self) -> None:
        checks.count(self.functions, "functions")
        checks.count(self.per_round, "per_round")
        checks.count(self.last_kink, "last_kink")
        if not isinstance(self.levels, Sequence) or isinstance(self.levels, str):
            raise ArgumentError(f"levels is {self.levels!r}, expected whole numbers as in (1, 3)")
        levels = tuple(checks.count(one, f"levels[{k}]") for k, one in enumerate(self.levels))
        object.__setattr__(self, "levels", levels)
        checks.positive(self.tol, "tol")
        checks.count(self.patience, "patience")
        checks.count(self.most_entries, "most_entries")

    def run(self, settings: SolveSettings) -> RaisedBoundResult:
        """Solve, add the functions of the highest price, and solve again while that helps."""
        model = settings.model
        if backend_of(model).structure is None:
            raise ArgumentError(
                f"RaisedBound got {model!r}, expected an event model with declared scopes or a "
                "factored model: use Enriched() for tabular models"
            )
        return _Run(self, settings).until_stopped()


class _Run:
    """The state of one run."""

    def __init__(self, plan: RaisedBound, settings: SolveSettings) -> None:
        self.plan = plan
        self.settings = settings
        self.model = settings.model
        self.dimension: int = settings.model.dimension  # type: ignore[union-attr]
        self.basis = settings.basis
        self.best: Result | None = None
        self.rounds: list[BoundRound] = []
        self._added: list[Basis] = []
        self._began = time.perf_counter()

    def until_stopped(self) -> RaisedBoundResult:
        try:
            stopped = self._go_on()
        except KeyboardInterrupt:
            if self.best is None:
                raise
            stopped = "interrupted"
        assert self.best is not None
        return RaisedBoundResult(self.best, tuple(self.rounds), stopped)

    def _go_on(self) -> str:
        """Make rounds until there is a reason to stop, and return it."""
        new: list[Basis] = []
        while True:
            found = self._solved(new)
            reason = self._reason()
            if reason:
                return reason
            new = self._of_highest_price(found, self.plan.functions - len(self._added))
            if not new:
                return "nothing to add: the dual balances every candidate"

    def _solved(self, new: list[Basis]) -> Iterate:
        settings = self.settings
        if new:
            added = Stacked(*self._added, *new)
            self.basis = stacked_on(settings.basis, added, self.dimension)
        setup = replace(settings, basis=self.basis, rows=LocalRows()).setup()
        seen: list[Iterate] = []
        method = Fixed("initial")
        result = looped(setup, method, settings, owner=self.plan, visit=seen.append).result()
        bound = result.lower_bound
        if bound is None:
            raise ArgumentError(
                "no bound can be proven from the initial law: give the model an initial state, or "
                "Geometric(decay)"
            )
        assert isinstance(setup.rows, EliminatedRows)
        self._added += new
        if self.best is None or bound > (self.best.lower_bound or -np.inf):
            self.best = result
        names = tuple(name for one in new for name in one.function_names(self.dimension))
        spent = time.perf_counter() - self._began
        self.rounds.append(BoundRound(names, bound, setup.rows.width, spent))
        settings.say(f"round {len(self.rounds) - 1:2d}  bound {bound:.8g}")
        return seen[-1]

    def _reason(self) -> str:
        """Return why to stop after this round, no text to go on."""
        plan = self.plan
        if len(self._added) >= plan.functions:
            return f"all {plan.functions} functions are used"
        if self.settings.is_over(self._began):
            return "the time is up"
        if len(self.rounds) > plan.patience:
            before = self.rounds[-1 - plan.patience].lower_bound
            last = self.rounds[-1].lower_bound
            if last - before <= plan.tol * abs(last):
                rounds = "round" if plan.patience == 1 else f"{plan.patience} rounds"
                return f"the last {rounds} raised the bound by less than {plan.tol:g} of it"
        return ""

    def _of_highest_price(self, found: Iterate, most: int) -> list[Basis]:
        """Return the candidates of the highest price, as long as the search stays small enough."""
        rows = found.setup.rows
        assert isinstance(rows, EliminatedRows)
        candidates = self._candidates(rows.structure.limits)
        prices = [(self._price(found, one, slope), one) for one, slope in candidates]
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

    def _candidates(self, limits: IntArray) -> Iterator[tuple[Basis, float]]:
        """Yield functions that are not in the basis, with their largest slope.

        Kinks and levels at the largest value of a coordinate, or beyond, make nothing new.
        """
        dimension = self.dimension
        known = set(self.basis.function_names(dimension))
        for i in range(dimension):
            last = self.plan.last_kink
            for kink in range(1, 1 + (last if limits[i] < 0 else min(last, int(limits[i]) - 1))):
                yield Located([Hinge((i,), float(kink))]), 1.0
        for pair in combinations(range(dimension), 2):
            own = limits[list(pair)]
            top = int(own.max()) if (own >= 0).all() else max(self.plan.levels)
            for level in sorted({min(level, top) for level in self.plan.levels}):
                product = ClippedProducts([pair], [level])
                if not set(product.function_names(dimension)) & known:
                    yield product, float(level)

    def _price(self, found: Iterate, candidate: Basis, slope: float) -> float:
        """Return the rate at which the objective grows with a candidate, per unit of slope."""
        if set(candidate.function_names(self.dimension)) & set(found.setup.rows.names):
            return 0.0
        rows, solution = found.setup.rows, found.solution
        assert isinstance(rows, EliminatedRows)
        dual = solution.dual
        entries = rows.entries_of(candidate, solution.keys)[:, 0]
        structure, parts = rows.structure, candidate.parts(self.dimension)
        sizes = grid_sizes(structure, parts, candidate.function_names(self.dimension))
        moments = law_moments(structure, parts, sizes, n_basis=1)
        assert moments is not None
        moment = float(moments[0][0])
        rate = abs(moment - float(dual @ entries))
        real = rate > tolerances.BALANCED * (abs(moment) + float(dual @ np.abs(entries)))
        return rate / slope if real else 0.0
