"""Numerical tolerances, each with its unit and its reason, in one place.

Numbers that tune one algorithm of `program/` or `exact/` stand at the top of its file.
"""

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

NEAR: Final = 1e-9
"""Relative slack below which a row is looked at again with full precision: it may be tight."""

NO_TERM: Final = 1e-13
"""Share of the largest term of a sum below which another one is what rounding left of a zero."""

TIE: Final = 1e-12
"""Two actions tie when their values differ by less than this, relative to the values."""

DEPENDENT: Final = 1e-10
"""A basis column is dependent when this little of it lies outside the span of earlier ones."""

SPAN: Final = 1e-9
"""Share of a vector's length that may be missing where it is made of basis functions."""

ADDS_UP: Final = 1e-12
"""How far the sum of functions that add up to one may be from it."""

CONSTANT_VALUE: Final = 1e-9
"""A value function is constant when it varies by less than this share of the costs."""

DUAL: Final = 1e-7
"""Largest relative error of the minimum-norm dual's equations and objective."""

POSITIVE: Final = 1e-12
"""Share of all dual mass below which a multiplier may be rounding."""

REACHED: Final = 1e-9
"""Share of the moments that may be out of a dual's reach by rounding."""

CLEAR_GROWTH: Final = 1e-7
"""Relative growth of the objective along a direction that cannot be rounding."""

COEFFICIENT: Final = 1e-15
"""Relative error of a coefficient, a few times that of rounding it."""

SPOILT: Final = 0.01
"""Share of the objective that rounding of the coefficients may take before it says nothing.

It is also the share of a row's own scale below which a violation may pass for rounding.
"""

MOVED: Final = 1e-10
"""Share of the largest multiplier by which rounding of the moments may move one."""

DISTINCT: Final = 2e-15
"""Share of a dropped function outside the span of others that rounding of values does not explain.

Functions that depend on each other, computed in double precision, leave up to 6e-16.
"""

MISSED: Final = 5e-16
"""Share of a dropped function's moment by which a dual misses it beyond rounding of its values."""

MISSED_DISTINCT: Final = 1e-22
"""The same for functions that are known to be distinct: rounding of twice the digits."""

SAME_MOMENTS: Final = 1e-9
"""Moments are those of given weights when they differ by this share of themselves."""

SAME_MOMENTS_LEAST: Final = 1e-12
"""The same, as a share of the largest moment, for moments next to zero."""

LEAST_SQUARES: Final = 1e-15
"""Singular values below this share of the largest are zero in the equations of a basis."""

RATIO: Final = 1e-12
"""Relative difference below which two entries, or ratios, of a simplex step are the same."""

SOLVER: Final = 1e-10
"""Feasibility tolerance of HiGHS: the tightest that it accepts."""

SOLVER_LOOSE: Final = 1e-8
"""The same for moments that are reached only up to rounding."""

SOLVER_ENTRY: Final = 1e-12
"""Entries of the matrix below this are dropped by HiGHS; by default it drops those below 1e-9."""

SOLVER_MISSED: Final = 1.0
"""Moments are of size one: an answer that misses them by more has reached nothing."""

INTEGER: Final = 1e-9
"""How far a point may be outside the constraints of a program over whole numbers."""

WHOLE: Final = 1e-6
"""A relaxed answer this close to whole numbers is rounded and checked."""

QUADRATIC: Final = 1e-11
"""Accuracy asked of Clarabel, and the share of the largest multiplier that its error may be."""

QUADRATIC_SUPPORT: Final = 1e-7
"""Share of the largest entry below which an entry of Clarabel's answer counts as zero."""

RANK: Final = 1e-13
"""Singular values of tight rows below this share of the largest are zero."""

CONDITIONS: Final = 1e-9
"""Relative error of the minimum-norm program's optimality conditions that is accepted."""

LEAST_REGULARISATION: Final = 1e-10
"""Smallest regularisation, in typical costs times 1 - discount: less is lost in rounding."""

NEWTON: Final = 1e-10
"""Relative size of the gradient at which Newton steps have found the minimum."""

