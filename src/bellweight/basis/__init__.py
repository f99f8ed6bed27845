"""Basis functions: states in, features out.

A basis maps states (n, d) to features (n, K); the value approximation is `features @ coef`. A basis
is a settings object; `basis.on(states)` fits it to the states of a model (an `Indicator` learns
which states there are). Coefficients may carry bounds, given as one number for all or one per
function.

    Polynomial(3)              1, x, x^2, x^3 in one dimension; all monomials up to degree 3 in more
    Affine()                   1, x_1, ..., x_d
    Indicator()                one function per state: the exact linear program
    Indicator(groups)          one function per group of states: aggregation
    PiecewiseLinear(kinks)     1, x_i and max(x_i - kink, 0) for each coordinate and kink
    Radial(centres, width)     1 and a Gaussian bump around each centre
    Fourier(n, seed, scale)    1 and cosines with random frequencies, or those of each coordinate
    Separable(basis)           sums of one-dimensional bases, one for each coordinate
    Product(basis)             products of one-dimensional bases, one for each coordinate
    Stacked(a, b, ...)         the functions of several bases side by side
    ClippedProducts(groups)    products of min(x_i, level) over small groups of coordinates
    Located(functions)         hinges and indicators of single states, to be stacked on a basis
    Custom(fn, names)          whatever the user writes, for many states or for one

All but Indicator also run inside the compiled loops of event and step models, Custom where it is
written for one state; Affine prices rows of linear ones.
"""

from bellweight.basis.clipped import ClippedProducts
from bellweight.basis.composed import Product, Separable, Stacked
from bellweight.basis.core import Affine, Basis, Bound, Custom, Indicator, Polynomial
from bellweight.basis.local import Fourier, PiecewiseLinear, Radial
from bellweight.basis.located import Function, Hinge, Located, StateIndicator
from bellweight.basis.parts import Part

__all__ = [
    "Affine",
    "Basis",
    "Bound",
    "ClippedProducts",
    "Custom",
    "Fourier",
    "Function",
    "Hinge",
    "Indicator",
    "Located",
    "Part",
    "PiecewiseLinear",
    "Polynomial",
    "Product",
    "Radial",
    "Separable",
    "Stacked",
    "StateIndicator",
]
