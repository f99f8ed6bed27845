"""Laws of random numbers as words of the command line: `normal:6,3.5,0,10`, `poisson:5,20`.

normal:MEAN,DEVIATION[,LOWER,UPPER]    gamma:SHAPE[,SCALE]     exponential:MEAN
interval:LOWER,UPPER                   poisson:MEAN,LIMIT      law:VALUE=CHANCE,VALUE=CHANCE,...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from typing import Any

import typer

from bellweight.common.status import BellweightError


def law_of(text: str) -> Any:
    """Return the law that words name; None where they begin with no name of a law."""
    name, colon, numbers = text.partition(":")
    makers = _makers()
    if not colon or name not in makers:
        return None
    try:
        return makers[name](numbers)
    except (TypeError, ValueError) as problem:
        reason = f": {problem}" if isinstance(problem, BellweightError) else ""
        raise typer.BadParameter(
            f"{text!r} is no law, expected words such as normal:6,3.5,0,10, poisson:5,20 or "
            f"law:0=0.5,3=0.5{reason}"
        ) from None


def law_words(law: Any) -> str | None:
    """Return the words for a law, None for anything else."""
    from bellweight.models.laws import Law

    if isinstance(law, Law):
        pairs = zip(law.values, law.chances, strict=True)
        return "law:" + ",".join(f"{value:g}={chance:.12g}" for value, chance in pairs)
    for name, kind in _continuous().items():
        if isinstance(law, kind):
            return f"{name}:" + ",".join(f"{number:g}" for number in astuple(law))
    return None


def _continuous() -> dict[str, Any]:
    from bellweight.models.noise import Exponential, Gamma, Interval, Normal

    return {"normal": Normal, "gamma": Gamma, "exponential": Exponential, "interval": Interval}


def _makers() -> dict[str, Callable[[str], Any]]:
    from bellweight.models.laws import Law

    def listed(text: str) -> Law:
        pairs = [entry.split("=") for entry in text.split(",")]
        return Law([float(value) for value, _ in pairs], [float(chance) for _, chance in pairs])

    def poisson(text: str) -> Law:
        mean, limit = text.split(",")
        return Law.poisson(float(mean), int(limit))

    def maker(kind: Any) -> Callable[[str], Any]:
        return lambda text: kind(*(float(number) for number in text.split(",")))

    made = {name: maker(kind) for name, kind in _continuous().items()}
    return {**made, "poisson": poisson, "law": listed}
