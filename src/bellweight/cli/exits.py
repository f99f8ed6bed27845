"""What the exit codes mean, in one place."""

from __future__ import annotations

from bellweight.common.status import Status

DONE = 0
BAD_INPUT = 1
WRONG_USAGE = 2
NOT_CONVERGED = 3
SOLVER_ERROR = 4
NOT_VERIFIED = 5
INTERRUPTED = 130

MEANINGS = {
    DONE: "done",
    BAD_INPUT: "something is wrong with the input or a file",
    WRONG_USAGE: "the command was used wrongly",
    NOT_CONVERGED: "ended without converging; what was found is printed and saved",
    SOLVER_ERROR: "the linear program is unbounded, infeasible or not solved",
    NOT_VERIFIED: "the certificate does not hold",
    INTERRUPTED: "interrupted",
}


def of(status: Status) -> int:
    """Return the exit code of a run that ended with this status."""
    if status.is_success:
        return DONE
    return INTERRUPTED if status is Status.INTERRUPTED else NOT_CONVERGED
