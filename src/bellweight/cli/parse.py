"""From words on the command line to bases, methods and their settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import typer

from bellweight.cli.suggest import meant
from bellweight.common.status import BellweightError

if TYPE_CHECKING:
    from bellweight.basis import Basis
    from bellweight.models import Model
    from bellweight.policies import Policy
    from bellweight.weights.loop import Method
    from bellweight.weights.steps import Steps


class MethodName(StrEnum):
    """The methods by their names on the command line."""

    fixed = "fixed"
    random = "random"
    pia = "pia"
    dia = "dia"


class Cycles(StrEnum):
    """What to report of weights that cycle."""

    best = "best"
    average = "average"


@dataclass(frozen=True)
class Words:
    """What the command line says of something; None or False where it says nothing."""

    def given(self) -> dict[str, Any]:
        """Return what was said, by the names of the options."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value for name, value in found.items() if value is not None and value is not False
        }


@dataclass(frozen=True)
class MethodWords(Words):
    """What the command line says about the method."""

    method: MethodName | None = None
    weights: str | None = None
    target: str | None = None
    temperature: float | None = None
    smoothing_mass: float | None = None
    step_size: str | None = None
    start: str | None = None
    cycles: Cycles | None = None
    extend: float | None = None


@dataclass(frozen=True)
class BasisWords(Words):
    """What the command line says about the basis."""

    basis: str | None = None
    nonnegative: bool = False


_TAKES = {
    MethodName.fixed: ("weights",),
    MethodName.random: (),
    MethodName.pia: ("step_size", "start", "cycles"),
    MethodName.dia: (
        "target", "temperature", "smoothing_mass", "step_size", "start", "cycles", "extend",
    ),
}  # fmt: skip

_SIZED = ("poly", "kinks", "radial", "fourier")
_PLAIN = ("affine", "indicator")
REPRODUCED = (
    "all", "table1", "table2", "table3", "table4", "table5",
    "figure-queue", "figure-occupancy", "figure-network", "figure-convergence",
)  # fmt: skip
BASES = (
    "poly:DEGREE, kinks:N (evenly spaced) or kinks:1,2,5,10 (where), radial:N, fourier:N, affine "
    "or indicator"
)


def usage(message: str) -> typer.BadParameter:
    """Return the error that ends the command as wrong usage."""
    return typer.BadParameter(message)


def flag(name: str) -> str:
    """Return the option of a setting: smoothing_mass is --smoothing-mass."""
    return "--" + name.replace("_", "-")


def basis(words: BasisWords, model: Model) -> Basis:
    """Return the basis that `poly:3`, `affine` or `radial:20` names, or the model's usual one."""
    from bellweight.backends import backend_of
    from bellweight.basis import Affine, Fourier, Indicator, PiecewiseLinear, Polynomial, Radial

    backend = backend_of(model)
    text = words.basis or backend.usual_basis
    if words.nonnegative and text != "affine":
        raise usage(f"--nonnegative goes with --basis affine, the basis here is {text}")
    if not backend.lists_rows and text not in ("affine", "poly:1"):
        raise usage(f"--basis is {text!r}, expected affine for a linear model: rows are priced")
    check_basis(text)
    if text == "affine":
        return Affine(lower=_nonnegative(model) if words.nonnegative else None)
    if text == "indicator":
        return Indicator()
    name, _, number = text.partition(":")
    if "," in number:
        return PiecewiseLinear([float(kink) for kink in number.split(",")])
    made = zip(_SIZED, (Polynomial, PiecewiseLinear, Radial, Fourier), strict=True)
    return dict(made)[name](int(number))


def method(words: MethodWords, model: Model) -> Method:
    """Return the method with its settings; settings of another method are refused."""
    from bellweight.weights.methods import DIA, PIA, Fixed, FromPolicy

    name = words.method or MethodName.dia
    given = {key: value for key, value in words.given().items() if key != "method"}
    _check_belongs(name, given)
    plain = ("temperature", "smoothing_mass", "extend")
    settings: dict[str, Any] = {key: given[key] for key in plain if key in given}
    if words.step_size is not None:
        settings["step_size"] = _step_size(words.step_size)
    if words.cycles is not None:
        settings["cycles"] = words.cycles.value
    if words.start is not None:
        settings["start"] = weights(words.start, "--start", model)
    if name is MethodName.fixed:
        return Fixed(weights(words.weights or "initial", "--weights", model))
    if name is MethodName.random:
        return FromPolicy()
    if name is MethodName.pia:
        return PIA(**settings)
    return DIA(target=_target(words.target or "random", model), **settings)


