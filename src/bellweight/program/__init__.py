"""The approximate linear program: its rows, the master program, and the ways to its answer.

A row source says which Bellman rows are violated; the programs ask it and return audited solutions
with their duals. The only room that imports a solver.
"""

from bellweight.program.priced_rows import PricedRows
from bellweight.program.rows import AllRows, SampledRows

__all__ = [
    "AllRows",
    "PricedRows",
    "SampledRows",
]
