"""What a basis is, and the plain ones: polynomials, indicators and the user's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement, groupby
from typing import Any

import numpy as np
from scipy import sparse

from bellweight.basis.atoms import Term, coordinate, spot, written
from bellweight.basis.parts import Part, constant_part
from bellweight.common import checks, files
from bellweight.common.checks import FloatArray, IntArray, Matrix, dense
from bellweight.common.short import Short
from bellweight.common.status import BasisError

Bound = float | Sequence[float] | FloatArray | None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Basis(Short, ABC):
    """K functions of the state, with optional bounds on their coefficients."""

    lower: Any = None
    upper: Any = None

    @abstractmethod
    def __call__(self, states: FloatArray) -> Matrix:
        """Map states (n, d) to features (n, K)."""

    @abstractmethod
    def function_names(self, dimension: int) -> tuple[str, ...]:
        """Return the K names of the functions, for states of this dimension."""

    def words(self, dimension: int) -> list[tuple[int, ...]]:
        """Return the functions as monomials, words of variable indices: x1^2 x3 is (0, 0, 2)."""
        raise BasisError(f"{type(self).__name__} is not made of monomials: use Polynomial")

    def terms(self, dimension: int) -> list[Term]:
        """Return the functions as products of atoms, the form that compiled loops take."""
        raise BasisError(
            f"{type(self).__name__} cannot run inside compiled loops: use another basis, or "
            "enumerate the model with to_tabular()"
        )

    def parts(self, dimension: int) -> list[Part]:
        """Return the functions in groups that look at the same coordinates.

        Without a better answer all functions look at all coordinates.
        """
        columns = tuple(range(len(self.function_names(dimension))))
        scope = tuple(range(dimension))
        return [Part(columns, scope, lambda points: dense(self(points)), (None,) * dimension)]

    def on(self, states: FloatArray) -> Basis:
        """Return this basis made ready for a model with these states (S, d)."""
        return self

    def bounds(self, n_basis: int) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds (K,) on the coefficients, infinite where there is none."""
        low = _bound(self.lower, "lower", n_basis, -np.inf)
        high = _bound(self.upper, "upper", n_basis, np.inf)
        wrong = checks.first_index(low > high)
        if wrong is not None:
            k = wrong[0]
            raise BasisError(f"lower bound {low[k]} of coefficient {k} exceeds its upper {high[k]}")
        return low, high


@files.storable("Polynomial")
@dataclass(frozen=True, repr=False)
class Polynomial(Basis):
    """All monomials of total degree at most `degree`, constant first, graded lexicographic.

    Coefficients belong to the raw monomials, whatever the size of the states.

    Args:
        degree: the largest sum of exponents.
        lower: least coefficients, one number for all or one for each function (K,).
        upper: largest coefficients, in the same way.

    Examples:
        >>> bw.Polynomial(2)(np.array([[3.0]]))
        array([[1., 3., 9.]])
    """

    degree: int

    def __post_init__(self) -> None:
        checks.count(self.degree, "degree", least=0)

    def words(self, dimension: int) -> list[tuple[int, ...]]:
        return [
            word
            for total in range(self.degree + 1)
            for word in combinations_with_replacement(range(dimension), total)
        ]

    def __call__(self, states: FloatArray) -> FloatArray:
        points = np.asarray(states, dtype=np.float64)
        words = self.words(points.shape[1])
        position = {word: k for k, word in enumerate(words)}
        features = np.empty((len(points), len(words)))
        features[:, 0] = 1.0
        for k, word in enumerate(words[1:], start=1):
            # A word without its last letter is a monomial of lower degree, hence already there.
            np.multiply(features[:, position[word[:-1]]], points[:, word[-1]], out=features[:, k])
        return features

    def terms(self, dimension: int) -> list[Term]:
        return [tuple(map(coordinate, word)) for word in self.words(dimension)]

    def function_names(self, dimension: int) -> tuple[str, ...]:
        variables = variable_names(dimension)
        return tuple(_monomial_name(word, variables) for word in self.words(dimension))

    def parts(self, dimension: int) -> list[Part]:
        words = self.words(dimension)
        # A coordinate is affine, so it stands apart from its powers.
        kind = {k: (tuple(sorted(set(word))), len(word) > 1) for k, word in enumerate(words)}
        order = sorted(range(1, len(words)), key=lambda k: (kind[k], k))
        parts = [constant_part(0)]
        for (scope, bent), group in groupby(order, key=lambda k: kind[k]):
            columns = tuple(group)
            powers = np.array([[words[k].count(i) for i in scope] for k in columns])
            tail = None if bent else 0
            parts.append(Part(columns, scope, _powers(powers), (tail,) * len(scope)))
        return parts


