"""Bases in the layout that compiled loops take them: lists of products of atoms.

A basis says by `terms(dimension)` what its functions are: each is a product of atoms, and an atom
looks at a few coordinates (see `models/kernels/layouts.py`). So kinks, centres and frequencies are
data; only a `Custom` basis brings code of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellweight.basis.atoms import Atom, Term
from bellweight.basis.core import Basis
from bellweight.basis.grids import contracted, tabulated
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import BasisError
from bellweight.models.kernels.layouts import COORDINATE, WRITTEN, Functions, Quadratic
from bellweight.models.loops import Value


@dataclass(frozen=True, eq=False)
class CompiledBasis:
    """The layout of a basis, and which of its W functions are the K of the basis.

    `written` are the user's own functions with the number of their outputs.
    """

    functions: Functions
    columns: IntArray
    terms: tuple[Term, ...]
    dimension: int
    written: tuple[tuple[Callable[..., Any], int], ...] = ()

    @classmethod
    def of(cls, basis: Basis, dimension: int, sizes: Sequence[int] | None = None) -> CompiledBasis:
        """Lay out a basis that knows the states of its model.

        `sizes` are the numbers of values of coordinates that move independently; then functions are
        tabulated, too.
        """
        terms = tuple(tuple(term) for term in basis.terms(dimension))
        written = {
            atom.function: int(atom.number) for term in terms for atom in term if atom.function
        }
        places, atoms = _atoms(terms, dimension, written)
        prefix, letter, columns = _products(terms, places)
        functions = Functions(prefix, letter, *_flat(atoms))
        if sizes is not None:
            grids = tabulated(basis.parts(dimension), columns, sizes)
            functions = functions._replace(grids=grids)
        return cls(
            functions, columns, terms, dimension,
            tuple((fn, n) for fn, n in written.items() if fn is not None),
        )  # fmt: skip

    @property
    def n_functions(self) -> int:
        """Number of functions in the layout, W."""
        return len(self.functions.prefix)

    def of_basis(self, numbers: FloatArray) -> FloatArray:
        """Return the columns (n, K) that belong to the basis."""
        if np.array_equal(self.columns, np.arange(self.n_functions)):
            return numbers
        return np.ascontiguousarray(numbers[:, self.columns])

    def coef(self, coef: FloatArray) -> FloatArray:
        """Return coefficients (K,) or (J, K) of the basis as those of the layout, (J, W)."""
        pieces = np.atleast_2d(np.asarray(coef, dtype=np.float64))
        wide = np.zeros((len(pieces), self.n_functions))
        wide[:, self.columns] = pieces
        return wide

    def value(self, coef: FloatArray, jumps: IntArray | None = None) -> Value:
        """Return the value function of coefficients; a single quadratic one is cheap."""
        wide = self.coef(coef)
        functions = self.functions
        if functions.grids is not None:
            if len(wide) > 1:
                raise BasisError(
                    "the largest of several value functions is no sum of functions of few "
                    "coordinates, which a factored model needs: use one value function"
                )
            functions = functions._replace(grids=contracted(functions.grids, wide[0]))
        degree = max(len(term) for term in self.terms)
        plain = all(atom.kind == COORDINATE for term in self.terms for atom in term)
        if len(wide) > 1 or degree > 2 or not plain:
            return Value(functions, wide)
        linear, square = np.zeros(self.dimension), np.zeros((self.dimension, self.dimension))
        constant = 0.0
        for term, c in zip(self.terms, np.atleast_2d(coef)[0], strict=True):
            at = [atom.index[0] for atom in term]
            if len(at) == 0:
                constant += float(c)
            elif len(at) == 1:
                linear[at[0]] += c
            else:
                square[at[0], at[1]] += 0.5 * c
                square[at[1], at[0]] += 0.5 * c
        curve = np.zeros(0 if jumps is None else len(jumps))
        if jumps is not None:
            curve = np.einsum("ei,ij,ej->e", jumps, square, jumps)
        return Value(functions, wide, Quadratic(constant, linear, square, curve))


def _atoms(
    terms: Sequence[Term], dimension: int, written: dict[Any, int]
) -> tuple[dict[Any, int], list[Atom]]:
    """Return the place of each atom, and those that are no coordinates; written ones first."""
    atoms: list[Atom] = []
    places: dict[Any, int] = {Atom(COORDINATE, (i,)): i for i in range(dimension)}
    for function, outputs in written.items():
        for k in range(outputs):
            places[function, k] = dimension + len(atoms)
            atoms.append(Atom(WRITTEN, (), (), float(k)))
    for atom in (atom for term in terms for atom in term):
        if atom.function is None and atom not in places:
            places[atom] = dimension + len(atoms)
            atoms.append(atom)
    return places, atoms


def _products(terms: Sequence[Term], places: dict[Any, int]) -> tuple[IntArray, IntArray, IntArray]:
    """Return prefix and letter of each product, and the products that are the basis's own.

    Products that only lead to others are added where the basis lacks them.
    """
    prefix, letter = [0], [0]
    known: dict[tuple[int, ...], int] = {(): 0}
    columns = []
    for term in terms:
        word = tuple(places[atom.key] for atom in term)
        at = 0
        for n, place in enumerate(word):
            done = word[: n + 1]
            if done not in known or n == len(word) - 1:
                prefix.append(at)
                letter.append(place)
                known.setdefault(done, len(prefix) - 1)
                at = len(prefix) - 1
            else:
                at = known[done]
        columns.append(at)
    whole = (np.array(part, dtype=np.int64) for part in (prefix, letter, columns))
    return tuple(whole)  # type: ignore[return-value]


def _flat(atoms: Sequence[Atom]) -> tuple[Any, ...]:
    """Return the kinds of atoms, and their coordinates and weights one after another."""
    sizes = [len(atom.index) for atom in atoms]
    return (
        np.array([atom.kind for atom in atoms], dtype=np.int64),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.array([i for atom in atoms for i in atom.index], dtype=np.int64),
        np.array([w for atom in atoms for w in atom.weight], dtype=np.float64),
        np.array([atom.number for atom in atoms], dtype=np.float64),
    )
