"""Bellweight: good policies for Markov decision processes too large to solve exactly.

It solves the approximate linear program, chooses the state-relevance weights by itself, and says
how far from optimal the policy can be. Discounted, infinite-horizon, costs minimised.

Everyday names are here; the others are in their rooms: `models`, `bases`, `program`,
`policies`, `weights`, `plans`, `results`, `evaluation`, `certificates`, `analysis`,
`interchange`, `errors`. Each is loaded when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bellweight.common import lazy

if TYPE_CHECKING:
    from bellweight import (
        analysis,
        bases,
        certificates,
        errors,
        evaluation,
        exact,
        interchange,
        models,
        plans,
        policies,
        problems,
        program,
        results,
        testing,
        weights,
    )
    from bellweight.bases import (
        Affine,
        Custom,
        Fourier,
        Indicator,
        PiecewiseLinear,
        Polynomial,
        Product,
        Radial,
        Separable,
        Stacked,
    )
    from bellweight.certificates import Certificate, certify, verify
    from bellweight.common.status import BellweightError, Status
    from bellweight.evaluation.evaluate import Evaluation, compare, evaluate
    from bellweight.models import (
        EventModel,
        Law,
        LinearBuilder,
        LinearModel,
        StepModel,
        TabularModel,
    )
    from bellweight.plans import Auto, Enriched, Resampled
    from bellweight.policies import Greedy, Rollout, Rule, TablePolicy, Uniform
    from bellweight.program import LocalRows, SampledRows
    from bellweight.report import report
    from bellweight.results import Result
    from bellweight.simulation import Simulation, sample_states
    from bellweight.solve import solve
    from bellweight.weights import DIA, PIA, Fixed, FromPolicy, Stop

__version__ = "0.1.0"

__all__ = [
    "DIA",
    "PIA",
    "Affine",
    "Auto",
    "BellweightError",
    "Certificate",
    "Custom",
    "Enriched",
    "Evaluation",
    "EventModel",
    "Fixed",
    "Fourier",
    "FromPolicy",
    "Greedy",
    "Indicator",
    "Law",
    "LinearBuilder",
    "LinearModel",
    "LocalRows",
    "PiecewiseLinear",
    "Polynomial",
    "Product",
    "Radial",
    "Resampled",
    "Result",
    "Rollout",
    "Rule",
    "SampledRows",
    "Separable",
    "Simulation",
    "Stacked",
    "Status",
    "StepModel",
    "Stop",
    "TablePolicy",
    "TabularModel",
    "Uniform",
    "analysis",
    "bases",
    "certificates",
    "certify",
    "compare",
    "errors",
    "evaluate",
    "evaluation",
    "exact",
    "interchange",
    "models",
    "plans",
    "policies",
    "problems",
    "program",
    "report",
    "results",
    "sample_states",
    "solve",
    "testing",
    "verify",
    "weights",
]

_HOMES = {
    "bellweight.bases": "Affine Custom Fourier Indicator PiecewiseLinear Polynomial Product Radial "
    "Separable Stacked",
    "bellweight.certificates": "Certificate certify verify",
    "bellweight.common.status": "BellweightError Status",
    "bellweight.evaluation.evaluate": "Evaluation compare evaluate",
    "bellweight.models": "EventModel Law LinearBuilder LinearModel StepModel TabularModel",
    "bellweight.plans": "Auto Enriched Resampled",
    "bellweight.policies": "Greedy Rollout Rule TablePolicy Uniform",
    "bellweight.program": "LocalRows SampledRows",
    "bellweight.report": "report",
    "bellweight.results": "Result",
    "bellweight.simulation": "Simulation sample_states",
    "bellweight.solve": "solve",
    "bellweight.weights": "DIA PIA Fixed FromPolicy Stop",
}

if not TYPE_CHECKING:  # type checkers read the imports above
    __getattr__ = lazy.names(__name__, _HOMES, __all__)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
