"""The parts of `bellweight solve`: what to run, and what to say about the result."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellweight.cli import parse
from bellweight.cli.output import one_line
from bellweight.cli.parse import BasisWords, MethodWords
from bellweight.cli.progress import Progress
from bellweight.common.status import BellweightWarning, Status

if TYPE_CHECKING:
    from bellweight.basis import Basis
    from bellweight.cli.sampling import Sample
    from bellweight.models import Model
    from bellweight.solve import Result
    from bellweight.weights.loop import HistoryEntry, Method, Stop

_MORE_ITERATIONS = 100
_NEARLY = 1e-3
_CAN_GO_ON = (Status.ITERATION_LIMIT, Status.TIME_LIMIT, Status.INTERRUPTED)


@dataclass(frozen=True)
class Limits(parse.Words):
    """When to stop, as far as the command line says."""

    tol: float | None = None
    max_iterations: int | None = None
    max_seconds: float | None = None


@dataclass(frozen=True)
class Job:
    """Everything that a run needs."""

    model: Model
    basis: Basis
    method: Method
    stop: Stop
    earlier: Result | None
    sample: Sample | None = None
    regularisation: float = 0.0

    def check_seed(self, seed: int) -> None:
        """Refuse to go on with other states and other random numbers than before."""
        if self.sample is not None and self.earlier is not None and self.earlier.seed != seed:
            raise parse.usage(
                f"--seed is {seed}, the saved run's is {self.earlier.seed}: repeat it, with all "
                "that the run said about states and episodes"
            )

    def run(self, seed: int, jobs: int | None, progress: Progress, *, judge: bool = True) -> Result:
        """Solve, telling the progress of each iteration."""
        from bellweight.solve import solve

        most = self.stop.max_iterations + _before(self.earlier)
        progress.tell(f"first iteration of at most {most}")

        def watch(record: HistoryEntry) -> None:
            residual = "" if record.sup_norm is None else f", residual {record.sup_norm:.2g}"
            if record.noise_ratio is not None:
                residual = f", moments within {record.noise_ratio:.2g} standard errors"
            progress.tell(f"iteration {record.iteration + 1} of at most {most}{residual}")

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", BellweightWarning)
            result = solve(
                self.model,
                self.basis,
                self.method,
                rows=None if self.sample is None else self.sample.rows,
                simulation=None if self.sample is None else self.sample.simulation,
                stop=self.stop,
                regularisation=self.regularisation,
                seed=seed,
                jobs=jobs,
                progress=watch,
                resume=self.earlier,
                judge=judge,
            )
        _pass_on(caught, result)
        return result


def _pass_on(caught: Sequence[warnings.WarningMessage], result: Result) -> None:
    """Warn again of what the summary does not show."""
    for found in caught:
        if str(found.message) not in result.warnings:
            warnings.warn_explicit(found.message, found.category, found.filename, found.lineno)


def job(
    model: Model,
    sample: Sample | None,
    basis: BasisWords,
    words: MethodWords,
    limits: Limits,
    resume: Path | None,
    regularisation: float | None = None,
) -> Job:
    """Return the run that the words describe; a resumed one keeps its basis and method."""
    from bellweight.solve import Result
    from bellweight.weights.loop import Stop

    given = limits.given()
    if resume is None:
        chosen = parse.basis(basis, model), parse.method(words, model)
        return Job(model, *chosen, Stop(**given), None, sample, regularisation or 0.0)
    named = [parse.flag(key) for key in (*words.given(), *basis.given())]
    named += ["--regularisation"] if regularisation is not None else []
    if named:
        raise parse.usage(f"--resume keeps the saved basis and method: leave out {named[0]}")
    earlier = Result.load(resume, model=model)
    most = limits.max_iterations
    if most is None:
        most = len(earlier.history) + _MORE_ITERATIONS
    if most > 0:
        # On the command line the limit counts all iterations, in the library those of one run.
        given["max_iterations"] = max(1, most - _before(earlier))
    before = replace(earlier.stop, max_seconds=None)
    stop = replace(before, **given)
    kept = earlier.regularisation
    return Job(model, earlier.basis, earlier.method, stop, earlier, sample, kept)


def _before(earlier: Result | None) -> int:
    """Return how many iterations a resumed run begins with; the last one is done again."""
    return 0 if earlier is None else len(earlier.history) - 1


@dataclass(frozen=True)
class Commands:
    """What to type next: the model's own words, and those to repeat when a run goes on."""

    source: str
    options: Sequence[str]
    save: Path | None
    further: Sequence[object] = ()

    @property
    def go_on(self) -> str:
        """Go on with the saved result."""
        if self.save is None:
            return "give --save FILE.npz, then --resume FILE.npz goes on from there"
        saved = ["--resume", str(self.save), "--save", str(self.save)]
        return self._joined("bellweight", "solve", self.source, *map(str, self.further), *saved)

    @property
    def simulate(self) -> str:
        """Simulate the saved policy."""
        if self.save is None:
            return "--save FILE.npz keeps the result, for bellweight evaluate, compare and report"
        return self._joined("bellweight", "evaluate", str(self.save), "--model", self.source)

    @property
    def race(self) -> str:
        """Try other methods."""
        return self._joined("bellweight", "auto", self.source)

    @property
    def show(self) -> str:
        """Write a page about the saved result."""
        saved = str(self.save)
        page = f"{saved.removesuffix('.npz')}.html"
        return self._joined("bellweight", "report", saved, "--model", self.source, "--out", page)

    def _joined(self, *words: str) -> str:
        place = words.index(self.source) + 1
        given = [word for option in self.options for word in ("--option", option)]
        return shlex.join([*words[:place], *given, *words[place:]])


