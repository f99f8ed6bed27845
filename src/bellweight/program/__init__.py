"""The approximate linear program: its rows, the master program, and the ways to its answer.

A row source says which Bellman rows are violated; the programs ask it and return audited solutions
with their duals. The only room that imports a solver.
"""

from bellweight.program.all_rows import AllRows, TabularRows
from bellweight.program.alp import AlpProgram, solve_alp
from bellweight.program.box_proof import no_bound, proof_text, repaired_in_box
from bellweight.program.box_search import WorstRow, worst_row
from bellweight.program.drawn_rows import DrawnRows, StreamedRows
from bellweight.program.integer_program import IntegerProgram
from bellweight.program.listed_rows import ListedRows
from bellweight.program.local_repair import growing_row, repaired_locally
from bellweight.program.local_rows import EliminatedRows, LocalRows
from bellweight.program.minimum_norm import MinimumNormDual, minimum_norm_dual
from bellweight.program.priced_rows import LinearRows, PricedRows, implied_upper
from bellweight.program.regularised import PenaltyProgram
from bellweight.program.repair import (
    Repaired,
    largest_slacks,
    largest_value,
    repaired,
    repaired_values,
)
from bellweight.program.row_source import RowSource, Separation
from bellweight.program.sampled_rows import EventRows, SampledRows
from bellweight.program.solution import Audit, OptimalFace, Solution, cost_unit

__all__ = [
    "AllRows",
    "AlpProgram",
    "Audit",
    "DrawnRows",
    "EliminatedRows",
    "EventRows",
    "IntegerProgram",
    "LinearRows",
    "ListedRows",
    "LocalRows",
    "MinimumNormDual",
    "OptimalFace",
    "PenaltyProgram",
    "PricedRows",
    "Repaired",
    "RowSource",
    "SampledRows",
    "Separation",
    "Solution",
    "StreamedRows",
    "TabularRows",
    "WorstRow",
    "cost_unit",
    "growing_row",
    "implied_upper",
    "largest_slacks",
    "largest_value",
    "minimum_norm_dual",
    "no_bound",
    "proof_text",
    "repaired",
    "repaired_in_box",
    "repaired_locally",
    "repaired_values",
    "solve_alp",
    "worst_row",
]
