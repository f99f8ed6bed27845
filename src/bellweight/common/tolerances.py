"""Every numerical tolerance, with its unit and its reason, in one place."""

from typing import Final

PROBABILITY: Final = 1e-8
"""How far a probability row, an initial distribution or a weight vector may be from sum one."""

FEASIBILITY: Final = 1e-10
"""Largest Bellman violation accepted, relative to the row's own cost per step (see auditing.py)."""

OPTIMALITY: Final = 1e-9
"""Largest relative duality gap and dual residual accepted by the audit."""

ROUNDING: Final = 1e-14
"""Error of a sum that rounding alone may leave, relative to the size of its terms."""

TIGHT: Final = 1e-13
"""Slack below which a row is tight, relative to the size of the terms that the slack is made of.

A few hundred times the rounding error of the slack itself: rows closer than this cannot be told
apart in double precision.
"""

TIE: Final = 1e-12
"""Two actions tie when their values differ by less than this, relative to the values."""

DEPENDENT: Final = 1e-10
"""A basis column is dependent when this little of it lies outside the span of earlier ones."""

DUAL: Final = 1e-7
"""Largest relative error of the minimum-norm dual's equations and objective."""

REACHED: Final = 1e-9
"""Distance from the moments below which a dual reaches them, in well-scaled coordinates."""

CLEAR_GROWTH: Final = 1e-7
"""Relative growth of the objective along a direction that cannot be rounding."""

COEFFICIENT: Final = 1e-15
"""Relative error of a coefficient, a few times that of rounding it."""

SPOILT: Final = 0.01
"""Share of the objective that rounding of the coefficients may take before it says nothing."""

MOVED: Final = 1e-10
"""Share of the largest multiplier by which rounding of the moments may move one."""

MISSED: Final = 2e-15
"""Share of a dropped function's moment by which a dual misses it beyond rounding."""

FLOW_BALANCE: Final = 1e-10
"""Largest 1-norm of the flow-balance residual of an exact occupancy."""

CYCLE: Final = 1e-6
"""Weights repeat when they return this close, relative to the length of the last step."""
