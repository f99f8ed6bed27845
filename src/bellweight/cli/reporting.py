"""The parts of `bellweight report` and `bellweight compare`: what the files hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bellweight.cli import parse

if TYPE_CHECKING:
    from bellweight.certificates.certificate import Certificate
    from bellweight.display.presentable import Presentable
    from bellweight.evaluation.evaluate import Comparison
    from bellweight.models import Model
    from bellweight.policies import Policy
    from bellweight.results.result import Result


def load_one(path: Path, model: Model | None) -> Result:
    """Return a saved result with its model."""
    from bellweight.results.result import Result

    return Result.load(path, model=model)


def load(paths: Sequence[Path], model: Model | None) -> dict[str, Result]:
    """Return saved results by the names of their files."""
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise parse.usage(f"{twice[0]} is named twice: name each file once")
    return {name: load_one(path, model) for name, path in zip(names, paths, strict=True)}


def subject(paths: Sequence[Path], model: Model | None) -> Presentable | dict[str, Result]:
    """Return what the files hold: one comparison or answer of a plan, or several results."""
    from bellweight.common import files
    from bellweight.evaluation.evaluate import Comparison
    from bellweight.plans.race_result import RaceResult
    from bellweight.results.base import PlanResult
    from bellweight.results.result import Result

    if len(paths) == 1:
        held: Presentable = files.load(paths[0], Result, Comparison, RaceResult, PlanResult)
        if not isinstance(held, Result):
            return held
    found = load(paths, model)
    return next(iter(found.values())) if len(found) == 1 else found


def certificate(path: Path | None, about: object) -> Certificate | None:
    """Return a saved certificate of this result."""
    from bellweight.certificates.certificate import Certificate
    from bellweight.results.result import Result

    if path is None:
        return None
    if not isinstance(about, Result):
        raise parse.usage("--certificate goes with one result")
    return Certificate.load(path)


def compared(
    results: dict[str, Result],
    model: Model,
    episodes: int,
    horizon: int | None,
    seed: int | None,
    jobs: int | None,
    *,
    random: bool,
) -> Comparison:
    """Compare policies on the same random numbers, by default on ones that no run has used."""
    from bellweight.evaluation.evaluate import compare
    from bellweight.policies import Uniform

    policies: dict[str, Policy] = {name: result.policy for name, result in results.items()}
    if random:
        policies["acting at random"] = Uniform()
    fresh = max(result.fresh_seed for result in results.values())
    return compare(
        model,
        policies,
        episodes,
        horizon=horizon,
        seed=fresh if seed is None else seed,
        jobs=jobs,
    )