@files.storable("Affine")
@dataclass(frozen=True, repr=False)
class Affine(Basis):
    """The constant and each coordinate of the state.

    Args:
        lower: least coefficients, one number for all or one for each function (K,).
        upper: largest coefficients, in the same way.

    Examples:
        >>> bw.Affine()(np.array([[3.0, 4.0]]))
        array([[1., 3., 4.]])
    """

    def __call__(self, states: FloatArray) -> FloatArray:
        points = np.asarray(states, dtype=np.float64)
        return np.column_stack([np.ones(len(points)), points])

    def words(self, dimension: int) -> list[tuple[int, ...]]:
        return Polynomial(1).words(dimension)

    def terms(self, dimension: int) -> list[Term]:
        return Polynomial(1).terms(dimension)

    def function_names(self, dimension: int) -> tuple[str, ...]:
        return Polynomial(1).function_names(dimension)

    def parts(self, dimension: int) -> list[Part]:
        return Polynomial(1).parts(dimension)


@files.storable("Indicator")
@dataclass(frozen=True, eq=False, repr=False)
class Indicator(Basis):
    """One function per state, or per group of states: 1 in it and 0 elsewhere.

    Features are sparse. The functions add up to one, so the constant is in their span.

    Args:
        groups: the group (S,) of each state of the model, numbered from 0 without gaps.
        known_states: the states (S, d) that a fitted basis knows; `on(states)` fills them in.
        lower: least coefficients, one number for all or one for each function (K,).
        upper: largest coefficients, in the same way.

    Examples:
        >>> queue = bw.problems.single_queue(capacity=30)
        >>> result = bw.solve(queue, bw.Indicator(), bw.Fixed("uniform"))
        >>> bool(np.isclose(result.cost.mean, queue.initial @ bw.exact.optimal(queue).values))
        True
    """

    groups: Any = None
    known_states: FloatArray | None = field(default=None, repr=False)

    def on(self, states: FloatArray) -> Indicator:
        points = np.unique(states, axis=0)
        if self.groups is None:
            if len(points) < len(states):
                raise BasisError(
                    f"{len(states)} states have only {len(points)} distinct vectors, expected all "
                    "to differ: give groups, or distinct state vectors"
                )
            groups = np.arange(len(states))
        else:
            groups = _groups(self.groups, len(states))
            _check_same_group(states, groups)
        return replace(self, groups=groups, known_states=np.ascontiguousarray(states))

    def __call__(self, states: FloatArray) -> sparse.csr_array:
        if self.known_states is None:
            raise unfitted(self)
        column = self.groups[self._rows_of(np.asarray(states, dtype=np.float64))]
        n = len(column)
        shape = (n, int(self.groups.max()) + 1)
        return sparse.csr_array((np.ones(n), column, np.arange(n + 1)), shape=shape)

    def function_names(self, dimension: int) -> tuple[str, ...]:
        if self.known_states is None:
            raise unfitted(self)
        kind = "group" if len(np.unique(self.groups)) < len(self.groups) else "state"
        return tuple(f"{kind} {k}" for k in range(int(self.groups.max()) + 1))

    def spots(self) -> list[Term]:
        """Return the functions as indicators of single values, 0 at values that are not known.

        To be used only for one coordinate among others: alone, they would not add up to one in a
        state that the basis does not know.
        """
        if self.known_states is None:
            raise unfitted(self)
        if len(np.unique(self.groups)) < len(self.groups):
            raise BasisError("an Indicator of groups cannot run inside compiled loops")
        by_function = self.known_states[np.argsort(self.groups)]
        every = tuple(range(by_function.shape[1]))
        return [(spot(every, state),) for state in by_function]

    def _rows_of(self, states: FloatArray) -> IntArray:
        """Return where each given state stands among the known ones."""
        assert self.known_states is not None
        known = _as_records(self.known_states)
        wanted = _as_records(states)
        order = np.argsort(known)
        place = np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)
        rows = order[place]
        missing = checks.first_index(known[rows] != wanted)
        if missing is not None:
            raise BasisError(
                f"state {states[missing[0]].tolist()} is not one of the model's states"
            )
        return np.asarray(rows, dtype=np.int64)