def weights(words: str, option: str, model: Model) -> Any:
    """Return the weights that `initial`, `uniform` or `geometric:DECAY` names."""
    from bellweight.backends import backend_of
    from bellweight.problems.single_queue import geometric

    backend = backend_of(model)
    if not backend.lists_states:
        if words != "initial":
            raise usage(f"{option} is {words!r}, expected initial for {backend.noun}")
        return words
    if words in ("initial", "uniform"):
        return words
    name, _, decay = words.partition(":")
    if name == "geometric":
        try:
            return geometric(len(model.states), float(decay))  # type: ignore[union-attr]
        except ValueError as problem:
            reason = problem if isinstance(problem, BellweightError) else f"{decay!r} is no number"
            raise usage(f"{option} {words}: {reason}") from None
    raise usage(f"{option} is {words!r}, expected initial, uniform or geometric:DECAY")


def whole_numbers(text: str | None, option: str) -> tuple[int, ...] | None:
    """Return the numbers of `5000,20000`."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise usage(f"{option} is {text!r}, expected whole numbers such as 5000,20000")
    return tuple(int(part) for part in parts)


def check_word(kind: type[StrEnum], option: str) -> Callable[[str], None]:
    """Return the check that the word of an option is one of a kind."""

    def check(word: str) -> None:
        if word not in list(kind):
            raise usage(f"{option} is {word!r}: {meant(word, list(kind))}")

    return check


def check_reproduced(name: str) -> None:
    """Complain about what is no table or figure of the paper."""
    if name not in REPRODUCED:
        raise usage(f"{name!r} is not reproduced here: {meant(name, REPRODUCED)}")


def check_basis(text: str) -> None:
    """Complain about words that name no basis."""
    name, _, number = text.partition(":")
    if name in _SIZED and number.isdecimal():
        return
    if name == "kinks" and "," in number:
        if not all(map(_is_number, number.split(","))):
            raise usage(f"--basis is {text!r}, expected numbers as in kinks:1,2,5,10")
        return
    if name in _SIZED:
        raise usage(f"--basis is {text!r}, expected a number as in {name}:5")
    if text not in _PLAIN:
        near = meant(name, [*_SIZED, *_PLAIN])
        raise usage(
            f"--basis is {text!r}: {near if near.startswith('did') else f'expected {BASES}'}"
        )


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _nonnegative(model: Model) -> tuple[float, ...]:
    """Return lower bounds that leave the constant free."""
    from bellweight.backends import backend_of

    return (-math.inf, *(0.0 for _ in backend_of(model).variables))


def _check_belongs(name: MethodName, given: Iterable[str]) -> None:
    for key in given:
        if key not in _TAKES[name]:
            owners = " or ".join(owner for owner, takes in _TAKES.items() if key in takes)
            raise usage(
                f"{flag(key)} does not go with --method {name}: it belongs to --method {owners}"
            )


def _step_size(words: str) -> float | Steps:
    from bellweight.weights.steps import Adaptive, Anderson

    if words == "adaptive":
        return Adaptive()
    if words == "anderson":
        return Anderson()
    try:
        return float(words)
    except ValueError:
        raise usage(
            f"--step-size is {words!r}, expected a number in (0, 1], adaptive or anderson"
        ) from None


def _target(words: str, model: Model) -> Policy | Method:
    from bellweight.policies import Uniform
    from bellweight.weights.methods import Fixed

    if words == "random":
        return Uniform()
    name, _, rest = words.partition(":")
    if name == "fixed":
        return Fixed(weights(rest or "initial", "--target fixed:", model))
    raise usage(f"--target is {words!r}, expected random or fixed:WEIGHTS, as in fixed:uniform")
