"""`bellweight.report`: one call from a result to a page that opens offline."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bellweight.backends import backend_of
from bellweight.certificates.certificate import Certificate
from bellweight.certificates.certifying import certify
from bellweight.common import checks, files, identity
from bellweight.common.status import ArgumentError, BellweightError
from bellweight.display.presentable import Presentable
from bellweight.display.table import capital
from bellweight.evaluation.evaluate import Comparison, Evaluation, compare, evaluate
from bellweight.models import Model
from bellweight.report.comparison_page import comparison_page, plan_page, results_page
from bellweight.report.result_page import result_page
from bellweight.report.subject import Subject
from bellweight.results.result import Result

EPISODES = 2_000


def report(
    subject: Presentable | Mapping[str, Result],
    path: str | os.PathLike[str],
    *,
    model: Model | None = None,
    evaluation: Evaluation | Comparison | None = None,
    certificate: Certificate | None = None,
    optimum: float | None = None,
    title: str | None = None,
    about: Sequence[str] = (),
    episodes: int = EPISODES,
    jobs: int | None = None,
) -> Path:
    """Write a self-contained page about a result, a comparison, or several results by name.

    Also about what a plan found, such as the result of a race. What is missing is computed: the
    certificate, and the cost of a policy that was not judged, with random numbers that the run did
    not use. The file is written whole or not at all.

    Args:
        subject: a result, a comparison, what a plan found, or results by name.
        path: the file to write.
        model: the model; a result that was loaded without it needs it for pictures of its states.
        evaluation: a simulated cost of the policy, or a comparison, to show.
        certificate: of the result, in place of a computed one.
        optimum: an exact optimal cost to show beside.
        title: the heading of the page.
        about: sentences in place of the opening ones.
        episodes: simulated where a cost is missing.
        jobs: how many workers simulate; all cores by default.

    Returns:
        The path of the page.

    Examples:
        >>> import pathlib, tempfile
        >>> result = bw.solve(bw.problems.single_queue(capacity=30), bw.Polynomial(3), bw.DIA())
        >>> bw.report(result, pathlib.Path(tempfile.mkdtemp()) / "queue.html").name
        'queue.html'
    """
    target = files.check_target(path)
    checks.count(episodes, "episodes", least=2)
    given = {"model": model, "evaluation": evaluation, "certificate": certificate,
             "optimum": optimum}  # fmt: skip
    _check_options(subject, {name for name, value in given.items() if value is not None})
    if isinstance(subject, Comparison):
        return files.write_text(target, comparison_page(subject, title, about))
    study = _Study(model, episodes, jobs)
    if isinstance(subject, Result):
        if isinstance(evaluation, Comparison):
            raise ArgumentError("evaluation is a Comparison: one result takes an Evaluation")
        known = study.subject(subject, evaluation, certificate)
        return files.write_text(target, result_page(known, title, about))
    if isinstance(subject, Presentable):
        return files.write_text(target, plan_page(subject, title, about))
    if not isinstance(subject, Mapping) or not subject:
        raise ArgumentError(
            f"subject is {type(subject).__name__}, expected a Result, a Comparison, what a plan "
            "found, or results by name, at least one"
        )
    for name, run in subject.items():
        if not isinstance(run, Result):
            raise ArgumentError(f"{name} is {type(run).__name__}, expected a Result of solve")
    if len({result.model_digest for result in subject.values()}) > 1:
        raise ArgumentError("the results belong to different models: report them one by one")
    paired = evaluation if isinstance(evaluation, Comparison) else study.paired(subject)
    subjects = {
        name: study.subject(result, None if paired is None else paired.evaluations.get(name))
        for name, result in subject.items()
    }
    return files.write_text(target, results_page(subjects, paired, optimum, title, about))


def _check_options(subject: object, given: set[str]) -> None:
    """Refuse what would be ignored."""
    kind, taken = "several results", {"model", "evaluation", "optimum"}
    if isinstance(subject, Result):
        kind, taken = "one result", {"model", "evaluation", "certificate"}
    elif isinstance(subject, Comparison):
        kind, taken = "a comparison, which holds all its numbers,", set()
    elif isinstance(subject, Presentable):
        kind, taken = "what a plan found, which holds all its numbers,", set()
    for name in sorted(given - taken):
        raise ArgumentError(f"a report on {kind} takes no {name}: leave it out")


def _is_about(certificate: Certificate, result: Result) -> bool:
    """Return whether a certificate belongs to the coefficients of a result."""
    coef = certificate.record.get("solved")
    same = coef is None or np.array_equal(np.asarray(coef, dtype=np.float64), result.coef)
    return certificate.model_digest == result.model_digest and same


class _Study:
    """Computes what a report needs and was not given."""

    def __init__(self, model: Model | None, episodes: int, jobs: int | None) -> None:
        self._model = model
        self._episodes = episodes
        self._jobs = jobs

    def _certifying(self, result: Result, model: Model) -> int:
        """Return how many episodes a certificate takes: few where they would prove nothing."""
        sampled = backend_of(model).samples_states and result.lower_bound_kind != "exact"
        if result.judgement is None or not sampled:
            return self._episodes
        return max(2, min(self._episodes, result.judgement.episodes))

    def subject(
        self,
        result: Result,
        evaluation: Evaluation | None = None,
        certificate: Certificate | None = None,
    ) -> Subject:
        """Return a result with its cost and its certificate."""
        result = self._bound(result)
        doubts: list[str] = []
        if result.policy.model is not None:
            try:
                _ = result.visited
            except BellweightError as problem:
                doubts.append(f"The states cannot be shown: {problem}")
                result = replace(result, policy=replace(result.policy, model=None))
        model = result.policy.model
        if model is not None and evaluation is None and result.cost is None:
            evaluation = evaluate(
                model, result.policy, self._episodes, seed=result.fresh_seed, jobs=self._jobs
            )
        if certificate is not None and not _is_about(certificate, result):
            raise ArgumentError("the certificate is about another result: make it again")
        if model is not None and certificate is None:
            try:
                episodes = self._certifying(result, model)
                certificate = certify(model, result, episodes=episodes, jobs=self._jobs)
            except BellweightError as problem:
                doubts.append(f"no certificate could be made: {problem}")
        if certificate is not None and certificate.kind == "unproven":
            doubts.append(
                f"No bound is proven. {capital(certificate.reason)}. A bound needs "
                f"{certificate.gap.advice}."
                if certificate.value_kind == "unproven"
                else f"What the policy can lose is not proven. {capital(certificate.reason)}."
            )
        return Subject(result, evaluation, certificate, tuple(doubts))

    def paired(self, results: Mapping[str, Result]) -> Comparison | None:
        """Compare policies where costs have to be simulated."""
        bound = {name: self._bound(result) for name, result in results.items()}
        models = [result.policy.model for result in bound.values()]
        if models[0] is None or backend_of(models[0]).lists_states:
            return None
        policies = {name: result.policy for name, result in bound.items()}
        seed = max(result.fresh_seed for result in bound.values())
        return compare(models[0], policies, self._episodes, seed=seed, jobs=self._jobs)

    def _bound(self, result: Result) -> Result:
        if self._model is None:
            return result
        if self._model.digest != result.model_digest:
            doubt = identity.doubt(result.model_digest, self._model.digest)
            raise ArgumentError(
                f"the result belongs to another model{doubt}: pass the model it came from"
            )
        return result.on(self._model)