@files.storable("Custom")
@dataclass(frozen=True, eq=False, repr=False)
class Custom(Basis):
    """A basis that the user writes.

    A file keeps the names but not the function.

    Args:
        fn: `fn(states)` maps states (n, d) to features (n, K). Or `fn(state, features)` fills in
            the features (K,) of one state (d,): it is compiled, runs on event and step models too,
            and needs `names`. A model without state vectors passes its state indices as (n, 1).
        names: one for each function.
        lower: least coefficients, one number for all or one for each function (K,).
        upper: largest coefficients, in the same way.

    Examples:
        >>> basis = bw.Custom(lambda states: np.hstack([np.ones_like(states), np.sqrt(states)]))
        >>> basis(np.array([[4.0]]))
        array([[1., 2.]])
    """

    fn: Callable[[FloatArray], Any] | files.Unstored
    names: Sequence[str] | None = field(default=None, metadata=files.stored_as("function_names"))

    def __post_init__(self) -> None:
        if not callable(self.fn) and not isinstance(self.fn, files.Unstored):
            raise BasisError(f"fn is {self.fn!r}, expected a function of states (n, d)")
        if self.names is not None:
            object.__setattr__(self, "names", tuple(self.names))
        if self._fills_one and self.names is None:
            raise BasisError(
                "fn fills in the features of one state, but names are missing: give one name for "
                "each function"
            )

    def __call__(self, states: FloatArray) -> Matrix:
        if isinstance(self.fn, files.Unstored):
            raise BasisError(
                f"the basis function {self.fn.text} was not stored: load the result with it, "
                "Result.load(path, model, basis=Custom(fn)), which checks that it is the same"
            )
        try:
            features = self._filled(states) if self._fills_one else self.fn(states)
        except Exception as problem:
            name = getattr(self.fn, "__name__", "fn")
            raise BasisError(
                f"the basis function {name!r} failed ({type(problem).__name__}: {problem}): it "
                f"must accept states of shape {np.shape(states)}"
            ) from problem
        if not sparse.issparse(features):
            features = checks.float_array(
                features, "what the basis function returned", (-1, -1), BasisError, finite=False
            )
        if features.shape[0] != len(states):
            raise BasisError(
                f"the basis function returned shape {features.shape} for {len(states)} states, "
                f"expected ({len(states)}, K)"
            )
        return sparse.csr_array(features, dtype=float) if sparse.issparse(features) else features

    @property
    def _fills_one(self) -> bool:
        """Whether the function is written for one state, and fills in its features."""
        code = getattr(self.fn, "__code__", None)
        return code is not None and code.co_varnames[: code.co_argcount] == ("state", "features")

    def _filled(self, states: FloatArray) -> FloatArray:
        assert self.names is not None
        assert callable(self.fn)
        fill: Callable[..., Any] = self.fn
        found = np.zeros((len(states), len(self.names)))
        for state, features in zip(np.array(states, dtype=np.float64), found, strict=True):
            fill(state, features)
        return found

    def terms(self, dimension: int) -> list[Term]:
        if not self._fills_one or isinstance(self.fn, files.Unstored):
            raise BasisError(
                "a Custom basis cannot run inside compiled loops where it is written for many "
                "states: write fn(state, features) that fills in the features of one, or enumerate "
                "the model with to_tabular()"
            )
        assert self.names is not None
        n = len(self.names)
        return [(written(self.fn, k, n),) for k in range(n)]

    def on(self, states: FloatArray) -> Custom:
        n_basis = int(self(states[:1]).shape[1])
        names = self.names or tuple(f"phi{k + 1}" for k in range(n_basis))
        if len(names) != n_basis:
            raise BasisError(f"{len(names)} names for {n_basis} functions: give one name for each")
        return replace(self, names=names)

    def function_names(self, dimension: int) -> tuple[str, ...]:
        if self.names is None:
            raise BasisError("a Custom basis without names must see its model: call on(states)")
        return tuple(self.names)


