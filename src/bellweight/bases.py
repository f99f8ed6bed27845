"""Bases, by the name that users know: everything public of the room `basis`."""

from bellweight.basis import (
    Affine,
    Basis,
    Bound,
    Custom,
    Fourier,
    Function,
    Hinge,
    Indicator,
    Located,
    PiecewiseLinear,
    Polynomial,
    Product,
    Radial,
    Separable,
    Stacked,
    StateIndicator,
)

__all__ = [
    "Affine",
    "Basis",
    "Bound",
    "Custom",
    "Fourier",
    "Function",
    "Hinge",
    "Indicator",
    "Located",
    "PiecewiseLinear",
    "Polynomial",
    "Product",
    "Radial",
    "Separable",
    "Stacked",
    "StateIndicator",
]
