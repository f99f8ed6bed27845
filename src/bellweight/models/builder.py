"""Linear models from named variables, so that a model reads like its mathematics.

    desk = LinearBuilder(discount=0.95, name="repair desk")
    jobs = desk.state("jobs", upper=20, initial=Law.certain(5))
    own = desk.action("own", upper=3)
    sent = desk.action("sent")
    new = desk.noise("new", Law.poisson(3.5, 12))
    desk.require(own + sent <= jobs)
    desk.follow(jobs, jobs - own - sent + new)
    desk.cost(2 * jobs + 9 * sent)
    model = desk.build()

`states`, `actions` and `noises` make families of variables with indices. Expressions are sums of
variables times numbers; Python's `sum` adds them up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from bellweight.common.checks import FloatArray
from bellweight.common.status import ModelError
from bellweight.models.laws import Independent, Law
from bellweight.models.linear import Kernels, LinearModel

Index = Any
Number = int | float | np.integer[Any] | np.floating[Any]


@dataclass(frozen=True)
class Variable:
    """One variable: its kind (state, action or noise) and its place among those of its kind."""

    kind: str
    place: int
    name: str


@dataclass(frozen=True, eq=False)
class Expression:
    """A constant plus variables times numbers."""

    terms: Mapping[Variable, float] = field(default_factory=dict)
    constant: float = 0.0

    def __add__(self, other: Expression | Number) -> Expression:
        right = expression(other)
        terms = dict(self.terms)
        for variable, factor in right.terms.items():
            terms[variable] = terms.get(variable, 0.0) + factor
        return Expression(terms, self.constant + right.constant)

    __radd__ = __add__

    def __neg__(self) -> Expression:
        return self * -1.0

    def __sub__(self, other: Expression | Number) -> Expression:
        return self + -expression(other)

    def __rsub__(self, other: Expression | Number) -> Expression:
        return expression(other) - self

    def __mul__(self, factor: Number) -> Expression:
        if isinstance(factor, Expression):
            raise ModelError("a product of variables is not linear: multiply by numbers only")
        number = float(factor)
        return Expression({v: number * f for v, f in self.terms.items()}, number * self.constant)

    __rmul__ = __mul__

    def __le__(self, other: Expression | Number) -> Constraint:
        return Constraint(self - other, -np.inf, 0.0)

    def __ge__(self, other: Expression | Number) -> Constraint:
        return Constraint(self - other, 0.0, np.inf)

    def __lt__(self, other: object) -> Constraint:
        raise ModelError("a constraint with < has no meaning among real numbers: write <=")

    def __gt__(self, other: object) -> Constraint:
        raise ModelError("a constraint with > has no meaning among real numbers: write >=")

    def __eq__(self, other: object) -> Constraint:  # type: ignore[override]
        return Constraint(self - other, 0.0, 0.0)  # type: ignore[operator]

    __hash__ = None  # type: ignore[assignment]

    @property
    def variable(self) -> Variable:
        """The variable that this expression is, or an error."""
        if len(self.terms) != 1 or self.constant != 0.0 or next(iter(self.terms.values())) != 1.0:
            raise ModelError("expected a single variable, got a longer expression")
        return next(iter(self.terms))


@dataclass(frozen=True, eq=False)
class Constraint:
    """lower <= expression <= upper."""

    expression: Expression
    lower: float
    upper: float

    def __bool__(self) -> bool:
        # Python reads a <= x <= b as (a <= x) and (x <= b), which would forget the first half.
        raise ModelError(
            "a constraint is neither true nor false: write a <= x <= b as two constraints"
        )


def expression(value: Any) -> Expression:
    """Return a number or an expression as an expression."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ModelError(f"{value!r} is neither a number nor made of the model's variables")
    return Expression({}, float(value))