def _powers(powers: IntArray) -> Callable[[FloatArray], FloatArray]:
    """Return the function from points (n, m) to monomials (n, c) with these powers (c, m)."""
    return lambda points: np.prod(points[:, None, :] ** powers, axis=2)


def variable_names(dimension: int) -> list[str]:
    """Return the names of the coordinates of a state."""
    return ["x"] if dimension == 1 else [f"x{i + 1}" for i in range(dimension)]


def unfitted(basis: Basis) -> BasisError:
    """Return the error of a basis that is used before it has seen the states of its model."""
    kind = type(basis).__name__
    article = "an" if kind[0] in "AEIO" else "a"
    return BasisError(f"{article} {kind} must know the states of its model: call on(states) first")


def _bound(value: Bound, name: str, n_basis: int, missing: float) -> FloatArray:
    if value is None:
        return np.full(n_basis, missing)
    shape = () if np.ndim(value) == 0 else (n_basis,)
    array = checks.float_array(value, f"{name} bound", shape, BasisError, finite=False)
    if np.isnan(array).any():
        raise BasisError(f"{name} bound is NaN, expected a number: leave it out, or give infinity")
    return np.array(np.broadcast_to(array, (n_basis,)))


def _groups(groups: Any, n_states: int) -> IntArray:
    array = np.asarray(groups)
    if array.shape != (n_states,) or array.dtype.kind not in "iu":
        raise BasisError(
            f"groups has shape {array.shape} and type {array.dtype}, expected one whole number for "
            f"each of the {n_states} states"
        )
    numbers = np.unique(array)
    if not np.array_equal(numbers, np.arange(len(numbers))):
        raise BasisError(f"groups are numbered {numbers[:5].tolist()}..., expected 0, 1, 2, ...")
    return array.astype(np.int64)


def _check_same_group(states: FloatArray, groups: IntArray) -> None:
    """Check that states with the same vector, which a basis cannot tell apart, share a group."""
    _, first, place = np.unique(states, axis=0, return_index=True, return_inverse=True)
    wrong = checks.first_index(groups[first][place.ravel()] != groups)
    if wrong is not None:
        x, twin = wrong[0], int(first[place.ravel()[wrong[0]]])
        raise BasisError(
            f"states {twin} and {x} have the same vector {states[x].tolist()} but groups "
            f"{groups[twin]} and {groups[x]}: give them one group, or distinct state vectors"
        )


def _as_records(states: FloatArray) -> Any:
    """View the rows of (n, d) as records, so that they can be sorted and compared as units."""
    rows = np.ascontiguousarray(states + 0.0)  # + 0.0 turns -0.0 into 0.0
    return rows.view([("", rows.dtype)] * rows.shape[1]).ravel()


def _monomial_name(word: tuple[int, ...], variables: list[str]) -> str:
    if not word:
        return "1"
    powers = [(variables[i], word.count(i)) for i in sorted(set(word))]
    return " ".join(name if power == 1 else f"{name}^{power}" for name, power in powers)
