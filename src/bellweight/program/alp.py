"""The approximate linear program, solved by cutting planes and audited in original units.

    max moments' coef   s.t.   rows coef <= cost,   lower <= coef <= upper      (pALP)

An `AlpProgram` holds a small master program that grows by the rows its row source finds violated.
It stays warm: between solves with other moments, rows, basis and coordinates are kept. Every answer
is audited on unscaled data (`auditing`). When the audit fails the program is rebuilt in coordinates
in which the basis just found is orthonormal, which puts the answer's own scale in place of the
reference's. When that fails too, or functions that were dropped as dependent turn out to matter,
the program is solved with twice the digits (`precise_optimum`); the status reports what is still
wrong then. The dual is the one of smallest norm (`minimum_norm`).
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from bellweight.common import tolerances
from bellweight.common.checks import FloatArray, IntArray
from bellweight.common.doubled import dot, doubled
from bellweight.common.status import BasisError, SolverError, Status
from bellweight.program import doubts, open_coefficients
from bellweight.program.attempt import Attempt
from bellweight.program.auditing import Auditor, is_worse
from bellweight.program.conditioning import Coordinates
from bellweight.program.cutting_planes import UnfitCoordinatesError
from bellweight.program.minimum_norm import MinimumNormDual, minimum_norm_dual
from bellweight.program.precise_optimum import (
    cannot_be_unbounded,
    face_of,
    precise_moments,
    precise_vertex,
)
from bellweight.program.row_source import RowSource
from bellweight.program.simplex import MAX_STEPS, VertexSearch, is_affordable
from bellweight.program.solution import OptimalFace, Solution
from bellweight.program.working_set import WorkingSet

_MAX_ROUNDS = 500
_FEW_ROUNDS = 20  # and two for each basis function: more is a sign of bad coordinates
_MAX_REBUILDS = 4  # where twice the digits take too long
_FEW_REBUILDS = 2
_FAR_MOMENTS = 1e3  # moments this long do not belong to the reference of the coordinates
_STEPS_PER_FUNCTION = 50  # of a search for what plain digits miss
_FRUITLESS = 5  # searches without a gain before no more are made
_MOST_SPARSE = 20_000  # functions of a sparse basis: the solver takes a minute for so many
_PRECISE_POOL = 4_000  # rows that a search with twice the digits begins with at the most


def solve_alp(
    rows: RowSource, moments: FloatArray, reference: FloatArray | None = None
) -> Solution:
    """Solve the program once: `reference` (S,) are weights that tell where the answer matters."""
    return AlpProgram(rows, reference).solve(moments)


class AlpProgram:
    """The program of one row source, warm from one solve to the next."""

    def __init__(self, rows: RowSource, reference: FloatArray | None = None) -> None:
        _check_size(rows)
        self.rows = rows
        self.functions = rows.functions
        self._basic = np.zeros(0, dtype=np.int64)  # keys of the last basis
        self._columns = self.functions.kept
        self._needed_precision = False  # whether the solve before needed twice the digits
        # Searches for what plain digits miss: the keys of the basis of the last one, how many have
        # gained nothing, and the most that functions left out could gain.
        self._wider, self._fruitless, self._gain = self._basic, 0, np.inf
        self._until: float | None = None
        self._start(WorkingSet(rows, rows.coordinates(reference), rows.seeds(reference)))
        self._unexplored = len(self.working.keys) < rows.n_pairs

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of the basis functions that depend on earlier ones; their coefficients are zero."""
        return tuple(np.delete(np.array(self.rows.names, dtype=object), self._columns))

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates in which the master program is solved."""
        return self.working.coordinates

    def solve(
        self,
        moments: FloatArray,
        reference: FloatArray | None = None,
        until: float | None = None,
    ) -> Solution:
        """Return the audited optimum for these moments (K,), with its minimum-norm dual.

        `reference` (S,) are the weights behind the moments: new coordinates are built around them
        when the old ones do not fit any more. What needs twice the digits gives up `until` a time
        of `time.perf_counter`.
        """
        began = time.perf_counter()
        face = self.optimum(moments, reference, until)
        dual = minimum_norm_dual(face, self.rows, reference, until)
        if dual.residual > tolerances.DUAL and face.audit.passed:
            face, dual = self._with_rows_that_are_tight(face, dual, reference)
        found = self._doubts(face, dual.residual)
        status = Status.INACCURATE if found else Status.OPTIMAL
        return Solution(
            status=status if face.proven else Status.TIME_LIMIT,
            doubts=found,
            coef=face.coef,
            objective=face.objective,
            moments=moments,
            keys=dual.keys,
            dual=dual.values,
            dual_residual=dual.residual,
            audit=face.audit,
            passes=face.passes,
            rounds=face.rounds,
            n_rows=face.n_rows,
            proven=face.proven,
            given_up=face.given_up,
            seconds=time.perf_counter() - began,
        )

    def _doubts(self, face: OptimalFace, dual_residual: float) -> tuple[str, ...]:
        """Say which checks an answer has not passed."""
        found = list(doubts.doubts_of(face.audit))
        allowed = tolerances.SPOILT * max(abs(face.objective), self.auditor.cost_unit)
        rounding = self.auditor.rounding(face)
        if rounding > allowed:
            found.append(doubts.rounded_coefficients(rounding, face.objective))
        if face.given_up > tolerances.SPOILT * self.auditor.scale(face):
            found.append(doubts.given_up(face.given_up))
        if dual_residual > tolerances.DUAL and face.audit.passed:
            found.append(doubts.wrong_dual(dual_residual))
        if face.is_late:
            found.append(doubts.late())
        return tuple(found)

    def optimum(
        self,
        moments: FloatArray,
        reference: FloatArray | None = None,
        until: float | None = None,
    ) -> OptimalFace:
        """Return the audited optimum with all rows that are tight there, its dual undecided."""
        self._until = until
        try:
            if not cannot_be_unbounded(self.rows, reference):
                self.functions.check_reachable(moments)
            face = self._found(moments, reference)
        except SolverError as problem:
            if problem.status is not Status.UNBOUNDED or not self.rows.untold:
                raise
            raise SolverError(problem.status, f"{self.rows.untold}; {problem.detail}") from problem
        face = self._with_all_that_matter(face, moments, reference)
        return self._with_nothing_open(face)

    def _found(self, moments: FloatArray, reference: FloatArray | None) -> OptimalFace:
        """Return the best answer: the solver's, or one with twice the digits where that is wrong.

        The solver's coordinates leave dropped functions out, so once some were brought back only
        twice the digits can be used.
        """
        if len(self._columns) > len(self.functions.kept):
            try:
                return self._precise(moments, reference, None)
            except SolverError as problem:
                if problem.status is not Status.FAILED:
                    raise
                self._columns = self.functions.kept
        face = self._by_cutting_planes(moments, reference)
        if face is None or (face.proven and not face.audit.passed):
            return self._precise(moments, reference, face)
        self._needed_precision = False
        return face

    def _by_cutting_planes(
        self, moments: FloatArray, reference: FloatArray | None
    ) -> OptimalFace | None:
        """Return the best that the solver finds in several coordinates, if it finds anything."""
        passes = rounds = 0
        face: OptimalFace | None = None
        if np.linalg.norm(self.coordinates.moments(moments)) > _FAR_MOMENTS:
            self._rebuild(self.rows.coordinates(reference))
        rebuilds = _FEW_REBUILDS if self._can_be_precise else _MAX_REBUILDS
        for _ in range(1 if self._needed_precision else rebuilds):
            attempt = Attempt(
                self.working,
                self.auditor,
                moments,
                reference,
                self._most_rounds,
                unexplored=self._unexplored,
            )
            try:
                candidate = attempt.optimum(self._columns)
            except UnfitCoordinatesError:
                self._rebuild(self.rows.coordinates(reference))
                continue
            except SolverError as problem:
                if self._can_be_precise:
                    return face
                if problem.status is Status.UNBOUNDED and cannot_be_unbounded(self.rows, reference):
                    raise SolverError(Status.FAILED, problem.detail) from problem
                raise
            finally:
                passes, rounds = passes + attempt.passes, rounds + attempt.rounds
                self._unexplored = attempt.unexplored
            self._basic = attempt.basic_keys
            if face is None or is_worse(face.audit, candidate.audit):
                face = candidate
            if face.audit.passed or not face.proven:
                break
            self._rebuild(self.functions.coordinates(attempt.basis_factor()))
        if face is None and not self._can_be_precise:
            raise UnfitCoordinatesError
        return None if face is None else replace(face, passes=passes, rounds=rounds)

    @property
    def _most_rounds(self) -> int:
        """Rounds of row generation before twice the digits are tried, where that is an option."""
        return _FEW_ROUNDS + 2 * self.rows.n_basis if self._can_be_precise else _MAX_ROUNDS

    @property
    def _can_be_precise(self) -> bool:
        return is_affordable(self.rows.n_basis)

    def _precise(
        self,
        moments: FloatArray,
        reference: FloatArray | None,
        before: OptimalFace | None,
        most_steps: int = MAX_STEPS,
    ) -> OptimalFace:
        """Return the optimum found with twice the digits, or what was found before if better."""
        if not self._can_be_precise:
            assert before is not None
            return before
        working, auditor = self.working, self.auditor
        bounds = doubled(auditor.bounds), auditor.bound_cost
        exact = precise_moments(self.rows, moments, reference)
        none = np.zeros(0, dtype=np.int64)
        starts = [
            (np.union1d(working.keys[-_PRECISE_POOL:], self._basic), self._basic),
            (self.rows.seeds(reference)[:_PRECISE_POOL], none),
        ]
        if before is None and not self._needed_precision:
            starts.reverse()  # rows of a search that found nothing are no good start
        try:
            search = VertexSearch(self.rows, self._columns, bounds, most_steps, self._until)
            is_bounded = cannot_be_unbounded(self.rows, reference)
            vertex = precise_vertex(search, exact, starts, is_bounded=is_bounded)
        except SolverError as problem:
            is_late = problem.status is Status.TIME_LIMIT
            if before is None or not (is_late or problem.status is Status.FAILED):
                raise
            return replace(before, is_late=is_late)
        working.add(vertex.pool[~working.contains(vertex.pool)])
        face = face_of(vertex, auditor, moments, exact)
        if before is not None and not is_worse(before.audit, face.audit):
            return before
        self._needed_precision, self._basic = True, vertex.rows
        return face

    def _with_all_that_matter(
        self, face: OptimalFace, moments: FloatArray, reference: FloatArray | None
    ) -> OptimalFace:
        """Bring back functions that were dropped as dependent although they change the answer.

        Where the dual satisfies the equation of a dropped function, too, no coefficient of that
        function makes the objective larger.
        """
        exact = None if reference is None else self.rows.exact_moments(reference)
        if exact is None:  # rows or moments are rounded, which is no reason to bring functions back
            return face
        while face.proven and self._can_be_precise:
            missed = np.flatnonzero(self.auditor.missed(face, exact, self._columns))
            if len(missed) == 0:
                break
            fuller, gain = self._fuller(face, missed, moments, reference)
            if fuller is None:
                return replace(face, given_up=gain)
            is_wider = len(fuller.columns) > len(face.columns)
            face = fuller
            if not is_wider:
                break
        return face

    def _fuller(
        self,
        face: OptimalFace,
        missed: IntArray,
        moments: FloatArray,
        reference: FloatArray | None,
    ) -> tuple[OptimalFace | None, float]:
        """Return the answer with all functions that are missed, if it is better; and the gain."""
        fresh = np.setdiff1d(missed, self._columns)
        self.functions.check_unbounded(fresh)
        if len(fresh) == 0 and self._fruitless >= _FRUITLESS:
            return None, self._gain  # other weights give much the same answer, and it takes long
        before = self._columns, self._basic, self._needed_precision
        self._columns = np.union1d(self._columns, fresh)
        if len(self._wider):  # the basis of the last search of this kind is a good start
            self._basic, self._needed_precision = self._wider, True
        steps = _STEPS_PER_FUNCTION * len(self._columns)
        try:
            fuller = self._precise(moments, reference, None, steps)
            self._wider = self._basic
            gain = fuller.objective - face.objective
        except SolverError:
            fuller, gain = None, np.inf
        if fuller is not None:
            lost = self.auditor.rounding(fuller) - self.auditor.rounding(face)
            if gain > lost and (fuller.audit.passed or is_worse(face.audit, fuller.audit)):
                return fuller, gain
        self._columns, self._basic, self._needed_precision = before
        gain = gain if gain > tolerances.OPTIMALITY * self.auditor.scale(face) else 0.0
        if len(fresh) == 0:
            self._fruitless += 1
            known = [amount for amount in (gain, self._gain) if np.isfinite(amount)]
            self._gain = max(known, default=np.inf)
            gain = self._gain
        return None, gain

    def _with_rows_that_are_tight(
        self, face: OptimalFace, dual: MinimumNormDual, reference: FloatArray | None
    ) -> tuple[OptimalFace, MinimumNormDual]:
        """Return the optimum found with twice the digits and its dual, if that dual is more exact.

        Plain digits may take rows for tight that are not; a dual on them is none of the program.
        """
        if not (self._can_be_precise and face.proven):
            return face, dual
        try:
            precise = self._precise(face.moments, reference, None)
            exact = minimum_norm_dual(precise, self.rows, reference, self._until)
        except SolverError:
            return face, dual
        is_better = precise.audit.passed and exact.residual < dual.residual
        return (replace(precise, given_up=face.given_up), exact) if is_better else (face, dual)

    def _with_nothing_open(self, face: OptimalFace) -> OptimalFace:
        """Choose the coefficients that the weights do not determine; the dual does not change."""
        if not (self._can_be_precise and face.proven and face.audit.passed):
            return face
        auditor = self.auditor
        bounds = auditor.bounds, auditor.bound_cost
        coef = open_coefficients.decided(
            self.rows, self._columns, bounds, face.coef, face.tight, face.dual
        )
        if coef is None:
            return face
        found = auditor.scan(face.moments, coef.high)
        violation, relative = auditor.violation(coef.high, found)
        audit = replace(face.audit, violation=violation, relative_violation=relative)
        objective = dot(doubled(face.moments), coef)
        size = abs(face.objective) + float(face.dual.sum()) * auditor.cost_unit
        if not audit.passed or abs(objective - face.objective) > tolerances.OPTIMALITY * size:
            return face
        return replace(face, coef=coef.high, audit=audit, passes=face.passes + 1)

    def _rebuild(self, coordinates: Coordinates) -> None:
        """Set up the master program afresh in other coordinates, with the rows it has."""
        self._start(WorkingSet(self.rows, coordinates, self.working.keys))

    def _start(self, working: WorkingSet) -> None:
        self.working = working
        self.auditor = Auditor(self.rows, working.raw_bounds, working.bound_cost, working.cost_unit)


def _check_size(rows: RowSource) -> None:
    """Refuse sparse bases for which the solver would take longer than exact answers do."""
    if rows.is_sparse and rows.n_basis > _MOST_SPARSE:
        raise BasisError(
            f"the basis has {rows.n_basis:,} functions, expected at most {_MOST_SPARSE:,} of a "
            "sparse basis: put more states into a group, as in Indicator(groups); or use "
            "Indicator() without bounds on a tabular model, which needs no solver"
        )
