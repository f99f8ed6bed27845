"""How a run ended, and the errors and warnings that Bellweight raises on purpose.

`Status` is the only thing that says whether a run succeeded. Each value is its own message; the
remedy says what to try next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any


class Status(Enum):
    """How a linear program or a weight-selection run ended.

    Its value is a message for people; `remedy` says what to do.

    Examples:
        >>> bw.Status.CONVERGED.is_success, bw.Status.CYCLING.is_success
        (True, False)
    """

    OPTIMAL = "the linear program was solved and its answer passed the audit"
    CONVERGED = "the weights are final and the program they define is solved"
    ITERATION_LIMIT = "the iteration limit was reached before the weights settled"
    TIME_LIMIT = "the time limit was reached before the weights settled"
    INTERRUPTED = "the run was interrupted; the result is the last complete iterate"
    CYCLING = (
        "the weights repeat with a fixed period; the result is the phase of lowest cost, or the "
        "average of the phases where the method asks for it"
    )
    INACCURATE = "rounding leaves the answer of the linear program in doubt, in original units"
    UNBOUNDED = "the linear program is unbounded: its rows do not limit the coefficients"
    INFEASIBLE = "the linear program is infeasible: the bounds on coefficients exclude every value"
    FAILED = "the solver stopped without an answer"

    @property
    def message(self) -> str:
        """Return what happened, in one sentence."""
        return self.value

    @property
    def remedy(self) -> str:
        """Return what to try next, or an empty string when nothing is needed."""
        return _REMEDIES.get(self, "")

    @property
    def is_success(self) -> bool:
        """Return whether the run ended where it was meant to end."""
        return self in (Status.OPTIMAL, Status.CONVERGED)


_REMEDIES = {
    Status.ITERATION_LIMIT: "resume with a larger Stop(max_iterations=...), or use DIA with more "
    "smoothing (larger smoothing_mass) or a smaller step_size",
    Status.TIME_LIMIT: "resume with a larger Stop(max_seconds=...)",
    Status.INTERRUPTED: "pass the result as resume= to continue",
    Status.CYCLING: "give the method step_size=bellweight.weights.Adaptive(), or take the phase "
    "that suits you from result.phases",
    Status.INACCURATE: "lower the polynomial degree, rescale the states, or drop basis functions "
    "that are nearly dependent",
    Status.UNBOUNDED: "add constraint states or price over a larger box, or put bounds on the "
    "coefficients, such as Affine(lower=...)",
    Status.INFEASIBLE: "widen the bounds on the coefficients, above all that of the constant",
    Status.FAILED: "check the model with bellweight.testing.check_model and the range of the costs",
}


class BellweightError(Exception):
    """The base of every error that Bellweight raises on purpose.

    Examples:
        >>> try:
        ...     bw.Polynomial(-1)
        ... except bw.BellweightError as problem:
        ...     print(type(problem).__name__)
        ArgumentError
    """


class ArgumentError(BellweightError, ValueError):
    """An argument has the wrong type, shape, range or name."""


class ModelError(BellweightError, ValueError):
    """A model's data are not those of a Markov decision process.

    `history` holds the iterations completed before it came up, where that was in a run.
    """

    history: Sequence[Any] = ()


class BasisError(BellweightError, ValueError):
    """A basis cannot be used with this model."""


class PolicyError(BellweightError, ValueError):
    """A policy is not one for this model, or lacks what it needs to act."""


class FileError(BellweightError, OSError):
    """A file cannot be read or written, or holds something else than expected."""


class SolverError(BellweightError, RuntimeError):
    """A linear program is unbounded, infeasible, or could not be solved.

    `status` says which; `history` holds the iterations completed before it happened.
    """

    def __init__(self, status: Status, detail: str = "", history: Sequence[Any] = ()) -> None:
        self.status = status
        self.detail = detail
        self.history = tuple(history)
        parts = [status.message, detail, f"try: {status.remedy}" if status.remedy else ""]
        super().__init__("; ".join(part for part in parts if part))


class WorkerError(BellweightError, RuntimeError):
    """A worker process died; `finished` holds the blocks of work that were done before."""

    def __init__(self, text: str, finished: Mapping[tuple[int, int], Any]) -> None:
        self.finished = finished
        super().__init__(text)


class BellweightWarning(UserWarning):
    """Something the user should know about an answer that is still usable."""
