"""The cutting-plane loop: solve the master, look for violated rows, add them, until none is left.

The plain program (`attempt`) and programs whose rows may be violated for a price run the same loop;
each says how an answer of the master is read, and which rows it violates. Where the rows at hand do
not bound the coefficients, rows that limit the direction of growth are added first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.status import SolverError, Status
from bellweight.program.master import LpAnswer, MasterLp

Found = TypeVar("Found")


class UnfitCoordinatesError(SolverError):
    """The coordinates are too far from the answer's scale to decide anything."""

    def __init__(self) -> None:
        super().__init__(Status.FAILED, "no coordinates were found that suit the moments")


class CuttingPlanes(ABC, Generic[Found]):
    """One run of the loop on a master program, for moments in its coordinates.

    `unexplored` says that the rows at hand are few, and may not bound the program at all.
    """

    def __init__(
        self, lp: MasterLp, inner_moments: FloatArray, most_rounds: int, *, unexplored: bool
    ) -> None:
        self.lp = lp
        self.inner_moments = inner_moments
        self.most_rounds = most_rounds
        self.unexplored = unexplored
        self.passes = 0
        self.rounds = 0

    @abstractmethod
    def look(self, answer: LpAnswer) -> tuple[Found, IntArray]:
        """Return what an answer of the master means, and the rows outside it that are violated."""

    @abstractmethod
    def limiting(self, direction: FloatArray, distance: float) -> IntArray:
        """Return rows outside the master that limit the growth along a direction; raise if none."""

    @abstractmethod
    def add(self, keys: IntArray) -> None:
        """Add rows to the master."""

    def run(self) -> Found:
        """Return what the last answer says, which violates no row."""
        self.lp.set_moments(self.inner_moments)
        if self.unexplored:
            # Phase one finds the missing rows at once; the solver might search long, or stop
            # without an answer.
            self._bound()
            self.unexplored = False
        while self.rounds < self.most_rounds:
            self.rounds += 1
            answer = self._answer()
            if answer is None:
                continue
            found, fresh = self.look(answer)
            if len(fresh) == 0:
                return found
            self.add(fresh)
        raise SolverError(Status.FAILED, f"no answer after {self.rounds} rounds of row generation")

    def _answer(self) -> LpAnswer | None:
        """Solve the master; None where it needed more rows first, which were added."""
        answer = self.lp.solve()
        if answer.status in (Status.UNBOUNDED, Status.FAILED):
            # Without bounds, and with rows that do not tell the basis functions apart, the solver
            # may also stop without an answer: phase one tells what is missing.
            if self._bound():
                return None
            answer = self.lp.solve(loose=True)
        if answer.status is Status.FAILED:
            raise UnfitCoordinatesError  # with the rows found so far a fresh start often succeeds
        if answer.status is not Status.OPTIMAL:
            raise SolverError(answer.status)
        return answer

    def _bound(self) -> bool:
        """Add rows until the moments can be reached; return whether any were added."""
        for turn in range(self.most_rounds):
            distance, direction = self.lp.direction()
            if distance <= tolerances.REACHED:
                return turn > 0
            self.add(self.limiting(direction, distance))
        raise SolverError(Status.FAILED, "the rows that bound the program were not found")