NEWTON_ROUGH: Final = 1e-4
"""The same for larger regularisations that are solved on the way."""

NEWTON_RANK: Final = 1e-12
"""Singular values of violated rows below this share of the largest are zero."""

FLAT: Final = 1e-13
"""Share of its terms below which a slope is zero."""

DOUBLED_ROUNDING: Final = 1e-27
"""A difference of numbers with twice the digits is zero below this share of them."""

DOUBLED_SUM: Final = 1e-29
"""Error of a sum with twice the digits that rounding alone may leave, relative to its terms."""

DOUBLED_VIOLATION: Final = 1e-21
"""With twice the digits, a row is violated beyond this share of the size of its terms."""

REPAIR_FREE: Final = 1e-8
"""Share of the value that a repair may cost without a better one being sought."""

FLOW_BALANCE: Final = 1e-10
"""Largest 1-norm of the flow-balance residual of an exact occupancy."""

CYCLE: Final = 1e-6
"""Weights repeat when they return this close, relative to the length of the last step."""

SAME_COST: Final = 1e-9
"""Relative difference of costs, prices or objectives that may be rounding."""

SAME_EXACT_COST: Final = 1e-12
"""The same for exact costs of policies on the same model."""

NEARLY_OPTIMAL: Final = 1e-3
"""Share of the cost up to which a proven loss needs no advice and no comparison."""

PROVEN_OPTIMAL: Final = 1e-6
"""Share of the cost up to which a proven loss counts as none."""

SAME_PRICE: Final = 1e-9
"""Prices closer than this, relative to the largest, tie."""

SAME_MASS: Final = 1e-9
"""Dual masses closer than this, relative to the larger one, are the same."""

BALANCED: Final = 1e-9
"""Share of its terms by which a dual must miss a function's equation for the function to help."""

NEW_FUNCTION: Final = 1e-7
"""Share of a candidate function that must lie outside the span of the basis."""

LEAST_SHARE: Final = 1e-12
"""Shares of a budget below this share of the largest are none: the solver takes less for zero."""

DECLARED: Final = 1e-9
"""How far what a user declares may be from what is computed, relative to it."""

CONSTRAINT: Final = 1e-9
"""How far a constraint may be violated by rounding, relative to its terms."""

CHANCES: Final = 1e-12
"""How far chances that are written down may add up beyond one, or miss it, by rounding."""

SINGLE_PRECISION: Final = 1e-6
"""Relative difference that rounding to single precision explains."""

STATIONARY: Final = 1e-8
"""Largest difference between weights and an exact occupancy at which a run has converged."""

SAME_DIRECTION: Final = 1e-10
"""Directions are the same, or dependent, up to this share of their length."""

SINGULAR: Final = 1e-12
"""Reciprocal condition below which rows count as dependent."""

THIN: Final = 1e-9
"""Margin, as a share of the total mass, below which a piece of the dual has no interior."""

CLEARLY_SLACK: Final = 1e-9
"""Relative slack above which a row is certainly not tight."""

CLEARLY_TIGHT: Final = 1e-12
"""Relative slack below which a row counts as tight."""

EXCLUDED: Final = 1e-8
"""Bound on a margin up to which the margin counts as zero: it carries the solver's tolerance."""

SAME_COEFFICIENTS: Final = 1e-7
"""Coefficients this close, relative to the largest term, are the same."""

REPEATED: Final = 1e-12
"""Relative difference allowed between the answers of a function that is called again."""

VERIFIED: Final = 1e-8
"""How far a claimed number may be from the one a verifier finds, relative to the cost found."""

MOMENTS_VERIFIED: Final = 1e-7
"""The same for recorded moments, relative to the sizes of their terms."""

MULTIPLIERS: Final = 1e-9
"""Share of the largest coefficient that multipliers may add to a violation."""

OUTWARD: Final = 1e-12
"""Relative widening of an implied bound: more than rounding can take from it."""

SUMS: Final = 1e-13
"""How far sums that are equal but for rounding may differ, relative to their terms."""

LEAST_LYAPUNOV: Final = 1e-6
"""Least value of a Lyapunov function that is searched for, as a share of the largest error."""