def text(result: Result, job: Job, commands: Commands) -> str:
    """Return what to print about a result, in the words of the command line."""
    from bellweight.display import facts_text
    from bellweight.results.summary import headline, summary

    told = [fact for fact in summary(result) if fact[0] != "next"]
    told += [_policy_fact(result, job)] if job.sample is None else job.sample.told()
    lines = [facts_text(headline(result), told)]
    # Commands and file names are copied from the screen, so they stay on one line.
    if commands.save is not None:
        lines.append(f"saved       {commands.save}")
        lines.append(f"page        {commands.show}")
    advice = _advice(result, commands)
    whole = advice.startswith("bellweight ")
    lines.append(f"next        {advice}" if whole else facts_text("", [("next", advice)]))
    return "\n".join(lines)


def document(result: Result, job: Job, source: str) -> dict[str, Any]:
    """Return the result as JSON."""
    from bellweight.report.document import result_document

    sampled = {} if job.sample is None else {"sample": job.sample.facts}
    return {"source": source, **result_document(result, job.model), **sampled}


def _policy_fact(result: Result, job: Job) -> tuple[str, str]:
    from bellweight.report.document import action_counts

    counts = [
        f"{one_line(name)} in {count:,} state{'s' if count > 1 else ''}"
        for name, count in action_counts(result, job.model).items()
    ]
    shown = counts[:6] + ([f"and {len(counts) - 6} more"] if len(counts) > 6 else [])
    return "policy", ", ".join(shown)


def _advice(result: Result, commands: Commands) -> str:
    """Return what to try next."""
    if result.status in _CAN_GO_ON:
        return commands.go_on
    if result.status is Status.CYCLING:
        return "the same with --step-size adaptive"
    if not result.status.is_success:
        return result.status.remedy
    cost, bound = result.cost, result.lower_bound
    proven = cost.mean - bound if cost is not None and bound is not None else None
    if not result.is_exact:
        proven = None
    if proven is not None and cost is not None and proven <= _NEARLY * abs(cost.mean):
        return "nothing: the policy is within 0.1 % of optimal"
    if result.judgement is not None and result.judgement.is_no_better:
        return commands.race
    if proven is None:
        return commands.simulate
    keep = "" if commands.save is not None else "; --save FILE.npz keeps the result"
    return f"a richer --basis may tighten the bound{keep}"