class LinearBuilder:
    """Collects variables, constraints, transitions and costs; `build` makes the `LinearModel`.

    Args:
        discount: how much a cost one step later counts, below one.
        name: of the model, for people.

    Examples:
        >>> desk = bw.LinearBuilder(discount=0.95, name="repair desk")
        >>> jobs = desk.state("jobs", upper=20, initial=bw.Law.certain(5))
        >>> done = desk.action("done", upper=3)
        >>> desk.require(done <= jobs)
        >>> desk.follow(jobs, jobs - done + desk.noise("new", bw.Law.poisson(2, 9)))
        >>> desk.cost(2 * jobs + done)
        >>> desk.build()
        LinearModel('repair desk': 1 state and 1 action variables, discount 0.95)
    """

    def __init__(self, discount: float, name: str = "linear model") -> None:
        self.discount = discount
        self.name = name
        self._variables: dict[str, list[Variable]] = {"state": [], "action": [], "noise": []}
        self._lower: dict[str, list[float]] = {"state": [], "action": []}
        self._upper: dict[str, list[float]] = {"state": [], "action": []}
        self._initial: list[Law] = []
        self._laws: list[Law] = []
        self._constraints: list[tuple[str, Constraint]] = []
        self._next: dict[Variable, Expression] = {}
        self._cost = Expression()
        self._preference: Expression | None = None

    def state(self, name: str, *, upper: float, lower: float = 0.0, initial: Law) -> Expression:
        """Add a state variable with its box and its initial law."""
        self._initial.append(_law(initial, f"the initial law of {name}"))
        return self._bounded("state", name, lower, upper)

    def action(self, name: str, *, upper: float = np.inf, lower: float = 0.0) -> Expression:
        """Add an action variable."""
        return self._bounded("action", name, lower, upper)

    def noise(self, name: str, law: Law) -> Expression:
        """Add a random number that is drawn afresh in every step."""
        self._laws.append(_law(law, f"the law of {name}"))
        return self._new("noise", name)

    def states(
        self,
        name: str,
        *indices: Sequence[Index],
        upper: Any,
        lower: Any = 0.0,
        initial: Any,
        words: Sequence[str] = (),
    ) -> dict[Index, Expression]:
        """Add one state variable per index; `upper`, `lower`, `initial` are for all or by index.

        `words`, one for each index set, make names such as `booked[day 3]`.
        """
        return {
            i: self.state(
                _label(name, i, words),
                upper=_entry(upper, i),
                lower=_entry(lower, i),
                initial=_entry(initial, i),
            )
            for i in _indices(name, indices)
        }

    def actions(
        self,
        name: str,
        *indices: Sequence[Index],
        upper: Any = np.inf,
        lower: Any = 0.0,
        words: Sequence[str] = (),
    ) -> dict[Index, Expression]:
        """Add one action variable per index, or per combination of indices; `words` as in `states`.

        Reports draw variables with two whole indices as a map, and `words` name its axes.
        """
        return {
            i: self.action(_label(name, i, words), upper=_entry(upper, i), lower=_entry(lower, i))
            for i in _indices(name, indices)
        }

    def noises(self, name: str, *indices: Sequence[Index], law: Any) -> dict[Index, Expression]:
        """Add one random number per index."""
        return {i: self.noise(_label(name, i), _entry(law, i)) for i in _indices(name, indices)}

    def require(self, constraint: Constraint | bool, name: str | None = None) -> None:
        """Add a constraint between states and actions, made with <=, >= or ==."""
        if not isinstance(constraint, Constraint):
            raise ModelError(
                f"require got {constraint!r}, expected a comparison such as x + a <= 10: a "
                "comparison without variables is not a constraint"
            )
        for variable in constraint.expression.terms:
            if variable.kind == "noise":
                raise ModelError(f"{variable.name} is not known when the action is chosen")
        label = name or f"constraint {len(self._constraints) + 1}"
        self._constraints.append((label, constraint))

    def follow(self, state: Expression, following: Expression | Number) -> None:
        """Say what a state variable becomes."""
        variable = state.variable
        if variable.kind != "state":
            raise ModelError(f"{variable.name} is not a state variable: only states have a next")
        if variable in self._next:
            raise ModelError(f"the next {variable.name} is given twice")
        self._next[variable] = expression(following)

    def cost(self, amount: Expression | Number) -> None:
        """Add to the cost of a step."""
        added = expression(amount)
        for variable in added.terms:
            if variable.kind == "noise":
                raise ModelError(
                    f"the cost contains {variable.name}, which is random: use its expected value"
                )
        self._cost = self._cost + added

    def prefer(self, amount: Expression | Number) -> None:
        """Break ties among greedy actions: the smaller this expression, the better."""
        self._preference = expression(amount)

    def build(
        self,
        *,
        kernels: Kernels | None = None,
        first_cost: float | None = None,
        cost_growth: float | None = None,
    ) -> LinearModel:
        """Return the model; every state variable needs a `follow`.

        `first_cost` and `cost_growth` bound the tail of simulated costs, as in `LinearModel`.
        """
        for variable in self._variables["state"]:
            if variable not in self._next:
                raise ModelError(f"the next {variable.name} is not given: use follow")
        following = [self._next[variable] for variable in self._variables["state"]]
        rows = [constraint.expression for _, constraint in self._constraints]
        shift = np.array([row.constant for row in rows])
        noise, matrix = self._noise(following)
        return LinearModel(
            state_cost=self._matrix([self._cost], "state")[0],
            action_cost=self._matrix([self._cost], "action")[0],
            constant_cost=self._cost.constant,
            next_state=self._matrix(following, "state"),
            next_action=self._matrix(following, "action"),
            noise=noise,
            noise_matrix=matrix,
            initial=Independent(self._initial),
            discount=self.discount,
            state_lower=self._lower["state"],
            state_upper=self._upper["state"],
            action_lower=self._lower["action"],
            action_upper=self._upper["action"],
            state_rows=self._matrix(rows, "state"),
            action_rows=self._matrix(rows, "action"),
            row_lower=np.array([c.lower for _, c in self._constraints]) - shift,
            row_upper=np.array([c.upper for _, c in self._constraints]) - shift,
            state_names=self._names("state"),
            action_names=self._names("action"),
            row_names=tuple(name for name, _ in self._constraints),
            preference=(
                None if self._preference is None else self._matrix([self._preference], "action")[0]
            ),
            first_cost=first_cost,
            cost_growth=cost_growth,
            kernels=kernels,
            name=self.name,
        )

    def _noise(self, following: list[Expression]) -> tuple[Independent, FloatArray]:
        """Return the noise with, where there are any, constants of the transition as its last."""
        constant = np.array([row.constant for row in following])
        matrix = self._matrix(following, "noise")
        if not constant.any():
            return Independent(self._laws), matrix
        return Independent([*self._laws, Law.certain(1.0)]), np.column_stack([matrix, constant])

    def _bounded(self, kind: str, name: str, lower: float, upper: float) -> Expression:
        self._lower[kind].append(float(lower))
        self._upper[kind].append(float(upper))
        return self._new(kind, name)

    def _new(self, kind: str, name: str) -> Expression:
        known = self._variables[kind]
        if any(variable.name == name for variable in known):
            raise ModelError(f"there is already a {kind} variable called {name}")
        variable = Variable(kind, len(known), name)
        known.append(variable)
        return Expression({variable: 1.0})

    def _names(self, kind: str) -> tuple[str, ...]:
        return tuple(variable.name for variable in self._variables[kind])

    def _matrix(self, rows: list[Expression], kind: str) -> FloatArray:
        matrix = np.zeros((len(rows), len(self._variables[kind])))
        for k, row in enumerate(rows):
            for variable, factor in row.terms.items():
                if variable.kind == kind:
                    self._check_own(variable)
                    matrix[k, variable.place] = factor
        return matrix

    def _check_own(self, variable: Variable) -> None:
        known = self._variables[variable.kind]
        if variable.place >= len(known) or known[variable.place] is not variable:
            raise ModelError(f"{variable.name} belongs to another builder")


def _indices(name: str, sets: tuple[Sequence[Index], ...]) -> list[Index]:
    if not sets or any(len(indices) == 0 for indices in sets):
        raise ModelError(f"{name} has an empty index set, expected at least one index")
    return list(sets[0]) if len(sets) == 1 else list(product(*sets))


def _label(name: str, index: Index, words: Sequence[str] = ()) -> str:
    parts = index if isinstance(index, tuple) else (index,)
    if words and (isinstance(words, str) or len(words) != len(parts)):
        raise ModelError(f"words of {name} is {words!r}, expected {len(parts)}: one for each index")
    said = zip(words, map(str, parts), strict=True) if words else ((str(part),) for part in parts)
    return f"{name}[{', '.join(map(' '.join, said))}]"


def _entry(value: Any, index: Index) -> Any:
    """Return the entry of a mapping; anything else is the same for all indices."""
    if not isinstance(value, Mapping):
        return value
    if index not in value:
        raise ModelError(f"nothing is given for index {index!r}: the keys are {list(value)[:5]}")
    return value[index]


def _law(law: Any, what: str) -> Law:
    if not isinstance(law, Law):
        raise ModelError(f"{what} is {law!r}, expected a Law such as Law.poisson(5, 15)")
    return law
