"""Messages about an answer that rounding leaves in doubt: which check failed, what to do."""

from __future__ import annotations

import numpy as np

from bellweight.common import tolerances
from bellweight.program.solution import Audit

_FEWER = "lower the degree, rescale the states, or leave out functions that nearly depend on others"
_BOUNDS = (
    "put bounds on the coefficients (lower=, upper=), spread the weights, or use fewer functions"
)


def doubts_of(audit: Audit) -> tuple[str, ...]:
    """Return one sentence on all measures of an audit that are beyond their tolerance, if any."""
    return (f"{', '.join(audit.failures)}: {_FEWER}",) if audit.failures else ()


def rounded_coefficients(lost: float, objective: float) -> str:
    """Say that rounding of the coefficients may take too much of the objective."""
    return (
        f"rounding of the coefficients may move the objective {objective:.4g} by {lost:.2g}, more "
        f"than {tolerances.SPOILT:.0%} of it: {_BOUNDS}"
    )


def rounded_rows() -> str:
    """Say that rounding of the rows moves the dual of a regularised program."""
    return (
        "rounding of the rows moves the dual or the objective: use a larger regularisation, or "
        f"{_FEWER}"
    )


def wrong_dual(residual: float) -> str:
    """Say that the shortest dual was not found exactly; the coefficients are not concerned."""
    return (
        f"the dual of smallest norm is off by {residual:.1e} (at most {tolerances.DUAL:.0e}), "
        "while the coefficients passed their audit: values and bounds stand, policies made from "
        f"the dual (DIA) may not; {_BOUNDS}"
    )


def given_up(amount: float) -> str:
    """Say what the objective could gain if rounding did not spoil it."""
    if not np.isfinite(amount):
        return (
            "the objective might gain from functions that nearly depend on others, or are next to "
            f"zero where the weights are, by how much was not found: {_BOUNDS}"
        )
    return (
        "the objective could gain from functions that nearly depend on others, or are next to zero "
        f"where the weights are, but rounding spoils the coefficients this takes (given up: "
        f"about {amount:.3g}): {_BOUNDS}"
    )


def late() -> str:
    """Say that there was no time to do better."""
    return (
        "the time limit ended the search with twice the digits: allow more with "
        "Stop(max_seconds=...)"
    )
